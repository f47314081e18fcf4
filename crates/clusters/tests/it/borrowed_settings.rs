//! Settings that are changed for a while, on a cluster whose manager is slow to answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clusters::live::{Address, LiveClient, LiveOptions, TlsOptions};
use clusters::{BorrowedSettings, Credentials, Error, Head, Journal, Lease, Leased};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use record::observation::{Scope, Setting};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use world::{Env, Task};

const LIMIT: &str = "indices.recovery.max_bytes_per_sec";

/// Makes changes in the order in which they came.
#[derive(Default)]
struct Manager {
    set: BTreeMap<String, Value>,
    queued: Vec<Value>,
    /// Whether the next change is made and answered late; whether it is made at once.
    is_late: Option<bool>,
    is_odd: bool,
}

impl Manager {
    fn make(&mut self) {
        for body in std::mem::take(&mut self.queued) {
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

async fn answer(manager: Shared, request: Request<Incoming>) -> Value {
    let is_change = *request.method() == Method::PUT;
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    if !is_change {
        let manager = manager.borrow();
        return match manager.is_odd {
            true => json!({}),
            false => json!({ "persistent": manager.set, "transient": {} }),
        };
    }
    manager.borrow_mut().queued.push(serde_json::from_slice(&body).expect("JSON"));
    let is_late = manager.borrow_mut().is_late.take();
    if is_late != Some(false) {
        manager.borrow_mut().make();
    }
    if is_late.is_some() {
        std::future::pending::<()>().await;
    }
    json!({ "acknowledged": true })
}

struct Cluster {
    env: Env,
    manager: Shared,
    address: String,
    dir: tempfile::TempDir,
    _task: Task<()>,
}

impl Cluster {
    async fn start(env: &Env) -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        let manager = Shared::default();
        let (inner, shared) = (env.clone(), manager.clone());
        let task = env.spawn("manager", async move {
            let mut tasks = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = shared.clone();
                tasks.push(inner.spawn("connection", async move {
                    let service = service_fn(move |request| {
                        let shared = shared.clone();
                        async move {
                            let answer = Bytes::from(answer(shared, request).await.to_string());
                            Ok::<_, Infallible>(Response::new(Full::new(answer)))
                        }
                    });
                    drop(
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await,
                    );
                }));
            }
        });
        let dir = tempfile::tempdir().unwrap();
        Cluster { env: env.clone(), manager, address, dir, _task: task }
    }

    fn borrow(&self) -> BorrowedSettings {
        let options = LiveOptions {
            addresses: Address::parse_all([self.address.as_str()]).unwrap(),
            credentials: Credentials::None,
            tls: TlsOptions::default(),
            timeout: Duration::from_millis(300),
        };
        let client = LiveClient::new(&self.env, &options).unwrap();
        let head = Head::new("uuid".to_owned(), vec![self.address.clone()]);
        BorrowedSettings::new(client, Journal::create(&self.journal(), head).unwrap())
    }

    fn journal(&self) -> std::path::PathBuf {
        self.dir.path().join("changes.jsonl")
    }

    fn settings(&self) -> BTreeMap<String, Value> {
        self.manager.borrow().set.clone()
    }
}

fn not_set() -> Setting {
    Setting { value: "40mb".to_owned(), scope: Scope::Default }
}

#[test]
fn a_change_that_is_made_after_it_was_given_up_is_put_back() {
    world::real_world::run(1, async |env| {
        for found in [None, Some("20mb")] {
            let cluster = Cluster::start(&env).await;
            let before: BTreeMap<String, Value> =
                found.iter().map(|value| (LIMIT.to_owned(), Value::from(*value))).collect();
            cluster.manager.borrow_mut().set = before.clone();
            cluster.manager.borrow_mut().is_late = Some(false);
            let now = found.map_or_else(not_set, |value| Setting {
                value: value.to_owned(),
                scope: Scope::Persistent,
            });
            let mut settings = cluster.borrow();
            let given_up = settings.set(LIMIT, &now, "160mb").await;
            assert!(matches!(given_up, Err(Error::Timeout { .. })), "{given_up:?}");
            assert_eq!(cluster.settings(), before, "it is not made yet");
            assert_eq!(settings.end().await.unwrap(), Vec::<String>::new());
            cluster.manager.borrow_mut().make();
            assert_eq!(cluster.settings(), before, "found {found:?}");
            assert!(!cluster.journal().exists());
        }
    });
}

#[test]
fn an_answer_without_settings_puts_nothing_back_and_the_journal_stays() {
    world::real_world::run(1, async |env| {
        let cluster = Cluster::start(&env).await;
        let mut settings = cluster.borrow();
        settings.set(LIMIT, &not_set(), "160mb").await.unwrap();
        cluster.manager.borrow_mut().is_odd = true;
        let error = settings.end().await.unwrap_err().to_string();
        assert!(error.contains("persistent"), "{error}");
        assert!(cluster.journal().exists() && cluster.settings()[LIMIT] == "160mb");
    });
}

#[test]
fn a_renewal_that_was_not_answered_is_nobody_elses() {
    world::real_world::run(1, async |env| {
        for is_made in [false, true] {
            let cluster = Cluster::start(&env).await;
            let mut settings = cluster.borrow();
            let leased = Lease::take(&env, &mut settings, "we", |_| ()).await.unwrap();
            let Leased::Ours(mut lease, None) = leased else { panic!("it is ours") };
            cluster.manager.borrow_mut().is_late = Some(is_made);
            let given_up = lease.renew(&mut settings).await;
            assert!(matches!(given_up, Err(Error::Timeout { .. })), "{given_up:?}");
            cluster.manager.borrow_mut().queued.clear();
            lease.renew(&mut settings).await.unwrap();
            let other = Value::from("somebody-else 3");
            let name = cluster.settings().keys().next().unwrap().clone();
            cluster.manager.borrow_mut().set.insert(name, other);
            let lost = lease.renew(&mut settings).await;
            assert!(matches!(lost, Err(Error::Leased { .. })), "{lost:?}");
        }
    });
}
