//! What a link is like, and what it carried.

use std::io;
use std::time::Duration;

use super::Tcp;
use super::host::at_rate;

/// What a link is like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Round-trip time; half of it each way.
    pub rtt: Duration,
    /// Rate in each direction, shared by all connections; none is unlimited.
    pub rate_bytes_per_s: Option<u64>,
    /// Bytes that one connection may have sent and not yet acknowledged; none is unlimited.
    pub window_bytes: Option<u64>,
    /// Bytes that can wait in front of the line, in the virtual world; the rest is lost. None is without bound.
    pub queue_bytes: Option<u64>,
    /// TCP of its connections; without it, window and rate alone limit them. In the real world the kernel's runs, and
    /// of this only the loss can be set: it is emulated by its effect.
    pub tcp: Option<Tcp>,
}

impl LinkConfig {
    /// How long the link takes to send `bytes`.
    pub fn service(&self, bytes: u64) -> Duration {
        self.rate_bytes_per_s.map_or(Duration::ZERO, |rate| at_rate(bytes, rate))
    }

    /// Refuses parts that only the virtual world has.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`], naming it.
    pub fn check_real(&self) -> io::Result<()> {
        let beside_loss =
            |tcp: &Tcp| tcp.loss <= 0.0 || *tcp != Tcp { loss: tcp.loss, ..Tcp::default() };
        let tcp = self.tcp.as_ref().is_some_and(beside_loss);
        let set = [("tcp", tcp), ("queue_bytes", self.queue_bytes.is_some())];
        let Some((name, _)) = set.into_iter().find(|(_, set)| *set) else { return Ok(()) };
        let text = format!(
            "the link's {name} is modelled in virtual time alone: the kernel's own TCP runs in the real world"
        );
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    /// Half a round trip.
    pub fn one_way(&self) -> Duration {
        self.rtt / 2
    }
}

/// A direction of a link, seen from the side that connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the side that connects to the side that listens.
    Out,
    /// Back.
    Back,
}

/// What a link carried in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Bytes that left the link's queue.
    pub bytes: u64,
    /// Time in which it was sending.
    pub busy: Duration,
    /// Time in which at least one connection waited for what the line had lost, or for a window that a loss had
    /// reduced. A link of the real world does not tell it.
    pub held_by_loss: Duration,
}

/// What a link did over all connections and in both directions, where that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTimes {
    /// Time in which at least one byte was on the line: sent, or travelling.
    pub carrying: Duration,
    /// Time in which at least one connection had filled its window and waited for an acknowledgement.
    pub window_full: Duration,
}

/// What a link's connections and its queue are like, besides its round trip and rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkModel {
    /// Whether connections have TCP's windows, as [`LinkModel::tcp`] says.
    pub tcp_modelled: bool,
    /// TCP of its connections.
    pub tcp: Tcp,
    /// Rate in each direction, if the test bed and not the plan sets it. The opener of the link applies it.
    pub rate_bytes_per_s: Option<u64>,
    /// The receiver's window; none leaves the link's own.
    pub max_window_bytes: Option<u64>,
    /// Bytes that can wait in front of the line; the rest is lost. None is without bound.
    pub queue_bytes: Option<u64>,
}

impl LinkModel {
    /// A link with this behaviour.
    pub fn apply(&self, mut link: LinkConfig) -> LinkConfig {
        link.window_bytes = self.max_window_bytes.or(link.window_bytes);
        link.queue_bytes = self.queue_bytes;
        link.tcp = self.tcp_modelled.then(|| self.tcp.clone());
        link
    }
}
