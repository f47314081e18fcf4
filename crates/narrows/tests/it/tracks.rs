//! Tracks as Rally reads them, run by the binary: a track of our own on the embedded engine and in virtual time, and
//! what is said of one that cannot be run.

use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use record::{RunDir, Status};
use serde_json::Value;

use crate::common::answering::{in_http, message, serving};
use crate::common::cluster::Cluster;
use crate::common::{
    command, failed, json, narrows, only_run, printed, refused, said, signal, spawned,
};

/// A challenge whose last task goes on for an hour.
const ENDLESS: &str = r#"{
  "name": "endless",
  "schedule": [
    { "operation": "index-append" },
    {
      "name": "writes",
      "operation": {
        "operation-type": "raw-request", "method": "POST", "path": "/orders/_doc", "body": { "item": "tea" }
      },
      "clients": 4,
      "time-period": 3600
    }
  ]
}"#;

/// A track of `tests/tracks`, with its documents, in a directory of the test's own.
struct Shop {
    dir: tempfile::TempDir,
    name: &'static str,
}

impl Shop {
    fn of(name: &'static str) -> Shop {
        let shop = Shop { dir: tempfile::tempdir().unwrap(), name };
        let track = format!("{}/tests/tracks/{name}", env!("CARGO_MANIFEST_DIR"));
        let copied = Command::new("cp").args(["-r", &track]).arg(shop.dir.path()).status();
        assert!(copied.unwrap().success());
        shop
    }

    /// The track `stock`, whose indices are made by templates.
    fn stock() -> Shop {
        Shop::of("stock")
    }

    fn new() -> Shop {
        let shop = Shop::of("shop");
        let items = ["tea", "coffee", "sugar", "milk"];
        let document = |n: usize| format!("{{\"item\":\"{}\",\"count\":{n}}}\n", items[n % 4]);
        let documents: String = (0..400).map(document).collect();
        std::fs::write(shop.folder().join("documents.json"), documents).unwrap();
        shop
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    fn runs(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    /// With a file in which this text has become that.
    fn with(self, file: &str, from: &str, to: &str) -> Shop {
        self.change(file, from, to);
        self
    }

    /// Changes a file: this text becomes that.
    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.folder().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = command(&["run"]);
        command.arg(self.folder().join("track.json"));
        command.arg("--runs").arg(self.runs()).args(more);
        command
    }

    #[track_caller]
    fn refused(&self, more: &[&str], words: &[&str]) {
        failed(&self.run(more), 2, words);
        assert!(!self.runs().exists(), "nothing is begun that cannot be run");
    }

    /// Has a task fail after documents were indexed: so many are not there, and are not waited for.
    fn failing_late(self) -> Shop {
        let wanted = "\"expected-value\": 40";
        let (all, more) = (format!("{wanted}0 }}"), format!("{wanted}1 }}"));
        let retried = ",\n        \"retry-until-success\": true,\n        \"include-in-reporting\"";
        let once = ",\n        \"include-in-reporting\"";
        let file = "challenges/default.json";
        self.with(file, &all, &more).with(file, retried, once)
    }

    /// The tasks of its only run that were measured, and how that ended.
    fn recorded(&self) -> (Vec<String>, Status) {
        let run = RunDir::open(&only_run(&self.runs())).unwrap();
        let loads = run.rows.iter().flat_map(|row| &row.loads);
        (loads.map(|load| load.operation.clone()).collect(), run.manifest.status)
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }
}

/// The figures of a task in the last lap.
fn task<'a>(found: &'a Value, name: &str) -> &'a Value {
    let loads = found["loads"].as_array().unwrap();
    let load = loads.iter().find(|load| load["operation"] == name);
    let load = load.unwrap_or_else(|| panic!("no task {name} in {loads:?}"));
    load["laps"].as_array().unwrap().last().unwrap()
}

