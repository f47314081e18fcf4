//! Figures over the last hour in a bounded number of points. A point has the least and the most of its time, so that
//! peaks stay however wide it is.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// Points at most.
const POINTS_MAX: usize = 450;
/// A point's time at first, and at most: so many of them are an hour.
const WIDTH_MS: u64 = 1000;
const WIDTH_MS_MAX: u64 = 8000;

/// Least and most of a point, in the unit of its figure; none where nothing was told.
type Range = Option<(f32, f32)>;

/// Named figures with common times.
#[derive(Clone, Debug)]
pub(super) struct Compact {
    width_ms: u64,
    /// When each point begins, in milliseconds since 1970.
    from_ms: VecDeque<u64>,
    /// By name, one range a point; a figure that came later has none before.
    ranges: BTreeMap<String, VecDeque<Range>>,
}

impl Default for Compact {
    fn default() -> Self {
        Compact { width_ms: WIDTH_MS, from_ms: VecDeque::new(), ranges: BTreeMap::new() }
    }
}

/// As the page reads it: times, and for each name least and most.
#[derive(Debug, Serialize)]
pub(super) struct Points<'a> {
    from_ms: &'a VecDeque<u64>,
    figures: BTreeMap<&'a str, [Vec<Option<i64>>; 2]>,
}

impl Compact {
    /// Takes in the figures of one moment; answers whether they begin a point.
    pub(super) fn push<'n>(
        &mut self,
        at_ms: u64,
        figures: impl IntoIterator<Item = (&'n str, f64)>,
    ) -> bool {
        let last = self.from_ms.back();
        let begins = last.is_none_or(|from| at_ms.saturating_sub(*from) >= self.width_ms);
        if begins {
            self.begin(at_ms);
        }
        let points = self.from_ms.len();
        for (name, figure) in figures {
            let figure = figure as f32;
            if !self.ranges.contains_key(name) {
                self.ranges.insert(name.to_owned(), VecDeque::new());
            }
            let ranges = self.ranges.get_mut(name).expect("it was put there");
            ranges.resize(points, None);
            let last = ranges.back_mut().expect("there is a point");
            *last = Some(last.map_or((figure, figure), |(a, b)| (a.min(figure), b.max(figure))));
        }
        begins
    }

    fn begin(&mut self, at_ms: u64) {
        if self.from_ms.len() == POINTS_MAX && self.width_ms < WIDTH_MS_MAX {
            self.halve();
        }
        let oldest_ms = at_ms.saturating_sub(POINTS_MAX as u64 * WIDTH_MS_MAX);
        while self.from_ms.len() >= POINTS_MAX
            || self.from_ms.front().is_some_and(|from| *from < oldest_ms)
        {
            self.from_ms.pop_front();
            let points = self.from_ms.len();
            for ranges in self.ranges.values_mut().filter(|ranges| ranges.len() > points) {
                ranges.pop_front();
            }
            // A node that left an hour ago is forgotten.
            self.ranges.retain(|_, ranges| ranges.iter().any(Option::is_some));
        }
        self.from_ms.push_back(at_ms);
        let points = self.from_ms.len();
        for ranges in self.ranges.values_mut() {
            ranges.resize(points, None);
        }
    }

    /// Makes one point of two.
    fn halve(&mut self) {
        self.width_ms *= 2;
        self.from_ms = self.from_ms.iter().copied().step_by(2).collect();
        for ranges in self.ranges.values_mut() {
            let both = |pair: &[Range]| {
                let known = pair.iter().flatten().copied();
                known.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            };
            *ranges = ranges.make_contiguous().chunks(2).map(both).collect();
        }
    }

    /// When the points begin.
    pub(super) fn times(&self) -> &VecDeque<u64> {
        &self.from_ms
    }

    /// What the page reads.
    pub(super) fn points(&self) -> Points<'_> {
        let whole = |figure: f32| figure.round() as i64;
        let figures = self.ranges.iter().map(|(name, ranges)| {
            let of = |end: fn((f32, f32)) -> f32| {
                ranges.iter().map(|range| range.map(|range| whole(end(range)))).collect()
            };
            (name.as_str(), [of(|range| range.0), of(|range| range.1)])
        });
        Points { from_ms: &self.from_ms, figures: figures.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_looks_leaves_an_hour_of_points_with_every_peak() {
        let mut compact = Compact::default();
        let day_s = 24 * 3600;
        for s in 0..day_s {
            let peak = if s == day_s - 1800 { 900.0 } else { 40.0 };
            compact.push(s * 1000, [("a", peak)]);
        }
        let times = compact.times();
        assert!(times.len() <= POINTS_MAX && times.len() > 400, "{}", times.len());
        let span_s = (day_s * 1000 - times[0]) / 1000;
        assert!((3500..=3700).contains(&span_s), "{span_s}");
        let points = compact.points();
        let [least, most] = &points.figures["a"];
        assert_eq!(least.len(), times.len());
        assert_eq!(most.iter().flatten().max(), Some(&900));
        assert_eq!(least.iter().flatten().max(), Some(&40));
    }

    #[test]
    fn a_figure_that_comes_late_and_goes_has_no_points_elsewhere() {
        let mut compact = Compact::default();
        for s in 0..10 {
            compact.push(s * 1000, [("a", 1.0)].into_iter().chain((s == 4).then_some(("b", 2.0))));
        }
        let points = compact.points();
        assert_eq!(points.figures["b"][0].iter().flatten().count(), 1);
        assert_eq!(points.figures["b"][0].len(), points.figures["a"][0].len());
        assert_eq!(points.figures["b"][0][4], Some(2));
        for s in 10..9000 {
            compact.push(s * 1000, [("a", 1.0)]);
        }
        assert!(!compact.points().figures.contains_key("b"), "it is forgotten");
    }

    #[test]
    fn looks_that_are_far_apart_keep_to_the_hour() {
        let mut compact = Compact::default();
        for minute in 0..600 {
            compact.push(minute * 60_000, [("a", 1.0)]);
        }
        assert!(compact.times().len() <= 61, "{}", compact.times().len());
    }
}
