//! Round trips that no API tells: a node is asked for something small of its own, then for the same of another
//! node. What the second takes longer is a round trip between them.
//!
//! Only hosts that we were given are asked. Paths through a load balancer lie: the host that answers must be the
//! same each time.

use std::collections::BTreeSet;

use record::observation::{Observation, Recovery, Remote, RoundTrip};
use world::Env;

use super::{LiveClient, parse};
use crate::Error;

/// The smallest of so many counts: the others waited for something else.
const TRIES: usize = 3;
/// Pairs that are measured at once.
const PAIRS_MAX: usize = 4;
/// What is smaller than this is lost in what nodes do besides.
const TELLING_MS: f64 = 1.0;

const LOCAL: &str = "/_nodes/_local/stats/process?filter_path=nodes.*.name";

/// Round trips from the hosts that we know to those nodes that recoveries read from or write to, and to remote
/// clusters that recoveries come from. None where nothing recovers.
pub(super) async fn measure(
    env: &Env,
    client: &LiveClient,
    seen: &Observation,
    remotes: &[Remote],
) -> Vec<RoundTrip> {
    let mut found = Vec::new();
    if seen.recoveries.iter().all(|recovery| recovery.ended) && seen.followers.is_empty() {
        return found;
    }
    for host in 0..client.hosts().len() {
        // A host that does not answer is a gap that the look itself shows.
        let Ok((local, base_ms)) = local(env, client, host).await else { continue };
        let mut ends: Vec<&str> = Vec::new();
        for recovery in seen.recoveries.iter().filter(|recovery| !recovery.ended) {
            let pair = [recovery.source.as_deref(), recovery.target.as_deref()];
            // A pair that this host is no end of cannot be measured from here.
            if pair.contains(&Some(local.as_str())) {
                ends.extend(pair.into_iter().flatten().filter(|end| *end != local));
            }
        }
        ends.sort_unstable();
        ends.dedup();
        for end in ends.into_iter().take(PAIRS_MAX) {
            let Some(node) = seen.nodes.iter().find(|node| node.name == end) else { continue };
            let path = format!("/_nodes/{}/stats/process?filter_path=nodes.*.name", node.id);
            if let Ok(took_ms) = shortest_ms(env, client, host, &path).await {
                push(&mut found, &local, end, took_ms - base_ms);
            }
        }
        for remote in remotes.iter().filter(|remote| remote.connected != Some(false)) {
            // The embedded engine asks the other cluster when it is asked this; others only look it up.
            let path = if seen.cluster.flavour == "narrows" {
                "/_remote/info".to_owned()
            } else {
                format!("/_resolve/index/{}:narrows-no-such-index-*", remote.alias)
            };
            if let Ok(took_ms) = shortest_ms(env, client, host, &path).await {
                push(&mut found, &local, &remote.alias, took_ms - base_ms);
            }
        }
    }
    found
}

/// Who reads from whom now: nodes, or a repository and a node.
pub(super) fn pairs(seen: &Observation) -> BTreeSet<(String, String)> {
    let active = seen.recoveries.iter().filter(|recovery| !recovery.ended);
    let pair = |recovery: &Recovery| {
        let from = recovery.source.as_ref().or(recovery.repository.as_ref())?;
        Some((from.clone(), recovery.target.clone()?))
    };
    active.filter_map(pair).collect()
}

fn push(found: &mut Vec<RoundTrip>, from: &str, to: &str, rtt_ms: f64) {
    if rtt_ms >= TELLING_MS {
        found.push(RoundTrip { from: from.to_owned(), to: to.to_owned(), rtt_ms });
    } else if rtt_ms > -TELLING_MS {
        // Known to be near; how near is below what can be told.
        found.push(RoundTrip { from: from.to_owned(), to: to.to_owned(), rtt_ms: 0.0 });
    }
}

/// The name of the node behind a host, and what asking it alone takes.
async fn local(env: &Env, client: &LiveClient, host: usize) -> Result<(String, f64), Error> {
    let answer = client.get_from(host, LOCAL).await?;
    let name = parse::names(&answer).into_iter().next().map(|(_, name)| name).unwrap_or_default();
    Ok((name, shortest_ms(env, client, host, LOCAL).await?))
}

async fn shortest_ms(
    env: &Env,
    client: &LiveClient,
    host: usize,
    path: &str,
) -> Result<f64, Error> {
    let mut shortest = f64::INFINITY;
    for _ in 0..TRIES {
        let began = env.now();
        client.get_from(host, path).await?;
        shortest = shortest.min((env.now() - began).as_secs_f64() * 1e3);
    }
    Ok(shortest)
}
