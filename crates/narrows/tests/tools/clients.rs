//! Other people's clients, unchanged, against clusters of processes. `tests/clients/list.txt` says which, and
//! `.ci/clients` installs them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::cluster::Cluster;
use crate::common::{all_end, files_below, folded, json, narrows, processes_of_home};

/// What each program does, and says that it did, in this order.
const STEPS: [&str; 12] = [
    "create index", "cluster health", "bulk", "refresh", "search", "aggregate", "get", "update",
    "scroll", "delete by id", "error", "delete index",
];

/// What those of Python, of JavaScript and of the shell do besides.
const NEWER: [&str; 6] = [
    "template", "reindex", "field capabilities", "delete by query", "point in time",
    "update by query",
];

/// Longer than any of them takes beside other tests.
const SECONDS_MAX: u32 = 900;

/// A line of the list.
#[derive(Clone, Copy, Debug)]
struct Client {
    name: &'static str,
    version: &'static str,
    registry: &'static str,
    releases: &'static str,
    /// Its file among the tests, or what is done with it, and its arguments.
    program: &'static str,
    argument: Option<&'static str>,
}

/// What is done with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A program does all of [`STEPS`].
    Program,
    /// A driver races the track.
    Race,
    /// It copies an index out and in.
    Copies,
}

impl Client {
    fn all() -> Vec<Client> {
        let lines = include_str!("../clients/list.txt").lines();
        lines.filter(|line| !line.starts_with('#')).map(Client::read).collect()
    }

    fn read(line: &'static str) -> Client {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, version, registry, releases, program, ref arguments @ ..] = words[..] else {
            panic!("the list has the line {line:?}");
        };
        Client { name, version, registry, releases, program, argument: arguments.first().copied() }
    }

    fn named(name: &str) -> Client {
        Client::all().into_iter().find(|client| client.name == name).expect(name)
    }

    fn kind(self) -> Use {
        match (self.program, self.registry) {
            ("track/track.json", "pip") => Use::Race,
            ("copies", "npm") => Use::Copies,
            (_, "pip" | "npm" | "go" | "maven" | "system") => Use::Program,
            _ => panic!("no test runs {self:?}"),
        }
    }

    /// Where `.ci/clients` put it.
    fn home(self) -> PathBuf {
        let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '-');
        let name: String = self.name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        testbed::tools::clients_folder().join(format!("{}-{name}-{}", self.registry, self.version))
    }

    /// Its program, without the address.
    fn command(self) -> Vec<String> {
        let home = self.home();
        let program = tests(self.program).display().to_string();
        let inside = |path: &str| home.join(path).display().to_string();
        let mut words = match self.registry {
            // Warnings that a way of asking will go away are no matter of the cluster.
            "pip" => vec![inside("bin/python"), "-Wignore::DeprecationWarning".to_owned(), program],
            "npm" => vec!["node".to_owned(), program],
            "go" => vec![inside("documents")],
            "maven" => {
                let path = fs::read_to_string(home.join("classpath")).unwrap();
                let fast = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"];
                fast.map(str::to_owned).into_iter().chain([path, program]).collect()
            }
            _ => vec!["sh".to_owned(), program],
        };
        words.extend(self.argument.map(str::to_owned));
        words
    }

    /// A cluster that presents itself as a release.
    fn clusters(self) -> impl Iterator<Item = Cluster> {
        self.releases.split(',').map(|release| Cluster::start_as(release, 2))
    }
}

/// A file or folder among the clients' programs.
fn tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Somebody else's program with a home of its own, in which nothing outlives it.
struct Session {
    home: TempDir,
}

