//! Core time, to the nanosecond.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Core time of this thread so far.
pub(crate) fn thread_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Core time of this process so far, all threads together.
pub(super) fn process_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
