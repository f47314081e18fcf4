//! `narrows compare`

use std::path::PathBuf;
use std::slice;

use clap::ValueEnum;
use insight::compare::Runs;
use record::RunDir;
use report::Style;

use crate::exit::{Usage, refuse};
use crate::live::{ConnectArgs, checked_options};
use crate::{runs, store, terminal};

#[derive(clap::Args)]
#[command(mut_arg("any_version", |unused| unused.hide(true)))]
pub(crate) struct Args {
    /// The runs: ids, directories, or "last". The others are compared with the first.
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    which: Vec<String>,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    /// Runs that are not here are read from this Elasticsearch or OpenSearch by their ids: those that narrows stored,
    /// lap by lap, and those of Rally, which are one lap each.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    connect: ConnectArgs,
    /// The form of the comparison; html lays the curves of the runs over each other.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Where to write it; standard output by default.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit code 1 if a figure is worse than in the first run by more than this, for example 5%, as far as the laps
    /// support it; with fewer than four laps of each the medians alone decide.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    fail_over: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Markdown,
    Json,
    Html,
}

/// `5%` or `5`.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text.trim()).trim_end();
    let percent = number.parse::<f64>().ok().filter(|p| p.is_finite() && *p >= 0.0);
    percent.ok_or_else(|| "write a percentage, for example --fail-over 5%".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let [alone] = args.which.as_slice() {
        refuse!(
            "{alone} is compared with nothing; write narrows compare {alone} RUN (`narrows runs` lists the others)"
        );
    }
    let opened = opened(args)?;
    for (at, run) in opened.iter().enumerate() {
        let is_it = |earlier: &RunDir| earlier.manifest.run == run.manifest.run;
        if let Some(earlier) = opened[..at].iter().position(is_it) {
            let (a, b) = (&args.which[earlier], &args.which[at]);
            refuse!("\"{a}\" and \"{b}\" are the same run; `narrows runs` lists the others");
        }
    }
    let compared = Runs::of(&opened.iter().collect::<Vec<&RunDir>>());
    let worse = args.fail_over.map(|percent| compared.worse_by(percent));
    if !compared.has_common_figures() && worse.as_ref().is_none_or(Vec::is_empty) {
        return Err(Usage(nothing_in_common(&compared)).into());
    }
    let out = terminal::out();
    let style = Style { color: out.style().color && args.output.is_none(), ..out.style() };
    let width = if args.output.is_some() { usize::MAX } else { out.line_width() };
    let text = match args.format {
        Format::Table => report::compared::table(&compared, worse.as_deref(), style, width),
        Format::Markdown => report::compared::markdown(&compared, worse.as_deref()),
        Format::Json => report::compared::json(&compared, worse.as_deref()).to_string() + "\n",
        Format::Html => report::compared::html(&compared),
    };
    match &args.output {
        Some(path) => {
            runs::write(&style.safe(&text), path)?;
            writeln!(terminal::out(), "{}", path.display())?;
        }
        None => write!(terminal::out(), "{text}")?,
    }
    match worse.as_deref() {
        None | Some([]) => Ok(()),
        Some([first, more @ ..]) => {
            let more = match more.len() {
                0 => String::new(),
                count => format!(", and {count} more"),
            };
            let percent = args.fail_over.unwrap_or_default();
            anyhow::bail!("more than {percent} % worse: {} in {}{more}", first.text, first.label)
        }
    }
}

/// The runs: from their directories, or from the store.
fn opened(args: &Args) -> anyhow::Result<Vec<RunDir>> {
    let open_here = |which: &String| runs::open_whole(&runs::find(&args.runs, which)?);
    let Some(url) = &args.store else {
        args.connect.refuse_given("these runs are here; leave it out, or give --store URL")?;
        return args.which.iter().map(open_here).collect();
    };
    args.connect.refuse_any_version()?;
    let options = checked_options(slice::from_ref(url), &args.connect, args.connect.timeout())?;
    let open = |which: &String| match runs::is_here(&args.runs, which) {
        true => open_here(which),
        false => Ok(store::read(which, &options)?),
    };
    args.which.iter().map(open).collect()
}

/// Why there is nothing to compare, by what each run has.
fn nothing_in_common(compared: &Runs<'_>) -> String {
    let of = |at: usize| {
        let mut names: Vec<String> = (compared.figures.iter())
            .filter(|figure| !figure.laps[at].is_empty())
            .map(|figure| figure.of())
            .collect();
        names.dedup();
        let contender = &compared.contenders[at];
        let manifest = &contender.run.manifest;
        let summary = &contender.summary;
        let has = match (names.is_empty(), &summary.watched) {
            (true, Some(_)) if summary.is_steered() => {
                format!("steered a cluster ({})", summary.headline)
            }
            (true, Some(_)) => "only watched a cluster".to_owned(),
            (true, None) => "measured nothing".to_owned(),
            (false, _) => format!("has {}", names.join(", ")),
        };
        format!("{} {has}", manifest.run)
    };
    let each: Vec<String> = (0..compared.contenders.len()).map(of).collect();
    let is_steered = compared.contenders.iter().any(|one| one.summary.is_steered());
    let instead = match is_steered {
        true => "; `narrows report RUN` shows what each change of a steered one brought",
        false => "",
    };
    let each = each.join("; ");
    format!("these runs have no figure in common: {each}; give runs of one plan{instead}")
}

#[cfg(test)]
mod tests {
    use record::{FORMAT, Line, Manifest};

    use super::*;

    #[test]
    fn runs_that_steered_say_what_they_did() {
        let steered = |run: &str, notes: &[&str]| {
            let note =
                |text: &&str| Line::Note { t_ms: 0.0, variant: None, text: (*text).to_owned() };
            let look = Line::Observation { t_ms: 0.0, observation: Box::default() };
            let manifest = Manifest { plan: "steer".to_owned(), ..Manifest::unknown(run, FORMAT) };
            let lines = notes.iter().map(note).chain([look]).collect();
            RunDir { manifest, lines, rows: Vec::new(), damage: Vec::new() }
        };
        let (a, b) = (steered("a", &["set x 1 -> 2", "keep x 1 -> 2"]), steered("b", &[]));
        let said = nothing_in_common(&Runs::of(&[&a, &b]));
        let each =
            "a steered a cluster (1 change, 1 kept); b steered a cluster (nothing to change)";
        assert!(said.contains(each) && said.contains("narrows report RUN"), "{said}");
    }

    #[test]
    fn percentages_are_read_with_their_sign_or_without() {
        assert_eq!((parse_percent("5%"), parse_percent(" 2.5 ")), (Ok(5.0), Ok(2.5)));
        for wrong in ["", "x", "-1%", "nan", "inf", "5%%"] {
            assert!(parse_percent(wrong).unwrap_err().contains("--fail-over 5%"), "{wrong}");
        }
    }
}
