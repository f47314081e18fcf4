//! Work on this machine: short work in the event loop, long work on a thread beside it.
//!
//! What acknowledges writes (parsing, indexing, appending, syncing) has a thread as soon as it comes. What a node may
//! have much of at once (reads, hashes, merges, compression, searches) has so many threads for each kind, and waits for
//! its turn beyond that: no number of merges or of chunks that are read holds a sync up.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

use crate::Work;

/// Work on a core that takes less than this is not worth a hop to another thread (some 20 microseconds).
const INLINE_HASH_BYTES: u64 = 512 << 10;
const INLINE_OTHER_BYTES: u64 = 16 << 10;
const INLINE_SEARCH_DOCUMENTS: u64 = 256;
/// Threads of a host for each kind of work that waits for its turn. All kinds of a few hosts together stay far below
/// the 512 threads that the event loop may have.
const THREADS_OF_A_KIND: usize = 16;

/// The turns of a host's work, by kind.
#[derive(Debug)]
pub(crate) struct Lanes([Arc<Semaphore>; 5]);

impl Default for Lanes {
    fn default() -> Self {
        Lanes(std::array::from_fn(|_| Arc::new(Semaphore::new(THREADS_OF_A_KIND))))
    }
}

impl Lanes {
    /// The turns of a kind of work; none for what never waits.
    fn of(&self, work: Work) -> Option<&Arc<Semaphore>> {
        let number = match work {
            Work::DiskRead { .. } => 0,
            Work::Hash { .. } => 1,
            Work::Copy { .. } => 2,
            Work::Compress { .. } | Work::Decompress { .. } => 3,
            Work::Search { .. } => 4,
            Work::DiskWrite { .. }
            | Work::DiskSync
            | Work::Index { .. }
            | Work::Parse { .. }
            | Work::ReceivePackets { .. }
            | Work::ApplyItems { .. }
            | Work::SendPackets { .. }
            | Work::RelayPackets { .. } => return None,
        };
        Some(&self.0[number])
    }
}

/// Work and what it comes to, whatever its type: the code that starts threads is there once.
type Piece = Box<dyn FnOnce() -> Value + Send>;
type Value = Box<dyn Any + Send>;

pub(crate) async fn work<T: Send + 'static>(
    lanes: &Lanes,
    work: Work,
    f: impl FnOnce() -> T + Send + 'static,
) -> T {
    if is_short(work) {
        return f();
    }
    let value = on_a_thread(lanes.of(work).cloned(), Box::new(move || Box::new(f()))).await;
    *value.downcast().expect("a piece comes to its own type")
}

async fn on_a_thread(turns: Option<Arc<Semaphore>>, piece: Piece) -> Value {
    let Some(turns) = turns else {
        return ended(spawn_blocking(piece).await).await;
    };
    // A task of its own: work that waits for its turn is done also where nobody waits for it any more, as work that has
    // a thread is.
    let in_turn = tokio::spawn(async move {
        let turn = turns.acquire_owned().await;
        let piece_in_turn = move || {
            let value = piece();
            drop(turn);
            value
        };
        ended(spawn_blocking(piece_in_turn).await).await
    });
    ended(in_turn.await).await
}

