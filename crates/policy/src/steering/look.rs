//! What a cluster shows at one moment. Plain data: whoever watches fills it in.

use std::time::Duration;

use record::observation::Setting;
use world::Time;

/// So many times the rate is much to be promised.
const MUCH: f64 = 3.0;
/// A verdict on slots promises what twice as many bring, or less where a ceiling is nearer.
const TWICE: f64 = 2.0;

/// What a setting rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Bytes a second that the recoveries of a node move at most.
    Rate,
    /// Chunks that one recovery has in flight.
    Chunks,
    /// Bytes of a chunk.
    ChunkSize,
    /// Batches of operations that one recovery has in flight.
    Operations,
    /// Recoveries of a node at once.
    Slots,
}

/// A setting that may be changed, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lever {
    /// Its name.
    pub name: String,
    /// What it rules.
    pub role: Role,
    /// Its value, and where it is set.
    pub setting: Setting,
    /// The highest value that this release takes; none where that is not known.
    pub most: Option<u64>,
    /// Whether it is read when a recovery begins, so that only later recoveries obey it.
    pub later_only: bool,
}

/// Where the limit lies that holds recoveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The limiter of a node.
    Rate,
    /// What is in flight.
    InFlight,
    /// Batches of operations in flight.
    Operations,
    /// Recovery slots.
    Slots,
    /// The path, which carries no more for any reason that is seen: nothing shows that it would not carry more either.
    Path,
    /// Somebody beside a node, who takes its cores or its disk: of more that is in flight, more may wait for them at
    /// once.
    Neighbour,
    /// Something that no setting of these lifts: disks, cores.
    Elsewhere,
    /// Nobody knows.
    Unknown,
}

impl Holds {
    /// What is worth changing, in this order.
    pub fn roles(self) -> &'static [Role] {
        match self {
            Holds::Rate => &[Role::Rate],
            Holds::InFlight | Holds::Path | Holds::Neighbour | Holds::Unknown => {
                &[Role::Chunks, Role::ChunkSize]
            }
            Holds::Operations => &[Role::Operations],
            // A recovery that is over sooner leaves its slot sooner.
            Holds::Slots => &[Role::Slots, Role::Chunks, Role::ChunkSize],
            Holds::Elsewhere => &[],
        }
    }

    /// Whether a verdict's gain is that of raising such a setting; otherwise it is tried, and nobody knows what it
    /// brings.
    fn promises(self, role: Role) -> bool {
        match self {
            Holds::Unknown | Holds::Path | Holds::Neighbour => false,
            Holds::Slots => role == Role::Slots,
            _ => true,
        }
    }
}

/// What was made out, one for each finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Where the limit lies.
    pub holds: Holds,
    /// Its name: `rate limit`.
    pub label: String,
    /// The setting that would lift it; none where none was named.
    pub setting: Option<String>,
    /// How many times today's rate lifting it brings, at most; none where that is not known.
    pub gain: Option<f64>,
    /// Where the limit lies that holds next; none where nobody can tell.
    pub then: Option<Holds>,
}

impl Verdict {
    /// The verdict that stands in where none is known: a limit that cannot be seen may hold recoveries all the same.
    pub(super) fn unseen() -> Verdict {
        let label = "nothing visible".to_owned();
        Verdict { holds: Holds::Unknown, label, setting: None, gain: None, then: None }
    }

    /// Whether a limit holds next that raising another setting lifts, or may lift, however far this one is raised.
    pub(super) fn is_held_next(&self) -> bool {
        self.is_set_next() || self.then == Some(Holds::Neighbour)
    }

    /// Whether that limit is a setting's own, which lets no more through than it is set to. A neighbour is no such
    /// bound: he comes and goes, and loses by what recoveries take.
    fn is_set_next(&self) -> bool {
        matches!(self.then, Some(Holds::Rate | Holds::InFlight))
    }

