//! Where the clusters of a run live, as the command line says it.

use std::slice;
use std::time::Duration;

use clusters::ClusterIdentity;
use clusters::live::{LiveClient, LiveOptions};
use lab::{LiveHosts, Place};

use crate::exit::{Usage, refuse};
use crate::live::{ConnectArgs, checked_options, refuse_several_clusters, usage};
use crate::on::On;
use crate::opensearch_args::OpenSearchArgs;
use crate::own_mounts;

/// How long a live cluster that has answered may take to answer at least: a wait for health is one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(300);

#[derive(clap::Args)]
pub(super) struct PlaceArgs {
    /// Where the clusters live: embedded (real processes on this machine), virtual (the same, simulated),
    /// opensearch (started for the run, one JVM a node; the first use fetches it with mvn), or the URL of a
    /// cluster that is already there, with its hosts joined by commas.
    #[arg(long, value_name = "WHERE", default_value_t = On::Embedded, value_parser = On::parse)]
    pub(super) on: On,
    /// With a URL: the cluster that has the data, where a plan recovers from another one or follows one; the URL of
    /// --on is the one that follows.
    #[arg(long, value_name = "URL")]
    leader: Option<String>,
    /// With a URL: make an index and change settings there. Both are taken back at the end.
    #[arg(long)]
    allow_changes: bool,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
}

impl PlaceArgs {
    /// The place. A live cluster that may be changed has answered.
    pub(super) fn resolve(&self, connect: &ConnectArgs) -> anyhow::Result<Place> {
        if self.leader.is_some() && !matches!(self.on, On::Url(_)) {
            return Err(Usage(lab::NO_LEADER.to_owned()).into());
        }
        if self.allow_changes && !matches!(self.on, On::Url(_)) {
            let text = "--allow-changes is for a cluster that is already there; leave it out, or give --on URL";
            refuse!("{text}");
        }
        if self.on != On::OpenSearch {
            self.opensearch.refuse_elsewhere()?;
        }
        let patience = ANSWER_PATIENCE.max(connect.timeout());
        let live = |hosts: &[String]| checked_options(hosts, connect, patience);
        let leader = self.leader.as_ref().map(|url| live(slice::from_ref(url))).transpose()?;
        Ok(match &self.on {
            On::Embedded => Place::Embedded {
                program: std::env::current_exe()?,
                own_mounts: || own_mounts::ensure().map_err(|error| format!("{error:#}")),
            },
            On::Virtual => Place::VIRTUAL,
            On::OpenSearch => Place::OpenSearch(self.opensearch.nodes()?),
            On::Url(hosts) => {
                let live = LiveHosts {
                    follower: live(hosts)?,
                    leader,
                    allow_changes: self.allow_changes,
                    any_version: connect.any_version(),
                };
                if live.allow_changes {
                    reach(&live, connect)?;
                }
                Place::Live(Box::new(live))
            }
        })
    }
}

/// Finds out whether anybody answers, before a record is begun. Hosts of several clusters are refused: where one does
/// not answer, another cluster would be changed.
fn reach(live: &LiveHosts, connect: &ConnectArgs) -> anyhow::Result<()> {
    world::real_world::run(0, async |env| {
        for hosts in live.leader.iter().chain([&live.follower]) {
            refuse_several_clusters(&env, &hosts.addresses, connect).await?;
            let hosts = LiveOptions { timeout: connect.timeout(), ..hosts.clone() };
            let client = LiveClient::new(&env, &hosts).map_err(usage)?;
            ClusterIdentity::ask(&client).await.map_err(usage)?;
        }
        Ok(())
    })
}
