//! What our number beside a conclusion is worth: derived, as for figures, from what was fitted and what is arithmetic.

use record::Kind;

use super::conclusion::{Measure, Quantity, RowName};
use crate::plan::Variant;

impl Measure {
    /// The kind of our number. `variant` finds a row in its plan. Of several rows one that is predicted is enough: the
    /// change from a fitted row to a predicted one is predicted.
    pub fn kind<'a>(&self, variant: impl Fn(RowName) -> Option<&'a Variant>) -> Kind {
        let figures = self.figures();
        let rows: Vec<&Variant> = figures.iter().filter_map(|figure| variant(figure.row)).collect();
        let is_chosen = rows.iter().any(|row| row.settings.contains_key(QUOTA));
        let is_decided = match self {
            Measure::One(figure) => rows.iter().any(|row| is_decided(figure.of, row)),
            _ => false,
        };
        let is_set = figures.iter().any(|figure| is_set(figure.of));
        if is_chosen || is_decided || is_set || run_alike(&rows) {
            return Kind::Implied;
        }
        let kinds = rows.iter().filter_map(|row| Some(row.published.as_ref()?.info.kind));
        kinds.max().unwrap_or(Kind::Predicted)
    }
}

/// No document has the quota of a consumer that is stopped by it: the plan's own, and the documents that it gets,
/// decide how often it stops and for how long.
const QUOTA: &str = "dcp.destination_quota";

const SELECTION: &str = "cluster.routing.use_adaptive_replica_selection";
const THROTTLE: &str = "indices.recovery.max_bytes_per_sec";

/// Whether a setting of the row decides it: copies that take turns are asked equally often, and a node that is
/// throttled receives what its throttle lets through.
fn is_decided(quantity: Quantity, row: &Variant) -> bool {
    let set = |name: &str| row.settings.get(name).map(String::as_str);
    match quantity {
        Quantity::SearchesOf(_) | Quantity::SearchesSpread => set(SELECTION) == Some("false"),
        Quantity::Received(..) => set(THROTTLE).is_some_and(|rate| rate != "-1"),
        _ => false,
    }
}

/// Whether it is counted from a plan's settings: documents, their sizes, which vbuckets are taken over, when an index
/// is rolled over, at which part of its quota a consumer stops, and how soon what it has is on a disk whose rate is
/// ours.
fn is_set(quantity: Quantity) -> bool {
    matches!(
        quantity,
        Quantity::Rollbacks
            | Quantity::Streamed
            | Quantity::MemoryPeak
            | Quantity::Rollovers
            | Quantity::DocumentsAnIndex
            | Quantity::Persisted
    )
}

/// Whether rows differ in their names alone, so that their ratio says nothing.
fn run_alike(rows: &[&Variant]) -> bool {
    let [one, other] = rows else { return false };
    let renamed = |row: &Variant| Variant {
        name: String::new(),
        published: None,
        baseline: None,
        ..row.clone()
    };
    one.name != other.name && renamed(one) == renamed(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::conclusions;
    use crate::plan::all_resolved;

    /// The kind of the first conclusion whose claim begins so.
    fn kind_of(claim: &str) -> Kind {
        let plans = all_resolved();
        let conclusion = conclusions().find(|c| c.claim.starts_with(claim)).expect(claim);
        conclusion.measure.kind(|row| {
            let plan = plans.iter().find(|plan| plan.name == row.plan)?;
            plan.variants.iter().find(|variant| variant.name == row.variant)
        })
    }

    #[test]
    fn what_was_fitted_or_follows_from_a_setting_is_not_predicted() {
        for (claim, kind) in [
            ("Parallel recovery is essential", Kind::Predicted),
            // What the cores of both rows did went into the test bed.
            ("Compression ends up slower", Kind::Calibrated),
            ("Again a large improvement in throughput", Kind::Predicted),
            ("The manager's proxy is the next bottleneck", Kind::Predicted),
            // Both rows follow from the link's rate, which was fitted.
            ("Iteration 6, even higher defaults: slower than iteration 4", Kind::Calibrated),
            ("The source can send", Kind::Calibrated),
            ("DataCopy: the consumer's thread", Kind::Calibrated),
            ("CPU of the follower during the last index, with compression", Kind::Calibrated),
            ("CPU of the leader during the last index, with compression", Kind::Calibrated),
            // The model has no Java: both rows are one.
            ("Iteration 7: Java 11 mends", Kind::Implied),
            ("Java 11 changes nothing", Kind::Implied),
            ("With compression Java 11 makes no significant change", Kind::Implied),
            ("CPU has a peak with all three indices", Kind::Calibrated),
            ("... and 66.18 to 19 % with compression", Kind::Calibrated),
            ("An improvement for almost all tests", Kind::Predicted),
            ("... which pushes the data streamed to 3 GB", Kind::Implied),
            ("At this rate it will take a full week", Kind::Implied),
            ("After 45 minutes", Kind::Implied),
            ("indices.* is still node-level", Kind::Implied),
            ("The consumer stops at the replication threshold", Kind::Implied),
            ("Releasing checkpoints' memory sooner", Kind::Implied),
            ("There the producer streams fast", Kind::Implied),
            ("... which rolls its index over 341 times", Kind::Implied),
            ("Without selection requests are distributed evenly", Kind::Implied),
            ("Requests are routed away from es3", Kind::Predicted),
            ("... as are disk and network: it receives", Kind::Implied),
            ("... also while copies recover", Kind::Predicted),
            ("Peak network into the follower without", Kind::Calibrated),
            ("That persistence is off does not alter", Kind::Implied),
            ("First tests: doubles", Kind::Predicted),
            ("A file that scp copies", Kind::Predicted),
        ] {
            assert_eq!(kind_of(claim), kind, "{claim}");
        }
    }
}
