//! What loads mean: figures over laps, changes between variants with what the laps support, and whether the driver was
//! the limit instead of the cluster.

use std::collections::BTreeMap;

use record::names::listed;
use record::text::visible_line;
use record::{DriverUse, LoadFigures, Percentiles, RunDir};

use crate::difference::{Better, Difference};
use crate::headline::{Headline, WORTH_TELLING, named};
use crate::stats::{mean, median};
use crate::variant::VariantLoad;
use crate::words::{counted, three_digits, times};

/// A driver that uses so much of a core has no more to give.
const SATURATED: f64 = 0.9;
/// A driver that uses a core or waits for one for so much of the time has no more to give either.
const STARVED: f64 = 0.95;
/// Rates of fewer requests, or documents of bulks, are not set against each other: a 99th percentile needs as many.
const TELLING: u64 = 100;
/// Late starts above this share are worth a sentence.
const LATE: f64 = 0.01;
/// Of fewer starts none are called late because of the driver: what is sent once is often late once.
const STARTS: u64 = 10;

/// How the figures of several laps become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Median,
    Least,
    Most,
    Mean,
}

/// A figure of a load.
#[derive(Debug)]
pub struct Metric {
    /// Its name, as the field has it: `50th percentile latency`.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Whether variants are compared by it.
    pub compared: bool,
    /// Whether runs are compared by it.
    pub between_runs: bool,
    /// Which of two is the better one.
    pub better: Better,
    over: Over,
    of: fn(&LoadFigures) -> Option<f64>,
}

impl Metric {
    const fn new(
        name: &'static str,
        unit: &'static str,
        of: fn(&LoadFigures) -> Option<f64>,
    ) -> Self {
        let (over, better) = (Over::Median, Better::Less);
        Metric { name, unit, compared: false, between_runs: false, better, over, of }
    }

    const fn compared(self) -> Self {
        Metric { compared: true, between_runs: true, ..self }
    }

    const fn between_runs(self) -> Self {
        Metric { between_runs: true, ..self }
    }

    const fn more_is_better(self) -> Self {
        Metric { better: Better::More, ..self }
    }

    const fn over(self, over: Over) -> Self {
        Metric { over, ..self }
    }

    /// The figure of a lap; none where nothing was measured, in no time, or a percentile has too few requests.
    pub fn of(&self, lap: &LoadFigures) -> Option<f64> {
        let is_told = |value: &f64| value.is_finite() && lap.requests >= requests_needed(self.name);
        (self.of)(lap).filter(is_told)
    }
}

/// From how many requests on a figure says anything, as Rally has it: a percentile needs as many.
fn requests_needed(name: &str) -> u64 {
    match name.split("th percentile").next() {
        Some("99.99") => 10_000,
        Some("99.9") => 1000,
        Some("99") => 100,
        Some("90") => 10,
        Some("50") => 2,
        _ => 0,
    }
}

fn latency(lap: &LoadFigures, of: fn(&Percentiles) -> f64) -> Option<f64> {
    lap.latency.as_ref().map(of)
}

fn service(lap: &LoadFigures, of: fn(&Percentiles) -> f64) -> Option<f64> {
    lap.service_time.as_ref().map(of)
}

/// No number where an earlier build did not write it, which is told as none.
fn p99_99_ms(times: &Percentiles) -> f64 {
    times.p99_99_ms.unwrap_or(f64::NAN)
}

