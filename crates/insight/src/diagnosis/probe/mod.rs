//! Probes: a setting is changed for seconds, and how the rate follows tells apart causes that look the same.
//!
//! | file | holds |
//! | --- | --- |
//! | `result` | [`Probe`] and [`ProbeResult`]: what is tried, and what it says |
//! | `plan` | which probes tell apart the causes that a diagnosis leaves possible |
//! | `meter` | what is measured before, during and after |
//! | `prober` | [`Prober`]: when to change, when to put back; a pure state machine over looks |
//! | `apply` | what the results make of the diagnosis |
//!
//! The measure is the elasticity: how much of a relative change of the limit the rate follows, `ln(rate ratio) /
//! ln(limit ratio)`. About 1, the limit binds; about 0, it does not (the idea of causal profiling: change one speed
//! and look at the whole). Its interval is the bootstrap's on the ratio of means (chunks come in
//! lumps, of which a median says little), with before and after as the base, so that what drifts by itself widens it.

mod apply;
mod meter;
mod plan;
mod prober;
pub(super) mod result;

use super::threshold::Threshold;

/// Every number that probes compare with or reckon from, for operators.
pub const THRESHOLDS: &[Threshold] = &[
    plan::BRAKE,
    plan::FEW_CHUNKS,
    plan::HALF_BRAKE,
    plan::LULL,
    meter::RATE_MS,
    prober::SETTLE_MS,
    prober::MEASURE_MS,
    prober::SAMPLES,
    prober::PROBE_MS,
    prober::HALF,
    prober::STAYS,
    prober::OBEYED,
    prober::RESOLUTION,
    apply::CONFIRMED,
    apply::MOSTLY_OWN,
    apply::SHARED,
];

pub use apply::apply;
pub use plan::plan;
pub use prober::{Prober, Step};
pub use result::{Elasticity, Kind, Probe, ProbeResult, Reading};
