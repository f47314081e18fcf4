//! The world from outside: the same bodies in both worlds, and the virtual network against figures worked out by hand.

mod both_worlds;
mod virtual_flows;
