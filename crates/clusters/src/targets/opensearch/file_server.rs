//! Files of one directory over HTTP: a snapshot repository that another cluster reads through the link.
//!
//! Only `GET` of plain files, on loopback, a thread for each connection: the readers are the nodes of one cluster.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{Error, Result};

/// A request's head is no longer than this.
const HEAD_BYTES_MAX: u64 = 16 << 10;
/// An idle connection is closed after this.
const IDLE: Duration = Duration::from_secs(120);
/// Pause after a connection could not be accepted: out of file handles, most likely, and some may close.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Serves a directory until it is dropped.
pub(super) struct FileServer {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    /// Begins to serve `root`, which need not exist yet, on a free port.
    pub(super) fn start(root: &Path) -> Result<FileServer> {
        let io =
            |source| Error::Io { what: "serve the files below", path: root.to_owned(), source };
        let listener = TcpListener::bind("127.0.0.1:0").map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (root, end) = (root.to_owned(), ended.clone());
        let accept = move || {
            serve_each(listener.incoming(), &root, &end, || std::thread::sleep(ACCEPT_RETRY));
        };
        let thread = std::thread::Builder::new().name("repository".to_owned()).spawn(accept);
        Ok(FileServer { address, ended, thread: Some(thread.map_err(io)?) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The thread waits for a connection: this one wakes it. Without it, the wait would have no end.
        let wakes = TcpStream::connect(self.address);
        if wakes.is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Serves each connection on a thread of its own, until it has `ended`. Pauses where one cannot be accepted.
fn serve_each(
    streams: impl Iterator<Item = io::Result<TcpStream>>,
    root: &Path,
    ended: &AtomicBool,
    pause: impl Fn(),
) {
    for stream in streams {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else {
            pause();
            continue;
        };
        let root = root.to_owned();
        // The reader sees what goes wrong on its connection.
        let serve = move || drop(serve(stream, &root));
        let _ = std::thread::Builder::new().name("repository".to_owned()).spawn(serve);
    }
}

fn serve(stream: TcpStream, root: &Path) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let Some(target) = read_target(&mut reader)? else { return Ok(()) };
        match target.and_then(|path| File::open(root.join(path)).ok()) {
            Some(mut file) if file.metadata()?.is_file() => {
                let length = file.metadata()?.len();
                write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n")?;
                io::copy(&mut file, &mut writer)?;
            }
            _ => writer.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?,
        }
    }
}

/// Reads a request's head. Outer none: the connection has ended. Inner none: the path is not served.
fn read_target(reader: &mut impl BufRead) -> io::Result<Option<Option<PathBuf>>> {
    let mut head = reader.take(HEAD_BYTES_MAX);
    let mut first = String::new();
    if head.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        if line.trim_end().is_empty() {
            return Ok(Some(path_of(&first)));
        }
    }
}

/// The relative path in `GET /a/b HTTP/1.1`; none where it would leave the directory.
fn path_of(request_line: &str) -> Option<PathBuf> {
    let mut words = request_line.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let path = Path::new(target.strip_prefix('/')?);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    (method == "GET" && plain && !target.contains('%')).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(stream: &mut TcpStream, request: &str) -> (u16, Vec<u8>) {
        write!(stream, "{request}\r\nHost: a\r\n\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().strip_prefix("content-length: ") {
                Some(text) => length = text.parse().unwrap(),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        (status, body)
    }

    #[test]
    fn serves_files_below_its_directory_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        let root = dir.path().join("repository");
        let server = FileServer::start(&root).unwrap();
        std::fs::create_dir_all(root.join("indices/x")).unwrap();
        let large = vec![7; 300_000];
        std::fs::write(root.join("indices/x/__1"), &large).unwrap();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let found = ask(&mut stream, "GET /indices/x/__1 HTTP/1.1");
        assert!(found == (200, large));
        for other in ["GET /none", "GET /indices", "GET /../secret", "GET /%2e%2e/secret", "PUT /a"]
        {
            assert_eq!(ask(&mut stream, &format!("{other} HTTP/1.1")), (404, vec![]), "{other}");
        }
        let address = server.address();
        drop((stream, server));
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_connection_that_cannot_be_accepted_is_paused_for() {
        let failures = (0..3).map(|_| Err(io::Error::other("too many open files")));
        let pauses = std::cell::Cell::new(0);
        let pause = || pauses.set(pauses.get() + 1);
        serve_each(failures, Path::new("/none"), &AtomicBool::new(false), pause);
        assert_eq!(pauses.get(), 3);
    }
}
