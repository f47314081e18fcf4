//! `steer` on trial: what a hand makes of a case, beside leaving it alone and beside the best fixed settings within the
//! same bounds, known in hindsight.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::UserClock;
use clusters::{BorrowedSettings, ClusterIdentity, RestClient};
use insight::diagnosis::Series;
use insight::words;
use policy::steering::{Bounds, Decision, Marks, Steering};
use record::units::{parse_throttle, show_size_setting};
use report::grid;
use serde_json::{Value, json};
use world::{Task, Time};

use super::case::{Case, Kind};
use super::cause::Cause;
use super::conditions::{CHUNK, CHUNKS, Conditions, SLOTS};
use super::place::{Measured, Place};
use super::stage::{BESIDE, Stage};
use super::trial::{Runs, rate};
use crate::diagnose::LIMIT;
use crate::live::{
    Account, Changes, ConnectArgs, Entry, GuardQuery, Hand, Looking, connect, second_client,
};

/// Users may suffer for less than this share of the time.
const SUFFERED_MAX: f64 = 0.01;
/// Fixed settings that are looked at for long.
const FINALISTS: usize = 3;
/// How long a hand has.
const STEERED: Duration = Duration::from_secs(300);
const INTERVAL: Duration = Duration::from_secs(1);
/// A shard that no setting gets across in that time.
const ENDLESS_BYTES: u64 = 2 << 40;
/// More shards of a case of slots, so that they are not over within a few looks.
const MORE_SHARDS: u32 = 6;
/// Bounds of a hand, and of fixed settings.
const LIMIT_TIMES: u64 = 8;
const LIMIT_MOST: u64 = 1 << 30;
/// Users suffer from twice what they have where nobody steers, and some milliseconds for noise: as the guard has it.
const SUFFER_TIMES: f64 = 2.0;
const SUFFER_MS: f64 = 5.0;
/// So often it is looked whether every copy is there.
const POLL: Duration = Duration::from_millis(500);

/// From one search of the users to the next, and what one reads: 4 ms of a usual core.
const SEARCH_EVERY: Duration = Duration::from_millis(40);
const SEARCH_BYTES: u64 = 4_000_000;

/// What came of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steered {
    pub(crate) seed: u64,
    pub(crate) name: String,
    pub(crate) severity: usize,
    /// Bytes a second where nobody steers.
    pub(crate) alone: f64,
    /// With the best fixed settings.
    pub(crate) best: f64,
    /// What those are, where they differ from what was found.
    pub(crate) best_settings: String,
    /// With a hand, its trials included.
    pub(crate) steered: f64,
    /// Share of the seconds in which users suffered.
    pub(crate) suffered: f64,
    pub(crate) sets: usize,
    pub(crate) gave_way: usize,
    /// What was in force at the end.
    pub(crate) settings: String,
}

impl Steered {
    /// Times the rate of leaving it alone.
    pub(crate) fn gain(&self) -> f64 {
        self.steered / self.alone
    }

    /// Share of the best fixed settings' rate; those may be the ones that were found.
    pub(crate) fn of_best(&self) -> f64 {
        self.steered / self.best.max(self.alone)
    }
}

/// Tries a case; why it is none otherwise.
pub(crate) async fn steered(
    place: &impl Place,
    case: &Case,
    journals: &Path,
) -> anyhow::Result<Result<Steered, &'static str>> {
    if matches!(case.kind, Kind::Healthy(..) | Kind::One(Cause::Block)) {
        return Ok(Err("nothing recovers, or nothing for long"));
    }
    let measured = place.measured();
    let (_, mut conditions) = Runs::of(place, case.seed).injected(case).await?;
    if case.kind == Kind::One(Cause::Slots) {
        conditions.shards *= MORE_SHARDS;
    } else {
        conditions.shard_bytes = ENDLESS_BYTES / u64::from(conditions.shards);
    }
    let users = |during: Measured| {
        async move |stage: &Stage<'_>| {
            let users = Users::start(stage)?;
            let rate = rate(stage, &during).await?;
            Ok((rate, users.felt()))
        }
    };
    let act = async |stage: &Stage<'_>| for_long(stage).await;
    let (alone, usual) = place.on_stage(case.seed, &conditions, act).await?;
    if alone <= 0.0 {
        return Ok(Err("nothing moves"));
    }
    let mark = Mark::above(&usual);
    // Those that go best at first are looked at for as long as a hand has.
    let mut quick = Vec::new();
    for one in fixed(&conditions) {
        let (rate, felt) = place.on_stage(case.seed, &one, users(measured)).await?;
        quick.push((rate, felt.suffered(&mark), one));
    }
    quick.retain(|(_, suffered, _)| *suffered < SUFFERED_MAX);
    quick.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let (mut best, mut best_settings) = (alone, String::new());
    for (.., one) in quick.iter().take(FINALISTS) {
        let act = async |stage: &Stage<'_>| for_long(stage).await;
        let (rate, felt) = place.on_stage(case.seed, one, act).await?;
        // Fixed settings under which users suffer are no better ones.
        if felt.suffered(&mark) < SUFFERED_MAX && rate > best {
            (best, best_settings) = (rate, differing(one, &conditions));
        }
    }
    let journal = journals.join(format!("{}.journal", case.seed));
    // Fixed settings do not keep cores free either, as long as nobody suffers.
    let marks = Marks { p99_ms: Some(mark.search_ms), cpu: 1.0 };
    let act = async move |stage: &Stage<'_>| hand(stage, marks, &journal).await;
    let came = place.on_stage(case.seed, &conditions, act).await?;
    Ok(Ok(Steered {
        seed: case.seed,
        name: case.name(),
        severity: case.severity,
        alone,
        best,
        best_settings,
        steered: came.rate,
        suffered: came.felt.suffered(&mark),
        sets: came.sets,
        gave_way: came.gave_way,
        settings: came.settings,
    }))
}

