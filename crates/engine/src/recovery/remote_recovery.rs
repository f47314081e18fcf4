//! A follower's copy that gets its documents from a leader's.

use record::Limit;

use super::retries::Retries;
use super::session_opening::{PrefetchedChunks, Wanted};
use super::source_session::{SourceSession, TransferError};
use super::target::Recovery;
use super::transfer::WAITS_FOR_ANSWER;
use crate::core::node_address;
use crate::remote;
use crate::replication::lease_of;
use crate::shard::Stage;
use crate::transport::{Failure, SessionKind, SessionOpened, unexpected};

impl Recovery {
    pub(super) async fn recover_from_remote(
        &self,
        cluster: &str,
        index: &str,
        number: u32,
    ) -> Result<(), Failure> {
        self.progress.shown.borrow_mut().source = Some(cluster.to_owned());
        let mut retries = Retries::new(self);
        loop {
            match self.try_remote(cluster, index, number).await {
                Ok(()) => return Ok(()),
                Err(error) => retries.after(self, error).await?,
            }
        }
    }

    async fn try_remote(
        &self,
        cluster: &str,
        index: &str,
        number: u32,
    ) -> Result<(), TransferError> {
        let remotes = &self.service.remotes;
        let addresses = remote::addresses(remotes, cluster)?;
        let source = |address| self.source(address, Some(cluster.to_owned()));
        let sources = addresses.into_iter().map(source).collect();
        let state = self.service.core.state();
        let leader = state.indices.get(&self.shard.index).and_then(|meta| meta.leader.as_ref());
        let (Some(lease), Some(leader)) = (lease_of(&state, &self.shard.index), leader) else {
            return Err(Failure::no_such_index(&self.shard.index).into());
        };
        let kind = SessionKind::Remote { lease, index_uuid: leader.leader_uuid.clone() };
        let wanted = Wanted { index: index.to_owned(), shard: number, kind };
        let opened = self.open(sources, wanted).await;
        let (source, opened, prefetched) = opened.inspect_err(|_| remotes.sniff_again(cluster))?;
        let address = node_address(&source.address).to_owned();
        self.progress.shown.borrow_mut().source_address = Some(address);
        let _pings = self.ping(&source);
        let result = self.copy_remote(&source, &opened, prefetched).await;
        self.end_session(&source);
        result
    }

    async fn copy_remote(
        &self,
        source: &SourceSession,
        opened: &SessionOpened,
        prefetched: PrefetchedChunks,
    ) -> Result<(), TransferError> {
        // An earlier try may have opened it.
        self.shard.drop_store();
        let commit = opened.commit.as_ref().ok_or_else(unexpected)?;
        let store = self.copy_files(source, commit, prefetched).await?;
        self.progress.enter(self.now(), Stage::Translog, WAITS_FOR_ANSWER);
        self.copy_ops(source, (&store, false), opened.max_seq_no).await?;
        self.progress.enter(self.now(), Stage::Finalize, Limit::DiskWrite);
        self.shard.set_store(store);
        Ok(self.shard.write_metadata(&self.service.core.disk).await?)
    }
}
