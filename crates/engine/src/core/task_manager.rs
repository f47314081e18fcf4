//! The requests of clients that a node works on, as the field's tasks, and the last results that nobody waited for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use world::{Env, Time};

use crate::transport::{Failure, Result};

/// Results that are kept: so many, and so many bytes of them together.
const RESULTS_MAX: usize = 100;
const RESULTS_BYTES_MAX: usize = 4 << 20;
/// Tasks that go on where their clients do not wait: so many at once, and so many bytes of what they were asked with
/// together. What is read of it, a query as a tree, is held until they end.
const ALONE_MAX: usize = 100;
const ALONE_BYTES_MAX: usize = 10 << 20;
/// Bytes of a description and of an `X-Opaque-Id` that are kept.
const TEXT_BYTES_MAX: usize = 1024;

/// The tasks of a node.
pub struct TaskManager {
    env: Env,
    node: String,
    next: Cell<u64>,
    running: RefCell<BTreeMap<u64, Rc<Known>>>,
    /// Tasks whose clients do not wait: their number, and the bytes of their requests.
    alone: Cell<(usize, usize)>,
    results: RefCell<VecDeque<(u64, String)>>,
}

/// What a request is, by the field's words.
#[derive(Debug, Default)]
pub struct NewTask {
    /// `indices:data/read/search`, ..
    pub action: &'static str,
    /// For people; [`RunningTask::describe`] says more.
    pub description: String,
    /// Whether it ends where that is asked for.
    pub cancellable: bool,
    /// `X-Opaque-Id` of the client.
    pub opaque_id: Option<String>,
}

struct Known {
    new: NewTask,
    description: RefCell<String>,
    status: RefCell<Value>,
    /// Requests per second, infinity for as many as there can be; none where it has no pace.
    pace: Cell<Option<f64>>,
    started: Time,
    started_ms: u64,
    cancelled: Cell<bool>,
    told: Notify,
}

/// A task that is listed for as long as somebody holds it.
pub struct RunningTask {
    manager: Rc<TaskManager>,
    number: u64,
    known: Rc<Known>,
}

/// A place among the tasks that go on where their clients do not wait. Dropping it gives it back.
pub struct Alone {
    manager: Rc<TaskManager>,
    bytes: usize,
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text.shrink_to_fit();
    text
}

impl TaskManager {
    /// `first` differs from start to start, so that an id from before finds nothing. Clients read numbers as doubles.
    pub(super) fn new(env: &Env, node: &str, first: u64) -> Rc<TaskManager> {
        Rc::new(TaskManager {
            env: env.clone(),
            node: node.to_owned(),
            next: Cell::new((first >> 16) + 1),
            running: RefCell::default(),
            alone: Cell::default(),
            results: RefCell::default(),
        })
    }

    /// A request begins.
    pub fn begin(self: &Rc<Self>, mut new: NewTask) -> Rc<RunningTask> {
        let number = self.next.replace(self.next.get() + 1);
        new.opaque_id = new.opaque_id.map(cut);
        let known = Rc::new(Known {
            description: RefCell::new(cut(std::mem::take(&mut new.description))),
            new,
            status: RefCell::new(Value::Null),
            pace: Cell::new(None),
            started: self.env.now(),
            started_ms: self.env.epoch_ms(),
            cancelled: Cell::new(false),
            told: Notify::new(),
        });
        self.running.borrow_mut().insert(number, known.clone());
        Rc::new(RunningTask { manager: self.clone(), number, known })
    }

    /// All that run, with all that there is to say of them.
    pub(crate) fn list(&self) -> Value {
        let running = self.running.borrow();
        running.iter().map(|(number, known)| self.show(*number, known)).collect()
    }

    /// A task that runs, or the result of one; null where there is neither.
    pub(crate) fn get(&self, number: u64) -> Value {
        if let Some((_, result)) = self.results.borrow().iter().find(|(of, _)| *of == number) {
            return serde_json::from_str(result).unwrap_or_default();
        }
        match self.running.borrow().get(&number) {
            Some(known) => json!({ "completed": false, "task": self.show(number, known) }),
            None => Value::Null,
        }
    }

    /// Cancels the running tasks with these numbers that can be cancelled, and answers with them.
    pub(crate) fn cancel(&self, numbers: &[u64]) -> Value {
        let running = self.running.borrow();
        let found = numbers.iter().filter_map(|number| running.get_key_value(number));
        let cancelled = found.filter(|(_, known)| known.new.cancellable).map(|(number, known)| {
            known.cancelled.set(true);
            known.told.notify_waiters();
            self.show(*number, known)
        });
        cancelled.collect()
    }

