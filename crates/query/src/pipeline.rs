//! Pipeline aggregations: what is computed of the buckets of other aggregations, once the answers of all shards are
//! merged.
//!
//! A bucket has a gap where it has no documents, or no number at the path that is read; `gap_policy` says what counts
//! there. Numbers are added in the order of their buckets, one by one, as Elasticsearch and OpenSearch add them.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::value::Literal;

/// A pipeline aggregation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// What it computes.
    pub kind: PipelineKind,
    /// `buckets_path`: the names on the way to each number that it reads. Of `bucket_sort` one path for each key.
    pub paths: Vec<Vec<String>>,
    /// `gap_policy`: whether a gap counts as 0; it is passed over otherwise.
    pub zeros: bool,
}

/// What a pipeline aggregation computes.
#[expect(missing_docs, reason = "the names are those of the field's requests")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PipelineKind {
    AvgBucket,
    SumBucket,
    MinBucket,
    MaxBucket,
    StatsBucket,
    /// `unit`: milliseconds of the time by which `normalized_value` says how fast numbers change.
    Derivative {
        unit_ms: Option<f64>,
    },
    CumulativeSum,
    /// Whether each key begins with the greatest, how many buckets are passed over, and how many are shown.
    BucketSort {
        descending: Vec<bool>,
        from: usize,
        size: usize,
    },
}

impl PipelineKind {
    /// The field's name.
    pub fn name(&self) -> &'static str {
        match self {
            PipelineKind::AvgBucket => "avg_bucket",
            PipelineKind::SumBucket => "sum_bucket",
            PipelineKind::MinBucket => "min_bucket",
            PipelineKind::MaxBucket => "max_bucket",
            PipelineKind::StatsBucket => "stats_bucket",
            PipelineKind::Derivative { .. } => "derivative",
            PipelineKind::CumulativeSum => "cumulative_sum",
            PipelineKind::BucketSort { .. } => "bucket_sort",
        }
    }

    /// The names of the numbers that it answers.
    pub fn numbers(&self) -> &'static [&'static str] {
        match self {
            PipelineKind::StatsBucket => &["count", "min", "max", "avg", "sum"],
            PipelineKind::Derivative { unit_ms: Some(_) } => &["value", "normalized_value"],
            PipelineKind::BucketSort { .. } => &[],
            _ => &["value"],
        }
    }

    /// Whether it stands beside the aggregation whose buckets it reads, and not within these.
    pub fn is_sibling(&self) -> bool {
        self.name().ends_with("_bucket")
    }
}

/// What a pipeline aggregation answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its numbers, by name; none where there is no value.
    pub numbers: Vec<(&'static str, Option<f64>)>,
    /// The buckets that have the least or the greatest value.
    pub keys: Option<Vec<String>>,
}

impl Answer {
    fn of(value: Option<f64>) -> Self {
        Answer { numbers: vec![("value", value)], keys: None }
    }
}

impl Pipeline {
    /// Whether it summarises the buckets of the aggregation of this name, beside which it stands.
    pub fn summarises(&self, name: &str) -> bool {
        self.kind.is_sibling() && self.paths[0][0] == name
    }

    /// What counts for a bucket that has `number` at a path: 0 or not a number in a gap. None stays none: there the
    /// aggregation at the path says nothing at all, as the first derivative does.
    pub fn counted(&self, number: Option<f64>, has_documents: bool) -> Option<f64> {
        let gap = if self.zeros { 0.0 } else { f64::NAN };
        number.map(|number| if has_documents && number.is_finite() { number } else { gap })
    }

