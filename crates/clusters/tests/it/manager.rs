//! A cluster whose manager is slow to answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::{Address, LiveClient, LiveOptions};
use clusters::{ClusterIdentity, Head, Journal, LiveCluster};
use rest::RestRequest;
use serde_json::{Value, json};
use world::{Env, Task};

/// How long a client waits for an answer.
pub const QUICK: Duration = Duration::from_secs(3);
pub const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
/// A setting that this cluster does not know.
pub const UNKNOWN: &str = "indices.recovery.unknown";
/// Two that depend on each other: the first may not lie below the second.
pub const WATERMARKS: [&str; 2] = [
    "cluster.routing.allocation.disk.watermark.high",
    "cluster.routing.allocation.disk.watermark.low",
];
const UUID: &str = "uuid";
const SETTINGS: &str = "/_cluster/settings";

/// What a manager is asked for.
pub enum Asked {
    Settings(Value),
    Index(String),
}

/// What becomes of a change that is not made at once.
pub enum Does {
    Hangs,
    Breaks,
    Says(u16, &'static str),
}

/// Makes changes in the order in which they came. What is deleted is looked for at once, as in the field.
#[derive(Default)]
pub struct Manager {
    pub set: BTreeMap<String, Value>,
    pub indices: BTreeSet<String>,
    pub queued: Vec<Asked>,
    /// What becomes of the next changes; those behind them come here.
    pub does: VecDeque<Does>,
    /// An index that is to follow another cluster's: it is made, past the queue, once its task was seen so often.
    pub follows: Option<(u32, String)>,
    /// Whether the next change is made and answered late; whether it is made at once.
    pub is_late: Option<bool>,
    pub is_odd: bool,
    /// Whether it is the manager of another cluster by now.
    pub is_another: bool,
    /// Whether it never has time for what is not urgent.
    pub is_busy: bool,
    /// Whether nothing is answered at all.
    pub is_silent: bool,
}

impl Manager {
    /// Whether the values that are asked for do not go with each other, or with what is set.
    fn refuses(&self, asked: &Value) -> bool {
        let asked = &asked["persistent"];
        let of =
            |name: &str| asked.get(name).or_else(|| self.set.get(name)).and_then(Value::as_str);
        let [high, low] = WATERMARKS.map(of);
        asked.get(UNKNOWN).is_some() || (high.is_some() && high < low)
    }

    pub fn make(&mut self) {
        for asked in std::mem::take(&mut self.queued) {
            let body = match asked {
                Asked::Settings(body) => body,
                Asked::Index(name) => {
                    self.indices.insert(name);
                    continue;
                }
            };
            for (name, value) in body["persistent"].as_object().expect("persistent settings") {
                match value {
                    Value::Null => drop(self.set.remove(name)),
                    value => drop(self.set.insert(name.clone(), value.clone())),
                }
            }
        }
    }
}

type Shared = Rc<RefCell<Manager>>;

testbed::rest_host!();

/// Status and body.
async fn answer(manager: &Shared, request: RestRequest) -> (u16, Value) {
    let RestRequest { method, path, body } = request;
    let path = path.split('?').next().unwrap_or_default();
    if manager.borrow().is_silent {
        return std::future::pending().await;
    }
    let asked = match (method.as_str(), path) {
        ("GET", "/") => {
            let version = json!({ "number": "7.10.2" });
            let uuid = if manager.borrow().is_another { "another" } else { UUID };
            return (200, json!({ "cluster_uuid": uuid, "version": version }));
        }
        ("GET", "/_nodes") => return (200, json!({ "nodes": {} })),
        ("GET", "/_cluster/health") => {
            let mut manager = manager.borrow_mut();
            if !manager.is_busy {
                manager.make();
            }
            return (200, json!({ "timed_out": manager.is_busy }));
        }
        ("GET", "/_tasks") => {
            let mut manager = manager.borrow_mut();
            let Some((left, index)) = manager.follows.take() else { return (200, json!({})) };
            if left == 0 {
                manager.indices.insert(index);
                return (200, json!({}));
            }
            manager.follows = Some((left - 1, index));
            return (200, json!({ "nodes": { "n": { "tasks": { "n:1": {} } } } }));
        }
        ("GET", _) => {
            let manager = manager.borrow();
            return match manager.is_odd {
                true => (200, json!({})),
                false => (200, json!({ "persistent": manager.set, "transient": {} })),
            };
        }
        ("DELETE", index) => {
            let was_there = manager.borrow_mut().indices.remove(index.trim_matches('/'));
            return (if was_there { 200 } else { 404 }, json!({}));
        }
        ("PUT", SETTINGS) => {
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            if manager.borrow().refuses(&body) {
                return (400, json!({}));
            }
            Asked::Settings(body)
        }
        (_, path) if path.ends_with("/_ccr/follow") => {
            let index = path.split('/').nth(1).unwrap_or_default().to_owned();
            manager.borrow_mut().follows = Some((2, index));
            return std::future::pending().await;
        }
        // A document that is written makes its index, too.
        (_, path) => Asked::Index(path.split('/').nth(1).unwrap_or_default().to_owned()),
    };
    manager.borrow_mut().queued.push(asked);
    let is_late = manager.borrow_mut().is_late.take();
    if is_late != Some(false) {
        manager.borrow_mut().make();
    }
    if is_late.is_some() {
        std::future::pending::<()>().await;
    }
    (200, json!({ "acknowledged": true }))
}

/// In virtual time on a cluster that nobody has changed yet.
pub fn on_cluster<F: Future<Output = ()> + 'static>(
    main: impl FnOnce(Env, Cluster) -> F + 'static,
) {
    world::virtual_world::run(1, |env| async move {
        let cluster = Cluster::start(&env).await;
        main(env, cluster).await;
    });
}

