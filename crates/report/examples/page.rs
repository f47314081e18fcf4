//! Writes the page of a stored run, to look at it: `page OUT.html [RUN_DIR]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(out) = arguments.next() else {
        eprintln!("usage: page OUT.html [RUN_DIR]");
        return ExitCode::from(2);
    };
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v1");
    let dir = arguments.next().unwrap_or(fixture);
    let run = match record::RunDir::open(&dir) {
        Ok(run) => run,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = std::fs::write(&out, report::html(&run)) {
        eprintln!("write {}: {error}", out.display());
        return ExitCode::FAILURE;
    }
    let style = report::Style { color: false, width: report::Style::DEFAULT_WIDTH };
    print!("{}", report::table(&insight::Summary::of(&run), style, Some(&out)));
    ExitCode::SUCCESS
}
