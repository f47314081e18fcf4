//! What is looked for. The numbers of the first run were measured: `run remote-recovery` at its full size has six nodes
//! and a runner, which hold 1.1 GB of memory and 325 MB of temporary files, and go well with 256 open files each.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use clusters::{DEFAULT_HEAP, OpenSearchClusters, Release};
use machine::{CONTROL_GROUPS, FOR_TESTS, JAVA, JAVA_21, MAVEN, OWN_DISKS, OWN_MOUNTS, STRESS_NG};
use record::units::show_bytes;

use super::finding::{Finding, Group, State};

const MEMORY_BYTES: u64 = 1_100_000_000;
const NODES_BYTES: u64 = 325_000_000;
const OPEN_FILES: u64 = 256;
/// Without so much the run says itself that there is no room.
const ROOM_BYTES_MIN: u64 = 16 << 20;
/// Each client of `load` and each node has its connections; most systems allow so many files.
const OPEN_FILES_USUAL: u64 = 1024;
/// Its heap of 512 MB, and as much again outside of it.
const OPENSEARCH_NODE_BYTES: u64 = 1 << 30;
/// One on each side of the link.
const OPENSEARCH_NODES: u64 = 2;

const SMALLER: &str = "run it with --scale 0.05";

/// Nodes of the embedded engine on this machine.
pub(super) fn first_run(runs: &Path) -> Group {
    let temporary = std::env::temp_dir();
    let elsewhere = "set TMPDIR to a directory that can be written and has room";
    let other_runs = "name a directory that can be written and has room with --runs";
    Group {
        title: "the first run: narrows run remote-recovery; also cluster, link, load, dcp serve, calibrate",
        findings: vec![
            cores_and_memory(),
            loopback(),
            open_files(),
            room("room for nodes (TMPDIR)", &temporary, NODES_BYTES, elsewhere),
            room("room for records (--runs)", runs, 0, other_runs),
        ],
    }
}

/// OpenSearch nodes on this machine.
pub(super) fn opensearch() -> Group {
    let only_three = "3.0.0 cannot be started, other releases can";
    Group {
        title: "OpenSearch started here: run, diagnose, calibrate, published with --on opensearch",
        findings: vec![
            Finding::of(&JAVA, State::Lacks, ""),
            Finding::of(&JAVA_21, State::Less, only_three),
            maven(),
            opensearch_memory(memory_bytes()),
        ],
    }
}

/// What is done to nodes while a plan runs.
pub(super) fn faults() -> Group {
    let waits = "the embedded engine waits in place of it, OpenSearch is not slowed";
    let slowed = "a loaded node is slowed in place of it";
    let no_slow_disk = "diagnose --bench slows no disk of OpenSearch";
    let not_filled = "no disk is filled on processes, only with --on virtual";
    Group {
        title: "faults on processes: plans with slow or loaded nodes or full disks, diagnose",
        findings: vec![
            Finding::of(&CONTROL_GROUPS, State::Less, waits),
            Finding::of(&STRESS_NG, State::Less, slowed),
            Finding::of(&OWN_MOUNTS, State::Less, not_filled),
            Finding::of(&OWN_DISKS, State::Less, no_slow_disk),
        ],
    }
}

/// Clusters behind TLS.
pub(super) fn tls() -> Group {
    let what = "trusted authorities";
    let finding = match clusters::trusted_authorities() {
        0 => Finding::not_here(
            what,
            State::Less,
            "this system has none: no https cluster is believed".to_owned(),
            "apt-get install ca-certificates, or give the cluster's own with --ca FILE",
        ),
        n => Finding::here(what, format!("{n}, of this system")),
    };
    Group {
        title: "live clusters: watch, explain, what-if, steer, restore, load, store, run --on https://..., dcp drain",
        findings: vec![finding],
    }
}

/// What `cargo test` in a clone needs.
pub(super) fn tests() -> Group {
    let findings = FOR_TESTS.iter().map(|tool| Finding::of(tool, State::Less, ""));
    Group {
        title: "the tests of a clone: cargo test --release --workspace",
        findings: findings.collect(),
    }
}

/// What this process may have; 0 where the system does not tell.
fn memory_bytes() -> u64 {
    let whole = lab::machine::describe().memory_bytes;
    machine::memory_limit_bytes().map_or(whole, |limit| limit.min(whole))
}

fn cores_and_memory() -> Finding {
    let what = "cores and memory";
    let (cores, memory) = (lab::machine::describe().cores, memory_bytes());
    let found = format!("{cores} cores, {}", show_bytes(memory));
    match memory {
        0 => Finding::here(what, format!("{cores} cores; this system does not tell its memory")),
        1..MEMORY_BYTES => {
            let needs = format!("{found}; at full size it takes {}", show_bytes(MEMORY_BYTES));
            Finding::not_here(what, State::Less, needs, SMALLER)
        }
        _ => Finding::here(what, found),
    }
}

fn loopback() -> Finding {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
        Ok(_) => Finding::here("loopback", "127.0.0.1 can be listened on".to_owned()),
        Err(error) => {
            let why = format!("127.0.0.1 cannot be listened on: {error}");
            Finding::not_here("loopback", State::Lacks, why, "bring it up: ip link set lo up")
        }
    }
}

