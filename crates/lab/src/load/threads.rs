//! A load on real sockets, on threads of its own, so that the event loop of whoever waits for it does not disturb it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clusters::wire::WireHost;
use record::{DriverUse, LoadFigures};
use tokio::sync::oneshot;

use super::{Extent, Live, Load, Operation, Recorder, SocketClient, drive};
use crate::calibration::clock::thread_time;
use crate::error::{Error, Result};

/// The pause between checks whether stopped threads of loads have ended, and the number of checks: ten seconds in all.
const END_LOOK: Duration = Duration::from_millis(1);
const END_LOOKS: u32 = 10_000;

/// A load that goes on, on one thread or several. If this is dropped, the load is stopped.
pub struct Running {
    load: Load,
    operation: String,
    live: Arc<Live>,
    parts: Vec<oneshot::Receiver<Result<Part>>>,
}

/// What one thread did.
struct Part {
    recorder: Recorder,
    cpu: Duration,
    starved: Duration,
    wall: Duration,
}

/// Starts a load on `hosts` from `threads` threads, at least one, at most one for each client. Several share clients,
/// rate and requests equally. Fails if the operation names a parameter that is not there, its corpus cannot be opened,
/// or there is no thread to have.
pub fn start(
    load: &Load,
    operation: &Operation,
    hosts: &[WireHost],
    threads: u32,
    live: &Arc<Live>,
) -> Result<Running> {
    // Errors are found here rather than in a thread.
    operation.requests(load.seed, 0, 1)?;
    let threads = threads.clamp(1, load.clients.max(1));
    let mut parts = Vec::new();
    for number in 0..threads {
        let (sender, receiver) = oneshot::channel();
        let part = part_of(load, number, threads);
        let (operation, hosts, watched) = (operation.clone(), hosts.to_vec(), live.clone());
        let run = move || {
            let ended = run_part(&part, &operation, hosts, (number, threads), &watched);
            // Nobody waits for it any more where this fails.
            let _ = sender.send(ended);
        };
        std::thread::Builder::new().name(format!("load {number}")).spawn(run).map_err(
            |source| {
                live.stop();
                Error::Thread { source }
            },
        )?;
        parts.push(receiver);
    }
    Ok(Running { load: load.clone(), operation: operation.name.clone(), live: live.clone(), parts })
}

impl Running {
    /// Waits until it has ended, and answers its figures. Fails if a corpus cannot be read further, or a thread has
    /// panicked.
    pub async fn figures(mut self) -> Result<LoadFigures> {
        let mut whole: Option<Recorder> = None;
        let (mut cpu, mut used) = (Duration::ZERO, DriverUse::default());
        // Each stays until it has ended: dropped before that, the load is stopped.
        while let Some(receiver) = self.parts.first_mut() {
            let lost = |_| Error::Thread { source: std::io::Error::other("it has panicked") };
            let ended = receiver.await.map_err(lost);
            self.parts.remove(0);
            let part = ended??;
            let share = |time: Duration| time.as_secs_f64() / part.wall.as_secs_f64().max(1e-9);
            cpu += part.cpu;
            used.cpu_share = used.cpu_share.max(share(part.cpu));
            used.starved_share = used.starved_share.max(share(part.starved));
            match &mut whole {
                Some(whole) => whole.add(&part.recorder),
                None => whole = Some(part.recorder),
            }
        }
        used.cpu_us_per_request = cpu.as_secs_f64() * 1e6 / self.live.sent().max(1) as f64;
        let recorder = whole.expect("there is one thread at least");
        let figures = recorder.figures(&self.operation, &self.load);
        Ok(LoadFigures { driver: Some(used), ..figures })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.parts.is_empty() {
            self.live.stop();
        }
    }
}

/// Ends loads on threads of their own where the run is interrupted, and waits for them: a document that is written
/// after its index was deleted would make it anew.
pub(crate) struct Ending<'a>(pub(crate) &'a [Arc<Live>]);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|live| live.stop());
        for _ in 0..END_LOOKS {
            // Each of the threads holds one, too.
            if self.0.iter().all(|live| Arc::strong_count(live) == 1) {
                return;
            }
            std::thread::sleep(END_LOOK);
        }
    }
}

