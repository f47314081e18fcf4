//! Loads on the page: variants of a case over each other, and published figures beside them.

use std::collections::BTreeMap;

use insight::Summary;
use insight::compare::Runs;
use record::{Kind, Line, LoadFigures, Percentiles, PublishedInfo, RunDir, Throughput};
use report::Style;

use crate::page::{check, checked, whole};

/// A run of two cases: without selection and with it, of which the first has published figures.
fn of_loads() -> RunDir {
    of_loads_named(["one: none", "one: ARS", "four: none", "four: ARS"])
}

fn of_loads_named(names: [&str; 4]) -> RunDir {
    let mut run = whole();
    run.rows.truncate(names.len());
    run.manifest.variants.truncate(names.len());
    for (at, name) in names.into_iter().enumerate() {
        let per_s = 40.0 * (at + 1) as f64;
        let info = &mut run.manifest.variants[at];
        info.name = name.to_owned();
        info.baseline = (at % 2 == 1).then(|| names[at - 1].to_owned());
        let load = BTreeMap::from([("Median Throughput".to_owned(), per_s * 1.1)]);
        info.published = (at < 2).then(|| PublishedInfo {
            figure: "figure".to_owned(),
            row: "row".to_owned(),
            text: "text".to_owned(),
            node_bytes_per_s: None,
            load,
            kind: Kind::Predicted,
        });
        let latency = Some(Percentiles {
            p50_ms: 10.0,
            p90_ms: 20.0,
            p99_ms: 400.0,
            ..Percentiles::default()
        });
        run.rows[at].variant = name.to_owned();
        run.rows[at].loads = vec![LoadFigures {
            operation: "heavy".to_owned(),
            seconds: 10.0,
            requests: 100,
            throughput: Throughput { median_per_s: per_s, ..Throughput::default() },
            latency,
            searches: BTreeMap::from([("es1".to_owned(), 30), ("es2".to_owned(), 60)]),
            ..LoadFigures::default()
        }];
    }
    run
}

/// Gives each load its answers and their latency over two windows, the second while a node is slow.
fn over_time(run: &mut RunDir) {
    run.lines.clear();
    for (at, row) in run.rows.iter_mut().enumerate() {
        let variant = row.variant.clone();
        row.loads[0].throughput.window_s = 5.0;
        row.loads[0].throughput.windows = vec![500, 50 * (at as u64 + 1)];
        row.loads[0].throughput.latency_ms = vec![Some(100.0), Some(3000.0 * (at + 1) as f64)];
        let began_ms = at as f64 * 20_000.0;
        let fault = |t_s: f64, node: &str, begins| Line::Fault {
            t_ms: began_ms + t_s * 1000.0,
            variant: variant.clone(),
            what: format!("{node} is slow"),
            begins,
        };
        let edge = |t_s: f64, begins| Line::Phase {
            t_ms: began_ms + t_s * 1000.0,
            variant: Some(variant.clone()),
            lap: 1,
            phase: record::Phase { name: "load".to_owned(), begins },
        };
        run.lines.extend([
            edge(0.0, true),
            fault(6.0, "es3", true),
            edge(11.0, false),
            fault(11.5, "es3", false),
        ]);
        // The second of each case has a fault of its own.
        if at % 2 == 1 {
            run.lines.extend([fault(2.0, "es2", true), fault(3.0, "es2", false)]);
        }
    }
}

#[test]
fn throughputs_and_latencies_of_a_case_lie_over_each_other() {
    let mut run = of_loads();
    over_time(&mut run);
    let page = checked(&run);
    for id in ["throughput", "latency"] {
        let charts = page.matches(&format!("id=\"{id}-over-time-")).count();
        assert_eq!(charts, 2 * 2, "{id}: title and description of two cases");
    }
    assert!(page.contains("none: at most 100 ops/s; ARS: at most 100 ops/s"), "{page}");
    assert!(page.contains("none: at most 3000 ms; ARS: at most 6000 ms"));
    assert!(page.contains(">Latency over time: one</title>"), "of a case and not of one variant");
    assert!(page.contains("es3 is slow, 6 to 11 s"), "as far as the load went");
    assert!(page.contains("one: ARS: es2 is slow, 2 to 3 s"), "{page}");
    let shaded = page.matches("class=\"shade\"").count();
    assert_eq!(shaded, 2 * 2 * 3, "every fault of both cases, in both measures");
    // The warm-up was a second: the first window ends after six.
    let summary = insight::Summary::of(&run);
    let curves = insight::curves(&run, &summary);
    let of_load = &curves[0].loads[0];
    let drawn = |points: &[insight::Point]| -> Vec<(f64, f64)> {
        points.iter().map(|point| (point.t_s, point.value)).collect()
    };
    assert_eq!(drawn(&of_load.per_s), [(6.0, 100.0), (11.0, 10.0)]);
    assert_eq!(drawn(&of_load.latency), [(6.0, 100.0), (11.0, 3000.0)]);
}

