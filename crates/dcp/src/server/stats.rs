//! STAT: the statistics of a bucket and its connections, under the names that servers give them.

use super::shared::{ConnectionReport, Shared, Side};
use crate::bucket::Bucket;
use crate::codec::{Status, time_text};
use crate::policy::{MEM_HIGH_WAT, MEM_LOW_WAT, PausedReason, Pauses};
use crate::producer::StreamReport;

type Lines = Vec<(String, String)>;

fn line(name: impl Into<String>, value: impl ToString) -> (String, String) {
    (name.into(), value.to_string())
}

/// The statistics of a group; its name may have an argument behind it.
pub(super) fn stats(shared: &Shared, bucket: &Bucket, group: &str) -> Result<Lines, Status> {
    let mut words = group.split_ascii_whitespace();
    let name = words.next().unwrap_or_default();
    let vb = words.next();
    let name_behind = words.next();
    let number = |text: &str| text.parse::<u16>().map_err(|_| Status::Invalid);
    match name {
        "" => Ok(all(shared, bucket)),
        "memory" => Ok(memory(bucket)),
        "dcp" => Ok(dcp(shared, bucket)),
        "vbucket" | "vbucket-details" | "vbucket-seqno" | "failovers" => {
            let vbuckets = match vb {
                Some(text) => vec![number(text)?],
                None => bucket.vbuckets(),
            };
            let mut lines = Vec::new();
            for vb in vbuckets {
                lines.extend(of_vbucket(bucket, vb, name).ok_or(Status::NotMyVbucket)?);
            }
            Ok(lines)
        }
        "dcp-vbtakeover" => {
            let vb = number(vb.ok_or(Status::Invalid)?)?;
            takeover(shared, bucket, vb, name_behind.unwrap_or_default())
        }
        _ => Err(Status::NotFound),
    }
}

fn of_vbucket(bucket: &Bucket, vb: u16, group: &str) -> Option<Lines> {
    let of = |name: &str, value: &str| match name {
        "" => line(format!("vb_{vb}"), value),
        name => line(format!("vb_{vb}:{name}"), value),
    };
    let known = bucket.vbucket_stats(vb)?;
    let get = |name: &str| known.get(name).map_or("", String::as_str);
    Some(match group {
        "vbucket" => vec![of("", get(""))],
        "vbucket-seqno" => vec![
            of("abs_high_seqno", get("high_seqno")),
            of("high_seqno", get("high_seqno")),
            of("last_persisted_seqno", get("persisted_seqno")),
            of("purge_seqno", get("purge_seqno")),
            of("uuid", get("uuid")),
        ],
        "failovers" => {
            let log = bucket.failover_log(vb)?;
            let mut lines = vec![of("num_entries", &log.len().to_string())];
            for (place, entry) in log.iter().enumerate() {
                lines.push(of(&format!("{place}:id"), &entry.uuid.to_string()));
                lines.push(of(&format!("{place}:seq"), &entry.seqno.to_string()));
            }
            lines
        }
        _ => known.iter().map(|(name, value)| of(name, value)).collect(),
    })
}

fn all(shared: &Shared, bucket: &Bucket) -> Lines {
    let (did, stats) = (bucket.stats(), shared.stats.get());
    let mut lines = vec![
        line("curr_items", bucket.documents()),
        line("ep_bucket_type", "persistent"),
        line("ep_max_vbuckets", bucket.settings().vbuckets),
        line("ep_tmp_oom_errors", did.tmp_failures),
        line("ep_oom_errors", did.no_memory),
        line("ep_total_persisted", did.flushed_items),
        line("ep_flusher_todo", u8::from(bucket.failure().is_some())),
        line("ep_bg_fetched", did.fetched),
        line("ep_cursors_dropped", did.cursors_dropped),
        line("rollback_item_count", did.rolled_back_items),
        line("total_connections", stats.connections),
        line("auth_errors", stats.auth_failures),
        line("version", env!("CARGO_PKG_VERSION")),
    ];
    lines.extend(memory(bucket));
    lines
}

fn memory(bucket: &Bucket) -> Lines {
    let (memory, did) = (bucket.settings().memory, bucket.stats());
    let share = |of: f64| (memory.quota_bytes as f64 * of) as u64;
    vec![
        line("mem_used", bucket.used_bytes()),
        line("ep_max_size", memory.quota_bytes),
        line("ep_mem_low_wat", share(MEM_LOW_WAT)),
        line("ep_mem_high_wat", share(MEM_HIGH_WAT)),
        line("ep_checkpoint_memory", bucket.checkpoint_bytes()),
        line("ep_checkpoint_memory_quota", share(memory.checkpoint_memory_ratio)),
        line("ep_items_expelled_bytes", did.expelled_bytes),
        line("ep_mem_freed_by_checkpoint_removal", did.removed_bytes),
        line("ep_ejected_bytes", did.ejected_bytes),
    ]
}

