//! The places where plans run.
//!
//! | module | holds |
//! | --- | --- |
//! | `started` | what all clusters share whose nodes are started here |
//! | `engine_start` | how clusters of the embedded engine are started, in either world |
//! | `embedded` | the embedded engine, one process a node |
//! | `simulated` | the embedded engine in virtual time |
//! | `opensearch` | OpenSearch, one JVM a node; its jars |
//! | `live` | clusters that are already there, changed only with a journal |

mod embedded;
mod engine_start;
mod live;
mod opensearch;
mod simulated;
mod started;

use std::path::PathBuf;

pub use embedded::{EmbeddedClusters, TRANSPORT_ABOVE};
pub use live::{LiveClusters, SENT_TWICE};
pub use opensearch::{DEFAULT_HEAP, ENCRYPTS, OpenSearchClusters, Release};
pub use simulated::VirtualClusters;

use crate::{Error, Result};

/// Removes the shard copies of a node that is down.
fn remove_copies(path: PathBuf) -> Result<()> {
    match std::fs::remove_dir_all(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { what: "remove", path, source })
        }
        _ => Ok(()),
    }
}
