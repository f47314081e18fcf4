//! What clients were answered, and what may be there after it.

use std::collections::BTreeMap;

/// A document as a client sees it; none is not there.
pub type Content = BTreeMap<String, Option<String>>;

/// A write that was sent.
#[derive(Clone, Debug)]
struct Entry {
    key: String,
    value: Option<String>,
    /// Whether it was answered with success; nobody knows otherwise whether it was done.
    acknowledged: bool,
}

/// The writes of one vbucket, in their order. It trusts no number of the engine's.
#[derive(Debug, Default)]
pub struct Ledger {
    /// What was there when it was looked last.
    base: Content,
    entries: Vec<Entry>,
    /// So many of them are on the owner's disk, as it said.
    durable: usize,
    pub acknowledged: u64,
    pub unknown: u64,
}

impl Ledger {
    /// A write was answered, or nobody knows.
    pub fn wrote(&mut self, key: &str, value: Option<String>, acknowledged: bool) {
        self.entries.push(Entry { key: key.to_owned(), value, acknowledged });
        *(if acknowledged { &mut self.acknowledged } else { &mut self.unknown }) += 1;
    }

    /// Writes so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The owner said that this many are on its disk.
    pub fn persisted(&mut self, count: usize) {
        self.durable = self.durable.max(count.min(self.entries.len()));
    }

    /// Writes that the owner said are on its disk.
    pub fn durable(&self) -> usize {
        self.durable
    }

    /// Compares with what the owner holds: all is as it was after one of the writes, the first `least` of them at
    /// least. What it holds is where the next look begins.
    pub fn check(&mut self, found: &Content, least: usize) -> Result<(), String> {
        let least = least.min(self.entries.len());
        let fits = |end| self.keys(found).all(|key| self.may_be(key, end, &value(found, key)));
        let fits = (least..=self.entries.len()).rev().any(fits);
        if !fits {
            return Err(self.difference(found, least));
        }
        self.base = self.keys(found).map(|key| (key.clone(), value(found, key))).collect();
        self.entries.clear();
        self.durable = 0;
        Ok(())
    }

    /// Keys that anything is known of.
    fn keys<'a>(&'a self, found: &'a Content) -> impl Iterator<Item = &'a String> {
        let written = self.entries.iter().map(|entry| &entry.key);
        self.base.keys().chain(found.keys()).chain(written)
    }

    /// Whether a key may have this value after the first `end` writes.
    fn may_be(&self, key: &str, end: usize, found: &Option<String>) -> bool {
        for entry in self.entries[..end].iter().rev().filter(|entry| entry.key == key) {
            if entry.value == *found {
                return true;
            }
            if entry.acknowledged {
                return false;
            }
        }
        value(&self.base, key) == *found
    }

    fn difference(&self, found: &Content, least: usize) -> String {
        let all = self.entries.len();
        let wrong = self
            .keys(found)
            .find(|key| !(least..=all).any(|end| self.may_be(key, end, &value(found, key))));
        match wrong {
            Some(key) => format!(
                "{key} is {:?}; {} of {all} writes must be there, of it: {:?} after {:?}",
                value(found, key),
                least,
                self.entries.iter().filter(|e| e.key == **key).collect::<Vec<_>>(),
                value(&self.base, key)
            ),
            None => format!("no moment of {least} to {all} writes has all of {found:?}"),
        }
    }
}

fn value(content: &Content, key: &str) -> Option<String> {
    content.get(key).cloned().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(pairs: &[(&str, &str)]) -> Content {
        pairs.iter().map(|(key, value)| (key.to_string(), Some(value.to_string()))).collect()
    }

    #[test]
    fn what_was_acknowledged_is_there_unless_memory_was_lost() {
        let ledger = || {
            let mut ledger = Ledger::default();
            ledger.wrote("a", Some("1".into()), true);
            ledger.wrote("b", Some("2".into()), true);
            ledger.persisted(1);
            assert_eq!(ledger.durable(), 1);
            ledger.wrote("a", Some("3".into()), false);
            ledger
        };
        assert!(ledger().check(&content(&[("a", "1"), ("b", "2")]), 3).is_ok());
        assert!(ledger().check(&content(&[("a", "3"), ("b", "2")]), 3).is_ok());
        assert!(ledger().check(&content(&[("a", "1")]), 3).is_err());
        assert!(ledger().check(&content(&[("a", "1")]), 1).is_ok());
        // On disk, and gone; and the later without the earlier.
        assert!(ledger().check(&content(&[]), 1).is_err());
        assert!(ledger().check(&content(&[("a", "3")]), 1).is_err());
        assert!(ledger().check(&content(&[("a", "1"), ("b", "9")]), 1).is_err());
    }
}
