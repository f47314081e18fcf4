//! A cluster that is already there. What a run makes and sets there is written to a [`Journal`] first, and taken
//! back at the end.
//!
//! Two data nodes take the places of the sites: an index is kept on the near one, then copied to the far one. There is
//! no link of ours between them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use record::observation::Scope;
use serde_json::{Map, Value, json};

use crate::journal::{Change, INDEX_PREFIX, Journal, SettingValue};
use crate::live::LiveClient;
use crate::settings_there::{SETTINGS, SettingsThere, put_back};
use crate::target::{LinkControl, NodeHandle, Target, TopologySpec};
use crate::{Answer, Error};

/// What a cluster says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// `cluster_uuid`.
    pub uuid: String,
    /// Whether it is one of the embedded engine.
    pub embedded: bool,
}

impl ClusterIdentity {
    /// Asks a cluster.
    pub async fn ask(client: &LiveClient) -> Result<ClusterIdentity, Error> {
        let root = client.get("/").await?;
        Ok(ClusterIdentity {
            uuid: root["cluster_uuid"].as_str().unwrap_or_default().to_owned(),
            embedded: root["version"]["distribution"] == "narrows",
        })
    }

    /// As [`ClusterIdentity::ask`], before something is changed: refuses a cluster that is red.
    pub async fn ask_before_changes(client: &LiveClient) -> Result<ClusterIdentity, Error> {
        let identity = ClusterIdentity::ask(client).await?;
        let health = client.get("/_cluster/health?filter_path=status,unassigned_shards").await?;
        if health["status"] == "red" {
            let unassigned = health["unassigned_shards"].as_u64().unwrap_or(0);
            return Err(Error::Red { unassigned });
        }
        Ok(identity)
    }
}

/// A live cluster as a target. Whoever makes one has been allowed to change it.
pub struct UrlTarget {
    client: LiveClient,
    identity: ClusterIdentity,
    journal: RefCell<Option<Journal>>,
    /// The near node and the far one, each under the name of its site.
    sites: Vec<(String, NodeHandle)>,
    /// What could not be put back, and what was left.
    ended: Option<Result<Vec<String>, Error>>,
}

impl UrlTarget {
    /// A target that writes its changes to `journal`, which is about this very cluster.
    pub fn new(client: LiveClient, identity: ClusterIdentity, journal: Journal) -> Self {
        let journal = RefCell::new(Some(journal));
        UrlTarget { client, identity, journal, sites: Vec::new(), ended: None }
    }

    /// How [`Target::stop`] went: what was left as it is, a sentence each, or why nothing could be put back. The
    /// journal is still there in that case.
    pub fn ended(&mut self) -> Option<Result<Vec<String>, Error>> {
        self.ended.take()
    }

    /// The two nodes that take the places of the sites: the first data nodes by name.
    async fn find_sites(&mut self, topology: &TopologySpec) -> Result<(), Error> {
        if !topology.joined {
            return Err(Error::OneCluster);
        }
        let answer = self.client.get("/_nodes?filter_path=nodes.*.name,nodes.*.roles").await?;
        let data = |node: &&Value| {
            let roles = node["roles"].as_array();
            roles.is_none_or(|roles| roles.iter().any(|role| role == "data"))
        };
        let nodes = answer["nodes"].as_object().into_iter().flat_map(Map::values).filter(data);
        let mut names: Vec<&str> = nodes.filter_map(|node| node["name"].as_str()).collect();
        names.sort_unstable();
        if names.len() < topology.clusters.len() {
            return Err(Error::TooFewNodes { data: names.len(), needed: topology.clusters.len() });
        }
        let host = self.client.hosts().first().map(ToString::to_string).unwrap_or_default();
        let handle = |name: &str| NodeHandle {
            name: name.to_owned(),
            http: host.clone(),
            transport: String::new(),
        };
        let sites = topology.clusters.iter().zip(names);
        self.sites = sites.map(|(site, name)| (site.name.clone(), handle(name))).collect();
        Ok(())
    }

    /// Writes down what a request is about to change; the body to send, where it is another one. Refuses what is
    /// not ours to change.
    async fn before(&self, method: &str, path: &str, body: &Bytes) -> Result<Option<Bytes>, Error> {
        let bare = path.split('?').next().unwrap_or(path);
        let parts: Vec<&str> = bare.split('/').filter(|part| !part.is_empty()).collect();
        if matches!(method, "GET" | "HEAD") || bare == "/_search/scroll" {
            return Ok(None);
        }
        if bare == SETTINGS && method == "PUT" {
            return self.before_settings(body).await.map(Some);
        }
        match parts.as_slice() {
            [name] if name.starts_with(INDEX_PREFIX) && method == "PUT" => {
                let change = Change::Index { name: (*name).to_owned() };
                self.record(change).map(|()| None)
            }
            [name, ..] if name.starts_with(INDEX_PREFIX) => Ok(None),
            _ => Err(Error::NotOurs { method: method.to_owned(), path: path.to_owned() }),
        }
    }

