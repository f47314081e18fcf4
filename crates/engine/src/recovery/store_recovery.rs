//! A copy that is made of nothing, or opened from its own disk.

use record::Limit;
use store::{Options, Shard};

use super::target::Recovery;
use crate::planted;
use crate::replication::{fill_gaps, set_leases};
use crate::shard::{CopyMetadata, FollowedCopies, Stage};
use crate::transport::Failure;

impl Recovery {
    pub(super) async fn recover_from_nothing(&self) -> Result<(), Failure> {
        let (mapping, options) = self.options()?;
        let (uuid, number) = (&self.shard.index_uuid, self.shard.number);
        // Files of an earlier try without metadata are no copy.
        let _ = self.service.core.disk.remove_copy(uuid, number).await;
        let store = Shard::create(&self.service.core.env, &self.dir(), &mapping, options).await?;
        self.shard.set_store(store);
        self.shard.write_metadata(&self.service.core.disk).await
    }

    /// A primary that is opened although operations of it may be lost begins another history, as the field's does
    /// (`bootstrapNewHistory`): it numbers anew what followers and other copies may have, and these must hear of it.
    /// A follower keeps its leader's history, and fetches from it what is lost.
    ///
    /// The metadata says so first, so that the copy is known as this one whatever moment its node dies in.
    async fn history_to_begin(&self) -> Result<Option<String>, Failure> {
        let core = &self.service.core;
        let extent = store::extent(&core.env, &self.dir()).await?;
        if !extent.is_loss_accepted || self.follows() {
            return Ok(None);
        }
        let metadata = self.metadata().await?;
        // Files of another shard are refused below.
        let Some(metadata) = metadata.filter(|found| found.is_of(&extent.history_uuid)) else {
            return Ok(None);
        };
        let begins = Some(core.next_id());
        let history_uuid = Some(extent.history_uuid);
        let metadata = CopyMetadata { history_uuid, begins: begins.clone(), ..metadata };
        self.shard.put_metadata(&core.disk, &metadata).await?;
        Ok(begins)
    }

    pub(super) async fn recover_from_disk(&self) -> Result<(), Failure> {
        self.progress.enter(self.now(), Stage::Index, Limit::DiskRead);
        let (mapping, options) = self.options()?;
        let options = Options { history_uuid: self.history_to_begin().await?, ..options };
        let metadata = self.metadata().await?;
        let leases = self.shard.read_leases(&self.service.core.disk).await?;
        let store = self.open_here(&mapping, &options).await?;
        if metadata.is_some_and(|metadata| !metadata.is_of(store.history_uuid())) {
            let dir = self.dir();
            let reason = format!("{} holds the files of another shard", dir.display());
            return Err(Failure::new(500, "corrupt_index_exception", reason));
        }
        let opened = store.opened();
        self.progress.shown.borrow_mut().ops_total = opened.replayed_ops;
        self.progress.shown.borrow_mut().ops_recovered = opened.replayed_ops;
        if !self.follows() {
            fill_gaps(&store).await?;
        } else if let Some(checkpoint) = store.local_checkpoint() {
            // The other copies recover from this one; following continues after the operations that are here.
            store.advance_global_checkpoint(checkpoint);
        }
        if self.follows() {
            self.shard.assumes_checkpoint.set(true);
            self.shard.followed_copies.set(FollowedCopies::BeforeRead);
        }
        if !self.service.core.env.is_planted(planted::LEASES_FORGOTTEN) {
            set_leases(&self.shard, &store, leases);
        }
        self.shard.set_store(store);
        self.shard.write_metadata(&self.service.core.disk).await
    }
}
