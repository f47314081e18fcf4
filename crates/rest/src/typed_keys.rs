//! `typed_keys`: names of aggregations that begin with the type of their answer, `sterms#words`, by which typed clients
//! know how to read it.

use query::aggregation::{Aggregation, AggregationKind, FiltersShape, Statistic};
use query::pipeline::PipelineKind;
use query::{FieldType, Literal, Mapping, mapping};
use serde_json::{Map, Value};

/// An aggregation's name, with and without its type, and those within its buckets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TypedKey {
    name: String,
    typed: String,
    subs: Vec<TypedKey>,
}

impl TypedKey {
    /// Those of a request to indices with these mappings.
    pub(super) fn all(of: &[Aggregation], mappings: &[Mapping]) -> Vec<TypedKey> {
        let one = |aggregation: &Aggregation| TypedKey {
            name: aggregation.name.clone(),
            typed: format!("{}#{}", answer_type(aggregation, mappings), aggregation.name),
            subs: TypedKey::all(&aggregation.subs, mappings),
        };
        of.iter().map(one).collect()
    }
}

/// As the field names the answer. Of `terms` it depends on the values.
fn answer_type(of: &Aggregation, mappings: &[Mapping]) -> &'static str {
    match &of.kind {
        AggregationKind::Terms { .. } => {
            let field = mappings.iter().find_map(|mapping| mapping.field(&of.field));
            match field.map(|field| field.kind) {
                None if of.field == mapping::INDEX => "sterms",
                // All values are the one that stands for those that are missing.
                None => match of.missing {
                    Some(Literal::Integer(_)) => "lterms",
                    Some(Literal::Float(_)) => "dterms",
                    _ => "sterms",
                },
                Some(kind) if kind.is_float() => "dterms",
                Some(FieldType::Ip | FieldType::Keyword | FieldType::Text) => "sterms",
                Some(_) => "lterms",
            }
        }
        AggregationKind::Histogram(histogram) if histogram.of_dates => "date_histogram",
        AggregationKind::Histogram(_) => "histogram",
        AggregationKind::AutoHistogram(_) => "auto_date_histogram",
        AggregationKind::Range(_) => "range",
        AggregationKind::DateRange(_) => "date_range",
        AggregationKind::Distance(_) => "geo_distance",
        AggregationKind::Grid(grid) if grid.of_tiles => "geotile_grid",
        AggregationKind::Grid(_) => "geohash_grid",
        AggregationKind::GeoCentroid => "geo_centroid",
        AggregationKind::GeoBounds { .. } => "geo_bounds",
        AggregationKind::Filters(of) if of.shape == FiltersShape::One => {
            let is_missing = of.filters.iter().any(|(kind, _)| kind == "missing");
            if is_missing { "missing" } else { "filter" }
        }
        AggregationKind::Filters(_) => "filters",
        AggregationKind::Tuples(of) if of.paged.is_some() => "composite",
        AggregationKind::Tuples(_) => "multi_terms",
        AggregationKind::Cardinality { .. } => "cardinality",
        AggregationKind::Percentiles(_) => "tdigest_percentiles",
        AggregationKind::TopHits(_) => "top_hits",
        AggregationKind::Pipeline(of) => match of.kind {
            PipelineKind::Derivative { .. } => "derivative",
            PipelineKind::MinBucket | PipelineKind::MaxBucket => "bucket_metric_value",
            PipelineKind::StatsBucket => "stats_bucket",
            _ => "simple_value",
        },
        AggregationKind::Stats(statistic) => match statistic {
            Statistic::Min => "min",
            Statistic::Max => "max",
            Statistic::Avg => "avg",
            Statistic::Sum => "sum",
            Statistic::ValueCount => "value_count",
            Statistic::Stats => "stats",
            Statistic::Extended { .. } => "extended_stats",
        },
    }
}

/// The answers to aggregations, under their typed names.
pub(super) fn typed(keys: &[TypedKey], answers: &mut Map<String, Value>) {
    for TypedKey { name, typed: typed_name, subs } in keys {
        let Some(mut answer) = answers.remove(name) else { continue };
        let buckets: Vec<&mut Value> = match answer.get_mut("buckets") {
            Some(Value::Array(buckets)) => buckets.iter_mut().collect(),
            Some(Value::Object(buckets)) => buckets.values_mut().collect(),
            // A filter is its one bucket.
            _ => vec![&mut answer],
        };
        buckets.into_iter().filter_map(Value::as_object_mut).for_each(|bucket| typed(subs, bucket));
        answers.insert(typed_name.clone(), answer);
    }
}

#[cfg(test)]
mod tests {
    use query::parse_search;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_begin_with_the_type_of_the_answer() {
        let request = parse_search(
            br#"{"aggs":{"w":{"terms":{"field":"word"},"aggs":{"a":{"avg":{"field":"n"}},
                "r":{"range":{"field":"n","keyed":true,"ranges":[{"key":"low","to":5}]},
                "aggs":{"t":{"terms":{"field":"x"}}}}}},"n":{"terms":{"field":"n"}}}}"#,
        )
        .unwrap();
        let mapping = json!({ "properties": {
            "word": { "type": "keyword" }, "n": { "type": "long" }, "x": { "type": "float" }
        } });
        let keys = TypedKey::all(&request.aggregations, &[Mapping::parse(&mapping).unwrap()]);
        let mut answer = json!({
            "w": { "buckets": [{ "key": "a", "doc_count": 1, "a": { "value": 1.0 },
                "r": { "buckets": { "low": { "doc_count": 1, "t": { "buckets": [] } } } } }] },
            "n": { "buckets": [] },
        });
        typed(&keys, answer.as_object_mut().unwrap());
        assert_eq!(
            answer,
            json!({
                "sterms#w": { "buckets": [{ "key": "a", "doc_count": 1, "avg#a": { "value": 1.0 },
                    "range#r": { "buckets": { "low": { "doc_count": 1, "dterms#t": { "buckets": [] } } } } }] },
                "lterms#n": { "buckets": [] },
            })
        );
        let unmapped = |aggs: &str| {
            let request = parse_search(format!("{{\"aggs\":{{\"a\":{aggs}}}}}").as_bytes());
            TypedKey::all(&request.unwrap().aggregations, &[]).remove(0).typed
        };
        for (aggs, typed) in [
            (r#"{"terms":{"field":"n"}}"#, "sterms#a"),
            (r#"{"terms":{"field":"n","missing":"none"}}"#, "sterms#a"),
            (r#"{"terms":{"field":"n","missing":7}}"#, "lterms#a"),
            (r#"{"terms":{"field":"_index"}}"#, "sterms#a"),
            (r#"{"missing":{"field":"n"}}"#, "missing#a"),
            (r#"{"filter":{"exists":{"field":"n"}}}"#, "filter#a"),
        ] {
            assert_eq!(unmapped(aggs), typed);
        }
    }
}
