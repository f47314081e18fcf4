//! `explain --probe`: settings that are changed for seconds, and put back whatever the end.

use std::path::Path;

use anyhow::{Context, anyhow};
use clusters::live::Depth;
use clusters::{BorrowedSettings, ClusterIdentity, Error};
use insight::diagnosis::Diagnosis;
use insight::diagnosis::probe::{self, Prober, Step};
use world::Env;

use super::{ConnectArgs, Looking, Recording, second_client, tell_left, usage};
use crate::interrupt::{Ended, until_told};
use crate::terminal::say;

/// What probing needs besides the looks so far.
pub(crate) struct Probing<'a> {
    /// Where the record and the journal of changes are kept.
    pub(crate) runs: &'a Path,
    pub(crate) urls: &'a [String],
    pub(crate) connect: &'a ConnectArgs,
    /// Whether to tell on standard error what is done.
    pub(crate) aloud: bool,
}

/// Makes out by probes what looking left open, and enters it in the diagnosis. The looks go on meanwhile.
pub(crate) async fn probe(
    env: &Env,
    looking: &mut Looking,
    diagnosis: &mut Diagnosis,
    probing: &Probing<'_>,
) -> anyhow::Result<()> {
    let probes = probe::plan(&looking.series(), diagnosis);
    if probes.is_empty() {
        say!("narrows: nothing to probe: no recovery goes on that a setting could slow or widen");
        return Ok(());
    }
    let client = second_client(env, probing.urls, probing.connect)?;
    // Looking has checked the version.
    let identity =
        ClusterIdentity::ask_before_changes(&client, true).await.map_err(|error| usage(&error))?;
    let mut recording = record(looking, probing)?;
    let dir = recording.dir();
    let hosts = client.hosts().iter().map(ToString::to_string).collect();
    let journal = lab::journal(&dir.join(lab::JOURNALS[0]), &identity.uuid, hosts)?;
    let mut borrowed = BorrowedSettings::new(client, journal);
    let mut prober = Prober::new(probes, 0.0);
    let work = work(looking, &mut prober, &mut borrowed, probing.aloud);
    let ended = until_told(work).await;
    let left = borrowed.end().await.with_context(|| {
        let dir = dir.display();
        format!(
            "settings could not be put back; once the cluster answers, say `narrows restore {dir}`"
        )
    });
    tell_left(&left?);
    let results = prober.into_results();
    for result in &results {
        recording.note(looking.series().span_ms(), &result.sentence())?;
    }
    recording.end(looking.series().span_ms())?;
    if matches!(ended?, Ended::Interrupted) {
        return Err(anyhow!("interrupted; every setting is as it was"));
    }
    probe::apply(diagnosis, results, &looking.series());
    Ok(())
}

/// A record of what was seen before anything was changed.
fn record(looking: &Looking, probing: &Probing<'_>) -> anyhow::Result<Recording> {
    let series = looking.series();
    let last = series.last().expect("a diagnosis has looks");
    let mut recording = Recording::create(probing.runs, "probe", &probing.urls.join(","), last)?;
    for (index, (t_ms, look)) in series.looks().iter().enumerate() {
        recording.look(*t_ms, look, &series.head(index + 1))?;
    }
    Ok(recording)
}

async fn work(
    looking: &mut Looking,
    prober: &mut Prober,
    borrowed: &mut BorrowedSettings,
    aloud: bool,
) -> anyhow::Result<()> {
    let tell = |text: String| {
        if aloud {
            say!("{text}");
        }
    };
    loop {
        looking.pause().await;
        let now_ms = looking.look(Depth::Full).await?;
        match prober.next(now_ms, &looking.series()) {
            Step::Look => {}
            Step::Done => return Ok(()),
            Step::Set(probe) => {
                tell(format!("{}: {} for some seconds", probe.setting, probe.to));
                match borrowed.set(&probe.setting, &probe.found, &probe.to).await {
                    Ok(()) => {}
                    Err(error @ Error::ChangedMeanwhile { .. }) => {
                        prober.give_up(&error.to_string());
                    }
                    Err(error) => return Err(usage(&error)),
                }
            }
            Step::PutBack => {
                let left = borrowed.put_back().await.map_err(|error| usage(&error))?;
                match left.is_empty() {
                    true => tell("put back".to_owned()),
                    false => prober.give_up(&left.join("; ")),
                }
            }
        }
    }
}
