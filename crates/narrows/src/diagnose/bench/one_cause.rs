//! Cases of one cause at most, of something else than recoveries that has a rate.

use std::time::Duration;

use insight::diagnosis::Class;
use insight::diagnosis::score::Scored;
use world::Env;

use super::trial::{COSTS, Judgement, Outcome, classes, next_class};

/// Where a case is made.
#[derive(Clone, Copy)]
pub(crate) enum World<'a> {
    /// A world of its own for each stage. Nothing is ever waited for.
    Virtual,
    Real(&'a Env),
}

impl World<'_> {
    /// As `--on` names it.
    pub(super) fn target(self) -> &'static str {
        match self {
            World::Virtual => "virtual",
            World::Real(_) => "embedded",
        }
    }
}

/// A case in a world.
pub(super) struct InWorld<'a, C> {
    pub(super) world: World<'a>,
    pub(super) case: C,
}

/// What a case is, for its score.
pub(super) struct Drawn {
    pub(super) seed: u64,
    /// What it is about, in words.
    pub(super) name: &'static str,
    /// 1 to 3.
    pub(super) severity: usize,
    /// The classes that are right; none where nothing is to be found.
    pub(super) classes: Vec<Class>,
}

/// What is injected how strongly into which surroundings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CaseOf<Kind, Conditions> {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    /// 1 to 3.
    pub(crate) severity: usize,
    /// Without anything injected.
    pub(crate) surroundings: Conditions,
}

/// A case of one cause at most. Pure.
pub(super) trait OneCause {
    /// Everything that a run is made of.
    type Conditions: Clone + PartialEq;
    /// Something that an operator can do.
    type Action: Copy + PartialEq + 'static;
    /// Everything that an operator can do.
    const ACTIONS: &'static [Self::Action];

    fn drawn(&self) -> Drawn;

    /// Conditions without anything injected.
    fn surroundings(&self) -> &Self::Conditions;

    /// The actions that lift what is injected; the first is the usual one. None where all is well.
    fn lifted_by(&self) -> &'static [Self::Action];

    /// With everything injected, where the surroundings carry `rate`.
    fn injected(&self, rate: f64) -> Self::Conditions;

    /// Does something about a cause, as far as it goes.
    fn act(&self, conditions: &mut Self::Conditions, action: Self::Action);
}

/// A case where it can be made.
pub(super) trait Staged {
    type Case: OneCause;

    fn case(&self) -> &Self::Case;

    /// As `--on` names it.
    fn target(&self) -> &'static str;

    /// What goes through a second.
    async fn rate(&self, conditions: &ConditionsOf<Self>) -> anyhow::Result<f64>;

    /// What is made of it by looking.
    async fn judged(&self, conditions: &ConditionsOf<Self>) -> anyhow::Result<Judgement>;
}

type ConditionsOf<S> = <<S as Staged>::Case as OneCause>::Conditions;

/// What comes a second over so long, once what fills at first is full.
pub(super) async fn rate_of(
    env: &Env,
    begin: Duration,
    measured: Duration,
    came: impl AsyncFn() -> anyhow::Result<u64>,
) -> anyhow::Result<f64> {
    env.sleep(begin).await;
    let before = came().await?;
    env.sleep(measured).await;
    Ok(came().await?.saturating_sub(before) as f64 / measured.as_secs_f64())
}

/// Tries a case, as [`super::trial::trial`] does with recoveries.
pub(super) async fn trial(staged: &impl Staged) -> anyhow::Result<Outcome> {
    let case = staged.case();
    let mut injected = case.surroundings().clone();
    if !case.lifted_by().is_empty() {
        let base = staged.rate(case.surroundings()).await?;
        injected = case.injected(base);
        if let Some(why) = refused(staged, &injected, base).await? {
            return Ok(Outcome::Refused(why.to_owned()));
        }
    }
    let Judgement { diagnosis, seconds, guesses } = staged.judged(&injected).await?;
    let Drawn { seed, name, severity, classes: right } = case.drawn();
    Ok(Outcome::Admitted(Box::new(Scored {
        target: staged.target().to_owned(),
        name: name.to_owned(),
        classes: right,
        severity: severity as u32,
        seed,
        verdicts: classes(&diagnosis),
        probed: None,
        next: next_class(&diagnosis),
        sentence: diagnosis.headline,
        promised: None,
        got: None,
        seconds,
        probed_seconds: None,
        guesses,
    })))
}

/// Why a case is none; nothing where it is one.
async fn refused<S: Staged>(
    staged: &S,
    injected: &ConditionsOf<S>,
    base: f64,
) -> anyhow::Result<Option<&'static str>> {
    let case = staged.case();
    if base <= 0.0 {
        return Ok(Some("nothing moves before anything is injected"));
    }
    if staged.rate(injected).await? > base * COSTS {
        return Ok(Some("the injection costs less than a fifth"));
    }
    let own = case.lifted_by();
    for action in S::Case::ACTIONS {
        let mut lifted = injected.clone();
        case.act(&mut lifted, *action);
        let is_usual = own.first() == Some(action);
        // What changes nothing gives nothing back.
        if (own.contains(action) && !is_usual) || lifted == *injected {
            continue;
        }
        match (is_usual, staged.rate(&lifted).await? >= base * COSTS) {
            (true, false) => return Ok(Some("lifting the cause does not give back four fifths")),
            (false, true) => return Ok(Some("lifting something else gives it back, too")),
            _ => {}
        }
    }
    Ok(None)
}
