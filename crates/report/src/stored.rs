//! A run as documents of a metrics store, in the shapes that Rally writes: `rally-races-*`, `rally-results-*` and
//! `rally-metrics-*`, a month each, with their index templates. Dashboards that read them go on working.
//!
//! A race of ours holds its manifest and its rows as well, as a text that nobody indexes: read back, it compares as its
//! directory does, lap by lap. A race that Rally wrote is read as one lap.
//!
//! Samples are requests of a track, 500 of each task and lap at most, where Rally writes all of them; windows of a load
//! (throughput, and mean latency where no requests were kept), bytes of a recovery and cores of nodes over time.

mod race;
mod samples;

use insight::load::figures;
use insight::stats::median;
use insight::{Summary, VariantLoad};
use jiff::Timestamp;
use record::{LoadFigures, Percentiles, Row, RunDir, Status, Throughput};
use serde_json::{Map, Value, json};

pub use race::read_race;

/// A document, and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The index.
    pub index: String,
    /// Its id: the same run has the same ids, so that storing it again changes nothing.
    pub id: String,
    /// The document.
    pub source: Value,
}

/// Names of index templates, and the templates.
pub fn templates() -> Vec<(&'static str, Value)> {
    let timestamp = json!({
        "type": "date",
        "format": "basic_date_time_no_millis",
        "fields": { "raw": { "type": "keyword" } }
    });
    let number = |kind: &str| json!({ "type": kind });
    let statistics = |kind: &str| {
        let names = ["single", "min", "mean", "median", "max"];
        names.iter().map(|name| ((*name).to_owned(), number(kind))).collect::<Map<String, Value>>()
    };
    let word = json!({ "type": "keyword", "ignore_above": 8191 });
    let strings =
        json!({ "strings": { "match": "*", "match_mapping_type": "string", "mapping": word } });
    // A parameter of a track may be a number in one race and a text in the next: `target_throughput:none`.
    let [wholes, numbers, truths] = ["long", "double", "boolean"].map(|kind| {
        let of =
            json!({ "path_match": "track-params.*", "match_mapping_type": kind, "mapping": word });
        json!({ kind: of })
    });
    let template = |name: &str, properties: Value| {
        json!({
            "index_patterns": [format!("{name}-*")],
            "template": { "mappings": {
                "date_detection": false,
                "dynamic_templates": [strings, wholes, numbers, truths],
                "properties": properties
            } }
        })
    };
    let races = json!({
        "race-timestamp": timestamp,
        "results": { "properties": { "op_metrics": { "type": "nested" } } }
    });
    let results = json!({
        "race-timestamp": timestamp,
        "active": { "type": "boolean" },
        "value": { "type": "object", "properties": statistics("double") }
    });
    let metrics = json!({
        "@timestamp": { "type": "date", "format": "epoch_millis" },
        "race-timestamp": timestamp,
        "relative-time": number("float"),
        "value": number("float")
    });
    vec![
        ("rally-races", template("rally-races", races)),
        ("rally-results", template("rally-results", results)),
        ("rally-metrics", template("rally-metrics", metrics)),
    ]
}

/// A template of [`templates`] for a store that has no nested fields, if there are some in it.
pub fn without_nested(template: &Value) -> Option<Value> {
    let mut flat = template.clone();
    flat["template"]["mappings"]["properties"].as_object_mut()?.remove("results")?;
    Some(flat)
}

/// The documents of a run: its race, its results, its samples.
pub fn documents(run: &RunDir) -> Vec<Document> {
    let stored = Stored::of(run);
    let summary = Summary::of(run);
    let mut found = vec![stored.race(&summary)];
    found.extend(stored.results(&summary));
    found.extend(stored.samples());
    found
}

struct Stored<'a> {
    run: &'a RunDir,
    /// `20261125T010107Z`.
    timestamp: String,
    /// `2026-11`.
    month: String,
    begun_epoch_ms: f64,
    /// Whether loads were sent under more than one variant.
    several_variants: bool,
}

