//! What the record says of a run as a whole.

use record::{FORMAT, LinkInfo, Manifest, NodeInfo, Status, VariantInfo};

use super::place::Place;
use super::record_dir;
use crate::machine;
use crate::plan::{Resolved, Variant, models_in_use};
use crate::runner::topology;
use crate::twin::in_words;

/// The manifest of a run that begins now.
pub(super) fn manifest(plan_text: &str, plan: &Resolved, place: &Place, run: String) -> Manifest {
    // The nodes and the network of a live cluster are its own.
    let is_live = matches!(place, Place::Live(_));
    let link = plan.link.filter(|_| !is_live).map(|link| LinkInfo {
        rtt_ms: link.rtt.as_secs_f64() * 1e3,
        rate_bytes_per_s: link.rate_bytes_per_s,
        window_bytes: link.window_bytes,
        ceiling_bytes_per_s: None,
    });
    Manifest {
        format: FORMAT,
        run,
        plan: plan.name.clone(),
        about: plan.about.clone(),
        plan_text: plan_text.to_owned(),
        target: place.to_string(),
        started: record_dir::now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: plan.seed,
        scale: plan.scale,
        status: Status::Running,
        failure: None,
        machine: machine::describe(),
        link,
        nodes: if is_live { Vec::new() } else { nodes(plan) },
        variants: plan.variants.iter().map(|variant| variant_info(variant, place)).collect(),
        challenge: plan.track.as_ref().map(|track| track.challenge.clone()),
        track_params: plan.track.as_ref().map(|track| track.params.texts()),
        question: plan.twin.as_ref().and_then(|_| Some(in_words(&plan_text.parse().ok()?))),
        changes: plan.changes.clone(),
    }
}

/// The nodes that are started. A bucket's servers are threads, which its rows name.
fn nodes(plan: &Resolved) -> Vec<NodeInfo> {
    let clusters = if plan.bucket.is_some() { Vec::new() } else { topology(plan).clusters };
    let nodes = clusters.into_iter().flat_map(|cluster| {
        (0..cluster.nodes).map(move |n| {
            let machine = format!("{}-{n}", cluster.name);
            let name = match &plan.twin {
                Some(twin) => twin.recorded_name(&machine).to_owned(),
                None => machine,
            };
            NodeInfo { cluster: cluster.name.clone(), name }
        })
    });
    nodes.collect()
}

/// What the record says of a variant.
pub fn variant_info(variant: &Variant, place: &Place) -> VariantInfo {
    VariantInfo {
        name: variant.name.clone(),
        settings: variant.settings.clone(),
        published_s: variant.published.as_ref().and_then(|published| published.seconds),
        published: variant.published.as_ref().map(|published| published.info.clone()),
        baseline: variant.baseline.clone(),
        models: if place.is_virtual() { models_in_use(variant) } else { Vec::new() },
    }
}
