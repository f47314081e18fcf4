//! The page `published.html`: what is met and what is not, to be shown to people. It needs nothing else.

use insight::published::{Comparison, Figure};
use insight::words::{counted, unbroken};
use maud::{Markup, html};
use record::{Kind, units};

use super::conclusion::{BOUNDS, Notes, holding};
use super::place::{WHERE_TIME_IS_REAL, that_hold, verdict};
use super::{Conclusion, Document, Published, TIMES, laps, ours, per_cent, published};
use super::{beside, charts};
use crate::grid::signed;
use crate::page::{STANDS_ALONE, whole};
use crate::svg::scatter::{Dot, Mark, Scatter};

const OWN_CSS: &str = include_str!("published.css");
/// A figure within a tenth is met.
const BAND: f64 = 0.1;
/// The vertical axis of the charts, and what they say to screen readers.
const OFF: &str = "ours, off the published figure by";
const LOGARITHMIC: &str = "Both axes are logarithmic. The tables below have every number.";

/// The units of figures, their forms, and their names.
const MARKS: [(&str, Mark); 4] = [
    ("seconds", Mark::Circle),
    ("MB/s", Mark::Square),
    ("searches a second", Mark::Triangle),
    ("ms", Mark::Diamond),
];

fn mark(figure: Figure) -> Mark {
    match figure {
        Figure::NodeBytesPerS => Mark::Square,
        Figure::Load(_, "ms") => Mark::Diamond,
        Figure::Load(..) => Mark::Triangle,
        _ => Mark::Circle,
    }
}

impl Published {
    /// The page.
    pub fn html(&self) -> String {
        let body = html! {
            (self.head())
            main {
                (self.overview())
                (self.reading())
                @for document in &self.documents { (self.section(document)) }
                (self.time())
            }
            footer {
                "narrows " (env!("CARGO_PKG_VERSION")) ". " (STANDS_ALONE) " Made by " (self.command("--html")) "."
            }
        };
        whole("Published figures and ours", OWN_CSS, &body)
    }

    fn head(&self) -> Markup {
        let holding = self.predicted_holding(None);
        let holding = that_hold(holding, "predicted conclusion", "predicted conclusions");
        let is_measured = |document: &&Document| {
            let conclusions = self.conclusions_of(document);
            self.rows_of(document).next().is_some() || conclusions.iter().any(|c| c.holds.is_some())
        };
        let documents = match self.documents.iter().filter(is_measured).count() {
            1 => "one document".to_owned(),
            count => format!("{count} documents"),
        };
        html! {
            header {
                p.kicker { b { "narrows" } " published figures and ours, in virtual time" }
                h1 {
                    @match self.predicted_times().median_error {
                        Some(median) if self.compares(Some(TIMES)) => {
                            "Predicted recoveries are " (per_cent(median)) " off (median); "
                            (holding) "."
                        }
                        _ => { (holding) "." }
                    }
                }
                p.about {
                    "The experiments of " (documents) ", repeated with the same engine code on a model of their "
                    "machines: each published figure beside ours, and every sentence that claims something beside "
                    "what we find."
                }
                @if let Some((name, error)) = self.predicted_times().worst.filter(|_| self.compares(Some(TIMES))) {
                    p.path { "The predicted recovery that is furthest off: " (name) ", " (signed(error * 100.0)) " %." }
                }
                @if let Some(said) = self.other_size() { p.path { (said) } }
                @if self.documents.len() > 1 { ul.contents {
                    @for document in &self.documents { (self.entry(document)) }
                } }
            }
        }
    }

    /// A document with its outcome, as a link to its section.
    fn entry(&self, document: &Document) -> Markup {
        let (holding, failing) = holding(self.conclusions_of(document).into_iter());
        let said = that_hold((holding, failing), "conclusion", "conclusions");
        html! {
            li {
                a href={ "#" (document.id) } { (document.title) }
                @if holding + failing > 0 { ": " (said) }
            }
        }
    }

    /// What holds for the sections of all documents, said once.
    fn reading(&self) -> Markup {
        html! {
            @if !self.conclusions.is_empty() { section {
                h2 { "What is asked of a conclusion" }
                @for (bound, why) in BOUNDS { p.hint { b { (bound) } ": " (why) } }
                @if !self.elsewhere.is_empty() {
                    h3 { "Where time is real" }
                    p.hint { (WHERE_TIME_IS_REAL) }
                    @for on in &self.elsewhere { p.hint { (on.line()) "." } }
                }
            } }
        }
    }

