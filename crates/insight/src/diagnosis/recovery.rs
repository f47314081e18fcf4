//! Which cause holds one recovery: the judges answer, and the strongest answer counts.

use record::observation::Recovery;
use record::units::show_seconds;

use super::answers::Answers;
use super::cause::Judge;
use super::causes::{follower_stopped, judges, latency, unknown};
use super::ceilings;
use super::class::Class;
use super::copying::{CHECKS, Copying, Recovering, alias_of};
use super::finding::{Finding, Next};
use super::replaying::Replaying;
use super::rivals::{Against, Rivals};
use super::series::{MS_PER_S, Series, Transfer, is_long};
use super::threshold::{FAST_BYTES_PER_S, JUDGED_MS, SHORT_S, STAGE, VERDICT};
use crate::words;

/// A limiter tells a pause once it is over.
const NOTHING_CAME: &str = "nothing came meanwhile; where larger chunks of a recovery that was cancelled are still in \
                            line at the limiter, they keep the others waiting";

const UNTOLD: &str = "its bytes are not told";

const ALL_CAME: &str = "all its files are there, and its target still checks and renames them, or waits for its \
                        source's retention lease";

/// What is made of one recovery.
#[derive(Clone, Debug)]
pub(crate) enum Judged {
    /// Nothing that a setting would lift; why, in a sentence.
    Healthy(String),
    /// What holds it.
    Held(Box<Finding>),
}

/// Judges one recovery.
///
/// `queue` says whether copies wait for a slot: then the short ones count too, for they are many.
pub(crate) fn judge<'s, 'a>(
    series: &'s Series<'a>,
    recovering: &Recovering<'s, 'a>,
    queue: bool,
) -> Judged {
    let transfer = recovering.transfer;
    if let Some(finding) = follower_stopped::cannot_begin(series, transfer) {
        return with_rivals(finding, series, recovering);
    }
    let is_too_short = !queue || transfer.wall_ms() < JUDGED_MS.value;
    if let Some(why) = is_short(transfer).filter(|_| is_too_short) {
        return Judged::Healthy(why);
    }
    // One that is over and replayed nothing while it was seen was not held by its operations.
    let is_at_rest =
        transfer.last().ended && transfer.rise(|one| one.recovered_ops).is_none_or(|ops| ops == 0);
    if transfer.share_in("TRANSLOG") >= STAGE.value && !is_at_rest {
        let replaying = Replaying::of(series, transfer);
        let answers = Answers::new(judges().filter_map(|(class, judge)| match judge {
            Judge::Replaying(judge) => Some((class, judge(&replaying))),
            _ => None,
        }));
        let why = "its files are there, and no operation is left to replay";
        let unknown = |ruled_out| {
            let evidence = replaying.evidence.clone();
            Finding { ruled_out, ..unknown::recovery(transfer, why, evidence) }
        };
        return Judged::Held(Box::new(answers.first().unwrap_or_else(unknown)));
    }
    if is_checked(transfer) {
        return with_rivals(unknown::checked(transfer), series, recovering);
    }
    if let Some(sentence) = without_files(transfer) {
        return Judged::Healthy(sentence);
    }
    match recovering.copying(series) {
        Some(copying) => copying_held(copying),
        None => {
            let finding = unknown::recovery(transfer, UNTOLD, Vec::new());
            with_rivals(finding, series, recovering)
        }
    }
}

/// A finding that rests on something else than the judges of copying, beside what these say, as far as they can.
fn with_rivals<'s, 'a>(
    finding: Finding,
    series: &'s Series<'a>,
    recovering: &Recovering<'s, 'a>,
) -> Judged {
    let last = recovering.transfer.last();
    let ruled_out = match recovering.copying(series) {
        Some(copying) => answers(copying).ruled_out(finding.class),
        None if last.copies_files() => unasked(last, finding.class, UNTOLD),
        None => unasked(last, finding.class, "nodes are judged by it while files are copied"),
    };
    Judged::Held(Box::new(Finding { ruled_out, ..finding }))
}

