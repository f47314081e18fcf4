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

/// What an address through a link begins with; the link's number, a dot and the plain address follow.
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
        format!("{ROUTE}{}.{to}", self.number)
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