/// Every figure, in the order of tables.
pub static METRICS: [Metric; 18] = [
    Metric::new("Min Throughput", "ops/s", |l| Some(l.throughput.min_per_s))
        .over(Over::Least)
        .more_is_better(),
    Metric::new("Mean Throughput", "ops/s", |l| Some(l.throughput.mean_per_s)).more_is_better(),
    Metric::new("Median Throughput", "ops/s", |l| Some(l.throughput.median_per_s))
        .compared()
        .more_is_better(),
    Metric::new("Max Throughput", "ops/s", |l| Some(l.throughput.max_per_s))
        .over(Over::Most)
        .more_is_better(),
    Metric::new("Documents", "docs/s", |l| {
        (l.documents > 0).then(|| l.documents as f64 / l.seconds)
    })
    .between_runs()
    .more_is_better(),
    Metric::new("50th percentile latency", "ms", |l| latency(l, |p| p.p50_ms)).compared(),
    Metric::new("90th percentile latency", "ms", |l| latency(l, |p| p.p90_ms)).compared(),
    Metric::new("99th percentile latency", "ms", |l| latency(l, |p| p.p99_ms)).compared(),
    Metric::new("99.9th percentile latency", "ms", |l| latency(l, |p| p.p99_9_ms)),
    Metric::new("99.99th percentile latency", "ms", |l| latency(l, p99_99_ms)),
    Metric::new("100th percentile latency", "ms", |l| latency(l, |p| p.p100_ms)).over(Over::Most),
    Metric::new("50th percentile service time", "ms", |l| service(l, |p| p.p50_ms)).between_runs(),
    Metric::new("90th percentile service time", "ms", |l| service(l, |p| p.p90_ms)),
    Metric::new("99th percentile service time", "ms", |l| service(l, |p| p.p99_ms)).between_runs(),
    Metric::new("99.9th percentile service time", "ms", |l| service(l, |p| p.p99_9_ms)),
    Metric::new("99.99th percentile service time", "ms", |l| service(l, p99_99_ms)),
    Metric::new("100th percentile service time", "ms", |l| service(l, |p| p.p100_ms))
        .over(Over::Most),
    Metric::new("error rate", "%", |l| Some(l.error_rate() * 100.0))
        .over(Over::Mean)
        .between_runs(),
];

/// One figure over laps.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Which figure.
    pub metric: &'static Metric,
    /// Its value in each lap.
    pub laps: Vec<Option<f64>>,
    /// Its value over all laps: the median, of extremes the extreme, of the error rate the mean.
    pub total: Option<f64>,
}

/// Every figure that one lap at least has.
pub fn figures(laps: &[LoadFigures]) -> Vec<Figure> {
    let figure = |metric: &'static Metric| {
        let of_laps: Vec<Option<f64>> = laps.iter().map(|lap| metric.of(lap)).collect();
        let known: Vec<f64> = of_laps.iter().flatten().copied().collect();
        let total = match metric.over {
            Over::Median => median(&known),
            Over::Least => known.iter().copied().reduce(f64::min),
            Over::Most => known.iter().copied().reduce(f64::max),
            Over::Mean => mean(&known),
        };
        Figure { metric, laps: of_laps, total }
    };
    METRICS.iter().map(figure).filter(|figure| figure.total.is_some()).collect()
}

/// The value over all laps of the figure with this name, see [`Figure::total`]; none where no lap has it.
pub fn total(laps: &[LoadFigures], name: &str) -> Option<f64> {
    figures(laps).iter().find(|figure| figure.metric.name == name)?.total
}

/// How a figure changes from one variant to another.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which figure.
    pub metric: &'static Metric,
    /// From the one to the other, in per cent of the one.
    pub percent: f64,
    /// All that the laps tell of it.
    pub difference: Difference,
}

/// The figures that variants are compared by.
pub fn compared() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| metric.compared)
}

/// The changes of the figures that variants are compared by. Laps are what is repeated: requests of one lap share its
/// fate, so they are not counted as repetitions.
pub fn changes(base: &[LoadFigures], other: &[LoadFigures], seed: u64) -> Vec<Change> {
    compared().filter_map(|metric| change_of(metric, base, other, seed)).collect()
}

/// How one figure changes; none where a variant does not have it.
pub fn change_of(
    metric: &'static Metric,
    base: &[LoadFigures],
    other: &[LoadFigures],
    seed: u64,
) -> Option<Change> {
    let of = |laps: &[LoadFigures]| -> Vec<f64> {
        laps.iter().filter_map(|lap| metric.of(lap)).collect()
    };
    let difference = Difference::between(&of(base), &of(other), seed)?;
    let percent = difference.percent.filter(|_| difference.base > 0.0)?;
    Some(Change { metric, percent, difference })
}

