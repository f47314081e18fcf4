//! The link as a model: two pipes, shared by all that pass.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::World;
use super::flow::Pipe;
use super::host::Host;
use crate::cut::Cut;
use crate::link::{Direction, LinkConfig, LinkStats};

pub(super) struct LinkState {
    pub(super) config: RefCell<LinkConfig>,
    pub(super) out: Rc<Pipe>,
    pub(super) back: Rc<Pipe>,
    pub(super) cut: Cut,
}

/// A link of the virtual world.
pub(crate) struct LinkHandle {
    world: Weak<World>,
    number: usize,
    state: Rc<LinkState>,
}

impl World {
    pub(super) fn link(&self, number: &str) -> Option<Rc<LinkState>> {
        self.links.borrow().get(number.parse::<usize>().ok()?).cloned()
    }
}

impl Host {
    pub(crate) fn open_link(&self, config: LinkConfig) -> LinkHandle {
        let world = self.world();
        let cut = Cut::default();
        let pipe = || Pipe::with_cut(config.rate_bytes_per_s, config.one_way(), cut.clone());
        let (out, back) = (pipe(), pipe());
        let state = Rc::new(LinkState { config: RefCell::new(config), out, back, cut });
        let mut links = world.links.borrow_mut();
        links.push(state.clone());
        LinkHandle { world: self.world.clone(), number: links.len() - 1, state }
    }
}

impl LinkHandle {
    pub(crate) fn route(&self, to: &str) -> String {
        format!("{to}@{}", self.number)
    }

    pub(crate) fn configure(&self, config: LinkConfig) {
        self.state.out.configure(config.rate_bytes_per_s, config.one_way());
        self.state.back.configure(config.rate_bytes_per_s, config.one_way());
        *self.state.config.borrow_mut() = config;
    }

    pub(crate) fn cut_state(&self) -> &Cut {
        &self.state.cut
    }

    pub(crate) fn healed(&self) {
        if let Some(world) = self.world.upgrade() {
            self.state.out.healed(&world);
            self.state.back.healed(&world);
        }
    }

    pub(crate) fn stats(&self, direction: Direction) -> LinkStats {
        let pipe = match direction {
            Direction::Out => &self.state.out,
            Direction::Back => &self.state.back,
        };
        let now = self.world.upgrade().map(|world| world.events.now()).unwrap_or_default();
        LinkStats { bytes: pipe.bytes(), busy: pipe.busy(now) }
    }
}
