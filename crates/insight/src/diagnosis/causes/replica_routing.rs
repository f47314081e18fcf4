//! Searches go to a node that answers late, because nobody looks before choosing a copy.

use record::names::listed;
use record::observation::{Node, Observation, Selection};

use super::{Cause, Class, Judge, Rule, cpu_quota, gc};
use crate::diagnosis::answers::{Answer, Answers};
use crate::diagnosis::busy;
use crate::diagnosis::finding::{Evidence, Finding, Lift, NODES_STATS, few};
use crate::diagnosis::node_span::NodeSpan;
use crate::diagnosis::rivals::{Against, By};
use crate::diagnosis::series::{NS_PER_MS, Series};
use crate::diagnosis::threshold::{Threshold, VERDICT, at};
use crate::stats::median;
use crate::words;

/// A node ranks this much worse than the median of the others.
const RANK: Threshold = at("adaptive_selection rank over the median", 4.0);
/// Ranks are cubes of queues: of nodes that are alike one ranks a hundred times the others for a moment. So its answers
/// must come late, too.
const LATE: Threshold = at("avg_response_time over the median", 3.0);
/// Fewer nodes than this have no median worth comparing with.
const RANKED: Threshold = at("nodes that are ranked, at least", 3.0);
/// Response times are averages over few searches, so that one of nodes that are alike is late for a moment, as another
/// sees it. A node is blamed only where it also works on a search for so much longer, or half of the others see it so
/// late.
const AGREED: Threshold = at(
    "nodes that see it so late over those that rank it, where avg_service_time is not so many times the median",
    0.5,
);
/// The strength rises with how late answers are, by 1 for so many times [`LATE`] beyond it, and never above the second.
const LATE_FULL: Threshold = at("times that time beyond it, for a strength of 1 more", 10.0);
const STRENGTH_MAX: Threshold = at("strength, at most", 0.9);

const SETTING: &str = "cluster.routing.use_adaptive_replica_selection";

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::ReplicaRouting,
        label: "replica routing",
        signature: "one node ranks and answers far worse than the others, by its own work or as half of them see it, \
                    and searches are spread without looking",
        reads: "_nodes/stats adaptive_selection.*.{rank,avg_response_time_ns,avg_service_time_ns}; \
                cluster.routing.use_adaptive_replica_selection",
        thresholds: &[RANK, LATE, RANKED, AGREED, VERDICT, LATE_FULL, STRENGTH_MAX],
        lift: SETTING,
        default: "true",
        probe: "preference A/B",
    },
    judges: &[Judge::Cluster(judge)],
};

fn judge(series: &Series<'_>) -> Option<Finding> {
    let setting = series.setting(SETTING).filter(|setting| setting.value == "false")?;
    let (name, worst) = worst_of_all(series)?;
    let sentence = format!("{}, and searches are spread without looking", worst.sentence(name));
    let value = format!(
        "{}: {name} {}, median {}",
        worst.seen_by,
        words::three_digits(worst.rank),
        words::three_digits(worst.median)
    );
    let mut evidence = vec![Evidence::new(NODES_STATS, "adaptive_selection.*.rank", value)];
    let times = worst.times(name);
    evidence.extend(times.map(|times| Evidence::new(NODES_STATS, "adaptive_selection.*", times)));
    let action = match worst.works_long {
        Some(true) | None => {
            "let searches go where they are answered soonest, and look at the slow node".to_owned()
        }
        Some(false) => format!(
            "let searches go where they are answered soonest; it works on one for less than {} times as long as the \
             others, so look at the way to it and at its queue, too",
            LATE.value
        ),
    };
    let default = CAUSE.rule.default;
    let lift = Lift::setting(SETTING, setting.clone(), Some(default.to_owned()), &action);
    Some(Finding {
        subjects: vec!["searches".to_owned()],
        evidence,
        lift: Some(lift.with_default(Some(default))),
        ruled_out: Answers::new(slow_itself(series, name)).ruled_out(Class::ReplicaRouting),
        ..Finding::of(&CAUSE.rule, name, worst.strength(), sentence)
    })
}