impl<'a> Stored<'a> {
    fn of(run: &'a RunDir) -> Self {
        let started = &run.manifest.started;
        let timestamp = started.replace(['-', ':'], "");
        let mut of_loads = run.rows.iter().filter(|row| !row.loads.is_empty());
        let first = of_loads.next().map(|row| &row.variant);
        Stored {
            run,
            timestamp,
            month: started.get(..7).unwrap_or("unknown").to_owned(),
            begun_epoch_ms: epoch_ms(started).unwrap_or(0.0),
            several_variants: of_loads.any(|row| Some(&row.variant) != first),
        }
    }

    fn document(&self, kind: &str, number: usize, source: Value) -> Document {
        let run = &self.run.manifest.run;
        let id = if kind == "races" { run.clone() } else { format!("{run}-{number}") };
        Document { index: format!("rally-{kind}-{}", self.month), id, source }
    }

    /// What all documents say of the race.
    fn common(&self) -> Map<String, Value> {
        let manifest = &self.run.manifest;
        let of = json!({
            "environment": "narrows",
            "race-id": manifest.run,
            "race-timestamp": self.timestamp,
            "track": manifest.plan,
            "car": manifest.target,
        });
        let mut of = of.as_object().cloned().unwrap_or_default();
        if let Some(challenge) = &manifest.challenge {
            of.insert("challenge".to_owned(), json!(challenge));
        }
        if let Some(params) = manifest.track_params.as_ref().filter(|params| !params.is_empty()) {
            // As they were given: numbers and objects are no texts.
            let given = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            let params = params.iter().map(|(name, text)| (name.clone(), given(text)));
            of.insert("track-params".to_owned(), Value::Object(params.collect()));
        }
        of
    }

    fn with(&self, more: Value) -> Value {
        let mut of = self.common();
        of.extend(more.as_object().cloned().unwrap_or_default());
        Value::Object(of)
    }

    fn user_tags(&self) -> Value {
        let manifest = &self.run.manifest;
        json!({ "seed": manifest.seed.to_string(), "scale": manifest.scale.to_string() })
    }

    fn race(&self, summary: &Summary<'_>) -> Document {
        let RunDir { manifest, rows, damage, .. } = self.run;
        // Requests are documents of their own.
        let without_samples =
            |load: &LoadFigures| LoadFigures { samples: Vec::new(), ..load.clone() };
        let rows: Vec<Row> = rows
            .iter()
            .map(|row| Row {
                loads: row.loads.iter().map(without_samples).collect(),
                ..row.clone()
            })
            .collect();
        let record = json!({ "manifest": manifest, "rows": rows, "damage": damage });
        let results: Vec<Value> = summary.loads.iter().map(|load| self.op_metrics(load)).collect();
        let race = self.with(json!({
            "rally-version": format!("narrows {}", manifest.version),
            "pipeline": "narrows",
            "user-tags": self.user_tags(),
            "cluster": { "distribution-version": null, "distribution-flavor": manifest.target },
            "node-count": manifest.nodes.len(),
            "meta": {
                "headline": summary.headline,
                "complete": manifest.status == Status::Complete,
                "record": record.to_string(),
            },
            "results": { "op_metrics": results },
        }));
        self.document("races", 0, race)
    }

    fn results(&self, summary: &Summary<'_>) -> Vec<Document> {
        let manifest = &self.run.manifest;
        let result = |variant: &str, task: &str, operation: &str, name: &str, value: Value| {
            self.with(json!({
                "rally-version": format!("narrows {}", manifest.version),
                "distribution-version": null,
                "distribution-flavor": manifest.target,
                "user-tags": self.user_tags(),
                "active": true,
                "task": task,
                "operation": operation,
                "name": name,
                "value": value,
                "meta": { "variant": variant },
            }))
        };
        let mut all = Vec::new();
        for load in &summary.loads {
            let VariantLoad { variant, operation, .. } = load;
            let task = self.task_of(variant, operation);
            let metrics = self.op_metrics(load);
            for name in ["throughput", "latency", "service_time"] {
                if metrics[name].as_object().is_some_and(|measured| !measured.is_empty()) {
                    all.push(result(variant, &task, operation, name, metrics[name].clone()));
                }
            }
            for name in ["error_rate", "duration"] {
                let single = json!({ "single": metrics[name] });
                all.push(result(variant, &task, operation, name, single));
            }
        }
        let copies = summary.loads.is_empty() && summary.following.is_empty();
        for (variant, figures) in summary.finished().filter(|_| copies) {
            let mut single = |metric: &str, value: f64| {
                let value = json!({ "single": value });
                all.push(result(&variant.name, &variant.name, "recovery", metric, value));
            };
            single("recovery_time", figures.seconds);
            single("recovery_rate", figures.bytes_per_s);
        }
        let documents = all.into_iter().enumerate();
        documents.map(|(number, source)| self.document("results", number, source)).collect()
    }

