#![doc = include_str!("../README.md")]

mod actions;
mod active;
mod alias;
mod analyze;
mod answer;
mod auto_follow;
mod bodies;
mod bulk;
mod bulk_answer;
mod bulk_lines;
mod by_query;
mod by_query_body;
mod call;
mod cat;
mod cat_shards;
mod cat_thread_pool;
mod ccr;
mod clients;
mod cluster;
mod cluster_stats;
mod dangling;
mod date_names;
mod digest;
mod document;
mod error;
mod explain;
mod field_caps;
mod filter;
mod health;
mod hosts;
mod identity;
mod index;
mod index_settings;
mod keep_alive;
mod maintenance;
mod message;
mod mget;
mod msearch;
mod names;
mod nodes;
mod open_close;
mod parameters;
mod partial_update;
mod point_in_time;
mod recovery;
mod refusal;
mod remote;
mod replication;
mod reroute;
mod rollover;
mod router;
mod routes;
mod scroll;
mod search;
mod segments;
mod server;
mod settings;
mod spread;
mod stats;
mod surface;
mod synthetic_batch;
mod table;
mod tasks;
mod templates;
mod terms_enum;
mod time_text;
mod typed_keys;
mod unchanged;
mod update;
mod uri_query;
mod validate;
mod wanted;

use engine::{Error, Node, NodeConfig};
use world::{Env, LocalFuture};

pub use engine::core::{BasicAuth, PresentedAs};
pub use hosts::is_own_name;
pub use index::check_new_index;
pub use message::{RestMessage, RestRequest, RestResponse, json_body};
pub use router::{check_request, handle, handle_and_list_parameters};
pub use routes::{ROUTES, Route};
pub use surface::{Refused, refused};
pub use templates::check_template;

use server::{listen, serve};

/// Starts a node and serves clients at its `http` address, from before it joins its cluster. An address that others
/// than this machine can reach is refused without credentials.
pub fn start(env: &Env, config: NodeConfig) -> LocalFuture<'_, Result<Node, Error>> {
    Box::pin(async move {
        engine::check_addresses(env, &config)?;
        let listen_failed = |source| Error::Listen { node: config.name.clone(), source };
        let listener = listen(env, &config.http).await.map_err(listen_failed)?;
        let address = listener.address().to_owned();
        let serve = |node: &Node| node.core().keep("rest", serve(node.clone(), listener));
        Node::start(env, config, address, Box::new(serve)).await
    })
}
