//! `narrows restore`

use std::path::PathBuf;

use clusters::{Journal, PUT_BACK_PATIENCE};

use crate::live::{ConnectArgs, client, tell_left, usage};
use crate::{runs, terminal};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run that was killed: its id, its directory, or "last".
    #[arg(default_value = "last")]
    run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let dir = runs::find(&args.runs, &args.run)?;
    let journals = lab::JOURNALS.map(|name| dir.join(name));
    let left: Vec<&PathBuf> = journals.iter().filter(|path| path.exists()).collect();
    if left.is_empty() {
        writeln!(
            terminal::out(),
            "nothing to put back: {} has no journal of changes",
            dir.display()
        )?;
        return Ok(());
    }
    world::real_world::run(0, async |env| {
        for path in left {
            let journal = Journal::open(path)?;
            let hosts = journal.head().hosts.clone();
            let client = client(&env, &hosts, &args.connect, PUT_BACK_PATIENCE)?;
            let left = clusters::restore(&client, journal).await.map_err(|error| usage(&error))?;
            tell_left(&left);
            let but = if left.is_empty() { "" } else { " but for what somebody else has changed" };
            writeln!(terminal::out(), "{} is as it was{but}", hosts.join(","))?;
        }
        Ok(())
    })
}
