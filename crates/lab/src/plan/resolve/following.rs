//! The actions of a plan that follows.

use std::ops::RangeInclusive;
use std::time::Duration;

use clusters::FaultKind;
use toml::Spanned;

use super::step_text::{Around, StepText};
use crate::choices::unknown;
use crate::error::{Error, Result};
use crate::plan::action::{Action, Pattern, RandomRestarts, Searching};
use crate::plan::by_world::ByWorld;
use crate::plan::document::FaultTable;
use crate::plan::file::Plan;
use crate::plan::index::Index;
use crate::plan::topology::{FOLLOWER, LEADER};

const OPERATIONS: RangeInclusive<i64> = 1..=1_000_000_000_000;
/// How long `wait_for_lag` waits where a plan does not say it.
const WITHIN: Duration = Duration::from_secs(600);
/// How long a client that searches waits after an answer where a plan does not say it.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);
const SEARCH_CLIENTS: RangeInclusive<i64> = 1..=1000;
/// The name of a pattern that has none of its own.
const PATTERN: &str = "narrows";

/// How an action is read. Its options are in `keys/steps.rs`.
pub(super) struct ActionForm {
    pub(super) name: &'static str,
    pub(super) read: fn(&StepText<'_>, Around<'_>) -> Result<Action>,
}

/// Every action that is no step of other plans.
pub(super) const ACTIONS: [ActionForm; 9] = [
    ActionForm { name: "auto_follow", read: |step, _| step.pattern().map(Action::AutoFollow) },
    ActionForm { name: "stop_indexing", read: |_, _| Ok(Action::StopIndexing) },
    ActionForm {
        name: "wait",
        read: |step, _| {
            let lasts = step.lasts("lasts")?;
            lasts.map(Action::Wait).ok_or_else(|| step.lacks("{ wait = \"30s\" }"))
        },
    },
    ActionForm {
        name: "wait_for_documents",
        read: |step, around| step.documents(around.scale).map(Action::WaitForDocuments),
    },
    ActionForm { name: "wait_for_lag", read: |step, _| step.wait_for_lag() },
    ActionForm { name: "fault", read: |step, around| step.fault(around.fault_nodes) },
    ActionForm {
        name: "search_in_background",
        read: |step, _| step.searching().map(Action::SearchInBackground),
    },
    ActionForm {
        name: "restart_at_random",
        read: |step, _| step.restarts().map(Action::RestartAtRandom),
    },
    ActionForm { name: "stop_restarts", read: |_, _| Ok(Action::StopRestarts) },
];

impl Plan {
    /// Whether indices fit the pattern that they are followed by: those that roll over need one, and take new documents
    /// alone.
    pub(super) fn check_patterns(&self, indices: &[Index], actions: &[Action]) -> Result<()> {
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
}

impl StepText<'_> {
    /// The error that an option is missing, with an example that has all of them.
    fn lacks(&self, example: &str) -> Error {
        self.wrong(format!("write it out, as {example}"))
    }

    fn wait_for_lag(&self) -> Result<Action> {
        let example = "{ wait_for_lag = { under = 1000, within = \"5m\" } }";
        let under = self.whole("under").ok_or_else(|| self.lacks(example))?;
        let within = self.lasts("within")?.unwrap_or(ByWorld::both(WITHIN));
        let under = self.plan.number("under", &under, OPERATIONS)?;
        Ok(Action::WaitForLag { under, within })
    }

    fn fault(&self, nodes: &[String]) -> Result<Action> {
        let example = "{ fault = { kind = \"kill\", node = \"follower\", lasts = \"30s\" } }";
        let table = FaultTable {
            node: self.text("node"),
            kind: self.text("kind").ok_or_else(|| self.lacks(example))?,
            factor: self.number("factor"),
            processes: self.whole("processes"),
            free: self.text("free"),
            by: self.text("by"),
            at: None,
            lasts: None,
        };
        let fault = self.plan.fault(&table, nodes)?;
        let lasts = self.lasts("lasts")?;
        if lasts.is_none() && table.kind.get_ref() != "clock" {
            return Err(self.wrong("say how long the fault lasts: lasts = \"30s\""));
        }
        Ok(Action::Fault { fault, lasts })
    }

    fn pattern(&self) -> Result<Pattern> {
        let example =
            "say which indices are followed, as { auto_follow = { patterns = [\"logs-*\"] } }";
        Ok(Pattern {
            name: self.text("name").map_or_else(|| PATTERN.to_owned(), Spanned::into_inner),
            patterns: self.texts("patterns")?.ok_or_else(|| self.wrong(example))?,
            exclude: self.texts("exclude")?.unwrap_or_default(),
        })
    }

    fn restarts(&self) -> Result<RandomRestarts> {
        let example = "write it out, as { restart_at_random = { cluster = \"follower\", every = \"2h\", pause = \"5m\" } }";
        let clusters = ["no cluster is called", "Clusters"];
        let cluster = self.one_of("cluster", &[LEADER, FOLLOWER], clusters)?;
        let cluster = cluster.ok_or_else(|| self.wrong(example))?;
        let choices = ["no choice of nodes is called", "Choices"];
        let nodes = self.one_of("nodes", &["all", "any"], choices)?;
        let kinds = ["no restart is called", "Kinds"];
        let kind = self.one_of("kind", &["kill", "stop", "any"], kinds)?;
        let kind = match kind.as_deref() {
            Some("kill") => Some(FaultKind::Kill),
            Some("stop") => Some(FaultKind::Stop),
            _ => None,
        };
        let full = self.full(&["every", "pause"])?;
        let lasts = |key: &str| {
            let real = self.time(key)?.ok_or_else(|| self.wrong(example))?;
            let full = full.as_ref().map(|full| full.time(key)).transpose()?.flatten();
            Ok::<_, Error>(ByWorld { real, full: full.unwrap_or(real) })
        };
        Ok(RandomRestarts {
            cluster,
            all: nodes.as_deref() == Some("all"),
            kind,
            every: lasts("every")?,
            pause: lasts("pause")?,
        })
    }

    /// One of the words that are known, where the option is given.
    fn one_of(&self, key: &str, known: &[&str], [said, all]: [&str; 2]) -> Result<Option<String>> {
        let checked = self.text(key).map(|word| match known.contains(&word.get_ref().as_str()) {
            true => Ok(word.into_inner()),
            false => Err(self.wrong(unknown(said, word.get_ref(), all, known))),
        });
        checked.transpose()
    }

    fn searching(&self) -> Result<Searching> {
        let clients = self.whole("clients").unwrap_or(Spanned::new(0..0, 1));
        let clients = self.plan.number("clients", &clients, SEARCH_CLIENTS)?;
        let pause = self.time("pause")?.unwrap_or(SEARCH_PAUSE);
        Ok(Searching { clients, pause })
    }

    fn documents(&self, scale: f64) -> Result<ByWorld<u64>> {
        let example = "say how many, as { wait_for_documents = { written = 100_000 } }";
        let written = self.whole("written").ok_or_else(|| self.wrong(example))?;
        let full = self.whole("full");
        let full = full.as_ref().unwrap_or(&written);
        Ok(ByWorld {
            real: self.plan.scaled("written", &written, OPERATIONS, scale)?,
            full: self.plan.scaled("full", full, OPERATIONS, scale)?,
        })
    }
}
