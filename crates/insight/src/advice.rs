//! What would make a variant of a run faster: the setting or the action that lifts what held it, what that should
//! bring, and the evidence for both, out of the record alone. Where another variant of the run differs in that setting
//! alone, what it brought is said, too: that is measured.

use std::collections::BTreeMap;

use record::{Limit, RunDir, units};
use serde::Serialize;

use crate::bounds::{Bounds, TOLERANCE};
use crate::diagnosis::{By, Class, Evidence, Gain, Knobs, Lift, show_rounded_up};
use crate::elapsed::Elapsed;
use crate::inferred::NEAR_CEILING;
use crate::outside;
use crate::summary::Summary;
use crate::trace::{Files, Trace, Traces, traces};
use crate::variant::{Finished, Variant};
use crate::words::{self, percent};

/// A limit that took less of the time than this is no evidence.
const EVIDENCE: f64 = 0.02;
/// If a limit took nothing any more, at most this share of the time is promised back, so that a gain is finite.
const GIVEN_BACK: f64 = 0.9;
/// Where nothing says how far a limiter may be raised, or chunks are at their most, these many times are worth trying.
const RAISE_LIMITER: f64 = 2.0;
const RAISE_CHUNK: f64 = 4.0;
const RAISE_SLOTS: u64 = 2;

const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
const SLOTS_DEFAULT: &str = "2";
const REPOSITORY: &str = "repository.max_restore_bytes_per_sec";
const SCHEDULER: &str = "narrows.recovery.scheduler";

/// Advice on one variant that finished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The variant.
    pub variant: String,
    /// What held it; none where that is not known.
    pub limit: Option<Limit>,
    /// The share of the time that it took, 0 to 1; 0 where it is inferred.
    pub share: f64,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What verdict and advice rest on.
    pub evidence: Vec<Evidence>,
    /// What lifts the limit; none where what held is not known.
    pub lift: Option<Lift>,
    /// What lifting it should bring: predicted, from the account of the time.
    pub gain: Option<Gain>,
    /// What the run itself measured of it: variants that differ in that setting alone.
    pub measured: Vec<String>,
    /// All other limits, and what speaks against each.
    pub ruled_out: Vec<OtherLimit>,
}

/// A limit that did not hold, or held for less of the time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherLimit {
    /// The limit.
    pub limit: Limit,
    /// What kind of reason speaks against it.
    pub by: By,
    /// The reason: the share of the time that it took, of its rate that was used, or what is not told.
    pub why: String,
}

/// Advice on every variant that finished, in the order of the plan. Streams and loads have none.
pub fn advice(run: &RunDir, summary: &Summary<'_>) -> Vec<Advice> {
    let traces = traces(run);
    let is_load = |name: &str| summary.loads.iter().any(|load| load.variant == name);
    let finished = summary.finished();
    let finished = finished.filter(|(variant, of)| of.stream.is_none() && !is_load(&variant.name));
    let judged: Vec<Judged<'_>> =
        finished.map(|(variant, figures)| Judged::of(run, &traces, variant, figures)).collect();
    judged.iter().map(|one| one.advice(&judged, summary)).collect()
}

/// A variant with the figures that it is judged by.
struct Judged<'a> {
    variant: &'a Variant,
    figures: Finished,
    bounds: Bounds,
    account: Option<Elapsed>,
    trace: Option<&'a Trace<'a>>,
}

