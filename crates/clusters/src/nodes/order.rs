//! What a node of the embedded engine is told while it runs: lines on its standard input.

use std::fmt;

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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_lines() {
        let switches = [true, false].map(|on| [Order::CutOff(on), Order::FailSearches(on)]);
        for order in switches.into_iter().flatten().chain([Order::Slow(2.5)]) {
            assert_eq!(Order::of(&order.to_string()), Some(order));
        }
        for line in ["", "cut off", "slow", "slow down", STOP] {
            assert_eq!(Order::of(line), None, "{line}");
        }
    }
}
