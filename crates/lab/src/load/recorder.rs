//! What came of the requests of a load. Pure.
//!
//! Times are kept in HDR histograms of three significant digits: a figure is at most 0.1 % above the exact one,
//! whatever its size, and a million requests take no more room than a hundred.

use std::cmp::Ordering;
use std::time::Duration;

use hdrhistogram::Histogram;
use record::{LoadFigures, Percentiles};
use world::Time;

use super::failure::Failure;
use super::samples::Samples;
use super::windows::Windows;
use super::{Arrival, Load, Starts};

/// A start that is later than this although a client was free counts as the driver's delay.
const SLIPPED: Duration = Duration::from_millis(1);

/// One request and what came of it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The host that it was sent to, by its number.
    pub host: usize,
    /// When it was to start.
    pub intended: Time,
    /// When a client was free for it, and a host could be reached.
    pub free: Time,
    /// When it was sent.
    pub started: Time,
    /// When its answer had come, or it was given up.
    pub ended: Time,
    /// Whether it is measured; otherwise it belongs to the warm-up.
    pub measured: bool,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// Documents that it indexed.
    pub documents: u64,
    /// What came of it.
    pub outcome: Result<(), Failure>,
}

impl Sample {
    /// Whether the driver delayed it, and not the cluster.
    fn has_slipped(&self, arrival: Arrival) -> bool {
        let delay = self.started - self.free.max(self.intended);
        // A client that is never idle is late by whatever the driver needs to make a request. That counts where it
        // takes longer than a good answer; how long the cluster takes is not known from a refusal, which may be fast.
        let idle = arrival != Arrival::Closed && self.free <= self.intended;
        let longer = self.outcome.is_ok() && delay > self.ended - self.started;
        delay > SLIPPED && (idle || longer)
    }
}

/// Records samples; the figures come at the end.
#[derive(Clone, Debug)]
pub struct Recorder {
    arrival: Arrival,
    /// When the measured part began, and when it is to end, as soon as that is known.
    begin: Option<Time>,
    end: Option<Time>,
    last_ended: Time,
    latency: Histogram<u64>,
    service_time: Histogram<u64>,
    /// Some of the requests that both of them count.
    samples: Samples,
    hosts: Vec<u64>,
    windows: Windows,
    /// What is counted as it comes; the other figures are made at the end.
    counted: LoadFigures,
    /// What the warm-up was like, until the measured part begins: it counts where the load ends before.
    warm_up: Option<Box<Recorder>>,
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are within the library's bounds")
}

impl Recorder {
    /// A recorder for a load.
    pub fn new(load: &Load) -> Self {
        Recorder {
            arrival: load.arrival,
            begin: None,
            end: None,
            last_ended: Time(0),
            latency: histogram(),
            service_time: histogram(),
            samples: Samples::none(),
            hosts: vec![0; load.hosts.len()],
            windows: Windows::of(load.window),
            counted: LoadFigures::default(),
            warm_up: None,
        }
    }

    /// Learns when the measured part begins and ends, as soon as `starts` knows.
    pub fn follow(&mut self, starts: &Starts) {
        if self.begin.is_none() {
            self.begin = starts.begin();
            self.end = starts.end();
            if self.begin.is_some() {
                self.warm_up = None;
            }
        }
    }

    /// Records one request.
    pub fn record(&mut self, sample: &Sample) {
        if !sample.measured && self.begin.is_none() {
            self.record_warm_up(sample);
        }
        if sample.outcome.is_ok() {
            self.count_answer(sample);
        }
        if !sample.measured {
            return;
        }
        self.last_ended = self.last_ended.max(sample.ended);
        self.counted.requests += 1;
        if let Some(host) = self.hosts.get_mut(sample.host) {
            *host += 1;
        }
        self.counted.answer_bytes += sample.bytes;
        if sample.has_slipped(self.arrival) {
            self.counted.slipped_starts += 1;
        } else if sample.free > sample.intended {
            self.counted.busy_starts += 1;
        }
        match &sample.outcome {
            Ok(()) => self.counted.documents += sample.documents,
            Err(failure) => self.count_failure(failure),
        }
        if matches!(sample.outcome, Ok(()) | Err(Failure::NoAnswer)) {
            let latency = self.latency_of(sample);
            let service_time = sample.ended - sample.started;
            // Histograms grow as they need to, so recording cannot fail.
            let _ = self.latency.record(nanos(latency));
            let _ = self.service_time.record(nanos(service_time));
            self.samples.add(sample.started, latency, service_time, sample.outcome.is_err());
        }
    }

