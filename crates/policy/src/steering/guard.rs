//! Whether the cluster's users suffer.

use std::collections::VecDeque;

use super::look::Foreground;

/// Users suffer after so many bad looks in a row: one may be chance.
const LOOKS: u32 = 2;
/// Looks that the baseline is the median of.
const BASELINE_LOOKS: usize = 60;
/// With fewer looks there is no baseline.
const BASELINE_LOOKS_MIN: usize = 3;
/// Of many queries of the guard one in a hundred may be slower than the mark.
const SLOW_ONE_IN: usize = 100;

/// From where on users suffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// The 99th percentile of the guard's queries, in milliseconds; none where only their baseline counts.
    pub p99_ms: Option<f64>,
    /// Use of a node's cores, 0 to 1.
    pub cpu: f64,
    /// Share of the time in garbage collections.
    pub gc: f64,
    /// By how many times the mean time of a search, or of an operation that is indexed, may exceed what it was before
    /// anything was changed.
    pub times: f64,
    /// A margin above that, in milliseconds, which noise on fast operations stays under.
    pub margin_ms: f64,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { p99_ms: None, cpu: 0.95, gc: 0.2, times: 2.0, margin_ms: 5.0 }
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
    bad: u32,
}

impl Guard {
    pub(super) fn new(marks: Marks) -> Guard {
        Guard { marks, ..Guard::default() }
    }

    /// Judges a look; learns from it where every setting is as it was found.
    pub(super) fn judge(&mut self, figures: &Foreground, as_found: bool) -> Users {
        let grave = grave(figures);
        let bad = grave.clone().or_else(|| self.amiss(figures));
        if as_found {
            self.cpu.learn(figures.cpu);
        }
        if as_found && bad.is_none() {
            self.searches.learn(figures.search_ms);
            self.indexing.learn(figures.indexing_ms);
            self.probes.learn(p99(&figures.probes_ms));
        }
        self.bad = if bad.is_some() { self.bad.saturating_add(1) } else { 0 };
        match bad {
            Some(why) if grave.is_some() || self.bad >= LOOKS => Users::Suffer(why),
            Some(why) => Users::Uneasy(why),
            None => Users::Fine,
        }
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

    fn amiss(&self, figures: &Foreground) -> Option<String> {
        let Marks { p99_ms, cpu, gc, times, margin_ms } = &self.marks;
        let slower = |what: &str, now: Option<f64>, baseline: &Baseline| {
            let (now, was) = (now?, baseline.median()?);
            (now > was * times + margin_ms)
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
                let share = figures.gc.filter(|share| share > gc)?;
                Some(format!("a node collects garbage {} of the time", percent(share)))
            })
    }
}

/// What is bad enough without a second look, in words.
fn grave(figures: &Foreground) -> Option<String> {
    let Foreground { rejected, tripped, probes_failed, probe_error, .. } = figures;
    if *rejected > 0 {
        return Some(format!("{rejected} requests were refused for want of room"));
    }
    if *tripped > 0 {
        return Some(format!("breakers tripped {tripped} times"));
    }
    (*probes_failed > 0).then(|| {
        let last = probe_error.as_ref().map_or(String::new(), |why| format!(", the last: {why}"));
        format!("{probes_failed} of the guard's queries failed{last}")
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
    if ms >= 10.0 { format!("{ms:.0} ms") } else { format!("{ms:.1} ms") }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searches(ms: f64) -> Foreground {
        Foreground { search_ms: Some(ms), ..Foreground::default() }
    }

    #[test]
    fn two_bad_looks_are_suffering_and_one_is_not() {
        let mut guard = Guard::new(Marks::default());
        for _ in 0..10 {
            assert_eq!(guard.judge(&searches(10.0), true), Users::Fine);
        }
        assert!(matches!(guard.judge(&searches(40.0), false), Users::Uneasy(_)));
        assert_eq!(guard.judge(&searches(12.0), false), Users::Fine);
        assert!(matches!(guard.judge(&searches(40.0), false), Users::Uneasy(_)));
        let Users::Suffer(why) = guard.judge(&searches(40.0), false) else { panic!() };
        assert_eq!(why, "searches take 40 ms, and took 10 ms before");
    }

    #[test]
    fn what_is_changed_is_not_learned_from() {
        let mut guard = Guard::new(Marks::default());
        (0..10).for_each(|_| drop(guard.judge(&searches(10.0), true)));
        (0..100).for_each(|_| drop(guard.judge(&searches(20.0), false)));
        assert!(matches!(guard.judge(&searches(30.0), false), Users::Uneasy(_)));
    }

    #[test]
    fn refusals_and_trips_are_enough_at_once() {
        let mut guard = Guard::new(Marks::default());
        let probe_error = Some("no such index".to_owned());
        let failed = Foreground { probes_failed: 2, probe_error, ..Foreground::default() };
        let expected = "2 of the guard's queries failed, the last: no such index";
        assert_eq!(guard.judge(&failed, false), Users::Suffer(expected.to_owned()));
        let refused = Foreground { rejected: 3, ..Foreground::default() };
        assert!(matches!(guard.judge(&refused, false), Users::Suffer(why) if why.contains('3')));
    }

    #[test]
    fn a_mark_of_the_users_own_counts_without_a_baseline() {
        let mut guard = Guard::new(Marks { p99_ms: Some(200.0), ..Marks::default() });
        let slow = Foreground { probes_ms: vec![20.0, 30.0, 250.0], ..Foreground::default() };
        assert!(matches!(guard.judge(&slow, true), Users::Uneasy(_)));
        let mut many = vec![20.0; 99];
        many.push(250.0);
        let one_in_a_hundred = Foreground { probes_ms: many, ..Foreground::default() };
        assert_eq!(guard.judge(&one_in_a_hundred, true), Users::Fine);
    }

    #[test]
    fn cores_that_were_busy_before_are_nobodys_fault() {
        let busy = |cpu: f64| Foreground { cpu: Some(cpu), ..Foreground::default() };
        let mut guard = Guard::new(Marks { cpu: 0.9, ..Marks::default() });
        (0..5).for_each(|_| drop(guard.judge(&busy(0.5), true)));
        assert!(matches!(guard.judge(&busy(0.97), false), Users::Uneasy(_)));
        let mut guard = Guard::new(Marks { cpu: 0.9, ..Marks::default() });
        (0..5).for_each(|_| drop(guard.judge(&busy(0.99), true)));
        assert_eq!(guard.judge(&busy(0.99), false), Users::Fine);
    }
}