/// The rate where nobody steers, for as long as a hand has, and what users wait meanwhile.
async fn for_long(stage: &Stage<'_>) -> anyhow::Result<(f64, Felt)> {
    let users = Users::start(stage)?;
    stage.begin().await?;
    let rate = carried(stage, stage.env.now()).await?;
    Ok((rate, users.felt()))
}

/// Bytes a second of all recoveries together, for as long as a hand has. Once every copy is there, all are taken away
/// and recovered again: the hand's first looks are most of what is over within half a minute.
async fn carried(stage: &Stage<'_>, began: Time) -> anyhow::Result<f64> {
    let mut before = 0u64;
    loop {
        stage.env.sleep(POLL).await;
        let moved = stage.moved().await?;
        let elapsed = stage.env.now() - began;
        if elapsed >= STEERED {
            return Ok((before + moved.bytes) as f64 / elapsed.as_secs_f64());
        }
        if moved.is_done {
            before += moved.bytes;
            stage.recover_again().await?;
        }
    }
}

/// Settings that are not as they were found, in words.
fn differing(one: &Conditions, found: &Conditions) -> String {
    let is_other = |(name, value): &(&String, &String)| found.settings.get(*name) != Some(*value);
    let told = one.settings.iter().filter(is_other);
    told.map(|(name, value)| format!("{} {value}", short(name))).collect::<Vec<_>>().join(", ")
}

/// Fixed settings within the bounds of a hand.
fn fixed(found: &Conditions) -> Vec<Conditions> {
    let value = |name: &str, default: &str| {
        found.settings.get(name).cloned().unwrap_or_else(|| default.to_owned())
    };
    let limit = parse_throttle(&value(LIMIT, "40mb")).ok().flatten();
    let limits: Vec<String> = match limit {
        None => vec![value(LIMIT, "-1")],
        Some(found) => [1, 2, 4, LIMIT_TIMES]
            .map(|times| show_size_setting((found * times).min(LIMIT_MOST).max(found)))
            .to_vec(),
    };
    let chunk = value(CHUNK, "512kb");
    let chunks = value(CHUNKS, "2");
    let in_flight = [
        (chunks.clone(), chunk.clone()),
        ("4".to_owned(), chunk.clone()),
        ("8".to_owned(), chunk.clone()),
        ("8".to_owned(), "1mb".to_owned()),
        ("8".to_owned(), "4mb".to_owned()),
        (chunks, "4mb".to_owned()),
    ];
    let slots: u32 = value(SLOTS, "2").parse().unwrap_or(2);
    let slots: &[u32] =
        if found.shards > 2 { &[slots, slots * 2, (slots * 4).min(16)] } else { &[slots] };
    let mut all = Vec::new();
    for limit in &limits {
        for (chunks, chunk) in &in_flight {
            for slots in slots {
                let mut one = found.clone();
                one.set(LIMIT, limit);
                one.set(CHUNKS, chunks);
                one.set(CHUNK, chunk);
                one.set(SLOTS, slots);
                all.push(one);
            }
        }
    }
    all
}

/// What a hand did.
struct Came {
    rate: f64,
    felt: Felt,
    sets: usize,
    gave_way: usize,
    settings: String,
}

