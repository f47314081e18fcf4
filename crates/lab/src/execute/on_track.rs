//! A track as a plan: one cluster, one variant that is its challenge, and no indices but those that it makes itself.

use std::collections::BTreeMap;
use std::time::Duration;

use super::execution::{Executed, execute_resolved};
use super::options::Options;
use super::place::Place;
use crate::error::{Error, Result};
use crate::experiments::TRACK;
use crate::plan::{Cluster, Measured, Resolved, Step, Variant, bounds};
use crate::track::Track;

/// From one look at the nodes to the next.
const SAMPLE: Duration = Duration::from_secs(1);
/// Where a plan says nothing else.
const SEED: u64 = 42;
/// Indices of a run on a cluster that is already there begin with this and the run's id.
pub(super) const RENAMED: &str = "The indices of the track are made under names of the run, and deleted at the end: the cluster was there already.";

/// Executes a track in a place, on so many nodes where they are started for it. Fails as
/// [`super::execution::execute`] does.
pub fn execute_track(
    mut track: Track,
    nodes: u32,
    place: &Place,
    options: &Options,
) -> Result<Executed> {
    bounds::check_scale(options.scale)?;
    bounds::check_laps(options.laps)?;
    let has_leader = matches!(place, Place::Live(live) if live.leader.is_some());
    let refused = [
        ("--leader", has_leader),
        ("--variant", !options.variants.is_empty()),
        ("--rtt", options.rtt.is_some()),
        ("--rate", options.rate_bytes_per_s.is_some()),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, given)| *given) {
        return Err(Error::usage(format!(
            "{option} is for plans; a track has one cluster, one variant, its challenge, and no link"
        )));
    }
    if place.is_virtual() {
        track.count_in_place_of_searches();
    }
    let text = track.text.clone();
    let mut changes = track.changes.clone();
    if matches!(place, Place::Live(_)) {
        changes.push(RENAMED.to_owned());
    }
    for sentence in &changes {
        options.watch.note(sentence);
    }
    let plan = Resolved {
        name: track.name.clone(),
        about: track.about.clone(),
        steps: vec![
            Step::Start,
            Step::Measure(Measured {
                name: TRACK,
                options: BTreeMap::new(),
                spoils_indices: false,
            }),
        ],
        laps: options.laps.unwrap_or(1),
        sample: SAMPLE,
        seed: options.seed.unwrap_or(SEED),
        scale: options.scale,
        leader: Cluster { nodes },
        variants: vec![Variant { name: track.challenge.clone(), ..Variant::default() }],
        changes,
        track: Some(track),
        ..Resolved::default()
    };
    execute_resolved(&text, plan, place, options)
}
