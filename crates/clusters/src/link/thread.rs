//! The link on a thread of its own, so that the load generator does not slow it.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc as channel;
use world::{Direction, Env, Link, LinkConfig, LinkStats, LinkTimes};

use crate::clusters::LinkControl;
use crate::{Error, Result};

/// How often the figures are updated: much more often than they are sampled, which is about every 100 ms.
const UPDATE_EVERY: Duration = Duration::from_millis(2);
/// How long nothing may come while the ceiling is measured.
const CEILING_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether somebody connects.
const ACCEPT_EVERY: Duration = Duration::from_millis(1);

enum Command {
    Route(String, String, mpsc::Sender<io::Result<String>>),
    Cut,
    Heal,
    Configure(LinkConfig),
}

/// What it carried in each direction, and when.
type Stats = Arc<Mutex<(LinkStats, LinkStats, Option<LinkTimes>)>>;

/// A link that runs by itself. It ends when this is dropped.
pub struct LinkThread {
    commands: Option<channel::UnboundedSender<Command>>,
    stats: Stats,
    thread: Option<JoinHandle<()>>,
}

impl LinkThread {
    /// Opens a link. Fails if no thread can be started.
    pub fn open(config: LinkConfig) -> Result<LinkThread> {
        let (commands, queue) = channel::unbounded_channel();
        let stats = Stats::default();
        let shown = stats.clone();
        let thread = std::thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || world::real_world::run(0, |env| serve(env, config, queue, shown)))
            .map_err(Error::Link)?;
        Ok(LinkThread { commands: Some(commands), stats, thread: Some(thread) })
    }

    /// An address that leads to `to` through the link, which listens on `listen`. Waits for the link's thread. Fails as
    /// [`Link::route`].
    pub fn route(&self, listen: &str, to: &str) -> Result<String> {
        let (answer, answered) = mpsc::channel();
        self.send(Command::Route(listen.to_owned(), to.to_owned(), answer));
        let gone = || Error::Link(io::Error::other("its thread has ended"));
        answered.recv().map_err(|_| gone())?.map_err(Error::Link)
    }

    fn shown(&self) -> (LinkStats, LinkStats, Option<LinkTimes>) {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // The thread ends only after this handle.
            let _ = commands.send(command);
        }
    }
}

impl Drop for LinkThread {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl LinkControl for LinkThread {
    fn stats(&self, direction: Direction) -> LinkStats {
        let (out, back, _) = self.shown();
        match direction {
            Direction::Out => out,
            Direction::Back => back,
        }
    }

    fn times(&self) -> Option<LinkTimes> {
        self.shown().2
    }

    fn cut(&self) {
        self.send(Command::Cut);
    }

    fn heal(&self) {
        self.send(Command::Heal);
    }

    fn configure(&self, config: LinkConfig) -> io::Result<()> {
        config.check_real()?;
        self.send(Command::Configure(config));
        Ok(())
    }
}

async fn serve(
    env: Env,
    config: LinkConfig,
    mut commands: channel::UnboundedReceiver<Command>,
    stats: Stats,
) {
    let link = Link::open(&env, config);
    loop {
        let command = tokio::select! {
            biased;
            command = commands.recv() => command,
            () = env.sleep(UPDATE_EVERY) => {
                let now = (link.stats(Direction::Out), link.stats(Direction::Back), link.times());
                *stats.lock().unwrap_or_else(PoisonError::into_inner) = now;
                continue;
            }
        };
        match command {
            None => return,
            Some(Command::Route(listen, to, answer)) => {
                let _ = answer.send(link.route_from(&listen, &to).await);
            }
            Some(Command::Cut) => link.cut(),
            Some(Command::Heal) => link.heal(),
            Some(Command::Configure(config)) => {
                // It was checked before it was sent.
                let _ = link.configure(config);
            }
        }
    }
}

/// The throughput of the emulator on this machine without delay or limit, bytes a second: that of one connection over
/// loopback for a third of a second. Blocks for as long.
pub fn measure_ceiling() -> Result<u64> {
    const FOR: Duration = Duration::from_millis(300);
    let config = LinkConfig::default();
    let link = LinkThread::open(config)?;
    let sink = TcpListener::bind("127.0.0.1:0").map_err(Error::Link)?;
    let address = sink.local_addr().map_err(Error::Link)?.to_string();
    let through = link.route("127.0.0.1:0", &address)?;
    let measured = std::thread::scope(|scope| {
        let source = scope.spawn(move || send_for(&through, FOR));
        let received = receive_all(&sink, CEILING_PATIENCE);
        source.join().unwrap_or(Ok(())).and(received)
    });
    measured.map_err(Error::Link)
}

fn send_for(address: &str, time: Duration) -> io::Result<()> {
    use std::io::Write;
    let mut stream = TcpStream::connect(address)?;
    stream.set_write_timeout(Some(CEILING_PATIENCE))?;
    let piece = vec![0x5a; 256 << 10];
    let began = Instant::now();
    while began.elapsed() < time {
        stream.write_all(&piece)?;
    }
    Ok(())
}

fn receive_all(sink: &TcpListener, patience: Duration) -> io::Result<u64> {
    use std::io::Read;
    let mut stream = accept_within(sink, patience)?;
    stream.set_read_timeout(Some(patience))?;
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = stream.read(&mut buffer)? as u64;
    let began = Instant::now();
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            read => bytes += read as u64,
        }
    }
    let seconds = began.elapsed().as_secs_f64().max(1e-3);
    Ok((bytes as f64 / seconds) as u64)
}

/// The first connection. Nobody connects where the other end, or the link, has no file left to open.
fn accept_within(sink: &TcpListener, patience: Duration) -> io::Result<TcpStream> {
    sink.set_nonblocking(true)?;
    let give_up = Instant::now() + patience;
    let stream = loop {
        match sink.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= give_up {
                    let text = "nobody connected through the link";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                std::thread::sleep(ACCEPT_EVERY);
            }
            accepted => break accepted?.0,
        }
    };
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_waited_for_who_does_not_connect() {
        let sink = TcpListener::bind("127.0.0.1:0").unwrap();
        let refused = receive_all(&sink, Duration::from_millis(20)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn the_ceiling_is_measured() {
        // It is what this machine lets through: little, where it stood still meanwhile.
        assert!((0..10).any(|_| measure_ceiling().unwrap() > 1_000_000), "ten times in a row less");
    }
}
