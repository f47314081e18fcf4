//! A case on trial in virtual time: whether it is one at all, what `explain` makes of it, and what its advice brings.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use insight::diagnosis::score::{Guesses, Scored};
use insight::diagnosis::{Class, Diagnosis, diagnose, highest_utilisation, settings_lint};
use world::{Env, virtual_world};

use super::case::{Case, Kind, Well};
use super::conditions::{Action, Conditions};
use super::stage::Stage;
use crate::live::{ConnectArgs, Looking, connect, probe_unrecorded};

/// How long a case is looked at before anything is probed, and how often.
const LOOK_FOR: Duration = Duration::from_secs(6);
const INTERVAL: Duration = Duration::from_millis(500);
/// Time for recoveries to begin. A quick one begins while somebody looks.
const BEGIN: Duration = Duration::from_millis(1500);
const BEGINS_AFTER: Duration = Duration::from_millis(700);
/// How long a rate is measured, from the beginning of the recoveries.
const MEASURED: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(100);

/// An injection leaves this share of the rate at most; lifting the cause gives back this share at least.
const COSTS: f64 = 0.8;
/// Of two causes that which holds is worth this factor at least, and the other one by itself less than that.
const HOLDS: f64 = 1.2;
const HOLDS_NOT: f64 = 1.1;
/// Quick recoveries are over within this time.
const QUICK: Duration = Duration::from_secs(2);

/// What came of a case.
#[derive(Debug)]
pub(crate) enum Outcome {
    Admitted(Box<Scored>),
    /// It is none; why, in words.
    Refused(&'static str),
}

/// Tries a case. Probes need a directory for the journal of their changes.
pub(crate) fn trial(case: &Case, journals: Option<&Path>) -> anyhow::Result<Outcome> {
    let base = rate(case, &case.surroundings)?;
    let second = case.with_second(base);
    let beneath = if second == case.surroundings { base } else { rate(case, &second)? };
    let injected = case.injected(second, beneath);
    let now = rate(case, &injected)?;
    if let Some(why) = refused(case, &injected, base, now)? {
        return Ok(Outcome::Refused(why));
    }
    let journal = journals.map(|dir| dir.join(format!("{}.journal", case.seed)));
    let looked = in_world(case.seed, {
        let (case, conditions) = (case.clone(), injected.clone());
        async move |env| look(&env, &case, &conditions, journal.as_deref()).await
    })?;
    let gain = looked.advice.map(|(setting, to, promised)| {
        let mut advised = injected.clone();
        advised.set(&setting, to);
        anyhow::Ok((promised, rate(case, &advised)? / now))
    });
    let (promised, got) = gain.transpose()?.unzip();
    Ok(Outcome::Admitted(Box::new(Scored {
        target: "virtual".to_owned(),
        name: case.name(),
        classes: case.classes(),
        severity: case.severity as u32,
        seed: case.seed,
        verdicts: looked.passive,
        probed: looked.probed,
        sentence: looked.sentence,
        promised,
        got,
        seconds: looked.seconds,
        guesses: looked.guesses,
    })))
}

/// Why a case is none; nothing where it is one.
fn refused(
    case: &Case,
    injected: &Conditions,
    base: f64,
    now: f64,
) -> anyhow::Result<Option<&'static str>> {
    let with = |conditions: &Conditions, actions: &[Action], otherwise: f64| {
        let mut lifted = conditions.clone();
        actions.iter().for_each(|action| lifted.act(*action));
        if lifted == *conditions { Ok(otherwise) } else { rate(case, &lifted) }
    };
    let after = |actions: &[Action]| with(injected, actions, now);
    let given_back = |rate: f64| rate >= base * COSTS;
    if let Kind::Healthy(..) = case.kind {
        let bytes = (case.surroundings.shard_bytes * u64::from(case.surroundings.shards)) as f64;
        let is_over = !case.is_quick() || bytes <= now * QUICK.as_secs_f64();
        return Ok((!is_over).then_some("a quick recovery that takes longer than two seconds"));
    }
    if now > base * COSTS {
        return Ok(Some("the injection costs less than a fifth"));
    }
    match case.kind {
        Kind::Two(first, second) => {
            let (first, second) = (first.lifted_by()[0], second.lifted_by()[0]);
            if after(&[first])? < now * HOLDS {
                return Ok(Some("the first of two causes does not hold"));
            }
            if after(&[second])? > now * HOLDS_NOT {
                return Ok(Some("both causes hold at once"));
            }
            if given_back(after(&[first])?) {
                return Ok(Some("the second of two causes costs less than a fifth"));
            }
            if !given_back(after(&[first, second])?) {
                return Ok(Some("lifting both causes does not give back four fifths"));
            }
        }
        _ => {
            let own: &[Action] = case.causes().first().map_or(&[], |cause| cause.lifted_by());
            if let Some(usual) = own.first()
                && !given_back(after(&[*usual])?)
            {
                return Ok(Some("lifting the cause does not give back four fifths"));
            }
            for action in Action::ALL.iter().filter(|action| !own.contains(action)) {
                // What widens the surroundings as much lifts something of theirs, and not the cause.
                let rate = after(&[*action])?;
                if given_back(rate) && rate >= COSTS * with(&case.surroundings, &[*action], base)? {
                    return Ok(Some("lifting something else gives it back, too"));
                }
            }
        }
    }
    Ok(None)
}

