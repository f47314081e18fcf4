//! Plans that follow, by name and by pattern, as they are resolved.

use std::time::Duration;

use clusters::FaultKind;

use super::{TEXT, check, message, names, refused, resolve};
use crate::plan::action::{Action, Pattern, RandomRestarts};
use crate::plan::background::{Background, Runs};
use crate::plan::by_world::ByWorld;
use crate::plan::fault::Fault;
use crate::plan::rollover::RolloverRule;

/// The test plan, following: `steps` stand between `follow` and `verify`.
fn following(steps: &str) -> String {
    TEXT.replacen("\"recover\", ", &format!("\"follow\", {steps} "), 1)
}

fn lasts(real_s: u64, full_s: u64) -> ByWorld<Duration> {
    ByWorld { real: Duration::from_secs(real_s), full: Duration::from_secs(full_s) }
}

#[test]
fn what_happens_in_a_plan_that_follows_is_kept_in_order() {
    let text = following(
        "{ index_in_background = { documents_per_s = 50, updates = 0.25 } }, { wait = \"1s\" }, \
         { fault = { kind = \"cut\", lasts = \"2s\", full = \"5m\" } }, { wait_for_lag = { under = 7 } }, \
         { fault = { kind = \"clock\", node = \"follower\", by = \"-1h\" } }, \
         { fault = { kind = \"full_disk\", node = \"leader-2\", free = \"1mb\", lasts = \"1s\" } }, \"stop_indexing\",",
    );
    let plan = resolve(&text, 1.0, check).unwrap();
    assert_eq!(names(&plan), ["start", "index", "follow", "verify"]);
    assert!(plan.spoils_indices() && plan.background().is_none());
    let fault =
        |node: &str, kind| Fault { node: node.to_owned(), kind, at: Duration::ZERO, lasts: None };
    let rate =
        Background { documents_per_s: 50, updates_in_1000: 250, deletes_in_1000: 0, full: None };
    assert_eq!(
        plan.actions,
        [
            Action::Follow,
            Action::IndexInBackground(rate),
            Action::Wait(lasts(1, 1)),
            Action::Fault { fault: fault("the link", FaultKind::Cut), lasts: Some(lasts(2, 300)) },
            Action::WaitForLag { under: 7, within: lasts(600, 600) },
            Action::Fault {
                fault: fault("follower", FaultKind::Clock { by_ms: -3_600_000 }),
                lasts: None,
            },
            Action::Fault {
                fault: fault("leader-2", FaultKind::FullDisk { free_bytes: 1 << 20 }),
                lasts: Some(lasts(1, 1)),
            },
            Action::StopIndexing,
        ]
    );
}

#[test]
fn what_cannot_happen_is_said() {
    let said = |step: &str| {
        let error = refused(&following(&format!("{step},")));
        let first = error.lines().next().unwrap().to_owned();
        assert!(first.starts_with("my.toml:7:"), "{first}");
        first.splitn(4, ':').nth(3).unwrap().trim().to_owned()
    };
    for (step, expected) in [
        ("{ wait = { full = \"1m\" } }", "full is the time for --on virtual"),
        ("\"wait\"", "write it out, as { wait = \"30s\" }"),
        ("{ wait = \"30\" }", "\"30\" is not a time"),
        ("{ wait_for_lag = { under = 0 } }", "under is out of range"),
        ("{ wait_for_lag = { udner = 5 } }", "no option \"udner\"; did you mean \"under\""),
        ("{ fault = { node = \"leader-0\" } }", "write it out"),
        (
            "{ fault = { kind = \"kil\", node = \"leader-0\" } }",
            "no fault is called \"kil\"; did you mean \"kill\"",
        ),
        ("{ fault = { kind = \"kill\", lasts = \"1s\" } }", "say which node has the fault"),
        (
            "{ fault = { kind = \"kill\", node = \"leder\", lasts = \"1s\" } }",
            "no node is called \"leder\"; did you mean \"leader\"",
        ),
        ("{ fault = { kind = \"kill\", node = \"leader\" } }", "say how long the fault lasts"),
        ("{ fault = { kind = \"clock\", node = \"leader\" } }", "say how far"),
        (
            "{ fault = { kind = \"full_disk\", node = \"leader\", lasts = \"1s\" } }",
            "say what is left",
        ),
        (
            "{ fault = { kind = \"pause\", node = \"leader\", by = \"1s\", lasts = \"1s\" } }",
            "only a \"clock\"",
        ),
        (
            "{ index_in_background = { documents_per_s = 5, deletes = 0.5 } }",
            "deletes is out of range; give 0 to 0.4",
        ),
        ("\"recover\"", "a plan has the step \"recover\" or \"follow\", not both"),
    ] {
        let said = said(step);
        assert!(said.contains(expected), "{step}: {said}");
    }
    let without = message("\"recover\", ", "\"recover\", \"stop_indexing\", ", "7:39");
    assert!(without.ends_with("add the step \"follow\""), "{without}");
    let early = TEXT.replacen("\"recover\"", "{ wait_for_lag = { under = 5 } }, \"follow\"", 1);
    assert!(refused(&early).contains("nobody lags before"));
    let updates = "\"recover\", { index_in_background = { documents_per_s = 5, updates = 0.1 } }, ";
    let said = message("\"recover\", ", updates, "7:39");
    assert!(said.starts_with("only a plan that follows updates and deletes"), "{said}");
}

