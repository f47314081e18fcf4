//! A case on trial: whether it is one at all, what `explain` makes of it, and what its advice brings.

use std::path::Path;
use std::time::Duration;

use super::case::{Case, Kind, Well};
use super::conditions::{Action, Conditions};
use super::label::Label;
use super::place::{Measured, Place};
use super::stage::Stage;
use crate::live::{ConnectArgs, Looking, client, greet, probe_unrecorded, written};
use anyhow::anyhow;
use insight::diagnosis::score::{Guesses, Scored};
use insight::diagnosis::{
    Class, Diagnosis, RuledOut, Series, diagnose, highest_utilisation, settings_lint,
};
use serde::{Deserialize, Serialize};

/// How long a case is looked at before anything is probed, and how often.
pub(super) const LOOK_FOR: Duration = Duration::from_secs(6);
pub(super) const INTERVAL: Duration = Duration::from_millis(500);
/// Time for recoveries to begin. A quick one begins while somebody looks.
const BEGIN: Duration = Duration::from_millis(1500);
const BEGINS_AFTER: Duration = Duration::from_millis(700);
const POLL: Duration = Duration::from_millis(100);

/// An injection leaves this share of the rate at most; lifting the cause gives back this share at least.
pub(super) const COSTS: f64 = 0.8;
/// Of two causes that which holds is worth this factor at least, and the other one by itself less than that.
const HOLDS: f64 = 1.2;
const HOLDS_NOT: f64 = 1.1;
/// Quick recoveries are over within this time.
const QUICK: Duration = Duration::from_secs(2);

/// Lines of evidence that are told of what was named wrongly.
const REASONS: usize = 2;

/// A rate is looked at so often.
const STEP: Duration = Duration::from_millis(250);
/// It has settled where so many steps and as many before them carry the same, but for this share of both.
const HALF: usize = 4;
/// What has come by this step is no part of the rate of what goes on for longer.
const RAMP: usize = 1;
const ALIKE: f64 = 0.05;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Admitted(Box<Scored>),
    /// It is none; why, in words.
    Refused(String),
}

/// What trials write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writes<'a> {
    /// Where the journals of probes are; nothing is probed without.
    pub(crate) journals: Option<&'a Path>,
    /// Where what was seen of a case is kept, as `explain --record` keeps it, beside what is right.
    pub(crate) recordings: Option<&'a Path>,
}

pub(crate) async fn trial(
    place: &impl Place,
    case: &Case,
    writes: Writes<'_>,
) -> anyhow::Result<Outcome> {
    let runs = Runs::of(place, case.seed);
    // At whatever rates, the same has to be made.
    let alike = case.injected(case.with_second(1e6), 1e6);
    if let Some(why) = place.cannot_make(&alike) {
        return Ok(Outcome::Refused(why.to_owned()));
    }
    let (base, injected) = runs.injected(case).await?;
    if base <= 0.0 && case.surroundings.recovers {
        return Ok(Outcome::Refused("nothing moves before anything is injected".to_owned()));
    }
    let now = runs.rate(&injected).await?;
    if let Some(why) = runs.refused(case, &injected, base, now).await? {
        return Ok(Outcome::Refused(why.to_owned()));
    }
    let journal = writes.journals.map(|dir| dir.join(format!("{}.journal", case.seed)));
    let recording = writes.recordings.map(|dir| dir.join(format!("seed-{}", case.seed)));
    let looked = {
        let case = case.clone();
        let act = async move |stage: &Stage<'_>| {
            let looks = explain(stage, &case, journal.as_deref(), recording.as_deref());
            look(stage, case.is_quick(), looks).await
        };
        place.on_stage(runs.seed, &injected, act).await?
    };
    let (mut promised, mut got) = (None, None);
    // Of what did not move at all, no factor can be got.
    if let Some((setting, to, factor)) = looked.advice.filter(|_| now > 0.0) {
        let mut advised = injected.clone();
        advised.set(&setting, to);
        (promised, got) = (Some(factor), Some(runs.rate(&advised).await? / now));
    }
    Ok(Outcome::Admitted(Box::new(Scored {
        target: place.name().to_owned(),
        name: case.name(),
        classes: case.classes(),
        severity: case.severity as u32,
        seed: case.seed,
        promised,
        got,
        ..looked.scored
    })))
}