    /// The task of a load: with several variants, the variant is a part of its name, for dashboards to tell them apart.
    fn task_of(&self, variant: &str, operation: &str) -> String {
        match self.several_variants {
            true => format!("{variant}, {operation}"),
            false => operation.to_owned(),
        }
    }

    /// The figures of a load as Rally's results have them.
    fn op_metrics(&self, load: &VariantLoad) -> Value {
        let all = figures(&load.laps.iter().map(as_counted).collect::<Vec<LoadFigures>>());
        let total = |name: &str| all.iter().find(|figure| figure.metric.name == name)?.total;
        let times = |kind: &str, of: fn(&LoadFigures) -> Option<Percentiles>| {
            let means = load.laps.iter().filter_map(of).map(|times| times.mean_ms);
            let mean = median(&means.collect::<Vec<f64>>())?;
            let mut found = json!({ "mean": mean, "unit": "ms" });
            // As in Rally there is no percentile that too few requests were sent for.
            for rank in ["50.0", "90.0", "99.0", "99.9", "99.99", "100.0"] {
                let shown = rank.trim_end_matches(".0");
                if let Some(ms) = total(&format!("{shown}th percentile {kind}")) {
                    found[rank.replace('.', "_")] = json!(ms);
                }
            }
            Some(found)
        };
        // Rally reads a time that is not there as one without percentiles, and stops at null.
        let not_measured = || json!({});
        let counts_documents = load.laps.iter().any(|lap| lap.documents > 0);
        json!({
            "task": self.task_of(&load.variant, &load.operation),
            "operation": load.operation,
            "throughput": {
                "min": total("Min Throughput"),
                "mean": total("Mean Throughput"),
                "median": total("Median Throughput"),
                "max": total("Max Throughput"),
                "unit": if counts_documents { "docs/s" } else { "ops/s" },
            },
            "latency": times("latency", |lap| lap.latency).unwrap_or_else(not_measured),
            "service_time": times("service time", |lap| lap.service_time).unwrap_or_else(not_measured),
            "processing_time": not_measured(),
            "error_rate": total("error rate").unwrap_or(0.0) / 100.0,
            "duration": load.laps.iter().map(|lap| lap.seconds).sum::<f64>() * 1e3,
            "meta": { "variant": load.variant, "laps": load.laps.len() },
        })
    }
}

/// What Rally counts of a load, documents of bulk requests and requests of all others: how many there are in an answer,
/// and the unit of a throughput.
fn counted(lap: &LoadFigures) -> (f64, &'static str) {
    let answers = lap.requests.saturating_sub(lap.failed());
    match lap.documents {
        0 => (1.0, "ops/s"),
        documents => (documents as f64 / answers.max(1) as f64, "docs/s"),
    }
}

/// A lap whose throughput is what Rally counts.
fn as_counted(lap: &LoadFigures) -> LoadFigures {
    let mut lap = lap.clone();
    let (each, _) = counted(&lap);
    let Throughput { mean_per_s, median_per_s, min_per_s, max_per_s, .. } = &mut lap.throughput;
    for per_s in [mean_per_s, median_per_s, min_per_s, max_per_s] {
        *per_s *= each;
    }
    lap
}

