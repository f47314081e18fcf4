//! `explain --probe`: settings that are changed for seconds, and put back whatever the end.

use std::path::Path;

use anyhow::anyhow;
use clusters::live::{Depth, LiveClient};
use clusters::{
    BorrowedSettings, ClusterIdentity, Error, Kept, Lease, Leased, lease_wait_sentence,
    restore_command,
};
use insight::diagnosis::Diagnosis;
use insight::diagnosis::probe::{self, Probe, Prober, Step};
use record::Status;
use world::Env;

use super::{
    ConnectArgs, Looking, Recording, at_the_end, patiently, second_client, settle, tell_left, usage,
};
use crate::exit;
use crate::interrupt::{Ended, told_to_stop, until_told};
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
    let probes = planned(looking, diagnosis);
    if probes.is_empty() {
        return Ok(());
    }
    let client = changer(env, probing.urls, probing.connect).await?;
    let mut recording = record(looking, probing)?;
    let dir = recording.dir();
    let restore = restore_command(&dir, client.client.options());
    let mut borrowed = client.borrow(&dir.join(lab::JOURNALS[0]))?;
    let mut prober = Prober::new(probes, 0.0);
    let holder = recording.holder();
    let work = async {
        let both = (&*diagnosis, &mut prober);
        let lease = lease(env, looking, both, &mut borrowed, &holder).await?;
        work(looking, &mut prober, &mut borrowed, lease, probing.aloud).await
    };
    let ended = until_told(work).await;
    let nothing = Kept::new();
    let done = patiently(env, &restore, async || borrowed.put_back(&nothing).await).await?;
    let left = settle(env, &restore, borrowed, done, told_to_stop()).await?;
    // Where it was interrupted, the error says so.
    if !matches!(ended, Ok(Ended::Interrupted)) {
        tell_left(&left);
    }
    let results = prober.into_results();
    for result in &results {
        recording.note(looking.series().span_ms(), &result.sentence())?;
    }
    let t_ms = looking.series().span_ms();
    match &ended {
        Ok(Ended::Complete) => recording.end(t_ms)?,
        Ok(Ended::Interrupted) => recording.end_as(Status::Interrupted, t_ms)?,
        Err(error) => recording.fail(exit::with_causes(error), t_ms)?,
    };
    if matches!(ended?, Ended::Interrupted) {
        return Err(anyhow!("interrupted; {}", at_the_end(&left, "", false)));
    }
    probe::apply(diagnosis, results, &looking.series());
    Ok(())
}

/// The same without a record, in a world that nobody interrupts: what is changed is journaled at `journal` meanwhile.
pub(crate) async fn probe_unrecorded(
    env: &Env,
    looking: &mut Looking,
    diagnosis: &mut Diagnosis,
    urls: &[String],
    connect: &ConnectArgs,
    journal: &Path,
) -> anyhow::Result<()> {
    let probes = probe::plan(&looking.series(), diagnosis);
    if probes.is_empty() {
        return Ok(());
    }
    let mut borrowed = changer(env, urls, connect).await?.borrow(journal)?;
    let mut prober = Prober::new(probes, 0.0);
    let worked = work(looking, &mut prober, &mut borrowed, None, false).await;
    borrowed.end().await?;
    worked?;
    probe::apply(diagnosis, prober.into_results(), &looking.series());
    Ok(())
}

/// The probes to make. Says so where there are none.
fn planned(looking: &Looking, diagnosis: &Diagnosis) -> Vec<Probe> {
    let probes = probe::plan(&looking.series(), diagnosis);
    if probes.is_empty() {
        say!(
            "narrows: nothing to probe: no recovery moves bytes that a setting could slow or widen"
        );
    }
    probes
}

/// Who may change settings of a cluster, once there is a journal.
struct Changer {
    client: LiveClient,
    uuid: String,
}

async fn changer(env: &Env, urls: &[String], connect: &ConnectArgs) -> anyhow::Result<Changer> {
    let client = second_client(env, urls, connect)?;
    // Looking has checked the version.
    let identity = ClusterIdentity::ask_before_changes(&client, true).await;
    let uuid = identity.map_err(usage)?.uuid;
    Ok(Changer { client, uuid })
}

