//! C3: replica ranking with distributed rate control and backpressure.
//!
//! Source: L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting Tail Latency in Cloud Data Stores via Adaptive
//! Replica Selection", NSDI 2015. Its rank is that of [`ArsForm::Corrected`], which was made after it, without the
//! feeding of losers. Its rate control limits what a coordinator sends to a node in windows of 20 ms; the limit grows
//! as a cubic function of time, as CUBIC's window does, and shrinks where the node answers less than it is sent. A
//! shard of which no copy's node has a token left waits (backpressure).
//!
//! Other than in the paper, because the rank is Elasticsearch's: q = 1 + os x w + Q has the number of clients for w in
//! the paper, and here that of the nodes that answered this coordinator; and Q is rounded down here. The published
//! figures are those of this rank.
//!
//! Ours beyond the paper: a floor of the rate. At few requests a second a window of 20 ms mostly sees no answer at all,
//! and the rate would shrink for ever. And a pause after each shrinking, as the paper has it after a growth: what is
//! received is known once a window, and every answer until then would shrink the rate again, to a fifth each time.

use world::Time;

use super::{ArsForm, NodeTable};

/// The copies by rank, those without a token behind the others; or when the first of them will have one.
pub(super) fn order(
    now: Time,
    copies: &[&str],
    mut rotated: Vec<usize>,
    nodes: &mut NodeTable,
) -> Result<Vec<usize>, Time> {
    let clients = nodes.answered_count();
    let mut keys = Vec::with_capacity(copies.len());
    for name in copies {
        let outstanding = nodes.outstanding(name);
        let rank = nodes.stats(name).map(|stats| {
            let rank = ArsForm::Corrected.rank_ms(&stats, outstanding, clients);
            if rank.is_nan() { 0.0 } else { rank }
        });
        keys.push((nodes.node(name).c3.ready_at(now), rank.unwrap_or(f64::NEG_INFINITY)));
    }
    let first_ready = keys.iter().map(|key| key.0).min();
    if let Some(ready) = first_ready.filter(|ready| *ready > now) {
        return Err(ready);
    }
    rotated.sort_by(|a, b| {
        let (a, b) = (keys[*a], keys[*b]);
        (a.0 > now).cmp(&(b.0 > now)).then(a.1.total_cmp(&b.1))
    });
    Ok(rotated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::at;

    #[test]
    fn a_rate_is_kept_and_who_has_no_token_waits() {
        let mut nodes = NodeTable::default();
        for _ in 0..10 {
            assert!(order(at(0), &["a"], vec![0], &mut nodes).is_ok());
            nodes.sent(at(0), "a");
        }
        // Ten tokens a window of 20 ms: the next comes after 2 ms.
        assert_eq!(order(at(0), &["a"], vec![0], &mut nodes), Err(at(2)));
        assert_eq!(order(at(0), &["a", "b"], vec![0, 1], &mut nodes), Ok(vec![1, 0]));
        assert_eq!(order(at(2), &["a"], vec![0], &mut nodes), Ok(vec![0]));
    }
}
