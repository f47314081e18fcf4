//! Clusters that are already there.
//!
//! Of one cluster, two data nodes stand for the two sites: an index is kept on the near one, then copied to the far
//! one. Both are nodes that hold new indices: kept on one of the cold tier alone, its primaries would be nowhere, and
//! the cluster red. Two clusters stand for leader and follower. There is no link emulator between them.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use record::roles::holds_new_indices;
use serde_json::{Map, Value};
use world::Task;

use crate::changes::{LiveCluster, Unsettled, late_wait_sentence};
use crate::clusters::Clusters;
use crate::follow_api::FollowApi;
use crate::http::Answer;
use crate::http::wire::WireHost;
use crate::topology::{NodeHandle, TopologySpec};
use crate::{Asker, Error, Result};

/// What whoever ends a run is told.
const PUTS_BACK: &str =
    "putting back what was changed there; a second Ctrl-C leaves the rest to `narrows restore`";

/// A signal so soon after the first is the same: `timeout` sends it to the process and to its group, and where a
/// terminal is closed the kernel and the shell do.
pub const SENT_TWICE: Duration = Duration::from_secs(2);

/// A site of the topology, and the nodes that stand for it.
struct Site {
    name: String,
    /// Which of the clusters it is part of.
    cluster: usize,
    nodes: Vec<NodeHandle>,
}

/// Says a sentence to whoever runs it.
type Tell = Box<dyn Fn(&str)>;

/// Clusters that are already there: `--on URL`. Whoever makes this has permission to change them.
pub struct LiveClusters {
    clusters: Vec<Rc<LiveCluster>>,
    sites: Vec<Site>,
    follow_api: FollowApi,
    /// Who holds the leases, and who is told of other holders.
    holder: Option<(String, Tell)>,
    /// What renews the leases.
    renewals: Vec<Task<()>>,
    /// How putting everything back went.
    ended: Option<Result<Vec<String>>>,
}

impl LiveClusters {
    /// One cluster, or two: the leader and the follower, which follows through this API.
    pub fn new(clusters: Vec<LiveCluster>, follow_api: FollowApi) -> Self {
        let clusters = clusters.into_iter().map(Rc::new).collect();
        let (sites, renewals) = (Vec::new(), Vec::new());
        LiveClusters { clusters, sites, follow_api, holder: None, renewals, ended: None }
    }

    /// The same, which takes the lease of each cluster for `holder` where it starts, so that nobody else changes
    /// settings there meanwhile, and gives it back where it stops. `tell` says what there is to be said of another one.
    pub fn held_by(self, holder: String, tell: impl Fn(&str) + 'static) -> Self {
        LiveClusters { holder: Some((holder, Box::new(tell))), ..self }
    }

    /// How [`Clusters::stop`] went: a sentence for each change that was left, or why nothing could be put back; then
    /// the journal is still there.
    pub fn ended(&mut self) -> Option<Result<Vec<String>>> {
        self.ended.take()
    }

    /// As [`Clusters::stop`], for as long as somebody wants to wait; `tell` says if changes may come late, which are
    /// waited for once everything is put back. `told` ends each time that somebody says stop. The first time, `tell`
    /// says what goes on; `is_told` says that this time has passed already. The second time, which is not heard before
    /// [`SENT_TWICE`], what is not put back stays in the journals.
    pub async fn stop_until_told<F: Future<Output = io::Result<()>>>(
        &mut self,
        mut is_told: bool,
        mut told: impl FnMut() -> F,
        tell: impl Fn(&str),
    ) {
        let clock = self.clusters.first().cloned();
        let is_broken_off = {
            let mut stopping = pin!(self.end(&tell));
            loop {
                if is_told {
                    tell(PUTS_BACK);
                }
                let hears = async {
                    if let Some(LiveCluster { client, .. }) = clock.as_deref().filter(|_| is_told) {
                        client.sleep_until(client.now() + SENT_TWICE).await;
                    }
                    told().await
                };
                let heard = tokio::select! {
                    biased;
                    () = &mut stopping => break false,
                    heard = hears => heard,
                };
                match heard {
                    Ok(()) if is_told => break true,
                    Ok(()) => is_told = true,
                    // Nobody can be heard.
                    Err(_) => {
                        stopping.await;
                        break false;
                    }
                }
            }
        };
        if is_broken_off {
            self.ended.get_or_insert(Err(Error::BrokenOff));
        }
    }

    /// Puts all settings back, the follower's first. Then it removes the indices of all clusters, and looks for their
    /// late changes, which `tell` says. A cluster that is waited for, or that cannot be put back, does not keep another
    /// one from it.
    async fn end(&mut self, tell: impl Fn(&str)) {
        self.renewals.clear();
        let mut unsettled = Vec::new();
        for cluster in self.clusters.iter().rev() {
            match cluster.put_back().await {
                Some(Ok(put_back)) => unsettled.push((cluster, put_back)),
                Some(Err(error)) => {
                    self.ended.get_or_insert(Err(error));
                }
                None => return,
            }
        }
        let wait = |(cluster, put_back): &(&Rc<LiveCluster>, Unsettled)| {
            put_back.may_come_for(&cluster.end_client)
        };
        let waits = unsettled.iter().map(wait);
        if let Some(sentence) = late_wait_sentence(waits.max().unwrap_or_default()) {
            tell(&sentence);
        }
        let settles = unsettled.into_iter().map(|(cluster, put_back)| cluster.settle(put_back));
        let mut left = Vec::new();
        for settled in join_all(settles).await {
            match settled {
                Ok(sentences) => left.extend(sentences),
                Err(error) => {
                    self.ended.get_or_insert(Err(error));
                }
            }
        }
        self.ended.get_or_insert(Ok(left));
    }

