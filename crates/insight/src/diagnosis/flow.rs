//! What goes from node to node: recoveries with the same source and the same target taken together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::pace::Pace;

/// Recoveries from one node to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// The node, repository or other cluster that is read; `?` where it is not told.
    pub source: String,
    /// The node that recovers; `?` where it is not told.
    pub target: String,
    /// How many recoveries.
    pub recoveries: usize,
    /// Bytes a second lately, of all of them; none where no rate is known yet.
    pub bytes_per_s: Option<f64>,
    /// Bytes that are left, as far as they are told.
    pub left_bytes: Option<u64>,
}

/// The flows of recoveries that go on, the fastest first.
pub fn flows(paces: &[Pace]) -> Vec<Flow> {
    let mut all: BTreeMap<(&str, &str), Flow> = BTreeMap::new();
    for pace in paces.iter().filter(|pace| !pace.ended) {
        let source = pace.source.as_deref().unwrap_or("?");
        let target = pace.target.as_deref().unwrap_or("?");
        let flow = all.entry((source, target)).or_insert_with(|| Flow {
            source: source.to_owned(),
            target: target.to_owned(),
            ..Flow::default()
        });
        flow.recoveries += 1;
        if let Some(rate) = pace.now_bytes_per_s {
            *flow.bytes_per_s.get_or_insert(0.0) += rate;
        }
        if let Some((total, done)) = pace.total_bytes.zip(pace.done_bytes) {
            *flow.left_bytes.get_or_insert(0) += total.saturating_sub(done);
        }
    }
    let mut flows: Vec<Flow> = all.into_values().collect();
    let rate = |flow: &Flow| flow.bytes_per_s.unwrap_or(0.0);
    flows.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    flows
}
