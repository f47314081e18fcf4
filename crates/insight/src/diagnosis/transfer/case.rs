//! All that is known of one recovery.

use record::observation::Recovery;
use record::units::show_size_setting;

use super::super::Evidence;
use super::super::knobs::{Knobs, today};
use super::super::rules::IDLE;
use super::super::series::{NodeSpan, Series, Transfer};
use super::{RECOVERY, SETTINGS, STATS, scope};
use crate::words;

/// All that is known of one recovery.
pub(super) struct Case<'s, 'a> {
    pub(super) series: &'s Series<'a>,
    pub(super) transfer: &'s Transfer<'a>,
    pub(super) knobs: Knobs,
    pub(super) rate_bytes_per_s: f64,
    /// Rate of all recoveries under the same limiter, of the busier end, and that end's name.
    pub(super) node_bytes_per_s: f64,
    pub(super) node: String,
    pub(super) limit_bytes_per_s: Option<f64>,
    pub(super) in_flight_bytes: Option<f64>,
    pub(super) rtt_ms: Option<f64>,
    pub(super) ends: Vec<(&'static str, NodeSpan<'a>)>,
}

impl<'s, 'a> Case<'s, 'a> {
    pub(super) fn of(
        series: &'s Series<'a>,
        transfer: &'s Transfer<'a>,
        all: &[Transfer<'a>],
    ) -> Option<Self> {
        let last = transfer.last();
        let knobs = Knobs::of(last, series.flavour());
        let rate_bytes_per_s = transfer.bytes_per_s()?;
        // One limiter a node serves every recovery of the kind, whichever shard trips it.
        let shared =
            |end: Option<&str>, of: fn(&record::observation::Recovery) -> Option<&str>| -> f64 {
                let same = all.iter().filter(|other| {
                    let other = other.last();
                    end.is_some() && of(other) == end && Knobs::of(other, series.flavour()) == knobs
                });
                // What went before or after took nothing of it.
                same.filter_map(|one| Some(one.bytes_per_s()? * transfer.overlap(one))).sum()
            };
        let from = shared(last.source.as_deref(), |r| r.source.as_deref());
        let onto = shared(last.target.as_deref(), |r| r.target.as_deref());
        let paused = |name: &Option<String>| {
            let span = series.node(name.as_deref()?)?;
            span.rise(|node| node.throttle_ms)
        };
        // Of two ends that move the same, the one that pauses more holds the other.
        let at_source = from > onto * 1.05
            || (from >= onto * 0.95 && paused(&last.source) > paused(&last.target));
        let (node, node_bytes_per_s) = match (&last.source, &last.target) {
            (Some(source), _) if at_source => (source.clone(), from),
            (_, Some(target)) => (target.clone(), onto.max(rate_bytes_per_s)),
            (Some(source), None) => (source.clone(), from),
            (None, None) => (String::new(), rate_bytes_per_s),
        };
        let ends = [("source", &last.source), ("target", &last.target)]
            .into_iter()
            .filter_map(|(side, name)| Some((side, series.node(name.as_deref()?)?)))
            .collect();
        let alias = last.repository.as_deref().and_then(alias_of);
        let rtt_ms = match (alias, &last.source, &last.target) {
            (Some(alias), ..) => series.remote_rtt_ms(alias),
            (None, Some(source), Some(target)) => series.rtt_ms(source, target),
            _ => None,
        };
        Some(Case {
            limit_bytes_per_s: knobs.rate_bytes_per_s(series),
            in_flight_bytes: knobs.in_flight_bytes(series),
            series,
            transfer,
            knobs,
            rate_bytes_per_s,
            node_bytes_per_s,
            node,
            rtt_ms,
            ends,
        })
    }

    /// Pauses over wall time.
    pub(super) fn paused(&self) -> Option<f64> {
        Some(self.transfer.paused_ms()? as f64 / self.transfer.wall_ms())
    }

    /// The rate that chunks in flight allow over the round trip (Little's law); none where the round trip is not
    /// known or too short to tell.
    pub(super) fn little_bytes_per_s(&self) -> Option<f64> {
        let rtt_ms = self.rtt_ms.filter(|rtt| *rtt >= 1.0)?;
        Some(self.in_flight_bytes? / (rtt_ms / 1e3))
    }

    /// Highest use of a resource over both ends; none where neither tells.
    pub(super) fn busiest(&self, of: impl Fn(&NodeSpan<'_>) -> Option<f64>) -> Option<f64> {
        self.ends.iter().filter_map(|(_, span)| of(span)).reduce(f64::max)
    }

    /// Share of the time that a control group keeps either end from running, 0 to 1.
    pub(super) fn starved(&self) -> f64 {
        self.busiest(starved).unwrap_or(0.0).min(1.0)
    }

    pub(super) fn is_idle(&self) -> bool {
        let cpu = self.busiest(|span| cpu(span).map(|(share, _)| share)).unwrap_or(0.0);
        let disk = self.busiest(|span| span.share(|node| node.io_time_ms)).unwrap_or(0.0);
        cpu < IDLE.value && disk < IDLE.value
    }

    pub(super) fn in_flight(&self) -> Option<String> {
        let chunk = self.knobs.chunk_bytes(self.series)? as u64;
        let count = self.knobs.chunk_count(self.series)?;
        Some(format!("{count:.0} chunks of {}", show_size_setting(chunk)))
    }

    pub(super) fn paused_evidence(&self) -> Option<Evidence> {
        let wall = record::units::show_seconds(self.transfer.wall_ms() / 1e3);
        Some(Evidence::new(
            RECOVERY,
            "index.source_throttle_time_in_millis + target_throttle_time_in_millis",
            format!("rose by {} ms in {wall}", self.transfer.paused_ms()?),
        ))
    }

    pub(super) fn rate_evidence(&self) -> Evidence {
        Evidence::new(
            RECOVERY,
            "index.size.recovered_in_bytes",
            format!(
                "{}, {} on {}",
                words::rate(self.rate_bytes_per_s),
                words::rate(self.node_bytes_per_s),
                self.node
            ),
        )
    }

    pub(super) fn setting_evidence(&self, name: &str, default: &str) -> Evidence {
        let setting = today(self.series, name, default);
        Evidence::new(SETTINGS, name, format!("{} ({})", setting.value, scope(setting.scope)))
    }

    pub(super) fn idle_evidence(&self) -> Vec<Evidence> {
        let mut all = Vec::new();
        for (side, span) in &self.ends {
            if let Some((share, field)) = cpu(span) {
                let value = format!("{} ({side}): {}", span.last().name, words::percent(share));
                all.push(Evidence::new(STATS, field, value));
            }
            if let Some(share) = span.share(|node| node.io_time_ms) {
                let value = format!(
                    "{} ({side}): busy {} of the time",
                    span.last().name,
                    words::percent(share)
                );
                all.push(Evidence::new(STATS, "fs.io_stats.total.io_time_in_millis", value));
            }
        }
        all
    }

    /// What the embedded engine charged the time to: it knows, where REST alone has to infer.
    pub(super) fn own_accounting(&self) -> Option<Evidence> {
        let charged = |limit| {
            let of = |recovery: &Recovery| recovery.charged_ns.get(&limit).copied();
            // A limit that it was not charged to at first is not there.
            of(self.transfer.last())?;
            self.transfer.rise(|recovery| Some(of(recovery).unwrap_or(0)))
        };
        let rises: Vec<(record::Limit, u64)> = record::Limit::ALL
            .into_iter()
            .filter_map(|limit| Some((limit, charged(limit)?)))
            .collect();
        let total: u64 = rises.iter().map(|(_, ns)| ns).sum();
        let (limit, most) = rises.into_iter().max_by_key(|(_, ns)| *ns)?;
        (total > 0).then(|| {
            let share = most as f64 / total as f64;
            let value =
                format!("{} of the time charged to {}", words::percent(share), limit.label());
            Evidence::new(RECOVERY, "narrows.charged_ns", value)
        })
    }
}

/// CPU of a node as a share of its cores, and the field that says so. A process is measured against the cores
/// that it may use, its machine as a whole where the process does not tell.
pub(crate) fn cpu(span: &NodeSpan<'_>) -> Option<(f64, &'static str)> {
    let os =
        span.mean(|node| node.os_cpu_percent).map(|percent| (percent / 100.0, "os.cpu.percent"));
    let own = span
        .share(|node| node.process_cpu_ms)
        .zip(span.last().cores)
        .map(|(used, cores)| (used / (cores.max(1) as f64), "process.cpu.total_in_millis"));
    match (os, own) {
        (Some(os), Some(own)) => Some(if own.0 > os.0 { own } else { os }),
        (os, own) => os.or(own),
    }
}

/// Time that a node's control group kept it from running, over wall time; it is summed over cores, so that it may
/// exceed 1.
pub(super) fn starved(span: &NodeSpan<'_>) -> Option<f64> {
    Some(span.share(|node| node.cgroup_throttled_ns)? / 1e6)
}

/// The remote cluster behind a repository.
pub(super) fn alias_of(repository: &str) -> Option<&str> {
    repository.strip_prefix("_ccr_").or_else(|| repository.strip_prefix("replication-remote-repo-"))
}