    fn count_failure(&mut self, failure: &Failure) {
        let kind = failure.to_string();
        if let Failure::Refused { reason, .. } = failure
            && !reason.is_empty()
        {
            self.counted.reasons.entry(kind.clone()).or_insert_with(|| reason.clone());
        }
        *self.counted.errors.entry(kind).or_default() += 1;
    }

    fn record_warm_up(&mut self, sample: &Sample) {
        // Where there is none yet, nothing else is recorded either.
        let mut warm_up = self
            .warm_up
            .take()
            .unwrap_or_else(|| Box::new(Recorder { begin: Some(sample.started), ..self.clone() }));
        // The first that was sent need not be the first that is answered.
        warm_up.begin = warm_up.begin.min(Some(sample.started));
        warm_up.record(&Sample { measured: true, ..sample.clone() });
        self.warm_up = Some(warm_up);
    }

    /// From when it was due; in a closed loop that is when it is sent.
    fn latency_of(&self, sample: &Sample) -> Duration {
        let due = match self.arrival {
            Arrival::Closed => sample.started,
            _ => sample.intended,
        };
        sample.ended - due
    }

    /// Records a start that was due and not sent: it counts as a failed request, with the time until `now`.
    fn record_unsent(&mut self, intended: Time, now: Time) {
        self.counted.requests += 1;
        self.counted.busy_starts += 1;
        *self.counted.errors.entry(Failure::NotSent.to_string()).or_default() += 1;
        let _ = self.latency.record(nanos(now - intended));
    }

    /// As [`Recorder::close`], once what was due and not sent is recorded.
    pub(crate) fn close_after(&mut self, starts: &mut Starts, now: Time) {
        while let Some(intended) = starts.next_unsent() {
            self.record_unsent(intended, now);
        }
        self.close(now);
    }

    /// Counts a good answer in its window, also that of a request of the warm-up: in turn some measured requests have
    /// no answer yet at the end.
    fn count_answer(&mut self, sample: &Sample) {
        let Some(begin) = self.begin.filter(|begin| *begin <= sample.ended) else { return };
        if self.end.is_some_and(|end| sample.ended > end) {
            return;
        }
        self.windows.count(sample.ended - begin, self.latency_of(sample));
    }

    /// Everything has ended, at `now`: the length of the measured part is known, and which windows are whole.
    pub fn close(&mut self, now: Time) {
        if self.begin.is_none()
            && let Some(warm_up) = self.warm_up.take()
        {
            *self = *warm_up;
            self.counted.only_warm_up = true;
        }
        let Some(begin) = self.begin else { return };
        let end = self.end.map_or(self.last_ended, |end| end.min(now));
        self.counted.seconds = (end - begin).as_secs_f64();
        self.windows.close(end - begin);
    }

    /// How much it has to tell, once it is closed: nothing, a warm-up, or what was measured.
    fn rank(&self) -> u8 {
        match (self.begin, self.counted.only_warm_up) {
            (None, _) => 0,
            (Some(_), true) => 1,
            (Some(_), false) => 2,
        }
    }

    /// Adds what another driver of the same load recorded at the same time. Both are closed. Where one has measured
    /// and the other ended in its warm-up, or sent nothing, the figures are those of the first.
    pub fn add(&mut self, other: &Recorder) {
        match self.rank().cmp(&other.rank()) {
            Ordering::Less => return self.clone_from(other),
            Ordering::Greater => return,
            Ordering::Equal => {}
        }
        let _ = self.latency.add(&other.latency);
        let _ = self.service_time.add(&other.service_time);
        self.samples.merge(&other.samples);
        self.hosts.iter_mut().zip(&other.hosts).for_each(|(own, theirs)| *own += theirs);
        self.windows.add(&other.windows);
        let (own, theirs) = (&mut self.counted, &other.counted);
        own.requests += theirs.requests;
        for (kind, count) in &theirs.errors {
            *own.errors.entry(kind.clone()).or_default() += count;
        }
        for (kind, reason) in &theirs.reasons {
            own.reasons.entry(kind.clone()).or_insert_with(|| reason.clone());
        }
        own.answer_bytes += theirs.answer_bytes;
        own.documents += theirs.documents;
        own.busy_starts += theirs.busy_starts;
        own.slipped_starts += theirs.slipped_starts;
        own.seconds = own.seconds.max(theirs.seconds);
    }

