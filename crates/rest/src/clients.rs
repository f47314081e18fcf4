//! The connections of clients over HTTP: how many a node has at once, how long it waits for each, and what their
//! requests' lines may be written with.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_encode_byte;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use world::{Env, Task, Time};

/// Connections of a node at most, where its process may have twice as many handles: each holds some 20 KB.
const CONNECTIONS_MAX: usize = 16_384;
/// Handles that a process is taken to have where the system does not say.
const HANDLES_UNKNOWN: usize = 1024;

/// What a node grants its clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections at once.
    pub(super) connections_max: usize,
    /// How long a connection may wait for its next request.
    pub(super) idle: Duration,
    /// How long the head of a request may take to arrive.
    pub(super) head: Duration,
    /// In each so long a client must send `window_bytes` of a body, and take as much of an answer, or the rest of it.
    pub(super) window: Duration,
    pub(super) window_bytes: u64,
    /// How often connections are looked at.
    pub(super) look_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Limits {
            // The other half of the handles is for the node's files and for its peers.
            connections_max: CONNECTIONS_MAX.min(handles_max() / 2),
            idle: seconds(600),
            head: seconds(30),
            window: seconds(60),
            window_bytes: 64 << 10,
            look_every: seconds(5),
        }
    }
}

/// Handles that this process may have, files and connections together.
fn handles_max() -> usize {
    let max = machine::open_files_max();
    max.map_or(HANDLES_UNKNOWN, |max| usize::try_from(max).unwrap_or(usize::MAX))
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// The head of a request has begun to arrive.
    Head,
    Body,
    /// A handler works; it has limits of its own.
    Working,
    /// The client takes the answer.
    Answer,
}

/// What is known of a connection.
pub(super) struct Watch {
    env: Env,
    phase: Cell<Phase>,
    since: Cell<Time>,
    /// When the window at hand began, and what it brought.
    window: Cell<(Time, u64)>,
    too_slow: Notify,
}

impl Watch {
    fn new(env: Env) -> Rc<Watch> {
        let now = env.now();
        let (phase, window) = (Cell::new(Phase::Idle), Cell::new((now, 0)));
        Rc::new(Watch { env, phase, since: Cell::new(now), window, too_slow: Notify::new() })
    }

    pub(super) fn enter(&self, phase: Phase) {
        let now = self.env.now();
        self.phase.set(phase);
        self.since.set(now);
        self.window.set((now, 0));
    }

    /// So many bytes of a body came, or of an answer went.
    pub(super) fn moved(&self, bytes: u64) {
        self.window.update(|(began, before)| (began, before + bytes));
    }

    fn read(&self) {
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    fn wrote(&self) {
        // What the HTTP library answers to a head that it cannot read, and an answer to requests sent ahead.
        if matches!(self.phase.get(), Phase::Idle | Phase::Head) {
            self.enter(Phase::Answer);
        }
    }

    fn flushed(&self) {
        if self.phase.get() == Phase::Answer {
            self.enter(Phase::Idle);
        }
    }

    /// Ends once the body comes too slowly.
    pub(super) async fn too_slow(&self) {
        self.too_slow.notified().await;
    }

    /// Whether the client has been too slow. A window that was not begins anew.
    fn is_lost(&self, limits: &Limits) -> bool {
        let now = self.env.now();
        let passed = now - self.since.get();
        match self.phase.get() {
            Phase::Idle => passed >= limits.idle,
            Phase::Head => passed >= limits.head,
            Phase::Working => false,
            Phase::Body | Phase::Answer => {
                let (began, bytes) = self.window.get();
                if now - began < limits.window {
                    return false;
                }
                self.window.set((now, 0));
                bytes < limits.window_bytes
            }
        }
    }
}

/// A connection that is served.
struct Client {
    watch: Rc<Watch>,
    serving: Task<()>,
}

type Open = RefCell<BTreeMap<u64, Client>>;

/// The open connections. They end with this.
pub(super) struct Clients {
    env: Env,
    limits: Limits,
    open: Rc<Open>,
    next: Cell<u64>,
    _watching: Task<()>,
}

impl Clients {
    pub(super) fn new(env: &Env, limits: Limits) -> Clients {
        let open: Rc<Open> = Rc::default();
        let watching = watch_over(env.clone(), limits, Rc::downgrade(&open));
        let watching = env.spawn("watches clients", watching);
        Clients { env: env.clone(), limits, open, next: Cell::new(0), _watching: watching }
    }

    pub(super) fn count(&self) -> usize {
        self.open.borrow().len()
    }

    #[cfg(test)]
    pub(super) fn phases(&self) -> Vec<Phase> {
        self.open.borrow().values().map(|client| client.watch.phase.get()).collect()
    }

