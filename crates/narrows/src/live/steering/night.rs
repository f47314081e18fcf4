//! A night of steering: connecting, the lease, the journal, and the end, whatever it is.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clusters::{BorrowedSettings, ClusterIdentity, lease_wait_sentence, restore_command};
use insight::diagnosis::Series;
use insight::words;
use policy::steering::{Bounds, Marks, Steering};
use record::units::show_seconds;
use serde_json::Value;
use world::Env;

use super::account::{Account, Entry};
use super::changes::Changes;
use super::guard::GuardQuery;
use super::hand::{Ending, Hand};
use crate::exit;
use crate::interrupt::{Ended, told_to_stop, until_told};
use crate::live::{
    ClusterFolder, ConnectArgs, Looking, Recording, at_the_end, connect, patiently, second_client,
    settle, title, usage,
};
use crate::terminal::say;

/// What steering is asked for.
pub(crate) struct Steer<'a> {
    pub(crate) urls: &'a [String],
    pub(crate) connect: &'a ConnectArgs,
    pub(crate) bounds: Bounds,
    pub(crate) marks: Marks,
    /// A query that says how users are, as a path.
    pub(crate) guard: Option<&'a str>,
    /// The body of that query; null for none.
    pub(crate) guard_body: Value,
    pub(crate) interval: Duration,
    pub(crate) span: Option<Duration>,
    /// Where the record and the journal are kept; none where nothing is to be changed.
    pub(crate) runs: Option<&'a Path>,
    /// Whether what was changed stays at the end.
    pub(crate) keep: bool,
}

