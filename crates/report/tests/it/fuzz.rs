//! Damaged records.

use std::fs;
use std::path::Path;

use record::RunDir;
use testbed::fuzz::{self, Budget};

const FILES: [&str; 3] = ["manifest.json", "lines.jsonl", "rows.jsonl"];

/// Whatever stands in one of the files: a record opens, with what is damaged said, or is refused.
#[test]
fn records() {
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v4");
    let samples: Vec<Vec<u8>> =
        FILES.iter().map(|file| fs::read(whole.join(file)).unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    for (file, sample) in FILES.iter().zip(&samples) {
        for (other, content) in FILES.iter().zip(&samples) {
            fs::write(dir.path().join(other), content).unwrap();
        }
        let budget = Budget { allocations: 500_000, bytes: 64 << 20, ..Budget::default() };
        fuzz::search(&format!("records: {file}"), &[sample], 500, budget, |bytes| {
            fs::write(dir.path().join(file), bytes).unwrap();
            if let Ok(run) = RunDir::open(dir.path()) {
                let _ = insight::Summary::of(&run);
            }
        });
    }
}
