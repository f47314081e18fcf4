//! Whether the path holds: because it is long, or because it is full.

use record::units::show_size_setting;

use super::super::knobs::today;
use super::super::rules::{
    CARD, FAST_BYTES_PER_S, LEVEL, LIMIT_PAUSED, LIMIT_USED, LITTLE_IMPLIED_MS, LITTLE_USED,
    LITTLE_USED_BUSY,
};
use super::super::{Class, Evidence, Finding, Gain, Lift};
use super::case::{Case, alias_of};
use super::{RECOVERY, STATS};
use crate::words;

/// What usual network cards carry.
const CARDS_BYTES_PER_S: [f64; 4] = [125e6, 1.25e9, 3.125e9, 12.5e9];

impl Case<'_, '_> {
    pub(super) fn latency(&self) -> Option<Finding> {
        if self.rate_bytes_per_s <= 0.0 {
            return None;
        }
        let in_flight = self.in_flight_bytes?;
        let implied_ms = in_flight / self.rate_bytes_per_s * 1e3;
        let (strength, doubt) = match (self.little_bytes_per_s(), self.rtt_ms) {
            (Some(little), _) => {
                let used = self.rate_bytes_per_s / little;
                let least = if self.is_idle() { LITTLE_USED } else { LITTLE_USED_BUSY };
                if used < least.value {
                    return None;
                }
                // Asking a node that is kept from running takes as long as its chunks do: that is no round trip.
                (used.min(1.0) * 0.98 * (1.0 - self.starved()), None)
            }
            // Near nodes: a round trip explains nothing.
            (None, Some(_)) => return None,
            (None, None) if self.is_idle() && implied_ms >= LITTLE_IMPLIED_MS.value => {
                let text = "bandwidth looks the same while the round trip is not known: give the hosts of both \
                            nodes, or compare a ping with the time a chunk takes";
                (0.6, Some(text.to_owned()))
            }
            _ => return None,
        };
        let mut evidence = vec![self.rate_evidence()];
        evidence.extend(self.paused_evidence());
        if let Some(rtt) = self.rtt_ms {
            let value = format!(
                "{} shortest, against asking one node alone",
                words::rtt((rtt * 10.0).round() / 10.0)
            );
            evidence.push(Evidence::new(STATS, "time through another node", value));
        }
        evidence.push(self.setting_evidence(self.knobs.chunks.0, self.knobs.chunks.1));
        if let Some(name) = self.knobs.chunk_setting(self.series) {
            evidence.push(self.setting_evidence(name, self.knobs.chunk.1));
        }
        evidence.extend(self.idle_evidence());
        let (lift, factor, formula) = self.more_in_flight()?;
        let last = self.transfer.last();
        let between = match (&last.source, &last.repository, &last.target) {
            (Some(source), _, Some(target)) => format!("{source} and {target}"),
            (None, Some(repository), Some(target)) => {
                format!("{} and {target}", alias_of(repository).unwrap_or(repository))
            }
            _ => "the nodes".to_owned(),
        };
        let (next, capped) = self.after_latency(factor);
        Some(Finding {
            class: Class::Latency,
            subjects: vec![self.transfer.name()],
            place: format!("between {between}"),
            strength,
            sentence: format!(
                "the round trip between {between} holds: {} in flight, of which each takes {}, give {} (Little's \
                 law); {}",
                self.in_flight().unwrap_or_default(),
                words::rtt(implied_ms.round()),
                words::rate(self.rate_bytes_per_s),
                if self.is_idle() {
                    "no limiter binds, cores and disks are idle"
                } else {
                    "no limiter binds, and that explains the rate although cores or disks are busy"
                }
            ),
            evidence,
            lift: Some(lift),
            gain: Some(Gain {
                formula: if capped < factor {
                    format!("{formula}, up to the next limit")
                } else {
                    formula
                },
                factor: capped,
            }),
            next: Some(next),
            doubt,
        })
    }

    /// What to raise so that more is in flight, by what factor, and how that is reckoned.
    fn more_in_flight(&self) -> Option<(Lift, f64, String)> {
        let (name, default, most) = self.knobs.chunks;
        let setting = today(self.series, name, default);
        let count = self.knobs.chunk_count(self.series)?;
        if count < f64::from(most) {
            let lift = Lift {
                setting: Some(name.to_owned()),
                now: Some(setting.value),
                set_by: Some(setting.scope),
                to: Some(most.to_string()),
                action: "keep more chunks in flight".to_owned(),
            };
            let factor = f64::from(most) / count;
            return Some((lift, factor, format!("{most} chunks / {count:.0}")));
        }
        let chunk = self.knobs.chunk_bytes(self.series)?;
        let Some(name) = self.knobs.chunk.0 else {
            let action = "chunks are at their most and their size is fixed: recover more shards side by side \
                          (cluster.routing.allocation.node_concurrent_recoveries)";
            let lift = Lift {
                setting: None,
                now: None,
                set_by: None,
                to: None,
                action: action.to_owned(),
            };
            return Some((lift, 2.0, "twice the shards side by side / 1".to_owned()));
        };
        let setting = today(self.series, name, self.knobs.chunk.1);
        let to = show_size_setting(chunk as u64 * 4);
        let lift = Lift {
            setting: Some(name.to_owned()),
            now: Some(setting.value),
            set_by: Some(setting.scope),
            to: Some(to.clone()),
            action: "move larger chunks".to_owned(),
        };
        Some((lift, 4.0, format!("{to} / {}", show_size_setting(chunk as u64))))
    }

