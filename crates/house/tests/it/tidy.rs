//! What every file keeps to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::source::workspace_folder;

#[test]
fn markdown_and_comments_stay_within_120_columns() {
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        // The formatter breaks code where it can, and no comment.
        let is_prose = |line: &str| match name.rsplit('.').next() {
            Some("md") => true,
            Some("rs") => line.starts_with("//"),
            _ => false,
        };
        // A row of a table cannot be broken, nor a link.
        let wide = |line: &&str| {
            let prose = line.trim_start().trim_start_matches(['/', '!', ' ']);
            line.chars().count() > 120
                && is_prose(line.trim_start())
                && !prose.starts_with('|')
                && !prose.contains("://")
        };
        let lines = text.lines().filter(wide).count();
        if lines > 0 {
            wrong.push(format!("{name}: {lines} lines wider than 120 columns"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A bench that was never run with `--write` leaves its table empty, and the page says nothing.
#[test]
fn every_generated_table_of_the_docs_is_filled() {
    let mut seen = 0;
    let mut empty = Vec::new();
    for (name, text) in texts().filter(|(name, _)| name.starts_with("docs/")) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let mark = |line: &str, opening: &str| {
                let named = line.strip_prefix(opening)?.strip_suffix(" -->")?;
                Some(named.to_owned())
            };
            let Some(opened) = mark(pair[0], "<!-- ").filter(|named| !named.starts_with('/'))
            else {
                continue;
            };
            seen += 1;
            if mark(pair[1], "<!-- /") == Some(opened.clone()) {
                empty.push(format!("{name}: {opened}"));
            }
        }
    }
    assert!(seen > 10, "no marks of tables are recognized");
    assert!(empty.is_empty(), "these tables are empty: {empty:?}");
}

/// Every binary links the whole workspace anew.
#[test]
fn a_crate_has_one_binary_of_integration_tests() {
    let mut wrong = Vec::new();
    let mut crates = BTreeSet::new();
    for (name, text) in texts() {
        let parts: Vec<&str> = name.split('/').collect();
        let binary = match parts.as_slice() {
            ["crates", of, "tests", file] => file.strip_suffix(".rs").map(|binary| (*of, binary)),
            ["crates", of, "tests", binary, "main.rs"] => Some((*of, *binary)),
            _ => None,
        };
        let Some((of, binary)) = binary else { continue };
        if binary == "it" {
            continue;
        }
        let head = text.lines().take_while(|line| line.starts_with("//!"));
        let says_why = head.clone().any(|line| line.contains("A binary of its own"));
        if !says_why || !crates.insert(of.to_owned()) {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nMove these into tests/it as modules. One more binary a crate is allowed, where tests must be alone in their \
         process or on the machine: its head says why, beginning with \"A binary of its own\".",
        wrong.join("\n")
    );
}

/// Neither the folders nor the hosts of whoever runs this test.
#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let folder = |path: &Path| format!("{}/", path.display());
    let mut traces: BTreeSet<String> = workspace_folder().ancestors().take(2).map(folder).collect();
    traces.extend(
        ["HOME", "CARGO_HOME"]
            .iter()
            .filter_map(|name| Some(folder(Path::new(&std::env::var_os(name)?)))),
    );
    traces.retain(|path| path.trim_matches('/').len() > 3);
    for (name, value) in std::env::vars() {
        let name = name.to_ascii_lowercase();
        if ["proxy", "index", "registry", "mirror"].iter().any(|part| name.contains(part)) {
            let host = value.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next());
            traces.extend(
                host.filter(|host| host.contains('.') && !host.starts_with("127."))
                    .map(str::to_owned),
            );
        }
    }
    let mut found = Vec::new();
    for (name, text) in texts() {
        let named = traces.iter().filter(|trace| text.contains(*trace));
        found.extend(named.map(|trace| format!("{name} names {trace}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What is printed may come from a hostile server or a damaged file. So everything that is printed goes through one
/// file, which lets nothing through that a terminal would obey.
#[test]
fn one_file_alone_prints() {
    const PRINTER: &str = "crates/narrows/src/terminal.rs";
    const PRINTING: [&str; 9] = [
        "println!", "print!(", "eprint!(", "dbg!(", "stdout()", "stderr()", "error.print()",
        "/dev/tty", "/dev/stdout",
    ];
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let parts: Vec<&str> = name.split('/').collect();
        let ["crates", of, "src", ..] = parts.as_slice() else { continue };
        if name == PRINTER || *of == "house" || *of == "testbed" {
            continue;
        }
        for (number, line) in shipped(&name, &text).lines().enumerate() {
            if !line.trim_start().starts_with("//") && PRINTING.iter().any(|way| line.contains(way))
            {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nPrint with `terminal::out()` and `say!` of {PRINTER}; a library hands its caller what is to be said.",
        wrong.join("\n")
    );
}

/// What was written and synced in a directory whose name is not durable is nowhere after a loss of power.
#[test]
fn one_file_alone_makes_directories_of_data() {
    const MAKER: &str = "crates/store/src/files.rs";
    let mut wrong = Vec::new();
    for (name, text) in texts() {
        let of_data = ["crates/store/src/", "crates/engine/src/"];
        if name == MAKER || !of_data.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        wrong.extend(shipped(&name, &text).contains("create_dir").then_some(name));
    }
    assert!(wrong.is_empty(), "{}: make directories with `make_dir` of {MAKER}", wrong.join(", "));
}

/// What stands before a file's tests; nothing of a file of tests.
fn shipped<'t>(name: &str, text: &'t str) -> &'t str {
    let ends = ["_tests.rs", "_test.rs", "/tests.rs"];
    if ends.iter().any(|end| name.ends_with(end)) || name.contains("/tests/") {
        return "";
    }
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

/// Without these lines CI would pass as before, and would seek the same, or nothing.
#[test]
fn ci_draws_seeds_seeks_inputs_and_leaves_no_test_out() {
    let run = fs::read_to_string(workspace_folder().join(".ci/run")).expect(".ci/run");
    let (before, _) = run.split_once("\n$test_command ").expect(".ci/run runs the tests");
    for line in [
        r#"NARROWS_NIGHT="1@$((16#$(git rev-parse --short=8 HEAD)))""#,
        "export NARROWS_NIGHT",
        "export NARROWS_FUZZ_SECONDS=5",
        "export NARROWS_REQUIRE_ALL=1",
    ] {
        assert!(before.lines().any(|found| found == line), ".ci/run says before its tests: {line}");
    }
}

/// For its examples rustdoc reads a crate anew, which takes a second or more: those that have none say so in their
/// manifests. An example that is written later must not go untested for it.
#[test]
fn no_example_is_left_out() {
    let (mut left_out, mut have) = (BTreeSet::new(), BTreeSet::new());
    for (name, text) in texts() {
        let Some(("crates", within)) = name.split_once('/') else { continue };
        let Some((of, file)) = within.split_once('/') else { continue };
        if file == "Cargo.toml" && text.contains("\n[lib]\ndoctest = false\n") {
            left_out.insert(of.to_owned());
        }
        if (file == "README.md" || file.starts_with("src/")) && has_example(&text) {
            have.insert(of.to_owned());
        }
    }
    assert!(!left_out.is_empty() && !have.is_empty(), "no manifest or no example is recognized");
    let wrong: Vec<&String> = left_out.intersection(&have).collect();
    assert!(
        wrong.is_empty(),
        "{wrong:?} have examples: take `doctest = false` out of their manifests"
    );
}

/// Whether a README, or the comments of a file, have a block of Rust.
fn has_example(text: &str) -> bool {
    let fences = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let said = line.strip_prefix("///").or(line.strip_prefix("//!")).unwrap_or(line);
        said.trim_start().strip_prefix("```")
    });
    // Every other one ends a block.
    fences.step_by(2).any(|language| language.is_empty() || language.starts_with("rust"))
}

/// Every file under version control that is text, by its name in the workspace.
fn texts() -> impl Iterator<Item = (String, String)> {
    let said = Command::new("git")
        .arg("ls-files")
        .current_dir(workspace_folder())
        .output()
        .expect("git ls-files");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let names: Vec<String> =
        String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect();
    names.into_iter().filter_map(|name| {
        let file: PathBuf = workspace_folder().join(&name);
        Some((name, fs::read_to_string(file).ok()?))
    })
}
