//! Documents that are indexed while nodes restart empty, on processes: every copy holds them.

use crate::common::plans::run;
use crate::common::{json, said};

#[test]
fn nodes_restart_empty_and_hold_what_was_written_without_them() {
    let steps = "{ recover_peers = { restart = 2 } }, \"verify\"";
    let throttled = "[settings]\n\"indices.recovery.max_bytes_per_sec\" = \"1mb\"\n\
                     [[variant]]\nname = \"throttled\"";
    let plan = testbed::plans::background_indexing(steps, 1, throttled);
    let (_dir, output) = run(&plan, "embedded", &[]);
    let row = &json(&output)["rows"][0];
    assert_eq!(row["verified"], true, "{row}");
    let beside = row["documents"].as_u64().unwrap() - 20_000;
    let shown = record::units::show_count(beside);
    let announced = format!("indexed {shown} documents beside");
    assert!(beside > 0 && said(&output).contains(&announced), "{}", said(&output));
}
