//! The question of a twin: whether its copies can come to where it waits for them.

use super::place::Place;
use crate::error::{Error, Result};
use crate::plan::{Question, Resolved, Twin, Variant, shards_and_first};

const ALLOCATION: &str = "cluster.routing.allocation.enable";
const REBALANCE: &str = "cluster.routing.rebalance.enable";
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";

/// Refuses a twin in a place without virtual time, and one that can never reach what the question waits for.
pub(super) fn check(plan: &Resolved, twin: &Twin, place: &Place) -> Result<()> {
    if !place.is_virtual() {
        return Err(Error::usage(format!(
            "plan {} is a twin, whose copies are sizes without bytes; run it with --on virtual, or ask it with \
             `narrows what-if FILE`",
            plan.name
        )));
    }
    check_moves(plan, twin)?;
    if matches!(twin.question, Question::Replicas(_)) && twin.outstanding().0 == 0 {
        let why = "nothing would be copied: the indices that are asked about have so many replicas already, or more; \
                   ask for more of them than there are";
        return Err(Error::usage(why.to_owned()));
    }
    let lost = twin.lost_shards();
    // What else is lost with them is made anew, and the answer says what is not.
    if !lost.is_empty() && !twin.makes_others(&excluded(plan)) {
        let already = match twin.already_lost() {
            none if none.is_empty() => String::new(),
            one if one.len() == 1 => format!(", and {} is lost already", shards_and_first(&one)),
            more => format!(", and {} are lost already", shards_and_first(&more)),
        };
        let is_one = matches!(&twin.question, Question::Lose(nodes) if nodes.len() == 1);
        let advice = match twin.lost_for_want_of_replicas() == lost {
            true => {
                "their replicas are not started yet, and one that is being made is no copy; ask again once it is"
            }
            false if is_one => "ask first what more replicas take",
            false => "lose fewer nodes at once, or ask first what more replicas take",
        };
        return Err(Error::usage(format!(
            "no copy would be left of {}{already}: without a snapshot the cluster is red for good; {advice}",
            shards_and_first(&lost)
        )));
    }
    let without = twin.copies_without_a_node(&excluded(plan));
    let Some((copies, first)) = without else { return Ok(()) };
    let copies = match copies {
        1 => format!("1 copy has no node left to go to ({first})"),
        _ => format!("{copies} copies have no node left to go to ({first} is the first)"),
    };
    Err(Error::usage(format!(
        "the cluster would stay yellow: {copies}, as the copies of a shard are each on a node of its own, and where \
         filters and tiers let them be; add a node first, or lower number_of_replicas"
    )))
}

fn excluded(plan: &Resolved) -> Vec<&str> {
    let first = plan.variants.first().and_then(|variant| variant.settings.get(EXCLUDE));
    first.map_or("", String::as_str).split(',').map(str::trim).collect()
}

/// Whether the copies of a twin may be moved where the question wants them.
fn check_moves(plan: &Resolved, twin: &Twin) -> Result<()> {
    let of = |variant: &Variant, name: &str| variant.settings.get(name).cloned();
    let every = |name: &str, keeps: fn(&str) -> bool| {
        let values = plan.variants.iter().map(|variant| of(variant, name).unwrap_or_default());
        let values: Vec<String> = values.collect();
        values.iter().all(|value| keeps(value)).then(|| values.first().cloned().unwrap_or_default())
    };
    match &twin.question {
        Question::Drain(_) | Question::Add(_) => {}
        _ => return Ok(()),
    }
    if let Some(value) = every(ALLOCATION, |value| !["", "all"].contains(&value)) {
        return Err(Error::usage(format!(
            "{ALLOCATION} is {value}, so that copies may not be moved; --set {ALLOCATION}=all asks what it would be like"
        )));
    }
    if let Question::Add(_) = twin.question {
        // Copies that are missing come to nodes that join, whatever may be moved.
        let none = every(REBALANCE, |value| ["", "none"].contains(&value));
        return none.filter(|_| !twin.lacks_copies()).map_or(Ok(()), |_| {
            Err(Error::usage(format!(
                "{REBALANCE} is none, so that nothing is moved to nodes that join; --set {REBALANCE}=all asks what it \
                 would be like"
            )))
        });
    }
    let stay = twin.shards_that_stay(&excluded(plan));
    if stay.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "copies of {} would stay: fewer nodes are left than the copies of a shard need, \
         each on a node of its own; drain fewer nodes, or have fewer replicas",
        shards_and_first(&stay)
    )))
}
