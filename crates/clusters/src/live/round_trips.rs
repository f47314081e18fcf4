//! Round trips between nodes, which no API reports: a node is asked for something small of its own, then for the same
//! of another node. The difference of the two times is the round trip between them.
//!
//! Only hosts that were given are asked, and a few of many. Behind a load balancer the result is wrong, because the
//! same host must answer each time.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::join_all;
use record::observation::{AnswerTime, Observation, Recovery, Remote, RoundTrip};

use super::{LiveClient, parse};
use crate::Result;

/// Each time is the shortest of so many: the others also waited for something else.
const TRIES: usize = 3;
/// Pairs that are measured in one observation.
const PAIRS_MAX: usize = 4;
/// Hosts that are asked for themselves in one observation.
const ANSWERS_MAX: usize = 4;
/// Hosts from which round trips of recoveries are measured: each takes a connection, which stays open.
pub(super) const HOSTS_MAX: usize = 8;
/// Shorter round trips cannot be told from the noise of a node.
const MEASURABLE_MS: f64 = 1.0;

const LOCAL: &str = "/_nodes/_local/stats/process?filter_path=nodes.*.name";

/// Round trips from the hosts that were given to the nodes that recoveries read from or write to, and to remote
/// clusters. None where nothing recovers. Where no host is an end of a recovery, one host measures the way to both.
pub(super) async fn measure(
    client: &LiveClient,
    seen: &Observation,
    remotes: &[Remote],
) -> Vec<RoundTrip> {
    let mut found = Vec::new();
    if seen.recoveries.iter().all(|recovery| recovery.ended) && seen.followers.is_empty() {
        return found;
    }
    let mut asked: Vec<(usize, String, f64)> = Vec::new();
    for host in hosts(client, seen) {
        // A host that does not answer is a gap in the observation itself.
        let Ok((local, base_ms)) = local(client, host).await else { continue };
        let mut ends: Vec<&str> = Vec::new();
        for recovery in seen.recoveries.iter().filter(|recovery| !recovery.ended) {
            let pair = [recovery.source.as_deref(), recovery.target.as_deref()];
            // Only a pair that this host is part of can be measured whole from here.
            if pair.contains(&Some(local.as_str())) {
                ends.extend(pair.into_iter().flatten().filter(|end| *end != local));
            }
        }
        ends.sort_unstable();
        ends.dedup();
        for end in ends.into_iter().take(PAIRS_MAX) {
            found.extend(to_end(client, (host, local.as_str(), base_ms), seen, end).await);
        }
        let connected = remotes.iter().filter(|remote| remote.connected != Some(false));
        for remote in connected.take(PAIRS_MAX) {
            // The embedded engine asks the remote cluster for this answer; the others answer it by themselves.
            let path = if seen.cluster.flavour == "narrows" {
                "/_remote/info".to_owned()
            } else {
                format!("/_resolve/index/{}:narrows-no-such-index-*", remote.alias)
            };
            if let Ok(took_ms) = shortest_ms(client, host, &path).await {
                found.extend(trip(&local, &remote.alias, took_ms - base_ms));
            }
        }
        asked.push((host, local, base_ms));
    }
    if let Some((host, local, base_ms)) = asked.first() {
        // All at once: what only bounds a round trip may be a little long, and must not hold the look up.
        let ends = apart(seen, &asked).into_iter();
        let trips = ends.map(|end| to_end(client, (*host, local.as_str(), *base_ms), seen, end));
        found.extend(join_all(trips).await.into_iter().flatten());
    }
    found
}

/// The hosts that are asked. Of many those come first that are called as an end of what recovers: only from there is a
/// pair measured whole.
fn hosts(client: &LiveClient, seen: &Observation) -> Vec<usize> {
    let active = seen.recoveries.iter().filter(|recovery| !recovery.ended);
    let ends = active.flat_map(|one| [one.source.as_deref(), one.target.as_deref()]);
    let ends: BTreeSet<&str> = ends.flatten().map(without_domain).collect();
    let is_end = |host: &usize| ends.contains(without_domain(&client.hosts()[*host].host));
    let (first, others): (Vec<usize>, Vec<usize>) = (0..client.hosts().len()).partition(is_end);
    let mut asked: Vec<usize> = first.into_iter().chain(others).take(HOSTS_MAX).collect();
    asked.sort_unstable();
    asked
}

/// A name up to its first dot: of a node and of its host either may have a domain. An address is whole.
fn without_domain(name: &str) -> &str {
    match name.parse::<IpAddr>() {
        Ok(_) => name,
        Err(_) => name.split('.').next().unwrap_or(name),
    }
}

