//! What lifts the limit that held a variant, and what that brings.

use std::collections::BTreeMap;

use record::{Limit, units};

use crate::bounds::Bounds;
use crate::diagnosis::{Class, GIVEN_BACK, Gain, Knobs, Lift, SLOTS, to_step};
use crate::elapsed::Elapsed;
use crate::variant::Finished;
use crate::words::{self, percent};

/// Where nothing says how far a limiter may be raised, or chunks are at their most, these many times are worth trying.
const RAISE_LIMITER: f64 = 2.0;
const RAISE_CHUNK: f64 = 4.0;
const RAISE_SLOTS: u64 = 2;

pub(super) const REPOSITORY: &str = "repository.max_restore_bytes_per_sec";
pub(super) const SCHEDULER: &str = "narrows.recovery.scheduler";

/// A variant and what held it.
pub(super) struct Held<'a> {
    pub(super) settings: &'a BTreeMap<String, String>,
    pub(super) figures: &'a Finished,
    pub(super) bounds: &'a Bounds,
    /// The account of the time as it is seen from outside, where the target has none of its own.
    pub(super) account: Option<Elapsed>,
    /// The share of the time in which copies were being made: shares of limits are shares of that.
    pub(super) copying: f64,
}

impl Held<'_> {
    /// What lifts the limit, and what that brings.
    pub(super) fn lifted(&self) -> (Option<Lift>, Option<Gain>) {
        let Some(limit) = self.figures.verdict.limit else { return (None, None) };
        let lifted = match limit {
            Limit::Throttle => self.raised_limiter(),
            Limit::Latency if !self.is_around_files() => self.more_in_flight(),
            Limit::Slots => Some(self.more_slots()),
            _ => None,
        };
        match lifted {
            Some((lift, factor, formula)) => {
                let gain = self.gain(limit, factor, &formula);
                (Some(lift), Some(gain))
            }
            None if limit == Limit::Latency && self.is_around_files() => {
                let action = "what precedes and follows the files takes the same round trips for few bytes and for many: \
                              fewer and larger shards, more of them side by side, or nodes that are nearer";
                (Some(Lift::action(action)), self.at_most())
            }
            None if limit == Limit::Latency && self.knobs().chunks.is_none() => {
                let action = "no setting says how much of a restore is in flight: restore more shards side by side, or from \
                              a repository that is nearer";
                (Some(Lift::action(action)), self.at_most())
            }
            None => (Some(Lift::action(&action(limit))), self.at_most()),
        }
    }

    /// Only the share of the time that the limit took becomes shorter, down to where the next one holds.
    fn gain(&self, limit: Limit, factor: f64, formula: &str) -> Gain {
        let own = self.figures.bytes_per_s;
        let others = self.bounds.ceilings().into_iter().filter(|other| other.limit != limit);
        let room = others
            .map(|other| other.rate_bytes_per_s / own)
            .filter(|room| *room > 1.0)
            .fold(f64::INFINITY, f64::min);
        let share = self.share_of_files();
        let shorter = 1.0 / (1.0 - share + share / factor);
        let until = if room < shorter { ", up to the next limit" } else { "" };
        let formula = format!("{} of the time becomes shorter by {formula}{until}", percent(share));
        Gain { factor: shorter.min(room), formula }
    }

    /// What would be if the limit took nothing.
    fn at_most(&self) -> Option<Gain> {
        let share = self.share() * self.copying;
        let back = share.min(GIVEN_BACK.value);
        let took = percent(share);
        (share > 0.0).then(|| Gain {
            factor: 1.0 / (1.0 - back),
            formula: match back < share {
                true => {
                    format!("{} of the time is saved, of the {took} that it took", percent(back))
                }
                false => format!("without the {took} of the time that it took"),
            },
        })
    }

    /// The share of the time that the limit took while files moved: settings of a transfer shorten nothing else. An
    /// engine that accounts for its time does not tell which part of it was spent on files.
    fn share_of_files(&self) -> f64 {
        let Some((account, limit)) = self.account.as_ref().zip(self.figures.verdict.limit) else {
            return self.share() * self.copying;
        };
        let while_files = account.while_files.get(&limit).copied().unwrap_or(0.0);
        while_files / account.total_s
    }

    fn is_around_files(&self) -> bool {
        self.account.is_some() && self.share_of_files() < self.share() / 2.0
    }

    /// The share of the time; all that counts where it is inferred.
    pub(super) fn share(&self) -> f64 {
        match self.figures.verdict.share {
            share if share > 0.0 => share,
            _ => GIVEN_BACK.value,
        }
    }

    /// Larger chunks bring nothing once all files are in flight.
    fn all_is_in_flight(&self, chunk: u64, chunks: u32) -> bool {
        let shards = u64::from(self.bounds.shards.unwrap_or(1));
        chunk.saturating_mul(u64::from(chunks)).saturating_mul(shards) >= self.figures.bytes
    }

    pub(super) fn knobs(&self) -> Knobs {
        let has = |prefix: &str| self.settings.keys().any(|name| name.starts_with(prefix));
        if has("ccr.") {
            Knobs::REMOTE
        } else if has("plugins.replication.") {
            Knobs::PLUGIN
        } else if has("repository.") {
            Knobs::RESTORE
        } else {
            Knobs::PEERS
        }
    }

    /// A setting of the variant from what it is to what is worth trying; the default where the plan does not set it.
    fn setting(&self, name: &str, default: &str, to: String, action: &str) -> Lift {
        let now = self.settings.get(name).map_or(default, String::as_str).to_owned();
        let (setting, action) = (Some(name.to_owned()), action.to_owned());
        Lift { setting, now: Some(now), set_by: None, default: None, to: Some(to), action }
    }

    /// The limiter of a node, raised to where the next limit holds.
    fn raised_limiter(&self) -> Option<(Lift, f64, String)> {
        let (name, default) = self.knobs().rate?;
        let limit = self.bounds.throttle_bytes_per_s? as f64;
        let nodes = self.bounds.limiters();
        let all = self.bounds.ceilings().into_iter();
        let next = all
            .filter(|other| other.limit != Limit::Throttle)
            .map(|other| other.rate_bytes_per_s / nodes)
            .find(|rate| *rate > limit);
        let to = next.unwrap_or(limit * RAISE_LIMITER);
        let text = units::show_size_setting(to_step(to, f64::INFINITY));
        let formula = format!("{text} / {}", words::rate(limit));
        let action = "raise the limit while searches and indexing have room";
        Some((self.setting(name, default, text, action), to / limit, formula))
    }

    /// More chunks, then larger ones; none where settings do not say what is in flight.
    fn more_in_flight(&self) -> Option<(Lift, f64, String)> {
        let knobs = self.knobs();
        let (chunks, chunk) = (self.bounds.chunks_in_flight?, self.bounds.chunk_bytes?);
        let (name, default, most) = knobs.chunks?;
        if self.all_is_in_flight(chunk, chunks) {
            return None;
        }
        let takes_turns = self.settings.get(SCHEDULER).is_some_and(|it| it == "sequential");
        if takes_turns {
            let to = "parallel_files".to_owned();
            let lift =
                self.setting(SCHEDULER, to.as_str(), to.clone(), "fetch chunks side by side");
            let count = self.settings.get(name).map_or(default, String::as_str);
            let count: f64 = count.parse().ok().filter(|count| *count > 1.0)?;
            return Some((lift, count, format!("{count:.0} chunks / 1")));
        }
        if chunks < most {
            let lift = self.setting(name, default, most.to_string(), "keep more chunks in flight");
            let formula = format!("{most} chunks / {chunks}");
            return Some((lift, f64::from(most) / f64::from(chunks), formula));
        }
        let larger = knobs.larger_chunk(chunk as f64, RAISE_CHUNK)?;
        let to = units::show_size_setting(larger);
        let formula = format!("{to} / {}", units::show_size_setting(chunk));
        let lift = self.setting(knobs.chunk.0?, knobs.chunk.1, to, "move larger chunks");
        Some((lift, larger as f64 / chunk as f64, formula))
    }

    fn more_slots(&self) -> (Lift, f64, String) {
        let (name, default) = SLOTS;
        let now = self.settings.get(name).map_or(default, String::as_str);
        let count: u64 = now.parse().unwrap_or(RAISE_SLOTS);
        let to = count.saturating_mul(RAISE_SLOTS).max(1);
        let action = "recover more copies of a node side by side";
        let lift = self.setting(name, default, to.to_string(), action);
        (lift, RAISE_SLOTS as f64, format!("{to} slots / {count}"))
    }
}

