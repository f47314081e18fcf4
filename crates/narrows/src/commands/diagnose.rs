//! `narrows diagnose`

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clusters::{Clusters, EmbeddedClusters};
use insight::diagnosis::Diagnosis;
use report::benched::Bench;
use report::diagnosed::{Diagnosed, Judged, Row};
use world::Env;

use crate::diagnose::bench::{self, CASES, NamedCase, Processes, Shown};
use crate::exit::{Usage, refuse};
use crate::interrupt::{Ended, until_told};
use crate::on::On;
use crate::opensearch_args::OpenSearchArgs;
use crate::runs;
use crate::terminal::{self, say};

/// The build that pages name: its version and its commit.
const BUILD: &str = env!("NARROWS_VERSION");
const SEED: u64 = 1;
/// Seeds that the bench draws cases from where their number is not given.
const CASES_VIRTUAL: u64 = 180;
const CASES_OF_PROCESSES: u64 = 60;
/// The most of them that one line may ask for.
const CASES_MAX: u64 = 1_000_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these cases; may be given several times.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Where causes are injected: opensearch, embedded; both without any. With --bench one of these, or virtual, which
    /// it is without any.
    #[arg(long, value_name = "WHERE", value_parser = On::parse)]
    on: Vec<On>,
    /// Look only.
    #[arg(long)]
    no_probe: bool,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
    /// Draws cases from seeds, and scores the verdicts on them, instead of showing one case of each kind.
    #[arg(long, conflicts_with = "cases")]
    bench: bool,
    /// Seeds that the bench draws cases from, from 0 on; 180 in virtual time, 60 elsewhere. Each draws a recovery, and
    /// six in ten a bucket, a follower or searches as well, but for OpenSearch.
    #[arg(long = "cases", value_name = "N", requires = "bench", conflicts_with = "seeds",
          value_parser = clap::value_parser!(u64).range(1..=CASES_MAX))]
    count: Option<u64>,
    /// These seeds, as 0..179, 1..179/2 or 7,9, in place of a number of them.
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds, value_delimiter = ',', requires = "bench")]
    seeds: Vec<Seeds>,
    /// Has the bench score verdicts on recordings instead: folders that `narrows explain --record` made, each with a
    /// case.toml that says what is right (name = "a limit of 8mb", classes = ["rate_limit"]).
    #[arg(long, value_name = "DIR", requires = "bench",
          conflicts_with_all = ["on", "count", "seeds", "write", "no_probe"])]
    recordings: Option<PathBuf>,
    /// Has the bench keep what it sees of each case below there, as `narrows explain --record` does, with a case.toml
    /// that says what was injected: `--recordings DIR` judges them again.
    #[arg(long, value_name = "DIR", requires_all = ["bench", "no_probe"], conflicts_with_all = ["recordings", "steer"])]
    record: Option<PathBuf>,
    /// Keeps what comes of each case there, and takes what earlier sittings of this build kept there as it is, so that
    /// many sittings add up.
    #[arg(long, value_name = "DIR", requires = "bench", conflicts_with_all = ["recordings", "steer", "green"])]
    resume: Option<PathBuf>,
    /// Cases that the bench tries side by side on processes, each on two nodes of its own.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "bench",
          value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with_all = ["recordings", "steer", "green"])]
    at_once: u16,
    /// Has the bench score `narrows steer` on the cases, in place of verdicts: beside leaving them alone, and beside
    /// the best fixed settings. In virtual time.
    #[arg(long, requires = "bench", conflicts_with_all = ["recordings", "no_probe", "write"])]
    steer: bool,
    /// Has the bench score the time to green that `watch` shows, in place of verdicts: how often the moment lies within
    /// the interval. In virtual time.
    #[arg(long, requires = "bench", conflicts_with_all = ["recordings", "record", "steer", "no_probe", "write"])]
    green: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Writes the table as Markdown, too; with --bench, a page and its pictures into a directory.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Where the records of probes are kept; the bench keeps none.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR, conflicts_with_all = ["bench", "no_probe"])]
    runs: PathBuf,
}

/// `7`, `0..179` with both ends, or every second one of `1..179/2`.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    from: u64,
    to: u64,
    step: u32,
}

