//! What shards found, written as the field writes it, as text at once: buckets are many, and JSON values in between
//! would cost more than finding them.

use tantivy::aggregation::intermediate_agg_result::{
    IntermediateAggregationResult as One, IntermediateAggregationResults as Results,
    IntermediateBucketResult,
};

use query::aggregation::{
    Aggregation, AggregationKind, BucketOrder, Filters, FiltersShape, OrderBy, RangeBucket, Tuples,
};
use query::grid::Grid;
use query::histogram::{AutoHistogram, Histogram};
use query::pipeline::Answer;
use query::{DateFormat, Literal, SearchError, Text, Zone, illegal};
use serde_json::Value;

use super::aggregated::Aggregated;
use super::computed::Side;
use super::found::{Found, too_many};
use super::metrics::{Shown, write_bounds, write_centroid, write_percentiles, write_statistics};
use super::pipelines::{self, Numbers, Written};
use super::rows::{
    Row, compare_tuples, distinct, merged, numbered, placed, ranges_key, rows, sort, stats,
};
use super::top_hits::{Best, step_of};
use super::value::show_double;

type Result<T> = std::result::Result<T, SearchError>;

/// Writes the `aggregations` of an answer.
struct Writer<'a> {
    merged: &'a Aggregated,
    found: &'a Found,
    left: usize,
    max_buckets: usize,
    /// The aggregations among which the one at hand stands.
    beside: &'a [Aggregation],
    /// What pipelines say of buckets that were written. They are written behind the aggregations beside them.
    answers: Vec<(&'a Aggregation, Answer)>,
    /// The path to the bucket at hand, where `top_hits` are within, or `terms` of which a shard may not have sent all.
    path: String,
    to: Text<'a>,
}

/// How the key of a bucket is written as its name, and what writes its own members.
type NameAndOwn<'n> = (&'n dyn Fn(&Literal) -> String, &'n dyn Fn(&mut Text<'_>, &Literal));

impl Aggregated {
    /// Writes the `aggregations` of an answer behind `text`, as a JSON object.
    ///
    /// Errors: [`query::SearchErrorKind::TooManyBuckets`] if there are more than `max_buckets`, and
    /// [`query::SearchErrorKind::IllegalArgument`] for wrong bounds of a field that no shard has, which would have
    /// refused them; what is written by then is no JSON.
    pub fn write(&self, of: &[Aggregation], max_buckets: usize, text: &mut Vec<u8>) -> Result<()> {
        let mut writer = Writer {
            merged: self,
            found: &self.found,
            left: max_buckets,
            max_buckets,
            beside: &[],
            answers: Vec::new(),
            path: String::new(),
            to: Text(text),
        };
        writer.to.open(b'{');
        writer.all(of, Some(&self.found.results))?;
        writer.to.close(b'}');
        Ok(())
    }
}

