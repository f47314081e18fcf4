//! What OpenSearch nodes are started with, as the command line says it.

use std::path::PathBuf;

use clusters::{DEFAULT_HEAP, Release};
use lab::OpenSearchNodes;

use crate::exit::refuse;

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

    /// Refuses what says how OpenSearch is started where it is not.
    pub(crate) fn refuse_elsewhere(&self) -> anyhow::Result<()> {
        let given = [
            ("--heap", self.heap != DEFAULT_HEAP),
            ("--opensearch-version", self.opensearch_version != Release::DEFAULT),
            ("--opensearch-home", self.opensearch_home.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            refuse!(
                "{option} is for nodes of OpenSearch that are started; leave it out, or give --on opensearch"
            );
        }
        Ok(())
    }
}

/// A heap as Java takes it. What is not a size, or more than there is, would end the node with Java's own words only.
fn parse_heap(text: &str) -> Result<String, String> {
    let wrong = || "write a number and k, m or g, for example 512m".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number = number.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
    let unit = match unit {
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(wrong()),
    };
    let memory = lab::machine::describe().memory_bytes;
    if memory > 0 && number.saturating_mul(unit) > memory {
        let whole = record::units::show_bytes(memory);
        return Err(format!(
            "this machine has {whole} of memory; write a smaller heap, for example 512m"
        ));
    }
    Ok(text.to_owned())
}
