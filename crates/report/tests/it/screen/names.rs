//! Names on the screen, whatever its width.

use std::sync::Arc;

use insight::diagnosis::{NodePace, Pace};
use record::observation::WaitingCopy;
use report::screen::WaitingLine;

use super::{shown, view, view_while, waiting};

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

/// Columns make room for the names of nodes, and where both have no room on a line, each has its own.
#[test]
fn a_long_name_of_a_node_is_whole_and_columns_make_room() {
    let names = ["elasticsearch-data-hot-0", "elasticsearch-data-hot-1"];
    let mut view = view();
    let node = |name: &str| NodePace { name: name.to_owned(), ..view.nodes[0].clone() };
    let longer = "elasticsearch-data-frozen-and-archived-in-north-17";
    let (nodes, long) = (names.map(node), node(longer));
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
    view.nodes = Arc::new(vec![long].into());
    for (width, target) in [(110, "x".repeat(90) + "-17"), (60, "x".repeat(50) + "-17")] {
        view.recoveries[0].target = Some(target.clone());
        let screen = shown(&view, width, 24);
        let text = screen.join("\n");
        let at = screen.iter().position(|line| line.trim_end() == names[0]).expect(&text);
        assert_eq!(screen[at + 1].trim_end(), format!(" > {target}"), "{text}");
        assert!(screen.iter().any(|line| line.starts_with(longer)), "{text}");
    }
    let source = "y".repeat(58);
    view.recoveries[0].source = Some(source.clone());
    let screen = shown(&view, 60, 24);
    assert!(screen.iter().any(|line| line.trim_end() == source), "{}", screen.join("\n"));
    view.recoveries[0].source = Some(names[0].into());
    // Only a name that is longer than a line is cut.
    let is_cut = |line: &String| line.contains('…') && line.trim_end().ends_with("-17");
    let screen = shown(&view, 40, 24);
    assert_eq!(screen.iter().filter(|line| is_cut(line)).count(), 2, "{}", screen.join("\n"));
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
    let waits = |text: String| WaitingLine { brief: text.clone(), text, copies: 1 };
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

/// Names of several shards would leave no room for the reason: their number stands for them.
#[test]
fn several_copies_that_wait_say_why_on_a_narrow_terminal() {
    let why = "no node has room on its disk";
    let copy = |shard| WaitingCopy { explanation: Some(why.into()), ..waiting(shard) };
    let view = view_while((0..9).map(copy));
    let line = |width: u16| {
        let is_it = |line: &String| line.starts_with("9 replicas of ");
        shown(&view, width, 24).into_iter().find(is_it).unwrap().trim_end().to_owned()
    };
    assert_eq!(line(60), format!("9 replicas of 9 shards: {why}"));
    let named = "9 replicas of logs[0], logs[1], logs[2] and 6 more shards";
    assert_eq!(line(110), format!("{named}: {why}"));
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
