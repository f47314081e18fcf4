//! Damaged records.

use std::fs;
use std::path::Path;

use record::RunDir;
use testbed::fuzz::{self, Budget};

/// Whatever stands in one of the files: a record opens, with what is damaged said, or is refused.
fn damaged(file: &str) {
    let whole = format!("tests/fixtures/run-v{}", record::FORMAT);
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join(whole);
    let dir = tempfile::tempdir().unwrap();
    for file in ["manifest.json", "lines.jsonl", "rows.jsonl"] {
        fs::copy(whole.join(file), dir.path().join(file)).unwrap();
    }
    let sample = fs::read(whole.join(file)).unwrap();
    let budget = Budget { allocations: 500_000, bytes: 64 << 20, ..Budget::default() };
    fuzz::search(&format!("records: {file}"), &[&sample], 500, budget, |bytes| {
        fs::write(dir.path().join(file), bytes).unwrap();
        if let Ok(run) = RunDir::open(dir.path()) {
            let _ = insight::Summary::of(&run);
        }
    });
}

#[test]
fn manifests() {
    damaged("manifest.json");
}

#[test]
fn lines() {
    damaged("lines.jsonl");
}

#[test]
fn rows() {
    damaged("rows.jsonl");
}
