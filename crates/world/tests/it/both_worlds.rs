//! The same bodies on the real and on the virtual world.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use world::{Connection, Direction, Env, Frame, Link, LinkConfig, Message, Work};

#[derive(Debug, PartialEq)]
struct Blob {
    number: u64,
    bytes: Bytes,
}

impl Blob {
    fn new(number: u64, len: usize) -> Self {
        Blob { number, bytes: Bytes::from(vec![number as u8; len]) }
    }
}

impl Message for Blob {
    fn encode(self) -> Frame {
        Frame { head: self.number.to_le_bytes().to_vec(), tail: self.bytes }
    }

    fn decode(head: &[u8], tail: Bytes) -> io::Result<Self> {
        let head = head.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Blob { number: u64::from_le_bytes(head), bytes: tail })
    }

    fn wire_bytes(&self) -> u64 {
        24 + self.bytes.len() as u64
    }

    fn damage(&mut self) {
        let mut copy = self.bytes.to_vec();
        copy[0] ^= 1;
        self.bytes = Bytes::from(copy);
    }
}

testbed::both_worlds!(
    echoes_in_order,
    a_link_delays_and_limits,
    a_window_limits_one_connection,
    a_cut_link_carries_on_when_healed,
    damage_reaches_the_payload,
    a_closed_connection_ends,
    what_was_sent_comes_before_the_end,
    nobody_listens,
    what_only_virtual_time_has_is_refused_by_name,
    work_gives_its_value,
    a_task_runs_to_its_end_whoever_waits,
);

/// A host that answers each message on each connection; its address.
pub async fn answering<M: Message>(
    env: &Env,
    name: &str,
    answer: fn(M) -> M,
) -> (String, world::Task<()>) {
    let server = env.host(name);
    let mut listener = server.listen::<M>(&server.any_address()).await.unwrap();
    let address = listener.address().to_owned();
    let inner = server.clone();
    let task = server.spawn("server", async move {
        loop {
            let Connection { sender, mut receiver } = listener.accept().await.unwrap();
            inner
                .spawn("answers", async move {
                    while let Ok(Some(message)) = receiver.recv().await {
                        if sender.send(answer(message)).await.is_err() {
                            return;
                        }
                    }
                })
                .detach();
        }
    });
    (address, task)
}

async fn echo(env: &Env) -> (String, world::Task<()>) {
    answering(env, "server", |blob: Blob| blob).await
}

async fn echoes_in_order(env: Env) {
    let (address, _server) = echo(&env).await;
    let mut connection = env.connect::<Blob>(&address).await.unwrap();
    for number in 0..20 {
        let blob = Blob::new(number, (number as usize) * 30_000);
        connection.sender.send(blob).await.unwrap();
        let answer = connection.receiver.recv().await.unwrap().unwrap();
        assert_eq!(answer, Blob::new(number, (number as usize) * 30_000));
    }
    assert!(env.net_bytes().tx_bytes > 190 * 30_000);
}

/// Sends `count` blobs one way and answers how long it took until the last came.
async fn drain(env: &Env, address: &str, count: u64, len: usize) -> Duration {
    let Connection { sender, mut receiver } = env.connect::<Blob>(address).await.unwrap();
    let began = env.now();
    let sending = env.spawn("send", async move {
        for number in 0..count {
            sender.send(Blob::new(number, len)).await.unwrap();
        }
        sender
    });
    for number in 0..count {
        assert_eq!(receiver.recv().await.unwrap().unwrap().number, number);
    }
    let took = env.now() - began;
    drop(sending.await);
    took
}

fn link(rtt_ms: u64, rate: u64, window: Option<u64>) -> LinkConfig {
    LinkConfig {
        rtt: Duration::from_millis(rtt_ms),
        rate_bytes_per_s: Some(rate),
        window_bytes: window,
        ..LinkConfig::default()
    }
}

async fn a_link_delays_and_limits(env: Env) {
    let (address, _server) = echo(&env).await;
    let link = Link::open(&env, link(40, 10_000_000, None));
    let through = link.route(&address).await.unwrap();
    let one = drain(&env, &through, 1, 10).await;
    assert!(one >= Duration::from_millis(40), "{one:?}");
    // 2 MB at 10 MB/s take 200 ms at least; only the virtual world is exact about "at most".
    let many = drain(&env, &through, 20, 100_000).await;
    assert!(many >= Duration::from_millis(200), "{many:?}");
    if env.is_virtual() {
        assert!(many < Duration::from_millis(260), "{many:?}");
    }
    let stats = link.stats(Direction::Out);
    assert!(stats.bytes >= 2_000_000, "{stats:?}");
    assert!(stats.busy >= Duration::from_millis(190), "{stats:?}");
}

async fn a_window_limits_one_connection(env: Env) {
    let (address, _server) = echo(&env).await;
    let link = Link::open(&env, link(20, 1_000_000_000, Some(100_000)));
    let through = link.route(&address).await.unwrap();
    // 100 kB a round trip of 20 ms: 1 MB takes 200 ms, less the first window.
    let took = drain(&env, &through, 10, 100_000).await;
    assert!(took >= Duration::from_millis(160), "{took:?}");
}

