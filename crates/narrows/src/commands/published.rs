//! `narrows published`

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, bail};
use insight::published::{Comparison, over_seeds};
use insight::stats::{Interval, median};
use lab::conclusions::{
    DOCUMENTS, Elsewhere, Figure, Measure, PARTS, Quantity, RowName, conclusions,
};
use lab::plan::{Plan, Resolved, Variant, bounds, bundled};
use lab::{Options, Place};
use report::published::{Conclusion, Document, Published, SEEDS, Unit, Wall};

use super::run::parse_scale;
use crate::elsewhere::{self, Tried};
use crate::exit::refuse;
use crate::on::On;
use crate::opensearch_args::OpenSearchArgs;
use crate::progress::Progress;
use crate::seeds::{Outcome, Work, cores, run_all};
use crate::{interrupt, own_mounts, runs, terminal};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these plans; every one that repeats the documents without any.
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// Where the experiments are repeated: virtual (at the published size), or on this machine at the plans' small
    /// size: embedded or opensearch, for what fits one machine and for the conclusions alone.
    #[arg(long, value_name = "WHERE", default_value_t = On::Virtual, value_parser = On::parse)]
    on: On,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
    /// Draws all that is random so often in virtual time: hosts, where rotations begin, the network's order. A figure
    /// is the median over seeds. 20 without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Repetitions of every variant with --on embedded and --on opensearch; 1 without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    laps: Option<u32>,
    /// Also shows what --on embedded and --on opensearch have written into this folder, in place of what docs/published
    /// has of them.
    #[arg(long, value_name = "DIR")]
    also: Option<PathBuf>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Writes one page for a browser.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "published.html")]
    html: Option<PathBuf>,
    /// Writes Markdown into this folder: an index, and a file for each document, with what --also shows of the same
    /// folder. With --on embedded and --on opensearch a JSON file for --also.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Size of the indices; 1 is the published one.
    #[arg(long, default_value_t = 1.0, value_parser = parse_scale)]
    scale: f64,
    /// Where the runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // The smallest plans would be run first, at a size of their own.
    bounds::check_scale(args.scale)?;
    if args.on != On::OpenSearch {
        args.opensearch.refuse_elsewhere()?;
    }
    let on = match args.on {
        On::Virtual => return in_virtual_time(args),
        On::Embedded => Elsewhere::Embedded,
        On::OpenSearch => Elsewhere::OpenSearch,
        On::Url(_) => {
            let why = "the conclusions are tried on clusters that are started for them: --on embedded or --on opensearch";
            refuse!("{why}");
        }
    };
    for (given, flag) in [
        (args.seeds.is_some(), "--seeds is for virtual time; --laps repeats what is measured"),
        (
            args.html.is_some(),
            "--html is for virtual time; what is written with --write is shown there with --also",
        ),
        (
            args.also.is_some(),
            "--also is for virtual time, which shows beside it what this writes with --write",
        ),
        (!args.plans.is_empty(), "every plan that fits is run there; name none, or --on virtual"),
    ] {
        if given {
            refuse!("{flag}");
        }
    }
    let known = plans(&[])?;
    let place = match on {
        Elsewhere::Embedded => Place::Embedded {
            program: std::env::current_exe()?,
            own_mounts: || own_mounts::ensure().map_err(|error| format!("{error:#}")),
        },
        Elsewhere::OpenSearch => Place::OpenSearch(args.opensearch.nodes()?),
    };
    let options = |variants| Options {
        scale: args.scale,
        laps: Some(args.laps.unwrap_or(1)),
        variants,
        watch: Rc::new(Progress::new()),
        interrupt: Rc::new(|| Box::pin(interrupt::told_to_stop())),
        ..Options::new(&args.runs)
    };
    let Tried { found, failed } =
        elsewhere::run(on, &place, options, |figure| theirs(&known, figure))?;
    let json = serde_json::to_string_pretty(&found)? + "\n";
    let written = args.write.as_ref().map_or(Ok(()), |folder| {
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        runs::write_inside(&json, &folder.join(elsewhere::file_name(on)))
    });
    let shown = if args.json { json } else { found.text() };
    write!(terminal::out(), "{shown}")?;
    written?;
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

