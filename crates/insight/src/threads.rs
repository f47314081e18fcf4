//! Which thread of a stream's path holds it up, and which would be next.

use record::{ConsumerMemory, Limit, StreamFigures, ThreadUse};

use crate::bounds::Ceiling;
use crate::headline::Headline;
use crate::variant::{Finished, Variant};
use crate::verdict::Verdict;
use crate::words::{self, percent};

/// A path none of whose threads is busier than this waits for something else.
pub(crate) const BUSY: f64 = 0.6;
/// A consumer that is stopped for more than this share of the time is held by its memory.
pub(crate) const STOPPED: f64 = 0.1;

/// What a thread did with its time, as shares of it that sum to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadShares {
    /// It used a core.
    pub busy: f64,
    /// It had nothing to do while a window was full: it waited for an acknowledgement.
    pub flow_control: f64,
    /// It had nothing to do while its disk was at work.
    pub disk: f64,
    /// It had nothing to do, and waited for another thread.
    pub waiting: f64,
}

/// What a thread did in `seconds`; none where the record does not tell its waits apart. A moment in which a window was
/// full and the disk at work is charged to flow control.
pub fn thread_shares(thread: &ThreadUse, seconds: f64) -> Option<ThreadShares> {
    let (flow_control_s, disk_s) = (thread.flow_control_s?, thread.disk_s?);
    if seconds.is_nan() || seconds <= 0.0 {
        return None;
    }
    let mut left = 1.0;
    let mut take = |spent_s: f64| {
        let share = (spent_s / seconds).clamp(0.0, left);
        left -= share;
        share
    };
    let (busy, flow_control, disk) = (take(thread.busy_s), take(flow_control_s), take(disk_s));
    Some(ThreadShares { busy, flow_control, disk, waiting: left })
}

/// What a thread could carry if it did nothing else.
fn carries_bytes_per_s(thread: &ThreadUse, bytes: u64) -> f64 {
    if thread.busy_s > 0.0 { bytes as f64 / thread.busy_s } else { f64::INFINITY }
}

pub(crate) fn is_proxy(thread: &ThreadUse) -> bool {
    thread.name.contains("proxy")
}

pub(crate) fn is_consumer(thread: &ThreadUse) -> bool {
    thread.name.contains("consumer")
}

fn limit_of(thread: &ThreadUse) -> Limit {
    if is_proxy(thread) { Limit::Proxy } else { Limit::Cpu }
}

fn ceiling(thread: &ThreadUse, bytes: u64) -> Ceiling {
    let rate_bytes_per_s = carries_bytes_per_s(thread, bytes);
    let text = format!("the {} at {}", thread.name, words::rate(rate_bytes_per_s));
    Ceiling { limit: limit_of(thread), rate_bytes_per_s, text }
}

/// When all was on disk, where it was kept.
fn persisted(figures: &StreamFigures, bytes: u64) -> String {
    figures.persisted_s.map_or_else(String::new, |seconds| {
        let rate = words::rate(bytes as f64 / seconds);
        format!(". All was on disk after {}: {rate}", record::units::show_seconds(seconds))
    })
}

/// What was streamed again after rollbacks, where anything was.
fn again(figures: &StreamFigures, bytes: u64) -> String {
    let size = record::units::show_bytes;
    match figures.rollbacks {
        0 => String::new(),
        rollbacks => format!(
            ". Rollbacks: {rollbacks}, so that {} were streamed for {}",
            size(bytes + figures.again_bytes),
            size(bytes),
        ),
    }
}

/// Judges a stream of `bytes` that took `seconds`.
pub(crate) fn verdict(figures: &StreamFigures, bytes: u64, seconds: f64) -> Verdict {
    let verdict = of_threads(figures, bytes + figures.again_bytes, seconds);
    let text = verdict.text + &again(figures, bytes) + &persisted(figures, bytes);
    Verdict { text, ..verdict }
}

