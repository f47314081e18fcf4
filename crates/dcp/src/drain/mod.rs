//! Reads a bucket's changes and discards them: how fast can its producers send?
//!
//! Read-only: it opens connections, requests streams and acknowledges what it received. Flow control is always on.

mod report;

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc;
use world::{Env, LocalFuture, Task, Time};

use crate::client::{Client, ClientOptions, nodes_known_to};
use crate::codec::{EndReason, STREAM_ACTIVE_ONLY, STREAM_TO_LATEST};
use crate::consumer::{Consumer, ConsumerKind, Counts, Event, Follower, Sink};
use crate::{Error, Result};

pub use report::{ConnectionReport, DrainReport, VbucketReport};

/// A rate is kept by acknowledging late, so that up to a window comes at once: no more than the rate allows in this
/// time.
const EARLY_S: f64 = 5.0;

/// How to drain.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainSettings {
    /// Bytes that a connection may have unacknowledged. At least one.
    pub window_bytes: u32,
    /// Connections to each node.
    pub connections: u16,
    /// The most that all connections together receive; no more than it allows in five seconds comes earlier.
    pub rate_bytes_per_s: Option<f64>,
    /// The vbuckets to read; none for all that are active.
    pub vbuckets: Option<Vec<u16>>,
    /// Begins with what is written from now on, and does not end.
    pub follow: bool,
    /// The names of the connections, before their number.
    pub name: String,
}

impl DrainSettings {
    /// One connection to each node, which reads all that is there now as fast as it comes.
    pub fn new(window_bytes: u32, name: &str) -> DrainSettings {
        DrainSettings {
            window_bytes,
            connections: 1,
            rate_bytes_per_s: None,
            vbuckets: None,
            follow: false,
            name: name.to_owned(),
        }
    }
}

/// A running drain.
pub struct Drain {
    env: Env,
    began: Time,
    reports: mpsc::UnboundedReceiver<ConnectionEvent>,
    connections: Vec<Draining>,
    ended: usize,
    ends: BTreeMap<u16, String>,
    not_active: Vec<u16>,
}

/// One connection of it.
struct Draining {
    name: String,
    node: String,
    counts: Counts,
    vbuckets: Vec<u16>,
    began: Time,
    ended: Option<Time>,
    _task: Task<()>,
}

/// What a connection reports.
enum ConnectionEvent {
    /// The stream of a vbucket ended before all was sent.
    Ended(u16, String),
    /// All its streams have ended, or it broke.
    Done(usize, Time, Option<Error>),
}