fn variant(plans: &[Resolved], row: RowName) -> Option<&Variant> {
    let plan = plans.iter().find(|plan| plan.name == row.plan)?;
    plan.variants.iter().find(|variant| variant.name == row.variant)
}

/// The range of a load's published figure over its laps.
fn laps(plans: &[Resolved], row: &Comparison) -> Option<Interval> {
    let insight::published::Figure::Load(metric, _) = row.figure else { return None };
    let plan = plans.iter().find(|plan| plan.name == row.plan)?;
    let variant = plan.variants.iter().find(|variant| variant.name == row.variant)?;
    let (low, high) = *variant.published.as_ref()?.laps.get(metric)?;
    Some(Interval { low, high })
}

/// What the documents have of a figure.
fn theirs(plans: &[Resolved], figure: Figure) -> Option<f64> {
    figure.of.published(variant(plans, figure.row)?.published.as_ref()?)
}

fn in_virtual_time(args: &Args) -> anyhow::Result<()> {
    if args.laps.is_some() {
        refuse!("--laps is for --on embedded and --on opensearch; virtual time draws --seeds");
    }
    let seeds = args.seeds.unwrap_or(SEEDS);
    // Before minutes are spent. A folder of --write is made, that of --also must have something to show.
    if let Some(folder) = args.also.as_ref().filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        refuse!("--also {folder}: there is no such folder; name one that --write has made");
    }
    let elsewhere = match args.also.iter().chain(&args.write).next() {
        Some(folder) => elsewhere::read(folder)?,
        None if args.plans.is_empty() => elsewhere::known()?,
        None => Vec::new(),
    };
    if let Some(folder) = &args.also
        && elsewhere.is_empty()
    {
        let [one, other] = Elsewhere::ALL.map(elsewhere::file_name);
        let folder = folder.display();
        refuse!(
            "--also {folder}: it holds neither {one} nor {other}, so that there is nothing to show; `narrows published \
             --on embedded --write {folder}` writes one"
        );
    }
    args.html.as_deref().map_or(Ok(()), runs::check_written)?;
    let plans = plans(&args.plans)?;
    let began = Instant::now();
    let works: Vec<Work> = plans.iter().map(work).collect();
    let outcomes = run_all(&works, seeds, args.scale, &args.runs)?;
    let mut published = Published {
        documents: DOCUMENTS.iter().map(document).collect(),
        conclusions: DOCUMENTS
            .iter()
            .flat_map(|document| document.conclusions.iter().map(|c| (document.id, c)))
            .map(|(document, c)| conclusion(document, c, &works, &outcomes, &plans))
            .collect(),
        cores: cores(),
        seeds,
        scale: args.scale,
        elsewhere,
        ..Published::default()
    };
    for (work, seeds) in works.iter().zip(&outcomes) {
        let rows: Vec<_> = seeds.iter().map(|outcome| outcome.rows.clone()).collect();
        published.rows.extend(over_seeds(&rows));
        published.first_seeds.extend(seeds.iter().find_map(|outcome| outcome.drawn.clone()));
        published.walls.push(Wall {
            plan: work.plan.clone(),
            seeds: seeds.len(),
            seconds: seeds.iter().map(|outcome| outcome.seconds).sum(),
        });
    }
    for row in &mut published.rows {
        row.laps = laps(&plans, row);
    }
    published.wall_s = began.elapsed().as_secs_f64();
    // Hours of work are shown, even where a file cannot be written.
    let written = write_files(args, &published);
    let text = published.text(terminal::out().line_width());
    terminal::print(args.json, published.json(), text)?;
    written?;
    let changed =
        published.conclusions.iter().filter(|c| !c.expected && published.can_tell_changes());
    let changed: Vec<&str> = changed.map(|c| c.claim.as_str()).collect();
    if !changed.is_empty() {
        bail!("what is known of these conclusions changed: {}", changed.join("; "));
    }
    Ok(())
}