/// Runs of one case beside each other.
pub(super) struct Runs<'a, P> {
    place: &'a P,
    seed: u64,
}

impl<'a, P: Place> Runs<'a, P> {
    pub(super) fn of(place: &'a P, seed: u64) -> Self {
        Runs { place, seed }
    }

    /// The rate before anything is injected, and the conditions with all causes, scaled to the rates that they meet.
    pub(super) async fn injected(&self, case: &Case) -> anyhow::Result<(f64, Conditions)> {
        let base = self.rate(&case.surroundings).await?;
        let second = case.with_second(base);
        let beneath = self.rate_or(&second, &case.surroundings, base).await?;
        Ok((base, case.injected(second, beneath)))
    }

    /// Bytes a second of all recoveries together, from their beginning on; 0 where there are none.
    pub(super) async fn rate(&self, conditions: &Conditions) -> anyhow::Result<f64> {
        let measured = self.place.measured();
        let act = async move |stage: &Stage<'_>| rate(stage, &measured).await;
        self.place.on_stage(self.seed, conditions, act).await
    }

    /// The same; where conditions are those of `known`, they are not run again.
    async fn rate_or(
        &self,
        conditions: &Conditions,
        known: &Conditions,
        rate: f64,
    ) -> anyhow::Result<f64> {
        if conditions == known { Ok(rate) } else { self.rate(conditions).await }
    }

    /// The rate after some actions, where it is `rate` without them.
    async fn after(
        &self,
        conditions: &Conditions,
        actions: &[Action],
        rate: f64,
    ) -> anyhow::Result<f64> {
        let mut lifted = conditions.clone();
        actions.iter().for_each(|action| lifted.act(*action));
        self.rate_or(&lifted, conditions, rate).await
    }

    /// Why a case is none; nothing where it is one.
    async fn refused(
        &self,
        case: &Case,
        injected: &Conditions,
        base: f64,
        now: f64,
    ) -> anyhow::Result<Option<&'static str>> {
        let given_back = |rate: f64| rate >= base * COSTS;
        if let Kind::Healthy(..) = case.kind {
            let bytes =
                (case.surroundings.shard_bytes * u64::from(case.surroundings.shards)) as f64;
            let is_over = !case.is_quick() || bytes <= now * QUICK.as_secs_f64();
            return Ok((!is_over).then_some("a quick recovery that takes longer than two seconds"));
        }
        if now > base * COSTS {
            return Ok(Some("the injection costs less than a fifth"));
        }
        if let Kind::Two(first, second) = case.kind {
            let (first, second) = (first.lifted_by()[0], second.lifted_by()[0]);
            let without_first = self.after(injected, &[first], now).await?;
            if without_first < now * HOLDS {
                return Ok(Some("the first of two causes does not hold"));
            }
            if self.after(injected, &[second], now).await? > now * HOLDS_NOT {
                return Ok(Some("both causes hold at once"));
            }
            if given_back(without_first) {
                return Ok(Some("the second of two causes costs less than a fifth"));
            }
            if !given_back(self.after(injected, &[first, second], now).await?) {
                return Ok(Some("lifting both causes does not give back four fifths"));
            }
            return Ok(None);
        }
        let own: &[Action] = case.causes().first().map_or(&[], |cause| cause.lifted_by());
        if let Some(usual) = own.first()
            && !given_back(self.after(injected, &[*usual], now).await?)
        {
            return Ok(Some("lifting the cause does not give back four fifths"));
        }
        for action in Action::ALL.iter().filter(|action| !own.contains(action)) {
            // What widens the surroundings as much lifts something of theirs, and not the cause.
            let rate = self.after(injected, &[*action], now).await?;
            if given_back(rate)
                && rate >= COSTS * self.after(&case.surroundings, &[*action], base).await?
            {
                return Ok(Some("lifting something else gives it back, too"));
            }
        }
        Ok(None)
    }
}

