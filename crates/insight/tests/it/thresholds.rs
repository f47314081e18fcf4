//! Every number that a judge compares with is printed by `narrows explain --rules`.
//!
//! Judges have no numbers of their own, only thresholds with names. So the sources of the judges are read here: any
//! other number in them is a fault, and so is a threshold that stands in no rule.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use insight::diagnosis::Class;

/// What judges look at, beside the causes themselves.
const SHARED: [&str; 10] = [
    "busy", "ceilings", "copying", "copying/evidence", "following", "recovery", "replaying",
    "repository_limit", "streaming", "waiting",
];

/// Numbers that compare with nothing: the ends of a share, the first and the next.
const PLAIN: [&str; 4] = ["0", "1", "0.0", "1.0"];

fn sources() -> BTreeMap<String, String> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/diagnosis");
    let shared = SHARED.map(|name| dir.join(name).with_extension("rs"));
    let causes = fs::read_dir(dir.join("causes")).unwrap().map(|entry| entry.unwrap().path());
    let is_a_cause = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem != "mod");
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, code(&fs::read_to_string(path).unwrap()))
    };
    causes.filter(is_a_cause).chain(shared).map(read).collect()
}

/// A source without its tests, its comments and what stands in strings.
fn code(source: &str) -> String {
    let source = source.split("#[cfg(test)]").next().unwrap_or(source);
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n").replace("\\\"", "");
    text.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn names(code: &str) -> BTreeSet<&str> {
    let is_upper =
        |name: &&str| name.len() > 1 && name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_constant = |name: &&str| is_upper(name) && !name.contains(|c: char| c.is_lowercase());
    code.split(|c| !is_part_of_a_name(c)).filter(is_constant).collect()
}

/// Numbers that stand for themselves: no part of a name, no field of a tuple.
fn numbers(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let is_number =
            c.is_ascii_digit() && !is_part_of_a_name(before) && before != '.' && before != ')';
        let end = if is_number {
            let after_point = |at: usize| rest[at + 1..].starts_with(|c: char| c.is_ascii_digit());
            rest.char_indices()
                .find(|&(at, c)| !(is_part_of_a_name(c) || c == '.' && after_point(at)))
                .map_or(rest.len(), |(at, _)| at)
        } else {
            c.len_utf8()
        };
        if is_number {
            found.push(rest[..end].to_owned());
        }
        before = rest[..end].chars().next_back().unwrap_or(' ');
        rest = &rest[end..];
    }
    found
}

/// A source of a judge: what it declares as thresholds, and the rest.
fn parts(code: &str) -> (BTreeSet<&str>, String) {
    let (mut declared, mut rest) = (BTreeSet::new(), String::new());
    for statement in code.split_inclusive(";\n") {
        let declaration = statement.rfind("const ").and_then(|at| {
            let (name, of_type) = statement[at..].split_once(": ")?;
            let is_threshold = ["Threshold", "[Threshold"].iter().any(|t| of_type.starts_with(t));
            is_threshold.then_some((at, name.trim_start_matches("const ")))
        });
        let rest_ends = match declaration {
            Some((at, name)) => {
                declared.insert(name);
                at
            }
            None => statement.len(),
        };
        rest.push_str(&statement[..rest_ends]);
    }
    (declared, rest)
}

fn shared_thresholds() -> BTreeSet<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/diagnosis/threshold.rs");
    let code = code(&fs::read_to_string(path).unwrap());
    let declared = parts(&code).0;
    assert!(declared.contains("VERDICT") && declared.contains("LIMIT_PAUSED"), "{declared:?}");
    declared.into_iter().map(str::to_owned).collect()
}

/// The names of a rule, and the source without them.
fn split_rule(code: &str) -> Option<(BTreeSet<&str>, String)> {
    let (before, list) = code.split_once("thresholds: &[")?;
    let (list, after) =
        list.split_once("],\n        lift").or_else(|| list.split_once("], lift"))?;
    Some((names(list), format!("{before}{after}")))
}

