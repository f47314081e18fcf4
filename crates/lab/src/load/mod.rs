//! Load on a cluster: requests at a pace, and how long each took.
//!
//! | file | holds |
//! | --- | --- |
//! | `schedule` | when requests start: as clients come free, or at a rate; warm-up and end. Pure |
//! | `operation` | what is sent: method, path, body, parameters drawn from a seed. Pure |
//! | `check` | when an answer is a good one. Pure |
//! | `hosts` | which host is next, and which is left out for a while. Pure |
//! | `samples` | some of the requests one by one. Pure |
//! | `failure` | why an answer, or none, is no good one. Pure |
//! | `recorder`, `windows` | latency from the intended start, service time, errors; throughput in windows. Pure |
//! | `client`, `scroll` | [`Client`]: what requests are sent through; the further pages of a search |
//! | `deadlines` | giving up on answers, for all clients at once |
//! | `driver` | [`drive`]: N clients on one event loop, against anything that is one |
//! | `messages` | a load in the virtual world, and its client |
//! | `sockets`, `threads` | one of the real world; a load on threads of its own: [`start`] |
//!
//! Latency is counted from the moment at which a request was to start, not from when the driver came to it: in an open
//! loop a cluster that stalls is charged with every request that would have been sent meanwhile (no coordinated
//! omission). In a closed loop a request is due when it is sent. Service time is counted from then in every loop: what
//! it takes to make a request is the driver's time.

mod check;
mod client;
mod deadlines;
mod driver;
mod failure;
mod hosts;
mod messages;
mod operation;
mod recorder;
mod samples;
mod schedule;
mod scroll;
mod sockets;
mod threads;
mod windows;

use std::time::Duration;

pub use check::Check;
pub use client::{Client, Reply};
pub use driver::{Live, drive};
pub use failure::Failure;
pub use hosts::HostTurn;
pub use messages::{MessageClient, in_virtual_time};
pub use operation::{BulkPart, Content, Draw, Operation, Request, Requests};
pub use recorder::{Recorder, Sample};
pub use schedule::{Next, Starts};
pub use sockets::SocketClient;
pub(crate) use threads::Ending;
pub use threads::{Running, start};

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Each client sends its next request when the one before was answered.
    Closed,
    /// At this rate, equally spaced.
    Deterministic {
        /// Starts a second, over all clients.
        rate_per_s: f64,
    },
    /// At this rate, independent of each other: gaps are exponential.
    Poisson {
        /// Starts a second, over all clients.
        rate_per_s: f64,
    },
}

impl Arrival {
    /// Intended starts a second; none in a closed loop.
    pub fn rate_per_s(self) -> Option<f64> {
        match self {
            Arrival::Closed => None,
            Arrival::Deterministic { rate_per_s } | Arrival::Poisson { rate_per_s } => {
                Some(rate_per_s)
            }
        }
    }

    /// The same at a share of the rate.
    pub fn part(self, share: f64) -> Arrival {
        match self {
            Arrival::Closed => Arrival::Closed,
            Arrival::Deterministic { rate_per_s } => {
                Arrival::Deterministic { rate_per_s: rate_per_s * share }
            }
            Arrival::Poisson { rate_per_s } => Arrival::Poisson { rate_per_s: rate_per_s * share },
        }
    }
}

/// How long something goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// For so long.
    Time(Duration),
    /// For so many requests, over all clients.
    Requests(u64),
}

impl Extent {
    /// No time at all.
    pub const NONE: Extent = Extent::Time(Duration::ZERO);

    /// A number of requests times `scale`, at least one; a time is what it is.
    pub fn scaled(self, scale: f64) -> Extent {
        match self {
            Extent::Requests(requests) => {
                Extent::Requests(((requests as f64 * scale).round() as u64).max(1))
            }
            time => time,
        }
    }
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Where requests go: REST addresses, `host:port`, each in turn. At least one.
    pub hosts: Vec<String>,
    /// Clients, at least one: in a closed loop the requests that are always under way, in an open one the most that may
    /// be. A start for which no client is free waits, and its latency counts the wait.
    pub clients: u32,
    /// When requests start.
    pub arrival: Arrival,
    /// What is sent before anything is measured.
    pub warm_up: Extent,
    /// What is measured.
    pub measured: Extent,
    /// An answer that takes longer is given up.
    pub timeout: Duration,
    /// Throughput is counted in windows of this length.
    pub window: Duration,
    /// Over which time the clients begin, one after another; part of the warm-up.
    pub ramp_up: Duration,
    /// Seed of gaps and parameters.
    pub seed: u64,
    /// Which of the seed's sequences of gaps: laps send the same requests, in gaps of their own.
    pub gaps: u64,
    /// How long after it begins the first of equally spaced starts is: threads that share a load take turns.
    pub offset: Duration,
}

impl Load {
    /// A closed loop of `clients` on `hosts`, of `measured`, without a warm-up; windows of a second.
    pub fn closed(hosts: Vec<String>, clients: u32, measured: Extent, seed: u64) -> Load {
        Load {
            hosts,
            clients,
            arrival: Arrival::Closed,
            warm_up: Extent::NONE,
            measured,
            timeout: Duration::from_secs(60),
            window: Duration::from_secs(1),
            ramp_up: Duration::ZERO,
            seed,
            gaps: 0,
            offset: Duration::ZERO,
        }
    }
}
