//! How requests come in: HTTP/1.1 in the real world, [`RestMessage`]s in the virtual one.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    HeaderName, LOCATION, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use world::{Connection, Env, Listener, LocalFuture, Task, Work};

use super::answer::Look;
use super::bodies::{
    BodyBudget, HeldAnswer, HeldBytes, check_announced, read_body, unpack, unpacked_bytes,
};
use super::bulk_lines::held_bytes;
use super::clients::{Clients, Limits, Phase, Watch, Watched};
use super::hosts::{check_host, check_origin};
use super::identity::release;
use super::{RestMessage, RestRequest, RestResponse, refusal, router};
use engine::Node;
use engine::transport::{Failure, Result};

/// The head of a request at most: the field has 16 KB and a line of 4 KB. Every connection may hold so much.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// By it a client finds its requests among the tasks.
const OPAQUE_ID: &str = "x-opaque-id";
/// What paths of tables begin with.
const TABLES: &str = "/_cat/";
/// How bodies may be packed.
const GZIP: &str = "gzip";
/// Pause after a connection could not be accepted: some may close.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Listens for clients.
pub(super) enum RestListener {
    Http { listener: TcpListener, address: String },
    Messages(Listener<RestMessage>),
}

impl RestListener {
    /// The address for clients, `host:port`.
    pub(super) fn address(&self) -> &str {
        match self {
            RestListener::Http { address, .. } => address,
            RestListener::Messages(listener) => listener.address(),
        }
    }
}

/// Listens on an address; port 0 takes a free one.
pub(super) async fn listen(env: &Env, address: &str) -> io::Result<RestListener> {
    if env.is_virtual() {
        return Ok(RestListener::Messages(env.listen::<RestMessage>(address).await?));
    }
    let tried = |error: io::Error| {
        io::Error::new(error.kind(), format!("listen for REST on {address}: {error}"))
    };
    let listener = TcpListener::bind(address).await.map_err(tried)?;
    let address = listener.local_addr().map_err(tried)?.to_string();
    Ok(RestListener::Http { listener, address })
}

/// Serves clients until the task is ended; their connections end with it.
pub(super) async fn serve(node: Node, listener: RestListener) {
    match listener {
        RestListener::Http { listener, .. } => {
            let clients = Clients::new(&node.core().env, Limits::default());
            let (budget, handle) = (BodyBudget::default(), router::handle_as);
            HttpService { node, budget, handle }.accept(listener, &clients).await;
        }
        RestListener::Messages(listener) => accept_messages(&node, listener).await,
    }
}

/// What clients reach over HTTP. Each connection has a clone, and none of the `Clients`, which hold the connections.
#[derive(Clone)]
struct HttpService {
    node: Node,
    budget: BodyBudget,
    /// Told the client's `X-Opaque-Id`. It is given, so that tests of connections do not compile all that is served.
    handle: fn(&Node, RestRequest, Option<String>) -> LocalFuture<'_, RestResponse>,
}

