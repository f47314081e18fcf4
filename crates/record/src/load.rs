//! Figures of a load: requests that were sent to a cluster, and how it answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Times of many requests. Each figure is at most 0.1 % above the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Mean.
    pub mean_ms: f64,
    /// Half of the requests took no longer.
    pub p50_ms: f64,
    /// 90 % took no longer.
    pub p90_ms: f64,
    /// 99 % took no longer.
    pub p99_ms: f64,
    /// 99.9 % took no longer.
    pub p99_9_ms: f64,
    /// 99.99 % took no longer; none in runs of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99_ms: Option<f64>,
    /// The longest.
    pub p100_ms: f64,
}

/// A request, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestSample {
    /// When it was sent, since the measured part began.
    pub t_ms: f64,
    /// From its intended start to the end of the answer.
    pub latency_ms: f64,
    /// From its actual start to the end of the answer.
    pub service_time_ms: f64,
    /// Whether no answer came in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// Successful answers a second, over windows of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// All of them over the measured time.
    pub mean_per_s: f64,
    /// Median of the windows; the mean where there is no whole window.
    pub median_per_s: f64,
    /// The least of the windows and the mean, which also counts what is behind the last whole window.
    pub min_per_s: f64,
    /// The most of the windows and the mean.
    pub max_per_s: f64,
    /// Length of a window.
    pub window_s: f64,
    /// Answers in each whole window, in the order of time.
    pub windows: Vec<u64>,
    /// Mean latency of those answers, window by window; none where there is no answer.
    #[serde(default)]
    pub latency_ms: Vec<Option<f64>>,
}

/// What the driver itself used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverUse {
    /// Core time of each request that was sent.
    pub cpu_us_per_request: f64,
    /// CPU of the driver's busiest thread; 1 is a whole core.
    pub cpu_share: f64,
    /// Share of the time for which that thread was ready to run and had no core.
    pub starved_share: f64,
}

/// One load, measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// What was sent.
    pub operation: String,
    /// Type of the operation, as a track names it: `bulk`, `search`; empty of other loads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation_type: String,
    /// Clients: requests that may be under way at once.
    pub clients: u32,
    /// Intended starts a second; none in a closed loop.
    pub rate_per_s: Option<f64>,
    /// Measured time, without the warm-up.
    pub seconds: f64,
    /// Requests that were measured, failed ones included.
    pub requests: u64,
    /// Failed requests by kind of error: `429 es_rejected_execution_exception`, `timeout`.
    pub errors: BTreeMap<String, u64>,
    /// The beginning of the first reason of each kind of error, as far as answers gave one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, String>,
    /// Bytes of bodies that were received.
    pub answer_bytes: u64,
    /// Documents that bulk requests indexed; 0 for other operations.
    pub documents: u64,
    /// Answers a second.
    pub throughput: Throughput,
    /// From the intended start to the end of the answer. A request that timed out counts with the time until then;
    /// other failed requests, which may be fast, are left out. None if no request remains.
    pub latency: Option<Percentiles>,
    /// From the actual start to the end of the answer, of the same requests.
    pub service_time: Option<Percentiles>,
    /// Requests by the host that they were sent to.
    pub hosts: BTreeMap<String, u64>,
    /// Shard queries that each node's search pool completed meanwhile, warm-up included; empty if nodes were not asked.
    #[serde(default)]
    pub searches: BTreeMap<String, u64>,
    /// Starts that were late because every client was busy.
    pub busy_starts: u64,
    /// Starts that were over a millisecond late although a client was free: the driver's own fault.
    pub slipped_starts: u64,
    /// What the driver used; none in virtual time, where it costs nothing.
    pub driver: Option<DriverUse>,
    /// Whether it ended within its warm-up, so that the figures are those of the warm-up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_warm_up: bool,
    /// Of a task of a track some of the requests that `latency` counts, evenly spread, 500 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<RequestSample>,
}

impl LoadFigures {
    /// Failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Their share of all, 0 to 1.
    pub fn error_rate(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.failed() as f64 / self.requests as f64 }
    }
}
