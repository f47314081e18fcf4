//! The page: well formed, complete, closed to the outside, and readable for runs that are not whole.

use std::collections::BTreeSet;

use insight::Summary;
use record::{Line, ModelInfo, Phase, RunDir, Status, StreamFigures, ThreadUse};
use report::Style;

pub(crate) fn whole() -> RunDir {
    crate::common::made_up(100.0, false)
}

/// Checks that tags nest, and returns the names of all elements.
fn elements(page: &str) -> Vec<String> {
    const VOID: [&str; 2] = ["meta", "br"];
    let mut open: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag is closed");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') {
            continue;
        }
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "closed in order"),
            None => {
                let name = tag.split_whitespace().next().expect("a tag has a name").to_owned();
                if !VOID.contains(&name.as_str()) {
                    open.push(name.clone());
                }
                seen.push(name);
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    seen
}

/// What holds for every page, whatever the record.
pub(crate) fn check(page: &str) -> Vec<String> {
    for wrong in ["NaN", "inf ", "inf\"", ">inf", "Infinity"] {
        assert!(!page.contains(wrong), "{wrong} in the page");
    }
    for outside in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "javascript:"] {
        assert!(!page.contains(outside), "{outside} in the page");
    }
    let elements = elements(page);
    for forbidden in ["script", "link", "img", "iframe", "object", "form"] {
        assert!(!elements.iter().any(|name| name == forbidden), "<{forbidden}> in the page");
    }
    let scrolled = page.matches("<div class=\"scroll\"").count();
    let reached =
        page.matches("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=").count();
    assert_eq!(scrolled, reached, "a table is scrolled without a mouse, too");
    ids_are_unique(page);
    elements
}

/// The page of a run, checked.
pub(crate) fn checked(run: &RunDir) -> String {
    let page = report::html(run);
    check(&page);
    page
}

/// A chart, from one of its ids on.
pub(crate) fn chart<'a>(page: &'a str, id: &str) -> &'a str {
    let found = page.split(&format!("id=\"{id}\"")).nth(1);
    found.and_then(|rest| rest.split("</svg>").next()).unwrap_or_else(|| panic!("no {id}"))
}

fn ids_are_unique(page: &str) {
    let mut ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id is used twice");
}

