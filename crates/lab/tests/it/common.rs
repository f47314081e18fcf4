//! What tests of runs share.

use lab::experiments::STEPS;
use lab::plan::{Plan, Resolved};
use lab::{Error, Options, Place};
use record::{Line, Row, RunDir};
use world::Trace;

/// How a run ended, its record, and what happened in its world.
pub type Ran = (Result<Vec<Row>, Error>, RunDir, Option<Trace>);

/// A plan in the sizes of its file, in virtual time too.
pub fn resolved(plan: &Plan, scale: f64) -> Resolved {
    plan.resolve(scale, STEPS, |_, _| Ok(())).unwrap()
}

/// Executes a plan in virtual time, where one thing is done wrong, if any.
pub fn run(plan: Resolved, planted: Option<&'static str>) -> Ran {
    let planted = Box::leak(planted.into_iter().collect::<Box<[&str]>>());
    run_in(plan, Place::Virtual { planted })
}

/// Executes a plan in a place.
pub fn run_in(plan: Resolved, place: Place) -> Ran {
    on_a_large_stack(move || {
        let dir = tempfile::tempdir().unwrap();
        let executed = lab::execute_resolved("", plan, &place, &Options::new(dir.path())).unwrap();
        let rows = executed.run.rows.clone();
        (executed.ended.map(|_| rows), executed.run, executed.trace)
    })
}

/// What the lines of a record say that are of use.
pub fn lines<'r, T>(run: &'r RunDir, told: impl Fn(&'r Line) -> Option<T>) -> Vec<T> {
    run.lines.iter().filter_map(told).collect()
}

/// The notes of a record.
pub fn notes(run: &RunDir) -> Vec<&str> {
    lines(run, |line| match line {
        Line::Note { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

/// Without optimisation a step of all that is nested in a run needs more than a test's thread has.
pub fn on_a_large_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let ran = thread.spawn(work).unwrap().join();
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
