//! Whether the limiter of a node holds.

use record::units::show_size_setting;

use super::super::knobs::today;
use super::super::rules::{LIMIT_PAUSED, LIMIT_PAUSED_ALONE, LIMIT_USED, VERDICT};
use super::super::{Class, Evidence, Finding, Gain, Lift};
use super::STATS;
use super::case::Case;
use crate::words;

impl Case<'_, '_> {
    pub(super) fn rate_limit(&self) -> Option<Finding> {
        let (name, default) = self.knobs.rate?;
        let limit = self.limit_bytes_per_s?;
        let used = self.node_bytes_per_s / limit;
        let paused = self.paused();
        let sleepers = self.knobs.chunk_count(self.series).unwrap_or(1.0);
        let alone = paused.map_or(0.0, |paused| paused / sleepers);
        let strength = match paused {
            Some(paused) if used >= LIMIT_USED.value && paused >= LIMIT_PAUSED.value => {
                used.min(1.0)
            }
            // Pauses say nothing here: the limit is where the rate is.
            None if used >= 0.9 => VERDICT.value,
            // The other side may serve more than is seen from here.
            Some(_) if alone >= LIMIT_PAUSED_ALONE.value => alone.min(1.0) * 0.9,
            _ => return None,
        };
        // What is in flight would take so much less time without its pauses.
        let unpaused = (1.0 / (1.0 - alone.min(0.875))).max(2.0);
        let setting = today(self.series, name, default);
        let ceiling = self
            .little_bytes_per_s()
            .map(|one| one * self.node_bytes_per_s / self.rate_bytes_per_s);
        let to = ceiling
            .filter(|ceiling| *ceiling > limit * 1.05)
            .unwrap_or(limit * unpaused)
            .min(limit * 8.0);
        // What the node lets through otherwise goes through the same limiter: to what is seen here alone it has more than it
        // uses, and has not.
        let today_bytes_per_s =
            if used >= LIMIT_USED.value { self.node_bytes_per_s } else { limit };
        let factor = (to / today_bytes_per_s).max(1.0);
        let to_text = show_size_setting(((to / f64::from(1 << 20)).ceil() as u64) << 20);
        let near = self.rtt_ms.is_some_and(|rtt| rtt < 1.0);
        let next = match (ceiling, near) {
            (Some(ceiling), _) => format!(
                "latency at {} ({} over {})",
                words::rate(ceiling),
                self.in_flight().unwrap_or_default(),
                words::rtt(self.rtt_ms.unwrap_or_default())
            ),
            (None, true) => "disks, cores or the network: the nodes are near each other".to_owned(),
            (None, false) => {
                "latency, disks, cores or the network; the round trip is not known".to_owned()
            }
        };
        let mut evidence = vec![self.rate_evidence()];
        evidence.extend(self.paused_evidence());
        let node_pause = self.ends.iter().find(|(_, span)| span.last().name == self.node);
        if let Some(ms) = node_pause.and_then(|(_, span)| span.rise(|node| node.throttle_ms)) {
            let field = "indices.recovery.throttle_time_in_millis";
            evidence.push(Evidence::new(STATS, field, format!("{}: rose by {ms} ms", self.node)));
        }
        evidence.push(self.setting_evidence(name, default));
        Some(Finding {
            class: Class::RateLimit,
            subjects: vec![self.transfer.name()],
            place: self.node.clone(),
            strength,
            sentence: if used >= LIMIT_USED.value {
                format!(
                    "the limiter of {} holds: {} of the {} that {name} = {} lets through",
                    self.node,
                    words::rate(self.node_bytes_per_s),
                    words::rate(limit),
                    setting.value
                )
            } else {
                format!(
                    "the limiter of {} holds ({name} = {}): chunks pause {} of their time",
                    self.node,
                    setting.value,
                    words::percent(alone.min(1.0))
                )
            },
            evidence,
            lift: Some(Lift {
                setting: Some(name.to_owned()),
                now: Some(setting.value),
                set_by: Some(setting.scope),
                to: Some(to_text.clone()),
                action: "raise the limit while searches and indexing have room".to_owned(),
            }),
            gain: Some(Gain {
                factor,
                formula: match ceiling {
                    Some(_) => format!("{to_text} / {}", words::rate(today_bytes_per_s)),
                    None => format!(
                        "{to_text} / {}: chunks pause {} of their time; if nothing else binds first",
                        words::rate(today_bytes_per_s),
                        words::percent(alone.min(1.0))
                    ),
                },
            }),
            next: Some(next),
            doubt: None,
        })
    }
}
