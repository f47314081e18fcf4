//! What the commands for live clusters share: reaching one, looking at it, and recording what is seen.

mod connect;
mod history;
mod recording;

pub(crate) use connect::{ConnectArgs, client, connect, options, title, usage};
pub(crate) use history::History;
pub(crate) use recording::Recording;
