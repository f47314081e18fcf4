//! Every chart of the documents, and what of ours stands beside it. Theirs are pictures of their makers' monitoring and
//! are not copied; what a document says of one in numbers is marked in ours.

use insight::{Curves, NodeCurve, Point};

use crate::page::charts::{INDEXED, Panel, RECOVERED};

/// A chart of a document.
pub(super) struct Chart {
    /// The part of the document that it stands in; its charts are folded together.
    pub part: &'static str,
    /// What it shows.
    pub theirs: &'static str,
    /// The plan that repeats it.
    pub plan: &'static str,
    /// The variants that are laid over each other.
    pub variants: &'static [&'static str],
    /// What stands beside it.
    pub ours: Ours,
}

/// What of ours stands beside a chart.
pub(super) enum Ours {
    /// Measures over time, below each other.
    OverTime(&'static [Panel]),
    /// How searches spread over these nodes; the published counts are those of the first variant.
    Searches(&'static [NodeSearches]),
}

/// The searches that a node completed.
pub(super) struct NodeSearches {
    /// Its name in our plans.
    pub node: &'static str,
    /// Its name in the document.
    pub name: &'static str,
    /// As many are published.
    pub count: f64,
}

/// The variants, each after its plan, whose curves and searches [`super::FirstSeed`] has to have.
pub fn charted() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHARTS.iter().flat_map(|chart| chart.variants.iter().map(move |variant| (chart.plan, *variant)))
}

/// What there is to say of the charts of a document.
pub(super) fn remark(document: &str) -> Option<&'static str> {
    REMARKS.iter().find(|(id, _)| *id == document).map(|(_, remark)| *remark)
}

const REMARKS: [(&str, &str); 5] = [
    (
        "benchmark-plan",
        "The document's charts are pictures of its monitoring and are not copied: each of ours says which one it stands \
         beside, and a dashed line is what the document says of it in numbers. Ours are of seed 1, and show one node \
         of a cluster whose nodes do the same. The charts of heap and collections in iteration 1 have none beside them: \
         the model has no heap.",
    ),
    (
        "replica-selection",
        "The document has no charts. It lists how many searches each node completed in two of its cases; ours are of \
         seed 1.",
    ),
    ("dcp-rebalance", "The document has tables and no charts."),
    (
        "life-after-ec2",
        "The talk's charts are pictures of its monitoring without numbers and are not copied: each of ours says which \
         slide it stands beside. Ours are of seed 1, and show the node that restarts first.",
    ),
    (
        "article",
        "The document's pictures are of its topology and of compression: it has no charts.",
    ),
];

fn of_node<'a>(curves: &'a Curves, name: &str, of: fn(&NodeCurve) -> &[Point]) -> &'a [Point] {
    let node = curves.nodes.iter().find(|node| node.node == name);
    node.map_or(&[], of)
}

const fn cores(id: &'static str, title: &'static str, points: fn(&Curves) -> &[Point]) -> Panel {
    Panel::of(id, title, points, |_| (1.0, "cores"))
}

const fn rate(id: &'static str, title: &'static str, points: fn(&Curves) -> &[Point]) -> Panel {
    Panel::of(id, title, points, |_| (1e6, "MB/s"))
}

const LINK: Panel = rate("to-follower", "Network from the leader to the follower", |c| &c.link);

const LEADER_CORES: Panel = cores("leader-cores", "CPU of the first leader node", |c| {
    of_node(c, "leader-0", |node| &node.cores)
});
const FOLLOWER_CORES: Panel = cores("follower-cores", "CPU of the first follower node", |c| {
    of_node(c, "follower-0", |node| &node.cores)
});
const THIRD_FOLLOWER_CORES: Panel = cores("third-cores", "CPU of the third follower node", |c| {
    of_node(c, "follower-2", |node| &node.cores)
});
const LEADER_SENT: Panel = rate("leader-sent", "Network out of the first leader node", |c| {
    of_node(c, "leader-0", |node| &node.sent)
});
const FOLLOWER_RECEIVED: Panel =
    rate("follower-received", "Network into the first follower node", |c| {
        of_node(c, "follower-0", |node| &node.received)
    });
/// The node that restarts first.
const RESTARTED_RECEIVED: Panel =
    rate("restarted-received", "Network into the node that restarts first", |c| {
        of_node(c, "leader-7", |node| &node.received)
    });
const RESTARTED_BUSY: Panel = Panel::of(
    "restarted-busy",
    "Busy share of the disk of the node that restarts first",
    |c| of_node(c, "leader-7", |node| &node.disk_busy),
    |_| (0.01, "%"),
);

