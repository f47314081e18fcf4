//! The driver: N clients on one event loop, in either world.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use world::{Env, Task, Time};

use super::client::Client;
use super::deadlines::Deadlines;
use super::scroll::ask_pages;
use super::{Failure, HostTurn, Load, Next, Recorder, Request, Requests, Sample, Starts};
use crate::error::{Error, Result};

/// How often the driver checks for answers that take too long: this part of the limit, within bounds.
const LOOK_PART: u32 = 20;
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(100);

/// A load while it goes on, seen from any thread.
#[derive(Debug, Default)]
pub struct Live {
    /// Requests that were answered well so far, warm-up included.
    pub answered: AtomicU64,
    /// Requests that were not.
    pub failed: AtomicU64,
    stop: AtomicBool,
    /// Notified when the load is stopped, too.
    stopped: Notify,
}

impl Live {
    /// Ends the load: nothing more is sent, what is under way is waited for.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.stopped.notify_waiters();
    }

    /// Waits until it is to end.
    pub async fn stopped(&self) {
        // Before the look: what is told from now on is heard.
        let notified = self.stopped.notified();
        if !self.is_stopped() {
            notified.await;
        }
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Requests that have ended, well or not, warm-up included.
    pub fn sent(&self) -> u64 {
        self.answered.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed)
    }
}

/// What the clients of a driver share.
struct Shared {
    env: Env,
    timeout: Duration,
    /// From the start of a client to that of the next.
    between_clients: Duration,
    starts: RefCell<Starts>,
    hosts: RefCell<HostTurn>,
    requests: RefCell<Box<dyn Requests>>,
    recorder: RefCell<Recorder>,
    deadlines: Deadlines,
    /// Notified when the load is stopped.
    stopped: Notify,
    failure: RefCell<Option<Error>>,
    live: Arc<Live>,
}

/// Sends `requests` as `load` says, and answers with what was recorded. `client` makes the n-th of the load's clients.
/// It ends with the load, with the requests, or when `live` is stopped. If it is dropped before, nothing is left
/// running. Fails if there are no more requests because a corpus cannot be read further.
pub async fn drive<C: Client>(
    env: &Env,
    load: &Load,
    requests: Box<dyn Requests>,
    client: impl Fn(usize) -> C,
    live: &Arc<Live>,
) -> Result<Recorder> {
    let clients = load.clients.max(1) as usize;
    let shared = Rc::new(Shared {
        env: env.clone(),
        timeout: load.timeout,
        between_clients: load.ramp_up / clients as u32,
        starts: RefCell::new(Starts::new(load, env.now())),
        hosts: RefCell::new(HostTurn::new(load.hosts.len(), 0)),
        requests: RefCell::new(requests),
        recorder: RefCell::new(Recorder::new(load)),
        deadlines: Deadlines::new(clients),
        stopped: Notify::new(),
        failure: RefCell::new(None),
        live: live.clone(),
    });
    let looks = shared.clone();
    let _looks = env.spawn("load deadlines", async move { looks.look_for_the_late().await });
    let start = |number: usize| -> Task<()> {
        let (shared, client) = (shared.clone(), client(number));
        env.spawn("load client", async move { shared.serve(number, client).await })
    };
    let tasks: Vec<Task<()>> = (0..clients).map(start).collect();
    for task in tasks {
        // A task is cancelled only with its host, and then this one is cancelled, too.
        let _ = task.await;
    }
    if let Some(error) = shared.failure.take() {
        return Err(error);
    }
    // A rate that is low may have no start in the rest of the time, which is measured all the same.
    let end = shared.starts.borrow().end();
    if let Some(end) = end {
        shared.wait_until(end).await;
    }
    let mut recorder = shared.recorder.borrow().clone();
    recorder.close_after(&mut shared.starts.borrow_mut(), env.now());
    Ok(recorder)
}

