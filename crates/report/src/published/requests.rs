//! How searches spread over nodes, published and ours, for the Markdown: the page draws it.

use insight::words::three_digits;

use super::counterparts::{CHARTS, Ours};
use super::{FirstSeed, align_right, dash, new_table, per_cent};

/// What the table shows.
pub(super) const WHY: &str = "How many searches each node completed, and its share of all: as published, where it is, \
    and ours of seed 1.";

/// The table; none where seeds left nothing to count, or nothing is published.
pub(super) fn markdown(plans: &[String], seeds: &[FirstSeed]) -> Option<String> {
    let mut table = new_table();
    table.set_header(["row", "node", "published", "share", "ours", "share"]);
    let mut is_empty = true;
    for chart in CHARTS.iter().filter(|chart| plans.iter().any(|plan| plan == chart.plan)) {
        let Ours::Searches(nodes) = chart.ours else { continue };
        let Some(seed) = seeds.iter().find(|seed| seed.plan == chart.plan) else { continue };
        let published: f64 = nodes.iter().map(|node| node.count).sum();
        for (at, variant) in chart.variants.iter().enumerate() {
            let Some(counts) = seed.counts(variant) else { continue };
            let all: f64 = counts.values().sum();
            for node in nodes {
                let ran = counts.get(node.node).copied().unwrap_or(0.0);
                let theirs = (at == 0).then_some((node.count, published));
                let cells = [theirs, Some((ran, all))].map(|of| match of {
                    Some((count, all)) => [three_digits(count), per_cent(count / all)],
                    None => [dash(), dash()],
                });
                let names = [(*variant).to_owned(), node.name.to_owned()];
                table.add_row(names.into_iter().chain(cells.into_iter().flatten()));
                is_empty = false;
            }
        }
    }
    align_right(&mut table, &[2, 3, 4, 5]);
    (!is_empty).then(|| table.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::counterparts::REQUESTS;
    use super::super::{Document, Published};
    use super::*;

    #[test]
    fn markdown_has_the_searches_of_each_node_too() {
        let counts = ["leader-1", "leader-2", "leader-3"].map(|node| (node.to_owned(), 100.0));
        let variants = ["1 replica, es3 loaded: ARS, b = 4", "1 replica, es3 loaded: none"];
        let searches = variants.map(|name| (name.to_owned(), BTreeMap::from(counts.clone())));
        let plan = "replica-selection".to_owned();
        let document = Document {
            id: "replica-selection".to_owned(),
            title: "Replica selection".to_owned(),
            by: "somebody".to_owned(),
            plans: vec![plan.clone()],
        };
        let seed = FirstSeed { plan, searches: searches.into(), ..FirstSeed::default() };
        let published = Published {
            documents: vec![document],
            first_seeds: vec![seed],
            seeds: 20,
            scale: 1.0,
            ..Published::default()
        };
        let files = published.markdown();
        let page = &files[1].1;
        let line = |variant: &str| {
            let is_it = |line: &&str| line.contains(variant) && line.contains("| es3 ");
            let line = page.lines().find(is_it).expect("a line");
            line.split('|').map(|word| word.trim().to_owned()).collect::<Vec<String>>()
        };
        let (selected, without) = (line(variants[0]), line(variants[1]));
        assert_eq!(selected[3..7], ["113\u{202f}115", "11.2 %", "100", "33.3 %"], "{page}");
        assert_eq!(without[3..7], ["-", "-", "100", "33.3 %"], "published with selection alone");
        let none = Published { first_seeds: Vec::new(), ..published.clone() };
        assert!(page.contains(REQUESTS) && !none.markdown()[1].1.contains(REQUESTS));
    }
}
