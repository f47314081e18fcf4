//! Nothing that can be seen is near a limit.

use record::observation::Recovery;
use record::units::show_seconds;

use super::{Cause, Class, Rule};
use crate::diagnosis::finding::{Evidence, Finding, Lift};
use crate::diagnosis::following::Following;
use crate::diagnosis::series::{MS_PER_S, Transfer};
use crate::diagnosis::streaming::{DATA, Streaming, WINDOW};
use crate::diagnosis::threshold::{
    BEHIND_S, FAST_BYTES_PER_S, JUDGED_MS, LATE_ANSWERS, LATE_MS, LATE_SHARE, SAME_RATE, SHORT_S,
    Threshold, VERDICT, at,
};
use crate::words;

const STRENGTH: Threshold = at("strength", 0.0);

const NO_CHECK: &str = "let it finish: its node begins anew if it is started again; for the next start take \
                        index.shard.check_on_startup back to false (of a closed index)";

const FROM_SNAPSHOT: &str = "find out what the repository carries, which no node tells; with \
                             indices.recovery.use_snapshots = false files come from the copy's source instead";

const BETWEEN_NODES: &str = "look at what the way between both ends carries, and at the cores of both: no statistic \
                             tells; look longer where it comes and goes";

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
    let is_still = transfer.stands_still();
    let age = last.total_ms.filter(|_| is_still).map_or_else(String::new, |ms| {
        format!(" {} after it began", show_seconds(ms as f64 / MS_PER_S))
    });
    let sentence = if last.ended {
        format!("{name} came{rate}, and what held it is unknown: {why}")
    } else {
        format!("{name} is in {}{rate}{age}, and what holds it is unknown: {why}", last.stage)
    };
    let place = last.target.as_deref().unwrap_or_default();
    let action = match is_still {
        true => where_it_stands(last),
        false if last.comes_from_snapshot() => FROM_SNAPSHOT.to_owned(),
        false => CAUSE.rule.lift.to_owned(),
    };
    Finding {
        subjects: vec![name],
        evidence,
        lift: Some(Lift::action(&action)),
        ..Finding::of(&CAUSE.rule, place, STRENGTH.value, sentence)
    }
}

/// Who says what a recovery waits for that does not move; a replica is safely begun anew.
fn where_it_stands(recovery: &Recovery) -> String {
    let nodes = [&recovery.source, &recovery.target].into_iter().flatten();
    let nodes: Vec<&str> = nodes.map(String::as_str).collect();
    let anew = match recovery.primary {
        true => "",
        false => {
            "; where nothing moves for minutes, POST _cluster/reroute with cancel has it begin anew"
        }
    };
    format!(
        "GET _nodes/{}/hot_threads and the logs there say what it waits for{anew}",
        nodes.join(",")
    )
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
    Finding {
        lift: Some(Lift::action(BETWEEN_NODES)),
        ..streaming.finding(&CAUSE.rule, name, STRENGTH.value, sentence)
    }
}
