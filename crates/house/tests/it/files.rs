//! Inside a crate: modules import only those below them, and no two files need each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::graph::{Graph, circles, shortest_circle};
use crate::imports::{Need, needs};
use crate::source::{Crate, crates};

const SECTION: &str = "## Modules, from the ground up";

#[test]
fn modules_import_only_those_below_them() {
    let problems = crates().iter().filter_map(|of| check_order(of).err());
    let wrong = problems.collect::<Vec<_>>().join("\n");
    assert!(
        wrong.is_empty(),
        "{wrong}\nMove what both need below both, or hand the lower module a function at start; if the order itself is \
         wrong, change the list in the crate's README."
    );
}

#[test]
fn no_circles_between_files() {
    let mut wrong = String::new();
    for of in crates() {
        let needs = needs(of);
        let graph = file_graph(of, &needs);
        for circle in circles(&graph) {
            let _ = writeln!(wrong, "{}, {} files: {}", of.name, circle.len(), circle.join(", "));
            for round in rounds(&graph, &circle) {
                let _ = writeln!(wrong, "  {}", written(of, &needs, &round));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong}\nMove what both files need into a file below both (a type that two files share is the second noun), or \
         turn one import round: the upper file hands the lower one a function or a value."
    );
}

/// The list of modules in a crate's README, if it has one.
fn section(of: &Crate) -> Option<String> {
    let text = fs::read_to_string(of.folder.join("README.md")).ok()?;
    let (_, section) = text.split_once(SECTION)?;
    // A floor may go on in indented lines.
    Some(section.split("\n#").next()?.replace("\n  ", " "))
}

/// The order of a crate's top-level modules, as its README says it: each with the number of its line.
fn order(of: &Crate) -> Result<BTreeMap<String, usize>, String> {
    let readme = format!("crates/{}/README.md", of.name);
    let section = section(of).ok_or_else(|| format!("{readme} has no section `{SECTION}`"))?;
    let mut floors = BTreeMap::new();
    let mut floor = 0;
    for line in section.lines() {
        let (number, names) = line.split_once(". ").unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        floor += 1;
        // Names stand first, in backticks; what follows them is prose.
        let mut rest = names;
        while let Some((name, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`'))
        {
            if floors.insert(name.to_owned(), floor).is_some() {
                return Err(format!("{readme} names `{name}` twice"));
            }
            rest = after.trim_start_matches([',', ' ']).trim_start_matches("and ");
        }
    }
    Ok(floors)
}

fn check_order(of: &Crate) -> Result<(), String> {
    let floors = order(of)?;
    let here: BTreeSet<&String> = of.modules[0].children.keys().collect();
    let listed: BTreeSet<&String> = floors.keys().collect();
    if here != listed {
        return Err(format!(
            "crates/{}/README.md, `{SECTION}`: not listed: {:?}; listed and no module: {:?}",
            of.name,
            here.difference(&listed).collect::<Vec<_>>(),
            listed.difference(&here).collect::<Vec<_>>(),
        ));
    }
    let mut wrong = String::new();
    for need in needs(of) {
        let (from, to) = (&of.modules[need.from], &of.modules[need.to]);
        let (Some(from_top), Some(to_top)) = (from.path.first(), to.path.first()) else {
            continue;
        };
        if from_top != to_top && floors[to_top] >= floors[from_top] {
            let _ = writeln!(
                wrong,
                "crates/{}/src/{}:{}: `{}`: {from_top} (line {}) imports {to_top} (line {})",
                of.name, from.file, need.line, need.path, floors[from_top], floors[to_top],
            );
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn file_graph(of: &Crate, needs: &[Need]) -> Graph {
    let mut graph = Graph::new();
    for need in needs {
        let (from, to) = (&of.modules[need.from].file, &of.modules[need.to].file);
        graph.entry(from.clone()).or_default().insert(to.clone());
    }
    graph
}

/// The shortest ways round through the files of a circle, each once, the shortest first.
fn rounds(graph: &Graph, circle: &[String]) -> Vec<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut rounds: Vec<Vec<String>> = circle
        .iter()
        .map(|start| shortest_circle(graph, start))
        .filter(|round| seen.insert(round.iter().cloned().collect::<BTreeSet<_>>()))
        .collect();
    rounds.sort_by_key(Vec::len);
    rounds
}

/// One way round with the lines that make it: `a.rs:3 takes b::X, b.rs:9 takes a::Y`.
fn written(of: &Crate, needs: &[Need], round: &[String]) -> String {
    let steps = round.iter().zip(round.iter().cycle().skip(1)).map(|(from, to)| {
        let need = needs
            .iter()
            .find(|need| of.modules[need.from].file == *from && of.modules[need.to].file == *to)
            .expect("each step of a round is an import");
        format!("{from}:{} takes {}", need.line, need.path)
    });
    steps.collect::<Vec<_>>().join(", ")
}
