//! The actions of a plan that follows.

use std::time::Duration;

use clusters::FaultKind;

use super::step_text::{Around, StepText, full_alone};
use crate::choices::unknown;
use crate::error::Result;
use crate::plan::action::{Action, Pattern, RandomRestarts, Searching};
use crate::plan::by_world::ByWorld;
use crate::plan::document::FaultTable;
use crate::plan::file::Plan;
use crate::plan::index::Index;
use crate::plan::keys::steps as options;
use crate::plan::topology::{FOLLOWER, LEADER};

/// How long `wait_for_lag` waits where a plan does not say it.
const WITHIN: Duration = Duration::from_secs(600);
/// How long a client that searches waits after an answer where a plan does not say it.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);
/// The name of a pattern that has none of its own.
const PATTERN: &str = "narrows";

/// How an action is made of its options, which are in `keys/steps.rs`.
pub(super) struct ActionForm {
    pub(super) name: &'static str,
    pub(super) read: fn(&StepText<'_>, Around<'_>) -> Result<Action>,
}

/// Every action that is no step of other plans.
pub(super) const ACTIONS: [ActionForm; 9] = [
    ActionForm { name: "auto_follow", read: |step, _| step.pattern().map(Action::AutoFollow) },
    ActionForm { name: "stop_indexing", read: |_, _| Ok(Action::StopIndexing) },
    ActionForm { name: "wait", read: |step, _| step.wait() },
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
    fn wait(&self) -> Result<Action> {
        let lacks = match self.has("full") {
            true => full_alone("lasts"),
            false => "write it out, as { wait = \"30s\" }".to_owned(),
        };
        let options::Wait { lasts, full } = self.options(&lacks)?;
        self.times(["lasts", "full"], lasts, full).map(Action::Wait)
    }

    fn wait_for_lag(&self) -> Result<Action> {
        let lacks = "write it out, as { wait_for_lag = { under = 1000, within = \"5m\" } }";
        let options::WaitForLag { under, within, full } = self.options(lacks)?;
        let within = self.lasts("within", within, full)?.unwrap_or(ByWorld::both(WITHIN));
        let under = self.plan.number(self.section, "under", &self.here(under))?;
        Ok(Action::WaitForLag { under, within })
    }

    fn fault(&self, nodes: &[String]) -> Result<Action> {
        let lacks = "write it out, as { fault = { kind = \"kill\", node = \"follower\", lasts = \"30s\" } }";
        let options::Fault { kind, node, factor, processes, free, by, lasts, full } =
            self.options(lacks)?;
        let table = FaultTable {
            node: node.map(|node| self.here(node)),
            kind: self.here(kind),
            factor: factor.map(|factor| self.here(factor)),
            processes: processes.map(|processes| self.here(processes)),
            free: free.map(|free| self.here(free)),
            by: by.map(|by| self.here(by)),
            at: None,
            lasts: None,
        };
        let fault = self.plan.fault(&table, nodes)?;
        let lasts = self.lasts("lasts", lasts, full)?;
        if lasts.is_none() && table.kind.get_ref() != "clock" {
            return Err(self.wrong("say how long the fault lasts: lasts = \"30s\""));
        }
        Ok(Action::Fault { fault, lasts })
    }

    fn pattern(&self) -> Result<Pattern> {
        let lacks =
            "say which indices are followed, as { auto_follow = { patterns = [\"logs-*\"] } }";
        let options::AutoFollow { name, patterns, exclude } = self.options(lacks)?;
        Ok(Pattern {
            name: name.unwrap_or_else(|| PATTERN.to_owned()),
            patterns: self.names("patterns", patterns)?,
            exclude: exclude.map_or(Ok(Vec::new()), |names| self.names("exclude", names))?,
        })
    }

    fn restarts(&self) -> Result<RandomRestarts> {
        let lacks = "write it out, as { restart_at_random = { cluster = \"follower\", every = \"2h\", pause = \"5m\" } }";
        let options::RestartAtRandom { cluster, nodes, kind, every, pause, full } =
            self.options(lacks)?;
        let clusters = ["no cluster is called", "Clusters"];
        let cluster = self.one_of(cluster, &[LEADER, FOLLOWER], clusters)?;
        let choices = ["no choice of nodes is called", "Choices"];
        let nodes = nodes.map(|nodes| self.one_of(nodes, &["all", "any"], choices)).transpose()?;
        let kinds = ["no restart is called", "Kinds"];
        let kind = kind.map(|kind| self.one_of(kind, &["kill", "stop", "any"], kinds));
        let kind = match kind.transpose()?.as_deref() {
            Some("kill") => Some(FaultKind::Kill),
            Some("stop") => Some(FaultKind::Stop),
            _ => None,
        };
        let full = full.map(|full| self.full(&options::FULL_RESTARTS, full, lacks)).transpose()?;
        let [full_every, full_pause] =
            full.map_or([None, None], |full: options::FullRestarts| [full.every, full.pause]);
        Ok(RandomRestarts {
            cluster,
            all: nodes.as_deref() == Some("all"),
            kind,
            every: self.times(["every", "every"], every, full_every)?,
            pause: self.times(["pause", "pause"], pause, full_pause)?,
        })
    }

    /// The word, if it is one of those that are known.
    fn one_of(&self, word: String, known: &[&str], [said, all]: [&str; 2]) -> Result<String> {
        match known.contains(&word.as_str()) {
            true => Ok(word),
            false => Err(self.wrong(unknown(said, &word, all, known))),
        }
    }

    fn searching(&self) -> Result<Searching> {
        // None of them is needed.
        let options::SearchInBackground { clients, pause } = self.options("")?;
        let clients = self.here(clients.unwrap_or(1));
        let clients = self.plan.number(self.section, "clients", &clients)?;
        let pause = pause.map_or(Ok(SEARCH_PAUSE), |pause| self.time("pause", pause))?;
        Ok(Searching { clients, pause })
    }

    fn documents(&self, scale: f64) -> Result<ByWorld<u64>> {
        let lacks = "say how many, as { wait_for_documents = { written = 100_000 } }";
        let options::WaitForDocuments { written, full } = self.options(lacks)?;
        let full = self.here(full.unwrap_or(written));
        Ok(ByWorld {
            real: self.plan.scaled(self.section, "written", &self.here(written), scale)?,
            full: self.plan.scaled(self.section, "full", &full, scale)?,
        })
    }
}
