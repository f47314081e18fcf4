//! Nothing that can be seen is near a limit.

use crate::diagnosis::cause::Cause;
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Evidence, Finding, Lift};
use crate::diagnosis::following::Following;
use crate::diagnosis::rule::Rule;
use crate::diagnosis::series::Transfer;
use crate::diagnosis::streaming::{DATA, Streaming, WINDOW};
use crate::diagnosis::threshold::{
    BEHIND_S, FAST_BYTES_PER_S, JUDGED_MS, LATE_ANSWERS, LATE_MS, LATE_SHARE, SAME_RATE, SHORT_S,
    Threshold, VERDICT, at,
};
use crate::words;

const STRENGTH: Threshold = at("strength", 0.0);

const NO_CHECK: &str = "let it finish: its node begins anew if it is started again; for the next start take \
                        index.shard.check_on_startup back to false (of a closed index)";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::Unknown,
        label: "unknown",
        signature: "slow, and nothing that REST shows is near a limit",
        reads: "all of the above",
        thresholds: &[
            VERDICT, SHORT_S, JUDGED_MS, SAME_RATE, FAST_BYTES_PER_S, LATE_MS, LATE_SHARE,
            LATE_ANSWERS, BEHIND_S, STRENGTH,
        ],
        lift: "look longer, or from the other cluster too; --probe where the cluster may be changed",
        default: "",
        probe: "brake each limit by 20 %",
    },
    judges: &[],
};

/// A recovery that no cause explains; `why` not, in words.
pub(crate) fn recovery(transfer: &Transfer<'_>, why: &str, evidence: Vec<Evidence>) -> Finding {
    let (last, name) = (transfer.last(), transfer.name());
    let rate = transfer
        .bytes_per_s()
        .map_or_else(String::new, |rate| format!(" at {}", words::rate(rate)));
    let sentence = if last.ended {
        format!("{name} came{rate}, and what held it is unknown: {why}")
    } else {
        format!("{name} is in {}{rate}, and what holds it is unknown: {why}", last.stage)
    };
    let place = last.target.as_deref().unwrap_or_default();
    Finding {
        subjects: vec![name],
        evidence,
        ..Finding::of(&CAUSE.rule, place, STRENGTH.value, sentence)
    }
}

/// A copy whose files are all read before it opens, which only a setting of its index asks for.
pub(crate) fn checked(transfer: &Transfer<'_>) -> Finding {
    let (last, name) = (transfer.last(), transfer.name());
    let sentence = format!(
        "{name} is in {}, where index.shard.check_on_startup has all its files read; no API tells how far it is",
        last.stage
    );
    let place = last.target.as_deref().unwrap_or_default();
    Finding {
        subjects: vec![name],
        lift: Some(Lift::action(NO_CHECK)),
        ..Finding::of(&CAUSE.rule, place, STRENGTH.value, sentence)
    }
}

/// A follower that lags and that no cause explains; none where it does not lag.
pub(crate) fn follower(following: &Following<'_, '_>) -> Option<Finding> {
    let lagging = following.lagging().ok()?;
    let name = following.now.shard_name();
    let sentence = format!(
        "{name} is {} operations behind and does not catch up; why is unknown",
        words::count(lagging.ops)
    );
    Some(Finding {
        evidence: vec![lagging.evidence],
        ..following.finding(&CAUSE.rule, STRENGTH.value, sentence)
    })
}

/// A DCP connection that is behind and that no cause explains.
pub(crate) fn stream(streaming: &Streaming<'_>) -> Finding {
    let name = streaming.name();
    let waits = |reason| streaming.producer.paused(reason).map(words::percent);
    let why = match waits(WINDOW).zip(waits(DATA)) {
        Some((window, data)) => format!(
            "its producer waits for acknowledgements for {window} of the time and has nothing ready for {data}; the \
             network and the nodes' cores take the rest"
        ),
        None => "what its producer waits for is not told".to_owned(),
    };
    let sentence = format!("{name} is behind, and what holds it is unknown: {why}");
    streaming.finding(&CAUSE.rule, name, STRENGTH.value, sentence)
}