fn of_threads(figures: &StreamFigures, bytes: u64, seconds: f64) -> Verdict {
    let mut threads: Vec<&ThreadUse> =
        figures.threads.iter().filter(|thread| thread.busy_s > 0.0).collect();
    threads.sort_by(|a, b| b.busy_s.total_cmp(&a.busy_s));
    let busy = |thread: &ThreadUse| thread.busy_s / seconds;
    let all: Vec<String> =
        figures.threads.iter().map(|t| format!("{} {}", t.name, percent(busy(t)))).collect();
    let all = all.join(", ");
    let next = threads.get(1).map(|thread| ceiling(thread, bytes));
    let next_text = next.as_ref().map_or("nothing that was measured", |next| &next.text).to_owned();
    let memory = figures.memory.filter(|memory| memory.stopped_s / seconds > STOPPED);
    if let Some(memory) = memory {
        let share = memory.stopped_s / seconds;
        let text = format!(
            "{} memory: the consumer was over its replication threshold {}; threads: {all}",
            percent(share),
            how_often(&memory),
        );
        return Verdict { limit: Some(Limit::Memory), share, ceiling: None, next: None, text };
    }
    // While moves are prepared no thread can be busy.
    let overhead = figures.overhead_s / seconds;
    match threads.first() {
        Some(first) if busy(first) >= overhead && busy(first) >= BUSY * (1.0 - overhead) => {
            let own = ceiling(first, bytes);
            let text = format!(
                "the thread of the {} is busy {} of the time and carries no more than {}; next: {next_text}. Threads: {all}",
                first.name,
                percent(busy(first)),
                words::rate(own.rate_bytes_per_s),
            );
            Verdict { limit: Some(own.limit), share: busy(first), ceiling: Some(own), next, text }
        }
        first if overhead > first.map_or(0.0, |first| busy(first)) => {
            let next = first.map(|first| ceiling(first, bytes));
            let next_text = next.as_ref().map_or("nothing that was measured", |next| &next.text);
            let text = format!(
                "nothing was streamed for {} of the time, in which the manager prepared moves; next: {next_text}. \
                 Threads: {all}",
                percent(overhead)
            );
            let limit = Some(Limit::Coordination);
            Verdict { limit, share: overhead, ceiling: None, next, text }
        }
        _ => Verdict {
            limit: None,
            share: 0.0,
            ceiling: None,
            next: threads.first().map(|thread| ceiling(thread, bytes)),
            text: format!("no thread was busy: the path waited between them. Threads: {all}"),
        },
    }
}

/// What a thread does on its path. Consumers of all kinds do the same.
fn role(thread: &ThreadUse) -> &str {
    if is_consumer(thread) { "consumer" } else { &thread.name }
}

/// A stream whose busiest thread held it.
struct Held<'a> {
    variant: &'a str,
    figures: &'a Finished,
    roles: Vec<&'a str>,
    by: &'a ThreadUse,
}

impl Held<'_> {
    /// `rebalance, mainstream: 45.0 MB/s, the thread of the consumer busy 85 % of the time.`
    fn shown(&self) -> String {
        let Finished { bytes_per_s, seconds, .. } = self.figures;
        let (by, busy) = (role(self.by), percent(self.by.busy_s / seconds));
        let rate = words::rate(*bytes_per_s);
        format!("{}: {rate}, the thread of the {by} busy {busy} of the time.", self.variant)
    }
}

/// The stream of a variant, where a thread was busy enough to hold it.
fn held(variant: &Variant) -> Option<Held<'_>> {
    let figures = variant.finished()?;
    let stream = figures.stream.as_ref()?;
    let by = stream.threads.iter().max_by(|a, b| a.busy_s.total_cmp(&b.busy_s))?;
    let roles = stream.threads.iter().map(role).collect();
    let held = Held { variant: &variant.name, figures, roles, by };
    (by.busy_s / figures.seconds >= BUSY).then_some(held)
}

