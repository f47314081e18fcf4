//! `narrows restore`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clusters::Journal;

use crate::exit::Usage;
use crate::live::{ConnectArgs, client, usage};
use crate::runs;

/// The journal of changes in a run's directory.
pub(crate) const JOURNAL: &str = "changes.jsonl";
/// That of the other cluster, where a run changed two.
pub(crate) const SECOND_JOURNAL: &str = "changes-leader.jsonl";
/// How long the removal of an index may take.
const PATIENCE: Duration = Duration::from_secs(60);

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
    let journals = [JOURNAL, SECOND_JOURNAL].map(|name| dir.join(name));
    let left: Vec<&PathBuf> = journals.iter().filter(|path| path.exists()).collect();
    if left.is_empty() {
        println!("nothing to put back: {} has no journal of changes", dir.display());
        return Ok(());
    }
    world::real_world::run(0, async |env| {
        for path in left {
            let journal = Journal::open(path)?;
            let hosts = journal.head().hosts.clone();
            let client = client(&env, &hosts, &args.connect, PATIENCE)?;
            let left = clusters::restore(&client, journal).await.map_err(|error| usage(&error))?;
            tell(&left);
            println!("{} is as it was", hosts.join(","));
        }
        Ok(())
    })
}

/// Says what someone else has changed in the meantime.
pub(crate) fn tell(left: &[String]) {
    for sentence in left {
        eprintln!("narrows: {sentence}");
    }
}

/// A new journal, in a run's directory.
pub(crate) fn journal(
    path: &Path,
    cluster_uuid: &str,
    hosts: Vec<String>,
) -> anyhow::Result<Journal> {
    if cluster_uuid.is_empty() {
        let text =
            "the cluster does not say its cluster_uuid, so changes could not be put back for sure";
        return Err(Usage(text.to_owned()).into());
    }
    Ok(Journal::create(path, clusters::Head::new(cluster_uuid.to_owned(), hosts))?)
}
