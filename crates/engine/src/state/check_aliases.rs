//! Which indices an alias names, and which aliases are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::alias::{Alias, Aliases};
use super::applied::bad_name;
use super::{ClusterState, IndexMeta, StateError};

impl ClusterState {
    /// The indices of an alias, in the order of their names; none where there is no such alias.
    pub fn aliased<'a>(
        &'a self,
        alias: &'a str,
    ) -> impl DoubleEndedIterator<Item = (&'a str, &'a Alias)> {
        let of = move |(name, meta): (&'a String, &'a Arc<IndexMeta>)| {
            Some((name.as_str(), meta.aliases.get(alias)?))
        };
        self.indices.iter().filter_map(of)
    }

    /// The index that takes the writes to a name: the index itself, or that of an alias. None where neither is there.
    pub fn write_index<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, StateError> {
        if self.indices.contains_key(name) {
            return Ok(Some(name));
        }
        // Of indices that roll over, hundreds may have the alias, and the last by name takes the writes.
        let explicit =
            self.aliased(name).rev().find(|(_, alias)| alias.is_write_index == Some(true));
        if let Some((index, _)) = explicit {
            return Ok(Some(index));
        }
        let mut all = self.aliased(name);
        match (all.next(), all.next()) {
            (None, _) => Ok(None),
            (Some((index, Alias { is_write_index: None, .. })), None) => Ok(Some(index)),
            _ => Err(StateError::NoWriteIndex { alias: name.to_owned() }),
        }
    }
}

/// Whether these indices may have these aliases, once others are gone.
pub(super) fn check(
    state: &ClusterState,
    changed: &BTreeMap<String, Aliases>,
    removed: &BTreeSet<String>,
) -> Result<(), StateError> {
    let is_index = |name: &String| {
        changed.contains_key(name) || state.indices.contains_key(name) && !removed.contains(name)
    };
    let names: BTreeSet<&String> = changed.values().flat_map(BTreeMap::keys).collect();
    for alias in names {
        if let Some(why) = bad_name(alias) {
            return Err(StateError::AliasName { alias: alias.clone(), why });
        }
        if is_index(alias) {
            let why = "an index has this name";
            return Err(StateError::AliasName { alias: alias.clone(), why });
        }
        let kept = state
            .aliased(alias)
            .filter(|(index, _)| !changed.contains_key(*index) && !removed.contains(*index));
        let new = changed.iter().filter_map(|(name, all)| Some((name.as_str(), all.get(alias)?)));
        let writes = kept.chain(new).filter(|(_, alias)| alias.is_write_index == Some(true));
        let writes: Vec<&str> = writes.map(|(index, _)| index).collect();
        if writes.len() > 1 {
            let (alias, indices) = (alias.clone(), writes.join(", "));
            return Err(StateError::ManyWriteIndices { alias, indices });
        }
    }
    Ok(())
}
