//! The settings that rule a recovery, and their values today.

use record::observation::{Node, Recovery, Scope, Setting};
use record::roles::{COLD, FROZEN, is_dedicated_to};
use record::units;

use super::series::Series;

/// The first release of Elasticsearch that is known to take 8 chunks in flight; 7.10 takes 5.
const MORE_CHUNKS_FROM: (u32, u32) = (7, 16);
/// The first release of Elasticsearch in which the limiter of a node of the cold and frozen tiers alone goes by default
/// by its memory: up to so many GiB it lets so much through, and the last of these beyond ("Index recovery settings").
const COLD_RATES_FROM: (u32, u32) = (7, 12);
const COLD_RATES: [(u64, &str); 4] = [(4, "40mb"), (8, "60mb"), (16, "90mb"), (32, "125mb")];
const COLD_RATE_MAX: &str = "250mb";
/// The first release of Elasticsearch that is known to let a replay pass however much merges hold indexing back.
pub(crate) const REPLAY_PASSES_FROM: (u32, u32) = (7, 10);

/// How many recoveries a node takes part in at once, and the default.
pub(crate) const SLOTS: (&str, &str) =
    ("cluster.routing.allocation.node_concurrent_recoveries", "2");

/// Settings of one kind of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Knobs {
    /// The limiter, and its default.
    pub rate: Option<(&'static str, &'static str)>,
    /// Chunk size: its setting, where it can be set, its default, and how many bytes it may be.
    pub chunk: (Option<&'static str>, &'static str, u64),
    /// Chunks in flight, their default, and how many there may be; none where no setting rules them.
    pub chunks: Option<(&'static str, &'static str, u32)>,
}

impl Knobs {
    /// The settings of a recovery from remote through cross-cluster replication.
    pub const REMOTE: Knobs = Knobs {
        rate: Some(("ccr.indices.recovery.max_bytes_per_sec", "40mb")),
        chunk: (Some("ccr.indices.recovery.chunk_size"), "1mb", 1 << 30),
        chunks: Some(("ccr.indices.recovery.max_concurrent_file_chunks", "5", 10)),
    };

    /// The same through OpenSearch's plugin.
    pub const PLUGIN: Knobs = Knobs {
        rate: None,
        chunk: (Some("plugins.replication.follower.index.recovery.chunk_size"), "10mb", 1 << 30),
        chunks: Some((
            "plugins.replication.follower.index.recovery.max_concurrent_file_chunks",
            "5",
            10,
        )),
    };

    /// The settings of a restore from a snapshot, and of a copy whose files come from one: files are streamed, and
    /// their streams pass the limiter of the node and then that of the repository.
    pub const RESTORE: Knobs = Knobs {
        rate: Some(("indices.recovery.max_bytes_per_sec", "40mb")),
        chunk: (None, "", 0),
        chunks: None,
    };

    /// Those of a copy that is made of shards of its own node, or comes from OpenSearch's remote store: no limiter of
    /// recoveries and no chunks.
    const NONE: Knobs = Knobs { rate: None, chunk: (None, "", 0), chunks: None };

    /// The settings of a recovery from another copy of the same cluster, where nothing is known of the release.
    pub const PEERS: Knobs = Knobs {
        rate: Some(("indices.recovery.max_bytes_per_sec", "40mb")),
        chunk: (Some("indices.recovery.chunk_size"), "512kb", 100 << 20),
        chunks: Some(("indices.recovery.max_concurrent_file_chunks", "2", 5)),
    };

    /// The settings that rule a recovery.
    pub fn of(recovery: &Recovery, series: &Series<'_>) -> Knobs {
        let repository = recovery.repository.as_deref().unwrap_or_default();
        if repository.starts_with("_ccr_") {
            return Knobs::REMOTE;
        }
        if repository.starts_with("replication-remote-repo") {
            return Knobs::PLUGIN;
        }
        match repository {
            _ if recovery.has_files_of_its_own() => Knobs::NONE,
            "" if !recovery.comes_from_snapshot() => Knobs::of_peers(series),
            _ => Knobs::RESTORE,
        }
    }