/// What work came to, or its panic.
async fn ended(done: Result<Value, JoinError>) -> Value {
    match done {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}

fn is_short(work: Work) -> bool {
    match work {
        Work::Hash { bytes } | Work::Copy { bytes } => bytes <= INLINE_HASH_BYTES,
        Work::Compress { bytes, .. } | Work::Decompress { bytes, .. } | Work::Parse { bytes } => {
            bytes <= INLINE_OTHER_BYTES
        }
        Work::Index { bytes, .. } => bytes <= INLINE_OTHER_BYTES / 4,
        Work::Search { documents, .. } => documents <= INLINE_SEARCH_DOCUMENTS,
        Work::DiskRead { bytes } => bytes == 0,
        Work::DiskWrite { .. } | Work::DiskSync => false,
        // What a loop does for its packets it has done by then.
        Work::ReceivePackets { .. }
        | Work::ApplyItems { .. }
        | Work::SendPackets { .. }
        | Work::RelayPackets { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError, mpsc};
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_number_of_reads_merges_and_searches_holds_a_sync() {
        crate::real_world::run(7, async |env| {
            let patience = Duration::from_secs(60);
            // Dropped at the end, also by a panic: then every piece goes on.
            let (open, closed) = mpsc::channel::<()>();
            let gate = Arc::new(Mutex::new(closed));
            let begun = Arc::new(AtomicUsize::new(0));
            let long = [
                Work::DiskRead { bytes: 1 },
                Work::Copy { bytes: u64::MAX },
                Work::Search { documents: u64::MAX, bytes: 1 },
            ];
            let mut held = Vec::new();
            for work in long.into_iter().cycle().take(3 * 40) {
                let (env2, gate, begun) = (env.clone(), gate.clone(), begun.clone());
                held.push(env.spawn("holds a thread", async move {
                    let wait = move || {
                        begun.fetch_add(1, Ordering::SeqCst);
                        let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    };
                    env2.work(work, wait).await;
                }));
            }
            let all_threads = async {
                while begun.load(Ordering::SeqCst) < 3 * THREADS_OF_A_KIND {
                    env.sleep(Duration::from_millis(1)).await;
                }
            };
            env.timeout(patience, all_threads).await.expect("each kind has its threads");
            let sync = env.work(Work::DiskSync, || "durable");
            assert_eq!(env.timeout(patience, sync).await, Ok("durable"));
            let elsewhere = env.host("another");
            let read = elsewhere.work(Work::DiskRead { bytes: 1 }, || "read");
            assert_eq!(env.timeout(patience, read).await, Ok("read"));
            assert_eq!(begun.load(Ordering::SeqCst), 3 * THREADS_OF_A_KIND, "no more at once");
            drop(open);
            for one in held {
                env.timeout(patience, one).await.expect("it has its turn").unwrap();
            }
            assert_eq!(begun.load(Ordering::SeqCst), 3 * 40);
        });
    }

    #[test]
    fn a_panic_of_work_on_a_thread_is_an_error_where_it_is_caught() {
        crate::real_world::run(7, async |env| {
            for work in [Work::DiskRead { bytes: 1 }, Work::DiskSync] {
                let panics = env.work::<()>(work, move || panic!("of {work:?}"));
                let caught = env.caught(panics).await;
                assert_eq!(caught, Err(crate::Panicked(format!("of {work:?}"))));
            }
            assert_eq!(env.caught(env.work(Work::DiskSync, || "durable")).await, Ok("durable"));
        });
    }

    #[test]
    #[should_panic(expected = "no seed hides it")]
    fn a_panic_in_virtual_time_ends_the_run() {
        crate::virtual_world::run(7, async |env| {
            let panics = env.work::<()>(Work::DiskSync, || panic!("no seed hides it"));
            drop(env.caught(panics).await);
        });
    }

    #[test]
    fn work_whose_caller_has_gone_is_done_in_its_turn() {
        crate::real_world::run(7, async |env| {
            let (open, closed) = mpsc::channel::<()>();
            let gate = Arc::new(Mutex::new(closed));
            let ended = Arc::new(AtomicUsize::new(0));
            for _ in 0..2 * THREADS_OF_A_KIND {
                let (gate, ended) = (gate.clone(), ended.clone());
                let wait = move || {
                    let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    ended.fetch_add(1, Ordering::SeqCst);
                };
                tokio::select! {
                    biased;
                    () = env.work(Work::DiskRead { bytes: 1 }, wait) => panic!("it is held"),
                    () = std::future::ready(()) => {}
                }
            }
            drop(open);
            let all = async {
                while ended.load(Ordering::SeqCst) < 2 * THREADS_OF_A_KIND {
                    env.sleep(Duration::from_millis(1)).await;
                }
            };
            env.timeout(Duration::from_secs(60), all).await.expect("each has its turn");
        });
    }
}
