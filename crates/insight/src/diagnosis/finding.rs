//! A finding: what holds, the evidence for it, what lifts it, and what that would bring.

use std::borrow::Cow;
use std::collections::BTreeSet;

use record::observation::{Scope, Setting};
use record::units::parse_size;
use serde::Serialize;

use super::class::Class;
use super::rivals::Rivals;
use super::rule::Rule;
use super::threshold::GIVEN_BACK;
use crate::words::percent;

/// Something that holds transfers, copies or followers back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What holds.
    pub class: Class,
    /// What is held: `logs[3] to es-2`.
    pub subjects: Vec<String>,
    /// Whether all recoveries that it held were over by the last look: it holds nothing now.
    pub over: bool,
    /// Where it holds: a node, a remote cluster, a decider; empty where it has no place.
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
    #[serde(flatten)]
    pub next: Next,
    /// Other classes that the evidence does not rule out, and what would.
    pub doubt: Option<String>,
    /// The causes that were looked for as well, and what speaks against each; of several subjects, those of the
    /// strongest.
    pub ruled_out: Rivals,
    /// What it would propose, had no stronger finding proposed another value for the same setting.
    #[serde(skip)]
    pub(crate) yielded: Option<Box<(Lift, Option<Gain>)>>,
}

impl Finding {
    /// A finding with the cause and the action of a rule, still without subjects and evidence.
    pub(crate) fn of(
        rule: &Rule,
        place: impl Into<String>,
        strength: f64,
        sentence: impl Into<String>,
    ) -> Finding {
        Finding {
            class: rule.class,
            subjects: Vec::new(),
            over: false,
            place: place.into(),
            strength,
            sentence: sentence.into(),
            evidence: Vec::new(),
            lift: Some(Lift::action(rule.lift)),
            gain: None,
            next: Next::default(),
            doubt: None,
            ruled_out: Vec::new().into(),
            yielded: None,
        }
    }

    /// The class in words, and whether it held what is over: `rate limit, recovery ended`.
    pub fn label(&self) -> Cow<'static, str> {
        match self.over {
            true => format!("{}, recovery ended", self.class.label()).into(),
            false => self.class.label().into(),
        }
    }

    /// Whether it rests on a node that stands still for a part of the time.
    pub(crate) fn is_of_a_standstill(&self) -> bool {
        self.evidence.iter().any(|line| line.field == ANSWERS_LATE)
    }

    /// Whether it says only that a recovery goes slowly, and nothing of why.
    pub(super) fn is_without_a_cause(&self) -> bool {
        self.class == Class::Unknown && !self.is_of_a_standstill()
    }

    /// Whether all that it holds is among the recoveries of these names.
    pub(super) fn is_of(&self, names: &BTreeSet<String>) -> bool {
        !self.subjects.is_empty() && self.subjects.iter().all(|subject| names.contains(subject))
    }

    /// Whether another finding has the same cause in the same place. Followers of one leader stop for reasons of their
    /// own, each of which asks for something else. Copies that wait for a slot are one finding, at one of the nodes
    /// whose slots are taken: which one that is changes while nothing else does.
    pub(crate) fn names_the_same_as(&self, other: &Finding) -> bool {
        let is_there = self.place == other.place || self.class == Class::AllocationSlots;
        self.class == other.class && is_there && self.reason() == other.reason()
    }

    /// What a follower that stopped says of itself, without its name; none of another cause. What follows the reason is
    /// of each shard: the leases that are left, and which history it has.
    fn reason(&self) -> Option<&str> {
        let name = self.subjects.first().filter(|_| self.class == Class::FollowerStopped)?;
        let said = self.sentence.strip_prefix(name.as_str())?;
        let end = [". ", ", expected ["].iter().filter_map(|words| said.find(words)).min();
        Some(&said[..end.unwrap_or(said.len())])
    }
}

/// The APIs that evidence comes from.
pub(crate) const NODES_STATS: &str = "_nodes/stats";
pub(crate) const RECOVERY: &str = "_recovery";
pub(crate) const SETTINGS: &str = "_cluster/settings";
pub(crate) const STATS: &str = "stats";
pub(crate) const STATS_DCP: &str = "stats dcp";

/// The evidence that a node stands still for a part of the time.
pub(crate) const ANSWERS_LATE: &str = "time of its own answers";

/// The evidence that a node answers late where others answer soon, whatever keeps it.
pub(crate) const ANSWERS_BESIDE_OTHERS: &str = "time of answers beside other nodes";

/// Most lines of evidence that are taken from one list of the cluster's.
pub(crate) const LINES_SHOWN: usize = 3;

/// As many sentences as one reads; `more` tells how many others there are.
pub(crate) fn few(mut all: Vec<String>, more: &str) -> Vec<String> {
    let others = all.len().saturating_sub(LINES_SHOWN);
    all.truncate(LINES_SHOWN);
    all.extend((others > 0).then(|| format!("{more}: {others}")));
    all
}

/// One line of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The API that says it.
    pub api: Cow<'static, str>,
    /// The field.
    pub field: Cow<'static, str>,
    /// Its value, or how it changed.
    pub value: String,
}