const HTTP_LOGS: &str = "remote-recovery-http-logs";
const SMALL: &str = "small-nodes-compression";
const SHARDS: &str = "shard-recovery";
const FIRST: &str = "1: 1 MB x 5, files";
const THIRD: &str = "3: 1 MB x 5";
const SIXTH: &str = "6: 5 MB x 8";
const SEVENTH: &str = "7: 5 MB x 8, Java 11";
const COMPRESSED_MORE: &str = "compressed: 5 MB x 8";
const COMPRESSED_11: &str = "compressed: 5 MB x 8, Java 11";
const EXPERIMENT_1: &str = "Experiment 1, http_logs";
const EXPERIMENT_2: &str = "Experiment 2, http_logs";
const SLIDES: &str = "Slides 29 to 53";
pub(super) const REQUESTS: &str = "Requests by node";
const LAST_5: &str = "published, last index: 5 %";
const BOTH_CORES: &[Panel] = &[LEADER_CORES, FOLLOWER_CORES];

const COMPRESSION: &[Panel] = &[Panel {
    levels: &[(3.568, "published peak, compressed: 22.3 %"), (0.32, "published peak, plain: 2 %")],
    ..LEADER_CORES
}];
const WHILE_INDEXING: &[Panel] = &[
    Panel { levels: &[(80_000.0, "published: 80 000 a second")], ..INDEXED },
    RECOVERED,
    LINK,
    LEADER_CORES,
    FOLLOWER_CORES,
];
#[rustfmt::skip]
const SMALL_PLAIN: &[Panel] = &[
    Panel { levels: &[(0.84, "published peak: 21 %"), (0.2, LAST_5)], ..LEADER_CORES },
    Panel { levels: &[(0.816, "published peak: 20.4 %"), (0.2, LAST_5)], ..FOLLOWER_CORES },
    Panel { levels: &[(91.6e6, "published peak: 91.6 MB/s"), (32e6, "published, last index: 32 MB/s")], ..LEADER_SENT },
    Panel {
        levels: &[(67.2e6, "published peak: 67.2 MB/s"), (33e6, "published, last index: 33 MB/s")],
        ..FOLLOWER_RECEIVED
    },
];
#[rustfmt::skip]
const SMALL_COMPRESSED: &[Panel] = &[
    Panel { levels: &[(2.647, "published peak: 66.18 %"), (0.76, "published, last index: 19 %")], ..LEADER_CORES },
    Panel { levels: &[(0.74, "published peak: 18.5 %"), (0.2, LAST_5)], ..FOLLOWER_CORES },
    Panel { levels: &[(48.5e6, "published peak: 48.5 MB/s"), (16e6, "published, last index: 16 MB/s")], ..LEADER_SENT },
    Panel {
        levels: &[(51.6e6, "published peak: 51.6 MB/s"), (13e6, "published, last index: 13 MB/s")],
        ..FOLLOWER_RECEIVED
    },
];
const THROTTLE: &[Panel] =
    &[Panel { levels: &[(20.97e6, "slide 13, by default: 21.0 MB/s")], ..RESTARTED_RECEIVED }];

const fn node(node: &'static str, name: &'static str, count: f64) -> NodeSearches {
    NodeSearches { node, name, count }
}

const ONE_REPLICA: &[NodeSearches] = &[
    node("leader-1", "es1", 220_730.0),
    node("leader-2", "es2", 226_168.0),
    node("leader-3", "es3", 113_115.0),
    node("leader-4", "es4", 241_512.0),
    node("leader-5", "es5", 212_850.0),
];
const FOUR_REPLICAS: &[NodeSearches] = &[
    node("leader-1", "es1", 229_143.0),
    node("leader-2", "es2", 224_000.0),
    node("leader-3", "es3", 119_263.0),
    node("leader-4", "es4", 234_915.0),
    node("leader-5", "es5", 207_679.0),
];

const fn over_time(
    (part, theirs): (&'static str, &'static str),
    plan: &'static str,
    variants: &'static [&'static str],
    measures: &'static [Panel],
) -> Chart {
    Chart { part, theirs, plan, variants, ours: Ours::OverTime(measures) }
}

const fn searches(
    theirs: &'static str,
    variants: &'static [&'static str],
    nodes: &'static [NodeSearches],
) -> Chart {
    let ours = Ours::Searches(nodes);
    Chart { part: REQUESTS, theirs, plan: "replica-selection", variants, ours }
}

