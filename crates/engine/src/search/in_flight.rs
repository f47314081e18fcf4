//! Requests to copies while they are in flight: every one is counted until it ends, however it ends.

use super::service::SearchService;
use std::rc::Rc;
use std::time::Duration;

use world::Time;

use super::oracle::Truth;
use policy::selection::NodeFeedback;

/// A request to a node. One that is dropped before [`InFlight::answered`] or [`InFlight::failed`] counts as abandoned.
pub(super) struct InFlight {
    service: Rc<SearchService>,
    name: String,
    sent: Time,
    open: bool,
}

impl InFlight {
    /// A request that is sent to the node called `name`, now or as soon as a task runs.
    pub(super) fn new(service: &Rc<SearchService>, name: &str) -> Self {
        let sent = service.core.env.now();
        service.selector.borrow_mut().sent(sent, name);
        if let Some(truth) = service.core.env.virtual_shared::<Truth>() {
            truth.sent(name);
        }
        InFlight { service: service.clone(), name: name.to_owned(), sent, open: true }
    }

    /// Which node it is for.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The node answered.
    pub(super) fn answered(mut self, feedback: NodeFeedback) {
        let (now, took) = self.close();
        self.service.selector.borrow_mut().answered(now, &self.name, took, feedback);
    }

    /// The node failed.
    pub(super) fn failed(mut self) {
        let (now, took) = self.close();
        self.service.selector.borrow_mut().failed(now, &self.name, took);
    }

    fn close(&mut self) -> (Time, Duration) {
        self.open = false;
        if let Some(truth) = self.service.core.env.virtual_shared::<Truth>() {
            truth.done(&self.name);
        }
        let now = self.service.core.env.now();
        (now, now - self.sent)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.open {
            self.close();
            self.service.selector.borrow_mut().abandoned(&self.name);
        }
    }
}
