//! What is found, and what speaks for it.

use record::observation::Scope;
use serde::Serialize;

use super::Class;

/// Something that holds transfers, copies or followers back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What holds.
    pub class: Class,
    /// What is held: `logs[3] to es-2`.
    pub subjects: Vec<String>,
    /// Where it holds: a node, a remote cluster, a decider; empty where it is nowhere in particular.
    pub place: String,
    /// How sure and how much, 0 to 1: the share of the time or of the ceiling that the evidence shows.
    pub strength: f64,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// The setting or action that lifts it.
    pub lift: Option<Lift>,
    /// What lifting it brings.
    pub gain: Option<Gain>,
    /// The limit after this one.
    pub next: Option<String>,
    /// Other classes that the evidence does not rule out, and what would.
    pub doubt: Option<String>,
}

/// One line of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The API that says it.
    pub api: String,
    /// The field.
    pub field: String,
    /// Its value or what became of it.
    pub value: String,
}

impl Evidence {
    pub(crate) fn new(api: &str, field: &str, value: impl Into<String>) -> Evidence {
        Evidence { api: api.to_owned(), field: field.to_owned(), value: value.into() }
    }
}

/// What lifts a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lift {
    /// The setting; none for an action.
    pub setting: Option<String>,
    /// Its value today.
    pub now: Option<String>,
    /// Where that value is set.
    pub set_by: Option<Scope>,
    /// The value to try.
    pub to: Option<String>,
    /// What to do, in a sentence.
    pub action: String,
}

/// What lifting brings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Times the rate of today, at most.
    pub factor: f64,
    /// How that is reckoned.
    pub formula: String,
}
