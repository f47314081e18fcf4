//! Runs the tasks of all hosts on one thread, in the order in which they were woken.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::task::Body;

/// The slot of a task, and how many tasks had that slot before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskId {
    slot: u32,
    generation: u32,
}

/// Tasks that were woken where their world does not run: before it does, or on another thread, which can hold a waker
/// to interrupt the run. Shared with wakers.
#[derive(Default)]
struct Ready {
    tasks: Mutex<Vec<TaskId>>,
    /// Whether there are any: this is asked after every event, and a lock costs more.
    any: AtomicBool,
}

/// The world that runs on this thread, and its tasks that were woken here. Nearly all are, and a lock would be taken
/// for each: atomic operations are most of what a wake costs.
struct Here {
    /// The place of its [`Ready`] in memory; 0 where none runs.
    ready: Cell<usize>,
    woken: RefCell<Vec<TaskId>>,
}

thread_local! {
    static HERE: Here = const { Here { ready: Cell::new(0), woken: RefCell::new(Vec::new()) } };
}

/// Ends the run of a world on this thread. One that this was begun in goes on.
pub(super) struct RunsHere {
    before: (usize, Vec<TaskId>),
}

impl Drop for RunsHere {
    fn drop(&mut self) {
        let (ready, woken) = std::mem::take(&mut self.before);
        HERE.with(|here| {
            here.ready.set(ready);
            *here.woken.borrow_mut() = woken;
        });
    }
}

impl Ready {
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn push(&self, id: TaskId) {
        let pushed = HERE.try_with(|here| {
            let is_here = here.ready.get() == self.place();
            if is_here {
                here.woken.borrow_mut().push(id);
            }
            is_here
        });
        if !pushed.unwrap_or(false) {
            self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(id);
            self.any.store(true, Ordering::Release);
        }
    }

    fn is_empty(&self) -> bool {
        HERE.with(|here| here.woken.borrow().is_empty()) && !self.any.load(Ordering::Acquire)
    }

    /// Exchanges what was woken for an empty list; answers whether anything was.
    fn take(&self, empty: &mut Vec<TaskId>) -> bool {
        HERE.with(|here| std::mem::swap(&mut *here.woken.borrow_mut(), empty));
        if self.any.load(Ordering::Acquire) {
            self.any.store(false, Ordering::Relaxed);
            empty.append(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        }
        !empty.is_empty()
    }
}

struct WakeTask {
    id: TaskId,
    /// Whether it is among the ready tasks already.
    woken: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.ready.push(self.id);
        }
    }
}

/// The part of a task that is out of its slot while it is polled.
struct Running {
    body: Body,
    wake: Arc<WakeTask>,
    waker: Waker,
}

struct Entry {
    name: &'static str,
    host: Rc<str>,
    running: Option<Running>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

#[derive(Default)]
struct Tasks {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Tasks {
    fn entry(&mut self, id: TaskId) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation == id.generation { slot.entry.as_mut() } else { None }
    }

    fn remove(&mut self, id: TaskId) -> Option<Entry> {
        self.entry(id)?;
        let slot = &mut self.slots[id.slot as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        slot.entry.take()
    }
}

#[derive(Default)]
pub(super) struct Executor {
    ready: Arc<Ready>,
    tasks: RefCell<Tasks>,
    /// The list that [`Executor::run_ready`] works on, kept for its memory.
    woken: Cell<Vec<TaskId>>,
    /// Tasks that were woken on paused hosts, by host.
    paused: RefCell<BTreeMap<String, Vec<TaskId>>>,
}

impl Executor {
    /// Pauses a host's tasks, or has them go on: then they run in the order in which they were woken.
    pub(super) fn pause_host(&self, host: &str, pauses: bool) {
        let mut paused = self.paused.borrow_mut();
        if pauses {
            paused.entry(host.to_owned()).or_default();
        } else if let Some(woken) = paused.remove(host) {
            woken.into_iter().for_each(|id| self.ready.push(id));
        }
    }

