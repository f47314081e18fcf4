//! The limiter that lets most through: where a probe has most to see.

use super::copying::Copying;
use super::knobs::Knobs;
use super::series::{Series, Transfer};

/// Looks that are of now.
const LATEST: usize = 5;

/// A node, and what its recoveries of one kind do together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Busiest {
    pub(crate) node: String,
    pub(crate) node_bytes_per_s: f64,
    pub(crate) limit_bytes_per_s: Option<f64>,
    pub(crate) knobs: Knobs,
}

/// Of the recoveries that copy files in the latest looks, the busiest; none where none does.
pub(crate) fn busiest(series: &Series<'_>) -> Option<Busiest> {
    let transfers = series.tail(LATEST).transfers();
    let is_copying = |transfer: &&Transfer<'_>| transfer.share_in("INDEX") > 0.0;
    let all = transfers.iter().filter(is_copying).filter_map(|transfer| {
        let copying = Copying::of(series, transfer, &transfers)?;
        Some(Busiest {
            node: copying.node,
            node_bytes_per_s: copying.node_bytes_per_s,
            limit_bytes_per_s: copying.limit_bytes_per_s,
            knobs: copying.knobs,
        })
    });
    all.max_by(|a, b| a.node_bytes_per_s.total_cmp(&b.node_bytes_per_s))
}