impl Changer {
    fn borrow(self, journal: &Path) -> anyhow::Result<BorrowedSettings> {
        let hosts = self.client.hosts().iter().map(ToString::to_string).collect();
        let journal = lab::journal(journal, &self.uuid, hosts)?;
        Ok(BorrowedSettings::new(self.client, journal))
    }
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

/// Takes the lease of whoever steers: a probe beneath a hand would be somebody else's change to it, at which it stops,
/// and would put back afterwards what the hand has raised. Where another one has it and lives, nothing is probed. None
/// where the cluster keeps none.
async fn lease(
    env: &Env,
    looking: &mut Looking,
    (diagnosis, prober): (&Diagnosis, &mut Prober),
    borrowed: &mut BorrowedSettings,
    holder: &str,
) -> anyhow::Result<Option<Lease>> {
    let mut has_waited = false;
    let tell = |other: &str| {
        has_waited = true;
        say!("narrows: {}", lease_wait_sentence(other));
    };
    let lease = match Lease::take(env, borrowed, holder, tell).await {
        Ok(Leased::Ours(lease, _)) => Some(lease),
        Ok(Leased::NotKept(_)) => None,
        Err(error) if is_told(&error) => {
            prober.give_up(&error.to_string());
            return Ok(None);
        }
        Err(error) => return Err(usage(error)),
    };
    if has_waited {
        // What was seen before is too old to be compared with, and settings were the other one's, who has put them
        // back.
        let since_ms = looking.look(Depth::Deep).await?;
        *prober = Prober::new(planned(looking, diagnosis), since_ms);
    }
    Ok(lease)
}

/// Whether it is said of the probes that they were given up: what looking showed is told all the same.
fn is_told(error: &Error) -> bool {
    matches!(
        error,
        Error::ChangedMeanwhile { .. }
            | Error::Leased { .. }
            | Error::Refused { .. }
            | Error::Unauthorized { .. }
            | Error::Forbidden { .. }
    )
}

async fn work(
    looking: &mut Looking,
    prober: &mut Prober,
    borrowed: &mut BorrowedSettings,
    lease: Option<Lease>,
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
        // Where it fails otherwise, that is tried again before the next change at the latest.
        if let Some(lease) = &lease
            && let Err(error @ Error::Leased { .. }) = lease.renew_in_time(borrowed).await
        {
            prober.give_up(&error.to_string());
        }
        match prober.next(now_ms, &looking.series()) {
            Step::Look => {}
            Step::Done => return Ok(()),
            Step::Set(probe) => {
                let least_s = probe.changed_ms() / 1e3;
                tell(format!("{}: {} for {least_s:.0} s at least", probe.setting, probe.to));
                let set = match &lease {
                    Some(lease) => {
                        lease.set(borrowed, &probe.setting, &probe.found, &probe.to).await
                    }
                    None => borrowed.set(&probe.setting, &probe.found, &probe.to).await,
                };
                match set {
                    Ok(()) => {}
                    Err(error) if is_told(&error) => prober.give_up(&error.to_string()),
                    Err(error) => return Err(usage(error)),
                }
            }
            Step::PutBack => {
                let done = borrowed.put_back(&Kept::new()).await;
                // A value that is refused now is refused at the end again, which tells it as well.
                let left = done.and_then(|done| done.refused.map_or(Ok(done.left), Err));
                let left = left.map_err(usage)?;
                match left.is_empty() {
                    true => tell("put back".to_owned()),
                    false => prober.give_up(&left.join("; ")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    use insight::diagnosis::diagnose;
    use insight::diagnosis::probe::Reading;
    use rest::RestRequest;
    use serde_json::{Value, json};
    use world::Task;

    use super::*;
    use crate::live::fake_node::{borrowed, looking, serve_refusing};

    /// What a cluster answers in which a recovery goes on at 9 MB/s for so long.
    fn recovers(asked: &RestRequest, ms: u64) -> Value {
        let size = json!({ "total_in_bytes": 50_000_000_000_u64, "recovered_in_bytes": ms * 9000 });
        let recovery = json!({
            "id": 0, "type": "PEER", "stage": "INDEX", "start_time_in_millis": 1,
            "total_time_in_millis": ms, "source": { "name": "a" }, "target": { "name": "b" },
            "index": { "size": size },
        });
        match asked.path.split('?').next() {
            Some("/_recovery") => json!({ "logs": { "shards": [recovery] } }),
            Some("/_cluster/settings") => json!({ "persistent": {}, "transient": {} }),
            _ => json!({
                "cluster_name": "c", "cluster_uuid": "uuid", "status": "yellow", "number_of_nodes": 0,
                "initializing_shards": 1, "relocating_shards": 0, "unassigned_shards": 0,
                "version": { "number": "2.19.1", "distribution": "opensearch" },
            }),
        }
    }

    /// A node that says how long it recovers, and ten seconds of looks at it. `answer` is told that time.
    async fn looked(
        env: &Env,
        answer: impl Fn(&RestRequest, u64) -> (u16, Value) + 'static,
    ) -> (String, Task<()>, Looking) {
        let (clock, began) = (env.clone(), env.now());
        let answer = move |asked: &RestRequest| {
            let (status, body) = answer(asked, (clock.now() - began).as_millis() as u64 + 1000);
            Some((status, body.to_string()))
        };
        let (url, node) = serve_refusing(env, answer).await;
        let mut looking = looking(env, &url).await;
        looking.look_for(Duration::from_secs(10)).await.unwrap();
        (url, node, looking)
    }

    /// Asks for the lease of a cluster in which [`recovers`], with settings by the request and the time: what was to be
    /// probed before, the lease, and what is afterwards.
    async fn leased(
        env: &Env,
        set: impl Fn(&RestRequest, u64) -> Value + 'static,
    ) -> (Prober, Option<Lease>, Prober) {
        let answer = move |asked: &RestRequest, ms: u64| {
            let set = set(asked, ms);
            let body = match asked.path.starts_with("/_cluster/settings") {
                true => json!({ "persistent": set, "transient": {} }),
                false => recovers(asked, ms),
            };
            (200, body)
        };
        let (url, _node, mut looking) = looked(env, answer).await;
        let found = diagnose(&looking.series());
        let (mut borrowed, _dir) = borrowed(env, &url);
        let before = Prober::new(probe::plan(&looking.series(), &found), 0.0);
        let mut after = before.clone();
        let both = (&found, &mut after);
        let taken = lease(env, &mut looking, both, &mut borrowed, "we").await.unwrap();
        (before, taken, after)
    }

    /// The trap: a hand stops at what it takes for somebody else's change, and the probe puts back what it had raised.
    #[test]
    fn beneath_a_hand_that_lives_nothing_is_probed() {
        world::virtual_world::run(1, async |env| {
            let changes = Rc::new(Cell::new(0));
            let sent = changes.clone();
            let set = move |asked: &RestRequest, ms: u64| {
                sent.set(sent.get() + u32::from(asked.method == "PUT"));
                json!({ "cluster.metadata.narrows_steerer": format!("they {ms}") })
            };
            let (_, taken, prober) = leased(&env, set).await;
            assert!(taken.is_none() && changes.get() == 0);
            let results = prober.into_results();
            let given_up = |reading: &Reading| matches!(reading, Reading::GivenUp(why) if why.contains("they changes settings"));
            assert!(!results.is_empty(), "there was something to probe");
            assert!(results.iter().all(|one| given_up(&one.reading)), "{results:#?}");
        });
    }

    /// The trap: a setting that the other one had changed is not what is found once that one has put it back.
    #[test]
    fn after_another_one_it_goes_by_the_settings_that_are_found_then() {
        const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
        world::virtual_world::run(1, async |env| {
            let set = |_: &RestRequest, ms: u64| match ms < 20_000 {
                true => json!({ "cluster.metadata.narrows_steerer": "they 1", LIMIT: "20mb" }),
                false => json!({ LIMIT: "30mb" }),
            };
            let (before, taken, after) = leased(&env, set).await;
            let found = |prober: &Prober| Some(prober.under_way()?.0.found.value.clone());
            assert_eq!(found(&before).as_deref(), Some("20mb"));
            assert!(taken.is_some());
            assert_eq!(found(&after).as_deref(), Some("30mb"));
        });
    }

    #[test]
    fn where_a_change_is_refused_what_looking_showed_stays() {
        for (status, word) in [(400, "must be <= 5"), (403, "forbidden")] {
            world::virtual_world::run(1, async move |env| {
                let answer = move |asked: &RestRequest, ms: u64| {
                    let refused =
                        json!({ "error": { "type": "refused", "reason": "must be <= 5" } });
                    if asked.method == "PUT" {
                        (status, refused)
                    } else {
                        (200, recovers(asked, ms))
                    }
                };
                let (url, _node, mut looking) = looked(&env, answer).await;
                let (urls, args) = ([url], ConnectArgs::default());
                let mut found = diagnose(&looking.series());
                let before = found.findings.clone();
                let dir = tempfile::tempdir().unwrap();
                let journal = dir.path().join("changes.jsonl");
                probe_unrecorded(&env, &mut looking, &mut found, &urls, &args, &journal)
                    .await
                    .unwrap();
                assert!(!before.is_empty() && found.findings == before, "{found:#?}");
                let given_up = |reading: &Reading| matches!(reading, Reading::GivenUp(why) if why.contains(word));
                assert!(!found.probes.is_empty(), "{found:#?}");
                assert!(
                    found.probes.iter().all(|one| given_up(&one.reading)),
                    "{:#?}",
                    found.probes
                );
                assert!(!journal.exists(), "nothing is left to put back");
            });
        }
    }
}
