//! `narrows published`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;
use insight::published::comparisons;
use insight::words::three_digits;
use insight::{Summary, load};
use lab::orderings::{By, Judged, ORDERINGS, Order, RowName};
use lab::plan::{Plan, bundled};
use lab::{Executed, Options, Place};
use record::RunDir;
use record::units::show_seconds;
use report::published::{Conclusion, Published, Wall};

use super::show::write_page;
use crate::exit::Usage;
use crate::progress::Progress;
use crate::{runs, terminal};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these plans; every one that has published rows without any.
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Writes the table as Markdown, too.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Size of the indices; 1 is the published one.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Where the runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let plans = plans(&args.plans)?;
    let mut published = Published { scale: args.scale, ..Published::default() };
    let mut seconds = BTreeMap::new();
    let mut loads: BTreeMap<_, BTreeMap<&str, f64>> = BTreeMap::new();
    for plan in &plans {
        let began = Instant::now();
        let run = in_virtual_time(plan, args)?;
        let summary = Summary::of(&run);
        for (variant, figures) in summary.finished() {
            seconds.insert((plan.clone(), variant.name.clone()), figures.seconds);
        }
        for load in &summary.loads {
            let totals = load::figures(&load.laps).into_iter();
            let totals = totals.filter_map(|figure| Some((figure.metric.name, figure.total?)));
            loads.insert((plan.clone(), load.variant.clone()), totals.collect());
        }
        published.rows.extend(comparisons(&summary));
        published.walls.push(Wall { plan: plan.clone(), seconds: began.elapsed().as_secs_f64() });
    }
    let of = |row: RowName, by: By| {
        let key = (row.plan.to_owned(), row.variant.to_owned());
        match by {
            By::Seconds => seconds.get(&key).copied(),
            By::Load(name) => loads.get(&key)?.get(name).copied(),
        }
    };
    published.conclusions =
        ORDERINGS.iter().map(|ordering| conclusion(&ordering.judge(of))).collect();
    if let Some(path) = &args.write {
        let command = format!("narrows published --write {}", path.display());
        std::fs::write(path, published.markdown(&command))
            .with_context(|| format!("write {}", path.display()))?;
    }
    let mut out = terminal::out();
    if args.json {
        writeln!(out, "{}", published.json())?;
    } else {
        write!(out, "{}", published.text())?;
    }
    Ok(())
}

/// The bundled plans that stand beside published rows, or those of them that were asked for.
fn plans(asked: &[String]) -> anyhow::Result<Vec<String>> {
    let mut known = Vec::new();
    for bundled in bundled() {
        if has_published_rows(&bundled.plan()?)? {
            known.push(bundled.name.to_owned());
        }
    }
    for name in asked {
        if !known.contains(name) {
            let hint = record::names::did_you_mean(name, known.iter().map(String::as_str));
            let known = known.join(", ");
            return Err(Usage(format!(
                "no bundled plan with published rows is called \"{name}\"{hint} There are {known}"
            ))
            .into());
        }
    }
    Ok(if asked.is_empty() { known } else { asked.to_vec() })
}

/// The record of a bundled plan in virtual time.
fn in_virtual_time(plan: &str, args: &Args) -> anyhow::Result<RunDir> {
    let watch = Rc::new(Progress::new());
    let options = Options { scale: args.scale, watch, ..Options::new(&args.runs) };
    let Executed { id, dir, run, ended, .. } =
        lab::execute(&Plan::open(plan)?, &Place::VIRTUAL, &options)?;
    write_page(&run, &dir.join("report.html"))?;
    ended.with_context(|| format!("run {id} failed; its record is in {}", dir.display()))?;
    Ok(run)
}

fn has_published_rows(plan: &Plan) -> anyhow::Result<bool> {
    let resolved = plan.resolve(1.0, lab::experiments::STEPS, |_, _| Ok(()))?;
    Ok(resolved.variants.iter().any(|variant| variant.published.is_some()))
}

fn conclusion(judged: &Judged) -> Conclusion {
    let pair = |pair: [RowName; 2]| {
        format!("{}: {} over {}", pair[0].plan, pair[1].variant, pair[0].variant)
    };
    let rows = match judged.ordering.order {
        Order::Faster(fast, slow) => {
            format!("{}: {} before {}", fast.plan, fast.variant, slow.variant)
        }
        Order::CostsMore(more, less) => format!("{} above {}", pair(more), pair(less)),
        Order::Less(figure, less, more) => format!(
            "{}, {}: {} below {}",
            less.plan,
            figure.to_lowercase(),
            less.variant,
            more.variant
        ),
        Order::Alike(figure, a, b) => {
            format!("{}, {}: {} as {}", a.plan, figure.to_lowercase(), a.variant, b.variant)
        }
    };
    let compared = match (judged.compared, judged.ordering.order) {
        (None, _) => "-".to_owned(),
        (Some((fast, slow)), Order::Faster(..)) => {
            format!("{} and {}", show_seconds(fast), show_seconds(slow))
        }
        (Some((less, more)), Order::CostsMore(..)) => format!("{more:.2} above {less:.2}"),
        (Some((a, b)), Order::Less(..) | Order::Alike(..)) => {
            format!("{} and {}", three_digits(a), three_digits(b))
        }
    };
    Conclusion {
        claim: judged.ordering.claim.to_owned(),
        source: judged.ordering.source.to_owned(),
        rows,
        holds: judged.holds,
        compared,
    }
}