impl HttpService {
    async fn accept(&self, listener: TcpListener, clients: &Clients) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                self.node.core().env.sleep(ACCEPT_RETRY).await;
                continue;
            };
            match clients.make_room() {
                true => clients.serve(|watch| self.clone().serve(stream, watch)),
                false => refuse_one_more(&stream, clients.count()),
            }
        }
    }

    async fn serve(self, stream: TcpStream, watch: Rc<Watch>) {
        // Fails only where the connection is gone already.
        let _ = stream.set_nodelay(true);
        let io = Watched::new(stream, watch.clone());
        let (this, watch) = (&self, &watch);
        let service = service_fn(|request: hyper::Request<Incoming>| async move {
            watch.enter(Phase::Body);
            let opaque_id = request.headers().get(OPAQUE_ID).cloned();
            let mut response = this.answer(request, watch).await;
            if let Some(id) = opaque_id {
                response.headers_mut().insert(OPAQUE_ID, id);
            }
            watch.enter(Phase::Answer);
            Ok::<_, Infallible>(response)
        });
        let http = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).serve_connection(io, service);
        // A client may break off at any time.
        let _ = http.await;
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        watch: &Watch,
    ) -> hyper::Response<Full<HeldAnswer>> {
        if let Some(refusal) = refuse_stranger(&self.node, &request) {
            let challenge = (WWW_AUTHENTICATE, refusal::CHALLENGE.to_owned());
            // A stranger's body is not read, so the connection cannot go on.
            return self.response(refusal, Some(challenge), true);
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let path = with_format(path, accept);
        let method = request.method().as_str().to_owned();
        let opaque_id = request.headers().get(OPAQUE_ID).and_then(|id| id.to_str().ok());
        let opaque_id = opaque_id.map(str::to_owned);
        let encoding = request.headers().get(CONTENT_ENCODING);
        let is_packed = encoding.is_some_and(|encoding| encoding == GZIP);
        let body = match check_head(&self.node, &request) {
            Ok(()) => tokio::select! {
                biased;
                read = read_body(request.into_body(), &self.budget, |bytes| watch.moved(bytes as u64)) => read,
                () = watch.too_slow() => Err(too_slow()),
            },
            Err(failure) => Err(failure),
        };
        let body = match body {
            Ok((body, held)) if is_packed && !body.is_empty() => self.unpacked(body, held).await,
            body => body,
        };
        let body = body.and_then(|(body, mut held)| {
            if router::is_bulk(&path) {
                held.grow(held_bytes(&body))?;
            }
            Ok((body, held))
        });
        watch.enter(Phase::Working);
        match body {
            Ok((body, _held)) => {
                let allow = path.clone();
                let request = RestRequest { method, path, body };
                let response = (self.handle)(&self.node, request, opaque_id).await;
                let allow =
                    (response.status == 405).then(|| (ALLOW, router::allowed(&allow).join(", ")));
                self.response(response, allow, false)
            }
            // What is left of the body is not read, so the connection cannot go on.
            Err(failure) => self.response(Look::default().render(Err(failure), false), None, true),
        }
    }

    /// Unpacks a body, away from what else the node does.
    async fn unpacked(&self, packed: Bytes, mut held: HeldBytes) -> Result<(Bytes, HeldBytes)> {
        let bytes = unpacked_bytes(&packed)?;
        held.grow(bytes)?;
        let work = Work::Parse { bytes: bytes as u64 };
        let body = self.node.core().env.work(work, move || unpack(&packed, bytes)).await?;
        Ok((body, held))
    }

    fn response(
        &self,
        response: RestResponse,
        header: Option<(HeaderName, String)>,
        close: bool,
    ) -> hyper::Response<Full<HeldAnswer>> {
        let mut built = hyper::Response::builder().status(response.status);
        if !response.body.is_empty() {
            built = built.header(CONTENT_TYPE, response.content_type);
        }
        if let Some(location) = response.location {
            built = built.header(LOCATION, location);
        }
        if let Some((name, value)) = release(&self.node).product {
            built = built.header(name, value);
        }
        if let Some((name, value)) = header {
            built = built.header(name, value);
        }
        if close {
            built = built.header(CONNECTION, "close");
        }
        let body = Full::new(HeldAnswer::new(response.body, &self.budget));
        built.body(body).expect("statuses and headers of this module are sound")
    }
}

/// Says that there are too many clients, as far as that goes without waiting.
fn refuse_one_more(stream: &TcpStream, count: usize) {
    let reason = format!(
        "this node works for [{count}] connections, which is as many as it takes; try again when others were answered"
    );
    let failure = Failure::new(503, "too_many_connections_exception", reason);
    let RestResponse { body, content_type, .. } = Look::default().render(Err(failure), false);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    // It may be gone already.
    let _ = stream.try_write(&[head.as_bytes(), &body].concat());
}

async fn accept_messages(node: &Node, mut listener: Listener<RestMessage>) {
    let mut connections: Vec<Task<()>> = Vec::new();
    loop {
        let Ok(connection) = listener.accept().await else {
            node.core().env.sleep(ACCEPT_RETRY).await;
            continue;
        };
        connections.retain(|task| !task.is_finished());
        let serving = serve_messages(node.clone(), connection);
        connections.push(node.core().env.spawn("serves a client", serving));
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

/// A path whose `format` says what the client accepts: of a table, which is text where nothing is said.
fn with_format(path: &str, accept: Option<&str>) -> String {
    let is_json = accept.and_then(|accept| accept.split(';').next()) == Some("application/json");
    let (table, parameters) = path.split_once('?').unwrap_or((path, ""));
    match is_json && table.starts_with(TABLES) {
        // Of two the last counts.
        true => format!("{table}?format=json&{parameters}"),
        false => path.to_owned(),
    }
}

fn too_slow() -> Failure {
    let reason =
        "the body came too slowly: each minute must bring 64 KB or the rest of it; send it again";
    Failure::new(408, "request_timeout_exception", reason)
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

/// Refuses what cannot be read, and what a web page of another site sends through somebody's browser.
fn check_head(node: &Node, request: &hyper::Request<Incoming>) -> Result<()> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let hosts = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    for host in hosts.chain(request.uri().authority().map(|authority| authority.as_str())) {
        let bound = node.http_address().parse::<SocketAddr>().ok().map(|address| address.ip());
        check_host(host, bound, &node.core().config.allowed_hosts)?;
    }
    if let Some(origin) = header(ORIGIN) {
        check_origin(origin)?;
    }
    let is_unknown = |encoding: &&str| !["identity", GZIP].contains(encoding);
    if let Some(encoding) = header(CONTENT_ENCODING).filter(is_unknown) {
        let reason =
            format!("bodies in [{encoding}] are not read here; send them in {GZIP}, or unpacked");
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

#[cfg(test)]
mod tests;
