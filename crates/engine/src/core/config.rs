//! What a node is started with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::basic_auth::BasicAuth;
use super::release::PresentedAs;
use crate::settings::SettingsMap;

/// What a node is started with. The rest comes from the cluster's manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// Name, unique in the cluster.
    pub name: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Names of all its nodes; the first is the manager.
    pub members: Vec<String>,
    /// Transport address of the manager; none on the manager itself.
    pub manager: Option<String>,
    /// Where to listen for other nodes, `host:port`; port 0 takes a free one.
    pub transport: String,
    /// The address that other nodes are told, where something lies in between; `transport` otherwise.
    #[serde(default)]
    pub publish: Option<String>,
    /// Where to serve REST. Other than loopback only with credentials.
    pub http: String,
    /// The credentials that REST clients must send; none asks for none. The virtual world does not ask for them.
    pub credentials: Option<BasicAuth>,
    /// Names by which clients of REST may ask it in the real world, besides those of loopback and the address of
    /// `http`.
    #[serde(default)]
    pub allowed_hosts: Vec<String>,
    /// Which release clients of REST are told that this is.
    #[serde(default)]
    pub presented_as: PresentedAs,
    /// Where to keep data.
    pub data: PathBuf,
    /// Cluster settings of lowest rank.
    pub settings: SettingsMap,
    /// `node.attr.*`, as allocation awareness goes by.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// Decides at which copy each shard's rotation begins where this node coordinates; none draws one.
    #[serde(default)]
    pub rotation_seed: Option<u64>,
}

impl NodeConfig {
    /// A node of a cluster of these members, on free ports of loopback, with every setting at its default.
    pub fn new(name: &str, cluster: &str, members: &[String], data: impl Into<PathBuf>) -> Self {
        let loopback = || "127.0.0.1:0".to_owned();
        NodeConfig {
            name: name.to_owned(),
            cluster: cluster.to_owned(),
            members: members.to_vec(),
            manager: None,
            transport: loopback(),
            publish: None,
            http: loopback(),
            credentials: None,
            allowed_hosts: Vec::new(),
            presented_as: PresentedAs::default(),
            data: data.into(),
            settings: SettingsMap::new(),
            attributes: BTreeMap::new(),
            rotation_seed: None,
        }
    }
}