/// Steers, or tells what it would do, until somebody says stop. `write` is handed each line.
pub(crate) async fn steer(
    env: &Env,
    asked: &Steer<'_>,
    write: &mut dyn FnMut(&Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let sampler = connect(env, asked.urls, asked.connect).await?;
    let what = if asked.runs.is_some() { "steering" } else { "dry run" };
    let mut account = Account::new(write);
    account.tell(Entry::said(what, title(sampler.identity())))?;
    let guard = match asked.guard {
        Some(query) => {
            let client = second_client(env, asked.urls, asked.connect)?;
            Some(GuardQuery::start(env, client, query, asked.guard_body.clone()).await?)
        }
        None => None,
    };
    let looking = Looking::new(sampler, asked.interval);
    let client = second_client(env, asked.urls, asked.connect)?;
    let steering = Steering::new(env.now(), asked.bounds.clone(), asked.marks.clone());
    let mut hand = Hand::new(looking, client, steering, guard);
    match asked.runs {
        Some(runs) => apply(env, asked, &mut hand, runs, write).await,
        None => {
            let (began, mut stopped) = (env.now(), None);
            let ends = asked.span.map(|span| began + span);
            let work = async {
                let ending = hand.steer(None, ends, &mut account, &mut |_, _| Ok(())).await?;
                if let Ending::Stopped(why) = ending {
                    stopped = Some(why);
                }
                Ok(())
            };
            let ended = until_told(work).await?;
            let why = match (ended, stopped) {
                (Ended::Interrupted, _) => "told to stop".to_owned(),
                (Ended::Complete, Some(why)) => why,
                (Ended::Complete, None) => "the time is over".to_owned(),
            };
            let took = show_seconds((env.now() - began).as_secs_f64().round());
            let text = format!("{why}, after {took}; a dry run: nothing was changed");
            account.tell(Entry::said("end", text))
        }
    }
}

/// Steers with a record and a journal in it. Whatever the end, settings are put back, or left where that is wanted.
async fn apply(
    env: &Env,
    asked: &Steer<'_>,
    hand: &mut Hand,
    runs: &Path,
    write: &mut dyn FnMut(&Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let client = second_client(env, asked.urls, asked.connect)?;
    let identity = ClusterIdentity::ask_before_changes(&client, true).await;
    let uuid = identity.map_err(usage)?.uuid;
    let hosts: Vec<String> = client.hosts().iter().map(ToString::to_string).collect();
    let first = hand.first_look().await?;
    let recording = Recording::create(runs, "steer", &hosts.join(","), &first)?;
    let (dir, holder) = (recording.dir(), recording.holder());
    let journal = lab::journal(&dir.join(lab::JOURNALS[0]), &uuid, hosts)?;
    let restore = restore_command(&dir, client.options());
    let mut changes = Changes::new(BorrowedSettings::new(client, journal));
    let mut folder = ClusterFolder::of(runs, &uuid);
    let (began, recording) = (hand.began(), RefCell::new(recording));
    let now_ms = || (env.now() - began).as_secs_f64() * 1e3;
    // Whoever waits for another one, or may not steer, tells nothing on the page of what that one does.
    let has_begun = Cell::new(false);
    let mut write_and_note = |entry: &Entry| {
        write(entry)?;
        // The cluster is steered all the same where its page does not show that.
        let kept = folder.as_ref().filter(|_| has_begun.get());
        if let Some(Err(error)) = kept.map(|kept| kept.step(&entry.json(&lab::now()))) {
            say!("narrows: watch --web will not show what steer does: {error:#}");
            folder = None;
        }
        let (t_ms, mut recording) = (now_ms(), recording.borrow_mut());
        if let Some((name, value)) = entry.changed() {
            recording.changed(t_ms, name, value)?;
        }
        recording.note(t_ms, &entry.text())
    };
    let mut account = Account::new(&mut write_and_note);
    let (mut ending, mut steers_since) = (None, None);
    let ended = until_told(async {
        lease(env, &mut changes, &holder, asked.span, &mut account).await?;
        has_begun.set(true);
        account.tell(Entry::said("begin", allowed(asked)))?;
        let since = *steers_since.insert(env.now());
        let ends = asked.span.map(|span| since + span);
        let mut seen = |series: &Series<'_>, t_ms: f64| {
            let look = series.last().context("a look was made")?;
            recording.borrow_mut().look_in_time(t_ms, look, series)
        };
        ending = Some(hand.steer(Some(&mut changes), ends, &mut account, &mut seen).await?);
        Ok(())
    });
    let ended = ended.await;
    // Neither the wait for the lease nor that for late changes is steering.
    let steered = steers_since.map(|since| env.now() - since);
    let in_force = hand.steering().in_force();
    let made: Vec<String> =
        in_force.iter().map(|(name, (was, is))| format!("{name} {was} -> {is}")).collect();
    // Where it failed nobody knows which of its changes were made.
    let keeps = asked.keep && ended.is_ok();
    let not_kept = hand.not_kept();
    let on_trial = hand.steering().on_trial().map_or_else(String::new, |back| {
        format!(", with {} {} -> {} on trial", back.setting, back.to, back.from)
    });
    let put_back = async || match keeps {
        true => changes.keep(not_kept.as_ref()).await,
        false => changes.put_back().await,
    };
    let done = patiently(env, &restore, put_back).await?;
    let put_back_ms = now_ms();
    let left = settle(env, &restore, changes.into_settings(), done, told_to_stop()).await?;
    let helped = if made.is_empty() { "nothing".to_owned() } else { made.join(", ") };
    let why = match (&ended, &ending) {
        (Ok(Ended::Interrupted), _) => "told to stop",
        (_, Some(Ending::Stopped(why))) => why,
        (Ok(_), _) => "the time is over",
        (Err(_), _) => "it failed",
    };
    let put_back = at_the_end(&left, why, keeps && !made.is_empty());
    let text = format!("{why}, {}{on_trial}; what helped: {helped}; {put_back}", after(steered));
    let series = hand.series();
    if let Some((t_ms, look)) = series.looks().last().filter(|_| steered.is_some()) {
        recording.borrow_mut().look(*t_ms, look, &series)?;
    }
    if !keeps {
        recording.borrow_mut().put_back(put_back_ms)?;
    }
    account.tell(Entry::said("end", text))?;
    let failure = match (&ended, &ending) {
        (Err(error), _) => Some(exit::with_causes(error)),
        (_, Some(Ending::Stopped(why))) => Some(why.clone()),
        _ => None,
    };
    let recording = recording.into_inner();
    match failure {
        Some(why) => recording.fail(why, now_ms())?,
        None => recording.end(now_ms())?,
    };
    ended?;
    match ending {
        // Why it stopped is in the last line.
        Some(Ending::Stopped(_)) => {
            Err(anyhow!("stopped before it was told to: its last line says why"))
        }
        _ => Ok(()),
    }
}

/// What it may do, in words.
fn allowed(asked: &Steer<'_>) -> String {
    let mut bounds = asked.bounds.in_words();
    bounds.push(match bounds.is_empty() {
        true => "settings up to the usual bounds".to_owned(),
        false => "others up to the usual bounds".to_owned(),
    });
    let users = asked.guard.map_or_else(String::new, |guard| match asked.marks.p99_in_words() {
        Some(p99) => format!("the slowest in a hundred of {guard} take over {p99}, or "),
        None => format!("{guard} takes twice as long as before, or "),
    });
    let cores = words::percent(asked.marks.cpu);
    let ends = asked
        .span
        .map_or_else(String::new, |span| format!("for {}, ", show_seconds(span.as_secs_f64())));
    let then = if asked.keep { "what helped stays" } else { "all is put back at the end" };
    format!(
        "{}; it gives way where {users}cores are busier than {cores}; {ends}{then}",
        bounds.join(", ")
    )
}

/// How long it steered, if it came to that.
fn after(steered: Option<Duration>) -> String {
    steered.map_or_else(
        || "before it steered".to_owned(),
        |steered| format!("after {}", show_seconds(steered.as_secs_f64().round())),
    )
}

/// Takes the lease, and says what came of it.
async fn lease(
    env: &Env,
    changes: &mut Changes,
    holder: &str,
    span: Option<Duration>,
    account: &mut Account<'_>,
) -> anyhow::Result<()> {
    let mut waits = None;
    let taken = {
        let mut said = |text: String| account.tell(Entry::said("wait", text));
        let tell = |other: &str| waits = Some(said(waiting(other, span)));
        changes.take_lease(env, holder, tell).await
    };
    waits.unwrap_or(Ok(()))?;
    match taken.map_err(usage)? {
        Some(sentence) => account.tell(Entry::said("lease", sentence)),
        None => Ok(()),
    }
}

fn waiting(other: &str, span: Option<Duration>) -> String {
    let counts = if span.is_some() { "; --for counts from then" } else { "" };
    format!("{}{counts}", lease_wait_sentence(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_begins_after_the_wait_for_another_one_is_said_to() {
        assert!(
            waiting("they", Some(Duration::from_secs(3))).ends_with("; --for counts from then")
        );
        assert!(!waiting("they", None).contains("--for"));
    }

    #[test]
    fn who_never_had_the_lease_did_not_steer() {
        assert_eq!(after(None), "before it steered");
        assert_eq!(after(Some(Duration::from_millis(30_400))), "after 30.0 s");
    }
}