impl Evidence {
    pub(crate) fn new(
        api: impl Into<Cow<'static, str>>,
        field: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Evidence {
        Evidence { api: api.into(), field: field.into(), value: value.into() }
    }

    /// What a setting is, and where it is set; `default` is the field's, where it is known.
    pub(crate) fn setting(name: &str, found: &Setting, default: Option<&str>) -> Evidence {
        let set_by = set_by(found.scope, &found.value, default);
        Evidence::new(SETTINGS, name.to_owned(), format!("{} ({set_by})", found.value))
    }
}

/// Where a setting is set, in words. A cluster lists what its nodes' configuration sets among its defaults: a value
/// there that is not the field's `default` was set by somebody.
fn set_by(scope: Scope, value: &str, default: Option<&str>) -> String {
    match (scope, default) {
        (Scope::Default, Some(default)) if !is_same(value, default) => {
            format!("in the nodes' configuration; {default} by default")
        }
        (Scope::Default, _) => "default".to_owned(),
        (Scope::Persistent, _) => "persistent".to_owned(),
        (Scope::Transient, _) => "transient".to_owned(),
    }
}

/// Whether two values of a setting are the same, maybe in other words: `40mb` and `41943040b`.
fn is_same(one: &str, other: &str) -> bool {
    let bytes = parse_size(one).ok();
    one == other || (bytes.is_some() && bytes == parse_size(other).ok())
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
    /// The field's default; none where it is not known.
    pub default: Option<String>,
    /// The value to try.
    pub to: Option<String>,
    /// What to do, in a sentence.
    pub action: String,
}

impl Lift {
    /// Something to do that is no setting.
    pub(crate) fn action(action: &str) -> Lift {
        Lift { action: action.to_owned(), ..Lift::default() }
    }

    /// A setting to change, from what it is to what is worth trying.
    pub(crate) fn setting(name: &str, found: Setting, to: Option<String>, action: &str) -> Lift {
        Lift {
            setting: Some(name.to_owned()),
            now: Some(found.value),
            set_by: Some(found.scope),
            default: None,
            to,
            action: action.to_owned(),
        }
    }

    /// The same with the field's default, where it is known.
    pub(crate) fn with_default(self, default: Option<&str>) -> Lift {
        Lift { default: default.map(str::to_owned), ..self }
    }

    /// The value to try, in words: `40mb, the default`, or `4mb (40mb is the default)`, which many want back; none
    /// without one.
    pub fn to_words(&self) -> Option<String> {
        let to = self.to.as_deref()?;
        let is_below = |default: &str| {
            let sizes = parse_size(to).ok().zip(parse_size(default).ok());
            sizes.is_some_and(|(to, default)| to < default)
        };
        Some(match self.default.as_deref() {
            Some(default) if is_same(to, default) => format!("{to}, the default"),
            Some(default) if is_below(default) => format!("{to} ({default} is the default)"),
            _ => to.to_owned(),
        })
    }

    /// The setting, its value with what is said `beside` that, and the value to try: `a.limit = 40mb, try 80mb`; none
    /// of an action.
    pub fn in_words(&self, beside: &str) -> Option<String> {
        let setting = self.setting.as_ref()?;
        let now = self.now.as_ref().map_or_else(String::new, |now| format!(" = {now}{beside}"));
        let to = self.to_words().map_or_else(String::new, |to| format!(", try {to}"));
        Some(format!("{setting}{now}{to}"))
    }

    /// Where the value of today is set, in words; none where that is not known.
    pub fn set_by_words(&self) -> Option<String> {
        Some(set_by(self.set_by?, self.now.as_deref()?, self.default.as_deref()))
    }
}

/// The limit after the one that holds. Its keys stand beside those of its finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Next {
    /// What it is, in words; none where nothing is said of it.
    #[serde(rename = "next")]
    pub sentence: Option<String>,
    /// Its class; none where nothing that was seen tells.
    #[serde(rename = "next_class")]
    pub class: Option<Class>,
    /// Where it holds, in times the rate of today; none where that is not reckoned.
    #[serde(rename = "next_factor")]
    pub factor: Option<f64>,
}

impl Next {
    /// A limit whose class nothing tells.
    pub(crate) fn words(sentence: impl Into<String>) -> Next {
        Next { sentence: Some(sentence.into()), ..Next::default() }
    }

    /// A limit of a class, which is reckoned to hold at so many times the rate of today.
    pub(crate) fn at(factor: f64, class: Class, sentence: String) -> Next {
        Next { sentence: Some(sentence), class: Some(class), factor: Some(factor.max(1.0)) }
    }
}

/// What lifting brings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// How many times the rate of today it brings, at most.
    pub factor: f64,
    /// How that is reckoned.
    pub formula: String,
}

impl Gain {
    /// What comes back of a share of the time that was lost, of which no more counts than [`GIVEN_BACK`].
    pub(crate) fn of_lost_time(share: f64) -> Gain {
        let counted = share.min(GIVEN_BACK.value);
        let formula = format!("1 / (1 - {})", percent(counted));
        Gain { factor: 1.0 / (1.0 - counted), formula }
    }
}
