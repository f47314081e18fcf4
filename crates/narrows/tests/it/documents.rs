//! The documents for people: every command in them is run, as it is written, in the order of the page.
//!
//! What is fenced as `sh` on a page of `docs/SUMMARY.md` is run. Lines before a block say how:
//!
//! | line | does |
//! | --- | --- |
//! | `<!-- test: with --scale 0.1 -->` | gives every `narrows` of the block these arguments, too |
//! | `<!-- test: says "words" -->` | what is printed has these words |
//! | `<!-- test: fails 2 -->` | the last command ends with this exit code |
//! | `<!-- test: until -->` | it is a look at what goes on, and is repeated until it says the words |
//! | `<!-- test: background -->` | it goes on beside the rest of the page, once it has printed a line |

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::common::{BINARY, look_until, said};

/// Commands of a page that stand together.
#[derive(Debug, Default, PartialEq)]
struct Block {
    /// Where it stands, from 1.
    line: usize,
    commands: String,
    with: Option<String>,
    says: Vec<String>,
    fails: i32,
    until: bool,
    background: bool,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The pages of the table of contents.
fn pages() -> Vec<String> {
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.map(str::to_owned).collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut next, mut within) = (Vec::new(), Block::default(), false);
    for (number, line) in text.lines().enumerate() {
        if within {
            match line {
                "```" => {
                    within = false;
                    found.push(std::mem::take(&mut next));
                }
                line => next.commands += &format!("{line}\n"),
            }
        } else if line == "```sh" {
            within = true;
            next.line = number + 1;
        } else if let Some(note) = line.strip_prefix("<!-- test: ") {
            let note = note.strip_suffix(" -->").expect("a note ends on its line");
            match note.split_once(' ') {
                None if note == "background" => next.background = true,
                None if note == "until" => next.until = true,
                Some(("with", more)) => next.with = Some(more.to_owned()),
                Some(("says", words)) => next.says.push(serde_json::from_str(words).unwrap()),
                Some(("fails", code)) => next.fails = code.parse().unwrap(),
                _ => panic!("line {}: no such note: {note}", number + 1),
            }
        } else if !line.trim().is_empty() {
            assert_eq!(next, Block::default(), "line {}: a note stands before a block", number + 1);
        }
    }
    found
}

/// A process with all that it has started.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// A page that is read from above to below.
struct Page<'a> {
    name: &'a str,
    /// They end before the directory is removed, into which they write.
    background: Vec<Group>,
    dir: tempfile::TempDir,
    /// In place of 9200, 9400 and 9600; 9300 and 9500 are as far from the one before. Whoever else asks for a free
    /// port gets none of these, nor what lies 100 above.
    ports: [u16; 3],
}

impl Page<'_> {
    fn shell(&self, block: &Block) -> Command {
        let mut commands = block.commands.clone();
        for hundreds in 0..=4_u16 {
            let here = self.ports[usize::from(hundreds / 2)] + 100 * (hundreds % 2);
            let written = 9200 + 100 * hundreds;
            commands = commands.replace(&format!(":{written}"), &format!(":{here}"));
            commands = commands.replace(&format!("--port {written}"), &format!("--port {here}"));
        }
        if let Some(more) = &block.with {
            let with = |line: &str| match line.split_once(" > ") {
                Some((command, file)) if line.starts_with("narrows ") => {
                    format!("{command} {more} > {file}\n")
                }
                _ if line.starts_with("narrows ") => format!("{line} {more}\n"),
                _ => format!("{line}\n"),
            };
            commands = commands.replace("\\\n", "").lines().map(with).collect();
        }
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &commands]).current_dir(self.dir.path());
        let programs = Path::new(BINARY).parent().unwrap().display();
        let path = std::env::var("PATH").unwrap();
        shell.env("PATH", format!("{programs}:{path}")).env("NO_COLOR", "1");
        shell
    }

    fn run(&mut self, block: &Block) {
        let place = format!("docs/{}:{}", self.name, block.line);
        let mut shell = self.shell(block);
        if block.background {
            let mut child = shell
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
                .unwrap();
            let mut first = String::new();
            let mut lines = BufReader::new(child.stdout.take().unwrap());
            lines.read_line(&mut first).unwrap();
            assert!(!first.is_empty(), "{place}: it ended without a word");
            // What it prints has somewhere to go for as long as it lasts.
            std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
            self.background.push(Group(child));
            return;
        }
        let says_all = |output: &Output| {
            let answer = said(output);
            block.says.iter().all(|words| answer.contains(words))
        };
        let output =
            look_until(|| shell.output().unwrap(), |output| !block.until || says_all(output));
        let answer = said(&output);
        assert_eq!(output.status.code(), Some(block.fails), "{place}: {answer}");
        assert!(!answer.contains("panicked"), "{place}: {answer}");
        for words in &block.says {
            assert!(answer.contains(words), "{place}: \"{words}\" is not in: {answer}");
        }
    }
}

