//! The operations that a target takes from its source, after the files.

use record::Limit;
use store::{Operation, Shard};

use super::source_session::{SourceSession, TransferError};
use super::target::Recovery;
use super::transfer::WAITS_FOR_ANSWER;
use crate::remote::{self, claims};
use crate::replication::follow_mapping_to;
use crate::transport::{Class, Failure, Request, Response, unexpected};

/// Operations asked for at once (as `ccr` reads them: 5120 operations, 32 MB).
const OPS_AT_ONCE: u32 = 5120;
const OPS_BYTES_AT_ONCE: u64 = 32 << 20;

/// What asks a source for its operations from one on.
pub(super) fn read_ops(source: &SourceSession, from: u64) -> Request {
    let (max_ops, max_bytes) = (OPS_AT_ONCE, OPS_BYTES_AT_ONCE);
    Request::ReadOps { session: source.session, from, max_ops, max_bytes }
}

impl Recovery {
    /// Takes over the leader's mappings, which operations may need, and answers with their version there.
    async fn take_leaders_mappings(&self, source: &SourceSession) -> Result<u64, TransferError> {
        let core = &self.service.core;
        let state = core.state();
        let meta = state.indices.get(&self.shard.index).and_then(|meta| meta.leader.as_ref());
        let leader = meta.ok_or_else(|| Failure::no_such_index(&self.shard.index))?;
        let request = Request::RemoteIndex(leader.leader_index.clone());
        match source.ask(&self.service, Class::Control, request).await? {
            Response::RemoteIndex(described) if described.uuid == leader.leader_uuid => {
                remote::take_mappings(core, self.shard.index_id(), &described).await?;
                Ok(described.mapping_version)
            }
            _ => Err(unexpected().into()),
        }
    }

    /// Copies operations until the copy has everything up to `max`. What comes onto a store that was here before this
    /// try is not copied again by the next one.
    pub(super) async fn copy_ops(
        &self,
        source: &SourceSession,
        (store, was_here): (&Shard, bool),
        max: Option<u64>,
    ) -> Result<(), TransferError> {
        let next = |store: &Shard| store.local_checkpoint().map_or(0, |seq| seq + 1);
        let total = max.map_or(0, |max| (max + 1).saturating_sub(next(store)));
        self.progress.shown.borrow_mut().ops_total = total;
        self.progress.shown.borrow_mut().ops_recovered = 0;
        // The primary of a follower may lack operations in between; both copies get them later.
        let may_have_gaps = self.follows();
        let mut from = next(store);
        let mut leader_version = 0;
        while max.is_some_and(|max| from <= max) {
            let request = read_ops(source, from);
            let answer = source.ask(&self.service, Class::Recovery(0), request).await?;
            let Response::Ops { ops, mapping_version } = answer else {
                return Err(unexpected().into());
            };
            if source.remote.is_some() {
                let at_most = (u64::from(OPS_AT_ONCE), OPS_BYTES_AT_ONCE);
                let last = Some(claims::SEQ_NO_MAX);
                claims::operations(from, last, at_most, &ops)?;
            }
            let bytes: u64 = ops.iter().map(|op| op.encoded_bytes()).sum();
            self.progress.accounting.borrow_mut().set_idle(self.now(), Limit::Cpu);
            let needed = match source.remote {
                None => mapping_version,
                // The leader's mappings have versions of their own.
                Some(_) if leader_version >= mapping_version => 0,
                Some(_) => {
                    leader_version = self.take_leaders_mappings(source).await?;
                    0
                }
            };
            let mapped = follow_mapping_to(&self.service.core, &self.shard, store, needed).await;
            mapped.map_err(Failure::from)?;
            let last = ops.last().map(Operation::last_seq_no);
            let had = next(store);
            store.apply(ops).await?;
            if was_here {
                self.progress.kept_ops.update(|kept| kept + next(store).saturating_sub(had));
            }
            let after = next(store).max(last.filter(|_| may_have_gaps).map_or(0, |seq| seq + 1));
            if after <= from {
                let reason =
                    format!("operation {from} did not come, though its source numbered it");
                return Err(Failure::new(503, "recovery_failed_exception", reason).into());
            }
            self.progress.accounting.borrow_mut().set_idle(self.now(), WAITS_FOR_ANSWER);
            self.progress.shown.borrow_mut().ops_bytes += bytes;
            from = after;
            let left = max.map_or(0, |max| (max + 1).saturating_sub(from));
            self.progress.shown.borrow_mut().ops_recovered = total - left.min(total);
        }
        store.sync().await?;
        Ok(())
    }
}