#[test]
fn judges_compare_with_thresholds_alone_and_each_stands_in_a_rule() {
    let shared = shared_thresholds();
    let sources = sources();
    let mut printed: BTreeSet<&str> = BTreeSet::new();
    for (file, code) in &sources {
        let Some((listed, rest)) = split_rule(code) else { continue };
        let (declared, rest) = parts(&rest);
        let body = rest.split_once("static CAUSE").expect("a cause declares its rule").1;
        let used: BTreeSet<&str> = names(body)
            .into_iter()
            .filter(|name| shared.contains(*name) || declared.contains(name))
            .collect();
        let missing: Vec<_> =
            used.union(&declared).filter(|name| !listed.contains(*name)).collect();
        assert!(
            missing.is_empty(),
            "causes/{file}.rs compares with {missing:?}: name it in its rule"
        );
        printed.extend(listed);
    }
    for (file, code) in &sources {
        let without_rule = split_rule(code).map_or(code.clone(), |(_, rest)| rest);
        let (declared, rest) = parts(&without_rule);
        let other: Vec<_> =
            numbers(&rest).into_iter().filter(|number| !PLAIN.contains(&&**number)).collect();
        assert!(other.is_empty(), "{file}.rs has the numbers {other:?}: make thresholds of them");
        let is_known = |name: &&str| shared.contains(*name) || declared.contains(name);
        let unprinted: Vec<_> = names(code)
            .into_iter()
            .filter(is_known)
            .filter(|name| !printed.contains(name))
            .collect();
        assert!(
            unprinted.is_empty(),
            "{file}.rs compares with {unprinted:?}, which no rule prints"
        );
    }
    assert_eq!(sources.len(), Class::ALL.len() + SHARED.len());
}

/// Numbers of probes that decide nothing: a half and twice, bytes of a kilobyte, and what keeps a logarithm finite.
const PLAIN_IN_PROBES: [&str; 5] = ["2", "2.0", "1024", "1024.0", "0.01"];

#[test]
fn probes_compare_with_thresholds_alone_and_each_is_printed() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/diagnosis/probe");
    let read = |name: &str| code(&fs::read_to_string(dir.join(name)).unwrap());
    let list = read("mod.rs");
    let printed = names(list.split_once("THRESHOLDS").expect("probes have a list").1);
    let mut count = 0;
    for file in ["apply.rs", "meter.rs", "plan.rs", "prober.rs", "result.rs"] {
        let code = read(file).replace("1e3", "").replace("const SEED: u64 = 1", "");
        let (declared, rest) = parts(&code);
        let is_plain = |n: &String| PLAIN.contains(&&**n) || PLAIN_IN_PROBES.contains(&&**n);
        let other: Vec<_> = numbers(&rest).into_iter().filter(|n| !is_plain(n)).collect();
        assert!(other.is_empty(), "{file} has the numbers {other:?}: make thresholds of them");
        let missing: Vec<_> = declared.iter().filter(|name| !printed.contains(*name)).collect();
        assert!(missing.is_empty(), "probe/{file} compares with {missing:?}: name it in the list");
        count += declared.len();
    }
    assert_eq!(count, insight::diagnosis::probe::THRESHOLDS.len());
}

#[test]
fn numbers_in_a_judge_are_seen() {
    let found = numbers("if used.0 >= 0.9 && count(x1) > 30_000 { list[0] } else { 1..=1e3 }");
    assert_eq!(found, ["0.9", "30_000", "0", "1", "1e3"]);
    let (declared, rest) = parts(
        "const A: Threshold = at(0.5);\nconst CARDS: [Threshold; 2] = [at(7.0)];\nlet x = 3;\n",
    );
    assert_eq!((declared, rest.as_str()), (BTreeSet::from(["A", "CARDS"]), "let x = 3;\n"));
}
