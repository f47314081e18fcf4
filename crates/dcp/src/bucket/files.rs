//! How much of each file of the log is still needed.

use std::collections::BTreeMap;

use store::Location;

#[derive(Clone, Copy, Debug, Default)]
struct FileUse {
    total_bytes: u64,
    needed_bytes: u64,
}

/// The files of a log, by generation.
#[derive(Debug, Default)]
pub(super) struct LogFiles(BTreeMap<u32, FileUse>);

impl LogFiles {
    /// A record that is needed was written.
    pub(crate) fn add_needed(&mut self, location: Location) {
        self.add(location);
        self.need(location);
    }

    /// A record that nobody will look up was written.
    pub fn add(&mut self, location: Location) {
        self.0.entry(location.generation).or_default().total_bytes += u64::from(location.bytes);
    }

    /// A record is needed again.
    pub fn need(&mut self, location: Location) {
        self.0.entry(location.generation).or_default().needed_bytes += u64::from(location.bytes);
    }

    /// A record is no longer needed.
    pub fn release(&mut self, location: Location) {
        if let Some(file) = self.0.get_mut(&location.generation) {
            file.needed_bytes = file.needed_bytes.saturating_sub(location.bytes.into());
        }
    }

    /// Bytes of all files, and how many of them are needed.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |of: fn(&FileUse) -> u64| self.0.values().map(of).sum();
        (sum(|file| file.total_bytes), sum(|file| file.needed_bytes))
    }

    pub fn oldest(&self) -> Option<u32> {
        self.0.keys().next().copied()
    }

    pub fn remove(&mut self, generation: u32) {
        self.0.remove(&generation);
    }
}