    /// What has an error as points; nothing where nothing has.
    fn overview(&self) -> Markup {
        let judged = self.rows.iter().filter(|row| self.error(row).is_some());
        let (changes, figures): (Vec<&Comparison>, Vec<&Comparison>) =
            judged.partition(|row| matches!(row.figure, Figure::Change(_)));
        html! {
            @if !(changes.is_empty() && figures.is_empty()) { section {
                h2 { "Published against ours" }
                p.hint {
                    "How far ours is off, over the published figure. A point on the line at 0 is met; the band is 10\u{a0}% to "
                    "either side; a point with an arrowhead lies beyond the edge. "
                    @if self.seeds > 1 { "A line through a point is its range over seeds. " } @else { "One seed. " }
                    "Only what is predicted says how good the model is: the others were fitted, or follow from a "
                    "setting."
                }
                ul.legend {
                    @for kind in Kind::ALL {
                        li { span class={ "chip " (kind.label()) } aria-hidden="true" {} (meaning(kind)) }
                    }
                }
                @if !figures.is_empty() { ul.legend {
                    @for (name, mark) in MARKS {
                        li {
                            svg.sign viewBox="0 0 14 14" aria-hidden="true" { g.neutral { (mark.render(7.0, 7.0, 5.0)) } }
                            (name)
                        }
                    }
                } }
                div.pair {
                    @if !figures.is_empty() { figure.main {
                        figcaption { b { "Figures" } "in their own units" }
                        (figures_chart(&figures))
                    } }
                    @if !changes.is_empty() { figure.side {
                        figcaption { b { "Changes" } "by replica selection, as factors" }
                        (changes_chart(&changes))
                    } }
                }
                (self.kinds())
            } }
        }
    }

    fn kinds(&self) -> Markup {
        let groups = self.groups();
        let heads = heads(groups.iter().map(|group| group.document.id.as_str()));
        html! {
            div.scroll tabindex="0" role="region" aria-label="Errors by kind" { table.kinds {
                thead { tr {
                    th scope="col" { "Of" } th.n scope="col" { "Rows" }
                    th.n scope="col" { "Median error" }
                    @if self.seeds > 1 { th.n scope="col" { "In range" } }
                } }
                tbody {
                    @for (group, head) in groups.iter().zip(heads) {
                        @if head { tr.plan {
                            th colspan=(3 + u32::from(self.seeds > 1)) scope="colgroup" { (group.document.title) }
                        } }
                        tr class=[(group.kind != Kind::Predicted).then_some("faint")] {
                            th scope="row" {
                                (chip(group.kind)) (group.what) ", " (group.kind.label())
                                small { "furthest off: " (group.worst()) }
                            }
                            td.n { (group.standing.rows) }
                            td.n { (group.median()) }
                            @if self.seeds > 1 { td.n { (group.standing.within_range) } }
                        }
                    }
                }
            } }
            p.remarks {
                "Changes are in percentage points. "
                @if self.seeds > 1 {
                    "In range: the published figure lies between our lowest and highest over " (self.seeds) " seeds. "
                    "Where seeds give the same, nothing is drawn, and there is no range."
                }
            }
        }
    }

    fn section(&self, document: &Document) -> Markup {
        let rows: Vec<&Comparison> = self.rows_of(document).collect();
        let conclusions = self.conclusions_of(document);
        let mut notes = Notes::of_shared(&self.explanations(document));
        html! {
            section.document id=(document.id) {
                h2 { (document.title) }
                p.hint { (document.by) ". " (self.standing_text(document)) }
                @if !rows.is_empty() { (self.figures_table(&rows)) (beside::folded(&rows)) }
                (charts::section(&document.id, &document.plans, &self.first_seeds))
                @if !conclusions.is_empty() { (conclusions_table(document, &conclusions, &mut notes)) }
                (self.elsewhere_table(document, &mut notes))
            }
        }
    }

    fn figures_table(&self, rows: &[&Comparison]) -> Markup {
        let rows: Vec<&Comparison> = rows.iter().copied().filter(|row| !row.is_beside()).collect();
        let heads = heads(rows.iter().map(|row| row.plan.as_str()));
        html! {
            div.scroll tabindex="0" role="region" aria-label="Figures" { table.figures {
                thead { tr {
                    th scope="col" { "Row" } th.n scope="col" { "Published" } th.n scope="col" { "Ours" }
                    th.n scope="col" { "Error" } th scope="col" { "−50 to +50 %" }
                } }
                tbody { @for (row, head) in rows.iter().zip(heads) {
                    @if head { tr.plan { th colspan="5" scope="colgroup" { (row.plan) } } }
                    tr {
                        th scope="row" { (row.name()) (worth(row)) }
                        td.n.theirs {
                            (published(row))
                            @if let Some(laps) = laps(row) { small { (laps) } }
                        }
                        td.n {
                            (ours(row))
                            @if let Some(range) = self.range_text(row) { small { (range) } }
                        }
                        td.n { (self.error_text(row)) }
                        td { @if self.error(row).is_some() { (strip(row)) } }
                    }
                } }
            } }
        }
    }

