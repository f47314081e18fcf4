//! What befalls a node while a load is measured, through the binary: each fault is brought about and undone, and no
//! search is lost by it.

use serde_json::Value;
use testbed::CannotRun;
use testbed::plans::LOAD;

use crate::common::plans;
use crate::common::{json, only_run};
use crate::opensearch::fetched;

/// What is done to a node.
#[derive(Clone, Copy)]
struct Fault {
    kind: &'static str,
    /// A search that was sent to the node hears nothing before the fault ends.
    holds_answers: bool,
}

const fn fault(kind: &'static str, holds_answers: bool) -> Fault {
    Fault { kind, holds_answers }
}

/// Faults that take cores away.
const FEWER_CORES: [Fault; 2] = [fault("slow", false), fault("load", false)];
/// Faults that any process can be given.
const OF_A_PROCESS: [Fault; 4] =
    [fault("pause", true), fault("cut", true), fault("stop", false), fault("kill", false)];
/// Searches that fail, which the embedded engine alone can be told.
const FAILING: [Fault; 1] = [fault("fail", false)];

/// Of a fault, in milliseconds.
const LASTS_MS: f64 = 1200.0;

fn plan(faults: &[Fault]) -> String {
    let size = "replicas = 2\nfull = { documents = 3_000, bytes = \"1mb\", segments = 9 }";
    let head = LOAD.replace("laps = 2", "laps = 1").replace("replicas = 1", size);
    let load = r#"
[[operation]]
name = "search"
body = '{"size": 0, "query": {"term": {"status": 200}}, "aggs": {"s": {"stats": {"field": "size"}}}}'
cost = { documents = 200_000 }
[load]
operations = ["search"]
clients = 4
nodes = ["leader-0"]
warm_up = "500ms"
measured = "4s"
full = { warm_up = "500ms", measured = "4s" }
[settings]
"cluster.routing.use_adaptive_replica_selection" = false
"#;
    let variant = |fault: &Fault| {
        let kind = fault.kind;
        let factor = match kind {
            "slow" => "factor = 3.0\n",
            "load" => "factor = 3.0\nprocesses = 4\n",
            _ => "",
        };
        format!(
            "\n[[variant]]\nname = \"{kind}\"\n[[variant.fault]]\nnode = \"leader-2\"\nkind = \"{kind}\"\n{factor}\
             at = \"1s\"\nlasts = \"{LASTS_MS}ms\"\n"
        )
    };
    head + load + &faults.iter().map(variant).collect::<String>()
}

fn judge(on: &str, faults: &[&[Fault]]) -> Result<(), CannotRun> {
    let faults = faults.concat();
    let (dir, output) = plans::run(&plan(&faults), on, &[]);
    let found = json(&fetched(output)?);
    let loads = found["loads"].as_array().unwrap();
    assert_eq!(loads.len(), faults.len(), "{loads:?}");
    for (load, fault) in loads.iter().zip(&faults) {
        let kind = fault.kind;
        assert_eq!(load["variant"], kind);
        let load: &Value = &load["laps"][0];
        assert!(load["requests"].as_u64().unwrap() > 20, "{on}, {kind}: {load}");
        assert_eq!(load["errors"], serde_json::json!({}), "{on}, {kind}");
        let longest_ms = load["latency"]["p100_ms"].as_f64().unwrap();
        // Who was sent there when it began heard nothing until it ended.
        let held = longest_ms > LASTS_MS / 2.0;
        assert!(!fault.holds_answers || held, "{on}, {kind}: {longest_ms} ms");
    }
    let record = only_run(&dir.path().join("runs"));
    let lines = std::fs::read_to_string(record.join("lines.jsonl")).unwrap();
    let is_note = |line: &&str| line.contains("\"note\"") && line.contains("leader-2 is ");
    let notes: Vec<&str> = lines.lines().filter(is_note).collect();
    let ended = notes.iter().filter(|line| line.contains("is no longer")).count();
    assert_eq!((notes.len(), ended), (2 * faults.len(), faults.len()), "{notes:?}");
    Ok(())
}

pub fn the_embedded_engine_in_virtual_time() -> Result<(), CannotRun> {
    judge("virtual", &[&FEWER_CORES, &OF_A_PROCESS, &FAILING])
}

pub fn the_embedded_engine_as_processes() -> Result<(), CannotRun> {
    judge("embedded", &[&OF_A_PROCESS, &FAILING])
}

pub fn the_embedded_engine_as_processes_that_lack_cores() -> Result<(), CannotRun> {
    judge("embedded", &[&FEWER_CORES])
}

pub fn nodes_of_opensearch() -> Result<(), CannotRun> {
    judge("opensearch", &[&FEWER_CORES, &OF_A_PROCESS])
}
