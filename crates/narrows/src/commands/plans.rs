//! `narrows plans`

use serde_json::json;

use crate::terminal;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the whole text of a plan, to start one of your own from.
    #[arg(value_name = "PLAN")]
    name: Option<String>,
    /// The list as one JSON object on standard output.
    #[arg(long, conflicts_with = "name")]
    json: bool,
    /// Every key of a plan's file, with what it holds, its default and an example, as Markdown.
    #[arg(long, conflicts_with_all = ["name", "json"])]
    keys: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut out = terminal::out();
    if args.keys {
        write!(out, "{}", lab::plan::keys_markdown())?;
        return Ok(());
    }
    if let Some(name) = &args.name {
        write!(out, "{}", lab::plan::Plan::open(name)?.text())?;
        return Ok(());
    }
    let mut plans = Vec::new();
    for bundled in lab::plan::bundled() {
        let plan = bundled.plan()?;
        plans.push((plan.name().to_owned(), plan.about().to_owned()));
    }
    if args.json {
        let rows: Vec<_> =
            plans.iter().map(|(name, about)| json!({ "name": name, "about": about })).collect();
        writeln!(out, "{}", json!({ "plans": rows }))?;
        return Ok(());
    }
    let longest = plans.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = out.line_width();
    for (name, about) in &plans {
        writeln!(out, "{}", report::labelled(&format!("{name:longest$}  "), about, width))?;
    }
    writeln!(
        out,
        "\nRun one with `narrows run NAME`; print one with `narrows plans NAME`.\n`narrows plans --keys` \
         says what a plan may have."
    )?;
    Ok(())
}
