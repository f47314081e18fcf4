//! A follower writes more slowly than it reads.

use record::units::show_bytes;

use crate::diagnosis::answers::Answer;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Evidence, Finding, Lift, Next};
use crate::diagnosis::following::{Following, Lagging};
use crate::diagnosis::rivals::Against;
use crate::diagnosis::rule::Rule;
use crate::diagnosis::threshold::{CATCHES_UP_S, FALLS_BACK, LAG_OPS, LAG_S, Threshold, at};
use crate::words;

/// The follower stops reading while the write buffer of a shard is at its bound; from this much of it on, writes hold.
const BUFFER_FULL: Threshold = at("write buffer over max_write_buffer_size", 0.5);
const BUFFER_BYTES: Threshold = at("max_write_buffer_size, in bytes", 536_870_912.0);
const STRENGTH_FULL: Threshold = at("strength where the buffer is full", 0.9);
const STRENGTH_GROWS: Threshold = at("strength where it grows beside writes under way", 0.7);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::FollowerWriter,
        label: "follower writer",
        signature: "the lag does not fall, and what was read waits to be written",
        reads: "_ccr/stats write_buffer_size_in_bytes, write_buffer_operation_count; _plugins/_replication/follower_stats \
                operations_read, operations_written, throttled_write_requests",
        thresholds: &[
            LAG_OPS, CATCHES_UP_S, LAG_S, FALLS_BACK, BUFFER_FULL, BUFFER_BYTES, STRENGTH_FULL,
            STRENGTH_GROWS,
        ],
        lift: "max_outstanding_write_requests (follow parameter), the follower's disks and cores",
        default: "9",
        probe: "double the reads: nothing gained",
    },
    judges: &[Judge::Following(judge)],
};

fn judge(following: &Following<'_, '_>) -> Answer {
    let lagging = following.lagging()?;
    let now = following.now;
    let buffers = lagging.then.write_buffer_bytes.zip(now.write_buffer_bytes);
    let Some((was, is)) = buffers else { return by_operations(following, lagging) };
    let is_full = is as f64 / BUFFER_BYTES.value >= BUFFER_FULL.value;
    let grows = is > was && now.outstanding_writes.is_some_and(|writes| writes > 0);
    if !is_full && !grows {
        let why = format!("{} wait to be written: neither much nor more and more", show_bytes(is));
        return Err(Against::figure(why));
    }
    let buffer = format!("{was} then, {is} now");
    let mut evidence = vec![
        lagging.evidence,
        Evidence::new(following.api(), "write_buffer_size_in_bytes", buffer),
    ];
    if let Some(writes) = now.outstanding_writes {
        let value = writes.to_string();
        evidence.push(Evidence::new(following.api(), "outstanding_write_requests", value));
    }
    let sentence = format!(
        "{} writes more slowly than it reads: {} wait to be written",
        now.shard_name(),
        show_bytes(is)
    );
    let strength = if is_full { STRENGTH_FULL } else { STRENGTH_GROWS };
    Ok(Finding {
        evidence,
        next: Next::words("the follower's disks and cores"),
        ..following.finding(&CAUSE.rule, strength.value, sentence)
    })
}

/// OpenSearch's plugin tells operations that were read and written, and no buffer.
fn by_operations(following: &Following<'_, '_>, lagging: Lagging<'_>) -> Answer {
    let untold = || Against::untold("what waits to be written is not told");
    let (was, is) = following.unwritten(lagging.then).ok_or_else(untold)?;
    let refused = following.now.throttled_writes.zip(lagging.then.throttled_writes);
    let refused = refused.map_or(0, |(now, then)| now.saturating_sub(then));
    let grows = is > was && (is - was) as f64 >= LAG_OPS.value;
    let refuses = refused > 0;
    let [was, is, refused] = [was, is, refused].map(words::count);
    if !grows && !refuses {
        let why =
            format!("{is} operations wait to be written, {was} before, and no write was refused");
        return Err(Against::figure(why));
    }
    let waiting = format!("{was} then, {is} now");
    let evidence = vec![
        lagging.evidence,
        Evidence::new(following.api(), "operations_read - operations_written", waiting),
        Evidence::new(following.api(), "throttled_write_requests", format!("rose by {refused}")),
    ];
    let sentence = format!(
        "{} writes more slowly than it reads: {is} operations wait to be written, and {refused} writes were refused \
         meanwhile",
        following.now.shard_name()
    );
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
