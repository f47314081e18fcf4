//! What is tried: drawn from a seed, each case by itself, so that one can be tried again alone.

use record::random::split_mix;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Lose,
    Replicas,
    Drain,
    Restart,
    Rolling,
    Setting,
    Link,
}

/// What is done in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Lose,
    Replicas,
    Drain,
    Restart,
    Rolling,
}

/// One kind after another: in eight cases each kind is there, links twice. The rolling restarts of 24 cases on four
/// clusters are on the smaller three.
const TURNS: [Kind; 8] = [
    Kind::Rolling,
    Kind::Lose,
    Kind::Link,
    Kind::Drain,
    Kind::Restart,
    Kind::Setting,
    Kind::Link,
    Kind::Replicas,
];
/// What is done where a setting was changed, or over links with a round trip.
const DEEDS: [Deed; 3] = [Deed::Lose, Deed::Drain, Deed::Replicas];
/// Copying is to take about so long at most.
const COPYING_S_MAX: u64 = 30;
const RATE: &str = "indices.recovery.max_bytes_per_sec";
const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub number: u64,
    pub nodes: usize,
    pub kind: Kind,
    pub deed: Deed,
    pub shards: u64,
    /// Of each shard.
    pub mb: u64,
    pub rate_mb: u64,
    pub slots: u64,
    /// How long copies wait for a node that left.
    pub delay_s: u64,
    /// How long a node that restarts is away before it is started again.
    pub away_s: u64,
    /// Between nodes.
    pub rtt_ms: u64,
    changes_rate: bool,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Lose,
        Kind::Replicas,
        Kind::Drain,
        Kind::Restart,
        Kind::Rolling,
        Kind::Setting,
        Kind::Link,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Kind::Lose => "a node dies",
            Kind::Replicas => "a replica more",
            Kind::Drain => "a node is drained",
            Kind::Restart => "a node restarts",
            Kind::Rolling => "nodes restart one after another",
            Kind::Setting => "a setting was changed",
            Kind::Link => "links with a round trip",
        }
    }
}

impl Case {
    /// Case `number` of a seed, on a cluster of so many nodes.
    pub fn drawn(seed: u64, number: u64, nodes: usize) -> Case {
        let mut random = seed.wrapping_mul(1_000_003).wrapping_add(number);
        let mut of = |least: u64, most: u64| least + split_mix(&mut random) % (most - least + 1);
        let kind = TURNS[number as usize % TURNS.len()];
        let deed = match kind {
            Kind::Lose => Deed::Lose,
            Kind::Replicas => Deed::Replicas,
            Kind::Drain => Deed::Drain,
            Kind::Restart => Deed::Restart,
            Kind::Rolling => Deed::Rolling,
            Kind::Setting | Kind::Link => DEEDS[number as usize / 4 % DEEDS.len()],
        };
        let (shards, mb) = (of(2, 8), of(5, 25));
        let least_rate_mb = least_rate_mb(deed, shards * mb, nodes as u64);
        Case {
            number,
            nodes,
            kind,
            deed,
            shards,
            mb,
            rate_mb: of(2, 12).max(least_rate_mb),
            slots: of(1, 4),
            // A node that restarts is waited for: else it is one that is lost.
            delay_s: if deed.restarts() { 300 } else { of(0, 15) },
            away_s: if deed == Deed::Rolling { of(1, 4) } else { of(2, 12) },
            rtt_ms: if kind == Kind::Link { of(5, 40) } else { 0 },
            changes_rate: of(0, 1) == 0,
        }
    }

    pub fn name(&self) -> String {
        format!("{}.{}", self.nodes, self.number)
    }

    /// The setting that is changed before, and its value.
    pub fn changed(&self) -> Option<(&'static str, String)> {
        let changed = match self.changes_rate {
            true => (RATE, format!("{}mb", self.rate_mb * 3)),
            false => (SLOTS, (self.slots * 3).to_string()),
        };
        (self.kind == Kind::Setting).then_some(changed)
    }

    /// The settings that it begins with.
    pub fn settings(&self) -> [(&'static str, String); 2] {
        [(RATE, format!("{}mb", self.rate_mb)), (SLOTS, self.slots.to_string())]
    }

    pub fn words(&self) -> String {
        let Case { shards, mb, rate_mb, slots, .. } = self;
        let what = match self.deed {
            Deed::Lose => format!("a node dies, delay {} s", self.delay_s),
            Deed::Replicas => "a replica more".to_owned(),
            Deed::Drain => "a node is drained".to_owned(),
            Deed::Restart => format!("a node restarts after {} s", self.away_s),
            Deed::Rolling => format!(
                "{} nodes restart one after another, each after {} s",
                self.nodes - 1,
                self.away_s
            ),
        };
        let more = match self.changed() {
            Some((name, value)) => format!(" with {} {value}", name.rsplit('.').next().unwrap()),
            None if self.rtt_ms > 0 => format!(", {} ms between nodes", self.rtt_ms),
            None => String::new(),
        };
        format!("{what}{more}; {shards} shards of {mb} MB, {rate_mb}mb, {slots} slots")
    }
}

impl Deed {
    pub fn restarts(self) -> bool {
        matches!(self, Deed::Restart | Deed::Rolling)
    }

    /// Replicas that there are before.
    pub fn replicas(self) -> u64 {
        u64::from(self != Deed::Replicas)
    }
}

/// The rate of a node at which the copies are made in about [`COPYING_S_MAX`].
fn least_rate_mb(deed: Deed, all_mb: u64, nodes: u64) -> u64 {
    // A node holds that much; what is copied, and how many nodes copy at once.
    let on_a_node = all_mb * (1 + deed.replicas()) / nodes;
    let (moved, copying) = match deed {
        Deed::Lose => (on_a_node, nodes - 1),
        Deed::Drain => (on_a_node, 1),
        Deed::Replicas => (all_mb, nodes),
        Deed::Restart | Deed::Rolling => (0, 1),
    };
    // Copies are few: they do not spread evenly.
    (moved * 3 / 2).div_ceil(copying * COPYING_S_MAX)
}
