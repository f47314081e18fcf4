//! What following was like, in words.

use record::names::listed;
use record::{CatchUp, FollowFigures, NodeUse, SearchFigures, units};

use crate::headline::Headline;
use crate::trace::Met;
use crate::variant::VariantFollow;
use crate::words;

/// What happened before a follower's first wait.
const BEGAN: &str = "the follower began";
/// Where files were copied for this part of a wait, the pace of following is said to be that of the rest.
const COPYING: f64 = 0.05;

/// The first variant's longest wait and its writes, and whether any variant lost one. Where that is the wait after the
/// follower began, nothing worse happened to it: its end is where both met, which is told of all variants.
pub(crate) fn headline(variants: &[VariantFollow]) -> Headline {
    let laps = || variants.iter().flat_map(|variant| &variant.laps);
    let worst = variants.first().and_then(|variant| {
        let waits = variant.laps.iter().flat_map(waits);
        waits.max_by(|a, b| a.lag_s.total_cmp(&b.lag_s)).map(|wait| (&variant.variant, wait))
    });
    let broken: u64 = laps().map(|lap| lap.violations).sum();
    let lost = match (broken, laps().all(|lap| lap.copies > 0)) {
        (0, true) => "nothing lost".to_owned(),
        (0, false) => "not verified".to_owned(),
        (broken, _) => rules_broken(broken) + &broken_by(variants),
    };
    let written = |by: &[VariantFollow]| {
        let acknowledged = by.iter().flat_map(|one| &one.laps).map(|lap| lap.acknowledged).sum();
        format!("{}, {lost}", acknowledged_writes(acknowledged))
    };
    let all_written = written(variants);
    let Some((variant, wait)) = worst else { return Headline::from(all_written) };
    let written = written(&variants[..1]);
    let speed = speed(wait).map_or_else(String::new, |speed| format!(", {speed}"));
    let took = units::show_seconds(wait.seconds);
    let caught_up = match (wait.lag_operations, wait.operations) {
        (0, 0) => format!("{variant} lacked nothing"),
        _ => format!("{variant} caught up in {took}"),
    };
    let whole = format!("{caught_up} after {}{speed}; {written}", wait.after);
    if wait.after == BEGAN && variants[0].met.is_some() {
        let met = variants.iter().filter_map(|one| Some(meeting(&one.variant, one.met?)));
        return Headline {
            text: format!("{variant} met its leader {took} after {BEGAN}; {lost}"),
            details: met.chain([format!("{whole}.")]).collect(),
        };
    }
    let short = format!("{caught_up}; {written}");
    let mut said =
        Headline::of(whole, [short.clone(), format!("{caught_up}, {lost}"), all_written]);
    if said.text == short {
        said.details = vec![format!("That was after {}{speed}.", wait.after)];
    }
    said
}

/// How fast a follower caught up, as far as it followed: for the files that it copied before there is no such pace.
fn speed(wait: &CatchUp) -> Option<String> {
    let speed = format!("{} as fast as real time", words::times(wait.speed()?));
    Some(match has_copied(wait) {
        true => format!("following {speed} after {} of files", units::show_seconds(wait.copying_s)),
        false => speed,
    })
}

/// Whether files were copied for a good part of a wait.
pub fn has_copied(wait: &CatchUp) -> bool {
    wait.copying_s > wait.seconds * COPYING
}

/// The variants that broke rules, where there are others that they could be taken for.
fn broken_by(variants: &[VariantFollow]) -> String {
    let broke = |one: &&VariantFollow| one.laps.iter().any(|lap| lap.violations > 0);
    let names: Vec<&str> = variants.iter().filter(broke).map(|one| one.variant.as_str()).collect();
    if variants.len() > 1 { format!(" by {}", listed(&names)) } else { String::new() }
}

/// Where a variant's follower met its leader, in a sentence.
fn meeting(variant: &str, met: Met) -> String {
    let after = units::show_seconds(met.seconds);
    let operations = words::counted(words::count(met.operations), "operation", "operations");
    format!("{variant}: leader and follower met {after} after the lap began, at {operations}.")
}

fn acknowledged_writes(count: u64) -> String {
    words::counted(words::count(count), "write acknowledged", "writes acknowledged")
}

fn rules_broken(count: u64) -> String {
    words::counted(count, "RULE BROKEN", "RULES BROKEN")
}

