//! What changed from one diagnosis of a cluster to another.

use std::collections::{BTreeMap, BTreeSet};

use record::observation::Setting;
use serde::Serialize;

use super::diagnose::diagnose;
use super::finding::Finding;
use super::series::Series;

/// A value then and now.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pair<T> {
    /// Then.
    pub was: T,
    /// Now.
    pub is: T,
}

/// What is other than it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Changes {
    /// What was found then and is not any more, as it was said then.
    pub gone: Vec<String>,
    /// What was not found then.
    pub came: Vec<String>,
    /// What is found in the same place for the same cause: as it was, and as it is.
    pub stayed: Vec<Pair<String>>,
    /// Settings of the cluster, with their values then and now; none where it had none.
    pub settings: BTreeMap<String, Pair<Option<String>>>,
    /// Nodes that are no longer there.
    pub nodes_gone: Vec<String>,
    /// Nodes that were not there.
    pub nodes_came: Vec<String>,
    /// Bytes a second of the recoveries that copied files at the end, then and now; none where none did.
    pub bytes_per_s: Pair<Option<f64>>,
}

/// What changed from the looks of then to those of now.
pub fn changes(then: &Series<'_>, now: &Series<'_>) -> Changes {
    let (was, is) = (diagnose(then).findings, diagnose(now).findings);
    let same_among = |others: &[Finding], one: &Finding| {
        others.iter().find(|other| one.names_the_same_as(other)).map(sentence)
    };
    let gone = was.iter().filter(|one| same_among(&is, one).is_none()).map(sentence).collect();
    let (mut came, mut stayed) = (Vec::new(), Vec::new());
    for one in &is {
        match same_among(&was, one) {
            Some(was) => stayed.push(Pair { was, is: sentence(one) }),
            None => came.push(sentence(one)),
        }
    }
    let (nodes_then, nodes_now) = (names(then), names(now));
    let only = |here: &BTreeSet<String>, there: &BTreeSet<String>| {
        here.difference(there).cloned().collect()
    };
    Changes {
        gone,
        came,
        stayed,
        settings: settings(then, now),
        nodes_gone: only(&nodes_then, &nodes_now),
        nodes_came: only(&nodes_now, &nodes_then),
        bytes_per_s: Pair { was: rate(then), is: rate(now) },
    }
}

fn sentence(finding: &Finding) -> String {
    format!("{}: {}", finding.class.label(), finding.sentence)
}

fn names(series: &Series<'_>) -> BTreeSet<String> {
    // Not every look asks for nodes.
    let nodes = series.last_nodes().map_or(&[][..], |(_, nodes)| nodes);
    nodes.iter().map(|node| node.name.clone()).collect()
}

/// All recoveries of the last look that copy files, each over the time that it was watched, by which its findings are
/// judged as well: between two looks come whole chunks, so that the last few steps may be far from the rate.
fn rate(series: &Series<'_>) -> Option<f64> {
    let copying = series.last()?.recoveries.iter().filter(|one| one.stage == "INDEX" && !one.ended);
    copying.filter_map(|one| series.transfer(one)?.bytes_per_s()).reduce(|a, b| a + b)
}

fn settings(then: &Series<'_>, now: &Series<'_>) -> BTreeMap<String, Pair<Option<String>>> {
    let Some((was, is)) = then.settings().zip(now.settings()) else { return BTreeMap::new() };
    let value = |all: &BTreeMap<String, Setting>, name: &str| {
        all.get(name).map(|setting| setting.value.clone())
    };
    // Where one side tells defaults and the other does not, a name that one lacks is no change.
    let alike = then.tells_defaults() == now.tells_defaults();
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let both = names
        .into_iter()
        .map(|name| (name.clone(), Pair { was: value(was, name), is: value(is, name) }));
    both.filter(|(_, Pair { was, is })| was != is && (alike || (was.is_some() && is.is_some())))
        .collect()
}
