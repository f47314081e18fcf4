//! What the live page of `watch --web` is sent, and what is kept for it.

use insight::diagnosis::{Event, Series, Topic, diagnose};
use record::observation::{Health, Identity, Observation, Recovery, Scope, Setting};
use report::live_page::{Frame, History, document};
use report::screen::{Place, View, plain_lines};
use serde_json::Value;

use crate::screen::{held, limited};

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";

/// Second `s` of a cluster with so many recoveries, each held at 40 MB/s by the limiter of its source.
fn look(s: u64, recoveries: usize) -> Observation {
    let recovery = |at: usize| {
        let (index, [source, target]) = (format!("orders-{at:03}"), ends(at));
        Recovery { total_bytes: Some(10_000_000_000), ..held(&index, &source, &target, s) }
    };
    let limit = Setting { value: "40mb".into(), scope: Scope::Persistent };
    Observation {
        cluster: Identity {
            name: "<b>logs</b>".into(),
            flavour: "opensearch".into(),
            version: "2.19.1".into(),
        },
        health: Some(Health { status: "yellow".into(), unassigned: Some(0), ..Health::default() }),
        nodes: (0..recoveries).flat_map(ends).map(|name| limited(&name, s)).collect(),
        recoveries: (0..recoveries).map(recovery).collect(),
        settings: Some([(LIMIT.to_owned(), limit)].into()),
        ..Observation::default()
    }
}

/// Source and target of a recovery.
fn ends(at: usize) -> [String; 2] {
    [format!("source-{at}"), format!("target-{at}")]
}

