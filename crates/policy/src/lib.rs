#![doc = include_str!("../README.md")]

pub mod backoff;
pub mod balancing;
pub mod failures;
pub mod following;
pub mod foreground;
#[cfg(test)]
mod moment;
pub mod rate_limiter;
pub mod retention;
pub mod routing;
pub mod selection;
pub mod steering;
pub mod transfer;
