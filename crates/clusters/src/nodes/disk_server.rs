//! A disk of given rates as a file: what the kernel reads of it and writes to it waits in the queue of such a disk. A
//! process of its own serves it, through FUSE; the file's bytes are in memory and go with that process.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use world::model::Disk;
use world::{DiskQueue, Time, Work};

use super::fuse::{Asked, Described, REQUEST_BYTES_MAX, Request};
use super::order::Order;
use crate::fault::{DiskRates, Strain};

/// The disk.
pub(super) const IMAGE: &str = "image";
/// To this file an [`Order`] is written that has the disk's rates.
pub(super) const RATES: &str = "rates";
/// Room for two copies of the largest index of the bench, and for what a node keeps besides.
const IMAGE_BYTES: u64 = 1 << 30;

const IMAGE_NUMBER: u64 = 2;
const DIRECTORY: Described = Described { file: 1, bytes: 0, is_directory: true };
const FILES: [(&str, Described); 2] = [
    (IMAGE, Described { file: IMAGE_NUMBER, bytes: IMAGE_BYTES, is_directory: false }),
    (RATES, Described { file: 3, bytes: 0, is_directory: false }),
];

/// Serves a disk to the kernel, whose requests are on standard input, until it is unmounted. Fails if standard input is
/// no mounted file system in user space, or there is no memory.
pub fn serve_disk() -> io::Result<()> {
    let kernel = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let image = File::from(memfd_create("narrows-disk", MemfdFlags::CLOEXEC)?);
    image.set_len(IMAGE_BYTES)?;
    let server = Server {
        kernel,
        image,
        began: Instant::now(),
        line: Mutex::default(),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| server.answer_in_time());
        let ended = server.take_in();
        server.line().has_ended = true;
        server.changed.notify_one();
        ended
    })
}

struct Server {
    kernel: File,
    image: File,
    began: Instant,
    line: Mutex<Line>,
    /// There is more in the line, or it moves otherwise.
    changed: Condvar,
}

/// What waits for the disk.
#[derive(Debug, Default)]
struct Line {
    /// None where nothing has to wait.
    disk: Option<(Disk, DiskQueue)>,
    /// Answers, and when they are due, in their order.
    waiting: VecDeque<(Time, Vec<u8>)>,
    has_ended: bool,
}

impl Line {
    /// Adds an answer behind all others; it is due when the disk has done the work.
    fn add(&mut self, now: Time, work: Work, answer: Vec<u8>) {
        let due = match &mut self.disk {
            Some((disk, queue)) => queue.reserve(now, disk, work),
            None => now,
        };
        self.waiting.push_back((due, answer));
    }

    /// From now on the disk has these rates; what waited is through.
    fn set(&mut self, rates: Option<DiskRates>) {
        self.disk = rates.map(|rates| (Disk::from(rates), DiskQueue::default()));
        self.waiting.iter_mut().for_each(|(due, _)| *due = Time(0));
    }

    /// The first answer, where it is due, or how long it has to wait; none where there is none.
    fn next(&mut self, now: Time) -> Option<Result<Vec<u8>, Duration>> {
        let (due, _) = self.waiting.front()?;
        if *due > now {
            return Some(Err(*due - now));
        }
        self.waiting.pop_front().map(|(_, answer)| Ok(answer))
    }
}