    /// Changes the pace of the running tasks with these numbers that have one, and answers with them.
    pub(crate) fn rethrottle(&self, numbers: &[u64], per_second: f64) -> Value {
        let running = self.running.borrow();
        let found = numbers.iter().filter_map(|number| running.get_key_value(number));
        let paced = found.filter(|(_, known)| known.pace.get().is_some()).map(|(number, known)| {
            known.pace.set(Some(per_second));
            if let Some(shown) = known.status.borrow_mut().get_mut("requests_per_second") {
                *shown = pace_json(per_second);
            }
            self.show(*number, known)
        });
        paced.collect()
    }

    fn show(&self, number: u64, known: &Known) -> Value {
        let mut shown = json!({
            "node": self.node,
            "id": number,
            "type": "transport",
            "action": known.new.action,
            "description": *known.description.borrow(),
            "start_time_in_millis": known.started_ms,
            "running_time_in_nanos": (self.env.now() - known.started).as_nanos() as u64,
            "cancellable": known.new.cancellable,
            "cancelled": known.cancelled.get(),
            "headers": {},
        });
        if let Some(id) = &known.new.opaque_id {
            shown["headers"]["X-Opaque-Id"] = json!(id);
        }
        let status = known.status.borrow();
        if !status.is_null() {
            shown["status"] = status.clone();
        }
        shown
    }

    /// Keeps a result; those that came first make room.
    fn keep(&self, number: u64, result: String) {
        let mut results = self.results.borrow_mut();
        results.push_back((number, result));
        let bytes = |results: &VecDeque<(u64, String)>| {
            results.iter().map(|(_, result)| result.len()).sum::<usize>()
        };
        while results.len() > RESULTS_MAX || bytes(&results) > RESULTS_BYTES_MAX {
            results.pop_front();
        }
    }
}

/// A pace as the field shows it.
fn pace_json(per_second: f64) -> Value {
    json!(if per_second.is_finite() { per_second } else { -1.0 })
}

impl RunningTask {
    /// Its id, `node:number`.
    pub fn id(&self) -> String {
        format!("{}:{}", self.manager.node, self.number)
    }

