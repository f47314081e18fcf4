//! Where a plan is executed.

use std::fmt;
use std::path::PathBuf;

use clusters::live::LiveOptions;
use clusters::{OpenSearchClusters, Release};
use world::Env;

/// Where the clusters of a plan live.
#[derive(Clone, Debug)]
pub enum Place {
    /// The embedded engine, one process a node, over loopback.
    Embedded {
        /// The program that is a node when it is called as one.
        program: PathBuf,
        /// Gives this process mounts of its own, before nodes get small disks that can be filled. An error says why
        /// that is not allowed here.
        own_mounts: fn() -> Result<(), String>,
    },
    /// The same engine in virtual time.
    Virtual {
        /// Bugs that the engine has on purpose (`world::Env::plant`), for tests of what must find them.
        planted: &'static [&'static str],
    },
    /// OpenSearch or Elasticsearch, started for the run.
    OpenSearch(OpenSearchNodes),
    /// Clusters that are there already. They are left as they were found.
    Live(Box<LiveHosts>),
}

/// How OpenSearch nodes are started.
#[derive(Clone, Debug)]
pub struct OpenSearchNodes {
    /// The release.
    pub release: &'static Release,
    /// Heap of each node, as Java writes it.
    pub heap: String,
    /// An unpacked distribution, instead of a release that is fetched.
    pub home: Option<PathBuf>,
}

/// Clusters that are there already, and how they are reached.
#[derive(Clone, Debug)]
pub struct LiveHosts {
    /// The cluster, or the one that follows.
    pub follower: LiveOptions,
    /// The cluster that has the data, where a plan recovers from another one.
    pub leader: Option<LiveOptions>,
    /// Whether an index may be made there, and settings changed.
    pub allow_changes: bool,
    /// Whether a cluster of a version that narrows was never tried with is changed, too.
    pub any_version: bool,
}

impl Place {
    /// Virtual time, without planted bugs.
    pub const VIRTUAL: Place = Place::Virtual { planted: &[] };

    /// The name of the kind of place: `embedded`, `virtual`, `opensearch`, `url`.
    pub fn name(&self) -> &'static str {
        match self {
            Place::Embedded { .. } => "embedded",
            Place::Virtual { .. } => "virtual",
            Place::OpenSearch(_) => "opensearch",
            Place::Live(_) => "url",
        }
    }

    /// Whether time is virtual there.
    pub fn is_virtual(&self) -> bool {
        matches!(self, Place::Virtual { .. })
    }

    /// Whether the nodes are not those of the embedded engine.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, Place::OpenSearch(_) | Place::Live(_))
    }
}

/// The name, or the hosts of the cluster that is there already.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Live(live) => f.write_str(&hosts(&live.follower).join(",")),
            named => f.write_str(named.name()),
        }
    }
}

/// The hosts of a cluster, as URLs.
pub(super) fn hosts(options: &LiveOptions) -> Vec<String> {
    options.addresses.iter().map(ToString::to_string).collect()
}

impl OpenSearchNodes {
    /// What is started, as people write it: a release, or a directory.
    pub fn name(&self) -> String {
        self.home
            .as_ref()
            .map_or_else(|| self.release.name.to_owned(), |home| home.display().to_string())
    }

    /// Clusters of such nodes, none of which is started yet.
    pub fn clusters(&self, env: &Env) -> OpenSearchClusters {
        let clusters =
            OpenSearchClusters::new(env).with_heap(&self.heap).with_release(self.release);
        self.home.iter().fold(clusters, |clusters, home| clusters.with_home(home))
    }
}
