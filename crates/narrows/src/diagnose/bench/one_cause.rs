//! Cases of one cause at most, of something else than recoveries that has a rate.

use insight::diagnosis::Class;
use insight::diagnosis::score::Scored;

use super::trial::{COSTS, Judgement, Outcome, classes};

/// What a case is, for its score.
pub(super) struct Drawn {
    pub(super) target: &'static str,
    pub(super) seed: u64,
    /// What it is about, in words.
    pub(super) name: &'static str,
    /// 1 to 3.
    pub(super) severity: usize,
    /// The classes that are right; none where nothing is to be found.
    pub(super) classes: Vec<Class>,
}

/// A case of one cause at most.
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

    /// With everything injected, where the surroundings carry `rate`.
    fn injected(&self, rate: f64) -> Self::Conditions;

    /// The actions that lift what is injected; the first is the usual one. None where all is well.
    fn lifted_by(&self) -> &'static [Self::Action];

    /// Does something about a cause, as far as it goes.
    fn act(&self, conditions: &mut Self::Conditions, action: Self::Action);

    /// What goes through a second, once what fills at first is full.
    async fn rate(&self, conditions: &Self::Conditions) -> anyhow::Result<f64>;

    /// What is made of it by looking.
    async fn judged(&self, conditions: &Self::Conditions) -> anyhow::Result<Judgement>;
}

/// Tries a case, as [`super::trial::trial`] does with recoveries.
pub(super) async fn trial(case: &impl OneCause) -> anyhow::Result<Outcome> {
    let mut injected = case.surroundings().clone();
    if !case.lifted_by().is_empty() {
        let base = case.rate(case.surroundings()).await?;
        injected = case.injected(base);
        if let Some(why) = refused(case, &injected, base).await? {
            return Ok(Outcome::Refused(why.to_owned()));
        }
    }
    let Judgement { diagnosis, seconds, guesses } = case.judged(&injected).await?;
    let Drawn { target, seed, name, severity, classes: right } = case.drawn();
    Ok(Outcome::Admitted(Box::new(Scored {
        target: target.to_owned(),
        name: name.to_owned(),
        classes: right,
        severity: severity as u32,
        seed,
        verdicts: classes(&diagnosis),
        probed: None,
        sentence: diagnosis.headline,
        promised: None,
        got: None,
        seconds,
        guesses,
    })))
}

/// Why a case is none; nothing where it is one.
async fn refused<C: OneCause>(
    case: &C,
    injected: &C::Conditions,
    base: f64,
) -> anyhow::Result<Option<&'static str>> {
    if base <= 0.0 {
        return Ok(Some("nothing moves before anything is injected"));
    }
    if case.rate(injected).await? > base * COSTS {
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
        match (is_usual, case.rate(&lifted).await? >= base * COSTS) {
            (true, false) => return Ok(Some("lifting the cause does not give back four fifths")),
            (false, true) => return Ok(Some("lifting something else gives it back, too")),
            _ => {}
        }
    }
    Ok(None)
}
