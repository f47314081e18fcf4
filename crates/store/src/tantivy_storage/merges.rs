//! Merges that go on. The index library does not tell, so they are counted from what its policy proposed.

use std::sync::{Arc, Mutex};

use tantivy::index::SegmentId;
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};
use tantivy::{Index, SegmentMeta};

use super::work_directory::WorkDirectory;
use crate::lock::lock;

/// The library's policy, and the segments of each merge that may go on.
#[derive(Clone, Debug)]
pub(super) struct Merges {
    policy: LogMergePolicy,
    directory: WorkDirectory,
    begun: Arc<Mutex<Vec<Vec<SegmentId>>>>,
}

impl Merges {
    pub(super) fn new(directory: WorkDirectory) -> Merges {
        let mut policy = LogMergePolicy::default();
        policy.set_del_docs_ratio_before_merge(0.5);
        Merges { policy, directory, begun: Arc::default() }
    }

    /// In the order in which their documents were indexed: a merge keeps that in which it is given them.
    pub(super) fn sort(&self, segments: &mut [SegmentId]) {
        segments.sort_by_cached_key(|segment| self.directory.first_seq_no(*segment));
    }

    /// A merge that was asked for begins.
    pub(super) fn begin(&self, segments: &[SegmentId]) {
        lock(&self.begun).push(segments.to_vec());
    }

    /// It has ended, or was refused.
    pub(super) fn end(&self, segments: &[SegmentId]) {
        lock(&self.begun).retain(|begun| begun != segments);
    }

    /// How many go on: when one ends, the segments that it took are no longer searched. Merges of segments that cannot
    /// be searched yet are not among them.
    pub(super) fn going_on(&self, index: &Index) -> u64 {
        let begun = lock(&self.begun);
        if begun.is_empty() {
            return 0;
        }
        // Where the list cannot be read, none is known to have ended.
        let searched = index.searchable_segment_ids();
        let going_on = searched.map_or(begun.len(), |searched| {
            begun.iter().filter(|segments| are_in(segments, &searched)).count()
        });
        going_on as u64
    }

    /// After a commit, a merge has ended where the segments that it took are not searched.
    pub(super) fn forget_ended(&self, index: &Index) {
        let mut begun = lock(&self.begun);
        if !begun.is_empty()
            && let Ok(searched) = index.searchable_segment_ids()
        {
            begun.retain(|segments| are_in(segments, &searched));
        }
    }
}

fn are_in(segments: &[SegmentId], there: &[SegmentId]) -> bool {
    segments.iter().all(|segment| there.contains(segment))
}

impl MergePolicy for Merges {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let mut begun = lock(&self.begun);
        // The library offers only segments that no merge holds: an earlier merge of them was given up.
        begun.retain(|merge| !segments.iter().any(|segment| merge.contains(&segment.id())));
        let mut candidates = self.policy.compute_merge_candidates(segments);
        candidates.iter_mut().for_each(|candidate| self.sort(&mut candidate.0));
        begun.extend(candidates.iter().map(|candidate| candidate.0.clone()));
        candidates
    }
}
