//! Which thread of a stream's path holds it up, and which would be next.

use record::{Limit, StreamFigures, ThreadUse};

use crate::bounds::Ceiling;
use crate::verdict::Verdict;
use crate::words::{self, percent};

/// A path none of whose threads is busier than this waits for something else.
const BUSY: f64 = 0.6;
/// A consumer that is stopped for more than this share of the time is held by its memory.
const STOPPED: f64 = 0.1;

/// What a thread could carry if it did nothing else.
fn carries_bytes_per_s(thread: &ThreadUse, bytes: u64) -> f64 {
    if thread.busy_s > 0.0 { bytes as f64 / thread.busy_s } else { f64::INFINITY }
}

fn limit_of(thread: &ThreadUse) -> Limit {
    if thread.name.contains("proxy") { Limit::Proxy } else { Limit::Cpu }
}

fn ceiling(thread: &ThreadUse, bytes: u64) -> Ceiling {
    let rate_bytes_per_s = carries_bytes_per_s(thread, bytes);
    let text = format!("the {} at {}", thread.name, words::rate(rate_bytes_per_s));
    Ceiling { limit: limit_of(thread), rate_bytes_per_s, text }
}

/// Judges a stream of `bytes` that took `seconds`.
pub(crate) fn verdict(figures: &StreamFigures, bytes: u64, seconds: f64) -> Verdict {
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
            "{} memory: the consumer was over its replication threshold {} times, the longest for {}; threads: {all}",
            percent(share),
            memory.stops,
            record::units::show_seconds(memory.longest_stop_s),
        );
        return Verdict { limit: Some(Limit::Memory), share, ceiling: None, next: None, text };
    }
    match threads.first() {
        Some(first) if busy(first) >= BUSY => {
            let own = ceiling(first, bytes);
            let text = format!(
                "the thread of the {} is busy {} of the time and carries no more than {}; next: {next_text}. Threads: {all}",
                first.name,
                percent(busy(first)),
                words::rate(own.rate_bytes_per_s),
            );
            Verdict { limit: Some(own.limit), share: busy(first), ceiling: Some(own), next, text }
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

#[cfg(test)]
mod tests {
    use record::ConsumerMemory;

    use super::*;

    fn figures(threads: &[(&str, f64)], memory: Option<ConsumerMemory>) -> StreamFigures {
        let thread =
            |(name, busy_s): &(&str, f64)| ThreadUse { name: (*name).to_owned(), busy_s: *busy_s };
        let threads = threads.iter().map(thread).collect();
        StreamFigures { threads, measuring_device: false, memory }
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
    fn a_path_that_waits_is_held_by_no_thread() {
        let found = verdict(&figures(&[("producer", 1.0), ("consumer", 2.0)], None), 100, 10.0);
        assert_eq!(found.limit, None);
        assert!(found.text.contains("no thread was busy"), "{}", found.text);
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
