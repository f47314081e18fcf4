//! Clients that search beside the writes, and hold each answer against what the driver was answered: it contains
//! what was acknowledged and refreshed before it was asked for, and nothing that nobody wrote.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::rc::Rc;

use bytes::Bytes;
use clusters::{Asker, Error as AskError};
use record::SearchFigures;
use serde_json::Value;
use world::{Env, Task, Time};

use crate::error::Result;
use crate::plan::{LEADER, Searching};
use crate::runner::Runner;
use crate::writers::{Driver, IndexLedger, PATIENCE};

/// Wrong answers that are shown.
const SHOWN: usize = 8;
const COUNTED: &[u8] = br#"{"size":0,"track_total_hits":true}"#;

pub(super) struct Searches {
    clients: Rc<Clients>,
    tasks: Vec<Task<()>>,
}

struct Clients {
    env: Env,
    asker: Asker,
    /// The nodes in the order in which they are asked; none where nobody knows which node a request reaches.
    names: Vec<String>,
    driver: Rc<Driver>,
    /// Copies of a shard.
    copies: Vec<u32>,
    rule: Searching,
    /// When it began, and how many seconds of the run there were before.
    began: (Time, f64),
    stops: Cell<bool>,
    figures: Cell<SearchFigures>,
    wrong: RefCell<Vec<String>>,
}

#[derive(Debug, PartialEq)]
enum Found {
    Held,
    /// A copy or an answer was missing.
    Incomplete,
    /// It was wrong, and from a node that the cluster had already removed.
    GivenUp,
    Wrong(String),
}

impl Searches {
    /// Begins to search the plan's indices on the leader.
    pub(super) fn begin(
        run: &Runner<'_>,
        rule: Searching,
        driver: &Rc<Driver>,
        copies: Vec<u32>,
    ) -> Result<Searches> {
        let asker = run.clusters.asker(LEADER, PATIENCE)?;
        let nodes = run.clusters.nodes(LEADER).into_iter().map(|node| node.name);
        let names = nodes.collect::<Vec<_>>();
        let clients = Rc::new(Clients {
            env: run.env.clone(),
            names: if names.len() == asker.nodes() { names } else { Vec::new() },
            asker,
            driver: driver.clone(),
            copies,
            rule,
            began: (run.env.now(), run.journal.t_ms() / 1e3),
            stops: Cell::default(),
            figures: Cell::default(),
            wrong: RefCell::default(),
        });
        let search = |_| {
            let clients = clients.clone();
            run.env.spawn("searches", async move { clients.search().await })
        };
        Ok(Searches { tasks: (0..rule.clients).map(search).collect(), clients })
    }

    /// Ends the searches, each once it was answered. Answers how many there were, and the first wrong ones in words.
    pub(super) async fn end(self) -> (SearchFigures, Vec<String>) {
        self.clients.stops.set(true);
        for task in self.tasks {
            // One that was aborted has ended, too.
            let _ = task.await;
        }
        (self.clients.figures.get(), self.clients.wrong.take())
    }
}

impl Clients {
    async fn search(&self) {
        while !self.stops.get() {
            for (ledger, copies) in self.driver.ledgers.all().iter().zip(&self.copies) {
                let found = self.search_once(ledger, *copies).await.unwrap_or(Found::Incomplete);
                let mut figures = self.figures.get();
                match found {
                    Found::Held => figures.held += 1,
                    Found::Incomplete => figures.incomplete += 1,
                    Found::GivenUp => figures.given_up += 1,
                    Found::Wrong(text) => {
                        figures.wrong += 1;
                        if self.wrong.borrow().len() < SHOWN {
                            self.wrong.borrow_mut().push(text);
                        }
                    }
                }
                self.figures.set(figures);
            }
            self.env.sleep(self.rule.pause).await;
        }
    }

    /// Refreshes every copy of an index, and counts its documents. Any node may be asked for either: who counts as
    /// refreshed is the primary's to say, whatever the node that was asked knows.
    async fn search_once(&self, ledger: &IndexLedger, copies: u32) -> Result<Found, AskError> {
        let index = &ledger.index;
        let least = *ledger.documents().start();
        let refreshes = self.asker.turn();
        let refreshed = self.ask(refreshes, &format!("/{index}/_refresh"), b"").await?;
        let before = self.seen(index).await;
        let searches = self.asker.turn();
        let answer = self.ask(searches, &format!("/{index}/_search"), COUNTED).await?;
        let answered = |answer: &Value| answer["_shards"]["successful"].as_u64();
        let (shards, most) = (u64::from(ledger.shards), ledger.documents());
        // Deletes that were sent meanwhile may be done.
        let bounds = least.min(*most.start())..=*most.end();
        let all = answered(&refreshed) == Some(shards * u64::from(copies));
        let found = answer["hits"]["total"]["value"].as_u64();
        let Some(found) = found.filter(|_| all && answered(&answer) == Some(shards)) else {
            return Ok(Found::Incomplete);
        };
        let Some(why) = broken(index, found, &bounds) else { return Ok(Found::Held) };
        let (began, seconds_before) = self.began;
        let t = seconds_before + (self.env.now() - began).as_secs_f64();
        let after = self.seen(index).await;
        let (asked, refreshed_by) = (self.name(searches), self.name(refreshes));
        // It shows what it had, as in the field, until it knows.
        if is_given_up(asked, &before) || is_given_up(asked, &after) {
            return Ok(Found::GivenUp);
        }
        let [before, after] = [before, after]
            .map(|seen| seen.into_iter().map(|seen| seen.text).collect::<Vec<_>>().join("; "));
        Ok(Found::Wrong(format!(
            "{why}; {t:.1} s after the run began {asked} was asked for it, and {refreshed_by} for the refresh; before \
             it the nodes said: {before}; and after it: {after}"
        )))
    }