/// What to do about a limit that no setting of the recovery lifts: as the cause of the live diagnosis says it.
fn action(limit: Limit) -> String {
    let class = match limit {
        Limit::Throttle => Class::RateLimit,
        Limit::Latency => Class::Latency,
        Limit::LinkRate | Limit::Loss => Class::Bandwidth,
        Limit::DiskRead | Limit::DiskWrite => Class::Disk,
        Limit::Cpu => Class::Cpu,
        Limit::Slots => Class::AllocationSlots,
        Limit::Memory => Class::Memory,
        Limit::Proxy => Class::Proxy,
        Limit::Coordination => {
            return "what precedes and follows the files costs the same for few bytes and for many: fewer and larger \
                    copies, or more of them side by side"
                .to_owned();
        }
    };
    class.rule().lift.to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use record::LimitShare;

    use super::*;
    use crate::bounds::ocean;
    use crate::verdict::Verdict;

    const RATE: &str = "indices.recovery.max_bytes_per_sec";
    const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";

    pub fn figures(limit: Option<Limit>, share: f64, bytes_per_s: f64) -> Finished {
        Finished {
            laps_s: vec![10.0],
            shown_lap: 1,
            seconds: 10.0,
            seconds_interval: None,
            bytes: (bytes_per_s * 10.0) as u64,
            bytes_per_s,
            node_bytes_per_s: None,
            link_share: Some(bytes_per_s / 125e6),
            gain: None,
            gain_interval: None,
            limits: limit.map(|limit| LimitShare { limit, share }).into_iter().collect(),
            verified: true,
            documents: 1,
            refetched_chunks: 0,
            stream: None,
            verdict: Verdict { limit, share, ceiling: None, next: None, text: String::new() },
        }
    }

    fn lifted(
        settings: &[(&str, &str)],
        bounds: &Bounds,
        figures: &Finished,
    ) -> (Option<Lift>, Option<Gain>) {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = settings.collect();
        Held { settings: &settings, figures, bounds, account: None, copying: 1.0 }.lifted()
    }

    pub fn slow_ocean() -> Bounds {
        Bounds { throttle_bytes_per_s: Some(5 << 20), ..ocean() }
    }

    #[test]
    fn a_limiter_is_raised_to_where_latency_holds() {
        let figures = figures(Some(Limit::Throttle), 0.8, 5e6);
        let (lift, gain) = lifted(&[(RATE, "5mb")], &slow_ocean(), &figures);
        let lift = lift.unwrap();
        assert_eq!((lift.setting.as_deref(), lift.to.as_deref()), (Some(RATE), Some("10mb")));
        assert_eq!(lift.now.as_deref(), Some("5mb"));
        // 80 % of the time takes half as long.
        let gain = gain.unwrap();
        assert!((gain.factor - 1.0 / 0.6).abs() < 0.01, "{gain:?}");
        assert!(gain.formula.starts_with("80 % of the time becomes shorter by 10mb / 5.24 MB/s"));
    }

    #[test]
    fn more_chunks_come_before_larger_ones_and_end_at_the_limiter() {
        let figures = figures(Some(Limit::Latency), 1.0, 4e6);
        let (lift, gain) = lifted(&[], &slow_ocean(), &figures);
        let lift = lift.unwrap();
        assert_eq!((lift.setting.as_deref(), lift.to.as_deref()), (Some(CHUNKS), Some("5")));
        let gain = gain.unwrap();
        assert!((gain.factor - 5.24288 / 4.0).abs() < 1e-6 && gain.formula.ends_with("next limit"));
        let most = Bounds { chunks_in_flight: Some(5), ..slow_ocean() };
        let lift = lifted(&[], &most, &figures).0.unwrap();
        assert_eq!(lift.setting.as_deref(), Some("indices.recovery.chunk_size"));
        assert_eq!(lift.to.as_deref(), Some("2mb"));
    }

    #[test]
    fn settings_of_a_transfer_shorten_its_files_alone() {
        let figures = figures(Some(Limit::Latency), 0.9, 4e6);
        let account = |while_files: f64| Elapsed {
            total_s: 10.0,
            limits: BTreeMap::from([(Limit::Latency, 9.0)]),
            while_files: BTreeMap::from([(Limit::Latency, while_files)]),
            ..Elapsed::default()
        };
        let lifted = |while_files| {
            let (settings, bounds) = (BTreeMap::new(), slow_ocean());
            let account = Some(account(while_files));
            let figures = &figures;
            Held { settings: &settings, figures, bounds: &bounds, account, copying: 1.0 }.lifted()
        };
        let (lift, gain) = lifted(6.0);
        assert_eq!(lift.unwrap().setting.as_deref(), Some(CHUNKS));
        assert!(
            gain.unwrap().formula.starts_with("60 % of the time becomes shorter by 5 chunks / 2")
        );
        let (lift, gain) = lifted(2.0);
        let lift = lift.unwrap();
        assert!(
            lift.setting.is_none() && lift.action.contains("fewer and larger shards"),
            "{lift:?}"
        );
        assert!((gain.unwrap().factor - 10.0).abs() < 1e-9);
    }

    #[test]
    fn what_waits_for_its_node_is_not_shortened_by_a_setting() {
        let (settings, bounds) = (BTreeMap::new(), slow_ocean());
        let gain = |limit| {
            let figures = &figures(Some(limit), 1.0, 1e6);
            let held =
                Held { settings: &settings, figures, bounds: &bounds, account: None, copying: 0.5 };
            held.lifted().1.unwrap()
        };
        let gain_of = |limit| (gain(limit).factor * 100.0).round();
        assert_eq!((gain_of(Limit::Throttle), gain_of(Limit::Cpu)), (133.0, 200.0));
        assert!(gain(Limit::Throttle).formula.starts_with("50 % of the time becomes shorter"));
    }

    #[test]
    fn what_no_setting_lifts_has_an_action_and_a_bound() {
        let (lift, gain) = lifted(&[], &slow_ocean(), &figures(Some(Limit::Cpu), 0.5, 4e6));
        assert_eq!(lift.unwrap(), Lift::action("more cores, or less work on the node"));
        assert_eq!(gain.unwrap().factor, 2.0);
        let restored =
            lifted(&[(REPOSITORY, "0b")], &slow_ocean(), &figures(Some(Limit::Latency), 0.5, 4e6));
        assert!(restored.0.unwrap().action.contains("restore more shards side by side"));
        let unknown = lifted(&[], &slow_ocean(), &figures(None, 0.0, 4e6));
        assert_eq!(unknown, (None, None));
    }
}
