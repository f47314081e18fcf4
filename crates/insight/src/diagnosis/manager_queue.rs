//! The queue of tasks that wait for the manager: every change of the cluster's state is one, and each waits for those
//! before it.

use record::observation::Health;
use record::units::show_seconds;

use super::series::{MS_PER_S, Series};
use super::threshold::{Threshold, at};
use crate::words::counted;

pub(super) const WAITED_MS: Threshold =
    at("ms for which the oldest task has waited for the manager", 1000.0);
pub(super) const TASKS: Threshold = at("or tasks that wait for the manager", 30.0);
/// One look may meet what passes.
pub(super) const LOOKS: Threshold =
    at("looks that found the manager's queue so long, at least", 2.0);

/// That many tasks wait for the manager, or long: new indices, new fields and copies that start come later by that.
pub(crate) fn long_queue(series: &Series<'_>) -> Option<String> {
    let counts = |health: &Health| {
        let tasks = health.pending_tasks.unwrap_or(0);
        let waited_ms = health.task_waited_ms.unwrap_or(0);
        let is_long = waited_ms as f64 >= WAITED_MS.value || tasks as f64 >= TASKS.value;
        is_long.then_some((tasks, waited_ms))
    };
    let looks = series.looks().iter().filter_map(|(_, look)| look.health.as_ref());
    let long: Vec<(u64, u64)> = looks.filter_map(counts).collect();
    if (long.len() as f64) < LOOKS.value {
        return None;
    }
    let tasks = long.iter().map(|(tasks, _)| *tasks).max()?;
    let waited_ms = long.iter().map(|(_, waited_ms)| *waited_ms).max()?;
    let tasks = counted(tasks, "task", "tasks");
    let oldest = match waited_ms {
        0 => String::new(),
        ms => format!(", the oldest for {}", show_seconds(ms as f64 / MS_PER_S)),
    };
    Some(format!(
        "up to {tasks} waited for the manager{oldest} (in {} of {} looks): new indices, new fields and copies that \
         start come later by that; GET _cluster/pending_tasks says what they are",
        long.len(),
        series.looks().len()
    ))
}
