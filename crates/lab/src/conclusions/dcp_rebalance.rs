//! What it concludes: the study of what a rebalance carries.

use super::claim::{claim, figure, not_measured, one, slower};
use super::conclusion::Bound::{About, AtLeast, AtMost, Between, HalfOf, HalfTheEffect};
use super::conclusion::Expected::{Fails, Holds, HoldsBut};
use super::conclusion::{Conclusion, Document, Measure, Quantity};

pub(super) const DOCUMENT: Document = Document {
    id: "dcp-rebalance",
    title: "DCP rebalance throughput",
    by: "Couchbase's issue tracker, 2020",
    plans: &[MOVES, MEMORY, LARGER],
    conclusions: CONCLUSIONS,
};

const MOVES: &str = "dcp-rebalance";
const MEMORY: &str = "dcp-memory";
const LARGER: &str = "dcp-larger-items";
const EXPEL: &str = "2020, item expel";
const NO_EXPEL: &str = "2020, without";
const REBALANCE: &str = "rebalance, mainstream";
const COPY: &str = "data-copy, mainstream";
const REBALANCE_FAST: &str = "rebalance, fast (measuring device)";
const COPY_FAST: &str = "data-copy, fast (measuring device)";

const ROLLBACK: &str = "Two of four vbuckets become active on a second node where each has one replica. Their takeover is a second \
     stream, and the fast consumer has kept no failover log to ask for it by. Which two rolled back is not published.";

const PROXY: &str = "The 3 GB take 28 s here and took 38 s there. The proxy as its makers published it takes 6.9 \
     microseconds a packet, measured on another machine: less than the fast consumer. How fast their machine was is \
     not known, and how often its threads waited for each other is not in the model. Nothing is fitted to the row.";

const CONSUMER: &str = "A packet costs the proxy 6.9 microseconds, measured on another machine, and the fast \
     consumer 7.21, as it reads each by itself. On a machine where the proxy is 5 % slower it would be the busier one.";

const OUR_QUOTA: &str = "Neither quota nor rate is published: the plan dcp-memory has 200 MB of documents for 96 MB of quota. With item \
                         expel its consumer does not stop at all; without it stops three times, for 4.2 s at most.";

