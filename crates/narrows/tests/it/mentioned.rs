//! Commands that documents mention and do not fence: each is one that the command line takes, with the options that it
//! is given, and each benchmark, example and test that a page names is there.
//!
//! What is fenced as `sh` on the pages is run (`documents`), and so is what `docs/errors.md` shows (`errors`) and what
//! `docs/first-five-minutes.md` recorded (`packaging/test`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{files_below, narrows, said};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every document for people, by its path from the root of the repository.
fn documents() -> Vec<PathBuf> {
    let fixed = ["README.md", "SECURITY.md", "ARCHITECTURE.md", "packaging/README.md"];
    let mut found: Vec<PathBuf> = fixed.map(PathBuf::from).to_vec();
    for folder in ["docs", "packaging/grafana"] {
        let files = files_below(&root().join(folder));
        found.extend(files.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()));
    }
    // Mistakes on purpose.
    let is_read = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "md") && !path.ends_with("errors.md")
    };
    found.retain(is_read);
    found.sort();
    found
}

/// What stands between backticks, and the lines of blocks; those of `sh` where nobody runs them.
fn mentions(text: &str, runs: bool) -> Vec<String> {
    let (mut found, mut prose, mut fence) = (Vec::new(), String::new(), None);
    for line in text.lines() {
        match (line.strip_prefix("```"), fence) {
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh")) if runs => {}
            (None, Some(_)) => {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                found.extend(line.starts_with("narrows ").then(|| line.to_owned()));
                found.extend(line.starts_with("cargo ").then(|| line.to_owned()));
            }
            (None, None) => prose += &format!("{line}\n"),
        }
    }
    let within = prose.split('`').skip(1).step_by(2);
    // A long list goes on in the next line.
    let whole =
        |code: &str| code.replace(",\n", ",").split_whitespace().collect::<Vec<_>>().join(" ");
    found.extend(within.map(whole));
    found
}

/// A value for what stands for one.
fn value(word: &str) -> &str {
    match word {
        "URL" => "http://localhost:9200",
        "A" | "B" => "127.0.0.1:9901",
        "N" => "1",
        word => word,
    }
}

/// The words of a command: quotes hold them together, and `[ADDRESS]` and `...` may be left out.
fn words(command: &str) -> Vec<String> {
    let command = command.split(['|', '#', '>']).next().unwrap_or_default();
    let (mut words, mut quoted) = (vec![String::new()], None);
    for letter in command.chars() {
        match (letter, quoted) {
            ('\'' | '"', None) => quoted = Some(letter),
            (_, Some(quote)) if letter == quote => quoted = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty() && !word.starts_with('[') && word != "...");
    words
}

/// The names of the commands, as `narrows --help` lists them.
pub fn commands() -> BTreeSet<String> {
    let help = said(&narrows(&["--help"]));
    let list = help.split("Commands:\n").nth(1).expect("it lists commands");
    let list = list.split("\n\n").next().unwrap_or_default();
    let named = list.lines().filter_map(|line| line.strip_prefix("  "));
    let named = named.filter(|line| !line.starts_with(' '));
    named.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Why the command line does not take a command; none where it does. Options are read before `--help` is obeyed.
fn refusal(words: &[String]) -> Option<String> {
    let mut arguments: Vec<&str> = words.iter().map(|word| value(word)).collect();
    arguments.push("--help");
    let output = narrows(&arguments);
    let why = said(&output);
    // An option that is named without its value.
    let is_known = output.status.code() == Some(0) || why.contains("a value is required for");
    (!is_known).then_some(why)
}

/// What cargo would look for and not find.
fn missing(words: &[String]) -> Option<String> {
    let after = |option: &str| {
        let at = words.iter().position(|word| word == option)?;
        words.get(at + 1)
    };
    let package = after("-p")?;
    let folder = root().join("crates").join(package);
    let files = [("--bench", "benches"), ("--example", "examples"), ("--test", "tests")];
    let wanted = files.into_iter().find_map(|(option, below)| {
        let name = after(option)?;
        let file = folder.join(below).join(format!("{name}.rs"));
        Some(if file.exists() { file } else { folder.join(below).join(name).join("main.rs") })
    });
    [Some(folder), wanted]
        .into_iter()
        .flatten()
        .find(|path| !path.exists())
        .map(|path| path.display().to_string())
}

#[test]
fn every_command_that_a_document_mentions_is_one() {
    let commands = commands();
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    assert!(commands.contains("watch") && commands.len() > 15, "{commands:?}");
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for document in documents() {
        let text = std::fs::read_to_string(root().join(&document)).unwrap();
        let below = document.strip_prefix("docs").map(|page| page.display().to_string());
        let runs = below.is_ok_and(|page| summary.contains(&format!("]({page})")));
        for mention in mentions(&text, runs) {
            let mut words = words(&mention);
            let is_named = words.first().is_some_and(|word| word == "narrows");
            if words.first().is_some_and(|word| word == "cargo") {
                wrong.extend(missing(&words).map(|what| format!("{mention}: no {what}")));
                taken += 1;
                continue;
            }
            if is_named {
                words.remove(0);
            }
            let is_command = words.first().is_some_and(|word| commands.contains(word));
            // `restore` alone is a word like any other.
            if !is_command || !(is_named || mention.contains(" --")) {
                continue;
            }
            taken += 1;
            wrong.extend(
                refusal(&words).map(|why| format!("{}: {mention}: {why}", document.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 100, "only {taken} commands were found");
}

#[test]
fn the_first_page_lists_every_command() {
    let page = std::fs::read_to_string(root().join("docs/start.md")).unwrap();
    let found = mentions(page.split("## Every command").nth(1).unwrap(), true);
    let named = found.iter().filter_map(|one| one.split(' ').find(|word| *word != "narrows"));
    let mut missing = commands();
    missing.remove("help");
    named.for_each(|name| _ = missing.remove(name));
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_is_wrong_is_found() {
    let text = "a `narrows\nwatch URL --no-such` b\n```sh\nnarrows x\n```\n```text\n$ narrows y 'a b'\n```\n";
    assert_eq!(mentions(text, false)[0], "narrows x");
    assert_eq!(mentions(text, true), ["narrows y 'a b'", "narrows watch URL --no-such"]);
    assert_eq!(words("narrows y 'a b' [ADDRESS] | jq"), ["narrows", "y", "a b"]);
    let words = |text: &str| words(text);
    assert!(refusal(&words("watch URL --no-such")).is_some_and(|why| why.contains("--no-such")));
    assert_eq!(refusal(&words("watch URL --web")), None);
    assert!(missing(&words("cargo bench -p narrows --bench nothing")).is_some());
    assert_eq!(missing(&words("cargo bench -p narrows --bench scale")), None);
}
