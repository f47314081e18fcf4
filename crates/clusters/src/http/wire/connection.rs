//! A connection that one client of a load keeps: a request, its response, the next request.

use std::io::{self, Write};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::answer::AnswerReader;
use crate::http::LiveOptions;
use crate::{Error, Result};

/// The most that is read at once.
const READ_BYTES: usize = 16 << 10;
/// A body up to this is sent in one piece with its head.
const JOINED_BYTES: usize = 32 << 10;

/// A host as a connection needs it. Cheap to clone; may go to other threads.
#[derive(Clone)]
pub struct WireHost {
    /// `host:port`.
    address: Arc<str>,
    /// Path prefix of every request.
    prefix: Arc<str>,
    /// The headers that are the same for every request.
    headers: Arc<str>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl WireHost {
    /// Every host of `options`, with its credentials. Reads certificates; connects to nothing. Fails if TLS cannot be
    /// set up as it was asked for.
    pub fn all(options: &LiveOptions) -> Result<Vec<WireHost>> {
        let secure = options.addresses.iter().any(|address| address.tls);
        let config = secure.then(|| options.tls.config()).transpose()?;
        let authorization = options.credentials.header();
        let authorization = authorization.map(|value| format!("Authorization: {value}\r\n"));
        let host = |address: &crate::http::Address| {
            let authority = address.authority();
            let tls = config.as_ref().filter(|_| address.tls).map(|config| {
                let name = ServerName::try_from(address.host.clone())
                    .map_err(|error| Error::Tls(format!("{address}: {error}")))?;
                Ok::<_, Error>((config.clone(), name))
            });
            Ok(WireHost {
                headers: format!(
                    "Host: {authority}\r\nContent-Type: application/json\r\n{}",
                    authorization.as_deref().unwrap_or_default()
                )
                .into(),
                address: authority.into(),
                prefix: address.prefix.as_str().into(),
                tls: tls.transpose()?,
            })
        };
        options.addresses.iter().map(host).collect()
    }

    /// A host that speaks plain HTTP and asks for no credentials: `host:port`.
    pub fn plain(address: &str) -> WireHost {
        WireHost {
            address: address.into(),
            prefix: "".into(),
            headers: format!("Host: {address}\r\nContent-Type: application/json\r\n").into(),
            tls: None,
        }
    }

    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// An answer whose body has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireAnswer {
    /// HTTP status.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
}

/// Why there is no answer. The connection is of no use after it.
#[derive(Debug)]
pub enum WireFailure {
    /// The connection ended, or failed.
    Closed {
        /// Whether no byte of the response had arrived: then the node has probably closed an idle connection before the
        /// request was sent.
        untouched: bool,
    },
    /// The bytes are no HTTP response, or what was to be asked is no request; and why.
    Malformed(&'static str),
}

/// Plain or over TLS.
trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// A connection.
pub struct WireConnection {
    stream: Box<dyn Stream>,
    reader: AnswerReader,
    out: Vec<u8>,
    buffer: Box<[u8]>,
}

impl WireConnection {
    /// Connects.
    pub async fn open(host: &WireHost) -> io::Result<WireConnection> {
        let stream = TcpStream::connect(&*host.address).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &host.tls {
            None => Box::new(stream),
            Some((config, name)) => {
                Box::new(TlsConnector::from(config.clone()).connect(name.clone(), stream).await?)
            }
        };
        Ok(WireConnection {
            stream,
            reader: AnswerReader::new(),
            out: Vec::with_capacity(1 << 10),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Sends a request and reads the whole response.
    pub async fn ask(
        &mut self,
        host: &WireHost,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<WireAnswer, WireFailure> {
        if !is_one_line(method, path) {
            return Err(WireFailure::Malformed("a method or a path has a space or a line's end"));
        }
        self.reader.begin(method, path);
        if self.send(host, method, path, body).await.is_err() {
            return Err(WireFailure::Closed { untouched: true });
        }
        loop {
            let untouched = self.reader.is_untouched();
            let read = match self.stream.read(&mut self.buffer).await {
                Ok(read) => read,
                // A TLS peer may close without a close_notify: that is an end, too.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                Err(_) => return Err(WireFailure::Closed { untouched }),
            };
            let whole = match read {
                0 if self.reader.end() => true,
                0 => return Err(WireFailure::Closed { untouched }),
                read => {
                    let fed = self.reader.feed(&self.buffer[..read]);
                    fed.map_err(|malformed| WireFailure::Malformed(malformed.0))?
                }
            };
            if whole {
                return Ok(WireAnswer {
                    status: self.reader.status,
                    body_bytes: self.reader.body_bytes,
                });
            }
        }
    }

    /// Whether the connection may be used again: the last response did not close it.
    pub fn keeps(&self) -> bool {
        self.reader.keeps
    }

    /// The beginning of the last answer's body, some kilobytes of it; of a scroll's as much as its id needs, of
    /// many searches' some megabytes.
    pub fn body(&self) -> &[u8] {
        &self.reader.body
    }

    async fn send(
        &mut self,
        host: &WireHost,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> io::Result<()> {
        self.out.clear();
        let (prefix, headers) = (&host.prefix, &host.headers);
        write!(self.out, "{method} {prefix}{path} HTTP/1.1\r\n{headers}")?;
        if !body.is_empty() || matches!(method, "POST" | "PUT") {
            write!(self.out, "Content-Length: {}\r\n", body.len())?;
        }
        self.out.extend_from_slice(b"\r\n");
        let joined = body.len() <= JOINED_BYTES;
        if joined {
            self.out.extend_from_slice(body);
        }
        self.stream.write_all(&self.out).await?;
        if !joined {
            self.stream.write_all(body).await?;
        }
        self.stream.flush().await
    }
}

/// Whether these are the first line of one request. With a line's end in it a path would hold another request, which
/// nobody has checked; a server may read a space as one between the parts of the line.
fn is_one_line(method: &str, path: &str) -> bool {
    let is_plain = |byte: u8| byte > b' ' && byte != 0x7f;
    !method.is_empty() && method.bytes().chain(path.bytes()).all(is_plain)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use world::{Env, Task};

    use super::*;

    /// Answers each connection with these texts, one for each request, and closes it then.
    async fn server(env: &Env, answers: &'static [&'static str]) -> (WireHost, Task<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = WireHost::plain(&listener.local_addr().unwrap().to_string());
        let task = env.spawn("server", async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut buffer = [0; 4096];
                for answer in answers {
                    let read = stream.read(&mut buffer).await.unwrap();
                    let asked = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    let answer = answer.replace("{asked}", &asked);
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
                    stream.write_all((head + &answer).as_bytes()).await.unwrap();
                }
            }
        });
        (host, task)
    }

    #[test]
    fn one_request_follows_another_until_the_connection_ends() {
        world::real_world::run(1, async |env| {
            let (host, _server) = server(&env, &["{asked}", "second"]).await;
            let mut connection = WireConnection::open(&host).await.unwrap();
            let answer = connection.ask(&host, "POST", "/a/_search?x=1", b"{}").await.unwrap();
            let asked = String::from_utf8_lossy(connection.body()).into_owned();
            let address = host.address();
            let expected = format!(
                "POST /a/_search?x=1 HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
                 Content-Length: 2\r\n\r\n{{}}"
            );
            assert_eq!(asked, expected);
            assert_eq!((answer.status, answer.body_bytes), (200, expected.len() as u64));
            let second = connection.ask(&host, "GET", "/", b"").await.unwrap();
            assert_eq!((second.body_bytes, connection.body()), (6, &b"second"[..]));
            assert!(connection.keeps());
            let lost = connection.ask(&host, "GET", "/", b"").await;
            assert!(matches!(lost, Err(WireFailure::Closed { untouched: true })), "{lost:?}");
        });
    }

    #[test]
    fn a_connection_that_breaks_is_no_end_of_an_answer() {
        world::real_world::run(1, async |env| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let host = WireHost::plain(&listener.local_addr().unwrap().to_string());
            let _server = env.spawn("server", async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                // What it leaves unread makes its end a reset.
                stream.read_exact(&mut [0]).await.unwrap();
                let half = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf";
                stream.write_all(half).await.unwrap();
            });
            let mut connection = WireConnection::open(&host).await.unwrap();
            let broken = connection.ask(&host, "GET", "/", b"").await;
            assert!(matches!(broken, Err(WireFailure::Closed { untouched: false })), "{broken:?}");
        });
    }

