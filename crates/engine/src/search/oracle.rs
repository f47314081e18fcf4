//! The oracle, the bound that policies are measured against. It sees what every coordinator has in flight to every node
//! at this moment, and the model of each host, so it exists in the virtual world alone.

use std::cell::RefCell;
use std::collections::BTreeMap;

use world::model::Host;
use world::{Env, Time};

use policy::selection::Choice;

/// What is true of all nodes, shared by those of one virtual world.
#[derive(Default)]
pub(super) struct Truth(RefCell<BTreeMap<String, u64>>);

impl Truth {
    /// A request is sent, by whomever.
    pub(super) fn sent(&self, name: &str) {
        *self.0.borrow_mut().entry(name.to_owned()).or_default() += 1;
    }

    /// It ended.
    pub(super) fn done(&self, name: &str) {
        if let Some(in_flight) = self.0.borrow_mut().get_mut(name) {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    /// Orders nodes by when a search that is sent now would end there; equals in an order by `random`. `threads` is
    /// the size of a node's pool.
    pub(super) fn order(&self, env: &Env, names: &[&str], threads: usize, random: u64) -> Choice {
        let nodes = self.0.borrow();
        let mut ends: Vec<(Time, usize, usize)> = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            let in_flight = nodes.get(*name).copied().unwrap_or(0);
            let host = env.host(name).virtual_host_model().unwrap_or_default();
            let turn = (at + (random % names.len() as u64) as usize) % names.len();
            ends.push((end(&host, in_flight, threads as f64), turn, at));
        }
        ends.sort_unstable();
        Choice::Ask(ends.into_iter().map(|end| end.2).collect())
    }
}

/// When a search of one second would end, as a moment after now.
fn end(host: &Host, in_flight: u64, threads: f64) -> Time {
    let there = in_flight as f64 + 1.0;
    let waits = (there - threads).max(0.0) / threads;
    let seconds = host.stretch(there.min(threads)) * (1.0 + waits);
    Time((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_counts_company_cores_and_who_waits() {
        let host = |cores, competitors| Host { cores, competitors, ..Host::default() };
        let seconds = |host: &Host, in_flight| end(host, in_flight, 25.0).as_secs_f64();
        assert_eq!(seconds(&host(16, 0), 0), 1.0);
        assert_eq!(seconds(&host(16, 0), 15), 1.0);
        assert_eq!(seconds(&host(16, 0), 24), 25.0 / 16.0);
        assert_eq!(seconds(&host(16, 0), 49), 25.0 / 16.0 * 2.0);
        assert_eq!(seconds(&host(16, 32), 24), 57.0 / 16.0);
    }
}
