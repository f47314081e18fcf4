//! A link as a model: one pipe for each direction, shared by all connections over it.

use std::cell::RefCell;
use std::rc::Rc;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::pipe::Pipe;
use crate::faults::LinkFaults;
use crate::model::LinkConfig;
use crate::simulation::waiters::Waiters;

pub(in crate::simulation) struct LinkState {
    pub(in crate::simulation) config: RefCell<LinkConfig>,
    pub(in crate::simulation) out: Rc<Pipe>,
    pub(in crate::simulation) back: Rc<Pipe>,
    pub(in crate::simulation) faults: LinkFaults,
    /// Tasks that connect while the link is cut.
    pub(in crate::simulation) healed: Waiters,
}

impl LinkState {
    /// `random` makes the random numbers of a direction, from its name.
    pub(in crate::simulation) fn new(
        config: LinkConfig,
        random: impl Fn(&str) -> Xoshiro256PlusPlus,
    ) -> Rc<Self> {
        let faults = LinkFaults::default();
        let pipe = |direction| Pipe::of_link(&config, faults.clone(), random(direction));
        let (out, back) = (pipe("out"), pipe("back"));
        let (config, healed) = (RefCell::new(config), Waiters::default());
        Rc::new(LinkState { config, out, back, faults, healed })
    }

    pub(in crate::simulation) fn configure(&self, config: LinkConfig) {
        self.out.configure(&config);
        self.back.configure(&config);
        *self.config.borrow_mut() = config;
    }

    /// What stalled at the cut continues; tasks that wait to connect are woken.
    pub(in crate::simulation) fn heal(&self) {
        self.out.healed();
        self.back.healed();
        self.healed.wake();
    }
}
