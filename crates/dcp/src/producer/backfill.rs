//! Reading what a stream needs from disk, ahead of the stream.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use world::Task;

use crate::Result;
use crate::bucket::{BackfillGuard, BackfillPart, Bucket};
use crate::error::Error;

/// How long a backfill waits for versions in memory to be persisted, so that it can read them.
const PERSIST_PATIENCE: Duration = Duration::from_secs(30);

/// Parts of backfills that a connection may have in memory, of about a mebibyte each: while they are read, and until
/// they are sent.
const PARTS: usize = 8;

/// The room that a connection has for parts of backfills.
#[derive(Clone)]
pub(super) struct Room {
    free: Arc<Semaphore>,
    /// Parts that were read, and are not sent yet.
    read: Rc<Cell<usize>>,
}

/// The room that a part takes that was read.
pub(super) struct Held {
    _permit: OwnedSemaphorePermit,
    read: Rc<Cell<usize>>,
}

impl Room {
    pub fn new() -> Room {
        Room { free: Arc::new(Semaphore::new(PARTS)), read: Rc::default() }
    }

    /// Whether all of it is taken by what was read. What is still being read waits for the disk, and not for whoever
    /// takes it.
    pub fn is_full(&self) -> bool {
        self.read.get() >= PARTS
    }

    fn hold(&self, permit: OwnedSemaphorePermit) -> Held {
        self.read.set(self.read.get() + 1);
        Held { _permit: permit, read: self.read.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.read.set(self.read.get() - 1);
    }
}

/// What a backfill delivers.
pub(super) enum Progress {
    /// The snapshot that the backfill reads from ends at this sequence number.
    Begins(u64),
    /// Versions, and the room that they take.
    Part(BackfillPart, Held),
    /// The disk could not be read.
    Failed,
}

/// What a backfill is to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub vb: u16,
    /// Only versions after this one.
    pub from: u64,
    /// Not before this one is on disk.
    pub floor: u64,
    /// Up to the first whole view from this one on, or up to all that is on disk.
    pub end: u64,
}

/// A running backfill.
pub(super) struct Backfill {
    progress: mpsc::Receiver<Progress>,
    _task: Task<()>,
}

impl Backfill {
    /// Begins to read; every part wakes `notify`.
    pub fn start(bucket: &Bucket, span: Span, room: Room, notify: Rc<Notify>) -> Backfill {
        let (sender, progress) = mpsc::channel(2);
        // From here on no file that the view needs is compacted.
        let guard = bucket.begin_backfill();
        let bucket = bucket.clone();
        let env = bucket.env().clone();
        let reading = async move {
            if read(&bucket, span, &room, &sender, &notify, guard).await.is_err() {
                // If the stream is gone, nobody receives this.
                let _ = sender.send(Progress::Failed).await;
            }
            drop(sender);
            notify.notify_one();
        };
        Backfill { progress, _task: env.spawn("reads a backfill", reading) }
    }

    /// The next part, if it has been read; none after the last.
    pub fn next(&mut self) -> Option<Option<Progress>> {
        match self.progress.try_recv() {
            Ok(progress) => Some(Some(progress)),
            Err(TryRecvError::Empty) => Some(None),
            Err(TryRecvError::Disconnected) => None,
        }
    }
}

async fn read(
    bucket: &Bucket,
    span: Span,
    room: &Room,
    progress: &mpsc::Sender<Progress>,
    notify: &Notify,
    _guard: BackfillGuard,
) -> Result<()> {
    let Span { vb, mut from, floor, end } = span;
    // Versions that were expelled from memory may still be on their way to disk.
    let waited = bucket.wait_persisted(vb, floor, PERSIST_PATIENCE).await;
    waited.map_err(|status| Error::Refused { vbucket: vb, status })?;
    let (to, snap_end) = bucket.backfill_end(vb, end).unwrap_or((floor, floor));
    if progress.send(Progress::Begins(snap_end)).await.is_err() {
        return Ok(());
    }
    notify.notify_one();
    while from < to {
        let Ok(permit) = room.free.clone().acquire_owned().await else { return Ok(()) };
        let part = bucket.backfill(vb, from, to).await?;
        from = part.read_to;
        if progress.send(Progress::Part(part, room.hold(permit))).await.is_err() {
            return Ok(());
        }
        notify.notify_one();
    }
    Ok(())
}
