//! A bucket is short of memory: its consumer leaves what came for later, or its producer waits for memory.

use super::{Against, Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::finding::{Evidence, STATS, STATS_DCP};
use crate::diagnosis::streaming::{End, MEMORY, Streaming};
use crate::diagnosis::threshold::{
    BEHIND_S, PAUSED_FOR, STAGE, Threshold, WINDOW_FULL, WINDOW_LOOKS, at,
};
use crate::words;

/// Servers hold replication back over 93 % of the quota, and over 99 % before 2022.
const SHORT: Threshold = at("mem_used over ep_max_size", 0.9);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::DcpMemory,
        label: "DCP memory",
        signature: "the consumer's bucket is near its quota and leaves messages for later while its window is full; \
                    or the producer waits for memory",
        reads: "stats mem_used, ep_max_size; stats dcp total_backoffs, processor_task_state, \
                paused_*_OutOfMemory_duration, paused_*_BufferLogFull_duration",
        thresholds: &[BEHIND_S, STAGE, PAUSED_FOR, WINDOW_FULL, WINDOW_LOOKS, SHORT],
        lift: "give the bucket more memory there, or let it write to disk faster: what is not persisted cannot be \
               ejected",
        default: "",
        probe: "a larger quota: the back-offs end",
    },
    judges: &[Judge::Streaming(judge)],
};

fn judge(streaming: &Streaming<'_>) -> Answer {
    let waits = streaming.producer.paused(MEMORY).unwrap_or(0.0);
    if waits >= PAUSED_FOR.value {
        let node = streaming.producer.node();
        let sentence = format!(
            "memory of {node} holds {}: its producer waits for it for {} of the time",
            streaming.name(),
            words::percent(waits)
        );
        let strength = PAUSED_FOR.up_to_one(waits);
        let mut finding = streaming.finding(&CAUSE.rule, node, strength, sentence);
        finding.evidence.extend(memory(&streaming.producer));
        return Ok(finding);
    }
    let Some(end) = &streaming.consumer else {
        return Err(Against::untold(
            "the consumer's node was not looked at, so that nobody knows whether its memory is short",
        ));
    };
    let full = streaming.window_full();
    if full < PAUSED_FOR.value {
        return Err(Against::below("the producer waits for acknowledgements", full, PAUSED_FOR));
    }
    let node = end.node();
    let used = end.memory().ok_or_else(|| {
        Against::untold(format!("how much of its memory {node} uses is not told"))
    })?;
    if used < SHORT.value {
        let (used, least) = (words::percent(used), words::percent(SHORT.value));
        return Err(Against::figure(format!(
            "{node} uses {used} of its quota ({least} would tell)"
        )));
    }
    let backoffs = end.rise(|(_, one)| one.backoffs);
    let waiting = end.share_of_looks(|(_, one)| one.has_more_to_process == Some(true));
    if backoffs.is_none_or(|count| count == 0) && waiting < STAGE.value {
        return Err(match backoffs {
            Some(_) => Against::figure(format!(
                "the consumer on {node} left nothing for later: total_backoffs +0"
            )),
            None => {
                Against::untold(format!("what the consumer on {node} left for later is not told"))
            }
        });
    }
    let sentence = format!(
        "memory of {node} holds {}: its bucket uses {} of its quota, and the consumer there leaves what comes for \
         later",
        streaming.name(),
        words::percent(used)
    );
    let strength = PAUSED_FOR.up_to_one(full);
    let mut finding = streaming.finding(&CAUSE.rule, node, strength, sentence);
    finding.evidence.extend(memory(end));
    let left = backoffs.map(|count| format!("+{count}"));
    finding.evidence.extend(left.map(|value| Evidence::new(STATS_DCP, "total_backoffs", value)));
    let value = format!("MORE_TO_PROCESS in {} of the looks", words::percent(waiting));
    finding.evidence.push(Evidence::new(STATS_DCP, "processor_task_state", value));
    Ok(finding)
}

fn memory(end: &End<'_>) -> Option<Evidence> {
    let value = format!("{} on {}", words::percent(end.memory()?), end.node());
    Some(Evidence::new(STATS, "mem_used / ep_max_size", value))
}