    fn time(&self) -> Markup {
        html! {
            section {
                h2 { "How long it took" }
                p.hint {
                    "All of it in " (units::show_seconds(self.wall_s)) " on "
                    (counted(self.cores, "core", "cores"))
                    ". A run in virtual time has one thread, so seeds run side by side."
                }
                div.scroll tabindex="0" role="region" aria-label="Time of each plan" { table {
                    thead { tr {
                        th scope="col" { "Plan" } th.n scope="col" { "Seeds" } th.n scope="col" { "Time of a core" }
                    } }
                    tbody { @for wall in &self.walls { tr {
                        th scope="row" { (wall.plan) }
                        td.n { (wall.seeds) }
                        td.n { (units::show_seconds(wall.seconds)) }
                    } } }
                } }
            }
        }
    }
}

/// Which of these names begin a part of a table, as they are not those before them.
fn heads<'a>(names: impl Iterator<Item = &'a str>) -> Vec<bool> {
    let mut last = "";
    names.map(|name| std::mem::replace(&mut last, name) != name).collect()
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Predicted => "predicted: nothing was chosen by it",
        Kind::Calibrated => "calibrated: a value was chosen by it",
        Kind::Implied => "implied: arithmetic on a setting",
    }
}

fn chip(kind: Kind) -> Markup {
    html! { span class={ "chip " (kind.label()) } aria-hidden="true" {} }
}

/// A row as a point, its numbers changed by `own`.
fn dot(row: &Comparison, own: impl Fn(&Comparison, f64) -> f64) -> Option<Dot> {
    // A factor of nothing has no place on an axis by factors.
    let x = Some(own(row, row.published?)).filter(|x| *x > 0.0)?;
    let ratio = |ours: f64| own(row, ours) / x;
    Some(Dot {
        class: row.kind.label(),
        mark: mark(row.figure),
        x,
        ratio: ratio(row.ours?),
        range: row.range.map(|range| (ratio(range.low), ratio(range.high))),
        title: format!("{}: published {}, ours {}", row.name(), published(row), ours(row)),
    })
}

fn figures_chart(rows: &[&Comparison]) -> Markup {
    let own = |row: &Comparison, value: f64| match row.figure {
        Figure::NodeBytesPerS => value / 1e6,
        _ => value,
    };
    let chart = |id: &'static str, width: f64| Scatter {
        id,
        title: "How far our figures are off the published ones",
        desc: LOGARITHMIC.to_owned(),
        size: (width, 520.0),
        axes: ("published, in its unit", OFF),
        unit: "",
        band: BAND,
        dots: rows.iter().filter_map(|row| dot(row, own)).collect(),
    };
    // Words of the wide one would be too small on a telephone.
    html! {
        div.wide { (chart("figures", 600.0).render()) }
        div.slim { (chart("figures-slim", 400.0).render()) }
    }
}

fn changes_chart(rows: &[&Comparison]) -> Markup {
    let factor = |_: &Comparison, percent: f64| 1.0 + percent / 100.0;
    Scatter {
        id: "changes",
        title: "How far our changes are off the published ones",
        desc: LOGARITHMIC.to_owned(),
        size: (360.0, 520.0),
        axes: ("published", OFF),
        unit: "×",
        band: BAND,
        dots: rows.iter().filter_map(|row| dot(row, factor)).collect(),
    }
    .render()
}

/// What a row is worth and what held it, below its name: columns of their own have no room beside long names.
fn worth(row: &Comparison) -> Markup {
    let is_judged = row.figure != Figure::Words;
    let held_by = row.held_by.map(|limit| limit.label());
    html! {
        @if is_judged || held_by.is_some() { small {
            @if is_judged { (chip(row.kind)) (row.kind.label()) }
            @if let Some(limit) = held_by { @if is_judged { ", " } "held by " (limit) }
        } }
    }
}

