//! A link in user space: a proxy that adds the delay, the rate, the window and the effect of loss of a long line.
//!
//! Needs no privileges. Its memory is bounded: it reads no more than the line holds (rate x delay) and a
//! short queue, of each connection no more than its window, and leaves the rest in the sender's socket, as a full
//! router would.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Notify;

use super::host::{Host, spawn};
use super::lossy::{Congestion, Fate};
use super::net::tried;
use crate::faults::LinkFaults;
use crate::model::{Direction, LinkConfig, LinkStats, LinkTimes};
use crate::queue::{Occupied, RateQueue, Waits};
use crate::{Task, Time};

/// Bytes that are read at once, and the unit in which connections share the rate.
const PIECE_BYTES: usize = 64 << 10;
/// The queue in front of the line.
const QUEUE: Duration = Duration::from_millis(4);
/// The most bytes that one connection holds if the link has no rate.
const HELD_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, Default)]
struct Lane {
    queue: RefCell<RateQueue>,
    bytes: Cell<u64>,
}

struct Shared {
    host: Rc<Host>,
    config: RefCell<LinkConfig>,
    out: Lane,
    back: Lane,
    /// Time with anything on the line, in either direction.
    carrying: RefCell<Occupied>,
    /// Time with a connection that waited for its window.
    window_full: RefCell<Waits>,
    faults: LinkFaults,
    tasks: RefCell<Vec<Task<()>>>,
    /// Connections that it carries, and the most that it may.
    connections: Cell<usize>,
    connections_max: Cell<usize>,
    closed: Notify,
}

/// A connection that counts against the bound.
struct Carried(Rc<Shared>);

impl Carried {
    fn begin(shared: &Rc<Shared>) -> Carried {
        shared.connections.set(shared.connections.get() + 1);
        Carried(shared.clone())
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
        self.0.closed.notify_waiters();
    }
}

impl Shared {
    fn lane(&self, direction: Direction) -> &Lane {
        match direction {
            Direction::Out => &self.out,
            Direction::Back => &self.back,
        }
    }

    fn keep(&self, task: Task<()>) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }
}

/// A link of the real world. Dropping it closes what passes through it.
pub(crate) struct Emulator {
    shared: Rc<Shared>,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // The tasks hold the shared state; ending them frees it.
        let tasks = std::mem::take(&mut *self.shared.tasks.borrow_mut());
        drop(tasks);
    }
}

impl Emulator {
    pub(crate) fn new(host: Rc<Host>, config: LinkConfig) -> Self {
        let shared = Shared {
            host,
            config: RefCell::new(config),
            out: Lane::default(),
            back: Lane::default(),
            carrying: RefCell::default(),
            window_full: RefCell::default(),
            faults: LinkFaults::default(),
            tasks: RefCell::default(),
            connections: Cell::new(0),
            connections_max: Cell::new(usize::MAX),
            closed: Notify::new(),
        };
        Emulator { shared: Rc::new(shared) }
    }

    pub(crate) fn configure(&self, config: LinkConfig) {
        *self.shared.config.borrow_mut() = config;
    }

    pub(crate) fn faults(&self) -> &LinkFaults {
        &self.shared.faults
    }

    pub(crate) fn stats(&self, direction: Direction) -> LinkStats {
        let lane = self.shared.lane(direction);
        let busy = lane.queue.borrow().busy(self.shared.host.now());
        LinkStats { bytes: lane.bytes.get(), busy, ..LinkStats::default() }
    }

