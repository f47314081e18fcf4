//! Documents that are indexed while something else is measured, in virtual time: they are on every copy that they
//! should be on, and what is not there is found.

use lab::Error;
use lab::plan::Plan;
use record::{Line, Row, RunDir};
use testbed::plans::background_indexing;

use crate::common;

const VARIANTS: &str = "[settings]\n\"indices.recovery.max_bytes_per_sec\" = \"400kb\"\n\
                        [[variant]]\nname = \"one\"\n[[variant]]\nname = \"two\"\n";

fn plan(steps: &str, replicas: u32, more: &str) -> Plan {
    Plan::parse("background.toml", &background_indexing(steps, replicas, more)).unwrap()
}

fn run(plan: &Plan, planted: Option<&'static str>) -> (Result<Vec<Row>, Error>, RunDir) {
    let (rows, run_dir, _) = common::run(common::resolved(plan, 1.0), planted);
    (rows, run_dir)
}

/// What was indexed beside, by the record's notes, one for each variant.
fn indexed(run_dir: &RunDir) -> Vec<u64> {
    let count = |text: &str| {
        let count = text.strip_prefix("indexed ")?.split_once(" documents")?.0;
        count.replace('\u{202f}', "").parse().ok()
    };
    common::notes(run_dir).into_iter().filter_map(count).collect()
}

/// Every variant is verified, and its copies hold what was indexed before and beside.
#[track_caller]
fn hold_all(plan: Plan, before: u64) {
    let (rows, run_dir) = run(&plan, None);
    let rows = rows.unwrap();
    let beside = indexed(&run_dir);
    let is_told = |line: &Line| match line {
        Line::Recovery { sample, .. } => {
            sample.indexing_requests > Some(0) && sample.indexing_ms.is_some()
        }
        _ => false,
    };
    assert!(run_dir.lines.iter().any(is_told), "samples have the requests that were answered");
    assert_eq!((rows.len(), beside.len()), (2, 2), "{rows:?}");
    for (row, beside) in rows.iter().zip(beside) {
        assert!(row.verified && beside > 1_000, "{beside} beside: {row:?}");
        assert_eq!(row.documents, before + beside, "{row:?}");
    }
}

#[test]
fn replicas_that_appear_hold_what_is_written_meanwhile() {
    hold_all(plan("\"recover_peers\", \"verify\"", 0, VARIANTS), 20_000);
}

#[test]
fn nodes_that_restart_empty_hold_what_was_written_without_them() {
    hold_all(plan("{ recover_peers = { restart = 2 } }, \"verify\"", 1, VARIANTS), 20_000);
}

#[test]
fn documents_that_are_only_a_number_are_written_beside_too() {
    let full = format!(
        "full = {{ documents = 1_000_000, bytes = \"200mb\", segments = 8 }}\n{}",
        VARIANTS.replace("400kb", "20mb")
    );
    hold_all(plan("\"recover_peers\", \"verify\"", 0, &full), 1_000_000);
}

#[test]
fn a_copy_across_a_link_holds_what_is_written_meanwhile() {
    let sites = format!(
        "[follower]\nnodes = 1\njoins = \"leader\"\n[link]\nrtt = \"100ms\"\nrate = \"100mbit\"\n{VARIANTS}"
    );
    let text = background_indexing("\"add_replica\", \"verify\"", 0, &sites);
    let text = text.replace("nodes = 3", "nodes = 1").replace("shards = 2", "shards = 1");
    hold_all(Plan::parse("background.toml", &text).unwrap(), 20_000);
}

#[test]
fn a_load_goes_on_beside_writes() {
    let load = "[[operation]]\nname = \"count\"\npath = \"/logs/_count\"\n[load]\noperations = [\"count\"]\n\
                clients = 2\nrate = 20.0\nmeasured = \"5s\"\ntimeout = \"5s\"\n\
                [[variant]]\nname = \"one\"\n[[variant]]\nname = \"two\"\n";
    let (rows, run_dir) = run(&plan("\"load\"", 1, load), None);
    let (rows, beside) = (rows.unwrap(), indexed(&run_dir));
    assert_eq!((rows.len(), beside.len()), (2, 2), "{rows:?}");
    for (row, beside) in rows.iter().zip(beside) {
        assert_eq!((row.loads[0].requests, row.loads[0].failed()), (100, 0), "{row:?}");
        assert!((9_000..12_000).contains(&beside), "{beside} beside: {row:?}");
    }
}

#[test]
fn an_acknowledged_write_that_is_gone_is_found() {
    let steps = "{ recover_peers = { restart = 2 } }, \"verify\"";
    let planted = Some(store::planted::BATCH_NOT_INDEXED);
    let full = "full = { documents = 1_000_000, bytes = \"200mb\", segments = 8 }\n";
    let (ended, run_dir) = run(&plan(steps, 1, &format!("{full}{VARIANTS}")), planted);
    assert!(matches!(ended, Err(Error::NotTheSame { .. })), "{ended:?}");
    let says = common::notes(&run_dir).iter().any(|text| text.contains("some are gone"));
    assert!(says, "the record says what is gone");
}
