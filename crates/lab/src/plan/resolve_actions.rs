//! Actions of a plan that follows, from plain data to values with units.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use super::action::{Action, Lasts, Pattern, RandomRestarts, Written as Documents};
use super::document::FaultTable;
use super::resolve_steps::{Around, Written};
use super::resolved::Step;
use crate::Error;
use crate::choices::unknown;
use crate::runner::{FOLLOWER, LEADER};

const OPERATIONS: RangeInclusive<i64> = 1..=1_000_000_000_000;
/// How long a lag is waited for where a plan does not say it.
const WITHIN: Duration = Duration::from_secs(600);
/// The name of a pattern that has none of its own.
const PATTERN: &str = "narrows";

impl Written<'_> {
    pub(super) fn action(&self, around: Around<'_>) -> Result<Action, Error> {
        let lacks = |example: &str| self.wrong(format!("say it whole, as {example}"));
        Ok(match self.name {
            "auto_follow" => Action::AutoFollow(self.pattern()?),
            "stop_indexing" => Action::StopIndexing,
            "restart_at_random" => Action::RestartAtRandom(self.restarts()?),
            "stop_restarts" => Action::StopRestarts,
            "wait_for_documents" => Action::WaitForDocuments(self.documents(around.scale)?),
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
                let fault = self.plan.fault(&table, around.fault_nodes)?;
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
    fn pattern(&self) -> Result<Pattern, Error> {
        let example =
            "say which indices are followed, as { auto_follow = { patterns = [\"logs-*\"] } }";
        Ok(Pattern {
            name: self.text("name")?.map_or_else(|| PATTERN.to_owned(), Spanned::into_inner),
            patterns: self.texts("patterns")?.ok_or_else(|| self.wrong(example))?,
            exclude: self.texts("exclude")?.unwrap_or_default(),
        })
    }

    fn restarts(&self) -> Result<RandomRestarts, Error> {
        let example = "say it whole, as { restart_at_random = { cluster = \"follower\", every = \"2h\", pause = \"5m\" } }";
        let cluster = self.text("cluster")?.ok_or_else(|| self.wrong(example))?;
        let clusters = [LEADER, FOLLOWER];
        if !clusters.contains(&cluster.get_ref().as_str()) {
            let said = unknown("no cluster is called", cluster.get_ref(), "Clusters", &clusters);
            return Err(self.wrong(said));
        }
        let kinds = ["all", "any"];
        let nodes = self.text("nodes")?;
        let nodes = nodes.as_ref().map_or("any", |nodes| nodes.get_ref().as_str());
        if !kinds.contains(&nodes) {
            return Err(self.wrong(unknown(
                "no choice of nodes is called",
                nodes,
                "Choices",
                &kinds,
            )));
        }
        let full = self.full()?;
        let lasts = |key: &str| {
            let real = self.time(key)?.ok_or_else(|| self.wrong(example))?;
            let full = full.as_ref().map(|full| full.time(key)).transpose()?.flatten();
            Ok::<Lasts, Error>(Lasts { real, full: full.unwrap_or(real) })
        };
        Ok(RandomRestarts {
            cluster: cluster.into_inner(),
            all: nodes == "all",
            every: lasts("every")?,
            pause: lasts("pause")?,
        })
    }

    fn documents(&self, scale: f64) -> Result<Documents, Error> {
        let example = "say how many, as { wait_for_documents = { written = 100_000 } }";
        let written = self.whole("written")?.ok_or_else(|| self.wrong(example))?;
        let scaled = |key: &str, documents: &Spanned<i64>| {
            let documents: u64 = self.plan.number(key, documents, OPERATIONS)?;
            Ok::<u64, Error>(((documents as f64 * scale).round() as u64).max(1))
        };
        let full = self.whole("full")?;
        Ok(Documents {
            real: scaled("written", &written)?,
            full: scaled("full", full.as_ref().unwrap_or(&written))?,
        })
    }
}
