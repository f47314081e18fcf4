//! Indices that are put in place with all their copies: what a twin of a cluster begins with. In the virtual world
//! alone, where documents may exist only as a number.

use std::collections::BTreeMap;
use std::rc::Rc;

use query::Mapping;
use store::{Options, Segments, Shard};
use world::LocalFuture;

use super::parts::Node;
use super::{disk_usage, dispatch};
use crate::settings::CheckOnStartup;
use crate::shard::{CopyMetadata, LocalShard, store_durability};
use crate::state::{self, ClusterState, Event, IndexMeta, PlacedIndex, ShardCopy};
use crate::transport::{Failure, Result};

/// What every copy of a shard holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardContents {
    /// Documents, which exist only as a number.
    pub documents: u64,
    /// Bytes of segment files; none where the copy is empty.
    pub bytes: u64,
    /// Segments.
    pub segments: u32,
}

impl ShardContents {
    /// Contents with as many bytes in files, but no more segments and documents than such files can hold: a segment and
    /// a document without a body take some bytes each.
    fn fitting(self) -> ShardContents {
        let segments = u64::from(self.segments).min(self.bytes / (4 * SEGMENT_BYTES)).max(1);
        let room = self.bytes.saturating_sub(segments * SEGMENT_BYTES);
        let segments = u32::try_from(segments).expect("it is at most what it was");
        ShardContents { documents: self.documents.min(room / DOCUMENT_BYTES), segments, ..self }
    }
}

/// An index to be put in place: where its copies are, and what each shard holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Where its copies are.
    pub placed: PlacedIndex,
    /// What each shard holds.
    pub contents: Vec<ShardContents>,
}

/// How large the disk of a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSize {
    /// The node.
    pub node: String,
    /// Bytes of its disk.
    pub total_bytes: u64,
    /// Those of them that are free once the copies are in place.
    pub free_bytes: u64,
}

/// Puts indices in place on these nodes, of which one is the manager. No copy recovers, and nothing is published but
/// the state in which all of them are started. The nodes stand for such as have run for long.
///
/// The state that will be is worked out first, so that copies are open under the ids that it gives them by the time
/// that nodes hear of it. Of disks that are named here it is known at once how full they are.
pub fn place<'a>(
    nodes: &'a [Node],
    indices: &'a [Placement],
    disks: &'a [DiskSize],
) -> LocalFuture<'a, Result<()>> {
    Box::pin(async move {
        let lacks =
            || Failure::new(503, "not_master_exception", "none of the nodes is the manager");
        let manager =
            nodes.iter().find_map(|node| dispatch::manager(node).ok()).ok_or_else(lacks)?;
        let events = || indices.iter().map(|one| Event::PlaceIndex(Box::new(one.placed.clone())));
        let mut after = ClusterState::clone(&manager.state());
        let now_ms = nodes[0].core().env.epoch_ms();
        let batch = state::apply_all(&mut after, now_ms, events().collect());
        batch.accepted.iter().try_for_each(|one| one.as_ref().copied().map_err(Failure::from))?;
        let after = Rc::new(after);
        let contents: Rc<BTreeMap<String, Vec<ShardContents>>> = Rc::new(
            indices.iter().map(|one| (one.placed.index.clone(), one.contents.clone())).collect(),
        );
        let opening: Vec<_> = nodes
            .iter()
            .map(|node| {
                let (node, after, contents) = (node.clone(), after.clone(), contents.clone());
                let env = node.core().env.clone();
                env.spawn(
                    "puts copies in place",
                    async move { open(&node, &after, &contents).await },
                )
            })
            .collect();
        for one in opening {
            one.await
                .map_err(|_| Failure::new(503, "node_closed_exception", "a node has ended"))??;
        }
        for node in nodes {
            node.parts.recovery.has_copied.set(true);
        }
        for DiskSize { node, total_bytes, free_bytes } in disks {
            if let Some(node) = nodes.iter().find(|one| one.name() == node) {
                disk_usage::set_size(node.core(), (*total_bytes, *free_bytes));
            }
        }
        let looks = nodes.iter().map(|node| (node.name(), disk_usage::look(node.core())));
        let seen = (!disks.is_empty()).then(|| disk_usage::together(looks));
        let seen = seen.map(|info| Event::DisksSeen(Box::new(info)));
        let answers: Vec<_> = events().chain(seen).map(|event| manager.put(event)).collect();
        for answer in answers {
            let ended = || Failure::new(503, "node_closed_exception", "the manager has ended");
            answer.await.map_err(|_| ended())??;
        }
        Ok(())
    })
}

/// Opens the copies of a node.
async fn open(
    node: &Node,
    after: &ClusterState,
    contents: &BTreeMap<String, Vec<ShardContents>>,
) -> Result<()> {
    for (index, number, copy) in after.copies_on(node.name()) {
        let Some(contents) = contents.get(index) else { continue };
        let (meta, contents) = (&after.indices[index], contents[number as usize]);
        open_copy(node, meta, (index, number, copy), contents).await?;
    }
    Ok(())
}

async fn open_copy(
    node: &Node,
    meta: &IndexMeta,
    (index, number, copy): (&str, u32, &ShardCopy),
    contents: ShardContents,
) -> Result<()> {
    let core = node.core();
    let settings = meta.typed_settings();
    let options = Options {
        durability: store_durability(settings.translog_durability()),
        check_on_startup: settings.check_on_startup() == CheckOnStartup::Checksum,
        // The copies have one history, as if they had recovered from one another.
        history_uuid: Some(format!("{}-{number}", meta.uuid)),
    };
    let mapping = Mapping::stored(&meta.mappings)?;
    let dir = core.disk.copy_dir(&meta.uuid, number);
    let store = Shard::create(&core.env, &dir, &mapping, options).await?;
    let ShardContents { documents, bytes, segments } = contents.fitting();
    if documents > 0 {
        // Every copy has all of it, and its commit says so.
        store.advance_global_checkpoint(documents - 1);
        store.synthesize_stored(documents, bytes, Segments::halving(segments)).await?;
    }
    let metadata = CopyMetadata {
        allocation_id: copy.allocation_id.clone(),
        primary_term: FIRST_TERM,
        history_uuid: Some(store.history_uuid().to_owned()),
        begins: None,
    };
    let written = core.disk.write_metadata(&meta.uuid, number, &metadata).await;
    written.map_err(|error| {
        let reason = format!("cannot write the metadata of the copy in {}", dir.display());
        Failure::not_stored((500, "illegal_state_exception"), &reason, &error)
    })?;
    let shard = Rc::new(LocalShard::new(index, &meta.uuid, number, copy, FIRST_TERM));
    shard.set_store(store.clone());
    shard.apply_refresh_interval(&store, &settings).await?;
    shard.reported.set(true);
    core.shards.borrow_mut().insert(shard.key().clone(), shard);
    Ok(())
}

/// More than an empty segment, and a document without a body, take in files.
const SEGMENT_BYTES: u64 = 2048;
const DOCUMENT_BYTES: u64 = 32;
/// The primary term of a new index.
const FIRST_TERM: u64 = 1;
