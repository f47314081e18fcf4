//! A DCP consumer acknowledges too late: its window is full.

use record::units::show_seconds;

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::{Finding, Gain};
use crate::diagnosis::series::MS_PER_S;
use crate::diagnosis::streaming::Streaming;
use crate::diagnosis::threshold::{
    BEHIND_S, DISK_QUEUE, GIVEN_BACK, PAUSED_FOR, STAGE, STARVED, WINDOW_FULL, WINDOW_LOOKS,
};
use crate::words;

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::DcpConsumer,
        label: "DCP consumer",
        signature: "the producer waits for acknowledgements: what may be unacknowledged is full",
        reads: "stats dcp paused_*_BufferLogFull_duration, unacked_bytes, max_buffer_bytes, total_acked_bytes, \
                items_remaining; paused_*_ReadyListEmpty_duration, stream_*_state, backfill_buffer_full; stats \
                ep_diskqueue_items",
        thresholds: &[
            BEHIND_S, STAGE, PAUSED_FOR, STARVED, WINDOW_FULL, WINDOW_LOOKS, GIVEN_BACK, DISK_QUEUE,
        ],
        lift: "look at the consumer's disks, cores and threads; where the round trip to it is about as long as \
               acknowledgements take, give it a larger window: dcp_consumer_buffer_ratio between data nodes, \
               connection_buffer_size for other consumers",
        default: "0.05",
        probe: "double the window: a gain is the window's, none is the consumer's",
    },
    judges: &[Judge::Streaming(judge)],
};

fn judge(streaming: &Streaming<'_>) -> Answer {
    let last = streaming.producer.last().1;
    if last.flow_control == Some(false) {
        return Err(Against::figure("the consumer uses no flow control: nothing is acknowledged"));
    }
    if last.max_buffer_bytes.is_none() {
        return Err(Against::untold("how much may be unacknowledged is not told"));
    }
    let full = streaming.window_full();
    if full < PAUSED_FOR.value {
        return Err(Against::below("the producer waits for acknowledgements", full, PAUSED_FOR));
    }
    let looks = streaming.producer.share_of_looks(Streaming::is_full);
    if looks < WINDOW_LOOKS.value {
        let (looks, least) = (words::percent(looks), words::percent(WINDOW_LOOKS.value));
        let why = format!("{looks} of the looks found its window full ({least} would tell)");
        return Err(Against::figure(why));
    }
    if let Ok(waits) = streaming.starved() {
        let waits = words::percent(waits);
        let why = format!("its window is open for {waits} of the time with nothing read to send");
        return Err(Against::figure(why));
    }
    let after_s = streaming.acknowledged_after_ms().map(|ms| show_seconds(ms / MS_PER_S));
    let sentence = format!(
        "the consumer of {} is the bottleneck: the producer waits for its acknowledgements for {} of the time",
        streaming.name(),
        words::percent(full)
    );
    let kept = full.min(GIVEN_BACK.value);
    let gain = Gain {
        factor: 1.0 / (1.0 - kept),
        formula: format!("all the time over that without waiting, 1 / (1 - {kept:.2})"),
    };
    let doubt = after_s.map(|after| {
        format!("a window too small for the round trip looks the same: is it near {after} to the consumer?")
    });
    let name = streaming.name();
    Ok(Finding {
        gain: Some(gain),
        doubt,
        ..streaming.finding(&CAUSE.rule, name, PAUSED_FOR.up_to_one(full), sentence)
    })
}
