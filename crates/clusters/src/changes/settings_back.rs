//! How settings that were changed go back, given their values now. Pure.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::Scope;

use super::change::{Kept, SettingValue, Values};
use super::journal::Journal;

/// What to do with settings that were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SettingsBack {
    /// Settings to put back, with their original values.
    pub set: Values,
    /// Settings that have their original values, which are sent again: a change that was not answered may be made yet,
    /// and is made before what is sent after it.
    pub again: Values,
    /// A sentence for each setting that someone else has changed since.
    pub left: Vec<String>,
    /// What each setting is once that is done.
    pub stays: Values,
}

impl SettingsBack {
    /// How these settings of a scope are put back, given their values now; those `kept` to what they are there.
    pub fn of(
        journal: &Journal,
        scope: Scope,
        now: &BTreeMap<String, String>,
        kept: &Kept,
        which: impl Fn(&str) -> bool,
    ) -> SettingsBack {
        let mut originals: BTreeMap<&str, &SettingValue> = BTreeMap::new();
        for (name, value) in journal.of(scope).flat_map(|(before, _)| before) {
            originals.entry(name).or_insert(value);
        }
        let mut back = SettingsBack::default();
        for (name, original) in originals.into_iter().filter(|(name, _)| which(name)) {
            let kept = kept.get(name).filter(|kept| kept.scope == scope);
            let wanted = kept.map_or_else(|| original.clone(), |kept| Some(kept.value.clone()));
            let current = now.get(name).cloned();
            // What stays was answered: an earlier value of it was set by somebody else.
            let is_ours = || match kept {
                Some(_) => journal.late().values(scope, name).any(|value| *value == current),
                None => journal.has_set(scope, name, current.as_deref()),
            };
            let name = name.to_owned();
            if current == wanted {
                if journal.late().values(scope, &name).any(|value| *value != wanted) {
                    back.again.insert(name.clone(), wanted.clone());
                }
                back.stays.insert(name, wanted);
            } else if is_ours() {
                back.set.insert(name.clone(), wanted.clone());
                back.stays.insert(name, wanted);
            } else {
                back.left.push(format!(
                    "{name} is {} now, which narrows did not set, and is left so; it was {}",
                    shown(&current),
                    shown(&wanted)
                ));
                back.stays.insert(name, current);
            }
        }
        back
    }

    /// A sentence for each setting that goes back, once that is done.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let all = self.set.iter().chain(&self.again);
        all.map(|(name, value)| format!("{name} is {} again", shown(value)))
    }
}

/// A sentence for each persistent setting that was changed and that a transient one hides now: somebody else has set
/// that since, as a setting is changed in the scope in which it is in force.
pub(super) fn hidden(
    journal: &Journal,
    transient: &BTreeMap<String, String>,
    which: impl Fn(&str) -> bool,
) -> Vec<String> {
    let changed = |scope| -> BTreeSet<&String> {
        journal.of(scope).flat_map(|(before, _)| before.keys()).collect()
    };
    let (persistent, ours) = (changed(Scope::Persistent), changed(Scope::Transient));
    let others = persistent.difference(&ours).filter(|name| which(name));
    let hidden = others.filter_map(|name| Some((name, transient.get(*name)?)));
    let told = |(name, value): (&&String, &String)| {
        format!(
            "{name} is \"{value}\" as a transient setting, which narrows did not set and leaves; it hides the \
             persistent one"
        )
    };
    hidden.map(told).collect()
}

fn shown(value: &SettingValue) -> String {
    value.as_ref().map_or_else(|| "unset".to_owned(), |value| format!("\"{value}\""))
}

#[cfg(test)]
mod tests {
    use record::observation::Setting;

    use super::super::change::{Change, one, settings};
    use super::super::journal::head;
    use super::*;