    /// What it says of all buckets, each with its key and what counts for it.
    pub fn summary(&self, buckets: Vec<(String, Option<f64>)>) -> Answer {
        let there = buckets.into_iter().filter_map(|(key, number)| Some((key, number?)));
        let there: Vec<(String, f64)> = there.filter(|(_, number)| !number.is_nan()).collect();
        let numbers = || there.iter().map(|(_, number)| *number);
        // `Iterator::sum` of nothing is -0.0.
        let (count, sum) = (there.len() as f64, numbers().fold(0.0, |sum, number| sum + number));
        let avg = (count > 0.0).then_some(sum / count);
        let (least, greatest) = (numbers().reduce(f64::min), numbers().reduce(f64::max));
        let with_keys = |best: Option<f64>| {
            let keys = there.iter().filter(|(_, number)| Some(*number) == best);
            Answer { keys: Some(keys.map(|(key, _)| key.clone()).collect()), ..Answer::of(best) }
        };
        match self.kind {
            PipelineKind::AvgBucket => Answer::of(avg),
            PipelineKind::SumBucket => Answer::of(Some(sum)),
            PipelineKind::MinBucket => with_keys(least),
            PipelineKind::MaxBucket => with_keys(greatest),
            _ => {
                let values = [Some(count), least, greatest, avg, Some(sum)];
                let names = PipelineKind::StatsBucket.numbers();
                Answer { numbers: names.iter().copied().zip(values).collect(), keys: None }
            }
        }
    }

    /// What it says in each bucket of a histogram, each with its start and what counts for it; none where it says
    /// nothing.
    pub fn along(&self, buckets: &[(f64, Option<f64>)]) -> Vec<Option<Answer>> {
        let (mut sum, mut before) = (0.0, None);
        let one = |(start, number): &(f64, Option<f64>)| {
            let last = std::mem::replace(&mut before, number.map(|number| (*start, number)));
            let PipelineKind::Derivative { unit_ms } = self.kind else {
                sum += number.filter(|number| number.is_finite()).unwrap_or(0.0);
                return Some(Answer::of(Some(sum)));
            };
            let (last_start, last) = last?;
            let rise = (*number)? - last;
            let mut answer = Answer::of(Some(rise).filter(|rise| rise.is_finite()));
            let units =
                unit_ms.map(|unit| (start - last_start) / unit).filter(|units| *units > 0.0);
            if let Some(units) = units {
                let normalized = Some(rise / units).filter(|value| value.is_finite());
                answer.numbers.push(("normalized_value", normalized));
            }
            Some(answer)
        };
        buckets.iter().map(one).collect()
    }

