//! Documents that are written to the indices of a twin: as they were when it was imported, or as it is said.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::TwinPlan;

const RATE: &str = "documents_per_s";
/// Indices that are written to, at most, those with most writes: each takes requests of its own.
const WRITTEN_MAX: usize = 64;
/// Fewer documents a second come to nothing in an answer.
const RATE_MIN: f64 = 0.01;

/// Documents a second that are written to all indices of a plan.
pub fn documents_per_s(plan: &TwinPlan) -> f64 {
    let indices = plan.get("twin").and_then(|twin| twin.get("index")?.as_array());
    let tables = indices.into_iter().flatten().filter_map(Value::as_table);
    tables.map(rate_of).sum()
}

/// Writes the rates that were seen into the plan, and tells what is left out of them.
pub(super) fn see(plan: &mut TwinPlan, seen: &BTreeMap<String, f64>, left_out: &mut Vec<String>) {
    let of = |index: &Table| {
        let name = index.get("name").and_then(Value::as_str);
        name.and_then(|name| seen.get(name)).copied().unwrap_or(0.0)
    };
    let written = spread(plan, of, None);
    let rest: f64 = seen.values().sum::<f64>() - written;
    if rest >= 1.0 {
        left_out.push(format!(
            "{rest:.0} documents a second that are written to indices which are not in the twin, or beside the \
             {WRITTEN_MAX} with most writes"
        ));
    }
}

/// Writes so many documents a second into the plan: spread over the indices as those that are written now, or as their
/// documents where none are.
pub(super) fn say(plan: &mut TwinPlan, documents_per_s: f64) {
    let is_written = self::documents_per_s(plan) > 0.0;
    let of = |index: &Table| if is_written { rate_of(index) } else { documents(index) };
    spread(plan, of, Some(documents_per_s));
}

fn rate_of(index: &Table) -> f64 {
    let rate = index.get(RATE);
    rate.and_then(|rate| rate.as_float().or_else(|| Some(rate.as_integer()? as f64))).unwrap_or(0.0)
}

/// An index that is empty may be written to like one that has a document.
fn documents(index: &Table) -> f64 {
    let shards = index.get("shard").and_then(Value::as_array).into_iter().flatten();
    let counts = shards.filter_map(|shard| shard.get("documents")?.as_integer());
    counts.sum::<i64>().max(1) as f64
}

/// Gives the indices their rates, scaled to `whole` where there is one; answers with the sum.
fn spread(plan: &mut TwinPlan, of: impl Fn(&Table) -> f64, whole: Option<f64>) -> f64 {
    let indices = plan.get_mut("twin").and_then(|twin| twin.get_mut("index")?.as_array_mut());
    let mut weighed: Vec<(f64, &mut Table)> = indices
        .into_iter()
        .flatten()
        .filter_map(Value::as_table_mut)
        .map(|index| (of(index), index))
        .collect();
    weighed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let heaviest = weighed.iter().take(WRITTEN_MAX).map(|(weight, _)| weight);
    let sum: f64 = heaviest.sum();
    let factor = whole.map_or(1.0, |whole| whole / sum.max(f64::MIN_POSITIVE));
    let mut written = 0.0;
    for (at, (weight, index)) in weighed.into_iter().enumerate() {
        // Hundredths are enough, and can be read.
        let rate = (weight * factor * 100.0).round() / 100.0;
        index.remove(RATE);
        if at < WRITTEN_MAX && rate >= RATE_MIN {
            index.insert(RATE.to_owned(), rate.into());
            written += rate;
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> TwinPlan {
        let index = |name: &str, documents: u64| {
            format!("[[twin.index]]\nname = \"{name}\"\nshard = [{{ documents = {documents} }}]\n")
        };
        [index("a", 100), index("b", 300), index("c", 0)].concat().parse().unwrap()
    }

    fn rates(plan: &TwinPlan) -> Vec<f64> {
        let indices = plan["twin"]["index"].as_array().unwrap();
        indices.iter().map(|index| rate_of(index.as_table().unwrap())).collect()
    }

    #[test]
    fn what_is_written_now_goes_on_and_what_is_said_is_spread_likewise() {
        let (mut plan, mut left_out) = (plan(), Vec::new());
        let seen = [("b", 0.001), ("c", 7.5), ("gone", 20.2)];
        let seen = seen.map(|(name, rate)| (name.to_owned(), rate)).into();
        see(&mut plan, &seen, &mut left_out);
        assert_eq!(rates(&plan), [0.0, 0.0, 7.5]);
        assert!(left_out[0].starts_with("20 documents a second"), "{left_out:?}");
        say(&mut plan, 150.0);
        assert_eq!((rates(&plan), documents_per_s(&plan)), (vec![0.0, 0.0, 150.0], 150.0));
        say(&mut plan, 0.0);
        assert_eq!(documents_per_s(&plan), 0.0);
    }

    #[test]
    fn what_is_said_goes_where_documents_are() {
        let mut plan = plan();
        say(&mut plan, 401.0);
        assert_eq!(rates(&plan), [100.0, 300.0, 1.0]);
    }
}
