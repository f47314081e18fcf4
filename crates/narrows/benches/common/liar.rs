//! A leader that lies: what is asked goes on to an honest node, or is answered with what no leader would say.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use engine::transport::{
    Changes, Class, Envelope, Failure, Operations, Pool, Request, Response, Versions,
};
use store::{OpKind, Operation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::{Connection, Env};

const PATIENCE: Duration = Duration::from_secs(60);
/// A follower stops at most lies, and somebody has it begin again.
const RESUMED_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Shared {
    stops: AtomicBool,
    lies: AtomicBool,
    told: AtomicU64,
    closed: AtomicU64,
}

/// Stands before a leader on a thread of its own, honest at first.
pub struct Liar {
    pub address: String,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Liar {
    pub fn before(leader: &str) -> Liar {
        let shared = Arc::new(Shared::default());
        let (leader, inner) = (leader.to_owned(), shared.clone());
        let (says, said) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            world::real_world::run(3, |env| async move {
                let mut listener =
                    env.listen::<Envelope>(&env.any_address()).await.expect("a port");
                says.send(listener.address().to_owned()).expect("somebody waits for it");
                let (pool, shared) = (Pool::new(env.clone()), inner.clone());
                let between = Rc::new(Between { env: env.clone(), pool, leader, shared });
                let _accepting = env.spawn("accepts", async move {
                    while let Ok(connection) = listener.accept().await {
                        between.env.spawn("answers", serve(between.clone(), connection)).detach();
                    }
                });
                while !inner.stops.load(Ordering::Relaxed) {
                    env.sleep(Duration::from_millis(50)).await;
                }
            });
        });
        Liar { address: said.recv().expect("it listens"), shared, thread }
    }

    /// Lies from now on, or no more.
    pub fn lie(&self, lies: bool) {
        self.shared.lies.store(lies, Ordering::Relaxed);
    }

    /// Lies that were told.
    pub fn told(&self) -> u64 {
        self.shared.told.load(Ordering::Relaxed)
    }

    /// Connections that the follower's node has closed.
    pub fn closed(&self) -> u64 {
        self.shared.closed.load(Ordering::Relaxed)
    }

    pub fn stop(self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        self.thread.join().expect("a liar does not panic");
    }
}

struct Between {
    env: Env,
    pool: Pool,
    leader: String,
    shared: Arc<Shared>,
}

async fn serve(between: Rc<Between>, connection: Connection<Envelope>) {
    let Connection { sender, mut receiver } = connection;
    while let Ok(Some(Envelope::Request(id, request))) = receiver.recv().await {
        let (sender, inner) = (sender.clone(), between.clone());
        let answering = async move {
            let answer = inner.answer(request).await;
            // Who asked may be gone.
            let _ = sender.send(Envelope::Response(id, answer)).await;
        };
        between.env.spawn("answers a question", answering).detach();
    }
    between.shared.closed.fetch_add(1, Ordering::Relaxed);
}

impl Between {
    async fn answer(&self, request: Request) -> Result<Response, Failure> {
        let is_greeting = matches!(request, Request::Ping | Request::Hello);
        if self.shared.lies.load(Ordering::Relaxed) && !is_greeting {
            let told = self.shared.told.fetch_add(1, Ordering::Relaxed);
            return Ok(lie(&request, told));
        }
        let answer = self.pool.call(&self.leader, Class::Control, request, PATIENCE).await;
        answer.map_err(Failure::from)
    }
}

/// Another lie each time. Those about operations are of the kinds of `tests/it/hostile.rs` of the engine.
fn lie(request: &Request, told: u64) -> Response {
    let Request::ReadChanges(read) = request else { return Response::Done };
    let packed = |plain_bytes| Operations::Packed {
        bytes: Bytes::from_static(b"\x02 these are no operations"),
        plain_bytes,
    };
    let far = Operation {
        seq_no: read.from.saturating_add(1 << 40),
        version: 1,
        id: "far".into(),
        kind: OpKind::NoOp,
    };
    let (ops, checkpoint) = match told % 6 {
        0 => return Response::Json("{}".to_owned()),
        1 => (packed(1 << 20), 1 << 20),
        2 => (packed(u64::MAX), 1 << 20),
        3 => (Operations::Plain(Arc::new(vec![far])), 1 << 41),
        4 => (Operations::Plain(Arc::default()), u64::MAX),
        // Nothing of what it says it has, as often as it is asked.
        _ => (Operations::Plain(Arc::default()), 1 << 40),
    };
    Response::Changes(Box::new(Changes {
        ops,
        global_checkpoint: Some(checkpoint),
        max_seq_no: Some(checkpoint),
        primary_term: 1,
        versions: Versions::default(),
        served: Duration::ZERO,
        waited: Duration::ZERO,
        pressure: false,
    }))
}

/// Has indices that stopped following begin again, once a second, until this is dropped.
pub async fn resume(env: Env, node: String, indices: usize) {
    loop {
        for number in 0..indices {
            for verb in ["pause", "resume"] {
                // One that has not stopped refuses, or goes on.
                let _ = post(&node, &format!("/follows-{number}/_ccr/{verb}_follow")).await;
            }
        }
        env.sleep(RESUMED_EVERY).await;
    }
}

async fn post(node: &str, path: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(node).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}
