//! HTTP/1.1 for loads: a connection that one client keeps for itself, and little work for each request.
//!
//! | file | holds |
//! | --- | --- |
//! | `answer` | reading an answer piece by piece, of which only the beginning is kept. Pure |
//! | `connection` | [`WireConnection`]: one request after another, plain or over TLS |
//!
//! Everything else asks through [`crate::RestClient`] or [`crate::live::LiveClient`], which are patient and keep whole
//! answers; this one counts bytes, and says at once what went wrong.

mod answer;
mod connection;

pub use connection::{WireAnswer, WireConnection, WireFailure, WireHost};
