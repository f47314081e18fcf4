//! For how long something was under way while its thread had nothing to do.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use world::{Env, Time};

/// Counts the time for which something is under way, for example a read of the disk or a wait for an acknowledgement,
/// less the core time that its thread uses meanwhile. Clones share the count.
#[derive(Clone)]
pub struct IdleTime(Rc<Inner>);

struct Inner {
    env: Env,
    core_time: Box<dyn Fn() -> Duration>,
    under_way: Cell<usize>,
    began: Cell<(Time, Duration)>,
    ended: Cell<Duration>,
}

/// Something is under way until this is dropped.
pub(crate) struct UnderWay(IdleTime);

impl IdleTime {
    /// `core_time` answers how much core time the thread has used so far.
    pub fn new(env: &Env, core_time: impl Fn() -> Duration + 'static) -> IdleTime {
        let core_time = Box::new(core_time);
        let began = Cell::new((env.now(), Duration::ZERO));
        let (under_way, ended) = (Cell::default(), Cell::default());
        IdleTime(Rc::new(Inner { env: env.clone(), core_time, under_way, began, ended }))
    }

    /// Something begins. What is under way at the same time counts once.
    pub(crate) fn begin(&self) -> UnderWay {
        let under_way = self.0.under_way.get();
        if under_way == 0 {
            self.0.began.set(self.0.now());
        }
        self.0.under_way.set(under_way + 1);
        UnderWay(self.clone())
    }

    /// The time so far, with that of what is still under way.
    pub fn so_far(&self) -> Duration {
        let lasts = if self.0.under_way.get() > 0 { self.0.lasts() } else { Duration::ZERO };
        self.0.ended.get() + lasts
    }
}

impl Inner {
    fn now(&self) -> (Time, Duration) {
        (self.env.now(), (self.core_time)())
    }

    /// How long what is under way has lasted, without core time.
    fn lasts(&self) -> Duration {
        let ((began, busy_before), (now, busy)) = (self.began.get(), self.now());
        (now - began).saturating_sub(busy.saturating_sub(busy_before))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let UnderWay(IdleTime(inner)) = self;
        inner.under_way.set(inner.under_way.get() - 1);
        if inner.under_way.get() == 0 {
            inner.ended.set(inner.ended.get() + inner.lasts());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_at_once_counts_once_and_core_time_does_not() {
        world::virtual_world::run(7, async |env| {
            let ms = Duration::from_millis;
            let used = Rc::new(Cell::new(Duration::ZERO));
            let core_time = used.clone();
            let idle = IdleTime::new(&env, move || core_time.get());
            let first = idle.begin();
            env.sleep(ms(100)).await;
            let second = idle.begin();
            used.set(ms(30));
            env.sleep(ms(50)).await;
            drop(first);
            env.sleep(ms(50)).await;
            assert_eq!(idle.so_far(), ms(170), "it lasts");
            drop(second);
            env.sleep(ms(1000)).await;
            assert_eq!(idle.so_far(), ms(170), "it has ended");
        });
    }
}
