//! What a node of the embedded engine is told while it runs: lines on its standard input.

use std::fmt;

use crate::fault::{DiskRates, Strain};

/// The line that announces an end in order.
pub const STOP: &str = "stop";

/// An order to a node, as a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// `cut`, `heal`: whether it is cut off from nodes and clients.
    CutOff(bool),
    /// `fail`, `mend`: whether all its searches fail at once.
    FailSearches(bool),
    /// `slow 4`: everything that it computes takes this many times as long.
    Slow(f64),
    /// `disk 2000000 1000000`: its disk reads and writes so many bytes a second; `disk own`: as many as the machine's.
    /// `collect 0.5`: collections of garbage take this share of the time. `neighbours 4`: so many processes beside it
    /// write to its disk.
    Strain(Strain),
}

impl Order {
    /// Reads a line; none where it is no order.
    pub fn of(line: &str) -> Option<Order> {
        match line.split_once(' ') {
            None if line == "cut" => Some(Order::CutOff(true)),
            None if line == "heal" => Some(Order::CutOff(false)),
            None if line == "fail" => Some(Order::FailSearches(true)),
            None if line == "mend" => Some(Order::FailSearches(false)),
            Some(("slow", factor)) => factor.parse().ok().map(Order::Slow),
            Some(("disk", "own")) => Some(Order::Strain(Strain::Disk(None))),
            Some(("disk", rates)) => {
                let (read, write) = rates.split_once(' ')?;
                let (read_bytes_per_s, write_bytes_per_s) =
                    (read.parse().ok()?, write.parse().ok()?);
                let rates = DiskRates { read_bytes_per_s, write_bytes_per_s };
                Some(Order::Strain(Strain::Disk(Some(rates))))
            }
            Some(("neighbours", count)) => {
                count.parse().ok().map(|count| Order::Strain(Strain::Neighbours(count)))
            }
            Some(("collect", share)) => {
                share.parse().ok().map(|share| Order::Strain(Strain::Collections(share)))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::CutOff(true) => f.write_str("cut"),
            Order::CutOff(false) => f.write_str("heal"),
            Order::FailSearches(true) => f.write_str("fail"),
            Order::FailSearches(false) => f.write_str("mend"),
            Order::Slow(factor) => write!(f, "slow {factor}"),
            Order::Strain(Strain::Disk(Some(rates))) => {
                write!(f, "disk {} {}", rates.read_bytes_per_s, rates.write_bytes_per_s)
            }
            Order::Strain(Strain::Disk(None)) => f.write_str("disk own"),
            Order::Strain(Strain::Neighbours(count)) => write!(f, "neighbours {count}"),
            Order::Strain(Strain::Collections(share)) => write!(f, "collect {share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_lines() {
        let switches = [true, false].map(|on| [Order::CutOff(on), Order::FailSearches(on)]);
        let disk = DiskRates { read_bytes_per_s: 2_000_000, write_bytes_per_s: 1_000_000 };
        let disks = [Strain::Disk(Some(disk)), Strain::Disk(None)];
        let strains = disks.into_iter().chain([Strain::Neighbours(4), Strain::Collections(0.35)]);
        let others = strains.map(Order::Strain).chain([Order::Slow(2.5)]);
        for order in switches.into_iter().flatten().chain(others) {
            assert_eq!(Order::of(&order.to_string()), Some(order));
        }
        for line in ["", "cut off", "slow", "slow down", "disk", "disk 1", "disk 1 -1", STOP] {
            assert_eq!(Order::of(line), None, "{line}");
        }
    }
}
