//! One node: its settings, its directory, its process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tokio::sync::Notify;
use world::Env;

use super::installation::{Installation, KEY_STORE};
use super::release::Dialect;
use crate::nodes::NodeProcess;
use crate::{Error, Result};

/// Has nodes encrypt what they send each other, without users or their rights.
pub const ENCRYPTS: &str = "plugins.security.ssl_only";

/// What a node is started with. A restart takes the same.
#[derive(Clone, Debug)]
pub(crate) struct NodeSpec {
    pub(super) name: String,
    /// `cluster.name`.
    pub(super) cluster: String,
    /// Name of the only node that can be elected manager.
    pub(super) manager: String,
    /// Where nodes of the cluster are found: the manager's published address.
    pub(super) seed: String,
    pub(super) http_port: u16,
    pub(super) transport_port: u16,
    /// The port that is published to other nodes: that of the link where one leads to it.
    pub(super) publish_port: u16,
    /// Its own directory, which the node removes when its runner has vanished.
    pub(super) dir: PathBuf,
    /// Where snapshots are kept, shared by all nodes of the cluster.
    pub(super) repository: PathBuf,
    /// Where snapshots of other clusters may be read: patterns, joined by commas.
    pub(super) allowed_urls: String,
    pub(super) heap: String,
    /// Settings from the plan.
    pub(super) settings: BTreeMap<String, String>,
    /// A key store, with which it encrypts what it sends to other nodes; none where it does not.
    pub(super) keys: Option<Rc<[u8]>>,
}

/// Whether these settings are of nodes that encrypt what they send each other.
pub(super) fn encrypts(settings: &BTreeMap<String, String>) -> bool {
    settings.get(ENCRYPTS).is_some_and(|value| value == "true")
}

impl NodeSpec {
    /// The settings of the node, by name.
    fn settings(&self, home: Option<&Path>, dialect: Dialect) -> BTreeMap<String, String> {
        let mut settings = self.settings.clone();
        let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
        let path = |path: &Path| path.to_string_lossy().into_owned();
        set("cluster.name", self.cluster.clone());
        set("node.name", self.name.clone());
        set("path.home", path(home.unwrap_or(&self.dir)));
        set("path.data", path(&self.dir.join("data")));
        set("path.logs", path(&self.dir.join("logs")));
        set("path.repo", path(&self.repository));
        set("repositories.url.allowed_urls", self.allowed_urls.clone());
        set("network.host", "127.0.0.1".to_owned());
        set("http.port", self.http_port.to_string());
        set("transport.port", self.transport_port.to_string());
        set("transport.publish_port", self.publish_port.to_string());
        set("discovery.seed_hosts", self.seed.clone());
        // The node is ready when it listens; that all have joined is checked afterwards.
        set("discovery.initial_state_timeout", "0s".to_owned());
        if self.name == self.manager {
            set(dialect.initial_managers, self.manager.clone());
        } else {
            set("node.roles", "data,ingest,remote_cluster_client".to_owned());
        }
        // How full this machine's disk is must not change what is measured.
        set("cluster.routing.allocation.disk.threshold_enabled", "false".to_owned());
        if self.keys.is_some() {
            for store in ["keystore", "truststore"] {
                let name = |of: &str| format!("plugins.security.ssl.transport.{store}_{of}");
                set(&name("type"), "PKCS12".to_owned());
                set(&name("filepath"), path(&self.dir.join("config").join(KEY_STORE)));
            }
            // All nodes have one address and one certificate.
            let verify = "plugins.security.ssl.transport.enforce_hostname_verification";
            set(verify, "false".to_owned());
        }
        settings
    }

    /// Starts it, in a mount namespace where there is one; returns when it listens.
    pub(super) async fn start(
        &self,
        env: &Env,
        installation: &Installation,
        namespace: Option<&Path>,
        ends: &Rc<Notify>,
    ) -> Result<NodeProcess> {
        for name in ["config", "tmp"] {
            let path = self.dir.join(name);
            std::fs::create_dir_all(&path).map_err(|source| Error::Io {
                what: "make the directory",
                path,
                source,
            })?;
        }
        if let Some(keys) = &self.keys {
            self.write_keys(keys)?;
        }
        let mut input = String::new();
        for (name, value) in self.settings(installation.home.as_deref(), installation.dialect) {
            let setting = format!("{name}={value}").replace(['\n', '\r'], " ");
            let _ = writeln!(input, "{setting}");
        }
        input.push('\n');
        let command = installation.command(&self.heap, &self.dir, namespace);
        let (process, _) = NodeProcess::spawn(env, &self.name, command, &input, ends).await?;
        process.watch();
        Ok(process)
    }

    /// Writes a key store that nobody else may read.
    fn write_keys(&self, keys: &[u8]) -> Result<()> {
        let path = self.dir.join("config").join(KEY_STORE);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(keys));
        written.map_err(|source| Error::Io { what: "write", path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::release::Release;
    use super::*;

    fn plan(name: &str) -> NodeSpec {
        NodeSpec {
            name: name.to_owned(),
            cluster: "c".to_owned(),
            manager: "c-0".to_owned(),
            seed: "127.0.0.1:9301".to_owned(),
            http_port: 9200,
            transport_port: 9300,
            publish_port: 9301,
            dir: "/d/c-0".into(),
            repository: "/d/repository".into(),
            allowed_urls: "http://127.0.0.1:9/*".to_owned(),
            heap: "512m".to_owned(),
            settings: BTreeMap::from([("indices.recovery.chunk_size".into(), "1mb".into())]),
            keys: None,
        }
    }

    #[test]
    fn one_node_can_be_manager_and_others_find_it_through_its_published_port() {
        let dialect = Release::standard().dialect;
        let manager = plan("c-0").settings(None, dialect);
        assert_eq!(manager["cluster.initial_cluster_manager_nodes"], "c-0");
        assert_eq!(manager["transport.publish_port"], "9301");
        assert_eq!(manager["path.home"], "/d/c-0");
        assert_eq!(manager["indices.recovery.chunk_size"], "1mb");
        let member = plan("c-1").settings(Some(Path::new("/opt/opensearch")), dialect);
        assert!(!member.contains_key("cluster.initial_cluster_manager_nodes"));
        assert!(!member["node.roles"].contains("manager"));
        assert_eq!(member["discovery.seed_hosts"], "127.0.0.1:9301");
        assert_eq!(member["path.home"], "/opt/opensearch");
        assert!(!member.keys().any(|name| name.starts_with("plugins.security.")));
    }

    #[test]
    fn keys_are_in_the_nodes_own_directory_and_nobody_else_may_read_them() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("config")).unwrap();
        let keys: Rc<[u8]> = Rc::from(*b"key");
        let node = NodeSpec { dir: dir.path().to_owned(), keys: Some(keys), ..plan("c-1") };
        let settings = node.settings(None, Release::standard().dialect);
        let path = &settings["plugins.security.ssl.transport.keystore_filepath"];
        assert_eq!(path, &settings["plugins.security.ssl.transport.truststore_filepath"]);
        for _ in 0..2 {
            node.write_keys(b"key").unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), b"key");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