/// What users felt, each with when that was, in seconds, and in milliseconds.
#[derive(Clone, Debug, Default)]
struct Felt {
    /// How long each search took.
    searches: Vec<(f64, f64)>,
    /// The mean of operations that were indexed since a second before, as the hand sees it.
    indexing: Vec<(f64, f64)>,
}

/// From where on users suffer.
struct Mark {
    search_ms: f64,
    indexing_ms: f64,
}

impl Mark {
    fn above(usual: &Felt) -> Mark {
        let sorted = |all: &[(f64, f64)]| {
            let mut all: Vec<f64> = all.iter().map(|(_, ms)| *ms).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (searches, indexing) = (sorted(&usual.searches), sorted(&usual.indexing));
        let above = |usual_ms: f64| SUFFER_TIMES * usual_ms + SUFFER_MS;
        Mark {
            search_ms: above(p99(&searches).unwrap_or(0.0)),
            // Nobody indexes where it is not told.
            indexing_ms: indexing.get(indexing.len() / 2).map_or(f64::INFINITY, |ms| above(*ms)),
        }
    }
}

impl Felt {
    /// Share of the seconds in which searches had a p99, or indexed operations a mean, above the mark.
    fn suffered(&self, mark: &Mark) -> f64 {
        let mut seconds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (at_s, ms) in &self.searches {
            seconds.entry(*at_s as u64).or_default().push(*ms);
        }
        let slow = self.indexing.iter().filter(|(_, ms)| *ms > mark.indexing_ms);
        let slow: BTreeSet<u64> = slow.map(|(at_s, _)| *at_s as u64).collect();
        let is_bad = |(second, all): &(&u64, &Vec<f64>)| {
            slow.contains(*second) || p99(all).is_some_and(|p99| p99 > mark.search_ms)
        };
        let bad = seconds.iter().filter(is_bad).count();
        if seconds.is_empty() { 0.0 } else { bad as f64 / seconds.len() as f64 }
    }
}

/// Clients that search the near node at a steady rate, one after another, and whoever looks at those that index.
struct Users {
    felt: Rc<RefCell<Felt>>,
    _tasks: [Task<()>; 2],
}

impl Users {
    fn start(stage: &Stage<'_>) -> anyhow::Result<Users> {
        let felt: Rc<RefCell<Felt>> = Rc::default();
        let (env, taken, address) = (stage.env.clone(), felt.clone(), stage.near()?);
        let searches = stage.env.spawn("users", async move {
            let client = RestClient::new(&env);
            let (path, body) = (format!("/{BESIDE}/_search"), Bytes::from(search().to_string()));
            loop {
                let sent = env.now();
                let answer = client.send(&address, "POST", &path, body.clone()).await;
                let took_ms = (env.now() - sent).as_secs_f64() * 1e3;
                // A search that fails is as bad as one that takes for ever.
                let took_ms = if answer.is_ok() { took_ms } else { f64::INFINITY };
                taken.borrow_mut().searches.push((env.now().as_secs_f64(), took_ms));
                env.sleep_until((sent + SEARCH_EVERY).max(env.now())).await;
            }
        });
        let client = second_client(&stage.env, &stage.urls(), &ConnectArgs::default())?;
        let (env, taken) = (stage.env.clone(), felt.clone());
        let indexing = stage.env.spawn("looks at who indexes", async move {
            let mut clock = UserClock::default();
            loop {
                if let Ok(times) = clock.ask(&client).await
                    && let Some(ms) = times.indexing_ms
                {
                    taken.borrow_mut().indexing.push((env.now().as_secs_f64(), ms));
                }
                env.sleep(INTERVAL).await;
            }
        });
        Ok(Users { felt, _tasks: [searches, indexing] })
    }