impl<'a> Writer<'a> {
    /// Writes members of an object: one for each aggregation. Answers the numbers of the pipelines among them.
    fn all(&mut self, all: &'a [Aggregation], results: Option<&Results>) -> Result<Numbers> {
        let (mut numbers, answered) = (Numbers::new(), self.answers.len());
        for of in all.iter().filter(|of| !of.is_pipeline()) {
            self.beside = all;
            let found = results.and_then(|results| results.get(&of.name));
            let side =
                |side: Side| stats(results.and_then(|results| results.get(&side.name(&of.name)))).0;
            self.to.open_named(&of.name, of.meta.as_deref());
            match &of.kind {
                AggregationKind::Terms { size, .. } => self.terms(of, *size, found)?,
                AggregationKind::Histogram(histogram) => self.histogram(of, histogram, found)?,
                AggregationKind::AutoHistogram(auto) => self.auto_histogram(of, auto, found)?,
                AggregationKind::Range(ranges) => self.ranges(of, (ranges, None), found)?,
                AggregationKind::Distance(asked) => {
                    self.ranges(of, (&asked.ranges, None), found)?
                }
                AggregationKind::Grid(grid) => self.grid(of, grid, found)?,
                AggregationKind::DateRange(of_dates) => {
                    let read = self.found.ranges.get(&ranges_key(of));
                    let ranges = read.map_or(&[][..], Vec::as_slice);
                    let format = of_dates.format.clone().or_else(|| self.found.format(of));
                    let written = (format.unwrap_or_default(), of_dates.zone.clone());
                    self.ranges(of, (ranges, Some(written)), found)?;
                }
                AggregationKind::Filters(filters) => {
                    let within = self.filters(of, filters, found)?.into_iter();
                    numbers.extend(
                        within.map(|(path, number)| (format!("{}>{path}", of.name), number)),
                    );
                }
                AggregationKind::Tuples(tuples) => self.tuples(of, tuples, found)?,
                AggregationKind::Stats(statistic) => {
                    let shown = self.found.shown.get(&of.field);
                    write_statistics(&mut self.to, (*statistic, shown), found);
                }
                AggregationKind::Cardinality { threshold } => {
                    self.to.member("value", &distinct(found, *threshold));
                }
                AggregationKind::Percentiles(percents) => {
                    let shown = self.found.shown.get(&of.field);
                    write_percentiles(&mut self.to, (percents, of.keyed, shown), found);
                }
                AggregationKind::GeoCentroid => write_centroid(&mut self.to, side),
                AggregationKind::GeoBounds { wraps } => write_bounds(&mut self.to, *wraps, side),
                AggregationKind::TopHits(asked) => {
                    let path = format!("{}{}", self.path, of.name);
                    let (none, best) = (Best::default(), self.found.hits.get(&path));
                    best.unwrap_or(&none).write(&mut self.to, asked, self.merged.totals_as_int);
                }
                // Below.
                AggregationKind::Pipeline(_) => {}
            }
            self.to.close(b'}');
        }
        for (of, answer) in self.answers.split_off(answered) {
            pipelines::write(&mut self.to, of, &answer, &mut numbers);
        }
        Ok(numbers)
    }

    /// Writes what is within a bucket. Answers as `all` does.
    fn within(&mut self, of: &'a Aggregation, row: &Row<'_>) -> Result<Numbers> {
        let above = self.path.len();
        if of.has_top_hits() || !self.merged.unsent.is_empty() {
            self.path += &step_of(of, &row.key);
        }
        let numbers = self.all(&of.subs, row.subs)?;
        self.path.truncate(above);
        Ok(numbers)
    }

