//! The terminal's table, JSON and CSV.

use std::collections::BTreeMap;
use std::path::Path;

use insight::Summary;
use insight::compare::Runs;
use record::{LoadFigures, RunDir, Status};
use report::Style;
use serde_json::Value;

fn plain(width: u16) -> Style {
    Style { color: false, width }
}

fn two_variants() -> RunDir {
    let mut run = crate::common::made_up(100.0, false);
    for index in [3, 2, 1] {
        run.manifest.variants.remove(index);
        run.rows.remove(index);
    }
    run
}

/// Keys in order, whether or not another crate of the build asks serde_json to keep insertion order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        Value::Object(map) => {
            let ordered: BTreeMap<String, Value> =
                map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            ordered.into_iter().collect()
        }
        other => other,
    }
}

#[test]
fn the_table_of_a_whole_run() {
    let run = crate::common::made_up(100.0, false);
    let page = Path::new("runs/r1/report.html");
    let table = report::table(&Summary::of(&run), plain(100), Some(page));
    insta::assert_snapshot!(table, @r#"
    adaptive is 59 times as fast as 64 KB x 1
    The slow one was held by latency, the fast one by the link.
    remote-recovery on embedded, run 20260412-101500-remote-recovery

    variant       time   MB/s   of link    gain   held by     share   published   its gain
    ──────────────────────────────────────────────────────────────────────────────────────
    64 KB x 1     2:44   1.95     1.6 %   1.00×   latency      97 %     3:59:45      1.00×
    1 MB x 1    11.7 s   27.3      22 %   14.0×   latency      85 %       14:04      17.0×
    5 MB x 1    4.38 s   73.1      58 %   37.5×   latency      55 %        4:47      50.1×
    1 MB x 5    3.42 s   93.6      75 %   48.0×   link rate    78 %      73.3 s       196×
    adaptive    2.80 s    114      91 %   58.6×   link rate    90 %           -          -

    Slowest is 64 KB x 1, 97 % latency: 64 KiB x 1 in flight over 100 ms cannot exceed 0.66 MB/s a shard
      (Little's law), 1.97 MB/s over 3 shards; next: the link at 125 MB/s.
    Fastest is adaptive, 90 % link rate: 114 MB/s is 91 % of the link's 125 MB/s; next: nothing close
      (latency takes 4.1 %).
    Link: 100 ms round trip, 125 MB/s; without delay and rate it carried 1840 MB/s on this machine.
    Published rows moved 4.90 GB, these 320 MB: compare gains, not times. With less data gains are
      smaller: to begin and to end a copy takes more of its time.
    Report: runs/r1/report.html
    "#);
}

#[test]
fn advice_says_why_no_other_limit_held_under_keys_that_are_documented() {
    let run = crate::common::made_up(100.0, false);
    let advice = insight::advice(&run, &Summary::of(&run)).remove(0);
    let text = report::screen::advice(&advice, plain(100));
    assert!(
        text.contains("\n  not told  coordination: this target does not tell the time"),
        "{text}"
    );
    assert!(text.contains("\n  ruled out ") && text.contains(" of the time\n"), "{text}");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnosis/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (of_runs, of_findings) = page.split_once("\n| key |").unwrap();
    let advice = serde_json::to_value(advice).unwrap();
    for key in advice.as_object().unwrap().keys() {
        assert!(of_runs.contains(&format!("`{key}`")), "{key}");
    }
    for key in advice["ruled_out"][0].as_object().unwrap().keys().filter(|key| *key != "limit") {
        assert!(of_findings.contains(&format!("`findings[].ruled_out[].{key}`")), "{key}");
    }
}

/// Where as much moved, times compare: both are written alike, and the difference is told.
#[test]
fn a_published_time_of_as_much_data_is_compared() {
    let mut run = crate::common::made_up(100.0, false);
    run.rows[3].seconds = 103.0;
    let of = |run: &RunDir| {
        let table = report::table(&Summary::of(run), plain(120), None);
        let row = table.lines().find(|line| line.starts_with("1 MB x 5")).unwrap().to_owned();
        (table, row, report::html(run))
    };
    let (table, row, page) = of(&run);
    assert!(row.contains("  1:43 ") && row.contains("73.3 s"), "{table}");
    assert!(!table.contains("off by") && !page.contains("<small>ours "), "other amounts moved");
    run.rows[3].published_bytes = Some(run.rows[3].bytes);
    let (table, row, page) = of(&run);
    assert!(table.contains("ours off by"), "{table}");
    assert!(
        row.contains("  1:43 ") && row.contains("  1:13 ") && row.contains(" +40.5 % "),
        "{table}"
    );
    assert!(page.contains("1:13<small>ours +40.5 %</small>"));
    // Without published bytes, indices have the published size in virtual time at its scale.
    run.rows[3].published_bytes = None;
    assert!(!of(&run).1.contains('+'));
    (run.manifest.target, run.manifest.scale) = ("virtual".to_owned(), 1.0);
    assert!(of(&run).1.contains(" +40.5 % "));
}

#[test]
fn a_narrow_terminal_loses_columns_but_no_row_wraps() {
    let run = crate::common::made_up(100.0, false);
    let summary = Summary::of(&run);
    for width in [40, 60, 70, 80, 90, 100, 200] {
        let table = report::table(&summary, plain(width), None);
        let rows = table.lines().filter(|line| line.contains("latency ") && line.contains('×'));
        assert_eq!(rows.count(), 3, "width {width}:\n{table}");
    }
    let at_80 = report::table(&summary, plain(80), None);
    assert!(at_80.lines().all(|line| line.chars().count() <= 80), "{at_80}");
}

/// Names as long as those of the plan remote-recovery-http-logs.
#[test]
fn long_names_are_cut_before_what_is_published_is_left_out() {
    let mut run = crate::common::made_up(100.0, false);
    for (at, name) in [(0, "compressed: 5 MB x 8"), (1, "compressed: 5 MB x 8, Java 11")] {
        run.manifest.variants[at].name = name.to_owned();
        run.rows[at].variant = name.to_owned();
    }
    let summary = Summary::of(&run);
    let shown = |width: u16| report::table(&summary, plain(width), None);
    let row = |table: &str| {
        let is_it = |line: &&str| line.ends_with("14:04") || line.contains(" 14:04 ");
        table.lines().find(is_it).map(str::to_owned)
    };
    let whole = row(&shown(100)).unwrap();
    assert!(whole.starts_with("compressed: 5 MB x 8, Java 11 "), "{whole}");
    let cut = row(&shown(80)).unwrap();
    assert!(cut.starts_with("compressed:… 8, Java 11 "), "{cut}");
    assert!(cut.chars().count() <= 80, "{cut}");
    assert!(row(&shown(50)).is_none(), "{}", shown(50));
}

#[test]
fn the_table_of_an_interrupted_run() {
    let run = crate::common::interrupted();
    let table = report::table(&Summary::of(&run), plain(100), None);
    insta::assert_snapshot!(table, @r#"
    1 MB x 1 is 14 times as fast as 64 KB x 1
    Both were held by latency.
    remote-recovery on embedded, run 20260412-101500-remote-recovery

    variant       time   MB/s   of link    gain   held by           share   published   its gain
    ────────────────────────────────────────────────────────────────────────────────────────────
    64 KB x 1     2:44   1.95     1.6 %   1.00×   latency            97 %     3:59:45      1.00×
    1 MB x 1    11.7 s   27.3      22 %   14.0×   latency            85 %       14:04      17.0×
    5 MB x 1         -      -         -       -   stopped at 44 %       -        4:47      50.1×
    1 MB x 5         -      -         -       -   not run               -      73.3 s       196×
    adaptive         -      -         -       -   not run               -           -          -

    Slowest is 64 KB x 1, 97 % latency: 64 KiB x 1 in flight over 100 ms cannot exceed 0.66 MB/s a shard
      (Little's law), 1.97 MB/s over 3 shards; next: the link at 125 MB/s.
    Fastest is 1 MB x 1, 85 % latency: 1 MiB x 1 in flight over 100 ms cannot exceed 10.5 MB/s a shard
      (Little's law), 31.5 MB/s over 3 shards; next: the link at 125 MB/s.
    Link: 100 ms round trip, 125 MB/s; without delay and rate it carried 1840 MB/s on this machine.
    Published rows moved 4.90 GB, these 320 MB: compare gains, not times. With less data gains are
      smaller: to begin and to end a copy takes more of its time.
    The run was interrupted: 2 of 5 variants finished.
    5 MB x 1: stopped after 2.00 s at 44 % of 320 MB.
    1 MB x 5: not run.
    adaptive: not run.
    "#);
}

#[test]
fn a_run_in_which_nothing_finished_still_has_a_table() {
    let mut run = crate::common::made_up(100.0, false);
    (run.rows, run.lines) = (vec![], vec![]);
    run.manifest.status = Status::BrokenOff;
    let table = report::table(&Summary::of(&run), plain(80), None);
    assert!(table.contains("No variant began: the run broke off"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("  not run ")).count(), 5, "{table}");
    run.manifest.variants.clear();
    let empty = report::table(&Summary::of(&run), plain(80), None);
    assert!(!empty.contains("variant   "), "{empty}");
}

#[test]
fn what_is_not_as_in_the_plan_is_said_everywhere() {
    let mut run = crate::common::made_up(100.0, false);
    let change = "The link carries 85.0 MB/s in place of 125 MB/s.";
    run.manifest.changes = vec![change.to_owned()];
    let summary = Summary::of(&run);
    let table = report::table(&summary, plain(100), None);
    assert!(table.contains(&format!("Not as in the plan: {change}")), "{table}");
    assert_eq!(report::json(&summary)["changes"][0], change);
    let page = report::html(&run);
    assert!(page.contains("Not as in the plan") && page.contains(change));
}

#[test]
fn equal_figures_are_the_same_beside_others_that_differ() {
    let (one, mut other) = (two_variants(), two_variants());
    other.rows[1].seconds *= 2.0;
    let compared = |one: &RunDir, other: &RunDir| {
        let markdown = report::compared::markdown(&Runs::of(&[one, other]), None);
        let of = |variant: &str| {
            let begin = format!("| {variant} | time (s) |");
            markdown.lines().find(|line| line.starts_with(&begin)).unwrap().to_owned()
        };
        (of("64 KB x 1"), of("adaptive"))
    };
    let (equal, slower) = compared(&one, &other);
    assert!(
        equal.contains("| 164 | 164 | same |") && slower.contains("| +100.0 |"),
        "{equal}\n{slower}"
    );
    assert!(slower.ends_with("| - | - |"), "{slower}");
}

/// Names are cut once the columns of chance are left out; figures stay.
#[test]
fn runs_beside_each_other_fit_a_narrow_terminal() {
    let (one, mut other) = (two_variants(), two_variants());
    other.rows[1].seconds *= 2.0;
    let runs = Runs::of(&[&one, &other]);
    for width in [80, 60] {
        let text = report::compared::table(&runs, None, plain(width), width.into());
        let begins = text.lines().position(|line| line.starts_with("variant")).unwrap();
        let rows: Vec<&str> = text.lines().skip(begins).take_while(|row| !row.is_empty()).collect();
        assert!(rows.iter().all(|row| row.chars().count() <= usize::from(width)), "{text}");
        assert!(rows.iter().any(|row| row.contains("+100.0")), "{text}");
    }
}

#[test]
fn colour_only_adds_escapes() {
    let run = crate::common::made_up(100.0, false);
    let summary = Summary::of(&run);
    let page = Path::new("report.html");
    let colored = report::table(&summary, Style { color: true, width: 100 }, Some(page));
    assert!(colored.contains("\x1b[32madaptive"), "the fastest row is marked");
    let mut stripped = colored;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, report::table(&summary, plain(100), Some(page)));
}

#[test]
fn laps_show_their_interval() {
    let mut run = two_variants();
    for lap in 2..=3 {
        for index in 0..2 {
            let mut row = run.rows[index].clone();
            row.lap = lap;
            row.seconds *= 1.0 + 0.01 * f64::from(lap);
            run.rows.push(row);
        }
    }
    let table = report::table(&Summary::of(&run), plain(100), None);
    assert!(table.contains("2:47 [2:44, 2:49]"), "{table}");
    assert!(table.contains("58.6× ["), "{table}");
    let seconds: Vec<f64> = run.rows[..2].iter().map(|row| row.seconds).collect();
    run.rows.iter_mut().enumerate().for_each(|(at, row)| row.seconds = seconds[at % 2]);
    let table = report::table(&Summary::of(&run), plain(100), None);
    assert!(!table.contains('['), "copies of a lap have no interval: {table}");
}

#[test]
fn the_json_of_two_variants() {
    let run = two_variants();
    let json = sorted(report::json(&Summary::of(&run)));
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
    {
      "baseline": "64 KB x 1",
      "changes": [],
      "details": [
        "The slow one was held by latency, the fast one by the link."
      ],
      "gaps": [],
      "headline": "adaptive is 59 times as fast as 64 KB x 1",
      "plan": "remote-recovery",
      "rows": [
        {
          "bytes": 320000000,
          "bytes_per_s": 1950030.4692260816,
          "documents": 3970000,
          "gain": 1.0,
          "gain_interval": null,
          "held_by": "latency",
          "laps_s": [
            164.1
          ],
          "limits": [
            {
              "limit": "latency",
              "share": 0.972
            },
            {
              "limit": "link_rate",
              "share": 0.017
            },
            {
              "limit": "disk_write",
              "share": 0.006
            },
            {
              "limit": "cpu",
              "share": 0.005
            }
          ],
          "link_share": 0.015600243753808652,
          "published_gain": 1.0,
          "published_s": 14384.9,
          "refetched_chunks": 0,
          "seconds": 164.1,
          "seconds_interval": null,
          "variant": "64 KB x 1",
          "verdict": "97 % latency: 64 KiB x 1 in flight over 100 ms cannot exceed 0.66 MB/s a shard (Little's law), 1.97 MB/s over 3 shards; next: the link at 125 MB/s",
          "verified": true
        },
        {
          "bytes": 320000000,
          "bytes_per_s": 114285714.2857143,
          "documents": 3970000,
          "gain": 58.60714285714286,
          "gain_interval": null,
          "held_by": "link_rate",
          "laps_s": [
            2.8
          ],
          "limits": [
            {
              "limit": "link_rate",
              "share": 0.905
            },
            {
              "limit": "latency",
              "share": 0.041
            },
            {
              "limit": "cpu",
              "share": 0.033
            },
            {
              "limit": "disk_write",
              "share": 0.021
            }
          ],
          "link_share": 0.9142857142857144,
          "published_gain": null,
          "published_s": null,
          "refetched_chunks": 0,
          "seconds": 2.8,
          "seconds_interval": null,
          "variant": "adaptive",
          "verdict": "90 % link rate: 114 MB/s is 91 % of the link's 125 MB/s; next: nothing close (latency takes 4.1 %)",
          "verified": true
        }
      ],
      "run": "20260412-101500-remote-recovery",
      "status": "complete",
      "target": "embedded",
      "unfinished": []
    }
    "#);
}

#[test]
fn the_json_of_an_interrupted_run_keeps_finished_rows_apart() {
    let run = crate::common::interrupted();
    let json = report::json(&Summary::of(&run));
    assert_eq!(json["status"], "interrupted");
    assert_eq!(json["rows"].as_array().unwrap().len(), 2);
    assert_eq!(json["unfinished"][0]["variant"], "5 MB x 1");
    assert!(json["unfinished"][0]["recovered_bytes"].as_u64().unwrap() > 0);
    assert!(json["unfinished"][1]["seconds"].is_null());
    assert!(json["rows"][0]["published_s"].is_number());
}

/// A load has no copy that could differ from its source.
#[test]
fn what_has_nothing_to_verify_is_not_said_to_be_unverified() {
    let mut run = two_variants();
    for row in &mut run.rows {
        row.loads = vec![LoadFigures { operation: "term".to_owned(), ..LoadFigures::default() }];
        (row.verified, row.documents) = (false, 0);
    }
    let csv = report::csv(&run);
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    for name in ["verified", "documents"] {
        let at = cells[0].iter().position(|cell| *cell == name).expect("a column");
        assert!(cells[1..].iter().all(|row| row[at].is_empty()), "{name}: {csv}");
    }
    let json = report::json(&Summary::of(&run));
    for row in json["rows"].as_array().expect("rows") {
        assert_eq!((&row["verified"], &row["documents"]), (&Value::Null, &Value::Null), "{row}");
    }
}

#[test]
fn the_csv_has_a_line_for_each_lap() {
    let mut run = two_variants();
    run.rows[1].variant = "1 MB, \"adaptive\"".into();
    let csv = report::csv(&run);
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines.len(), 4, "a header, two rows, and what follows the last line break");
    assert!(lines[0].starts_with("run,plan,target,variant,lap,seconds,bytes,bytes_per_s"));
    assert!(lines[0].ends_with(
        "latency_share,link_rate_share,loss_share,throttle_share,disk_read_share,\
                                disk_write_share,cpu_share,slots_share,memory_share,proxy_share,coordination_share"
    ));
    assert!(lines[2].contains(",\"1 MB, \"\"adaptive\"\"\",1,2.8,320000000,"), "{}", lines[2]);
    assert!(lines[2].contains(",0.041,0.905,,,,0.021,0.033,,,"), "{}", lines[2]);
}
