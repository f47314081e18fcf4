//! The whole plan.

use std::time::Duration;

use super::clusters::nodes;
use super::together::Together;
use crate::error::Result;
use crate::plan::bounds::check_scale;
use crate::plan::declared::DeclaredSteps;
use crate::plan::document::PLAN;
use crate::plan::file::Plan;
use crate::plan::resolved::Resolved;
use crate::plan::topology::Cluster;

/// What counts where a plan does not say it.
const LAPS_WITHOUT: u32 = 1;
const SAMPLE_WITHOUT: Duration = Duration::from_millis(100);
const SEED_WITHOUT: u64 = 42;
/// Our own nodes read no more ahead than this bound; those of the field have none. Where many chunks of a twin go as
/// one, the bound would hold copies that nothing holds in the cluster which was seen.
const READ_AHEAD: &str = "narrows.recovery.read_ahead";
const READ_AHEAD_OF_TWINS: &str = "64gb";

impl Plan {
    /// Everything with units and checked. `scale` multiplies the documents of the corpus.
    ///
    /// What plans do not know is asked for: the steps that experiments declare ([`STEPS`](crate::experiments::STEPS)),
    /// and `check_setting` for every setting, name and value, which answers with a sentence where it is wrong.
    pub fn resolve(
        &self,
        scale: f64,
        declared: &DeclaredSteps,
        check_setting: impl Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Resolved> {
        check_scale(scale)?;
        let resolved = self.resolve_all(scale, declared, &check_setting);
        self.with_mistakes_of_keys(resolved)
    }

    fn resolve_all(
        &self,
        scale: f64,
        declared: &DeclaredSteps,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Resolved> {
        let document = &self.document;
        let clusters = self.clusters();
        // Where their nodes are wrong, nothing else is wrong because of them.
        let leader = clusters.as_ref().map(|(leader, _)| *leader);
        let leader = leader.unwrap_or(Cluster { nodes: *nodes().end() as u32 });
        let corpus = self.corpus(scale);
        let indices = match &corpus {
            Ok(None) => Ok(Vec::new()),
            Ok(Some(corpus)) => self.indices(leader, corpus.documents, scale, check_setting),
            Err(_) => self.indices(leader, 1, scale, check_setting),
        };
        let laps = document.laps.as_ref().map(|laps| self.number(&PLAN, "laps", laps));
        let seed = document.seed.as_ref().map(|seed| self.number(&PLAN, "seed", seed));
        let whole = (
            self.plan_name(),
            laps.unwrap_or(Ok(LAPS_WITHOUT)),
            self.sample(),
            seed.unwrap_or(Ok(SEED_WITHOUT)),
            self.settings(&document.node_settings, check_setting),
            self.check_fitted(),
        );
        let tables = (
            whole.together(),
            clusters,
            corpus,
            indices,
            (self.bucket(scale), self.twin(leader, check_setting)).together(),
            self.link(),
            self.steps(declared, leader, scale),
            self.joined(declared),
            self.variants(check_setting, leader, scale),
        );
        let (whole, clusters, corpus, indices, (bucket, twin), link, steps, joined, variants) =
            tables.together()?;
        let (name, laps, sample, seed, mut node_settings, ()) = whole;
        if twin.is_some() {
            let unbounded = || READ_AHEAD_OF_TWINS.to_owned();
            node_settings.entry(READ_AHEAD.to_owned()).or_insert_with(unbounded);
        }
        let ((leader, follower), (steps, actions)) = (clusters, steps);
        self.check_patterns(&indices, &actions)?;
        let resolved = Resolved {
            name,
            about: document.about.clone(),
            source: document.source.clone(),
            steps,
            actions,
            joined,
            laps,
            sample,
            seed,
            scale,
            leader,
            follower,
            link,
            indices,
            corpus,
            bucket,
            twin,
            node_settings,
            variants,
            track: None,
            changes: Vec::new(),
        };
        let resolved = self.with_kinds(resolved);
        self.check_tables_are_used(declared, &resolved)?;
        self.check_measured(declared, &resolved)?;
        Ok(resolved)
    }

    fn plan_name(&self) -> Result<String> {
        let name = &self.document.name;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let message = "a plan's name has lower-case letters, digits and hyphens only";
            return Err(self.error(name.span(), message));
        }
        Ok(name.get_ref().clone())
    }

    fn sample(&self) -> Result<Duration> {
        let sample = self.document.sample.as_ref();
        sample.map_or(Ok(SAMPLE_WITHOUT), |sample| self.time(&PLAN, "sample", sample))
    }
}
