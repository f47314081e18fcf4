#![doc = include_str!("../README.md")]

pub mod bench;
mod endings;
pub mod faults;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod generated;
pub mod night;
pub mod plans;
mod ports;
mod small_disk;
pub mod tls;
pub mod tools;

use std::process::ExitCode;
use std::sync::{Condvar, Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

pub use endings::{at_the_end, to_the_end};
pub use machine::Tool;
pub use ports::free_port;
pub use small_disk::SmallDisk;

/// An environment variable. Where it is 1, a test that cannot run fails; otherwise it is ignored.
pub const REQUIRE_ALL: &str = "NARROWS_REQUIRE_ALL";

/// Why a test cannot run, found out while it ran.
#[derive(Debug)]
pub struct CannotRun(pub String);

/// What a test returns: nothing, or that it cannot run.
pub trait Outcome {
    /// Whether it ran.
    fn ran(self) -> Result<(), CannotRun>;
}

impl Outcome for () {
    fn ran(self) -> Result<(), CannotRun> {
        Ok(())
    }
}

impl Outcome for Result<(), CannotRun> {
    fn ran(self) -> Result<(), CannotRun> {
        self
    }
}

/// So many tests run beside each other: most wait for processes that they start.
const SIDE_BY_SIDE: usize = 3;

/// Whether a test has the machine to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusivity {
    /// Another of these may run meanwhile.
    SideBySide,
    /// Another of these, which mostly wait: it measures what others would disturb.
    Quiet,
    /// It measures what any other test would disturb.
    Alone,
}

/// Which tests run, and how many.
static RUNNING: Mutex<(Exclusivity, usize)> = Mutex::new((Exclusivity::SideBySide, 0));
/// One of them has ended.
static ENDED: Condvar = Condvar::new();

/// A test that runs.
struct Running;

impl Running {
    /// Waits until those that run leave room for it.
    fn begin(exclusivity: Exclusivity) -> Running {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let has_no_room = |(of, count): &mut (Exclusivity, usize)| {
            *count > 0 && (*of != exclusivity || exclusivity == Exclusivity::Alone)
        };
        let mut running =
            ENDED.wait_while(running, has_no_room).unwrap_or_else(PoisonError::into_inner);
        *running = (exclusivity, running.1 + 1);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).1 -= 1;
        ENDED.notify_all();
    }
}

/// `fn main` of a binary of tests: each with the [`tools`] that it needs. Those behind `quiet:` run beside each other
/// alone, those behind `alone:` have the machine to themselves.
#[macro_export]
macro_rules! main {
    ($($($part:ident)::+ [$($tool:ident),*]),* $(,)? $(; quiet: $($($calm:ident)::+ [$($has:ident),*]),+)?
        $(; alone: $($($own:ident)::+ [$($needs:ident),*]),+ $(,)?)?) => {
        fn main() -> std::process::ExitCode {
            use $crate::Exclusivity::{Alone, Quiet, SideBySide};
            $crate::run(vec![
                $($crate::test(stringify!($($part)::+), SideBySide, vec![$(&$crate::tools::$tool),*], || $($part)::+()),)*
                $($($crate::test(stringify!($($calm)::+), Quiet, vec![$(&$crate::tools::$has),*], || $($calm)::+()),)+)?
                $($($crate::test(stringify!($($own)::+), Alone, vec![$(&$crate::tools::$needs),*], || $($own)::+()),)+)?
            ])
        }
    };
}

/// The same test bodies in both worlds. Those behind `; real:` or `; simulated:` are in one of them alone.
#[macro_export]
macro_rules! both_worlds {
    ($($name:ident),+ $(,)?) => {
        $crate::real_world!($($name),+);
        $crate::virtual_world!($($name),+);
    };
    ($($name:ident),+; real: $($real:ident),+ $(,)?) => {
        $crate::real_world!($($name,)+ $($real),+);
        $crate::virtual_world!($($name),+);
    };
    ($($name:ident),+; simulated: $($simulated:ident),+ $(,)?) => {
        $crate::real_world!($($name),+);
        $crate::virtual_world!($($name,)+ $($simulated),+);
    };
}

/// Test bodies in the real world.
#[macro_export]
macro_rules! real_world {
    ($($name:ident),+ $(,)?) => {
        mod real {
            $(#[test] fn $name() {
                world::real_world::run(7, |env| $crate::to_the_end(Box::pin(super::$name(env))))
            })+
        }
    };
}

