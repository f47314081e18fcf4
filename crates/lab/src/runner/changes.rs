//! Settings, and in virtual time hosts, that are changed while a recovery goes on.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use record::Line;
use world::Time;
use world::model::{Host, Models};

use super::base::Runner;
use crate::error::Result;
use crate::plan::{FOLLOWER, HostChange, LEADER, Parameter, SettingChange, Variant};

/// How far a variant's changes of settings are made in a lap.
pub(crate) struct Changes<'v> {
    variant: &'v Variant,
    /// When the recovery began, from which their times count.
    began: Cell<Option<Time>>,
    made: Cell<usize>,
    /// What is not as at the beginning, each setting or parameter as the record has it.
    changed: RefCell<BTreeMap<String, String>>,
}

impl<'v> Changes<'v> {
    pub(super) fn of(variant: &'v Variant) -> Self {
        let (began, made, changed) = (Cell::default(), Cell::default(), RefCell::default());
        Changes { variant, began, made, changed }
    }

    /// The times of changes count from now on.
    pub(super) fn begin(&self, now: Time) {
        self.began.set(Some(now));
    }

    /// The change that is made next, and when; none where all are made.
    pub(super) fn next(&self, is_virtual: bool) -> Option<(Time, &'v SettingChange)> {
        let began = self.began.get()?;
        let mut all: Vec<&SettingChange> = self.variant.setting_changes.iter().collect();
        all.sort_by_key(|change| change.at.of(is_virtual));
        let change = all.get(self.made.get()).copied()?;
        Some((began + change.at.of(is_virtual), change))
    }
}

impl Runner<'_> {
    /// Makes the changes that are due.
    pub(super) async fn make_changes(&self, changes: &Changes<'_>) -> Result<()> {
        while let Some((at, change)) = changes.next(self.clusters.is_virtual()) {
            if at > self.env.now() {
                break;
            }
            changes.made.set(changes.made.get() + 1);
            self.make_change(changes, change).await?;
        }
        Ok(())
    }

    /// Says that the recovery is over, and which change it ended before.
    pub(super) fn end_changes(&self, changes: &Changes<'_>) -> Result<()> {
        for what in changes.changed.take().into_values() {
            self.tell_changed(changes.variant, what, false)?;
        }
        let next = changes.next(self.clusters.is_virtual());
        let Some((_, change)) = next else { return Ok(()) };
        let names = change.names().collect::<Vec<_>>().join(", ");
        self.note(Some(changes.variant), &format!("the recovery ended before {names} was changed"))
    }

    async fn make_change(&self, changes: &Changes<'_>, change: &SettingChange) -> Result<()> {
        if let Some(host) = &change.host {
            self.change_host(changes, host)?;
        }
        // A cluster refuses a request that sets nothing.
        if change.settings.is_empty() {
            return Ok(());
        }
        self.persist(LEADER, &change.settings).await?;
        if self.plan.follower.is_some() && !self.plan.joined {
            self.persist(FOLLOWER, &change.settings).await?;
        }
        for (name, value) in &change.settings {
            let as_begun = changes.variant.settings.get(name).map(String::as_str);
            self.tell(changes, name.clone(), value, as_begun)?;
        }
        Ok(())
    }

    /// Changes what simulated hosts are like. Elsewhere there is no such variant.
    fn change_host(&self, changes: &Changes<'_>, change: &HostChange) -> Result<()> {
        let Some(controls) = self.clusters.virtual_controls() else { return Ok(()) };
        let HostChange { node, parameters } = change;
        for name in self.plan.nodes_called(node) {
            controls.change_host(&name, &|host| changed(host, parameters))?;
        }
        for Parameter { name, value, .. } in parameters {
            let begun_with = changes.variant.parameters.iter().rfind(|begun| begun.name == *name);
            let as_begun = begun_with.map(|begun| begun.value.as_str());
            self.tell(changes, format!("{name} of {node}"), value, as_begun)?;
        }
        Ok(())
    }

    /// Says and records that something is changed, for as long as it is not what the variant began with.
    fn tell(
        &self,
        changes: &Changes<'_>,
        name: String,
        value: &str,
        as_begun: Option<&str>,
    ) -> Result<()> {
        let variant = changes.variant;
        self.note(Some(variant), &format!("{name} is {value} from now on"))?;
        let before = changes.changed.borrow_mut().remove(&name);
        if let Some(before) = before {
            self.tell_changed(variant, before, false)?;
        }
        if as_begun != Some(value) {
            let what = format!("{name} = {value}");
            changes.changed.borrow_mut().insert(name, what.clone());
            self.tell_changed(variant, what, true)?;
        }
        Ok(())
    }

    fn tell_changed(&self, variant: &Variant, what: String, begins: bool) -> Result<()> {
        let (t_ms, variant) = (self.journal.t_ms(), variant.name.clone());
        self.journal.line(&Line::Fault { t_ms, variant, what, begins })
    }
}

/// A host with other values of some parameters.
fn changed(host: Host, parameters: &[Parameter]) -> Host {
    let mut models = Models { host, ..Models::default() };
    for Parameter { name, value, .. } in parameters {
        models.set(name, value).expect("a resolved plan's parameters were set once already");
    }
    models.host
}
