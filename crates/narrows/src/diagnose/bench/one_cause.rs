//! Cases of one cause at most, of something else than recoveries that has a rate.

use std::time::Duration;

use insight::diagnosis::Class;
use insight::diagnosis::score::Scored;
use world::Env;

use super::trial::{COSTS, Judgement, Outcome};

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

/// What is known of a kind of case: what it is about, in words; the class that is right, none where nothing is to be
/// found; the actions that lift what is injected, the usual one first, and none where all is well.
pub(super) type Known<Action> = (&'static str, Option<Class>, &'static [Action]);

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

    fn known(&self) -> Known<Self::Action>;

    /// With everything injected, where the surroundings carry `rate`.
    fn injected(&self, rate: f64) -> Self::Conditions;

    /// Does something about a cause, as far as it goes.
    fn act(&self, conditions: &mut Self::Conditions, action: Self::Action);

    /// The classes that are right; none where nothing is to be found.
    fn classes(&self) -> Vec<Class> {
        self.known().1.into_iter().collect()
    }

    /// The actions that lift what is injected.
    fn lifted_by(&self) -> &'static [Self::Action] {
        self.known().2
    }
}

/// A case that can be made in a world.
pub(super) trait Staged: OneCause {
    /// What goes through a second.
    async fn rate(&self, world: World<'_>, conditions: &Self::Conditions) -> anyhow::Result<f64>;

    /// What is made of it by looking.
    async fn judged(
        &self,
        world: World<'_>,
        conditions: &Self::Conditions,
    ) -> anyhow::Result<Judgement>;
}

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
pub(super) async fn trial<Kind, Conditions: Clone + PartialEq>(
    world: World<'_>,
    case: &CaseOf<Kind, Conditions>,
) -> anyhow::Result<Outcome>
where
    CaseOf<Kind, Conditions>: Staged<Conditions = Conditions>,
{
    let mut injected = case.surroundings.clone();
    if !case.lifted_by().is_empty() {
        let base = case.rate(world, &case.surroundings).await?;
        injected = case.injected(base);
        if let Some(why) = refused(world, case, &injected, base).await? {
            return Ok(Outcome::Refused(why.to_owned()));
        }
    }
    let judgement = case.judged(world, &injected).await?;
    Ok(Outcome::Admitted(Box::new(Scored {
        target: world.target().to_owned(),
        name: case.known().0.to_owned(),
        classes: case.classes(),
        severity: case.severity as u32,
        seed: case.seed,
        ..judgement.scored()
    })))
}

/// Why a case is none; nothing where it is one.
async fn refused<C: Staged>(
    world: World<'_>,
    case: &C,
    injected: &C::Conditions,
    base: f64,
) -> anyhow::Result<Option<&'static str>> {
    if base <= 0.0 {
        return Ok(Some("nothing moves before anything is injected"));
    }
    if case.rate(world, injected).await? > base * COSTS {
        return Ok(Some("the injection costs less than a fifth"));
    }
    let own = case.lifted_by();
    for action in C::ACTIONS {
        let mut lifted = injected.clone();
        case.act(&mut lifted, *action);
        let is_usual = own.first() == Some(action);
        // What changes nothing gives nothing back.
        if (own.contains(action) && !is_usual) || lifted == *injected {
            continue;
        }
        match (is_usual, case.rate(world, &lifted).await? >= base * COSTS) {
            (true, false) => return Ok(Some("lifting the cause does not give back four fifths")),
            (false, true) => return Ok(Some("lifting something else gives it back, too")),
            _ => {}
        }
    }
    Ok(None)
}

/// How many cases there are, and how many of these are well. Neighbours differ in their surroundings alone, and every
/// kind of the deck has every severity.
#[cfg(test)]
pub(super) fn counted<Kind, Conditions>(
    all: &[CaseOf<Kind, Conditions>],
    deck: &[Kind],
) -> (usize, usize)
where
    Kind: std::fmt::Debug + PartialEq,
    Conditions: std::fmt::Debug + PartialEq,
    CaseOf<Kind, Conditions>: OneCause,
{
    let (one, other) = (&all[0], &all[1]);
    assert_eq!((one.seed + 1, &one.kind, one.severity), (other.seed, &other.kind, other.severity));
    assert_ne!(one.surroundings, other.surroundings);
    for kind in deck {
        let is_there =
            |severity: usize| all.iter().any(|c| (&c.kind, c.severity) == (kind, severity));
        assert!((1..=3).all(is_there), "{kind:?}");
    }
    (all.len(), all.iter().filter(|case| case.classes().is_empty()).count())
}
