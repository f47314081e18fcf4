//! The causes, one file for each. A new one is a file here with its rule and its judges, its `mod` line below, and a
//! line in `table.rs`.

mod allocation_block;
mod allocation_slots;
mod bandwidth;
mod cpu;
mod cpu_quota;
mod dcp_consumer;
mod dcp_memory;
mod dcp_producer;
mod disk;
mod follower_reader;
pub(crate) mod follower_stopped;
mod follower_writer;
pub(crate) mod gc;
pub(crate) mod latency;
mod memory;
mod merge_throttle;
mod noisy_neighbour;
mod operation_replay;
mod proxy;
mod rate_limit;
pub(crate) mod replica_routing;
mod thread_cpu;
pub(crate) mod unknown;

use super::answers::Answer;
use super::cause::{Cause, Judge};
use super::class::Class;
use super::rivals::Against;
use super::rule::Rule;

macro_rules! causes {
    ($($class:ident: $file:ident,)*) => {
        fn cause(class: Class) -> &'static Cause {
            match class {
                $(Class::$class => &$file::CAUSE,)*
            }
        }
    };
}

super::table::table!(causes);

impl Class {
    /// How it is recognised and what lifts it.
    pub fn rule(self) -> &'static Rule {
        &cause(self).rule
    }

    /// The name for people.
    pub fn label(self) -> &'static str {
        self.rule().label
    }
}

/// The judges of every cause, in the order of the table.
pub(crate) fn judges() -> impl Iterator<Item = (Class, &'static Judge)> {
    Class::ALL
        .iter()
        .flat_map(|class| cause(*class).judges.iter().map(move |judge| (*class, judge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_stands_in_its_own_line_of_the_table_and_only_the_unknown_has_no_judge() {
        for class in Class::ALL {
            assert_eq!(class.rule().class, *class);
            assert_eq!(cause(*class).judges.is_empty(), *class == Class::Unknown);
        }
    }
}