async fn a_cut_link_carries_on_when_healed(env: Env) {
    let (address, _server) = echo(&env).await;
    let link = Link::open(&env, link(2, 100_000_000, None));
    let through = link.route(&address).await.unwrap();
    drain(&env, &through, 1, 10).await;
    link.cut();
    let stalled = env.timeout(Duration::from_millis(50), drain(&env, &through, 1, 10)).await;
    assert!(stalled.is_err());
    link.heal();
    drain(&env, &through, 3, 1000).await;
}

async fn damage_reaches_the_payload(env: Env) {
    let (address, _server) = echo(&env).await;
    let link = Link::open(&env, link(2, 100_000_000, None));
    let through = link.route(&address).await.unwrap();
    let mut connection = env.connect::<Blob>(&through).await.unwrap();
    link.damage_next(1);
    connection.sender.send(Blob::new(1, 60_000)).await.unwrap();
    let damaged = connection.receiver.recv().await.unwrap().unwrap();
    assert_eq!(damaged.bytes.iter().filter(|byte| **byte != 1).count(), 1);
    connection.sender.send(Blob::new(2, 60_000)).await.unwrap();
    assert_eq!(connection.receiver.recv().await.unwrap().unwrap(), Blob::new(2, 60_000));
}

async fn a_closed_connection_ends(env: Env) {
    let server = env.host("server");
    let mut listener = server.listen::<Blob>(&server.any_address()).await.unwrap();
    let address = listener.address().to_owned();
    let task = server.spawn("server", async move {
        let connection = listener.accept().await.unwrap();
        connection.sender.send(Blob::new(1, 10)).await.unwrap();
    });
    let mut connection = env.connect::<Blob>(&address).await.unwrap();
    task.await.unwrap();
    assert_eq!(connection.receiver.recv().await.unwrap(), Some(Blob::new(1, 10)));
    // Closed or reset, it is over either way.
    assert!(matches!(connection.receiver.recv().await, Ok(None) | Err(_)));
}

async fn what_was_sent_comes_before_the_end(env: Env) {
    let server = env.host("server");
    let mut listener = server.listen::<Blob>(&server.any_address()).await.unwrap();
    let address = listener.address().to_owned();
    let sends = server.spawn("sends much and closes", async move {
        let Connection { sender, receiver } = listener.accept().await.unwrap();
        // In the virtual world its last piece is half a mebibyte, and waits in the card for those before it.
        sender.send(Blob::new(1, 5 << 19)).await.unwrap();
        receiver
    });
    let mut connection = env.connect::<Blob>(&address).await.unwrap();
    let blob = connection.receiver.recv().await.unwrap();
    assert_eq!(blob.map(|blob| blob.bytes.len()), Some(5 << 19));
    assert_eq!(connection.receiver.recv().await.unwrap(), None);
    drop(sends.await);
}

async fn nobody_listens(env: Env) {
    let address = {
        let listener = env.listen::<Blob>(&env.any_address()).await.unwrap();
        listener.address().to_owned()
    };
    let error = env.connect::<Blob>(&address).await.err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains(&address));
}

async fn what_only_virtual_time_has_is_refused_by_name(env: Env) {
    let (address, _server) = echo(&env).await;
    let plain = link(2, 100_000_000, None);
    let slow = LinkConfig { tcp: Some(world::model::Tcp::default()), ..plain.clone() };
    let short = LinkConfig { queue_bytes: Some(100_000), ..plain.clone() };
    for (name, config) in [("tcp", slow), ("queue_bytes", short)] {
        let opened = Link::open(&env, config.clone()).route(&address).await;
        let changed = Link::open(&env, plain.clone()).configure(config);
        if env.is_virtual() {
            assert!(opened.is_ok() && changed.is_ok());
            continue;
        }
        for error in [opened.unwrap_err(), changed.unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains(&format!("the link's {name} ")), "{error}");
        }
    }
}

async fn a_task_runs_to_its_end_whoever_waits(env: Env) {
    let done = std::rc::Rc::new(std::cell::Cell::new(0));
    let work = |takes_ms| {
        let (inner, done) = (env.clone(), done.clone());
        let work = async move {
            inner.sleep(Duration::from_millis(takes_ms)).await;
            done.set(done.get() + 1);
            done.get()
        };
        env.spawn("works", work).into_waiter()
    };
    drop(work(1));
    assert_eq!(work(50).await, Ok(2), "nobody waits for the first, and it went on");
}

async fn work_gives_its_value(env: Env) {
    let before = env.now();
    let sum = env.work(Work::DiskRead { bytes: 2_000_000 }, || (1..=4).sum::<u32>()).await;
    assert_eq!(sum, 10);
    if env.is_virtual() {
        // 2 MB at 2 GB/s and two requests of up to 1280 KB.
        assert_eq!(env.now() - before, Duration::from_micros(1040));
    }
}

/// One seed, one trace; another seed, another.
#[test]
fn the_same_seed_gives_the_same_trace() {
    async fn body(env: Env) -> u64 {
        let (address, _server) = echo(&env).await;
        for _ in 0..10 {
            env.sleep(Duration::from_nanos(env.random_u64() % 1_000_000)).await;
            drain(&env, &address, 3, 200_000).await;
        }
        env.now().0
    }
    let first = world::virtual_world::run_traced(3, body).unwrap();
    assert_eq!(first, world::virtual_world::run_traced(3, body).unwrap());
    assert_ne!(first, world::virtual_world::run_traced(4, body).unwrap());
}
