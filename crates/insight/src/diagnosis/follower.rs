//! What holds followers, and what else of the cluster slows what follows or searches.

use record::observation::{Follower, Observation};

use super::finding::{Evidence, Finding, Gain, Lift};
use super::rules::{BUFFER_FULL, LAG_OPS, RANK, READ_NETWORK};
use super::series::Series;
use super::{Class, rule};
use crate::words;

const CCR: &str = "_ccr/stats";
/// Bound of the write buffer of a following shard, where nobody set another.
const BUFFER_BYTES: f64 = 512.0 * 1024.0 * 1024.0;

/// Findings of every follower.
pub(crate) fn findings(series: &Series<'_>) -> Vec<Finding> {
    let (Some((_, first)), Some(last)) = (series.looks().first(), series.last()) else {
        return Vec::new();
    };
    let before = |now: &Follower| {
        first.followers.iter().find(|then| (&then.index, then.shard) == (&now.index, now.shard))
    };
    last.followers.iter().filter_map(|now| judge(before(now), now, series)).collect()
}

fn judge(then: Option<&Follower>, now: &Follower, series: &Series<'_>) -> Option<Finding> {
    if let Some(why) = &now.fatal {
        let mut finding = bare(Class::FollowerStopped, now, 1.0);
        finding.sentence = format!("{} stopped following: {why}", now.shard_name());
        finding.evidence = vec![Evidence::new(CCR, "fatal_exception.reason", why)];
        return Some(finding);
    }
    let lag = now.lag_ops().filter(|lag| *lag as f64 >= LAG_OPS.value)?;
    let then = then?;
    // One that catches up needs no help.
    let was = then.lag_ops()?;
    if (lag as f64) < was as f64 * 0.9 {
        return None;
    }
    let lag_line = Evidence::new(
        CCR,
        "leader_global_checkpoint - follower_global_checkpoint",
        format!("{was} then, {lag} now"),
    );
    if let Some(finding) = writer(then, now, &lag_line) {
        return Some(finding);
    }
    reader(then, now, &lag_line, series).or_else(|| {
        let mut finding = bare(Class::Unknown, now, 0.0);
        finding.sentence = format!(
            "{} is {lag} operations behind and does not catch up; why is unknown",
            now.shard_name()
        );
        finding.evidence = vec![lag_line];
        Some(finding)
    })
}

fn writer(then: &Follower, now: &Follower, lag: &Evidence) -> Option<Finding> {
    let (was, is) = (then.write_buffer_bytes?, now.write_buffer_bytes?);
    let full = is as f64 / BUFFER_BYTES;
    let grows = is > was && now.outstanding_writes.is_some_and(|writes| writes > 0);
    if full < BUFFER_FULL.value && !grows {
        return None;
    }
    let mut finding =
        bare(Class::FollowerWriter, now, if full >= BUFFER_FULL.value { 0.9 } else { 0.7 });
    finding.sentence = format!(
        "{} writes more slowly than it reads: {} wait to be written",
        now.shard_name(),
        record::units::show_bytes(is)
    );
    finding.evidence = vec![
        lag.clone(),
        Evidence::new(CCR, "write_buffer_size_in_bytes", format!("{was} then, {is} now")),
    ];
    if let Some(writes) = now.outstanding_writes {
        finding.evidence.push(Evidence::new(CCR, "outstanding_write_requests", writes.to_string()));
    }
    finding.next = Some("the follower's disks and cores".to_owned());
    Some(finding)
}

fn reader(then: &Follower, now: &Follower, lag: &Evidence, series: &Series<'_>) -> Option<Finding> {
    let read = now.read_ms?.checked_sub(then.read_ms?).filter(|ms| *ms > 0)? as f64;
    let remote = now.read_remote_ms?.checked_sub(then.read_remote_ms?)? as f64;
    let network = 1.0 - (remote / read).min(1.0);
    let reads = now.reads.zip(then.reads).and_then(|(now, then)| now.checked_sub(then));
    let bytes = now.bytes_read.zip(then.bytes_read).and_then(|(now, then)| now.checked_sub(then));
    let wall_s = series.span_ms() / 1e3;
    let at_leader = network < READ_NETWORK.value;
    let share = if at_leader { 1.0 - network } else { network };
    let mut finding = bare(Class::FollowerReader, now, share);
    finding.sentence = if at_leader {
        format!(
            "{} reads slowly: {} of the read time is the leader's work",
            now.shard_name(),
            words::percent(share)
        )
    } else {
        format!(
            "{} reads slowly: {} of the read time is on the way and not the leader's work",
            now.shard_name(),
            words::percent(share)
        )
    };
    finding.evidence = vec![
        lag.clone(),
        Evidence::new(
            CCR,
            "total_read_time_millis, total_read_remote_exec_time_millis",
            format!("rose by {read:.0} and {remote:.0} ms"),
        ),
    ];
    if let Some(reads) = reads.filter(|reads| *reads > 0) {
        let each = read / reads as f64;
        finding.evidence.push(Evidence::new(
            CCR,
            "successful_read_requests",
            format!("{reads}, {each:.0} ms each"),
        ));
    }
    if let Some(bytes) = bytes {
        let rate = words::rate(bytes as f64 / wall_s);
        finding.evidence.push(Evidence::new(CCR, "bytes_read", rate));
    }
    if let Some(outstanding) = now.outstanding_reads {
        finding.evidence.push(Evidence::new(
            CCR,
            "outstanding_read_requests",
            outstanding.to_string(),
        ));
    }
    if at_leader {
        finding.lift = Some(Lift {
            setting: None,
            now: None,
            set_by: None,
            to: None,
            action: "look at the leader: its disks, its cores, and what else it serves".to_owned(),
        });
    } else {
        finding.gain = Some(Gain { factor: 2.0, formula: "24 reads under way / 12".to_owned() });
        finding.next = Some("the link, then the follower's writes".to_owned());
    }
    Some(finding)
}