#[test]
fn tasks_of_a_track_stand_in_one_table_that_is_not_folded() {
    let mut run = of_loads();
    assert!(!checked(&run).contains("Table of tasks"), "variants of a plan have charts");
    run.manifest.challenge = Some("fill".to_owned());
    run.manifest.variants.truncate(1);
    run.rows.truncate(1);
    let light = LoadFigures { operation: "light".to_owned(), ..run.rows[0].loads[0].clone() };
    run.rows[0].loads.push(light);
    let page = checked(&run);
    let table = page.split("aria-label=\"Table of tasks\"").nth(1).expect("the table");
    let table = table.split("</table>").next().unwrap();
    let columns = ["Median Throughput (ops/s)", "50th percentile latency (ms)", ">40.0<", ">10.0<"];
    for word in columns.iter().chain(&[">heavy<", ">light<"]) {
        assert!(table.contains(word), "{word} is not in: {table}");
    }
    assert!(!table.contains("Documents"), "nothing was indexed: {table}");
}

#[test]
fn runs_beside_each_other_have_a_chart_of_what_both_measured_of_a_load() {
    let mut one = of_loads();
    over_time(&mut one);
    let mut other = one.clone();
    // One window is no curve, and a chart has the curves of two runs.
    other.rows[0].loads[0].throughput.latency_ms[0] = None;
    let page = report::compared::html(&Runs::of(&[&one, &other]));
    for (id, variants) in [("throughput", 4), ("latency", 3), ("index-latency", 0)] {
        let found = page.matches(&format!(" id=\"{id}-")).count();
        assert_eq!(found, variants * 2 * 2, "{id}: title and description in two widths");
    }
}

#[test]
fn a_variant_has_one_colour_in_every_chart_and_the_legend_of_each_has_its_own_variants() {
    let mut run = of_loads_named(["one: none", "one: ARS", "four: none", "four: b = 4"]);
    over_time(&mut run);
    let page = checked(&run);
    let chart = |at: usize| {
        let section = page.split("<h2>Latency over time</h2>").nth(1).expect("the section");
        section.split("<figure>").nth(at + 1).and_then(|rest| rest.split("</figure>").next())
    };
    let (one, four) = (chart(0).expect("a chart"), chart(1).expect("a chart"));
    let chip = |class: &str, label: &str| {
        format!("<span class=\"chip {class}\" aria-hidden=\"true\"></span>{label}</li>")
    };
    assert!(one.contains(&chip("series-1", "ARS")) && !one.contains("b = 4"), "{one}");
    assert!(four.contains(&chip("series-2", "b = 4")) && !four.contains("ARS</li>"), "{four}");
    // Lines, dots and bars have the colours of the legend.
    for (drawn, class) in [(one, "series-1"), (four, "series-2")] {
        assert!(drawn.contains(&format!("<g class=\"{class}\"><path class=\"line\"")), "{drawn}");
    }
    let throughput = page.split("<h2>Throughput</h2>").nth(1).expect("the section");
    let row = throughput.split("<title>b = 4</title>").nth(1).expect("a row");
    let row = row.split("</svg>").next().unwrap_or_default();
    assert!(row.contains("<g class=\"series-2\">") && !row.contains("series-1"), "{row}");
    assert_eq!(
        page.matches("<td class=\"series-2\"><span class=\"amount\"").count(),
        2,
        "of two nodes"
    );
}