/// The share of the time for which a variant's consumer was stopped for want of memory, where that held it.
fn stopped(variant: &Variant) -> Option<f64> {
    let figures = variant.finished()?;
    let memory = figures.stream.as_ref()?.memory?;
    let share = memory.stopped_s / figures.seconds;
    (share > STOPPED).then_some(share)
}

/// The finding where memory held any consumer: which one most, and how each went.
fn of_memory(variants: &[Variant]) -> Option<Headline> {
    let all = variants.iter().filter_map(|variant| Some((variant, stopped(variant)?)));
    let (most, share) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!("{}: its consumer lacked memory {} of the time", most.name, percent(share));
    Some(Headline { text, details: variants.iter().filter_map(stops).collect() })
}

/// `without: 50.0 MB/s; its consumer stopped 12 times, the longest for 4.00 s.`
fn stops(variant: &Variant) -> Option<String> {
    let figures = variant.finished()?;
    let memory = figures.stream.as_ref()?.memory?;
    let rate = words::rate(figures.bytes_per_s);
    let how = match memory.stops {
        0 => "never stopped".to_owned(),
        _ => format!("stopped {}", how_often(&memory)),
    };
    Some(format!("{}: {rate}; its consumer {how}.", variant.name))
}

/// `once, for 4.00 s`, or `12 times, the longest for 4.00 s`.
pub(crate) fn how_often(memory: &ConsumerMemory) -> String {
    let longest = record::units::show_seconds(memory.longest_stop_s);
    match memory.stops {
        1 => format!("once, for {longest}"),
        stops => format!("{stops} times, the longest for {longest}"),
    }
}

