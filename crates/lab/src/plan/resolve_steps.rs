//! Steps of a plan, from plain data to values with units.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use record::units::parse_duration;
use toml::{Spanned, Value};

use super::Plan;
use super::action::{Action, Lasts};
use super::document::FaultTable;
use super::resolved::{Background, Cluster, Peers, Step};
use crate::Error;
use crate::choices::unknown;

const DOCUMENTS_PER_S: RangeInclusive<i64> = 1..=1_000_000_000;
const OPERATIONS: RangeInclusive<i64> = 1..=1_000_000_000_000;
/// Updates and deletes need documents that are there.
const SHARES: RangeInclusive<f64> = 0.0..=0.4;
const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(100 * 86_400);
/// How long a lag is waited for where a plan does not say it.
const WITHIN: Duration = Duration::from_secs(600);

/// Steps with options that are not numbers alone, and those options.
const OPTIONS: [(&str, &[&str]); 5] = [
    ("index_in_background", &["documents_per_s", "updates", "deletes"]),
    ("recover_peers", &["restart"]),
    ("wait", &["lasts", "full"]),
    ("wait_for_lag", &["under", "within", "full"]),
    ("fault", &["kind", "node", "factor", "processes", "free", "by", "lasts", "full"]),
];

/// A step with its options, as it is written.
struct Written<'a> {
    plan: &'a Plan,
    entry: &'a Spanned<Value>,
    name: &'a str,
    options: BTreeMap<&'a str, &'a Value>,
}

/// What a written step means.
enum Meaning {
    Step(Step),
    Action(Action),
}

impl Plan {
    /// The steps, and in a plan that follows what happens in it, in order.
    pub(super) fn steps(
        &self,
        leader: Cluster,
        fault_nodes: &[String],
    ) -> Result<(Vec<Step>, Vec<Action>), Error> {
        let written = &self.document.steps;
        if written.get_ref().is_empty() {
            return Err(self.error(written.span(), "a plan has at least one step"));
        }
        let mut meanings = Vec::new();
        for entry in written.get_ref() {
            let step = Written::read(self, entry)?;
            meanings.push((entry, step.meaning(leader, fault_nodes)?));
        }
        let follows =
            meanings.iter().any(|(_, meaning)| matches!(meaning, Meaning::Step(Step::Follow)));
        let (mut steps, mut actions) = (Vec::new(), Vec::new());
        for (entry, meaning) in meanings {
            let step = match meaning {
                Meaning::Step(Step::IndexInBackground(rate)) if follows => {
                    actions.push(Action::IndexInBackground(rate));
                    continue;
                }
                Meaning::Step(Step::IndexInBackground(rate)) if rate.changes() => {
                    let message =
                        "only a plan that follows updates and deletes; add the step \"follow\"";
                    return Err(self.error(entry.span(), message));
                }
                Meaning::Step(step) => step,
                Meaning::Action(action) if follows => {
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
                let message = format!("the step \"{}\" stands here twice", step.name());
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
            .take_while(|action| **action != Action::Follow)
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
            _ if has("index_in_background") && !has("recover") => Some(
                "the step \"index_in_background\" goes on while \"recover\" or \"follow\" does; add \
                 one of them"
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
            _ => None,
        };
        match wrong {
            Some(message) => Err(self.error(self.document.steps.span(), message)),
            None => Ok(()),
        }
    }

    /// Whether the plan or one of its variants says what load is sent.
    fn has_load(&self) -> bool {
        let of_variants = self.document.variant.get_ref();
        self.document.load.is_some() || of_variants.iter().any(|variant| variant.load.is_some())
    }
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

    fn wrong(&self, message: impl Into<String>) -> Error {
        self.plan.error(self.entry.span(), message)
    }

    fn whole(&self, key: &str) -> Result<Option<Spanned<i64>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let whole = value.as_integer();
        let whole = whole.ok_or_else(|| self.wrong(format!("{key} is a whole number")))?;
        Ok(Some(Spanned::new(self.entry.span(), whole)))
    }

    fn number(&self, key: &str) -> Result<Option<Spanned<f64>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let number = number.ok_or_else(|| self.wrong(format!("{key} is a number")))?;
        Ok(Some(Spanned::new(self.entry.span(), number)))
    }

    fn text(&self, key: &str) -> Result<Option<Spanned<String>>, Error> {
        let Some(value) = self.options.get(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(format!("{key} is a text")))?;
        Ok(Some(Spanned::new(self.entry.span(), text.to_owned())))
    }

    /// A share, in thousandths.
    fn in_1000(&self, key: &str) -> Result<u32, Error> {
        let Some(share) = self.number(key)? else { return Ok(0) };
        self.plan.within(key, &share, share.get_ref(), &SHARES, f64::to_string)?;
        Ok((share.get_ref() * 1000.0).round() as u32)
    }

    fn time(&self, key: &str) -> Result<Option<Duration>, Error> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let time = self.plan.unit(&text, parse_duration)?;
        self.plan.within(key, &text, &time, &TIMES, |time| format!("{time:?}"))?;
        Ok(Some(time))
    }

