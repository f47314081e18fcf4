//! Figures of loads that stand beside the published ones and are not judged, a line for each variant.

use insight::published::{BESIDE, Comparison, Figure};
use insight::words::three_digits;
use maud::{Markup, html};

use super::{dash, new_table};

pub(super) const TITLE: &str = "Extremes and errors";
pub(super) const WHY: &str = "Published, then ours. These have no error beside them and are in no median: an extreme depends on how \
    many searches were sent, and ours are fewer; and the virtual world has no errors of its own. Least and most throughput are \
    not even the same number: Rally's is the mean since its task began, taken anew after each second, and cannot fall far where \
    one second is slow. Ours are the least and the most of windows of 1 s, and with PMC of 100 ms: its searches are over within some seconds, and \
    one window in which most clients wait for a long search is the least. What else the document's tables have stands beside \
    nothing of ours: the 99.99th percentile, for which a seed sends too few searches; heap and collections, as the model has \
    none; and what it ran after Adrien's suggestions, whose code is not published (docs/published/model.md).";

/// A variant, and each figure as published and ours.
struct Line<'a> {
    plan: &'a str,
    variant: &'a str,
    cells: Vec<String>,
}

fn lines<'a>(rows: &[&'a Comparison]) -> Vec<Line<'a>> {
    let beside: Vec<&'a Comparison> = rows.iter().copied().filter(|row| row.is_beside()).collect();
    let mut variants: Vec<(&str, &str)> =
        beside.iter().map(|row| (row.plan.as_str(), row.variant.as_str())).collect();
    variants.dedup();
    let line = |(plan, variant): (&'a str, &'a str)| {
        let of = |name: &str| {
            beside.iter().find(|row| {
                let is_it = matches!(row.figure, Figure::Beside(other, _) if other == name);
                is_it && row.plan == plan && row.variant == variant
            })
        };
        Line {
            plan,
            variant,
            cells: BESIDE.iter().map(|name| of(name).map_or_else(dash, |row| cell(row))).collect(),
        }
    };
    variants.into_iter().map(line).collect()
}

fn cell(row: &Comparison) -> String {
    let show = |value: Option<f64>| value.map_or_else(dash, three_digits);
    let Figure::Beside(_, unit) = row.figure else { return dash() };
    format!("{}, {} {unit}", show(row.published), show(row.ours))
}

/// The table; none where there are no such figures.
pub(super) fn markdown(rows: &[&Comparison]) -> Option<String> {
    let lines = lines(rows);
    let mut table = new_table();
    table.set_header(["plan", "row"].into_iter().chain(BESIDE));
    for line in &lines {
        let names = [line.plan, line.variant].into_iter();
        table.add_row(names.chain(line.cells.iter().map(String::as_str)));
    }
    (!lines.is_empty()).then(|| table.to_string())
}

/// The same, folded; nothing where there are no such figures.
pub(super) fn folded(rows: &[&Comparison]) -> Markup {
    let lines = lines(rows);
    html! {
        @if !lines.is_empty() { details {
            summary { (TITLE) }
            p.hint { (WHY) }
            div.scroll tabindex="0" role="region" aria-label=(TITLE) { table.figures {
                thead { tr {
                    th scope="col" { "Row" }
                    @for name in BESIDE { th.n scope="col" { (name) } }
                } }
                tbody { @for line in &lines { tr {
                    th scope="row" { (line.variant) }
                    @for cell in &line.cells { td.n { (cell) } }
                } } }
            } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::super::{Document, Published};
    use super::*;

    #[test]
    fn extremes_stand_beside_the_published_ones_and_are_judged_by_nothing() {
        let mut published = sample();
        let load = published.rows.iter().find(|row| row.variant == "none").unwrap().clone();
        let more = ["99.9th percentile latency", "100th percentile latency"];
        published.rows.extend(more.map(|name| Comparison {
            figure: Figure::Beside(name, "ms"),
            published: Some(1890.48),
            ours: Some(1800.2),
            ..load.clone()
        }));
        let document = published.documents[0].clone();
        let of = |published: &Published, document: &Document| {
            let files = published.markdown();
            files.into_iter().find(|(name, _)| *name == format!("{}.md", document.id)).unwrap().1
        };
        let page = of(&published, &document);
        let line = page.lines().find(|line| line.contains("1890, 1800 ms")).unwrap();
        assert_eq!(line.matches("1890, 1800 ms").count(), 2, "{line}");
        assert!(line.contains("| none ") && line.contains(" - "), "{line}");
        assert!(page.contains("## Extremes and errors"), "{page}");
        assert!(!of(&sample(), &document).contains("Extremes"));
        // Neither the tables of figures nor the charts nor the medians have them.
        let text = published.text(usize::MAX);
        assert!(!text.contains("1890"), "{text}");
        assert_eq!(published.json()["medians"], sample().json()["medians"]);
        assert_eq!(published.json()["rows"][7]["error"], serde_json::Value::Null);
        let (html, before) = (published.html(), sample().html());
        assert!(html.contains("1890, 1800 ms") && !before.contains("Extremes"));
        for drawn in ["<svg class=\"strip\"", "<title>"] {
            assert_eq!(html.matches(drawn).count(), before.matches(drawn).count(), "{drawn}");
        }
    }
}