/// The finding of a run of streams: which thread holds the first variant's path, and which one does on the same path
/// where that one was widened; but a consumer that memory stops, where there is one. None where neither holds.
pub(crate) fn headline(variants: &[Variant]) -> Option<Headline> {
    if let Some(memory) = of_memory(variants) {
        return Some(memory);
    }
    let baseline = variants.iter().find(|variant| variant.finished().is_some()).and_then(held)?;
    let widened = variants.iter().filter_map(held).find(|other| {
        other.roles == baseline.roles
            && role(other.by) != role(baseline.by)
            && other.figures.bytes_per_s > baseline.figures.bytes_per_s
    });
    let at = format!("at {}", words::rate(baseline.figures.bytes_per_s));
    let (more, below) = match (widened, &baseline.figures.verdict.next) {
        (Some(other), _) => (format!("the {} the next", role(other.by)), other.shown()),
        (None, Some(next)) => (at, format!("The next would be {}, at most.", next.text)),
        (None, None) => (at, "Nothing else was measured.".to_owned()),
    };
    let text = format!("The {} is the first limit, {more}", role(baseline.by));
    Some(Headline { text, details: vec![baseline.shown(), below] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(threads: &[(&str, f64)], memory: Option<ConsumerMemory>) -> StreamFigures {
        let thread = |(name, busy_s): &(&str, f64)| ThreadUse {
            name: (*name).to_owned(),
            busy_s: *busy_s,
            ..ThreadUse::default()
        };
        let threads = threads.iter().map(thread).collect();
        StreamFigures { threads, memory, ..StreamFigures::default() }
    }

    #[test]
    fn the_busiest_thread_holds_and_the_second_is_next() {
        let path = [("producer", 11.7), ("manager's proxy", 25.0), ("consumer", 38.0)];
        let found = verdict(&figures(&path, None), 2_000_000_000, 45.0);
        assert_eq!(found.limit, Some(Limit::Cpu));
        assert!(
            found.text.starts_with("the thread of the consumer is busy 84 %"),
            "{}",
            found.text
        );
        let next = found.next.unwrap();
        assert_eq!(
            (next.limit, next.text.as_str()),
            (Limit::Proxy, "the manager's proxy at 80.0 MB/s")
        );
    }

    #[test]
    fn the_shares_of_a_thread_sum_to_one_and_what_is_not_told_has_none() {
        let of = |flow_control_s, disk_s| ThreadUse {
            busy_s: 5.0,
            flow_control_s,
            disk_s,
            ..ThreadUse::default()
        };
        let shares = |busy, flow_control, disk, waiting| {
            Some(ThreadShares { busy, flow_control, disk, waiting })
        };
        assert_eq!(
            thread_shares(&of(Some(2.5), Some(1.25)), 10.0),
            shares(0.5, 0.25, 0.125, 0.125)
        );
        // A window was full and the disk at work at the same time.
        assert_eq!(thread_shares(&of(Some(2.5), Some(7.5)), 10.0), shares(0.5, 0.25, 0.25, 0.0));
        assert_eq!(thread_shares(&of(None, None), 10.0), None);
        assert_eq!(thread_shares(&of(Some(1.0), Some(1.0)), 0.0), None);
    }

    #[test]
    fn a_path_that_waits_is_held_by_no_thread() {
        let found = verdict(&figures(&[("producer", 1.0), ("consumer", 2.0)], None), 100, 10.0);
        assert_eq!(found.limit, None);
        assert!(found.text.contains("no thread was busy"), "{}", found.text);
    }

    #[test]
    fn while_moves_are_prepared_no_thread_can_be_busy() {
        let of = |busy_s: f64, overhead_s: f64| {
            let path = [("producer", 1.0), ("consumer", busy_s)];
            let figures = StreamFigures { overhead_s, ..figures(&path, None) };
            verdict(&figures, 1_000_000_000, 10.0)
        };
        let moves = of(3.0, 6.0);
        assert_eq!((moves.limit, moves.share), (Some(Limit::Coordination), 0.6));
        let says = "nothing was streamed for 60 % of the time, in which the manager prepared moves; next: the consumer \
                    at 333 MB/s. Threads: ";
        assert!(moves.text.starts_with(says), "{}", moves.text);
        // Most of the rest is the consumer's, and it takes more than the moves.
        assert_eq!(of(4.5, 4.0).limit, Some(Limit::Cpu));
        assert_eq!(of(2.0, 1.0).limit, None);
    }

    #[test]
    fn what_is_kept_is_on_disk_later() {
        let busy = figures(&[("consumer", 9.0)], None);
        let kept = StreamFigures { persisted_s: Some(12.5), ..busy.clone() };
        let text = |figures| verdict(figures, 1_000_000_000, 10.0).text;
        assert_eq!(
            text(&kept),
            format!("{}. All was on disk after 12.5 s: 80.0 MB/s", text(&busy))
        );
    }

    #[test]
    fn threads_carry_what_is_streamed_again_too() {
        let busy = figures(&[("consumer", 9.0)], None);
        let again = StreamFigures { rollbacks: 2, again_bytes: 500_000_000, ..busy.clone() };
        let found = verdict(&again, 1_000_000_000, 10.0);
        assert!(found.text.contains("no more than 167 MB/s"), "{}", found.text);
        assert!(found.text.contains(". Rollbacks: 2, so that 1.5"), "{}", found.text);
        assert!(!verdict(&busy, 1_000_000_000, 10.0).text.contains("ollback"));
    }

    #[test]
    fn a_consumer_without_memory_is_held_by_that() {
        let memory = ConsumerMemory {
            quota_bytes: 1,
            used_bytes_max: 1,
            stops: 4,
            stopped_s: 6.0,
            longest_stop_s: 2.5,
            buffered_items_max: 9,
        };
        let found = verdict(&figures(&[("consumer", 9.0)], Some(memory)), 100, 10.0);
        assert_eq!(found.limit, Some(Limit::Memory));
        assert!(found.text.contains("4 times, the longest for 2.50 s"), "{}", found.text);
    }
}
