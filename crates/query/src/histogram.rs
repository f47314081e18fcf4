//! Buckets of one width: where they begin, and where the next one does. Pure.

use serde::{Deserialize, Serialize};

use super::date::{CalendarUnit, DateContext};
use super::value::{DAY_MS, Literal};
use super::{DateFormat, Zone};

/// Width of the buckets of a [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Interval {
    /// A number, or milliseconds.
    Fixed(f64),
    /// Units of the calendar.
    Calendar(CalendarUnit),
}

/// Buckets of one width. Dates are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Width of a bucket.
    pub interval: Interval,
    /// By how much buckets begin later.
    pub offset: f64,
    /// The time zone whose calendar it is.
    pub zone: Zone,
    /// Whether it is a `date_histogram`.
    pub of_dates: bool,
    /// How dates are written; else as the mapping says.
    pub format: Option<DateFormat>,
    /// From and to which values buckets are shown at least, where empty ones are.
    pub extended_bounds: [Option<Literal>; 2],
}

impl Histogram {
    /// Whether buckets are days of the calendar, or longer: one begins where clocks show its start for the first time.
    /// Others are of the time since the last change of the clocks, so that an hour that they show twice is two.
    fn is_by_days(&self) -> bool {
        matches!(self.interval, Interval::Calendar(unit) if !unit.is_within_days())
    }

    fn local(&self, value: f64) -> f64 {
        match self.zone.is_utc() {
            true => value - self.offset,
            false => value - self.offset + self.zone.offset_ms((value - self.offset) as i64) as f64,
        }
    }

    /// The moment of a bucket that begins at `local`; `near` lies in it, or at its start.
    fn moment(&self, local: f64, near: f64) -> f64 {
        if self.zone.is_utc() {
            return local + self.offset;
        }
        let offset_ms = self.zone.offset_ms((near - self.offset) as i64);
        let unchanged = (local as i64).saturating_sub(offset_ms);
        // Where clocks were changed in between, it begins when they showed its start.
        let is_unchanged = || self.zone.offset_ms(unchanged) == offset_ms;
        let moment = match !self.is_by_days() && is_unchanged() {
            true => unchanged,
            false => self.zone.first_moment_from(local as i64),
        };
        moment as f64 + self.offset
    }

    /// The start of the bucket of a value.
    pub fn start(&self, value: f64) -> f64 {
        let local = self.local(value);
        let (start, width) = match self.interval {
            Interval::Fixed(width) => ((local / width).floor() * width, width),
            Interval::Calendar(unit) => (unit.floor(local as i64) as f64, unit.average_ms() as f64),
        };
        let moment = self.moment(start, value);
        if self.is_by_days() || value - moment < width {
            return moment;
        }
        // Clocks were changed since. Where other buckets had begun by then, the value lies in the last of these, as in
        // the field: no later value is in an earlier bucket.
        let change = self.zone.last_change((value - self.offset) as i64);
        match change.map(|change| change as f64 + self.offset) {
            Some(change) if moment + width <= change => self.start(change - 1.0),
            _ => moment,
        }
    }

    /// The end of the bucket that begins at `start`. Where clocks were put back others may begin before the
    /// [`Histogram::next`] of the grid.
    pub fn end(&self, start: f64) -> f64 {
        let mut end = self.next(start);
        if self.zone.is_utc() {
            return end;
        }
        loop {
            let last = self.start(end - 1.0);
            // Where calendars end a bucket may begin behind its values.
            if last <= start || last >= end {
                return end;
            }
            end = last;
        }
    }

    /// The start of the bucket after the one that begins at `start`.
    pub fn next(&self, start: f64) -> f64 {
        let local = self.local(start);
        let next = match self.interval {
            // Where clocks left out the start of a bucket of dates, it begins later than others.
            Interval::Fixed(width) if self.of_dates => ((local / width).floor() + 1.0) * width,
            Interval::Fixed(width) => ((local / width).round() + 1.0) * width,
            Interval::Calendar(unit) => unit.add(unit.floor(local as i64), 1) as f64,
        };
        // An hour that clocks show twice is followed by itself.
        let as_long = start + (next - local);
        match !self.zone.is_utc() && self.start(as_long) == as_long {
            true => as_long,
            false => self.moment(next, start),
        }
    }

