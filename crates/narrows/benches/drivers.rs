//! One track by a driver in Python and by narrows, in turn, against one node: whether the figures of both agree within
//! what laps differ, and what core time each driver takes.
//!
//! OpenSearch Benchmark races against OpenSearch; esrally, which refuses OpenSearch, against Elasticsearch 7.10.2. A
//! lap makes an index, fills it with a log as fast as it goes, merges it to one segment, searches it at a rate far
//! below what the node can do, and then as fast as it goes (`drivers/track.json`). Two laps of each driver before the
//! others are not counted: they are for the compiler of the JVM. Needs Java, mvn and what `.ci/clients` installs.
//! `NARROWS_BENCH_LAPS` (5) changes its size; `NARROWS_BENCH_ONLY` is a part of the names of drivers that race.

mod common;

use std::fs;
use std::process::{Command, Stdio};

use clusters::{Clusters, OpenSearchClusters, Release, TopologySpec};
use insight::stats::median;
use insight::words::three_digits;
use lab::corpus::{BulkBodies, Corpus, Source};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::bench::Table;
use world::Env;

const CLUSTER: &str = "drivers";
const CORPUS: Corpus = Corpus::HttpLogs;
/// As many as the track says.
const DOCUMENTS: u64 = 120_000;
/// Tasks of the track that are compared.
const TASKS: [&str; 5] = ["index-append", "term", "match", "by-minute", "statuses"];
const FIGURES: [&str; 3] = ["mean throughput /s", "service time p50 ms", "service time p99 ms"];

/// A driver in Python, and how it is run.
struct Driver {
    /// What it races against.
    release: &'static str,
    /// How it is told to race, by which name, and before the track's folder.
    race: [&'static str; 3],
    /// Where it leaves its results in its home.
    results: &'static str,
    /// Called as its package and its program are.
    table: Table,
}

static DRIVERS: [Driver; 2] = [
    Driver {
        release: Release::DEFAULT,
        race: ["run", "--test-run-id=lap", "--workload-path"],
        results: ".benchmark/benchmarks/test-runs/lap/test_run.json",
        table: table("opensearch-benchmark"),
    },
    Driver {
        release: "elasticsearch-7.10.2",
        race: ["race", "--race-id=lap", "--track-path"],
        results: ".rally/benchmarks/races/lap/race.json",
        table: table("esrally"),
    },
];

const fn table(name: &'static str) -> Table {
    let columns = &["task", "figure", "driver in Python (laps)", "narrows (laps)", "agree"];
    Table { page: "drivers", name, columns }
}

impl Driver {
    /// Its program, where `.ci/clients` put it, in the version that the list of the tests has.
    fn program(&self) -> String {
        let name = self.table.name;
        let mut lines = include_str!("../tests/clients/list.txt").lines();
        let version =
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.split(' ').next());
        let place = format!("pip-{name}-{}/bin/{name}", version.expect("the list has it"));
        let program = testbed::tools::clients_folder().join(place);
        assert!(program.exists(), "there is no {}: run .ci/clients", program.display());
        program.display().to_string()
    }
}

/// Of each task its [`FIGURES`], and the core time of the driver in seconds.
type Lap = Vec<f64>;

/// A driver, the folder of the track, and the address of the node.
struct Race {
    driver: &'static Driver,
    track: TempDir,
    host: String,
}

impl Race {
    /// Writes the track, under both names of its file, and its documents.
    fn new(driver: &'static Driver, host: String) -> Race {
        let track = tempfile::tempdir().expect("a temporary directory can be made");
        let mut lines = Vec::new();
        let source = Source::Generated(CORPUS);
        for body in BulkBodies::new(&source, 42, 0..DOCUMENTS, 1).expect("it is generated") {
            let body = body.expect("it is generated").body;
            let action = body.iter().position(|byte| *byte == b'\n').expect("it is a line");
            lines.extend_from_slice(&body[action + 1..]);
        }
        let mapping = json!({ "mappings": CORPUS.mapping() }).to_string();
        for (name, bytes) in [
            ("track.json", &include_bytes!("drivers/track.json")[..]),
            ("workload.json", &include_bytes!("drivers/track.json")[..]),
            ("index.json", mapping.as_bytes()),
            ("documents.json", lines.as_slice()),
        ] {
            fs::write(track.path().join(name), bytes).expect("a file can be written");
        }
        Race { driver, track, host }
    }

    /// The laps of the driver and those of narrows, without the first two of each.
    fn laps(&self) -> (Vec<Lap>, Vec<Lap>) {
        let laps = (0..2 + common::sized("NARROWS_BENCH_LAPS", 5)).map(|lap| {
            let both = (self.by_driver(), self.by_narrows());
            eprintln!("lap {lap}, {} and narrows: {both:.2?}", self.driver.table.name);
            both
        });
        laps.skip(2).unzip()
    }

    fn by_driver(&self) -> Lap {
        let [command, id, track] = self.driver.race;
        let (program, hosts) = (self.driver.program(), format!("--target-hosts={}", self.host));
        let folder = self.folder();
        let words = [program.as_str(), command, id, track, &folder, &hosts];
        let rest = ["--pipeline=benchmark-only", "--on-error=abort", "--offline"];
        let (home, _, core_s) = timed(&[&words[..], &rest[..]].concat());
        let found = fs::read(home.path().join(self.driver.results)).expect("it left its results");
        let found: Value = serde_json::from_slice(&found).expect("they are JSON");
        let of = |row: &Value| {
            ["/error_rate", "/throughput/mean", "/service_time/50_0", "/service_time/99_0"]
                .map(|place| number(row, place))
        };
        lap(&found["results"]["op_metrics"], "task", of, core_s)
    }

