//! Time to green on trial: how often the moment lies within the interval that `watch` shows.

use std::cell::RefCell;
use std::convert::Infallible;
use std::time::Duration;

use anyhow::anyhow;
use clusters::live::Depth;
use insight::diagnosis::{TimeToGreen, diagnose, paces, time_to_green};
use insight::stats::median;
use insight::words;
use record::units::{show_interval, show_seconds};
use report::grid;
use serde_json::{Value, json};
use world::{Env, Time};

use super::case::{Case, Kind};
use super::cause::Cause;
use super::place::Place;
use super::stage::Stage;
use super::trial::Runs;
use crate::live::{ConnectArgs, Looking, connect};

/// `watch` looks so often.
const INTERVAL: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(200);
/// What is said after so much looking counts, and what is said half-way from there to the end.
const FIRST: Duration = Duration::from_secs(6);
/// Nearer to the end than this, nobody needs to be told.
const LEFT_MIN: Duration = Duration::from_secs(2);
/// About how long copies take; one of these by the seed. Those that wait for slots take what they take.
const TAKES_S: [f64; 3] = [15.0, 30.0, 60.0];
const PATIENCE: Duration = Duration::from_secs(900);

/// What was said of a case, and what came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Awaited {
    pub(crate) seed: u64,
    pub(crate) name: String,
    pub(crate) severity: usize,
    pub(crate) said: Vec<Said>,
}

/// What was said at one moment, in seconds from there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    /// None where nothing was promised.
    pub(crate) within_s: Option<(f64, f64)>,
    pub(crate) came_s: f64,
}

impl Said {
    fn is_inside(&self) -> bool {
        self.within_s.is_some_and(|(soon, late)| (soon..=late).contains(&self.came_s))
    }

    fn width(&self) -> Option<f64> {
        self.within_s.map(|(soon, late)| (late - soon) / self.came_s)
    }
}

impl Awaited {
    /// What was said each time, and what came.
    pub(crate) fn words(&self) -> String {
        let each = self.said.iter().map(|said| {
            let came = show_seconds(said.came_s);
            match said.within_s {
                Some((soon, late)) => format!("{}, came in {came}", show_interval(soon, late)),
                None => format!("nothing, came in {came}"),
            }
        });
        each.collect::<Vec<_>>().join("; ")
    }
}

/// Tries a case; why it is none otherwise.
pub(crate) async fn awaited(
    place: &impl Place,
    case: &Case,
) -> anyhow::Result<Result<Awaited, &'static str>> {
    if matches!(case.kind, Kind::Healthy(..) | Kind::One(Cause::Block)) {
        return Ok(Err("nothing recovers, or nothing for long"));
    }
    let runs = Runs::of(place, case.seed);
    let (_, mut conditions) = runs.injected(case).await?;
    let rate = runs.rate(&conditions).await?;
    // Less than a byte a second: a shard of as much would hold no document.
    if rate < 1.0 {
        return Ok(Err("nothing moves"));
    }
    if case.kind != Kind::One(Cause::Slots) {
        let takes_s = TAKES_S[(case.seed / 2 % TAKES_S.len() as u64) as usize];
        conditions.shard_bytes = (rate * takes_s) as u64 / u64::from(conditions.shards);
    }
    let said = place
        .on_stage(case.seed, &conditions, async move |stage: &Stage<'_>| said(stage).await)
        .await?;
    if said.is_empty() {
        return Ok(Err("it was green before anything counted"));
    }
    let (seed, severity) = (case.seed, case.severity);
    Ok(Ok(Awaited { seed, name: case.name(), severity, said }))
}

/// What is said of recoveries that begin now.
async fn said(stage: &Stage<'_>) -> anyhow::Result<Vec<Said>> {
    let (env, urls, args) = (&stage.env, stage.urls(), ConnectArgs::default());
    stage.begin().await?;
    let began = env.now();
    let mut looking = Looking::new(connect(env, &urls, &args).await?, INTERVAL);
    let all: RefCell<Vec<(Time, TimeToGreen)>> = RefCell::default();
    let ends = async {
        while env.now() - began < PATIENCE {
            env.sleep(POLL).await;
            if stage.moved().await?.is_done {
                return Ok(env.now());
            }
        }
        Err(anyhow!("copies did not come within {}", show_seconds(PATIENCE.as_secs_f64())))
    };
    let done: Time = tokio::select! {
        biased;
        ended = ends => ended?,
        Err(failed) = look_on(env, &mut looking, &all) => return Err(failed),
    };
    let all = all.into_inner();
    let said_at = |from: Time| {
        let (at, green) = all.iter().find(|(at, _)| *at >= from)?;
        let came = done.max(*at) - *at;
        let within_s = match green {
            TimeToGreen::Within { soon_s, late_s, .. } => Some((*soon_s, *late_s)),
            TimeToGreen::Now | TimeToGreen::Partly { .. } | TimeToGreen::Unknown { .. } => None,
        };
        let said = Said { within_s, came_s: came.as_secs_f64() };
        (came >= LEFT_MIN).then_some(said)
    };
    let first = began + FIRST;
    let second = first + (done.max(first) - first) / 2;
    Ok([first, second].into_iter().filter_map(said_at).collect())
}

