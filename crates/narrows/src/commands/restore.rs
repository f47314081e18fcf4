//! `narrows restore`

use std::path::{Path, PathBuf};

use clusters::live::{Address, LiveClient};
use clusters::{
    Credentials, Error, Journal, Unsettled, check_nobody_steers, lease_wait_sentence,
    restore_command,
};
use futures_util::future::join_all;
use record::RunDir;
use record::units::show_seconds;
use world::Env;

use crate::exit::{Usage, refuse};
use crate::interrupt::until_told;
use crate::live::{ClusterFolder, ConnectArgs, broken_off, client, tell_left, tell_wait, usage};
use crate::runs;
use crate::terminal::{self, say};

// The removal of an index takes its time: by default an answer is waited for as long as at the end of a run.
#[derive(clap::Args)]
#[command(mut_arg("timeout", |timeout| timeout.default_value("60s")))]
#[command(mut_arg("any_version", |unused| unused.hide(true)))]
pub(crate) struct Args {
    /// The run that was killed: its id, its directory, or "last".
    #[arg(default_value = "last")]
    run: String,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    /// Hosts of the cluster, repeated or joined by commas. Credentials are sent to no host that only the journal of the
    /// run names.
    #[arg(long, value_name = "URL")]
    on: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.connect.refuse_any_version()?;
    if args.run == "last" && runs::list(&args.runs)?.is_empty() {
        refuse!(
            "there are no runs in {}, so nothing there is to be put back; write narrows restore DIR, the directory of \
             the run that was killed",
            args.runs.display()
        );
    }
    let dir = runs::find(&args.runs, &args.run)?;
    let journals = lab::JOURNALS.map(|name| dir.join(name));
    let left: Vec<&PathBuf> = journals.iter().filter(|path| path.exists()).collect();
    if left.is_empty() {
        let but = left_elsewhere(&args.runs, &dir)?;
        let is_elsewhere = !but.is_empty();
        let dir = dir.display();
        let nothing = format!(
            "nothing to put back: {dir} has no journal of changes, which goes once all is put back or kept as asked{but}"
        );
        // Whoever names no run means the one that was killed, and nothing is put back of that.
        if args.run == "last" && is_elsewhere {
            anyhow::bail!(nothing);
        }
        return Ok(writeln!(terminal::out(), "{nothing}")?);
    }
    world::real_world::run(0, async |env| {
        let (mut restored, mut failed) = (Vec::new(), Vec::new());
        // A cluster that cannot be put back does not keep the other from it, nor does one that is waited for.
        for path in left {
            match put_back(&env, path, args).await {
                Ok(done) => restored.push(done),
                Err(error) => failed.push(error),
            }
        }
        let settled = join_all(restored.into_iter().map(Restored::settle)).await;
        failed.extend(settled.into_iter().filter_map(Result::err));
        let Some(last) = failed.pop() else { return Ok(()) };
        for error in failed {
            say!("narrows: {error:#}");
        }
        Err(last)
    })
}

/// Of which other runs a journal is left, as the end of a sentence; nothing where there is none. Which of them still
/// run is not known, so that none is taken unasked.
fn left_elsewhere(runs: &Path, dir: &Path) -> anyhow::Result<String> {
    let has_one = |id: &String| {
        let other = runs.join(id);
        other != dir && lab::JOURNALS.iter().any(|name| other.join(name).exists())
    };
    let found: Vec<String> = runs::list(runs)?.into_iter().filter(has_one).collect();
    Ok(found.last().map_or_else(String::new, |newest| {
        format!(
            "; there is one of {}: where that was killed and does not run, write `narrows restore {}`",
            found.join(", "),
            runs.join(newest).display()
        )
    }))
}

/// A cluster whose settings were put back, and what to type should it not be waited for.
struct Restored {
    client: LiveClient,
    hosts: Vec<String>,
    again: String,
    journal_path: PathBuf,
    /// Where `watch --web` reads of the run, if that steered.
    folder: Option<ClusterFolder>,
    unsettled: Unsettled,
}

