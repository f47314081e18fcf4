//! Clients that search beside the writes, and hold each answer against what the driver was answered: it contains
//! what was acknowledged and refreshed before it was asked for, and nothing that nobody wrote.

use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::Rc;

use bytes::Bytes;
use clusters::{Asker, Error as AskError};
use record::SearchFigures;
use serde_json::Value;
use world::{Env, Task};

use crate::error::Result;
use crate::plan::{LEADER, Searching};
use crate::runner::Runner;
use crate::writers::{Driver, IndexLedger, PATIENCE};

/// Wrong answers that are shown.
const SHOWN: usize = 8;
const COUNTED: &[u8] = br#"{"size":0,"track_total_hits":true}"#;

/// Clients that search.
pub(super) struct Searches {
    clients: Rc<Clients>,
    tasks: Vec<Task<()>>,
}

struct Clients {
    env: Env,
    asker: Asker,
    driver: Rc<Driver>,
    /// Copies of a shard.
    copies: Vec<u32>,
    rule: Searching,
    stops: Cell<bool>,
    figures: Cell<SearchFigures>,
    wrong: RefCell<Vec<String>>,
}

/// What a search came to.
#[derive(Debug, PartialEq)]
enum Found {
    Held,
    /// A copy or an answer was missing.
    Incomplete,
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
        let clients = Rc::new(Clients {
            env: run.env.clone(),
            asker: run.clusters.asker(LEADER, PATIENCE)?,
            driver: driver.clone(),
            copies,
            rule,
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
                    Found::Wrong(text) => {
                        figures.wrong += 1;
                        if self.wrong.borrow().len() < SHOWN {
                            let copies = self.copies_now(&ledger.index).await;
                            self.wrong.borrow_mut().push(format!("{text}; {copies}"));
                        }
                    }
                }
                self.figures.set(figures);
            }
            self.env.sleep(self.rule.pause).await;
        }
    }

    /// Refreshes every copy of an index, and counts its documents.
    async fn search_once(&self, ledger: &IndexLedger, copies: u32) -> Result<Found, AskError> {
        let index = &ledger.index;
        let least = *ledger.documents().start();
        let refreshed = self.ask(&format!("/{index}/_refresh"), b"").await?;
        let answer = self.ask(&format!("/{index}/_search"), COUNTED).await?;
        let answered = |answer: &Value| answer["_shards"]["successful"].as_u64();
        let (shards, most) = (u64::from(ledger.shards), ledger.documents());
        // Deletes that were sent meanwhile may be done.
        let bounds = least.min(*most.start())..=*most.end();
        let all = answered(&refreshed) == Some(shards * u64::from(copies));
        let found = answer["hits"]["total"]["value"].as_u64();
        let Some(found) = found.filter(|_| all && answered(&answer) == Some(shards)) else {
            return Ok(Found::Incomplete);
        };
        Ok(held(index, found, &bounds))
    }

    /// The copies as each node sees them, a moment after a wrong answer: one of them gave it.
    async fn copies_now(&self, index: &str) -> String {
        let columns = format!("/_cat/shards/{index}?h=shard,prirep,state,docs,node&format=json");
        let mut seen = Vec::new();
        for _ in 0..self.asker.nodes() {
            let answer = self.asker.ask("GET", &columns, Bytes::new()).await;
            seen.push(match answer.and_then(|answer| answer.json()) {
                Ok(copies) => in_words(&copies),
                Err(error) => error.to_string(),
            });
        }
        format!("then the nodes said: {}", seen.join("; "))
    }

    async fn ask(&self, path: &str, body: &'static [u8]) -> Result<Value, AskError> {
        self.asker.ask("POST", path, Bytes::from_static(body)).await?.json()
    }
}

/// Rows of `_cat/shards` in one line.
fn in_words(copies: &Value) -> String {
    let row = |copy: &Value| {
        let word = |column: &str| copy[column].as_str().unwrap_or("-").to_owned();
        ["shard", "prirep", "state", "docs", "node"].map(word).join(" ")
    };
    copies.as_array().into_iter().flatten().map(row).collect::<Vec<_>>().join(", ")
}

/// Holds the number of documents that a search found against what the writes and their answers allow.
fn held(index: &str, found: u64, bounds: &RangeInclusive<u64>) -> Found {
    if bounds.contains(&found) {
        return Found::Held;
    }
    let (least, most) = (bounds.start(), bounds.end());
    Found::Wrong(format!(
        "a search of {index} found {found} documents: {least} were acknowledged and refreshed, {most} sent"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_shown_with_the_copies_of_then() {
        let rows = serde_json::json!([
            {"shard": "0", "prirep": "p", "state": "STARTED", "docs": "12", "node": "leader-0"},
            {"shard": "0", "prirep": "r", "state": "UNASSIGNED", "docs": null, "node": null},
        ]);
        assert_eq!(in_words(&rows), "0 p STARTED 12 leader-0, 0 r UNASSIGNED - -");
    }

    #[test]
    fn an_answer_that_lacks_a_document_or_has_one_too_many_is_wrong() {
        for (found, right) in [(9, false), (10, true), (12, true), (13, false)] {
            assert_eq!(held("a", found, &(10..=12)) == Found::Held, right, "{found}");
        }
    }
}