    /// What binds once latency does not, and the factor up to there.
    fn after_latency(&self, factor: f64) -> (String, f64) {
        let Some(limit) = self.limit_bytes_per_s else {
            return ("the link, then disks and cores".to_owned(), factor);
        };
        let room = (limit / self.node_bytes_per_s).max(1.0);
        let name = self.knobs.rate.map_or("", |(name, _)| name);
        let text = format!("the limiter at {} a node ({name})", words::rate(limit));
        (text, factor.min(room))
    }

    pub(super) fn bandwidth(&self) -> Option<Finding> {
        let paused =
            self.paused().unwrap_or(0.0) / self.knobs.chunk_count(self.series).unwrap_or(1.0);
        let binds = self
            .limit_bytes_per_s
            .is_some_and(|limit| self.node_bytes_per_s >= limit * LIMIT_USED.value);
        if !self.is_idle() || paused >= LIMIT_PAUSED.value || binds {
            return None;
        }
        // Only a measured round trip tells a full path from a long one.
        let rtt_ms = self.rtt_ms?;
        let little = self.little_bytes_per_s();
        if little.is_some_and(|little| self.rate_bytes_per_s >= little * LITTLE_USED.value) {
            return None;
        }
        let near_card = CARDS_BYTES_PER_S.iter().any(|card| {
            let used = self.node_bytes_per_s / card;
            used > 1.0 - CARD.value && used <= 1.02
        });
        // Fast and near: some limit there always is, and none of these would be worth lifting.
        if self.node_bytes_per_s >= FAST_BYTES_PER_S.value && rtt_ms < 1.0 && !near_card {
            return None;
        }
        let rates = self.transfer.step_rates();
        let spread = spread(&rates)?;
        if spread > LEVEL.value || self.rate_bytes_per_s <= 0.0 {
            return None;
        }
        let sent =
            self.ends.first().and_then(|(_, span)| span.per_s(|node| node.transport_tx_bytes));
        let mut evidence = vec![self.rate_evidence()];
        evidence.extend(self.paused_evidence());
        if let Some(sent) = sent {
            let value = format!("{}: {}", self.ends[0].1.last().name, words::rate(sent));
            evidence.push(Evidence::new(STATS, "transport.tx_size_in_bytes", value));
        }
        evidence.push(Evidence::new(
            RECOVERY,
            "recovered_in_bytes between looks",
            format!("level: within {} of its mean", words::percent(spread)),
        ));
        evidence.extend(self.idle_evidence());
        let last = self.transfer.last();
        let from = last.source.clone().or_else(|| last.repository.clone()).unwrap_or_default();
        let place = format!("{from} to {}", last.target.clone().unwrap_or_default());
        Some(Finding {
            class: Class::Bandwidth,
            subjects: vec![self.transfer.name()],
            place: place.clone(),
            strength: 0.6,
            sentence: format!(
                "the path {place} carries {} and no more: the rate is level, {} of round trip would let more \
                 through, and no limiter, core or disk binds",
                words::rate(self.node_bytes_per_s),
                words::rtt(rtt_ms.round())
            ),
            evidence,
            lift: Some(Lift {
                setting: Some("transport.connections_per_node.recovery".to_owned()),
                now: Some(today(self.series, "transport.connections_per_node.recovery", "2").value),
                set_by: None,
                to: None,
                action: "find out what the link and the cards carry; where there is a cap for each flow, open more \
                         connections (a node setting)"
                    .to_owned(),
            }),
            gain: None,
            next: little.map(|little| format!("latency at {} a shard", words::rate(little))),
            doubt: Some("a cap for each flow and a full link look the same: compare 1 with 8 streams".to_owned()),
        })
    }
}

/// Mean distance from the mean, over the mean; none for fewer than three rates.
fn spread(rates: &[f64]) -> Option<f64> {
    if rates.len() < 3 {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let off = rates.iter().map(|rate| (rate - mean).abs()).sum::<f64>() / rates.len() as f64;
    (mean > 0.0).then_some(off / mean)
}
