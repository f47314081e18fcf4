//! A binary of its own: its test mounts a file system.

#[path = "../it/common/mod.rs"]
mod common;
mod full_disk;

testbed::main! {
    full_disk::a_full_disk_is_an_error_and_what_was_acknowledged_stays [MOUNT],
}
