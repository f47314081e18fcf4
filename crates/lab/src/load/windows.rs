//! How many good answers there were in each window of the measured time, and how long they took. Pure.

use std::time::Duration;

use record::Throughput;

/// Good answers in windows since the beginning.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    length: Duration,
    /// Answers in each, and the sum of their latencies in milliseconds. The last is not whole until they are closed.
    windows: Vec<(u64, f64)>,
    /// All of them until the end.
    answers: u64,
}

impl Windows {
    /// Windows of this length, at least a millisecond.
    pub(super) fn of(length: Duration) -> Self {
        let length = length.max(Duration::from_millis(1));
        Windows { length, windows: Vec::new(), answers: 0 }
    }

    /// How many windows of this length are whole after this time.
    fn whole(&self, time: Duration) -> usize {
        (time.as_nanos() / self.length.as_nanos()) as usize
    }

    /// Counts an answer that came at this time since the beginning.
    pub(super) fn count(&mut self, at: Duration, latency: Duration) {
        let window = self.whole(at);
        if self.windows.len() <= window {
            self.windows.resize(window + 1, (0, 0.0));
        }
        let (answers, latency_ms) = &mut self.windows[window];
        *answers += 1;
        *latency_ms += latency.as_secs_f64() * 1e3;
        self.answers += 1;
    }

    /// The measured part took this long: the windows that are whole stay.
    pub(super) fn close(&mut self, measured: Duration) {
        self.windows.resize(self.whole(measured), (0, 0.0));
    }

    /// Adds those of another driver of the same load. Both are closed.
    pub(super) fn add(&mut self, other: &Windows) {
        self.windows.truncate(other.windows.len());
        for (own, theirs) in self.windows.iter_mut().zip(&other.windows) {
            *own = (own.0 + theirs.0, own.1 + theirs.1);
        }
        self.answers += other.answers;
    }

    /// Answers a second, of a measured part of `seconds`.
    pub(super) fn throughput(&self, seconds: f64) -> Throughput {
        let window_s = self.length.as_secs_f64();
        let mean_per_s = if seconds > 0.0 { self.answers as f64 / seconds } else { 0.0 };
        let per_s = |(answers, _): &(u64, f64)| *answers as f64 / window_s;
        let mean_ms = |(answers, latency_ms): &(u64, f64)| {
            (*answers > 0).then(|| latency_ms / *answers as f64)
        };
        let mut sorted: Vec<f64> = self.windows.iter().map(per_s).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |rank: usize| sorted.get(rank).copied().unwrap_or(mean_per_s);
        let count = sorted.len();
        // The two in the middle are one where their number is odd.
        let median_per_s = (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0;
        Throughput {
            mean_per_s,
            median_per_s,
            // The mean also counts what is behind the last whole window.
            min_per_s: at(0).min(mean_per_s),
            max_per_s: at(count.wrapping_sub(1)).max(mean_per_s),
            window_s,
            windows: self.windows.iter().map(|(answers, _)| *answers).collect(),
            latency_ms: self.windows.iter().map(mean_ms).collect(),
        }
    }
}
