//! Runs the tasks of all hosts on one thread, in the order in which they were woken.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks that were woken. Shared with wakers, which must be able to cross threads, though none does.
#[derive(Default)]
struct Ready(Mutex<VecDeque<u64>>);

impl Ready {
    fn push(&self, id: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(id);
    }

    fn pop(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

struct WakeTask {
    id: u64,
    ready: Arc<Ready>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.id);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.push(self.id);
    }
}

struct Slot {
    name: &'static str,
    host: Arc<str>,
    /// Out while it is polled.
    body: Option<Body>,
    waker: Waker,
}

#[derive(Default)]
struct Tasks {
    next_id: u64,
    slots: BTreeMap<u64, Slot>,
}

#[derive(Default)]
pub(super) struct Executor {
    ready: Arc<Ready>,
    tasks: RefCell<Tasks>,
}

impl Executor {
    pub(super) fn spawn(&self, name: &'static str, host: Arc<str>, body: Body) -> u64 {
        let mut tasks = self.tasks.borrow_mut();
        tasks.next_id += 1;
        let id = tasks.next_id;
        let waker = Waker::from(Arc::new(WakeTask { id, ready: self.ready.clone() }));
        tasks.slots.insert(id, Slot { name, host, body: Some(body), waker });
        self.ready.push(id);
        id
    }

    /// Ends a task. One that is being polled ends when it next waits.
    pub(super) fn abort(&self, id: u64) {
        let slot = self.tasks.borrow_mut().slots.remove(&id);
        drop(slot);
    }

    pub(super) fn abort_host(&self, host: &str) {
        let mut tasks = self.tasks.borrow_mut();
        let ids: Vec<u64> =
            tasks.slots.iter().filter(|(_, s)| &*s.host == host).map(|(id, _)| *id).collect();
        let slots: Vec<Slot> = ids.iter().filter_map(|id| tasks.slots.remove(id)).collect();
        drop(tasks);
        drop(slots);
    }

    /// Polls until no task is awake.
    pub(super) fn run_ready(&self) {
        while let Some(id) = self.ready.pop() {
            let Some((mut body, waker)) = self.take(id) else { continue };
            let done = body.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            let ended = {
                let mut tasks = self.tasks.borrow_mut();
                match tasks.slots.get_mut(&id) {
                    Some(slot) if !done => {
                        slot.body = Some(body);
                        None
                    }
                    _ => Some((tasks.slots.remove(&id), body)),
                }
            };
            drop(ended);
        }
    }

    fn take(&self, id: u64) -> Option<(Body, Waker)> {
        let mut tasks = self.tasks.borrow_mut();
        let slot = tasks.slots.get_mut(&id)?;
        Some((slot.body.take()?, slot.waker.clone()))
    }

    /// The waiting tasks by name and host, with their number.
    pub(super) fn waiting(&self) -> String {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for slot in self.tasks.borrow().slots.values() {
            *counts.entry(format!("{} @ {}", slot.name, slot.host)).or_default() += 1;
        }
        let parts: Vec<String> = counts.iter().map(|(what, n)| format!("{what} x {n}")).collect();
        parts.join(", ")
    }

    pub(super) fn clear(&self) {
        // A task's end may spawn or end others.
        loop {
            let slots = std::mem::take(&mut self.tasks.borrow_mut().slots);
            if slots.is_empty() {
                return;
            }
            drop(slots);
        }
    }
}
