//! What a run was: enough to repeat it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Still running.
    Running,
    /// Every step ran.
    Complete,
    /// Stopped by the user; what is there is readable.
    Interrupted,
    /// A step failed: `failure` says why, or else the last note.
    Failed,
    /// Nobody writes it any more, and nobody said how it ended: it was killed, or failed; never written.
    BrokenOff,
    #[default]
    /// The manifest cannot be read; never written.
    Unknown,
}

/// The machine a run took place on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system and release.
    pub os: String,
    /// Processor name.
    pub cpu: String,
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory_bytes: u64,
}

/// The link between the clusters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Round-trip time.
    pub rtt_ms: f64,
    /// Rate in each direction.
    pub rate_bytes_per_s: u64,
    /// Window of one connection, where bounded.
    pub window_bytes: Option<u64>,
    /// What the emulator carried on this machine with neither delay nor rate; none if not measured.
    pub ceiling_bytes_per_s: Option<u64>,
}

/// A node that took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Cluster the node belongs to.
    pub cluster: String,
    /// Node name.
    pub name: String,
}

/// One combination of settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantInfo {
    /// Name, unique in the plan.
    pub name: String,
    /// Settings by their field names, as resolved.
    pub settings: BTreeMap<String, String>,
    /// Published seconds, where a row is published.
    pub published_s: Option<f64>,
    /// The published row that it is compared with.
    #[serde(default)]
    pub published: Option<PublishedInfo>,
    /// The variant that its loads are compared with, where the plan says it.
    #[serde(default, rename = "beside")]
    pub baseline: Option<String>,
    /// What the virtual world was like; empty in the real one.
    #[serde(default)]
    pub models: Vec<ModelInfo>,
}

/// A published row beside a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedInfo {
    /// File and column of the figure.
    pub figure: String,
    /// The columns that tell the row from others.
    pub row: String,
    /// The figure as it is printed.
    pub text: String,
    /// Bytes a second of a node, where that is published.
    pub node_bytes_per_s: Option<f64>,
    /// Figures of a load by their names, where those are published.
    #[serde(default)]
    pub load: BTreeMap<String, f64>,
    /// What our figure beside it is worth.
    #[serde(alias = "calibrated", deserialize_with = "kind_or_calibrated")]
    pub kind: Kind,
}

/// What our figure beside a published one is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A value of the virtual world was chosen by this row, or by one that comes to the same arithmetic.
    Calibrated,
    /// It is arithmetic on a setting: bytes over a throttle.
    Implied,
    /// Nothing was chosen by it.
    Predicted,
}

impl Kind {
    /// Every kind, as tables list them.
    pub const ALL: [Kind; 3] = [Kind::Predicted, Kind::Calibrated, Kind::Implied];

    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Calibrated => "calibrated",
            Kind::Implied => "implied",
            Kind::Predicted => "predicted",
        }
    }
}

/// Earlier records say `calibrated: true` or `false`.
fn kind_or_calibrated<'de, D: Deserializer<'de>>(from: D) -> Result<Kind, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Kind(Kind),
        Calibrated(bool),
    }
    Ok(match Either::deserialize(from)? {
        Either::Kind(kind) => kind,
        Either::Calibrated(true) => Kind::Calibrated,
        Either::Calibrated(false) => Kind::Predicted,
    })
}

/// A parameter of the virtual world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Which hosts it is for: `all`, `leader`, `follower`.
    pub hosts: String,
    /// Name.
    pub name: String,
    /// Value, with its unit where it has one.
    pub value: String,
    /// Unit.
    pub unit: String,
    /// Where the value comes from.
    pub source: String,
    /// The published rows that it was fitted to.
    pub calibrated_on: Option<String>,
}

/// What a twin is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinQuestion {
    /// In words: `n2 lost for good`.
    pub asked: String,
    /// The word for what is waited for: `green`, `empty` or `balanced`.
    pub until: String,
}

impl TwinQuestion {
    /// The name of the variant in which no setting is changed.
    pub const AS_IT_IS: &'static str = "as it is";
    /// What is waited for where some copies find no place: that all others have one.
    pub const PLACED: &'static str = "placed";
    /// What a note says of a variant in which some copies find no place.
    pub const STAYS: &'static str = "the cluster stays as it is";
}

/// `manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format version, [`crate::FORMAT`] when written by this build.
    pub format: u32,
    /// Run id, also the directory's name.
    pub run: String,
    /// Plan name.
    pub plan: String,
    /// One sentence of the plan about itself.
    pub about: String,
    /// The whole plan as it was read.
    pub plan_text: String,
    /// `embedded`, `virtual`, ...
    pub target: String,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// Version of narrows.
    pub version: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Scale of the corpus; 1 is the plan's own size.
    pub scale: f64,
    /// How it ended.
    pub status: Status,
    /// Why it failed, as it was told; none where it did not, and in runs of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The link, where there is one.
    pub link: Option<LinkInfo>,
    /// Nodes.
    pub nodes: Vec<NodeInfo>,
    /// Variants in the order of the plan.
    pub variants: Vec<VariantInfo>,
    /// The challenge of a track, where a track was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// The parameters that were given to a track, where one was run; none in runs of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_params: Option<BTreeMap<String, String>>,
    /// What was asked, where a twin was run; none in runs of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<TwinQuestion>,
    /// What is not as in the plan because of the place where it ran, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

impl Manifest {
    /// In place of one that cannot be read.
    pub fn unknown(run: &str, format: u32) -> Manifest {
        let unknown = || "unknown".to_owned();
        Manifest {
            format,
            run: run.to_owned(),
            plan: unknown(),
            target: unknown(),
            version: unknown(),
            scale: 1.0,
            machine: Machine { os: unknown(), cpu: unknown(), ..Machine::default() },
            ..Manifest::default()
        }
    }
}