impl Shared {
    async fn serve<C: Client>(&self, number: usize, mut client: C) {
        let mut free = self.starts.borrow().first_free(self.env.now());
        if number > 0 && !self.between_clients.is_zero() {
            if !self.wait_until(self.env.now() + self.between_clients * number as u32).await {
                return;
            }
            free = self.env.now();
        }
        loop {
            let next = self.starts.borrow_mut().next(free);
            let Next::Start { at, measured } = next else { return };
            self.recorder.borrow_mut().follow(&self.starts.borrow());
            if at > free && !self.wait_until(at).await {
                return;
            }
            let Some(request) = self.request(number) else { return };
            // To make a request may take long, hundreds of milliseconds of a bulk from a compressed file: that is the
            // driver's time, not the cluster's.
            let made = self.env.now();
            let Some((host, started)) = self.host(made).await else { return };
            let until = started + self.timeout;
            let answer = match request.pages {
                0 | 1 => self.deadlines.within(number, until, client.ask(host, &request)).await,
                _ => {
                    let goes_on = || {
                        self.deadlines.renew(number, self.env.now() + self.timeout);
                        !self.live.is_stopped()
                    };
                    let asked = ask_pages(&mut client, host, &request, goes_on);
                    self.deadlines.within(number, until, asked).await
                }
            };
            let ended = self.env.now();
            let answer = answer.unwrap_or_else(|| {
                client.give_up(host);
                Err(Failure::NoAnswer)
            });
            let bytes = answer.as_ref().map_or(0, |reply| reply.bytes);
            let outcome = answer.and_then(|reply| request.check.judge(reply.status, client.body()));
            if outcome == Err(Failure::Unreachable) {
                self.hosts.borrow_mut().unreachable(host, ended);
            }
            let counter = if outcome.is_ok() { &self.live.answered } else { &self.live.failed };
            counter.fetch_add(1, Ordering::Relaxed);
            let documents = request.documents;
            let sample = Sample {
                host,
                intended: at,
                // A wait for a host is not the driver's.
                free: free.max(at) + (started - made),
                started,
                ended,
                measured,
                bytes,
                documents,
                outcome,
            };
            self.recorder.borrow_mut().record(&sample);
            free = ended;
        }
    }

    /// The next request of a client; none at their end.
    fn request(&self, client: usize) -> Option<Request> {
        match self.requests.borrow_mut().next(client) {
            Some(Ok(request)) => return Some(request),
            Some(Err(error)) => *self.failure.borrow_mut() = Some(error),
            None => {}
        }
        self.stop();
        None
    }

    /// The host to ask, and the time, which was `now` before. Where no host can be reached, waits until one is tried
    /// again; none if the load ends meanwhile.
    async fn host(&self, mut now: Time) -> Option<(usize, Time)> {
        loop {
            let found = self.hosts.borrow_mut().next(now);
            match found {
                Ok(host) => return Some((host, now)),
                Err(until) if self.wait_until(until).await => now = self.env.now(),
                Err(_) => return None,
            }
        }
    }

    /// Waits until then; answers whether the load still goes on.
    async fn wait_until(&self, when: Time) -> bool {
        if self.starts.borrow().is_stopped() {
            return false;
        }
        tokio::select! {
            biased;
            () = self.env.sleep_until(when) => true,
            () = self.stopped.notified() => false,
        }
    }

    fn stop(&self) {
        self.starts.borrow_mut().stop();
        self.stopped.notify_waiters();
    }

