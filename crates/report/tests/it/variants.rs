//! Variants beside each other on the page: published rates beside ours, and curves over each other.

use std::collections::BTreeMap;

use record::{Kind, PublishedInfo};

use crate::page::{check, whole};

#[test]
fn a_published_rate_stands_beside_ours_of_the_same_kind() {
    let mut run = whole();
    assert!(!report::html(&run).contains("MB/s published"), "a column without data is not there");
    run.rows[1].node_bytes_per_s = Some(47.5e6);
    run.manifest.variants[1].published = Some(PublishedInfo {
        figure: "figure".to_owned(),
        row: "row".to_owned(),
        text: "text".to_owned(),
        node_bytes_per_s: Some(45e6),
        load: BTreeMap::new(),
        kind: Kind::Predicted,
    });
    let page = report::html(&run);
    check(&page);
    assert!(page.contains("<td class=\"n\">47.5</td><td class=\"n theirs\">45.0</td>"), "{page}");
}

#[test]
fn few_variants_lie_over_each_other_on_the_link_and_in_what_their_nodes_use() {
    let mut run = whole();
    let page = report::html(&run);
    assert!(!page.contains("id=\"link-wide-t\""), "five colours are too many");
    run.manifest.variants.truncate(2);
    run.rows.truncate(2);
    let page = report::html(&run);
    check(&page);
    for id in ["link", "leader-cores-together", "follower-cores-together"] {
        let id = format!("id=\"{id}-wide-t\"");
        let chart = page.split(&id).nth(1).and_then(|rest| rest.split("</svg>").next());
        let chart = chart.unwrap_or_else(|| panic!("{id} is not there"));
        for class in ["series-0", "series-1"] {
            let line = format!("<g class=\"{class}\"><path class=\"line\"");
            assert_eq!(chart.matches(&line).count(), 1, "{id}, {class}: {chart}");
        }
    }
    assert!(!page.contains("id=\"link-0-t\""), "each is drawn once");
}
