//! Plans that follow, on the virtual world: every step and fault, what a follower's lag is, and that the checker finds
//! what is lost.

use lab::plan::Plan;
use record::{FollowFigures, FollowSample, Line, Row, RunDir};
use testbed::plans;

use crate::common::{self, Ran};

fn plan(steps: &str) -> Plan {
    Plan::parse("following.toml", &plans::following(3, steps)).unwrap()
}

/// Runs a plan in a world where one thing is done wrong, if any.
fn run(plan: Plan, planted: Option<&'static str>) -> Ran {
    common::run(common::resolved(&plan, 1.0), planted)
}

fn figures(row: &Row) -> &FollowFigures {
    row.following.as_ref().unwrap()
}

fn following_samples(run: &RunDir) -> Vec<&FollowSample> {
    common::lines(run, |line| match line {
        Line::Following { sample, .. } => Some(sample),
        _ => None,
    })
}

#[test]
fn every_fault_passes_and_nothing_is_lost() {
    let faults = [
        "kind = \"kill\", node = \"follower-1\", lasts = \"10s\"",
        "kind = \"stop\", node = \"leader-2\", lasts = \"10s\"",
        "kind = \"kill\", node = \"follower\", lasts = \"20s\"",
        "kind = \"stop\", node = \"leader\", lasts = \"20s\"",
        "kind = \"pause\", node = \"leader-1\", lasts = \"5s\"",
        "kind = \"full_disk\", node = \"follower-2\", free = \"10kb\", lasts = \"15s\"",
        "kind = \"clock\", node = \"leader\", by = \"6h\"",
        "kind = \"clock\", node = \"follower\", by = \"-6h\", lasts = \"10s\"",
        "kind = \"slow\", node = \"follower-0\", factor = 3, lasts = \"5s\"",
        "kind = \"cut\", lasts = \"30s\"",
    ];
    let wait = "{ wait_for_lag = { under = 200, within = \"10m\" } },";
    let steps = faults.map(|fault| format!("{{ fault = {{ {fault} }} }}, {wait}")).join("\n");
    let (rows, run_dir, trace) = run(plan(&steps), None);
    let rows = rows.unwrap();
    let again = run(plan(&steps), None);
    assert_eq!((&rows, &trace), (&again.0.unwrap(), &again.2), "the same seed, the same rows");
    let found = figures(&rows[0]);
    assert!(rows[0].verified && found.violations == 0, "{found:?}");
    // Two copies of two shards on both sides, one of the third.
    assert_eq!(found.copies, 10, "{found:?}");
    assert_eq!(found.catch_ups.len(), faults.len() + 2);
    assert!(found.acknowledged > 20_000 && found.unanswered > 0, "{found:?}");
    let samples = following_samples(&run_dir);
    assert!(samples.iter().any(|sample| !sample.answered), "a follower that is down");
    let last = samples.last().unwrap();
    assert_eq!(last.lag_operations, 0);
    // The index was there before it was followed: its files were copied.
    assert!(last.recovered_bytes > Some(0));
    assert!(last.indexing_requests > Some(0) && last.indexing_ms > Some(0.0), "{last:?}");
    let said = common::notes(&run_dir).contains(&"10 copies hold what was acknowledged");
    assert!(said, "the checker says what it found");
}

#[test]
fn a_cut_of_five_minutes_is_caught_up_twice_as_fast_as_real_time() {
    let steps = "{ fault = { kind = \"cut\", lasts = \"5s\", full = \"5m\" } }, { wait_for_lag = { under = 200, within = \"10m\" } },";
    let text = plans::following(3, steps).replace("documents_per_s = 400", "documents_per_s = 100");
    let plan = Plan::parse("following.toml", &text).unwrap();
    let (rows, run_dir, _) = run(plan, None);
    let rows = rows.unwrap();
    let found = figures(&rows[0]);
    assert!(rows[0].verified, "{found:?}");
    let wait = &found.catch_ups[1];
    assert_eq!(wait.after, "the link was cut off for 5:00");
    // 100 operations a second came meanwhile, and the last were acknowledged just now.
    assert!((28_000..=31_500).contains(&wait.lag_operations), "{wait:?}");
    assert!((298.0..302.0).contains(&wait.lag_s), "{wait:?}");
    assert!(wait.speed() >= Some(2.0), "{wait:?}");
    assert!(found.lag_operations_max >= wait.lag_operations);
    // The lag rises while the link is cut: the driver knows what the follower cannot.
    let samples = following_samples(&run_dir);
    let lags: Vec<u64> = samples.iter().map(|sample| sample.lag_operations).collect();
    let peak = lags.iter().position(|lag| *lag == found.lag_operations_max).unwrap();
    assert!(peak > 1000 && lags[peak / 2] > 2_500 && *lags.last().unwrap() == 0);
}

