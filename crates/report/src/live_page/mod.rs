//! The page of `narrows watch --web`, which stays open: what it is sent of each look, what is kept of the last hour,
//! and the page itself.
//!
//! | file | holds |
//! | --- | --- |
//! | `frame` | one look at one cluster, as the page shows it |
//! | `history` | the last hour: figures of each node, earlier frames, events |
//! | `steering`, `outlook` | what `steer` and `what-if` left of the cluster on this machine |
//! | `compact` | figures of the last hour in so many points that peaks stay |
//! | `document` | the page: `page.html`, `live.css` and the scripts `*.js`, in one |
//!
//! The page takes its words from where the screen and `explain` take theirs: what a table says here it says there.
//! Scripts put text in as text, never as HTML; the page's content security policy holds them to it.

mod compact;
mod document;
mod frame;
mod history;
mod outlook;
mod steering;

pub use document::{Document, document};
pub use frame::Frame;
pub use history::History;
pub use outlook::Outlook;
pub use steering::Steering;