    /// Finds the nodes that stand for the sites: the first by name that may hold new indices, or all those of a cluster
    /// each.
    async fn find_sites(&mut self, topology: &TopologySpec) -> Result<()> {
        let names = topology.clusters.iter().map(|site| site.name.clone());
        match (topology.joined, self.clusters.as_slice()) {
            (true, [cluster, ..]) => {
                let nodes = nodes_for_new_indices(cluster).await?;
                if nodes.len() < topology.clusters.len() {
                    let (data, needed) = (nodes.len(), topology.clusters.len());
                    return Err(Error::TooFewNodes { data, needed });
                }
                let site = |(name, node)| Site { name, cluster: 0, nodes: vec![node] };
                self.sites = names.zip(nodes).map(site).collect();
            }
            (false, [_, _]) if topology.clusters.len() == 2 => {
                let mut sites = Vec::new();
                for (index, name) in names.enumerate() {
                    let nodes = nodes_for_new_indices(&self.clusters[index]).await?;
                    sites.push(Site { name, cluster: index, nodes });
                }
                self.sites = sites;
            }
            (false, [cluster]) if topology.clusters.len() == 1 => {
                let nodes = nodes_for_new_indices(cluster).await?;
                let site = |name| Site { name, cluster: 0, nodes: nodes.clone() };
                self.sites = names.map(site).collect();
            }
            _ => return Err(Error::OneCluster),
        }
        Ok(())
    }

    fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.name == name)
    }

    fn cluster(&self, site: &str) -> Result<&Rc<LiveCluster>> {
        let unknown = || Error::Unknown { what: "site", name: site.to_owned() };
        self.site(site).map(|site| &self.clusters[site.cluster]).ok_or_else(unknown)
    }
}

/// The nodes of a cluster that may hold new indices, as those of a plan are, or do not tell their roles; by name.
async fn nodes_for_new_indices(cluster: &LiveCluster) -> Result<Vec<NodeHandle>> {
    const NODES: &str = "/_nodes?filter_path=nodes.*.name,nodes.*.roles,nodes.*.transport_address";
    let answer = cluster.client.get(NODES).await?;
    let holds = |role: &Value| role.as_str().is_some_and(holds_new_indices);
    let is_meant =
        |node: &&Value| node["roles"].as_array().is_none_or(|roles| roles.iter().any(holds));
    let http = cluster.client.hosts().first().map(ToString::to_string).unwrap_or_default();
    let handle = |node: &Value| {
        Some(NodeHandle {
            name: node["name"].as_str()?.to_owned(),
            http: http.clone(),
            transport: node["transport_address"].as_str().unwrap_or_default().to_owned(),
        })
    };
    let nodes = answer["nodes"].as_object().into_iter().flat_map(Map::values).filter(is_meant);
    let mut nodes: Vec<NodeHandle> = nodes.filter_map(handle).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

#[async_trait(?Send)]
impl Clusters for LiveClusters {
    fn name(&self) -> &'static str {
        "url"
    }

    async fn start(&mut self, topology: &TopologySpec) -> Result<()> {
        self.find_sites(topology).await?;
        if let Some((holder, tell)) = &self.holder {
            for cluster in &self.clusters {
                self.renewals.push(cluster.hold(holder, tell).await?);
            }
        }
        Ok(())
    }

    async fn request(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        let cluster = self.cluster(cluster)?;
        cluster.request(cluster.client.options().timeout, method, path, body).await
    }

    fn will_make(&self, cluster: &str, index: &str) -> Result<()> {
        self.cluster(cluster)?.will_make(index)
    }

    fn asker(&self, cluster: &str, limit: Duration) -> Result<Asker> {
        Ok(Asker::of_live(self.cluster(cluster)?.clone(), limit))
    }

    fn nodes(&self, cluster: &str) -> Vec<NodeHandle> {
        self.site(cluster).map_or_else(Vec::new, |site| site.nodes.clone())
    }

    fn wire_hosts(&self, cluster: &str) -> Result<Vec<WireHost>> {
        WireHost::all(self.cluster(cluster)?.client.options())
    }

    fn seeds_through_link(&self, cluster: &str) -> Vec<String> {
        let addresses = self.nodes(cluster).into_iter().map(|node| node.transport);
        addresses.filter(|address| !address.is_empty()).collect()
    }

    fn has_allocation_filters(&self) -> bool {
        self.clusters.iter().any(|cluster| !cluster.identity.embedded)
    }

    fn follow_api(&self) -> FollowApi {
        self.follow_api
    }

    async fn stop(&mut self) {
        self.end(|_| ()).await;
    }
}