#[test]
fn a_catch_up_takes_as_long_as_it_does_and_not_until_the_next_sample() {
    let cut = "{ fault = { kind = \"cut\", lasts = \"5s\" } },";
    let steps = format!("{cut} {{ wait_for_lag = {{ under = 200, within = \"10m\" }} }},");
    let caught_up = |sample: &str| {
        let text = plans::following(3, &steps).replace("250ms", sample);
        let (rows, ..) = run(Plan::parse("following.toml", &text).unwrap(), None);
        figures(&rows.unwrap()[0]).catch_ups[1].clone()
    };
    let (often, seldom) = (caught_up("250ms"), caught_up("1m"));
    assert!(seldom.lag_operations > 1000, "{seldom:?}");
    assert!(seldom.seconds < often.seconds + 10.0, "{seldom:?} and {often:?}");
}

/// One operation a read, one read at a time over 100 ms: some 10 operations a second, where 400 are written.
#[test]
fn a_follower_is_given_the_parameters_of_its_variant() {
    let steps = "{ wait = \"30s\" }, { wait_for_lag = { under = 200, within = \"10s\" } },";
    let ended = |settings: &str| {
        let name = "name = \"adaptive\"";
        let text = plans::following(3, steps).replace(name, &format!("{name}\n{settings}"));
        run(Plan::parse("following.toml", &text).unwrap(), None).0
    };
    assert!(ended("").unwrap()[0].verified);
    let settings = "settings = { \"follow.max_outstanding_read_requests\" = 1, \"follow.max_read_request_size\" = \"1b\" }";
    let error = ended(settings).expect_err("it never catches up");
    assert!(matches!(error, lab::Error::Lags { .. }), "{error}");
}

/// Acknowledged writes that die with the leader's nodes.
#[test]
fn what_is_lost_is_found() {
    let steps =
        "{ fault = { kind = \"kill\", node = \"leader\", lasts = \"2s\" } }, { wait = \"3s\" },";
    let (ended, run_dir, _) = run(plan(steps), Some(store::planted::LOG_NOT_SYNCED));
    let found = run_dir.rows.iter().find_map(|row| row.following.as_ref());
    let error = ended.expect_err("what was acknowledged is gone");
    let said = format!("{error}; {found:?}");
    assert!(found.is_none_or(|found| found.violations > 0), "{said}");
    assert!(matches!(error, lab::Error::RulesBroken { .. } | lab::Error::Lags { .. }), "{said}");
    let whole = run(plan(steps), None);
    assert!(whole.0.unwrap()[0].verified, "without the planted fault all is well");
}

/// Of ten days.
const TWO_HOURS: f64 = 1.0 / 120.0;
/// Documents that two hours bring.
const WRITTEN: u64 = 141_833_333;

/// The bundled plan, with restarts of single nodes, too, every twenty minutes where it has any.
fn stability(name: &str) -> Plan {
    // What is sampled twice a second for two hours takes longer than what happens.
    let bundled = Plan::open(name).unwrap();
    let mut text = bundled.text().replace("sample = \"500ms\"", "sample = \"10s\"");
    for (from, to) in
        [("every = \"4h\"", "every = \"20m\""), ("nodes = \"all\"", "nodes = \"any\"")]
    {
        assert_eq!(text.contains(from), name == "stability-restarts");
        text = text.replace(from, to);
    }
    Plan::parse("stability.toml", &text).unwrap()
}

/// Two hours of a plan of logs that roll over, on every copy of which all that was acknowledged is found.
fn two_hours(name: &str) -> (FollowFigures, RunDir) {
    let (rows, run_dir, _) = common::run(common::resolved(&stability(name), TWO_HOURS), None);
    let rows = rows.unwrap();
    let found = figures(&rows[0]);
    assert!(rows[0].verified && found.violations == 0, "{found:?}");
    // Three indices, two shards, two copies on both sides.
    assert_eq!(found.copies, 24, "{found:?}");
    (found.clone(), run_dir)
}

