//! What this machine is calibrated by.

use lab::calibration::calibrate;
use lab::machine::is_in_memory;
use world::model::parameters;

/// Small, and in whatever build tests run: the figures mean nothing, that they come does. Of memory no disk is
/// measured: below `/dev/shm` files are in memory where they are anywhere.
#[test]
fn everything_is_measured_and_fits_the_table() {
    check(&tempfile::tempdir().unwrap());
    match tempfile::tempdir_in("/dev/shm") {
        Ok(dir) => check(&dir),
        Err(error) => println!("ignored, because nothing can be written in /dev/shm: {error}"),
    }
}

fn check(dir: &tempfile::TempDir) {
    let has_disk = !is_in_memory(dir.path());
    let measured = calibrate(dir.path(), 1, &|_| {}).unwrap();
    let names: Vec<&str> = measured.iter().map(|m| m.parameter).collect();
    let all = parameters().iter().map(|row| row.name);
    let expected: Vec<&str> = all
        .filter(|name| name.starts_with("cores.") || (has_disk && name.starts_with("disk.")))
        .filter(|name| {
            let given = [
                "count", "request_bytes", "queue_depth", "scheduler", "slice_idle", "competitors",
                "spread",
                // Of searches nothing is measured yet; a message waits for no thread here.
                "search_document", "search_bytes_per_s", "dispatch",
                // Its connections have no TLS.
                "encrypt_bytes_per_s", "decrypt_bytes_per_s",
            ];
            !given.iter().any(|end| name.ends_with(end))
        })
        .collect();
    assert_eq!(names, expected);
    for m in &measured {
        assert_eq!(m.laps.len(), 1);
        m.text(m.laps[0]).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}
