//! Plans with a bucket: documents that are streamed from one server to another, and which thread holds them up.
//!
//! | file | does |
//! | --- | --- |
//! | `settings` | what a variant says |
//! | `documents` | keys and values by number |
//! | `server` | a server of the bucket, on a thread of its own |
//! | `destinations` | the server that documents go to: one such thread, or several |
//! | `moving` | one variant: both servers, the proxy between them, figures |
//! | `sampler` | what threads do, for the record |
//!
//! Three threads take part: the producer's, the manager's proxy, the consumer's. Each is a host with one core in the
//! virtual world, so that its core time is the thread's.

mod destinations;
mod documents;
mod moving;
mod sampler;
mod server;
mod settings;

pub use moving::measure;
pub use settings::{StreamSettings, Way, check_setting};