/// The test plan with a pattern in place of names: `steps` stand after `auto_follow`, `index` at the end of the index.
fn by_pattern(steps: &str, index: &str) -> String {
    let follows = "\"start\", { auto_follow = { patterns = [\"leader-*\"] } }, ";
    let text =
        TEXT.replacen("\"start\", \"index\", \"recover\", ", &format!("{follows}{steps} "), 1);
    text.replacen("shards = 3\n", &format!("shards = 3\n{index}\n"), 1)
}

const ROLLS: &str = "rollover = { max_docs = 50, max_age = \"1h\", full = { max_size = \"20gb\", poll_interval = \"10s\" } }";

#[test]
fn a_plan_that_follows_by_a_pattern_rolls_over_and_restarts() {
    let text = by_pattern(
        "{ index_in_background = { documents_per_s = 5, full = { documents_per_s = 700, document_size = \"1kb\" } } }, \
         { restart_at_random = { cluster = \"follower\", nodes = \"all\", every = \"20s\", pause = \"3s\", full = { pause = \"5m\" } } }, \
         { wait_for_documents = { written = 100, full = 9_000 } }, \"stop_restarts\",",
        ROLLS,
    );
    let plan = resolve(&text, 0.5, check).unwrap();
    assert_eq!(names(&plan), ["start", "follow", "verify"]);
    let rate = Background {
        documents_per_s: 5,
        updates_in_1000: 0,
        deletes_in_1000: 0,
        full: Some(Runs { documents_per_s: 700, document_bytes: Some(1024) }),
    };
    let pattern = Pattern {
        name: "narrows".to_owned(),
        patterns: vec!["leader-*".to_owned()],
        exclude: Vec::new(),
    };
    let restarts = RandomRestarts {
        cluster: "follower".to_owned(),
        all: true,
        kind: None,
        every: lasts(20, 20),
        pause: lasts(3, 300),
    };
    assert_eq!(
        plan.actions,
        [
            Action::AutoFollow(pattern),
            Action::IndexInBackground(rate),
            Action::RestartAtRandom(restarts),
            Action::WaitForDocuments(ByWorld { real: 50, full: 4_500 }),
            Action::StopRestarts,
        ]
    );
    let rule = RolloverRule {
        max_docs: Some(50),
        max_bytes: None,
        max_age: Some(Duration::from_secs(3600)),
        poll_interval: Duration::from_secs(600),
    };
    let full = RolloverRule {
        max_docs: None,
        max_bytes: Some(20 << 30),
        max_age: None,
        poll_interval: Duration::from_secs(10),
    };
    let index = &plan.indices[0];
    assert_eq!(index.rollover, Some(ByWorld { real: rule, full }));
    assert_eq!((index.name.as_str(), index.first_name().as_str()), ("leader", "leader-000001"));
}

#[test]
fn what_cannot_be_with_a_pattern_is_said() {
    let writes = "{ index_in_background = { documents_per_s = 5 } },";
    let restarts =
        |options: &str| by_pattern(&format!("{{ restart_at_random = {options} }},"), ROLLS);
    for (text, expected) in [
        (by_pattern("\"follow\",", ROLLS), "\"follow\" or auto_follow, not both"),
        (by_pattern("\"index\",", ROLLS), "auto_follow follows what is made after it, and \"index\""),
        (by_pattern("", "").replace("leader-*", "logs-*"), "no pattern of auto_follow fits leader"),
        (by_pattern("", ROLLS).replace("patterns", "patern"), "did you mean \"patterns\""),
        (by_pattern("", ROLLS).replace("[\"leader-*\"]", "[]"), "patterns is a list of names"),
        (by_pattern("", ROLLS).replace("patterns = [\"leader-*\"]", ""), "say which indices"),
        (by_pattern("", "rollover = { poll_interval = \"1m\" }"), "say when it rolls over"),
        (by_pattern("", "rollover = { max_dcs = 5 }"), "did you mean \"max_docs\""),
        (by_pattern("", "rollover = { max_docs = 0 }"), "max_docs is out of range"),
        (by_pattern("{ wait_for_documents = { written = 5 } },", ROLLS), "put index_in_background"),
        (by_pattern(&format!("{writes} \"wait_for_documents\","), ROLLS), "say how many"),
        (by_pattern(&writes.replace("= 5", "= 5, updates = 0.1"), ROLLS), "new documents alone"),
        (
            by_pattern(&writes.replace("= 5", "= 5, updates = 0.1, full = { documents_per_s = 5 }"), ""),
            "exists only as a number",
        ),
        (by_pattern(&writes.replace("= 5", "= 5, full = 7"), ROLLS), "full is a table; write full = { documents_per_s"),
        (
            by_pattern(&writes.replace("= 5", "= 5, full = { documents = 7 }"), ROLLS),
            "has no option \"documents\"",
        ),
        (restarts("{ cluster = \"folower\", every = \"1s\", pause = \"1s\" }"), "did you mean \"follower\""),
        (restarts("{ cluster = \"follower\", every = \"1s\" }"), "write it out"),
        (
            restarts("{ cluster = \"follower\", nodes = \"al\", every = \"1s\", pause = \"1s\" }"),
            "did you mean \"all\"",
        ),
        (following("{ auto_follow = { patterns = [\"*\"] } },"), "not both"),
        (following(writes).replacen("shards = 3\n", &format!("shards = 3\n{ROLLS}\n"), 1), "is followed by a pattern"),
        (
            TEXT.replacen("\"recover\"", "{ index_in_background = { documents_per_s = 5, full = { documents_per_s = 5 } } }, \"recover\"", 1),
            "only a plan that follows has a full rate",
        ),
    ] {
        let said = refused(&text);
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