#[test]
fn the_page_of_a_twin_has_its_answer() {
    let mut run = whole();
    assert!(!report::html(&run).contains("What the twin answers"));
    let phase = record::Phase { name: "place".to_owned(), begins: true };
    let variant = Some(run.manifest.variants[0].name.clone());
    run.lines.insert(0, Line::Phase { t_ms: 0.0, variant, lap: 1, phase });
    let page = checked(&run);
    for said in ["What the twin answers", "64 KB x 1: done after", "What holds it", "What is left"]
    {
        assert!(page.contains(said), "{said}");
    }
    let (asked, until) = ("n2 lost for good".to_owned(), "green".to_owned());
    run.manifest.question = Some(record::TwinQuestion { asked, until });
    let page = checked(&run);
    for said in ["<title>remote-recovery: n2 lost for good: green after", "64 KB x 1: green after"]
    {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn every_variant_is_in_the_table_and_in_every_chart() {
    let run = whole();
    let page = report::html(&run);
    let elements = check(&page);
    let charts = elements.iter().filter(|name| *name == "svg").count();
    assert_eq!(charts, 2 + 2 + 5 + 5 + 5, "two charts in two widths, three for each variant");
    let described = elements.iter().filter(|name| *name == "desc").count();
    assert_eq!(described, charts, "every chart is described");
    for variant in &run.manifest.variants {
        assert!(page.matches(&variant.name).count() >= 8, "{}", variant.name);
    }
    for node in &run.manifest.nodes {
        assert!(page.contains(&node.name), "{}", node.name);
    }
    assert!(page.contains("59 times as fast as 64 KB x 1"), "the headline");
    let wraps = "th[title], th[title] small { white-space: normal;";
    assert!(page.contains(wraps), "names that begin alike are not cut to the same");
    let wraps = ".rows th[title] { white-space: normal; }";
    assert!(page.contains(wraps), "a name pushes no figure out of sight");
    assert!(page.contains("Little's law") || page.contains("Little&#39;s law"));
}

#[test]
fn disks_and_collections_are_drawn_of_the_nodes_that_tell_them() {
    let told = |page: &str| {
        ["Disk bytes of each node", "Busy share of each node", "Garbage collections of each node"]
            .map(|title| page.contains(&format!("<h2>{title}")))
    };
    let mut run = whole();
    assert_eq!(told(&report::html(&run)), [false; 3], "a section without data is not there");
    for line in &mut run.lines {
        if let Line::Node { t_ms, sample, .. } = line
            && sample.node != "leader-0"
        {
            let ms = *t_ms as u64;
            (sample.disk_read_bytes, sample.disk_written_bytes) = (Some(ms * 9000), Some(ms * 500));
            (sample.disk_busy_ms, sample.heap_used_bytes) = (Some(ms / 4), Some(1 << 29));
            // Who never collects has nothing to draw.
            sample.gc_ms = Some(0);
        }
    }
    let page = report::html(&run);
    let elements = check(&page);
    assert_eq!(told(&page), [true, true, false]);
    let charts = elements.iter().filter(|name| *name == "svg").count();
    assert_eq!(charts, 2 + 2 + 6 * 5, "two in two widths; link, CPU, heap, network, bytes, share");
    let of_first = page.split("id=\"disk-0-d\"").nth(1).expect("a chart").split("</desc>").next();
    let of_first = of_first.unwrap();
    assert!(of_first.contains("follower-0 ") && !of_first.contains("leader-0 "), "{of_first}");
}

#[test]
fn a_long_run_gives_a_small_page() {
    let long = report::html(&crate::common::made_up(2.0, false));
    assert!(long.len() < 400_000, "{} bytes", long.len());
    check(&long);
}

#[test]
fn names_from_the_record_are_escaped() {
    let mut run = whole();
    let evil = "<script>alert(\"1\")</script> & 'more'";
    let text = serde_json::to_string(&run.lines).unwrap();
    let quoted = serde_json::to_string(evil).unwrap();
    run.lines = serde_json::from_str(&text.replace("\"1 MB x 5\"", &quoted)).unwrap();
    run.manifest.variants[3].name = evil.to_owned();
    run.rows[3].variant = evil.to_owned();
    run.manifest.about = evil.to_owned();
    run.manifest.plan_text = "</pre><script>".to_owned();
    run.manifest.nodes[0].name = "<b>".to_owned();
    run.lines.push(Line::Note { t_ms: 1.0, variant: Some(evil.into()), text: evil.into() });
    let page = checked(&run);
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn a_run_without_rows_says_so() {
    let mut run = whole();
    run.rows.clear();
    run.lines.clear();
    run.manifest.status = Status::Failed;
    run.manifest.link = None;
    run.lines.push(Line::Note { t_ms: 12.0, variant: None, text: "disk is full".into() });
    let page = checked(&run);
    assert!(page.contains("No variant began: the run failed"));
    assert!(page.contains("Last note: disk is full"));
    assert!(!page.contains("Recovered bytes over time"), "a section without data is not there");
}

#[test]
fn of_bytes_that_never_came_there_is_no_chart() {
    let mut run = whole();
    for line in &mut run.lines {
        if let Line::Recovery { sample, .. } = line {
            sample.recovered_bytes = 0;
        }
    }
    // A curve ends with its row.
    for row in &mut run.rows {
        row.bytes = 0;
    }
    assert!(!checked(&run).contains("<h2>Recovered bytes over time"));
}

/// A recovery whose target was killed has all its bytes before it again.
#[test]
fn a_recovery_that_began_anew_is_drawn_up_to_its_peak() {
    let mut run = whole();
    run.manifest.variants.truncate(1);
    run.manifest.status = Status::Interrupted;
    run.rows.clear();
    let name = run.manifest.variants[0].name.clone();
    let mut samples = Vec::new();
    for line in &mut run.lines {
        if let Line::Recovery { variant, sample, .. } = line
            && *variant == name
        {
            samples.push(sample);
        }
    }
    let (peak, anew) = samples.split_at_mut(50);
    peak[49].recovered_bytes = 4_000_000_000;
    anew.iter_mut().for_each(|sample| sample.recovered_bytes = 1_000_000);
    let page = checked(&run);
    let chart = chart(&page, "recovered-wide-t");
    assert!(chart.contains(">4 GB<"), "{chart}");
}

#[test]
fn rows_without_samples_keep_the_table_and_the_accounting() {
    let mut run = whole();
    run.lines.clear();
    let page = report::html(&run);
    let elements = check(&page);
    assert_eq!(elements.iter().filter(|name| *name == "svg").count(), 2);
    assert!(page.contains("No samples were recorded, so there are no curves."));
    assert!(!page.contains("CPU of each node"), "a section without data is not there");
}

#[test]
fn an_interrupted_run_shows_how_far_it_came() {
    let run = crate::common::interrupted();
    let page = checked(&run);
    assert!(page.contains("The run was interrupted: 2 of 5 variants finished."));
    assert!(page.contains("5 MB x 1, stopped at "), "its curve is labelled");
    assert!(page.contains("1 MB x 5: not run."));
}

#[test]
fn a_link_is_not_said_to_be_used_by_what_was_compressed_on_it() {
    let mut run = whole();
    run.rows[3].link_share = Some(1.45);
    let page = report::html(&run);
    assert!(
        page.contains("recovered at 145 % of its rate, before compression")
            && !page.contains("% used")
    );
    let table =
        |run: &RunDir| report::table(&Summary::of(run), Style { color: false, width: 100 }, None);
    let said = "More than 100 % of the link is counted before compression.";
    assert!(table(&run).contains(said) && !table(&whole()).contains(said));
    assert!(page.contains(said) && !report::html(&whole()).contains(said));
}

#[test]
fn odd_values_do_not_break_the_page() {
    let mut run = whole();
    run.rows[1].seconds = f64::NAN;
    run.rows[2].seconds = f64::INFINITY;
    run.rows[3].link_share = None;
    run.rows[3].limits.clear();
    run.rows[4].bytes_per_s = 0.0;
    for line in &mut run.lines {
        match line {
            Line::Link { sample, .. } => sample.to_follower_bytes = 0,
            Line::Node { sample, .. } => sample.cpu_cores = 0.0,
            Line::Recovery { sample, .. } => sample.stages.clear(),
            _ => {}
        }
    }
    check(&report::html(&run));
}

/// A run that is over before a second sample: the first one has none before it.
#[test]
fn cores_that_no_sample_tells_are_not_said_to_be_none() {
    let mut run = whole();
    assert!(report::html(&run).contains("CPU of each node"));
    let mut seen = BTreeSet::new();
    run.lines.retain_mut(|line| match line {
        Line::Node { variant, lap, sample, .. } => {
            sample.cpu_cores = 0.0;
            seen.insert((variant.clone(), *lap, sample.node.clone()))
        }
        _ => true,
    });
    let page = report::html(&run);
    check(&page);
    assert!(!page.contains("CPU of each node"));
}

#[test]
fn many_nodes_and_a_single_variant() {
    let mut run = whole();
    run.manifest.variants.truncate(1);
    run.rows.truncate(1);
    let nodes: Vec<Line> = run
        .lines
        .iter()
        .filter(|line| matches!(line, Line::Node { .. }))
        .flat_map(|line| {
            (0..9).map(move |copy| {
                let mut line = line.clone();
                if let Line::Node { sample, .. } = &mut line {
                    sample.node = format!("{}-of-a-rack-with-a-long-name-{copy}", sample.node);
                }
                line
            })
        })
        .collect();
    run.lines.extend(nodes);
    let page = checked(&run);
    assert!(page.contains("nodes that did less are not shown"));
    assert!(page.contains("64 KB x 1 took 2:44"));
}

#[test]
fn writers_beside_share_the_axis_of_the_recovery_and_faults_are_shaded() {
    let mut run = whole();
    let shaded = |page: &str| page.matches("class=\"shade\"").count();
    assert_eq!(shaded(&report::html(&run)), 0);
    crate::beside::write_beside(&mut run);
    let drawn_without = checked(&run);
    for line in &mut run.lines {
        if let Line::Recovery { sample, .. } = line {
            sample.indexing_requests = sample.indexed_documents.map(|documents| documents / 4000);
            sample.indexing_ms = sample.indexing_requests.map(|requests| requests as f64 * 20.0);
        }
    }
    let page = checked(&run);
    let latency = "Mean latency of requests to index";
    assert!(page.contains(latency) && !drawn_without.contains(latency));
    assert!(page.contains("Indexing and recovery over time"));
    assert!(!page.contains("<h2>Recovered bytes over time"), "it is drawn below the indexing");
    // Three panels in two widths, the link, and CPU and network of each of six nodes.
    assert_eq!(shaded(&page), 3 * 2 + 1 + 2 * 6, "CPU and network of six nodes");
    assert!(page.contains(crate::beside::FAULT));
    let left = |id: &str| {
        let chart = &page[page.find(&format!("{id}-wide-d")).expect("a panel")..];
        let line = &chart[chart.find("class=\"grid\" x1=\"").expect("a line")..];
        line.split('"').nth(3).expect("a place").to_owned()
    };
    assert_eq!(left("indexed"), left("beside"), "both begin at the same place");
    // Colour alone tells no line from another.
    let chart = chart(&page, "beside-wide-t");
    let lines = chart.matches("<path class=\"line\"").count();
    assert_eq!((lines, chart.matches("<text class=\"label\"").count()), (5, 5), "{chart}");
}

#[test]
fn what_was_set_in_several_variants_is_shaded_in_a_lane_and_a_colour_for_each() {
    let mut run = whole();
    let names = [0, 1].map(|at: usize| run.manifest.variants[at].name.clone());
    for name in &names {
        // More than are told at once, from the second sample on.
        let is_of_it =
            |line: &&Line| matches!(line, Line::Recovery { variant, .. } if variant == name);
        let t_ms = run.lines.iter().filter(is_of_it).nth(1).expect("a sample").t_ms();
        run.lines.extend((0..8).map(|at| Line::Fault {
            t_ms,
            variant: name.clone(),
            what: format!("setting {at} is raised"),
            begins: true,
        }));
    }
    let page = checked(&run);
    let drawn = chart(&page, "recovered-wide-d");
    let rects = |class: &str| -> Vec<(String, String)> {
        let group = drawn.split(&format!("<g class=\"{class}\"><rect class=\"shade\"")).nth(1);
        let group = group.expect("a lane").split("</g>").next().unwrap();
        let value = |of: &str, name: &str| {
            of.split(name).nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        group
            .split("</rect>")
            .filter(|rect| rect.contains(" y=\""))
            .map(|rect| (value(rect, " y=\""), value(rect, "<title>")))
            .collect()
    };
    let (first, second) = (rects("shade-0"), rects("shade-1"));
    assert_eq!((first.len(), second.len()), (8, 8), "{drawn}");
    assert_ne!(first[0].0, second[0].0, "a lane for each");
    assert!(first[0].1.starts_with(&format!("{}: setting 0", names[0])), "{first:?}");
    let line = |at: usize| {
        format!(
            "<span class=\"chip shaded shade-{at}\" aria-hidden=\"true\"></span>{}: setting 0",
            names[at]
        )
    };
    assert!(page.contains(&line(0)) && page.contains(&line(1)), "each is told in its colour");
    assert_eq!(page.matches("<summary>2 more shaded times</summary>").count(), 2);
    // Nor does a shade have the hue of a limit, and the charts of one variant alone have its colour.
    assert!(!page.contains(".shade { fill: var(--warn-rule)"));
    let link = chart(&page, "link-1-d");
    assert!(link.contains("<g class=\"shade-1\">") && !link.contains("shade-0"), "{link}");
}

#[test]
fn a_cluster_that_was_looked_at_once_is_not_called_well() {
    let mut run = whole();
    run.rows.clear();
    run.lines = vec![Line::Observation { t_ms: 0.0, observation: Box::default() }];
    let page = checked(&run);
    assert!(page.contains("<p>1 look in 0 ms.</p>"), "{page}");
    assert!(page.contains("<p>one look is not enough"), "{page}");
}

/// It waited for another one before it looked.
#[test]
fn what_a_hand_noted_has_the_clock_of_its_chart() {
    let mut run = whole();
    run.rows.clear();
    let note = |t_ms: f64, text: &str| Line::Note { t_ms, variant: None, text: text.into() };
    let phase = Phase { name: "recover".into(), begins: true };
    run.lines = vec![
        note(1_000.0, "waits"),
        Line::Phase { t_ms: 36_000.0, variant: None, lap: 1, phase },
        Line::Observation { t_ms: 36_000.0, observation: Box::default() },
        note(40_000.0, "sets"),
    ];
    let page = checked(&run);
    for told in ["before</span>waits", "4.00 s</span>sets"] {
        assert!(page.contains(told), "{told}: {page}");
    }
}

#[test]
fn what_a_plan_noted_has_the_clock_of_its_variant() {
    let mut run = whole();
    run.rows.clear();
    let note = |t_ms: f64, variant: Option<&str>, text: &str| Line::Note {
        t_ms,
        variant: variant.map(str::to_owned),
        text: text.to_owned(),
    };
    let begins = |t_ms: f64, variant: &str, lap: u32, name: &str| {
        let phase = Phase { name: name.to_owned(), begins: true };
        Line::Phase { t_ms, variant: Some(variant.to_owned()), lap, phase }
    };
    run.lines = vec![
        note(1.0, None, "starts"),
        begins(1_000.0, "a", 1, "recover"),
        note(5_000.0, Some("a"), "is cut off"),
        begins(6_000.0, "a", 1, "verify"),
        note(8_000.0, None, "is checked"),
        begins(9_000.0, "b", 1, "index"),
        note(9_500.0, Some("b"), "has no room"),
        begins(10_000.0, "b", 1, "recover"),
        note(12_000.0, Some("b"), "is slow"),
    ];
    let page = checked(&run);
    for told in [
        "before</span>starts",
        "4.00 s</span><b>a</b> is cut off",
        "7.00 s</span><b>a</b> is checked",
        "before</span><b>b</b> has no room",
        "2.00 s</span><b>b</b> is slow",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    run.lines.extend([begins(20_000.0, "b", 2, "recover"), note(23_000.0, Some("b"), "is slow")]);
    let page = checked(&run);
    assert!(page.contains("3.00 s</span><b>b, lap 2</b> is slow"), "{page}");
}

#[test]
fn a_curve_above_its_link_is_explained() {
    let mut run = whole();
    for line in &mut run.lines {
        if let Line::Link { sample, .. } = line {
            sample.to_follower_bytes *= 3;
        }
    }
    let page = checked(&run);
    assert!(page.contains("bytes count when they reach its queue"), "{page}");
}

#[test]
fn documents_are_counted_where_every_variant_has_as_many() {
    let mut run = whole();
    let checked = "Every finished copy was checked against its source";
    assert!(report::html(&run).contains(&format!("{checked}: ")));
    run.rows[0].documents += 1;
    assert!(report::html(&run).contains(&format!("{checked}. ")));
}

#[test]
fn a_machine_that_is_not_known_has_no_figures() {
    let mut run = whole();
    (run.manifest.machine.cores, run.manifest.machine.memory_bytes) = (0, 0);
    let page = checked(&run);
    assert!(page.contains("<dd>unknown</dd>"), "{page}");
    assert!(
        !page.contains(", 0 cores")
            && !page.contains("machine has 0")
            && !page.contains("<dd>0 B</dd>"),
        "{page}"
    );
}

#[test]
fn virtual_nodes_have_cores_of_their_own() {
    let mut run = whole();
    let here = format!("; the machine has {}", run.manifest.machine.cores);
    assert!(checked(&run).contains(&here));
    run.manifest.target = "virtual".to_owned();
    for info in &mut run.manifest.variants {
        info.models = vec![ModelInfo {
            hosts: "all".to_owned(),
            name: "cores.count".to_owned(),
            value: "16".to_owned(),
            unit: "cores".to_owned(),
            source: "a test".to_owned(),
            calibrated_on: None,
        }];
    }
    let page = checked(&run);
    assert!(page.contains("; a node has 16.") && !page.contains("the machine has"), "{page}");
    run.manifest.variants[0].models[0].value = "4".to_owned();
    assert!(!checked(&run).contains("; a node has"), "they differ");
}

/// A run whose first variant streamed for 10 s over these threads.
fn streamed(threads: Vec<ThreadUse>) -> RunDir {
    let mut run = whole();
    run.rows[0].seconds = 10.0;
    run.rows[0].stream = Some(StreamFigures { threads, ..StreamFigures::default() });
    run
}

fn thread(name: &str, busy_s: f64) -> ThreadUse {
    ThreadUse { name: name.to_owned(), busy_s, ..ThreadUse::default() }
}

#[test]
fn threads_of_a_stream_have_a_bar_each() {
    let page = checked(&streamed(vec![thread("producer", 2.5), thread("consumer", 10.0)]));
    assert!(page.contains("--share:0.250") && page.contains("--share:1.000"), "{page}");
    assert!(!report::html(&whole()).contains("How busy each thread was"));
}

#[test]
fn a_line_that_nothing_is_known_to_hold_is_in_the_legend() {
    let page = checked(&streamed(vec![thread("producer", 0.1)]));
    let named = "<span class=\"chip neutral\" aria-hidden=\"true\"></span>unknown";
    assert!(page.contains(&format!("<li>{named}</li>")), "the grey of its line\n{page}");
    assert!(page.contains(&format!("<td>{named}</td>")), "{page}");
}

/// Of a single variant there is no other to be faster than, and ends that read the same are no interval.
#[test]
fn a_single_variant_has_no_gain_to_explain() {
    let mut run = whole();
    assert!(report::html(&run).contains("Gain: how many times"));
    let only = run.rows[0].clone();
    run.manifest.variants.retain(|variant| variant.name == only.variant);
    run.rows = (1..=3).map(|lap| record::Row { lap, ..only.clone() }).collect();
    let page = checked(&run);
    assert!(!page.contains("Gain: how many times"), "{page}");
    let took = record::units::show_seconds(only.seconds);
    assert!(!page.contains(&format!("{took} to {took}")), "{page}");
}

#[test]
fn a_thread_that_tells_its_waits_has_a_bar_of_them() {
    let waits = |name: &str, flow_control_s: f64, disk_s: f64| ThreadUse {
        flow_control_s: Some(flow_control_s),
        disk_s: Some(disk_s),
        ..thread(name, 2.5)
    };
    let page = checked(&streamed(vec![waits("producer", 5.0, 0.5), waits("consumer", 0.0, 4.0)]));
    let told = "producer: busy 25 %, flow control 50 %, disk 5.0 %, waiting 20 %; \
                consumer: busy 25 %, flow control 0 %, disk 40 %, waiting 35 %";
    assert!(page.contains(told), "{page}");
    assert!(page.contains("What each thread did") && !page.contains("How busy each thread was"));
}
