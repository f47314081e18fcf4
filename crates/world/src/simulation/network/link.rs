//! The link as a model: two pipes, shared by all that pass.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::World;
use super::host::{Host, chance};
use super::pipe::Pipe;
use super::waiters::Waiters;
use crate::cut::Cut;
use crate::link::{Direction, LinkConfig, LinkStats};

pub(super) struct LinkState {
    pub(super) config: RefCell<LinkConfig>,
    pub(super) out: Rc<Pipe>,
    pub(super) back: Rc<Pipe>,
    pub(super) cut: Cut,
    /// Those who connect while it is cut.
    pub(super) healed: Waiters,
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
        let mut links = world.links.borrow_mut();
        let number = links.len();
        let pipe = |way: &str| {
            let random = chance(world.seed, &format!("{ROUTE}{number} {way}"));
            Pipe::of_link(&config, cut.clone(), random)
        };
        let (out, back) = (pipe("out"), pipe("back"));
        let (config, healed) = (RefCell::new(config), Waiters::default());
        let state = Rc::new(LinkState { config, out, back, cut, healed });
        links.push(state.clone());
        LinkHandle { world: self.world.clone(), number, state }
    }
}

impl LinkHandle {
    pub(crate) fn route(&self, to: &str) -> String {
        format!("{ROUTE}{}.{to}", self.number)
    }

    pub(crate) fn configure(&self, config: LinkConfig) {
        self.state.out.configure(&config);
        self.state.back.configure(&config);
        *self.state.config.borrow_mut() = config;
    }

    pub(crate) fn cut_state(&self) -> &Cut {
        &self.state.cut
    }

    pub(crate) fn healed(&self) {
        if let Some(world) = self.world.upgrade() {
            self.state.out.healed(&world);
            self.state.back.healed(&world);
            self.state.healed.wake();
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
