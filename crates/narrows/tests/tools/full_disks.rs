//! Disks that are full for a while, of a follower and of a leader on processes.

use crate::common::json;
use crate::common::plans::{following, run};

pub fn full_disks_stop_a_follower_and_a_leader_and_room_has_them_go_on() {
    let full = "kind = \"full_disk\", node = \"follower-0\", free = \"4kb\", lasts = \"3s\"";
    let plan = following()
        .replacen("kind = \"cut\", lasts = \"2s\"", full, 1)
        .replace("{ fault = { kind = \"kill\", node = \"follower\", lasts = \"1s\" } },", "")
        .replace(
            "kind = \"stop\", node = \"leader-1\", lasts = \"1s\"",
            "kind = \"full_disk\", node = \"leader-1\", free = \"4kb\", lasts = \"3s\"",
        )
        // Nobody else could go on as the primary.
        .replace("[follower]\nnodes = 2", "[follower]\nnodes = 1")
        .replace("follower-1", "follower-0");
    let (_dir, output) = run(&plan, "embedded", &[]);
    let lap = &json(&output)["following"][0]["laps"][0];
    assert_eq!((&lap["copies"], &lap["violations"]), (&8.into(), &0.into()), "{lap}");
    let waits = lap["catch_ups"].as_array().unwrap();
    assert_eq!(waits[1]["after"], "follower-0 was left with 4.10 kB of disk for 3.00 s");
    assert!(waits[1]["lag_operations"].as_u64() > Some(200), "{lap}");
}
