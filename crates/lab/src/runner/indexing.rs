//! Indexing on the leader: bulk clients, each with a part of the documents; in the virtual world, where a plan
//! says how large the indices are, the sizes alone.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use clusters::SyntheticIndex;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::replicating::PLACE;
use super::{FOLLOWER, LEADER, Runner};
use crate::Error;
use crate::corpus::{BulkBodies, portions};
use crate::plan::{Action, Index, Pattern, Variant};

/// How long the copies of an index may take to start, however they get on.
const GREEN_PATIENCE: Duration = Duration::from_secs(3600);

impl Runner<'_> {
    /// Whether the indices are loaded by their sizes.
    pub(super) fn loads(&self) -> bool {
        self.target.is_virtual() && self.plan.full_bytes().is_some()
    }

    pub(super) async fn index(&self, variant: Option<&Variant>) -> Result<(), Error> {
        let name = variant.map(|variant| variant.name.as_str());
        self.journal.phase("index", true, name, 1)?;
        let documents = self.plan.indices.iter().map(|i| i.documents.end - i.documents.start).sum();
        let total = (!self.loads()).then_some(documents);
        self.watch.begin("index", name, total, "documents");
        let done = Cell::new(0u64);
        for index in &self.plan.indices {
            self.create(index, variant).await?;
        }
        for index in &self.plan.indices {
            match self.target.virtual_controls().zip(index.full.filter(|_| self.loads())) {
                Some((controls, full)) => {
                    let synthetic = SyntheticIndex {
                        name: index.name.clone(),
                        documents: full.documents,
                        bytes: full.bytes,
                        segments: full.segments,
                        segment_ratio: full.segment_ratio,
                    };
                    controls.load_index(LEADER, &synthetic).await?;
                }
                None => self.bulk(index, &done).await?,
            }
        }
        if !self.loads() && !self.is_embedded(LEADER).await? {
            self.wait_for_merges().await?;
        }
        self.watch.end();
        self.journal.phase("index", false, name, 1)
    }

    pub(super) async fn create(
        &self,
        index: &Index,
        variant: Option<&Variant>,
    ) -> Result<(), Error> {
        let mut body = self.made_as(index, variant);
        if index.rollover.is_some() {
            body["aliases"] = json!({ &index.name: { "is_write_index": true } });
        }
        let name = index.first_name();
        self.ask(LEADER, "PUT", &format!("/{name}"), Some(&body)).await?;
        self.wait_for_health(LEADER, &name).await
    }

    /// What an index is made as: `settings` and `mappings`.
    pub(super) fn made_as(&self, index: &Index, variant: Option<&Variant>) -> Value {
        let mut settings = json!({
            "index.number_of_shards": index.shards,
            "index.number_of_replicas": variant.map_or(index.replicas, |v| index.replicas_of(v)),
        });
        for (name, value) in &index.settings {
            settings[name] = json!(value);
        }
        if self.plan.joined && self.target.has_allocation_filters() {
            // A copy can only cross the link later if none is on the other side now.
            settings[PLACE] = json!(self.target.nodes(LEADER).first().map(|node| &node.name));
        }
        json!({ "settings": settings, "mappings": self.corpus().source.mapping() })
    }

    async fn bulk(&self, index: &Index, done: &Cell<u64>) -> Result<(), Error> {
        let Range { start, end } = index.documents;
        let clients = portions(end - start, self.corpus().clients);
        let clients = clients.into_iter().map(|part| start + part.start..start + part.end);
        try_join_all(clients.map(|part| self.bulk_client(index, part, done))).await?;
        // What is recovered later is what is committed now.
        self.ask(LEADER, "POST", &format!("/{}/_flush", index.name), None).await?;
        Ok(())
    }

    /// Sends bulk requests, one after another.
    async fn bulk_client(
        &self,
        index: &Index,
        part: Range<u64>,
        done: &Cell<u64>,
    ) -> Result<(), Error> {
        let corpus = self.corpus();
        let bodies = BulkBodies::new(&corpus.source, self.plan.seed, part, corpus.bulk_documents)?;
        let path = format!("/{}/_bulk?filter_path=errors,took", index.name);
        for body in bodies {
            let body = body?;
            let documents = body.documents;
            let bytes = body.body;
            let answer = self.target.request(LEADER, "POST", &path, bytes.clone()).await?.json()?;
            if answer["errors"] == json!(true) {
                let why = self.first_error(&index.name, bytes).await?;
                return Err(Error::Rejected { why });
            }
            done.set(done.get() + documents);
            self.watch.progress(done.get(), None);
        }
        Ok(())
    }

    /// The first document that is refused, in the cluster's words. Asks again without the filter.
    async fn first_error(&self, index: &str, body: Bytes) -> Result<String, Error> {
        let path = format!("/{index}/_bulk");
        let answer = self.target.request(LEADER, "POST", &path, body).await?.json()?;
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        let refused = items.iter().find_map(|item| {
            let error = item.as_object()?.values().next()?.get("error")?;
            Some(error["reason"].as_str().unwrap_or("no reason given").to_owned())
        });
        Ok(refused.unwrap_or_else(|| "it was accepted when sent again".to_owned()))
    }

    /// Waits until every copy of an index is started: as long as there are more of them from look to look, or some are on
    /// their way or held back for a node that left.
    pub(super) async fn wait_for_health(&self, cluster: &str, index: &str) -> Result<(), Error> {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout=15s");
        let give_up = self.env.now() + GREEN_PATIENCE;
        let mut before = None;
        loop {
            let health: Value = self.ask(cluster, "GET", &path, None).await?;
            if health["timed_out"] != json!(true) {
                return Ok(());
            }
            let count = |name: &str| health[name].as_u64().unwrap_or(0);
            let there = (count("number_of_nodes"), count("active_shards"));
            let on_their_way = count("initializing_shards") + count("delayed_unassigned_shards");
            if self.env.now() >= give_up || on_their_way == 0 && before == Some(there) {
                let status = health["status"].as_str().unwrap_or("unknown").to_owned();
                let index = index.to_owned();
                return Err(Error::NotGreen { cluster: cluster.to_owned(), index, status });
            }
            before = Some(there);
        }
    }

    /// Takes the indices away, and on a follower first the patterns by which it would follow them again.
    pub(super) async fn forget_indices(&self, cluster: &str) -> Result<(), Error> {
        for action in self.plan.actions.iter().filter(|_| cluster == FOLLOWER) {
            if let Action::AutoFollow(Pattern { name, .. }) = action {
                self.ask(cluster, "DELETE", &format!("/_ccr/auto_follow/{name}"), None).await?;
            }
        }
        for index in &self.plan.indices {
            let names = match index.rollover {
                Some(_) => {
                    let aliased =
                        self.ask(cluster, "GET", &format!("/_alias/{}", index.name), None).await?;
                    aliased
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.clone())
                        .collect()
                }
                None => vec![index.name.clone()],
            };
            for name in names {
                self.ask(cluster, "DELETE", &format!("/{name}"), None).await?;
            }
        }
        Ok(())
    }
}
