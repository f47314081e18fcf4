//! Steps of a plan, from plain data to values with units.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use record::units::{parse_duration, parse_size};
use toml::{Spanned, Value};

use super::Plan;
use super::action::{Action, Lasts};
use super::background::{Background, Runs};
use super::resolved::{Cluster, Index, Peers, Step};
use crate::Error;
use crate::choices::unknown;

const DOCUMENTS_PER_S: RangeInclusive<i64> = 1..=1_000_000_000;
const DOCUMENT_SIZES: RangeInclusive<u64> = 1..=100 << 20;
/// Updates and deletes need documents that are there.
const SHARES: RangeInclusive<f64> = 0.0..=0.4;
const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(100 * 86_400);

const ONE_WAY: &str = "a plan follows its indices by their names or by a pattern: \"follow\" or auto_follow, not both";

/// Steps with options that are not numbers alone, and those options.
const OPTIONS: [(&str, &[&str]); 8] = [
    ("auto_follow", &["name", "patterns", "exclude"]),
    ("index_in_background", &["documents_per_s", "updates", "deletes", "full"]),
    ("recover_peers", &["restart"]),
    ("wait", &["lasts", "full"]),
    ("wait_for_documents", &["written", "full"]),
    ("wait_for_lag", &["under", "within", "full"]),
    ("fault", &["kind", "node", "factor", "processes", "free", "by", "lasts", "full"]),
    ("restart_at_random", &["cluster", "nodes", "every", "pause", "full"]),
];
/// What a step's `full` has where it is a table.
const FULL_OPTIONS: [(&str, &[&str]); 2] = [
    ("index_in_background", &["documents_per_s", "document_size"]),
    ("restart_at_random", &["every", "pause"]),
];

/// A step with its options, as it is written.
pub(super) struct Written<'a> {
    pub(super) plan: &'a Plan,
    entry: &'a Spanned<Value>,
    pub(super) name: &'a str,
    options: BTreeMap<&'a str, &'a Value>,
}

/// What steps are checked against.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The cluster that has the data.
    pub(super) leader: Cluster,
    /// What faults may befall.
    pub(super) fault_nodes: &'a [String],
    /// What numbers of documents are multiplied by.
    pub(super) scale: f64,
}

/// What a written step means.
enum Meaning {
    Step(Step),
    Action(Action),
}

impl Plan {
    /// The steps, and in a plan that follows what happens in it, in order.
    pub(super) fn steps(&self, around: Around<'_>) -> Result<(Vec<Step>, Vec<Action>), Error> {
        let written = &self.document.steps;
        if written.get_ref().is_empty() {
            return Err(self.error(written.span(), "a plan has at least one step"));
        }
        let mut meanings = Vec::new();
        for entry in written.get_ref() {
            let step = Written::read(self, entry)?;
            meanings.push((entry, step.meaning(around)?));
        }
        let follows = meanings.iter().any(|(_, meaning)| match meaning {
            Meaning::Step(step) => *step == Step::Follow,
            Meaning::Action(action) => action.follows(),
        });
        let (mut steps, mut actions) = (Vec::new(), Vec::new());
        for (entry, meaning) in meanings {
            let step = match meaning {
                Meaning::Step(Step::IndexInBackground(rate)) if follows => {
                    actions.push(Action::IndexInBackground(rate));
                    continue;
                }
                Meaning::Step(Step::IndexInBackground(rate))
                    if rate.changes() || rate.full.is_some() =>
                {
                    let what =
                        if rate.changes() { "updates and deletes" } else { "has a full rate" };
                    let message =
                        format!("only a plan that follows {what}; add the step \"follow\"");
                    return Err(self.error(entry.span(), message));
                }
                Meaning::Step(step) => step,
                Meaning::Action(action) if follows => {
                    if matches!(action, Action::AutoFollow(_)) && !steps.contains(&Step::Follow) {
                        steps.push(Step::Follow);
                    }
                    actions.push(action);
                    continue;
                }
                Meaning::Action(_) => {
                    let message = format!(
                        "the steps {} are for a plan that follows; add the step \"follow\"",
                        Action::NAMES.join(", ")
                    );
                    return Err(self.error(entry.span(), message));
                }
            };
            if steps.iter().any(|other: &Step| other.name() == step.name()) {
                let by_pattern =
                    actions.iter().any(|action| matches!(action, Action::AutoFollow(_)));
                let message = match by_pattern && step == Step::Follow {
                    true => ONE_WAY.to_owned(),
                    false => format!("the step \"{}\" stands here twice", step.name()),
                };
                return Err(self.error(entry.span(), message));
            }
            if step == Step::Follow {
                actions.push(Action::Follow);
            }
            steps.push(step);
        }
        self.check_together(&steps, &actions)?;
        Ok((steps, actions))
    }