    /// Keeps a task for later if its host is paused.
    fn keep_if_paused(&self, id: TaskId) -> bool {
        let mut paused = self.paused.borrow_mut();
        if paused.is_empty() {
            return false;
        }
        let mut tasks = self.tasks.borrow_mut();
        let waiting = tasks.entry(id).and_then(|entry| paused.get_mut(&*entry.host));
        waiting.map(|waiting| waiting.push(id)).is_some()
    }

    pub(super) fn spawn(&self, name: &'static str, host: Rc<str>, body: Body) -> TaskId {
        let mut tasks = self.tasks.borrow_mut();
        let slot = tasks.free.pop().unwrap_or_else(|| {
            tasks.slots.push(Slot::default());
            u32::try_from(tasks.slots.len() - 1).expect("fewer than 2^32 tasks at a time")
        });
        let id = TaskId { slot, generation: tasks.slots[slot as usize].generation };
        let wake =
            Arc::new(WakeTask { id, woken: AtomicBool::new(true), ready: self.ready.clone() });
        let waker = Waker::from(wake.clone());
        let running = Some(Running { body, wake, waker });
        tasks.slots[slot as usize].entry = Some(Entry { name, host, running });
        self.ready.push(id);
        id
    }

    /// Ends a task. One that is being polled ends when it next waits.
    pub(super) fn abort(&self, id: TaskId) {
        let entry = self.tasks.borrow_mut().remove(id);
        drop(entry);
    }

    pub(super) fn abort_host(&self, host: &str) {
        let mut tasks = self.tasks.borrow_mut();
        let of_host = |(slot, known): (usize, &Slot)| {
            let here = known.entry.as_ref().is_some_and(|entry| &*entry.host == host);
            here.then_some(TaskId { slot: slot as u32, generation: known.generation })
        };
        let ids: Vec<TaskId> = tasks.slots.iter().enumerate().filter_map(of_host).collect();
        let entries: Vec<Entry> = ids.iter().filter_map(|id| tasks.remove(*id)).collect();
        drop(tasks);
        drop(entries);
    }

    /// Begins to run tasks on this thread, until what this answers with is dropped.
    pub(super) fn runs_here(&self) -> RunsHere {
        let begin = |here: &Here| (here.ready.replace(self.ready.place()), here.woken.take());
        RunsHere { before: HERE.with(begin) }
    }

    /// Polls until no task is awake; answers whether any was.
    pub(super) fn run_ready(&self) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        let mut woken = self.woken.take();
        while self.ready.take(&mut woken) {
            for id in woken.drain(..) {
                self.poll(id);
            }
        }
        self.woken.set(woken);
        true
    }

    fn poll(&self, id: TaskId) {
        if self.keep_if_paused(id) {
            return;
        }
        let running = self.tasks.borrow_mut().entry(id).and_then(|entry| entry.running.take());
        let Some(mut running) = running else { return };
        // What a thread did before it woke the task is seen by this poll, or the task is woken again.
        running.wake.woken.swap(false, Ordering::AcqRel);
        let mut context = Context::from_waker(&running.waker);
        let done = running.body.as_mut().poll(&mut context).is_ready();
        let ended = {
            let mut tasks = self.tasks.borrow_mut();
            match tasks.entry(id) {
                Some(entry) if !done => {
                    entry.running = Some(running);
                    None
                }
                _ => Some((tasks.remove(id), running)),
            }
        };
        drop(ended);
    }

    /// Shows every task: its name, its host, and its waker.
    pub(super) fn each(&self, mut show: impl FnMut(&'static str, &str, Option<&Waker>)) {
        for entry in self.tasks.borrow().slots.iter().filter_map(|slot| slot.entry.as_ref()) {
            let waker = entry.running.as_ref().map(|running| &running.waker);
            show(entry.name, &entry.host, waker);
        }
    }

    pub(super) fn clear(&self) {
        // Dropping a task may spawn or abort others.
        loop {
            let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
            if tasks.slots.iter().all(|slot| slot.entry.is_none()) {
                return;
            }
            drop(tasks);
        }
    }
}
