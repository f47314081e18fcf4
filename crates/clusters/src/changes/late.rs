//! Changes that were sent and not answered: each may be made later, also behind what puts it back.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::Scope;

use super::change::{Change, SettingValue, Values};

/// How long after a change was sent it may be made: in the field a manager that has not begun a change after 30 s does
/// not begin it (`master_timeout`).
pub(super) const COMES_LATE_MAX: Duration = Duration::from_secs(30);

/// Why an end takes so long where settings may be changed yet; none where they may not.
pub fn late_wait(may_come_for: Duration) -> Option<String> {
    let wait_s = may_come_for.as_secs_f64().ceil();
    (wait_s > 0.0).then(|| {
        format!(
            "a change that one of the hosts did not answer may be made yet: for another {wait_s} s settings are looked \
             at after they were put back"
        )
    })
}

/// The changes of a journal that may be made later, as far as is known here.
pub(super) struct LateChanges {
    /// By their numbers in the journal.
    unanswered: BTreeMap<usize, Change>,
    /// One host makes changes in the order in which it is asked for them.
    has_several_hosts: bool,
}

impl LateChanges {
    /// None, on a cluster that is asked through these hosts.
    pub fn new(hosts: &[String]) -> LateChanges {
        LateChanges { unanswered: BTreeMap::new(), has_several_hosts: hosts.len() > 1 }
    }

    /// Takes note of a change that is about to be sent.
    pub fn sent(&mut self, number: usize, change: &Change) {
        self.unanswered.insert(number, change.clone());
    }

    /// Takes note that every host that was sent a change has said what came of it: it is not made later.
    pub fn answered(&mut self, number: usize) {
        self.unanswered.remove(&number);
    }

    /// Whether settings may be changed yet behind what puts them back.
    pub fn settings_may_come(&self) -> bool {
        let is_of_settings = |change: &Change| matches!(change, Change::Settings { .. });
        self.has_several_hosts && self.unanswered.values().any(is_of_settings)
    }

    /// Whether an index that is not there may be made yet.
    pub fn may_be_made(&self, index: &str) -> bool {
        let makes_it = |change: &Change| matches!(change, Change::Index { name } if name == index);
        self.unanswered.values().any(makes_it)
    }

    /// The values to which a setting of a scope may be set yet.
    pub fn values(&self, in_scope: Scope, name: &str) -> impl Iterator<Item = &SettingValue> {
        self.unanswered.values().filter_map(move |change| match change {
            Change::Settings { scope, set, .. } if *scope == in_scope => set.get(name),
            _ => None,
        })
    }

    /// The settings of a scope that one of these changes has changed since they were as they are to stay. What somebody
    /// else has set since then is to stay from now on.
    pub fn came(&self, scope: Scope, now: &BTreeMap<String, String>, stays: &mut Values) -> Values {
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
    use super::super::change::settings;
    use super::*;

    fn one(value: Option<&str>) -> Values {
        BTreeMap::from([("a".to_owned(), value.map(str::to_owned))])
    }

    /// Of the values that were tried only those may come yet that were not answered.
    #[test]
    fn what_comes_late_is_told_from_what_somebody_else_sets() {
        let mut changes = LateChanges::new(&[]);
        for (number, value) in ["1mb", "2mb"].into_iter().enumerate() {
            changes.sent(number, &settings(&[("a", None)], &[("a", Some(value))]));
        }
        changes.answered(0);
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