pub struct Cluster {
    env: Env,
    pub manager: Shared,
    pub hosts: String,
    pub dir: tempfile::TempDir,
    _tasks: Vec<Task<()>>,
}

impl Cluster {
    pub async fn start(env: &Env) -> Cluster {
        // A test may have one after another in its world.
        let name = format!("manager-{:x}", env.random_u64());
        Cluster::of(env, &[name.as_str()]).await
    }

    /// Of hosts with these names, which have one manager.
    pub async fn of(env: &Env, names: &[&str]) -> Cluster {
        let (manager, mut hosts, mut tasks) = (Shared::default(), Vec::new(), Vec::new());
        for name in names {
            let shared = manager.clone();
            let answers = async move |request: RestRequest| {
                let is_change = request.method == "PUT";
                let does = is_change.then(|| shared.borrow_mut().does.pop_front()).flatten();
                let (status, body) = match does {
                    Some(Does::Hangs) => return std::future::pending().await,
                    Some(Does::Breaks) => return None,
                    Some(Does::Says(status, body)) => (status, body.to_owned()),
                    None => {
                        let (status, body) = answer(&shared, request).await;
                        (status, body.to_string())
                    }
                };
                Some((status, Bytes::from(body)))
            };
            let (address, task) = rest_host(env, name, answers).await;
            hosts.push(address);
            tasks.push(task);
        }
        let dir = tempfile::tempdir().unwrap();
        Cluster { env: env.clone(), manager, hosts: hosts.join(","), dir, _tasks: tasks }
    }

    pub fn client(&self, timeout: Duration) -> LiveClient {
        let options =
            LiveOptions::anonymous(Address::parse_all([self.hosts.as_str()]).unwrap(), timeout);
        LiveClient::new(&self.env, &options).unwrap()
    }

    /// As a run has it: how long that waits for an answer, and how long at its end.
    pub async fn live(&self, [meanwhile, at_the_end]: [Duration; 2]) -> LiveCluster {
        let client = self.client(meanwhile);
        let identity = ClusterIdentity::ask(&client).await.unwrap();
        LiveCluster::new(client, self.client(at_the_end), identity, self.begin_journal())
    }

    /// Where changes are written down.
    pub fn journal(&self) -> PathBuf {
        self.dir.path().join("changes.jsonl")
    }

    pub fn begin_journal(&self) -> Journal {
        let hosts = self.hosts.split(',').map(str::to_owned).collect();
        Journal::create(&self.journal(), Head::new(UUID.to_owned(), hosts)).unwrap()
    }

    pub fn settings(&self) -> BTreeMap<String, Value> {
        self.manager.borrow().set.clone()
    }
}
