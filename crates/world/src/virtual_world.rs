//! The virtual world: nodes run in simulated time, on one thread. The same seed gives the same trace, to the byte.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::env::Arm;
pub use crate::simulation::{Deadlock, Trace, VirtualDisk};
use crate::simulation::{Host, World};
use crate::{Env, LocalFuture, Task};

/// Runs `main` on a fresh world until it ends.
///
/// # Panics
/// If it can never end: the message says what every task waits for.
pub fn run<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> T {
    run_traced(seed, main).map(|(value, _)| value).unwrap_or_else(|deadlock| panic!("{deadlock}"))
}

/// As [`run`], with the [`Trace`] of every event that happened; a [`Deadlock`] is an error.
pub fn run_traced<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    main: impl FnOnce(Env) -> F,
) -> Result<(T, Trace), Deadlock> {
    let world = Rc::new(World::new(seed));
    let env = Env { arm: Arm::Virtual(Host::get(&world, "main")) };
    let main = Box::pin(main(env.clone()));
    run_to_its_end(&world, env, main)
}

/// Compiled once for each `T`, and not for each of the hundreds of tests.
fn run_to_its_end<T: 'static>(
    world: &Rc<World>,
    env: Env,
    main: LocalFuture<'static, T>,
) -> Result<(T, Trace), Deadlock> {
    let task = env.spawn("main", main);
    drop(env);
    let has_finished = world.run_until(&|| task.is_finished());
    let trace = world.trace();
    let output = if has_finished { Ok(take_output(task)) } else { Err(world.deadlock()) };
    world.clear();
    output.map(|value| (value, trace))
}

fn take_output<T: 'static>(task: Task<T>) -> T {
    match pin!(task).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(value)) => value,
        _ => panic!("the main task was cancelled: its own host was killed"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use super::*;
    use crate::Time;

    #[test]
    fn sleeps_end_in_the_order_of_time() {
        let order = run(1, async |env| {
            let order = Rc::new(RefCell::new(Vec::new()));
            let sleeper = |ms: u64| {
                let (env2, order) = (env.clone(), order.clone());
                env.spawn("sleeper", async move {
                    env2.sleep(Duration::from_millis(ms)).await;
                    order.borrow_mut().push((ms, env2.now()));
                })
            };
            let tasks = [sleeper(30), sleeper(10), sleeper(20)];
            for task in tasks {
                task.await.unwrap();
            }
            order.take()
        });
        let at = |ms: u64| (ms, Time(ms * 1_000_000));
        assert_eq!(order, [at(10), at(20), at(30)]);
    }

    #[test]
    fn a_hang_says_what_waits() {
        let ended = run_traced(1, async |env| {
            let (_keep, never) = tokio::sync::oneshot::channel::<()>();
            let task = env.spawn("waits for an answer", async move { never.await.is_ok() });
            task.await
        });
        let said = ended.unwrap_err().to_string();
        assert!(said.contains("waits for an answer @ main: something of its own x 1"), "{said}");
    }

    #[test]
    fn a_world_runs_within_another_and_wakes_its_tasks() {
        let told = run(1, async |env| {
            let (tell, told) = tokio::sync::oneshot::channel();
            let waits = env.spawn("waits for the other world", async move { told.await.unwrap() });
            env.sleep(Duration::from_millis(1)).await;
            let other = env.spawn("is awake meanwhile", async {});
            run(2, |inner| async move {
                inner.sleep(Duration::from_millis(5)).await;
                tell.send(inner.now()).unwrap();
            });
            other.await.unwrap();
            waits.await.unwrap()
        });
        assert_eq!(told, Time(5_000_000));
    }

    #[test]
    fn another_thread_wakes_a_task() {
        let sent = run(1, async |env| {
            let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
            let waits = env.spawn("waits for the thread", async move { told.recv().await });
            std::thread::spawn(move || tell.send(7).unwrap());
            // Without an event the run would end before the thread begins.
            while !waits.is_finished() {
                env.sleep(Duration::from_millis(1)).await;
            }
            waits.await.unwrap()
        });
        assert_eq!(sent, Some(7));
    }

    #[test]
    fn a_dropped_timeout_leaves_no_alarm() {
        run(1, async |env| {
            let quick =
                env.timeout(Duration::from_secs(3600), env.sleep(Duration::from_secs(1))).await;
            assert_eq!(quick, Ok(()));
            let slow =
                env.timeout(Duration::from_secs(1), env.sleep(Duration::from_secs(60))).await;
            assert!(slow.is_err());
            assert_eq!(env.now(), Time(2_000_000_000));
        });
    }

    #[test]
    fn a_task_ends_with_its_handle() {
        run(1, async |env| {
            let flag = Rc::new(Cell::new(false));
            let (env2, flag2) = (env.clone(), flag.clone());
            let task = env.spawn("never", async move {
                env2.sleep(Duration::from_millis(5)).await;
                flag2.set(true);
            });
            drop(task);
            env.sleep(Duration::from_millis(10)).await;
            assert!(!flag.get());
        });
    }

    #[test]
    fn durable_storage_survives_a_kill_and_tasks_do_not() {
        run(1, async |env| {
            let node = env.host("node");
            let running = node.spawn("node", {
                let node = node.clone();
                async move {
                    node.virtual_disk().unwrap().get::<u64>("a").replace(7);
                    node.sleep(Duration::from_secs(9)).await;
                }
            });
            env.sleep(Duration::from_millis(1)).await;
            assert!(env.kill_host("node"));
            assert!(running.await.is_err());
            assert_eq!(*env.host("node").virtual_disk().unwrap().get::<u64>("a").borrow(), 7);
        });
    }
}