fn open_files() -> Finding {
    let what = "open files";
    match machine::open_files_max() {
        None => Finding::here(what, "this system does not tell its limit".to_owned()),
        Some(u64::MAX) => Finding::here(what, "no limit".to_owned()),
        Some(most @ ..OPEN_FILES) => {
            let found = format!("{most} a process, and a node needs {OPEN_FILES}");
            Finding::not_here(what, State::Lacks, found, format!("ulimit -n {OPEN_FILES_USUAL}"))
        }
        Some(most @ ..OPEN_FILES_USUAL) => {
            let found = format!("{most} a process: few for load or link with many connections");
            Finding::not_here(what, State::Less, found, format!("ulimit -n {OPEN_FILES_USUAL}"))
        }
        Some(most) => Finding::here(what, format!("{most} a process")),
    }
}

/// Whether files can be made in a directory that may have to be made first, and whether `wanted` bytes fit.
fn room(what: &'static str, dir: &Path, wanted: u64, remedy: &str) -> Finding {
    let made = nearest(dir);
    let shown = dir.display();
    if let Err(error) = can_write(&made) {
        let found = format!("nothing can be written in {}: {error}", made.display());
        return Finding::not_here(what, State::Lacks, found, remedy);
    }
    match machine::free_bytes(&made) {
        None => Finding::here(what, format!("{shown}; this system does not tell how much is free")),
        Some(free) => {
            let found = format!("{} free in {shown}", show_bytes(free));
            match free {
                ..ROOM_BYTES_MIN => Finding::not_here(what, State::Lacks, found, remedy),
                free if free < wanted => {
                    let needs = format!("{found}; at full size {} are used", show_bytes(wanted));
                    Finding::not_here(what, State::Less, needs, format!("{remedy}, or {SMALLER}"))
                }
                _ => Finding::here(what, found),
            }
        }
    }
}

/// The directory, or the nearest above it that there is.
fn nearest(dir: &Path) -> PathBuf {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let there = whole.ancestors().find(|above| above.exists());
    there.unwrap_or(dir).to_owned()
}

fn can_write(dir: &Path) -> io::Result<()> {
    // It has no name, so nothing is left even where this is killed.
    io::Write::write_all(&mut tempfile::tempfile_in(dir)?, b"narrows doctor")
}

/// Maven is needed where a release has yet to be fetched.
fn maven() -> Finding {
    let what = "Maven, or jars fetched before";
    let built = |release: &&Release| OpenSearchClusters::built(release).is_some();
    let built: Vec<&str> =
        Release::all().iter().filter(built).map(|release| release.name).collect();
    let Some(cache) = OpenSearchClusters::cache_dir() else {
        let found =
            "no directory to keep jars in: neither NARROWS_CACHE nor HOME is set".to_owned();
        return Finding::not_here(what, State::Lacks, found, "set NARROWS_CACHE to a directory");
    };
    let kept = match built.is_empty() {
        true => String::new(),
        false => format!("{} in {}", built.join(", "), cache.display()),
    };
    match MAVEN.look() {
        Ok(found) if kept.is_empty() => {
            Finding::here(what, format!("{found}; the first run fetches OpenSearch"))
        }
        Ok(found) => Finding::here(what, format!("{found}; {kept}")),
        Err(why) if kept.is_empty() => Finding::not_here(what, State::Lacks, why, MAVEN.remedy),
        Err(why) if built.contains(&Release::DEFAULT) => {
            Finding::here(what, format!("{kept}; for others {why}"))
        }
        Err(why) => {
            let found = format!("{why}: {kept}, and not {}", Release::DEFAULT);
            Finding::not_here(what, State::Less, found, MAVEN.remedy)
        }
    }
}

fn opensearch_memory(memory: u64) -> Finding {
    let what = "memory for two nodes";
    let needed = OPENSEARCH_NODES * OPENSEARCH_NODE_BYTES;
    let found = format!(
        "{}; a node with a heap of {DEFAULT_HEAP} takes up to {}",
        show_bytes(memory),
        show_bytes(OPENSEARCH_NODE_BYTES)
    );
    match memory {
        0 => Finding::here(what, "this system does not tell".to_owned()),
        memory if memory < needed => {
            Finding::not_here(what, State::Less, found, "give nodes less with --heap 256m")
        }
        _ => Finding::here(what, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_lacks_and_what_is_small_is_less() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        let found = room("room", &deep, 0, "elsewhere");
        assert_eq!(found.state, State::Here, "{found:?}");
        assert!(!dir.path().join("a").exists(), "a look makes nothing");
        let found = room("room", &deep, u64::MAX, "elsewhere");
        assert_eq!(found.state, State::Less);
        assert!(found.remedy.unwrap().contains("--scale"));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let found = room("room", &file.join("runs"), 0, "elsewhere");
        assert_eq!((found.state, found.remedy.as_deref()), (State::Lacks, Some("elsewhere")));
    }

    #[test]
    fn little_memory_is_said_with_the_option_that_takes_less() {
        let found = opensearch_memory(1 << 30);
        assert_eq!(found.state, State::Less);
        assert!(found.remedy.unwrap().contains("--heap"));
        assert_eq!(opensearch_memory(8 << 30).state, State::Here);
    }
}