    /// The settings of a recovery from another copy of the same cluster.
    fn of_peers(series: &Series<'_>) -> Knobs {
        let mut knobs = Knobs::PEERS;
        let Some(cluster) = series.last().map(|look| &look.cluster) else { return knobs };
        let is_elasticsearch = cluster.flavour == "elasticsearch";
        if is_elasticsearch {
            knobs.chunk.0 = None;
        }
        if cluster.flavour == "narrows"
            || (is_elasticsearch && cluster.release() >= Some(MORE_CHUNKS_FROM))
        {
            knobs.chunks = knobs.chunks.map(|(name, default, _)| (name, default, 8));
        }
        knobs
    }

    /// The setting of the limiter of a node, and what it is by default there; none without a limiter. What a cluster
    /// lists among its defaults is that of the node that answered.
    pub fn limiter_of(&self, node: &str, series: &Series<'_>) -> Option<(Setting, &'static str)> {
        let (name, default) = self.rate?;
        let told = series.setting_or_default(name, default);
        let cold = self.cold_rates(series);
        let is_default = told.value == default || cold.iter().any(|(_, rate)| told.value == *rate);
        let own = cold.iter().find(|(one, _)| one.name == node).map_or(default, |(_, rate)| *rate);
        Some(match told.scope == Scope::Default && is_default {
            true => (Setting { value: own.to_owned(), ..told }, own),
            false => (told, own),
        })
    }

    /// What the limiters of other nodes let through by default, where that of a node lets more through: a value for all
    /// that suits it lifts theirs.
    pub fn less_elsewhere(&self, node: &str, series: &Series<'_>) -> Option<&'static str> {
        let (_, others) = self.rate?;
        let (setting, own) = self.limiter_of(node, series)?;
        (setting.scope == Scope::Default && own != others).then_some(others)
    }

    /// A node whose limiter lets more through than a value that is to be set for all, and how much that is. One of the
    /// frozen tier alone is none: what it holds stays in its repository, and hardly anything recovers onto it.
    pub fn slowed_by<'a>(
        &self,
        bytes_per_s: u64,
        series: &Series<'a>,
    ) -> Option<(&'a str, &'static str)> {
        let (name, default) = self.rate?;
        if series.setting_or_default(name, default).scope != Scope::Default {
            return None;
        }
        let mut cold = self.cold_rates(series).into_iter();
        let slowed = cold.find(|(node, rate)| {
            !is_dedicated_to(&[FROZEN], &node.roles)
                && units::parse_size(rate).is_ok_and(|rate| rate > bytes_per_s)
        });
        slowed.map(|(node, rate)| (node.name.as_str(), rate))
    }