    async fn seen(&self, index: &str) -> Vec<Seen> {
        let path = format!(
            "/_cluster/state/version,master_node,nodes,routing_table/{index}?local=true&filter_path=version,\
             master_node,nodes.*.name,routing_table"
        );
        let mut seen = Vec::new();
        for at in 0..self.asker.nodes() {
            let (name, answer) =
                (self.name(at), self.asker.ask_at(at, "GET", &path, Bytes::new()).await);
            seen.push(match answer.and_then(|answer| answer.json()) {
                Ok(state) => Seen::of(name, &state, index),
                Err(error) => Seen { members: None, text: format!("{name}: {error}") },
            });
        }
        seen
    }

    fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("a node", String::as_str)
    }

    async fn ask(&self, at: usize, path: &str, body: &'static [u8]) -> Result<Value, AskError> {
        self.asker.ask_at(at, "POST", path, Bytes::from_static(body)).await?.json()
    }
}

/// What a node knows of the cluster.
struct Seen {
    /// The nodes that are there by the word of the manager: of a node that takes itself for it.
    members: Option<BTreeSet<String>>,
    /// Version, manager, nodes and copies.
    text: String,
}

impl Seen {
    /// By the state that the node of this name has.
    fn of(name: &str, state: &Value, index: &str) -> Seen {
        let nodes = state["nodes"].as_object().into_iter().flatten();
        let name_of = |id: &str| state["nodes"][id]["name"].as_str().unwrap_or(id).to_owned();
        let members: BTreeSet<String> = nodes.map(|(id, _)| name_of(id)).collect();
        let shards = state["routing_table"]["indices"][index]["shards"].as_object();
        let copies = shards.into_iter().flatten().flat_map(|(number, copies)| {
            copies.as_array().into_iter().flatten().map(move |copy| (number, copy))
        });
        let in_words = |(number, copy): (&String, &Value)| {
            let kind = if copy["primary"] == true { "p" } else { "r" };
            let node = copy["node"].as_str().map_or("-".to_owned(), name_of);
            format!("{number} {kind} {} {node}", copy["state"].as_str().unwrap_or("-"))
        };
        let copies = copies.map(in_words).collect::<Vec<_>>().join(", ");
        let manager = state["master_node"].as_str().map(name_of);
        let nodes = members.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let text = format!(
            "{name}: version {} of {} with {nodes}: {copies}",
            state["version"],
            manager.as_deref().unwrap_or("none")
        );
        let is_manager = manager.is_some_and(|manager| manager == name);
        Seen { members: is_manager.then_some(members), text }
    }
}

/// Whether the manager, where it answers, does not count the node of this name in.
fn is_given_up(name: &str, seen: &[Seen]) -> bool {
    seen.iter().filter_map(|seen| seen.members.as_ref()).any(|members| !members.contains(name))
}

/// Holds the number of documents that a search found against what the writes and their answers allow. Answers what is
/// wrong with it.
fn broken(index: &str, found: u64, bounds: &RangeInclusive<u64>) -> Option<String> {
    let (least, most) = (bounds.start(), bounds.end());
    (!bounds.contains(&found)).then(|| {
        format!(
            "a search of {index} found {found} documents: {least} were acknowledged and refreshed, {most} sent"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node knows whose manager is `x1`, leader-0.
    fn seen(name: &str, nodes: &Value) -> Seen {
        let state = serde_json::json!({
            "version": 7, "master_node": "x1", "nodes": nodes,
            "routing_table": {"indices": {"a": {"shards": {"0": [
                {"primary": true, "state": "STARTED", "node": "x1"},
                {"primary": false, "state": "UNASSIGNED", "node": null},
            ]}}}},
        });
        Seen::of(name, &state, "a")
    }

    #[test]
    fn what_a_node_knows_is_told_with_its_version_and_manager() {
        let both = serde_json::json!({"x1": {"name": "leader-0"}, "x2": {"name": "leader-1"}});
        assert_eq!(
            seen("leader-1", &both).text,
            "leader-1: version 7 of leader-0 with leader-0 leader-1: 0 p STARTED leader-0, 0 r UNASSIGNED -"
        );
    }

    #[test]
    fn a_node_is_given_up_that_the_manager_does_not_count_in() {
        let both = serde_json::json!({"x1": {"name": "leader-0"}, "x2": {"name": "leader-1"}});
        let alone = serde_json::json!({"x1": {"name": "leader-0"}});
        let gone = Seen { members: None, text: "leader-0: is gone".to_owned() };
        let given_up = [seen("leader-0", &alone), seen("leader-1", &both)];
        assert!(is_given_up("leader-1", &given_up) && !is_given_up("leader-0", &given_up));
        let is_wrong = [
            vec![seen("leader-0", &both), seen("leader-1", &both)],
            // Only the manager can give up a node.
            vec![seen("leader-0", &both), seen("leader-1", &alone)],
            vec![gone, seen("leader-1", &alone)],
            // Where requests do not say whom they reach.
            vec![seen("a node", &alone)],
        ];
        assert!(is_wrong.iter().all(|seen| !is_given_up("leader-1", seen)));
    }

    #[test]
    fn an_answer_that_lacks_a_document_or_has_one_too_many_is_wrong() {
        for (found, right) in [(9, false), (10, true), (12, true), (13, false)] {
            assert_eq!(broken("a", found, &(10..=12)).is_none(), right, "{found}");
        }
    }
}
