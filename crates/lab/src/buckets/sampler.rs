//! Samples of what threads do, for the record.

use std::time::Duration;

use record::{Line, NodeSample, RecoverySample};
use world::{Env, Time};

use crate::error::Result;
use crate::plan::{FOLLOWER, LEADER};
use crate::runner::{Journal, Turn};

/// Writes what threads do into the record.
pub(crate) struct Sampler<'a> {
    env: Env,
    every: Duration,
    turn: &'a Turn<'a>,
    due: Time,
    last: Vec<(String, Time, Duration)>,
}

impl<'a> Sampler<'a> {
    pub fn new(env: &Env, every: Duration, turn: &'a Turn<'a>) -> Sampler<'a> {
        Sampler { env: env.clone(), every, turn, due: env.now(), last: Vec::new() }
    }

    pub fn is_due(&self) -> bool {
        self.env.now() >= self.due
    }

    pub fn next(&mut self) {
        self.due = self.env.now() + self.every;
    }

    /// How much has come.
    pub fn progress(
        &self,
        journal: &Journal<'_>,
        recovered_bytes: u64,
        total_bytes: u64,
    ) -> Result<()> {
        let sample = RecoverySample { recovered_bytes, total_bytes, ..RecoverySample::default() };
        let variant = self.turn.variant.name.clone();
        let t_ms = journal.t_ms();
        journal.line(&Line::Recovery { t_ms, variant, lap: self.turn.lap, sample })
    }

    /// What a thread did since the sample before.
    pub fn sample(&mut self, journal: &Journal<'_>, thread: &str, busy: Duration) -> Result<()> {
        let now = self.env.now();
        let before = self.last.iter_mut().find(|(name, ..)| *name == thread);
        let Some((_, then, spent)) = before else {
            self.last.push((thread.to_owned(), now, busy));
            return Ok(());
        };
        let wall = (now - *then).as_secs_f64();
        let cores = busy.saturating_sub(*spent).as_secs_f64() / wall.max(1e-9);
        (*then, *spent) = (now, busy);
        let cluster = if thread == "producer" { LEADER } else { FOLLOWER };
        let sample = NodeSample {
            cluster: cluster.to_owned(),
            node: thread.to_owned(),
            cpu_cores: cores,
            ..NodeSample::default()
        };
        let variant = Some(self.turn.variant.name.clone());
        journal.line(&Line::Node { t_ms: journal.t_ms(), variant, lap: self.turn.lap, sample })
    }
}
