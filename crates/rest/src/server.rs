//! How requests come in: HTTP/1.1 in the real world, [`RestMessage`]s in the virtual one.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    HeaderName, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use world::{Connection, Env, Listener, Task, Time};

use super::answer::Look;
use super::bodies::{BodyBudget, check_announced, read_body};
use super::hosts::{check_host, check_origin};
use super::{RestMessage, RestRequest, RestResponse, refusal, router};
use engine::Node;
use engine::transport::Failure;

/// How long the head of a request may take to arrive.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// How long a body may stall.
const BODY_PATIENCE: Duration = Duration::from_secs(60);
/// How long a connection may wait for its next request.
const IDLE_PATIENCE: Duration = Duration::from_secs(600);
/// How often connections are looked at.
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted: some may close.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Listens for clients.
pub struct RestListener(Arm);

enum Arm {
    Http { listener: TcpListener, address: String },
    Messages(Listener<RestMessage>),
}

impl RestListener {
    /// The address for clients, `host:port`.
    pub fn address(&self) -> &str {
        match &self.0 {
            Arm::Http { address, .. } => address,
            Arm::Messages(listener) => listener.address(),
        }
    }
}

/// Listens on an address; port 0 takes a free one.
pub(crate) async fn listen(env: &Env, address: &str) -> io::Result<RestListener> {
    if env.is_virtual() {
        return Ok(RestListener(Arm::Messages(env.listen::<RestMessage>(address).await?)));
    }
    let tried = |error: io::Error| {
        io::Error::new(error.kind(), format!("listen for REST on {address}: {error}"))
    };
    let listener = TcpListener::bind(address).await.map_err(tried)?;
    let address = listener.local_addr().map_err(tried)?.to_string();
    Ok(RestListener(Arm::Http { listener, address }))
}

/// Serves clients until the task is ended; their connections end with it.
pub(crate) async fn serve(node: Node, listener: RestListener) {
    let mut connections: Vec<Task<()>> = Vec::new();
    let budget = BodyBudget::default();
    match listener.0 {
        Arm::Http { listener, .. } => loop {
            let Ok((stream, _)) = listener.accept().await else {
                node.core().env.sleep(ACCEPT_RETRY).await;
                continue;
            };
            connections.retain(|task| !task.is_finished());
            let serving = serve_http(node.clone(), stream, budget.clone());
            connections.push(node.core().env.spawn("serves a client", serving));
        },
        Arm::Messages(mut listener) => loop {
            let Ok(connection) = listener.accept().await else {
                node.core().env.sleep(ACCEPT_RETRY).await;
                continue;
            };
            connections.retain(|task| !task.is_finished());
            let serving = serve_messages(node.clone(), connection);
            connections.push(node.core().env.spawn("serves a client", serving));
        },
    }
}

async fn serve_messages(node: Node, connection: Connection<RestMessage>) {
    let Connection { sender, mut receiver } = connection;
    while let Ok(Some(RestMessage::Request(request))) = receiver.recv().await {
        let response = router::handle(&node, request).await;
        if sender.send(RestMessage::Response(response)).await.is_err() {
            return;
        }
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The head of a request has begun to arrive.
    Head,
    Body,
    /// A handler works; it has limits of its own.
    Working,
}

/// A connection's phase, when that began, and when bytes came last.
struct Watch {
    env: Env,
    phase: Cell<Phase>,
    since: Cell<Time>,
    last_read: Cell<Time>,
}

impl Watch {
    fn new(env: Env) -> Rc<Watch> {
        let now = Cell::new(env.now());
        Rc::new(Watch { env, phase: Cell::new(Phase::Idle), since: now.clone(), last_read: now })
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.env.now());
    }

    fn read(&self) {
        self.last_read.set(self.env.now());
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Ends once the client has been too slow.
    async fn lost_patience(&self) {
        loop {
            self.env.sleep(WATCH_EVERY).await;
            let now = self.env.now();
            let (since, silent) = (now - self.since.get(), now - self.last_read.get());
            let lost = match self.phase.get() {
                Phase::Idle => since >= IDLE_PATIENCE,
                Phase::Head => since >= HEAD_PATIENCE,
                Phase::Body => silent >= BODY_PATIENCE,
                Phase::Working => false,
            };
            if lost {
                return;
            }
        }
    }
}

async fn serve_http(node: Node, stream: TcpStream, budget: BodyBudget) {
    // Fails only where the connection is gone already.
    let _ = stream.set_nodelay(true);
    let watch = Watch::new(node.core().env.clone());
    let io = Watched { io: TokioIo::new(stream), watch: watch.clone() };
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (node, watch, budget) = (node.clone(), watch.clone(), budget.clone());
        async move {
            watch.enter(Phase::Body);
            let response = answer(&node, request, &watch, &budget).await;
            watch.enter(Phase::Idle);
            Ok::<_, Infallible>(response)
        }
    });
    let serving = pin!(http1::Builder::new().serve_connection(io, service));
    tokio::select! {
        biased;
        // A client may break off at any time.
        _ = serving => {}
        () = watch.lost_patience() => {}
    }
}

