//! The leader's indices: created, filled by bulk clients, each with a part of the documents, and deleted. In the
//! virtual world, where a plan says how large the indices are, they are loaded by their sizes.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use clusters::SyntheticIndex;
use futures_util::future::try_join_all;
use serde_json::{Map, Value, json};

use super::base::Runner;
use crate::corpus::{BulkBodies, BulkBody, portions};
use crate::error::{Error, Result};
use crate::plan::{Action, FOLLOWER, Full, Index, LEADER, Pattern, Variant};

/// Where an index is placed.
const PLACE: &str = "index.routing.allocation.include._name";
/// How long background merges of a fresh index are waited for.
const MERGE_PATIENCE: Duration = Duration::from_secs(120);
/// How long the copies of an index may take to start, as long as more of them start.
const GREEN_PATIENCE: Duration = Duration::from_secs(3600);

impl Runner<'_> {
    /// Creates and fills the indices for one variant, or for all where the plan has that step.
    pub(crate) async fn fill_leader(&self, variant: Option<&Variant>) -> Result<()> {
        if variant.is_some() || self.plan.indexes() { self.index(variant).await } else { Ok(()) }
    }

    /// Creates and fills every index, for all variants or for one.
    pub(crate) async fn index(&self, variant: Option<&Variant>) -> Result<()> {
        let name = variant.map(|variant| variant.name.as_str());
        self.journal.phase("index", true, name, 1)?;
        let documents = self.plan.indices.iter().map(|i| i.documents.end - i.documents.start).sum();
        let total = (!self.loads_sizes()).then_some(documents);
        self.watch.begin("index", name, total, "documents");
        let done = Cell::new(0u64);
        for index in &self.plan.indices {
            self.create(index, variant).await?;
        }
        for index in &self.plan.indices {
            match index.full.filter(|_| self.loads_sizes()) {
                Some(full) => self.load_sizes(index, full).await?,
                None => self.bulk(index, &done).await?,
            }
        }
        if !self.loads_sizes() && !self.is_embedded(LEADER).await? {
            self.wait_for_merges().await?;
        }
        self.filled.set((!self.loads_sizes()).then_some(done.get()));
        self.watch.end();
        self.journal.phase("index", false, name, 1)
    }

    /// Creates an index, and waits until its copies are started.
    pub(crate) async fn create(&self, index: &Index, variant: Option<&Variant>) -> Result<()> {
        let mut body = self.creation_body(index, variant);
        if index.rollover.is_some() {
            body["aliases"] = json!({ &index.name: { "is_write_index": true } });
        }
        let name = index.first_name();
        self.ask(LEADER, "PUT", &format!("/{name}"), Some(&body)).await?;
        self.wait_for_health(&name).await
    }

    /// The body that creates an index: `settings` and `mappings`.
    pub(crate) fn creation_body(&self, index: &Index, variant: Option<&Variant>) -> Value {
        let mut settings = json!({
            "index.number_of_shards": index.shards,
            "index.number_of_replicas": variant.map_or(index.replicas, |v| index.replicas_of(v)),
        });
        for (name, value) in &index.settings {
            settings[name] = json!(value);
        }
        if self.plan.joined && self.clusters.has_allocation_filters() {
            // A copy can only cross the link later if none is on the other side now.
            settings[PLACE] = json!(self.clusters.nodes(LEADER).first().map(|node| &node.name));
        }
        let mappings = index.mappings.clone();
        let mappings = mappings.unwrap_or_else(|| self.corpus().source.mapping());
        json!({ "settings": settings, "mappings": mappings })
    }

    /// Fills an index that exists only as a size.
    async fn load_sizes(&self, index: &Index, full: Full) -> Result<()> {
        let controls = self.clusters.virtual_controls();
        let synthetic = SyntheticIndex {
            name: index.name.clone(),
            documents: full.documents,
            bytes: full.bytes,
            segments: full.segments,
            segment_ratio: full.segment_ratio,
        };
        let controls = controls.expect("only simulated machines load sizes");
        Ok(controls.load_index(LEADER, &synthetic).await?)
    }

    async fn bulk(&self, index: &Index, done: &Cell<u64>) -> Result<()> {
        let Range { start, end } = index.documents;
        let clients = portions(end - start, self.corpus().clients);
        let clients = clients.into_iter().map(|part| start + part.start..start + part.end);
        try_join_all(clients.map(|part| self.bulk_client(index, part, done))).await?;
        // What is recovered later is what is committed now.
        self.ask(LEADER, "POST", &format!("/{}/_flush", index.name), None).await.map(drop)
    }

    /// Sends bulk requests, one after another.
    async fn bulk_client(&self, index: &Index, part: Range<u64>, done: &Cell<u64>) -> Result<()> {
        let corpus = self.corpus();
        let bodies = BulkBodies::new(&corpus.source, self.plan.seed, part, corpus.bulk_documents)?;
        let path = format!("/{}/_bulk?filter_path=errors,took", index.name);
        for body in bodies {
            let BulkBody { documents, body, .. } = body?;
            let answer =
                self.clusters.request(LEADER, "POST", &path, body.clone()).await?.json()?;
            if answer["errors"] == json!(true) {
                let why = self.first_error(&index.name, body).await?;
                return Err(Error::Rejected { why });
            }
            done.set(done.get() + documents);
            self.watch.progress(done.get(), None);
        }
        Ok(())
    }

    /// The first document that is refused, in the cluster's words. Asks again without the filter.
    async fn first_error(&self, index: &str, body: Bytes) -> Result<String> {
        let path = format!("/{index}/_bulk");
        let answer = self.clusters.request(LEADER, "POST", &path, body).await?.json()?;
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        let refused = items.iter().find_map(|item| {
            let error = item.as_object()?.values().next()?.get("error")?;
            Some(error["reason"].as_str().unwrap_or("no reason given").to_owned())
        });
        Ok(refused.unwrap_or_else(|| "it was accepted when sent again".to_owned()))
    }

    /// Waits until every copy of an index of the leader is started. That is given up once a request for it times out
    /// without change, and no copy is initializing or delayed because a node left.
    pub(crate) async fn wait_for_health(&self, index: &str) -> Result<()> {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout=15s");
        let give_up = self.env.now() + GREEN_PATIENCE;
        let mut before = None;
        loop {
            let health: Value = self.ask(LEADER, "GET", &path, None).await?;
            if health["timed_out"] != json!(true) {
                return Ok(());
            }
            let count = |name: &str| health[name].as_u64().unwrap_or(0);
            let found = (count("number_of_nodes"), count("active_shards"));
            let pending = count("initializing_shards") + count("delayed_unassigned_shards");
            if self.env.now() >= give_up || pending == 0 && before == Some(found) {
                let status = health["status"].as_str().unwrap_or("unknown").to_owned();
                let index = index.to_owned();
                return Err(Error::NotGreen { cluster: LEADER.to_owned(), index, status });
            }
            before = Some(found);
        }
    }

    /// Deletes the indices, and on a follower first the patterns by which it would follow them again.
    pub(crate) async fn delete_indices(&self, cluster: &str) -> Result<()> {
        for action in self.plan.actions.iter().filter(|_| cluster == FOLLOWER) {
            if let Action::AutoFollow(Pattern { name, .. }) = action {
                self.ask(cluster, "DELETE", &format!("/_ccr/auto_follow/{name}"), None).await?;
            }
        }
        for index in &self.plan.indices {
            let names = match index.rollover {
                Some(_) => {
                    let path = format!("/_alias/{}", index.name);
                    let aliased = self.ask(cluster, "GET", &path, None).await?;
                    aliased.as_object().into_iter().flat_map(Map::keys).cloned().collect()
                }
                None => vec![index.name.clone()],
            };
            for name in names {
                if cluster == FOLLOWER {
                    self.end_following(&name).await?;
                }
                self.ask(cluster, "DELETE", &format!("/{name}"), None).await?;
            }
        }
        Ok(())
    }

    /// Gives every index so many replicas more than the plan says.
    pub(crate) async fn set_replicas(&self, more: u32) -> Result<()> {
        for index in &self.plan.indices {
            let replicas = index.replicas + more;
            let mut body = json!({ "index.number_of_replicas": replicas });
            if more > 0 && self.plan.joined && self.clusters.has_allocation_filters() {
                // The primaries were kept on the first site while they were filled.
                let nodes =
                    [LEADER, FOLLOWER].into_iter().flat_map(|site| self.clusters.nodes(site));
                let names: Vec<String> = nodes.map(|node| node.name).collect();
                body[PLACE] = json!(names.join(","));
            }
            let path = format!("/{}/_settings", index.name);
            self.ask(LEADER, "PUT", &path, Some(&body)).await?;
        }
        Ok(())
    }

    /// Waits until no merge runs in the background: it would take disk and cores from the first variant.
    async fn wait_for_merges(&self) -> Result<()> {
        let path = format!("/{}/_stats/merge", self.plan.index_names());
        let give_up = self.env.now() + MERGE_PATIENCE;
        while self.env.now() < give_up {
            let stats = self.ask(LEADER, "GET", &path, None).await?;
            if stats.pointer("/_all/total/merges/current").and_then(Value::as_u64) == Some(0) {
                break;
            }
            self.env.sleep(Duration::from_millis(500)).await;
        }
        // What was merged last is committed, too.
        let path = format!("/{}/_flush", self.plan.index_names());
        self.ask(LEADER, "POST", &path, None).await.map(drop)
    }
}
