#![doc = include_str!("../README.md")]

pub mod bench;
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
use std::sync::{PoisonError, RwLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

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

/// Read-locked by every test while it runs; write-locked by one that must run alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// Whether a test has the machine to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusivity {
    /// Another test may run meanwhile.
    SideBySide,
    /// It measures what another test would disturb.
    Alone,
}

/// `fn main` of a binary of tests: each with the [`tools`] that it needs. Those behind `alone:` have the machine to
/// themselves.
#[macro_export]
macro_rules! main {
    ($($($part:ident)::+ [$($tool:ident),*]),* $(,)? $(; alone: $($($own:ident)::+ [$($needs:ident),*]),+ $(,)?)?) => {
        fn main() -> std::process::ExitCode {
            use $crate::Exclusivity::{Alone, SideBySide};
            $crate::run(vec![
                $($crate::test(stringify!($($part)::+), SideBySide, vec![$(&$crate::tools::$tool),*], || $($part)::+()),)*
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
        mod real { $(#[test] fn $name() { world::real_world::run(7, super::$name) })+ }
    };
}

/// Test bodies in the virtual world.
#[macro_export]
macro_rules! virtual_world {
    ($($name:ident),+ $(,)?) => {
        mod simulated { $(#[test] fn $name() { world::virtual_world::run(7, super::$name) })+ }
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
        // A test that failed leaves nothing behind that others would find.
        let _own = (exclusivity == Exclusivity::Alone)
            .then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner));
        let _shared = (exclusivity == Exclusivity::SideBySide)
            .then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
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
