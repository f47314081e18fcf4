//! The screen of `watch` as a terminal shows it.

mod names;

use std::sync::Arc;

use insight::diagnosis::{NodePace, Pace, Series, diagnose};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Modifier;
use record::observation::{
    Follower, Health, Identity, Node, Observation, Recovery, RoundTrip, Scope, Setting, WaitingCopy,
};
use record::{FORMAT, Line, Manifest, RunDir, Status};
use report::Style;
use report::live_page::Frame;
use report::screen::{Found, Key, Place, Scroll, Trails, View, draw, findings, plain_lines};

/// Second `s` of a node through whose limiter 40 MB/s go.
pub(crate) fn limited(name: &str, s: u64) -> Node {
    Node {
        id: name.into(),
        name: name.into(),
        timestamp_ms: Some(s * 1000),
        throttle_ms: Some(s * 400),
        transport_rx_bytes: Some(s * 41_900_000),
        ..Node::default()
    }
}

/// Second `s` of a recovery of 1 GB that the limiter of its source holds at 40 MB/s.
pub(crate) fn held(index: &str, source: &str, target: &str, s: u64) -> Recovery {
    Recovery {
        index: index.into(),
        kind: "PEER".into(),
        stage: "INDEX".into(),
        source: Some(source.into()),
        target: Some(target.into()),
        start_ms: Some(1),
        total_ms: Some(s * 1000),
        total_bytes: Some(1_000_000_000),
        recovered_bytes: Some(s * 41_900_000),
        source_throttle_ms: Some(s * 400),
        target_throttle_ms: Some(0),
        ..Recovery::default()
    }
}

/// A cluster with one recovery, seen every second.
fn look(s: u64) -> Observation {
    let node = |name: &str| Node {
        process_cpu_ms: Some(s * 100),
        os_cpu_percent: Some(if name == "paris" { 12 } else { 95 }),
        cores: Some(8),
        ..limited(name, s)
    };
    let limit = Setting { value: "40mb".into(), scope: Scope::Default };
    Observation {
        cluster: Identity {
            name: "logs".into(),
            flavour: "opensearch".into(),
            version: "2.19.1".into(),
        },
        health: Some(Health { status: "yellow".into(), ..Health::default() }),
        nodes: vec![node("paris"), node("tokyo")],
        recoveries: vec![held("orders", "paris", "tokyo", s)],
        settings: Some([("indices.recovery.max_bytes_per_sec".to_owned(), limit)].into()),
        round_trips: vec![RoundTrip { from: "paris".into(), to: "tokyo".into(), rtt_ms: 5.0 }],
        ..Observation::default()
    }
}

fn looks() -> Vec<Observation> {
    (0..=8).map(look).collect()
}

/// Looks a second apart.
fn series(looks: &[Observation]) -> Series<'_> {
    Series::new((0..).zip(looks).map(|(s, look)| (f64::from(s) * 1e3, look)))
}

fn view() -> View {
    view_of(&looks())
}

fn view_of(looks: &[Observation]) -> View {
    let series = series(looks);
    let place = Place { hosts: "http://paris:9200".into(), ..Place::default() };
    View::of(&series, &diagnose(&series), &place)
}

/// What a terminal of this size shows, line by line.
fn shown(view: &View, width: u16, height: u16) -> Vec<String> {
    shown_after(view, &Trails::default(), &mut Scroll::default(), width, height)
}

fn shown_after(
    view: &View,
    trails: &Trails,
    scroll: &mut Scroll,
    width: u16,
    height: u16,
) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, trails, scroll, true)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(usize::from(width));
    cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>()).collect()
}