    /// The nodes of the cold and frozen tiers alone, with what their limiters let through by default.
    fn cold_rates<'a>(&self, series: &Series<'a>) -> Vec<(&'a Node, &'static str)> {
        let has_them = self.rate == Knobs::PEERS.rate
            && series.flavour() == "elasticsearch"
            && series.last().is_some_and(|look| look.cluster.release() >= Some(COLD_RATES_FROM));
        let nodes = series.last_nodes().filter(|_| has_them).map_or(&[][..], |(_, nodes)| nodes);
        let is_cold = |node: &&Node| is_dedicated_to(&[COLD, FROZEN], &node.roles);
        let rate = |node: &'a Node| {
            let bytes = node.memory_bytes?;
            let step = COLD_RATES.iter().find(|(gib, _)| bytes <= gib << 30);
            Some((node, step.map_or(COLD_RATE_MAX, |(_, rate)| *rate)))
        };
        nodes.iter().filter(is_cold).filter_map(rate).collect()
    }

    /// Bytes of a chunk; none where a scheduler chooses them.
    pub fn chunk_bytes(&self, series: &Series<'_>) -> Option<f64> {
        if scheduler(series) == Some("adaptive") {
            return None;
        }
        let (name, default, _) = self.chunk;
        let value = name.map_or(default, |name| series.value_or_default(name, default));
        Some(units::parse_size(value).ok().filter(|bytes| *bytes > 0)? as f64)
    }

    /// The setting of chunk size, where this release has it.
    pub fn chunk_setting(&self, series: &Series<'_>) -> Option<&'static str> {
        let is_there = |name: &&str| series.setting(name).is_some() || !series.tells_defaults();
        self.chunk.0.filter(is_there)
    }

    /// Bytes of a chunk so many times as large, or of the largest that the setting takes; none where it is no larger.
    pub fn larger_chunk(&self, bytes: f64, times: f64) -> Option<u64> {
        let to = ((bytes * times) as u64).min(self.chunk.2);
        (to as f64 > bytes).then_some(to)
    }

    /// The setting of chunks in flight, its default, and how many there may be; none where a scheduler chooses them, or
    /// fetches one after another: then the setting is without effect.
    pub fn chunks_setting(&self, series: &Series<'_>) -> Option<(&'static str, &'static str, u32)> {
        self.chunks.filter(|_| !matches!(scheduler(series), Some("adaptive" | "sequential")))
    }

    /// Chunks in flight; none where a scheduler chooses them.
    pub fn chunk_count(&self, series: &Series<'_>) -> Option<f64> {
        match scheduler(series) {
            Some("adaptive") => None,
            Some("sequential") if self.chunks.is_some() => Some(1.0),
            _ => {
                let (name, default, _) = self.chunks?;
                let count = series.value_or_default(name, default).parse().ok();
                count.filter(|count| *count >= 1.0)
            }
        }
    }
}

/// The embedded engine's scheduler.
fn scheduler<'a>(series: &Series<'a>) -> Option<&'a str> {
    series.setting("narrows.recovery.scheduler").map(|setting| setting.value.as_str())
}

/// The steps between which a limit that is advised is chosen, in halves of a unit: easy to read, and few, so that the
/// next look advises the same. From 10 on they are as far apart as preferred numbers (ISO 3, R10).
const STEPS: [u64; 29] = [
    2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 50, 64, 80, 100, 128, 160, 200, 250, 320, 400,
    500, 640, 800, 1000, 1280, 1600,
];
/// Half a KiB, half a MiB, half a GiB.
const HALVES: [u64; 3] = [1 << 9, 1 << 19, 1 << 29];
/// A step that has so much of what is wanted is enough.
const ENOUGH: f64 = 0.98;

/// All steps in bytes, the smallest first.
pub(crate) fn steps() -> impl Iterator<Item = u64> {
    HALVES.into_iter().flat_map(|half| STEPS.into_iter().map(move |step| step * half))
}

/// The step from `wanted` on, or the last one up to `most` where that is lower.
pub(crate) fn to_step(wanted: f64, most: f64) -> u64 {
    let up = steps().find(|step| *step as f64 >= wanted * ENOUGH);
    let down = steps().take_while(|step| *step as f64 <= most).last();
    match (up, down) {
        (Some(up), down) => down.map_or(up, |down| up.min(down)),
        (None, _) => wanted.ceil() as u64,
    }
}

#[cfg(test)]
mod tests {
    use record::units::{parse_size, show_size_setting};

    use super::*;

    #[test]
    fn a_limit_is_advised_in_round_steps() {
        let step = |wanted: &str, most: &str| {
            let [wanted, most] = [wanted, most].map(|size| parse_size(size).unwrap() as f64);
            show_size_setting(to_step(wanted, most))
        };
        for wanted in ["79mb", "80mb", "81mb"] {
            assert_eq!(step(wanted, "1gb"), "80mb");
        }
        assert_eq!(["83mb", "86mb", "101mb"].map(|wanted| step(wanted, "1gb")), ["100mb"; 3]);
        assert_eq!(step("86mb", "90mb"), "80mb", "it is too much");
        assert_eq!([step("1400000b", "1gb"), step("900mb", "9gb")], ["1536kb", "1gb"]);
        assert_eq!([step("100b", "400b"), step("2000gb", "9000gb")], ["1kb", "2000gb"]);
        assert!(steps().is_sorted(), "{:?}", steps().collect::<Vec<_>>());
    }
}