#[test]
fn two_hours_of_logs_roll_over_and_nothing_is_lost() {
    let (found, run_dir) = two_hours("stability");
    // 20 GB are there after 42 minutes, and after 84.
    assert_eq!((found.indices, found.rollovers), (3, 2), "{found:?}");
    // 84 of 120 minutes: what the third index has is not in it.
    let rolled = found.rolled_operations as f64 / found.acknowledged as f64;
    assert!((0.6..0.8).contains(&rolled), "{found:?}");
    assert!((WRITTEN..WRITTEN + 400_000).contains(&found.acknowledged), "{found:?}");
    assert_eq!((found.rejected, found.unanswered), (0, 0), "{found:?}");
    assert_eq!(found.operations, found.acknowledged, "each is an operation, and there is no other");
    // 400 MB at once take 3 s over the link.
    assert!(found.lag_s_max < 20.0, "{found:?}");
    let notes = common::notes(&run_dir).into_iter();
    assert_eq!(notes.filter(|text| text.ends_with("takes the writes")).count(), 2);
}

#[test]
fn two_hours_of_logs_with_restarts_lose_nothing() {
    let (found, _) = two_hours("stability-restarts");
    assert_eq!(found.rollovers, 2, "{found:?}");
    assert!(found.restarts_ended >= 3, "{found:?}");
    assert!(!found.restarts.is_empty(), "{found:?}");
    for wait in &found.restarts {
        assert!(wait.after.ends_with("for 5:00"), "{wait:?}");
        assert!(wait.seconds < 150.0, "twice as fast as real time: {wait:?}");
    }
    assert!(found.acknowledged >= WRITTEN);
}

/// Documents that were acknowledged, and that no copy has.
#[test]
fn logs_that_are_acknowledged_and_not_there_are_found() {
    let planted = Some(store::planted::BATCH_NOT_INDEXED);
    let (ended, run_dir, _) =
        common::run(common::resolved(&stability("stability"), TWO_HOURS / 8.0), planted);
    let found = run_dir.rows.iter().find_map(|row| row.following.as_ref());
    let error = ended.expect_err("copies lack what was acknowledged");
    assert!(matches!(error, lab::Error::RulesBroken { .. }), "{error}; {found:?}");
    let found = found.unwrap();
    // One index, two shards, two copies on both sides: none has all, and the follower cuts runs otherwise.
    assert!(found.violations >= 8, "{found:?}");
    let said = &found.violations_shown[0];
    assert!(said.starts_with("AcknowledgedIsThere: ") && said.contains("some are gone"), "{said}");
}

#[test]
fn a_follower_that_recovers_beside_writers_is_level_in_the_end() {
    let rows = bundled_part("recover-and-follow", 0.02, None).0.unwrap();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let found = figures(row);
        assert!(row.verified && found.violations == 0, "{found:?}");
        // Three shards on both sides, and the moment at which they are level.
        assert_eq!(found.copies, 6, "{found:?}");
        assert_eq!(found.catch_ups[0].after, "the follower began", "{found:?}");
        assert!(found.catch_ups[0].lag_operations > 2_000_000, "{found:?}");
        // Files were copied first, for which there is no pace of following.
        let began = &found.catch_ups[0];
        assert!(began.copying_s > 0.0 && began.copying_s < began.seconds, "{found:?}");
    }
}

#[test]
fn reads_of_any_size_catch_up_after_a_cut() {
    // A tenth of the documents: each has 40 KB.
    let bundled = Plan::open("follow-read-size").unwrap();
    let text = bundled.text().replace("documents_per_s = 100", "documents_per_s = 10");
    let plan = Plan::parse("mine.toml", &text).unwrap();
    let rows = common::run(common::resolved(&plan, 0.05), None).0.unwrap();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let found = figures(row);
        assert!(row.verified && found.catch_ups[1].lag_operations > 1000, "{found:?}");
    }
}

/// A part of the bundled plan of that name.
fn bundled_part(name: &str, scale: f64, planted: Option<&'static str>) -> Ran {
    common::run(common::resolved(&Plan::open(name).unwrap(), scale), planted)
}

#[test]
fn nodes_are_killed_beside_writers_and_searches_and_nothing_is_lost() {
    let rows = bundled_part("soak", 0.05, None).0.unwrap();
    let found = figures(&rows[0]);
    let searches = found.searches.unwrap();
    assert!(rows[0].verified && found.violations == 0 && searches.wrong == 0, "{found:?}");
    assert!(found.acknowledged >= 72_000 && found.restarts_ended >= 4, "{found:?}");
    assert!(searches.held >= 100 && searches.incomplete > 0, "{found:?}");
}

#[test]
fn searches_that_lack_what_was_acknowledged_are_found() {
    let planted = Some(store::planted::REFRESH_SHOWS_NOTHING);
    let (_, run_dir, _) = bundled_part("soak", 0.01, planted);
    let found = run_dir.rows.iter().find_map(|row| row.following.clone()).unwrap();
    assert!(found.searches.unwrap().wrong > 0, "{found:?}");
    let said = &found.violations_shown[0];
    assert!(said.contains("were acknowledged and refreshed"), "{said}");
}