/// The fast consumer's thread.
const FAST: Quantity = Quantity::Busy("a measuring device");

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
        one(MOVES, REBALANCE_FAST, FAST), About(0.55),
        Fails("More passes here, 108 MB/s for 80: at their rate its 7.21 microseconds a packet would be 56 %.")),
    claim("fast consumer", "DataCopy: the fast consumer's thread is at 90 % of a core",
        one(MOVES, COPY_FAST, FAST), About(0.9), Holds),
    claim("fast consumer",
        "That persistence is off does not alter the result: with larger items it keeps up, all is on disk within a tenth more",
        Measure::Ratio(figure(LARGER, COPY, Quantity::Persisted), figure(LARGER, COPY, Quantity::Seconds)),
        AtMost(1.1), HoldsBut("Neither their size nor a disk is published: 8 KiB here, and the model's own disk, 2 GB/s.")),
    claim("fast consumer", "... at much higher MB/s: with 8 KiB in place of 1 KiB",
        Measure::Ratio(figure(LARGER, COPY, Quantity::NodeRate), figure(MOVES, COPY, Quantity::NodeRate)),
        AtLeast(1.5), HoldsBut("No figure is published, and the gain is assumed: a packet costs the same here whatever its size.")),
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
    claim("comments", "Rebalance improves marginally, as it had seemed: 45 to 55 MB/s of documents",
        Measure::Ratio(figure(MOVES, REBALANCE_FAST, Quantity::DocumentRate),
            figure(MOVES, REBALANCE, Quantity::DocumentRate)),
        About(1.222), Fails(PROXY)),
    claim("comments", "The fast consumer waits for a component back in the stack: the proxy's thread is busier than its own",
        Measure::Ratio(figure(MOVES, REBALANCE_FAST, Quantity::Busy("proxy")), figure(MOVES, REBALANCE_FAST, FAST)),
        AtLeast(1.0), Fails(CONSUMER)),
    claim("comments",
        "With DataCopy it uses much more of its core than with Rebalance, 90 for 55 %: at least half of that effect",
        Measure::Ratio(figure(MOVES, COPY_FAST, FAST), figure(MOVES, REBALANCE_FAST, FAST)), HalfOf(1.636),
        Fails("With Rebalance its core has more to do here, as 108 MB/s pass for 80; with DataCopy it costs less than \
         theirs.")),
    claim("comments", "The proxy has to be mended as well to see a significant improvement: past it 150 MB/s for 80",
        carries_more(COPY_FAST, REBALANCE_FAST), HalfTheEffect,
        HoldsBut("Past it the consumer is spared a read for each packet here. The proxy's own time is not the limit.")),
    not_measured("comments", "A profile shows no evident slow path in the consumer: only minor improvements seem possible",
        "It is a profile of their code. What a consumer that takes packets in batches brings to this engine is in \
         docs/benchmarks/consumer.md."),
    claim("update of 2020-09-03", "DataCopy scales much better than Rebalance: 2.5 times for 1.8 by the table",
        Measure::RatioOfRatios(
            [figure(MOVES, COPY_FAST, Quantity::NodeRate), figure(MOVES, COPY, Quantity::NodeRate)],
            [figure(MOVES, REBALANCE_FAST, Quantity::NodeRate), figure(MOVES, REBALANCE, Quantity::NodeRate)]),
        HalfTheEffect, HoldsBut("The text has 3x for DataCopy, where its table has 60 and 150 MB/s.")),
    claim("update of 2020-09-03", "Without persistence 2 of 4 vbuckets roll back",
        one(MOVES, REBALANCE_FAST, Quantity::Rollbacks), About(2.0), HoldsBut(ROLLBACK)),
    claim("update of 2020-09-03", "... which pushes the data streamed to 3 GB",
        one(MOVES, REBALANCE_FAST, Quantity::Streamed), About(3.0), Holds),
    claim("update of 2020-09-03", "... in place of 2 GB with the mainstream consumer",
        one(MOVES, REBALANCE, Quantity::Streamed), About(2.0), Holds),
    claim("update of 2020-09-03", "... so that by its documents it had seemed to carry 55 MB/s",
        one(MOVES, REBALANCE_FAST, Quantity::DocumentRate), About(55.0), Fails(PROXY)),
    claim("on memory", "The consumer stops at the replication threshold, 99 % of the bucket's quota",
        one(MEMORY, NO_EXPEL, Quantity::MemoryPeak), Between(0.99, 1.0),
        HoldsBut("The threshold is what dcp.memory = \"2020\" sets. That it stops there is the row about the bottleneck.")),
    claim("on memory", "Releasing checkpoints' memory sooner, by item expel, lets it go on more promptly: time without over time with",
        slower(MEMORY, NO_EXPEL, EXPEL), AtLeast(1.5), HoldsBut(OUR_QUOTA)),
    claim("on memory", "There the producer streams fast and the consumer's memory is the bottleneck: it is stopped half of the time",
        one(MEMORY, NO_EXPEL, Quantity::Stopped), AtLeast(0.5), HoldsBut(OUR_QUOTA)),
    not_measured("on memory", "In massive backfills the bottleneck is usually the disk of the producer",
        "Neither a disk nor its rate is given. A plan of that case would need both, and a disk that we chose would be its \
         result."),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Within a tenth of 99 % would be what never stops, at 89 %, and what is over its quota.
    #[test]
    fn a_consumer_stops_at_its_threshold_and_within_its_quota() {
        let measure = one(MEMORY, NO_EXPEL, Quantity::MemoryPeak);
        let found = CONCLUSIONS.iter().find(|one| one.measure == measure).unwrap();
        let holds = |share: f64| found.judge(Some(share), None).holds;
        assert_eq!([0.98, 0.992, 1.01].map(holds), [Some(false), Some(true), Some(false)]);
    }
}
