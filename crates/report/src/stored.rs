//! A run as documents of a metrics store, in the shapes that Rally writes: `rally-races-*`, `rally-results-*` and
//! `rally-metrics-*`, a month each, with their index templates. Dashboards that read them go on working.
//!
//! A race of ours holds its manifest and its rows as well, as a text that nobody indexes: read back, it compares as its
//! directory does, lap by lap. A race that Rally wrote is read as one lap.
//!
//! Our records have no sample of each request. Samples here are windows of a load (throughput, mean latency), bytes of
//! a recovery and cores of nodes over time; `meta` says so.

use insight::load::{Metric, figures};
use insight::{Summary, VariantLoad};
use record::{FORMAT, Line, LoadFigures, Manifest, Percentiles, Row, RunDir, Status, Throughput};
use serde_json::{Map, Value, json};

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
    let template = |name: &str, properties: Value| {
        json!({
            "index_patterns": [format!("{name}-*")],
            "template": { "mappings": {
                "date_detection": false,
                "dynamic_templates": [{ "strings": {
                    "match": "*", "match_mapping_type": "string", "mapping": { "type": "keyword", "ignore_above": 8191 }
                } }],
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

/// The documents of a run: its race, its results, its samples.
pub fn documents(run: &RunDir) -> Vec<Document> {
    let stored = Stored::of(run);
    let summary = Summary::of(run);
    let mut found = vec![stored.race(&summary)];
    found.extend(stored.results(&summary));
    found.extend(stored.samples());
    found
}

/// Reads the document of a race. The error says what it lacks.
pub fn read_race(source: &Value) -> Result<RunDir, String> {
    if let Some(text) = source["meta"]["record"].as_str() {
        #[derive(serde::Deserialize)]
        struct Stored {
            manifest: Manifest,
            rows: Vec<Row>,
        }
        let read: Result<Stored, _> = serde_json::from_str(text);
        let Stored { manifest, rows } =
            read.map_err(|error| format!("its record is of another version: {error}"))?;
        return Ok(RunDir { manifest, rows, lines: Vec::new(), damage: Vec::new() });
    }
    let text = |name: &str| source[name].as_str().unwrap_or_default().to_owned();
    let tasks = source["results"]["op_metrics"].as_array().filter(|tasks| !tasks.is_empty());
    let tasks = tasks.ok_or("it has no results of operations (results.op_metrics)")?;
    let loads: Vec<LoadFigures> = tasks.iter().map(load_of).collect();
    // Rally names no challenge where a track has a schedule alone; it is `default` to us.
    let variant = source["challenge"].as_str().unwrap_or("default");
    let seconds = loads.iter().map(|load| load.seconds).sum();
    let manifest = Manifest {
        plan: text("track"),
        target: "rally".to_owned(),
        started: text("race-timestamp"),
        version: format!("rally {}", text("rally-version")),
        status: Status::Complete,
        challenge: source["challenge"].as_str().map(str::to_owned),
        ..Manifest::unknown(&text("race-id"), FORMAT)
    };
    let rows = vec![Row { loads, ..Row::measured(variant, 1, seconds, 0) }];
    Ok(RunDir { manifest, rows, lines: Vec::new(), damage: Vec::new() })
}

/// The figures of a task, as far as Rally wrote them: what it left out is no number.
fn load_of(task: &Value) -> LoadFigures {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let times = |of: &Value| {
        of.is_object().then(|| Percentiles {
            mean_ms: number(&of["mean"]),
            p50_ms: number(&of["50_0"]),
            p90_ms: number(&of["90_0"]),
            p99_ms: number(&of["99_0"]),
            p99_9_ms: number(&of["99_9"]),
            p100_ms: number(&of["100_0"]),
        })
    };
    let (throughput, service_time) = (&task["throughput"], times(&task["service_time"]));
    let latency = times(&task["latency"]);
    let seconds = number(&task["duration"]) / 1e3;
    // Rally counts documents of bulk requests where we count requests.
    let counts_documents = throughput["unit"] == "docs/s";
    let documents = if counts_documents { number(&throughput["mean"]) * seconds } else { 0.0 };
    let per_s = |name: &str| if counts_documents { f64::NAN } else { number(&throughput[name]) };
    // Rally tells the share of the requests that failed, and not their number.
    const SHARES: u64 = 1_000_000;
    let failed = (number(&task["error_rate"]).max(0.0) * SHARES as f64).round() as u64;
    LoadFigures {
        operation: task["task"].as_str().unwrap_or_default().to_owned(),
        // Where both times are the same it was a closed loop.
        rate_per_s: (latency != service_time).then(|| number(&throughput["mean"])),
        seconds,
        documents: documents.round() as u64,
        requests: SHARES,
        errors: (failed > 0).then(|| ("failed".to_owned(), failed)).into_iter().collect(),
        throughput: Throughput {
            mean_per_s: per_s("mean"),
            median_per_s: per_s("median"),
            min_per_s: per_s("min"),
            max_per_s: per_s("max"),
            ..Throughput::default()
        },
        latency,
        service_time,
        ..LoadFigures::default()
    }
}

struct Stored<'a> {
    run: &'a RunDir,
    /// `20261125T010107Z`.
    timestamp: String,
    /// `2026-11`.
    month: String,
    begun_epoch_ms: f64,
}

impl<'a> Stored<'a> {
    fn of(run: &'a RunDir) -> Self {
        let started = &run.manifest.started;
        let timestamp = started.replace(['-', ':'], "");
        Stored {
            run,
            timestamp,
            month: started.get(..7).unwrap_or("unknown").to_owned(),
            begun_epoch_ms: epoch_ms(started).unwrap_or(0.0),
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
        of
    }

    fn with(&self, more: Value) -> Value {
        let mut of = self.common();
        of.extend(more.as_object().cloned().unwrap_or_default());
        Value::Object(of)
    }

    fn race(&self, summary: &Summary<'_>) -> Document {
        let manifest = &self.run.manifest;
        let results: Vec<Value> = summary.loads.iter().map(op_metrics).collect();
        let race = self.with(json!({
            "rally-version": format!("narrows {}", manifest.version),
            "pipeline": "narrows",
            "user-tags": { "seed": manifest.seed.to_string(), "scale": manifest.scale.to_string() },
            "cluster": { "distribution-version": "", "distribution-flavor": manifest.target },
            "node-count": manifest.nodes.len(),
            "meta": {
                "headline": summary.headline,
                "complete": manifest.status == Status::Complete,
                "record": json!({ "manifest": manifest, "rows": self.run.rows }).to_string(),
            },
            "results": { "op_metrics": results },
        }));
        self.document("races", 0, race)
    }

    fn results(&self, summary: &Summary<'_>) -> Vec<Document> {
        let result = |task: &str, operation: &str, name: &str, value: Value| {
            self.with(json!({
                "rally-version": format!("narrows {}", self.run.manifest.version),
                "active": true,
                "task": task,
                "operation": operation,
                "name": name,
                "value": value,
            }))
        };
        let mut all = Vec::new();
        for load in &summary.loads {
            let task = task_of(load);
            let metrics = op_metrics(load);
            for name in ["throughput", "latency", "service_time"] {
                if metrics[name].is_object() {
                    all.push(result(&task, &load.operation, name, metrics[name].clone()));
                }
            }
            let errors = json!({ "single": metrics["error_rate"] });
            all.push(result(&task, &load.operation, "error_rate", errors));
        }
        let copies = summary.loads.is_empty() && summary.following.is_empty();
        for (variant, figures) in summary.finished().filter(|_| copies) {
            let single = |value: f64| json!({ "single": value });
            all.push(result(&variant.name, "recovery", "recovery_time", single(figures.seconds)));
            all.push(result(
                &variant.name,
                "recovery",
                "recovery_rate",
                single(figures.bytes_per_s),
            ));
        }
        let documents = all.into_iter().enumerate();
        documents.map(|(number, source)| self.document("results", number, source)).collect()
    }

    fn samples(&self) -> Vec<Document> {
        let mut all: Vec<Value> = Vec::new();
        let mut add = |t_ms: f64,
                       task: &str,
                       operation: &str,
                       name: &str,
                       (value, unit): (f64, &str),
                       meta: Value| {
            all.push(self.with(json!({
                "@timestamp": (self.begun_epoch_ms + t_ms).round() as u64,
                "relative-time": t_ms,
                "task": task,
                "operation": operation,
                "name": name,
                "value": value,
                "unit": unit,
                "sample-type": "normal",
                "meta": meta,
            })));
        };
        let ends = self.loads_end_ms();
        for row in &self.run.rows {
            for (number, load) in row.loads.iter().enumerate() {
                let end = ends.iter().find(|(variant, lap, at, _)| {
                    (*variant, *lap, *at) == (row.variant.as_str(), row.lap, number)
                });
                // Without the end of its phase nobody knows when it was.
                let Some((_, _, _, end_ms)) = end else { continue };
                let begin_ms = end_ms - load.seconds * 1e3;
                let window_ms = load.throughput.window_s * 1e3;
                let meta = || json!({ "lap": row.lap, "variant": row.variant, "window_s": load.throughput.window_s });
                for (at, answers) in load.throughput.windows.iter().enumerate() {
                    let t_ms = begin_ms + (at + 1) as f64 * window_ms;
                    let per_s = *answers as f64 / load.throughput.window_s.max(1e-9);
                    add(
                        t_ms,
                        &load.operation,
                        &load.operation,
                        "throughput",
                        (per_s, "ops/s"),
                        meta(),
                    );
                    if let Some(mean_ms) = load.throughput.latency_ms.get(at).copied().flatten() {
                        add(
                            t_ms,
                            &load.operation,
                            &load.operation,
                            "latency",
                            (mean_ms, "ms"),
                            meta(),
                        );
                    }
                }
            }
        }
        for line in &self.run.lines {
            match line {
                Line::Recovery { t_ms, variant, lap, sample } => {
                    let value = (sample.recovered_bytes as f64, "byte");
                    add(
                        *t_ms,
                        variant,
                        "recovery",
                        "recovered_bytes",
                        value,
                        json!({ "lap": lap }),
                    );
                }
                Line::Node { t_ms, variant, lap, sample } => {
                    let meta =
                        json!({ "lap": lap, "node": sample.node, "cluster": sample.cluster });
                    let task = variant.as_deref().unwrap_or_default();
                    add(*t_ms, task, "", "cores_in_use", (sample.cpu_cores, "cores"), meta);
                }
                _ => {}
            }
        }
        let finite = all.into_iter().filter(|source| source["value"].is_number());
        finite
            .enumerate()
            .map(|(number, source)| self.document("metrics", number, source))
            .collect()
    }

    /// When each load of a variant and lap ended: the phases of loads, in their order. Of loads that went on at the
    /// same time there is one phase for all, and then nothing is known of each.
    fn loads_end_ms(&self) -> Vec<(&str, u32, usize, f64)> {
        let mut found: Vec<(&str, u32, usize, f64)> = Vec::new();
        for line in &self.run.lines {
            let Line::Phase { t_ms, variant: Some(variant), lap, phase } = line else { continue };
            if phase.name == "load" && !phase.begins {
                let of = |end: &&(&str, u32, usize, f64)| end.0 == variant && end.1 == *lap;
                let number = found.iter().filter(of).count();
                found.push((variant, *lap, number, *t_ms));
            }
        }
        let loads = |variant: &str, lap: u32| {
            let row = self.run.rows.iter().find(|row| row.variant == variant && row.lap == lap);
            row.map_or(0, |row| row.loads.len())
        };
        let phases = |variant: &str, lap: u32, all: &[(&str, u32, usize, f64)]| {
            all.iter().filter(|end| end.0 == variant && end.1 == lap).count()
        };
        let all = found.clone();
        found.retain(|end| loads(end.0, end.1) == phases(end.0, end.1, &all));
        found
    }
}

/// The task of a load: with several variants, the variant is a part of its name.
fn task_of(load: &VariantLoad) -> String {
    load.operation.clone()
}

/// The figures of a load as Rally's results have them.
fn op_metrics(load: &VariantLoad) -> Value {
    let all = figures(&load.laps);
    let total = |name: &str| {
        let of = |metric: &Metric| metric.name == name;
        all.iter().find(|figure| of(figure.metric)).and_then(|figure| figure.total)
    };
    let times = |of: fn(&LoadFigures) -> Option<Percentiles>| {
        let laps: Vec<Percentiles> = load.laps.iter().filter_map(of).collect();
        let median = |part: fn(&Percentiles) -> f64| {
            insight::stats::median(&laps.iter().map(part).collect::<Vec<f64>>())
        };
        let mean = median(|p| p.mean_ms)?;
        Some(json!({
            "50_0": median(|p| p.p50_ms),
            "90_0": median(|p| p.p90_ms),
            "99_0": median(|p| p.p99_ms),
            "99_9": median(|p| p.p99_9_ms),
            "100_0": laps.iter().map(|p| p.p100_ms).fold(0.0, f64::max),
            "mean": mean,
            "unit": "ms",
        }))
    };
    json!({
        "task": task_of(load),
        "operation": load.operation,
        "throughput": {
            "min": total("Min Throughput"),
            "mean": total("Mean Throughput"),
            "median": total("Median Throughput"),
            "max": total("Max Throughput"),
            "unit": "ops/s",
        },
        "latency": times(|lap| lap.latency),
        "service_time": times(|lap| lap.service_time),
        "error_rate": total("error rate").unwrap_or(0.0) / 100.0,
        "duration": load.laps.iter().map(|lap| lap.seconds).sum::<f64>() * 1e3,
        "meta": { "variant": load.variant, "laps": load.laps.len() },
    })
}

/// Milliseconds since 1970 of `2026-11-25T01:01:07Z`.
fn epoch_ms(text: &str) -> Option<f64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // Days from civil: years begin in March, so that the day that leap years have comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) as f64 * 60e3 + second as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(epoch_ms("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(epoch_ms("2000-02-29T12:00:00Z"), Some(951_825_600e3));
        assert_eq!(epoch_ms("2026-11-25T01:01:07Z"), Some(1_795_568_467e3));
        assert_eq!(epoch_ms("yesterday"), None);
    }

    #[test]
    fn a_race_of_rally_is_read_as_one_lap() {
        let race = json!({
            "race-id": "6ebc6e53", "rally-version": "2.13.0", "race-timestamp": "20261125T010107Z",
            "track": "pmc", "challenge": "append", "car": "external",
            "results": { "op_metrics": [
                {
                    "task": "term", "operation": "term", "error_rate": 0.25, "duration": 2000,
                    "throughput": { "min": 9.0, "mean": 10.0, "median": 10.5, "max": 11.0, "unit": "ops/s" },
                    "latency": { "50_0": 4.0, "100_0": 9.0, "mean": 5.0, "unit": "ms" },
                    "service_time": { "50_0": 3.0, "100_0": 7.0, "mean": 4.0, "unit": "ms" },
                },
                {
                    "task": "bulk", "duration": 2000, "throughput": { "mean": 500.0, "unit": "docs/s" },
                    "service_time": { "100_0": 7.0, "mean": 7.0 }, "latency": { "100_0": 7.0, "mean": 7.0 },
                },
            ] }
        });
        let run = read_race(&race).unwrap();
        assert_eq!(
            (run.manifest.run.as_str(), run.rows[0].variant.as_str()),
            ("6ebc6e53", "append")
        );
        let [term, bulk] = run.rows[0].loads.as_slice() else { panic!("two tasks") };
        assert_eq!(
            (term.error_rate(), term.latency.unwrap().p50_ms, term.seconds),
            (0.25, 4.0, 2.0)
        );
        assert!(term.latency.unwrap().p99_ms.is_nan(), "what was not written is no number");
        assert_eq!((term.rate_per_s, term.throughput.median_per_s), (Some(10.0), 10.5));
        assert_eq!((bulk.error_rate(), bulk.documents), (0.0, 1000));
        assert!(bulk.throughput.mean_per_s.is_nan(), "its requests a second are not known");
        assert!(read_race(&json!({"race-id": "x"})).unwrap_err().contains("op_metrics"));
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
