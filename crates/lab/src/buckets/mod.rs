//! Servers of a bucket whose documents are streamed from one to another, and which thread holds them up.
//!
//! | file | holds |
//! | --- | --- |
//! | `settings` | what a variant says |
//! | `documents` | keys and values by number |
//! | `held` | what servers say that they hold of each vbucket. Pure |
//! | `server` | a server of the bucket, on a thread of its own |
//! | `destinations` | the server that documents go to: one such thread, or several |
//! | `sampler` | what threads do, for the record |
//!
//! Three threads take part: the producer's, the manager's proxy, the consumer's. Each is a host with one core in the
//! virtual world, so that its core time is the thread's.

mod destinations;
mod documents;
mod held;
mod sampler;
mod server;
mod settings;

pub(crate) use destinations::Destinations;
pub(crate) use documents::Documents;
pub(crate) use held::{HeldByVbucket, differing};
pub(crate) use sampler::Sampler;
pub(crate) use server::{
    BUCKET, RunningServer, ServerSpec, ServerUse, ThreadTime, busy, credentials,
};
pub use settings::check_setting;
pub(crate) use settings::{StreamPath, StreamSettings};