#[track_caller]
fn check_figures(found: &Value, laps: usize) {
    assert_eq!((&found["plan"], &found["status"]), (&"shop".into(), &"complete".into()));
    for load in found["loads"].as_array().unwrap() {
        assert_eq!(load["laps"].as_array().unwrap().len(), laps, "{load}");
        assert_eq!(load["failed"], 0, "{load}");
    }
    let requests = |name: &str| task(found, name)["requests"].as_u64().unwrap();
    assert_eq!(task(found, "index-append")["documents"], 400);
    assert_eq!(task(found, "index-append")["only_warm_up"], true, "it ends within its warm-up");
    assert_eq!(requests("all-orders"), 40, "20 of each of two clients, without the warm-up");
    assert_eq!(requests("one-item"), 10);
    assert_eq!(requests("page-by-page"), 5, "its pages are one request");
    assert_eq!(requests("several"), 3);
    assert_eq!(task(found, "one-item")["rate_per_s"], 200.0);
    for name in ["create-index", "health", "force-merge", "node-stats", "put-settings", "pause"] {
        assert_eq!(requests(name), 1, "{name}");
    }
    let loads = found["loads"].as_array().unwrap();
    assert!(
        loads.iter().all(|load| load["operation"] != "until-all-are-there"),
        "it is not reported"
    );
    let pause = task(found, "pause")["service_time"]["p50_ms"].as_f64().unwrap();
    assert!(pause >= 99.0, "{pause}");
}

#[test]
fn a_track_runs_on_the_embedded_engine() {
    let shop = Shop::new();
    let found = json(&shop.run(&["--json", "--laps", "2", "--track-params", "bulk_size:40"]));
    check_figures(&found, 2);
    assert_eq!(task(&found, "index-append")["requests"], 10, "400 documents, 40 in each request");
    let run = RunDir::open(&only_run(&shop.runs())).unwrap();
    assert_eq!(run.manifest.challenge.as_deref(), Some("fill-and-search"));
    assert!(run.manifest.plan_text.contains("page-by-page"), "the track as it was rendered");
    let given = [("bulk_size".to_owned(), "40".to_owned())];
    assert_eq!(run.manifest.track_params, Some(given.into()));
    let shown = printed(&narrows(&["show", "--runs", shop.runs().to_str().unwrap()]));
    for line in ["Metric", "50th percentile latency", "page-by-page", "error rate"] {
        assert!(shown.contains(line), "{line} is not in: {shown}");
    }
    assert!(!shown.contains("99th percentile"), "no task has the requests for it: {shown}");
}

#[test]
fn a_track_runs_in_virtual_time_and_the_seed_decides() {
    let shop = Shop::new();
    let run = |seed: &str| json(&shop.run(&["--json", "--on", "virtual", "--seed", seed]));
    let (one, same, other) = (run("7"), run("7"), run("8"));
    check_figures(&one, 1);
    assert_eq!(one["loads"], same["loads"]);
    assert_ne!(one["loads"], other["loads"]);
    assert!(one["changes"].to_string().contains("counts all documents"), "{}", one["changes"]);
}

/// Each of two shards has one view at a time: whatever is left open would be an error of what follows.
#[test]
fn points_in_time_are_searched_page_by_page_and_none_is_left_open() {
    let several = r#"{ "operation": "several", "iterations": 3 },"#;
    let views = r#"{ "name": "views", "operation": { "operation-type": "put-settings",
        "body": { "persistent": { "search.max_open_pit_context": 2 } } } },"#;
    let composite = r#"{ "name": "several", "iterations": 3,
        "operation": { "operation-type": "composite", "requests": [
            { "operation-type": "open-point-in-time", "name": "opened", "index": "orders" },
            { "operation-type": "paginated-search", "with-point-in-time-from": "opened",
              "pages": "all", "results-per-page": 150,
              "body": { "sort": [ "count" ], "query": { "match_all": {} } } }
        ] } },"#;
    let at_points = format!("{views} {composite}");
    let shop = Shop::new().with("challenges/default.json", several, &at_points);
    for place in ["embedded", "virtual"] {
        check_figures(&json(&shop.run(&["--json", "--on", place])), 1);
    }
}