/// What stands between the figures and the cluster, a sentence each; empty where nothing does.
pub fn warnings(laps: &[LoadFigures]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |sentence: Option<String>| found.extend(sentence);
    // The worst lap speaks for all.
    let drivers = || laps.iter().filter_map(|lap| lap.driver);
    let used = drivers().map(|driver| driver.cpu_share).reduce(f64::max).unwrap_or(0.0);
    let wanted = |driver: &DriverUse| driver.cpu_share + driver.starved_share;
    add((used >= SATURATED).then(|| {
        format!(
            "The driver used {:.0} % of a core: it, not the cluster, was the limit. Give it more threads \
             (`narrows load --threads 2`, or threads = 2 in a plan's [load]; a track has one), or send from several \
             machines.",
            used * 100.0
        )
    }));
    let starved = drivers().max_by(|a, b| wanted(a).total_cmp(&wanted(b)));
    add(starved.filter(|driver| used < SATURATED && wanted(driver) >= STARVED).map(|driver| {
        format!(
            "The driver used {:.0} % of a core and waited for one {:.0} % of the time: this machine, not the cluster, \
             was the limit.",
            driver.cpu_share * 100.0,
            driver.starved_share * 100.0
        )
    }));
    add(laps.iter().any(|lap| lap.only_warm_up).then(|| {
        "It ended within its warm-up: the figures are those of the warm-up. Fewer documents need a shorter one.".to_owned()
    }));
    let share = |count: fn(&LoadFigures) -> u64| {
        let shares = laps.iter().map(|lap| count(lap) as f64 / lap.requests.max(1) as f64);
        shares.reduce(f64::max).unwrap_or(0.0)
    };
    let slipped = share(|lap| if lap.requests < STARTS { 0 } else { lap.slipped_starts });
    add((slipped > LATE).then(|| {
        format!(
            "{:.0} % of the starts were over a millisecond late though a client was free: the driver, not the cluster, \
             was the limit.",
            slipped * 100.0
        )
    }));
    let open = laps.iter().any(|lap| lap.rate_per_s.is_some());
    let busy = share(|lap| lap.busy_starts);
    let clients = match laps.first().map_or(0, |lap| lap.clients) {
        1 => "the only client".to_owned(),
        clients => format!("all {clients} clients"),
    };
    add((open && busy > LATE).then(|| {
        format!(
            "{:.0} % of the starts found {clients} busy and waited; the latency counts that. The cluster is slower \
             than the rate, or needs more clients (`narrows load --clients`, or clients in a plan's [load] or in a \
             track's task).",
            busy * 100.0
        )
    }));
    found
}

/// What one load came to.
pub fn headline(laps: &[LoadFigures]) -> Headline {
    // Below a second with the digits of the table, then as every time.
    let time = |ms: f64| match ms < 999.5 {
        true => format!("{} ms", three_digits(ms)),
        false => record::units::show_seconds(ms / 1e3),
    };
    let Some(first) = laps.first() else {
        return Headline::from("Nothing was measured".to_owned());
    };
    let errors = total(laps, "error rate").filter(|rate| *rate > 0.0);
    if laps.iter().all(|lap| lap.latency.is_none()) && errors.is_some() {
        return Headline::from(format!(
            "{}: no request was answered as it should",
            first.operation
        ));
    }
    let rate = total(laps, "Mean Throughput").map_or_else(|| "-".to_owned(), three_digits);
    let mut said = Headline::from(format!("{}: {rate} requests a second", first.operation));
    if let Some(rate) = errors.map(three_digits) {
        said = said
            .with(&format!(", {rate} % errors"), format!("{rate} % of the requests had errors."));
    }
    for (share, subject, name) in [
        ("half of them", "Half of the requests", "50th percentile latency"),
        ("99 %", "99 % of the requests", "99th percentile latency"),
    ] {
        if let Some(time) = total(laps, name).map(time) {
            let below = format!("{subject} took {time} at most.");
            said = said.with(&format!(", {share} within {time}"), below);
        }
    }
    said
}