    /// The places of the buckets that are left, in their new order, by what each has for each key. Buckets that have
    /// nothing for any key are left out.
    pub fn sorted(&self, keys: &[Vec<Option<Literal>>]) -> Vec<usize> {
        let mut places: Vec<usize> = (0..keys.len()).collect();
        let PipelineKind::BucketSort { descending, from, size } = &self.kind else { return places };
        if !descending.is_empty() {
            places.retain(|place| keys[*place].iter().any(Option::is_some));
        }
        places.sort_by(|a, b| {
            let pairs = descending.iter().zip(keys[*a].iter().zip(&keys[*b]));
            let by = pairs.map(|(descending, (a, b))| Literal::order_of(a, b, *descending));
            by.fold(Ordering::Equal, Ordering::then)
        });
        places.into_iter().skip(*from).take(*size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Option<f64> = Some(f64::NAN);

    fn of(kind: PipelineKind) -> Pipeline {
        Pipeline { kind, paths: Vec::new(), zeros: false }
    }

    fn named(numbers: &[Option<f64>]) -> Vec<(String, Option<f64>)> {
        ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(numbers.iter().copied()).collect()
    }

    #[test]
    fn gaps_are_passed_over_or_count_as_zero() {
        let mut pipeline = of(PipelineKind::AvgBucket);
        assert!(pipeline.counted(Some(f64::INFINITY), true).is_some_and(f64::is_nan));
        assert!(pipeline.counted(Some(3.0), false).is_some_and(f64::is_nan));
        pipeline.zeros = true;
        assert_eq!(pipeline.counted(Some(f64::NAN), true), Some(0.0));
        assert_eq!(pipeline.counted(Some(3.0), false), Some(0.0));
        assert_eq!(pipeline.counted(Some(3.0), true), Some(3.0));
        assert_eq!(pipeline.counted(None, true), None);
    }

    #[test]
    fn buckets_are_summarised() {
        let numbers = named(&[Some(4.0), GAP, Some(1.0), Some(4.0)]);
        let value = |kind| of(kind).summary(numbers.clone());
        assert_eq!(value(PipelineKind::AvgBucket), Answer::of(Some(3.0)));
        assert_eq!(value(PipelineKind::SumBucket), Answer::of(Some(9.0)));
        let keys = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect());
        let least = Answer { keys: keys(&["c"]), ..Answer::of(Some(1.0)) };
        assert_eq!(value(PipelineKind::MinBucket), least);
        let greatest = Answer { keys: keys(&["a", "d"]), ..Answer::of(Some(4.0)) };
        assert_eq!(value(PipelineKind::MaxBucket), greatest);
        let stats = value(PipelineKind::StatsBucket).numbers;
        let expected = [("count", 3.0), ("min", 1.0), ("max", 4.0), ("avg", 3.0), ("sum", 9.0)];
        assert_eq!(stats, expected.map(|(name, value)| (name, Some(value))));

        let none = |kind| of(kind).summary(named(&[GAP, None]));
        assert_eq!(none(PipelineKind::AvgBucket), Answer::of(None));
        assert_eq!(none(PipelineKind::SumBucket), Answer::of(Some(0.0)));
        assert_eq!(none(PipelineKind::MaxBucket), Answer { keys: keys(&[]), ..Answer::of(None) });
    }

    #[test]
    fn a_derivative_needs_the_bucket_before() {
        let derivative = of(PipelineKind::Derivative { unit_ms: Some(10.0) });
        let buckets = [(0.0, Some(2.0)), (20.0, Some(5.0)), (40.0, GAP), (60.0, Some(1.0))];
        let answer = |value: Option<f64>, normalized: Option<f64>| {
            Some(Answer {
                numbers: vec![("value", value), ("normalized_value", normalized)],
                keys: None,
            })
        };
        let (rise, unknown) = (answer(Some(3.0), Some(1.5)), answer(None, None));
        assert_eq!(derivative.along(&buckets), [None, rise, unknown.clone(), unknown]);
        // Of the first derivative the first bucket has none, and so the second one has none in the second.
        let second = of(PipelineKind::Derivative { unit_ms: None });
        let said = second.along(&[(0.0, None), (1.0, Some(3.0)), (2.0, Some(5.0))]);
        assert_eq!(said, [None, None, Some(Answer::of(Some(2.0)))]);
    }

    #[test]
    fn sums_go_on_over_gaps() {
        let sums = of(PipelineKind::CumulativeSum).along(&[
            (0.0, Some(2.0)),
            (1.0, GAP),
            (2.0, Some(3.0)),
        ]);
        assert_eq!(sums, [2.0, 2.0, 5.0].map(|sum| Some(Answer::of(Some(sum)))));
    }

    #[test]
    fn buckets_are_sorted_by_several_keys_and_cut() {
        let sort = |descending: &[bool], from, size| {
            of(PipelineKind::BucketSort { descending: descending.to_vec(), from, size })
        };
        let row = |a: Option<f64>, b: &str| {
            vec![a.map(Literal::Float), Some(Literal::Text(b.to_owned()))]
        };
        let keys = [row(Some(1.0), "x"), row(None, "y"), row(Some(2.0), "y"), row(Some(2.0), "x")];
        assert_eq!(sort(&[true, false], 0, usize::MAX).sorted(&keys), [3, 2, 0, 1]);
        assert_eq!(sort(&[false, true], 1, 2).sorted(&keys), [2, 3]);
        let alone = [vec![None], vec![Some(Literal::Integer(1))], vec![None]];
        assert_eq!(sort(&[true], 0, 9).sorted(&alone), [1]);
        let unsorted: [Vec<Option<Literal>>; 3] = Default::default();
        assert_eq!(sort(&[], 1, 9).sorted(&unsorted), [1, 2]);
        assert!(sort(&[], 3, 9).sorted(&unsorted).is_empty());
    }
}