impl Drain {
    /// Connects to every node that has vbuckets, and begins; the report names those that are active nowhere. Fails if a
    /// node cannot be reached, refuses us or flow control, or if none of the vbuckets is active.
    pub fn start<'a>(
        env: &'a Env,
        options: &'a ClientOptions,
        settings: &'a DrainSettings,
    ) -> LocalFuture<'a, Result<Drain>> {
        Box::pin(async move {
            let nodes = nodes_known_to(&mut Client::connect(env, options).await?, options).await?;
            let mut plan = Vec::new();
            let mut not_active: BTreeSet<u16> =
                settings.vbuckets.iter().flatten().copied().collect();
            for node in nodes {
                let at = ClientOptions { address: node, ..options.clone() };
                let mut client = Client::connect(env, &at).await?;
                let wanted =
                    |vb: &u16| settings.vbuckets.as_ref().is_none_or(|list| list.contains(vb));
                let seqnos = client.active_seqnos().await?;
                let here: Vec<(u16, u64)> =
                    seqnos.into_iter().filter(|(vb, _)| wanted(vb)).collect();
                for (vb, _) in &here {
                    not_active.remove(vb);
                }
                let connections = usize::from(settings.connections.max(1)).min(here.len());
                for place in 0..connections {
                    let own = here.iter().skip(place).step_by(connections).copied();
                    plan.push((at.clone(), own.collect::<Vec<_>>()));
                }
            }
            if plan.is_empty() {
                return Err(Error::Settings(
                    "none of the vbuckets is active anywhere: nothing can be drained".to_owned(),
                ));
            }
            let share = settings.rate_bytes_per_s.map(|rate| rate / plan.len() as f64);
            let (sender, reports) = mpsc::unbounded_channel();
            let (mut connections, all_began) = (Vec::new(), env.now());
            for (place, (at, vbuckets)) in plan.into_iter().enumerate() {
                let name = format!("{}-{}", settings.name, place + 1);
                let counts = Counts::default();
                let early_bytes = share.map_or(u32::MAX, |share| (share * EARLY_S) as u32);
                let window_bytes = settings.window_bytes.min(early_bytes);
                let limited =
                    DrainSettings { window_bytes, rate_bytes_per_s: share, ..settings.clone() };
                let follower = open(env, &at, &name, &counts, &vbuckets, &limited).await?;
                let began = env.now();
                let draining = drain(env.clone(), place, follower, sender.clone());
                connections.push(Draining {
                    name,
                    node: at.address,
                    counts,
                    vbuckets: vbuckets.into_iter().map(|(vb, _)| vb).collect(),
                    began,
                    ended: None,
                    _task: env.spawn("drains a connection", draining),
                });
            }
            Ok(Drain {
                env: env.clone(),
                began: all_began,
                reports,
                connections,
                ended: 0,
                ends: BTreeMap::new(),
                not_active: not_active.into_iter().collect(),
            })
        })
    }

    /// Waits until all streams have ended. Fails if a connection breaks.
    pub fn finish(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            while self.ended < self.connections.len() {
                let event = self.reports.recv().await;
                match event.expect("a connection that has not ended reports its end") {
                    ConnectionEvent::Ended(vb, why) => drop(self.ends.insert(vb, why)),
                    ConnectionEvent::Done(place, at, failure) => {
                        self.ended += 1;
                        if let Some(connection) = self.connections.get_mut(place) {
                            connection.ended = Some(at);
                        }
                        if let Some(error) = failure {
                            return Err(error);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// The report so far.
    pub fn report(&self) -> DrainReport {
        let now = self.env.now();
        // A finished drain took as long as its last connection.
        let last = self.connections.iter().map(|connection| connection.ended.unwrap_or(now)).max();
        let seconds = (last.unwrap_or(now) - self.began).as_secs_f64();
        let of_vbucket = |connection: &Draining, vb: u16| {
            let (count, end) = (connection.counts.of(vb), self.ends.get(&vb).cloned());
            VbucketReport { items: count.items(), bytes: count.bytes, seqno: count.at.last(), end }
        };
        let connections = self.connections.iter().map(|connection| ConnectionReport {
            name: connection.name.clone(),
            node: connection.node.clone(),
            seconds: (connection.ended.unwrap_or(now) - connection.began).as_secs_f64(),
            vbuckets: connection
                .vbuckets
                .iter()
                .map(|vb| (*vb, of_vbucket(connection, *vb)))
                .collect(),
        });
        let not_active = self.not_active.clone();
        DrainReport { seconds, connections: connections.collect(), not_active }
    }
}

async fn open(
    env: &Env,
    at: &ClientOptions,
    name: &str,
    counts: &Counts,
    vbuckets: &[(u16, u64)],
    settings: &DrainSettings,
) -> Result<Follower> {
    let mut client = Client::connect(env, at).await?;
    if settings.follow {
        for (vb, seqno) in vbuckets {
            let log = client.failover_log(*vb).await?;
            counts.begin_at(*vb, *seqno, log.first().map_or(0, |newest| newest.uuid));
        }
    }
    // Without a window the producer would send without bound.
    let window = settings.window_bytes.max(1);
    let mut consumer = Consumer::new(env, ConsumerKind::Fast, Sink::Count(counts.clone()), window);
    if let Some(rate) = settings.rate_bytes_per_s {
        consumer.cap(rate);
    }
    let mut follower = Follower::open(env, client, name, consumer, window).await?;
    let flags = if settings.follow { 0 } else { STREAM_TO_LATEST };
    for (vb, _) in vbuckets {
        follower.add_stream(*vb, flags | STREAM_ACTIVE_ONLY)?;
    }
    Ok(follower)
}

async fn drain(
    env: Env,
    place: usize,
    mut follower: Follower,
    told: mpsc::UnboundedSender<ConnectionEvent>,
) {
    let mut failure = None;
    loop {
        let event = match follower.event() {
            Some(event) => Some(event),
            None if follower.consumer().streams().next().is_none() => break,
            None => match follower.step().await {
                Ok(event) => event,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            },
        };
        let ended = match event {
            Some(Event::Refused { vb, status }) => (vb, format!("refused: {status}")),
            Some(Event::Ended { vb, reason }) if reason != EndReason::Ok => {
                (vb, reason.to_string())
            }
            _ => continue,
        };
        // The drain may have been dropped.
        let _ = told.send(ConnectionEvent::Ended(ended.0, ended.1));
    }
    if failure.is_none() {
        follower.wait_for_rate().await;
    }
    let _ = told.send(ConnectionEvent::Done(place, env.now(), failure));
}