/// Pairs of a load and its baseline, the baseline first: the one that the plan names, or where it names none, the first
/// variant with the operation.
pub fn pairs(loads: &[VariantLoad]) -> Vec<(&VariantLoad, &VariantLoad)> {
    let says = loads.iter().any(|load| load.baseline.is_some());
    let base = |load: &VariantLoad| {
        let same = |other: &&VariantLoad| other.operation == load.operation;
        match &load.baseline {
            Some(variant) => loads.iter().filter(same).find(|other| other.variant == *variant),
            None if says => None,
            None => loads.iter().find(same),
        }
    };
    let pair = |load| Some((base(load)?, load)).filter(|(base, _)| base.variant != load.variant);
    loads.iter().filter_map(pair).collect()
}

/// Loads that are compared with each other.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// What their names have in common before a colon: `1 replica` of `1 replica: none` and `1 replica: ARS`. Empty
    /// where they have nothing in common.
    pub name: &'a str,
    /// Each load, with the part of its name that tells it from the others. The one that the others are compared with
    /// comes first.
    pub loads: Vec<(&'a str, &'a VariantLoad)>,
}

/// The loads of a run: a case for each that others are compared with, and for each that stands alone.
pub fn cases(loads: &[VariantLoad]) -> Vec<Case<'_>> {
    let pairs = pairs(loads);
    let others = |of: &VariantLoad| -> Vec<&VariantLoad> {
        pairs.iter().filter(|(base, _)| std::ptr::eq(*base, of)).map(|(_, other)| *other).collect()
    };
    let is_compared =
        |load: &VariantLoad| pairs.iter().any(|(_, other)| std::ptr::eq(*other, load));
    let mut cases = Vec::new();
    for base in loads {
        let others = others(base);
        if !others.is_empty() || !is_compared(base) {
            cases.push(Case::of(base, others));
        }
    }
    cases
}

impl<'a> Case<'a> {
    fn of(base: &'a VariantLoad, others: Vec<&'a VariantLoad>) -> Self {
        let all = || std::iter::once(base).chain(others.iter().copied());
        let own = |load: &'a VariantLoad, name: &str| {
            load.variant.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "))
        };
        let name = base.variant.split_once(": ").map_or("", |(name, _)| name);
        let shared: Option<Vec<_>> = all().map(|load| Some((own(load, name)?, load))).collect();
        match shared {
            Some(loads) if !name.is_empty() => Case { name, loads },
            _ => {
                Case { name: "", loads: all().map(|load| (load.variant.as_str(), load)).collect() }
            }
        }
    }
}

/// The finding of a run with several variants: where the throughput differs most from what it is compared with.
pub(crate) fn headline_of_variants(loads: &[VariantLoad]) -> Headline {
    let Some(first) = loads.first() else { return headline(&[]) };
    let throughput = |load: &VariantLoad| {
        let of = |lap: &LoadFigures| lap.throughput.median_per_s;
        median(&load.laps.iter().map(of).collect::<Vec<f64>>()).filter(|rate| *rate > 0.0)
    };
    let sent = |load: &VariantLoad| -> u64 {
        load.laps.iter().map(|lap| lap.requests.max(lap.documents)).sum()
    };
    let mut most: Option<(f64, Headline)> = None;
    let mut few: Option<u64> = None;
    for case in cases(loads) {
        let Some(((base_label, base), others)) = case.loads.split_first() else { continue };
        for (_, other) in others {
            let ratio = throughput(base).zip(throughput(other)).map(|(base, other)| other / base);
            let Some(ratio) = ratio else { continue };
            let least = sent(base).min(sent(other));
            if least < TELLING {
                few = Some(few.map_or(least, |few| few.min(least)));
                continue;
            }
            if most.as_ref().is_none_or(|(found, _)| ratio.ln().abs() > found.ln().abs()) {
                let case =
                    if case.name.is_empty() { String::new() } else { format!("{}: ", case.name) };
                let times = times(ratio);
                let is_as_good = |(_, one): &&(&str, &VariantLoad)| {
                    let own = throughput(base).zip(throughput(one)).map(|(base, one)| one / base);
                    own.is_some_and(|own| (own / ratio).ln().abs() < WORTH_TELLING.ln())
                };
                let alike = others.iter().filter(is_as_good).map(|(label, _)| named(label));
                let names: Vec<String> = alike.collect();
                let (label, has) = (listed(&names), if names.len() > 1 { "have" } else { "has" });
                let said = Headline::of(
                    format!("{case}{label} {has} {times} the throughput of {}", named(base_label)),
                    [format!("{case}{label}: {times} the throughput")],
                );
                most = Some((ratio, said));
            }
        }
    }
    match most {
        None => match few {
            None => headline(&first.laps),
            Some(few) => {
                let text = format!(
                    "Too few requests to tell variants apart: {few} of one, {TELLING} are needed"
                );
                let details = vec!["A larger --scale or more laps send more.".to_owned()];
                Headline { text, details }
            }
        },
        Some((ratio, said)) if ratio.max(1.0 / ratio) >= WORTH_TELLING => said,
        Some(_) => {
            let text = "No throughput differs by 5 % or more from what it is compared with";
            let untold = few.map(|few| {
                let requests = counted(few, "request", "requests");
                format!("A variant of {requests} is not compared: {TELLING} are needed.")
            });
            Headline { text: text.to_owned(), details: untold.into_iter().collect() }
        }
    }
}

