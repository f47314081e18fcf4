//! A follower writes more slowly than it reads.

use record::units::show_bytes;

use crate::diagnosis::answers::Answer;
use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Against, Evidence, Finding};
use crate::diagnosis::following::{CCR_STATS, Following};
use crate::diagnosis::rule::Rule;
use crate::diagnosis::threshold::{CATCHES_UP, LAG_OPS, Threshold, at};

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
        reads: "_ccr/stats write_buffer_size_in_bytes, write_buffer_operation_count",
        thresholds: &[
            LAG_OPS,
            CATCHES_UP,
            BUFFER_FULL,
            BUFFER_BYTES,
            STRENGTH_FULL,
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
    let told = lagging.then.write_buffer_bytes.zip(now.write_buffer_bytes);
    let (was, is) =
        told.ok_or_else(|| Against::untold("the size of its write buffer is not told"))?;
    let is_full = is as f64 / BUFFER_BYTES.value >= BUFFER_FULL.value;
    let grows = is > was && now.outstanding_writes.is_some_and(|writes| writes > 0);
    if !is_full && !grows {
        let why = format!("{} wait to be written: neither much nor more and more", show_bytes(is));
        return Err(Against::figure(why));
    }
    let buffer = format!("{was} then, {is} now");
    let mut evidence =
        vec![lagging.evidence, Evidence::new(CCR_STATS, "write_buffer_size_in_bytes", buffer)];
    if let Some(writes) = now.outstanding_writes {
        let value = writes.to_string();
        evidence.push(Evidence::new(CCR_STATS, "outstanding_write_requests", value));
    }
    let sentence = format!(
        "{} writes more slowly than it reads: {} wait to be written",
        now.shard_name(),
        show_bytes(is)
    );
    let strength = if is_full { STRENGTH_FULL } else { STRENGTH_GROWS };
    Ok(Finding {
        evidence,
        next: Some("the follower's disks and cores".to_owned()),
        ..following.finding(&CAUSE.rule, strength.value, sentence)
    })
}