    /// Whether steps go together, and with the rest of the plan.
    fn check_together(&self, steps: &[Step], actions: &[Action]) -> Result<(), Error> {
        let has = |name: &str| steps.iter().any(|step| step.name() == name);
        let measured: Vec<&str> = Step::NAMES
            .into_iter()
            .filter(|name| Step::MEASURED.contains(name) && has(name))
            .collect();
        let lacks_follower = self.document.follower.is_none() || self.document.link.is_none();
        let indices = &self.document.index;
        let waits_first = actions
            .iter()
            .take_while(|action| !action.follows())
            .any(|action| matches!(action, Action::WaitForLag { .. }));
        let wrong = match measured.as_slice() {
            [one, other, ..] => {
                Some(format!("a plan has the step \"{one}\" or \"{other}\", not both"))
            }
            [_] if has("move") != self.document.bucket.is_some() => {
                Some("the step \"move\" and a [bucket] need each other".to_owned())
            }
            [across] if !matches!(*across, "recover_peers" | "load" | "move") && lacks_follower => {
                Some(format!("the step \"{across}\" needs a [follower] and a [link]"))
            }
            _ if has("load") && !self.has_load() => {
                Some("the step \"load\" needs a [load] that says which".to_owned())
            }
            _ if has("index_in_background") && (measured.is_empty() || has("move")) => Some(
                "the step \"index_in_background\" goes on while \"recover\", \"recover_peers\", \"add_replica\", \
                 \"restore\", \"load\" or \"follow\" does; add one of them"
                    .to_owned(),
            ),
            _ if has("follow") && indices.iter().any(|index| index.full.is_some()) => Some(
                "a plan that follows writes every document, so that each can be looked for at the end; take full \
                 out of [[index]]"
                    .to_owned(),
            ),
            _ if waits_first => {
                Some("nobody lags before the step \"follow\"; put wait_for_lag after it".to_owned())
            }
            _ => against_each_other(actions, has("index")).map(str::to_owned),
        };
        match wrong {
            Some(message) => Err(self.error(self.document.steps.span(), message)),
            None => Ok(()),
        }
    }

    /// Whether indices fit what happens to them: those that roll over are followed by a pattern, and never changed.
    pub(super) fn check_indices(&self, indices: &[Index], actions: &[Action]) -> Result<(), Error> {
        let pattern = actions.iter().find_map(|action| match action {
            Action::AutoFollow(pattern) => Some(pattern),
            _ => None,
        });
        let changes =
            |action: &Action| matches!(action, Action::IndexInBackground(rate) if rate.changes());
        for (index, table) in indices.iter().zip(&self.document.index) {
            let first = index.first_name();
            let rolls = index.rollover.is_some();
            let wrong = match pattern {
                None if rolls => {
                    "an index that rolls over is followed by a pattern, as in { auto_follow = { patterns = [\"logs-*\"] } }"
                        .to_owned()
                }
                Some(pattern) if !pattern.fits(&first) => {
                    format!("no pattern of auto_follow fits {first}, so that nobody would follow it")
                }
                _ if rolls && actions.iter().any(changes) => {
                    "an index that rolls over takes new documents alone: a document that is updated or deleted may be in \
                     the index before; take updates and deletes out of index_in_background"
                        .to_owned()
                }
                _ => continue,
            };
            return Err(self.error(table.name.span(), wrong));
        }
        Ok(())
    }

    /// Whether the plan or one of its variants says what load is sent.
    fn has_load(&self) -> bool {
        let of_variants = self.document.variant.get_ref();
        self.document.load.is_some() || of_variants.iter().any(|variant| variant.load.is_some())
    }
}

