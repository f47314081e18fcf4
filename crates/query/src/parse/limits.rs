//! How much a body may ask for. What is a setting of the field has the field's default and is named by it; what the
//! field leaves open is bounded so that one request cannot take all of a node.

use crate::error::{SearchError, Spot, illegal};

/// At most so many of what errors call this.
pub(super) type Bound = (usize, &'static str);

/// `indices.query.bool.max_clause_count`
const MAX_CLAUSES: usize = 1024;
/// `indices.query.bool.max_nested_depth`
pub(super) const MAX_BOOL_DEPTH: usize = 20;
/// `index.max_terms_count`
pub(super) const MAX_TERMS: usize = 65_536;
/// A field's name is kept with each clause that asks it.
const MAX_NAME_BYTES: usize = 1024;
/// Each document is compared with each.
pub(super) const POLYGON_POINTS: Bound = (1000, "points of polygons");
/// Parentheses within each other in the text of a query.
pub(super) const MAX_PARENTHESES: usize = 20;

/// `index.max_docvalue_fields_search`
pub(super) const MAX_COLUMN_FIELDS: usize = 100;
/// Each is compared with each path of each hit.
pub(super) const SOURCE_PATTERNS: Bound = (1024, "patterns of [_source]");
/// Hits are compared by each.
pub(super) const SORT_KEYS: Bound = (128, "keys of one [sort]");
/// Each is looked at for every document that matches.
pub(super) const SORT_POINTS: Bound = (128, "points of one [_geo_distance]");

/// `index.max_inner_result_window`
pub(super) const MAX_INNER_WINDOW: usize = 100;
/// Each field of `highlight` has a copy of what stands above it: so many fields, and tags of so many bytes.
pub(super) const MAX_HIGHLIGHT_FIELDS: usize = 1024;
pub(super) const MAX_TAG_BYTES: usize = 1024;

/// Each is collected from each document.
pub(super) const AGGREGATIONS: Bound = (1024, "aggregations");
/// Aggregations within each other.
pub(super) const MAX_AGGREGATION_DEPTH: usize = 20;
/// Each has a bit for each document of a segment.
pub(super) const FILTERS: Bound = (128, "filters of one aggregation");
/// Each value is compared with each.
pub(super) const RANGES: Bound = (1024, "ranges of one aggregation");
/// For each the values of a bucket are walked through.
pub(super) const PERCENTS: Bound = (128, "percents of one aggregation");
/// Orders of one aggregation, and sources of one tuple: each is looked for among the others.
pub(super) const MAX_PARTS: usize = 64;
/// Pipelines of one level, and keys of one `bucket_sort`: each is looked for among the others, in a chain of pipelines
/// once for each that comes before it.
pub(super) const MAX_PIPELINES: usize = 128;
/// Buckets that are asked of a shard, so that one request cannot take all of its memory.
pub(super) const MAX_TERMS_SIZE: u64 = 1 << 31;

/// Refuses a list of the body that is longer than it may be.
pub(super) fn few(at: Spot, count: usize, (most, what): (usize, &str)) -> Result<(), SearchError> {
    match count {
        count if count <= most => Ok(()),
        count => {
            let reason = format!("there are at most {most} {what}, found {count}");
            Err(SearchError { at: Some(at), ..illegal(reason) })
        }
    }
}

/// The clauses of a body so far. Those of the texts in it count, and each counts once for each field that it names: it
/// is kept, sent and resolved as many times.
#[derive(Default)]
pub(super) struct Clauses(usize);

impl Clauses {
    /// Counts more of them.
    pub(super) fn add(&mut self, more: usize) -> Result<(), SearchError> {
        self.0 = self.0.saturating_add(more);
        if self.0 <= MAX_CLAUSES {
            return Ok(());
        }
        Err(illegal(format!(
            "the query has more than {MAX_CLAUSES} clauses (indices.query.bool.max_clause_count), counted once for \
             each field that a text asks; send terms in place of many clauses"
        )))
    }

    /// Counts one more of each of some fields; of one where none is named.
    pub(super) fn of_fields(&mut self, fields: &[(String, f32)]) -> Result<(), SearchError> {
        if fields.iter().any(|(name, _)| name.len() > MAX_NAME_BYTES) {
            let reason = format!(
                "the name of a field has at most {MAX_NAME_BYTES} bytes in a query of several"
            );
            return Err(illegal(reason));
        }
        self.add(fields.len().max(1))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::{SearchErrorKind, SearchRequest, parse_search};

    fn read(body: &Value) -> Result<SearchRequest, SearchError> {
        parse_search(body.to_string().as_bytes())
    }

    #[test]
    fn each_list_of_a_body_has_a_bound() {
        let columns = (MAX_COLUMN_FIELDS, "less than or equal to: [100] but was [101]");
        // The query itself is a clause, too.
        let clauses = (MAX_CLAUSES - 1, "indices.query.bool.max_clause_count");
        let aggregation = |of: &str| format!("{{\"aggs\":{{\"a\":{of}}}}}");
        let range = r#"{"range":{"field":"f","ranges":[LIST]}}"#;
        let percents = r#"{"percentiles":{"field":"f","percents":[LIST]}}"#;
        let functions = r#"{"query":{"function_score":{"functions":[LIST]}}}"#;
        for ((most, said), item, body) in [
            (columns, r#""f""#, r#"{"docvalue_fields":[LIST]}"#),
            (columns, r#""f""#, &aggregation(r#"{"top_hits":{"docvalue_fields":[LIST]}}"#)),
            (SOURCE_PATTERNS, r#""f""#, r#"{"_source":[LIST]}"#),
            (SOURCE_PATTERNS, r#""f""#, r#"{"_source":{"excludes":[LIST]}}"#),
            (SORT_KEYS, r#"{"f":"asc"}"#, r#"{"sort":[LIST]}"#),
            (FILTERS, r#"{"match_all":{}}"#, &aggregation(r#"{"filters":{"filters":[LIST]}}"#)),
            (RANGES, r#"{"to":1}"#, &aggregation(range)),
            (RANGES, r#"{"to":1}"#, &aggregation(&range.replace("range\"", "date_range\""))),
            (PERCENTS, "50", &aggregation(percents)),
            (clauses, r#"{"weight":1}"#, functions),
        ] {
            let read =
                |count| parse_search(body.replace("LIST", &vec![item; count].join(",")).as_bytes());
            assert!(read(most).is_ok(), "{body}: {:?}", read(most).map(drop));
            let error = read(most + 1).unwrap_err();
            assert_eq!(error.kind, SearchErrorKind::IllegalArgument, "{body}: {error}");
            assert!(error.reason.contains(said), "{body}: {error}");
        }
    }

    /// What stands in an object counts as what stands in a list.
    #[test]
    fn names_of_one_object_are_counted() {
        let named = |count: usize, value: Value| -> Value {
            let one = |n| (format!("f{n}"), value.clone());
            (0..count).map(one).collect::<Map<String, Value>>().into()
        };
        let sort = |count| read(&json!({"sort": named(count, json!("asc"))}));
        assert!(sort(SORT_KEYS.0).is_ok() && sort(SORT_KEYS.0 + 1).is_err());
        let order = |count| {
            let terms = json!({"field": "f", "order": named(count, json!("asc"))});
            read(&json!({"aggs": {"a": {"terms": terms}}})).unwrap_err().reason
        };
        assert!(order(MAX_PARTS).contains("order path [f0]"), "{}", order(MAX_PARTS));
        assert!(order(MAX_PARTS + 1).contains("at most 64"));
        let aggs = |count: usize| {
            let within = named(count, json!({"max": {"field": "f"}}));
            read(&json!({"aggs": {"a": {"filter": {"match_all": {}}, "aggs": within}}}))
        };
        assert!(aggs(AGGREGATIONS.0 - 1).is_ok());
        assert!(aggs(AGGREGATIONS.0).unwrap_err().reason.contains("at most 1024 aggregations"));
    }
}
