//! A DCP connection that a producer sends on, for the judges of its causes.

use record::bucket::{BucketNode, DcpConnection};
use record::observation::Observation;
use record::units::{show_bytes, show_interval, show_seconds};

use super::finding::{Evidence, Finding, STATS_DCP};
use super::pace::{interval, since_change};
use super::rivals::Against;
use super::rule::Rule;
use super::series::{MS_PER_S, Series};
use super::threshold::{BEHIND_S, DISK_QUEUE, PAUSED_FOR, STAGE, STARVED, WINDOW_FULL};
use crate::stats::mean;
use crate::words;

/// What a producer waits for, as servers name it.
pub(crate) const WINDOW: &str = "BufferLogFull";
pub(crate) const DATA: &str = "ReadyListEmpty";
pub(crate) const MEMORY: &str = "OutOfMemory";

type Step<'a> = (&'a BucketNode, &'a DcpConnection);

/// One end of a connection, look by look, since it was last opened.
#[derive(Clone, Debug)]
pub(crate) struct End<'a> {
    steps: Vec<Step<'a>>,
}

impl<'a> End<'a> {
    fn of(series: &Series<'a>, node: &str, name: &str) -> Option<End<'a>> {
        let mut steps: Vec<Step<'a>> = Vec::new();
        for (_, look) in series.looks() {
            let bucket = look.buckets.iter().find(|one| one.node == node);
            let named = |one: &&DcpConnection| one.name == name;
            let Some(step) = bucket.and_then(|b| Some((b, b.connections.iter().find(named)?)))
            else {
                continue;
            };
            // One that was opened again counts from zero.
            let fell = |counter: fn(&DcpConnection) -> Option<u64>| {
                let before = steps.last().and_then(|(_, before)| counter(before));
                counter(step.1).zip(before).is_some_and(|(now, before)| now < before)
            };
            if fell(|one| one.items_sent) || fell(|one| one.acked_bytes) {
                steps.clear();
            }
            steps.push(step);
        }
        (steps.len() > 1).then_some(End { steps })
    }

    pub fn node(&self) -> &'a str {
        &self.last().0.node
    }

    pub fn last(&self) -> Step<'a> {
        self.steps[self.steps.len() - 1]
    }

    pub fn wall_ms(&self) -> f64 {
        self.last().0.answered_ms - self.steps[0].0.answered_ms
    }

    /// By how much a counter rose.
    pub fn rise(&self, counter: impl Fn(Step<'a>) -> Option<u64>) -> Option<u64> {
        counter(self.last())?.checked_sub(counter(self.steps[0])?)
    }

    /// A counter a second.
    pub fn per_s(&self, counter: impl Fn(Step<'a>) -> Option<u64>) -> Option<f64> {
        Some(self.rise(counter)? as f64 / (self.wall_ms() / MS_PER_S))
    }

    /// Share of the looks that find something.
    pub fn share_of_looks(&self, found: impl Fn(Step<'a>) -> bool) -> f64 {
        let count = self.steps.iter().filter(|step| found(**step)).count();
        count as f64 / self.steps.len() as f64
    }

    /// The most of its quota that the bucket used; none where that is not told.
    pub fn memory(&self) -> Option<f64> {
        let of = |(bucket, _): &Step<'a>| {
            let quota = bucket.quota_bytes.filter(|bytes| *bytes > 0)?;
            Some(bucket.mem_used_bytes? as f64 / quota as f64)
        };
        self.steps.iter().filter_map(of).reduce(f64::max)
    }

    /// Share of the time that it waited for something; none where that is not told.
    pub fn paused(&self, reason: &str) -> Option<f64> {
        let ms = |one: &DcpConnection| one.paused_ms.get(reason).copied().unwrap_or(0);
        let (first, last) = (self.steps[0].1, self.last().1);
        let risen = ms(last).saturating_sub(ms(first)) as f64;
        (!last.paused_ms.is_empty()).then(|| (risen / self.wall_ms()).min(1.0))
    }
}

/// A connection at its producer, and at its consumer where that node was looked at, too.
#[derive(Clone, Debug)]
pub(crate) struct Streaming<'a> {
    pub producer: End<'a>,
    pub consumer: Option<End<'a>>,
}

