//! What every change of the state shares: what came of it, the index that it is about, and the names that are refused.

use std::sync::Arc;

use super::change::Change;
use super::cluster::ClusterState;
use super::error::StateError;
use super::follow::FollowOrigin;
use super::index::IndexMeta;
use super::made::Made;
use crate::ids::Index;

/// What came of an event: the changes in order, or why it is refused.
pub(super) type Applied = Result<Vec<Change>, StateError>;

/// An index that is to be made.
pub(super) struct NewIndex {
    pub index: String,
    pub leader: Option<FollowOrigin>,
    pub made: Made,
}

/// The index of this name, to be changed.
pub(super) fn find<'a>(
    state: &'a mut ClusterState,
    index: &str,
) -> Result<&'a mut IndexMeta, StateError> {
    if !state.indices.contains_key(index) {
        let hint = record::names::did_you_mean(index, state.indices.keys().map(String::as_str));
        return Err(StateError::NoSuchIndex { index: index.to_owned(), hint });
    }
    Ok(Arc::make_mut(state.indices.get_mut(index).expect("it is contained")))
}

/// The index that a change is about, to be changed: not one that has its name by now.
pub(super) fn find_meant<'a>(
    state: &'a mut ClusterState,
    index: &Index,
) -> Result<&'a mut IndexMeta, StateError> {
    let meta = find(state, &index.name)?;
    if meta.uuid != index.uuid {
        let hint = ", but another that has its name by now; if that one is meant, ask again";
        let (index, hint) = (index.name.clone(), hint.to_owned());
        return Err(StateError::NoSuchIndex { index, hint });
    }
    Ok(meta)
}

/// What is wrong with a name of an index or an alias.
pub(super) fn bad_name(name: &str) -> Option<&'static str> {
    if name.is_empty() || name == "." || name == ".." {
        Some("it must not be empty, . or ..")
    } else if name.starts_with(['_', '-', '+']) {
        Some("it must not start with _, - or +")
    } else if name.contains(|c: char| c.is_whitespace() || "\\/*?\"<>|,#:".contains(c)) {
        Some("it must not contain spaces or \\ / * ? \" < > | , # :")
    } else if record::text::has_hidden(name) {
        Some("it must not contain characters that cannot be seen")
    } else if name.len() > 255 {
        Some("it must not be longer than 255 bytes")
    } else {
        None
    }
}

pub(super) fn check_remote(state: &ClusterState, alias: &str) -> Result<(), StateError> {
    let settings = state.settings();
    if settings.remotes().contains_key(alias) {
        return Ok(());
    }
    let known = settings.remotes().keys().map(String::as_str);
    let hint = record::names::did_you_mean(alias, known);
    Err(StateError::NoSuchRemote { alias: alias.to_owned(), hint })
}