/// What actions say that cannot be so together.
fn against_each_other(actions: &[Action], indexes: bool) -> Option<&'static str> {
    let patterns = actions.iter().filter(|action| matches!(action, Action::AutoFollow(_))).count();
    let at = |is: fn(&Action) -> bool| actions.iter().position(is);
    let writes = at(|action| matches!(action, Action::IndexInBackground(_)));
    let waits = at(|action| matches!(action, Action::WaitForDocuments(_)));
    match patterns {
        0 => {}
        1 if actions.contains(&Action::Follow) => return Some(ONE_WAY),
        1 if indexes => {
            return Some(
                "auto_follow follows what is made after it, and \"index\" comes before: take \"index\" out, and write with \
                 index_in_background",
            );
        }
        1 if !matches!(actions.first(), Some(Action::AutoFollow(_))) => {
            return Some("auto_follow follows what is made after it; put it first after \"start\"");
        }
        1 => {}
        _ => return Some("the step \"auto_follow\" stands here twice; give it several patterns"),
    }
    (waits.is_some() && (writes.is_none() || writes > waits)).then_some(
        "wait_for_documents waits for what is written in the background; put index_in_background before it",
    )
}

impl<'a> Written<'a> {
    fn read(plan: &'a Plan, entry: &'a Spanned<Value>) -> Result<Written<'a>, Error> {
        let wrong = |message: String| plan.error(entry.span(), message);
        let (name, options) = match entry.get_ref() {
            Value::String(name) => (name.as_str(), None),
            Value::Table(table) => match table.iter().next() {
                Some((name, Value::Table(options))) if table.len() == 1 => {
                    (name.as_str(), Some(options))
                }
                // A time is all that there is to say of a wait.
                Some((name, Value::String(_))) if table.len() == 1 && name == "wait" => {
                    (name.as_str(), Some(table))
                }
                _ => {
                    let example = "{ recover_peers = { restart = 4 } }";
                    return Err(wrong(format!(
                        "a step is a name, or a table of one name with its options, as {example}"
                    )));
                }
            },
            other => {
                let found = other.type_str();
                return Err(wrong(format!("a step is a name or a table, found {found}")));
            }
        };
        let found = OPTIONS.iter().find(|(step, _)| *step == name);
        let known = found.map_or(&[][..], |(_, known)| known);
        let mut options: BTreeMap<&str, &Value> =
            options.into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect();
        if let Some(Value::String(_)) = options.get("wait") {
            let lasts = options.remove("wait").expect("it was just there");
            options.insert("lasts", lasts);
        }
        for key in options.keys() {
            if !known.contains(key) {
                let said = format!("the step \"{name}\" has no option");
                return Err(wrong(match known {
                    [] => format!("{said}s, found \"{key}\""),
                    known => unknown(&said, key, "Options", known),
                }));
            }
        }
        Ok(Written { plan, entry, name, options })
    }

    /// The table of what is so in virtual time, where the step has one.
    pub(super) fn full(&self) -> Result<Option<Written<'a>>, Error> {
        let Some(full) = self.options.get("full") else { return Ok(None) };
        let found = FULL_OPTIONS.iter().find(|(step, _)| *step == self.name);
        let known = found.map_or(&[][..], |(_, known)| known);
        let table = full.as_table().ok_or_else(|| {
            self.wrong(format!("full is a table, with {} for --on virtual", known.join(" and ")))
        })?;
        let options: BTreeMap<&str, &Value> =
            table.iter().map(|(key, value)| (key.as_str(), value)).collect();
        if let Some(key) = options.keys().find(|key| !known.contains(key)) {
            let said = format!("full of the step \"{}\" has no option", self.name);
            return Err(self.wrong(unknown(&said, key, "Options", known)));
        }
        Ok(Some(Written { options, ..*self }))
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        self.plan.error(self.entry.span(), message)
    }

    pub(super) fn whole(&self, key: &str) -> Result<Option<Spanned<i64>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let whole = value.as_integer();
        let whole = whole.ok_or_else(|| self.wrong(format!("{key} is a whole number")))?;
        Ok(Some(Spanned::new(self.entry.span(), whole)))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<Spanned<f64>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let number = number.ok_or_else(|| self.wrong(format!("{key} is a number")))?;
        Ok(Some(Spanned::new(self.entry.span(), number)))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<Spanned<String>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(format!("{key} is a text")))?;
        Ok(Some(Spanned::new(self.entry.span(), text.to_owned())))
    }

    /// Names, one at least where it is given.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let list = value.as_array().filter(|list| !list.is_empty());
        let texts = list.and_then(|list| {
            list.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let wrong = || self.wrong(format!("{key} is a list of names, as [\"logs-*\"]"));
        texts.map(Some).ok_or_else(wrong)
    }

    /// A share, in thousandths.
    fn in_1000(&self, key: &str) -> Result<u32, Error> {
        let Some(share) = self.number(key)? else { return Ok(0) };
        self.plan.within(key, &share, share.get_ref(), &SHARES, f64::to_string)?;
        Ok((share.get_ref() * 1000.0).round() as u32)
    }

    pub(super) fn time(&self, key: &str) -> Result<Option<Duration>, Error> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let time = self.plan.unit(&text, parse_duration)?;
        self.plan.within(key, &text, &time, &TIMES, |time| format!("{time:?}"))?;
        Ok(Some(time))
    }

    /// The time of `key`, and in virtual time that of `full` where it is given.
    pub(super) fn lasts(&self, key: &str) -> Result<Option<Lasts>, Error> {
        let (real, full) = (self.time(key)?, self.time("full")?);
        match (real, full) {
            (Some(real), full) => Ok(Some(Lasts { real, full: full.unwrap_or(real) })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(self.wrong(format!(
                "full is the time for --on virtual; say with {key} what it is on real processes"
            ))),
        }
    }

    fn meaning(&self, around: Around<'_>) -> Result<Meaning, Error> {
        Ok(Meaning::Step(match self.name {
            "start" => Step::Start,
            "index" => Step::Index,
            "recover" => Step::Recover,
            "add_replica" => Step::AddReplica,
            "restore" => Step::Restore,
            "load" => Step::Load,
            "fill" => Step::Fill,
            "move" => Step::Move,
            "follow" => Step::Follow,
            "verify" => Step::Verify,
            "index_in_background" => Step::IndexInBackground(self.background()?),
            "recover_peers" => Step::RecoverPeers(self.peers(around.leader)?),
            _ => return Ok(Meaning::Action(self.action(around)?)),
        }))
    }

    fn background(&self) -> Result<Background, Error> {
        let rate = self.whole("documents_per_s")?.ok_or_else(|| {
            let example = "{ index_in_background = { documents_per_s = 80_000 } }";
            self.wrong(format!("say how many documents a second, as {example}"))
        })?;
        let background = Background {
            documents_per_s: self.plan.number("documents_per_s", &rate, DOCUMENTS_PER_S)?,
            updates_in_1000: self.in_1000("updates")?,
            deletes_in_1000: self.in_1000("deletes")?,
            full: self.full()?.map(|full| full.runs()).transpose()?,
        };
        if background.full.is_some() && background.changes() {
            let message = "what is written at a full rate exists only as a number, and is never changed; take updates and \
                           deletes out, or full";
            return Err(self.wrong(message));
        }
        Ok(background)
    }

    fn runs(&self) -> Result<Runs, Error> {
        let rate = self.whole("documents_per_s")?;
        let rate = rate.ok_or_else(|| self.wrong("say in full how many documents_per_s"))?;
        let size = match self.text("document_size")? {
            Some(text) => {
                let bytes = self.plan.unit(&text, parse_size)?;
                let show = |bytes: &u64| record::units::show_size_setting(*bytes);
                self.plan.within("document_size", &text, &bytes, &DOCUMENT_SIZES, show)?;
                Some(bytes)
            }
            None => None,
        };
        Ok(Runs {
            documents_per_s: self.plan.number("documents_per_s", &rate, DOCUMENTS_PER_S)?,
            document_bytes: size,
        })
    }

    fn peers(&self, leader: Cluster) -> Result<Peers, Error> {
        let Some(nodes) = self.whole("restart")? else { return Ok(Peers::Replicas) };
        // The first node manages and stays up.
        let what = format!("restart on {} nodes, of which the first stays up", leader.nodes);
        let nodes = self.plan.number(&what, &nodes, 1..=i64::from(leader.nodes) - 1)?;
        Ok(Peers::Restart { nodes })
    }
}
