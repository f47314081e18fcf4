//! Pipeline aggregations over the buckets that are shown: what they read of these, and what they add to their JSON.

use std::collections::BTreeMap;

use query::aggregation::{Aggregation, AggregationKind};
use query::pipeline::{Answer, Pipeline, PipelineKind};
use query::{Literal, Text};

use super::rows::{Row, metric, placed};

/// Numbers of the pipelines within a bucket, by the names on the way to them; none where there is no value.
pub(super) type Numbers = BTreeMap<String, Option<f64>>;

/// A bucket that was written.
pub(super) struct Written<'r> {
    pub(super) row: &'r Row<'r>,
    /// Its key as text.
    pub(super) name: String,
    pub(super) numbers: Numbers,
    /// Its JSON without the last bracket.
    pub(super) text: Vec<u8>,
}

impl Written<'_> {
    /// What counts for a pipeline that reads the number at a path.
    fn number(&self, asked: &Pipeline, subs: &[Aggregation], path: &[String]) -> Option<f64> {
        if path == ["_count"] {
            return Some(self.row.doc_count as f64);
        }
        let path_text = path.join(">");
        let of_pipeline = self.numbers.get(&path_text);
        let of_pipeline = of_pipeline.or_else(|| self.numbers.get(&(path_text + ">value")));
        let number = match of_pipeline {
            Some(number) => Some(number.unwrap_or(f64::NAN)),
            None => collected(self.row, subs, path),
        };
        asked.counted(number, self.row.doc_count > 0)
    }

    /// What it is sorted by.
    fn key(&self, asked: &Pipeline, subs: &[Aggregation], path: &[String]) -> Option<Literal> {
        if path != ["_key"] {
            let number = self.number(asked, subs, path).filter(|number| !number.is_nan());
            return number.map(Literal::Float);
        }
        Some(match &self.row.key {
            // The field sorts these by their texts.
            address @ Literal::Address(_) => Literal::Text(address.text()),
            key => key.clone(),
        })
    }
}

/// The number at a path within a bucket, if no pipeline answers it.
fn collected(row: &Row<'_>, subs: &[Aggregation], path: &[String]) -> Option<f64> {
    let (name, rest) = path.split_first()?;
    if name == "_count" {
        return Some(row.doc_count as f64);
    }
    let sub = subs.iter().find(|sub| sub.name == *name)?;
    match sub.kind {
        AggregationKind::Pipeline(_) => None,
        AggregationKind::Filters(_) => {
            let within = placed(row.subs.and_then(|results| results.get(name)), 1);
            collected(&within[0], &sub.subs, rest)
        }
        _ => {
            let number = metric(row, subs, name, rest.first().map(String::as_str));
            Some(number.unwrap_or(f64::NAN))
        }
    }
}

/// The pipelines among aggregations that summarise the buckets of one.
fn summaries<'a>(
    of: &Aggregation,
    beside: &'a [Aggregation],
) -> impl Iterator<Item = (&'a Aggregation, &'a Pipeline)> {
    beside.iter().filter_map(|other| match &other.kind {
        AggregationKind::Pipeline(asked) if asked.summarises(&of.name) => Some((other, asked)),
        _ => None,
    })
}

/// Whether a pipeline reads the buckets of an aggregation: one within them, or one beside it.
pub(super) fn is_read(of: &Aggregation, beside: &[Aggregation]) -> bool {
    of.subs.iter().any(Aggregation::is_pipeline) || summaries(of, beside).next().is_some()
}

/// Lets each pipeline within the buckets of an aggregation add to them or sort them, in order. Answers what those
/// beside it say of the buckets that are shown then.
pub(super) fn run<'a>(
    of: &Aggregation,
    beside: &'a [Aggregation],
    buckets: &mut Vec<Written<'_>>,
) -> Vec<(&'a Aggregation, Answer)> {
    for sub in &of.subs {
        let AggregationKind::Pipeline(asked) = &sub.kind else { continue };
        if let PipelineKind::BucketSort { .. } = asked.kind {
            let keys = |bucket: &Written<'_>| -> Vec<Option<Literal>> {
                asked.paths.iter().map(|path| bucket.key(asked, &of.subs, path)).collect()
            };
            let keys: Vec<Vec<Option<Literal>>> = buckets.iter().map(keys).collect();
            let places = asked.sorted(&keys);
            let mut there: Vec<Option<Written<'_>>> = buckets.drain(..).map(Some).collect();
            buckets.extend(places.into_iter().filter_map(|place| there[place].take()));
        } else if !asked.kind.is_sibling() {
            let path = &asked.paths[0];
            let number = |bucket: &Written<'_>| {
                (bucket.row.key.number(), bucket.number(asked, &of.subs, path))
            };
            let numbers: Vec<(f64, Option<f64>)> = buckets.iter().map(number).collect();
            for (bucket, answer) in buckets.iter_mut().zip(asked.along(&numbers)) {
                let Some(answer) = answer else { continue };
                write(&mut Text(&mut bucket.text), sub, &answer, &mut bucket.numbers);
            }
        }
    }
    let summary = |(other, asked): (&'a Aggregation, &'a Pipeline)| {
        let path = &asked.paths[0][1..];
        let number =
            |bucket: &Written<'_>| (bucket.name.clone(), bucket.number(asked, &of.subs, path));
        (other, asked.summary(buckets.iter().map(number).collect()))
    };
    summaries(of, beside).map(summary).collect()
}

/// Writes what a pipeline answers, and keeps its numbers for those that read them.
pub(super) fn write(to: &mut Text<'_>, of: &Aggregation, answer: &Answer, numbers: &mut Numbers) {
    to.open_named(&of.name, of.meta.as_deref());
    for (name, value) in &answer.numbers {
        match (*name, value) {
            ("count", Some(count)) => to.member(name, &(*count as u64)),
            _ => to.member(name, value),
        }
        numbers.insert(format!("{}>{name}", of.name), *value);
    }
    if let Some(keys) = &answer.keys {
        to.member("keys", keys);
    }
    to.close(b'}');
}
