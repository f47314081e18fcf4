//! The copy that an earlier life left here, which a recovery from the primary is about to replace.
//!
//! Every copy in sync had everything up to the global checkpoint. A primary that lacks some of it was put back as it
//! was earlier (its log, or all of its directory), and the copy that is here may be the last one that is whole.

use std::path::{Path, PathBuf};

use crate::core::Core;
use crate::planted;
use crate::shard::{CopyMetadata, LocalShard};
use crate::transport::{Failure, SessionOpened};

/// The copy that is here, and the global checkpoint that it was told.
pub(super) struct LeftCopy {
    dir: PathBuf,
    metadata: CopyMetadata,
    global_checkpoint: u64,
}

impl LeftCopy {
    /// None where there is no copy, where it is damaged or was told no global checkpoint, or where the index was a
    /// follower ([`IndexMeta::knows_its_checkpoints`](crate::state::IndexMeta::knows_its_checkpoints)). Fails where it
    /// may be whole and cannot be read now.
    pub(super) async fn find(core: &Core, shard: &LocalShard) -> Result<Option<LeftCopy>, Failure> {
        let meta = shard.meta(&core.state());
        let knows = meta.is_some_and(|meta| meta.knows_its_checkpoints());
        if !knows || core.env.is_planted(planted::EXTENTS_UNSAID) {
            return Ok(None);
        }
        let Some(metadata) = shard.read_metadata(&core.disk).await? else { return Ok(None) };
        let dir = core.disk.copy_dir(&shard.index_uuid, shard.number);
        let extent = match store::extent(&core.env, &dir).await {
            Err(error @ store::Error::Io { .. }) => return Err(unread(&dir, &error)),
            read => read.ok(),
        };
        let extent = extent.filter(|extent| metadata.is_of(&extent.history_uuid));
        let global_checkpoint = extent.and_then(|extent| extent.global_checkpoint);
        Ok(global_checkpoint.map(|global_checkpoint| LeftCopy { dir, metadata, global_checkpoint }))
    }

    /// Why it must not be replaced by what the primary has.
    pub(super) fn refuses(&self, opened: &SessionOpened) -> Option<Failure> {
        let LeftCopy { dir, metadata, global_checkpoint } = self;
        if Some(*global_checkpoint) <= opened.max_seq_no || !metadata.is_of(&opened.history_uuid) {
            return None;
        }
        let next = opened.max_seq_no.map_or(0, |max| max + 1);
        let reason = format!(
            "the primary lacks operations {next} to {global_checkpoint}, which every copy in sync had, as the copy in {} \
             knows: the primary was put back as it was earlier, and this copy is kept; put the primary's files right, or \
             stop this node and remove the directory to go on without these operations",
            dir.display()
        );
        Some(Failure::new(500, "recovery_failed_exception", reason))
    }
}

fn unread(dir: &Path, error: &store::Error) -> Failure {
    let reason = format!(
        "the copy in {} may have what the primary lacks, and how far it goes cannot be read: {error}; it is kept until \
         that can be read, or until you stop this node and remove the directory",
        dir.display()
    );
    Failure::new(500, "recovery_failed_exception", reason)
}

#[cfg(test)]
mod tests {
    use policy::retention::Leases;

    use super::*;

    #[test]
    fn a_primary_that_lacks_what_every_copy_had_replaces_none() {
        let history_uuid = Some("history".to_owned());
        let metadata = CopyMetadata { history_uuid, ..CopyMetadata::default() };
        let left = LeftCopy { dir: "/data/0".into(), metadata, global_checkpoint: 499 };
        let refused = |max_seq_no, history: &str| {
            let history_uuid = history.to_owned();
            let opened = SessionOpened {
                session: 1,
                commit: None,
                from_seq_no: 0,
                max_seq_no,
                history_uuid,
                leases: Leases::default(),
            };
            left.refuses(&opened).map(|failure| failure.reason)
        };
        let said = refused(Some(149), "history").unwrap();
        assert!(said.contains("lacks operations 150 to 499") && said.contains("/data/0"), "{said}");
        assert!(refused(None, "history").is_some());
        assert_eq!(refused(Some(499), "history"), None);
        assert_eq!(refused(Some(149), "another"), None, "it was begun anew");
    }
}
