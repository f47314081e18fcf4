//! `[load]`, of the plan and of variants.

use std::ops::RangeInclusive;

use toml::{Spanned, Value};

use super::together::{Together, every};
use crate::error::Result;
use crate::load::{Arrival, Extent, Load};
use crate::plan::document::{LOAD, LoadTable, PLAN};
use crate::plan::file::Plan;
use crate::plan::load::{FullLoad, LoadUse};

const REQUESTS: RangeInclusive<i64> = 1..=1_000_000_000_000;

/// Two tables of a load, where the variant's values go before the plan's.
#[derive(Clone, Copy)]
struct Tables<'a> {
    variant: Option<&'a LoadTable>,
    plan: Option<&'a LoadTable>,
}

impl<'a> Tables<'a> {
    fn get<T>(self, key: impl Fn(&'a LoadTable) -> Option<T>) -> Option<T> {
        self.variant.and_then(&key).or_else(|| self.plan.and_then(key))
    }
}

/// Whether a variant says how starts follow each other, and no rate of its own.
fn takes_rate_away(own: &LoadTable) -> bool {
    own.arrival.is_some() && own.rate.is_none()
}

impl Plan {
    /// The load of a variant: the plan's, changed by what the variant says of its own. None where neither has one.
    pub(super) fn load(
        &self,
        own: Option<&Spanned<LoadTable>>,
        nodes: &[String],
        scale: f64,
    ) -> Result<Option<LoadUse>> {
        let common = self.document.load.as_ref();
        let Some(any) = common.or(own) else { return Ok(None) };
        let tables =
            Tables { variant: own.map(Spanned::get_ref), plan: common.map(Spanned::get_ref) };
        let lacks = |message: &str| self.error(any.span(), message);
        let named = tables.get(|table| table.operations.as_ref());
        let named =
            named.ok_or_else(|| lacks("a load names its operations: operations = [\"search\"]"));
        let clients = tables.get(|table| table.clients.as_ref());
        let clients =
            clients.ok_or_else(|| lacks("a load says how many clients it has: clients = 8"));
        let measured = tables.get(|table| table.measured.as_ref()).ok_or_else(|| {
            lacks(
                "a load says what is measured, a time or a number of requests: measured = \"30s\"",
            )
        });
        let measured = measured.and_then(|measured| self.extent("measured", measured));
        let warm_up = tables.get(|table| table.warm_up.as_ref());
        let warm_up = warm_up.map_or(Ok(Extent::NONE), |value| self.extent("warm_up", value));
        let (named, clients, measured, warm_up) = (named, clients, measured, warm_up).together()?;
        let time = |key: &str, text: Option<&Spanned<String>>| {
            text.map(|text| self.time(&LOAD, key, text)).transpose()
        };
        let asked = tables.get(|table| table.nodes.as_ref()).into_iter().flatten();
        let threads = tables.get(|table| table.threads.as_ref());
        let found = (
            self.operations_called(named),
            self.full_load(tables, named, warm_up, measured, scale),
            self.number(&LOAD, "clients", clients),
            self.arrival(tables),
            time("timeout", tables.get(|table| table.timeout.as_ref())),
            time("window", tables.get(|table| table.window.as_ref())),
            every(asked.map(|name| self.node_called(name, nodes))),
            threads.map_or(Ok(1), |threads| self.number(&LOAD, "threads", threads)),
        );
        let (operations, full, clients, arrival, timeout, window, nodes, threads) =
            found.together()?;
        let closed = Load::closed(Vec::new(), clients, measured, 0);
        let timeout = timeout.unwrap_or(closed.timeout);
        let window = window.unwrap_or(closed.window);
        let load = Load { arrival, warm_up, timeout, window, ..closed };
        Ok(Some(LoadUse { operations, full, load, nodes, threads }))
    }

    /// The same in the published run, where it is the plan's unless `full` says otherwise.
    fn full_load(
        &self,
        tables: Tables<'_>,
        named: &[Spanned<String>],
        warm_up: Extent,
        measured: Extent,
        scale: f64,
    ) -> Result<FullLoad> {
        let full = tables.get(|table| table.full.as_ref());
        let laps = full.and_then(|full| full.laps.as_ref());
        let own_warm_up = full.and_then(|full| full.warm_up.as_ref());
        let warm_up = own_warm_up.map_or(Ok(warm_up), |value| self.extent("warm_up", value))?;
        let measured = full.map_or(Ok(measured), |full| self.extent("measured", &full.measured))?;
        Ok(FullLoad {
            laps: laps.map(|laps| self.number(&PLAN, "laps", laps)).transpose()?,
            operations: self.as_costs(named)?,
            warm_up: warm_up.scaled(scale),
            measured: measured.scaled(scale),
        })
    }

    fn arrival(&self, tables: Tables<'_>) -> Result<Arrival> {
        let arrival = tables.get(|table| table.arrival.as_ref());
        let name = arrival.map(|arrival| arrival.get_ref().as_str());
        let Some(rate) = tables.get(|table| table.rate.as_ref()) else {
            return match arrival {
                Some(arrival) if name != Some("closed") => {
                    let message = "starts that follow a clock need a rate: rate = 500";
                    Err(self.error(arrival.span(), message))
                }
                _ => Ok(Arrival::Closed),
            };
        };
        let rate_per_s = self.real(&LOAD, "rate", rate)?;
        match name {
            None | Some("deterministic") => Ok(Arrival::Deterministic { rate_per_s }),
            Some("poisson") => Ok(Arrival::Poisson { rate_per_s }),
            // A variant may take the plan's rate away.
            Some("closed") if tables.variant.is_some_and(takes_rate_away) => Ok(Arrival::Closed),
            Some("closed") => {
                let message = "a closed loop has no rate; leave out rate, or arrival = \"closed\"";
                Err(self.error(rate.span(), message))
            }
            Some(_) => {
                let names = ["closed", "deterministic", "poisson"];
                let arrival = arrival.expect("it has a name");
                Err(self.unknown("no arrival is called", arrival, "Arrivals", &names))
            }
        }
    }

    /// A time as text, or a number of requests.
    fn extent(&self, key: &str, value: &Spanned<Value>) -> Result<Extent> {
        if let Some(requests) = value.get_ref().as_integer() {
            let spanned = Spanned::new(value.span(), requests);
            return Ok(Extent::Requests(self.number_within(key, &spanned, REQUESTS)?));
        }
        let text = value.get_ref().as_str().unwrap_or_default().to_owned();
        Ok(Extent::Time(self.time(&LOAD, key, &Spanned::new(value.span(), text))?))
    }
}