impl Seeds {
    fn iter(self) -> impl Iterator<Item = u64> {
        (self.from..=self.to).step_by(self.step as usize)
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Seeds { from, to, .. } if from == to => write!(f, "{from}"),
            Seeds { from, to, step: 1 } => write!(f, "{from}..{to}"),
            Seeds { from, to, step } => write!(f, "{from}..{to}/{step}"),
        }
    }
}

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let wrong = || format!("\"{text}\" is no seed; write 7, 0..179, or 1..179/2");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (range, step) = text.split_once('/').unwrap_or((text, "1"));
    let (from, to) = range.split_once("..").unwrap_or((range, range));
    let (from, to) = (number(from)?, number(to)?);
    let step = step.parse::<u32>().ok().filter(|step| *step > 0).ok_or_else(wrong)?;
    if from > to {
        return Err(format!("{from} is greater than {to}; write {to}..{from}"));
    }
    if (to - from) / u64::from(step) >= CASES_MAX {
        return Err(format!("these are more than {CASES_MAX} seeds; write {from}..{}", from + 179));
    }
    Ok(Seeds { from, to, step })
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let is_started = args.on.contains(&On::OpenSearch) || (args.on.is_empty() && !args.bench);
    if !is_started {
        args.opensearch.refuse_elsewhere()?;
    }
    if args.bench {
        return run_bench(args);
    }
    let cases = cases(&args.cases)?;
    if args.on.iter().any(|on| !matches!(on, On::OpenSearch | On::Embedded)) {
        let text = "causes are injected into nodes that are started for it: --on opensearch, --on embedded";
        refuse!("{text}");
    }
    args.write.as_deref().map_or(Ok(()), runs::check_written)?;
    let on = if args.on.is_empty() { vec![On::OpenSearch, On::Embedded] } else { args.on.clone() };
    let (mut diagnosed, mut ended) = (Diagnosed::default(), Ok(()));
    for on in &on {
        let rows = &mut diagnosed.rows;
        ended = world::real_world::run(SEED, async |env| match on {
            On::OpenSearch => {
                work(&env, args.opensearch.nodes()?.clusters(&env), &cases, args, rows).await
            }
            On::Embedded => {
                let target = EmbeddedClusters::new(&env, std::env::current_exe()?);
                work(&env, target, &cases, args, rows).await
            }
            On::Virtual | On::Url(_) => unreachable!("these are refused"),
        });
        if ended.is_err() {
            break;
        }
    }
    let written = args.write.as_ref().filter(|_| ended.is_ok()).map_or(Ok(()), |path| {
        let command = format!("narrows diagnose{} --write {}", chosen(args), path.display());
        runs::write(&diagnosed.markdown(&command, BUILD), path)
    });
    // Minutes of work are shown, even where a later case fails or the file cannot be written.
    if ended.is_ok() || !diagnosed.rows.is_empty() {
        terminal::print(args.json, diagnosed.json(), diagnosed.text())?;
    }
    ended?;
    written?;
    match diagnosed.wrong() {
        0 => Ok(()),
        1 => anyhow::bail!("1 verdict is not what was injected"),
        n => anyhow::bail!("{n} verdicts are not what was injected"),
    }
}

/// The options that choose what is shown, as a command line has them.
fn chosen(args: &Args) -> String {
    let on = args.on.iter().map(|on| format!(" --on {on}"));
    let cases = args.cases.iter().map(|case| format!(" --case {case}"));
    let looking = args.no_probe.then(|| " --no-probe".to_owned());
    on.chain(cases).chain(looking).collect()
}

/// Verdicts on recordings. A wrong one fails, as nothing was drawn: each was kept to be named rightly.
fn run_recordings(dir: &Path, json: bool) -> anyhow::Result<()> {
    let found = world::real_world::run(SEED, async |env| bench::of_recordings(&env, dir).await)?;
    terminal::print(json, found.json(), found.text())?;
    match found.wrong() {
        0 => Ok(()),
        n => anyhow::bail!("{n} of {} recordings are not named rightly", found.cases.len()),
    }
}

