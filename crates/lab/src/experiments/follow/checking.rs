//! The checker of a plan that follows: it compares every copy of leader and follower, document by document, with what
//! the driver was answered ([`record::ledger`]).

use std::time::Duration;

use bytes::Bytes;
use clusters::RestClient;
use record::ledger::{Copy, Violation};
use record::units::counted;

use crate::error::{Error, Result};
use crate::plan::{FOLLOWER, LEADER};
use crate::runner::Runner;
use crate::writers::WriteLedgers;

/// How often copies are read until they are equal: they may still be changing.
const LOOKS: u32 = 24;
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Reading every document of a node takes a while; in virtual time it may take days.
const PATIENCE: Duration = Duration::from_secs(86_400);
/// Violations that are shown.
const SHOWN: usize = 8;

pub(super) struct Found {
    pub(super) copies: u64,
    pub(super) violations: Vec<Violation>,
}

impl Found {
    pub(super) fn shown(&self) -> Vec<String> {
        self.violations.iter().take(SHOWN).map(Violation::to_string).collect()
    }
}

/// Reads every copy of both clusters and compares it with the ledgers. Called once nobody writes any more.
pub(super) async fn check(run: &Runner<'_>, ledgers: &WriteLedgers) -> Result<Found> {
    ledgers.close();
    let mut found = Found { copies: 0, violations: Vec::new() };
    for ledger in ledgers.all() {
        let mut looks = 0;
        loop {
            looks += 1;
            let mut copies = Vec::new();
            for cluster in [LEADER, FOLLOWER] {
                copies.extend(every_copy(run, cluster, &ledger.index).await?);
            }
            let violations = ledger.writes.borrow().check(&copies);
            if violations.is_empty() || looks == LOOKS {
                found.copies += copies.len() as u64;
                found.violations.extend(violations);
                break;
            }
            run.env.sleep(LOOK_AGAIN).await;
        }
    }
    let what = match found.violations.len() {
        0 => counted(found.copies, "copy holds", "copies hold") + " what was acknowledged",
        count => {
            let rules = counted(count, "rule", "rules");
            format!("{} {rules}", counted(found.copies, "copy breaks", "copies break"))
        }
    };
    run.note(None, &what)?;
    Ok(found)
}

/// Every copy of an index, once all of them are started.
async fn every_copy(run: &Runner<'_>, cluster: &str, index: &str) -> Result<Vec<Copy>> {
    let mut tries = 0;
    loop {
        tries += 1;
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout=30s");
        // An index that was created a moment ago may not be followed yet.
        let health = run.ask(cluster, "GET", &path, None).await.unwrap_or_default();
        let is_green = health["status"] == "green";
        let copies = match is_green {
            false => Vec::new(),
            true if run.reads_by_search(cluster).await? => run.list_copies(cluster, index).await?,
            true => ask_each_node(run, cluster, index).await?,
        };
        if is_green && health["active_shards"].as_u64() == Some(copies.len() as u64) {
            return Ok(copies);
        }
        if tries == LOOKS {
            let status = health["status"].as_str().unwrap_or("unknown").to_owned();
            let (cluster, index) = (cluster.to_owned(), index.to_owned());
            return Err(Error::NotGreen { cluster, index, status });
        }
        run.env.sleep(LOOK_AGAIN).await;
    }
}

/// The copies of nodes that list them themselves.
async fn ask_each_node(run: &Runner<'_>, cluster: &str, index: &str) -> Result<Vec<Copy>> {
    let client = RestClient::new(&run.env).with_limit(PATIENCE);
    let mut copies: Vec<Copy> = Vec::new();
    for node in run.clusters.nodes(cluster) {
        let path = format!("/{index}/_narrows/copies");
        let answer = client.send(&node.http, "GET", &path, Bytes::new()).await?;
        let read = serde_json::from_slice::<Vec<Copy>>(&answer.body);
        let not_read = |error: serde_json::Error| Error::Digest {
            cluster: cluster.to_owned(),
            why: error.to_string(),
        };
        copies.extend(read.map_err(not_read)?);
    }
    Ok(copies)
}