fn write_files(args: &Args, published: &Published) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        runs::write(&published.html(), path)?;
    }
    if let Some(folder) = &args.write {
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        for (name, text) in published.markdown() {
            runs::write_inside(&text, &folder.join(name))?;
        }
    }
    Ok(())
}

/// The bundled plans that stand beside published rows, and those of which conclusions speak, or those of them that were
/// asked for.
fn plans(asked: &[String]) -> anyhow::Result<Vec<Resolved>> {
    let mut known = Vec::new();
    for bundled in bundled() {
        let plan = resolved(&bundled.plan()?)?;
        if part(&plan).is_some() || has_published(&plan) {
            known.push(plan);
        }
    }
    for name in asked {
        let names: Vec<&str> = known.iter().map(|plan| plan.name.as_str()).collect();
        if !names.contains(&name.as_str()) {
            let hint = record::names::did_you_mean(name, names.iter().copied());
            let (end, known) = (if hint.is_empty() { "." } else { &hint }, names.join(", "));
            refuse!(
                "no bundled plan that repeats the documents is called \"{name}\"{end} There are {known}"
            );
        }
    }
    known.retain(|plan| asked.is_empty() || asked.contains(&plan.name));
    // In the order of the page; a plan of no document comes last.
    let place = |plan: &Resolved| {
        let all = DOCUMENTS.iter().flat_map(|document| document.plans);
        all.enumerate().find(|(_, name)| **name == plan.name).map_or(usize::MAX, |(at, _)| at)
    };
    known.sort_by_key(place);
    Ok(known)
}

fn has_published(plan: &Resolved) -> bool {
    plan.variants.iter().any(|variant| variant.published.is_some())
}

/// Of which part one run stands for the plan, where it has no published rows.
fn part(plan: &Resolved) -> Option<f64> {
    PARTS.iter().find(|(name, _)| *name == plan.name).map(|(_, part)| *part)
}

fn resolved(plan: &Plan) -> anyhow::Result<Resolved> {
    Ok(plan.resolve(1.0, lab::experiments::STEPS, |_, _| Ok(()))?)
}

/// What is run of a plan: variants with published rows, those that they are compared with, and those of conclusions.
fn work(plan: &Resolved) -> Work {
    let concluded: Vec<&str> = conclusions()
        .flat_map(|conclusion| conclusion.measure.figures())
        .filter(|figure| figure.row.plan == plan.name)
        .map(|figure| figure.row.variant)
        .collect();
    let published = |name: &str| {
        plan.variants.iter().any(|other| {
            other.published.is_some()
                && (other.name == name || other.baseline.as_deref() == Some(name))
        })
    };
    let names = plan.variants.iter().map(|variant| variant.name.clone());
    let variants = names.filter(|name| published(name) || concluded.contains(&name.as_str()));
    Work { plan: plan.name.clone(), variants: variants.collect(), part: part(plan) }
}

fn document(document: &lab::conclusions::Document) -> Document {
    Document {
        id: document.id.to_owned(),
        title: document.title.to_owned(),
        by: document.by.to_owned(),
        plans: document.plans.iter().map(|plan| (*plan).to_owned()).collect(),
    }
}

