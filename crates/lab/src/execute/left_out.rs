//! What a place lacks: settings of the embedded engine alone, and variants that need them or simulated hosts.

use super::options::Options;
use crate::error::{Error, Result};
use crate::plan::{Resolved, Variant};

const SELECTION: &str = "narrows.search.selection";
const SELECTION_OF_2017: &str = "ars_6_1";

/// Settings that the embedded engine alone has.
pub(super) fn is_our_own(setting: &str) -> bool {
    setting.starts_with("narrows.")
}

/// Takes the embedded engine's own settings from variants that have others, too; answers whether there were any.
pub(super) fn without_our_own(plan: &mut Resolved) -> bool {
    let mut taken = false;
    for variant in &mut plan.variants {
        if variant.settings.keys().any(|name| !is_our_own(name)) {
            let before = variant.settings.len();
            variant.settings.retain(|name, _| !is_our_own(name));
            taken |= variant.settings.len() < before;
        }
    }
    taken
}

/// Leaves out the variants that only the embedded engine can run, and says so.
pub(super) fn leave_out_our_own(plan: &mut Resolved, options: &Options) -> Result<()> {
    // The formula of 2017 is what these clusters have by themselves.
    for variant in &mut plan.variants {
        let theirs = |name: &str, value: &str| name == SELECTION && value == SELECTION_OF_2017;
        variant.settings.retain(|name, value| !theirs(name, value));
    }
    let lacks = Lacks {
        what: "has settings of the embedded engine alone; run it with --on embedded",
        why: "only the embedded engine has its settings",
    };
    let own = |variant: &Variant| variant.setting_names().any(|name| is_our_own(name));
    leave_out(plan, options, own, lacks)
}

/// Leaves out the variants that change a host while it recovers, which only simulated ones can be, and says so.
pub(super) fn leave_out_changed_hosts(plan: &mut Resolved, options: &Options) -> Result<()> {
    let lacks = Lacks {
        what: "changes a host while it recovers, which only virtual time can; run it with --on virtual",
        why: "only virtual time can change a host while it recovers",
    };
    let changes_host =
        |variant: &Variant| variant.setting_changes.iter().any(|change| change.host.is_some());
    leave_out(plan, options, changes_host, lacks)
}

/// Leaves out the variants that have faults, which nothing brings about where nodes are left alone, and says so.
pub(super) fn leave_out_faults(plan: &mut Resolved, options: &Options) -> Result<()> {
    let lacks = Lacks {
        what: "has faults, and nodes that were not started for the run are left alone; run it with --on embedded",
        why: "nodes that were not started for the run are left alone, and it has faults",
    };
    leave_out(plan, options, |variant| !variant.faults.is_empty(), lacks)
}

/// What a place lacks of variants.
struct Lacks {
    /// What is said of a variant that was asked for, after its name.
    what: &'static str,
    why: &'static str,
}

/// Leaves out variants that a place cannot run, and says so; refuses those that were asked for, and a plan without
/// others.
fn leave_out(
    plan: &mut Resolved,
    options: &Options,
    is_out: impl Fn(&Variant) -> bool,
    Lacks { what, why }: Lacks,
) -> Result<()> {
    let mut left_out = Vec::new();
    for variant in plan.variants.iter().filter(|variant| is_out(variant)) {
        let name = &variant.name;
        if options.variants.contains(name) {
            return Err(Error::usage(format!("\"{name}\" {what}")));
        }
        let sentence = format!("{name} is left out: {why}.");
        options.watch.note(&sentence);
        left_out.push(sentence);
    }
    if left_out.is_empty() {
        return Ok(());
    }
    plan.variants.retain(|variant| !is_out(variant));
    // With a selection of variants nothing is missing.
    if options.variants.is_empty() {
        plan.changes.extend(left_out);
    }
    match plan.variants.is_empty() {
        true => Err(Error::usage(format!("every variant {what}"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::STEPS;
    use crate::plan::Plan;

    fn selection() -> Resolved {
        let plan = Plan::open("replica-selection").unwrap();
        plan.resolve(1.0, STEPS, |_, _| Ok(())).unwrap()
    }

    #[test]
    fn clusters_that_are_there_are_not_disturbed() {
        let mut plan = selection();
        let disturbed = plan.variants.iter().filter(|variant| !variant.faults.is_empty());
        let disturbed: Vec<Variant> = disturbed.cloned().collect();
        leave_out_faults(&mut plan, &Options::new("unused")).unwrap();
        assert!(plan.variants.len() > 1 && plan.variants.iter().all(|v| v.faults.is_empty()));
        assert_eq!(plan.changes.len(), disturbed.len(), "{:?}", plan.changes);
        plan.variants = disturbed;
        let refused = leave_out_faults(&mut plan, &Options::new("unused")).unwrap_err();
        assert!(refused.is_usage() && refused.to_string().starts_with("every variant has faults"));
    }

    #[test]
    fn other_clusters_run_the_selection_that_they_have() {
        let mut plan = selection();
        leave_out_our_own(&mut plan, &Options::new("unused")).unwrap();
        let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(
            names[..3],
            ["1 replica: none", "1 replica: ARS", "1 replica, es3 loaded: none"]
        );
        // Theirs has the exponent 3.
        assert!(names.contains(&"4 replicas: ARS") && !names.contains(&"4 replicas: ARS, b = 4"));
        assert!(plan.variants.iter().all(|v| !v.settings.keys().any(|name| is_our_own(name))));
    }
}