/// Cases of every seed on every target that was asked for.
fn run_bench(args: &Args) -> anyhow::Result<()> {
    if let Some(dir) = &args.recordings {
        return run_recordings(dir, args.json);
    }
    let on = bench_place(args)?;
    if let Some(dir) = &args.write {
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    }
    let ranges = seed_ranges(args, &on);
    let seeds: Vec<u64> = ranges.iter().flat_map(|range| range.iter()).collect();
    if args.steer || args.green {
        return score_in_virtual_time(args, &seeds);
    }
    let asked = bench::Asked {
        seeds: &seeds,
        probes: !args.no_probe,
        recordings: args.record.as_deref(),
        kept: args.resume.as_deref(),
        at_once: args.at_once,
    };
    let (found, failed) = try_cases(args, &on, asked)?;
    // A page says which seeds it is of: what ended early is printed, and not written.
    let written = match (&args.write, &failed) {
        (Some(dir), None) => write_page(args, &on, &ranges, &found, dir),
        _ => Ok(()),
    };
    terminal::print(args.json, found.json(), found.text())?;
    written?;
    failed.map_or(Ok(()), |error| {
        Err(error
            .context("a case could not be tried; these are the others, and no page was written"))
    })
}

/// Where the cases are tried.
fn bench_place(args: &Args) -> anyhow::Result<On> {
    let on = match &args.on[..] {
        [] => On::Virtual,
        [one @ (On::Virtual | On::Embedded | On::OpenSearch)] => one.clone(),
        _ => {
            let text = "the bench starts nodes of its own in one place: --on virtual, --on embedded or --on opensearch";
            refuse!("{text}");
        }
    };
    for (is_asked, option) in [(args.steer, "--steer"), (args.green, "--green")] {
        if is_asked && on != On::Virtual {
            refuse!("{option} is scored in virtual time: --on virtual");
        }
    }
    if args.at_once != 1 && on == On::Virtual {
        refuse!(
            "--at-once is for processes, and in virtual time as many cases go on at once as there are cores: leave it \
             out, or give --on embedded or --on opensearch"
        );
    }
    Ok(on)
}

fn seed_ranges(args: &Args, on: &On) -> Vec<Seeds> {
    if !args.seeds.is_empty() {
        return args.seeds.clone();
    }
    let usual = if *on == On::Virtual { CASES_VIRTUAL } else { CASES_OF_PROCESSES };
    vec![Seeds { from: 0, to: args.count.unwrap_or(usual) - 1, step: 1 }]
}

/// The scores of `steer`, or of the time to green, in place of verdicts.
fn score_in_virtual_time(args: &Args, seeds: &[u64]) -> anyhow::Result<()> {
    let (json, table) = if args.steer {
        let cases = bench::steered_in_virtual_time(seeds)?;
        (bench::as_json(&cases), bench::table(&cases))
    } else {
        let cases = bench::awaited_in_virtual_time(seeds)?;
        (bench::awaited_as_json(&cases), bench::awaited_table(&cases))
    };
    Ok(terminal::print(args.json, json, table)?)
}

/// The verdicts on all cases; the first error of a case comes with those that could be tried.
fn try_cases(
    args: &Args,
    on: &On,
    asked: bench::Asked<'_>,
) -> anyhow::Result<(Bench, Option<anyhow::Error>)> {
    match on {
        On::Embedded => world::real_world::run(SEED, async |env| {
            let start = || anyhow::Ok(EmbeddedClusters::new(&env, std::env::current_exe()?));
            bench::on_processes(&env, start, asked).await
        }),
        On::OpenSearch => world::real_world::run(SEED, async |env| {
            let (program, disks) = (std::env::current_exe()?, bench::nodes_with_disks());
            let start = || {
                let clusters = args.opensearch.nodes()?.clusters(&env);
                anyhow::Ok(clusters.with_slow_disks(program.clone(), disks.clone()))
            };
            bench::on_processes(&env, start, asked).await
        }),
        On::Virtual | On::Url(_) => bench::in_virtual_time(asked),
    }
}

