//! The page on figures for Prometheus is made of the figures themselves.

use report::metrics::FAMILIES;
use testbed::generated;

#[test]
fn every_figure_stands_in_the_page_and_the_dashboard_asks_for_no_other() {
    let mut table =
        "| figure | kind | unit | labels | what it is |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for family in FAMILIES {
        let total = if family.kind == "counter" { "_total" } else { "" };
        let labels = family.labels.join(", ");
        table.push_str(&format!(
            "| `{}{total}` | {} | {} | {labels} | {} |\n",
            family.name, family.kind, family.unit, family.help
        ));
        assert!(family.unit.is_empty() || family.name.ends_with(family.unit), "{}", family.name);
    }
    generated::check("docs/metrics.md", "metrics", &table);
    let dashboard = include_str!("../../../../packaging/grafana/narrows.json");
    let asked = dashboard.match_indices("narrows_").map(|(at, _)| {
        let rest = &dashboard[at..];
        &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap()]
    });
    for name in asked {
        let is_there = FAMILIES.iter().any(|one| one.name == name.trim_end_matches("_total"));
        assert!(is_there, "{name} is no figure");
    }
}