    /// Writes buckets. `name` is the key as text, under which keyed answers have a bucket; `own` writes its members.
    fn buckets(
        &mut self,
        of: &'a Aggregation,
        rows: &[Row<'_>],
        (name, own): NameAndOwn<'_>,
    ) -> Result<()> {
        self.left = self.left.checked_sub(rows.len()).ok_or_else(|| too_many(self.max_buckets))?;
        self.to.name("buckets");
        self.to.open(if of.keyed { b'{' } else { b'[' });
        // Buckets that pipelines read are kept until all are there.
        let (beside, begin, mut kept) = (self.beside, self.to.0.len(), Vec::new());
        let is_read = pipelines::is_read(of, beside);
        for row in rows {
            if of.keyed {
                self.to.name(&name(&row.key));
            }
            self.to.open(b'{');
            own(&mut self.to, &row.key);
            self.to.member("doc_count", &row.doc_count);
            let numbers = self.within(of, row)?;
            if is_read {
                let (name, text) = (name(&row.key), self.to.0.split_off(begin));
                kept.push(Written { row, name, numbers, text });
            } else {
                self.to.close(b'}');
            }
        }
        self.answers.extend(pipelines::run(of, beside, &mut kept));
        for Written { text, .. } in kept {
            self.to.comma();
            self.to.0.extend(text);
            self.to.close(b'}');
        }
        self.to.close(if of.keyed { b'}' } else { b']' });
        Ok(())
    }

    fn terms(&mut self, of: &'a Aggregation, size: usize, found: Option<&One>) -> Result<()> {
        let mut other = 0;
        if let Some(One::Bucket(IntermediateBucketResult::Terms { buckets })) = found {
            other = buckets.sum_other_doc_count();
        }
        let unsent = self.merged.unsent.get(&format!("{}{}", self.path, of.name));
        let error = match (&of.order[0], unsent) {
            (BucketOrder { by: OrderBy::Key, .. }, _) | (_, None) => 0,
            (BucketOrder { by: OrderBy::Count, descending: true }, Some(documents)) => {
                // With one shard alone nothing is missing.
                if self.merged.shards <= 1 { 0 } else { *documents as i64 }
            }
            _ => -1,
        };
        let shown = self.found.shown.get(&of.field).cloned();
        let mut rows = rows(found);
        // As in the field those below it are not counted as others.
        rows.retain(|row| row.doc_count >= of.min_doc_count);
        if let Some(Shown::Double) = shown {
            rows.iter_mut().for_each(|row| row.key = Literal::Float(row.key.number()));
        }
        sort(&mut rows, of);
        other += rows.iter().skip(size).map(|row| row.doc_count).sum::<u64>();
        rows.truncate(size);
        self.to.member("doc_count_error_upper_bound", &error);
        self.to.member("sum_other_doc_count", &other);
        let name = |key: &Literal| match (key, &shown) {
            (Literal::Integer(ms), Some(Shown::Date(format))) => format.show(*ms),
            (Literal::Integer(yes), Some(Shown::Boolean)) => (*yes == 1).to_string(),
            (Literal::Float(number), _) => show_double(*number),
            _ => key.text(),
        };
        let own = |to: &mut Text<'_>, key: &Literal| {
            to.member("key", &key.json());
            let shown_otherwise = matches!(shown, Some(Shown::Date(_) | Shown::Boolean));
            if shown_otherwise && matches!(key, Literal::Integer(_)) {
                to.member("key_as_string", &name(key));
            }
        };
        self.buckets(of, &rows, (&name, &own))
    }

    fn grid(&mut self, of: &'a Aggregation, grid: &Grid, found: Option<&One>) -> Result<()> {
        let mut cells = rows(found);
        sort(&mut cells, of);
        cells.truncate(grid.size);
        for row in &mut cells {
            // They were gathered from the greatest on.
            if let Literal::Integer(from_last) = row.key {
                row.key = Literal::Text(grid.key(!from_last));
            }
        }
        let own = |to: &mut Text<'_>, key: &Literal| to.member("key", &key.text());
        self.buckets(of, &cells, (&Literal::text, &own))
    }

    fn histogram(
        &mut self,
        of: &'a Aggregation,
        histogram: &Histogram,
        found: Option<&One>,
    ) -> Result<()> {
        let own = self.found.format(of).unwrap_or_default();
        let bounds = histogram.bounds(&own).map_err(illegal)?;
        let mut rows = numbered(found);
        if of.min_doc_count == 0 {
            rows = self.filled(rows, histogram, bounds)?;
        }
        rows.retain(|row| row.doc_count >= of.min_doc_count);
        sort(&mut rows, of);
        self.of_widths(of, histogram, &rows)
    }

    fn auto_histogram(
        &mut self,
        of: &'a Aggregation,
        auto: &AutoHistogram,
        found: Option<&One>,
    ) -> Result<()> {
        let gathered = numbered(found);
        let starts: Vec<f64> = gathered.iter().map(|row| row.key.number()).collect();
        let level = self.found.levels.get(&of.name).copied().unwrap_or(auto.least);
        let (buckets, width) = auto.settle(&starts, level);
        let merged = buckets
            .iter()
            .map(|(_, places)| merged(places.iter().filter_map(|place| gathered[*place].subs)));
        let merged = merged.collect::<Result<Vec<Option<Results>>>>()?;
        let rows = buckets.iter().zip(&merged).map(|((start, places), subs)| Row {
            key: Literal::Float(*start),
            doc_count: places.iter().map(|place| gathered[*place].doc_count).sum(),
            subs: subs.as_ref(),
        });
        let rows: Vec<Row<'_>> = rows.collect();
        self.of_widths(of, &auto.at(level), &rows)?;
        self.to.member("interval", &width);
        Ok(())
    }