impl Server {
    fn now(&self) -> Time {
        Time(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in requests until there is no file system any more.
    fn take_in(&self) -> io::Result<()> {
        let mut request = vec![0; REQUEST_BYTES_MAX];
        loop {
            match (&self.kernel).read(&mut request) {
                // It is something else that has ended.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => {
                    if let Some(request) = Request::of(&request[..bytes]) {
                        self.take(request);
                    }
                }
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
                    return Ok(());
                }
                // A request was taken back before it was read, or a signal came.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&self, request: Request<'_>) {
        let is_image = request.file == IMAGE_NUMBER;
        let answer = match request.asked {
            Asked::Nothing => return,
            Asked::Begin { offered } => request.begun(offered),
            Asked::Find { name } => {
                match FILES.iter().find(|(called, _)| called.as_bytes() == name) {
                    Some((_, found)) => request.found(*found),
                    None => request.refuse(Errno::NOENT),
                }
            }
            Asked::Describe => {
                let file = FILES.iter().find(|(_, file)| file.file == request.file);
                request.described(file.map_or(DIRECTORY, |(_, file)| *file))
            }
            Asked::Open => request.opened(),
            Asked::Read { offset, bytes } if is_image => return self.read(&request, offset, bytes),
            Asked::Read { .. } => request.bytes(&[]),
            Asked::Write { offset, bytes } if is_image => {
                return self.write(&request, offset, bytes);
            }
            Asked::Write { bytes, .. } => match rates(bytes) {
                Some(rates) => {
                    self.line().set(rates);
                    self.changed.notify_one();
                    request.written(bytes.len())
                }
                None => request.refuse(Errno::INVAL),
            },
            Asked::Other => request.refuse(Errno::NOSYS),
        };
        self.send(&answer);
    }

    fn read(&self, request: &Request<'_>, offset: u64, bytes: u32) {
        let left = IMAGE_BYTES.saturating_sub(offset).min(u64::from(bytes));
        let mut read = vec![0; left as usize];
        let answer = match self.image.read_exact_at(&mut read, offset) {
            Ok(()) => request.bytes(&read),
            Err(_) => request.refuse(Errno::IO),
        };
        self.queue(Work::DiskRead { bytes: left }, answer);
    }

    fn write(&self, request: &Request<'_>, offset: u64, bytes: &[u8]) {
        let answer = match self.image.write_all_at(bytes, offset) {
            Ok(()) => request.written(bytes.len()),
            // There is no memory.
            Err(_) => request.refuse(Errno::IO),
        };
        self.queue(Work::DiskWrite { bytes: bytes.len() as u64 }, answer);
    }

    fn queue(&self, work: Work, answer: Vec<u8>) {
        self.line().add(self.now(), work, answer);
        self.changed.notify_one();
    }

    /// Answers what waits for the disk, each when it is due.
    fn answer_in_time(&self) {
        let mut line = self.line();
        while !line.has_ended {
            line = match line.next(self.now()) {
                Some(Ok(answer)) => {
                    drop(line);
                    self.send(&answer);
                    self.line()
                }
                Some(Err(wait)) => match self.changed.wait_timeout(line, wait) {
                    Ok((line, _)) => line,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                None => self.changed.wait(line).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Fails only where nobody waits for it any more.
    fn send(&self, answer: &[u8]) {
        let _ = (&self.kernel).write(answer);
    }
}

/// The rates that an order has; none where it is another one.
fn rates(bytes: &[u8]) -> Option<Option<DiskRates>> {
    match Order::of(std::str::from_utf8(bytes).ok()?.trim_end())? {
        Order::Strain(Strain::Disk(rates)) => Some(rates),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Work = Work::DiskWrite { bytes: 1_000_000 };
    const RATES: DiskRates =
        DiskRates { read_bytes_per_s: 10_000_000, write_bytes_per_s: 1_000_000 };

    #[test]
    fn what_is_written_waits_for_what_came_before_it_and_takes_as_long_as_the_disk() {
        let mut line = Line::default();
        line.set(Some(RATES));
        line.add(Time(0), WRITE, vec![1]);
        line.add(Time(0), Work::DiskRead { bytes: 1_000_000 }, vec![2]);
        let seek = Disk::default().seek;
        let (first, second) =
            (Duration::from_secs(1) + seek, Duration::from_millis(1100) + 2 * seek);
        assert_eq!(line.next(Time(0)), Some(Err(first)));
        assert_eq!(line.next(Time(0) + first), Some(Ok(vec![1])));
        assert_eq!(line.next(Time(0) + first), Some(Err(second - first)));
        assert_eq!(line.next(Time(0) + second), Some(Ok(vec![2])));
        assert_eq!(line.next(Time(0) + second), None);
    }

    #[test]
    fn what_waits_for_a_slow_disk_is_through_once_that_is_fast_and_stays_in_order() {
        let mut line = Line::default();
        line.set(Some(DiskRates { write_bytes_per_s: 1, ..RATES }));
        line.add(Time(0), WRITE, vec![1]);
        line.set(None);
        line.add(Time(0), WRITE, vec![2]);
        assert_eq!(line.next(Time(0)), Some(Ok(vec![1])));
        assert_eq!(line.next(Time(0)), Some(Ok(vec![2])));
        assert_eq!(line.next(Time(0)), None);
    }

    #[test]
    fn only_an_order_that_has_rates_sets_them() {
        assert_eq!(rates(b"disk 10000000 1000000\n"), Some(Some(RATES)));
        assert_eq!(rates(b"disk own"), Some(None));
        for other in [&b"slow 4"[..], b"collect 0.5", b"disk 1", b"", b"\xff"] {
            assert_eq!(rates(other), None);
        }
    }
}