fn view(recoveries: usize, trouble: Option<&str>) -> (View, Frame) {
    let looks: Vec<Observation> = (0..=8).map(|s| look(s, recoveries)).collect();
    let series = Series::new((0..=8).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
    let diagnosis = diagnose(&series);
    let place = Place { trouble: trouble.map(str::to_owned), ..Place::default() };
    let view = View::of(&series, &diagnosis, &place);
    let frame = Frame::of(1_700_000_000_000, &view, &diagnosis);
    (view, frame)
}

fn json(frame: &Frame) -> Value {
    serde_json::to_value(frame).unwrap()
}

#[test]
fn page_and_terminal_say_the_same() {
    let (view, frame) = view(1, None);
    let frame = json(&frame);
    let plain = plain_lines(&view, 8.0).join("\n");
    let text = |pointer: &str| frame.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    for pointer in [
        "/headline", "/totals/green", "/totals/green_note", "/recoveries/0/amount",
        "/recoveries/0/eta",
    ] {
        assert!(plain.contains(&text(pointer)), "{} is not in\n{plain}", text(pointer));
    }
    assert_eq!(text("/held/0/class"), "rate limit");
    let figures = "MB/s";
    assert!(text("/held/0/sentence").contains(figures) && !text("/headline").contains(figures));
    let lift = text("/held/0/lift");
    assert!(plain.contains(&lift) && lift.contains(&format!("{LIMIT} = 40mb, try ")), "{lift}");
    let how = text("/held/0/how");
    assert!(
        how.starts_with(&format!("PUT _cluster/settings {{\"persistent\":{{\"{LIMIT}\":")),
        "{how}"
    );
    assert!(!frame["held"][0]["evidence"].as_array().unwrap().is_empty());
    assert!(frame["held"][0]["ruled_out"].as_array().unwrap().len() > 3);
    assert_eq!(text("/flows/0/source"), "source-0");
    assert_eq!(
        (text("/totals/rate"), text("/totals/left")),
        ("41.9 MB/s".into(), "9.66 GB".into())
    );
}

#[test]
fn lists_are_cut_and_counted() {
    let frame = json(&view(150, None).1);
    let shown = frame["recoveries"].as_array().unwrap().len();
    assert_eq!(frame["recoveries_more"], 150 - shown);
    let flows = frame["flows"].as_array().unwrap().len();
    assert_eq!(frame["flows_more"]["count"], 150 - flows);
    assert_eq!(frame["totals"]["active"], 150);
    // One setting holds them all: it is said once, and of every node.
    let held = frame["held"].as_array().unwrap();
    assert_eq!((held.len(), &frame["held_more"]), (1, &0.into()), "{held:?}");
    assert_eq!(held[0]["also"].as_array().unwrap().len(), 149);
    let named = held[0]["subjects"].as_array().unwrap().len();
    assert_eq!(held[0]["subjects_more"], 150 - named, "what holds at each node is said of all");
    assert!(frame.to_string().len() < 150_000);
}

#[test]
fn what_is_kept_can_be_had_again_and_is_bounded() {
    let mut history = History::default();
    assert_eq!(history.at(0), None);
    let begins = 1_700_000_000_000_u64;
    let mut frame = view(2, None).1;
    for s in 0..5000 {
        frame.at_ms = begins + s * 1000;
        let events =
            if s % 10 == 0 { vec![Event::new(Topic::Node, format!("event {s}"))] } else { vec![] };
        let look: Value = serde_json::from_str(&history.push(&frame, events)).unwrap();
        assert_eq!(look["frame"]["at_ms"], frame.at_ms);
    }
    let all: Value = serde_json::from_str(&history.all()).unwrap();
    let points = all["history"]["from_ms"].as_array().unwrap().len();
    assert!((400..=450).contains(&points), "{points}");
    assert_eq!(all["history"]["figures"]["in target-0"][1][points - 1], 41_900);
    assert_eq!(all["events"].as_array().unwrap().len(), 400);
    assert_eq!(all["frame"]["at_ms"], frame.at_ms);
    let at = |s: u64| -> u64 {
        let frame: Value = serde_json::from_str(&history.at(begins + s * 1000).unwrap()).unwrap();
        (frame["at_ms"].as_u64().unwrap() - begins) / 1000
    };
    assert!(
        at(4000).abs_diff(4000) <= 8 && at(5000).abs_diff(4999) <= 8,
        "{} {}",
        at(4000),
        at(5000)
    );
    assert!(at(0).abs_diff(1400) < 20, "an hour ago is the oldest: {}", at(0));
}

#[test]
fn a_cluster_that_does_not_answer_moves_nothing() {
    let (_, frame) = view(1, Some("gone"));
    let mut history = History::default();
    history.push(&frame, vec![]);
    let all: Value = serde_json::from_str(&history.all()).unwrap();
    assert_eq!(all["history"]["figures"], serde_json::json!({}));
    assert_eq!(
        (&all["frame"]["health"], &all["frame"]["totals"]["green"]),
        (&"unknown".into(), &"unknown".into())
    );
    assert!(all["frame"]["trouble"].as_str().unwrap().contains("gone"));
}

#[test]
fn a_rate_that_nobody_tells_yet_is_not_drawn_as_nothing() {
    let first = look(0, 1);
    let series = Series::new([(0.0, &first)]);
    let diagnosis = diagnose(&series);
    let mut view = View::of(&series, &diagnosis, &Place::default());
    view.recoveries.iter_mut().for_each(|pace| pace.now_bytes_per_s = None);
    let figures = |view: &View| {
        let mut history = History::default();
        history.push(&Frame::of(0, view, &diagnosis), vec![]);
        let all: Value = serde_json::from_str(&history.all()).unwrap();
        all["history"]["figures"].clone()
    };
    assert_eq!(figures(&view)["total"], Value::Null);
    assert_eq!(figures(&view)["left"][1][0], 10_000_000, "kilobytes");
    view.recoveries.iter_mut().for_each(|pace| pace.done_bytes = None);
    assert_eq!(figures(&view)["left"], Value::Null);
    view.recoveries.clear();
    for name in ["total", "left", "waiting"] {
        assert_eq!(figures(&view)[name][1][0], 0, "{name}: where nothing recovers it is nothing");
    }
}

#[test]
fn the_page_has_one_script_and_one_style_sheet_and_the_policy_knows_both() {
    let page = document();
    assert_eq!(
        (page.html.matches("<script>").count(), page.html.matches("<style>").count()),
        (1, 1)
    );
    // Inline style and event attributes would need sources of their own in the content security policy.
    for forbidden in
        [" style=", " onclick=", " onload=", "javascript:", "unsafe-", "/*css*/", "/*script*/"]
    {
        assert!(!page.html.contains(forbidden) && !page.policy.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page.policy.matches("'sha256-").count(), 2, "{}", page.policy);
    assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
}
