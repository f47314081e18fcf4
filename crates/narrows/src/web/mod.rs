//! The server of the page that stays open, and of figures for Prometheus.
//!
//! | file | holds |
//! | --- | --- |
//! | `access` | who may ask: names, origins, the token; which addresses may be listened on |
//! | `feed` | what is sent to a page as it comes, as long as the page takes it |
//! | `server` | connections, TLS, and the one method |

mod access;
mod feed;
mod server;

pub(crate) use access::{Guard, guard};
pub(crate) use feed::{Hub, event};
pub(crate) use server::{Answer, Routes, Server};
