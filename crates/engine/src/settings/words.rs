//! Settings whose value is one word of a few.

/// Declares an enum with the word of each variant, so that the words are written once.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every accepted word.
            pub const WORDS: &[&str] = &[$($word),*];

            /// The word of this variant.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The variant of a word; none if it is not one of [`Self::WORDS`].
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// `cluster.routing.allocation.enable`: which copies may be placed.
    AllocationEnable {
        /// Every copy.
        All = "all",
        /// Primaries alone.
        Primaries = "primaries",
        /// Primaries of shards that never were started.
        NewPrimaries = "new_primaries",
        /// None.
        None = "none",
    }
}

words! {
    /// `cluster.routing.rebalance.enable`: which copies may be moved so that nodes hold as many as each other.
    RebalanceEnable {
        /// Every copy.
        All = "all",
        /// Primaries alone.
        Primaries = "primaries",
        /// Replicas alone.
        Replicas = "replicas",
        /// None.
        None = "none",
    }
}

words! {
    /// `narrows.allocation.weights`: what says how full a node is for a replica, and for a copy that has to move.
    AllocationWeights {
        /// The number of its copies.
        Copies = "copies",
        /// `cluster.routing.allocation.balance.*`: also its copies of the index.
        Elasticsearch = "elasticsearch",
        /// The same; and a node with its share of the index comes last for a replica.
        Opensearch = "opensearch",
    }
}

words! {
    /// `cluster.routing.allocation.allow_rebalance`: when they may be.
    AllowRebalance {
        /// At any time.
        Always = "always",
        /// Once every primary is started.
        PrimariesActive = "indices_primaries_active",
        /// Once every copy is started.
        AllActive = "indices_all_active",
    }
}

words! {
    /// `cluster.remote.*.mode`: how a remote cluster is reached.
    RemoteMode {
        /// At its nodes, which the seeds lead to.
        Sniff = "sniff",
        /// Through one address alone.
        Proxy = "proxy",
    }
}

words! {
    /// `transport.compress`: whether bytes between nodes are compressed.
    Compress {
        /// They are not.
        False = "false",
        /// They are.
        True = "true",
        /// While that makes the link carry more.
        Auto = "auto",
    }
}

words! {
    /// `transport.compression_scheme`.
    CompressionScheme {
        /// LZ4 blocks.
        Lz4 = "lz4",
        /// Zstandard.
        Zstd = "zstd",
    }
}

words! {
    /// `narrows.recovery.scheduler`: which chunk of which file is fetched next.
    Scheduler {
        /// What Elasticsearch does today, for the recovery at hand: for both kinds the same as `file_window`.
        Field = "field",
        /// One chunk at a time.
        Sequential = "sequential",
        /// One chunk of each of several files.
        ParallelFiles = "parallel_files",
        /// A window of chunks over the files in order.
        FileWindow = "file_window",
        /// As many bytes as the path carries, measured.
        Adaptive = "adaptive",
    }
}

words! {
    /// `narrows.following.pace`: how much a follower reads and writes at once.
    FollowPace {
        /// As the parameters of the index say.
        Field = "field",
        /// As the path carries; an index that was given a parameter goes by its parameters.
        Adaptive = "adaptive",
    }
}

words! {
    /// `narrows.search.selection`: which copy of a shard answers a search.
    Selection {
        /// As `cluster.routing.use_adaptive_replica_selection` says.
        Field = "field",
        /// One after another.
        None = "none",
        /// Any.
        Random = "random",
        /// The node with the fewest requests in flight.
        LeastOutstanding = "least_outstanding",
        /// Adaptive replica selection as in Elasticsearch 6.1 to 7.12 and OpenSearch.
        Ars61 = "ars_6_1",
        /// As before it was merged: with the fourth power of the queue in place of the cube.
        Ars61B4 = "ars_6_1_b4",
        /// As in Elasticsearch 7.13.
        Ars713 = "ars_7_13",
        /// As in Elasticsearch 9.5.
        Ars95 = "ars_9_5",
        /// C3, with its control of rates.
        C3 = "c3",
        /// The better of two by peak-sensitive latency and requests in flight.
        TwoChoices = "two_choices",
        /// Prequal: probes, and the rule of hot and cold.
        Prequal = "prequal",
        /// Ours.
        Narrows = "narrows",
        /// Knows everything; in the virtual world alone.
        Oracle = "oracle",
    }
}

words! {
    /// `index.shard.check_on_startup`: what is checked of a copy's files before it is opened, besides their lengths.
    CheckOnStartup {
        /// Nothing.
        False = "false",
        /// Every file is read and compared with its hash.
        Checksum = "checksum",
    }
}

words! {
    /// `index.translog.durability`: when a write is on disk.
    Durability {
        /// Before it is acknowledged.
        Request = "request",
        /// At the next `index.translog.sync_interval`.
        Async = "async",
    }
}