    /// Whether a large step of a setting is safe. Chunks grow in small ones where they are known to hold: on some links
    /// ever larger ones bring less again.
    pub(super) fn is_safe(&self, role: Role) -> bool {
        let is_much = self.gain.is_some_and(|gain| gain >= MUCH);
        // Where nobody knows what a raise brings, a large one tells it sooner.
        let is_tried = matches!(self.holds, Holds::Unknown | Holds::Neighbour | Holds::Slots);
        match role {
            Role::Rate => is_much || self.is_set_next(),
            Role::Chunks => is_much || self.is_set_next() || is_tried,
            Role::ChunkSize => is_tried,
            Role::Slots => self.is_open(),
            Role::Operations => false,
        }
    }

    /// Whether slots hold, and no ceiling is seen above what twice as many bring.
    fn is_open(&self) -> bool {
        self.holds == Holds::Slots && self.gain.is_some_and(|gain| gain >= TWICE)
    }

    /// How many times today's rate a raise by `times` brings, at most; none where nobody can say.
    pub(super) fn promised(&self, role: Role, times: f64) -> Option<f64> {
        let gain = self.gain.filter(|_| !self.is_open()).unwrap_or(times);
        self.holds.promises(role).then(|| gain.min(times))
    }

    /// Whether it speaks of the recoveries that a setting rules: those within a cluster, or those from another one.
    /// Slots are of both.
    pub(super) fn is_of(&self, lever: &Lever) -> bool {
        let family = |name: &str| name.rsplit_once('.').map_or("", |(family, _)| family).to_owned();
        let named = self.setting.as_ref().filter(|_| self.holds != Holds::Slots);
        named.is_none_or(|setting| family(setting) == family(&lever.name))
    }
}

/// What the users of the cluster feel. What is not told is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreground {
    /// Mean time of a search since the look before, on the node where it is longest, in milliseconds.
    pub search_ms: Option<f64>,
    /// The same of an operation that is indexed.
    pub indexing_ms: Option<f64>,
    /// How long each query of the guard took since the look before, in milliseconds.
    pub probes_ms: Vec<f64>,
    /// Queries of the guard that failed since the look before.
    pub probes_failed: u32,
    /// How the last of those failed.
    pub probe_error: Option<String>,
    /// Requests that were refused for want of room since the look before.
    pub rejected: u64,
    /// How often breakers tripped since the look before.
    pub tripped: u64,
    /// Use of the cores of the busiest node, 0 to 1.
    pub cpu: Option<f64>,
    /// Share of the time in garbage collections, on the node where it is largest.
    pub gc: Option<f64>,
}

impl Foreground {
    /// Whether anybody was seen to search or to index.
    pub fn is_idle(&self) -> bool {
        self.search_ms.is_none() && self.indexing_ms.is_none() && self.probes_ms.is_empty()
    }
}

/// What the cluster shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// When.
    pub at: Time,
    /// Bytes that all recoveries have moved since the first look.
    pub moved_bytes: u64,
    /// Operations that all recoveries have replayed since the first look.
    pub replayed_ops: u64,
    /// The recoveries that go on, each by when it was first seen.
    pub active: Vec<Time>,
    /// Copies that wait for a recovery.
    pub waiting: u32,
    /// The nodes that take them: copies recover onto each of these now, or will once a slot is free.
    pub targets: u32,
    /// How long what is in flight takes to pass.
    pub passes_in: Duration,
    /// What holds recoveries, the strongest first.
    pub verdicts: Vec<Verdict>,
    /// The settings that may be changed.
    pub levers: Vec<Lever>,
    /// Those that might be changed at an earlier look, and rule nothing that goes on now. Somebody else may change
    /// them.
    pub resting: Vec<Lever>,
    /// Whether the values of the settings are of this look, and not of an earlier one.
    pub settings_are_new: bool,
    /// What users feel.
    pub foreground: Foreground,
}