impl Drop for Session {
    fn drop(&mut self) {
        for pid in processes_of_home(self.home.path()) {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
    }
}

impl Session {
    fn new() -> Session {
        Session { home: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Runs a program to its end; what it printed. It speaks into files: what it starts may live on with them open.
    #[track_caller]
    fn run(&self, words: &[String], client: Client) -> String {
        let (out, errors) = (self.path("out"), self.path("errors"));
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &SECONDS_MAX.to_string()]).args(words);
        command.current_dir(&self.home).env("HOME", self.home.path());
        command.env("NODE_PATH", client.home().join("node_modules")).stdin(Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&errors).unwrap());
        let status = command.status().unwrap();
        let said = fs::read_to_string(out).unwrap();
        let all = || said.clone() + &fs::read_to_string(&errors).unwrap();
        assert!(status.success(), "{client:?} ended with {status}: {}", all());
        all_end(&processes_of_home(self.home.path()));
        said
    }
}

/// Each client of a registry that has a program does all that it says, on each release.
fn programs_of(registry: &str) {
    let of_registry =
        |client: &Client| client.registry == registry && client.kind() == Use::Program;
    let clients: Vec<Client> = Client::all().into_iter().filter(of_registry).collect();
    assert!(!clients.is_empty());
    for client in clients {
        for cluster in client.clusters() {
            let mut words = client.command();
            words.push(cluster.url().to_owned());
            let said = Session::new().run(&words, client);
            let line: Value = serde_json::from_str(said.trim()).expect(&said);
            assert_eq!(line["did"], serde_json::json!(STEPS), "{client:?}");
            if !["go", "maven"].contains(&client.registry) {
                assert_eq!(line["newer"], serde_json::json!(NEWER), "{client:?}");
            }
            if client.version != "any" {
                assert_eq!(line["version"], client.version, "{client:?}");
            }
            assert_eq!(cluster.indices(), Vec::<String>::new(), "{client:?}");
        }
    }
}

pub fn clients_of_python_work() {
    programs_of("pip");
}

pub fn clients_of_javascript_work() {
    programs_of("npm");
}

pub fn the_client_of_go_works() {
    programs_of("go");
}

pub fn the_client_of_java_works() {
    programs_of("maven");
}

pub fn curl_works() {
    programs_of("system");
}

/// Documents of the track.
fn documents(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let (time, word) = (1_700_000_000_000_u64 + n as u64 * 60_000, n % 7);
        let place = format!("[{},{}]", n % 90, n % 45);
        let _ = writeln!(
            text,
            "{{\"@timestamp\":{time},\"number\":{n},\"word\":\"w{word}\",\"text\":\"number {n} is here\",\
             \"place\":{place}}}"
        );
        text
    })
}

/// The track as a driver reads it, with documents; the file of its parameters.
fn track(session: &Session, name: &str) -> PathBuf {
    let folder = session.path("track");
    fs::create_dir(&folder).unwrap();
    fs::copy(tests("track/track.json"), folder.join(name)).unwrap();
    fs::copy(tests("track/index.json"), folder.join("index.json")).unwrap();
    let all = documents(2000);
    fs::write(folder.join("documents.json"), &all).unwrap();
    // In test mode a driver takes the file of a thousand documents.
    fs::write(folder.join("documents-1k.json"), documents(1000)).unwrap();
    let parameters = session.path("parameters.json");
    let of = serde_json::json!({ "document_count": 2000, "uncompressed_bytes": all.len() });
    fs::write(&parameters, of.to_string()).unwrap();
    parameters
}

