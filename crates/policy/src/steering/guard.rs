//! Whether the cluster's users suffer.

use std::collections::VecDeque;
use std::time::Duration;

use record::units::show_seconds;
use world::Time;

use super::look::Foreground;

/// Users suffer after so many bad looks in a row: one may be chance.
const LOOKS: u32 = 2;
/// Looks that the baseline is the median of.
const BASELINE_LOOKS: usize = 60;
/// With fewer looks there is no baseline.
const BASELINE_LOOKS_MIN: usize = 3;
/// Of what happened before, so many more in a look may be chance.
const MORE: f64 = 1.0;
/// Of many queries of the guard one in a hundred may be slower than the mark.
const SLOW_ONE_IN: usize = 100;
/// By how many times the mean time of a search, or of an operation that is indexed, may exceed what it was before
/// anything was changed, and so may refused requests and trips of breakers.
const TIMES: f64 = 2.0;
/// A margin above that, in milliseconds, which noise on fast operations stays under.
const MARGIN_MS: f64 = 5.0;
/// Share of the time in garbage collections, from where on users suffer.
const GC: f64 = 0.2;

/// From where on users suffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// The 99th percentile of the guard's queries, in milliseconds; none where only their baseline counts.
    pub p99_ms: Option<f64>,
    /// Use of a node's cores, 0 to 1.
    pub cpu: f64,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { p99_ms: None, cpu: 0.95 }
    }
}

impl Marks {
    /// The mark of the guard's queries, in the words in which it is told that they take longer.
    pub fn p99_in_words(&self) -> Option<String> {
        self.p99_ms.map(ms)
    }
}

/// A figure while nothing was changed.
#[derive(Clone, Debug, Default)]
struct Baseline(VecDeque<f64>);

impl Baseline {
    fn learn(&mut self, value: Option<f64>) {
        let Some(value) = value else { return };
        if self.0.len() == BASELINE_LOOKS {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    fn median(&self) -> Option<f64> {
        let mut values: Vec<f64> = self.0.iter().copied().collect();
        values.sort_by(f64::total_cmp);
        (values.len() >= BASELINE_LOOKS_MIN).then(|| values[values.len() / 2])
    }
}

/// How often something happened while nothing was changed.
#[derive(Clone, Debug, Default)]
struct Usual {
    count: u64,
    over: Duration,
}

impl Usual {
    fn learn(&mut self, count: u64, over: Duration) {
        self.count = self.count.saturating_add(count);
        self.over += over;
    }

    /// How many there would be in this time.
    fn within(&self, time: Duration) -> f64 {
        match self.over.is_zero() {
            true => 0.0,
            false => self.count as f64 * time.as_secs_f64() / self.over.as_secs_f64(),
        }
    }
}

/// Something is amiss.
struct Bad {
    why: String,
    /// Whether it is bad enough without a second look.
    at_once: bool,
}

/// How users are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// Well.
    Fine,
    /// Something is amiss in this look; in words.
    Uneasy(String),
    /// They suffer; in words.
    Suffer(String),
}

/// Judges users look by look.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    marks: Marks,
    searches: Baseline,
    indexing: Baseline,
    probes: Baseline,
    cpu: Baseline,
    refused: Usual,
    trips: Usual,
    /// Looks from which it is known what is usual.
    learned: u32,
    /// When the last look was.
    looked: Option<Time>,
    bad: u32,
}

impl Guard {
    pub(super) fn new(marks: Marks) -> Guard {
        Guard { marks, ..Guard::default() }
    }

    /// Judges a look; learns from it where every setting is as it was found.
    pub(super) fn judge(&mut self, at: Time, figures: &Foreground, as_found: bool) -> Users {
        // What the first look counts may be of any time.
        let over = self.looked.replace(at).map(|looked| at - looked);
        if as_found {
            self.cpu.learn(figures.cpu);
            if let Some(over) = over {
                self.refused.learn(figures.rejected, over);
                self.trips.learn(figures.tripped, over);
                self.learned = self.learned.saturating_add(1);
            }
        }
        let bad = failed(figures)
            .or_else(|| self.more_often(figures, over?))
            .or_else(|| self.amiss(figures).map(|why| Bad { why, at_once: false }));
        if as_found && bad.is_none() {
            self.searches.learn(figures.search_ms);
            self.indexing.learn(figures.indexing_ms);
            self.probes.learn(p99(&figures.probes_ms));
        }
        self.bad = if bad.is_some() { self.bad.saturating_add(1) } else { 0 };
        match bad {
            Some(Bad { why, at_once }) if at_once || self.bad >= LOOKS => Users::Suffer(why),
            Some(Bad { why, .. }) => Users::Uneasy(why),
            None => Users::Fine,
        }
    }

    /// Whether enough was seen to tell what is usual.
    pub(super) fn knows_usual(&self) -> bool {
        self.learned as usize >= BASELINE_LOOKS_MIN
    }

