//! The role of a copy: whether it is the primary of its shard.

use crate::state::ShardCopy;

/// The role of a copy. The state that the manager publishes changes it, and the end of a promotion.
///
/// | from | to | when |
/// | --- | --- | --- |
/// | `Replica` | `Promoted` | the state makes it the primary, and no primary of that term handed over to it |
/// | `Replica` | `Primary` | the state makes it the primary, after the primary of that term handed over to it |
/// | `Promoted` | `Primary` | its promotion is complete: see `replication::promoted` |
/// | each | `Replica` | the state makes another copy the primary |
///
/// | role | what may happen in it |
/// | --- | --- |
/// | `Replica` | it recovers from the primary, takes its operations, and takes over its leases |
/// | `Promoted` | it fills the gaps of its history and has the others taken out of sync; it serves nobody yet |
/// | `Primary` | once started: writes, followers' reads, sessions of recoveries, handing over; nothing after that |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    Replica,
    Promoted,
    Primary,
}

impl Role {
    /// The role of a copy that was assigned just now. A primary that was opened anew needs no promotion.
    pub(super) fn of_new(copy: &ShardCopy) -> Role {
        if copy.acts_as_primary() { Role::Primary } else { Role::Replica }
    }

    /// The role once the state says whether this copy is the primary.
    pub(super) fn next(self, primary: bool, was_handed_over: bool) -> Role {
        match (self, primary) {
            (_, false) => Role::Replica,
            (Role::Replica, true) if was_handed_over => Role::Primary,
            (Role::Replica, true) => Role::Promoted,
            (Role::Promoted | Role::Primary, true) => self,
        }
    }

    /// The role once its promotion is complete.
    pub(super) fn completed(self) -> Role {
        if self == Role::Promoted { Role::Primary } else { self }
    }

    pub(super) fn is_primary(self) -> bool {
        self != Role::Replica
    }
}

#[cfg(test)]
mod tests {
    use super::Role::{Primary, Promoted, Replica};

    #[test]
    fn a_replica_takes_operations_as_the_primary_once_it_was_promoted_or_was_handed_the_place() {
        assert_eq!(Replica.next(true, false), Promoted);
        assert_eq!((Promoted.next(true, false), Promoted.completed()), (Promoted, Primary));
        assert_eq!(Replica.next(true, true), Primary);
        assert_eq!((Primary.next(true, false), Primary.next(true, true)), (Primary, Primary));
        for role in [Replica, Promoted, Primary] {
            assert_eq!(role.next(false, false), Replica);
        }
        assert_eq!(Replica.completed(), Replica, "a promotion that ends too late changes nothing");
    }
}
