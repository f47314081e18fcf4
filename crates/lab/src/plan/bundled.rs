//! The plans that come with narrows.

/// A plan inside the program.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// Name, as in the plan.
    pub name: &'static str,
    /// The whole file.
    pub text: &'static str,
}

/// The file `plans/NAME.toml`.
macro_rules! plan {
    ($name:literal) => {
        Bundled { name: $name, text: include_str!(concat!("../../../../plans/", $name, ".toml")) }
    };
}

/// One line for each file in `plans/`.
const BUNDLED: [Bundled; 34] = [
    plan!("chunks-over-link"),
    plan!("chunks-over-link-compressed"),
    plan!("copy-one-file"),
    plan!("dcp-larger-items"),
    plan!("dcp-memory"),
    plan!("dcp-rebalance"),
    plan!("drain-node"),
    plan!("follow-large"),
    plan!("follow-medium"),
    plan!("follow-read-size"),
    plan!("follow-small"),
    plan!("follow-small-and-medium"),
    plan!("follow-while-recovering"),
    plan!("recover-and-follow"),
    plan!("recover-while-indexing"),
    plan!("recover-while-indexing-geopoint"),
    plan!("recover-while-indexing-pmc"),
    plan!("remote-recovery"),
    plan!("remote-recovery-compressed"),
    plan!("remote-recovery-http-logs"),
    plan!("remote-recovery-pmc"),
    plan!("replica-over-link"),
    plan!("replica-selection"),
    plan!("replica-selection-pmc"),
    plan!("restore-over-link"),
    plan!("selection-policies"),
    plan!("shard-recovery"),
    plan!("shard-recovery-ec2"),
    plan!("shard-recovery-raised"),
    plan!("shard-recovery-streams"),
    plan!("small-nodes-compression"),
    plan!("soak"),
    plan!("stability"),
    plan!("stability-restarts"),
];

/// Every bundled plan, in the order of names.
pub fn bundled() -> &'static [Bundled] {
    &BUNDLED
}

/// Every bundled plan, resolved, in the order of names.
#[cfg(test)]
pub(crate) fn all_resolved() -> Vec<super::Resolved> {
    let steps = crate::experiments::STEPS;
    let resolve = |of: &Bundled| of.plan().unwrap().resolve(1.0, steps, |_, _| Ok(())).unwrap();
    BUNDLED.iter().map(resolve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_parses_and_resolves() {
        assert!(bundled().is_sorted_by_key(|plan| plan.name));
        for (plan, bundled) in all_resolved().iter().zip(bundled()) {
            assert_eq!(plan.name, bundled.name);
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");
        let files = std::fs::read_dir(folder).unwrap();
        let toml = files.filter(|file| {
            file.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "toml")
        });
        assert_eq!(toml.count(), bundled().len(), "a plan is not in the table");
    }
}