/// What went on beside the following: rollovers, random restarts, searches, and what nodes used of memory and handles;
/// none where nothing did.
pub fn lived_through(figures: &FollowFigures) -> Option<String> {
    let FollowFigures { indices, rollovers, restarts_ended, restarts, searches, used, .. } =
        figures;
    let mut said = Vec::new();
    if *rollovers > 0 {
        let rollovers = words::counted(rollovers, "rollover", "rollovers");
        said.push(format!("{indices} indices after {rollovers}"));
    }
    if *restarts_ended > 0 {
        let mut text = words::counted(restarts_ended, "restart at random", "restarts at random");
        let worst = restarts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        if let Some(worst) = worst {
            let took = units::show_seconds(worst.seconds);
            text += &format!(", caught up after {} of them, within {took}", restarts.len());
        }
        let speeds = restarts.iter().filter_map(CatchUp::speed);
        if let Some(slowest) = speeds.min_by(f64::total_cmp) {
            text += &format!(" and at least {} as fast as real time", words::times(slowest));
        }
        said.push(text);
    }
    if let Some(SearchFigures { held, incomplete, wrong, given_up }) = searches {
        let [held, incomplete, wrong] = [held, incomplete, wrong].map(|count| words::count(*count));
        let held = words::counted(held, "search", "searches");
        said.push(format!(
            "{held} found what was acknowledged and refreshed before, {wrong} did not, {incomplete} had no \
             answer of every copy"
        ));
        if *given_up > 0 {
            let count = words::count(*given_up);
            said.push(format!("{count} missed it on a node that the cluster had already removed"));
        }
    }
    said.extend(used_in_parts(used));
    (!said.is_empty()).then(|| said.join("; "))
}

/// Peak memory and file handles of any node in each part of the run; none where there is one part or no node says it.
fn used_in_parts(used: &[NodeUse]) -> Option<String> {
    let parts = |show: fn(&NodeUse) -> String| used.iter().map(show).collect::<Vec<_>>().join(", ");
    let memory = parts(|part| units::show_bytes(part.resident_bytes));
    let is_told = used.iter().any(|part| part.anonymous_bytes > 0);
    let anonymous = is_told.then(|| {
        let anonymous = parts(|part| units::show_bytes(part.anonymous_bytes));
        format!(" ({anonymous} without mapped files)")
    });
    let anonymous = anonymous.unwrap_or_default();
    let files = parts(|part| part.open_files.to_string());
    (used.len() > 1).then(|| {
        format!(
            "peak use of any node in each part of the run: memory {memory}{anonymous}; file handles {files}"
        )
    })
}

/// Most waits after random restarts that are shown.
const RESTARTS_SHOWN: usize = 5;

/// The waits to show: those of the plan, then the worst of those after random restarts.
pub fn waits(figures: &FollowFigures) -> Vec<&CatchUp> {
    let lacked = |wait: &&CatchUp| wait.lag_operations > 0;
    let mut restarts: Vec<&CatchUp> = figures.restarts.iter().filter(lacked).collect();
    restarts.sort_by(|a, b| b.lag_s.total_cmp(&a.lag_s));
    restarts.truncate(RESTARTS_SHOWN);
    figures.catch_ups.iter().chain(restarts).collect()
}

