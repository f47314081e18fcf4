//! Indexing the corpus on the leader: so many bulk clients, each with a part of the documents.

use std::cell::Cell;

use bytes::Bytes;
use clusters::Target;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::replicating::PLACE;
use super::{LEADER, Runner};
use crate::Error;
use crate::corpus::{BulkBodies, portions};

impl<T: Target> Runner<'_, T> {
    pub(super) async fn index(&self) -> Result<(), Error> {
        let (index, corpus) = (&self.plan.index, &self.plan.corpus);
        self.journal.phase("index", true, None, 1)?;
        self.watch.begin("index", None, Some(corpus.documents), "documents");
        let mut settings = json!({
            "index.number_of_shards": index.shards,
            "index.number_of_replicas": index.replicas,
        });
        if self.plan.joined && self.target.places_by_setting() {
            // A copy can only cross the link later if none is on the other side now.
            settings[PLACE] = json!(self.target.nodes(LEADER).first().map(|node| &node.name));
        }
        let body = json!({ "settings": settings, "mappings": corpus.source.mapping() });
        self.ask(LEADER, "PUT", &format!("/{}", index.name), Some(&body)).await?;
        self.wait_for_health(LEADER, &index.name).await?;
        let done = Cell::new(0u64);
        let clients = portions(corpus.documents, corpus.clients);
        try_join_all(clients.into_iter().map(|part| self.bulk_client(part, &done))).await?;
        // What is recovered later is what is committed now.
        self.ask(LEADER, "POST", &format!("/{}/_flush", index.name), None).await?;
        if !self.is_embedded(LEADER).await? {
            self.wait_for_merges().await?;
        }
        self.watch.end();
        self.journal.phase("index", false, None, 1)
    }

    async fn bulk_client(&self, part: std::ops::Range<u64>, done: &Cell<u64>) -> Result<(), Error> {
        let corpus = &self.plan.corpus;
        let bodies = BulkBodies::new(&corpus.source, self.plan.seed, part, corpus.bulk_documents)?;
        let path = format!("/{}/_bulk?filter_path=errors,took", self.plan.index.name);
        for body in bodies {
            let body = body?;
            let documents = body.documents;
            let bytes = body.body;
            let answer = self.target.request(LEADER, "POST", &path, bytes.clone()).await?.json()?;
            if answer["errors"] == json!(true) {
                let why = self.first_error(bytes).await?;
                return Err(Error::Rejected { why });
            }
            done.set(done.get() + documents);
            self.watch.progress(done.get(), None);
        }
        Ok(())
    }

    /// The first document that is refused, in the cluster's words. Asks again without the filter.
    async fn first_error(&self, body: Bytes) -> Result<String, Error> {
        let path = format!("/{}/_bulk", self.plan.index.name);
        let answer = self.target.request(LEADER, "POST", &path, body).await?.json()?;
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        let refused = items.iter().find_map(|item| {
            let error = item.as_object()?.values().next()?.get("error")?;
            Some(error["reason"].as_str().unwrap_or("no reason given").to_owned())
        });
        Ok(refused.unwrap_or_else(|| "it was accepted when sent again".to_owned()))
    }

    /// Waits until every copy of an index is started.
    pub(super) async fn wait_for_health(&self, cluster: &str, index: &str) -> Result<(), Error> {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout=30s");
        let health: Value = self.ask(cluster, "GET", &path, None).await?;
        if health["timed_out"] == json!(true) {
            let status = health["status"].as_str().unwrap_or("unknown").to_owned();
            let index = index.to_owned();
            return Err(Error::NotGreen { cluster: cluster.to_owned(), index, status });
        }
        Ok(())
    }
}
