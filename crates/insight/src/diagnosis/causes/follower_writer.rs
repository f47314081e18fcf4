//! A follower writes more slowly than it reads.

use record::units::show_bytes;

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::{Finding, Lift, Next};
use crate::diagnosis::following::{Following, Lagging};
use crate::diagnosis::threshold::{CATCHES_UP_S, FALLS_BACK, LAG_OPS, LAG_S, Threshold, at};
use crate::words;

/// The follower stops reading while the write buffer of a shard is at its bound; from this much of it on, writes hold.
const BUFFER_FULL: Threshold = at("write buffer over max_write_buffer_size", 0.5);
const BUFFER_BYTES: Threshold = at("max_write_buffer_size, in bytes", 536_870_912.0);
/// What it lacks it has mostly read already, whatever the buffer holds: the rest is in writes under way.
const UNWRITTEN: Threshold = at("operations that were read and not written over the lag", 0.5);
const READ_NOT_WRITTEN: &str = "operations_read - operations_written";
const STRENGTH_FAILS: Threshold = at("strength where no write succeeds", 0.95);
const STRENGTH_FULL: Threshold = at("strength where the buffer is full", 0.9);
const STRENGTH_GROWS: Threshold = at("strength where it grows beside writes under way", 0.7);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerWriter,
        label: "follower writer",
        signature: "the lag does not fall, and what was read waits to be written, or no write succeeds",
        reads: "_ccr/stats write_buffer_size_in_bytes, outstanding_read_requests, operations_read, operations_written, \
                failed_write_requests; _ccr/info parameters; _plugins/_replication/follower_stats operations_read, \
                operations_written, throttled_write_requests, failed_write_requests",
        thresholds: &[
            LAG_OPS, CATCHES_UP_S, LAG_S, FALLS_BACK, BUFFER_FULL, BUFFER_BYTES, UNWRITTEN,
            STRENGTH_FAILS, STRENGTH_FULL, STRENGTH_GROWS,
        ],
        lift: "max_outstanding_write_requests (follow parameter), the follower's disks and cores",
        default: "9",
        probe: "double the reads: nothing gained",
    },
    judges: &[Judge::Following(judge)],
};

fn judge(following: &Following<'_, '_>) -> Answer {
    let lagging = following.lagging()?;
    if let Some(found) = fails_to_write(following, &lagging) {
        return Ok(found);
    }
    let (then, now) = (lagging.then, following.now);
    let buffers = then.write_buffer_bytes.zip(now.write_buffer_bytes);
    let Some((was, is)) = buffers else { return by_operations(following, lagging) };
    let bound = now.limits.and_then(|limits| limits.write_buffer_bytes).filter(|bytes| *bytes > 0);
    let bound = bound.map_or(BUFFER_BYTES.value, |bytes| bytes as f64);
    let writes = now.outstanding_writes.is_some_and(|writes| writes > 0);
    // One read at least is under way, unless the buffer has no room: for its bytes, or for their number.
    let reads_none = [then, now].iter().all(|one| one.outstanding_reads == Some(0));
    let is_full = is as f64 / bound >= BUFFER_FULL.value || reads_none && writes;
    let grows = is > was && writes;
    let unwritten = following
        .unwritten(then)
        .filter(|(_, ops)| *ops as f64 / lagging.ops as f64 >= UNWRITTEN.value);
    if !is_full && !grows && unwritten.is_none() {
        let why = format!("{} wait to be written: neither much nor more and more", show_bytes(is));
        return Err(Against::figure(why));
    }
    let buffer = format!("{} then, {} now", show_bytes(was), show_bytes(is));
    let mut evidence =
        vec![lagging.evidence, following.evidence("write_buffer_size_in_bytes", buffer)];
    if let Some((was, is)) = unwritten {
        let waiting = format!("{was} then, {is} now");
        evidence.push(following.evidence(READ_NOT_WRITTEN, waiting));
    }
    for (field, count) in [
        ("outstanding_write_requests", now.outstanding_writes),
        ("outstanding_read_requests", now.outstanding_reads.filter(|_| reads_none)),
    ] {
        let count = count.map(|count| count.to_string());
        evidence.extend(count.map(|count| following.evidence(field, count)));
    }
    let waits = match unwritten.filter(|_| !is_full && !grows) {
        Some((_, ops)) => format!("{} operations of its lag are read, and", words::count(ops)),
        None => show_bytes(is),
    };
    let sentence = format!(
        "{} writes more slowly than it reads: {waits} wait to be written",
        now.shard_name()
    );
    let strength = if is_full { STRENGTH_FULL } else { STRENGTH_GROWS };
    Ok(Finding {
        evidence,
        next: Next::words("the follower's disks and cores"),
        ..following.finding(&CAUSE.rule, strength.value, sentence)
    })
}

/// None of its writes succeeds: it is not slow, and more of them would fail as well.
fn fails_to_write(following: &Following<'_, '_>, lagging: &Lagging<'_>) -> Option<Finding> {
    let failed = following.rise(|one| one.failed_writes).filter(|failed| *failed > 0)?;
    following.rise(|one| one.ops_written).filter(|written| *written == 0)?;
    let now = following.now;
    let sentence =
        format!("{} writes nothing, for its writes fail and are tried again", now.shard_name());
    let action = format!(
        "remove the reason: a block of {0} (GET {0}/_settings), its mappings or a full disk; the log of the node that \
         has its primary says which",
        now.index
    );
    Some(Finding {
        evidence: vec![lagging.evidence.clone(), following.rose("failed_write_requests", failed)],
        lift: Some(Lift::action(&action)),
        ..following.finding(&CAUSE.rule, STRENGTH_FAILS.value, sentence)
    })
}

/// OpenSearch's plugin tells operations that were read and written, and no buffer.
fn by_operations(following: &Following<'_, '_>, lagging: Lagging<'_>) -> Answer {
    let untold = || Against::untold("what waits to be written is not told");
    let (was, is) = following.unwritten(lagging.then).ok_or_else(untold)?;
    let refused = following.rise(|one| one.throttled_writes);
    let grows = is > was && (is - was) as f64 >= LAG_OPS.value;
    let refuses = refused > Some(0);
    let [was, is] = [was, is].map(words::count);
    let wait = words::counted(&is, "operation waits", "operations wait") + " to be written";
    if !grows && !refuses {
        let of_writes = match refused {
            Some(_) => "no write was refused",
            None => "whether writes were refused is not told",
        };
        return Err(Against::figure(format!("{wait}, {was} before, and {of_writes}")));
    }
    let refused = refused.map(words::count);
    let meanwhile = refused.as_ref().map_or_else(String::new, |count| {
        format!(", and {} refused meanwhile", words::counted(count, "write was", "writes were"))
    });
    let name = following.now.shard_name();
    let sentence = format!("{name} writes more slowly than it reads: {wait}{meanwhile}");
    let waiting = format!("{was} then, {is} now");
    let mut evidence = vec![lagging.evidence, following.evidence(READ_NOT_WRITTEN, waiting)];
    evidence.extend(refused.map(|count| following.rose("throttled_write_requests", count)));
    let action = "look at the follower's disks, cores and indexing pressure; then \
                  plugins.replication.follower.concurrent_writers_per_shard";
    let strength = if refuses { STRENGTH_FULL } else { STRENGTH_GROWS };
    Ok(Finding {
        evidence,
        lift: Some(Lift::action(action)),
        next: Next::words("the follower's disks and cores"),
        ..following.finding(&CAUSE.rule, strength.value, sentence)
    })
}
