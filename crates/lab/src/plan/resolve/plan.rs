//! The whole plan.

use std::time::Duration;

use record::units::parse_duration;

use crate::error::Error;
use crate::plan::bounds::LAPS;
use crate::plan::declared::DeclaredSteps;
use crate::plan::file::Plan;
use crate::plan::resolved::Resolved;

const SCALE_MAX: f64 = 1e6;

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
    ) -> Result<Resolved, Error> {
        if !(scale > 0.0 && scale <= SCALE_MAX) {
            return Err(Error::Scale { scale });
        }
        let document = &self.document;
        let (leader, follower) = self.clusters()?;
        let corpus = self.corpus(scale)?;
        let (steps, actions) = self.steps(declared, leader, scale)?;
        let bucket = self.bucket(scale)?;
        let indices = match &corpus {
            Some(corpus) => self.indices(leader, corpus.documents, scale, &check_setting)?,
            None => Vec::new(),
        };
        self.check_patterns(&indices, &actions)?;
        let resolved = Resolved {
            name: self.plan_name()?,
            about: document.about.clone(),
            source: document.source.clone(),
            steps,
            actions,
            joined: self.joined(declared)?,
            laps: self.number("laps", &document.laps, LAPS)?,
            sample: self.sample()?,
            seed: self.number("seed", &document.seed, 0..=i64::MAX)?,
            scale,
            leader,
            follower,
            link: self.link()?,
            indices,
            corpus,
            bucket,
            node_settings: self.settings(&document.node_settings, &check_setting)?,
            variants: self.variants(&check_setting, leader, scale)?,
        };
        let resolved = self.with_kinds(resolved)?;
        self.check_measured(declared, &resolved)?;
        Ok(resolved)
    }

    fn plan_name(&self) -> Result<String, Error> {
        let name = &self.document.name;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let message = "a plan's name has lower-case letters, digits and hyphens only";
            return Err(self.error(name.span(), message));
        }
        Ok(name.get_ref().clone())
    }

    fn sample(&self) -> Result<Duration, Error> {
        let sample = &self.document.sample;
        let time = self.unit(sample, parse_duration)?;
        let bounds = Duration::from_millis(1)..=Duration::from_secs(3600);
        self.within("sample", sample, &time, &bounds, |time| format!("{time:?}"))?;
        Ok(time)
    }
}
