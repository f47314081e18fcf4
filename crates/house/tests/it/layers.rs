//! Between crates: each depends on those below it alone, in the order of the table in `ARCHITECTURE.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::source::{crates, workspace_folder};

#[test]
fn crates_depend_on_those_below_them() {
    let text =
        fs::read_to_string(workspace_folder().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    // Rows of the table begin with the crate's name: "| `lab` | plans, ... |".
    let order: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let mut wrong = Vec::new();
    for (name, needed) in dependencies() {
        let Some(place) = order.iter().position(|row| *row == name) else {
            wrong.push(format!("{name} has no row in the table of ARCHITECTURE.md"));
            continue;
        };
        for below in needed {
            if order.iter().position(|row| *row == below).is_none_or(|row| row <= place) {
                wrong.push(format!(
                    "crates/{name}/Cargo.toml takes {below}, which does not stand below it"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nA crate may use those in the lower rows of the table of crates in ARCHITECTURE.md. Move what both need \
         into the lower crate; if the table is wrong, change its order.",
        wrong.join("\n")
    );
}

/// Each crate of the workspace with those of the workspace that it is built from.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let said = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace_folder())
        .output()
        .expect("cargo metadata");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said: Value = serde_json::from_slice(&said.stdout).expect("cargo answers in JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = said["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let needed = package["dependencies"].as_array().expect("dependencies").iter();
            let ours = needed
                // Tests may go through what stands above: the engine's through the REST face.
                .filter(|one| one["kind"] != "dev")
                .filter(|one| one["path"].as_str().is_some_and(|path| Path::new(path).exists()));
            (text(&package["name"]), ours.map(|one| text(&one["name"])).collect())
        })
        .collect()
}

/// What a policy must know is told to it: of the world it takes moments, and no clock.
#[test]
fn policies_take_the_time_alone_of_the_world() {
    let policy = crates().iter().find(|one| one.name == "policy").expect("crates/policy");
    let mut wrong = Vec::new();
    for module in &policy.modules {
        let imported = module.imports.iter().map(|import| (&import.path, import.line));
        let mentioned = module.mentions.iter().map(|(path, line)| (path, *line));
        for (path, line) in imported.chain(mentioned) {
            let mut parts = path.iter().map(String::as_str);
            if parts.next() == Some("world") && parts.next() != Some("Time") {
                wrong.push(format!("{}:{line}: {}", module.file, path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "policy takes more of world than Time:\n{}", wrong.join("\n"));
}