/// Writes the page of a bench and its pictures, with the command that makes them again.
fn write_page(
    args: &Args,
    on: &On,
    ranges: &[Seeds],
    found: &Bench,
    dir: &Path,
) -> anyhow::Result<()> {
    let probes = if args.no_probe { " --no-probe" } else { "" };
    let shown: Vec<String> = ranges.iter().map(Seeds::to_string).collect();
    let (seeds, to) = (shown.join(","), dir.display());
    let at_once = match args.at_once {
        1 => String::new(),
        count => format!(" --at-once {count}"),
    };
    let command = format!(
        "narrows diagnose --bench --on {on}\n--seeds {seeds}{probes}{at_once} --write {to}"
    );
    for (name, text) in [
        (".md", found.markdown(&command, BUILD)),
        ("-matrix.svg", found.matrix_svg()),
        ("-gains.svg", found.gains_svg()),
    ] {
        runs::write_inside(&text, &dir.join(format!("{on}{name}")))?;
    }
    Ok(())
}

fn cases(asked: &[String]) -> anyhow::Result<Vec<&'static NamedCase>> {
    let find = |name: &String| {
        let names = CASES.iter().map(|case| case.name);
        CASES.iter().find(|case| case.name == name).ok_or_else(|| {
            let near = record::names::did_you_mean(name, names.clone());
            let (end, all) = (if near.is_empty() { "." } else { &near }, names.collect::<Vec<_>>());
            Usage(format!("no case is called \"{name}\"{end} Cases: {}", all.join(", "))).into()
        })
    };
    if asked.is_empty() { Ok(CASES.iter().collect()) } else { asked.iter().map(find).collect() }
}

/// Every case on one target, each a row. Whatever the end, the nodes are stopped.
async fn work<T: Clusters>(
    env: &Env,
    mut target: T,
    cases: &[&NamedCase],
    args: &Args,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    say!("starting two nodes ({})", target.name());
    let runs = (!args.no_probe).then_some(&*args.runs);
    let ended = until_told(async {
        bench::start(&mut target).await?;
        let place = Processes::new(env, &target).await?;
        for case in cases {
            if let Some(why) = case.obstacle() {
                say!("{} is left out: {why}", case.name);
                continue;
            }
            say!("{}: {}", case.name, case.injected);
            let shown = case.shown(&place, runs).await;
            rows.push(row(case, shown.with_context(|| format!("case {}", case.name))?));
        }
        Ok(())
    });
    let ended = ended.await;
    target.stop().await;
    match ended? {
        Ended::Complete => Ok(()),
        Ended::Interrupted => anyhow::bail!("interrupted; the nodes are stopped"),
    }
}

fn row(case: &NamedCase, Shown { cluster, passive, probed }: Shown) -> Row {
    Row {
        cluster,
        case: case.name.to_owned(),
        injected: case.injected.to_owned(),
        expected: case.expected.iter().map(|class| class.label().to_owned()).collect(),
        passive: judged(case, &passive),
        probed: probed.as_ref().map(|diagnosis| judged(case, diagnosis)),
        probes: probed.into_iter().flat_map(|diagnosis| diagnosis.probes).collect(),
    }
}

fn judged(case: &NamedCase, diagnosis: &Diagnosis) -> Judged {
    let first = diagnosis.findings.first();
    Judged {
        is_right: first.map_or(case.expected.is_empty(), |f| case.expected.contains(&f.class)),
        class: first.map_or("healthy", |finding| finding.class.label()).to_owned(),
        sentence: first.map_or(&diagnosis.headline, |finding| &finding.sentence).clone(),
        others: diagnosis.findings.iter().skip(1).map(|f| f.class.label().to_owned()).collect(),
        lift: first.and_then(|finding| finding.lift.as_ref()?.in_words("")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Given {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_page_has_the_command_that_makes_it_again() {
        let chosen_by = |line: &[&str]| {
            chosen(&Given::try_parse_from([&["diagnose"][..], line].concat()).unwrap().args)
        };
        assert_eq!(chosen_by(&["--write", "page.md"]), "");
        let some = ["--on", "embedded", "--case", "link", "--case", "slots", "--no-probe"];
        assert_eq!(chosen_by(&some), " --on embedded --case link --case slots --no-probe");
    }
}