#[test]
fn points_in_time_are_opened_by_the_api_of_the_cluster_and_ended() {
    let requests = r##""requests": [
        { "operation-type": "open-point-in-time", "name": "opened", "index": "orders" },
        { "operation-type": "paginated-search", "with-point-in-time-from": "opened", "pages": 2,
          "body": { "sort": [ "count" ] } } ],
        "#was": ["##;
    for release in ["elasticsearch-7.10", "opensearch-2"] {
        let cluster = Cluster::start_as(release, 1);
        let shop = Shop::new();
        shop.change("operations/default.json", "\"requests\": [", requests);
        let tasks = ["--include-tasks", "create-index,index-append,refresh-after-index,several"];
        let there = ["--on", cluster.url(), "--allow-changes", "--json"];
        let found = json(&shop.run(&[&there[..], &tasks].concat()));
        let several = found["loads"].as_array().unwrap().last().unwrap();
        assert_eq!((&several["operation"], &several["failed"]), (&"several".into(), &0.into()));
        let left = cluster.ask("GET", "/_search/point_in_time/_all", "");
        assert_eq!(left["pits"].as_array().map(Vec::len), Some(0), "{left}");
    }
}

#[test]
fn what_cannot_be_run_is_said_with_its_place_before_anything_starts() {
    let shop = Shop::new();
    let refused = ["--challenge", "with-what-is-refused"];
    shop.refused(
        &refused,
        &["operations/default.json:41:", "esql", "in-its-own-words", "--skip-refused"],
    );
    let found = json(&shop.run(&[&refused[..], &["--skip-refused", "--json"]].concat()));
    let changes = found["changes"].to_string();
    assert!(changes.contains("in-its-own-words is left out"), "{changes}");
    assert_eq!(task(&found, "all-orders")["requests"], 5);
}

#[test]
fn mistakes_of_a_track_show_file_and_line() {
    let shop = Shop::new();
    shop.refused(&["--challenge", "fill"], &["no challenge \"fill\"", "? Challenges: "]);
    shop.refused(&["--include-tasks", "no-such-task"], &["no-such-task", "all-orders"]);
    shop.refused(
        &["--corpora", "no-such-folder"],
        &["--corpora no-such-folder", "no such directory"],
    );
    shop.refused(&["--track-params", "bulksize:5"], &["no parameter \"bulksize\""]);
    shop.refused(&["--track-params", "bulk_size"], &["number_of_shards:1"]);
    shop.refused(&["--variant", "x"], &["--variant is for plans"]);
    for (path, found) in [
        ("remote-recovery", "remote-recovery is none"),
        ("src/commands", "src/commands is a folder without track.json or workload.json"),
        ("no/such/folder", "no/such/folder is not there"),
    ] {
        refused(&["run", path, "--generate"], &["--generate is for a track, and", found]);
    }
    refused(&["run", "no/such/track.json"], &["no/such/track.json"]);

    let shop = Shop::new().with("operations/default.json", "\"bulk-size\"", "\"bulk-sise\"");
    shop.refused(&[], &["operations/default.json:4:", "bulk-sise", "did you mean \"bulk-size\"?"]);
    let (challenge, twenty) = ("challenges/default.json", "\"iterations\": 20");
    let shop = Shop::new().with(challenge, twenty, "\"iterations\": \"many\"");
    shop.refused(&[], &["challenges/default.json:31:", "iterations", "many"]);
    let (several, again) = ("\"operation\": \"several\"", "\"operation\": \"all-orders\"");
    let shop = Shop::new().with(challenge, several, again);
    let two = "two tasks are called \"all-orders\"";
    shop.refused(&[], &["challenges/default.json:42:", two, "challenges/default.json:31;"]);
    let shop = Shop::new();
    shop.refused(&["--scale", "0"], &["scale 0 is out of range"]);
    shop.refused(&["--scale", "5"], &["documents.json.bz2 is sent once", "--scale"]);
    let shop = Shop::new().with("index.json", "\"keyword\"", "\"keywrod\"");
    shop.refused(&[], &["index.json:10:", "keywrod"]);
    let shop = Shop::new().with("track.json", "default(10)", "nothing(10)");
    shop.refused(&[], &["track.json:2:", "Jinja", "nothing"]);
    let shop = Shop::new().with(challenge, "\"default\": true,", "\"default\": true");
    shop.refused(&[], &["challenges/default.json:", "no JSON"]);
}

