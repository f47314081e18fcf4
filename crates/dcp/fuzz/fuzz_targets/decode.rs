//! `cargo +nightly fuzz run decode`, in `crates/dcp`.
#![no_main]

#[path = "../body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::decode(bytes));
