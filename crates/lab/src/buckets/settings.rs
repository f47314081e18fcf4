//! What a variant of a plan with a bucket says, by the names of its settings.

use std::collections::BTreeMap;
use std::time::Duration;

use dcp::consumer::ConsumerKind;
use dcp::policy::{MemorySettings, memory_of_2020, memory_of_today};
use record::units::{parse_duration, parse_size};

use crate::choices::unknown;

/// Settings of plans with a bucket.
const NAMES: [&str; 8] = [
    "dcp.path", "dcp.consumer", "dcp.consumer_threads", "dcp.memory", "dcp.item_expel",
    "dcp.destination_quota", "dcp.move_overhead", "dcp.takeovers",
];
const PATHS: [(&str, StreamPath); 3] = [
    ("rebalance", StreamPath::Rebalance),
    ("data-copy", StreamPath::DataCopy),
    ("none", StreamPath::Drain),
];
const CONSUMERS: [(&str, ConsumerKind); 3] = [
    ("mainstream", ConsumerKind::Mainstream),
    ("batching", ConsumerKind::Batching),
    ("fast", ConsumerKind::Fast),
];
/// The memory of a bucket with a quota.
type Memory = fn(u64) -> MemorySettings;
const MEMORIES: [(&str, Memory); 2] = [("2020", memory_of_2020), ("today", memory_of_today)];
const THREADS_MAX: u16 = 64;
const SWITCHES: [(&str, bool); 2] = [("true", true), ("false", false)];

/// How documents go from one server to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPath {
    /// Vbuckets move, through a proxy that decodes every packet.
    Rebalance,
    /// Vbuckets are copied, through a proxy that passes on what comes.
    DataCopy,
    /// They are read from the source and discarded: the producer alone.
    Drain,
}

/// A variant's settings.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    /// How documents go.
    pub path: StreamPath,
    /// The destination's consumer.
    pub consumer: ConsumerKind,
    /// Threads over which it spreads vbuckets; each vbucket stays on one.
    pub consumer_threads: u16,
    /// Time that the modelled manager needs for each move in addition to streaming.
    pub move_overhead: Duration,
    /// How many vbuckets, those with the lowest numbers, become active at the destination of a rebalance; all others
    /// become replicas there. None: all become active.
    pub takeovers: Option<u16>,
    memory: Memory,
    item_expel: Option<bool>,
    destination_quota_bytes: Option<u64>,
}

fn choose<T: Copy>(name: &str, text: &str, choices: &[(&'static str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(known, _)| *known == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        unknown(&format!("{name} cannot be"), text, "It is one of", &known)
    })
}

fn threads(text: &str) -> Result<u16, String> {
    let count = text.parse().ok().filter(|count| (1..=THREADS_MAX).contains(count));
    count.ok_or_else(|| {
        format!("dcp.consumer_threads cannot be \"{text}\"; give 1 to {THREADS_MAX} threads")
    })
}

fn takeovers(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("dcp.takeovers cannot be \"{text}\"; give a number of vbuckets"))
}

impl StreamSettings {
    /// From settings by their names. The error is a sentence.
    pub fn of(settings: &BTreeMap<String, String>) -> Result<StreamSettings, String> {
        let mut found = StreamSettings {
            path: StreamPath::DataCopy,
            consumer: ConsumerKind::Mainstream,
            consumer_threads: 1,
            move_overhead: Duration::ZERO,
            takeovers: None,
            memory: memory_of_2020,
            item_expel: None,
            destination_quota_bytes: None,
        };
        for (name, text) in settings {
            match name.as_str() {
                "dcp.path" => found.path = choose(name, text, &PATHS)?,
                "dcp.consumer" => found.consumer = choose(name, text, &CONSUMERS)?,
                "dcp.consumer_threads" => found.consumer_threads = threads(text)?,
                "dcp.memory" => found.memory = choose(name, text, &MEMORIES)?,
                "dcp.item_expel" => found.item_expel = Some(choose(name, text, &SWITCHES)?),
                "dcp.move_overhead" => {
                    found.move_overhead =
                        parse_duration(text).map_err(|error| error.to_string())?;
                }
                "dcp.takeovers" => found.takeovers = Some(takeovers(text)?),
                "dcp.destination_quota" => {
                    let bytes = parse_size(text).map_err(|error| error.to_string())?;
                    found.destination_quota_bytes = Some(bytes);
                }
                _ => return Err(unknown("no setting is called", name, "Settings", &NAMES)),
            }
        }
        Ok(found)
    }

    /// The memory of each of the destination's threads, where a bucket of the plan has so much.
    pub(crate) fn destination_memory(&self, quota_bytes: u64) -> MemorySettings {
        let whole = self.destination_quota_bytes.unwrap_or(quota_bytes);
        let memory = (self.memory)(whole / u64::from(self.consumer_threads));
        MemorySettings { item_expel: self.item_expel.unwrap_or(memory.item_expel), ..memory }
    }
}

/// Whether a setting of a plan with a bucket may have this value. The error is a sentence.
pub fn check_setting(name: &str, value: &str) -> Result<(), String> {
    StreamSettings::of(&BTreeMap::from([(name.to_owned(), value.to_owned())])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_what_is_wrong_is_named() {
        let text = |pairs: &[(&str, &str)]| {
            StreamSettings::of(&pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect())
        };
        let found = text(&[("dcp.path", "rebalance"), ("dcp.consumer", "fast")]).unwrap();
        assert_eq!((found.path, found.consumer), (StreamPath::Rebalance, ConsumerKind::Fast));
        assert_eq!(found.destination_memory(1000), memory_of_2020(1000));
        let found = text(&[
            ("dcp.memory", "today"),
            ("dcp.item_expel", "false"),
            ("dcp.destination_quota", "1mb"),
        ])
        .unwrap();
        let expected = MemorySettings { item_expel: false, ..memory_of_today(1 << 20) };
        assert_eq!(found.destination_memory(1000), expected);
        let found = text(&[("dcp.consumer_threads", "4")]).unwrap();
        assert_eq!(found.destination_memory(4000), memory_of_2020(1000));
        for wrong in ["0", "65", "two"] {
            let said = check_setting("dcp.consumer_threads", wrong).unwrap_err();
            assert!(said.contains("1 to 64"), "{said}");
        }
        assert_eq!(text(&[("dcp.takeovers", "2")]).unwrap().takeovers, Some(2));
        let said = check_setting("dcp.takeovers", "half").unwrap_err();
        assert!(said.contains("a number of vbuckets"), "{said}");
        let said = check_setting("dcp.consumer", "slow").unwrap_err();
        assert!(said.contains("mainstream, batching, fast"), "{said}");
        let said = check_setting("dcp.pat", "rebalance").unwrap_err();
        assert!(said.contains("did you mean \"dcp.path\""), "{said}");
    }
}