    fn record(&self, change: Change) -> Result<(), Error> {
        match self.journal.borrow_mut().as_mut() {
            Some(journal) => journal.record(change),
            None => {
                Err(Error::NotOurs { method: "PUT".to_owned(), path: "it has ended".to_owned() })
            }
        }
    }

    /// Null means as it was before the run, which need not be the default.
    async fn before_settings(&self, body: &Bytes) -> Result<Bytes, Error> {
        let not_json = |error: serde_json::Error| Error::NotJson {
            path: SETTINGS.to_owned(),
            reason: error.to_string(),
        };
        let asked: Value = serde_json::from_slice(body).map_err(not_json)?;
        let asked = asked["persistent"].as_object().cloned().unwrap_or_default();
        let there = SettingsThere::ask(&self.client).await?;
        let original = |name: &str| {
            let journal = self.journal.borrow();
            let known = journal
                .as_ref()
                .and_then(|journal| journal.original(Scope::Persistent, name).cloned());
            known.unwrap_or_else(|| there.at(Scope::Persistent).get(name).cloned())
        };
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut before: BTreeMap<String, SettingValue> = BTreeMap::new();
        let mut set: BTreeMap<String, SettingValue> = BTreeMap::new();
        for (name, value) in &asked {
            if let Some(value) = there.at(Scope::Transient).get(name) {
                let (name, value) = (name.clone(), value.clone());
                return Err(Error::Transient { name, value });
            }
            before.insert(name.clone(), original(name));
            let value = if value.is_null() { original(name) } else { Some(text(value)) };
            set.insert(name.clone(), value);
        }
        let body = json!({ "persistent": set });
        self.record(Change::Settings { scope: Scope::Persistent, before, set })?;
        Ok(Bytes::from(body.to_string()))
    }
}

/// Puts back what a journal tells of, and removes the journal. What someone else has changed since is left; a
/// sentence for each. Errors leave the journal, so it can be tried again.
pub async fn restore(client: &LiveClient, journal: Journal) -> Result<Vec<String>, Error> {
    let found = ClusterIdentity::ask(client).await?.uuid;
    if found != journal.head().cluster_uuid {
        let expected = journal.head().cluster_uuid.clone();
        return Err(Error::OtherCluster { expected, found });
    }
    let left = put_back(client, &journal).await?;
    for index in journal.indices() {
        match client.ask("DELETE", &format!("/{index}"), &Value::Null).await {
            Ok(_) | Err(Error::Refused { status: 404, .. }) => {}
            Err(error) => return Err(error),
        }
    }
    journal.finish()?;
    Ok(left)
}

impl Target for UrlTarget {
    fn name(&self) -> &'static str {
        "url"
    }

    async fn start(&mut self, topology: &TopologySpec) -> Result<(), Error> {
        self.find_sites(topology).await
    }

    async fn request(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, Error> {
        if !self.sites.iter().any(|(site, _)| site == cluster) {
            return Err(Error::Unknown { what: "site", name: cluster.to_owned() });
        }
        let other = self.before(method, path, &body).await?;
        self.client.request(method, path, other.unwrap_or(body)).await
    }

    fn nodes(&self, cluster: &str) -> Vec<NodeHandle> {
        let nodes = self.sites.iter().filter(|(site, _)| site == cluster);
        nodes.map(|(_, node)| node.clone()).collect()
    }

    fn seeds_through_link(&self, _cluster: &str) -> Vec<String> {
        Vec::new()
    }

    fn link(&self) -> Option<&dyn LinkControl> {
        None
    }

    fn places_by_setting(&self) -> bool {
        !self.identity.embedded
    }

    async fn kill_node(&mut self, node: &str) -> Result<(), Error> {
        Err(Error::NotOurs { method: "kill".to_owned(), path: node.to_owned() })
    }

    async fn stop_node(&mut self, node: &str) -> Result<(), Error> {
        Err(Error::NotOurs { method: "stop".to_owned(), path: node.to_owned() })
    }

    async fn start_node(&mut self, node: &str) -> Result<(), Error> {
        Err(Error::NotOurs { method: "start".to_owned(), path: node.to_owned() })
    }

    async fn wipe_node(&mut self, node: &str) -> Result<(), Error> {
        Err(Error::NotOurs { method: "wipe".to_owned(), path: node.to_owned() })
    }

    async fn stop(&mut self) {
        if let Some(journal) = self.journal.take() {
            self.ended = Some(restore(&self.client, journal).await);
        }
    }
}
