//! Which operations the log must keep when it is trimmed.

use std::collections::BTreeMap;

/// Retention leases by id: each keeps the operations from its sequence number on.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    leases: BTreeMap<String, u64>,
}

impl Retention {
    /// Sets or releases a lease.
    pub(crate) fn set(&mut self, id: &str, from: Option<u64>) {
        match from {
            Some(from) => self.leases.insert(id.to_owned(), from),
            None => self.leases.remove(id),
        };
    }

    pub(crate) fn leases(&self) -> &BTreeMap<String, u64> {
        &self.leases
    }

    /// The first sequence number that must stay after a commit: what the commit does not hold, what a lease
    /// keeps, and what other copies may lack (above the global checkpoint, where it is known).
    pub(crate) fn floor(&self, local_checkpoint: Option<u64>, global: Option<u64>) -> u64 {
        let above = |checkpoint: u64| checkpoint + 1;
        let commit = local_checkpoint.map_or(0, above);
        let global = global.map_or(u64::MAX, above);
        let leased = self.leases.values().copied().min().unwrap_or(u64::MAX);
        commit.min(global).min(leased)
    }
}
