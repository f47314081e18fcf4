//! The document of a race, read back: one that narrows stored, or one of Rally.

use insight::compare::RALLY;
use record::{FORMAT, LoadFigures, Manifest, Percentiles, Row, RunDir, Status, Throughput};
use serde_json::Value;

/// Reads the document of a race. The error says what it lacks.
pub fn read_race(source: &Value) -> Result<RunDir, String> {
    if let Some(text) = source["meta"]["record"].as_str() {
        #[derive(serde::Deserialize)]
        struct Stored {
            manifest: Manifest,
            rows: Vec<Row>,
            /// Earlier builds did not write it.
            #[serde(default)]
            damage: Vec<String>,
        }
        let read: Result<Stored, _> = serde_json::from_str(text);
        let Stored { manifest, rows, damage } =
            read.map_err(|error| format!("its record is of another version: {error}"))?;
        let format = manifest.format;
        if format > FORMAT {
            return Err(format!(
                "its record has format {format}, this narrows reads up to {FORMAT}; use a newer one"
            ));
        }
        return Ok(RunDir { manifest, rows, lines: Vec::new(), damage });
    }
    let text = |name: &str| source[name].as_str().unwrap_or_default().to_owned();
    let tasks = source["results"]["op_metrics"].as_array().filter(|tasks| !tasks.is_empty());
    let tasks = tasks.ok_or("it has no results of operations (results.op_metrics)")?;
    let loads: Vec<LoadFigures> = tasks.iter().map(load_of).collect();
    // Rally names no challenge where a track has a schedule alone; it is `default` to us.
    let variant = source["challenge"].as_str().unwrap_or("default");
    let seconds = loads.iter().map(|load| load.seconds).sum();
    // Rally writes none where none were given.
    let params = source["track-params"].as_object().into_iter().flatten();
    let params = params.map(|(name, value)| {
        (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    });
    let manifest = Manifest {
        plan: text("track"),
        target: RALLY.to_owned(),
        started: text("race-timestamp"),
        version: format!("rally {}", text("rally-version")),
        status: Status::Complete,
        challenge: source["challenge"].as_str().map(str::to_owned),
        track_params: Some(params.collect()),
        ..Manifest::unknown(&text("race-id"), FORMAT)
    };
    let rows = vec![Row { loads, ..Row::measured(variant, 1, seconds, 0) }];
    Ok(RunDir { manifest, rows, lines: Vec::new(), damage: Vec::new() })
}

/// The figures of a task, as far as Rally wrote them: what it left out is no number.
fn load_of(task: &Value) -> LoadFigures {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let times = |of: &Value| {
        // Rally writes an object without members where nothing was measured.
        let is_measured = of.as_object().is_some_and(|times| !times.is_empty());
        is_measured.then(|| Percentiles {
            mean_ms: number(&of["mean"]),
            p50_ms: number(&of["50_0"]),
            p90_ms: number(&of["90_0"]),
            p99_ms: number(&of["99_0"]),
            p99_9_ms: number(&of["99_9"]),
            p99_99_ms: of["99_99"].as_f64(),
            p100_ms: number(&of["100_0"]),
        })
    };
    let (throughput, service_time) = (&task["throughput"], times(&task["service_time"]));
    let latency = times(&task["latency"]);
    let seconds = number(&task["duration"]) / 1e3;
    // Rally counts documents of bulk requests and pages of scrolls where we count requests.
    let unit = throughput["unit"].as_str().unwrap_or("ops/s");
    let documents = if unit == "docs/s" { number(&throughput["mean"]) * seconds } else { 0.0 };
    let per_s = |name: &str| if unit == "ops/s" { number(&throughput[name]) } else { f64::NAN };
    // Rally tells the share of the requests that failed, and not their number.
    const SHARES: u64 = 1_000_000;
    let failed = (number(&task["error_rate"]).max(0.0) * SHARES as f64).round() as u64;
    LoadFigures {
        operation: task["task"].as_str().unwrap_or_default().to_owned(),
        // Where both times are the same it was a closed loop. They are compared as they were written: a percentile that
        // was left out is no number here, and would not equal itself.
        rate_per_s: (task["latency"] != task["service_time"]).then(|| number(&throughput["mean"])),
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

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub fn race_of_rally() -> RunDir {
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
                    "service_time": { "50_0": 6.0, "100_0": 7.0, "mean": 7.0 },
                    "latency": { "50_0": 6.0, "100_0": 7.0, "mean": 7.0 },
                },
                {
                    "task": "scroll", "throughput": { "median": 40.0, "unit": "pages/s" },
                    "latency": {}, "service_time": {},
                },
            ] }
        });
        read_race(&race).unwrap()
    }

    #[test]
    fn a_race_of_rally_is_read_as_one_lap() {
        let run = race_of_rally();
        assert_eq!(
            (run.manifest.run.as_str(), run.rows[0].variant.as_str()),
            ("6ebc6e53", "append")
        );
        let [term, bulk, scroll] = run.rows[0].loads.as_slice() else { panic!("three tasks") };
        assert_eq!(
            (term.error_rate(), term.latency.unwrap().p50_ms, term.seconds),
            (0.25, 4.0, 2.0)
        );
        assert!(term.latency.unwrap().p99_ms.is_nan(), "what was not written is no number");
        assert_eq!((term.rate_per_s, term.throughput.median_per_s), (Some(10.0), 10.5));
        assert_eq!((bulk.error_rate(), bulk.documents), (0.0, 1000));
        assert!(bulk.throughput.mean_per_s.is_nan(), "its requests a second are not known");
        assert_eq!(bulk.rate_per_s, None, "both times are the same: it was a closed loop");
        assert!(scroll.throughput.median_per_s.is_nan(), "pages are no requests");
        assert_eq!(scroll.latency, None, "nothing was measured");
        assert!(read_race(&json!({"race-id": "x"})).unwrap_err().contains("op_metrics"));
    }
}