/// How many writes were acknowledged, and what the check of the copies found, in a sentence.
pub fn verified(figures: &FollowFigures) -> String {
    let FollowFigures { acknowledged, rejected, unanswered, copies, violations, .. } = figures;
    let writes = acknowledged_writes(*acknowledged);
    let [rejected, unanswered] = [rejected, unanswered].map(|count| words::count(*count));
    let writes = format!("{writes}, {rejected} refused, {unanswered} without an answer");
    let read = words::counted(copies, "copy read", "copies read");
    match (copies, violations) {
        (0, _) => format!("{writes}; no copy was read"),
        (_, 0) => format!(
            "{writes}; {read}, each has every acknowledged write once, in its last version, and nothing else"
        ),
        (_, broken) => format!("{writes}; {read}, {}", rules_broken(*broken)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(violations: u64) -> FollowFigures {
        let wait = |after: &str, lag_s: f64, indexed: u64| CatchUp {
            after: after.to_owned(),
            lag_operations: 1000,
            lag_s,
            seconds: 12.0,
            operations: 900,
            indexed,
            ..CatchUp::default()
        };
        FollowFigures {
            acknowledged: 5000,
            copies: 4,
            violations,
            catch_ups: vec![
                wait("the follower began", 1.0, 0),
                wait("the link was cut off for 20.0 s", 20.0, 300),
            ],
            ..FollowFigures::default()
        }
    }

    #[test]
    fn the_headline_tells_the_worst_wait_and_what_was_lost() {
        let variant = |name: &str, violations| VariantFollow {
            variant: name.to_owned(),
            laps: vec![figures(violations)],
            met: Some(Met { seconds: 2.0, operations: 700 }),
        };
        let said = headline(&[variant("adaptive", 0), variant("field", 0)]);
        assert_eq!(
            said.text, "adaptive caught up in 12.0 s; 5000 writes acknowledged, nothing lost",
            "the writes of the other are not its own"
        );
        assert_eq!(
            said.details,
            ["That was after the link was cut off for 20.0 s, 3.0 times as fast as real time."],
            "nothing is said twice"
        );
        let broken = headline(&[variant("adaptive", 0), variant("field", 2)]).text;
        let says = "; 5000 writes acknowledged, 2 RULES BROKEN by field";
        assert!(broken.ends_with(says), "{broken}");
        let broken = headline(&[variant("adaptive", 2)]).text;
        assert!(broken.ends_with(", 2 RULES BROKEN"), "{broken}");
        assert!(verified(&figures(2)).contains("4 copies read, 2 RULES BROKEN"));
        let one = FollowFigures { acknowledged: 1, copies: 1, ..figures(1) };
        let says =
            "1 write acknowledged, 0 refused, 0 without an answer; 1 copy read, 1 RULE BROKEN";
        assert_eq!(verified(&one), says);
        assert!(verified(&FollowFigures::default()).ends_with("no copy was read"));
    }

    #[test]
    fn the_headline_tells_where_both_met_where_nothing_worse_happened() {
        let variant = |variant: &str, met| {
            let mut lap = figures(0);
            lap.catch_ups.truncate(1);
            VariantFollow { variant: variant.to_owned(), laps: vec![lap], met }
        };
        let met = |seconds: f64| Some(Met { seconds, operations: 900 });
        let said = headline(&[variant("plain", met(150.0)), variant("compressed", met(12.0))]);
        assert_eq!(said.text, "plain met its leader 12.0 s after the follower began; nothing lost");
        assert_eq!(
            said.details,
            [
                "plain: leader and follower met 2:30 after the lap began, at 900 operations.",
                "compressed: leader and follower met 12.0 s after the lap began, at 900 operations.",
                "plain caught up in 12.0 s after the follower began; 5000 writes acknowledged, nothing lost.",
            ]
        );
        let never = headline(&[variant("plain", None)]).text;
        assert!(never.starts_with("plain caught up in 12.0 s"), "{never}");
    }

    #[test]
    fn one_that_was_never_behind_did_not_catch_up() {
        let mut lap = figures(0);
        let after = "indexing ended".to_owned();
        lap.catch_ups = vec![CatchUp { after, seconds: 1e-4, ..CatchUp::default() }];
        let said =
            headline(&[VariantFollow { variant: "a".to_owned(), laps: vec![lap], met: None }]);
        let words = "a lacked nothing after indexing ended; 5000 writes acknowledged, nothing lost";
        assert_eq!((said.text.as_str(), said.details.len()), (words, 0));
    }

    #[test]
    fn a_pace_is_that_of_following_and_not_of_the_files_before() {
        let mut lap = figures(0);
        lap.catch_ups.remove(0);
        let said = |lap: &FollowFigures| {
            let laps = vec![lap.clone()];
            headline(&[VariantFollow { variant: "a".to_owned(), laps, met: None }]).details
        };
        let after = "That was after the link was cut off for 20.0 s,";
        assert_eq!(said(&lap), [format!("{after} 3.0 times as fast as real time.")]);
        lap.catch_ups[0].copying_s = 9.0;
        let paced = "following 3.0 times as fast as real time after 9.00 s of files.";
        assert_eq!(said(&lap), [format!("{after} {paced}")]);
    }

    #[test]
    fn what_was_lived_through_is_told_and_the_worst_shown() {
        assert_eq!(lived_through(&figures(0)), None);
        let wait = |lag_s: u64| CatchUp {
            after: format!("restart {lag_s}"),
            lag_s: lag_s as f64,
            lag_operations: lag_s,
            seconds: 10.0 + lag_s as f64,
            operations: 1000 + 100 * lag_s,
            indexed: if lag_s > 0 { 400 } else { 0 },
            ..CatchUp::default()
        };
        let lived = FollowFigures {
            indices: 342,
            rollovers: 341,
            restarts_ended: 9,
            restarts: (0..8).map(wait).collect(),
            ..figures(0)
        };
        assert_eq!(
            lived_through(&lived).unwrap(),
            "342 indices after 341 rollovers; 9 restarts at random, caught up after 8 of them, within 17.0 s \
             and at least 2.8 times as fast as real time"
        );
        let searched = FollowFigures {
            searches: Some(SearchFigures { held: 1200, incomplete: 7, wrong: 0, given_up: 2 }),
            used: vec![
                NodeUse { resident_bytes: 90_000_000, anonymous_bytes: 50_000_000, open_files: 61 },
                NodeUse { resident_bytes: 91_000_000, anonymous_bytes: 49_000_000, open_files: 60 },
            ],
            ..figures(0)
        };
        assert_eq!(
            lived_through(&searched).unwrap(),
            "1200 searches found what was acknowledged and refreshed before, 0 did not, 7 had no answer of every copy; \
             2 missed it on a node that the cluster had already removed; peak use of any node in each part of the run: \
             memory 90.0 MB, 91.0 MB (50.0 MB, 49.0 MB without mapped files); file handles 61, 60"
        );
        let shown: Vec<&str> = waits(&lived).iter().map(|wait| wait.after.as_str()).collect();
        assert_eq!(shown.len(), 2 + RESTARTS_SHOWN);
        assert_eq!(shown[2..4], ["restart 7", "restart 6"]);
    }
}