/// Races the track in test mode; the driver's own results hold each of its tasks, and no error.
fn race(name: &str, file: &str, words: &[&str], results: &str) {
    let client = Client::named(name);
    for cluster in client.clusters() {
        // The track begins by deleting it.
        cluster.ask("PUT", "/numbers", "{}");
        let session = Session::new();
        let parameters = track(&session, file);
        let track = session.path("track");
        let (program, word) = words.split_first().unwrap();
        let mut command = vec![client.home().join("bin").join(program).display().to_string()];
        command.extend(word.iter().map(|word| {
            let word = word.replace("TRACK", &track.display().to_string());
            word.replace("PARAMETERS", &parameters.display().to_string())
        }));
        command.extend(
            ["--pipeline=benchmark-only", "--on-error=abort", "--offline", "--test-mode"]
                .map(str::to_owned),
        );
        let hosts: Vec<&str> =
            cluster.urls.iter().map(|url| url.strip_prefix("http://").unwrap()).collect();
        command.push(format!("--target-hosts={}", hosts.join(",")));
        let said = session.run(&command, client);
        let found = only_file(&session.path(results), ".json");
        let found: Value = serde_json::from_str(&fs::read_to_string(found).unwrap()).unwrap();
        let rows = found["results"]["op_metrics"].as_array().expect(&said);
        let tasks: Vec<&str> = rows.iter().map(|row| row["task"].as_str().unwrap()).collect();
        assert_eq!(tasks, TASKS, "{said}");
        for row in rows {
            assert_eq!(row["error_rate"], 0.0, "{name}: {row}");
        }
        assert_eq!(cluster.ask("GET", "/numbers/_count", "")["count"], 1000);
    }
}

/// Tasks of the track that a driver's results have.
const TASKS: [&str; 14] = [
    "delete-index", "create-index", "wait-until-green", "bulk", "refresh", "force-merge",
    "wait-until-merges-finish", "put-settings", "node-stats", "range", "by-the-hour", "scroll",
    "sleep", "several-at-once",
];