/// The tasks of a track: how many there are, which of them had errors, and how fast documents were indexed.
pub(crate) fn headline_of_track(challenge: &str, loads: &[VariantLoad]) -> Headline {
    let has_errors = |load: &&VariantLoad| load.laps.iter().any(|lap| lap.failed() > 0);
    let failed: Vec<&str> =
        loads.iter().filter(has_errors).map(|load| load.operation.as_str()).collect();
    let errors = match failed.as_slice() {
        [] => "without errors".to_owned(),
        [one] => format!("errors in {one}"),
        [first, more @ ..] => format!("errors in {first} and {} more", more.len()),
    };
    let rate = |load: &VariantLoad| {
        let documents: u64 = load.laps.iter().map(|lap| lap.documents).sum();
        let of = |lap: &LoadFigures| lap.documents as f64 / lap.seconds;
        let rates: Vec<f64> = load.laps.iter().filter(|lap| lap.seconds > 0.0).map(of).collect();
        Some((documents, median(&rates).filter(|rate| *rate > 0.0)?, load.operation.clone()))
    };
    let most = loads.iter().filter_map(rate).max_by_key(|(documents, _, _)| *documents);
    let said =
        Headline::from(format!("{challenge}: {}, {errors}", counted(loads.len(), "task", "tasks")));
    let Some((_, per_s, task)) = most else { return said };
    let indexed = format!("{task} indexed {} documents a second", three_digits(per_s));
    said.with(&format!("; {indexed}"), format!("{indexed}."))
}

/// The tasks of a track, or the operations of a plan, that had nothing but errors in all variants and laps, each with
/// the most frequent of them; none where there is no such one.
pub fn only_errors(run: &RunDir) -> Option<String> {
    let mut tasks: BTreeMap<&str, Vec<&LoadFigures>> = BTreeMap::new();
    for load in run.rows.iter().flat_map(|row| &row.loads) {
        tasks.entry(&load.operation).or_default().push(load);
    }
    let is_lost = |load: &&LoadFigures| load.requests > 0 && load.failed() == load.requests;
    tasks.retain(|_, laps| laps.iter().all(is_lost));
    let lost = tasks.iter().map(|(task, laps)| {
        let most = laps.iter().flat_map(|load| &load.errors).max_by_key(|(_, count)| **count);
        let kind = most.map_or("", |(kind, _)| kind.as_str());
        let reason = laps.iter().find_map(|load| load.reasons.get(kind));
        let reason = reason.map_or_else(String::new, |text| format!(": {}", visible_line(text)));
        format!("{task} ({kind}{reason})")
    });
    let lost: Vec<String> = lost.collect();
    (!lost.is_empty()).then(|| lost.join(", "))
}

#[cfg(test)]
mod tests;
