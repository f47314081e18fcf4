//! Connections: so many at a time, each with one request that has to come soon.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName,
    ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use world::{Env, Task};

use super::access::{Access, Asked, Refusal};
use super::feed::{Feed, Standing};
use crate::exit::Usage;

/// Pages that are open and requests that are answered, together.
const CONNECTIONS_MAX: usize = 64;
/// The head of a request at most.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// A request has to be there, and its answer taken, within this time.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it is looked whether a connection has used its time up.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// A wrong token is answered this much later.
const WRONG_TOKEN: Duration = Duration::from_millis(500);
/// Pause after a connection could not be accepted: some may close.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

pub(crate) enum Answer {
    /// A text of a type, and the policy that a browser is to keep to.
    Text { content_type: &'static str, policy: Option<String>, text: String },
    /// Events as they come.
    Feed(Feed),
    /// There is no such thing.
    NotFound,
}

/// What is answered to a path and a query.
pub(crate) type Routes = Rc<dyn Fn(&str, &str) -> Answer>;

pub(crate) struct Server {
    env: Env,
    listener: TcpListener,
    access: Rc<Access>,
    tls: Option<TlsAcceptor>,
}

impl Server {
    pub(crate) async fn bind(
        env: &Env,
        option: &str,
        (address, access, tls): (SocketAddr, Access, Option<Arc<ServerConfig>>),
    ) -> anyhow::Result<Server> {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Usage(format!(
                "{option} {address}: cannot listen there: {error}; {option} {}:0 takes a port that is free",
                address.ip()
            ))
        })?;
        Ok(Server {
            env: env.clone(),
            listener,
            access: Rc::new(access),
            tls: tls.map(TlsAcceptor::from),
        })
    }

    /// Where a browser finds it.
    pub(crate) fn url(&self) -> io::Result<String> {
        Ok(format!("{}://{}/", self.access.scheme(), self.listener.local_addr()?))
    }

    /// Answers, until it is dropped.
    pub(crate) async fn serve(self, routes: Routes) -> Infallible {
        let mut connections: Vec<Task<()>> = Vec::new();
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                self.env.sleep(ACCEPT_RETRY).await;
                continue;
            };
            connections.retain(|task| !task.is_finished());
            if connections.len() >= CONNECTIONS_MAX {
                // It may be gone already.
                let _ = stream.try_write(
                    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
                continue;
            }
            let one = Connection {
                env: self.env.clone(),
                access: self.access.clone(),
                routes: routes.clone(),
                began: Cell::new(self.env.now()),
                feed: RefCell::new(None),
            };
            let tls = self.tls.clone();
            connections.push(self.env.spawn("answers a page", one.run(stream, tls)));
        }
    }
}

/// The body of an answer. A text is sent with its length.
type Sent = Either<Full<Bytes>, Feed>;

struct Connection {
    env: Env,
    access: Rc<Access>,
    routes: Routes,
    began: Cell<world::Time>,
    /// The page that is sent events, once it is.
    feed: RefCell<Option<Standing>>,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Fails only where the connection is gone already.
        let _ = stream.set_nodelay(true);
        let speaks = async {
            match tls {
                None => self.speak(stream).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        self.speak(stream).await;
                    }
                }
            }
        };
        tokio::select! {
            () = speaks => {}
            () = self.time_is_up() => {}
        }
    }

    async fn time_is_up(&self) {
        loop {
            self.env.sleep(LOOKED_EVERY).await;
            let is_up = match &*self.feed.borrow() {
                Some(feed) => feed.is_over(),
                None => self.env.now() - self.began.get() > PATIENCE,
            };
            if is_up {
                return;
            }
        }
    }

    async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let service = service_fn(|request: Request<Incoming>| async move {
            Ok::<_, Infallible>(self.answer(&request).await)
        });
        let mut http = http1::Builder::new();
        http.keep_alive(false).max_buf_size(HEAD_BYTES_MAX);
        // Whoever asked may go at any time.
        let _ = http.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Sent> {
        let text = |name: HeaderName| {
            let mut all = request.headers().get_all(name).iter();
            // Two of them may be meant to be read differently by different readers.
            all.next().filter(|_| all.next().is_none()).map(|value| value.as_bytes())
        };
        let utf8 = |bytes| std::str::from_utf8(bytes).unwrap_or("?");
        let has_origin = request.headers().contains_key(ORIGIN);
        let asked = Asked {
            method: request.method().as_str(),
            host: text(HOST).map(utf8),
            origin: has_origin.then(|| text(ORIGIN).map_or("?", utf8)),
            authorization: text(AUTHORIZATION),
        };
        if let Err(refusal) = self.access.check(&asked) {
            if refusal.status == 401 {
                self.env.sleep(WRONG_TOKEN).await;
            }
            return refused(&refusal);
        }
        let query = request.uri().query().unwrap_or_default();
        match (self.routes)(request.uri().path(), query) {
            Answer::Text { content_type, policy, text } => {
                let mut response = response(200, content_type, Sent::Left(text.into()));
                let policy = policy.and_then(|policy| policy.parse().ok());
                if let Some(policy) = policy {
                    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                }
                response
            }
            Answer::Feed(feed) => {
                *self.feed.borrow_mut() = Some(feed.standing());
                response(200, "text/event-stream", Sent::Right(feed))
            }
            Answer::NotFound => plain(404, "there is nothing here"),
        }
    }
}

fn response(status: u16, content_type: &'static str, body: Sent) -> Response<Sent> {
    // What nobody else's page may do with it, whatever it is.
    const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";
    let fixed = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, NOTHING),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let built = fixed
        .into_iter()
        .fold(Response::builder().status(status), |built, (name, value)| built.header(name, value));
    built.body(body).expect("names and values of headers are plain text")
}

fn plain(status: u16, text: &str) -> Response<Sent> {
    response(status, "text/plain; charset=utf-8", Sent::Left(format!("{text}\n").into()))
}

fn refused(refusal: &Refusal) -> Response<Sent> {
    let mut response = plain(refusal.status, &refusal.why);
    let more = match refusal.status {
        401 => Some((WWW_AUTHENTICATE, "Basic realm=\"user narrows, password is the token\"")),
        405 => Some((ALLOW, "GET")),
        _ => None,
    };
    if let Some((name, value)) = more {
        response.headers_mut().insert(name, value.parse().expect("plain text"));
    }
    response
}
