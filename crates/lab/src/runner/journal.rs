//! The record as a runner writes it: every line with the time since the run began.

use std::cell::RefCell;

use record::{Line, Phase, Row, Writer};
use world::{Env, Time};

use crate::Error;

pub(super) struct Journal<'a> {
    env: Env,
    began: Time,
    writer: RefCell<&'a mut Writer>,
}

impl<'a> Journal<'a> {
    pub(super) fn new(env: &Env, writer: &'a mut Writer) -> Self {
        Journal { env: env.clone(), began: env.now(), writer: RefCell::new(writer) }
    }

    /// Milliseconds since the run began.
    pub(super) fn t_ms(&self) -> f64 {
        (self.env.now() - self.began).as_secs_f64() * 1e3
    }

    pub(super) fn line(&self, line: &Line) -> Result<(), Error> {
        Ok(self.writer.borrow_mut().line(line)?)
    }

    pub(super) fn row(&self, row: &Row) -> Result<(), Error> {
        Ok(self.writer.borrow_mut().row(row)?)
    }

    pub(super) fn phase(
        &self,
        name: &str,
        begins: bool,
        variant: Option<&str>,
        lap: u32,
    ) -> Result<(), Error> {
        let phase = Phase { name: name.to_owned(), begins };
        let variant = variant.map(str::to_owned);
        self.line(&Line::Phase { t_ms: self.t_ms(), variant, lap, phase })
    }
}
