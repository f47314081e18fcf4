//! What a recovery that copies files shows, as evidence.

use record::Limit;
use record::observation::Recovery;

use super::Copying;
use crate::diagnosis::finding::{Evidence, NODES_STATS, RECOVERY};
use crate::diagnosis::series::Transfer;
use crate::words;

impl Copying<'_, '_> {
    pub(crate) fn rate_evidence(&self) -> Evidence {
        // A large chunk behind a low limit may take longer than one looks: a rate of 0 would say that nothing moves.
        let whole = Transfer::since_its_beginning(0.0, self.transfer.last()).bytes_per_s();
        let mut value = match whole.filter(|whole| self.rate_bytes_per_s == 0.0 && *whole > 0.0) {
            Some(whole) => {
                format!("no chunk came between the looks, {} since it began", words::rate(whole))
            }
            None => words::rate(self.rate_bytes_per_s),
        };
        if self.node_bytes_per_s > 0.0 {
            value += &format!(", {} on {}", words::rate(self.node_bytes_per_s), self.node);
        }
        if self.transfer.last().comes_from_snapshot() {
            value += ", most of it from a snapshot";
        }
        Evidence::new(RECOVERY, "index.size.recovered_in_bytes", value)
    }

    pub(crate) fn paused_evidence(&self) -> Option<Evidence> {
        let (paused_ms, wall_ms) = (self.transfer.paused_ms()?, self.transfer.wall_ms());
        Some(Evidence::new(
            RECOVERY,
            "index.source_throttle_time_in_millis + target_throttle_time_in_millis",
            words::summed_pauses(paused_ms, wall_ms, self.chunk_count),
        ))
    }

    pub(crate) fn setting_evidence(&self, name: &str, default: &str) -> Evidence {
        Evidence::setting(name, &self.series.setting_or_default(name, default), Some(default))
    }

    pub(crate) fn idle_evidence(&self) -> Vec<Evidence> {
        let mut all = Vec::new();
        for end in &self.ends {
            let whose = format!("{} ({})", end.node(), end.side());
            if let Some((share, field)) = end.cpu {
                let value = format!("{whose}: {}", words::percent(share));
                all.push(Evidence::new(NODES_STATS, field, value));
            }
            if let Some(share) = end.span.disk_busy() {
                let value = format!("{whose}: busy {} of the time", words::percent(share));
                all.push(Evidence::new(NODES_STATS, "fs.io_stats.total.io_time_in_millis", value));
            }
        }
        all
    }

    /// What the embedded engine charged the time to: it knows, where REST alone has to infer.
    pub(crate) fn own_accounting(&self) -> Option<Evidence> {
        let charged = |limit| {
            let of = |recovery: &Recovery| recovery.charged_ns.get(&limit).copied();
            // A limit that nothing was charged to yet is missing in the first look.
            of(self.transfer.last())?;
            self.transfer.rise(|recovery| Some(of(recovery).unwrap_or(0)))
        };
        let rises: Vec<(Limit, u64)> =
            Limit::ALL.into_iter().filter_map(|limit| Some((limit, charged(limit)?))).collect();
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