impl<'a> Judged<'a> {
    fn of(
        run: &RunDir,
        traces: &'a Traces<'_>,
        variant: &'a Variant,
        figures: &Finished,
    ) -> Judged<'a> {
        let row = run
            .rows
            .iter()
            .find(|row| row.variant == variant.name && row.lap == figures.shown_lap)
            .expect("a finished variant has the row that is shown");
        let trace = traces.get(&(variant.name.as_str(), figures.shown_lap));
        let bounds = Bounds::read(&run.manifest, row, &variant.settings, trace);
        let account = match row.limits.is_empty() {
            true => outside::account(&run.manifest, &bounds, trace, row),
            false => None,
        };
        let files = trace.filter(|trace| !trace.following.is_empty()).and_then(Trace::files);
        let figures = match files {
            Some(files) => of_files(figures, files, &bounds),
            None => figures.clone(),
        };
        Judged { variant, figures, bounds, account, trace }
    }

    fn advice(&self, all: &[Judged<'_>], summary: &Summary<'_>) -> Advice {
        let (settings, figures) = (&self.variant.settings, &self.figures);
        let (bounds, account) = (&self.bounds, self.account.clone());
        let held = Held { settings, figures, bounds, account };
        let (lift, gain) = held.lifted();
        let setting = lift.as_ref().and_then(|lift| lift.setting.as_deref());
        let others = all.iter().filter(|other| other.variant.name != self.variant.name);
        let mut tried: Vec<&Judged<'_>> = others.collect();
        tried.retain(|other| match setting {
            Some(name) => self.differs_in(name, other),
            // If all that a limit took came back, how far that goes is a guess, and any measurement says more.
            None => held.share() > GIVEN_BACK,
        });
        Advice {
            variant: self.variant.name.clone(),
            limit: figures.verdict.limit,
            share: figures.verdict.share,
            sentence: figures.verdict.text.clone(),
            evidence: held.evidence(self.trace, summary),
            measured: match setting {
                Some(name) => tried.iter().map(|other| self.beside(other, name)).collect(),
                None => Vec::new(),
            },
            gain: gain.map(|gain| self.at_least(gain, &tried, setting)),
            ruled_out: held.ruled_out(),
            lift,
        }
    }

    /// Whether another variant differs from this one in a setting alone.
    fn differs_in(&self, setting: &str, other: &Judged<'_>) -> bool {
        let rest = |settings: &BTreeMap<String, String>| {
            let mut rest = settings.clone();
            rest.remove(setting);
            rest
        };
        let (own, theirs) = (&self.variant.settings, &other.variant.settings);
        rest(own) == rest(theirs) && own.get(setting) != theirs.get(setting)
    }

    fn value(&self, setting: &str) -> &str {
        self.variant.settings.get(setting).map_or("its default", String::as_str)
    }

    /// What a variant that differs in a setting brought.
    fn beside(&self, other: &Judged<'_>, setting: &str) -> String {
        let (own_s, other_s) = (self.figures.seconds, other.figures.seconds);
        format!(
            "{}, with {}, took {} in place of {}: {} the rate",
            other.variant.name,
            other.value(setting),
            units::show_seconds(other_s),
            units::show_seconds(own_s),
            words::times(own_s / other_s)
        )
    }

    /// A promise is no less than what another variant of the run reached.
    fn at_least(&self, gain: Gain, tried: &[&Judged<'_>], setting: Option<&str>) -> Gain {
        let rate = |one: &Judged<'_>| one.figures.bytes_per_s;
        let Some(most) = tried.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))) else {
            return gain;
        };
        let factor = rate(most) / rate(self);
        if factor.is_nan() || factor <= gain.factor {
            return gain;
        }
        let with = setting.map_or_else(String::new, |name| format!(", with {}", most.value(name)));
        let formula = format!(
            "{} measured that{with}; reckoned were {}: {}",
            most.variant.name,
            words::times(gain.factor),
            gain.formula
        );
        Gain { factor, formula }
    }
}

/// The figures of a follower while its files were copied: what it did in the rest of the time is no recovery.
fn of_files(figures: &Finished, files: Files, bounds: &Bounds) -> Finished {
    let share = |carried: f64| Some(carried / bounds.link_bytes_per_s?);
    Finished {
        seconds: files.seconds,
        bytes: files.bytes,
        bytes_per_s: files.bytes_per_s(),
        link_share: files.carried_bytes_per_s.and_then(share),
        ..figures.clone()
    }
}

/// A variant and what held it.
struct Held<'a> {
    settings: &'a BTreeMap<String, String>,
    figures: &'a Finished,
    bounds: &'a Bounds,
    /// The account of the time as it is seen from outside, where the target has none of its own.
    account: Option<Elapsed>,
}

