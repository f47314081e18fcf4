//! Aliases: further names of indices, which of the indices takes the writes to one, and rollover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::indices::{self, NewIndex, bad_name};
use super::manager::Applied;
use super::{Change, ClusterState, IndexMeta, StateError, json_text};
use crate::settings::Update;

/// What an alias is to one of its indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// Whether this index takes the writes. Where nobody said, the only index of an alias does.
    pub is_write_index: Option<bool>,
}

impl Alias {
    /// That of an index that never takes the writes.
    pub fn read_only() -> Self {
        Alias { is_write_index: Some(false) }
    }
}

/// The aliases of an index, by name.
pub type Aliases = BTreeMap<String, Alias>;

/// One line of `POST _aliases`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AliasAction {
    /// Adds an alias to an index, or says anew what it is.
    Add {
        /// The index.
        index: String,
        /// The alias.
        alias: String,
        /// What it is to that index.
        properties: Alias,
    },
    /// Takes an alias from an index; nothing where the index has not got it.
    Remove {
        /// The index.
        index: String,
        /// The alias.
        alias: String,
    },
    /// Deletes an index: another may take over its name as an alias in the same step.
    RemoveIndex {
        /// The index.
        index: String,
    },
}

/// What a rollover makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RollOver {
    /// The alias.
    pub alias: String,
    /// The index that takes its writes now.
    pub from: String,
    /// The one that is made, and takes them from then on.
    pub to: String,
    /// Its settings by full name.
    pub settings: Update,
    /// Its mappings: an object, or null for none.
    #[serde(with = "json_text")]
    pub mappings: Value,
    /// Its other aliases.
    pub aliases: Aliases,
}

impl ClusterState {
    /// The indices of an alias, in the order of their names; none where there is no such alias.
    pub fn aliased<'a>(&'a self, alias: &'a str) -> impl Iterator<Item = (&'a str, &'a Alias)> {
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
        let all: Vec<(&str, &Alias)> = self.aliased(name).collect();
        let explicit = all.iter().find(|(_, alias)| alias.is_write_index == Some(true));
        match (all.as_slice(), explicit) {
            ([], _) => Ok(None),
            (_, Some((index, _))) => Ok(Some(index)),
            ([(index, Alias { is_write_index: None })], None) => Ok(Some(index)),
            _ => Err(StateError::NoWriteIndex { alias: name.to_owned() }),
        }
    }
}

/// Every action, or none of them.
pub(super) fn change_aliases(state: &mut ClusterState, actions: Vec<AliasAction>) -> Applied {
    let mut changed: BTreeMap<String, Aliases> = BTreeMap::new();
    let mut removed: BTreeSet<String> = BTreeSet::new();
    for action in actions {
        let (AliasAction::Add { index, .. }
        | AliasAction::Remove { index, .. }
        | AliasAction::RemoveIndex { index }) = &action;
        let before = &indices::find(state, index)?.aliases;
        let aliases = changed.entry(index.clone()).or_insert_with(|| before.clone());
        match action {
            AliasAction::Add { alias, properties, .. } => drop(aliases.insert(alias, properties)),
            AliasAction::Remove { alias, .. } => drop(aliases.remove(&alias)),
            AliasAction::RemoveIndex { index } => drop(removed.insert(index)),
        }
    }
    changed.retain(|index, _| !removed.contains(index));
    check(state, &changed, &removed)?;
    let mut changes = Vec::new();
    for index in removed {
        changes.extend(indices::delete_index(state, index)?);
    }
    for (index, aliases) in changed {
        changes.extend(set(state, index, aliases)?);
    }
    Ok(changes)
}

