//! Loads, operations and faults, as they are resolved.

use std::sync::LazyLock;
use std::time::Duration;

use clusters::FaultKind;
use testbed::plans::LOAD;

use crate::error::Result;
use crate::load::{Arrival, Content, Extent};
use crate::plan::fault::Fault;
use crate::plan::resolved::Resolved;

static TEXT: LazyLock<String> = LazyLock::new(|| LOAD.to_owned() + VARIANTS);

const VARIANTS: &str = r#"
[[operation]]
name = "term"
body = '{"query":{"term":{"body":"{{word}}"}}}'
parameters = { word = ["physician", "cell"] }

[[operation]]
name = "health"
path = "/_cluster/health"

[load]
operations = ["term"]
clients = 100
warm_up = 500
measured = "30s"

[[variant]]
name = "closed"

[[variant]]
name = "open"
[variant.load]
rate = 200.0
arrival = "poisson"
operations = ["health", "term"]
nodes = ["leader-0"]
[[variant.fault]]
node = "leader-2"
kind = "slow"
factor = 4.0
at = "5s"
lasts = "10s"
"#;

fn resolve(text: &str) -> Result<Resolved> {
    super::resolve(text, 1.0, |_, _| Ok(()))
}

fn said(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    resolve(&text.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_variant_changes_what_it_says_and_keeps_the_rest() {
    let plan = resolve(&TEXT).unwrap();
    assert_eq!(plan.measured_step().unwrap().name, "load");
    let used = |n: usize| plan.variants[n].load.clone().unwrap();
    let load = |n: usize| used(n).load;
    assert_eq!((load(0).clients, load(0).arrival), (100, Arrival::Closed));
    assert_eq!(load(0).measured, Extent::Time(Duration::from_secs(30)));
    assert_eq!(load(1).arrival, Arrival::Poisson { rate_per_s: 200.0 });
    assert_eq!((load(1).warm_up, load(1).clients), (Extent::Requests(500), 100));
    let names: Vec<String> = used(1).operations.iter().map(|o| o.name.clone()).collect();
    assert_eq!(
        (names, used(1).nodes),
        (vec!["health".into(), "term".into()], vec!["leader-0".into()])
    );
    let Content::Pattern { method, path, .. } = &used(0).operations[0].content else { panic!() };
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/logs/_search"));
    let fault = Fault {
        node: "leader-2".to_owned(),
        kind: FaultKind::Slow { factor: 4.0 },
        at: Duration::from_secs(5),
        lasts: Some(Duration::from_secs(10)),
    };
    assert_eq!((plan.variants[0].faults.len(), &plan.variants[1].faults[..]), (0, &[fault][..]));
}

#[test]
fn the_published_run_has_its_own_size_costs_and_replicas() {
    let text = TEXT
        .replacen("clients = 100\n", "clients = 100\nfull = { laps = 2, measured = 40_000 }\n", 1)
        .replacen(
            "[[variant]]\nname = \"open\"",
            "[[variant]]\nname = \"open\"\nbeside = \"closed\"\nreplicas = 2",
            1,
        )
        .replacen(
            "[[operation]]\nname = \"health\"",
            "cost = { documents = 7, bytes = \"1kb\" }\n[[operation]]\nname = \"health\"",
            1,
        )
        .replacen("kind = \"slow\"", "kind = \"load\"\nprocesses = 32", 1);
    let plan = resolve(&text).unwrap();
    let [closed, open] = &plan.variants[..] else { panic!() };
    let full = &closed.load.as_ref().unwrap().full;
    assert_eq!(
        (full.laps, full.warm_up, full.measured),
        (Some(2), Extent::Requests(500), Extent::Requests(40_000))
    );
    let Content::Pattern { path, bodies, .. } = &full.operations[0].content else { panic!() };
    assert_eq!(path, "/logs/_search");
    assert_eq!(bodies, &[r#"{"ext":{"narrows":{"cost":{"bytes":1024,"documents":7}}},"size":0}"#]);
    assert_eq!((closed.baseline.clone(), open.baseline.as_deref()), (None, Some("closed")));
    assert_eq!((plan.indices[0].replicas_of(closed), plan.indices[0].replicas_of(open)), (1, 2));
    assert_eq!(open.faults[0].kind, FaultKind::Load { processes: 32, factor: 4.0 });
    let later = said(&text, "beside = \"closed\"", "beside = \"open\"");
    assert!(later.contains("no variant before this one is called \"open\""), "{later}");
    assert!(said(&text, "replicas = 2", "replicas = 3").contains("give 0 to 2"));
    assert!(said(&text, "processes = 32\n", "").contains("say how many processes"));
    assert!(said(&TEXT, "factor = 4.0", "factor = 4.0\nprocesses = 3").contains("only \"load\""));
}

#[test]
fn a_search_that_counts_asks_the_indices_and_copies_of_its_path() {
    let name = "name = \"term\"\n";
    let asked = "/second/_search?routing=7&request_cache=true&preference=_local";
    let plan = resolve(&TEXT.replacen(name, &format!("{name}path = \"{asked}\"\n"), 1)).unwrap();
    let full = &plan.variants[0].load.as_ref().unwrap().full;
    let Content::Pattern { path, .. } = &full.operations[0].content else { panic!() };
    assert_eq!(path, "/second/_search?routing=7&preference=_local");
}

#[test]
fn a_variant_for_each_value_of_a_setting() {
    let each = r#"name = "open"
each = { setting = "narrows.search.selection", values = ["none", "c3"] }"#;
    let plan = resolve(&TEXT.replacen("name = \"open\"", each, 1)).unwrap();
    let seen: Vec<_> = plan.variants[1..]
        .iter()
        .map(|v| {
            let value = v.settings["narrows.search.selection"].as_str();
            (v.name.as_str(), v.baseline.as_deref(), value, v.faults.len())
        })
        .collect();
    let first = "open: none";
    assert_eq!(seen, [(first, None, "none", 1), ("open: c3", Some(first), "c3", 1)]);
    let wrong = each.replace("\"c3\"", "[1]");
    let said = said(&TEXT, "name = \"open\"", &wrong);
    assert!(said.contains("found an array"), "{said}");
}

#[test]
fn a_variant_may_take_the_plans_rate_away() {
    let text = TEXT.replacen("clients = 100\n", "clients = 100\nrate = 50.0\n", 1).replacen(
        "rate = 200.0\narrival = \"poisson\"",
        "arrival = \"closed\"",
        1,
    );
    let plan = resolve(&text).unwrap();
    let arrival = |n: usize| plan.variants[n].load.as_ref().unwrap().load.arrival;
    assert_eq!(arrival(0), Arrival::Deterministic { rate_per_s: 50.0 });
    assert_eq!(arrival(1), Arrival::Closed);
}

#[test]
fn an_index_that_is_called_otherwise_is_searched_by_that_name() {
    let mut plan = resolve(&TEXT).unwrap();
    plan.name_indices("narrows-1");
    let load = plan.variants[0].load.as_ref().unwrap();
    let Content::Pattern { path, .. } = &load.operations[0].content else { panic!() };
    assert_eq!(path, "/narrows-1/_search");
}

#[test]
fn what_is_wrong_is_shown_in_its_place() {
    let [body, load] =
        ["body = ", "[[operation]]\nname = \"health\""].map(|text| VARIANTS.find(text).unwrap());
    for (from, to, part) in [
        ("operations = [\"term\"]", "operations = [\"trem\"]", "did you mean \"term\""),
        ("operations = [\"term\"]\n", "", "a load names its operations"),
        ("measured = \"30s\"", "", "what is measured"),
        ("clients = 100", "clients = 0", "clients is out of range"),
        ("measured = \"30s\"", "measured = true", "write measured = \"30s\""),
        ("arrival = \"poisson\"", "arrival = \"fishy\"", "Arrivals: closed"),
        ("rate = 200.0\n", "", "need a rate"),
        ("arrival = \"poisson\"", "arrival = \"closed\"", "a closed loop has no rate"),
        ("nodes = [\"leader-0\"]", "nodes = [\"leader-9\"]", "Nodes: leader-0"),
        ("kind = \"slow\"", "kind = \"slowly\"", "did you mean \"slow\""),
        ("factor = 4.0\n", "", "say how slow"),
        ("{{word}}", "{{wrod}}", "did you mean \"word\"? Give it its values"),
        ("\"health\"\n", "\"health\"\nindex = \"logs\"\n", "changes nothing of the path /_cluster"),
        ("word = [\"physician\", \"cell\"]", "word = { from = 3 }", "a parameter is a range"),
        ("[load]", "[load]\nspeed = 3", "unknown key \"speed\""),
        // One mistake: the text that stands in for it names no parameter.
        (&VARIANTS[body..load], "body = { size = 0 }\n\n", "body is a text"),
    ] {
        let said = said(&TEXT, from, to);
        assert!(said.contains(part) && said.starts_with("my.toml:"), "{to}: {said}");
    }
    let without = |text: &str, from: &str, to: &str| {
        let (before, rest) = text.split_once(from).unwrap();
        format!("{before}{}", &rest[rest.find(to).unwrap_or(rest.len())..])
    };
    let none = without(&without(&TEXT, "[load]", "[[variant]]"), "[variant.load]", "no such text");
    let said = resolve(&none).unwrap_err().to_string();
    assert!(said.contains("needs a [load]"), "{said}");
}

/// A plan that recovers would measure its variants as if neither stood there.
#[test]
fn a_load_or_a_fault_is_refused_where_nothing_is_sent() {
    let said = |table: &str| said(super::TEXT, "[settings]\n", &format!("{table}\n\n[settings]\n"));
    let fault = said("[[fault]]\nnode = \"leader-1\"\nkind = \"pause\"");
    assert!(fault.contains("in the step load; this plan does not have it"), "{fault}");
    let count = "[[operation]]\nname = \"count\"\npath = \"/{index}/_count\"\n";
    let load = format!("{count}[load]\noperations = [\"count\"]\nclients = 1\nmeasured = 5");
    assert!(said(&load).contains("[load] says what is sent, in the step load"), "{}", said(&load));
}

#[test]
fn settings_are_not_changed_where_nothing_recovers() {
    let closed = "name = \"closed\"\n";
    let changed = format!("{closed}change = [{{ at = \"1s\", settings = {{ a = \"b\" }} }}]\n");
    let said = said(&TEXT, closed, &changed);
    assert!(said.contains("recover, recover_peers"), "{said}");
}
