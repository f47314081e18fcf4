//! Verdicts on buckets on trial: DCP connections that are held, or well.
//!
//! | file | holds |
//! | --- | --- |
//! | `case` | [`Case`]: what is injected into which surroundings, drawn from a seed, and what lifts it. Pure |
//! | `stage` | nodes of a bucket under conditions, and who reads it |

mod case;
mod stage;

use std::time::Duration;

use dcp::look::Looker;
use insight::diagnosis::score::Scored;

use super::trial::{COSTS, INTERVAL, Judgement, LOOK_FOR, Outcome, classes};
use crate::live::look_for;
pub(crate) use case::Case;
use case::{Action, Conditions};
use stage::Stage;
pub(crate) use stage::World;

/// What fills at first is full after this time: windows, memory.
const BEGIN: Duration = Duration::from_millis(1500);
/// How long a rate is measured from then on.
const MEASURED: Duration = Duration::from_secs(3);

/// Tries a case, as [`super::trial::trial`] does with recoveries.
pub(super) async fn trial(world: World<'_>, case: &Case) -> anyhow::Result<Outcome> {
    let mut injected = case.surroundings.clone();
    if !case.lifted_by().is_empty() {
        let base = rate(world, case, &case.surroundings).await?;
        injected = case.injected(base);
        if let Some(why) = refused(world, case, &injected, base).await? {
            return Ok(Outcome::Refused(why.to_owned()));
        }
    }
    let right = case.classes();
    let act = async move |stage: &Stage| {
        stage.env.sleep(BEGIN).await;
        let mut looker = Looker::connect(&stage.env, &stage.options()).await?;
        let history = look_for(&stage.env, &mut looker, LOOK_FOR, INTERVAL).await?;
        Ok(Judgement::of(&history.series(), &right))
    };
    let Judgement { diagnosis, seconds, guesses } =
        world.on_stage(case.seed, &injected, act).await?;
    let target = match world {
        World::Virtual => "virtual",
        World::Real(_) => "embedded",
    };
    Ok(Outcome::Admitted(Box::new(Scored {
        target: target.to_owned(),
        name: case.name().to_owned(),
        classes: case.classes(),
        severity: case.severity as u32,
        seed: case.seed,
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
async fn refused(
    world: World<'_>,
    case: &Case,
    injected: &Conditions,
    base: f64,
) -> anyhow::Result<Option<&'static str>> {
    if base <= 0.0 {
        return Ok(Some("nothing moves before anything is injected"));
    }
    if rate(world, case, injected).await? > base * COSTS {
        return Ok(Some("the injection costs less than a fifth"));
    }
    let own = case.lifted_by();
    for action in Action::ALL {
        let mut lifted = injected.clone();
        case.act(&mut lifted, action);
        let is_usual = own.first() == Some(&action);
        // What changes nothing gives nothing back.
        if (own.contains(&action) && !is_usual) || lifted == *injected {
            continue;
        }
        match (is_usual, rate(world, case, &lifted).await? >= base * COSTS) {
            (true, false) => return Ok(Some("lifting the cause does not give back four fifths")),
            (false, true) => return Ok(Some("lifting something else gives it back, too")),
            _ => {}
        }
    }
    Ok(None)
}

/// Bytes a second, once what fills at first is full.
async fn rate(world: World<'_>, case: &Case, conditions: &Conditions) -> anyhow::Result<f64> {
    let act = async move |stage: &Stage| {
        stage.env.sleep(BEGIN).await;
        let before = stage.came();
        stage.env.sleep(MEASURED).await;
        Ok((stage.came() - before) as f64 / MEASURED.as_secs_f64())
    };
    world.on_stage(case.seed, conditions, act).await
}
