//! The samples of a run: single requests, and what was measured over time.

use std::collections::BTreeSet;

use record::{Line, LoadFigures, Row};
use serde_json::{Value, json};

use super::{Document, Stored, counted};

/// What a sample is of, as Rally names it.
#[derive(Clone, Copy)]
struct Of<'a> {
    task: &'a str,
    operation: &'a str,
    /// None where it comes from no track.
    operation_type: Option<&'a str>,
}

impl Stored<'_> {
    pub(super) fn samples(&self) -> Vec<Document> {
        let mut all: Vec<Value> = Vec::new();
        let mut seen = BTreeSet::new();
        for row in &self.run.rows {
            self.add_loads(row, &mut all);
        }
        for line in &self.run.lines {
            match line {
                Line::Recovery { t_ms, variant, lap, sample } => {
                    let of = Of { task: variant, operation: "recovery", operation_type: None };
                    let value = (sample.recovered_bytes as f64, "byte");
                    let meta = json!({ "lap": lap });
                    all.push(self.sample(*t_ms, of, "recovered_bytes", value, meta));
                }
                Line::Node { t_ms, variant, lap, sample } => {
                    let is_first = seen.insert((variant, lap, &sample.cluster, &sample.node));
                    // It has none before it, so that it says 0 of a node that may have used all of its cores.
                    if is_first && sample.cpu_cores == 0.0 {
                        continue;
                    }
                    let task = variant.as_deref().unwrap_or_default();
                    let of = Of { task, operation: "", operation_type: None };
                    let meta =
                        json!({ "lap": lap, "node": sample.node, "cluster": sample.cluster });
                    let value = (sample.cpu_cores, "cores");
                    all.push(self.sample(*t_ms, of, "cores_in_use", value, meta));
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

    fn sample(
        &self,
        t_ms: f64,
        of: Of<'_>,
        name: &str,
        (value, unit): (f64, &str),
        meta: Value,
    ) -> Value {
        self.with(json!({
            "@timestamp": (self.begun_epoch_ms + t_ms).round() as u64,
            "relative-time": t_ms,
            "task": of.task,
            "operation": of.operation,
            "operation-type": of.operation_type,
            "name": name,
            "value": value,
            "unit": unit,
            "sample-type": "normal",
            "meta": meta,
        }))
    }

    /// Samples of the loads of a lap. Without the end of its phase nobody knows when a load was.
    fn add_loads(&self, row: &Row, to: &mut Vec<Value>) {
        let ends = self.loads_end_ms(row);
        for (load, end_ms) in row.loads.iter().zip(ends) {
            let begin_ms = end_ms - load.seconds * 1e3;
            let task = self.task_of(&row.variant, &load.operation);
            let of = Of {
                task: &task,
                operation: &load.operation,
                operation_type: Some(load.operation_type.as_str()).filter(|kind| !kind.is_empty()),
            };
            self.add_windows(row, load, of, begin_ms, to);
            for request in &load.samples {
                let t_ms = begin_ms + request.t_ms;
                let times =
                    [("latency", request.latency_ms), ("service_time", request.service_time_ms)];
                for (name, ms) in times {
                    let meta = json!({
                        "lap": row.lap, "variant": row.variant, "success": !request.timed_out,
                    });
                    to.push(self.sample(t_ms, of, name, (ms, "ms"), meta));
                }
            }
        }
    }

    fn add_windows(
        &self,
        row: &Row,
        load: &LoadFigures,
        of: Of<'_>,
        begin_ms: f64,
        to: &mut Vec<Value>,
    ) {
        let (each, unit) = counted(load);
        let window_s = load.throughput.window_s;
        let meta = || json!({ "lap": row.lap, "variant": row.variant, "window_s": window_s });
        for (at, answers) in load.throughput.windows.iter().enumerate() {
            let t_ms = begin_ms + (at + 1) as f64 * window_s * 1e3;
            let per_s = each * *answers as f64 / window_s.max(1e-9);
            to.push(self.sample(t_ms, of, "throughput", (per_s, unit), meta()));
            let mean_ms = load.throughput.latency_ms.get(at).copied().flatten();
            // Where there are requests, a mean among them would count twice.
            if let Some(mean_ms) = mean_ms.filter(|_| load.samples.is_empty()) {
                to.push(self.sample(t_ms, of, "latency", (mean_ms, "ms"), meta()));
            }
        }
    }

    /// When each load of a lap ended: the ends of their phases, in whose order the loads come, those too that went on
    /// at the same time. Of a lap that has not as many ends as loads nothing is known of each.
    fn loads_end_ms(&self, row: &Row) -> Vec<f64> {
        let ends = self.run.lines.iter().filter_map(|line| match line {
            Line::Phase { t_ms, variant: Some(variant), lap, phase }
                if *variant == row.variant && *lap == row.lap =>
            {
                (phase.name == "load" && !phase.begins).then_some(*t_ms)
            }
            _ => None,
        });
        let ends: Vec<f64> = ends.collect();
        if ends.len() == row.loads.len() { ends } else { Vec::new() }
    }
}
