//! Pipeline aggregations from JSON: what each reads, whether that is there, and which of them comes first.

use super::limits::{MAX_PIPELINES, few};
use super::options::Options;
use super::sort;
use crate::aggregation::{Aggregation, AggregationKind, FiltersShape};
use crate::date::{CalendarUnit, fixed_interval_ms};
use crate::error::{Result, SearchError, Spot, ensure, illegal, parsing};
use crate::hits::{SortKey, SortTarget};
use crate::json::{Member, Node};
use crate::pipeline::{Pipeline, PipelineKind};

/// One that reads the numbers at `buckets_path`.
pub(super) fn over_path(options: &Options<'_>, kind: PipelineKind) -> Result<AggregationKind> {
    let node = options.need("buckets_path")?;
    let [item] = node.items() else { return Err(node.wrong("buckets_path", "a single path")) };
    let zeros = kind == PipelineKind::CumulativeSum || counts_zeros(options)?;
    let paths = vec![path(&item.text("buckets_path")?, item.at)?];
    Ok(AggregationKind::Pipeline(Pipeline { kind, paths, zeros }))
}

fn counts_zeros(options: &Options<'_>) -> Result<bool> {
    Ok(options.one_of("gap_policy", &["skip", "insert_zeros"])? == "insert_zeros")
}

pub(super) fn derivative(options: &Options<'_>) -> Result<AggregationKind> {
    let unit = |node: &Node, name: &str| {
        let text = node.text(name)?;
        let calendar = CalendarUnit::of_interval(&text).map(CalendarUnit::average_ms);
        let ms = calendar.or_else(|| fixed_interval_ms(&text));
        ms.map(|ms| ms as f64).ok_or_else(|| node.wrong(name, "a time like 1d or month"))
    };
    over_path(options, PipelineKind::Derivative { unit_ms: options.read("unit", unit)? })
}

pub(super) fn bucket_sort(options: &Options<'_>) -> Result<AggregationKind> {
    let (mut descending, mut paths, at) = (Vec::new(), Vec::new(), options.node.at);
    for key in options.read("sort", |node, _| sort::keys(node))?.unwrap_or_default() {
        let name = match &key.target {
            SortTarget::Field(name) if key == SortKey::of(name, Some(key.descending)) => name,
            _ => {
                let reason = "[bucket_sort] sorts by [_key], [_count] and the numbers of buckets, each with [order] alone";
                return Err(parsing(at, reason));
            }
        };
        paths.push(path(name, at)?);
        descending.push(key.descending);
    }
    few(at, paths.len(), (MAX_PIPELINES, "keys of one [bucket_sort]"))?;
    let size = options.read("size", |node, name| {
        let count = node.count(name)?;
        ensure(count > 0, node.at, "[size] must be a positive integer: [0]")?;
        Ok(count as usize)
    })?;
    let from = options.read("from", Node::count)?.unwrap_or(0) as usize;
    let does_any = !descending.is_empty() || size.is_some() || from > 0;
    let reason = "[bucket_sort] is configured to perform nothing: set one of [sort, size, from]";
    ensure(does_any, at, reason)?;
    let kind = PipelineKind::BucketSort { descending, from, size: size.unwrap_or(usize::MAX) };
    let zeros = counts_zeros(options)?;
    Ok(AggregationKind::Pipeline(Pipeline { kind, paths, zeros }))
}