/// What would make the node slow whatever is sent to it: its cores, its disk, its control group, its collections.
fn slow_itself(series: &Series<'_>, name: &str) -> Vec<(Class, Answer)> {
    let Some(span) = series.node(name) else {
        let untold = |class| -> (Class, Answer) {
            (class, Err(Against::untold(format!("{name} was not seen twice"))))
        };
        return [Class::Cpu, Class::Disk, Class::CpuQuota, Class::Gc].map(untold).into();
    };
    let collections = (Class::Gc, gc::of_node(span));
    let quota = (Class::CpuQuota, cpu_quota::of_node(span));
    let own = busy::of_node(span).into_iter().chain([quota]);
    own.map(|(class, against)| (class, Err(against))).chain([collections]).collect()
}

/// The same of what is seen of it, in words: `; the cores of b are busy 97 % of the time`; nothing where nothing is.
fn lacks(series: &Series<'_>, name: &str) -> String {
    let seen = |(_, answer): (Class, Answer)| match answer {
        Ok(found) => Some(found.sentence),
        Err(against) => (against.by == By::Weaker).then(|| against.why.words()),
    };
    let seen: Vec<String> = slow_itself(series, name).into_iter().filter_map(seen).collect();
    if seen.is_empty() { String::new() } else { format!("; {}", listed(&seen)) }
}

/// Nodes that refused searches while they were looked at, a sentence each.
pub(crate) fn refused(series: &Series<'_>) -> Vec<String> {
    let refused = |span: &NodeSpan<'_>| {
        let rise = span.over(|node| node.searches_refused).filter(|rise| rise.count > 0)?;
        let name = &span.last().name;
        let searches = match rise.count {
            1 => "1 search".to_owned(),
            count => format!(
                "{} searches, {} a second",
                words::count(count),
                words::three_digits(rise.per_s())
            ),
        };
        Some(format!(
            "{name} refused {searches}, as its queue was full (thread_pool.search.rejected){}",
            lacks(series, name)
        ))
    };
    few(series.nodes().filter_map(refused).collect(), "more nodes refused searches")
}

/// Nodes that cancelled searches while they were looked at, a sentence each.
pub(crate) fn cancelled(series: &Series<'_>) -> Vec<String> {
    let cancelled = |span: &NodeSpan<'_>| {
        let by = span.rises(|node| &node.searches_cancelled).into_iter();
        let by: Vec<String> = by.map(|(what, count)| format!("{count} for {what}")).collect();
        let name = &span.last().name;
        (!by.is_empty()).then(|| {
            format!(
                "{name} cancelled searches to have room (search_backpressure.mode = enforced): {}{}",
                listed(&by),
                lacks(series, name)
            )
        })
    };
    few(series.nodes().filter_map(cancelled).collect(), "more nodes cancelled searches")
}

/// A node that searches go around by themselves, because adaptive replica selection is on; none where no node is far
/// worse than the others.
pub(crate) fn avoided(series: &Series<'_>) -> Option<String> {
    series.setting(SETTING).filter(|setting| setting.value == "true")?;
    let (name, worst) = worst_of_all(series)?;
    let times = worst.times(name).map_or_else(String::new, |times| format!("; {times}"));
    Some(format!(
        "{}{times}{}; adaptive replica selection sends searches around it, as far as another node has a copy",
        worst.sentence(name),
        lacks(series, name)
    ))
}