/// A conclusion, judged by the median over seeds of its number.
fn conclusion(
    document: &str,
    conclusion: &lab::conclusions::Conclusion,
    works: &[Work],
    outcomes: &[Vec<Outcome>],
    plans: &[Resolved],
) -> Conclusion {
    let figures = conclusion.measure.figures();
    let of_plan =
        |plan: &str| works.iter().position(|work| work.plan == plan).map(|at| &outcomes[at]);
    let seeds = figures.iter().filter_map(|figure| of_plan(figure.row.plan)).map(Vec::len).max();
    // Where nothing is drawn there are fewer seeds, and any of them is all of them.
    let ours = |figure: Figure, seed: usize| {
        let seeds = of_plan(figure.row.plan)?;
        let outcome = seeds.get(seed).or(seeds.last())?;
        outcome.figures.iter().find(|(other, _)| *other == figure).map(|(_, value)| *value)
    };
    let values =
        (0..seeds.unwrap_or(0)).filter_map(|seed| conclusion.measure.value(|f| ours(f, seed)));
    let values: Vec<f64> = values.collect();
    let judged =
        conclusion.judge(median(&values), conclusion.measure.value(|figure| theirs(plans, figure)));
    let low = values.iter().copied().reduce(f64::min);
    let range = low.zip(values.iter().copied().reduce(f64::max)).filter(|(low, high)| low < high);
    Conclusion {
        document: document.to_owned(),
        place: conclusion.place.to_owned(),
        claim: conclusion.claim.to_owned(),
        rows: conclusion.measure.rows(),
        unit: unit(&conclusion.measure),
        published: judged.published,
        within: judged.within,
        ours: judged.value,
        range: range.map(|(low, high)| Interval { low, high }),
        holds: judged.holds,
        is_near: judged.is_near,
        kind: conclusion.measure.kind(|row| variant(plans, row)),
        expected: conclusion.is_expected(judged.holds),
        why: conclusion.why().to_owned(),
    }
}

fn unit(measure: &Measure) -> Unit {
    match measure {
        Measure::One(figure) | Measure::Difference(figure, _) => match figure.of {
            Quantity::Seconds
            | Quantity::Load(_)
            | Quantity::Persisted
            | Quantity::LongestCatchUp
            | Quantity::LagMax => Unit::Seconds,
            Quantity::NodeRate
            | Quantity::DocumentRate
            | Quantity::Sent(..)
            | Quantity::Received(..) => Unit::Of("MB/s"),
            Quantity::Busy(_) | Quantity::HeldBy(_) | Quantity::MemoryPeak | Quantity::Stopped => {
                Unit::Share
            }
            Quantity::Cores(..) => Unit::Cores,
            Quantity::DoneAfter(_) => Unit::Count("shards"),
            Quantity::Rollbacks => Unit::Count("vbuckets"),
            Quantity::Streamed => Unit::Of("GB"),
            Quantity::Rollovers => Unit::Count("rollovers"),
            Quantity::DocumentsAnIndex => Unit::Of("million"),
            Quantity::SearchesOf(_) | Quantity::SearchesSpread => Unit::Times,
        },
        Measure::Improved(..) => Unit::Share,
        _ => Unit::Times,
    }
}

#[cfg(test)]
mod tests {
    use insight::Summary;
    use insight::words::{mb_per_s, three_digits};
    use record::units::show_seconds_beside;
    use record::{
        FORMAT, Limit, LimitShare, LoadFigures, Manifest, Percentiles, Row, RunDir, Throughput,
    };
    use report::Style;

    use super::*;

