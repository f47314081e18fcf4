//! Searches go to a node that answers late, because nobody looks before choosing a copy.

use record::observation::{Node, Observation};

use crate::diagnosis::cause::{Cause, Judge};
use crate::diagnosis::class::Class;
use crate::diagnosis::finding::{Evidence, Finding, Lift, NODES_STATS};
use crate::diagnosis::rule::Rule;
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{Threshold, VERDICT, at};
use crate::stats::median;
use crate::words;

/// A node ranks this much worse than the median of the others.
const RANK: Threshold = at("adaptive_selection rank over the median", 4.0);
/// Fewer nodes than this have no median worth comparing with.
const RANKED: Threshold = at("nodes that are ranked, at least", 3.0);
/// The strength rises with the rank: at so many times the rank above it is full, and it is never more than the second.
const RANK_FULL: Threshold = at("times that rank beyond it, for a strength of 1 more", 10.0);
const STRENGTH_MAX: Threshold = at("strength, at most", 0.9);

const SETTING: &str = "cluster.routing.use_adaptive_replica_selection";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::ReplicaRouting,
        label: "replica routing",
        signature: "one node ranks far worse than the others, and searches are spread without looking",
        reads: "_nodes/stats adaptive_selection.*.rank; cluster.routing.use_adaptive_replica_selection",
        thresholds: &[RANK, RANKED, VERDICT, RANK_FULL, STRENGTH_MAX],
        lift: SETTING,
        default: "true",
        probe: "preference A/B",
    },
    judges: &[Judge::Cluster(judge)],
};

fn judge(series: &Series<'_>) -> Option<Finding> {
    let setting = series.setting(SETTING).filter(|setting| setting.value == "false")?;
    // Only deep looks ask for ranks.
    let has_ranks = |look: &&(f64, &Observation)| {
        look.1.nodes.iter().any(|node| !node.adaptive_selection.is_empty())
    };
    let (_, last) = series.looks().iter().rev().find(has_ranks)?;
    let mut found: Option<Worst<'_>> = None;
    for node in &last.nodes {
        // Of equals the first counts.
        if let Some(worst) = worst(node)
            && found.as_ref().is_none_or(|other| worst.strength() > other.strength())
        {
            found = Some(worst);
        }
    }
    let worst = found?;
    let named = last.nodes.iter().find(|node| node.id == worst.id);
    let name = named.map_or(worst.id, |node| node.name.as_str());
    let sentence = format!(
        "{name} answers searches far later than the others ({} times the median rank), and searches are spread \
                 without looking",
        words::three_digits(worst.rank / worst.median)
    );
    let value = format!(
        "{}: {name} {}, median {}",
        worst.seen_by,
        words::three_digits(worst.rank),
        words::three_digits(worst.median)
    );
    let action = "let searches go where they are answered soonest, and look at the slow node";
    Some(Finding {
        subjects: vec!["searches".to_owned()],
        evidence: vec![Evidence::new(NODES_STATS, "adaptive_selection.*.rank", value)],
        lift: Some(Lift::setting(SETTING, setting.clone(), Some("true".to_owned()), action)),
        ..Finding::of(&CAUSE.rule, name, worst.strength(), sentence)
    })
}

/// The node that another ranks worst, by its id.
struct Worst<'a> {
    seen_by: &'a str,
    id: &'a str,
    rank: f64,
    median: f64,
}

impl Worst<'_> {
    fn strength(&self) -> f64 {
        let beyond = self.rank / self.median / RANK.value - 1.0;
        (VERDICT.value + beyond / RANK_FULL.value).min(STRENGTH_MAX.value)
    }
}

fn worst(node: &Node) -> Option<Worst<'_>> {
    let ranks: Vec<(&str, f64)> = node
        .adaptive_selection
        .iter()
        .filter_map(|(id, selection)| Some((id.as_str(), selection.rank?)))
        .collect();
    let values: Vec<f64> = ranks.iter().map(|(_, rank)| *rank).collect();
    let median = median(&values).filter(|median| *median > 0.0)?;
    let (id, rank) = ranks.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_far = values.len() as f64 >= RANKED.value && rank >= median * RANK.value;
    is_far.then_some(Worst { seen_by: &node.name, id, rank, median })
}