/// The part of a load that thread `number` of `threads` has.
fn part_of(load: &Load, number: u32, threads: u32) -> Load {
    let below = |whole: u64, n: u32| u128::from(whole) * u128::from(n) / u128::from(threads);
    let part = |whole: u64| (below(whole, number + 1) - below(whole, number)) as u64;
    let extent = |extent: Extent| match extent {
        Extent::Requests(requests) => Extent::Requests(part(requests)),
        time => time,
    };
    Load {
        clients: part(u64::from(load.clients)) as u32,
        arrival: load.arrival.part(1.0 / f64::from(threads)),
        warm_up: extent(load.warm_up),
        measured: extent(load.measured),
        // Each has gaps of its own, and other ones than any lap.
        gaps: load.gaps | (u64::from(number) << 32),
        offset: load.arrival.rate_per_s().map_or(Duration::ZERO, |rate_per_s| {
            Duration::from_secs_f64(f64::from(number) / rate_per_s)
        }),
        ..load.clone()
    }
}

fn run_part(
    load: &Load,
    operation: &Operation,
    hosts: Vec<WireHost>,
    (number, threads): (u32, u32),
    live: &Arc<Live>,
) -> Result<Part> {
    let requests = operation.requests(load.seed, u64::from(number), u64::from(threads))?;
    let hosts: Rc<[WireHost]> = hosts.into();
    world::real_world::run(load.seed, async move |env| {
        let (began, cpu, starved) = (env.now(), thread_time(), starved());
        let recorder = drive(&env, load, requests, |_| SocketClient::new(&hosts), live).await?;
        Ok(Part {
            recorder,
            cpu: thread_time() - cpu,
            starved: self::starved().saturating_sub(starved),
            wall: env.now() - began,
        })
    })
}

/// Time for which this thread was ready to run and had no core; zero where the system does not tell.
fn starved() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use world::Time;

    use super::*;
    use crate::load::{Arrival, Next, Starts};

    #[test]
    fn starts_of_several_threads_are_as_far_apart_as_those_of_one() {
        let load = Load {
            arrival: Arrival::Deterministic { rate_per_s: 100.0 },
            ..Load::closed(vec!["a:1".to_owned()], 8, Extent::Requests(40), 5)
        };
        let starts = |number: u32| {
            let mut starts = Starts::new(&part_of(&load, number, 4), Time(0));
            std::iter::from_fn(move || match starts.next(Time(0)) {
                Next::Start { at, .. } => Some(at),
                Next::End => None,
            })
        };
        let mut all: Vec<Time> = (0..4).flat_map(starts).collect();
        all.sort_unstable();
        let gap_ms = |two: &[Time]| ((two[1] - two[0]).as_secs_f64() * 1e3).round();
        assert_eq!(all.windows(2).map(gap_ms).collect::<Vec<_>>(), [10.0; 39]);
    }

    #[test]
    fn a_load_that_is_ended_sends_nothing_any_more() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        // It takes what comes, and never answers.
        std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
        let measured = Extent::Time(Duration::from_secs(3600));
        let load = Load {
            timeout: Duration::from_millis(300),
            ..Load::closed(vec![address.clone()], 4, measured, 5)
        };
        let lives = [Arc::new(Live::default())];
        let ending = Ending(&lives);
        let (health, hosts) = (Operation::get("a", "/"), [WireHost::plain(&address)]);
        let running = start(&load, &health, &hosts, 2, &lives[0]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        drop(running);
        assert!(Arc::strong_count(&lives[0]) > 1, "it has requests under way");
        drop(ending);
        assert_eq!(Arc::strong_count(&lives[0]), 1, "its threads have ended");
    }

    #[test]
    fn parts_of_a_load_are_the_whole() {
        let load = Load {
            arrival: Arrival::Poisson { rate_per_s: 90.0 },
            warm_up: Extent::Requests(10),
            ..Load::closed(vec!["a:1".to_owned()], 100, Extent::Requests(1_000_001), 5)
        };
        let parts: Vec<Load> = (0..3).map(|number| part_of(&load, number, 3)).collect();
        assert_eq!(parts.iter().map(|part| part.clients).sum::<u32>(), 100);
        let requests = |extent: Extent| match extent {
            Extent::Requests(requests) => requests,
            Extent::Time(_) => panic!("it was a number"),
        };
        assert_eq!(parts.iter().map(|part| requests(part.measured)).sum::<u64>(), 1_000_001);
        assert_eq!(parts.iter().map(|part| requests(part.warm_up)).sum::<u64>(), 10);
        assert!(parts.iter().all(|part| part.arrival.rate_per_s() == Some(30.0)));
        assert_ne!(parts[0].gaps, parts[1].gaps);
        assert_eq!(parts[0].seed, parts[1].seed, "requests do not depend on who sends them");
    }
}
