mod address;
mod client;
mod options;
mod pool;
mod rest;
mod tls;
pub mod wire;

pub(crate) use client::HttpClient;
pub(crate) use pool::{ConnectionPool, Failure, is_idempotent};
pub(crate) use rest::words_of;

pub use address::Address;
pub use options::LiveOptions;
pub use rest::{Answer, RestClient};
pub use tls::TlsOptions;
