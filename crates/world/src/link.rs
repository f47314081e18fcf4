//! A link between clusters: round trip, rate, window; cut and healed. The same handle in both worlds: an
//! emulator in user space in the real one, a model in the virtual one.

use std::io;
use std::time::Duration;

use crate::env::Arm;
use crate::model::{Tcp, at_rate};
use crate::{Env, real_world, virtual_world};

/// What a link is like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Round-trip time; half of it each way.
    pub rtt: Duration,
    /// Rate in each direction, shared by all connections; none is unlimited.
    pub rate_bytes_per_s: Option<u64>,
    /// Bytes that one connection may have sent and not yet acknowledged; none is unlimited.
    pub window_bytes: Option<u64>,
    /// Bytes that wait in front of the line, in the virtual world; what comes on top is lost. None is without
    /// bound.
    pub queue_bytes: Option<u64>,
    /// TCP of its connections, in the virtual world; none sends as fast as the window and the rate let it.
    pub tcp: Option<Tcp>,
}

impl LinkConfig {
    /// How long the link takes to send `bytes`.
    pub fn service(&self, bytes: u64) -> Duration {
        match self.rate_bytes_per_s {
            Some(rate) => at_rate(bytes, rate),
            None => Duration::ZERO,
        }
    }

    /// Refuses what only the virtual world has.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`], naming it.
    pub fn check_real(&self) -> io::Result<()> {
        let set = [("tcp", self.tcp.is_some()), ("queue_bytes", self.queue_bytes.is_some())];
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
}

/// A link.
pub struct Link(LinkArm);

enum LinkArm {
    Real(real_world::Emulator),
    Virtual(virtual_world::LinkHandle),
}

impl Link {
    /// Opens a link. It carries nothing until a way through it is made by [`Link::route`].
    pub fn open(env: &Env, config: LinkConfig) -> Link {
        match &env.arm {
            Arm::Real(_) => Link(LinkArm::Real(real_world::Emulator::new(env.clone(), config))),
            Arm::Virtual(host) => Link(LinkArm::Virtual(host.open_link(config))),
        }
    }

    /// An address that leads to `to` through the link. In the real world, as [`LinkConfig::check_real`].
    pub async fn route(&self, to: &str) -> io::Result<String> {
        self.route_from("127.0.0.1:0", to).await
    }

    /// As [`Link::route`], listening on a given address; the virtual world does not need one.
    pub async fn route_from(&self, listen: &str, to: &str) -> io::Result<String> {
        match &self.0 {
            LinkArm::Real(emulator) => emulator.route(listen, to).await,
            LinkArm::Virtual(link) => Ok(link.route(to)),
        }
    }

    /// Changes round trip, rate, window and queue for what comes from now on, and TCP for new connections.
    ///
    /// # Errors
    /// As [`LinkConfig::check_real`]; nothing changes then.
    pub fn configure(&self, config: LinkConfig) -> io::Result<()> {
        match &self.0 {
            LinkArm::Real(emulator) => {
                config.check_real()?;
                emulator.configure(config);
            }
            LinkArm::Virtual(link) => link.configure(config),
        }
        Ok(())
    }

    /// Cuts the link: nothing passes, nothing is lost.
    pub fn cut(&self) {
        self.cut_state().set(true);
    }

    /// Heals the link.
    pub fn heal(&self) {
        self.cut_state().set(false);
        if let LinkArm::Virtual(link) = &self.0 {
            link.healed();
        }
    }

    /// Damages one byte in each of the next `chunks` large pieces on the way back.
    pub fn damage_next(&self, chunks: u32) {
        self.cut_state().damage_next(chunks);
    }

    /// What the link carried.
    pub fn stats(&self, direction: Direction) -> LinkStats {
        match &self.0 {
            LinkArm::Real(emulator) => emulator.stats(direction),
            LinkArm::Virtual(link) => link.stats(direction),
        }
    }

    fn cut_state(&self) -> &crate::cut::Cut {
        match &self.0 {
            LinkArm::Real(emulator) => emulator.cut_state(),
            LinkArm::Virtual(link) => link.cut_state(),
        }
    }
}
