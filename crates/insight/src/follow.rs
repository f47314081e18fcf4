//! What following was like, in words.

use record::{CatchUp, FollowFigures, units};

use crate::variant::VariantFollow;
use crate::words;

/// The first variant's longest wait, and whether any variant lost a write.
pub(crate) fn headline(variants: &[VariantFollow]) -> String {
    let laps = || variants.iter().flat_map(|variant| &variant.laps);
    let worst = variants.first().and_then(|variant| {
        let waits = variant.laps.iter().flat_map(waits);
        waits.max_by(|a, b| a.lag_s.total_cmp(&b.lag_s)).map(|wait| (&variant.variant, wait))
    });
    let caught_up = worst.map_or_else(String::new, |(variant, wait)| {
        let speed = wait.speed().map_or_else(String::new, |speed| {
            format!(", {} as fast as real time", words::times(speed))
        });
        let took = units::show_seconds(wait.seconds);
        format!("{variant} caught up in {took} after {}{speed}; ", wait.after)
    });
    let written: u64 = laps().map(|lap| lap.acknowledged).sum();
    let broken: u64 = laps().map(|lap| lap.violations).sum();
    let lost = match (broken, laps().all(|lap| lap.copies > 0)) {
        (0, true) => "nothing lost".to_owned(),
        (0, false) => "not verified".to_owned(),
        (broken, _) => format!("{broken} RULES BROKEN"),
    };
    format!("{caught_up}{} writes acknowledged, {lost}", words::count(written))
}

/// The rollovers and the random restarts that a follower went through; none without either.
pub fn rollovers_and_restarts(figures: &FollowFigures) -> Option<String> {
    let FollowFigures { indices, rollovers, restarts_ended, restarts, .. } = figures;
    let mut said = Vec::new();
    if *rollovers > 0 {
        said.push(format!("{indices} indices after {rollovers} rollovers"));
    }
    if *restarts_ended > 0 {
        let mut text = format!("{restarts_ended} restarts at random");
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
    (!said.is_empty()).then(|| said.join("; "))
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
    let [acknowledged, rejected, unanswered] =
        [acknowledged, rejected, unanswered].map(|count| words::count(*count));
    let writes = format!(
        "{acknowledged} writes acknowledged, {rejected} refused, {unanswered} without an answer"
    );
    match (copies, violations) {
        (0, _) => format!("{writes}; no copy was read"),
        (_, 0) => format!(
            "{writes}; {copies} copies read, each has every acknowledged write once, in its last version, and nothing else"
        ),
        (_, broken) => format!("{writes}; {copies} copies read, {broken} RULES BROKEN"),
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
        let variant = |violations| VariantFollow {
            variant: "adaptive".to_owned(),
            laps: vec![figures(violations)],
        };
        assert_eq!(
            headline(&[variant(0)]),
            "adaptive caught up in 12.0 s after the link was cut off for 20.0 s, 3.0 times as fast as real time; 5000 \
             writes acknowledged, nothing lost"
        );
        assert!(
            headline(&[variant(0), variant(2)])
                .ends_with("10,000 writes acknowledged, 2 RULES BROKEN")
        );
        assert!(verified(&figures(2)).contains("4 copies read, 2 RULES BROKEN"));
        assert!(verified(&FollowFigures::default()).ends_with("no copy was read"));
    }

    #[test]
    fn rollovers_and_restarts_are_told_and_the_worst_shown() {
        assert_eq!(rollovers_and_restarts(&figures(0)), None);
        let wait = |lag_s: u64| CatchUp {
            after: format!("restart {lag_s}"),
            lag_s: lag_s as f64,
            lag_operations: lag_s,
            seconds: 10.0 + lag_s as f64,
            operations: 1000 + 100 * lag_s,
            indexed: if lag_s > 0 { 400 } else { 0 },
        };
        let lived = FollowFigures {
            indices: 342,
            rollovers: 341,
            restarts_ended: 9,
            restarts: (0..8).map(wait).collect(),
            ..figures(0)
        };
        assert_eq!(
            rollovers_and_restarts(&lived).unwrap(),
            "342 indices after 341 rollovers; 9 restarts at random, caught up after 8 of them, within 17.0 s \
             and at least 2.8 times as fast as real time"
        );
        let shown: Vec<&str> = waits(&lived).iter().map(|wait| wait.after.as_str()).collect();
        assert_eq!(shown.len(), 2 + RESTARTS_SHOWN);
        assert_eq!(shown[2..4], ["restart 7", "restart 6"]);
    }
}