/// What was seen.
struct Looked {
    /// All but which case it is and what its advice brings.
    scored: Scored,
    /// The setting that the first finding advises, its value, and what is promised.
    advice: Option<(String, String, f64)>,
}

/// What `looks` makes of recoveries that go on, or of a quick one that begins meanwhile.
pub(super) async fn look<T>(
    stage: &Stage<'_>,
    is_quick: bool,
    looks: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    if !is_quick {
        stage.begin().await?;
        stage.env.sleep(BEGIN).await;
    }
    let goes_on = async {
        if is_quick {
            stage.env.sleep(BEGINS_AFTER).await;
            stage.begin().await?;
            return std::future::pending().await;
        }
        stage.keep_recovering().await
    };
    tokio::select! {
        biased;
        ended = goes_on => Err(ended.err().unwrap_or_else(|| anyhow!("recoveries ended"))),
        looked = looks => looked,
    }
}

/// What `explain` makes of what goes on.
async fn explain(
    stage: &Stage<'_>,
    case: &Case,
    journal: Option<&Path>,
    recording: Option<&Path>,
) -> anyhow::Result<Looked> {
    let (env, urls, args) = (&stage.env, stage.urls(), ConnectArgs::default());
    let mut client = client(env, &urls, &args, args.timeout())?;
    if let Some(dir) = recording {
        client = written(client, dir, LOOK_FOR, INTERVAL)?;
        Label { name: case.name(), classes: case.classes() }.write(dir)?;
    }
    let mut looking = Looking::new(greet(env, client, &args).await?, INTERVAL);
    looking.look_for(LOOK_FOR).await?;
    looking.sampler.client().transcript()?;
    let judgement = Judgement::of(&looking.series(), &case.classes());
    let (mut probed, mut probed_seconds) = (None, None);
    if let Some(journal) = journal
        && !judgement.diagnosis.findings.is_empty()
    {
        let mut diagnosis = judgement.diagnosis.clone();
        probe_unrecorded(env, &mut looking, &mut diagnosis, &urls, &args, journal).await?;
        let said = classes(&diagnosis);
        if said.first() == case.classes().first() {
            // What looking knew already, probes have confirmed.
            let last = looking.series().looks().last().map(|(t_ms, _)| t_ms / 1e3);
            probed_seconds = judgement.seconds.or(last);
        }
        probed = Some(said);
    }
    let advice = judgement.diagnosis.findings.first().and_then(|finding| {
        let lift = finding.lift.as_ref()?;
        Some((lift.setting.clone()?, lift.to.clone()?, finding.gain.as_ref()?.factor))
    });
    Ok(Looked { scored: Scored { probed, probed_seconds, ..judgement.scored() }, advice })
}

/// What looking alone says.
pub(super) struct Judgement {
    pub(super) diagnosis: Diagnosis,
    /// Why its first finding is of another class than the one that is right, where it is.
    pub(super) reason: Option<String>,
    /// From when on its first finding is of the class that is right, and stays so; in seconds of looking.
    pub(super) seconds: Option<f64>,
    pub(super) guesses: Guesses,
}