    /// The starts of the first and the last bucket of `extended_bounds`, whose texts are read by the format of the
    /// mapping where the request has none; the first is beyond all where it does not say, the last before all. As in
    /// the field, the bounds of dates are rounded without the offset, by which their buckets begin later than that.
    pub fn bounds(&self, mapped: &DateFormat) -> Result<(f64, f64), String> {
        let format = self.format.as_ref().unwrap_or(mapped);
        // Bounds by now are refused.
        let context = DateContext { format, now_ms: 0, zone: &self.zone };
        let number = |bound: &Literal| match bound {
            Literal::Text(text) => context.resolve(text, false).map(|ms| ms as f64),
            bound => Ok(bound.number()),
        };
        let [min, max] = &self.extended_bounds;
        let (min, max) =
            (min.as_ref().map(number).transpose()?, max.as_ref().map(number).transpose()?);
        if let Some((min, max)) = min.zip(max).filter(|(min, max)| min > max) {
            return Err(format!(
                "[extended_bounds.min][{min}] cannot be greater than [extended_bounds.max][{max}]"
            ));
        }
        let later = if self.of_dates { self.offset } else { 0.0 };
        let start = |bound: f64| self.start(bound + later);
        Ok((min.map_or(f64::INFINITY, start), max.map_or(f64::NEG_INFINITY, start)))
    }
}

/// A width that buckets may have: a unit, how long it is about, how it is written, and of how many units a bucket may
/// be.
type Level = (CalendarUnit, i64, char, &'static [usize]);

const LEVELS: [Level; 6] = [
    (CalendarUnit::Second, 1000, 's', &[1, 5, 10, 30]),
    (CalendarUnit::Minute, 60_000, 'm', &[1, 5, 10, 30]),
    (CalendarUnit::Hour, 3_600_000, 'h', &[1, 3, 12]),
    (CalendarUnit::Day, DAY_MS, 'd', &[1, 7]),
    (CalendarUnit::Month, 30 * DAY_MS, 'M', &[1, 3]),
    (CalendarUnit::Year, 365 * DAY_MS, 'y', &[1, 5, 10, 20, 50, 100]),
];

/// The most buckets that may be asked for. OpenSearch divides its default of `search.max_buckets` by 30, the most units
/// below a year that are merged into one bucket.
pub(crate) const MAX_BUCKETS: usize = 65_535 / 30;

/// Empty buckets between others, at most: as many as an answer may have.
const EMPTY_MAX: usize = 65_536;

/// Buckets by their start, each with the places of what it is made of.
pub type Buckets = Vec<(f64, Vec<usize>)>;

/// `auto_date_histogram`: buckets of dates whose width follows from how many there may be. The rules are those of
/// OpenSearch's `AutoDateHistogramAggregationBuilder` and `InternalAutoDateHistogram`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoHistogram {
    /// Buckets that are shown at most.
    pub buckets: usize,
    /// The narrowest level.
    pub least: usize,
    /// The time zone whose calendar it is.
    pub zone: Zone,
    /// How dates are written; else as the mapping says.
    pub format: Option<DateFormat>,
}

impl AutoHistogram {
    /// The level of `minimum_interval`.
    pub fn level_of_unit(unit: &str) -> Option<usize> {
        let unit = CalendarUnit::of_interval(unit)?;
        LEVELS.iter().position(|(of, ..)| *of == unit)
    }

    /// The histogram of a level.
    pub fn at(&self, level: usize) -> Histogram {
        Histogram {
            interval: Interval::Calendar(LEVELS[level.min(LEVELS.len() - 1)].0),
            offset: 0.0,
            zone: self.zone.clone(),
            of_dates: true,
            format: self.format.clone(),
            extended_bounds: [None, None],
        }
    }