    /// Makes room for one more. Where all places are taken, those that have waited for their clients longest are
    /// closed, at first those between two requests; `false` where the node works for all.
    pub(super) fn make_room(&self) -> bool {
        if self.count() < self.limits.connections_max {
            return true;
        }
        let waiting = |(id, client): (&u64, &Client)| {
            let Watch { phase, since, .. } = &*client.watch;
            (phase.get() != Phase::Working).then(|| (phase.get() != Phase::Idle, since.get(), *id))
        };
        let mut longest: Vec<_> = self.open.borrow().iter().filter_map(waiting).collect();
        longest.sort_unstable();
        // Some more than one, so that not each connection of a flood looks at all.
        for (_, _, id) in longest.iter().take(self.limits.connections_max / 64 + 1) {
            let closed = self.open.borrow_mut().remove(id);
            drop(closed);
        }
        !longest.is_empty()
    }

    /// Serves a connection.
    pub(super) fn serve<F>(&self, serving: impl FnOnce(Rc<Watch>) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        let id = self.next.replace(self.next.get() + 1);
        let watch = Watch::new(self.env.clone());
        let (serving, open) = (serving(watch.clone()), Rc::downgrade(&self.open));
        let serving = self.env.spawn("serves a client", async move {
            serving.await;
            let ended = open.upgrade().and_then(|open| open.borrow_mut().remove(&id));
            ended.into_iter().for_each(|client| client.serving.detach());
        });
        self.open.borrow_mut().insert(id, Client { watch, serving });
    }
}

/// Closes the connections of clients that are too slow. A client whose body is too slow is told.
async fn watch_over(env: Env, limits: Limits, open: Weak<Open>) {
    loop {
        env.sleep(limits.look_every).await;
        let Some(open) = open.upgrade() else { return };
        let mut lost = Vec::new();
        for (id, Client { watch, .. }) in open.borrow().iter() {
            match (watch.is_lost(&limits), watch.phase.get()) {
                (true, Phase::Body) => watch.too_slow.notify_one(),
                (true, _) => lost.push(*id),
                (false, _) => {}
            }
        }
        for id in lost {
            let closed = open.borrow_mut().remove(&id);
            drop(closed);
        }
    }
}

/// Bytes in the line of a request that the HTTP library refuses and the field takes.
const UNESCAPED: &[u8] = b"\"<>`";
/// So much is looked at once while a line has not ended.
const PIECE_BYTES: usize = 4096;

/// A piece of a request's line, percent-encoded where the HTTP library wants that, with what stands behind the line;
/// and whether the line goes on.
fn encoded(piece: &[u8]) -> (Vec<u8>, bool) {
    let end = piece.iter().position(|byte| *byte == b'\n').unwrap_or(piece.len());
    let (line, behind) = piece.split_at(end);
    let mut all = Vec::with_capacity(piece.len());
    for byte in line {
        match UNESCAPED.contains(byte) {
            true => all.extend_from_slice(percent_encode_byte(*byte).as_bytes()),
            false => all.push(*byte),
        }
    }
    all.extend_from_slice(behind);
    (all, behind.is_empty())
}

/// Whether a request begins here, and not the rest of a head whose beginning was sent ahead.
fn begins(piece: &[u8]) -> bool {
    let method = piece.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    method > 0 && piece[method..].starts_with(b" /")
}

/// A stream that tells the watch what comes and goes. The lines of requests, but of those that are sent ahead, are
/// handed on as the HTTP library wants them written.
pub(super) struct Watched {
    io: TokioIo<TcpStream>,
    watch: Rc<Watch>,
    /// What was read and is still to be handed on.
    rest: Vec<u8>,
    /// Whether the line of a request has begun and not ended.
    in_line: bool,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, watch: Rc<Watch>) -> Watched {
        Watched { io: TokioIo::new(stream), watch, rest: Vec::new(), in_line: false }
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.watch.wrote();
        if let Poll::Ready(Ok(bytes)) = &written {
            self.watch.moved(*bytes as u64);
        }
        written
    }
}

impl Read for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let is_first = this.watch.phase.get() == Phase::Idle;
        if this.rest.is_empty() && !is_first && !this.in_line {
            ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        } else {
            if this.rest.is_empty() {
                let mut bytes = [0; PIECE_BYTES];
                let mut read = ReadBuf::new(&mut bytes);
                ready!(Pin::new(&mut this.io).poll_read(cx, read.unfilled()))?;
                let piece = read.filled();
                (this.rest, this.in_line) = match this.in_line || begins(piece) {
                    true => encoded(piece),
                    false => (piece.to_vec(), false),
                };
            }
            let taken = this.rest.len().min(buf.remaining());
            buf.put_slice(&this.rest[..taken]);
            this.rest.drain(..taken);
        }
        this.watch.read();
        Poll::Ready(Ok(()))
    }
}

