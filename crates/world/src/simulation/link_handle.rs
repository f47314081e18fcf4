//! The handle on a link, and addresses that lead through it.

use std::rc::{Rc, Weak};

use super::handle::Host;
use super::host::seeded_random;
use super::network::LinkState;
use super::world::World;
use crate::faults::LinkFaults;
use crate::model::{Direction, LinkConfig, LinkStats};

/// A link of the virtual world.
pub(crate) struct LinkHandle {
    world: Weak<World>,
    number: usize,
    state: Rc<LinkState>,
}

/// The first part of an address through a link; the link's number, a dot and the plain address follow.
const ROUTE: &str = "link";

impl World {
    /// The link that an address leads through, if any, and the address behind it.
    pub(super) fn through<'a>(&self, address: &'a str) -> (Option<Rc<LinkState>>, &'a str) {
        let route = address.strip_prefix(ROUTE).and_then(|rest| rest.split_once('.'));
        let found = route.and_then(|(number, plain)| {
            let link = self.links.borrow().get(number.parse::<usize>().ok()?).cloned()?;
            Some((Some(link), plain))
        });
        found.unwrap_or((None, address))
    }
}

impl Host {
    pub(crate) fn open_link(&self, config: LinkConfig) -> LinkHandle {
        let world = self.world();
        let mut links = world.links.borrow_mut();
        let number = links.len();
        let random =
            |direction: &str| seeded_random(world.seed, &format!("{ROUTE}{number} {direction}"));
        let state = LinkState::new(config, random);
        links.push(state.clone());
        LinkHandle { world: self.world.clone(), number, state }
    }
}

impl LinkHandle {
    pub(crate) fn route(&self, to: &str) -> String {
        format!("{ROUTE}{}.{to}", self.number)
    }

    pub(crate) fn configure(&self, config: LinkConfig) {
        self.state.configure(config);
    }

    pub(crate) fn faults(&self) -> &LinkFaults {
        &self.state.faults
    }

    pub(crate) fn healed(&self) {
        if self.world.strong_count() > 0 {
            self.state.heal();
        }
    }

    pub(crate) fn stats(&self, direction: Direction) -> LinkStats {
        let pipe = match direction {
            Direction::Out => &self.state.out,
            Direction::Back => &self.state.back,
        };
        let now = self.world.upgrade().map(|world| world.events.now()).unwrap_or_default();
        let held_by_loss = pipe.held_by_loss(now);
        LinkStats { bytes: pipe.bytes(), busy: pipe.busy(now), held_by_loss }
    }
}
