//! What a stream needs from disk, read ahead of it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use world::Task;

use crate::Result;
use crate::bucket::{BackfillGuard, BackfillPart, Bucket};
use crate::error::Error;

/// How long what is in memory may take to get to disk, so that it can be read there.
const PERSIST_PATIENCE: Duration = Duration::from_secs(30);

/// What a backfill comes to.
pub(super) enum Progress {
    /// It reads the view at this sequence number.
    Begins(u64),
    /// Versions, and the right to hold them: as many parts are in memory as the connection has rights.
    Part(BackfillPart, OwnedSemaphorePermit),
    /// The disk could not be read.
    Failed,
}

/// What a backfill is to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub vb: u16,
    /// What came after this one.
    pub from: u64,
    /// At least up to here.
    pub floor: u64,
    /// No further than this; none for all that is on disk.
    pub to: Option<u64>,
}

/// A backfill under way.
pub(super) struct Backfill {
    progress: mpsc::Receiver<Progress>,
    _task: Task<()>,
}

impl Backfill {
    /// Begins to read; `notify` is told of each part.
    pub fn start(
        bucket: &Bucket,
        span: Span,
        rights: Arc<Semaphore>,
        notify: Rc<Notify>,
    ) -> Backfill {
        let (sender, progress) = mpsc::channel(2);
        // From here on nothing is cleaned up that the view needs.
        let guard = bucket.begin_backfill();
        let bucket = bucket.clone();
        let env = bucket.env().clone();
        let reading = async move {
            if read(&bucket, span, &rights, &sender, &notify, guard).await.is_err() {
                // Nobody is there to be told if the stream is gone.
                let _ = sender.send(Progress::Failed).await;
            }
            drop(sender);
            notify.notify_one();
        };
        Backfill { progress, _task: env.spawn("reads a backfill", reading) }
    }

    /// What comes next, where it has come; none once all was given.
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
    rights: &Arc<Semaphore>,
    progress: &mpsc::Sender<Progress>,
    notify: &Notify,
    _guard: BackfillGuard,
) -> Result<()> {
    let Span { vb, mut from, floor, to } = span;
    // What was let go of in memory may still be on its way to disk.
    let waited = bucket.wait_persisted(vb, floor, PERSIST_PATIENCE).await;
    waited.map_err(|status| Error::Refused { vbucket: vb, status })?;
    let to = to.or(bucket.persisted_seqno(vb)).unwrap_or(floor);
    if progress.send(Progress::Begins(to)).await.is_err() {
        return Ok(());
    }
    notify.notify_one();
    while from < to {
        let Ok(permit) = rights.clone().acquire_owned().await else { return Ok(()) };
        let part = bucket.backfill(vb, from, to).await?;
        from = part.read_to;
        if progress.send(Progress::Part(part, permit)).await.is_err() {
            return Ok(());
        }
        notify.notify_one();
    }
    Ok(())
}
