//! How finely a large recovery is looked at.
//!
//! Terabytes in chunks of 512 KB are millions of chunks. Where there are that many, so many chunks at a time go as one:
//! what a chunk costs apart from its bytes (its round trip, the wait for a thread, the disk's seek) is multiplied
//! accordingly, so that bytes, limits and the time in between stay what they are, and only the steps get larger.

use record::units::{parse_size, show_size_setting};
use world::model::Host;

use crate::plan::{DELAY, Twin, Variant};

pub(super) const CHUNK: &str = "indices.recovery.chunk_size";
const CHUNK_BYTES_WITHOUT: u64 = 512 << 10;
/// About so many steps are taken.
const STEPS: u64 = 80_000;
/// A step is no larger than this, nor than that part of a copy.
const STEP_BYTES_MAX: u64 = 32 << 20;
const PART_OF_A_COPY: u64 = 16;

/// So many chunks go as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grain {
    chunk_bytes: u64,
    factor: u64,
}

impl Grain {
    pub(super) fn of(twin: &Twin, variant: &Variant) -> Grain {
        let written = variant.settings.get(CHUNK).and_then(|text| parse_size(text).ok());
        let chunk_bytes = written.unwrap_or(CHUNK_BYTES_WITHOUT).max(1);
        let (copies, bytes) = twin.outstanding();
        let again = twin.made_while_away(variant.settings.get(DELAY).map(String::as_str));
        let (copies, bytes) = (copies + again.0, bytes + again.1);
        let most = STEP_BYTES_MAX.min(bytes / copies.max(1) / PART_OF_A_COPY) / chunk_bytes;
        let factor = bytes.div_ceil(chunk_bytes).div_ceil(STEPS);
        Grain { chunk_bytes, factor: factor.min(most).max(1) }
    }

    /// What [`CHUNK`] is set to; none where nothing changes.
    pub(super) fn setting(self) -> Option<String> {
        (self.factor > 1).then(|| show_size_setting(self.chunk_bytes * self.factor))
    }

    /// A host on which a step costs what its chunks would.
    pub(super) fn host(self, host: Host) -> Host {
        let times = u32::try_from(self.factor).unwrap_or(u32::MAX);
        if times <= 1 {
            return host;
        }
        let mut coarse = host;
        // A chunk is asked for and answered: its two messages pass two cards each.
        coarse.costs.dispatch = coarse.costs.dispatch * times + coarse.card_delay * 2 * (times - 1);
        coarse.disk.seek *= times;
        coarse.disk.request_bytes = coarse.disk.request_bytes.max(self.chunk_bytes * self.factor);
        coarse
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::ShardContents;

    use super::*;
    use crate::plan::{Question, TwinIndex, TwinNode, TwinShard};

    fn grain(shards: usize, bytes: u64) -> Grain {
        asked(Question::Lose(vec![1]), shards, bytes)
    }

    fn asked(question: Question, shards: usize, bytes: u64) -> Grain {
        let contents = ShardContents { documents: 1, bytes, segments: 1 };
        let node = |name: &str| TwinNode { name: name.to_owned(), ..TwinNode::default() };
        let index = TwinIndex {
            name: "a".to_owned(),
            replicas: 1,
            shards: vec![TwinShard { contents, nodes: vec![0, 1] }; shards],
            ..TwinIndex::default()
        };
        let nodes = ["a", "b", "c"].map(node).to_vec();
        let twin = Twin { nodes, indices: vec![index], question, uncertain: Vec::new() };
        Grain::of(&twin, &Variant::default())
    }

    #[test]
    fn only_what_is_large_is_looked_at_coarsely() {
        assert_eq!(grain(10, 1 << 30).setting(), None, "20 000 chunks are few");
        assert_eq!(grain(100, 10 << 30).setting().as_deref(), Some("13mb"));
        assert_eq!(grain(100_000, 2 << 20).setting(), None, "small copies are not cut to one step");
    }

    /// What is away for longer than its copies wait (here they do not) is copied whole.
    #[test]
    fn a_long_restart_is_looked_at_as_coarsely_as_a_loss() {
        let restart = |down_s: u64| {
            let down = Duration::from_secs(down_s);
            asked(Question::Restart { nodes: vec![1], down, flush: false }, 100, 10 << 30)
        };
        assert_eq!(restart(60), grain(100, 10 << 30));
        assert_eq!(restart(0).setting(), None);
    }

    #[test]
    fn a_step_takes_as_long_as_its_chunks_one_after_another() {
        let grain = grain(100, 10 << 30);
        let host = Host::default();
        let coarse = grain.host(host.clone());
        let round_trip = |host: &Host| host.card_delay * 4 + host.costs.dispatch * 2;
        let times = u32::try_from(grain.factor).unwrap();
        assert_eq!(round_trip(&coarse), round_trip(&host) * times);
        assert_eq!(coarse.disk.seek, host.disk.seek * times);
        assert!(coarse.disk.request_bytes >= 13 << 20 && times == 26);
        assert!(coarse.costs.dispatch > Duration::ZERO);
    }
}