impl Held<'_> {
    /// What lifts the limit, and what that brings.
    fn lifted(&self) -> (Option<Lift>, Option<Gain>) {
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
        let share = self.share();
        let back = share.min(GIVEN_BACK);
        let took = format!("the {} of the time that it took", percent(share));
        (share > 0.0).then(|| Gain {
            factor: 1.0 / (1.0 - back),
            formula: match back < share {
                true => format!("as if {} of {took} came back", percent(back / share)),
                false => format!("without {took}"),
            },
        })
    }

    /// The share of the time that the limit took while files moved: settings of a transfer shorten nothing else. An
    /// engine that accounts for its time does not tell which part of it was spent on files.
    fn share_of_files(&self) -> f64 {
        let Some((account, limit)) = self.account.as_ref().zip(self.figures.verdict.limit) else {
            return self.share();
        };
        let while_files = account.while_files.get(&limit).copied().unwrap_or(0.0);
        while_files / account.total_s
    }

    fn is_around_files(&self) -> bool {
        self.account.is_some() && self.share_of_files() < self.share() / 2.0
    }

    /// The share of the time; all that counts where it is inferred.
    fn share(&self) -> f64 {
        match self.figures.verdict.share {
            share if share > 0.0 => share,
            _ => GIVEN_BACK,
        }
    }

    /// Larger chunks bring nothing once all files are in flight.
    fn all_is_in_flight(&self, chunk: u64, chunks: u32) -> bool {
        let shards = u64::from(self.bounds.shards.unwrap_or(1));
        chunk.saturating_mul(u64::from(chunks)).saturating_mul(shards) >= self.figures.bytes
    }

    fn knobs(&self) -> Knobs {
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
        let text = show_rounded_up(to);
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
        let now = self.settings.get(SLOTS).map_or(SLOTS_DEFAULT, String::as_str);
        let count: u64 = now.parse().unwrap_or(RAISE_SLOTS);
        let to = count.saturating_mul(RAISE_SLOTS).max(1);
        let action = "recover more copies of a node side by side";
        let lift = self.setting(SLOTS, SLOTS_DEFAULT, to.to_string(), action);
        (lift, RAISE_SLOTS as f64, format!("{to} slots / {count}"))
    }

    fn evidence(&self, trace: Option<&Trace<'_>>, summary: &Summary<'_>) -> Vec<Evidence> {
        let figures = self.figures;
        let (api, field) = match trace.filter(|trace| !trace.following.is_empty()) {
            None => ("row", "bytes / seconds"),
            Some(trace) if trace.files().is_some() => ("samples", "files / seconds"),
            Some(_) => ("row", "bytes / seconds, following included"),
        };
        let mut evidence = vec![Evidence::new(
            api,
            field,
            format!(
                "{} in {}: {}",
                units::show_bytes(figures.bytes),
                units::show_seconds(figures.seconds),
                words::rate(figures.bytes_per_s)
            ),
        )];
        let charged = figures.limits.iter().filter(|share| share.share >= EVIDENCE);
        let charged: Vec<String> = charged
            .map(|share| format!("{} {}", share.limit.label(), percent(share.share)))
            .collect();
        if !charged.is_empty() {
            let field = if summary.manifest.target == "opensearch" {
                "seen from outside"
            } else {
                "charged"
            };
            evidence.push(Evidence::new("time", field, charged.join(", ")));
        }
        evidence.extend(self.link_evidence());
        if let Some(ms) = trace.and_then(Trace::throttled_ms) {
            let summed = words::summed_pauses(ms as u64, figures.seconds * 1e3, None);
            let value = format!("the most throttled node: {summed}");
            evidence.push(Evidence::new("samples", "throttle_ms", value));
        }
        if let Some((node, cores)) = &self.bounds.busiest {
            let value = format!("{node}, the busiest node: {} on average", words::cores(*cores));
            evidence.push(Evidence::new("samples", "cpu_cores", value));
        }
        let knobs = self.knobs();
        let chunks = knobs.chunks.map(|(name, ..)| name);
        let rules = [knobs.rate.map(|(name, _)| name), chunks, knobs.chunk.0];
        for name in rules.into_iter().flatten().chain([SCHEDULER, SLOTS, REPOSITORY]) {
            if let Some(value) = self.settings.get(name) {
                evidence.push(Evidence::new("plan", name, value));
            }
        }
        evidence
    }

    /// The other limits: by the time that each took or, where nothing tells that, by what it lets through.
    fn ruled_out(&self) -> Vec<OtherLimit> {
        let held = self.figures.verdict.limit;
        let others = Limit::ALL.into_iter().filter(|limit| Some(*limit) != held);
        let against = |limit| {
            let (by, why) = self.against(limit);
            OtherLimit { limit, by, why }
        };
        others.map(against).collect()
    }

    fn against(&self, limit: Limit) -> (By, String) {
        let figures = self.figures;
        let own = figures.limits.iter().find(|one| one.limit == limit).map(|one| one.share);
        let is_told = match &self.account {
            Some(account) => account.tells(limit),
            // What precedes and follows the files is charged to what it waits for.
            None => !figures.limits.is_empty() && limit != Limit::Coordination,
        };
        if let Some(share) = own.or(is_told.then_some(0.0)) {
            let by = if share < EVIDENCE { By::Figure } else { By::Weaker };
            return (by, format!("took {} of the time", percent(share)));
        }
        let Some(ceiling) = self.bounds.ceiling(limit) else {
            return (By::Untold, "this target does not tell the time that it took".to_owned());
        };
        let used = match self.bounds.link_used(figures.link_share) {
            Some(used) if limit == Limit::LinkRate => used,
            _ => figures.bytes_per_s / ceiling.rate_bytes_per_s,
        };
        if limit == Limit::LinkRate && used > TOLERANCE {
            let why = format!("{}, and bytes are told before compression", ceiling.text);
            return (By::Untold, why);
        }
        let by = if used < NEAR_CEILING { By::Figure } else { By::Weaker };
        (by, format!("{}, of which {} was used", ceiling.text, percent(used)))
    }

    fn link_evidence(&self) -> Option<Evidence> {
        let rate = self.bounds.link_bytes_per_s?;
        let rtt =
            self.bounds.rtt_ms.map_or_else(String::new, |rtt| format!(" over {}", words::rtt(rtt)));
        let used = self.bounds.link_used(self.figures.link_share);
        let used = used.map_or_else(String::new, |share| match share {
            share if share > TOLERANCE => ", with bytes told before compression".to_owned(),
            share => format!(", of which {} was used", percent(share)),
        });
        Some(Evidence::new("link", "rate", format!("{}{rtt}{used}", words::rate(rate))))
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
mod tests {
    use record::LimitShare;

    use super::*;
    use crate::bounds::ocean;
    use crate::verdict::Verdict;

    const RATE: &str = "indices.recovery.max_bytes_per_sec";
    const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";

    fn figures(limit: Option<Limit>, share: f64, bytes_per_s: f64) -> Finished {
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
        Held { settings: &settings.collect(), figures, bounds, account: None }.lifted()
    }

    fn slow_ocean() -> Bounds {
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
            Held { settings: &settings, figures: &figures, bounds: &bounds, account }.lifted()
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
    fn every_other_limit_has_a_reason_why_it_did_not_hold() {
        let (settings, bounds) = (BTreeMap::new(), slow_ocean());
        let against = |figures: &Finished, account: Option<Elapsed>, limit: Limit| {
            let held = Held { settings: &settings, figures, bounds: &bounds, account };
            let others = held.ruled_out();
            assert_eq!(others.len(), Limit::ALL.len() - 1);
            let one = others.into_iter().find(|one| one.limit == limit).unwrap();
            (one.by, one.why)
        };
        let mut figures = figures(Some(Limit::Latency), 0.7, 4e6);
        let others = [(Limit::Throttle, 0.29), (Limit::Cpu, 0.01)];
        figures.limits.extend(others.map(|(limit, share)| LimitShare { limit, share }));
        let told = |limit| against(&figures, None, limit);
        assert_eq!(told(Limit::Throttle), (By::Weaker, "took 29 % of the time".to_owned()));
        assert_eq!(told(Limit::Cpu), (By::Figure, "took 1.0 % of the time".to_owned()));
        assert_eq!(told(Limit::Memory), (By::Figure, "took 0 % of the time".to_owned()));
        assert_eq!(told(Limit::Coordination).0, By::Untold);
        // Seen from outside: disks are not.
        let seen = |limit| against(&figures, Some(Elapsed::default()), limit);
        assert_eq!((seen(Limit::Slots).0, seen(Limit::DiskRead).0), (By::Figure, By::Untold));
        // Nothing is charged: what settings and link let through tells.
        figures.limits.clear();
        let (by, why) = against(&figures, None, Limit::LinkRate);
        assert_eq!(
            (by, why.as_str()),
            (By::Figure, "the link at 125 MB/s, of which 3.2 % was used")
        );
        assert_eq!(against(&figures, None, Limit::Throttle).0, By::Weaker);
        figures.link_share = Some(1.44);
        let (by, why) = against(&figures, None, Limit::LinkRate);
        let says = "the link at 125 MB/s, and bytes are told before compression";
        assert_eq!((by, why.as_str()), (By::Untold, says));
        assert_eq!(against(&figures, None, Limit::Cpu).0, By::Untold);
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