    #[test]
    fn a_path_or_a_method_with_a_request_of_its_own_is_not_sent() {
        world::real_world::run(1, async |env| {
            let (host, _server) = server(&env, &["{asked}", "second"]).await;
            let mut connection = WireConnection::open(&host).await.unwrap();
            for (method, path) in [
                ("GET", "/a HTTP/1.1\r\nHost: x\r\n\r\nDELETE /b"),
                ("GET /a HTTP/1.1\r\nHost: x\r\n\r\nDELETE", "/b"),
                ("GET", "/a\nb"),
                ("GET", "/a b"),
                ("", "/a"),
            ] {
                let refused = connection.ask(&host, method, path, b"").await;
                assert!(matches!(refused, Err(WireFailure::Malformed(_))), "{method} {path}");
            }
            connection.ask(&host, "GET", "/c", b"").await.unwrap();
            let asked = String::from_utf8_lossy(connection.body()).into_owned();
            assert!(asked.starts_with("GET /c HTTP/1.1\r\n"), "{asked}");
        });
    }

    #[test]
    fn credentials_and_a_prefix_go_with_every_request() {
        world::real_world::run(1, async |env| {
            let (plain, _server) = server(&env, &["{asked}"]).await;
            let behind = format!("http://{}/behind", plain.address());
            let addresses = crate::http::Address::parse_all([behind.as_str()]).unwrap();
            let options = LiveOptions {
                credentials: crate::Credentials::Basic { user: "u".into(), password: "p".into() },
                ..LiveOptions::anonymous(addresses, std::time::Duration::from_secs(60))
            };
            let host = &WireHost::all(&options).unwrap()[0];
            let mut connection = WireConnection::open(host).await.unwrap();
            connection.ask(host, "GET", "/_cat", b"").await.unwrap();
            let asked = String::from_utf8_lossy(connection.body()).into_owned();
            assert!(asked.starts_with("GET /behind/_cat HTTP/1.1\r\n"), "{asked}");
            assert!(asked.contains("Authorization: Basic dTpw\r\n"), "{asked}");
        });
    }

    #[test]
    fn nobody_listens() {
        world::real_world::run(1, async |_| {
            let host = WireHost::plain("127.0.0.1:1");
            let refused = WireConnection::open(&host).await.err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        });
    }
}