/// Test bodies in the virtual world.
#[macro_export]
macro_rules! virtual_world {
    ($($name:ident),+ $(,)?) => {
        mod simulated {
            $(#[test] fn $name() {
                world::virtual_world::run(7, |env| $crate::to_the_end(Box::pin(super::$name(env))))
            })+
        }
    };
}

/// Makes a type a message that never leaves the virtual world, and is so many bytes there.
#[macro_export]
macro_rules! stays_virtual {
    ($type:ty, |$message:ident| $bytes:expr) => {
        impl ::world::Message for $type {
            fn encode(self) -> ::world::Frame {
                unreachable!("it stays in the virtual world")
            }
            fn decode(_head: &[u8], _tail: ::bytes::Bytes) -> ::std::io::Result<Self> {
                unreachable!("it stays in the virtual world")
            }
            fn wire_bytes(&self) -> u64 {
                let $message = self;
                $bytes
            }
        }
    };
}

/// A function `rest_host`: a host of this name in the virtual world, which answers each request to REST as `answer`
/// says, with a status and a body, or closes the connection where it says none. It returns the address and the task.
#[macro_export]
macro_rules! rest_host {
    () => {
        async fn rest_host(
            env: &::world::Env,
            name: &str,
            answer: impl AsyncFn(::rest::RestRequest) -> Option<(u16, ::bytes::Bytes)> + 'static,
        ) -> (String, ::world::Task<()>) {
            let host = env.host(name);
            let listener = host.listen::<::rest::RestMessage>(&format!("{name}:9200")).await;
            let mut listener = listener.unwrap();
            let address = listener.address().to_owned();
            let (inner, answer) = (host.clone(), ::std::rc::Rc::new(answer));
            let task = host.spawn("server", async move {
                loop {
                    let mut connection = listener.accept().await.unwrap();
                    let answer = answer.clone();
                    let speak = async move {
                        while let Ok(Some(::rest::RestMessage::Request(asked))) =
                            connection.receiver.recv().await
                        {
                            let Some((status, body)) = (*answer)(asked).await else { return };
                            let content_type = "application/json".to_owned();
                            let response =
                                ::rest::RestResponse { status, content_type, location: None, body };
                            let response = ::rest::RestMessage::Response(response);
                            if connection.sender.send(response).await.is_err() {
                                return;
                            }
                        }
                    };
                    inner.spawn("connection", speak).detach();
                }
            });
            (address, task)
        }
    };
}

/// A test that needs these tools.
pub fn test<O: Outcome + 'static>(
    name: &str,
    exclusivity: Exclusivity,
    needs: Vec<&'static Tool>,
    body: fn() -> O,
) -> Trial {
    Trial::ignorable_test(name.replace(' ', ""), move || {
        let _running = Running::begin(exclusivity);
        let missing = |tool: &&Tool| Some(format!("{}: {}", tool.look().err()?, tool.remedy));
        let ran = match needs.iter().find_map(missing) {
            Some(why) => Err(CannotRun(why)),
            None => body().ran(),
        };
        match ran {
            Ok(()) => Ok(Completion::Completed),
            Err(CannotRun(why)) if are_all_required() => {
                Err(Failed::from(format!("{REQUIRE_ALL} is set, and {why}")))
            }
            Err(CannotRun(why)) => Ok(Completion::ignored_with(format!("because {why}"))),
        }
    })
}

/// Whether a test that cannot run has failed.
pub fn are_all_required() -> bool {
    std::env::var(REQUIRE_ALL).is_ok_and(|value| value == "1")
}

/// Runs tests as the command line says, [`SIDE_BY_SIDE`] unless it says otherwise.
pub fn run(tests: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    libtest_mimic::run(&arguments, tests).exit_code()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn quiet_tests_run_beside_each_other_and_beside_no_others() {
        let quiet = [(); 2].map(|()| Running::begin(Exclusivity::Quiet));
        let (began, begins) = mpsc::channel();
        let others = [Exclusivity::SideBySide, Exclusivity::Alone].map(|other| {
            let began = began.clone();
            std::thread::spawn(move || {
                let _running = Running::begin(other);
                began.send(*RUNNING.lock().unwrap()).unwrap();
            })
        });
        let [one, two] = quiet;
        drop(one);
        assert_eq!(*RUNNING.lock().unwrap(), (Exclusivity::Quiet, 1));
        drop(two);
        others.into_iter().for_each(|other| other.join().unwrap());
        let mut seen: Vec<_> = begins.try_iter().collect();
        seen.sort_by_key(|(of, _)| *of == Exclusivity::Alone);
        assert_eq!(seen, [(Exclusivity::SideBySide, 1), (Exclusivity::Alone, 1)]);
    }
}