/// The node that ranks worst of all, in the last look that has ranks: only deep looks ask for them.
fn worst_of_all<'a>(series: &Series<'a>) -> Option<(&'a str, Worst<'a>)> {
    let has_ranks = |look: &&(f64, &Observation)| {
        look.1.nodes.iter().any(|node| !node.adaptive_selection.is_empty())
    };
    let last: &'a Observation = series.looks().iter().rev().find(has_ranks)?.1;
    let mut found: Vec<Worst<'a>> = last.nodes.iter().filter_map(worst).collect();
    // Of equals the first counts.
    found.sort_by(|a, b| b.strength().total_cmp(&a.strength()));
    let is_told_twice =
        |one: &Worst<'_>| one.works_long == Some(true) || agreed(last, one.id) >= AGREED.value;
    let worst = found.into_iter().find(is_told_twice)?;
    let named = last.nodes.iter().find(|node| node.id == worst.id);
    Some((named.map_or(worst.id, |node| node.name.as_str()), worst))
}

/// Of the nodes that rank a node, the share that sees it answer so late.
fn agreed(look: &Observation, id: &str) -> f64 {
    let seen: Vec<f64> = look.nodes.iter().filter_map(|node| late(node, id)).collect();
    let count = seen.iter().filter(|late| **late >= LATE.value).count();
    count as f64 / seen.len() as f64
}

/// How many times as late as the median of all the answers of a node are, as another one sees them; none where that
/// knows too few.
fn late(node: &Node, id: &str) -> Option<f64> {
    let known = &node.adaptive_selection;
    let response = |one: &Selection| one.response_ns.map(|ns| ns as f64);
    let own = response(known.get(id)?)?;
    let all: Vec<f64> = known.values().filter_map(response).collect();
    let is_told = all.len() as f64 >= RANKED.value;
    Some(own / middle(all).filter(|_| is_told)?)
}

/// The median of what is above nothing.
fn middle(values: Vec<f64>) -> Option<f64> {
    median(&values).filter(|median| *median > 0.0)
}

/// The node that another ranks worst, by its id.
struct Worst<'a> {
    seen_by: &'a str,
    id: &'a str,
    rank: f64,
    median: f64,
    /// How many times as late as the median its answers are.
    late: f64,
    /// Whether it also works on a search for so much longer than the median; none where that is not told.
    works_long: Option<bool>,
    selection: Selection,
}

impl Worst<'_> {
    fn sentence(&self, name: &str) -> String {
        format!(
            "{name} answers searches far later than the others ({} times their median time)",
            words::three_digits(self.late)
        )
    }

    /// What the node that ranks it knows of it; none where it knows nothing but a rank.
    fn times(&self, name: &str) -> Option<String> {
        let ms = |ns: u64| words::rtt_tenths(ns as f64 / NS_PER_MS);
        let Selection { queue, service_ns, response_ns, .. } = self.selection;
        let parts = [
            service_ns.map(|ns| format!("{} of work", ms(ns))),
            response_ns.map(|ns| format!("{} until its answer is here", ms(ns))),
            queue.map(|queue| format!("a queue of {}", words::three_digits(queue))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty())
            .then(|| format!("{} sees of {name}: {}", self.seen_by, parts.join(", ")))
    }

    fn strength(&self) -> f64 {
        let beyond = self.late / LATE.value - 1.0;
        (VERDICT.value + beyond / LATE_FULL.value).min(STRENGTH_MAX.value)
    }
}

fn worst(node: &Node) -> Option<Worst<'_>> {
    let ranks: Vec<(&str, f64, Selection)> = node
        .adaptive_selection
        .iter()
        .filter_map(|(id, selection)| Some((id.as_str(), selection.rank?, *selection)))
        .collect();
    let work = |selection: &Selection| selection.service_ns.map(|ns| ns as f64);
    let usual = middle(ranks.iter().map(|(_, rank, _)| *rank).collect())?;
    let usual_work_ns = middle(ranks.iter().filter_map(|(_, _, one)| work(one)).collect());
    let (id, rank, selection) = ranks.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let late = late(node, id)?;
    let work = work(&selection).zip(usual_work_ns);
    let works_long = work.map(|(ns, usual_ns)| ns >= usual_ns * LATE.value);
    let is_far = rank >= usual * RANK.value && late >= LATE.value;
    let (seen_by, median) = (node.name.as_str(), usual);
    is_far.then_some(Worst { seen_by, id, rank, median, late, works_long, selection })
}
