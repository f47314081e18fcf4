//! Variants beside each other on the page: published rates beside ours, and curves over each other.

use std::collections::BTreeMap;

use record::{Kind, Line, PublishedInfo};

use crate::page::{chart, checked, whole};

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
    let page = checked(&run);
    assert!(page.contains("<td class=\"n\">47.5</td><td class=\"n theirs\">45.0</td>"), "{page}");
    run.manifest.scale = 1.0;
    assert!(
        report::html(&run).contains("45.0<small>ours +5.6 %</small>"),
        "of the whole size, both compare"
    );
}

#[test]
fn few_variants_lie_over_each_other_on_the_link_and_in_what_their_nodes_use() {
    let mut run = whole();
    let page = report::html(&run);
    assert!(!page.contains("id=\"link-wide-t\""), "five colours are too many");
    run.manifest.variants.truncate(2);
    run.rows.truncate(2);
    let page = checked(&run);
    for id in ["link", "leader-cores-together", "follower-cores-together"] {
        let chart = chart(&page, &format!("{id}-wide-t"));
        for class in ["series-0", "series-1"] {
            let line = format!("<g class=\"{class}\"><path class=\"line\"");
            assert_eq!(chart.matches(&line).count(), 1, "{id}, {class}: {chart}");
        }
    }
    assert!(!page.contains("id=\"link-0-t\""), "each is drawn once");
    run.manifest.variants.truncate(1);
    run.rows.truncate(1);
    let page = checked(&run);
    assert!(page.contains("id=\"link-wide-t\"") && !page.contains("id=\"link-0-t\""), "{page}");
}

#[test]
fn a_variant_that_is_a_stroke_beside_another_is_drawn_on_its_own() {
    let mut run = whole();
    // 164 s and 2.8 s are left.
    run.manifest.variants.drain(1..4);
    run.rows.drain(1..4);
    let page = checked(&run);
    assert!(!page.contains("id=\"link-wide-t\"") && page.contains("id=\"link-0-t\""), "{page}");
    assert!(!page.contains("-cores-together"), "{page}");
}

#[test]
fn where_no_copy_crosses_a_link_there_is_no_column_of_its_share() {
    let mut run = whole();
    assert!(report::html(&run).contains(">of link</th>"));
    run.rows.iter_mut().for_each(|row| row.link_share = None);
    let page = checked(&run);
    assert!(!page.contains(">of link</th>"), "{page}");
}

#[test]
fn a_cluster_without_another_is_not_called_the_leader() {
    let mut run = whole();
    run.manifest.variants.truncate(2);
    run.rows.truncate(2);
    let group = ">leader</text>";
    let page = report::html(&run);
    let of_leader = "Cores that all nodes of the leader used";
    assert!(page.contains(of_leader) && page.contains(group), "{page}");
    run.lines
        .retain(|line| !matches!(line, Line::Node { sample, .. } if sample.cluster == "follower"));
    let page = checked(&run);
    assert!(page.contains("Cores that all nodes used") && !page.contains(group), "{page}");
}