    fn felt(&self) -> Felt {
        self.felt.borrow().clone()
    }
}

/// A search that takes a core for some milliseconds.
fn search() -> Value {
    json!({ "size": 0, "ext": { "narrows": { "cost": { "bytes": SEARCH_BYTES } } } })
}

async fn hand(stage: &Stage<'_>, marks: Marks, journal: &Path) -> anyhow::Result<Came> {
    let (env, urls, args) = (&stage.env, stage.urls(), ConnectArgs::default());
    let users = Users::start(stage)?;
    stage.begin().await?;
    let began = env.now();
    let sampler = connect(env, &urls, &args).await?;
    let client = second_client(env, &urls, &args)?;
    let query = format!("{BESIDE}/_search");
    let guard = Some(GuardQuery::start(env, client, &query, search()).await?);
    let client = second_client(env, &urls, &args)?;
    let uuid = ClusterIdentity::ask(&client).await?.uuid;
    let hosts = client.hosts().iter().map(ToString::to_string).collect();
    let settings = BorrowedSettings::new(client, lab::journal(journal, &uuid, hosts)?);
    let mut changes = Changes::new(settings);
    changes.take_lease(env, "bench", |_| ()).await?;
    let steering = Steering::new(env.now(), Bounds::default(), marks);
    let looking = Looking::new(sampler, INTERVAL);
    let mut hand = Hand::new(looking, second_client(env, &urls, &args)?, steering, guard);
    let (mut sets, mut gave_way) = (0, 0);
    let mut write = |entry: &Entry| {
        if let Entry::Decided { decision, .. } = entry {
            sets += usize::from(matches!(decision, Decision::Set(_)));
            gave_way += usize::from(matches!(decision, Decision::GiveWay(..)));
        }
        Ok(())
    };
    let mut account = Account::new(&mut write);
    let ends = began + STEERED;
    let mut nothing = |_: &Series<'_>, _: f64| Ok(());
    let (ended, rate) = tokio::join!(
        hand.steer(Some(&mut changes), Some(ends), &mut account, &mut nothing),
        carried(stage, began),
    );
    ended?;
    let rate = rate?;
    let in_force = hand.steering().in_force();
    let settings = in_force.iter().map(|(name, (was, is))| format!("{} {was} → {is}", short(name)));
    let settings = settings.collect::<Vec<_>>().join(", ");
    changes.into_settings().end().await?;
    drop(account);
    Ok(Came { rate, felt: users.felt(), sets, gave_way, settings })
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn p99(all: &[f64]) -> Option<f64> {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1 + sorted.len() / 100)?).copied()
}

/// Of [`table`], each with whether it is aligned to the right.
const COLUMNS: [(&str, bool); 11] = [
    ("seed", true),
    ("case", false),
    ("severity", true),
    ("left alone, MB/s", true),
    ("steered", true),
    ("best fixed", true),
    ("gain", true),
    ("of best", true),
    ("users suffered", true),
    ("changes, given way", false),
    ("at the end", false),
];

/// Cases as a table, and what they say together.
pub(crate) fn table(cases: &[Steered]) -> String {
    if cases.is_empty() {
        return "no seed drew a case that can be steered\n".to_owned();
    }
    let rows = cases.iter().map(|case| {
        let Steered { seed, name, severity, sets, gave_way, settings, .. } = case;
        vec![
            seed.to_string(),
            name.clone(),
            severity.to_string(),
            words::mb_per_s(case.alone),
            words::mb_per_s(case.steered),
            words::mb_per_s(case.best),
            format!("{:.2}", case.gain()),
            words::percent(case.of_best()),
            words::percent(case.suffered),
            format!("{sets}, {gave_way}"),
            settings.clone(),
        ]
    });
    let count = |is: fn(&Steered) -> bool| cases.iter().filter(|case| is(case)).count();
    let worst = |of: fn(&Steered) -> f64| cases.iter().map(of).fold(f64::MAX, f64::min);
    let mut shares: Vec<f64> = cases.iter().map(Steered::of_best).collect();
    shares.sort_by(f64::total_cmp);
    format!(
        "{}\n\n{} cases. Worse than left alone by more than 2 %: {} (the worst {:.3} times). At least 90 % of the \
         best fixed settings: {} (median {}, the worst {}). Users suffered 1 % of the time or more: {}.\n",
        grid(COLUMNS, rows).join("\n"),
        cases.len(),
        count(|case| case.gain() < 0.98),
        worst(Steered::gain),
        count(|case| case.of_best() >= 0.9),
        words::percent(shares.get(shares.len() / 2).copied().unwrap_or(0.0)),
        words::percent(worst(Steered::of_best)),
        count(|case| case.suffered >= 0.01),
    )
}

/// The same for programs.
pub(crate) fn as_json(cases: &[Steered]) -> Value {
    let one = |case: &Steered| {
        json!({
            "seed": case.seed, "case": case.name, "severity": case.severity,
            "alone_bytes_per_s": case.alone, "steered_bytes_per_s": case.steered,
            "best_bytes_per_s": case.best, "gain": case.gain(), "of_best": case.of_best(),
            "suffered": case.suffered, "sets": case.sets, "gave_way": case.gave_way,
            "settings": case.settings, "best_settings": case.best_settings,
        })
    };
    json!({ "cases": cases.iter().map(one).collect::<Vec<_>>() })
}