/// Nodes whose disk has much of the bucket to write, a sentence each. A rebalance waits for that where nothing is left
/// to send: a vbucket is taken over once its new node has it on disk.
pub(crate) fn long_disk_queues(series: &Series<'_>) -> Vec<String> {
    let items = |look: &Observation, node: &str| {
        look.buckets.iter().find(|one| one.node == node).and_then(|one| one.disk_queue_items)
    };
    let long = |one: &BucketNode| {
        let now = one.disk_queue_items.filter(|now| *now as f64 >= DISK_QUEUE.value)?;
        let then = series.looks().iter().find_map(|(_, look)| items(look, &one.node))?;
        Some(format!(
            "{} items wait for the disk of {} (ep_diskqueue_items; {} at first): a rebalance takes a vbucket over once \
             its new node has written it",
            words::count(now),
            one.node,
            words::count(then)
        ))
    };
    series.last().into_iter().flat_map(|look| &look.buckets).filter_map(long).collect()
}

/// Every connection that a producer sends on in the last look and in one before.
pub(crate) fn streamings<'a>(series: &Series<'a>) -> Vec<Streaming<'a>> {
    let Some(last) = series.last() else { return Vec::new() };
    let all = |kind: &'static str| {
        let of = move |bucket: &'a BucketNode| {
            let one = bucket.connections.iter().filter(move |one| one.kind == kind);
            one.map(move |one| (bucket.node.as_str(), one.name.as_str()))
        };
        last.buckets.iter().flat_map(of)
    };
    let consumers: Vec<_> = all("consumer").collect();
    let one = |(node, name): (&str, &str)| {
        let producer = End::of(series, node, name)?;
        let other = consumers.iter().find(|(at, of)| *of == name && *at != node);
        Some(Streaming { producer, consumer: other.and_then(|(at, _)| End::of(series, at, name)) })
    };
    all("producer").filter_map(one).collect()
}