    /// The time of `key`, and in virtual time that of `full` where it is given.
    fn lasts(&self, key: &str) -> Result<Option<Lasts>, Error> {
        let (real, full) = (self.time(key)?, self.time("full")?);
        match (real, full) {
            (Some(real), full) => Ok(Some(Lasts { real, full: full.unwrap_or(real) })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(self.wrong(format!(
                "full is the time for --on virtual; say with {key} what it is on real processes"
            ))),
        }
    }

    fn meaning(&self, leader: Cluster, fault_nodes: &[String]) -> Result<Meaning, Error> {
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
            "recover_peers" => Step::RecoverPeers(self.peers(leader)?),
            _ => return Ok(Meaning::Action(self.action(fault_nodes)?)),
        }))
    }

    fn background(&self) -> Result<Background, Error> {
        let rate = self.whole("documents_per_s")?.ok_or_else(|| {
            let example = "{ index_in_background = { documents_per_s = 80_000 } }";
            self.wrong(format!("say how many documents a second, as {example}"))
        })?;
        Ok(Background {
            documents_per_s: self.plan.number("documents_per_s", &rate, DOCUMENTS_PER_S)?,
            updates_in_1000: self.in_1000("updates")?,
            deletes_in_1000: self.in_1000("deletes")?,
        })
    }

    fn peers(&self, leader: Cluster) -> Result<Peers, Error> {
        let Some(nodes) = self.whole("restart")? else { return Ok(Peers::Replicas) };
        // The first node manages and stays up.
        let what = format!("restart on {} nodes, of which the first stays up", leader.nodes);
        let nodes = self.plan.number(&what, &nodes, 1..=i64::from(leader.nodes) - 1)?;
        Ok(Peers::Restart { nodes })
    }

    fn action(&self, fault_nodes: &[String]) -> Result<Action, Error> {
        let lacks = |example: &str| self.wrong(format!("say it whole, as {example}"));
        Ok(match self.name {
            "stop_indexing" => Action::StopIndexing,
            "wait" => {
                Action::Wait(self.lasts("lasts")?.ok_or_else(|| lacks("{ wait = \"30s\" }"))?)
            }
            "wait_for_lag" => {
                let example = "{ wait_for_lag = { under = 1000, within = \"5m\" } }";
                let under = self.whole("under")?.ok_or_else(|| lacks(example))?;
                let within = self.lasts("within")?;
                Action::WaitForLag {
                    under: self.plan.number("under", &under, OPERATIONS)?,
                    within: within.unwrap_or(Lasts { real: WITHIN, full: WITHIN }),
                }
            }
            "fault" => {
                let example =
                    "{ fault = { kind = \"kill\", node = \"follower\", lasts = \"30s\" } }";
                let table = FaultTable {
                    node: self.text("node")?,
                    kind: self.text("kind")?.ok_or_else(|| lacks(example))?,
                    factor: self.number("factor")?,
                    processes: self.whole("processes")?,
                    free: self.text("free")?,
                    by: self.text("by")?,
                    at: None,
                    lasts: None,
                };
                let fault = self.plan.fault(&table, fault_nodes)?;
                let lasts = self.lasts("lasts")?;
                if lasts.is_none() && table.kind.get_ref() != "clock" {
                    return Err(self.wrong("say how long the fault lasts: lasts = \"30s\""));
                }
                Action::Fault { fault, lasts }
            }
            name => {
                let all: Vec<&str> = Step::NAMES.into_iter().chain(Action::NAMES).collect();
                return Err(self.wrong(unknown("unknown step", name, "Steps", &all)));
            }
        })
    }
}
