//! A small HTTP/1.1 client for the real world: a connection pool, bounded answers, TLS.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use world::{Env, Task};

use super::{ConnectionPool, Failure};
use crate::Credentials;

/// An answer larger than this is refused.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// A head that says more is believed when the bytes come.
const BELIEVED_BYTES_MAX: usize = 16 << 20;

struct Open {
    send: SendRequest<Full<Bytes>>,
    _connection: Task<()>,
}

/// The client.
pub(crate) struct HttpClient {
    env: Env,
    pool: ConnectionPool<Open>,
    tls: Option<Arc<ClientConfig>>,
    authorization: Option<HeaderValue>,
    answer_bytes_max: usize,
    /// The buffer of the last answer, which is used again once nobody reads the answer any more.
    room: RefCell<BytesMut>,
}

impl HttpClient {
    pub(crate) fn new(env: Env) -> Self {
        HttpClient {
            env,
            pool: ConnectionPool::default(),
            tls: None,
            authorization: None,
            answer_bytes_max: ANSWER_BYTES_MAX,
            room: RefCell::default(),
        }
    }

    /// The same over TLS.
    pub(crate) fn with_tls(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// The same with another bound on answers.
    pub(crate) fn with_answer_bytes_max(mut self, bytes: usize) -> Self {
        self.answer_bytes_max = bytes;
        self
    }

    /// The same client with connections of its own.
    pub(crate) fn another(&self) -> HttpClient {
        HttpClient {
            env: self.env.clone(),
            pool: ConnectionPool::default(),
            tls: self.tls.clone(),
            authorization: self.authorization.clone(),
            answer_bytes_max: self.answer_bytes_max,
            room: RefCell::default(),
        }
    }

    /// How often a connection broke after a node may have read what was asked on it.
    pub(crate) fn broken(&self) -> u32 {
        self.pool.broken()
    }

    /// Sends credentials with every request from now on.
    pub(crate) fn set_credentials(&mut self, credentials: &Credentials) {
        self.authorization = credentials.header().map(|text| {
            let mut value = HeaderValue::from_bytes(text.as_bytes())
                .expect("credentials have no control characters");
            value.set_sensitive(true);
            value
        });
    }

    /// Sends a request and reads the whole answer: status and body. Where a connection of the pool turns out closed,
    /// the request is sent once more on a fresh one, unless that could do something twice.
    pub(crate) async fn send(
        &self,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<(u16, Bytes), Failure> {
        let ask = async |open| self.ask(open, address, method, path, body.clone()).await;
        self.pool.ask(address, method, async || self.open(address).await, ask).await
    }

    async fn open(&self, address: &str) -> io::Result<Open> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let Some(config) = &self.tls else { return self.speak(stream).await };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.speak(TlsConnector::from(config.clone()).connect(name, stream).await?).await
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    ) -> io::Result<Open> {
        let (send, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let connection = self.env.spawn("http connection", async move {
            // Whoever waits for an answer sees how the connection ends.
            let _ = connection.await;
        });
        Ok(Open { send, _connection: connection })
    }

    async fn ask(
        &self,
        mut open: Open,
        address: &str,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<((u16, Bytes), Option<Open>), Failure> {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, address)
            .header(CONTENT_TYPE, "application/json");
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| Failure::Broken(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        open.send.ready().await.map_err(|error| Failure::Unread(with_causes(&error)))?;
        let response = open.send.try_send_request(request).await.map_err(|mut error| {
            // hyper gives the request back if it was never sent.
            let unread = error.take_message().is_some();
            let found = with_causes(error.error());
            if unread { Failure::Unread(found) } else { Failure::Broken(found) }
        })?;
        let status = response.status().as_u16();
        let body = self.whole(response.into_body()).await?;
        let is_open = !open.send.is_closed();
        Ok(((status, body), is_open.then_some(open)))
    }

    /// A body in one buffer of the size that its head says: an answer of a large cluster has megabytes, and would have
    /// them twice if its pieces were joined at the end. Whoever asks again and again asks the kernel for no new pages.
    async fn whole(&self, body: Incoming) -> Result<Bytes, Failure> {
        let bytes_max = self.answer_bytes_max;
        let said = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut room = self.room.take();
        room.reserve(said.min(bytes_max).min(BELIEVED_BYTES_MAX));
        let mut body = Limited::new(body, bytes_max);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => Failure::TooLarge(bytes_max),
                false => Failure::Broken(with_causes(&*error)),
            })?;
            if let Some(data) = frame.data_ref() {
                room.extend_from_slice(data);
            }
        }
        let whole = room.split().freeze();
        if whole.len() <= BELIEVED_BYTES_MAX {
            *self.room.borrow_mut() = room;
        }
        Ok(whole)
    }
}