#[test]
fn it_says_what_goes_on_what_holds_and_what_lifts_it() {
    let screen = shown(&view(), 120, 30);
    let text = screen.join("\n");
    for words in [
        "logs  opensearch 2.19.1  health yellow",
        "Recoveries: 1 active",
        "paris > tokyo",
        "█░",
        "░   34 %",
        "What holds",
        "rate limit: the limiter of",
        "→ indices.recovery.max_bytes_per_sec = 40mb, try ",
        "the rate; then ",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    // Figures stand under the ends of their headings.
    let end = |words: &str| {
        let line = screen.iter().find(|line| line.contains(words)).unwrap();
        line[..line.find(words).unwrap() + words.len()].chars().count()
    };
    assert_eq!(end("cpu"), end("95 %"), "{text}");
    let plain = plain_lines(&view(), 8.0).join("\n");
    assert!(plain.contains("health yellow") && plain.contains("try "), "{plain}");
}

/// As `explain` shows them: that allocation is turned off holds nothing today.
#[test]
fn notes_are_shown_whole_where_there_is_room_for_them() {
    let off = Setting { value: "none".into(), scope: Scope::Persistent };
    let name = "cluster.routing.allocation.enable";
    let mut looks = looks();
    for settings in looks.iter_mut().flat_map(|look| &mut look.settings) {
        settings.insert(name.to_owned(), off.clone());
    }
    let view = view_of(&looks);
    let (begins, ends) = (format!("note: {name} = none: "), format!("\"{name}\":null}}}}"));
    let text = |height| shown(&view, 120, height).join("\n");
    for height in 12..40 {
        let text = text(height);
        assert_eq!(text.contains(&begins), text.contains(&ends), "{text}");
    }
    assert!(text(39).contains(&begins), "{}", text(39));
    assert!(text(12).contains("1 more note: Tab"), "{}", text(12));
    let plain = plain_lines(&view, 8.0).join("\n");
    assert!(plain.contains(&begins) && plain.contains(&ends), "{plain}");
    let frame = serde_json::to_value(Frame::of(0, &view, &diagnose(&Series::new([])))).unwrap();
    assert!(frame["notes"][0].as_str().unwrap().starts_with(name), "{frame:#}");
}

/// Four nodes at their limits, which one setting rules.
#[test]
fn what_one_setting_lifts_at_several_nodes_is_said_once() {
    let mut looks = looks();
    for look in &mut looks {
        let nodes = look.nodes.clone();
        for (node, name) in nodes.into_iter().zip(["rome", "oslo"]) {
            look.nodes.push(Node { id: name.into(), name: name.into(), ..node });
        }
        let (source, target) = (Some("rome".to_owned()), Some("oslo".to_owned()));
        look.recoveries.push(Recovery {
            index: "carts".into(),
            source,
            target,
            ..look.recoveries[0].clone()
        });
    }
    let series = series(&looks);
    let diagnosis = diagnose(&series);
    assert!(diagnosis.findings.len() > 1, "{:#?}", diagnosis.findings);
    let view = View::of(&series, &diagnosis, &Place::default());
    let explained = findings(&diagnosis, "logs", Style { color: false, width: 200 });
    let plain = plain_lines(&view, 8.0).join("\n");
    for text in [&explained, &plain, &shown(&view, 200, 40).join("\n")] {
        assert_eq!(text.matches("rate limit: ").count(), 1, "{text}");
        assert!(text.contains("lets through; the same at "), "{text}");
    }
    let held = explained.lines().find(|line| line.starts_with("  holds")).unwrap();
    assert!(held.contains("orders[0] to tokyo") && held.contains("carts[0] to oslo"), "{held}");
}

/// Looks of before tell of a limit for as long as they are looked at.
#[test]
fn what_held_a_recovery_that_is_over_holds_nothing_now() {
    let end = |looks: &mut [Observation]| {
        let first = &mut looks[8].recoveries[0];
        (first.ended, first.stage) = (true, "DONE".into());
    };
    let mut ended = looks();
    end(&mut ended);
    let over = view_of(&ended);
    let screen = shown(&over, 120, 30).join("\n");
    let plain = plain_lines(&over, 8.0).join("\n");
    assert!(screen.contains("What held") && !screen.contains("What holds"), "{screen}");
    for text in [&screen, &plain] {
        assert!(text.contains("rate limit, recovery ended: the limiter of"), "{text}");
    }
    // The same holds another one, which goes on.
    let mut looks = looks();
    for (s, look) in (0..).zip(&mut looks) {
        let half = Recovery { recovered_bytes: Some(s * 20_950_000), ..look.recoveries[0].clone() };
        look.recoveries = vec![half.clone(), Recovery { shard: 1, ..half }];
    }
    end(&mut looks);
    let screen = shown(&view_of(&looks), 120, 30).join("\n");
    assert!(
        screen.contains("What holds") && screen.contains("rate limit: the limiter"),
        "{screen}"
    );
}

#[test]
fn nothing_is_whole_before_its_last_byte() {
    let mut view = view();
    view.recoveries[0].done_bytes = view.recoveries[0].total_bytes.map(|total| total - 1);
    for lines in [shown(&view, 120, 30), plain_lines(&view, 8.0)] {
        let line = lines.iter().find(|line| line.contains("orders[0]")).unwrap();
        assert!(line.contains(" 99 % "), "{line}");
    }
}

#[test]
fn of_many_copies_that_wait_the_first_are_shown_and_the_others_counted() {
    let copy = |shard| WaitingCopy { explanation: Some(format!("of {shard}")), ..waiting(shard) };
    let view = view_while((0..30).map(copy));
    let plain = plain_lines(&view, 8.0).join("\n");
    assert_eq!(plain.matches("waits:").count(), 20, "{plain}");
    assert!(plain.contains("and 10 more copies wait"), "{plain}");
    let one_more = plain_lines(&view_while((0..21).map(copy)), 8.0);
    assert!(one_more.contains(&"  and 1 more copy waits".to_owned()), "{one_more:?}");
    let screen = shown(&view, 100, 40);
    assert!(screen.iter().any(|line| line.starts_with("and 25 more")), "{}", screen.join("\n"));
}

fn waiting(shard: u32) -> WaitingCopy {
    WaitingCopy {
        index: "logs".into(),
        shard,
        state: "UNASSIGNED".into(),
        ..WaitingCopy::default()
    }
}

/// The view while copies wait, of which the cluster was last asked in the look before.
fn view_while(waiting: impl Iterator<Item = WaitingCopy>) -> View {
    let waiting: Arc<[WaitingCopy]> = waiting.collect();
    let looks = [0, 1].map(|s| Observation {
        waiting: waiting.clone(),
        waiting_age_ms: Some(s * 1000),
        ..look(s)
    });
    view_of(&looks)
}

#[test]
fn copies_that_nobody_asked_about_share_a_line_after_those_whose_reason_is_told() {
    let asked = |shard: u32| (24..30).contains(&shard).then(|| format!("of {shard}"));
    let copy = |shard| WaitingCopy {
        reason: Some("NODE_LEFT".into()),
        explanation: asked(shard),
        ..waiting(shard)
    };
    let view = view_while((0..30).map(copy));
    let plain = plain_lines(&view, 8.0).join("\n");
    let (first, last) =
        (plain.find("waits: replica of logs[24]: of 24"), plain.find("24 replicas"));
    assert!(first.is_some() && first < last, "{plain}");
    let line = "waits: 24 replicas of logs[0], logs[1], logs[2] and 21 more shards: NODE_LEFT; the cluster was";
    assert!(plain.contains(line) && plain.matches("waits:").count() == 7, "{plain}");
    // What a line that has no room tells of is counted by copies.
    let screen = shown(&view, 100, 40);
    assert!(screen.iter().any(|line| line.starts_with("and 25 more")), "{}", screen.join("\n"));
}

#[test]
fn what_is_left_of_the_wait_for_a_node_is_counted_down_between_answers() {
    let copy = WaitingCopy {
        can_allocate: Some("allocation_delayed".into()),
        delay_left_ms: Some(42_000),
        ..waiting(0)
    };
    let plain = plain_lines(&view_while([copy].into_iter()), 8.0).join("\n");
    let line = "waits: replica of logs[0]: waiting for a node to come back, 41.0 s left";
    assert!(plain.contains(line), "{plain}");
}

/// Where there is no room for all nodes, the one that is gone and those that recover are not those that are hidden.
#[test]
fn of_many_nodes_those_that_something_goes_on_at_are_shown() {
    let mut view = view();
    let node = |name: String, as_target| NodePace {
        gone: name == "a-150",
        name,
        as_target: Some(as_target),
        ..view.nodes[0].clone()
    };
    let idle = (0..300).map(|n| node(format!("a-{n:03}"), 0));
    let busy = ["paris", "tokyo"].map(|name| node(name.to_owned(), 1));
    let nodes: Vec<NodePace> = idle.chain(busy).collect();
    view.nodes = Arc::new(nodes.into());
    let screen = shown(&view, 100, 24);
    let text = screen.join("\n");
    for begins in ["a-150", "paris", "tokyo", "and 297 more"] {
        assert!(screen.iter().any(|line| line.starts_with(begins)), "{begins} is not in\n{text}");
    }
}

/// Forty recoveries and as many nodes on a screen of 24 rows.
#[test]
fn what_has_no_room_is_counted_and_keys_bring_it_into_sight() {
    let mut view = view();
    let copy = |shard| Pace { shard, ..view.recoveries[0].clone() };
    view.recoveries = (0..40).map(copy).collect();
    let node = |n| NodePace { name: format!("node-{n:02}"), ..view.nodes[0].clone() };
    view.nodes = Arc::new((0..40).map(node).collect::<Vec<_>>().into());
    view.notes = vec!["one thing".to_owned(), "another thing".to_owned()];
    let (trails, mut scroll) = (Trails::default(), Scroll::default());
    let mut after = |keys: &[Key]| {
        keys.iter().for_each(|key| scroll.take(*key));
        shown_after(&view, &trails, &mut scroll, 80, 24).join("\n")
    };
    let first = after(&[]);
    assert!(first.contains("orders[0] ") && first.contains(" more: ↑↓ PgUp PgDn"), "{first}");
    assert!(first.contains("node-00 ") && first.contains(" more: Tab"), "{first}");
    let last = after(&[Key::End]);
    assert!(last.contains("orders[39] ") && !last.contains("orders[0] "), "{last}");
    assert!(last.contains(" above: ") && last.contains("node-00 "), "{last}");
    let recoveries = after(&[Key::Next, Key::PageDown]);
    assert!(recoveries.contains("4 above, 17 below: "), "{recoveries}");
    assert!(!recoveries.contains("node-") && recoveries.contains("Esc back"), "{recoveries}");
    let nodes = after(&[Key::Next, Key::End]);
    assert!(nodes.contains("node-39 ") && nodes.contains("21 above: "), "{nodes}");
    let sentences = after(&[Key::Next]);
    for words in ["What holds", "rate limit: ", "note: one thing", "note: another thing"] {
        assert!(sentences.contains(words), "{words} is not in\n{sentences}");
    }
    assert_eq!(after(&[Key::Back]), first);
}

/// What a finding that has no room leaves is not left empty.
#[test]
fn rows_that_a_finding_leaves_go_to_recoveries_and_nodes() {
    let mut view = view();
    let copy = |shard| Pace { shard, ..view.recoveries[0].clone() };
    view.recoveries = (0..4).map(copy).collect();
    let node = |n| NodePace { name: format!("node-{n}"), ..view.nodes[0].clone() };
    view.nodes = Arc::new((0..4).map(node).collect::<Vec<_>>().into());
    let of_lines = |lines: usize| {
        let sentence = "word ".repeat(lines * 14);
        Found { sentence, lift: None, ..view.found[0].clone() }
    };
    view.found = vec![of_lines(5), of_lines(9)];
    let text = shown(&view, 80, 24).join("\n");
    let has = |name: String| text.contains(&name);
    assert!((0..4).all(|n| has(format!("orders[{n}] ")) && has(format!("node-{n} "))), "{text}");
    assert!(text.contains("and 1 more: Tab"), "{text}");
}

#[test]
fn a_column_that_nothing_is_told_of_is_not_there() {
    let mut view = view();
    let text = shown(&view, 200, 24).join("\n");
    assert!(!text.contains("disk r/w") && !text.contains("heap"), "{text}");
    assert!(text.contains("net rx/tx") && text.contains("paused at once"), "{text}");
    let node = NodePace { heap: Some(0.5), write_bytes_per_s: Some(1e6), ..view.nodes[0].clone() };
    view.nodes = Arc::new(vec![node, view.nodes[1].clone()].into());
    let text = shown(&view, 200, 24).join("\n");
    assert!(text.contains("disk r/w") && text.contains("heap"), "{text}");
}

#[test]
fn a_small_terminal_shows_the_verdict_all_the_same() {
    for (width, height) in [(60, 16), (80, 24), (20, 5), (1, 1)] {
        let text = shown(&view(), width, height).join("\n");
        assert!(width < 60 || text.contains("rate limit"), "{width} x {height}\n{text}");
    }
}

#[test]
fn nothing_that_recovers_is_said_too() {
    let looks = [0, 1].map(|s| Observation { recoveries: vec![], ..look(s) });
    let text = shown(&view_of(&looks), 100, 20).join("\n");
    assert!(text.contains("Verdict") && text.contains("healthy: nothing recovers"), "{text}");
}

/// The trap: a version that is cut is another version.
#[test]
fn a_narrow_terminal_cuts_the_name_of_the_cluster_and_not_its_version() {
    let mut view = view();
    view.title = "logs-of-all-the-shops-in-production  opensearch 2.19.1".to_owned();
    let first = |width: u16| shown(&view, width, 24).remove(0);
    assert!(first(60).trim_end().ends_with("…  opensearch 2.19.1"), "{}", first(60));
    assert!(first(60).contains("  logs-"), "{}", first(60));
}

#[test]
fn a_narrow_terminal_names_the_cluster_and_says_how_to_leave() {
    let mut view = view();
    for title in [view.title.clone(), "logs  the embedded engine (as 7.10.2)".to_owned()] {
        view.title = title;
        for width in [40, 60].into_iter().chain(79..=120) {
            let head = shown(&view, width, 24)[..2].join("\n");
            assert!(head.contains("logs") && head.contains("  q quits"), "{width}: {head}");
        }
    }
}

/// The trap: "1.50 m to 2" of which the unit is cut at the edge.
#[test]
fn a_long_name_of_the_cluster_cuts_no_time_of_the_state() {
    let mut view = view();
    view.title = "logs-of-all-the-shops  the embedded engine (as 7.10.2)".to_owned();
    let first = shown(&view, 80, 24).remove(0);
    let time = view.green.words();
    assert!(first.starts_with(&format!("yellow  green {time}  logs")), "{first}");
    assert!(first.trim_end().ends_with("…  the embedded engine (as 7.10.2)"), "{first}");
}

#[test]
fn the_health_stands_above_what_is_found() {
    let looks = [0, 1].map(|s| {
        let health = Health {
            status: "yellow".into(),
            nodes: Some(3),
            unassigned: Some(2),
            initializing: Some(0),
            relocating: Some(1),
            ..Health::default()
        };
        Observation { recoveries: vec![], nodes: vec![], health: Some(health), ..look(s) }
    });
    let text = findings(&diagnose(&series(&looks)), "logs", Style { color: false, width: 200 });
    let line = "health yellow, 3 nodes, 2 copies on no node, 1 copy moving";
    assert_eq!(text.lines().nth(1), Some(line), "{text}");
    assert!(text.contains("\nhealthy: "), "{text}");
    assert_eq!(text.matches("health yellow").count(), 1, "{text}");
}

/// A follower that keeps up is the news where there is no other.
#[test]
fn what_the_headline_says_is_said_once() {
    let looks = [0, 1].map(|s| {
        let leader = 100_000 + 5000 * s as i64;
        let one = |index: &str, follower: i64| Follower {
            index: index.into(),
            leader_checkpoint: Some(leader),
            follower_checkpoint: Some(follower),
            ..Follower::default()
        };
        let followers = vec![one("f", leader - 10), one("g", 50_000 + 30_000 * s as i64)];
        Observation { recoveries: vec![], nodes: vec![], followers, ..look(s) }
    });
    let text = findings(&diagnose(&series(&looks)), "logs", Style { color: false, width: 200 });
    assert_eq!(text.matches("g catches up: ").count(), 1, "{text}");
    assert!(text.contains("\nhealthy: g catches up: "), "{text}");
    assert!(text.contains("  well      f keeps up with the leader: "), "{text}");
}

#[test]
fn a_narrow_terminal_names_its_nodes() {
    for width in [56, 70, 80, 90, 120] {
        let screen = shown(&view(), width, 24);
        let nodes = screen.iter().position(|line| line.starts_with("Nodes")).unwrap();
        for (name, line) in ["paris", "tokyo"].iter().zip(&screen[nodes + 2..]) {
            assert!(line.starts_with(name), "{width}: {line}");
        }
    }
    // 400 ms of each second: of one transfer, or of several together.
    assert!(shown(&view(), 120, 24).join("\n").contains("0.40"));
}

#[test]
fn what_went_through_nodes_is_a_line_where_there_is_room() {
    let (mut view, mut trails) = (view(), Trails::default());
    for rate in [1e6, 4e6, 8e6] {
        let node = |node: &NodePace| NodePace {
            rx_bytes_per_s: Some(rate),
            tx_bytes_per_s: None,
            ..node.clone()
        };
        let nodes: Vec<NodePace> = view.nodes.iter().map(node).collect();
        view.nodes = Arc::new(nodes.into());
        trails.take(&view.nodes);
    }
    let line = |width: u16, begins: &str| {
        let screen = shown_after(&view, &trails, &mut Scroll::default(), width, 24);
        screen.into_iter().find(|line| line.starts_with(begins)).unwrap()
    };
    for width in [60, 80, 110, 200] {
        let line = line(width, "paris");
        assert!(line.ends_with("▁▄█") && line.contains("paris  "), "{width}: {line}");
    }
    assert!(line(60, "Nodes").starts_with("Nodes, rx + tx of all ▁▄█ "), "{}", line(60, "Nodes"));
    assert!(!line(50, "Nodes").contains('█'), "{}", line(50, "Nodes"));
}

/// Of a node that is drained of hundreds of shards nobody reads each that is through.
#[test]
fn explain_counts_what_is_well_past_some_lines() {
    let mut diagnosis = diagnose(&series(&looks()));
    for (count, rows, more) in [(10, 10, false), (300, 11, true)] {
        diagnosis.healthy = (0..count).map(|shard| format!("many[{shard}] took 1 s")).collect();
        let text = findings(&diagnosis, "logs", Style { color: false, width: 200 });
        assert_eq!(text.matches("\n  well ").count(), rows, "{text}");
        assert_eq!(text.contains("and 290 more"), more, "{text}");
    }
}

/// However little lifting a limit brings: terminal, page and `explain` promise the same.
#[test]
fn watch_and_explain_promise_the_same() {
    let looks = looks();
    let series = series(&looks);
    let mut diagnosis = diagnose(&series);
    for (factor, words) in [(1.02, "up to 1.02 times the rate"), (2.5, "up to 2.5 times the rate")]
    {
        diagnosis.findings[0].gain.as_mut().unwrap().factor = factor;
        let view = View::of(&series, &diagnosis, &Place::default());
        let page = serde_json::to_string(&Frame::of(0, &view, &diagnosis)).unwrap();
        let explained = findings(&diagnosis, "logs", Style { color: false, width: 200 });
        for said in [plain_lines(&view, 8.0).join("\n"), page, explained] {
            assert!(said.contains(words), "{words} is not in\n{said}");
        }
        assert!(view.found[0].lift.as_ref().unwrap().contains(words), "{:?}", view.found[0]);
    }
}

#[test]
fn what_nodes_do_not_tell_is_explained_in_one_line() {
    let explained = |silence: fn(&mut Node)| {
        let mut looks = looks();
        looks.iter_mut().flat_map(|look| &mut look.nodes).for_each(silence);
        findings(&diagnose(&series(&looks)), "logs", Style { color: false, width: 200 })
    };
    let nothing = explained(|node| (node.os_cpu_percent, node.process_cpu_ms) = (None, None));
    let once = "CPU, thread CPU: paris and tokyo tell nothing of the use of cores\n";
    assert!(nothing.contains(once), "{nothing}");
    // The screen shows what its process uses, in cores.
    let of_process = explained(|node| (node.os_cpu_percent, node.cores) = (None, None));
    let once = "CPU, thread CPU: paris and tokyo tell nothing of how many cores there are\n";
    assert!(of_process.contains(once), "{of_process}");
}

#[test]
fn the_page_of_a_watch_names_the_parts_of_a_finding() {
    let line = |s: u64| Line::Observation { t_ms: s as f64 * 1e3, observation: Box::new(look(s)) };
    let manifest = Manifest { status: Status::Complete, ..Manifest::unknown("watched", FORMAT) };
    let lines = (0..=8).map(line).collect();
    let run = RunDir { manifest, lines, rows: Vec::new(), damage: Vec::new() };
    let page = report::html(&run);
    for part in ["Holds back", "What lifts it", "Expected", "Next limit"] {
        assert!(page.contains(&format!("<b>{part}</b> ")), "{part} is not in\n{page}");
    }
}

#[test]
fn what_is_not_of_now_is_dim_and_says_its_age() {
    let looks = [0, 1].map(look);
    let series = series(&looks);
    let place = Place {
        trouble: Some("paris does not answer".into()),
        answered_s_ago: 42.3,
        ..Place::default()
    };
    let view = View::of(&series, &diagnose(&series), &place);
    let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
    let (trails, mut scroll) = (Trails::default(), Scroll::default());
    terminal.draw(|frame| draw(frame, &view, &trails, &mut scroll, true)).unwrap();
    let buffer = terminal.backend().buffer();
    let is_dim = |row: u16| buffer[(0, row)].modifier.contains(Modifier::DIM);
    assert!(!is_dim(2) && (3..24).all(is_dim));
    let text = shown(&view, 100, 24).join("\n");
    assert!(text.contains("no answer for 42.0 s") && text.contains("health unknown"), "{text}");
    let plain = plain_lines(&view, 50.0);
    assert!(plain.len() == 2 && plain[1].contains("paris does not answer"), "{plain:?}");
}
