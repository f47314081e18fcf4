//! The handle on a link between clusters: an emulator in user space in the real world, a model in the virtual one.

use std::io;

use crate::env::{Arm, Env};
use crate::faults::LinkFaults;
use crate::model::{Direction, LinkConfig, LinkStats, LinkTimes};
use crate::{machine, simulation};

/// A link.
pub struct Link(LinkArm);

enum LinkArm {
    Real(machine::Emulator),
    Virtual(simulation::LinkHandle),
}

impl Link {
    /// Opens a link. It carries nothing until an address leads through it: see [`Link::route`].
    pub fn open(env: &Env, config: LinkConfig) -> Link {
        match &env.arm {
            Arm::Real(host) => Link(LinkArm::Real(machine::Emulator::new(host.clone(), config))),
            Arm::Virtual(host) => Link(LinkArm::Virtual(host.open_link(config))),
        }
    }

    /// An address that leads to `to` through the link. Fails in the real world if the link has what only the virtual
    /// one models ([`LinkConfig::check_real`]), if it cannot listen, or if `to` is where it listens itself.
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

    /// Has it carry no more connections than so many at once; others wait until one of them has closed. The virtual
    /// world has no handles that could run out, and so no bound.
    pub fn bound_connections(&self, max: usize) {
        if let LinkArm::Real(emulator) = &self.0 {
            emulator.bound_connections(max);
        }
    }

    /// The connections that it carries, where it can be bounded.
    pub fn connections(&self) -> Option<usize> {
        match &self.0 {
            LinkArm::Real(emulator) => Some(emulator.connections()),
            LinkArm::Virtual(_) => None,
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
        self.faults().set_cut(true);
    }

    /// Heals the link.
    pub fn heal(&self) {
        self.faults().set_cut(false);
        if let LinkArm::Virtual(link) = &self.0 {
            link.healed();
        }
    }

    /// Damages one byte in each of the next `pieces` large pieces on the way back.
    pub fn damage_next(&self, pieces: u32) {
        self.faults().damage_next(pieces);
    }

    /// What the link carried.
    pub fn stats(&self, direction: Direction) -> LinkStats {
        match &self.0 {
            LinkArm::Real(emulator) => emulator.stats(direction),
            LinkArm::Virtual(link) => link.stats(direction),
        }
    }

    /// When anything was on the line, and when windows were full. The virtual world does not measure it: what runs
    /// there accounts for its own time.
    pub fn times(&self) -> Option<LinkTimes> {
        match &self.0 {
            LinkArm::Real(emulator) => Some(emulator.times()),
            LinkArm::Virtual(_) => None,
        }
    }

    fn faults(&self) -> &LinkFaults {
        match &self.0 {
            LinkArm::Real(emulator) => emulator.faults(),
            LinkArm::Virtual(link) => link.faults(),
        }
    }
}
