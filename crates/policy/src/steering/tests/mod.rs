//! The state machine against a cluster of a few formulas.

mod raises;
mod settings;
mod sim;
mod trials;
mod users;