fn bare(class: Class, now: &Follower, strength: f64) -> Finding {
    let lift = rule(class).lift.to_owned();
    Finding {
        class,
        subjects: vec![now.shard_name()],
        place: now.remote.clone().unwrap_or_default(),
        strength,
        sentence: String::new(),
        evidence: Vec::new(),
        lift: Some(Lift { setting: None, now: None, set_by: None, to: None, action: lift }),
        gain: None,
        next: None,
        doubt: None,
    }
}

/// Remote clusters reached by fewer sockets than there should be, or not at all.
pub(crate) fn proxies(series: &Series<'_>) -> Vec<Finding> {
    let asked = series
        .looks()
        .iter()
        .rev()
        .map(|(_, look)| &look.remotes)
        .find(|remotes| !remotes.is_empty());
    let one = |remote: &record::observation::Remote| {
        let (open, most) = (remote.proxy_sockets?, remote.proxy_sockets_max?);
        if remote.mode.as_deref() != Some("proxy") || open >= most {
            return None;
        }
        let setting = format!("cluster.remote.{}.proxy_socket_connections", remote.alias);
        Some(Finding {
            class: Class::Proxy,
            subjects: vec![format!("remote cluster {}", remote.alias)],
            place: remote.alias.clone(),
            strength: 0.55,
            sentence: format!(
                "{} of {most} sockets to the proxy of {} are open",
                open, remote.alias
            ),
            evidence: vec![Evidence::new(
                "_remote/info",
                "num_proxy_sockets_connected",
                format!("{open} of {most}"),
            )],
            lift: Some(Lift {
                now: series.setting(&setting).map(|setting| setting.value.clone()),
                setting: Some(setting),
                set_by: None,
                to: None,
                action: "find out why the proxy refuses the others".to_owned(),
            }),
            gain: None,
            next: None,
            doubt: Some("compare a direct connection with the proxied one".to_owned()),
        })
    };
    asked.into_iter().flatten().filter_map(one).collect()
}

/// A node that is far slower to answer searches than the others, where nobody looks before choosing it.
pub(crate) fn routing(series: &Series<'_>) -> Vec<Finding> {
    const SETTING: &str = "cluster.routing.use_adaptive_replica_selection";
    // Only deep looks ask for it.
    let ranked = |look: &&(f64, &Observation)| {
        look.1.nodes.iter().any(|node| !node.adaptive_selection.is_empty())
    };
    let Some((_, last)) = series.looks().iter().rev().find(ranked) else { return Vec::new() };
    if series.setting(SETTING).is_none_or(|setting| setting.value != "false") {
        return Vec::new();
    }
    let mut found: Option<Finding> = None;
    for node in &last.nodes {
        let ranks: Vec<(&str, f64)> = node
            .adaptive_selection
            .iter()
            .filter_map(|(id, s)| Some((id.as_str(), s.rank?)))
            .collect();
        let values: Vec<f64> = ranks.iter().map(|(_, rank)| *rank).collect();
        let Some(median) = crate::stats::median(&values).filter(|median| *median > 0.0) else {
            continue;
        };
        let worst = ranks.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((id, rank)) =
            worst.filter(|(_, rank)| ranks.len() >= 3 && *rank >= median * RANK.value)
        else {
            continue;
        };
        let name = last.nodes.iter().find(|n| n.id == *id).map_or(*id, |n| n.name.as_str());
        let strength = (0.5 + (rank / median / RANK.value - 1.0) / 10.0).min(0.9);
        if found.as_ref().is_some_and(|other| other.strength >= strength) {
            continue;
        }
        let now = series.setting(SETTING);
        found = Some(Finding {
            class: Class::ReplicaRouting,
            subjects: vec!["searches".to_owned()],
            place: name.to_owned(),
            strength,
            sentence: format!(
                "{name} answers searches far later than the others ({} times the median rank), and searches are \
                 spread without looking",
                words::three_digits(rank / median)
            ),
            evidence: vec![Evidence::new(
                "_nodes/stats",
                "adaptive_selection.*.rank",
                format!(
                    "{}: {name} {}, median {}",
                    node.name,
                    words::three_digits(*rank),
                    words::three_digits(median)
                ),
            )],
            lift: Some(Lift {
                setting: Some(SETTING.to_owned()),
                now: now.map(|setting| setting.value.clone()),
                set_by: now.map(|setting| setting.scope),
                to: Some("true".to_owned()),
                action:
                    "let searches go where they are answered soonest, and look at the slow node"
                        .to_owned(),
            }),
            gain: None,
            next: None,
            doubt: None,
        });
    }
    found.into_iter().collect()
}
