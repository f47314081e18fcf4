//! What holds one recovery.

use record::units::show_size_setting;

use super::Class;
use super::finding::{Evidence, Finding, Gain, Lift};
use super::knobs::{Knobs, today};
use super::rules::{
    CPU_BUSY, DISK_BUSY, DISK_OWN, FAST_BYTES_PER_S, GC, IDLE, LEVEL, LIMIT_PAUSED,
    LIMIT_PAUSED_ALONE, LIMIT_USED, LITTLE_IMPLIED_MS, LITTLE_USED, MERGES, QUOTA, SHORT_S, STAGE,
    VERDICT,
};
use super::series::{NodeSpan, Series, Transfer};
use crate::words;

const STATS: &str = "_nodes/stats";
const RECOVERY: &str = "_recovery";
const SETTINGS: &str = "_cluster/settings";

/// What is made of one recovery.
#[derive(Clone, Debug)]
pub(crate) enum Judged {
    /// Nothing that a setting would lift; why, in a sentence.
    Healthy(String),
    /// What holds it.
    Held(Finding),
}

/// All that is known of one recovery.
struct Case<'s, 'a> {
    series: &'s Series<'a>,
    transfer: &'s Transfer<'a>,
    knobs: Knobs,
    rate_bytes_per_s: f64,
    /// Rate of all recoveries under the same limiter, of the busier end, and that end's name.
    node_bytes_per_s: f64,
    node: String,
    limit_bytes_per_s: Option<f64>,
    in_flight_bytes: Option<f64>,
    rtt_ms: Option<f64>,
    ends: Vec<(&'static str, NodeSpan<'a>)>,
}

