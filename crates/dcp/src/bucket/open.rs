//! Opening and closing a bucket.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use store::RecordLog;
use tokio::sync::Notify;
use world::{Env, LocalFuture};

use super::record::DiskRecord;
use super::replay::Replay;
use super::settings::BucketSettings;
use super::{Bucket, Inner, flusher, fresh_uuid};
use crate::Result;
use crate::auth::fresh_u64;

impl Bucket {
    /// Opens a bucket in a directory, which is made if it is missing. A new bucket has all its vbuckets active; an
    /// earlier one is as it was left, with a new history if it was not closed. Fails if the settings are not right, or
    /// the log cannot be read or written.
    pub fn open<'a>(
        env: &'a Env,
        settings: BucketSettings,
        dir: &'a Path,
    ) -> LocalFuture<'a, Result<Bucket>> {
        Box::pin(async move {
            settings.check()?;
            let mut replay = Replay::default();
            let opened =
                RecordLog::open(env, dir, |location, record| replay.record(location, record)).await;
            let (log, _) = opened?;
            let used = Rc::<Cell<u64>>::default();
            let (vbuckets, files) = replay.finish(&settings, &used, || fresh_uuid(env))?;
            let dirty = vbuckets.iter().enumerate().filter(|(_, v)| v.is_some());
            let dirty = dirty.map(|(vb, _)| vb as u16).collect();
            let inner = Inner {
                env: env.clone(),
                settings,
                uuid: fresh_u64(env),
                log,
                vbuckets: RefCell::new(vbuckets),
                used,
                checkpoint_bytes: Cell::default(),
                dirty: RefCell::new(dirty),
                unwritten: RefCell::default(),
                appended: RefCell::default(),
                flush: Rc::default(),
                persisted: Notify::new(),
                log_lock: tokio::sync::Mutex::new(()),
                files: RefCell::new(files),
                backfills: Rc::default(),
                next_to_free: Cell::new(0),
                remover_due: Cell::new(env.now()),
                eject_from_bytes: Cell::default(),
                stats: Cell::default(),
                failed: RefCell::default(),
                disk_waits: RefCell::default(),
                flusher: RefCell::default(),
            };
            let bucket = Bucket(Rc::new(inner));
            // A new history is on disk before anybody learns of it.
            while bucket.flush_once().await? {}
            let task = env.spawn(
                "flushes a bucket",
                flusher::run(Rc::downgrade(&bucket.0), bucket.0.flush.clone()),
            );
            *bucket.0.flusher.borrow_mut() = Some(task);
            Ok(bucket)
        })
    }

    /// Writes what is in memory and closes the bucket, so that its histories continue when it is opened again. Fails if
    /// the disk fails or is full: what was not written is lost.
    pub fn close(self) -> LocalFuture<'static, Result<()>> {
        Box::pin(async move {
            let task = self.0.flusher.borrow_mut().take();
            // A running flush ends first.
            let lock = self.0.log_lock.lock().await;
            if let Some(mut task) = task {
                task.abort();
            }
            drop(lock);
            while self.flush_once().await? {}
            self.0.log.append(vec![DiskRecord::Closed]).await?;
            Ok(self.0.log.sync().await?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_after_a_crash_has_an_id_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        // A process begins with the same seed each time; it never closes the bucket.
        let open = || {
            world::real_world::run(7, async |env| {
                let settings = BucketSettings::new("example", 1, 64 << 20);
                let bucket = Bucket::open(&env, settings, dir.path()).await.unwrap();
                bucket.failover_log(0).unwrap()
            })
        };
        let (before, after) = (open(), open());
        assert_eq!((before.len(), after.len()), (1, 2));
        assert_eq!(after[1].uuid, before[0].uuid);
        assert_ne!(after[0].uuid, before[0].uuid);
    }
}
