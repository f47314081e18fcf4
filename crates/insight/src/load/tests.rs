//! Figures of loads and what changed between them, from constructed laps.

use record::Throughput;

use super::*;

fn lap(per_s: f64, p50_ms: f64) -> LoadFigures {
    let times = Percentiles {
        p50_ms,
        p90_ms: 2.0 * p50_ms,
        p99_ms: 3.0 * p50_ms,
        ..Percentiles::default()
    };
    LoadFigures {
        operation: "complex-query".to_owned(),
        clients: 100,
        seconds: 10.0,
        requests: 1000,
        throughput: Throughput {
            median_per_s: per_s,
            mean_per_s: per_s,
            min_per_s: per_s - 1.0,
            ..Throughput::default()
        },
        latency: Some(times),
        service_time: Some(times),
        ..LoadFigures::default()
    }
}

fn of<'a>(changes: &'a [Change], name: &str) -> &'a Change {
    changes.iter().find(|change| change.metric.name == name).unwrap()
}

#[test]
fn what_took_no_time_has_no_rate() {
    let rate = |seconds: f64| {
        let lap = LoadFigures { documents: 50, seconds, ..lap(10.0, 5.0) };
        total(&[lap], "Documents")
    };
    assert_eq!((rate(0.0), rate(10.0)), (None, Some(5.0)));
}

#[test]
fn the_documents_change_is_found_again() {
    // One replica with load on es3: laps of the document, without selection and with it.
    let none = [38.2174, 40.2514, 42.4385, 41.9149, 41.3764];
    let none_ms = [410.565, 394.156, 413.918, 399.447, 437.455];
    let ars = [88.2411, 88.3537, 88.8263, 90.2476, 89.1758];
    let ars_ms = [935.323, 952.327, 911.456, 954.175, 956.159];
    let laps = |per_s: [f64; 5], ms: [f64; 5]| -> Vec<LoadFigures> {
        per_s.into_iter().zip(ms).map(|(per_s, ms)| lap(per_s, ms)).collect()
    };
    let changes = changes(&laps(none, none_ms), &laps(ars, ars_ms), 1);
    let throughput = of(&changes, "Median Throughput");
    assert!((throughput.percent - 115.0).abs() < 1.0, "{throughput:?}");
    let interval = throughput.difference.percent_interval.unwrap();
    assert!(interval.low > 105.0 && interval.high < 140.0, "{interval:?}");
    assert_eq!(
        throughput.difference.mark(),
        "**",
        "five laps of each that do not overlap: p = 0.008"
    );
    let latency = of(&changes, "50th percentile latency");
    assert!((latency.percent - 132.0).abs() < 1.0, "{latency:?}");
}