/// `a>b.value` or `a>b[99.9]`: the names on the way, and the name of the number.
fn path(text: &str, at: Spot) -> Result<Vec<String>> {
    let mut names: Vec<&str> = text.split('>').collect();
    let last = names.pop().unwrap_or_default();
    let number = match last.strip_suffix(']') {
        Some(last) => last.split_once('['),
        None => last.rsplit_once('.'),
    };
    names.push(number.map_or(last, |(name, _)| name));
    names.extend(number.map(|(_, number)| number));
    ensure(!names.contains(&""), at, format_args!("Invalid path element in path [{text}]"))?;
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// The aggregations of one level in the order in which they are computed: each pipeline behind those that it reads.
/// `parent` is the aggregation within which they stand.
pub(super) fn in_order(
    list: Vec<Aggregation>,
    members: &[Member<'_>],
    parent: Option<&Aggregation>,
) -> Result<Vec<Aggregation>> {
    let pipelines = list.iter().filter(|of| of.is_pipeline()).count();
    let at = members.first().map(|member| member.at).unwrap_or_default();
    few(at, pipelines, (MAX_PIPELINES, "pipeline aggregations within one aggregation"))?;
    for (of, member) in list.iter().zip(members) {
        let AggregationKind::Pipeline(asked) = &of.kind else { continue };
        let checked = check(&of.name, asked, &list, parent);
        checked.map_err(|reason| SearchError { at: Some(member.at), ..illegal(reason) })?;
    }
    let (mut waiting, mut placed): (Vec<Aggregation>, Vec<Aggregation>) =
        list.into_iter().partition(Aggregation::is_pipeline);
    let reads = |of: &Aggregation, name: &str| match &of.kind {
        AggregationKind::Pipeline(asked) => asked.paths.iter().any(|path| path[0] == name),
        _ => false,
    };
    while !waiting.is_empty() {
        let (mut at, mut steps) = (0, 0);
        while let Some(next) = waiting.iter().position(|other| reads(&waiting[at], &other.name)) {
            (at, steps) = (next, steps + 1);
            if steps > waiting.len() {
                let name = &waiting[at].name;
                let reason = format!("Cyclical dependency found with pipeline aggregator [{name}]");
                return Err(illegal(reason));
            }
        }
        placed.push(waiting.remove(at));
    }
    Ok(placed)
}

/// Whether a pipeline stands where it can, and reads numbers that there are; else why not.
fn check(
    name: &str,
    asked: &Pipeline,
    list: &[Aggregation],
    parent: Option<&Aggregation>,
) -> Result<(), String> {
    use AggregationKind::{AutoHistogram, Histogram, Terms};
    let whole = |path: &[String]| path.join(">");
    let kind = asked.kind.name();
    if asked.kind.is_sibling() {
        let path = asked.paths[0].as_slice();
        let shown = whole(path);
        let of = list.iter().find(|of| asked.summarises(&of.name)).ok_or_else(|| {
            format!("buckets_path aggregation does not exist for aggregation [{name}]: {shown}")
        })?;
        if of.kind.is_composite() || !of.kind.has_buckets() {
            return Err(format!(
                "The first aggregation in buckets_path must be a multi-bucket aggregation for aggregation [{name}]: \
                 {shown}"
            ));
        }
        let found = leads_to_number(&path[1..], &of.subs);
        return found.map_err(|reason| format!("{reason} for path [{shown}]"));
    }
    let parent = parent.ok_or_else(|| {
        format!("{kind} aggregation [{name}] must be declared inside of another aggregation")
    })?;
    let is_sort = matches!(asked.kind, PipelineKind::BucketSort { .. });
    let wanted = match &parent.kind {
        of if is_sort && of.has_buckets() => "",
        _ if is_sort => "a multi-bucket aggregation as parent",
        AutoHistogram(_) => "",
        Histogram(_) if parent.min_doc_count == 0 => "",
        Histogram(_) => "min_doc_count of 0 in its parent histogram",
        _ => "a histogram, date_histogram or auto_date_histogram as parent",
    };
    if !wanted.is_empty() {
        return Err(format!("{kind} aggregation [{name}] must have {wanted}"));
    }
    let has_plain_keys = matches!(parent.kind, Terms { .. } | Histogram(_) | AutoHistogram(_));
    for path in &asked.paths {
        let shown = whole(path);
        if !(is_sort && has_plain_keys && shown == "_key") {
            let found = leads_to_number(path, list);
            found.map_err(|reason| format!("{reason} for path [{shown}]"))?;
        }
    }
    Ok(())
}

/// Whether a path leads from a bucket, within which these stand, to one number; else why not.
fn leads_to_number(path: &[String], list: &[Aggregation]) -> Result<(), String> {
    if path == ["_count"] {
        return Ok(());
    }
    let (name, rest) =
        path.split_first().ok_or("buckets_path must reference a number of buckets")?;
    let of = list.iter().find(|of| of.name == *name);
    let of = of.ok_or_else(|| format!("No aggregation [{name}] found"))?;
    match (&of.kind, rest) {
        (AggregationKind::Filters(filters), [_, ..]) if filters.shape == FiltersShape::One => {
            leads_to_number(rest, &of.subs)
        }
        (kind, [] | [_]) if kind.has_number(rest.first().map(String::as_str)) => Ok(()),
        _ => Err(format!(
            "buckets_path must reference either a number value or a single value numeric metric aggregation, and [{name}] \
             is none of that"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_PIPELINES;
    use crate::parse_search;

    /// The names within a histogram, as they are computed.
    fn order(pipelines: &str) -> Result<Vec<String>, String> {
        let body = format!(
            r#"{{"aggs":{{"h":{{"histogram":{{"field":"x","interval":1}},"aggs":{{{pipelines}}}}}}}}}"#
        );
        let request = parse_search(body.as_bytes()).map_err(|error| error.reason)?;
        Ok(request.aggregations[0].subs.iter().map(|of| of.name.clone()).collect())
    }

    #[test]
    fn a_pipeline_comes_behind_those_that_it_reads() {
        let sort = r#""sort":{"bucket_sort":{"sort":[{"second":"desc"}]}}"#;
        let second = r#""second":{"derivative":{"buckets_path":"first"}}"#;
        let first = r#""first":{"derivative":{"buckets_path":"s.value","unit":"1M"}}"#;
        let after = r#""after":{"cumulative_sum":{"buckets_path":"_count"}}"#;
        let metric = r#""s":{"sum":{"field":"x"}}"#;
        let all = format!("{sort},{after},{second},{first},{metric}");
        // What nobody reads stays where it was: behind the sort, whose buckets it sees.
        assert_eq!(order(&all).unwrap(), ["s", "first", "second", "sort", "after"]);
    }

    #[test]
    fn pipelines_that_read_each_other_are_refused() {
        let circle =
            r#""a":{"derivative":{"buckets_path":"b"}},"b":{"derivative":{"buckets_path":"a"}}"#;
        let said = order(circle).unwrap_err();
        assert!(said.contains("Cyclical dependency found with pipeline aggregator ["), "{said}");
        let itself = r#""a":{"cumulative_sum":{"buckets_path":"a"}}"#;
        assert!(order(itself).unwrap_err().contains("Cyclical"), "it reads itself");
    }

    /// Each reads the next, so that the last is placed first.
    #[test]
    fn a_chain_of_pipelines_is_no_longer_than_the_bound() {
        let chain = |count: usize| {
            let next =
                |n: usize| if n == count { "_count".to_owned() } else { format!("p{}", n + 1) };
            let one =
                |n| format!("\"p{n}\":{{\"cumulative_sum\":{{\"buckets_path\":\"{}\"}}}}", next(n));
            order(&(1..=count).map(one).collect::<Vec<_>>().join(","))
        };
        let placed = chain(MAX_PIPELINES).unwrap();
        assert_eq!((placed.len(), placed[0].as_str()), (MAX_PIPELINES, "p128"));
        assert!(chain(MAX_PIPELINES + 1).unwrap_err().contains("at most 128"));
        assert!(chain(20_000).unwrap_err().contains("at most 128"));
        let keys = vec!["\"_count\""; MAX_PIPELINES + 1].join(",");
        let sort = format!("\"s\":{{\"bucket_sort\":{{\"sort\":[{keys}]}}}}");
        assert!(order(&sort).unwrap_err().contains("at most 128 keys"));
    }

    #[test]
    fn paths_name_a_number_by_a_dot_or_in_brackets() {
        let p = r#""p":{"percentiles":{"field":"x","percents":[50,99.9]}}"#;
        for path in ["p[99.9]", "p.50", "p[50]"] {
            let asked = format!("{p},\"d\":{{\"derivative\":{{\"buckets_path\":\"{path}\"}}}}");
            assert_eq!(order(&asked).unwrap(), ["p", "d"], "{path}");
        }
        for path in ["p", "p.99.9", "p[x]", "p[", "p>50"] {
            let asked = format!("{p},\"d\":{{\"derivative\":{{\"buckets_path\":\"{path}\"}}}}");
            let said = order(&asked);
            assert_eq!(said.is_ok(), path == "p>50", "{path}: {said:?}");
        }
    }
}
