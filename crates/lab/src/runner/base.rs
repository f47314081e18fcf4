//! A run: its plan, its clusters and its record.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use clusters::Clusters;
use record::{Line, Row, ShardDigest, Writer};
use serde::Serialize;
use serde_json::{Value, json};
use world::Env;

use super::journal::Journal;
use super::watch::Watch;
use crate::error::Result;
use crate::plan::{CorpusUse, Resolved, Variant};

/// A plan being run on clusters that were started.
pub(crate) struct Runner<'a> {
    pub(crate) env: Env,
    pub(crate) plan: &'a Resolved,
    pub(crate) clusters: &'a mut dyn Clusters,
    pub(crate) journal: Journal<'a>,
    pub(crate) watch: &'a dyn Watch,
    /// What the leader's primaries held once they were filled.
    pub(crate) held: Vec<ShardDigest>,
    /// Documents that were acknowledged when the leader was filled last, where it was filled with documents.
    pub(super) filled: Cell<Option<u64>>,
    /// What was measured so far of a variant in a lap. It is recorded if that does not come to its end.
    pub(crate) unfinished: RefCell<Option<Row>>,
}

/// Records what was measured of an unfinished turn, also where somebody interrupts the run.
impl Drop for Runner<'_> {
    fn drop(&mut self) {
        if let Some(row) = self.unfinished.take() {
            // Why the run has ended is told already.
            let _ = self.journal.row(&row);
        }
    }
}

impl<'a> Runner<'a> {
    /// A run whose record begins now.
    pub(crate) fn new(
        env: &Env,
        plan: &'a Resolved,
        clusters: &'a mut dyn Clusters,
        writer: &'a mut Writer,
        watch: &'a dyn Watch,
    ) -> Self {
        let (env, journal) = (env.clone(), Journal::new(env, writer));
        let (held, filled, unfinished) = (Vec::new(), Cell::default(), RefCell::default());
        Runner { env, plan, clusters, journal, watch, held, filled, unfinished }
    }

    /// What is indexed. A plan that comes here has it: buckets have an experiment of their own.
    pub(crate) fn corpus(&self) -> &'a CorpusUse {
        self.plan.corpus.as_ref().expect("a plan without a bucket has a corpus")
    }

    /// Whether the indices are loaded by their sizes.
    pub(crate) fn loads_sizes(&self) -> bool {
        self.clusters.is_virtual() && self.plan.full_bytes().is_some()
    }

    /// Whether each variant needs the indices anew. Where they are loaded at once, every variant has clusters of its
    /// own, too: connections keep the windows that they were opened with, and nothing of one variant reaches the next.
    pub(crate) fn fills_anew(&self) -> bool {
        self.plan.spoils_indices() || self.loads_sizes()
    }

    /// Writes a sentence into the record, and tells it to the watcher.
    pub(crate) fn note(&self, variant: Option<&Variant>, text: &str) -> Result<()> {
        self.watch.note(text);
        let variant = variant.map(|variant| variant.name.clone());
        self.journal.line(&Line::Note { t_ms: self.journal.t_ms(), variant, text: text.to_owned() })
    }

    /// Asks a cluster; its answer as JSON.
    pub(crate) async fn ask(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        Ok(self.clusters.request(cluster, method, path, body).await?.json()?)
    }

    /// Gives a cluster settings that stay until they are taken back.
    pub(crate) async fn persist(&self, cluster: &str, settings: &impl Serialize) -> Result<()> {
        let body = json!({ "persistent": settings });
        self.ask(cluster, "PUT", "/_cluster/settings", Some(&body)).await.map(drop)
    }

    /// Whether the documents of a cluster's copies are read through searches: one that was not started here may have no
    /// other way, and its nodes cannot be asked one by one.
    pub(crate) async fn reads_by_search(&self, cluster: &str) -> Result<bool> {
        Ok(self.is_elsewhere() || !self.is_embedded(cluster).await?)
    }

    /// Whether the clusters were there before the run, on machines with clocks of their own.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.clusters.name() == "url"
    }

    /// Whether a cluster is one of the embedded engine, by its own word.
    pub(crate) async fn is_embedded(&self, cluster: &str) -> Result<bool> {
        let root = self.ask(cluster, "GET", "/", None).await?;
        Ok(root["version"]["narrows"].is_string())
    }
}