/// Looks on, and keeps what `watch` would say.
async fn look_on(
    env: &Env,
    looking: &mut Looking,
    all: &RefCell<Vec<(Time, TimeToGreen)>>,
) -> anyhow::Result<Infallible> {
    looking.look(Depth::Light).await?;
    loop {
        looking.pause().await;
        looking.look(Depth::Light).await?;
        let series = looking.recent();
        let green = time_to_green(&series, &paces(&series), &diagnose(&series));
        all.borrow_mut().push((env.now(), green));
    }
}

/// Of [`table`], each with whether it is aligned to the right.
const COLUMNS: [(&str, bool); 7] = [
    ("", false),
    ("cases", true),
    ("told", true),
    ("inside", true),
    ("sooner", true),
    ("later", true),
    ("width", true),
];

/// What was said of some cases, together.
#[derive(Default)]
struct Sum<'a> {
    cases: usize,
    said: Vec<&'a Said>,
}

impl Sum<'_> {
    fn row(&self, name: &str) -> Vec<String> {
        let Sum { cases, said } = self;
        let bounded: Vec<&&Said> = said.iter().filter(|said| said.within_s.is_some()).collect();
        let share = |count: usize, of: usize| match of {
            0 => "-".to_owned(),
            _ => words::percent(count as f64 / of as f64),
        };
        let count = |is: fn(f64, (f64, f64)) -> bool| {
            bounded.iter().filter(|one| one.within_s.is_some_and(|it| is(one.came_s, it))).count()
        };
        let widths: Vec<f64> = bounded.iter().filter_map(|one| one.width()).collect();
        vec![
            name.to_owned(),
            cases.to_string(),
            share(bounded.len(), said.len()),
            share(bounded.iter().filter(|one| one.is_inside()).count(), bounded.len()),
            share(count(|came, (soon, _)| came < soon), bounded.len()),
            share(count(|came, (_, late)| came > late), bounded.len()),
            median(&widths).map_or_else(|| "-".to_owned(), words::percent),
        ]
    }
}

/// A table: each half of the seeds, then each kind of both.
pub(crate) fn table(cases: &[Awaited]) -> String {
    let sum = |is: &dyn Fn(&Awaited) -> bool| {
        let mut sum = Sum::default();
        for case in cases.iter().filter(|case| is(case)) {
            sum.cases += 1;
            sum.said.extend(&case.said);
        }
        sum
    };
    let mut rows = vec![
        sum(&|case| !case.seed.is_multiple_of(2)).row("odd seeds"),
        sum(&|case| case.seed.is_multiple_of(2)).row("even seeds"),
    ];
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    rows.extend(names.into_iter().map(|name| sum(&|case| case.name == name).row(name)));
    format!(
        "{}\n\nSaid after {} of looking, and half-way from there to the end.\n",
        grid(COLUMNS, rows).join("\n"),
        show_seconds(FIRST.as_secs_f64())
    )
}

/// The same for programs.
pub(crate) fn as_json(cases: &[Awaited]) -> Value {
    let said = |said: &Said| json!({ "within_s": said.within_s, "came_s": said.came_s });
    let one = |case: &Awaited| {
        json!({
            "seed": case.seed, "case": case.name, "severity": case.severity,
            "said": case.said.iter().map(said).collect::<Vec<_>>(),
        })
    };
    json!({ "cases": cases.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_early_or_late_is_counted_of_what_was_told() {
        let said = |within_s, came_s| Said { within_s, came_s };
        let case = |seed, said| Awaited { seed, name: "a limit".into(), severity: 1, said };
        let within_s = Some((8.0, 12.0));
        let cases = [
            case(2, vec![said(within_s, 10.0), said(within_s, 12.5)]),
            case(3, vec![said(None, 5.0), said(within_s, 7.0)]),
        ];
        let text = table(&cases);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(" odd seeds 1 50 % 0 % 100 % 0 % 57 % "), "{text}");
        assert!(words.contains(" even seeds 1 100 % 50 % 0 % 50 % "), "{text}");
        assert!(words.contains(" a limit 2 75 % "), "{text}");
        assert!(!text.contains('|'), "it is for a terminal: {text}");
    }
}