fn dcp(shared: &Shared, bucket: &Bucket) -> Lines {
    let named = shared.named.borrow();
    let of_bucket = named.iter().filter(|((of, _), _)| *of == bucket.settings().name);
    let mut lines = Vec::new();
    let (mut producers, mut consumers, mut sent, mut bytes, mut left) = (0, 0, 0, 0, 0);
    for ((_, name), connection) in of_bucket {
        let report = connection.report.borrow();
        match &report.side {
            Side::None => continue,
            Side::Producer(stats, _) => {
                producers += 1;
                sent += stats.items;
                bytes += stats.bytes;
                left += remaining(bucket, &report);
            }
            Side::Consumer(..) => consumers += 1,
        }
        let known = of_connection(shared, bucket, &report);
        lines.extend(known.into_iter().map(|(of, value)| (format!("eq_dcpq:{name}:{of}"), value)));
    }
    lines.extend([
        line("ep_dcp_count", producers + consumers),
        line("ep_dcp_producer_count", producers),
        line("ep_dcp_consumer_count", consumers),
        line("ep_dcp_items_sent", sent),
        line("ep_dcp_items_remaining", left),
        line("ep_dcp_total_bytes", bytes),
    ]);
    lines
}

/// Items that a producer has still to send.
fn remaining(bucket: &Bucket, report: &ConnectionReport) -> u64 {
    let of = |(vb, stream): (&u16, &StreamReport)| {
        bucket.high_seqno(*vb).map_or(0, |high| stream.remaining(high))
    };
    report.streams.borrow().iter().map(of).sum()
}

fn of_connection(shared: &Shared, bucket: &Bucket, report: &ConnectionReport) -> Lines {
    match &report.side {
        Side::None => Vec::new(),
        Side::Producer(stats, window) => {
            let streams = report.streams.borrow();
            let backfilling = streams.values().filter(|one| one.backfilling).count();
            let flow_control = window.size_bytes() > 0;
            let mut lines = vec![
                line("type", "producer"),
                line("items_sent", stats.items),
                line("items_remaining", remaining(bucket, report)),
                line("total_bytes_sent", stats.bytes),
                line("flow_control", if flow_control { "enabled" } else { "disabled" }),
                line("backfill_num_active", backfilling),
                line("backfill_buffer_full", stats.backfill_full),
                line("num_streams", streams.len()),
                line("paused_count", stats.window_full),
            ];
            if flow_control {
                lines.extend([
                    line("unacked_bytes", window.outstanding_bytes()),
                    line("max_buffer_bytes", window.size_bytes()),
                    line("total_acked_bytes", stats.acknowledged_bytes),
                ]);
            }
            lines.extend(pauses(shared, &report.pauses));
            lines.extend(streams.iter().flat_map(|(vb, one)| of_stream(*vb, one)));
            lines
        }
        Side::Consumer(stats, streams, waits_for_memory) => vec![
            line("type", "consumer"),
            line("items_received", stats.items),
            line("total_bytes_received", stats.bytes),
            line("total_acked_bytes", stats.acknowledged_bytes),
            line("buffered_items", stats.buffered_items),
            line("num_streams", streams),
            line("total_backoffs", stats.stops),
            line(
                "processor_task_state",
                if *waits_for_memory { "MORE_TO_PROCESS" } else { "ALL_PROCESSED" },
            ),
            line("rollbacks", stats.rollbacks),
        ],
    }
}

fn pauses(shared: &Shared, pauses: &Pauses) -> Lines {
    let now = pauses.now();
    let mut lines = vec![line("paused", now.is_some())];
    if let Some((reason, since)) = now {
        let waited = shared.env.now() - since;
        lines.push(line("paused_current_reason", reason.name()));
        lines.push(line("paused_current_duration", time_text(waited)));
    }
    for reason in PausedReason::ALL {
        let (count, time) = pauses.ended(reason);
        if count > 0 {
            let of = |what: &str| format!("paused_previous_{}_{what}", reason.name());
            lines.push(line(of("count"), count));
            lines.push(line(of("duration"), time_text(time)));
        }
    }
    lines
}

fn of_stream(vb: u16, stream: &StreamReport) -> Lines {
    let of = |name: &str, value: String| line(format!("stream_{vb}_{name}"), value);
    let state = if stream.backfilling { "backfilling" } else { "in-memory" };
    vec![
        of("state", state.to_owned()),
        of("end_seqno", stream.end.to_string()),
        of("last_read_seqno", stream.read_to.to_string()),
        of("readyQ_items", stream.ready.to_string()),
    ]
}

/// Items of a vbucket that the connection of this name has still to send.
fn takeover(shared: &Shared, bucket: &Bucket, vb: u16, name: &str) -> Result<Lines, Status> {
    let high = bucket.high_seqno(vb).ok_or(Status::NotMyVbucket)?;
    let named = shared.named.borrow();
    let connection = named.get(&(bucket.settings().name.clone(), name.to_owned()));
    let stream =
        connection.and_then(|named| named.report.borrow().streams.borrow().get(&vb).copied());
    let left = match stream {
        Some(stream) => high.saturating_sub(stream.read_to),
        None => bucket.documents_of(vb).unwrap_or(0),
    };
    Ok(vec![
        line("name", name),
        line("status", if stream.is_some() { "in-memory" } else { "does_not_exist" }),
        line("estimate", left),
        line("chk_items", left),
        line("backfillRemaining", 0),
        line("vb_items", bucket.documents_of(vb).unwrap_or(0)),
    ])
}