/// Judges one recovery among all.
pub(crate) fn judge(series: &Series<'_>, transfer: &Transfer<'_>, all: &[Transfer<'_>]) -> Judged {
    if let Some(why) = is_short(transfer) {
        return Judged::Healthy(why);
    }
    if transfer.share_in("TRANSLOG") >= STAGE.value {
        return replay(series, transfer);
    }
    let Some(case) = Case::of(series, transfer, all) else {
        return Judged::Held(unknown(transfer, "its bytes are not told", Vec::new()));
    };
    let mut candidates: Vec<Finding> = [case.rate_limit(), case.latency(), case.bandwidth()]
        .into_iter()
        .flatten()
        .chain(case.ends.iter().flat_map(|(side, span)| case.node_causes(side, span)))
        .collect();
    // Stable, so that of equals the first of the table counts.
    candidates.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let second = candidates.get(1).cloned();
    match candidates.into_iter().next().filter(|first| first.strength >= VERDICT.value) {
        Some(mut first) => {
            if first.next.is_none() {
                first.next = second
                    .filter(|other| other.strength >= VERDICT.value && other.class != first.class)
                    .map(|other| format!("{} ({})", other.class.label(), other.sentence));
            }
            first.evidence.extend(case.own_accounting());
            Judged::Held(first)
        }
        None if case.node_bytes_per_s >= FAST_BYTES_PER_S.value => Judged::Healthy(format!(
            "{} goes at {} and nothing visible holds it",
            transfer.name(),
            words::rate(case.rate_bytes_per_s)
        )),
        None => Judged::Held(case.nothing_near()),
    }
}

/// A sentence, if the whole recovery is too short to be worth judging.
fn is_short(transfer: &Transfer<'_>) -> Option<String> {
    let last = transfer.last();
    let taken_s = last.total_ms? as f64 / 1e3;
    if last.ended {
        return (taken_s < SHORT_S.value).then(|| {
            format!("{} took {} in all", transfer.name(), record::units::show_seconds(taken_s))
        });
    }
    let left =
        last.total_bytes?.checked_sub(last.recovered_bytes? + last.reused_bytes.unwrap_or(0))?;
    let rate = transfer.bytes_per_s().filter(|rate| *rate > 0.0)?;
    let whole_s = taken_s + left as f64 / rate;
    (last.stage == "INDEX" && left > 0 && whole_s < SHORT_S.value).then(|| {
        format!(
            "{} will have taken {} in all",
            transfer.name(),
            record::units::show_seconds(whole_s)
        )
    })
}

fn replay(series: &Series<'_>, transfer: &Transfer<'_>) -> Judged {
    let last = transfer.last();
    let share = transfer.share_in("TRANSLOG");
    let name = "indices.recovery.max_concurrent_operations";
    let setting = today(series, name, "1");
    let now: f64 = setting.value.parse().unwrap_or(1.0);
    let to = (now * 2.0).clamp(2.0, 4.0);
    let ops = transfer
        .ops_per_s()
        .map_or_else(String::new, |rate| format!(" at {} a second", words::three_digits(rate)));
    let left = last.total_ops.zip(last.recovered_ops).map_or_else(String::new, |(total, done)| {
        format!(", {} of {total} replayed", done.min(total))
    });
    let mut evidence = vec![Evidence::new(
        RECOVERY,
        "stage, translog.recovered, translog.total",
        format!("TRANSLOG in {} of the looks{left}", words::percent(share)),
    )];
    let target = last.target.as_deref().and_then(|name| series.node(name));
    if let Some(span) = &target
        && let Some(merging) = merges(span)
    {
        evidence.push(merging.1);
        if merging.0 >= MERGES.value {
            let mut finding = node_finding(
                Class::MergeThrottle,
                &transfer.name(),
                span,
                0.5 + merging.0.min(1.0) / 2.0,
            );
            finding.sentence = format!(
                "{} replays operations while merges on {} hold indexing back",
                transfer.name(),
                span.last().name
            );
            finding.evidence = evidence;
            return Judged::Held(finding);
        }
    }
    let may_rise = now < 4.0;
    Judged::Held(Finding {
        class: Class::OperationReplay,
        subjects: vec![transfer.name()],
        place: last.target.clone().unwrap_or_default(),
        strength: share,
        sentence: format!(
            "{} replays operations{ops}, {} batch{} at a time; the files are there",
            transfer.name(),
            setting.value,
            if now > 1.0 { "es" } else { "" }
        ),
        evidence,
        lift: Some(Lift {
            setting: Some(name.to_owned()),
            now: Some(setting.value),
            set_by: Some(setting.scope),
            to: may_rise.then(|| format!("{to:.0}")),
            action: if may_rise {
                "replay more batches at once; fewer operations are retained where index.translog.retention and \
                 leases are short"
                    .to_owned()
            } else {
                "it is at its maximum: let indexing pause, or let the copy start from files"
                    .to_owned()
            },
        }),
        gain: may_rise.then(|| Gain {
            factor: to / now,
            formula: format!(
                "{to:.0} batches at once / {now:.0}, until the target's cores are busy"
            ),
        }),
        next: Some("the target's cores or disk".to_owned()),
        doubt: None,
    })
}

impl<'s, 'a> Case<'s, 'a> {
    fn of(
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
                same.filter_map(Transfer::bytes_per_s).sum()
            };
        let from = shared(last.source.as_deref(), |r| r.source.as_deref());
        let onto = shared(last.target.as_deref(), |r| r.target.as_deref());
        let (node, node_bytes_per_s) = match (&last.source, &last.target) {
            (Some(source), _) if from > onto * 1.05 => (source.clone(), from),
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
    fn paused(&self) -> Option<f64> {
        Some(self.transfer.paused_ms()? as f64 / self.transfer.wall_ms())
    }

    /// The rate that chunks in flight allow over the round trip (Little's law); none where the round trip is not
    /// known or too short to tell.
    fn little_bytes_per_s(&self) -> Option<f64> {
        let rtt_ms = self.rtt_ms.filter(|rtt| *rtt >= 1.0)?;
        Some(self.in_flight_bytes? / (rtt_ms / 1e3))
    }

    /// Highest use of a resource over both ends; none where neither tells.
    fn busiest(&self, of: impl Fn(&NodeSpan<'_>) -> Option<f64>) -> Option<f64> {
        self.ends.iter().filter_map(|(_, span)| of(span)).reduce(f64::max)
    }

    fn is_idle(&self) -> bool {
        let cpu = self.busiest(|span| cpu(span).map(|(share, _)| share)).unwrap_or(0.0);
        let disk = self.busiest(|span| span.share(|node| node.io_time_ms)).unwrap_or(0.0);
        cpu < IDLE.value && disk < IDLE.value
    }

    fn in_flight(&self) -> Option<String> {
        let chunk = self.knobs.chunk_bytes(self.series)? as u64;
        let count = self.knobs.chunk_count(self.series)?;
        Some(format!("{count:.0} chunks of {}", show_size_setting(chunk)))
    }

    fn paused_evidence(&self) -> Option<Evidence> {
        let wall = record::units::show_seconds(self.transfer.wall_ms() / 1e3);
        Some(Evidence::new(
            RECOVERY,
            "index.source_throttle_time_in_millis + target_throttle_time_in_millis",
            format!("rose by {} ms in {wall}", self.transfer.paused_ms()?),
        ))
    }

    fn rate_evidence(&self) -> Evidence {
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

    fn setting_evidence(&self, name: &str, default: &str) -> Evidence {
        let setting = today(self.series, name, default);
        Evidence::new(SETTINGS, name, format!("{} ({})", setting.value, scope(setting.scope)))
    }

    fn rate_limit(&self) -> Option<Finding> {
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
        let setting = today(self.series, name, default);
        let ceiling = self
            .little_bytes_per_s()
            .map(|one| one * self.node_bytes_per_s / self.rate_bytes_per_s);
        let to = ceiling
            .filter(|ceiling| *ceiling > limit * 1.05)
            .unwrap_or(limit * 2.0)
            .min(limit * 8.0);
        let factor = (to / self.node_bytes_per_s).max(1.0);
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
            sentence: format!(
                "the limiter of {} holds: {} of the {} that {name} = {} lets through",
                self.node,
                words::rate(self.node_bytes_per_s),
                words::rate(limit),
                setting.value
            ),
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
                    Some(_) => format!("{to_text} / {}", words::rate(self.node_bytes_per_s)),
                    None => format!(
                        "{to_text} / {}, if nothing else binds first",
                        words::rate(self.node_bytes_per_s)
                    ),
                },
            }),
            next: Some(next),
            doubt: None,
        })
    }

    fn latency(&self) -> Option<Finding> {
        if !self.is_idle() || self.rate_bytes_per_s <= 0.0 {
            return None;
        }
        let in_flight = self.in_flight_bytes?;
        let implied_ms = in_flight / self.rate_bytes_per_s * 1e3;
        let (strength, doubt) = match (self.little_bytes_per_s(), self.rtt_ms) {
            (Some(little), _) => {
                let used = self.rate_bytes_per_s / little;
                if used < LITTLE_USED.value {
                    return None;
                }
                (used.min(1.0) * 0.98, None)
            }
            // Near nodes: a round trip explains nothing.
            (None, Some(_)) => return None,
            (None, None) if implied_ms >= LITTLE_IMPLIED_MS.value => {
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
        if let Some(name) = self.knobs.chunk.0 {
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
                "latency between {between} holds: {} in flight, of which each takes {}, give {} (Little's law); \
                 no limiter binds, cores and disks are idle",
                self.in_flight().unwrap_or_default(),
                words::rtt(implied_ms.round()),
                words::rate(self.rate_bytes_per_s)
            ),
            evidence,
            lift: Some(lift),
            gain: Some(Gain { factor: capped, formula }),
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

    fn idle_evidence(&self) -> Vec<Evidence> {
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

    fn bandwidth(&self) -> Option<Finding> {
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

    fn node_causes(&self, side: &str, span: &NodeSpan<'_>) -> Vec<Finding> {
        let subject = self.transfer.name();
        let causes = [
            self.quota(side, span),
            collections(&subject, span),
            self.cores(side, span),
            self.disk(side, span),
            memory(&subject, span),
        ];
        causes.into_iter().flatten().collect()
    }

    fn quota(&self, side: &str, span: &NodeSpan<'_>) -> Option<Finding> {
        let share = span.rise(|node| node.cgroup_throttled_ns)? as f64 / 1e6 / span.wall_ms();
        if share < QUOTA.value {
            return None;
        }
        let mut finding = node_finding(
            Class::CpuQuota,
            &self.transfer.name(),
            span,
            0.55 + share.min(1.0) * 0.45,
        );
        finding.sentence = format!(
            "the control group of {} ({side}) kept it from running for {} of the time",
            span.last().name,
            words::percent(share)
        );
        let value = format!("{}: rose by {} of the time", span.last().name, words::percent(share));
        finding.evidence = vec![
            self.rate_evidence(),
            Evidence::new(STATS, "os.cgroup.cpu.stat.time_throttled_nanos", value),
        ];
        finding.gain = Some(Gain {
            factor: 1.0 / (1.0 - share.min(0.9)),
            formula: format!("1 / (1 - {})", words::percent(share)),
        });
        Some(finding)
    }

    fn cores(&self, side: &str, span: &NodeSpan<'_>) -> Option<Finding> {
        let name = &span.last().name;
        let (share, field) = cpu(span)?;
        let threads = self.hot(name, &["tls", "compression"]);
        if share >= CPU_BUSY.value {
            let mut finding =
                node_finding(Class::Cpu, &self.transfer.name(), span, share.min(1.0) * 0.95);
            finding.sentence =
                format!("the cores of {name} ({side}) are busy: {}", words::percent(share));
            finding.evidence = vec![
                self.rate_evidence(),
                Evidence::new(STATS, field, format!("{name}: {}", words::percent(share))),
            ];
            return Some(finding);
        }
        // One core's worth of work in a process that has more, where stacks or the engine's single loop say why.
        let one = span.share(|node| node.process_cpu_ms)?;
        let single_loop = self.series.flavour() == "narrows";
        if one < CPU_BUSY.value || !(single_loop || threads > 0) {
            return None;
        }
        let mut finding = node_finding(
            Class::ThreadCpu,
            &self.transfer.name(),
            span,
            if threads > 0 { 0.75 } else { 0.55 },
        );
        finding.sentence = format!(
            "{name} ({side}) uses {} cores, and what it does stands in line on few threads",
            words::three_digits(one)
        );
        finding.evidence = vec![
            self.rate_evidence(),
            Evidence::new(
                STATS,
                "process.cpu.total_in_millis",
                format!("{name}: {} cores", words::three_digits(one)),
            ),
        ];
        if threads > 0 {
            let value = format!("{name}: {threads} threads in TLS or compression");
            finding.evidence.push(Evidence::new("_nodes/hot_threads", "stacks", value));
        }
        let (setting, default, most) = self.knobs.chunks;
        let today = today(self.series, setting, default);
        finding.lift = Some(Lift {
            setting: Some(setting.to_owned()),
            to: (today.value != most.to_string()).then(|| most.to_string()),
            now: Some(today.value),
            set_by: Some(today.scope),
            action: "spread the work over more threads; look at transport.compress".to_owned(),
        });
        Some(finding)
    }

    fn hot(&self, node: &str, kinds: &[&str]) -> u32 {
        let looks = self.series.looks().iter().flat_map(|(_, look)| &look.hot_threads);
        let of_node = looks.filter(|hot| hot.node == node);
        of_node
            .map(|hot| kinds.iter().filter_map(|kind| hot.threads.get(*kind)).sum::<u32>())
            .max()
            .unwrap_or(0)
    }

    fn disk(&self, side: &str, span: &NodeSpan<'_>) -> Option<Finding> {
        let busy = span.share(|node| node.io_time_ms)?;
        if busy < DISK_BUSY.value {
            return None;
        }
        let kib = if side == "source" {
            span.per_s(|node| node.read_kib)
        } else {
            span.per_s(|node| node.write_kib)
        };
        let device = sum(span.per_s(|node| node.read_kib), span.per_s(|node| node.write_kib))
            .map(|kib| kib * 1024.0);
        let own =
            device.map(
                |device| if device > 0.0 { (self.node_bytes_per_s / device).min(1.0) } else { 1.0 },
            );
        let name = &span.last().name;
        let is_own = own.is_none_or(|own| own >= DISK_OWN.value);
        let class = if is_own { Class::Disk } else { Class::NoisyNeighbour };
        let mut finding = node_finding(class, &self.transfer.name(), span, busy.min(1.0) * 0.9);
        let verb = if side == "source" { "reads" } else { "writes" };
        finding.sentence = if is_own {
            format!(
                "the disk of {name} ({side}) is busy {} of the time with what it {verb} for the recovery",
                words::percent(busy)
            )
        } else {
            format!(
                "the disk of {name} ({side}) is busy {} of the time, {} of it with something else",
                words::percent(busy),
                words::percent(1.0 - own.unwrap_or(0.0))
            )
        };
        finding.evidence = vec![
            self.rate_evidence(),
            Evidence::new(
                STATS,
                "fs.io_stats.total.io_time_in_millis",
                format!("{name}: {} of the time", words::percent(busy)),
            ),
        ];
        if let Some(kib) = kib {
            let field = if side == "source" {
                "fs.io_stats.total.read_kilobytes"
            } else {
                "fs.io_stats.total.write_kilobytes"
            };
            finding.evidence.push(Evidence::new(
                STATS,
                field,
                format!("{name}: {}", words::rate(kib * 1024.0)),
            ));
        }
        if !is_own {
            for (field, rate) in [
                ("indices.search.query_total", span.per_s(|node| node.searches)),
                ("indices.indexing.index_total", span.per_s(|node| node.indexed_ops)),
            ] {
                if let Some(rate) = rate {
                    let value = format!("{name}: {} a second", words::three_digits(rate));
                    finding.evidence.push(Evidence::new(STATS, field, value));
                }
            }
        }
        Some(finding)
    }

    /// What the embedded engine charged the time to: it knows, where REST alone has to infer.
    fn own_accounting(&self) -> Option<Evidence> {
        let (first, last) = (&self.transfer.first().charged_ns, &self.transfer.last().charged_ns);
        let rise = |limit| last.get(&limit)?.checked_sub(*first.get(&limit).unwrap_or(&0));
        let rises: Vec<(record::Limit, u64)> = record::Limit::ALL
            .into_iter()
            .filter_map(|limit| Some((limit, rise(limit)?)))
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

    fn nothing_near(&self) -> Finding {
        let mut evidence = vec![self.rate_evidence()];
        evidence.extend(self.paused_evidence());
        evidence.extend(self.idle_evidence());
        evidence.extend(self.own_accounting());
        unknown(self.transfer, "nothing that REST shows is near a limit", evidence)
    }
}

fn unknown(transfer: &Transfer<'_>, why: &str, evidence: Vec<Evidence>) -> Finding {
    let last = transfer.last();
    let rate = transfer
        .bytes_per_s()
        .map_or_else(String::new, |rate| format!(" at {}", words::rate(rate)));
    Finding {
        class: Class::Unknown,
        subjects: vec![transfer.name()],
        place: last.target.clone().unwrap_or_default(),
        strength: 0.0,
        sentence: format!(
            "{} is in {}{rate}, and what holds it is unknown: {why}",
            transfer.name(),
            last.stage
        ),
        evidence,
        lift: Some(Lift {
            setting: None,
            now: None,
            set_by: None,
            to: None,
            action: super::rule(Class::Unknown).lift.to_owned(),
        }),
        gain: None,
        next: None,
        doubt: None,
    }
}

/// A finding of a node, with the action of its class.
fn node_finding(class: Class, subject: &str, span: &NodeSpan<'_>, strength: f64) -> Finding {
    let rule = super::rule(class);
    Finding {
        class,
        subjects: vec![subject.to_owned()],
        place: span.last().name.clone(),
        strength,
        sentence: String::new(),
        evidence: Vec::new(),
        lift: Some(Lift {
            setting: None,
            now: None,
            set_by: None,
            to: None,
            action: rule.lift.to_owned(),
        }),
        gain: None,
        next: None,
        doubt: None,
    }
}

fn collections(subject: &str, span: &NodeSpan<'_>) -> Option<Finding> {
    let share = span.share(|node| node.gc_ms)?;
    if share < GC.value {
        return None;
    }
    let name = &span.last().name;
    let mut finding = node_finding(Class::Gc, subject, span, 0.5 + share.min(1.0) / 2.0);
    finding.sentence =
        format!("garbage collections take {} of the time on {name}", words::percent(share));
    let value = format!("{name}: {} of the time", words::percent(share));
    finding.evidence =
        vec![Evidence::new(STATS, "jvm.gc.collectors.*.collection_time_in_millis", value)];
    if let Some(heap) = span.mean(|node| node.heap_used_percent) {
        finding.evidence.push(Evidence::new(
            STATS,
            "jvm.mem.heap_used_percent",
            format!("{name}: {heap:.0} % on average"),
        ));
    }
    finding.gain = Some(Gain {
        factor: 1.0 / (1.0 - share.min(0.9)),
        formula: format!("1 / (1 - {})", words::percent(share)),
    });
    Some(finding)
}

/// Breakers that tripped and requests that were refused while we looked.
pub(crate) fn memory(subject: &str, span: &NodeSpan<'_>) -> Option<Finding> {
    let (first, last) = (span.first(), span.last());
    let rise = |(name, now): (&String, &u64)| {
        let rise = now.checked_sub(*first.breakers_tripped.get(name)?)?;
        (rise > 0).then(|| format!("{name} +{rise}"))
    };
    let tripped: Vec<String> = last.breakers_tripped.iter().filter_map(rise).collect();
    let rejected = span.rise(|node| node.pressure_rejections).filter(|count| *count > 0);
    if tripped.is_empty() && rejected.is_none() {
        return None;
    }
    let mut finding = node_finding(Class::Memory, subject, span, 0.65);
    finding.sentence = format!("a bound on memory refuses work on {}", last.name);
    if !tripped.is_empty() {
        let value = format!("{}: {}", last.name, tripped.join(", "));
        finding.evidence.push(Evidence::new(STATS, "breakers.*.tripped", value));
    }
    if let Some(count) = rejected {
        let value = format!("{}: +{count}", last.name);
        finding.evidence.push(Evidence::new(
            STATS,
            "indexing_pressure.memory.total.*_rejections",
            value,
        ));
    }
    Some(finding)
}

/// How much merges hold indexing back, 0 to 1, and what says so.
fn merges(span: &NodeSpan<'_>) -> Option<(f64, Evidence)> {
    let share = span.share(|node| node.merge_throttled_ms);
    let flagged = span.last().indexing_throttled == Some(true);
    let strength = share.unwrap_or(0.0).max(if flagged { 1.0 } else { 0.0 });
    let told = share.is_some() || span.last().indexing_throttled.is_some();
    let value = format!(
        "{}: {} of the time{}",
        span.last().name,
        words::percent(share.unwrap_or(0.0)),
        if flagged { ", indexing.is_throttled" } else { "" }
    );
    told.then(|| {
        (strength, Evidence::new(STATS, "indices.merges.total_throttled_time_in_millis", value))
    })
}

/// CPU of a node as a share of its cores, and the field that says so. A process is measured against the cores
/// that it may use, its machine as a whole where the process does not tell.
fn cpu(span: &NodeSpan<'_>) -> Option<(f64, &'static str)> {
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

fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
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

/// The remote cluster behind a repository.
fn alias_of(repository: &str) -> Option<&str> {
    repository.strip_prefix("_ccr_").or_else(|| repository.strip_prefix("replication-remote-repo-"))
}

pub(super) fn scope(scope: record::observation::Scope) -> &'static str {
    match scope {
        record::observation::Scope::Default => "default",
        record::observation::Scope::Persistent => "persistent",
        record::observation::Scope::Transient => "transient",
    }
}