/// The error on an axis: ours and its range, beside the published figure in the middle with its band.
fn strip(row: &Comparison) -> Markup {
    const WIDTH: f64 = 120.0;
    let Some(error) = row.error() else { return html! {} };
    let at = |error: f64| (0.5 + error.clamp(-0.5, 0.5)) * WIDTH;
    let error_of = |ours: f64| Comparison { ours: Some(ours), ..(*row).clone() }.error();
    let range = row.range.and_then(|range| Some((error_of(range.low)?, error_of(range.high)?)));
    let c = |value: f64| format!("{value:.1}");
    html! {
        svg.strip viewBox=(format!("0 0 {WIDTH} 14")) aria-hidden="true" {
            rect.band x=(c(at(-BAND))) y="0" width=(c(at(BAND) - at(-BAND))) height="14" {}
            line.same x1=(c(at(0.0))) x2=(c(at(0.0))) y1="0" y2="14" {}
            g class=(row.kind.label()) {
                @if let Some((low, high)) = range {
                    line.reach x1=(c(at(low))) x2=(c(at(high))) y1="7" y2="7" {}
                }
                @if error.abs() > 0.5 {
                    // Beyond the edge: an arrow's head.
                    @let (tip, back) = if error > 0.0 { (WIDTH, WIDTH - 7.0) } else { (0.0, 7.0) };
                    polygon.dot points=(format!("{tip},7 {back},2.5 {back},11.5")) {}
                } @else {
                    circle.dot cx=(c(at(error))) cy="7" r="4.5" {}
                }
            }
        }
    }
}

/// An explanation. One that stands there again has a number, and is said only once.
pub(super) fn explanation(notes: &mut Notes<'_>, document: &str, why: &str) -> Markup {
    match notes.say(why) {
        None => html! { (why) },
        Some((number, true)) => html! {
            span id={ (document) "-note-" (number) } { "Note " (number) ": " (why) }
        },
        Some((number, false)) => html! {
            a href={ "#" (document) "-note-" (number) } { "Note " (number) } "."
        },
    }
}

fn conclusions_table(
    document: &Document,
    conclusions: &[&Conclusion],
    notes: &mut Notes<'_>,
) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Conclusions" { table.conclusions {
            thead { tr {
                th scope="col" { "It concludes" } th.n scope="col" { "By its figures" }
                th.n scope="col" { "Asked" } th.n scope="col" { "Ours" }
            } }
            tbody { @for conclusion in conclusions { tr {
                th scope="row" { div.claim {
                    (sign(conclusion.holds))
                    div {
                        (unbroken(&conclusion.claim))
                        small {
                            (conclusion.place)
                            @if !conclusion.why.is_empty() {
                                ". " (explanation(notes, &document.id, &conclusion.why))
                            }
                        }
                    }
                } }
                td.n.theirs { (conclusion.published.map_or_else(super::dash, |p| conclusion.unit.show(p))) }
                td.n.theirs { (conclusion.asked()) }
                td.n {
                    (conclusion.ours())
                    @if let Some(range) = conclusion.range_text() { small { (range) } }
                    @if conclusion.holds.is_some() { small { (conclusion.kind.label()) } }
                }
            } } }
        } }
    }
}

pub(super) fn sign(holds: Option<bool>) -> Markup {
    let (class, shown) = match holds {
        Some(true) => ("yes", "✓"),
        Some(false) => ("no", "✗"),
        None => ("none", "–"),
    };
    html! { span class={ "mark " (class) } role="img" aria-label=(verdict(holds)) { (shown) } }
}

#[cfg(test)]
mod tests {
    use insight::{Curves, Point};

    use super::super::tests::sample;
    use super::super::{FirstSeed, Group, RATES};
    use super::*;

    #[test]
    fn the_page_stands_alone_and_has_what_the_table_has() {
        let page = sample().html();
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
        for text in [
            "Predicted recoveries are 10.0 % off (median); 1 of 1 predicted conclusion holds.",
            "Conclusions: 1 of 2 hold, 0 of them within 10 % of the document's own figure, which it gives for 1 of them; \
             of the 1 that were predicted 1 hold.",
            "the root of its ratio, and no upper end",
            "<small>2:28 to 2:30</small><small>calibrated</small>",
            "The experiments of one document, repeated",
            "Bytes bind.",
            "The predicted recovery that is furthest off: ",
            "+10.0 %",
            "20 seeds",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.contains("larger chunks &lt;help&gt;"));
        assert!(
            page.contains("id=\"figures-t\"") && page.contains("id=\"figures-slim-t\""),
            "{page}"
        );
        assert_eq!(page.matches("class=\"mark yes\"").count(), 1);
        assert_eq!(page.matches("class=\"mark no\"").count(), 1);
        // Six rows have a number on both sides, one of them a change; five have an error strip of their own kind.
        assert_eq!(page.matches("<svg class=\"strip\"").count(), 6);
        assert!(!page.contains("Not at the published size"));
    }