    /// A run of this plan in virtual time, each time a second shorter than is published.
    fn made_up(plan: &Resolved) -> RunDir {
        let info = |variant: &Variant| lab::variant_info(variant, &Place::VIRTUAL);
        let load = || LoadFigures {
            operation: "search".to_owned(),
            seconds: 10.0,
            requests: 10_000,
            throughput: Throughput { median_per_s: 50.0, ..Throughput::default() },
            latency: Some(Percentiles::default()),
            ..LoadFigures::default()
        };
        let row = |variant: &Variant| {
            let published = variant.published.as_ref();
            let seconds = published.and_then(|published| published.seconds).unwrap_or(100.0) - 1.0;
            Row {
                link_share: Some(0.5),
                limits: vec![LimitShare { limit: Limit::LinkRate, share: 1.0 }],
                node_bytes_per_s: published.and_then(|published| published.info.node_bytes_per_s),
                loads: published
                    .iter()
                    .filter(|of| !of.info.load.is_empty())
                    .map(|_| load())
                    .collect(),
                ..Row::measured(&variant.name, 1, seconds, 5_000_000_000)
            }
        };
        RunDir {
            manifest: Manifest {
                plan: plan.name.clone(),
                target: "virtual".to_owned(),
                variants: plan.variants.iter().map(info).collect(),
                ..Manifest::unknown("r", FORMAT)
            },
            lines: Vec::new(),
            rows: plan.variants.iter().map(row).collect(),
            damage: Vec::new(),
        }
    }

    #[test]
    fn every_published_figure_of_a_plan_is_shown_in_a_terminal() {
        let mut shown = 0;
        for plan in plans(&[]).unwrap().iter().filter(|plan| has_published(plan)) {
            let style = Style { color: false, width: Style::DEFAULT_WIDTH };
            let run = made_up(plan);
            let table = report::table(&Summary::of(&run), style, None);
            for published in plan.variants.iter().filter_map(|variant| variant.published.as_ref()) {
                let loads = insight::load::compared().filter_map(|metric| {
                    Some(("Published", three_digits(*published.info.load.get(metric.name)?)))
                });
                let time =
                    published.seconds.map(|s| ("published", show_seconds_beside(s, s - 1.0)));
                let rate = published.info.node_bytes_per_s.map(|rate| ("its MB/s", mb_per_s(rate)));
                for (head, figure) in loads.chain(time).chain(rate) {
                    let is_shown = table.contains(head) && table.contains(&format!("  {figure}"));
                    assert!(is_shown, "{}: {figure} is not in\n{table}", plan.name);
                    shown += 1;
                }
            }
        }
        assert!(shown > 50, "{shown}");
    }

    #[test]
    fn a_plan_of_the_documents_is_compared_or_a_part_of_it_stands_for_it() {
        let plans = plans(&[]).unwrap();
        for name in DOCUMENTS.iter().flat_map(|document| document.plans) {
            let plan = plans.iter().find(|plan| plan.name == *name);
            let plan = plan.unwrap_or_else(|| panic!("{name} is not run"));
            assert_ne!(has_published(plan), part(plan).is_some(), "{name}");
            assert!(!work(plan).variants.is_empty(), "{name}: every variant would be run");
        }
        for (name, part) in PARTS {
            assert!(*part > 0.0 && *part <= 1.0, "{name}");
            assert!(DOCUMENTS.iter().any(|document| document.plans.contains(name)), "{name}");
        }
    }

    #[test]
    fn a_published_load_of_several_laps_has_their_range() {
        let plans = plans(&[]).unwrap();
        let published = plans.iter().find(|plan| plan.name == "replica-selection").unwrap();
        let run = made_up(published);
        let rows = insight::published::comparisons(&Summary::of(&run));
        let ranges: Vec<Interval> = rows.iter().filter_map(|row| laps(&plans, row)).collect();
        assert_eq!(ranges.len(), 20, "four figures of each of five cases without selection");
        assert_eq!((ranges[0].low, ranges[0].high), (94.9815, 96.6245));
    }

    #[test]
    fn every_chart_is_of_variants_that_are_run() {
        let works: Vec<Work> = plans(&[]).unwrap().iter().map(work).collect();
        for (plan, variant) in report::published::charted() {
            let work = works.iter().find(|work| work.plan == plan);
            let is_run = work.is_some_and(|work| work.variants.iter().any(|one| one == variant));
            assert!(is_run, "{plan}: {variant}");
            let documents = DOCUMENTS.iter().filter(|document| document.plans.contains(&plan));
            assert_eq!(documents.count(), 1, "{plan}");
        }
    }
}