async fn answer(
    node: &Node,
    request: hyper::Request<Incoming>,
    watch: &Watch,
    budget: &BodyBudget,
) -> hyper::Response<Full<Bytes>> {
    if let Some(refusal) = refuse_stranger(node, &request) {
        let challenge = (WWW_AUTHENTICATE, refusal::CHALLENGE.to_owned());
        // A stranger's body is not read, so the connection cannot go on.
        return http_response(refusal, Some(challenge), true);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let method = request.method().as_str().to_owned();
    let body = match check_head(node, &request) {
        Ok(()) => read_body(request.into_body(), budget).await,
        Err(failure) => Err(failure),
    };
    watch.enter(Phase::Working);
    match body {
        Ok((body, _held)) => {
            let allow = path.clone();
            let response = router::handle(node, RestRequest { method, path, body }).await;
            let allow =
                (response.status == 405).then(|| (ALLOW, router::allowed(&allow).join(", ")));
            http_response(response, allow, false)
        }
        // What is left of the body is not read, so the connection cannot go on.
        Err(failure) => http_response(Look::default().render(Err(failure), false), None, true),
    }
}

/// The answer to a request that does not show the node's credentials.
fn refuse_stranger(node: &Node, request: &hyper::Request<Incoming>) -> Option<RestResponse> {
    let credentials = node.core().config.credentials.as_ref()?;
    let given = request.headers().get(AUTHORIZATION);
    match given {
        Some(given) if credentials.admits(given.as_bytes()) => None,
        _ => Some(refusal::refusal(request.uri().path(), given.is_some())),
    }
}

fn http_response(
    response: RestResponse,
    header: Option<(HeaderName, String)>,
    close: bool,
) -> hyper::Response<Full<Bytes>> {
    let mut built = hyper::Response::builder().status(response.status);
    if !response.body.is_empty() {
        built = built.header(CONTENT_TYPE, response.content_type);
    }
    if let Some((name, value)) = header {
        built = built.header(name, value);
    }
    if close {
        built = built.header(CONNECTION, "close");
    }
    built.body(Full::new(response.body)).expect("statuses and headers of this module are sound")
}

/// Refuses what cannot be read, and what a web page of another site sends through somebody's browser.
fn check_head(node: &Node, request: &hyper::Request<Incoming>) -> Result<(), Failure> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let hosts = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    for host in hosts.chain(request.uri().authority().map(|authority| authority.as_str())) {
        let bound = node.http_address().parse::<SocketAddr>().ok().map(|address| address.ip());
        check_host(host, bound, &node.core().config.allowed_hosts)?;
    }
    if let Some(origin) = header(ORIGIN) {
        check_origin(origin)?;
    }
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        let reason = format!("bodies in [{encoding}] are not read here; send them uncompressed");
        return Err(Failure::new(415, "unsupported_media_type_exception", reason));
    }
    let has_body = !request.body().is_end_stream();
    if let Some(found) = header(CONTENT_TYPE).filter(|found| has_body && !found.contains("json")) {
        let reason = format!(
            "Content-Type header [{found}] is not supported; send application/json or \
             application/x-ndjson"
        );
        return Err(Failure::new(406, "media_type_header_exception", reason));
    }
    check_announced(header(CONTENT_LENGTH).and_then(|text| text.parse().ok()))
}

/// A stream that tells the watch when bytes come.
struct Watched {
    io: TokioIo<TcpStream>,
    watch: Rc<Watch>,
}

impl Read for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if read.is_ready() {
            self.watch.read();
        }
        read
    }
}

impl Write for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_patience_with_slow_clients_alone() {
        world::virtual_world::run(1, |env| async move {
            let watch = Watch::new(env.clone());
            let lost_after = async |limit: u64| {
                let limit = Duration::from_secs(limit);
                env.timeout(limit, watch.lost_patience()).await.is_ok()
            };
            assert!(!lost_after(599).await, "idle");
            watch.read();
            assert_eq!(watch.phase.get(), Phase::Head);
            assert!(!lost_after(29).await);
            watch.read();
            assert!(lost_after(6).await, "a head that trickles in counts from its first byte");
            watch.enter(Phase::Body);
            for _ in 0..3 {
                watch.read();
                assert!(!lost_after(50).await, "a body only has to go on");
            }
            assert!(lost_after(20).await);
            watch.enter(Phase::Working);
            assert!(!lost_after(3600).await, "a merge may take its time");
        });
    }
}