    #[test]
    fn nothing_found_is_still_a_page() {
        let page = Published { scale: 0.1, ..Published::default() }.html();
        assert!(page.contains("0 of 0 predicted conclusions hold"), "{page}");
        assert!(page.contains("Not at the published size: scale 0.1."));
        assert!(!page.contains("How far our changes are off"), "a chart without points");
    }

    #[test]
    fn the_headline_has_the_median_that_the_table_has() {
        let published = sample();
        // A rate that is predicted has a line of its own, and no part in the headline.
        assert!(published.groups().iter().any(|group| group.what == RATES));
        let of_times = |group: &&Group| group.what == TIMES && group.kind == Kind::Predicted;
        let median = published.groups().iter().find(of_times).unwrap().median();
        assert!(
            published.html().contains(&format!("recoveries are {median} off (median);")),
            "{median}"
        );
    }

    #[test]
    fn a_document_with_curves_has_its_charts_and_one_without_has_none() {
        let points = [(0.0, 0.0), (60.0, 4.9e9)].map(|(t_s, value)| Point { t_s, value });
        let curve = Curves {
            variant: "1 MB x 1".to_owned(),
            lap: 1,
            seconds: 60.0,
            recovered: points.into(),
            ..Curves::default()
        };
        let seed = FirstSeed {
            plan: "remote-recovery".to_owned(),
            curves: vec![curve],
            ..FirstSeed::default()
        };
        let mut published = Published { first_seeds: vec![seed], ..sample() };
        let other = Document {
            id: "life-after-ec2".to_owned(),
            plans: vec!["shard-recovery".to_owned()],
            ..published.documents[0].clone()
        };
        published.documents.push(other);
        let page = published.html();
        let (first, second) = page.split_once("id=\"life-after-ec2\"").unwrap();
        assert_eq!(first.matches("Recovered bytes over time").count(), 2, "for both widths");
        assert!(first.contains("Beside the graphs that the document links to"));
        let entry = "<a href=\"#benchmark-plan\">Benchmark plan</a>: 1 of 2 conclusions holds</li>";
        assert!(first.contains(entry), "the page begins with the outcome of each document");
        assert!(first.find("Beside ") < first.find("It concludes"), "before the conclusions");
        for without in [second, sample().html().as_str()] {
            assert!(!without.contains("Beside ") && !without.contains("over time"));
        }
    }

    /// The page leaves a table 960 pixels, whatever the window has beyond 1040.
    #[test]
    fn tables_have_few_columns_and_heads_and_names_that_wrap() {
        let page = sample().html();
        let table = page.split("aria-label=\"Figures\"").nth(1).unwrap();
        let table = table.split("</table>").next().unwrap();
        assert_eq!(table.matches("scope=\"col\"").count(), 5, "{table}");
        let of_row = "1 MB x 1<small><span class=\"chip predicted\" aria-hidden=\"true\"></span>predicted, held by latency";
        assert!(table.contains(of_row), "nothing is lost: {table}");
        assert!(table.contains("plain<small>held by latency</small>"), "words alone: {table}");
        for rule in ["thead th { white-space: normal;", ".figures tbody th { white-space: normal;"]
        {
            assert!(page.contains(rule), "{rule}");
        }
    }

    #[test]
    fn one_seed_has_no_range() {
        let page = Published { seeds: 1, ..sample() }.html();
        assert!(sample().html().contains("In range") && !page.contains("In range"), "{page}");
        let key = "A line through a point is its range";
        assert!(sample().html().contains(key) && !page.contains(key) && page.contains("One seed."));
    }

    #[test]
    fn at_another_size_no_error_of_times_is_claimed() {
        let mut published = Published { scale: 0.1, ..sample() };
        let page = published.html();
        assert!(page.contains("1 of 1 predicted conclusion holds"), "{page}");
        for claim in ["recoveries are ", "+10.0 %", "id=\"figures-t\"", "in their own units"] {
            assert!(sample().html().contains(claim) && !page.contains(claim), "{claim}");
        }
        assert_eq!(page.matches("<svg class=\"strip\"").count(), 1, "of the change");
        assert!(page.contains("id=\"changes-t\"") && page.contains("--scale 0.1 --html"));
        published.rows.retain(|row| !matches!(row.figure, Figure::Change(_)));
        assert!(!published.html().contains("Published against ours"));
    }
}