    async fn look_for_the_late(&self) {
        let every = (self.timeout / LOOK_PART).clamp(LOOK_MIN, LOOK_MAX);
        loop {
            self.env.sleep(every).await;
            if self.live.is_stopped() {
                self.starts.borrow_mut().interrupt(self.env.now());
                self.stopped.notify_waiters();
            }
            self.deadlines.look(self.env.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use record::LoadFigures;

    use super::*;
    use crate::load::{Arrival, Check, Content, Extent, Operation, Reply};

    /// How long it takes to make a request.
    const MAKING: Duration = Duration::from_millis(100);

    struct SlowRequests;

    impl Requests for SlowRequests {
        fn next(&mut self, _: usize) -> Option<Result<Request>> {
            std::thread::sleep(MAKING);
            Some(Ok(Request {
                method: "GET".into(),
                path: "/".into(),
                body: bytes::Bytes::new(),
                check: Check::Status,
                documents: 0,
                pages: 1,
            }))
        }
    }

    /// A cluster that takes no time.
    struct Prompt;

    impl Client for Prompt {
        async fn ask(&mut self, _: usize, _: &Request) -> Result<Reply, Failure> {
            Ok(Reply { status: 200, bytes: 2 })
        }

        fn body(&self) -> &[u8] {
            b"{}"
        }

        fn give_up(&mut self, _: usize) {}
    }

    fn load(arrival: Arrival, requests: u64) -> Load {
        let hosts = vec!["a:9200".to_owned()];
        Load { arrival, ..Load::closed(hosts, 1, Extent::Requests(requests), 1) }
    }

    /// In the real world, where making a request takes time.
    fn slowly_made(load: &Load) -> LoadFigures {
        world::real_world::run(1, async |env| {
            let (requests, live) = (Box::new(SlowRequests), Arc::default());
            drive(&env, load, requests, |_| Prompt, &live).await.unwrap().figures("x", load)
        })
    }

    #[test]
    fn to_make_a_request_takes_the_drivers_time_and_not_the_clusters() {
        // A busy machine may stop a thread for a while, but not in most of the requests.
        let half_ms = MAKING.as_secs_f64() * 1e3 / 2.0;
        let closed = slowly_made(&load(Arrival::Closed, 5));
        assert!(closed.service_time.unwrap().p50_ms < half_ms, "{closed:?}");
        assert_eq!(closed.latency, closed.service_time, "a closed loop sends what is made");
        assert!(closed.slipped_starts >= 3, "{closed:?}");
        // All are due at once, so that the last waits until five are made.
        let late = slowly_made(&load(Arrival::Deterministic { rate_per_s: 1e6 }, 5));
        assert!(late.service_time.unwrap().p50_ms < half_ms, "{late:?}");
        assert!(late.latency.unwrap().p100_ms > 4.9 * MAKING.as_secs_f64() * 1e3, "{late:?}");
        assert!(late.slipped_starts >= 3, "{late:?}");
    }

    #[test]
    fn the_time_is_measured_to_its_end_where_nothing_starts_any_more() {
        let figures = world::virtual_world::run(1, async |env| {
            let requests = Box::new(SlowRequests);
            let load = Load {
                measured: Extent::Time(Duration::from_secs(2)),
                ..load(Arrival::Deterministic { rate_per_s: 0.1 }, 1)
            };
            let driven = drive(&env, &load, requests, |_| Prompt, &Arc::default()).await;
            driven.unwrap().figures("x", &load)
        });
        assert_eq!((figures.requests, figures.seconds), (1, 2.0));
        assert!((figures.throughput.mean_per_s - 0.5).abs() < 1e-9, "{:?}", figures.throughput);
    }

    /// A scroll whose pages never end, and take 40 seconds each.
    struct SlowPages(Env);

    impl Client for SlowPages {
        async fn ask(&mut self, _: usize, _: &Request) -> Result<Reply, Failure> {
            self.0.sleep(Duration::from_secs(40)).await;
            Ok(Reply { status: 200, bytes: 100 })
        }

        fn body(&self) -> &[u8] {
            br#"{"_scroll_id":"abc=","hits":{"hits":[{}]}}"#
        }

        fn give_up(&mut self, _: usize) {}
    }

    #[test]
    fn each_page_of_a_scroll_may_take_as_long_as_a_request() {
        let figures = world::virtual_world::run(1, async |env| {
            let (path, body) = ("/a/_search?scroll=10s".to_owned(), "{}".to_owned());
            let content = Content::Scroll { path, body, pages: 3 };
            let requests = Operation { name: "x".to_owned(), content }.requests(1, 0, 1).unwrap();
            let load = load(Arrival::Closed, 1);
            assert_eq!(load.timeout, Duration::from_secs(60));
            let client = |_| SlowPages(env.clone());
            let driven = drive(&env, &load, requests, client, &Arc::default()).await;
            driven.unwrap().figures("x", &load)
        });
        assert_eq!((figures.requests, figures.failed()), (1, 0), "{:?}", figures.errors);
        // Three pages, and the end of the scroll.
        assert!((figures.seconds - 160.0).abs() < 1e-6, "{}", figures.seconds);
    }
}
