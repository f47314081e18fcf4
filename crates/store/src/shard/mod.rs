//! A copy that is open.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Shard`], opening and closing |
//! | `copy_state.rs` | what the copy knows about its history |
//! | `write.rs` | applying operations, on a primary and on any copy |
//! | `read.rs` | get, search, digest, operations since |
//! | `maintain.rs` | sync, refresh, flush, merge |
//! | `work.rs` | how often it did what, and how long that took |

mod copy_state;
mod maintain;
mod read;
mod work;
mod write;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use world::{Env, LocalFuture};

use query::Mapping;

use crate::Result;
use crate::commit::Commit;
use crate::group_commit::GroupCommit;
use crate::patience::patiently;
use crate::requests::{Durability, Opened, Options};
use crate::storage::{self, ShardStorage};

use copy_state::CopyState;
use work::WorkDone;
pub use write::ReadRequests;

/// A shard copy that is open. Cheap to clone; all clones are the same copy.
///
/// Dropping the last clone is like a kill: what was not synced may be lost. [`Shard::close`] syncs first.
#[derive(Clone)]
pub struct Shard {
    pub(crate) inner: Rc<Inner>,
}

pub(crate) struct Inner {
    env: Env,
    storage: ShardStorage,
    mapping: RefCell<Mapping>,
    history_uuid: String,
    durability: Cell<Durability>,
    opened: Cell<Opened>,
    seq_nos: RefCell<CopyState>,
    /// Held while operations are applied, and during a refresh.
    writes: tokio::sync::Mutex<()>,
    /// Held while a commit is made or pinned.
    flushes: tokio::sync::Mutex<()>,
    /// Held while segments are merged on request: two of those would get in each other's way.
    merges: tokio::sync::Mutex<()>,
    log: GroupCommit,
    work: WorkDone,
    snapshots: Cell<u64>,
}

impl Shard {
    /// Creates an empty copy with its first commit. Fails if `dir` holds a copy already.
    pub fn create<'a>(
        env: &'a Env,
        dir: &'a Path,
        mapping: &'a Mapping,
        options: Options,
    ) -> LocalFuture<'a, Result<Shard>> {
        Box::pin(async move {
            let history_uuid = options.history_uuid.clone().unwrap_or_else(|| uuid(env));
            patiently(env, || storage::create(env, dir, mapping, &history_uuid)).await?;
            let options = Options { check_on_startup: false, ..options };
            Shard::open(env, dir, mapping, options).await
        })
    }

    /// Opens the copy in `dir`: checks every committed file, as [`Options::check_on_startup`] says, then replays the
    /// operation log. What was found is in [`Shard::opened`]. Errors name a file that is gone, cut or damaged.
    ///
    /// Fields of `mapping` that the copy does not have yet are indexed from now on, those of replayed operations
    /// included; documents from before keep them in `_source` alone.
    pub fn open<'a>(
        env: &'a Env,
        dir: &'a Path,
        mapping: &'a Mapping,
        options: Options,
    ) -> LocalFuture<'a, Result<Shard>> {
        Box::pin(async move {
            let (verify, history) = (options.check_on_startup, options.history_uuid.as_deref());
            let opened = patiently(env, || storage::open(env, dir, mapping, verify, history));
            let (storage, found) = opened.await?;
            let stored = found.stored;
            let shard = Shard {
                inner: Rc::new(Inner {
                    env: env.clone(),
                    storage,
                    mapping: RefCell::new(mapping.clone()),
                    history_uuid: stored.commit.history_uuid.clone(),
                    durability: Cell::new(options.durability),
                    opened: Cell::new(Opened {
                        verified_bytes: if verify { stored.commit.bytes() } else { 0 },
                        torn_bytes: found.torn_bytes,
                        replayed_ops: 0,
                    }),
                    seq_nos: RefCell::new(CopyState::new(stored)),
                    writes: tokio::sync::Mutex::default(),
                    flushes: tokio::sync::Mutex::default(),
                    merges: tokio::sync::Mutex::default(),
                    log: GroupCommit::default(),
                    work: WorkDone::default(),
                    snapshots: Cell::new(0),
                }),
            };
            shard.inner.replay().await?;
            Ok(shard)
        })
    }

    /// What opening found.
    pub fn opened(&self) -> Opened {
        self.inner.opened.get()
    }

    /// Identity of the history that the operations belong to.
    pub fn history_uuid(&self) -> &str {
        &self.inner.history_uuid
    }

    /// `index.translog.durability`. The copy only stores it; the caller that acknowledges writes obeys it.
    pub fn durability(&self) -> Durability {
        self.inner.durability.get()
    }

    /// Changes `index.translog.durability`.
    pub fn set_durability(&self, durability: Durability) {
        self.inner.durability.set(durability);
    }

    /// The newest commit.
    pub fn commit(&self) -> Commit {
        self.inner.seq_nos.borrow().commit.clone()
    }

    /// Syncs and closes. Other clones stay usable.
    pub fn close(self) -> LocalFuture<'static, Result<()>> {
        Box::pin(async move {
            self.sync().await?;
            // It says something of other copies: one that failed closes all the same.
            let _ = self.note_global_checkpoint().await;
            Ok(())
        })
    }
}

fn uuid(env: &Env) -> String {
    format!("{:016x}{:016x}", env.random_u64(), env.random_u64())
}