impl<'a> Streaming<'a> {
    pub fn name(&self) -> &'a str {
        &self.producer.last().1.name
    }

    /// Bytes a second.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.producer.per_s(|(_, one)| one.bytes_sent)
    }

    /// Whether it is behind for so long that something has to hold it; else why it is well, in a sentence.
    pub fn behind(&self) -> Result<(), String> {
        let name = self.name();
        let rate = self.bytes_per_s().unwrap_or(0.0);
        let Some(remaining) = self.producer.last().1.items_remaining else {
            return Err(format!("{name} does not tell what it has still to send"));
        };
        let behind = |(_, one): Step<'_>| one.items_remaining.is_some_and(|items| items > 0);
        if remaining == 0 || self.producer.share_of_looks(behind) < STAGE.value {
            return Err(match rate > 0.0 {
                true => format!("{name} is up to date at {}", words::rate(rate)),
                false => format!("{name} is up to date, and nothing is written"),
            });
        }
        let behind_s = self.producer.per_s(|(_, one)| one.items_sent).filter(|items| *items > 0.0);
        match behind_s.map(|items| remaining as f64 / items) {
            Some(s) if s < BEHIND_S.value => {
                Err(format!("{name} goes at {}, {} behind", words::rate(rate), show_seconds(s)))
            }
            _ => Ok(()),
        }
    }

    /// A sentence on one that is behind, goes fast, and is held by nothing that can be seen.
    pub fn goes_on(&self, rate: f64) -> String {
        let (name, rate) = (self.name(), words::rate(rate));
        format!("{name} goes at {rate}, and nothing visible holds it; {}", self.left())
    }

    /// What is left, and how long that takes: an interval, by what became less from look to look.
    fn left(&self) -> String {
        let items =
            |(bucket, one): &Step<'a>| Some((bucket.answered_ms, one.items_remaining? as f64));
        let told: Vec<(f64, f64)> = self.producer.steps.iter().filter_map(items).collect();
        let fall = |(then, now): (&(f64, f64), &(f64, f64))| {
            (then.1 - now.1) / ((now.0 - then.0) / MS_PER_S)
        };
        let falls: Vec<f64> = told.iter().zip(told.iter().skip(1)).map(fall).collect();
        let [then, left] = [told.first(), told.last()].map(|told| told.map_or(0.0, |told| told.1));
        // What is read from disk comes in lumps: of those only the mean over all looks tells.
        let present = interval(left, since_change(&falls));
        let takes = match present.or_else(|| interval(left, &[mean(&falls)?])) {
            Some((soon, late)) => format!("sent in {}", show_interval(soon, late)),
            None => "they do not become fewer".to_owned(),
        };
        let then = words::counted(then, "item was", "items were");
        format!("{then} left at first and {left} at last: {takes}")
    }

    /// Whether the consumer's window is full in a step.
    pub fn is_full((_, one): Step<'_>) -> bool {
        let used = one.unacked_bytes.zip(one.max_buffer_bytes);
        one.paused_for.as_deref() == Some(WINDOW)
            || used.is_some_and(|(is, most)| is as f64 >= most as f64 * WINDOW_FULL.value)
    }

    /// Share of the time for which the window was full: of the looks where pauses are not told.
    pub fn window_full(&self) -> f64 {
        let looks = || self.producer.share_of_looks(Self::is_full);
        self.producer.paused(WINDOW).unwrap_or_else(looks)
    }

    /// How much of the time the producer has nothing ready, where its own disk holds it; else what speaks against that.
    pub fn starved(&self) -> Result<f64, Against> {
        let end = &self.producer;
        let waits = end.paused(DATA).ok_or_else(|| {
            Against::untold("how long the producer waits for messages to be ready is not told")
        })?;
        let waits_most = waits >= PAUSED_FOR.value
            || waits >= STARVED.value && self.window_full() >= PAUSED_FOR.value;
        if !waits_most {
            return Err(Against::below("the producer has nothing ready", waits, PAUSED_FOR));
        }
        let is_reading = |(_, one): Step<'_>| {
            one.backfilling > 0 || one.backfills.is_some_and(|count| count > 0)
        };
        if end.share_of_looks(is_reading) < STAGE.value {
            return Err(Against::figure(
                "it has nothing ready, but none of its streams reads from disk",
            ));
        }
        let full = end.share_of_looks(|(_, one)| one.backfill_full == Some(true));
        if full >= STAGE.value {
            let why = format!(
                "what it read from disk fills its buffer in {} of the looks",
                words::percent(full)
            );
            return Err(Against::figure(why));
        }
        Ok(waits)
    }

    /// How long bytes wait for their acknowledgement: Little's law.
    pub fn acknowledged_after_ms(&self) -> Option<f64> {
        let per_s = self.producer.per_s(|(_, one)| one.acked_bytes).filter(|rate| *rate > 0.0)?;
        let unacked = |step: &Step<'a>| step.1.unacked_bytes.map(|bytes| bytes as f64);
        let all: Vec<f64> = self.producer.steps.iter().filter_map(unacked).collect();
        Some(mean(&all)? / per_s * MS_PER_S)
    }

    /// What every finding rests on: the rate, what is left, what the producer waits for, the window.
    pub fn evidence(&self) -> Vec<Evidence> {
        let line = |field: &str, value| Evidence::new(STATS_DCP, field.to_owned(), value);
        let last = self.producer.last().1;
        let mut lines = Vec::new();
        if let Some(rate) = self.bytes_per_s() {
            lines.push(line("total_bytes_sent", words::rate(rate)));
        }
        lines.push(line("items_remaining", self.left()));
        for reason in [WINDOW, DATA, MEMORY] {
            if let Some(share) = self.producer.paused(reason).filter(|share| *share > 0.0) {
                let field = format!("paused_*_{reason}_duration");
                let share = words::percent(share);
                lines.push(line(&field, format!("rose by {share} of the time")));
            }
        }
        match last.unacked_bytes.zip(last.max_buffer_bytes) {
            Some((is, most)) => {
                let after = self.acknowledged_after_ms().map_or_else(String::new, |ms| {
                    format!(", acknowledged {} after they were sent", show_seconds(ms / MS_PER_S))
                });
                let value = format!("{} of {}{after}", show_bytes(is), show_bytes(most));
                lines.push(line("unacked_bytes, max_buffer_bytes", value));
            }
            None if last.flow_control == Some(false) => {
                lines.push(line("flow_control", "disabled".to_owned()));
            }
            None => {}
        }
        if last.streams > 0 {
            let value = format!("{} of {} read from disk", last.backfilling, last.streams);
            lines.push(line("stream_*_state", value));
        }
        lines
    }

    /// A finding on this connection.
    pub fn finding(&self, rule: &Rule, place: &str, strength: f64, sentence: String) -> Finding {
        Finding {
            subjects: vec![self.name().to_owned()],
            evidence: self.evidence(),
            ..Finding::of(rule, place, strength, sentence)
        }
    }
}