/// Puts back the settings in one journal.
async fn put_back(env: &Env, path: &Path, args: &Args) -> anyhow::Result<Restored> {
    let journal = match Journal::open(path) {
        // Whoever names no run means the one that was killed, and the last one may live.
        Err(error) if args.run == "last" => {
            let but = left_elsewhere(&args.runs, path.parent().unwrap_or(path))?;
            anyhow::bail!("{error}{but}");
        }
        opened => opened?,
    };
    let hosts = hosts(&journal, path, args)?;
    let timeout = args.connect.timeout();
    let client = client(env, &hosts, &args.connect, timeout)?;
    say!(
        "narrows: {} is put back; each answer is waited for, {} at most",
        hosts.join(","),
        show_seconds(timeout.as_secs_f64())
    );
    let dir = path.parent().unwrap_or(path);
    let again = restore_command(dir, client.options());
    let journal_path = path.to_owned();
    let steered = RunDir::open(dir).is_ok_and(|run| run.manifest.plan == "steer");
    let folder = dir.parent().filter(|_| steered);
    let folder = folder.and_then(|runs| ClusterFolder::of(runs, &journal.head().cluster_uuid));
    let tell = |other: &str| say!("narrows: {}", lease_wait_sentence(other));
    let restored = async {
        check_nobody_steers(&client, &journal, tell).await?;
        clusters::restore(&client, journal).await
    };
    let unsettled = unless_told(&again, &journal_path, restored).await?;
    Ok(Restored { client, hosts, again, journal_path, folder, unsettled })
}

impl Restored {
    /// Removes indices, looks for changes that come late, and removes the journal.
    async fn settle(self) -> anyhow::Result<()> {
        let Restored { client, hosts, again, journal_path, folder, unsettled } = self;
        tell_wait(unsettled.may_come_for(&client), &again);
        let sentences = unsettled.again().to_vec();
        let left = unless_told(&again, &journal_path, unsettled.settle(&client)).await?;
        tell_left(&left);
        let ended = "`narrows restore` has put back what it had set";
        if let Some(folder) = folder
            && let Err(error) = folder.end_untold(&lab::now(), ended)
        {
            say!("narrows: watch --web will not show that this was put back: {error:#}");
        }
        let mut out = terminal::out();
        for sentence in sentences {
            writeln!(out, "{sentence}")?;
        }
        let but = if left.is_empty() { "" } else { " but for what somebody else has changed" };
        Ok(writeln!(out, "{} is as it was{but}", hosts.join(","))?)
    }
}

/// Waits for what is done, unless somebody says stop; then `again` does it later.
async fn unless_told<T>(
    again: &str,
    journal_path: &Path,
    work: impl Future<Output = Result<T, Error>>,
) -> anyhow::Result<T> {
    let mut done = None;
    let ended = until_told(async {
        done = Some(work.await.map_err(|error| not_put_back(error, again, journal_path))?);
        Ok(())
    });
    ended.await?;
    done.ok_or_else(|| broken_off(again))
}

/// What is said where a cluster could not be put back. A journal stays, also that of a cluster that is no more.
fn not_put_back(error: Error, again: &str, journal_path: &Path) -> anyhow::Error {
    match error {
        Error::Connection { .. }
        | Error::Timeout { .. }
        | Error::NoHost { .. }
        | Error::OtherCluster { .. } => Usage(format!(
            "{error}; {} stays: once the cluster that it is of answers, say `{again}`; where that is gone for good, \
             remove the file",
            journal_path.display()
        ))
        .into(),
        other => usage(other),
    }
}

/// The hosts of a journal that are asked. The directory of a run may come from somebody else, and whoever wrote its
/// journal would be handed the credentials: where there are any, hosts of the command line alone are asked.
fn hosts(journal: &Journal, path: &Path, args: &Args) -> anyhow::Result<Vec<String>> {
    let parsed =
        |texts: &[String]| Address::parse_all(texts.iter().map(String::as_str)).map_err(usage);
    let journaled = parsed(&journal.head().hosts)?;
    let is_anonymous = args.connect.credentials().map_err(usage)? == Credentials::None;
    let asked: Vec<String> = match args.on.is_empty() {
        true if is_anonymous => journaled.iter().map(ToString::to_string).collect(),
        true => Vec::new(),
        false => {
            let named = parsed(&args.on)?;
            let both = journaled.iter().filter(|host| named.contains(host));
            both.map(ToString::to_string).collect()
        }
    };
    if asked.is_empty() {
        // The line to type holds none of these hosts: they may be written so that a shell obeys them.
        let journaled = journaled.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        refuse!(
            "{} is of a cluster at {journaled}, and --on names none of these hosts: a run that came from somebody else \
             may name any, and credentials go to those alone that you name; nothing was sent; if it is your cluster, \
             say --on URL with one of its hosts as well",
            path.display()
        );
    }
    Ok(asked)
}
