//! The events about aliases, and rollover.

use std::collections::{BTreeMap, BTreeSet};

use super::alias::{Alias, AliasAction, Aliases};
use super::applied::{Applied, find, find_meant};
use super::check_aliases::check;
use super::made::RollOver;
use super::{Change, ClusterState, StateError, indices, templates};

/// Every action, or none of them.
pub(super) fn change_aliases(
    state: &mut ClusterState,
    now_ms: u64,
    actions: Vec<AliasAction>,
) -> Applied {
    let mut changed: BTreeMap<String, Aliases> = BTreeMap::new();
    let mut removed: BTreeSet<String> = BTreeSet::new();
    for action in actions {
        let (AliasAction::Add { index, .. }
        | AliasAction::Remove { index, .. }
        | AliasAction::RemoveIndex { index }) = &action;
        let before = &find_meant(state, index)?.aliases;
        let aliases = changed.entry(index.name.clone()).or_insert_with(|| before.clone());
        match action {
            AliasAction::Add { alias, properties, .. } => drop(aliases.insert(alias, properties)),
            AliasAction::Remove { alias, .. } => drop(aliases.remove(&alias)),
            AliasAction::RemoveIndex { index } => drop(removed.insert(index.name)),
        }
    }
    changed.retain(|index, _| !removed.contains(index));
    check(state, &changed, &removed)?;
    let mut changes = Vec::new();
    for index in removed {
        changes.extend(indices::remove_index(state, now_ms, index)?);
    }
    for (index, aliases) in changed {
        changes.extend(set(state, index, aliases)?);
    }
    Ok(changes)
}

fn set(state: &mut ClusterState, index: String, aliases: Aliases) -> Applied {
    let meta = find(state, &index)?;
    if meta.aliases == aliases {
        return Ok(Vec::new());
    }
    meta.aliases = aliases;
    meta.aliases_version += 1;
    Ok(vec![Change::Other])
}

/// Makes an index and has it take the writes of an alias, in one step.
pub(super) fn roll_over(state: &mut ClusterState, now_ms: u64, roll_over: RollOver) -> Applied {
    let RollOver { alias, from, to, made } = roll_over;
    let now = state.write_index(&alias)?.map(str::to_owned);
    let mut old = match &now {
        Some(now) if *now == from.name && *now != alias => {
            find_meant(state, &from)?.aliases.clone()
        }
        _ => {
            let (from, now) = (from.name, now.unwrap_or_default());
            return Err(StateError::RolledOver { alias, from, now });
        }
    };
    // An alias with `is_write_index` keeps its older indices; one without moves to the newest.
    let explicit = old.get(&alias).and_then(|alias| alias.is_write_index);
    let mut properties = Alias::default();
    if explicit.is_some() {
        old.insert(alias.clone(), Alias::read_only());
        properties.is_write_index = Some(true);
    } else {
        old.remove(&alias);
    }
    let mut new = templates::new_index(state, to.clone(), made);
    new.made.aliases.remove(&alias);
    let mut changes = indices::create_index(state, now_ms, new)?;
    changes.extend(set(state, from.name, old)?);
    let made = find(state, &to)?;
    made.aliases.insert(alias, properties);
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::{Lab, creation};
    use super::super::{Event, Index, Made};
    use super::*;
    use crate::settings::Update;

    fn lab() -> Lab {
        let mut lab = Lab::new(2);
        for index in ["logs-1", "logs-2", "geo"] {
            lab.create(index, 1, 0);
        }
        lab
    }

    /// [`change`] says which index has the name then.
    fn named(name: &str) -> Index {
        Index { name: name.to_owned(), uuid: String::new() }
    }

    fn add(index: &str, alias: &str, is_write_index: Option<bool>) -> AliasAction {
        AliasAction::Add {
            index: named(index),
            alias: alias.to_owned(),
            properties: Alias { is_write_index, filter: None },
        }
    }

    fn change(lab: &mut Lab, actions: &[AliasAction]) -> Result<(), String> {
        let mut actions = actions.to_vec();
        for action in &mut actions {
            let (AliasAction::Add { index, .. }
            | AliasAction::Remove { index, .. }
            | AliasAction::RemoveIndex { index }) = action;
            *index = lab.state.meant(&index.name);
        }
        lab.apply(Event::ChangeAliases { actions }).map(|_| ()).map_err(|error| error.to_string())
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
            AliasAction::Remove { index: named("logs-1"), alias: "logs".into() },
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
        let remove = AliasAction::RemoveIndex { index: named("logs-2") };
        change(&mut lab, &[remove, add("logs-1", "logs-2", None)]).unwrap();
        assert_eq!(written(&lab, "logs-2"), Ok(Some("logs-1".to_owned())));
        let said = lab.apply(creation("logs-2", Update::new()));
        assert!(said.unwrap_err().to_string().contains("an alias has this name"));
    }

    fn rolled(lab: &mut Lab, from: &str, to: &str) -> Result<(), String> {
        let event = Event::RollOver(Box::new(RollOver {
            alias: "logs".to_owned(),
            from: lab.state.meant(from),
            to: to.to_owned(),
            made: Made {
                aliases: Aliases::from([("all".to_owned(), Alias::default())]),
                ..Made::default()
            },
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