/// The causes of copying, where their judges cannot be asked; what could tell is missing.
fn unasked(recovery: &Recovery, named: Class, why: &str) -> Rivals {
    let answers = judges().filter_map(|(class, judge)| match judge {
        Judge::Copying(_) if !recovery.copies_files() => {
            Some((class, Err(Against::figure("it copies no files"))))
        }
        Judge::Copying(_) | Judge::End(_) => Some((class, Err(Against::untold(why)))),
        _ => None,
    });
    Answers::new(answers).ruled_out(named)
}

fn copying_held(copying: &Copying<'_, '_>) -> Judged {
    let mut answers = answers(copying);
    if let Some(mut first) = answers.take_strongest(VERDICT.value) {
        if first.class == Class::Latency {
            first.evidence = latency::evidence(copying);
        }
        if first.next.sentence.is_none() {
            let second = answers.strongest(VERDICT.value);
            let second = second.filter(|second| second.class != first.class);
            let next = second.map(|second| Next {
                class: Some(second.class),
                ..Next::words(format!("{} ({})", second.class.label(), second.sentence))
            });
            first.next = next.unwrap_or_default();
        }
        ceilings::name_next(&mut first, copying);
        first.evidence.extend(copying.own_accounting());
        first.ruled_out = answers.ruled_out(first.class);
        return Judged::Held(first);
    }
    if copying.one_way_bytes_per_s() >= FAST_BYTES_PER_S.value && copying.standstill().is_none() {
        return Judged::Healthy(format!(
            "{} goes at {} and nothing visible holds it",
            copying.transfer.name(),
            words::rate(copying.rate_bytes_per_s)
        ));
    }
    let mut evidence = vec![copying.rate_evidence()];
    evidence.extend(copying.paused_evidence());
    evidence.extend(copying.idle_evidence());
    evidence.extend(copying.own_accounting());
    let standstill = copying.standstill();
    let last = copying.transfer.last();
    let is_still = copying.rate_bytes_per_s == 0.0;
    let why = match &standstill {
        Some(standstill) => standstill.why(),
        None if is_still && !last.ended && last.stage != "INDEX" => {
            format!("in {} no files are copied, but opened and compared by its nodes", last.stage)
        }
        None if is_still && !last.ended && has_all_bytes(last) => ALL_CAME.to_owned(),
        None if is_still && copying.limit_bytes_per_s.is_some() => NOTHING_CAME.to_owned(),
        None if copying.may_be_limited() => {
            let node = &copying.node;
            format!("too few chunks came yet to tell whether the limiter of {node} binds")
        }
        None => "nothing that REST shows is near a limit".to_owned(),
    };
    evidence.extend(match &standstill {
        Some(standstill) => Some(standstill.evidence()),
        None => copying.late_beside_others(),
    });
    let finding = unknown::recovery(copying.transfer, &why, evidence);
    let place = standstill.map_or(finding.place.clone(), |one| one.node.to_owned());
    let ruled_out = answers.ruled_out(Class::Unknown);
    Judged::Held(Box::new(Finding { place, ruled_out, ..finding }))
}

