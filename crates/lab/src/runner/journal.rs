//! The record as a runner writes it: every line with the time since the run began.

use std::cell::RefCell;

use record::{Line, Phase, Row, Writer};
use world::{Env, Time};

use crate::error::Result;

/// Writes a run's record.
pub struct Journal<'a> {
    env: Env,
    began: Time,
    /// What was before it began.
    before_ms: f64,
    writer: RefCell<&'a mut Writer>,
}

impl<'a> Journal<'a> {
    /// A journal of a run that begins now.
    pub fn new(env: &Env, writer: &'a mut Writer) -> Self {
        Journal::going_on(env, writer, 0.0)
    }

    /// Goes on with a record that another one began, so many milliseconds ago.
    pub fn going_on(env: &Env, writer: &'a mut Writer, before_ms: f64) -> Self {
        let writer = RefCell::new(writer);
        Journal { env: env.clone(), began: env.now(), before_ms, writer }
    }

    /// Milliseconds since the run began.
    pub fn t_ms(&self) -> f64 {
        self.before_ms + (self.env.now() - self.began).as_secs_f64() * 1e3
    }

    pub(crate) fn line(&self, line: &Line) -> Result<()> {
        Ok(self.writer.borrow_mut().line(line)?)
    }

    pub(crate) fn row(&self, row: &Row) -> Result<()> {
        Ok(self.writer.borrow_mut().row(row)?)
    }

    pub(crate) fn phase(
        &self,
        name: &str,
        begins: bool,
        variant: Option<&str>,
        lap: u32,
    ) -> Result<()> {
        let phase = Phase { name: name.to_owned(), begins };
        let variant = variant.map(str::to_owned);
        self.line(&Line::Phase { t_ms: self.t_ms(), variant, lap, phase })
    }
}
