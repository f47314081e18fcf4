//! HTTP/1.1 for loads: a connection for each client of the load, and little work for each request.
//!
//! | file | holds |
//! | --- | --- |
//! | `answer` | parsing an answer piece by piece; only the beginning of the body is kept. Pure |
//! | `connection` | [`WireConnection`]: one request after another, plain or over TLS |
//!
//! Everything else goes through [`crate::RestClient`] or [`crate::live::LiveClient`], which retry and keep whole
//! answers. This client counts bytes, and reports every failure at once.

mod answer;
mod connection;

pub use connection::{WireAnswer, WireConnection, WireFailure, WireHost};