    /// What is usual before anything is changed, in words.
    pub(super) fn usual(&self) -> String {
        const SECOND: Duration = Duration::from_secs(1);
        let refused = match self.refused.count {
            0 => "no request is refused".to_owned(),
            _ => format!("{:.2} requests a second are refused", self.refused.within(SECOND)),
        };
        let trips = match self.trips.count {
            0 => "no breaker trips".to_owned(),
            _ => format!("breakers trip {:.2} times a second", self.trips.within(SECOND)),
        };
        format!("{refused}, and {trips}; users suffer where there is more of either")
    }

    /// Judges anew after something was put back: its effect has to show first.
    pub(super) fn forgive(&mut self) {
        self.bad = 0;
    }

    /// Whether cores stay below their mark even where all that they do becomes so many times as much; not where nobody
    /// knows what they do.
    pub(super) fn has_room(&self, figures: &Foreground, times: f64) -> bool {
        figures.cpu.is_some_and(|cpu| cpu * times <= self.marks.cpu)
    }

    /// What happens more often than it did before anything was changed, counted over this time.
    fn more_often(&self, figures: &Foreground, over: Duration) -> Option<Bad> {
        let more = |count: u64, usual: &Usual, what: String| {
            let (expected, at_once) = (usual.within(over), usual.count == 0);
            let most = if at_once { 0.0 } else { expected * TIMES + MORE };
            let why = match at_once {
                true => what,
                false => format!("{what}, where {expected:.1} were usual before"),
            };
            (count as f64 > most).then_some(Bad { why, at_once })
        };
        let Foreground { rejected, tripped, .. } = figures;
        let refused = format!("{rejected} requests were refused for want of room");
        more(*rejected, &self.refused, refused)
            .or_else(|| more(*tripped, &self.trips, format!("breakers tripped {tripped} times")))
    }

    fn amiss(&self, figures: &Foreground) -> Option<String> {
        let Marks { p99_ms, cpu } = &self.marks;
        let slower = |what: &str, now: Option<f64>, baseline: &Baseline| {
            let (now, was) = (now?, baseline.median()?);
            (now > was * TIMES + MARGIN_MS)
                .then(|| format!("{what} take {}, and took {} before", ms(now), ms(was)))
        };
        let probed = p99(&figures.probes_ms);
        let above = |mark: &f64| {
            let now = probed.filter(|now| now > mark)?;
            Some(format!("the guard's query takes {} at p99, above {}", ms(now), ms(*mark)))
        };
        let of_probe = match p99_ms {
            Some(mark) => above(mark),
            None => slower("the guard's queries", probed, &self.probes),
        };
        // Cores that were as busy before are not busy with what was changed.
        let was_free = self.cpu.median().is_some_and(|was| was <= *cpu);
        let busy = figures.cpu.filter(|now| was_free && now > cpu);
        of_probe
            .or_else(|| slower("searches", figures.search_ms, &self.searches))
            .or_else(|| slower("indexed operations", figures.indexing_ms, &self.indexing))
            .or_else(|| busy.map(|now| format!("a node's cores are {} busy", percent(now))))
            .or_else(|| {
                let share = figures.gc.filter(|share| *share > GC)?;
                Some(format!("a node collects garbage {} of the time", percent(share)))
            })
    }
}

/// Queries of the guard that failed.
fn failed(figures: &Foreground) -> Option<Bad> {
    let Foreground { probes_failed, probe_error, .. } = figures;
    (*probes_failed > 0).then(|| {
        let last = probe_error.as_ref().map_or(String::new(), |why| format!(", the last: {why}"));
        let why = format!("{probes_failed} of the guard's queries failed{last}");
        Bad { why, at_once: true }
    })
}

/// The 99th percentile; of few, the slowest.
fn p99(all: &[f64]) -> Option<f64> {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    let slower = sorted.len() / SLOW_ONE_IN;
    sorted.get(sorted.len().checked_sub(1 + slower)?).copied()
}

fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 10.0 => show_seconds(ms / 1e3),
        ms if ms >= 1.0 => format!("{ms:.1} ms"),
        // No query is answered within less.
        ms => format!("{:.3} ms", ms.max(0.001)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One look a second.
    fn judge(guard: &mut Guard, figures: &Foreground, as_found: bool) -> Users {
        let at = guard.looked.map_or(Time(0), |looked| looked + Duration::from_secs(1));
        guard.judge(at, figures, as_found)
    }

    fn searches(ms: f64) -> Foreground {
        Foreground { search_ms: Some(ms), ..Foreground::default() }
    }

    #[test]
    fn two_bad_looks_are_suffering_and_one_is_not() {
        let mut guard = Guard::new(Marks::default());
        for _ in 0..10 {
            assert_eq!(judge(&mut guard, &searches(10.0), true), Users::Fine);
        }
        assert!(matches!(judge(&mut guard, &searches(40.0), false), Users::Uneasy(_)));
        assert_eq!(judge(&mut guard, &searches(12.0), false), Users::Fine);
        assert!(matches!(judge(&mut guard, &searches(40.0), false), Users::Uneasy(_)));
        let Users::Suffer(why) = judge(&mut guard, &searches(40.0), false) else { panic!() };
        assert_eq!(why, "searches take 40 ms, and took 10 ms before");
    }

    #[test]
    fn what_is_changed_is_not_learned_from() {
        let mut guard = Guard::new(Marks::default());
        (0..10).for_each(|_| drop(judge(&mut guard, &searches(10.0), true)));
        (0..100).for_each(|_| drop(judge(&mut guard, &searches(20.0), false)));
        assert!(matches!(judge(&mut guard, &searches(30.0), false), Users::Uneasy(_)));
    }

    #[test]
    fn refusals_and_trips_that_never_were_and_failed_queries_are_enough_at_once() {
        let mut guard = Guard::new(Marks::default());
        (0..5).for_each(|_| drop(judge(&mut guard, &Foreground::default(), true)));
        let expected = "no request is refused, and no breaker trips; users suffer where there is more of either";
        assert_eq!(guard.usual(), expected);
        let probe_error = Some("no such index".to_owned());
        let failed = Foreground { probes_failed: 2, probe_error, ..Foreground::default() };
        let expected = "2 of the guard's queries failed, the last: no such index";
        assert_eq!(judge(&mut guard, &failed, false), Users::Suffer(expected.to_owned()));
        let refused = Foreground { rejected: 3, ..Foreground::default() };
        let suffer = Users::Suffer("3 requests were refused for want of room".to_owned());
        assert_eq!(judge(&mut guard, &refused, false), suffer);
        let tripped = Foreground { tripped: 1, ..Foreground::default() };
        assert!(matches!(judge(&mut guard, &tripped, false), Users::Suffer(_)));
    }

    /// The trap: of hundreds of nodes one refuses something at any time, and nothing would ever be raised.
    #[test]
    fn of_what_was_refused_before_only_more_counts() {
        let refused = |rejected: u64| Foreground { rejected, ..Foreground::default() };
        let mut guard = Guard::new(Marks::default());
        for look in 0..10 {
            assert_eq!(guard.knows_usual(), look > 3, "{look} looks, and the first counts nothing");
            // What the first look counts may be of hours.
            let figures = refused(if look == 0 { 9000 } else { 4 });
            assert_eq!(judge(&mut guard, &figures, true), Users::Fine, "nothing was changed");
        }
        let usual = guard.usual();
        assert!(usual.starts_with("4.00 requests a second are refused, and no breaker"), "{usual}");
        for _ in 0..100 {
            assert_eq!(judge(&mut guard, &refused(9), false), Users::Fine);
        }
        assert!(matches!(judge(&mut guard, &refused(10), false), Users::Uneasy(_)));
        let Users::Suffer(why) = judge(&mut guard, &refused(10), false) else { panic!() };
        assert_eq!(why, "10 requests were refused for want of room, where 4.0 were usual before");
        // A longer time between two looks has more of what is usual.
        let at = guard.looked.unwrap() + Duration::from_secs(3);
        assert_eq!(guard.judge(at, &refused(24), false), Users::Fine);
        let tripped = Foreground { tripped: 1, ..refused(4) };
        assert!(matches!(judge(&mut guard, &tripped, false), Users::Suffer(_)), "none did before");
    }

    #[test]
    fn a_mark_of_the_users_own_counts_without_a_baseline() {
        let mut guard = Guard::new(Marks { p99_ms: Some(200.0), ..Marks::default() });
        let slow = Foreground { probes_ms: vec![20.0, 30.0, 250.0], ..Foreground::default() };
        assert!(matches!(judge(&mut guard, &slow, true), Users::Uneasy(_)));
        let mut many = vec![20.0; 99];
        many.push(250.0);
        let one_in_a_hundred = Foreground { probes_ms: many, ..Foreground::default() };
        assert_eq!(judge(&mut guard, &one_in_a_hundred, true), Users::Fine);
    }

    #[test]
    fn a_mark_is_told_in_the_same_words_however_small() {
        let marks = Marks { p99_ms: Some(0.001), ..Marks::default() };
        assert_eq!(marks.p99_in_words().as_deref(), Some("0.001 ms"));
        let slow = Foreground { probes_ms: vec![1.62], ..Foreground::default() };
        let Users::Uneasy(why) = judge(&mut Guard::new(marks), &slow, true) else { panic!() };
        assert_eq!(why, "the guard's query takes 1.6 ms at p99, above 0.001 ms");
        assert_eq!(ms(20_000.0), "20.0 s");
    }

    #[test]
    fn cores_that_were_busy_before_are_nobodys_fault() {
        let busy = |cpu: f64| Foreground { cpu: Some(cpu), ..Foreground::default() };
        let mut guard = Guard::new(Marks { cpu: 0.9, ..Marks::default() });
        (0..5).for_each(|_| drop(judge(&mut guard, &busy(0.5), true)));
        assert!(matches!(judge(&mut guard, &busy(0.97), false), Users::Uneasy(_)));
        let mut guard = Guard::new(Marks { cpu: 0.9, ..Marks::default() });
        (0..5).for_each(|_| drop(judge(&mut guard, &busy(0.99), true)));
        assert_eq!(judge(&mut guard, &busy(0.99), false), Users::Fine);
    }
}
