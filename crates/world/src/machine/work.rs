//! Work on this machine: short work in the event loop, long work on a thread beside it.

use crate::Work;

/// Work on a core that takes less than this is not worth a hop to another thread (some 20 microseconds).
const INLINE_HASH_BYTES: u64 = 512 << 10;
const INLINE_OTHER_BYTES: u64 = 16 << 10;
const INLINE_SEARCH_DOCUMENTS: u64 = 256;

pub(crate) async fn work<T: Send + 'static>(
    work: Work,
    f: impl FnOnce() -> T + Send + 'static,
) -> T {
    if is_short(work) {
        return f();
    }
    match tokio::task::spawn_blocking(f).await {
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