/// The one file below a folder whose name ends so.
fn only_file(folder: &Path, end: &str) -> PathBuf {
    let mut found = files_below(folder);
    found.retain(|path| path.to_string_lossy().ends_with(end));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Both listen on one port of their own, so they race one after the other.
pub fn drivers_race_a_track() {
    let words =
        ["opensearch-benchmark", "run", "--workload-path=TRACK", "--workload-params=PARAMETERS"];
    race("opensearch-benchmark", "workload.json", &words, ".benchmark/benchmarks/test-runs");
    let words = ["esrally", "race", "--track-path=TRACK", "--track-params=PARAMETERS"];
    race("esrally", "track.json", &words, ".rally/benchmarks/races");
}

/// Where esrally keeps what it does, and in which store it looks for races. Its file has to have all of this.
fn esrally_with(session: &Session, store: &Cluster) {
    let (host, port) = store.url().strip_prefix("http://").unwrap().split_once(':').unwrap();
    let home = session.path(".rally").display().to_string();
    fs::create_dir(&home).unwrap();
    let file = format!(
        "[meta]\nconfig.version = 17\n\
         [system]\nenv.name = narrows\n\
         [node]\nroot.dir = {home}/benchmarks\nsrc.root.dir = {home}/src\n\
         [benchmarks]\nlocal.dataset.cache = {home}/data\n\
         [reporting]\ndatastore.type = elasticsearch\ndatastore.host = {host}\ndatastore.port = {port}\n\
         datastore.secure = False\ndatastore.user =\ndatastore.password =\n\
         [tracks]\ndefault.url = none\n\
         [teams]\ndefault.url = none\n\
         [distributions]\nrelease.cache = true\n\
         [defaults]\npreserve_benchmark_candidate = false\n"
    );
    fs::write(session.path(".rally/rally.ini"), file).unwrap();
}

/// By the queries that its own commands ask a metrics store.
pub fn esrally_lists_and_compares_races_that_narrows_stored() {
    let client = Client::named("esrally");
    let (store, session) = (Cluster::start(1), Session::new());
    let runs = session.path("runs").display().to_string();
    let track = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tracks/shop/track.json");
    let short = ["run", track, "--generate", "--test-mode", "--on", "virtual", "--json"];
    let races = [1, 2].map(|_| {
        let run = json(&narrows(
            &[&short[..], &["--runs", runs.as_str(), "--store", store.url()]].concat(),
        ));
        run["run"].as_str().unwrap().to_owned()
    });
    store.ask("POST", "/rally-races-*/_refresh", "");
    esrally_with(&session, &store);
    let program = client.home().join("bin/esrally").display().to_string();
    let said = |words: &[&str]| {
        let words = [&[program.as_str()][..], words, &["--offline"]].concat();
        session.run(&words.into_iter().map(str::to_owned).collect::<Vec<_>>(), client)
    };
    let listed = said(&["list", "races"]);
    for race in &races {
        assert!(listed.contains(race.as_str()), "{listed}");
    }
    let [baseline, contender] = &races;
    let both = [format!("--baseline={baseline}"), format!("--contender={contender}")];
    let compared = said(&["compare", &both[0], &both[1]]);
    for part in ["one-item", "Median Throughput", "100th percentile service time"] {
        assert!(compared.contains(part), "{part}: {compared}");
    }
}

/// Out of a cluster into files, and from there into another index.
pub fn elasticdump_copies_an_index_out_and_in() {
    let client = Client::named("elasticdump");
    let program = client.home().join("node_modules/.bin/elasticdump").display().to_string();
    for cluster in client.clusters() {
        let body = fs::read_to_string(tests("track/index.json")).unwrap();
        cluster.ask("PUT", "/numbers", &body);
        let lines = documents(1000).lines().enumerate().fold(String::new(), |text, (id, line)| {
            format!("{text}{{\"index\":{{\"_id\":\"{id}\"}}}}\n{line}\n")
        });
        assert_eq!(cluster.ask("POST", "/numbers/_bulk?refresh=true", &lines)["errors"], false);
        let session = Session::new();
        let url = cluster.url();
        for kind in ["settings", "mapping", "data"] {
            let file = session.path(kind).display().to_string();
            for (input, output) in
                [(format!("{url}/numbers"), file.clone()), (file.clone(), format!("{url}/copied"))]
            {
                let words = [
                    program.clone(),
                    format!("--input={input}"),
                    format!("--output={output}"),
                    format!("--type={kind}"),
                ];
                session.run(&words, client);
            }
        }
        cluster.ask("POST", "/copied/_refresh", "");
        let everything = r#"{"size":1000,"sort":["number"]}"#;
        let hits = |index: &str| {
            let found = cluster.ask("GET", &format!("/{index}/_search"), everything);
            let hits = found["hits"]["hits"].as_array().unwrap().clone();
            hits.into_iter()
                .map(|hit| (hit["_id"].clone(), hit["_source"].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(hits("copied").len(), 1000);
        assert_eq!(hits("copied"), hits("numbers"));
        let mapping =
            |index: &str| cluster.ask("GET", &format!("/{index}/_mapping"), "")[index].clone();
        assert_eq!(mapping("copied"), mapping("numbers"));
    }
}

/// `docs/clients.md` has each line of the list, and what is done with it.
pub fn the_matrix_of_clients_is_what_is_run() {
    let mut table = String::from(
        "| client | version | presented as | what is run |\n| --- | --- | --- | --- |\n",
    );
    for client in Client::all() {
        let what = match client.kind() {
            Use::Program | Use::Race => {
                format!("`crates/narrows/tests/clients/{}`", client.program)
            }
            Use::Copies => "settings, mapping and documents of an index, out and in".to_owned(),
        };
        let Client { name, version, releases, .. } = client;
        let version = if version == "any" { "as installed" } else { version };
        let _ =
            writeln!(table, "| {name} | {version} | {} | {what} |", releases.replace(',', ", "));
    }
    testbed::generated::check("docs/clients.md", "clients", &table);
    for (name, words) in [("steps", &STEPS[..]), ("newer", &NEWER[..]), ("tasks", &TASKS[..])] {
        let line = folded(&format!("{}.", words.join(", ")));
        testbed::generated::check("docs/clients.md", name, &format!("{line}\n"));
    }
}