    pub(crate) fn times(&self) -> LinkTimes {
        let now = self.shared.host.now();
        LinkTimes {
            carrying: self.shared.carrying.borrow().so_far(now),
            window_full: self.shared.window_full.borrow().so_far(now),
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.get()
    }

    pub(crate) fn bound_connections(&self, max: usize) {
        self.shared.connections_max.set(max);
    }

    pub(crate) async fn route(&self, listen: &str, to: &str) -> io::Result<String> {
        self.shared.config.borrow().check_real()?;
        let listener =
            TcpListener::bind(listen).await.map_err(|e| tried("listen on", listen, &e))?;
        let address = listener.local_addr()?;
        // What cannot be resolved now may be there later: then it leads nowhere, and each connection ends at once.
        for found in lookup_host(to).await.into_iter().flatten() {
            if leads_to(found, address) {
                let text = format!(
                    "lead to {to}: that is where it listens itself ({address}), so each connection would open another"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        let (shared, to) = (self.shared.clone(), to.to_owned());
        let task = Task::start(|| accept(shared, listener, to), spawn);
        self.shared.keep(task);
        Ok(address.to_string())
    }
}

/// Whether a connection to `to` arrives where `listens` is listened on.
fn leads_to(to: SocketAddr, listens: SocketAddr) -> bool {
    let (ip, own) = (to.ip().to_canonical(), listens.ip().to_canonical());
    // The system connects to itself where it is told to connect to no address in particular.
    let ip = match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let is_local = || UdpSocket::bind((ip, 0)).is_ok();
    to.port() == listens.port() && (ip == own || (own.is_unspecified() && is_local()))
}

async fn accept(shared: Rc<Shared>, listener: TcpListener, to: String) {
    loop {
        if shared.connections.get() >= shared.connections_max.get() {
            // Others wait in the system's queue of the listener.
            shared.closed.notified().await;
            continue;
        }
        let Ok((near, _)) = listener.accept().await else {
            // Out of file handles, most likely: try again when some may have closed.
            shared.host.sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (carried, to) = (Carried::begin(&shared), to.clone());
        let carrying = async move {
            carry(&carried.0, near, to).await;
        };
        let task = Task::start(|| carrying, spawn);
        shared.keep(task);
    }
}

async fn carry(shared: &Rc<Shared>, near: TcpStream, to: String) {
    shared.faults.until_healed().await;
    // The handshake crosses the line and comes back before either side can send.
    let rtt = shared.config.borrow().rtt;
    shared.host.sleep(rtt).await;
    let Ok(far) = TcpStream::connect(&to).await else { return };
    if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
        return;
    }
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    tokio::join!(
        one_way(shared.clone(), Direction::Out, near_read, far_write),
        one_way(shared.clone(), Direction::Back, far_read, near_write),
    );
}

/// Bytes that were sent at once.
struct Piece {
    sent: Time,
    arrives: Time,
    bytes: Bytes,
    fate: Fate,
}

/// The acknowledgement of a piece.
struct Ack {
    arrives: Time,
    bytes: u64,
    sent: Time,
    fate: Fate,
}

/// Bytes of one direction of one connection that are on the line.
#[derive(Default)]
struct OnTheLine {
    pieces: RefCell<VecDeque<Piece>>,
    ended: Cell<bool>,
    broken: Cell<bool>,
    /// Read and not yet delivered.
    held_bytes: Cell<u64>,
    /// Delivered, and the acknowledgement still under way.
    acks: RefCell<VecDeque<Ack>>,
    unacked_bytes: Cell<u64>,
    congestion: Congestion,
    moved: Notify,
    came: Notify,
}

impl OnTheLine {
    async fn until_broken(&self) {
        while !self.broken.get() {
            self.moved.notified().await;
        }
    }
}

async fn one_way(
    shared: Rc<Shared>,
    direction: Direction,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
) {
    let line = OnTheLine::default();
    tokio::join!(enter(&shared, direction, &line, from), leave(&shared, direction, &line, to));
}

async fn enter(shared: &Shared, direction: Direction, line: &OnTheLine, from: OwnedReadHalf) {
    let mut buffer = BytesMut::new();
    loop {
        // First bytes, then room for them: connections that wake together find what those before them have queued. And
        // nobody waits for the bytes of a connection that is broken.
        tokio::select! {
            biased;
            () = line.until_broken() => break,
            readable = from.readable() => if readable.is_err() { break },
        }
        shared.faults.until_healed().await;
        let bytes = room(shared, direction, line).await;
        buffer.reserve(bytes);
        let read = match from.try_read_buf(&mut (&mut buffer).limit(bytes)) {
            Ok(read @ 1..) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            _ => break,
        };
        let bytes = damaged(shared, direction, buffer.split().freeze());
        let now = shared.host.now();
        let (service, delay, (fate, later)) = {
            let (config, read) = (shared.config.borrow(), read as u64);
            let (under_way, random) = (line.unacked_bytes.get(), shared.host.random_share());
            let sent = line.congestion.send(&config, now, read, under_way, random);
            (config.service(read), config.one_way(), sent)
        };
        let leaves = shared.lane(direction).queue.borrow_mut().reserve(now, service);
        shared.carrying.borrow_mut().add(now, leaves + delay);
        line.held_bytes.set(line.held_bytes.get() + read as u64);
        line.unacked_bytes.set(line.unacked_bytes.get() + read as u64);
        let arrives = leaves + delay + later;
        line.pieces.borrow_mut().push_back(Piece { sent: now, arrives, bytes, fate });
        line.came.notify_one();
    }
    line.ended.set(true);
    line.came.notify_one();
}

/// How many bytes a window lets through at once. It counts as full until a good part of it is open: otherwise each
/// acknowledgement of a small piece would let as small a piece through, for ever.
fn open_bytes(window: u64, unacked: u64) -> usize {
    let piece = PIECE_BYTES as u64;
    let open = window.saturating_sub(unacked).min(piece);
    if open < piece.min(window / 4) { 0 } else { open as usize }
}

/// Waits until the line takes another piece, and answers how large it may be: its queue is short, and the connection's
/// window open.
async fn room(shared: &Shared, direction: Direction, line: &OnTheLine) -> usize {
    loop {
        if line.broken.get() {
            return 0;
        }
        let now = shared.host.now();
        while line.acks.borrow().front().is_some_and(|ack| ack.arrives <= now) {
            let ack = line.acks.borrow_mut().pop_front().expect("it was there");
            line.unacked_bytes.set(line.unacked_bytes.get() - ack.bytes);
            line.congestion.acknowledged(ack.arrives, ack.bytes, ack.sent, ack.fate);
        }
        let window = {
            let config = shared.config.borrow();
            let congestion = line.congestion.window(&config, now);
            config.window_bytes.unwrap_or(u64::MAX).min(congestion)
        };
        let backlog = shared.lane(direction).queue.borrow().backlog(now);
        let limited = shared.config.borrow().rate_bytes_per_s.is_some();
        let open = open_bytes(window, line.unacked_bytes.get());
        if backlog > QUEUE {
            shared.host.sleep(backlog - QUEUE).await;
        } else if open == 0 {
            shared.window_full.borrow_mut().begin(now);
            let next_ack = line.acks.borrow().front().map(|ack| ack.arrives);
            match next_ack {
                Some(at) => shared.host.sleep_until(at).await,
                None => line.moved.notified().await,
            }
            shared.window_full.borrow_mut().end(shared.host.now());
        } else if !limited && line.held_bytes.get() >= HELD_BYTES_MAX {
            line.moved.notified().await;
        } else {
            return open;
        }
    }
}

async fn leave(shared: &Shared, direction: Direction, line: &OnTheLine, mut to: OwnedWriteHalf) {
    loop {
        let next = line.pieces.borrow_mut().pop_front();
        let Some(Piece { sent, arrives, bytes: piece, fate }) = next else {
            if line.ended.get() {
                break;
            }
            line.came.notified().await;
            continue;
        };
        shared.host.sleep_until(arrives).await;
        shared.faults.until_healed().await;
        if to.write_all(&piece).await.is_err() {
            line.broken.set(true);
            line.moved.notify_one();
            return;
        }
        let bytes = piece.len() as u64;
        let lane = shared.lane(direction);
        lane.bytes.set(lane.bytes.get() + bytes);
        line.held_bytes.set(line.held_bytes.get() - bytes);
        let arrives = shared.host.now() + shared.config.borrow().one_way();
        line.acks.borrow_mut().push_back(Ack { arrives, bytes, sent, fate });
        line.moved.notify_one();
    }
    // A failure here means that the other side has gone already.
    let _ = to.shutdown().await;
}

fn damaged(shared: &Shared, direction: Direction, piece: Bytes) -> Bytes {
    // Where a window keeps pieces small, a quarter of it is a large one.
    let window = shared.config.borrow().window_bytes.unwrap_or(u64::MAX);
    let large = window.min(PIECE_BYTES as u64) / 4;
    if direction == Direction::Out || (piece.len() as u64) < large || !shared.faults.take_damage() {
        return piece;
    }
    let mut copy = piece.to_vec();
    let middle = copy.len() / 2;
    copy[middle] ^= 0x40;
    Bytes::from(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lets_through_what_is_open_once_that_is_worth_it() {
        for (window, unacked, open) in [
            (8192, 0, 8192),
            (8192, 6144, 2048),
            (8192, 6145, 0),
            (8192, 8192, 0),
            // It was made smaller meanwhile.
            (8192, 70_000, 0),
            (3, 2, 1),
            (1 << 20, (1 << 20) - 65_536, 65_536),
            (1 << 20, (1 << 20) - 65_535, 0),
            (u64::MAX, 1 << 40, 65_536),
        ] {
            assert_eq!(open_bytes(window, unacked), open, "{unacked} of {window}");
        }
    }

    /// Nothing leaves this line, so that nothing is acknowledged: what entered it is what the window held.
    #[test]
    fn no_more_than_its_window_of_a_connection_is_under_way() {
        crate::real_world::run(7, async |env| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut sender, _) = listener.accept().await.unwrap();
            sender.write_all(&[1; 30_000]).await.unwrap();

            let host = Rc::new(Host::new(std::time::Instant::now(), 7, "link"));
            let config = LinkConfig { window_bytes: Some(8192), ..LinkConfig::default() };
            let link = Emulator::new(host, config);
            let (from, _write) = near.into_split();
            let line = OnTheLine::default();
            let is_full = async {
                while !link.shared.window_full.borrow().is_waiting() {
                    env.sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                () = enter(&link.shared, Direction::Out, &line, from) => panic!("it has ended"),
                () = is_full => {}
            }
            let under_way = line.unacked_bytes.get();
            // It counts as full when less than a quarter is open.
            assert!((6145..=8192).contains(&under_way), "{under_way}");
        });
    }

    /// The two ends of a connection: what is sent into the first comes out of the second.
    async fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let sender = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (sender, listener.accept().await.unwrap().0)
    }

    /// The line is so slow that the queue is full with the first piece, for ever.
    #[test]
    fn connections_that_wake_together_do_not_overfill_the_queue() {
        crate::real_world::run(7, async |env| {
            let host = Rc::new(Host::new(std::time::Instant::now(), 7, "link"));
            let config = LinkConfig { rate_bytes_per_s: Some(1), ..LinkConfig::default() };
            let link = Emulator::new(host, config);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let lines: Rc<Vec<OnTheLine>> =
                Rc::new((0..16).map(|_| OnTheLine::default()).collect());
            let (mut senders, mut entering) = (Vec::new(), Vec::new());
            for number in 0..lines.len() {
                let (sender, near) = connection(&listener).await;
                senders.push(sender);
                let (shared, lines) = (link.shared.clone(), lines.clone());
                entering.push(env.spawn("enters", async move {
                    let (from, _write) = near.into_split();
                    enter(&shared, Direction::Out, &lines[number], from).await;
                }));
            }
            let entered = || lines.iter().map(|line| line.unacked_bytes.get()).sum::<u64>();
            // All are idle by now.
            env.sleep(Duration::from_millis(10)).await;
            for sender in &mut senders {
                sender.write_all(&[1; 1000]).await.unwrap();
            }
            while entered() == 0 {
                env.sleep(Duration::from_millis(1)).await;
            }
            env.sleep(Duration::from_millis(50)).await;
            assert_eq!(entered(), 1000, "those of one connection");
        });
    }

    #[test]
    fn a_connection_whose_far_side_is_gone_ends_though_its_near_one_is_silent() {
        crate::real_world::run(7, async |env| {
            let host = Rc::new(Host::new(std::time::Instant::now(), 7, "link"));
            let link = Emulator::new(host, LinkConfig::default());
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (mut sender, near) = connection(&listener).await;
            let (far, _receiver) = connection(&listener).await;
            let ((from, _near_write), (_far_read, mut to)) = (near.into_split(), far.into_split());
            // Whatever is written to it fails.
            to.shutdown().await.unwrap();
            sender.write_all(&[1]).await.unwrap();
            let carried = one_way(link.shared.clone(), Direction::Out, from, to);
            env.timeout(Duration::from_secs(60), carried).await.expect("it ends");
        });
    }

    #[test]
    fn a_link_knows_itself_by_every_spelling() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (to, listens, same) in [
            ("127.0.0.1:9", "127.0.0.1:9", true),
            ("127.0.0.1:8", "127.0.0.1:9", false),
            ("0.0.0.0:9", "127.0.0.1:9", true),
            ("[::ffff:127.0.0.1]:9", "127.0.0.1:9", true),
            ("127.0.0.2:9", "127.0.0.1:9", false),
            ("127.0.0.2:9", "0.0.0.0:9", true),
            ("127.0.0.1:9", "[::]:9", true),
            ("[::]:9", "[::1]:9", true),
            ("192.0.2.1:9", "0.0.0.0:9", false),
        ] {
            assert_eq!(leads_to(at(to), at(listens)), same, "{to} {listens}");
        }
    }
}