/// The round trip from the node behind a host to another.
async fn to_end(
    client: &LiveClient,
    (host, local, base_ms): (usize, &str, f64),
    seen: &Observation,
    end: &str,
) -> Option<RoundTrip> {
    let node = seen.nodes.iter().find(|node| node.name == end)?;
    let path = format!("/_nodes/{}/stats/process?filter_path=nodes.*.name", node.id);
    let took_ms = shortest_ms(client, host, &path).await.ok()?;
    trip(local, end, took_ms - base_ms)
}

/// Both ends of some recoveries of which no end was asked: a round trip between two nodes is hardly longer than those
/// of a third one to both. Of a large cluster one host is given, which is mostly an end of none.
fn apart<'s>(seen: &'s Observation, asked: &[(usize, String, f64)]) -> Vec<&'s str> {
    let is_asked = |end: &str| asked.iter().any(|(_, name, _)| name == end);
    let pair = |one: &'s Recovery| {
        let (from, to) = (one.source.as_deref()?, one.target.as_deref()?);
        (!one.ended && !is_asked(from) && !is_asked(to)).then_some([from, to])
    };
    let pairs: BTreeSet<[&str; 2]> = seen.recoveries.iter().filter_map(pair).collect();
    let ends: BTreeSet<&str> = pairs.into_iter().take(PAIRS_MAX / 2).flatten().collect();
    ends.into_iter().collect()
}

/// How long each host takes to answer for itself, asked all at once: a node that stands still for a moment answers
/// late, and soon when it is asked again.
pub(super) async fn answers(client: &LiveClient) -> Vec<AnswerTime> {
    let one = async |host: usize| {
        let (answer, took) = client.get_from(host, LOCAL).await.ok()?;
        let (_, again) = client.get_from(host, LOCAL).await.ok()?;
        let node = parse::names(&answer).into_iter().next()?;
        Some(AnswerTime { node, ms: ms(took), again_ms: ms(again) })
    };
    let hosts = client.hosts().len().min(ANSWERS_MAX);
    join_all((0..hosts).map(one)).await.into_iter().flatten().collect()
}

/// Round trips from the hosts that were given to others of these nodes (ids with names), in milliseconds, 0 where they
/// are too short to be measured. A host that does not answer has none.
pub(super) async fn to_nodes(client: &LiveClient, nodes: &[(&str, &str)]) -> Vec<f64> {
    let mut found = Vec::new();
    for host in 0..client.hosts().len().min(ANSWERS_MAX) {
        let Ok((own, base_ms)) = local(client, host).await else { continue };
        for (id, _) in nodes.iter().filter(|(_, name)| *name != own).take(PAIRS_MAX) {
            let path = format!("/_nodes/{id}/stats/process?filter_path=nodes.*.name");
            if let Ok(took_ms) = shortest_ms(client, host, &path).await {
                let rtt_ms = took_ms - base_ms;
                found.push(if rtt_ms >= MEASURABLE_MS { rtt_ms } else { 0.0 });
            }
        }
    }
    found
}

/// Source and target of each active recovery: two nodes, or a repository and a node.
pub(super) fn pairs(seen: &Observation) -> BTreeSet<(String, String)> {
    let active = seen.recoveries.iter().filter(|recovery| !recovery.ended);
    let pair = |recovery: &Recovery| {
        let from = recovery.source.as_ref().or(recovery.repository.as_ref())?;
        Some((from.clone(), recovery.target.clone()?))
    };
    active.filter_map(pair).collect()
}

/// None where the host itself was held up while its own answer was timed.
fn trip(from: &str, to: &str, rtt_ms: f64) -> Option<RoundTrip> {
    (rtt_ms > -MEASURABLE_MS).then(|| RoundTrip {
        from: from.to_owned(),
        to: to.to_owned(),
        // Too short to be measured.
        rtt_ms: if rtt_ms >= MEASURABLE_MS { rtt_ms } else { 0.0 },
    })
}

/// The name of the node behind a host, and how long its own answer takes.
async fn local(client: &LiveClient, host: usize) -> Result<(String, f64)> {
    let (answer, _) = client.get_from(host, LOCAL).await?;
    let name = parse::names(&answer).into_iter().next().unwrap_or_default();
    Ok((name, shortest_ms(client, host, LOCAL).await?))
}

async fn shortest_ms(client: &LiveClient, host: usize, path: &str) -> Result<f64> {
    let mut shortest = f64::INFINITY;
    for _ in 0..TRIES {
        let (_, took) = client.get_from(host, path).await?;
        shortest = shortest.min(ms(took));
    }
    Ok(shortest)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
