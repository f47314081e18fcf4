//! Recoveries that are given up and begin anew: whatever else holds one, it is not through before it is left in peace.

use std::collections::BTreeMap;

use record::observation::{Recovery, WaitingCopy};

use super::finding::LINES_SHOWN;
use super::series::Series;
use super::waiting::names;
use crate::words::counted;

/// Those that did so while one looked, and those that go on after a try that failed, a sentence each.
pub(crate) fn begun_anew(series: &Series<'_>) -> Vec<String> {
    given_up(series).into_iter().chain(tried_again(series)).collect()
}

fn given_up(series: &Series<'_>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    // Those of one copy stand by when they began.
    for pair in series.transfers().windows(2) {
        let (earlier, later) = (pair[0].last(), pair[1].last());
        if is_same_copy(earlier, later) && is_given_up(earlier) {
            *counts.entry(pair[1].name()).or_default() += 1;
        }
    }
    let more = counts.len().saturating_sub(LINES_SHOWN);
    let mut all: Vec<String> = counts.into_iter().take(LINES_SHOWN).map(sentence).collect();
    if let (Some(last), true) = (all.last_mut(), more > 0) {
        *last += &format!("; so did {more} more");
    }
    all
}

fn sentence((name, count): (String, usize)) -> String {
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    format!(
        "{name} was given up and began anew {times} while one looked, and what it had copied is copied again: the logs \
         of its nodes say why, and whatever else holds it, that is to be mended first"
    )
}

/// A try may take longer than anybody looks: how the last one ended stands beside a copy that comes up.
fn tried_again(series: &Series<'_>) -> Option<String> {
    let has_failed = |copy: &&WaitingCopy| {
        copy.state == "INITIALIZING" && copy.reason.as_deref() == Some("ALLOCATION_FAILED")
    };
    let copies: Vec<&WaitingCopy> = series.last()?.waiting.iter().filter(has_failed).collect();
    let shown = names(&copies[..copies.len().min(LINES_SHOWN)]).join(", ");
    let come = match copies.len() {
        0 => return None,
        count => counted(count, "copy comes", "copies come"),
    };
    let more = match copies.len().saturating_sub(LINES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{come} up once more after a try that failed ({shown}{more}): GET \
         _cat/shards?h=index,shard,prirep,state,unassigned.details says why it did; after \
         index.allocation.max_retries of them in a row none is made by itself"
    ))
}

fn is_same_copy(a: &Recovery, b: &Recovery) -> bool {
    (&a.index, a.shard, &a.target) == (&b.index, b.shard, &b.target)
}

/// The cluster tells of the last recovery of each copy, so that of an earlier one that did not come to its end nothing
/// more is told.
fn is_given_up(recovery: &Recovery) -> bool {
    recovery.ended && recovery.stage != "DONE"
}