#[test]
fn missing_documents_are_generated_when_that_is_asked_for_and_said() {
    let shop = Shop::new();
    std::fs::remove_file(shop.folder().join("documents.json")).unwrap();
    shop.refused(&[], &["documents.json.bz2 is not there", "--corpora", "--generate"]);
    let output = shop.run(&["--generate", "--test-mode", "--json", "--on", "virtual"]);
    let changes = json(&output)["changes"].to_string();
    assert!(changes.contains("corpus orders are made of the mapping of orders"), "{changes}");
    std::fs::remove_dir_all(shop.runs()).unwrap();
    shop.change("index.json", "\"item\": { \"type\": \"keyword\" },", "");
    shop.change("index.json", "\"count\": { \"type\": \"integer\" }", "");
    shop.refused(
        &["--generate"],
        &["no generator is like the corpus orders", "geopoint", "maps no field"],
    );
    shop.change(
        "track.json",
        "\"name\": \"orders\",\n      \"documents\"",
        "\"name\": \"geopoint\",\n      \"documents\"",
    );
    shop.change(
        "index.json",
        "\"properties\": {",
        "\"properties\": { \"location\": { \"type\": \"geo_point\" }",
    );
    let output = shop.run(&["--generate", "--test-mode", "--json", "--on", "virtual"]);
    let found = json(&output);
    let changes = found["changes"].to_string();
    assert!(changes.contains("are generated") && changes.contains("Test mode"), "{changes}");
    assert_eq!(task(&found, "index-append")["documents"], 400, "{}", said(&output));
    assert_eq!(task(&found, "all-orders")["requests"], 2, "once for each client");
}

#[test]
fn templates_make_indices_and_documents_come_again_under_their_ids() {
    let stock = Shop::stock();
    let run = |params: &str, more: &[&str]| {
        let params = ["--generate", "--json", "--track-params", params];
        stock.run(&[&params[..], more].concat())
    };
    // Where every document comes again under an id before it, there is one; where none does, all are there.
    let output = run("clients:1,probability:100,expected:2", &[]);
    failed(&output, 1, &["as-many-as-expected"]);
    for params in [
        "clients:1,probability:100,expected:1",
        "probability:0,expected:200",
        "conflicts:sequential,on_conflict:index",
    ] {
        assert_eq!(json(&run(params, &[]))["status"], "complete", "{params}");
    }
    // The second lap finds nothing of the first. Clients do not write what others may not have written yet.
    for place in ["embedded", "virtual"] {
        let found = json(&run("clients:3", &["--laps", "2", "--on", place]));
        assert_eq!(task(&found, "fill")["documents"], 200);
        assert_eq!(task(&found, "move")["documents"], 5);
        for load in found["loads"].as_array().unwrap() {
            let laps = load["laps"].as_array().unwrap().len();
            assert_eq!((&load["failed"], laps), (&0.into(), 2), "{place}: {load}");
        }
        let changes = found["changes"].to_string();
        assert!(changes.contains("corpus goods are made of the mapping of goods-1"), "{changes}");
    }
}

#[test]
fn what_templates_and_conflicts_cannot_do_is_said_with_its_place() {
    let stock = Shop::stock();
    let args = ["--generate"];
    stock.refused(&[], &["track.json:", "goods.json is not there", "--generate"]);
    let made = "create-component-template\", \"template\": \"stock-";
    stock.change("track.json", &format!("{made}fields"), &format!("{made}shapes"));
    stock.refused(&args, &["templates/all.json:14:", "geo_shape", "--skip-refused"]);
    let (fields, feilds) = (format!("{made}fields"), format!("{made}feilds"));
    let stock = Shop::stock().with("track.json", &fields, &feilds);
    stock.refused(&args, &["track.json:30:", "did you mean \"stock-fields\""]);
    let stock = Shop::stock().with("track.json", "templates/old.json", "templates/new.json");
    stock.refused(&args, &["track.json:5:", "there is no file", "new.json"]);
    Shop::stock().refused(
        &["--generate", "--track-params", "conflicts:randomly,on_conflict:delete"],
        &[
            "track.json:39:",
            "conflicts is sequential or random",
            "track.json:40:",
            "on-conflict is index or update",
        ],
    );
    let (goods, moves) = ("\"corpora\": \"goods\"", "\"corpora\": \"moves\"");
    let stock = Shop::stock().with("track.json", goods, moves);
    stock.refused(&args, &["moves.json has actions with ids of its own"]);
    let stock = Shop::stock();
    std::fs::remove_file(stock.folder().join("moves.json")).unwrap();
    stock.refused(&args, &["moves.json is not there", "actions of their own are not generated"]);
}

