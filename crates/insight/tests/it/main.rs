//! Tests of what runs and live clusters are found to be, from records and observations made here.

mod common;
mod diagnosis;
mod headlines;
mod json;
mod model;
mod over_time;
mod probe;
mod summary;
mod thresholds;