    /// What is done.
    pub fn action(&self) -> &'static str {
        self.known.new.action
    }

    /// Replaces the description, once more is known than when the task began.
    pub fn describe(&self, description: String) {
        self.known.description.replace(cut(description));
    }

    /// How far it is.
    pub fn set_status(&self, status: Value) {
        self.known.status.replace(status);
    }

    /// How many requests it makes in a second, infinity for as many as there can be. It may be given another pace.
    pub fn set_pace(&self, per_second: f64) {
        self.known.pace.set(Some(per_second));
    }

    /// Its pace of now, in requests per second.
    pub fn pace(&self) -> f64 {
        self.known.pace.get().unwrap_or(f64::INFINITY)
    }

    /// The same as the field shows it.
    pub fn pace_json(&self) -> Value {
        pace_json(self.pace())
    }

    /// Takes a place among the tasks that go on where their clients do not wait, for one that was asked with so many
    /// bytes. Fails with 429 where as many go on, or hold as much.
    pub fn go_on_alone(&self, bytes: usize) -> Result<Alone> {
        let (tasks, held) = self.manager.alone.get();
        let (tasks, held) = (tasks + 1, held + bytes);
        if tasks > ALONE_MAX || held > ALONE_BYTES_MAX {
            let reason = format!(
                "node [{}] would work on [{tasks}] tasks whose clients need not wait, asked with [{held}] bytes, and \
                 takes [{ALONE_MAX}] with [{ALONE_BYTES_MAX}] bytes at once; send this one again when others have \
                 ended, or to another node: GET /_tasks lists them",
                self.manager.node
            );
            return Err(Failure::new(429, "rejected_execution_exception", reason));
        }
        self.manager.alone.set((tasks, held));
        Ok(Alone { manager: self.manager.clone(), bytes })
    }

    /// Whether it was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.known.cancelled.get()
    }

    /// Waits until it is asked to end.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.known.told.notified().await;
        }
    }

    /// Keeps what came of it, `response` or `error`, for whoever asks later.
    pub fn finish(&self, kind: &str, result: Value) {
        let task = self.manager.show(self.number, &self.known);
        let text = json!({ "completed": true, "task": task, kind: result }).to_string();
        self.manager.keep(self.number, match text.len() <= RESULTS_BYTES_MAX {
            true => text,
            false => {
                let bytes = text.len();
                let reason = format!(
                    "the result has [{bytes}] bytes, more than [{RESULTS_BYTES_MAX}] that are kept; what was done is \
                     done"
                );
                let error = json!({ "type": "illegal_state_exception", "reason": reason });
                json!({ "completed": true, "task": task, "error": error }).to_string()
            }
        });
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.manager.running.borrow_mut().remove(&self.number);
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let (tasks, held) = self.manager.alone.get();
        self.manager.alone.set((tasks - 1, held - self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    testbed::virtual_world!(
        a_task_is_listed_while_somebody_holds_it,
        the_last_results_are_kept_within_bounds,
        tasks_that_go_on_alone_and_what_they_hold_are_bounded,
        only_a_task_that_has_a_pace_gets_another,
    );

    fn manager(env: &Env) -> Rc<TaskManager> {
        TaskManager::new(env, "n", 7 << 16)
    }

    async fn a_task_is_listed_while_somebody_holds_it(env: Env) {
        let manager = manager(&env);
        let opaque_id = Some("me".to_owned());
        let new =
            NewTask { action: "a", description: "é".repeat(600), cancellable: true, opaque_id };
        let task = manager.begin(new);
        let other = manager.begin(NewTask { action: "b", ..NewTask::default() });
        assert_eq!((task.id(), other.id()), ("n:8".to_owned(), "n:9".to_owned()));
        let held = task.clone();
        drop(task);
        let list = manager.list();
        assert_eq!((list.as_array().unwrap().len(), &list[0]["id"]), (2, &json!(8)));
        assert_eq!(list[0]["headers"], json!({ "X-Opaque-Id": "me" }));
        assert_eq!(list[0]["description"].as_str().unwrap().len(), TEXT_BYTES_MAX);
        assert_eq!((list[0].get("status"), &list[1]["headers"]), (None, &json!({})));
        // What cannot be cancelled is not, and who waits is told.
        let cancelled = manager.cancel(&[9, 8, 7]);
        assert_eq!((cancelled.as_array().unwrap().len(), &cancelled[0]["id"]), (1, &json!(8)));
        held.cancelled().await;
        assert!(held.is_cancelled() && !other.is_cancelled());
        assert_eq!(manager.get(8)["completed"], false);
        drop((held, other));
        assert_eq!((manager.list(), manager.get(8)), (json!([]), Value::Null));
    }

    async fn the_last_results_are_kept_within_bounds(env: Env) {
        let manager = manager(&env);
        let end = |result: Value| manager.begin(NewTask::default()).finish("response", result);
        (0..=RESULTS_MAX).for_each(|n| end(json!(n)));
        assert_eq!(manager.get(8), Value::Null);
        assert_eq!(
            (&manager.get(9)["response"], &manager.get(9)["completed"]),
            (&json!(1), &json!(true))
        );
        (0..5).for_each(|_| end(json!("x".repeat(1 << 20))));
        let last = 8 + RESULTS_MAX as u64 + 5;
        assert_eq!((manager.get(last - 4), manager.results.borrow().len()), (Value::Null, 3));
        end(json!("x".repeat(RESULTS_BYTES_MAX)));
        assert_eq!(manager.get(last + 1)["error"]["type"], "illegal_state_exception");
    }
    async fn tasks_that_go_on_alone_and_what_they_hold_are_bounded(env: Env) {
        let manager = manager(&env);
        let task = manager.begin(NewTask::default());
        let said = |bytes| task.go_on_alone(bytes).err().map(|why| (why.status, why.reason));
        let mut places: Vec<Alone> =
            (0..ALONE_MAX).map(|_| task.go_on_alone(7).ok().unwrap()).collect();
        let (status, reason) = said(0).unwrap();
        assert!(status == 429 && reason.contains("takes [100] with"), "{reason}");
        places.pop();
        assert_eq!(said(0), None);
        let (status, reason) = said(ALONE_BYTES_MAX).unwrap();
        assert!(status == 429 && reason.contains("[10485760] bytes"), "{reason}");
        drop(places);
        assert_eq!((said(ALONE_BYTES_MAX), manager.alone.get()), (None, (0, 0)));
    }

    async fn only_a_task_that_has_a_pace_gets_another(env: Env) {
        let manager = manager(&env);
        let [paced, other] = [0, 1].map(|_| manager.begin(NewTask::default()));
        paced.set_pace(0.5);
        paced.set_status(json!({ "requests_per_second": paced.pace_json() }));
        let found = manager.rethrottle(&[7, 8, 9], f64::INFINITY);
        assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &json!(8)));
        assert_eq!(found[0]["status"], json!({ "requests_per_second": -1.0 }));
        assert!(paced.pace().is_infinite() && other.known.pace.get().is_none());
    }
}
