//! The screen of `watch` as a terminal shows it.

use std::sync::Arc;

use insight::diagnosis::{NodePace, Pace, Series, diagnose};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Modifier;
use record::observation::{
    Health, Identity, Node, Observation, Recovery, RoundTrip, Scope, Setting, WaitingCopy,
};
use record::{FORMAT, Line, Manifest, RunDir, Status};
use report::Style;
use report::live_page::Frame;
use report::screen::{Key, Place, Scroll, Trails, View, WaitingLine, draw, findings, plain_lines};

/// A recovery of 1 GB that its limiter holds at 40 MB/s, seen every second.
fn look(s: u64) -> Observation {
    let node = |name: &str| Node {
        id: name.into(),
        name: name.into(),
        timestamp_ms: Some(s * 1000),
        process_cpu_ms: Some(s * 100),
        os_cpu_percent: Some(if name == "paris" { 12 } else { 95 }),
        cores: Some(8),
        throttle_ms: Some(s * 400),
        transport_rx_bytes: Some(s * 41_900_000),
        ..Node::default()
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
        recoveries: vec![Recovery {
            index: "orders".into(),
            kind: "PEER".into(),
            stage: "INDEX".into(),
            source: Some("paris".into()),
            target: Some("tokyo".into()),
            start_ms: Some(1),
            total_ms: Some(s * 1000),
            total_bytes: Some(1_000_000_000),
            recovered_bytes: Some(s * 41_900_000),
            source_throttle_ms: Some(s * 400),
            target_throttle_ms: Some(0),
            ..Recovery::default()
        }],
        settings: Some([("indices.recovery.max_bytes_per_sec".to_owned(), limit)].into()),
        round_trips: vec![RoundTrip { from: "paris".into(), to: "tokyo".into(), rtt_ms: 5.0 }],
        ..Observation::default()
    }
}

fn view() -> View {
    view_of(&(0..=8).map(look).collect::<Vec<_>>())
}