#[rustfmt::skip]
pub(super) const CHARTS: &[Chart] = &[
    over_time(("Experiment 1, geopoint", "the graphs that the document links to, by bytes recovered"),
        "remote-recovery", &["1 MB x 1", "5 MB x 1", "1 MB x 5"], &[RECOVERED]),
    over_time((EXPERIMENT_1, "the network usage of iteration 1"), HTTP_LOGS, &[FIRST], &[LINK]),
    over_time((EXPERIMENT_1, "the network usage of iteration 2 against iteration 1: chunks of 5 MB against 1 MB"),
        HTTP_LOGS, &[FIRST, "2: 5 MB x 5, files"], &[LINK]),
    over_time((EXPERIMENT_1, "the network usage of iteration 3 against iteration 1: smart fetch"),
        HTTP_LOGS, &[FIRST, THIRD], &[LINK]),
    over_time((EXPERIMENT_1, "the network usage of iteration 4 against iteration 3: chunks of 5 MB against 1 MB"),
        HTTP_LOGS, &[THIRD, "4: 5 MB x 5"], &[LINK]),
    over_time((EXPERIMENT_1, "the network usage of iteration 5 against iteration 3: ten chunks in flight against five"),
        HTTP_LOGS, &[THIRD, "5: 1 MB x 10"], &[LINK]),
    over_time((EXPERIMENT_2, "the network usage with compression: 5 MB x 8 against 1 MB x 5"),
        HTTP_LOGS, &["compressed: 1 MB x 5", COMPRESSED_MORE], &[LINK]),
    over_time((EXPERIMENT_2, "the CPU usage with compression: 5 MB x 8 against 1 MB x 5"),
        HTTP_LOGS, &["compressed: 1 MB x 5", COMPRESSED_MORE], BOTH_CORES),
    over_time((EXPERIMENT_2, "the user CPU of 5 MB x 8 with compression and without"),
        HTTP_LOGS, &[SIXTH, COMPRESSED_MORE], BOTH_CORES),
    over_time((EXPERIMENT_2, "the user CPU of the first leader node, 5 MB x 8 with compression and without"),
        HTTP_LOGS, &[SIXTH, COMPRESSED_MORE], COMPRESSION),
    over_time((EXPERIMENT_2, "the network usage of 5 MB x 8 with compression and without"),
        HTTP_LOGS, &[SIXTH, COMPRESSED_MORE], &[LINK]),
    over_time((EXPERIMENT_2, "the user CPU with Java 11, with compression and without"),
        HTTP_LOGS, &[SEVENTH, COMPRESSED_11], BOTH_CORES),
    over_time((EXPERIMENT_2, "the user CPU of the third follower node with Java 11, with compression and without"),
        HTTP_LOGS, &[SEVENTH, COMPRESSED_11], &[THIRD_FOLLOWER_CORES]),
    over_time((EXPERIMENT_2, "the CPU usage with compression: Java 11 against Java 8"),
        HTTP_LOGS, &[COMPRESSED_MORE, COMPRESSED_11], BOTH_CORES),
    over_time((EXPERIMENT_2, "the network usage with Java 11, with compression and without"),
        HTTP_LOGS, &[SEVENTH, COMPRESSED_11], &[LINK]),
    over_time((EXPERIMENT_2, "the network usage of the first leader node and the first follower node with Java 11"),
        HTTP_LOGS, &[SEVENTH, COMPRESSED_11], &[LEADER_SENT, FOLLOWER_RECEIVED]),
    over_time(("Experiments 3 and 4, http_logs",
        "all usages while the leader is indexed at a lower throughput; experiment 4, compressed, has no chart"),
        "recover-while-indexing", &["plain", "compressed"], WHILE_INDEXING),
    over_time(("Experiment 5", "CPU and network of iteration 1, without compression"), SMALL, &["plain"], SMALL_PLAIN),
    over_time(("Experiment 5", "CPU and network of iteration 2, with compression"),
        SMALL, &["compressed"], SMALL_COMPRESSED),
    over_time((SLIDES, "slide 29, the throttle raised: progress"), SHARDS, &["20mb, the default", "500mb"], THROTTLE),
    over_time((SLIDES, "slide 31, the throttle raised again: nodes basically bored"),
        SHARDS, &["500mb", "2gb"], &[RESTARTED_RECEIVED, RECOVERED]),
    over_time((SLIDES, "slides 29 and 31, the throttle raised twice while copies recover; when is ours"),
        "shard-recovery-raised", &["20mb, the default", "raised meanwhile"], THROTTLE),
    over_time((SLIDES, "slides 51 to 53, the disk scheduler changed; in ours on all nodes from the beginning"),
        SHARDS, &["2gb", "2gb, noop"], &[RESTARTED_RECEIVED, RESTARTED_BUSY, RECOVERED]),
    over_time((SLIDES, "slides 51 to 53, the disk scheduler changed node by node while copies recover; when is ours"),
        "shard-recovery-raised", &["raised meanwhile", "raised, then noop node by node"],
        &[RESTARTED_RECEIVED, RESTARTED_BUSY]),
    searches("the searches that each node completed, 1 replica and es3 loaded, with selection as in the first tests",
        &["1 replica, es3 loaded: ARS, b = 4", "1 replica, es3 loaded: none"], ONE_REPLICA),
    searches("the searches that each node completed, 4 replicas and es3 loaded, with selection as in the first tests",
        &["4 replicas, es3 loaded: ARS, b = 4", "4 replicas, es3 loaded: none"], FOUR_REPLICAS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_of_a_part_stand_together() {
        let mut parts: Vec<&str> = CHARTS.iter().map(|chart| chart.part).collect();
        parts.dedup();
        let each: std::collections::BTreeSet<&str> = parts.iter().copied().collect();
        assert_eq!(each.len(), parts.len(), "{parts:?}");
        assert!(charted().any(|one| one == (SMALL, "plain")));
    }
}
