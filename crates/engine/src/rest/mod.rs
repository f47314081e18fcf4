//! The REST face: what ordinary clients of Elasticsearch and OpenSearch ask of a cluster.
//!
//! | file | holds |
//! | --- | --- |
//! | `server` | HTTP/1.1 in the real world, messages in the virtual one |
//! | `basic_auth` | who may ask; what a stranger is told |
//! | `message` | a request and an answer, and how they travel between simulated hosts |
//! | `router` | the table of routes; from a request to its handler |
//! | `query` | the parameters of a request |
//! | `answer`, `error`, `filter` | answers and errors as JSON; `pretty` and `filter_path` |
//! | `names` | expressions that name indices |
//! | `spread` | questions to many shards or nodes at once |
//! | `active` | `wait_for_active_shards` |
//! | `cluster`, `health`, `settings`, `explain` | `/` and `_cluster` |
//! | `nodes` | `_nodes` |
//! | `index`, `index_settings`, `alias`, `rollover`, `maintenance` | indices |
//! | `document`, `bulk_lines`, `bulk`, `bulk_answer`, `run` | documents |
//! | `search` | searches |
//! | `recovery`, `remote`, `ccr`, `auto_follow`, `digest` | recoveries, remote clusters, followers, what a checker compares |
//! | `table`, `cat`, `cat_shards`, `cat_thread_pool` | `_cat` |
//! | `time_text` | moments and times as the field writes them |
//!
//! The one rule: a handler is the same in both worlds. It knows a request and a [`Node`], never a socket.

mod active;
mod alias;
mod answer;
mod auto_follow;
mod basic_auth;
mod bulk;
mod bulk_answer;
mod bulk_lines;
mod cat;
mod cat_shards;
mod cat_thread_pool;
mod ccr;
mod cluster;
mod digest;
mod document;
mod error;
mod explain;
mod filter;
mod health;
mod index;
mod index_settings;
mod maintenance;
mod message;
mod names;
mod nodes;
mod query;
mod recovery;
mod remote;
mod rollover;
mod router;
mod run;
mod search;
mod server;
mod settings;
mod spread;
mod table;
mod time_text;

use crate::node::Node;

pub use basic_auth::BasicAuth;
pub use message::{RestMessage, RestRequest, RestResponse};
pub use server::RestListener;
pub(crate) use server::{listen, serve};

/// Answers one request. Never fails: what goes wrong is an answer, too.
pub async fn handle(node: &Node, request: RestRequest) -> RestResponse {
    node.pool.way().passes().await;
    let response = router::answer(node, request).await;
    node.pool.way().passes().await;
    response
}
