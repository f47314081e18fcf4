//! HTTP clients.
//!
//! | file | holds |
//! | --- | --- |
//! | `address`, `tls`, `options` | where a cluster is, whom we trust, and everything else that it takes to reach it |
//! | `pool` | [`ConnectionPool`]; when a request may be sent again |
//! | `client` | [`HttpClient`]: HTTP/1.1 in the real world |
//! | `exchange` | one request and its answer, in either world |
//! | `rest` | [`RestClient`]: asks a node, in either world |
//! | `wire/` | a client for loads, with as little work for each request as there can be |

mod address;
mod client;
mod exchange;
mod options;
mod pool;
mod rest;
mod tls;
pub mod wire;

pub(crate) use client::HttpClient;
pub(crate) use exchange::Exchange;
pub(crate) use pool::{ConnectionPool, Failure, is_idempotent};
pub(crate) use rest::error_in;

pub use address::Address;
pub use options::LiveOptions;
pub use rest::{Answer, RestClient};
pub use tls::{TlsOptions, trusted_authorities};