fn run_page(name: &str) {
    let text = std::fs::read_to_string(docs().join(name)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ports = [(); 3].map(|()| testbed::free_port());
    let mut page = Page { name, background: Vec::new(), dir, ports };
    let blocks = blocks(&text);
    assert!(!blocks.is_empty(), "docs/{name} has no commands");
    blocks.iter().for_each(|block| page.run(block));
}

/// A test for each page with commands, and [`PAGES`].
macro_rules! pages_with_commands {
    ($($test:ident: $page:literal,)+) => {
        $(#[test] fn $test() { run_page($page) })+

        /// In the order of a reader: the first two tell of no trouble.
        const PAGES: &[&str] = &[$($page),+];
    };
}

pages_with_commands! {
    the_commands_of_start_here_run: "start.md",
    the_commands_of_benchmark_replication_here_run: "benchmark-replication.md",
    the_commands_of_my_recovery_is_slow_run: "slow-recovery.md",
    the_commands_of_steer_a_recovery_run: "steer.md",
    the_commands_of_my_follower_lags_run: "lagging-follower.md",
    the_commands_of_my_bucket_streams_slowly_run: "slow-bucket.md",
    the_commands_of_one_node_ruins_my_searches_run: "slow-node.md",
    the_commands_of_what_if_run: "what-if.md",
    the_commands_of_write_a_plan_run: "write-a-plan.md",
    the_commands_of_add_a_cause_run: "add-a-cause.md",
    the_commands_of_did_my_change_help_run: "compare.md",
    the_commands_of_run_a_track_run: "tracks.md",
}

#[test]
fn every_page_with_commands_is_run_and_every_link_leads_somewhere() {
    let pages = pages();
    for name in &pages {
        let path = docs().join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(PAGES.contains(&name.as_str()), !blocks(&text).is_empty(), "{name}");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let target = path.parent().unwrap().join(link).canonicalize();
            let target = target.unwrap_or_else(|_| panic!("docs/{name}: {link} leads nowhere"));
            // mdBook renders what is in the table of contents, and copies files below docs/ that are no Markdown.
            let page = target.strip_prefix(docs().canonicalize().unwrap());
            let page = page.unwrap_or_else(|_| panic!("docs/{name}: {link} leads out of docs/"));
            let page = page.to_str().unwrap().to_owned();
            let is_there = !page.ends_with(".md") || pages.contains(&page);
            assert!(is_there, "docs/{name}: {link} is not in SUMMARY.md");
        }
    }
    // What a reader sees comes first, and the proof that it is better last; but the first two tell of no trouble.
    for name in &PAGES[2..] {
        let text = std::fs::read_to_string(docs().join(name)).unwrap();
        let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(
            (titles[0], *titles.last().unwrap()),
            ("## What you see", "## That it is better"),
            "{name}"
        );
        assert!(text.contains("## What you see\n```text\n"), "{name} begins with no screen");
        let (_, proof) = text.split_once("## That it is better\n").unwrap();
        let is_proved = blocks(proof).iter().any(|block| !block.says.is_empty());
        assert!(is_proved, "{name} ends without words that prove it");
    }
}

#[test]
fn blocks_are_read_with_their_notes() {
    let text = "a\n\n<!-- test: with --scale 0.1 -->\n<!-- test: says \"x\\\"y\" -->\n```sh\nb \\\n  c\n```\n```text\nd\n```\n";
    let block = Block {
        line: 5,
        commands: "b \\\n  c\n".to_owned(),
        with: Some("--scale 0.1".to_owned()),
        says: vec!["x\"y".to_owned()],
        ..Block::default()
    };
    assert_eq!(blocks(text), [block]);
}