    fn by_narrows(&self) -> Lap {
        let (program, on) = (env!("CARGO_BIN_EXE_narrows"), format!("--on=http://{}", self.host));
        let rest = ["--allow-changes", "--json", "--runs=runs"];
        let (_home, said, core_s) =
            timed(&[&[program, "run", &self.folder(), &on][..], &rest[..]].concat());
        let found: Value = serde_json::from_str(&said).expect("it prints JSON");
        let of = |row: &Value| {
            let of_lap = |name| number(&row["laps"][0], name);
            // The Python drivers count documents, narrows counts bulk requests.
            let documents = (of_lap("/documents") / of_lap("/requests")).max(1.0);
            let per_s = of_lap("/throughput/mean_per_s") * documents;
            let [p50_ms, p99_ms] = ["/service_time/p50_ms", "/service_time/p99_ms"].map(of_lap);
            [number(row, "/failed"), per_s, p50_ms, p99_ms]
        };
        lap(&found["loads"], "operation", of, core_s)
    }

    fn folder(&self) -> String {
        self.track.path().display().to_string()
    }
}

/// Runs a command to its end, and to that of all that it started: its home, what it said, the core time of them all.
fn timed(command: &[&str]) -> (TempDir, String, f64) {
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    fs::write(home.path().join("command"), command.join("\n")).expect("a file can be written");
    let mut timing = Command::new(testbed::tools::python());
    timing.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/drivers/core_time.py"));
    timing.arg(home.path()).env("HOME", home.path()).current_dir(&home).stdin(Stdio::null());
    let output = timing.output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {said}{errors}", output.status);
    let core_s = fs::read_to_string(home.path().join("core_s")).expect("it was written");
    (home, said, core_s.parse().expect("it is a number"))
}

fn number(row: &Value, place: &str) -> f64 {
    let number = row.pointer(place).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("there is no {place} in {row}"))
}

/// A lap out of the rows of its tasks; `of` reads errors and [`FIGURES`] out of one.
fn lap(rows: &Value, named: &str, of: impl Fn(&Value) -> [f64; 4], core_s: f64) -> Lap {
    let mut lap = Vec::new();
    for task in TASKS {
        let row = rows.as_array().into_iter().flatten().find(|row| row[named] == task);
        let [errors, figures @ ..] = of(row.unwrap_or_else(|| panic!("no {task} in {rows}")));
        assert_eq!(errors, 0.0, "errors of {task} in {rows}");
        lap.extend(figures);
    }
    lap.push(core_s);
    lap
}

/// The least, the median and the most of a figure over laps.
fn spread(laps: &[Lap], at: usize) -> [f64; 3] {
    let mut all: Vec<f64> = laps.iter().map(|lap| lap[at]).collect();
    all.sort_by(f64::total_cmp);
    [all[0], median(&all).expect("there is a lap"), all[all.len() - 1]]
}

fn shown(spread: [f64; 3]) -> String {
    let [least, median, most] = spread.map(three_digits);
    format!("{median} ({least} to {most})")
}

/// Whether the ranges of the laps have a value in common; where not, how far the medians are apart.
fn agreement(theirs: [f64; 3], ours: [f64; 3]) -> String {
    match theirs[0] <= ours[2] && ours[0] <= theirs[2] {
        true => "yes".to_owned(),
        false => format!("no, {:+.1} %", (ours[1] / theirs[1] - 1.0) * 100.0),
    }
}

fn add_rows(table: &Table, theirs: &[Lap], ours: &[Lap]) {
    let figures = TASKS.into_iter().flat_map(|task| FIGURES.map(|figure| (task, figure)));
    for (at, (task, figure)) in figures.chain([("all", "core time of the driver s")]).enumerate() {
        let (theirs, ours) = (spread(theirs, at), spread(ours, at));
        let last = match task {
            "all" => format!("1/{:.0} of it", theirs[1] / ours[1]),
            _ => agreement(theirs, ours),
        };
        table.row(&[task, figure, &shown(theirs), &shown(ours), &last]);
    }
}

async fn bench(env: &Env, driver: &'static Driver) {
    let release = Release::named(driver.release).expect("it can be started");
    let topology = TopologySpec::alone(CLUSTER, 1);
    let mut node = OpenSearchClusters::new(env).with_release(release);
    node.start(&topology).await.expect("the node starts: java and mvn are there");
    let race = Race::new(driver, node.nodes(CLUSTER).swap_remove(0).http);
    // On a thread of its own: this one reads what the node says.
    let laps = tokio::task::spawn_blocking(move || race.laps());
    let (theirs, ours) = laps.await.expect("every lap ends well");
    driver.table.begin();
    add_rows(&driver.table, &theirs, &ours);
    node.stop().await;
}

fn main() {
    let only = std::env::var("NARROWS_BENCH_ONLY").unwrap_or_default();
    for driver in DRIVERS.iter().filter(|driver| driver.table.name.contains(&only)) {
        world::real_world::run(1, async |env| bench(&env, driver).await);
    }
}
