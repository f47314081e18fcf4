//! A binary of its own: its tests mount file systems, for copies and for nodes.

#[path = "../../../engine/tests/it/common/mod.rs"]
mod common;
mod copies;
#[path = "../../../store/tests/it/common/mod.rs"]
mod copies_common;
#[path = "../../../engine/tests/it/disk_full.rs"]
mod disk_full;

use world::real_world::run;

testbed::main! {
    copies::a_full_disk_is_an_error_and_what_was_acknowledged_stays [MOUNT],
    a_write_to_a_full_disk_is_refused_by_its_kind [MOUNT],
    a_full_disk_ends_a_recovery_and_room_completes_it [MOUNT],
    a_follower_whose_disk_is_full_goes_on_with_room [MOUNT],
    health_is_what_searches_find_where_the_managers_disk_is_full [MOUNT],
}

fn a_write_to_a_full_disk_is_refused_by_its_kind() {
    run(7, disk_full::a_write_to_a_full_disk_is_refused_by_its_kind);
}

fn a_full_disk_ends_a_recovery_and_room_completes_it() {
    run(7, disk_full::a_full_disk_ends_a_recovery_and_room_completes_it);
}

fn a_follower_whose_disk_is_full_goes_on_with_room() {
    run(7, disk_full::a_follower_whose_disk_is_full_goes_on_with_room);
}

fn health_is_what_searches_find_where_the_managers_disk_is_full() {
    run(7, disk_full::health_is_what_searches_find_where_the_managers_disk_is_full);
}