impl Write for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.wrote(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.watch.flushed();
        Poll::Ready(Ok(()))
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
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.wrote(written)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Limits for tests with sockets: their clients are slow for good, so that short windows do.
    pub(crate) fn short(connections_max: usize) -> Limits {
        let look_every = Duration::from_millis(20);
        let window = Duration::from_millis(200);
        Limits { connections_max, head: window, window, look_every, ..Limits::default() }
    }

    #[test]
    fn loses_patience_with_slow_clients_alone() {
        world::virtual_world::run(1, |env| async move {
            let limits = Limits::default();
            let watch = Watch::new(env.clone());
            let lost_after = async |seconds: u64| {
                env.sleep(Duration::from_secs(seconds)).await;
                watch.is_lost(&limits)
            };
            assert!(!lost_after(599).await && lost_after(1).await, "idle");
            watch.read();
            assert_eq!(watch.phase.get(), Phase::Head);
            assert!(!lost_after(29).await);
            watch.read();
            assert!(lost_after(1).await, "a head that trickles in counts from its first byte");
            for phase in [Phase::Body, Phase::Answer] {
                watch.enter(phase);
                for _ in 0..3 {
                    watch.moved(64 << 10);
                    assert!(!lost_after(60).await, "{phase:?} goes on");
                }
                watch.moved(60);
                assert!(!lost_after(59).await);
                assert!(lost_after(1).await, "{phase:?} of a byte a second");
            }
            watch.enter(Phase::Working);
            assert!(!lost_after(3600).await, "a merge may take its time");
        });
    }

    #[test]
    fn an_answer_lasts_until_it_is_taken() {
        world::virtual_world::run(1, |env| async move {
            let watch = Watch::new(env);
            watch.enter(Phase::Working);
            watch.flushed();
            assert_eq!(watch.phase.get(), Phase::Working, "nothing was answered yet");
            watch.enter(Phase::Answer);
            watch.read();
            assert_eq!(watch.phase.get(), Phase::Answer, "the next request is sent ahead");
            watch.flushed();
            assert_eq!(watch.phase.get(), Phase::Idle);
            watch.wrote();
            assert_eq!(watch.phase.get(), Phase::Answer);
        });
    }

    #[test]
    fn places_are_those_of_clients_that_are_waited_for() {
        world::virtual_world::run(1, |env| async move {
            let clients = Clients::new(&env, Limits { connections_max: 3, ..Limits::default() });
            let watches: Rc<RefCell<Vec<Rc<Watch>>>> = Rc::default();
            let join = async || {
                let room = clients.make_room();
                if room {
                    clients.serve(|watch| {
                        watches.borrow_mut().push(watch);
                        std::future::pending()
                    });
                }
                env.sleep(Duration::from_secs(1)).await;
                room
            };
            let open = || clients.open.borrow().keys().copied().collect::<Vec<_>>();
            for _ in 0..3 {
                assert!(join().await);
            }
            watches.borrow()[0].enter(Phase::Working);
            watches.borrow()[1].enter(Phase::Body);
            assert!(join().await);
            assert_eq!(open(), [0, 1, 3], "the idle one was closed before the one that sends");
            watches.borrow()[3].enter(Phase::Working);
            assert!(join().await);
            assert_eq!(open(), [0, 3, 4]);
            watches.borrow()[4].enter(Phase::Working);
            assert!(!join().await, "the node works for all");
            assert_eq!(open(), [0, 3, 4]);
        });
    }

    #[test]
    fn a_connection_that_ends_leaves_and_one_that_idles_is_closed() {
        world::virtual_world::run(1, |env| async move {
            let clients = Clients::new(&env, Limits::default());
            let again = env.clone();
            clients.serve(|_| async move { again.sleep(Duration::from_secs(1)).await });
            clients.serve(|_| std::future::pending());
            assert_eq!(clients.count(), 2);
            env.sleep(Duration::from_secs(2)).await;
            assert_eq!(clients.count(), 1);
            env.sleep(Duration::from_secs(604)).await;
            assert_eq!(clients.count(), 0);
        });
    }

    #[test]
    fn a_line_is_written_as_the_http_library_wants_it() {
        for (piece, whole, goes_on) in [
            ("GET /a?q=\"b\"", "GET /a?q=%22b%22", true),
            ("<`>", "%3C%60%3E", true),
            ("a> HTTP/1.1\r\nx: \"<>\"\n", "a%3E HTTP/1.1\r\nx: \"<>\"\n", false),
            ("é{|}\\^%3E", "é{|}\\^%3E", true),
        ] {
            assert_eq!(encoded(piece.as_bytes()), (whole.as_bytes().to_vec(), goes_on), "{piece}");
        }
        assert!(begins(b"DELETE /") && !begins(b"GE") && !begins(b"x: GET /") && !begins(b" /"));
    }

    #[test]
    fn half_of_the_handles_are_for_clients() {
        assert!(Limits::default().connections_max <= handles_max() / 2);
    }
}