/// What was seen.
struct Looked {
    passive: Vec<Class>,
    probed: Option<Vec<Class>>,
    sentence: String,
    /// The setting that the first finding advises, its value, and what is promised.
    advice: Option<(String, String, f64)>,
    seconds: Option<f64>,
    guesses: Guesses,
}

async fn look(
    env: &Env,
    case: &Case,
    conditions: &Conditions,
    journal: Option<&Path>,
) -> anyhow::Result<Looked> {
    let stage = Stage::set(env, conditions).await?;
    let (urls, args) = (stage.urls(), ConnectArgs::default());
    let is_quick = case.is_quick();
    if !is_quick {
        stage.begin().await?;
        env.sleep(BEGIN).await;
    }
    let sampler = connect(env, &urls, &args).await?;
    let mut looking = Looking::new(env, sampler, INTERVAL);
    let begins = async {
        if is_quick {
            env.sleep(BEGINS_AFTER).await;
            stage.begin().await?;
        }
        anyhow::Ok(())
    };
    let (looked, begun) = tokio::join!(looking.look_for(LOOK_FOR), begins);
    looked?;
    begun?;
    let series = looking.series();
    let passive = diagnose(&series);
    let right = case.classes();
    let is_right = |diagnosis: &Diagnosis| {
        diagnosis.findings.first().map(|f| f.class) == right.first().copied()
    };
    // From which look on the verdict is right and stays so.
    let wrong = (2..=series.looks().len()).rev().find(|n| !is_right(&diagnose(&series.head(*n))));
    let first = series.looks().get(wrong.unwrap_or(1));
    let seconds = first.map(|(t_ms, _)| t_ms / 1e3);
    let guesses =
        Guesses { lint: settings_lint(&series), utilisation: highest_utilisation(&series) };
    let mut probed = None;
    if let Some(journal) = journal
        && !passive.findings.is_empty()
    {
        let mut diagnosis = passive.clone();
        probe_unrecorded(env, &mut looking, &mut diagnosis, &urls, &args, journal).await?;
        probed = Some(classes(&diagnosis));
    }
    stage.end().await;
    Ok(Looked {
        advice: passive.findings.first().and_then(|finding| {
            let lift = finding.lift.as_ref()?;
            Some((lift.setting.clone()?, lift.to.clone()?, finding.gain.as_ref()?.factor))
        }),
        sentence: passive.headline.clone(),
        passive: classes(&passive),
        probed,
        seconds,
        guesses,
    })
}

/// Classes of the findings in their order, each once.
fn classes(diagnosis: &Diagnosis) -> Vec<Class> {
    let mut classes = Vec::new();
    for finding in &diagnosis.findings {
        if !classes.contains(&finding.class) {
            classes.push(finding.class);
        }
    }
    classes
}

/// Bytes a second of all recoveries together, from their beginning on; 0 where there are none.
fn rate(case: &Case, conditions: &Conditions) -> anyhow::Result<f64> {
    let conditions = conditions.clone();
    in_world(case.seed, async move |env| {
        let stage = Stage::set(&env, &conditions).await?;
        stage.begin().await?;
        let began = env.now();
        let moved = loop {
            env.sleep(POLL).await;
            let moved = stage.moved().await?;
            if moved.is_done || env.now() - began >= MEASURED {
                break moved;
            }
        };
        let seconds = (env.now() - began).as_secs_f64();
        stage.end().await;
        Ok(moved.bytes as f64 / seconds)
    })
}

fn in_world<T: 'static, F: Future<Output = anyhow::Result<T>> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> anyhow::Result<T> {
    virtual_world::run(seed, main).with_context(|| format!("the case of seed {seed}"))
}

impl Case {
    fn is_quick(&self) -> bool {
        matches!(self.kind, Kind::Healthy(Well::Quick, _))
    }
}
