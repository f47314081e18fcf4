//! Changes that were sent and not answered: each may be made later, also behind what puts it back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use record::observation::Scope;

use super::change::{Change, SettingValue, Values};

/// How long after a change was sent it may be made: in the field a manager that has not begun a change after 30 s does
/// not begin it (`master_timeout`).
pub(super) const COMES_LATE_MAX: Duration = Duration::from_secs(30);

/// Why an end takes so long where settings may be changed yet; none where they may not.
pub fn late_wait_sentence(may_come_for: Duration) -> Option<String> {
    let wait_s = may_come_for.as_secs_f64().ceil();
    (wait_s > 0.0).then(|| {
        format!(
            "a change that one of the hosts did not answer may be made yet: for another {wait_s} s settings are looked \
             at after they were put back"
        )
    })
}

/// The changes of a journal that may be made later, as far as is known here.
#[derive(Clone, Copy)]
pub(super) struct LateChanges<'a> {
    /// All changes of the journal.
    pub changes: &'a [Change],
    /// Which of them were not answered by every host that was sent them.
    pub unanswered: &'a BTreeSet<usize>,
    /// One host makes changes in the order in which it is asked for them.
    pub has_several_hosts: bool,
}

impl<'a> LateChanges<'a> {
    fn all(self) -> impl Iterator<Item = &'a Change> {
        self.unanswered.iter().map(move |number| &self.changes[*number])
    }

    /// Whether settings may be changed yet behind what puts them back.
    pub fn settings_may_come(self) -> bool {
        let is_of_settings = |change: &Change| matches!(change, Change::Settings { .. });
        self.has_several_hosts && self.all().any(is_of_settings)
    }

    /// Whether an index that is not there may be made yet.
    pub fn may_be_made(self, index: &str) -> bool {
        self.all().any(|change| matches!(change, Change::Index { name } if name == index))
    }

    /// The values to which a setting of a scope may be set yet.
    pub fn values(self, in_scope: Scope, name: &str) -> impl Iterator<Item = &'a SettingValue> {
        self.all().filter_map(move |change| match change {
            Change::Settings { scope, set, .. } if *scope == in_scope => set.get(name),
            _ => None,
        })
    }

    /// The settings of a scope that one of these changes has changed since they were as they are to stay. What somebody
    /// else has set since then is to stay from now on.
    pub fn came(self, scope: Scope, now: &BTreeMap<String, String>, stays: &mut Values) -> Values {
        let mut came = Values::new();
        for (name, stays) in stays {
            let current = now.get(name).cloned();
            if current == *stays {
                continue;
            }
            if self.values(scope, name).any(|value| *value == current) {
                came.insert(name.clone(), stays.clone());
            } else {
                *stays = current;
            }
        }
        came
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{one, settings};
    use super::*;

    /// Of the values that were tried only those may come yet that were not answered.
    #[test]
    fn what_comes_late_is_told_from_what_somebody_else_sets() {
        let changes = ["1mb", "2mb"].map(|value| settings(&[("a", None)], &[("a", Some(value))]));
        let unanswered = BTreeSet::from([1]);
        let changes =
            LateChanges { changes: &changes, unanswered: &unanswered, has_several_hosts: true };
        let mut stays = one(None);
        let mut late = |value: &str| {
            let now = BTreeMap::from([("a".to_owned(), value.to_owned())]);
            changes.came(Scope::Persistent, &now, &mut stays)
        };
        assert_eq!(late("2mb"), one(None));
        assert_eq!(late("1mb"), Values::new(), "that was answered: somebody else has set it");
        assert_eq!(late("2mb"), one(Some("1mb")), "theirs is what it is to stay");
    }
}