    /// The most buckets of a level that can still be merged down to the number wanted.
    fn most(&self, level: usize) -> usize {
        LEVELS[level].3.last().map_or(0, |units| units * self.buckets)
    }

    /// The narrowest level in which a shard gathers values from `low` to `high`.
    pub fn level_of_span(&self, low: f64, high: f64) -> usize {
        let fits = |level: &usize| {
            let histogram = self.at(*level);
            let span = histogram.start(high) - histogram.start(low);
            span <= self.most(*level) as f64 * LEVELS[*level].1 as f64
        };
        (self.least..LEVELS.len()).find(fits).unwrap_or(LEVELS.len() - 1)
    }

    /// The buckets that are shown of those that begin at `starts`, in their order, which shards have gathered in
    /// `level` at most; and the width of each, as `7d`.
    pub fn settle(&self, starts: &[f64], mut level: usize) -> (Buckets, String) {
        // Shards are on other nodes, which may say anything.
        level = level.min(LEVELS.len() - 1);
        let gathered = starts.iter().enumerate().map(|(place, start)| (*start, vec![place]));
        let mut buckets = self.in_level(gathered.collect(), level);
        self.widen(&mut buckets, &mut level);
        if let (Some((first, _)), Some((last, _))) = (buckets.first(), buckets.last()) {
            level = self.level_with_empty(*first, *last, level);
            buckets = self.with_empty(self.in_level(buckets, level), level);
            self.widen(&mut buckets, &mut level);
        }
        let (_, _, unit, widths) = LEVELS[level];
        let fits = |width: &&usize| buckets.len().div_ceil(**width) <= self.buckets;
        let width = match buckets.len() > self.buckets {
            true => widths.iter().find(fits).copied().unwrap_or(1),
            false => 1,
        };
        let joined = buckets.chunks(width).map(|chunk| {
            (chunk[0].0, chunk.iter().flat_map(|(_, places)| places).copied().collect())
        });
        (joined.collect(), format!("{width}{unit}"))
    }

    /// Buckets that begin in the same unit as one.
    fn in_level(&self, buckets: Buckets, level: usize) -> Buckets {
        let histogram = self.at(level);
        let mut joined: Buckets = Vec::new();
        for (start, places) in buckets {
            let start = histogram.start(start);
            match joined.last_mut().filter(|(last, _)| *last == start) {
                Some((_, of)) => of.extend(places),
                None => joined.push((start, places)),
            }
        }
        joined
    }

    fn widen(&self, buckets: &mut Buckets, level: &mut usize) {
        while buckets.len() > self.most(*level) && *level < LEVELS.len() - 1 {
            *level += 1;
            *buckets = self.in_level(std::mem::take(buckets), *level);
        }
    }

    /// The level in which the buckets between two, empty ones with them, are not too many.
    fn level_with_empty(&self, first: f64, last: f64, level: usize) -> usize {
        // About how many there would be says where to begin to count.
        let about = |level: &usize| ((last - first) as i64 / LEVELS[*level].1) as usize;
        let wider = (level + 1..LEVELS.len()).find(|level| about(level) < self.most(*level));
        let begin = wider.map_or(level, |wider| wider - 1);
        let fits = |level: &usize| {
            let histogram = self.at(*level);
            let starts = std::iter::successors(Some(first), |start| Some(histogram.next(*start)));
            let most = self.most(*level);
            starts.take_while(|start| *start < last).take(most + 1).count() <= most
        };
        (begin..LEVELS.len()).find(fits).unwrap_or(LEVELS.len() - 1)
    }