#[test]
fn loads_are_compared_with_what_the_plan_says_or_with_the_first() {
    let load = |name: &str, operation: &str, baseline: Option<&str>| VariantLoad {
        operation: operation.to_owned(),
        ..variant(name, baseline, 10.0)
    };
    let names = |loads: &[VariantLoad]| -> Vec<(String, String)> {
        pairs(loads).iter().map(|(a, b)| (a.variant.clone(), b.variant.clone())).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let mut loads = vec![load("a", "x", None), load("b", "y", None), load("c", "x", None)];
    assert_eq!(names(&loads), [pair("a", "c")]);
    loads.push(load("d", "y", Some("b")));
    assert_eq!(names(&loads), [pair("b", "d")]);
}

fn variant(name: &str, baseline: Option<&str>, per_s: f64) -> VariantLoad {
    VariantLoad {
        variant: name.to_owned(),
        operation: "x".to_owned(),
        baseline: baseline.map(str::to_owned),
        laps: vec![lap(per_s, 1.0)],
    }
}

#[test]
fn a_case_is_what_is_compared_by_what_its_names_share() {
    let loads = [
        variant("one: none", None, 10.0),
        variant("one: ARS", Some("one: none"), 10.2),
        variant("four: none", None, 10.0),
        variant("four: ARS", Some("four: none"), 20.0),
        variant("one: ours", Some("one: none"), 6.0),
    ];
    let found: Vec<(&str, Vec<&str>)> = cases(&loads)
        .iter()
        .map(|case| (case.name, case.loads.iter().map(|(label, _)| *label).collect()))
        .collect();
    assert_eq!(found, [("one", vec!["none", "ARS", "ours"]), ("four", vec!["none", "ARS"])]);
    let said = headline_of_variants(&loads).text;
    assert_eq!(said, "four: ARS has 2.0 times the throughput of none");
    let mut equal = loads.to_vec();
    equal.push(variant("four: ours", Some("four: none"), 20.4));
    let said = headline_of_variants(&equal).text;
    assert_eq!(said, "four: ARS and ours have 2.0 times the throughput of none");
    equal.push(variant("four: ARS, b = 4", Some("four: none"), 20.0));
    let said = headline_of_variants(&equal).text;
    assert_eq!(said, "four: ARS, ours and \"ARS, b = 4\": 2.0 times the throughput");
    let close = headline_of_variants(&loads[..2]).text;
    assert!(close.starts_with("No throughput differs by 5 %"), "{close}");
    let strange = [variant("a", None, 10.0), variant("ab: c", Some("a"), 5.0)];
    assert_eq!(cases(&strange)[0].name, "");
    let said = headline_of_variants(&strange).text;
    assert_eq!(said, "ab: c has 0.50 times the throughput of a");
    // A few tell nothing, however much they differ; all laps count, and so do documents of a bulk.
    let mut few = loads.to_vec();
    few[3].laps[0].requests = 6;
    let close = headline_of_variants(&few[..4]);
    assert!(close.text.starts_with("No throughput differs by 5 %"), "{close:?}");
    assert_eq!(close.details, ["A variant of 6 requests is not compared: 100 are needed."]);
    let said = headline_of_variants(&few).text;
    assert_eq!(said, "one: ours has 0.60 times the throughput of none");
    few.iter_mut().for_each(|load| load.laps[0].requests = 50);
    let said = headline_of_variants(&few).text;
    assert_eq!(said, "Too few requests to tell variants apart: 50 of one, 100 are needed");
    few.iter_mut().for_each(|load| load.laps.push(load.laps[0].clone()));
    assert_eq!(headline_of_variants(&few).text, "four: ARS has 2.0 times the throughput of none");
    few.iter_mut().for_each(|load| {
        load.laps.truncate(1);
        load.laps[0].documents = 5000;
    });
    assert_eq!(headline_of_variants(&few).text, "four: ARS has 2.0 times the throughput of none");
}

#[test]
fn a_track_is_its_tasks_and_their_errors() {
    let mut loads = [variant("c", None, 10.0), variant("c", None, 10.0)];
    loads[0].operation = "index-append".to_owned();
    loads[0].laps[0].documents = 5000;
    let said = headline_of_track("c", &loads).text;
    assert_eq!(said, "c: 2 tasks, without errors; index-append indexed 500 documents a second");
    loads[1].laps[0].errors.insert("timeout".to_owned(), 1);
    let said = headline_of_track("c", &loads).text;
    assert!(said.starts_with("c: 2 tasks, errors in x"), "{said}");
}

#[test]
fn three_laps_are_never_marked() {
    let base = [lap(10.0, 1.0), lap(11.0, 1.0), lap(12.0, 1.0)];
    let other = [lap(100.0, 1.0), lap(110.0, 1.0), lap(120.0, 1.0)];
    let changes = changes(&base, &other, 1);
    let throughput = of(&changes, "Median Throughput");
    assert_eq!((throughput.percent, throughput.difference.mark()), (900.0, ""));
    assert!(throughput.difference.percent_interval.is_some());
    let latency = of(&changes, "50th percentile latency");
    assert_eq!((latency.percent, latency.difference.mark()), (0.0, ""));
}

#[test]
fn laps_become_one_figure_each_in_its_way() {
    let mut laps = vec![lap(10.0, 1.0), lap(30.0, 3.0), lap(20.0, 2.0)];
    laps[1].errors.insert("timeout".to_owned(), 30);
    let of = |name: &str| total(&laps, name);
    assert_eq!((of("Median Throughput"), of("Min Throughput")), (Some(20.0), Some(9.0)));
    assert_eq!(of("50th percentile latency"), Some(2.0));
    assert!((of("error rate").unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(of("Documents"), None, "no bulk");
}

#[test]
fn a_percentile_of_few_requests_is_no_figure() {
    let mut one = lap(10.0, 1.0);
    let said = headline(std::slice::from_ref(&one));
    assert!(said.text.ends_with(", half of them within 1.00 ms"), "{said:?}");
    assert_eq!(said.details, ["99 % of the requests took 3.00 ms at most."]);
    let said = headline(&[lap(10.0, 500.0)]);
    assert!(said.text.ends_with(", half of them within 500 ms"), "{said:?}");
    assert_eq!(said.details, ["99 % of the requests took 1.50 s at most."]);
    for (requests, shown) in [(1, 1), (2, 2), (9, 2), (10, 3), (99, 3), (100, 4), (1000, 5)] {
        one.requests = requests;
        let found = figures(std::slice::from_ref(&one));
        let names = found.iter().map(|figure| figure.metric.name);
        let of_latency = names.filter(|name| name.ends_with("percentile latency"));
        assert_eq!(of_latency.count(), shown, "{requests} requests");
    }
    one.requests = 99;
    let said = headline(std::slice::from_ref(&one));
    assert_eq!(said.text, "complex-query: 10.0 requests a second, half of them within 1.00 ms");
    assert!(said.details.is_empty(), "{said:?}");
    let of_few = changes(std::slice::from_ref(&one), &[lap(10.0, 2.0)], 1);
    let is_changed = |name: &str| of_few.iter().any(|change| change.metric.name == name);
    assert!(is_changed("90th percentile latency") && !is_changed("99th percentile latency"));
    // One answer is too few for a percentile, and is not none.
    one.requests = 1;
    let mut failed = LoadFigures { latency: None, ..one.clone() };
    failed.errors.insert("timeout".to_owned(), 1);
    assert!(headline(&[one, failed.clone()]).text.contains("a second, 50.0 % errors"));
    assert!(headline(&[failed]).text.contains("no request was answered"));
}

#[test]
fn a_driver_at_its_end_says_so() {
    let mut one = lap(10.0, 1.0);
    assert!(warnings(std::slice::from_ref(&one)).is_empty());
    one.driver = Some(DriverUse { cpu_share: 0.97, ..DriverUse::default() });
    let said = warnings(&[one.clone(), one.clone()]);
    assert!(
        said.len() == 1 && said[0].contains("97 %") && said[0].contains("not the cluster"),
        "{said:?}"
    );
    one.driver = Some(DriverUse { cpu_share: 0.5, starved_share: 0.48, ..DriverUse::default() });
    let said = warnings(&[one.clone()]);
    assert!(said[0].contains("this machine"), "{said:?}");
    let mut other = one.clone();
    other.driver = Some(DriverUse { cpu_share: 0.85, ..DriverUse::default() });
    let said = warnings(&[one.clone(), other]);
    assert!(said[0].contains("50 % of a core and waited for one 48 %"), "of one lap: {said:?}");
    one.driver = None;
    one.slipped_starts = 20;
    assert!(warnings(&[one.clone()])[0].contains("2 %"), "{one:?}");
    let once = LoadFigures { requests: 1, slipped_starts: 1, ..one.clone() };
    assert!(warnings(&[once]).is_empty(), "one late start tells nothing of the driver");
    one.slipped_starts = 0;
    one.busy_starts = 500;
    assert!(warnings(&[one.clone()]).is_empty(), "clients of a closed loop are always busy");
    one.rate_per_s = Some(100.0);
    let said = &warnings(&[one.clone()])[0];
    assert!(said.contains("all 100 clients") && said.contains("track's task"), "{said}");
    one.clients = 1;
    let said = &warnings(&[one])[0];
    assert!(said.contains("found the only client busy"), "{said}");
}