/// An error with its causes: hyper's own text says only where it happened.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    io::Error::other(text)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::rc::Rc;
    use std::time::Duration;

    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper::{Request, Response};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::TlsOptions;
    use super::*;
    use crate::{Error, RestClient};

    /// Echoes method, path and body; `/status/NNN` answers with that status. Counts connections and requests.
    struct Server {
        address: String,
        connections: Rc<Cell<u32>>,
        requests: Rc<Cell<u32>>,
        task: Task<()>,
    }

    async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let path = request.uri().to_string();
        let head = format!("{} {path} ", request.method());
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let status = path.strip_prefix("/status/").map_or(200, |text| text.parse().unwrap());
        let answer = [head.as_bytes(), &body].concat();
        Ok(Response::builder().status(status).body(Full::new(answer.into())).unwrap())
    }

    async fn serve(env: &Env, bind: &str) -> Server {
        let listener = TcpListener::bind(bind).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (connections, requests) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (opened, asked, inner) = (connections.clone(), requests.clone(), env.clone());
        let task = env.spawn("server", async move {
            let mut tasks = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                opened.set(opened.get() + 1);
                let asked = asked.clone();
                let service = service_fn(move |request| {
                    asked.set(asked.get() + 1);
                    echo(request)
                });
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tasks.push(inner.spawn("connection", async move { drop(serving.await) }));
            }
        });
        Server { address, connections, requests, task }
    }

    #[test]
    fn one_connection_serves_one_question_after_another() {
        world::real_world::run(1, async |env| {
            let server = serve(&env, "127.0.0.1:0").await;
            let client = RestClient::new(&env);
            for n in 0..5 {
                let body = Bytes::from(vec![b'x'; n * 100_000]);
                let path = format!("/a/_bulk?n={n}");
                let answer =
                    client.send(&server.address, "POST", &path, body.clone()).await.unwrap();
                let head = format!("POST {path} ");
                assert_eq!(answer.status, 200);
                assert_eq!(answer.body, [head.as_bytes(), &body].concat());
            }
            assert_eq!((server.connections.get(), server.requests.get()), (1, 5));
        });
    }

    #[test]
    fn an_answer_that_is_still_read_stays_and_the_room_of_others_is_used_again() {
        world::real_world::run(1, async |env| {
            let server = serve(&env, "127.0.0.1:0").await;
            let client = HttpClient::new(env.clone());
            let ask = async |letter: u8, len| {
                let body = Bytes::from(vec![letter; len]);
                client.send(&server.address, "POST", "/", body).await.unwrap().1
            };
            let kept = ask(b'a', 50_000).await;
            let other = ask(b'b', 90_000).await;
            let place = other.as_ptr();
            drop(other);
            let third = ask(b'c', 70_000).await;
            assert_eq!(third.as_ptr(), place);
            let letters = [kept, third].map(|answer| (answer.len(), answer[answer.len() - 1]));
            assert_eq!(
                letters,
                [("POST / ".len() + 50_000, b'a'), ("POST / ".len() + 70_000, b'c')]
            );
        });
    }

    #[test]
    fn questions_at_the_same_time_take_connections_of_their_own() {
        world::real_world::run(1, async |env| {
            let server = serve(&env, "127.0.0.1:0").await;
            let client = RestClient::new(&env);
            let ask = |path| client.send(&server.address, "GET", path, Bytes::new());
            let (a, b, c) = tokio::join!(ask("/a"), ask("/b"), ask("/c"));
            let bodies = [a, b, c].map(|answer| answer.unwrap().body);
            assert_eq!(bodies, ["GET /a ", "GET /b ", "GET /c "]);
            assert_eq!(server.connections.get(), 3);
        });
    }

    #[test]
    fn a_restarted_node_is_asked_on_a_fresh_connection() {
        world::real_world::run(1, async |env| {
            let mut server = serve(&env, "127.0.0.1:0").await;
            let client = RestClient::new(&env);
            let address = server.address.clone();
            let ask = |method| client.send(&address, method, "/", Bytes::new());
            let (a, b) = tokio::join!(ask("GET"), ask("GET"));
            assert!(a.is_ok() && b.is_ok());
            server.task.abort();
            // The end of the old connections arrives: what is asked then was certainly not read. Each sleep looks at
            // what has come, so that no standstill of the machine counts for all of them.
            for _ in 0..20 {
                env.sleep(Duration::from_millis(1)).await;
            }
            let again = serve(&env, &address).await;
            for method in ["POST", "GET", "POST"] {
                assert_eq!(ask(method).await.unwrap().status, 200);
            }
            assert_eq!((again.connections.get(), again.requests.get()), (1, 3));
        });
    }

    /// Answers the first question of the first connection, and closes it when the second has come; then
    /// behaves.
    async fn forgetful(env: &Env) -> (String, Rc<Cell<u32>>, Task<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Rc::new(Cell::new(0));
        let counted = connections.clone();
        let task = env.spawn("forgetful", async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.set(counted.get() + 1);
                let mut buffer = [0; 4096];
                assert!(stream.read(&mut buffer).await.unwrap() > 0);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                let _ = stream.read(&mut buffer).await;
            }
        });
        (address, connections, task)
    }

    #[test]
    fn what_may_have_been_read_is_asked_again_only_if_that_is_harmless() {
        world::real_world::run(1, async |env| {
            for (method, connections_after) in [("GET", 2), ("POST", 1)] {
                let (address, connections, _server) = forgetful(&env).await;
                let client = RestClient::new(&env);
                client.send(&address, "GET", "/", Bytes::new()).await.unwrap();
                let second = client.send(&address, method, "/", Bytes::new()).await;
                match method {
                    "GET" => assert_eq!(second.unwrap().status, 200),
                    _ => assert!(matches!(second, Err(Error::Broken { .. })), "{second:?}"),
                }
                assert_eq!(connections.get(), connections_after, "{method}");
            }
        });
    }

    #[test]
    fn errors_say_what_was_found() {
        world::real_world::run(1, async |env| {
            let server = serve(&env, "127.0.0.1:0").await;
            let client = RestClient::new(&env);
            let refused = client.send(&server.address, "GET", "/status/404", Bytes::new()).await;
            let Err(Error::Refused { status: 404, reason, .. }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(reason, "GET /status/404 ");
            let gone = "127.0.0.1:1";
            let refused = client.send(gone, "GET", "/", Bytes::new()).await.unwrap_err();
            let said = refused.to_string();
            assert!(matches!(refused, Error::Connection { .. }), "{said}");
            assert!(said.contains(gone) && said.contains("refused"), "{said}");
        });
    }

    #[test]
    fn a_late_answer_is_not_waited_for() {
        world::real_world::run(1, async |env| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let client = RestClient::new(&env).with_limit(Duration::from_millis(30));
            // Connected by the kernel, and never accepted.
            let late = client.send(&address, "GET", "/x", Bytes::new()).await.unwrap_err();
            let said = late.to_string();
            assert!(matches!(late, Error::Timeout { .. }), "{said}");
            assert!(said.contains("GET /x") && said.contains("30ms"), "{said}");
        });
    }

    #[test]
    fn an_answer_that_is_too_large_is_refused() {
        world::real_world::run(1, async |env| {
            let server = serve(&env, "127.0.0.1:0").await;
            let mut client = HttpClient::new(env.clone());
            client.answer_bytes_max = 1000;
            let ask = async |len| {
                client.send(&server.address, "POST", "/", Bytes::from(vec![b'x'; len])).await
            };
            assert_eq!(ask(900).await.unwrap().0, 200);
            assert!(matches!(ask(1001).await, Err(Failure::TooLarge(1000))));
            assert_eq!(ask(900).await.unwrap().0, 200);
        });
    }

    #[test]
    fn another_client_speaks_and_bounds_as_the_first() {
        world::real_world::run(1, async |env| {
            let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
            let tls = insecure.config().unwrap();
            let mut client = HttpClient::new(env.clone()).with_tls(tls.clone());
            client.set_credentials(&Credentials::ApiKey("k".to_owned()));
            let another = client.with_answer_bytes_max(1000).another();
            assert!(another.tls.is_some_and(|config| Arc::ptr_eq(&config, &tls)));
            assert_eq!(another.authorization.unwrap(), "ApiKey k");
            assert_eq!(another.answer_bytes_max, 1000);
        });
    }

    #[test]
    fn a_path_that_is_none_is_an_error() {
        world::real_world::run(1, async |env| {
            let server = serve(&env, "127.0.0.1:0").await;
            let client = RestClient::new(&env);
            let bad = client.send(&server.address, "GET", "/a b", Bytes::new()).await.unwrap_err();
            assert!(bad.to_string().contains("/a b"), "{bad}");
            assert_eq!(server.requests.get(), 0);
        });
    }
}
