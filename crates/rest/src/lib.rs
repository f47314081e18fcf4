//! The REST face: what ordinary clients of Elasticsearch and OpenSearch ask of a cluster.
//!
//! | file | holds |
//! | --- | --- |
//! | `server` | HTTP/1.1 in the real world, messages in the virtual one |
//! | `refusal` | what a client without the right credentials is told |
//! | `message` | a request and an answer, and how they travel between simulated hosts |
//! | `router` | the table of routes; from a request to its handler |
//! | `parameters` | the parameters of a request |
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
mod parameters;
mod recovery;
mod refusal;
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

use engine::{Error, Node, NodeConfig};
use world::Env;

pub use engine::core::BasicAuth;
pub use message::{RestMessage, RestRequest, RestResponse};
pub use server::RestListener;

use server::{listen, serve};

/// Starts a node and serves clients at its `http` address, from before it joins its cluster. An address that others than this
/// machine can reach is refused without credentials.
pub async fn start(env: &Env, config: NodeConfig) -> Result<Node, Error> {
    engine::check_addresses(env, &config)?;
    let listen_failed = |source| Error::Listen { node: config.name.clone(), source };
    let listener = listen(env, &config.http).await.map_err(listen_failed)?;
    let address = listener.address().to_owned();
    let serve = |node: &Node| node.core().keep("rest", serve(node.clone(), listener));
    Node::start(env, config, address, serve).await
}

/// Answers one request. Never fails: what goes wrong is an answer, too.
pub async fn handle(node: &Node, request: RestRequest) -> RestResponse {
    node.passes().await;
    let response = router::answer(node, request).await;
    node.passes().await;
    response
}