fn answers(copying: &Copying<'_, '_>) -> Answers {
    let of_recovery = judges().filter_map(|(class, judge)| match judge {
        Judge::Copying(judge) => Some((class, judge(copying))),
        _ => None,
    });
    let of_end = |end| {
        judges().filter_map(move |(class, judge)| match judge {
            Judge::End(judge) => Some((class, judge(copying, end))),
            _ => None,
        })
    };
    let last = copying.transfer.last();
    // A restore reads a repository, which is no node; that of another cluster's alias stands for nodes.
    let is_restore = last.comes_from_snapshot()
        || last.has_files_of_its_own()
        || last.source.is_none()
            && last.repository.as_deref().is_some_and(|name| alias_of(name).is_none());
    let sides: &[&'static str] = if is_restore { &["target"] } else { &["source", "target"] };
    // What an end that nobody saw does is open.
    let is_unseen = |side: &&'static str| copying.ends.iter().all(|end| end.side() != *side);
    let unseen = sides.iter().copied().filter(is_unseen);
    let of_unseen = unseen.flat_map(|side| {
        let is_of_another = side == "source" && last.is_from_remote();
        judges().filter_map(move |(class, judge)| match judge {
            Judge::End(_) => {
                let why = match is_of_another {
                    true => "what nodes of the cluster that it comes from do is not seen here"
                        .to_owned(),
                    false => format!("the node at the {side} was not seen twice"),
                };
                Some((class, Err(Against::untold(why))))
            }
            _ => None,
        })
    });
    let of_ends = copying.ends.iter().flat_map(of_end).chain(of_unseen);
    Answers::new(of_recovery.chain(of_ends))
}

/// Whether no byte of its files is left to copy.
pub(super) fn has_all_bytes(recovery: &Recovery) -> bool {
    let reused = recovery.reused_bytes.unwrap_or(0);
    let came = recovery.recovered_bytes.unwrap_or(0).saturating_add(reused);
    recovery.total_bytes.is_some_and(|total| total > 0 && came >= total)
}

/// A sentence, if the whole recovery is too short to be worth judging.
fn is_short(transfer: &Transfer<'_>) -> Option<String> {
    let last = transfer.last();
    let taken_s = last.total_ms? as f64 / MS_PER_S;
    if last.ended {
        return (taken_s < SHORT_S.value)
            .then(|| format!("{} took {} in all", transfer.name(), show_seconds(taken_s)));
    }
    let left =
        last.total_bytes?.checked_sub(last.recovered_bytes? + last.reused_bytes.unwrap_or(0))?;
    let rate = transfer.bytes_per_s().filter(|rate| *rate > 0.0)?;
    let whole_s = taken_s + left as f64 / rate;
    (last.stage == "INDEX" && left > 0 && whole_s < SHORT_S.value)
        .then(|| format!("{} will have taken {} in all", transfer.name(), show_seconds(whole_s)))
}

/// Whether its files have long been read and compared: every copy passes the stage, mostly in a moment.
fn is_checked(transfer: &Transfer<'_>) -> bool {
    let last = transfer.last();
    is_long(last) && last.stage == CHECKS && !last.ended && transfer.share_in(CHECKS) >= STAGE.value
}

/// A sentence, if no file was left to copy when it was first seen, and it is over or was seen for a moment: a copy that
/// is opened and compared, as those of a node that was restarted, is held by no limit of copying.
fn without_files(transfer: &Transfer<'_>) -> Option<String> {
    let (last, name) = (transfer.last(), transfer.name());
    transfer.bytes().filter(|bytes| *bytes == 0)?;
    if !last.ended {
        let is_brief = transfer.wall_ms() < SHORT_S.value * MS_PER_S;
        return (is_brief && last.stage != "INDEX")
            .then(|| format!("{name} is in {}, where no files are copied", last.stage));
    }
    // One that is no longer told of, and was not as far, may have been given up.
    let (total, came) = (last.total_bytes?, last.recovered_bytes?);
    let is_there = total <= came + last.reused_bytes.unwrap_or(0);
    let took = show_seconds(last.total_ms? as f64 / MS_PER_S);
    let by = match came {
        0 => match last.recovered_ops {
            Some(ops) => {
                let ops = words::counted(words::count(ops), "operation", "operations");
                format!("it came by {ops} and no files")
            }
            None => "it came without files".to_owned(),
        },
        _ => "its files were there when it was first seen".to_owned(),
    };
    (is_there && !matches!(last.stage.as_str(), "INIT" | "INDEX"))
        .then(|| format!("{name} took {took} in all, and {by}"))
}

/// A finding for a recovery that goes on and was not seen for long enough to be judged; none if there is one look only.
pub(crate) fn just_begun(series: &Series<'_>) -> Option<Finding> {
    let last = series.last().filter(|_| series.looks().len() > 1)?;
    let recovery = last.recoveries.iter().find(|one| !one.ended && one.copies_files())?;
    let transfer = Transfer::since_its_beginning(series.span_ms(), recovery);
    let why = "it was seen for too short a time; look longer";
    let ruled_out = unasked(recovery, Class::Unknown, "two looks at it would tell");
    Some(Finding { ruled_out, ..unknown::recovery(&transfer, why, Vec::new()) })
}
