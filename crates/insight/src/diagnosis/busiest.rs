//! The limiter that lets most through: where a probe has most to see.

use record::observation::Recovery;

use super::copying::Copying;
use super::knobs::Knobs;
use super::series::{MS_PER_S, Series, Transfer};

/// So many of the latest looks tell what goes on now.
const LATEST: usize = 5;

/// A node, and what its recoveries of one kind do together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Busiest<'a> {
    /// One of them.
    pub(crate) recovery: &'a Recovery,
    pub(crate) node: String,
    pub(crate) node_bytes_per_s: f64,
    pub(crate) limit_bytes_per_s: Option<f64>,
    pub(crate) knobs: Knobs,
    /// How long what is in flight takes to pass; none where a scheduler chooses how much that is.
    pub(crate) passes_in_ms: Option<f64>,
}

/// Of the recoveries that copy files in the latest looks, the busiest; none where nothing moves: then there is no rate
/// that a probe could change.
pub(crate) fn busiest<'a>(series: &Series<'a>) -> Option<Busiest<'a>> {
    let latest = series.tail(LATEST);
    let transfers = latest.transfers();
    let is_copying = |transfer: &&Transfer<'_>| transfer.share_in("INDEX") > 0.0;
    let all = transfers.iter().filter(is_copying);
    let all: Vec<Copying<'_, '_>> =
        all.filter_map(|transfer| Copying::of(series, transfer, transfers)).collect();
    let moving = all.iter().filter(|copying| copying.node_bytes_per_s > 0.0);
    // A restore shares the limiter of recoveries, and has nothing in flight that a setting rules.
    let found = moving.max_by(|a, b| {
        let is_told = a.in_flight_bytes.is_some().cmp(&b.in_flight_bytes.is_some());
        a.node_bytes_per_s.total_cmp(&b.node_bytes_per_s).then(is_told)
    })?;
    let shares = |other: &&Copying<'_, '_>| {
        let last = other.transfer.last();
        let mut nodes = [last.sender(), last.target.as_deref()].into_iter().flatten();
        other.knobs == found.knobs && nodes.any(|node| node == found.node)
    };
    // What else passes the limiter says nothing of how much it has in flight.
    let in_flight: Option<f64> =
        all.iter().filter(shares).map(|copying| copying.in_flight_bytes).sum();
    let rate: f64 = all.iter().filter(shares).map(|copying| copying.rate_bytes_per_s).sum();
    Some(Busiest {
        recovery: found.transfer.last(),
        node: found.node.clone(),
        node_bytes_per_s: found.node_bytes_per_s,
        limit_bytes_per_s: found.limit_bytes_per_s,
        knobs: found.knobs,
        passes_in_ms: in_flight.filter(|_| rate > 0.0).map(|bytes| bytes / rate * MS_PER_S),
    })
}

#[cfg(test)]
mod tests {
    use record::observation::Observation;

    use super::*;

    #[test]
    fn what_a_node_sends_and_what_it_receives_is_in_flight_together() {
        let look = |s: u64| Observation {
            recoveries: [("a", "b"), ("b", "a")]
                .map(|(source, target)| Recovery {
                    index: format!("from-{source}"),
                    stage: "INDEX".into(),
                    source: Some(source.into()),
                    target: Some(target.into()),
                    total_ms: Some(s * 1000),
                    recovered_bytes: Some(s << 20),
                    ..Recovery::default()
                })
                .into(),
            ..Observation::default()
        };
        let looks = [look(1), look(2)];
        let series = Series::new([1e3, 2e3].into_iter().zip(&looks));
        let found = busiest(&series).unwrap();
        // Two chunks of 512 KiB each way, and 1 MiB/s each way.
        assert_eq!((found.node_bytes_per_s, found.passes_in_ms), (2_097_152.0, Some(1000.0)));
    }
}