    fn with_empty(&self, buckets: Buckets, level: usize) -> Buckets {
        let histogram = self.at(level);
        let mut filled: Buckets = Vec::new();
        for bucket in buckets {
            while let Some((last, _)) = filled.last() {
                let next = histogram.next(*last);
                if next >= bucket.0 || next <= *last || filled.len() >= EMPTY_MAX {
                    break;
                }
                filled.push((next, Vec::new()));
            }
            filled.push(bucket);
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::tests::at as ms;

    fn at(text: &str) -> f64 {
        ms(text) as f64
    }

    fn of_zone(zone: &str, interval: Interval) -> Histogram {
        let zone = Zone::try_from(zone.to_owned()).unwrap();
        Histogram { interval, zone, ..auto(1).at(0) }
    }

    fn auto(buckets: usize) -> AutoHistogram {
        AutoHistogram { buckets, least: 0, zone: Zone::default(), format: None }
    }

    fn settled(auto: &AutoHistogram, moments: &[i64]) -> (Vec<(i64, usize)>, String) {
        let moments: Vec<f64> = moments.iter().map(|ms| *ms as f64).collect();
        let (low, high) = (moments[0], moments[moments.len() - 1]);
        let (buckets, width) = auto.settle(&moments, auto.level_of_span(low, high));
        (buckets.into_iter().map(|(start, of)| (start as i64, of.len())).collect(), width)
    }

    #[test]
    fn a_bucket_begins_where_clocks_showed_its_start() {
        for (minutes, value, start, next) in [
            // On 31 March clocks went from 2 to 3, on 27 October from 3 to 2: at 1 in UTC.
            (720.0, "2024-03-31T00:30:00Z", "2024-03-30T23:00:00Z", "2024-03-31T10:00:00Z"),
            (720.0, "2024-03-31T05:00:00Z", "2024-03-30T23:00:00Z", "2024-03-31T10:00:00Z"),
            (720.0, "2024-10-27T05:00:00Z", "2024-10-26T22:00:00Z", "2024-10-27T11:00:00Z"),
            (1440.0, "2024-10-27T22:30:00Z", "2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z"),
            (60.0, "2024-10-27T00:30:00Z", "2024-10-27T00:00:00Z", "2024-10-27T01:00:00Z"),
            (60.0, "2024-10-27T01:30:00Z", "2024-10-27T01:00:00Z", "2024-10-27T02:00:00Z"),
            (60.0, "2024-03-31T01:30:00Z", "2024-03-31T01:00:00Z", "2024-03-31T02:00:00Z"),
            (45.0, "2024-10-27T01:10:00Z", "2024-10-27T00:15:00Z", "2024-10-27T02:00:00Z"),
        ] {
            let histogram = of_zone("Europe/Paris", Interval::Fixed(minutes * 60_000.0));
            assert_eq!(histogram.start(at(value)), at(start), "{minutes} {value}");
            assert_eq!(histogram.next(at(start)), at(next), "{minutes} {value}");
        }
        // Between 2 and 3 there is no start: clocks never showed 02:40.
        let histogram = of_zone("Europe/Paris", Interval::Fixed(2_400_000.0));
        let start = at("2024-03-31T01:00:00Z");
        assert_eq!(histogram.start(at("2024-03-31T01:10:00Z")), start);
        assert_eq!(histogram.next(start), at("2024-03-31T01:20:00Z"));
    }

    #[test]
    fn buckets_lie_one_behind_the_other_where_clocks_are_changed() {
        for minutes in [7.0, 25.0, 45.0, 50.0, 60.0, 90.0, 120.0, 720.0] {
            let histogram = of_zone("Europe/Paris", Interval::Fixed(minutes * 60_000.0));
            for day in ["2024-03-30T20:00:00Z", "2024-10-26T20:00:00Z"] {
                let mut last = f64::MIN;
                for minute in 0..720 {
                    let value = at(day) + f64::from(minute) * 60_000.0;
                    let start = histogram.start(value);
                    assert!(last <= start && start <= value, "{minutes} {day} {minute}");
                    assert!(value < histogram.end(start), "{minutes} {day} {minute}");
                    last = start;
                }
            }
        }
        let histogram = of_zone("Europe/Paris", Interval::Fixed(7_200_000.0));
        let ends = ["2024-10-27T00:00:00Z", "2024-10-27T01:00:00Z", "2024-10-27T03:00:00Z"];
        let ends = ends.map(at);
        assert_eq!([histogram.end(ends[0]), histogram.end(ends[1])], [ends[1], ends[2]]);
        assert_eq!(histogram.next(ends[0]), ends[2], "the grid goes on as clocks show it");
    }

    #[test]
    fn the_bucket_behind_one_that_begins_late_begins_on_time() {
        // On 4 November clocks went from midnight to 1.
        let late = at("2018-11-04T03:00:00Z");
        for (unit, next) in [
            (CalendarUnit::Day, "2018-11-05T02:00:00Z"),
            (CalendarUnit::Hour, "2018-11-04T04:00:00Z"),
        ] {
            let histogram = of_zone("America/Sao_Paulo", Interval::Calendar(unit));
            assert_eq!(histogram.start(late), late);
            assert_eq!(histogram.next(late), at(next));
        }
    }

    #[test]
    fn bounds_are_read_by_the_format_of_the_field() {
        let of = |min: &str, max: &str| {
            let extended_bounds = [min, max].map(|text| Some(Literal::Text(text.to_owned())));
            let interval = Interval::Fixed(DAY_MS as f64);
            Histogram { interval, extended_bounds, ..auto(1).at(0) }
        };
        let days = (1_704_067_200_000.0, 1_704_153_600_000.0);
        for (format, min, max) in
            [("epoch_second", "1704067201", "1704153601"), ("yyyyMMdd", "20240101", "20240102")]
        {
            let format = DateFormat::parse(format).unwrap();
            assert_eq!(of(min, max).bounds(&format), Ok(days));
            assert!(of(max, min).bounds(&format).unwrap_err().contains("cannot be greater"));
            assert!(of("2024-01-01", max).bounds(&format).is_err());
            let iso =
                Histogram { format: Some(DateFormat::default()), ..of("2024-01-01", "2024-01-02") };
            assert_eq!(iso.bounds(&format), Ok(days), "the format of the request");
        }
    }

    #[test]
    fn buckets_are_as_narrow_as_their_number_lets_them_be() {
        let (buckets, width) = settled(&auto(10), &[0, 1500, 9000]);
        assert_eq!((buckets.len(), width.as_str()), (10, "1s"), "with the empty ones between");
        assert_eq!(buckets[1], (1000, 1));
        let (buckets, width) = settled(&auto(10), &[0, 1500, 10_000]);
        assert_eq!((buckets, width.as_str()), (vec![(0, 2), (5000, 0), (10_000, 1)], "5s"));
        let hours: Vec<i64> = (0..48).map(|hour| hour * 3_600_000).collect();
        let (buckets, width) = settled(&auto(10), &hours);
        assert_eq!(
            (buckets, width.as_str()),
            ((0..4).map(|n| (n * 43_200_000, 12)).collect(), "12h")
        );
        let (buckets, width) = settled(&auto(3), &[0, 400 * DAY_MS, 900 * DAY_MS]);
        assert_eq!((buckets.len(), width.as_str()), (3, "1y"));
        let new_year = ms("2020-01-01");
        let leap: Vec<i64> = (0..366).map(|day| new_year + day * DAY_MS).collect();
        let (buckets, width) = settled(&auto(12), &leap);
        assert_eq!((buckets.len(), buckets[1].1, width.as_str()), (12, 29, "1M"));
        let (buckets, width) = settled(&auto(53), &leap);
        assert_eq!((buckets.len(), buckets[52].1, width.as_str()), (53, 2, "7d"));
    }

    #[test]
    fn no_bucket_is_narrower_than_the_least_unit() {
        let of_days =
            AutoHistogram { least: AutoHistogram::level_of_unit("day").unwrap(), ..auto(10) };
        assert_eq!(settled(&of_days, &[5, 9000]), (vec![(0, 2)], "1d".to_owned()));
        assert_eq!(of_days.settle(&[], of_days.least).1, "1d");
        assert_eq!(AutoHistogram::level_of_unit("week"), None);
    }
}