    /// The figures of an operation that was sent as `load` says.
    pub fn figures(&self, operation: &str, load: &Load) -> LoadFigures {
        let hosts = load.hosts.iter().cloned().zip(self.hosts.iter().copied());
        LoadFigures {
            operation: operation.to_owned(),
            clients: load.clients,
            rate_per_s: load.arrival.rate_per_s(),
            throughput: self.windows.throughput(self.counted.seconds),
            latency: percentiles(&self.latency),
            service_time: percentiles(&self.service_time),
            hosts: hosts.collect(),
            samples: self.begin.map_or_else(Vec::new, |begin| self.samples.since(begin)),
            ..self.counted.clone()
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn percentiles(times: &Histogram<u64>) -> Option<Percentiles> {
    let at = |share: f64| times.value_at_quantile(share) as f64 / 1e6;
    (!times.is_empty()).then(|| Percentiles {
        mean_ms: times.mean() / 1e6,
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p99_ms: at(0.99),
        p99_9_ms: at(0.999),
        p99_99_ms: Some(at(0.9999)),
        p100_ms: times.max() as f64 / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::load::{Extent, Next};

    fn load(measured: Extent) -> Load {
        Load::closed(vec!["a:9200".to_owned(), "b:9200".to_owned()], 4, measured, 7)
    }

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn sample(start_ms: u64, end_ms: u64) -> Sample {
        Sample {
            host: 0,
            intended: ms(start_ms),
            free: ms(start_ms),
            started: ms(start_ms),
            ended: ms(end_ms),
            measured: true,
            bytes: 10,
            documents: 0,
            outcome: Ok(()),
        }
    }

    /// The starts of a load whose measured part begins at `begin_ms`.
    fn starts(load: &Load, begin_ms: u64) -> Starts {
        let mut starts = Starts::new(load, ms(0));
        assert_ne!(starts.next(ms(begin_ms)), Next::End);
        starts
    }

    fn recorder(load: &Load, begin_ms: u64) -> Recorder {
        let mut recorder = Recorder::new(load);
        recorder.follow(&starts(load, begin_ms));
        recorder
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let load = load(Extent::Requests(1000));
        let mut recorder = recorder(&load, 0);
        for n in 1..=1000 {
            recorder.record(&sample(0, n));
        }
        recorder.close(ms(1000));
        let latency = recorder.figures("x", &load).latency.unwrap();
        let near =
            |found: f64, exact: f64| assert!((found / exact - 1.0).abs() < 1e-3, "{found} {exact}");
        near(latency.p50_ms, 500.0);
        near(latency.p90_ms, 900.0);
        near(latency.p99_ms, 990.0);
        near(latency.p99_9_ms, 999.0);
        near(latency.p99_99_ms.unwrap(), 1000.0);
        near(latency.p100_ms, 1000.0);
        near(latency.mean_ms, 500.5);
    }

    #[test]
    fn a_stall_is_charged_to_every_request_that_was_to_start_meanwhile() {
        let arrival = Arrival::Deterministic { rate_per_s: 100.0 };
        let load = Load { arrival, ..load(Extent::Requests(100)) };
        let mut recorder = recorder(&load, 0);
        // The only client waits a second for its first answer; then all others take 1 ms, one after another.
        recorder.record(&sample(0, 1000));
        for n in 1..100 {
            let free = ms(1000 + n);
            let ended = ms(1001 + n);
            recorder.record(&Sample { free, started: free, ended, ..sample(n * 10, 0) });
        }
        recorder.close(ms(1100));
        let figures = recorder.figures("x", &load);
        assert!(figures.latency.unwrap().p50_ms > 500.0, "{:?}", figures.latency);
        assert!(figures.service_time.unwrap().p50_ms < 1.01, "{:?}", figures.service_time);
        assert_eq!((figures.busy_starts, figures.slipped_starts), (99, 0));
    }

    #[test]
    fn a_start_that_slips_though_a_client_is_free_is_told_apart() {
        let arrival = Arrival::Deterministic { rate_per_s: 100.0 };
        let load = Load { arrival, ..load(Extent::Requests(2)) };
        let mut recorder = recorder(&load, 0);
        recorder.record(&Sample { started: ms(13), ..sample(10, 20) });
        recorder.record(&Sample { started: Time(10_900_000), ..sample(10, 20) });
        let figures = recorder.figures("x", &load);
        assert_eq!((figures.busy_starts, figures.slipped_starts), (0, 1));
    }

    #[test]
    fn in_a_closed_loop_a_request_is_due_when_it_is_sent() {
        let load = load(Extent::Requests(3));
        let mut recorder = recorder(&load, 0);
        // It takes 300 ms to make the first, 5 ms to make the others, of which the last is refused at once.
        recorder.record(&Sample { started: ms(300), ..sample(0, 400) });
        recorder.record(&Sample { started: ms(405), ..sample(400, 465) });
        let outcome = Err(Failure::Items);
        recorder.record(&Sample { started: ms(470), outcome, ..sample(465, 471) });
        recorder.close(ms(471));
        let figures = recorder.figures("x", &load);
        assert_eq!(figures.latency, figures.service_time);
        assert!((100.0..100.2).contains(&figures.latency.unwrap().p100_ms), "{figures:?}");
        assert_eq!((figures.busy_starts, figures.slipped_starts), (0, 1));
    }

    #[test]
    fn a_late_start_is_the_drivers_where_it_needs_longer_than_the_cluster() {
        let arrival = Arrival::Deterministic { rate_per_s: 100.0 };
        let load = Load { arrival, ..load(Extent::Requests(2)) };
        let mut recorder = recorder(&load, 0);
        recorder.record(&Sample { free: ms(100), started: ms(105), ..sample(10, 165) });
        recorder.record(&Sample { free: ms(100), started: ms(400), ..sample(10, 450) });
        let figures = recorder.figures("x", &load);
        let (latency, service) = (figures.latency.unwrap(), figures.service_time.unwrap());
        assert!((440.0..440.5).contains(&latency.p100_ms), "{latency:?}");
        assert!((60.0..60.1).contains(&service.p100_ms), "{service:?}");
        assert_eq!((figures.busy_starts, figures.slipped_starts), (1, 1));
    }

    #[test]
    fn throughput_is_counted_in_whole_windows_between_beginning_and_end() {
        let load = load(Extent::Time(Duration::from_millis(2500)));
        let mut recorder = recorder(&load, 100);
        // Asked for in the warm-up, answered before and after the beginning.
        recorder.record(&Sample { measured: false, ..sample(0, 50) });
        recorder.record(&Sample { measured: false, ..sample(0, 150) });
        for end in [1099, 1100, 1200, 2300, 2400, 2600, 2700] {
            recorder.record(&sample(110, end));
        }
        recorder.close(ms(2800));
        let figures = recorder.figures("x", &load);
        let throughput = &figures.throughput;
        assert_eq!(throughput.windows, [2, 2], "that of 2100 to 2600 is not whole");
        let mean_ms = |ends: [f64; 2], began: f64| Some((ends[0] + ends[1]) / 2.0 - began);
        let latency_ms = [Some((150.0 + 1099.0 - 110.0) / 2.0), mean_ms([1100.0, 1200.0], 110.0)];
        assert_eq!(throughput.latency_ms, latency_ms);
        assert_eq!(figures.requests, 7);
        assert!((throughput.mean_per_s - 7.0 / 2.5).abs() < 1e-9, "{throughput:?}");
        assert_eq!((throughput.min_per_s, throughput.median_per_s), (2.0, 2.0));
        assert_eq!(throughput.max_per_s, throughput.mean_per_s, "no figure is beyond the largest");
    }

    #[test]
    fn failures_are_counted_and_only_those_given_up_have_a_time() {
        let load = load(Extent::Requests(4));
        let mut recorder = recorder(&load, 0);
        let full = |reason| Failure::refused(429, "es_rejected_execution_exception", reason);
        recorder.record(&Sample { outcome: Err(full("a")), host: 1, ..sample(0, 1) });
        recorder.record(&Sample { outcome: Err(full("b")), ..sample(0, 1) });
        recorder.record(&Sample { outcome: Err(Failure::NoAnswer), ..sample(0, 1000) });
        recorder.record(&sample(0, 10));
        recorder.close(ms(1000));
        let figures = recorder.figures("x", &load);
        assert_eq!(figures.errors["429 es_rejected_execution_exception"], 2);
        let reasons = [("429 es_rejected_execution_exception".to_owned(), "a".to_owned())];
        assert_eq!(figures.reasons, BTreeMap::from(reasons), "the first of each kind");
        assert_eq!((figures.failed(), figures.error_rate()), (3, 0.75));
        let latency = figures.latency.unwrap();
        assert!(latency.p50_ms > 9.9 && latency.p100_ms > 999.0, "{latency:?}");
        assert_eq!(figures.throughput.mean_per_s, 1.0);
        assert_eq!(figures.hosts, BTreeMap::from([("a:9200".into(), 3), ("b:9200".into(), 1)]));
    }

    #[test]
    fn two_drivers_are_one_load() {
        let load = load(Extent::Time(Duration::from_secs(2)));
        let mut parts = [recorder(&load, 0), recorder(&load, 5)];
        for n in 0..20 {
            parts[n % 2].record(&sample(10, 100 * n as u64 + 50));
        }
        parts.iter_mut().for_each(|part| part.close(ms(3000)));
        let [mut whole, second] = parts;
        whole.add(&second);
        let figures = whole.figures("x", &load);
        assert_eq!((figures.requests, figures.throughput.windows.clone()), (20, vec![10, 10]));
        assert_eq!(figures.throughput.mean_per_s, 10.0);
    }

    #[test]
    fn a_load_that_ends_in_its_warm_up_has_the_figures_of_that() {
        let warm_up = Extent::Time(Duration::from_secs(120));
        let load = Load { warm_up, ..load(Extent::Time(Duration::from_secs(60))) };
        let mut recorder = Recorder::new(&load);
        for n in 0..20 {
            recorder.record(&Sample { measured: false, ..sample(100 * n, 100 * n + 50) });
        }
        let mut begun = recorder.clone();
        recorder.close(ms(2000));
        let figures = recorder.figures("x", &load);
        assert_eq!((figures.requests, figures.only_warm_up), (20, true));
        assert!((figures.seconds - 1.95).abs() < 1e-9, "{}", figures.seconds);
        assert_eq!(figures.throughput.windows, [10]);
        // Once the measured part begins, the warm-up is forgotten.
        begun.follow(&starts(&load, 121_000));
        begun.record(&sample(121_000, 121_001));
        begun.close(ms(130_000));
        let figures = begun.figures("x", &load);
        assert_eq!((figures.requests, figures.only_warm_up), (1, false));
    }

    #[test]
    fn a_driver_that_measured_nothing_hides_no_figure_of_another() {
        let warm_up = Extent::Time(Duration::from_secs(1));
        let load = Load { warm_up, ..load(Extent::Time(Duration::from_secs(2))) };
        let silent = Recorder::new(&load);
        let mut warm = silent.clone();
        warm.record(&Sample { measured: false, ..sample(0, 900) });
        let mut measured = recorder(&load, 1000);
        for n in 0..20 {
            measured.record(&sample(1000, 1000 + 100 * n + 50));
        }
        let closed = |mut part: Recorder| {
            part.close(ms(3000));
            part
        };
        let [silent, warm, measured] = [silent, warm, measured].map(closed);
        let both = |one: &Recorder, other: &Recorder| {
            let mut whole = one.clone();
            whole.add(other);
            whole.figures("x", &load)
        };
        let alone = measured.figures("x", &load);
        assert_eq!((alone.requests, alone.throughput.windows.clone()), (20, vec![10, 10]));
        for other in [&silent, &warm] {
            assert_eq!(
                (both(&measured, other), both(other, &measured)),
                (alone.clone(), alone.clone())
            );
        }
        // What is told of a warm-up alone says so.
        for figures in [both(&silent, &warm), both(&warm, &silent)] {
            assert_eq!((figures.requests, figures.only_warm_up), (1, true));
        }
    }

    #[test]
    fn nothing_measured_is_no_figure() {
        let load = load(Extent::Requests(4));
        let mut recorder = Recorder::new(&load);
        recorder.close(ms(9));
        let figures = recorder.figures("x", &load);
        assert_eq!((figures.latency, figures.throughput.median_per_s), (None, 0.0));
    }
}