/// The view after eight looks, a second apart.
fn view_of(looks: &[Observation]) -> View {
    let series = Series::new((0..=8).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
    let place = Place { hosts: "http://paris:9200".into(), ..Place::default() };
    View::of(&series, &diagnose(&series), &place)
}

/// What a terminal of this size shows, line by line.
fn shown(view: &View, width: u16, height: u16) -> Vec<String> {
    shown_with(view, &Trails::default(), width, height)
}

fn shown_with(view: &View, trails: &Trails, width: u16, height: u16) -> Vec<String> {
    shown_after(view, trails, &mut Scroll::default(), width, height)
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
    let with = |look: Observation| Observation {
        settings: look.settings.map(|mut all| {
            all.insert(name.to_owned(), off.clone());
            all
        }),
        ..look
    };
    let view = view_of(&(0..=8).map(|s| with(look(s))).collect::<Vec<_>>());
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
    let looks: Vec<Observation> = (0..=8)
        .map(|s| {
            let mut look = look(s);
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
            look
        })
        .collect();
    let series = Series::new((0..=8).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
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
    let mut looks: Vec<Observation> = (0..=8).map(look).collect();
    end(&mut looks);
    let over = view_of(&looks);
    let screen = shown(&over, 120, 30).join("\n");
    let plain = plain_lines(&over, 8.0).join("\n");
    assert!(screen.contains("What held") && !screen.contains("What holds"), "{screen}");
    for text in [&screen, &plain] {
        assert!(text.contains("rate limit, recovery ended: the limiter of"), "{text}");
    }
    // The same holds another one, which goes on.
    let mut looks: Vec<Observation> = (0..=8).map(look).collect();
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
    let copy = |shard| WaitingCopy {
        index: "logs".into(),
        shard,
        state: "UNASSIGNED".into(),
        explanation: Some(format!("of {shard}")),
        ..WaitingCopy::default()
    };
    let view = view_while((0..30).map(copy));
    let plain = plain_lines(&view, 8.0).join("\n");
    assert_eq!(plain.matches("waits:").count(), 20, "{plain}");
    assert!(plain.contains("and 10 more copies wait"), "{plain}");
    let screen = shown(&view, 100, 40);
    assert!(screen.iter().any(|line| line.starts_with("and 25 more")), "{}", screen.join("\n"));
}

/// The view while copies wait, of which the cluster was last asked in the look before.
fn view_while(waiting: impl Iterator<Item = WaitingCopy>) -> View {
    let waiting: Arc<[WaitingCopy]> = waiting.collect();
    let looks = [0, 1].map(|s| Observation {
        waiting: waiting.clone(),
        waiting_age_ms: Some(s * 1000),
        ..look(s)
    });
    let series = Series::new([(0.0, &looks[0]), (1e3, &looks[1])]);
    View::of(&series, &diagnose(&series), &Place::default())
}

#[test]
fn copies_that_nobody_asked_about_share_a_line_after_those_whose_reason_is_told() {
    let asked = |shard: u32| (24..30).contains(&shard).then(|| format!("of {shard}"));
    let copy = |shard| WaitingCopy {
        index: "logs".into(),
        shard,
        state: "UNASSIGNED".into(),
        reason: Some("NODE_LEFT".into()),
        explanation: asked(shard),
        ..WaitingCopy::default()
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
        index: "logs".into(),
        state: "UNASSIGNED".into(),
        can_allocate: Some("allocation_delayed".into()),
        delay_left_ms: Some(42_000),
        ..WaitingCopy::default()
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
    let series = Series::new([(0.0, &looks[0]), (1e3, &looks[1])]);
    let view = View::of(&series, &diagnose(&series), &Place::default());
    let text = shown(&view, 100, 20).join("\n");
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
    let series = Series::new([(0.0, &looks[0]), (1e3, &looks[1])]);
    let text = findings(&diagnose(&series), "logs", Style { color: false, width: 200 });
    let line = "health yellow, 3 nodes, 2 copies on no node, 1 copy moving";
    assert_eq!(text.lines().nth(1), Some(line), "{text}");
    assert!(text.contains("\nhealthy: "), "{text}");
    assert_eq!(text.matches("health yellow").count(), 1, "{text}");
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
        let screen = shown_with(&view, &trails, width, 24);
        screen.into_iter().find(|line| line.starts_with(begins)).unwrap()
    };
    for width in [60, 80, 110, 200] {
        let line = line(width, "paris");
        assert!(line.ends_with("▁▄█") && line.contains("paris  "), "{width}: {line}");
    }
    assert!(line(60, "Nodes").starts_with("Nodes, rx + tx of all ▁▄█ "), "{}", line(60, "Nodes"));
    assert!(!line(50, "Nodes").contains('█'), "{}", line(50, "Nodes"));
}

/// What is cut of a name is its middle: its end says which shard it is, and a node is never cut.
#[test]
fn a_narrow_terminal_cuts_names_in_the_middle_and_says_when_it_is_green() {
    let mut view = view();
    view.recoveries[0].index = "logs-application-production-2026.11.25".into();
    view.recoveries[0].source = Some("es-node-0".into());
    view.recoveries[0].target = Some("es-node-2".into());
    for width in [60, 80, 110, 200] {
        let screen = shown(&view, width, 24);
        let is_it = |line: &&String| line.starts_with("log") && line.contains(".25[0] ");
        let line = screen.iter().find(is_it).unwrap();
        assert!(line.contains("es-node-0 > es-node-2"), "{width}: {line}");
        assert!(screen[0].contains("yellow  green in "), "{width}: {}", screen[0]);
        assert!(screen[0].split("green in ").nth(1).unwrap().contains(" to "), "{}", screen[0]);
    }
}

/// Columns make room for the names of nodes. Where even that is not enough, both ends of a name are there.
#[test]
fn a_long_name_of_a_node_is_whole_and_columns_make_room() {
    let names = ["elasticsearch-data-hot-0", "elasticsearch-data-hot-1"];
    let mut view = view();
    let node = |name: &str| NodePace { name: name.to_owned(), ..view.nodes[0].clone() };
    let (nodes, longer) = (names.map(node), node("elasticsearch-data-frozen-and-archived-17"));
    view.nodes = Arc::new(nodes.to_vec().into());
    view.recoveries[0].source = Some(names[0].into());
    view.recoveries[0].target = Some(names[1].into());
    for width in [60, 80, 110, 200] {
        let screen = shown(&view, width, 24);
        let text = screen.join("\n");
        let begins = |name: &str| screen.iter().any(|line| line.starts_with(&format!("{name} ")));
        assert!(names.into_iter().all(begins), "{width}\n{text}");
        let path = names.join(" > ");
        assert!(text.contains(&path) && text.contains("orders[0]"), "{width}\n{text}");
        assert!(text.contains(" 34 %") && text.contains("MB/s"), "{width}\n{text}");
    }
    view.nodes = Arc::new(vec![longer].into());
    view.recoveries[0].target = Some("x".repeat(90) + "-17");
    let screen = shown(&view, 110, 24);
    let of_both =
        |line: &String| line.starts_with("elasticsearch-data-hot-0 > x") && line.contains("x-17 ");
    assert!(screen.iter().any(of_both), "{}", screen.join("\n"));
    let cut = shown(&view, 40, 24);
    let cut = cut.iter().find(|line| line.starts_with("elasticsearch")).unwrap();
    assert!(cut.contains('…') && cut.contains("-17 "), "{cut}");
}

/// Copies of one shard to several nodes, shards of one index, and indices whose names begin and end alike.
#[test]
fn no_two_recoveries_look_alike_whatever_the_width() {
    let mut view = view();
    let copy = |index: &str, shard: u32, target: &str| Pace {
        index: index.into(),
        shard,
        source: Some("es-data-node-0".into()),
        target: Some(target.into()),
        ..view.recoveries[0].clone()
    };
    let (one, other) =
        ("logs-application-checkout-2026.11.25", "logs-application-payments-2026.11.25");
    view.recoveries = vec![
        copy(one, 0, "es-data-node-1"),
        copy(one, 0, "es-data-node-2"),
        copy(one, 12, "es-data-node-1"),
        copy(one, 13, "es-data-node-1"),
        copy(other, 13, "es-data-node-1"),
    ];
    for width in [40, 60, 80, 110, 200] {
        let screen = shown(&view, width, 60);
        let text = screen.join("\n");
        // A recovery begins with its shard, and names its nodes there or below.
        let begin = (0..screen.len() - 1).filter(|at| screen[*at].starts_with("logs-"));
        let mut named: Vec<String> = begin.map(|at| screen[at..at + 2].join("\n")).collect();
        let shards = named.iter().map(|lines| lines.split(['[', ']']).nth(1).unwrap());
        assert_eq!(shards.collect::<Vec<_>>(), ["0", "0", "12", "13", "13"], "{width}\n{text}");
        let is_whole = |lines: &String| lines.contains("es-data-node-0 > es-data-node-");
        assert!(named.iter().all(is_whole), "{width}\n{text}");
        let bars = screen.iter().filter(|line| line.contains('░')).count();
        assert_eq!(bars, if width < 60 { 0 } else { 5 }, "{width}\n{text}");
        named.dedup();
        assert_eq!(named.len(), 5, "{width}\n{text}");
    }
    // Where not all have room, whole recoveries are shown, and the others are counted.
    for (width, height) in [(20, 36), (60, 24), (40, 12)] {
        let screen = shown(&view, width, height);
        let names = screen.iter().filter(|line| line.starts_with("logs-")).count();
        let more = format!("and {} more", 5 - names);
        let is_told = screen.iter().any(|line| line.starts_with(&more));
        assert!(names > 0 && is_told, "{width}\n{}", screen.join("\n"));
    }
}

/// Nothing stands far from what it belongs to: bars and trails have the room that names leave.
#[test]
fn a_wide_terminal_has_no_holes() {
    for width in [60, 80, 110, 200] {
        let screen = shown(&view(), width, 24);
        let of_shard = screen.iter().find(|line| line.contains(" 34 %")).unwrap();
        let blocks = of_shard.chars().filter(|c| ['█', '░'].contains(c)).count();
        assert!(blocks >= 10 && !of_shard.trim().contains(&" ".repeat(14)), "{width}: {of_shard}");
        let of_node = screen.iter().find(|line| line.starts_with("paris ")).unwrap();
        let beside = &of_node["paris".len()..];
        assert!(beside.len() - beside.trim_start().len() < 14, "{width}: {of_node}");
    }
}

/// Why a copy waits is seen however long its index is called, and that something is cut.
#[test]
fn a_copy_that_waits_says_why_on_a_narrow_terminal() {
    let mut view = view();
    let name = "replica of logs-application-production-europe-west-2026.11.25[17]";
    let waits = |text: String| WaitingLine { text, copies: 1 };
    view.waiting = vec![
        waits(format!("{name}: throttling: [es-3] has the primary and sends 2 recoveries already")),
        waits("replica of a[0]: soon".to_owned()),
    ];
    let line = |width: u16, holds: &str| {
        let screen = shown(&view, width, 24);
        screen.into_iter().find(|line| line.contains(holds)).unwrap().trim_end().to_owned()
    };
    for width in [60, 80, 110] {
        let cut = line(width, "[17]");
        assert!(cut.contains("[17]: throttling: [es-3] ") && cut.ends_with('…'), "{width}: {cut}");
        assert_eq!(line(width, "a[0]"), "replica of a[0]: soon");
    }
    assert!(line(200, "[17]").contains(&format!("{name}: throttling")));
}

/// The nodes of a row do not say which index it is.
#[test]
fn no_two_indices_look_alike_though_their_nodes_differ() {
    let mut view = view();
    let copy = |index: &str, target: &str| Pace {
        index: index.into(),
        source: Some("node-0".into()),
        target: Some(target.into()),
        ..view.recoveries[0].clone()
    };
    view.recoveries = vec![
        copy("logs-application-checkout-2026.11.25", "node-1"),
        copy("logs-application-payments-2026.11.25", "node-2"),
    ];
    for width in [80, 110] {
        let screen = shown(&view, width, 60);
        let begin = screen.iter().filter(|line| line.starts_with("logs-"));
        let names: Vec<&str> = begin.filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names.len(), 2, "{width}\n{}", screen.join("\n"));
        assert_ne!(names[0], names[1], "{width}");
    }
}

/// Characters of some scripts are two columns wide.
#[test]
fn nodes_with_wide_names_are_named_whole() {
    let mut view = view();
    let [source, target] = ["節点-0", "節点-1"].map(|name| Some(name.to_owned()));
    view.recoveries = vec![Pace { source, target, ..view.recoveries[0].clone() }];
    for width in [60, 110] {
        let text = shown(&view, width, 60).join("\n").replace(' ', "");
        assert!(text.contains("節点-0>節点-1"), "{width}\n{text}");
    }
}

/// Of a node that is drained of hundreds of shards nobody reads each that is through.
#[test]
fn explain_counts_what_is_well_past_some_lines() {
    let looks: Vec<Observation> = (0..=8).map(look).collect();
    let series = Series::new((0..=8).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
    let mut diagnosis = diagnose(&series);
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
    let looks: Vec<Observation> = (0..=8).map(look).collect();
    let series = Series::new((0..=8).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
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
        let mut looks: Vec<Observation> = (0..=8).map(look).collect();
        looks.iter_mut().flat_map(|look| &mut look.nodes).for_each(silence);
        let series = Series::new((0..=8).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
        findings(&diagnose(&series), "logs", Style { color: false, width: 200 })
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
    let run = RunDir {
        manifest: Manifest { status: Status::Complete, ..Manifest::unknown("watched", FORMAT) },
        lines: (0..=8).map(line).collect(),
        rows: Vec::new(),
        damage: Vec::new(),
    };
    let page = report::html(&run);
    for part in ["Holds back", "What lifts it", "Expected", "Next limit"] {
        assert!(page.contains(&format!("<b>{part}</b> ")), "{part} is not in\n{page}");
    }
}

#[test]
fn what_is_not_of_now_is_dim_and_says_its_age() {
    let looks = [0, 1].map(look);
    let series = Series::new([(0.0, &looks[0]), (1e3, &looks[1])]);
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
