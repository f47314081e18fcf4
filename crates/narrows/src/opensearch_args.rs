//! What OpenSearch nodes are started with, as the command line says it.

use std::path::PathBuf;

use clusters::{DEFAULT_HEAP, Release};
use lab::OpenSearchNodes;

/// Options of every command that starts OpenSearch.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OpenSearchArgs {
    /// Heap of each OpenSearch node, as Java writes it: 512m, 1g.
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_HEAP, value_parser = parse_heap)]
    heap: String,
    /// The release that is fetched from Maven Central: 1.3.13, 2.19.1, 3.0.0 (which needs Java 21), or
    /// elasticsearch-7.10.2.
    #[arg(long, value_name = "VERSION", default_value = Release::DEFAULT)]
    opensearch_version: String,
    /// An unpacked OpenSearch distribution, instead of a release from Maven Central.
    #[arg(long, value_name = "DIR", conflicts_with = "opensearch_version")]
    opensearch_home: Option<PathBuf>,
}

impl OpenSearchArgs {
    /// Such nodes.
    pub(crate) fn nodes(&self) -> anyhow::Result<OpenSearchNodes> {
        let release = Release::named(&self.opensearch_version)?;
        Ok(OpenSearchNodes { release, heap: self.heap.clone(), home: self.opensearch_home.clone() })
    }
}

/// A heap as Java takes it. What is not a size would end the node with Java's own words only.
fn parse_heap(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']);
    let number = digits.parse::<u64>().is_ok_and(|number| number > 0);
    if number && text.len() == digits.len() + 1 {
        return Ok(text.to_owned());
    }
    Err("write a number and k, m or g, for example 512m".to_owned())
}
