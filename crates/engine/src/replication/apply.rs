//! Applying operations to the store of this node's copy: by the mapping in the state, without gaps, and what follows
//! when it fails.

use std::rc::Rc;
use std::time::Duration;

use policy::failures::{Component, ErrorKind};
use query::Mapping;
use store::Operation;

use crate::core::Core;
use crate::planted;
use crate::shard::LocalShard;
use crate::transport::{Failure, Result, UNAVAILABLE};

/// What failed for now is tried again after this.
pub const RETRY_AFTER: Duration = Duration::from_millis(50);

pub(crate) enum ApplyError {
    Store(store::Error),
    Other(Failure),
}

impl ApplyError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            ApplyError::Store(error) => error.kind(),
            ApplyError::Other(failure) => failure.error_kind(),
        }
    }
}

impl From<store::Error> for ApplyError {
    fn from(error: store::Error) -> Self {
        ApplyError::Store(error)
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Store(error) => error.into(),
            ApplyError::Other(failure) => failure,
        }
    }
}

impl From<Failure> for ApplyError {
    fn from(failure: Failure) -> Self {
        ApplyError::Other(failure)
    }
}

/// Has a primary whose store accepts nothing more opened again.
pub(super) fn report_store_failure(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    error: store::Error,
) -> store::Error {
    core.store_failed(Component::Primary, shard, &error);
    error
}

/// As [`report_store_failure`], where the store is what failed.
pub(super) fn report_apply_failure(
    core: &Rc<Core>,
    shard: &Rc<LocalShard>,
    error: ApplyError,
) -> ApplyError {
    match error {
        ApplyError::Store(error) => ApplyError::Store(report_store_failure(core, shard, error)),
        other => other,
    }
}

/// The failure of a write that was applied here: it may be on other copies, too, and must not look refused.
pub(super) fn not_known(failure: Failure) -> Failure {
    let reason = format!("it may have been done or not: {}", failure.reason);
    let status = if failure.status < 500 { 503 } else { failure.status };
    Failure { status, reason, ..failure }
}

/// Has the store index by the mapping in the state. Called before each write, so that a field is indexed in every
/// document that is sent after its mapping was acknowledged; and before each search, which may name such a field.
pub(crate) async fn follow_mapping(
    core: &Core,
    shard: &LocalShard,
    store: &store::Shard,
) -> Result<(), ApplyError> {
    let Some(meta) = shard.meta(&core.state()) else { return Ok(()) };
    if shard.mapping_version.get() >= meta.mapping_version {
        return Ok(());
    }
    let mapping = Mapping::stored(&meta.mappings).map_err(Failure::from)?;
    store.set_mapping(&mapping).await?;
    shard.mapping_version.set(shard.mapping_version.get().max(meta.mapping_version));
    Ok(())
}

/// Version of the mappings of an index, as this node knows it; 0 where the index is gone.
pub(crate) fn mapping_version(core: &Core, shard: &LocalShard) -> u64 {
    shard.meta(&core.state()).map_or(0, |meta| meta.mapping_version)
}

/// Mappings that are published are here sooner than this.
const MAPPING_COMES: Duration = Duration::from_secs(1);

/// As [`follow_mapping`], for operations whose source had this version of the mappings: they may have fields that came
/// with it, and the manager publishes to all nodes at once. It had that version before any source did, so that nothing
/// is waited for beyond its answer.
pub(crate) async fn follow_mapping_to(
    core: &Core,
    shard: &LocalShard,
    store: &store::Shard,
    version: u64,
) -> Result<(), ApplyError> {
    let is_here = || mapping_version(core, shard) >= version;
    if !is_here() && !core.wait_for_state(MAPPING_COMES, |_| is_here()).await {
        // This node may have missed what was published. Boxed, as it is rare: it was two thirds of a write on a copy.
        Box::pin(core.ask_for_state()).await?;
    }
    if !is_here() {
        let reason = format!(
            "[{}][{}] lacks version {version} of the mappings, which its source has and the manager has no more",
            shard.index, shard.number
        );
        return Err(Failure::new(503, UNAVAILABLE, reason).into());
    }
    follow_mapping(core, shard, store).await
}

/// Refuses what a primary sends whose term is over: it must not acknowledge.
pub(super) fn check_term(core: &Core, shard: &LocalShard, primary_term: u64) -> Result<()> {
    if primary_term >= shard.term() || core.env.is_planted(planted::OLD_TERM_ACCEPTED) {
        return Ok(());
    }
    let reason = format!(
        "the primary's term {primary_term} is over, the term is {}; it must not acknowledge",
        shard.term()
    );
    Err(Failure::new(409, "no_longer_primary_shard_exception", reason))
}

pub(super) fn fillers(store: &store::Shard) -> Vec<Operation> {
    store.gaps().into_iter().flatten().map(Operation::no_op).collect()
}

/// Fills the gaps in a history with no-ops: sequence numbers that an old primary gave out and whose operations never
/// arrived. What it sent before, and is still being applied, comes first: applied later, it would leave other gaps, and
/// copies that have recovered until then would lack it.
pub(crate) async fn fill_gaps(store: &store::Shard) -> Result<(), store::Error> {
    // One batch is applied after another, and from an old primary comes none any more.
    store.apply(Vec::new()).await?;
    let fill = fillers(store);
    if !fill.is_empty() {
        store.apply(fill).await?;
    }
    // The last operations of the old primary may not be durable yet.
    store.sync().await
}