/// Milliseconds since 1970 of `2026-11-25T01:01:07Z`.
pub(crate) fn epoch_ms(text: &str) -> Option<f64> {
    let time: Timestamp = text.parse().ok()?;
    Some(time.as_second() as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use insight::compare::Runs;
    use record::{FORMAT, Line, Manifest, NodeSample, Phase, RequestSample};

    use super::race::tests::race_of_rally;
    use super::*;

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(epoch_ms("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(epoch_ms("2000-02-29T12:00:00Z"), Some(951_825_600e3));
        assert_eq!(epoch_ms("2026-11-25T01:01:07Z"), Some(1_795_568_467e3));
        assert_eq!(epoch_ms("yesterday"), None);
    }

    /// A task of ours with the median times that the race has.
    fn task(operation: &str, requests: u64) -> LoadFigures {
        let ms = |p50_ms: f64| Some(Percentiles { p50_ms, ..Percentiles::default() });
        let per_s = if operation == "term" { 10.5 } else { 2.0 };
        LoadFigures {
            operation: operation.to_owned(),
            requests,
            seconds: 2.0,
            throughput: Throughput {
                median_per_s: per_s,
                window_s: 1.0,
                windows: vec![2, 1],
                latency_ms: vec![Some(6.0), None],
                ..Throughput::default()
            },
            latency: ms(if operation == "bulk" { 6.0 } else { 4.0 }),
            service_time: ms(if operation == "bulk" { 6.0 } else { 3.0 }),
            ..LoadFigures::default()
        }
    }

    fn run_of_ours(variants: &[&str], loads: &[LoadFigures]) -> RunDir {
        let manifest = Manifest {
            started: "2026-11-25T01:01:07Z".to_owned(),
            status: Status::Complete,
            ..Manifest::unknown("r", FORMAT)
        };
        let mut run = RunDir { manifest, lines: Vec::new(), rows: Vec::new(), damage: Vec::new() };
        for name in variants {
            run.rows.push(Row { loads: loads.to_vec(), ..Row::measured(name, 1, 2.0, 0) });
            let phase = Phase { name: "load".to_owned(), begins: false };
            let ended = || Line::Phase {
                t_ms: 2000.0,
                variant: Some((*name).to_owned()),
                lap: 1,
                phase: phase.clone(),
            };
            run.lines.extend(loads.iter().map(|_| ended()));
        }
        run
    }

    #[test]
    fn neither_of_a_race_and_a_run_is_worse_by_what_the_other_does_not_write() {
        let mut term = LoadFigures { rate_per_s: Some(10.0), ..task("term", 1000) };
        term.errors.insert("timeout".to_owned(), 250);
        let bulk = LoadFigures { documents: 1000, ..task("bulk", 100) };
        let ours = run_of_ours(&["append"], &[task("create-index", 1), term, bulk]);
        let mut theirs = race_of_rally();
        theirs.rows[0].loads.pop();
        for (a, b) in [(&ours, &theirs), (&theirs, &ours)] {
            let runs = Runs::of(&[a, b]);
            assert!(runs.figures.iter().any(|figure| figure.name == "Documents"));
            assert_eq!(runs.worse_by(5.0), []);
        }
    }

    #[test]
    fn damage_is_stored_and_earlier_races_have_none() {
        let mut run = run_of_ours(&["append"], &[task("term", 1000)]);
        run.damage.push("rows.jsonl is cut off: 1 of its 2 bytes are there.".to_owned());
        let mut race = documents(&run).remove(0).source;
        let read = read_race(&race).unwrap();
        assert_eq!((&read.damage, &read.rows), (&run.damage, &run.rows));
        let said = Runs::of(&[&race_of_rally(), &read]).remarks.join(" ");
        assert!(said.contains("B: rows.jsonl is cut off"), "{said}");
        let earlier = json!({ "manifest": run.manifest, "rows": run.rows });
        race["meta"]["record"] = json!(earlier.to_string());
        assert_eq!(read_race(&race).unwrap().damage, [""; 0]);
    }

    #[test]
    fn parameters_of_a_track_are_stored_as_they_were_given() {
        let mut run = run_of_ours(&["append"], &[task("term", 1000)]);
        assert!(documents(&run).iter().all(|one| one.source.get("track-params").is_none()));
        let params = [("bulk_size", "500"), ("health", "green"), ("more", "{\"a\":[1]}")];
        let params = params.map(|(name, text)| (name.to_owned(), text.to_owned()));
        run.manifest.track_params = Some(params.clone().into());
        let stored = json!({ "bulk_size": 500, "health": "green", "more": { "a": [1] } });
        let all = documents(&run);
        assert!(all.iter().all(|one| one.source["track-params"] == stored));
        let mut race = all[0].source.clone();
        race["meta"] = json!({});
        assert_eq!(read_race(&race).unwrap().manifest.track_params, Some(params.into()));
    }

    #[test]
    fn a_race_of_a_newer_narrows_is_refused() {
        let mut run = run_of_ours(&["append"], &[task("term", 1000)]);
        run.manifest.format = FORMAT + 1;
        let why = read_race(&documents(&run)[0].source).unwrap_err();
        assert!(why.contains(&format!("format {}", FORMAT + 1)) && why.contains("newer"), "{why}");
    }

    #[test]
    fn figures_are_counted_and_named_as_rally_does() {
        let mut bulk = LoadFigures { documents: 1500, ..task("bulk", 4) };
        bulk.errors.insert("timeout".to_owned(), 1);
        let loads = [bulk, task("create-index", 1)];
        let all = documents(&run_of_ours(&["a", "b"], &loads));
        let of = |kind: &str| -> Vec<&Value> {
            let is_of = |document: &&Document| document.index == format!("rally-{kind}-2026-11");
            all.iter().filter(is_of).map(|document| &document.source).collect()
        };
        let races = of("races");
        let metrics = races[0]["results"]["op_metrics"].as_array().unwrap();
        let tasks: Vec<&str> = metrics.iter().map(|one| one["task"].as_str().unwrap()).collect();
        assert_eq!(tasks, ["a, bulk", "a, create-index", "b, bulk", "b, create-index"]);
        let throughput = &metrics[0]["throughput"];
        assert_eq!(
            (&throughput["median"], &throughput["unit"]),
            (&json!(1000.0), &json!("docs/s"))
        );
        let keys = |of: &Value| -> Vec<String> {
            let mut keys: Vec<String> = of.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(&metrics[0]["latency"]), ["100_0", "50_0", "mean", "unit"]);
        assert_eq!(metrics[1]["throughput"]["unit"], "ops/s");
        assert_eq!(keys(&metrics[1]["service_time"]), ["100_0", "mean", "unit"]);
        let results = of("results");
        assert_eq!(results.len(), 4 * 5, "three figures, the error rate and the duration of each");
        assert_eq!(
            (&results[10]["task"], &results[10]["meta"]["variant"]),
            (&json!("b, bulk"), &json!("b"))
        );
        let sample = of("metrics")[0];
        assert_eq!((&sample["task"], &sample["operation"]), (&json!("a, bulk"), &json!("bulk")));
        assert_eq!((&sample["value"], &sample["unit"]), (&json!(1000.0), &json!("docs/s")));
        let alone = documents(&run_of_ours(&["a"], &loads));
        assert_eq!(alone[0].source["results"]["op_metrics"][0]["task"], "bulk");
    }

    #[test]
    fn requests_of_a_track_are_samples_with_the_type_of_their_operation() {
        let sent = |t_ms: f64, timed_out: bool| RequestSample {
            t_ms,
            latency_ms: 3.0,
            service_time_ms: 2.0,
            timed_out,
        };
        let samples = vec![sent(500.0, false), sent(1500.0, true)];
        let load = LoadFigures { operation_type: "search".to_owned(), samples, ..task("term", 2) };
        let all = documents(&run_of_ours(&["a"], &[load]));
        let is_sample = |document: &&Document| document.index.starts_with("rally-metrics");
        let found: Vec<&Value> = all.iter().filter(is_sample).map(|one| &one.source).collect();
        let names: Vec<&Value> = found.iter().map(|sample| &sample["name"]).collect();
        let of_requests = ["latency", "service_time", "latency", "service_time"];
        assert_eq!(names, [&["throughput"; 2][..], &of_requests].concat());
        assert!(found.iter().all(|sample| sample["operation-type"] == "search"));
        assert_eq!((&found[2]["relative-time"], &found[2]["value"]), (&json!(500.0), &json!(3.0)));
        let succeeded = |at: usize| &found[at]["meta"]["success"];
        assert_eq!((succeeded(3), succeeded(5)), (&json!(true), &json!(false)));
        assert_eq!(read_race(&all[0].source).unwrap().rows[0].loads[0].samples, []);
    }

    #[test]
    fn a_first_sample_of_a_node_tells_no_cores() {
        let mut run = run_of_ours(&["a"], &[]);
        let line = |(t_ms, cpu_cores): (f64, f64)| Line::Node {
            t_ms,
            variant: Some("a".to_owned()),
            lap: 1,
            sample: NodeSample { node: "n".to_owned(), cpu_cores, ..NodeSample::default() },
        };
        run.lines.extend([(0.0, 0.0), (1000.0, 0.5), (2000.0, 0.0)].map(line));
        let all = documents(&run);
        let found = all.iter().filter(|one| one.source["name"] == "cores_in_use");
        let values: Vec<&Value> = found.map(|one| &one.source["value"]).collect();
        assert_eq!(values, [&json!(0.5), &json!(0.0)]);
    }

    #[test]
    fn the_last_percentile_needs_ten_thousand_requests() {
        let times = Some(Percentiles { p99_99_ms: Some(7.5), ..Percentiles::default() });
        for (requests, stored) in [(9_999, Value::Null), (10_000, json!(7.5))] {
            let load = LoadFigures { latency: times, ..task("term", requests) };
            let race = &documents(&run_of_ours(&["a"], &[load]))[0].source;
            assert_eq!(race["results"]["op_metrics"][0]["latency"]["99_99"], stored);
        }
    }

    #[test]
    fn a_time_that_was_not_measured_is_stored_as_rally_stores_it() {
        let load = LoadFigures { latency: None, service_time: None, ..task("term", 2) };
        let all = documents(&run_of_ours(&["a"], &[load]));
        let metrics = &all[0].source["results"]["op_metrics"][0];
        for name in ["latency", "service_time", "processing_time"] {
            assert_eq!(metrics[name], json!({}), "{name}");
        }
        let results: Vec<&Value> = all
            .iter()
            .filter(|document| document.index.starts_with("rally-results"))
            .map(|document| &document.source)
            .collect();
        let names: Vec<&Value> = results.iter().map(|result| &result["name"]).collect();
        assert_eq!(names, ["throughput", "error_rate", "duration"]);
        assert_eq!(results[2]["value"], json!({ "single": 2000.0 }));
        assert_eq!(results[2]["user-tags"], all[0].source["user-tags"]);
    }

    #[test]
    fn the_template_of_races_alone_has_nested_fields_and_is_whole_without_them() {
        let mut flat = templates();
        flat.retain(|(_, template)| without_nested(template).is_some());
        let [(name, template)] = flat.as_slice() else { panic!("one has nested fields") };
        assert_eq!(*name, "rally-races");
        let (nested, flat) = (template.to_string(), without_nested(template).unwrap());
        assert!(nested.contains("\"nested\"") && !flat.to_string().contains("\"nested\""));
        assert_eq!(flat["template"]["mappings"]["properties"]["race-timestamp"]["type"], "date");
        assert_eq!(flat["index_patterns"], template["index_patterns"]);
    }

    #[test]
    fn templates_are_those_of_indices_that_documents_go_to() {
        for (name, template) in templates() {
            assert_eq!(template["index_patterns"][0], format!("{name}-*"));
            let timestamp = &template["template"]["mappings"]["properties"]["race-timestamp"];
            assert_eq!(timestamp["format"], "basic_date_time_no_millis");
        }
    }
}