    /// Writes buckets of a width.
    fn of_widths(
        &mut self,
        of: &'a Aggregation,
        histogram: &Histogram,
        rows: &[Row<'_>],
    ) -> Result<()> {
        let own = self.found.format(of).unwrap_or_default();
        let format = histogram.format.as_ref().unwrap_or(&own);
        let shown = self.found.shown.get(&of.field);
        let text = |key: &Literal| match histogram.of_dates {
            true => Some(format.show_in_zone(key.number() as i64, &histogram.zone)),
            false => shown?.text(key.number()),
        };
        let name = |key: &Literal| text(key).unwrap_or_else(|| show_double(key.number()));
        let own = |to: &mut Text<'_>, key: &Literal| {
            if let Some(text) = text(key) {
                to.member("key_as_string", &text);
            }
            match histogram.of_dates {
                true => to.member("key", &(key.number() as i64)),
                false => to.member("key", &key.number()),
            }
        };
        self.buckets(of, rows, (&name, &own))
    }

    /// With an empty bucket wherever there is none between the first and the last, or between bounds.
    fn filled<'r>(
        &self,
        rows: Vec<Row<'r>>,
        histogram: &Histogram,
        bounds: (f64, f64),
    ) -> Result<Vec<Row<'r>>> {
        let inside = rows.first().zip(rows.last()).map(|(a, b)| (a.key.number(), b.key.number()));
        let (mut at, last) =
            inside.map_or(bounds, |ends| (ends.0.min(bounds.0), ends.1.max(bounds.1)));
        let (mut there, mut filled) = (rows.into_iter().peekable(), Vec::new());
        while at <= last {
            // A key that rounding put between two of the grid stays where it is.
            while let Some(row) = there.next_if(|row| row.key.number() <= at) {
                filled.push(row);
            }
            let key = Literal::Float(at);
            if filled.last().is_none_or(|row: &Row<'_>| row.key != key) {
                filled.push(Row { key, doc_count: 0, subs: None });
            }
            let next = histogram.next(at);
            if filled.len() > self.left || next <= at {
                return Err(too_many(self.max_buckets));
            }
            at = next;
        }
        filled.extend(there);
        Ok(filled)
    }

    fn ranges(
        &mut self,
        of: &'a Aggregation,
        (ranges, written): (&[RangeBucket], Option<(DateFormat, Zone)>),
        found: Option<&One>,
    ) -> Result<()> {
        let rows = placed(found, ranges.len());
        let is_distance = matches!(of.kind, AggregationKind::Distance(_));
        let shown = self.found.shown.get(&of.field);
        let text = |end: f64| match &written {
            Some((format, zone)) => Some(format.show_in_zone(end as i64, zone)),
            None => shown?.text(end),
        };
        let show = |end: f64| text(end).unwrap_or_else(|| show_double(end));
        let range = |key: &Literal| &ranges[key.number() as usize];
        let name = |key: &Literal| {
            let range = range(key);
            let end = |end: Option<f64>| end.map_or_else(|| "*".to_owned(), show);
            // No distance is less than 0.
            let from = range.from.filter(|from| *from != 0.0 || !is_distance);
            range.key.clone().unwrap_or_else(|| format!("{}-{}", end(from), end(range.to)))
        };
        let own = |to: &mut Text<'_>, key: &Literal| {
            if !of.keyed {
                to.member("key", &name(key));
            }
            let range = range(key);
            let ends = [("from", "from_as_string", range.from), ("to", "to_as_string", range.to)];
            for (side, as_string, end) in ends {
                let Some(end) = end else { continue };
                to.member(side, &end);
                if let Some(text) = text(end) {
                    to.member(as_string, &text);
                }
            }
        };
        self.buckets(of, &rows, (&name, &own))
    }

    /// Answers the numbers of pipelines within a single bucket.
    fn filters(
        &mut self,
        of: &'a Aggregation,
        filters: &Filters,
        found: Option<&One>,
    ) -> Result<Numbers> {
        let rows = placed(found, filters.filters.len() + usize::from(filters.other.is_some()));
        if filters.shape == FiltersShape::One {
            self.to.member("doc_count", &rows[0].doc_count);
            return self.within(of, &rows[0]);
        }
        let named = filters.filters.iter().map(|(name, _)| name).chain(&filters.other);
        let named: Vec<&String> = named.collect();
        let name = |key: &Literal| match named[key.number() as usize] {
            // In a list they are known by their places.
            none if none.is_empty() => key.number().to_string(),
            name => name.clone(),
        };
        self.buckets(of, &rows, (&name, &|_: &mut Text<'_>, _: &Literal| {}))?;
        Ok(Numbers::new())
    }

    fn tuples(&mut self, of: &'a Aggregation, asked: &Tuples, found: Option<&One>) -> Result<()> {
        let sources = &asked.sources;
        let mut all = self.found.tuples(asked, found);
        all.sort_by(|(a, _), (b, _)| compare_tuples(sources, a, b));
        if let Some(Some(after)) = &asked.paged {
            let mut after = after.clone();
            self.found.keep(sources, &mut after);
            all.retain(|(values, _)| compare_tuples(sources, values, &after).is_gt());
        }
        // Where nothing else is said tuples are in the order of their values: a row is known by its place in it.
        let (values, mut rows): (Vec<Vec<Literal>>, Vec<Row<'_>>) = all.into_iter().unzip();
        (0..).zip(&mut rows).for_each(|(place, row)| row.key = Literal::Integer(place));
        let place = |key: &Literal| key.number() as usize;
        if asked.paged.is_some() {
            rows.truncate(asked.size);
            let named = |of: &Vec<Literal>| -> Value {
                let pairs = sources.iter().zip(of);
                pairs.map(|(of, value)| (of.name.clone(), self.shown_value(of, value))).collect()
            };
            let keys: Vec<Value> = values.iter().take(rows.len()).map(named).collect();
            if let Some(last) = keys.last() {
                self.to.member("after_key", last);
            }
            let own = |to: &mut Text<'_>, key: &Literal| to.member("key", &keys[place(key)]);
            return self.buckets(of, &rows, (&|_: &Literal| String::new(), &own));
        }
        rows.retain(|row| row.doc_count >= of.min_doc_count);
        sort(&mut rows, of);
        let other: u64 = rows.iter().skip(asked.size).map(|row| row.doc_count).sum();
        rows.truncate(asked.size);
        self.to.member("doc_count_error_upper_bound", &0);
        self.to.member("sum_other_doc_count", &other);
        let keys = values.iter().map(|of| {
            let pairs = sources.iter().zip(of);
            let shown = |(source, value): (&Aggregation, &Literal)| {
                // In another index the field may hold texts.
                match self.found.format(source).filter(|_| !matches!(value, Literal::Text(_))) {
                    Some(format) => format.show(value.number() as i64).into(),
                    None => self.shown_value(source, value),
                }
            };
            pairs.map(shown).collect::<Vec<Value>>()
        });
        let keys: Vec<Vec<Value>> = keys.collect();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = |key: &Literal| keys[place(key)].iter().map(text).collect::<Vec<_>>().join("|");
        let own = |to: &mut Text<'_>, key: &Literal| {
            to.member("key", &keys[place(key)]);
            to.member("key_as_string", &name(key));
        };
        self.buckets(of, &rows, (&name, &own))
    }

    /// A value of a tuple as the field shows it.
    fn shown_value(&self, source: &Aggregation, value: &Literal) -> Value {
        match (&source.kind, self.found.shown.get(&source.field), value) {
            (_, _, Literal::Null) => Value::Null,
            (AggregationKind::Histogram(histogram), _, value) if histogram.of_dates => {
                let ms = value.number() as i64;
                let format = histogram.format.as_ref();
                format.map_or(ms.into(), |format| format.show_in_zone(ms, &histogram.zone).into())
            }
            (AggregationKind::Grid(grid), _, Literal::Integer(cell)) => grid.key(*cell).into(),
            (_, Some(Shown::Boolean), Literal::Integer(yes)) => (*yes == 1).into(),
            (_, _, value) => value.json(),
        }
    }
}