    fn back(changes: &[Change], now: &[(&str, &str)]) -> SettingsBack {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&dir.path().join("j"), head()).unwrap();
        for change in changes {
            journal.record(change.clone()).unwrap();
        }
        let now = now.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        all_back(&journal, Scope::Persistent, &now.collect())
    }

    fn all_back(journal: &Journal, scope: Scope, now: &BTreeMap<String, String>) -> SettingsBack {
        SettingsBack::of(journal, scope, now, &Kept::new(), |_| true)
    }

    fn now(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("a".to_owned(), value.to_owned())])
    }

    #[test]
    fn a_setting_goes_back_to_what_it_was_before_the_first_change() {
        let changes = [
            settings(&[("a", Some("40mb")), ("b", None)], &[("a", Some("1mb")), ("b", Some("5"))]),
            settings(&[], &[("a", Some("2mb")), ("b", None)]),
        ];
        let found = back(&changes, &[("a", "2mb"), ("b", "5")]);
        let set: Values = BTreeMap::from([("a".into(), Some("40mb".into())), ("b".into(), None)]);
        let (stays, again) = (set.clone(), Values::new());
        let said: Vec<String> = found.sentences().collect();
        assert_eq!(said, ["a is \"40mb\" again", "b is unset again"]);
        assert_eq!(found, SettingsBack { set: set.clone(), again, left: Vec::new(), stays });
        // Journal first, request second: killed after that, it may be made yet.
        let again = back(&changes, &[("a", "40mb")]);
        assert_eq!((again.set, again.again), (Values::new(), set));
    }

    #[test]
    fn what_looks_as_it_was_is_sent_again_only_where_a_change_may_come() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        let mut journal = Journal::create(&path, head()).unwrap();
        let change = settings(&[("a", None), ("b", None)], &[("a", Some("1")), ("b", None)]);
        let again = |journal: &Journal| all_back(journal, Scope::Persistent, &BTreeMap::new());
        for is_answered in [true, false] {
            let number = journal.record(change.clone()).unwrap();
            if is_answered {
                journal.answered(number);
            }
            assert_eq!(again(&journal).again.is_empty(), is_answered);
        }
        // Nobody knows which changes of a killed run were made. A setting that was to stay as it was is not sent again:
        // a cluster that does not know it would refuse it.
        drop(journal);
        let found = again(&Journal::open(&path).unwrap());
        assert_eq!(found.again, BTreeMap::from([("a".to_owned(), None)]));
    }

    #[test]
    fn what_is_kept_goes_to_what_it_is_to_stay_unless_somebody_else_has_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&dir.path().join("j"), head()).unwrap();
        for (before, set) in [(None, "1mb"), (Some("1mb"), "2mb"), (Some("2mb"), "3mb")] {
            let number = journal.record(settings(&[("a", before)], &[("a", Some(set))])).unwrap();
            if set != "3mb" {
                journal.answered(number);
            }
        }
        let stays = Setting { value: "2mb".to_owned(), scope: Scope::Persistent };
        let kept = Kept::from([("a".to_owned(), stays)]);
        let back = |now: &str| {
            let now = self::now(now);
            let back = SettingsBack::of(&journal, Scope::Persistent, &now, &kept, |_| true);
            (back.set, back.again, back.left.len())
        };
        assert_eq!(back("2mb"), (Values::new(), one(Some("2mb")), 0), "3mb may be made yet");
        assert_eq!(back("3mb"), (one(Some("2mb")), Values::new(), 0), "it was");
        for theirs in ["1mb", "9mb"] {
            assert_eq!(back(theirs), (Values::new(), Values::new(), 1), "{theirs}");
        }
    }

    #[test]
    fn a_transient_setting_of_somebody_else_is_told_and_one_of_ours_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&dir.path().join("j"), head()).unwrap();
        journal.record(settings(&[("a", None)], &[("a", Some("80mb"))])).unwrap();
        let hidden = |journal: &Journal, value| hidden(journal, &now(value), |_| true);
        let told = hidden(&journal, "20mb");
        assert!(told[0].starts_with("a is \"20mb\" as a transient setting"), "{told:?}");
        assert!(super::hidden(&journal, &BTreeMap::new(), |_| true).is_empty());
        let (before, set) = (one(None), one(Some("1mb")));
        journal.record(Change::Settings { scope: Scope::Transient, before, set }).unwrap();
        assert!(hidden(&journal, "1mb").is_empty());
    }

    #[test]
    fn what_someone_else_set_meanwhile_is_left() {
        let changes = [settings(&[("a", Some("40mb"))], &[("a", Some("1mb"))])];
        let found = back(&changes, &[("a", "80mb")]);
        assert!(found.set.is_empty());
        assert_eq!(
            found.left,
            ["a is \"80mb\" now, which narrows did not set, and is left so; it was \"40mb\""]
        );
        assert!(back(&changes, &[]).left[0].starts_with("a is unset now"));
    }

    /// A transient value hides a persistent one, so each rank goes back by itself.
    #[test]
    fn ranks_go_back_apart_and_the_first_formats_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("changes.jsonl");
        let old = "{\"format\":1,\"cluster_uuid\":\"uuid\",\"hosts\":[]}\n\
            {\"change\":\"settings\",\"before\":{\"a\":\"1mb\"},\"set\":{\"a\":\"2mb\"}}\n";
        std::fs::write(&path, old.replace("\"format\":1", "\"format\":2")).unwrap();
        assert!(Journal::open(&path).unwrap().original(Scope::Persistent, "a").is_some());
        std::fs::write(&path, old).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        let (before, set) = (one(None), one(Some("3mb")));
        journal.record(Change::Settings { scope: Scope::Transient, before, set }).unwrap();
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        let back = all_back(&journal, Scope::Persistent, &now("2mb"));
        assert_eq!(back.set, one(Some("1mb")));
        let back = all_back(&journal, Scope::Transient, &now("3mb"));
        assert_eq!(back.set, one(None));
        assert_eq!(journal.original(Scope::Transient, "a"), Some(&None));
    }
}
