//! What it concludes: the study of what a rebalance carries.

use super::claim::{claim, figure, one};
use super::conclusion::Bound::{About, AtMost, HalfTheEffect};
use super::conclusion::Expected::{Fails, Holds, HoldsBut};
use super::conclusion::{Conclusion, Document, Measure, Quantity};

pub(super) const DOCUMENT: Document = Document {
    id: "dcp-rebalance",
    title: "DCP rebalance throughput",
    by: "Couchbase's issue tracker, 2020",
    plans: &["dcp-rebalance"],
    conclusions: CONCLUSIONS,
};

const MOVES: &str = "dcp-rebalance";
const REBALANCE: &str = "rebalance, mainstream";
const COPY: &str = "data-copy, mainstream";
const REBALANCE_FAST: &str = "rebalance, fast (measuring device)";
const COPY_FAST: &str = "data-copy, fast (measuring device)";

const ROLLBACK: &str = "Two of four vbuckets become active on a second node where each has one replica. Their takeover is a second \
     stream, and the fast consumer has kept no failover log to ask for it by. Which two rolled back is not published.";

const PROXY: &str = "The 3 GB take 32 s here and took 38 s there. That the proxy takes 8.5 microseconds a packet was measured on another \
     machine; 10.5 would give their time. It is not fitted to that.";

/// The rate of one path of the rebalance over that of another.
const fn carries_more(fast: &'static str, slow: &'static str) -> Measure {
    Measure::Ratio(figure(MOVES, fast, Quantity::NodeRate), figure(MOVES, slow, Quantity::NodeRate))
}

#[rustfmt::skip]
const CONCLUSIONS: &[Conclusion] = &[
    claim("baseline", "Rebalance: the consumer's thread is at 85 % of a core",
        one(MOVES, REBALANCE, Quantity::Busy("consumer")), About(0.85), HoldsBut("Fitted.")),
    claim("baseline", "DataCopy: the consumer's thread is at 100 % of a core",
        one(MOVES, COPY, Quantity::Busy("consumer")), About(1.0), HoldsBut("Fitted.")),
    claim("fast consumer", "Rebalance: the fast consumer's thread is at 55 % of a core",
        one(MOVES, REBALANCE_FAST, Quantity::Busy("a measuring device")), About(0.55),
        Fails("Receiving a packet is what this engine's costs it, as a part of all that a packet costs.")),
    claim("fast consumer", "DataCopy: the fast consumer's thread is at 90 % of a core",
        one(MOVES, COPY_FAST, Quantity::Busy("a measuring device")), About(0.9), Holds),
    claim("comments", "The consumer is the first bottleneck: a faster one speeds up Rebalance",
        carries_more(REBALANCE_FAST, REBALANCE), HalfTheEffect, Holds),
    claim("comments", "... by less than two times",
        carries_more(REBALANCE_FAST, REBALANCE), AtMost(2.0), Fails(PROXY)),
    claim("comments", "... and DataCopy by much more, 60 to 150 MB/s",
        carries_more(COPY_FAST, COPY), About(2.5),
        Fails("The fast consumer costs less here than theirs: it takes all that the producer sends, 175 MB/s.")),
    claim("comments", "The manager's proxy is the next bottleneck, at 80 MB/s",
        one(MOVES, REBALANCE_FAST, Quantity::NodeRate), About(80.0), Fails(PROXY)),
    claim("comments", "The source can send at 175 MB/s",
        one(MOVES, "producer alone", Quantity::NodeRate), About(175.0), HoldsBut("Fitted.")),
    claim("comments", "The producer carries more than the fast consumer",
        carries_more("producer alone", COPY_FAST), HalfTheEffect,
        Fails("The fast consumer costs less here than theirs and carries all that the producer sends.")),
    claim("update of 2020-09-03", "Without persistence 2 of 4 vbuckets roll back",
        one(MOVES, REBALANCE_FAST, Quantity::Rollbacks), About(2.0), HoldsBut(ROLLBACK)),
    claim("update of 2020-09-03", "... which pushes the data streamed to 3 GB",
        one(MOVES, REBALANCE_FAST, Quantity::Streamed), About(3.0), Holds),
    claim("update of 2020-09-03", "... in place of 2 GB with the mainstream consumer",
        one(MOVES, REBALANCE, Quantity::Streamed), About(2.0), Holds),
    claim("update of 2020-09-03", "... so that by its documents it had seemed to carry 55 MB/s",
        one(MOVES, REBALANCE_FAST, Quantity::DocumentRate), About(55.0), Fails(PROXY)),
];