#[test]
fn operations_of_a_case_are_told_apart() {
    let mut run = of_loads();
    for row in &mut run.rows {
        let light = LoadFigures { operation: "light".to_owned(), ..row.loads[0].clone() };
        row.loads.push(light);
    }
    let page = checked(&run);
    let section = page.split("<h2>Searches that each node ran</h2>").nth(1).expect("the section");
    for operation in ["heavy", "light"] {
        let caption = format!("<figcaption><b>one, {operation}</b></figcaption>");
        assert!(section.contains(&caption), "{caption} is not in {section}");
    }
    assert_eq!(page.matches("From the intended start").count(), 1, "for all operations");
}

#[test]
fn no_chart_of_latencies_has_more_variants_than_colours() {
    let mut run = of_loads_named(["one: none", "one: a", "one: b", "one: c"]);
    let (mut info, mut row) = (run.manifest.variants[3].clone(), run.rows[3].clone());
    (info.name, row.variant) = ("one: d".to_owned(), "one: d".to_owned());
    run.manifest.variants.push(info);
    run.rows.push(row);
    for info in &mut run.manifest.variants[1..] {
        info.baseline = Some("one: none".to_owned());
    }
    over_time(&mut run);
    let page = checked(&run);
    let section = page.split("<h2>Latency over time</h2>").nth(1).expect("the section");
    let section = section.split("</section>").next().expect("its end");
    let charts: Vec<&str> = section.split("<figure>").skip(1).collect();
    assert_eq!(charts.len(), 2, "{section}");
    for chart in &charts {
        for class in ["series-0", "series-1", "series-2", "series-3"] {
            let line = format!("<g class=\"{class}\"><path class=\"line\"");
            assert!(chart.matches(&line).count() <= 1, "{class} means two variants: {chart}");
        }
    }
    assert!(charts[1].contains("aria-hidden=\"true\"></span>d</li>"), "it is named: {section}");
}

#[test]
fn loads_stand_case_by_case_beside_what_is_published() {
    let page = report::html(&of_loads());
    let elements = check(&page);
    let count = |wanted: &str| elements.iter().filter(|name| *name == wanted).count();
    assert_eq!(count("desc"), 4, "throughput and latency in two widths");
    assert!(page.contains("one: ARS has 2.0 times the throughput of none"), "the headline");
    assert!(page.contains("published +100.0"), "the published change");
    assert!(page.contains("</svg>ours</li>"), "the legend has both kinds of dots");
    assert!(
        page.contains("thead th { white-space: normal;"),
        "long heads leave room for all figures"
    );
    assert_eq!(
        page.matches("one: none, Median Throughput: 44.0 ops/s, published").count(),
        2,
        "in both widths"
    );
    assert_eq!(page.matches("four: ARS, 99th percentile latency: 400 ms<").count(), 2);
    assert!(!page.contains("four: none, Median Throughput: 132 ops/s, published"), "not published");
    assert_eq!(page.matches("class=\"amount\"").count(), 8, "two nodes of four variants");
    let laps = page.matches(", heavy</summary>").count();
    assert_eq!((laps, page.contains("<details open")), (4, false), "folded");
    let mut alone = of_loads();
    alone.manifest.variants.iter_mut().for_each(|info| info.published = None);
    alone.rows[0].loads[0].searches = [("es1".to_owned(), 30_000), ("es2".to_owned(), 9)].into();
    let page = checked(&alone);
    assert!(!page.contains("<ul class=\"legend\"></ul>"), "one kind of dot needs no legend");
    assert!(page.contains("30\u{202f}000"), "counts are written as everywhere");
}

#[test]
fn one_seed_beside_published_loads_is_said_to_be_one_draw() {
    let mut run = of_loads();
    let said = "Seed 42 is one draw, and figures differ from draw to draw";
    assert!(!report::html(&run).contains(said), "real time is not drawn by the seed");
    run.manifest.target = "virtual".to_owned();
    let table = report::table(&Summary::of(&run), Style { color: false, width: 100 }, None);
    assert!(report::html(&run).contains(said) && table.contains(said), "{table}");
    run.manifest.variants.iter_mut().for_each(|info| info.published = None);
    assert!(!report::html(&run).contains(said), "nothing is published");
}
