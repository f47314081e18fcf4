//! Circles in a directed graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// Groups of two or more nodes each of which reaches all others of its group, the largest first.
pub fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|node| (node, reached_from(graph, node))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (node, ahead) in &reached {
        if ahead.contains(node) {
            let back =
                |other: &&&String| reached.get(**other).is_some_and(|behind| behind.contains(node));
            groups.insert(ahead.iter().filter(back).map(|node| (*node).clone()).collect());
        }
    }
    let mut groups: Vec<Vec<String>> = groups.into_iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

fn reached_from<'a>(graph: &'a Graph, start: &str) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = graph.get(start).into_iter().flatten().collect();
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(graph.get(node).into_iter().flatten());
        }
    }
    reached
}

/// The shortest way round from `start` back to it, beginning with it.
pub fn shortest_circle(graph: &Graph, start: &str) -> Vec<String> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for next in graph.get(node).into_iter().flatten() {
            if next == start {
                let mut way = vec![node.to_owned()];
                while way.last().map(String::as_str) != Some(start) {
                    way.push(came_from[way[way.len() - 1].as_str()].to_owned());
                }
                way.reverse();
                return way;
            }
            if !came_from.contains_key(next.as_str()) {
                came_from.insert(next, node);
                open.push_back(next);
            }
        }
    }
    Vec::new()
}