impl Judgement {
    /// Judges the looks of a series by the classes that are right.
    pub(super) fn of(series: &Series<'_>, right: &[Class]) -> Judgement {
        let first = |diagnosis: &Diagnosis| diagnosis.findings.first().map(|found| found.class);
        let is_wrong =
            |looks: &usize| first(&diagnose(&series.head(*looks))) != right.first().copied();
        let wrong = (2..=series.looks().len()).rev().find(is_wrong);
        let seconds = series.looks().get(wrong.unwrap_or(1)).map(|(t_ms, _)| t_ms / 1e3);
        let guesses =
            Guesses { lint: settings_lint(series), utilisation: highest_utilisation(series) };
        let diagnosis = diagnose(series);
        Judgement { reason: wrong_because(&diagnosis, right), diagnosis, seconds, guesses }
    }

    /// What is scored of it: all but which case it is, and what probes and its advice bring.
    pub(super) fn scored(self) -> Scored {
        let Judgement { diagnosis, reason, seconds, guesses } = self;
        Scored {
            verdicts: classes(&diagnosis),
            next: diagnosis.findings.first().and_then(|finding| finding.next.class),
            sentence: diagnosis.headline,
            reason,
            seconds,
            guesses,
            ..Scored::default()
        }
    }
}

/// Why the cause that is right is not what was named first: what spoke against it, or else what spoke for the other.
/// None where it was named, and where that is not told.
fn wrong_because(diagnosis: &Diagnosis, right: &[Class]) -> Option<String> {
    let Some(first) = diagnosis.findings.first() else {
        return diagnosis.healthy.first().filter(|_| !right.is_empty()).cloned();
    };
    if right.first() == Some(&first.class) {
        return None;
    }
    let against = first.ruled_out.iter().find(|one| right.first() == Some(&one.class));
    if let Some(RuledOut { class, by, why }) = against {
        return Some(format!("{} {}: {why}", class.label(), by.label()));
    }
    let evidence = first.evidence.iter().take(REASONS);
    let all: Vec<String> = evidence.map(|line| format!("{}: {}", line.field, line.value)).collect();
    (!all.is_empty()).then(|| all.join("; "))
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

/// Bytes a second of all recoveries together over so long at most, while files are copied: of a few MB, opening and
/// closing a copy takes as long as its files, and no setting lifts that. What goes on for longer is taken from where it
/// has begun: a limiter lets its first chunks through for nothing.
pub(super) async fn rate(stage: &Stage<'_>, measured: &Measured) -> anyhow::Result<f64> {
    let env = &stage.env;
    stage.begin().await?;
    let began = env.now();
    let mut steps: Vec<(Duration, u64)> = Vec::new();
    loop {
        env.sleep(POLL).await;
        let moved = stage.moved().await?;
        let elapsed = env.now() - began;
        if elapsed >= STEP * (steps.len() as u32 + 1) {
            steps.push((elapsed, moved.bytes));
        }
        if moved.is_done {
            let copying = if moved.copying.is_zero() { elapsed } else { moved.copying };
            return Ok(moved.bytes as f64 / copying.as_secs_f64());
        }
        if elapsed >= measured.at_most || measured.has_settled(&steps) {
            let (from, bytes) = steps.get(RAMP).copied().unwrap_or_default();
            let moved = moved.bytes.saturating_sub(bytes);
            return Ok(moved as f64 / (elapsed - from).as_secs_f64());
        }
    }
}

impl Measured {
    /// Whether two halves of what was seen last are so many bytes, and alike.
    fn has_settled(&self, steps: &[(Duration, u64)]) -> bool {
        let Some(least) = self.settled_bytes else { return false };
        let Some(from) = steps.len().checked_sub(2 * HALF + 1) else { return false };
        let bytes = |step: usize| steps[from + step].1;
        let (first, second) =
            (bytes(HALF).saturating_sub(bytes(0)), bytes(2 * HALF).saturating_sub(bytes(HALF)));
        let both = first + second;
        both >= least && first.abs_diff(second) as f64 <= both as f64 * ALIKE
    }
}

impl Case {
    fn is_quick(&self) -> bool {
        matches!(self.kind, Kind::Healthy(Well::Quick, _))
    }
}
