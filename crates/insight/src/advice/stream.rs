//! What lifts the limit that held a stream of documents, what that brings, what its verdict rests on, and what speaks
//! against all other limits.

use std::collections::BTreeMap;

use record::{Limit, StreamFigures, ThreadUse, units};

use super::evidence::{EVIDENCE, OtherLimit};
use crate::diagnosis::{By, Class, Evidence, Gain, Lift};
use crate::threads::{
    BUSY, STOPPED, ThreadShares, how_often, is_consumer, is_proxy, thread_shares,
};
use crate::variant::Finished;
use crate::words::{self, percent};

const PATH: &str = "dcp.path";
const CONSUMER: &str = "dcp.consumer";
const CONSUMER_THREADS: &str = "dcp.consumer_threads";

const MORE_MOVES: &str =
    "move more vbuckets at once (rebalanceMovesPerNode): others stream while one move is prepared";
const MORE_CONNECTIONS: &str =
    "spread the vbuckets over more connections or nodes: each connection has one such thread";

/// A variant that streamed documents.
pub(super) struct Streamed<'a> {
    pub(super) settings: &'a BTreeMap<String, String>,
    pub(super) figures: &'a Finished,
    pub(super) stream: &'a StreamFigures,
}

impl Streamed<'_> {
    /// What lifts the limit, and what that brings: the next thread carries no more, whichever one is lifted.
    pub(super) fn lifted(&self) -> (Option<Lift>, Option<Gain>) {
        let verdict = &self.figures.verdict;
        match verdict.limit {
            None => (None, None),
            Some(Limit::Memory) => {
                let lift = Lift::action(Class::DcpMemory.rule().lift);
                (Some(lift), Some(Gain::of_lost_time(verdict.share)))
            }
            Some(Limit::Coordination) => {
                (Some(Lift::action(MORE_MOVES)), Some(Gain::of_lost_time(verdict.share)))
            }
            Some(_) => (self.busiest(|_| true).map(|thread| self.relieved(thread)), self.to_next()),
        }
    }

    /// What the verdict rests on, besides the rate.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let stream = self.stream;
        let mut evidence: Vec<Evidence> =
            stream.threads.iter().map(|thread| self.spent(thread)).collect();
        if let Some(memory) = stream.memory {
            let (used, quota) = (memory.used_bytes_max, memory.quota_bytes);
            let used =
                format!("at most {} of {} used", units::show_bytes(used), units::show_bytes(quota));
            let value = match memory.stops {
                0 => format!("the consumer never stopped, {used}"),
                _ => format!("the consumer stopped {}, {used}", how_often(&memory)),
            };
            evidence.push(Evidence::new("row", "stream.memory", value));
        }
        if stream.overhead_s > 0.0 {
            let value = format!("{} of preparing moves", units::show_seconds(stream.overhead_s));
            evidence.push(Evidence::new("row", "stream.overhead_s", value));
        }
        let plan = self.settings.iter().filter(|(name, _)| name.starts_with("dcp."));
        evidence.extend(plan.map(|(name, value)| Evidence::new("plan", name.clone(), value)));
        evidence
    }

    /// The other limits: those of a stream by its threads and its memory; of the `others` those of a link stay.
    pub(super) fn ruled_out(&self, others: Vec<OtherLimit>) -> Vec<OtherLimit> {
        let of = |other: OtherLimit| match self.against(other.limit) {
            Some((by, why)) => OtherLimit { by, why, ..other },
            None => other,
        };
        others.into_iter().map(of).collect()
    }

    fn against(&self, limit: Limit) -> Option<(By, String)> {
        let stream = self.stream;
        let below = |what: &str, share: f64, least: f64| {
            let by = if share < least { By::Figure } else { By::Weaker };
            (
                by,
                format!(
                    "{what} for {} of the time ({} would tell)",
                    percent(share),
                    percent(least)
                ),
            )
        };
        let of_thread = |thread: Option<&ThreadUse>| match thread {
            Some(thread) => below(
                &format!("the thread of the {} is busy", thread.name),
                self.busy(thread),
                BUSY,
            ),
            None => (By::Figure, "the path has no such thread".to_owned()),
        };
        let waited = |what: &str, share: Option<f64>| {
            let share = share?;
            let by = if share < EVIDENCE { By::Figure } else { By::Weaker };
            Some((by, format!("{what} for {} of the time", percent(share))))
        };
        match limit {
            Limit::Cpu => Some(of_thread(self.busiest(|thread| !is_proxy(thread)))),
            Limit::Proxy => Some(of_thread(self.busiest(is_proxy))),
            Limit::Memory => Some(match stream.memory {
                Some(memory) => {
                    let share = memory.stopped_s / self.figures.seconds;
                    below("the consumer was stopped", share, STOPPED)
                }
                None => (By::Figure, "nothing is kept, so that no memory fills".to_owned()),
            }),
            Limit::Coordination => {
                let share = stream.overhead_s / self.figures.seconds;
                waited("moves were prepared", Some(share))
            }
            Limit::Latency => {
                let most = self.most_waited(|_| true, |shares| shares.flow_control);
                waited("a thread had nothing to do while a window was full", most)
            }
            Limit::DiskRead => {
                let most = self.most_waited(|thread| thread.name == "producer", |all| all.disk);
                waited("the producer had nothing to do while its disk was at work", most)
            }
            Limit::DiskWrite => {
                let most = self.most_waited(is_consumer, |all| all.disk);
                waited("a consumer had nothing to do while its disk was at work", most)
            }
            Limit::Throttle | Limit::Slots => {
                Some((By::Figure, "a stream passes no limiter and takes no slot".to_owned()))
            }
            Limit::LinkRate | Limit::Loss => None,
        }
    }

    fn busy(&self, thread: &ThreadUse) -> f64 {
        thread.busy_s / self.figures.seconds
    }

    fn busiest(&self, is_meant: impl Fn(&ThreadUse) -> bool) -> Option<&ThreadUse> {
        let threads = self.stream.threads.iter().filter(|thread| is_meant(thread));
        threads.max_by(|a, b| a.busy_s.total_cmp(&b.busy_s))
    }

    /// The largest share of the time for which one of these threads waited; none where that is not told.
    fn most_waited(
        &self,
        is_meant: impl Fn(&ThreadUse) -> bool,
        share: impl Fn(&ThreadShares) -> f64,
    ) -> Option<f64> {
        let threads = self.stream.threads.iter().filter(|thread| is_meant(thread));
        let shares = threads.filter_map(|thread| thread_shares(thread, self.figures.seconds));
        shares.map(|all| share(&all)).reduce(f64::max)
    }

    fn spent(&self, thread: &ThreadUse) -> Evidence {
        let busy = format!("busy {} of the time", percent(self.busy(thread)));
        let value = match thread_shares(thread, self.figures.seconds) {
            Some(all) => format!(
                "{busy}; it waited for acknowledgements {}, and for its disk {}",
                percent(all.flow_control),
                percent(all.disk)
            ),
            None => busy,
        };
        Evidence::new("row", format!("stream.threads, {}", thread.name), value)
    }

    /// A setting of the plan, or what there is to do, where this thread holds.
    fn relieved(&self, thread: &ThreadUse) -> Lift {
        let value = |name, default| self.settings.get(name).map_or(default, String::as_str);
        let lift = |name: &str, now: &str, to: String, action: &str| {
            let (setting, action) = (Some(name.to_owned()), action.to_owned());
            let now = Some(now.to_owned());
            Lift { setting, now, set_by: None, default: None, to: Some(to), action }
        };
        if self.stream.measuring_device && !is_proxy(thread) && thread.name != "producer" {
            return Lift::action("nothing: it counts what comes, and one that keeps it does more");
        }
        if is_consumer(thread) {
            let (consumer, threads) = (value(CONSUMER, "mainstream"), value(CONSUMER_THREADS, "1"));
            if consumer == "mainstream" {
                return lift(
                    CONSUMER,
                    consumer,
                    "batching".to_owned(),
                    "write in batches what comes",
                );
            }
            let more = threads.parse().unwrap_or(1_u16).saturating_mul(2).to_string();
            return lift(CONSUMER_THREADS, threads, more, "spread vbuckets over more threads");
        }
        let path = value(PATH, "data-copy");
        if is_proxy(thread) && path == "rebalance" {
            let action = "let a proxy that decodes nothing pass on what comes";
            return lift(PATH, path, "data-copy".to_owned(), action);
        }
        Lift::action(MORE_CONNECTIONS)
    }

    /// None where nothing else was measured, or the next one is as full.
    fn to_next(&self) -> Option<Gain> {
        let Finished { bytes_per_s, verdict, .. } = self.figures;
        let next = verdict.next.as_ref()?;
        let factor = next.rate_bytes_per_s / bytes_per_s;
        let formula = format!("up to {}, over {}", next.text, words::rate(*bytes_per_s));
        (factor > 1.0 && factor.is_finite()).then_some(Gain { factor, formula })
    }
}