#[test]
fn what_was_measured_is_kept_where_a_later_task_fails() {
    let shop = Shop::new().failing_late();
    let store = serving(|stream| {
        message(&mut BufReader::new(&stream))?;
        (&stream).write_all(&in_http("403 Forbidden", "{}"))
    });
    let output = shop.run(&["--on", "virtual", "--store", &format!("http://{store}")]);
    // That it is not stored either is said beside.
    failed(&output, 1, &["until-all-are-there", "index-append", "not in the store", "403"]);
    let (tasks, status) = shop.recorded();
    assert!(tasks.iter().any(|task| task == "index-append"), "{tasks:?}");
    assert!(tasks.iter().all(|task| task != "all-orders"), "{tasks:?}");
    assert_eq!(status, Status::Failed);
}

#[test]
fn a_task_that_had_nothing_but_errors_is_said_at_the_end_and_the_exit_code_is_1() {
    let shop = Shop::new().with("operations/default.json", "/orders/_count", "/nothing/_count");
    let output = shop.run(&["--include-tasks", "tag:setup, several ,pause", "--laps", "2"]);
    let reason = "404 index_not_found_exception: no such index [nothing]";
    failed(&output, 1, &[&format!("several ({reason})"), "--exclude-tasks"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = table.split_whitespace().collect();
    assert!(words.join(" ").contains("(no such index [nothing])"), "{table}");
    assert!(table.contains("pause") && table.contains("error rate"), "{table}");
    let (tasks, status) = shop.recorded();
    assert!(tasks.contains(&"pause".to_owned()), "{tasks:?}");
    assert_eq!(status, Status::Complete, "everything has been run");
}

#[test]
fn what_is_not_the_runs_own_is_refused_on_a_cluster_that_was_there() {
    let bulk = "\"path\": \"/_bulk\", \"method\": \"POST\"";
    let count = "\"path\": \"/orders/_count\"";
    let shop = Shop::new().with("operations/default.json", count, bulk);
    let there = ["--on", "http://127.0.0.1:1", "--allow-changes"];
    shop.refused(&there, &["operations/default.json:35:", "/_bulk", "--skip-refused"]);
    shop.refused(&[&there[..], &["--nodes", "3"]].concat(), &["--nodes", "is there already"]);
    let two = ["--on", "http://127.0.0.1:1", "--leader", "http://127.0.0.1:2"];
    Shop::new().refused(&two, &["--leader is for plans"]);
}

/// Its indices are made by their first documents here, past the journal of changes.
#[test]
fn a_cluster_that_was_there_keeps_no_index_of_a_track() {
    let cluster = Cluster::start(1);
    let there = ["--on", cluster.url(), "--allow-changes"];
    let shop = Shop::new().failing_late();
    let tasks = ["--include-tasks", "index-append,until-all-are-there"];
    failed(&shop.run(&[&there[..], &tasks].concat()), 1, &["until-all-are-there"]);
    assert_eq!(cluster.indices(), Vec::<String>::new());
    assert_eq!(shop.recorded(), (vec!["index-append".to_owned()], Status::Failed));

    let count = "\"document-count\": 400";
    let undeclared = format!("{count}, \"target-index\": \"not-declared\"");
    let shop = Shop::new().with("track.json", count, &undeclared);
    let tasks = ["--include-tasks", "index-append", "--json"];
    let found = json(&shop.run(&[&there[..], &tasks].concat()));
    assert_eq!(task(&found, "index-append")["documents"], 400);
    assert_eq!(cluster.indices(), Vec::<String>::new());

    let shop = Shop::new();
    std::fs::write(shop.folder().join("challenges/endless.json"), ENDLESS).unwrap();
    let endless = [&there[..], &["--challenge", "endless"]].concat();
    let mut running = spawned(&mut shop.command(&endless));
    let mut lines = running.said();
    assert!(lines.any(|line| line.starts_with("writes ")));
    // In the middle of its writes.
    std::thread::sleep(Duration::from_millis(500));
    signal(running.id(), "INT");
    let rest: Vec<String> = lines.collect();
    assert_eq!(running.wait().unwrap().code(), Some(1), "{rest:?}");
    assert_eq!(cluster.indices(), Vec::<String>::new());
    assert_eq!(shop.recorded(), (vec!["index-append".to_owned()], Status::Interrupted));
}
