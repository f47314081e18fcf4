//! A DCP producer has nothing ready, though items are left: it waits for its own disk.

use super::{Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::{Evidence, Finding, STATS};
use crate::diagnosis::streaming::Streaming;
use crate::diagnosis::threshold::{BEHIND_S, PAUSED_FOR, STAGE, STARVED};
use crate::words;

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::DcpProducer,
        label: "DCP producer",
        signature: "the producer has nothing ready though items are left, and its streams read from disk",
        reads: "stats dcp paused_*_ReadyListEmpty_duration, items_remaining, stream_*_state, backfill_num_*, \
                backfill_buffer_full; stats ep_cursors_dropped",
        thresholds: &[BEHIND_S, STAGE, PAUSED_FOR, STARVED],
        lift: "look at the disk of the producer's node; more vbuckets moved at once read side by side \
               (rebalanceMovesPerNode), and with more memory for checkpoints (checkpoint_memory_ratio) less has to be \
               read from disk",
        default: "4, 0.2",
        probe: "more moves at once: a gain is the disk's queue, none its rate",
    },
    judges: &[Judge::Streaming(judge)],
};

fn judge(streaming: &Streaming<'_>) -> Answer {
    let waits = streaming.starved()?;
    let end = &streaming.producer;
    let node = end.node();
    let sentence = format!(
        "the disk of {node} holds {}: its producer has nothing ready for {} of the time while its streams read from \
         disk",
        streaming.name(),
        words::percent(waits)
    );
    let found = streaming.finding(&CAUSE.rule, node, PAUSED_FOR.up_to_one(waits), sentence);
    let dropped = end.rise(|(bucket, _)| bucket.cursors_dropped).filter(|count| *count > 0);
    let dropped =
        dropped.map(|count| Evidence::new(STATS, "ep_cursors_dropped", format!("+{count}")));
    let evidence = found.evidence.into_iter().chain(dropped).collect();
    Ok(Finding { evidence, ..found })
}