fn set(state: &mut ClusterState, index: String, aliases: Aliases) -> Applied {
    let meta = indices::find(state, &index)?;
    if meta.aliases == aliases {
        return Ok(Vec::new());
    }
    meta.aliases = aliases;
    meta.aliases_version += 1;
    Ok(vec![Change::AliasesChanged { index }])
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

/// Makes an index and has it take the writes of an alias, in one step.
pub(super) fn roll_over(state: &mut ClusterState, now_ms: u64, roll_over: RollOver) -> Applied {
    let RollOver { alias, from, to, settings, mappings, aliases } = roll_over;
    let now = state.write_index(&alias)?.map(str::to_owned);
    let mut old = match &now {
        Some(now) if *now == from && *now != alias => state.indices[&from].aliases.clone(),
        _ => return Err(StateError::RolledOver { alias, from, now: now.unwrap_or_default() }),
    };
    // Who said which index is to be written to goes on saying it; who did not has an alias of the newest alone.
    let explicit = old.get(&alias).and_then(|alias| alias.is_write_index);
    let mut properties = Alias::default();
    if explicit.is_some() {
        old.insert(alias.clone(), Alias::read_only());
        properties.is_write_index = Some(true);
    } else {
        old.remove(&alias);
    }
    let mut new = NewIndex { index: to.clone(), settings, mappings, ..NewIndex::default() };
    new.aliases = aliases;
    new.aliases.remove(&alias);
    let mut changes = indices::create_index(state, now_ms, new)?;
    changes.extend(set(state, from, old)?);
    let made = indices::find(state, &to)?;
    made.aliases.insert(alias, properties);
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::super::manager::tests::Lab;
    use super::*;

    fn lab() -> Lab {
        let mut lab = Lab::new(2);
        for index in ["logs-1", "logs-2", "geo"] {
            lab.create(index, 1, 0);
        }
        lab
    }

    fn add(index: &str, alias: &str, is_write_index: Option<bool>) -> AliasAction {
        AliasAction::Add {
            index: index.to_owned(),
            alias: alias.to_owned(),
            properties: Alias { is_write_index },
        }
    }

    fn change(lab: &mut Lab, actions: &[AliasAction]) -> Result<(), String> {
        let event = Event::ChangeAliases { actions: actions.to_vec() };
        lab.apply(event).map(|_| ()).map_err(|error| error.to_string())
    }

    fn written(lab: &Lab, name: &str) -> Result<Option<String>, StateError> {
        lab.state.write_index(name).map(|index| index.map(str::to_owned))
    }

    #[test]
    fn the_only_index_takes_the_writes_unless_one_is_named() {
        let mut lab = lab();
        assert_eq!(written(&lab, "logs"), Ok(None));
        change(&mut lab, &[add("logs-1", "logs", None)]).unwrap();
        assert_eq!(written(&lab, "logs"), Ok(Some("logs-1".to_owned())));
        change(&mut lab, &[add("logs-2", "logs", None)]).unwrap();
        assert_eq!(written(&lab, "logs"), Err(StateError::NoWriteIndex { alias: "logs".into() }));
        change(&mut lab, &[add("logs-2", "logs", Some(true))]).unwrap();
        assert_eq!(written(&lab, "logs"), Ok(Some("logs-2".to_owned())));
        assert_eq!(written(&lab, "logs-1"), Ok(Some("logs-1".to_owned())));
        let only_read = [
            AliasAction::Remove { index: "logs-1".into(), alias: "logs".into() },
            add("logs-2", "logs", Some(false)),
        ];
        change(&mut lab, &only_read).unwrap();
        assert!(written(&lab, "logs").is_err(), "a write index that was disabled is none");
    }

    #[test]
    fn all_or_nothing() {
        let mut lab = lab();
        let before = lab.state.clone();
        let two = [add("logs-1", "logs", Some(true)), add("logs-2", "logs", Some(true))];
        let said = change(&mut lab, &two).unwrap_err();
        assert_eq!(said, "alias [logs] has more than one write index: logs-1, logs-2");
        let said = change(&mut lab, &[add("logs-1", "ok", None), add("geo", "logs-2", None)]);
        assert_eq!(said.unwrap_err(), "invalid alias name [logs-2]: an index has this name");
        assert!(change(&mut lab, &[add("logs-1", "ok", None), add("nix", "ok", None)]).is_err());
        assert!(change(&mut lab, &[add("logs-1", "a b", None)]).is_err());
        assert_eq!(lab.state, before);
        // An index may become an alias of the same name in one step.
        let remove = AliasAction::RemoveIndex { index: "logs-2".to_owned() };
        change(&mut lab, &[remove, add("logs-1", "logs-2", None)]).unwrap();
        assert_eq!(written(&lab, "logs-2"), Ok(Some("logs-1".to_owned())));
        let said = lab.apply(Event::CreateIndex {
            index: "logs-2".to_owned(),
            settings: Update::new(),
            mappings: Value::Null,
            aliases: Aliases::new(),
        });
        assert!(said.unwrap_err().to_string().contains("an alias has this name"));
    }

    fn rolled(lab: &mut Lab, from: &str, to: &str) -> Result<(), String> {
        let event = Event::RollOver(Box::new(RollOver {
            alias: "logs".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            settings: Update::new(),
            mappings: Value::Null,
            aliases: Aliases::from([("all".to_owned(), Alias::default())]),
        }));
        lab.apply(event).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rollover_moves_the_writes() {
        let mut lab = lab();
        change(&mut lab, &[add("logs-1", "logs", None)]).unwrap();
        rolled(&mut lab, "logs-1", "logs-3").unwrap();
        let of = |lab: &Lab, alias: &str| -> Vec<String> {
            lab.state.aliased(alias).map(|(index, _)| index.to_owned()).collect()
        };
        assert_eq!(of(&lab, "logs"), ["logs-3"], "an alias of the newest alone");
        assert_eq!(of(&lab, "all"), ["logs-3"]);
        change(&mut lab, &[add("logs-3", "logs", Some(true))]).unwrap();
        rolled(&mut lab, "logs-3", "logs-4").unwrap();
        assert_eq!(of(&lab, "logs"), ["logs-3", "logs-4"], "an alias of all, the newest written");
        assert_eq!(written(&lab, "logs"), Ok(Some("logs-4".to_owned())));
        let before = lab.state.clone();
        let said = rolled(&mut lab, "logs-3", "logs-5").unwrap_err();
        assert!(said.contains("[logs-4]"), "two that roll over at once make one index: {said}");
        assert!(rolled(&mut lab, "logs-4", "logs-1").unwrap_err().contains("already exists"));
        assert_eq!(lab.state, before);
    }
}
