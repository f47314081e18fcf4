//! What servers say that they hold of each vbucket. Pure.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Documents; what only counts has versions that came.
    pub documents: u64,
    /// The highest sequence number.
    pub high_seqno: u64,
}

pub(crate) type HeldByVbucket = BTreeMap<u16, Held>;

/// The vbuckets of which a destination does not hold what the source says of itself, whatever was sent. Where versions
/// are counted, those that come again after a rollback count again.
pub(crate) fn differing(
    source: &HeldByVbucket,
    destination: &HeldByVbucket,
    counts_versions: bool,
) -> Vec<u16> {
    let all: BTreeSet<u16> = source.keys().chain(destination.keys()).copied().collect();
    let differs = |vb: &u16| {
        let of = |held: &HeldByVbucket| held.get(vb).copied().unwrap_or_default();
        let (wanted, found) = (of(source), of(destination));
        let again = counts_versions && found.documents > wanted.documents;
        found.high_seqno != wanted.high_seqno || found.documents != wanted.documents && !again
    };
    all.into_iter().filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(all: &[(u16, u64, u64)]) -> HeldByVbucket {
        let one = |(vb, documents, high_seqno): &(u16, u64, u64)| {
            (*vb, Held { documents: *documents, high_seqno: *high_seqno })
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn what_no_stream_sent_is_missed() {
        let source = held(&[(0, 5, 7), (1, 3, 3), (2, 0, 0)]);
        let differ =
            |destination: &[(u16, u64, u64)]| differing(&source, &held(destination), false);
        assert_eq!(differ(&[(0, 5, 7), (1, 3, 3)]), [0; 0], "an empty vbucket need not be there");
        assert_eq!(differ(&[(0, 5, 7)]), [1], "a vbucket that nobody streamed");
        assert_eq!(differ(&[(0, 4, 7), (1, 3, 2)]), [0, 1], "one in the middle, and the last");
        assert_eq!(differ(&[(0, 5, 7), (1, 2, 3), (2, 1, 1)]), [1, 2], "in another vbucket");
    }

    #[test]
    fn versions_may_come_again_where_they_are_counted_alone() {
        let source = held(&[(0, 5, 5)]);
        let differ = |destination: &[(u16, u64, u64)]| differing(&source, &held(destination), true);
        assert_eq!(differ(&[(0, 10, 5)]), [0; 0]);
        assert_eq!(differ(&[(0, 8, 3)]), [0], "it began again, and ended early");
        assert_eq!(differ(&[(0, 4, 5)]), [0]);
    }
}
