//! What it concludes: the article about that benchmark.

use super::claim::{claim, figure, not_measured, one, slower};
use super::conclusion::Bound::{About, AtMost, HalfOf, HalfTheEffect};
use super::conclusion::Expected::{Holds, HoldsBut};
use super::conclusion::{Conclusion, Document, Measure, Quantity, When};

pub(super) const DOCUMENT: Document = Document {
    id: "article",
    title: "Benchmarking Elasticsearch cross-cluster replication",
    by: "Elastic, 2019",
    plans: &[LARGE, SMALLER, STABILITY, RESTARTS],
    conclusions: CONCLUSIONS,
};

const GEOPOINT: &str = "remote-recovery";
const SMALL: &str = "small-nodes-compression";

const LARGE: &str = "follow-large";
const SMALLER: &str = "follow-small-and-medium";
const STABILITY: &str = "stability";
const RESTARTS: &str = "stability-restarts";
/// The variant with the parameters of the field.
const FIELD: &str = "field";

const ROLLOVERS: &str = "Arithmetic on settings of the plan stability, of which a twentieth was run, with one seed: its indices are rolled \
                         over at the document's 20 GB, and 341 of them have its 17 billion documents with 50 million in \
                         each. With 52 million it would be 17.7 billion.";

#[rustfmt::skip]
const CONCLUSIONS: &[Conclusion] = &[
    claim("optimal remote recovery",
        "Fetching chunks of different files in parallel mends a recovery that took too long",
        slower(GEOPOINT, "1 MB x 1", "1 MB x 5"), HalfTheEffect, Holds),
    claim("network compression",
        "Without settings that saturate the network, compression makes the recovery slower: on small nodes",
        slower(SMALL, "compressed", "plain"), HalfTheEffect, Holds),
    claim("network compression", "... due to increased CPU usage: more cores of the leader at the peak",
        Measure::Ratio(figure(SMALL, "compressed", Quantity::Cores(When::Peak, "leader-0")),
            figure(SMALL, "plain", Quantity::Cores(When::Peak, "leader-0"))),
        HalfOf(3.151), Holds),
    claim("following",
        "The follower is always able to catch up, with large documents: here in less time than the link was cut, 300 s",
        one(LARGE, FIELD, Quantity::LongestCatchUp), AtMost(300.0),
        HoldsBut("The document gives no figure: the bound is ours. One seed, and a run in which a copy lacks a write fails.")),
    claim("following", "... with small and medium documents: in less time than each of two cuts, 300 s",
        one(SMALLER, FIELD, Quantity::LongestCatchUp), AtMost(300.0),
        HoldsBut("The document gives no figure: the bound is ours, and so are 80 000 documents a second, those of the \
         benchmark plan. They come in runs, without updates: the plans follow-small and follow-medium have these, at \
         4000 a second, and take a minute of a core each. One seed.")),
    not_measured("following",
        "max_read_request_size of 32 MB in place of unlimited avoids long collections with large documents",
        "The model has no heap. It would need what an answer takes of one, and for how long a collector stops a node for \
         that. The plan follow-read-size shows the rest: after a cut of 120 s a follower caught up in 6.8 s with 32 MB and \
         in 8.5 s without a bound."),
    claim("stability",
        "The follower keeps up for ten days, 17 billion documents: it never lacks a write for as long as a minute",
        one(STABILITY, FIELD, Quantity::LagMax), AtMost(60.0),
        HoldsBut("A twentieth of the ten days was run, with one seed. The minute is ours. A document is a number without \
         bytes here, so that no disk and no collector holds the follower up.")),
    claim("stability", "... which rolls its index over 341 times: 17 in a twentieth of the time",
        one(STABILITY, FIELD, Quantity::Rollovers), About(17.05), HoldsBut(ROLLOVERS)),
    claim("stability", "Each index that was rolled over has some 52 million documents and 20 GB of data",
        one(STABILITY, FIELD, Quantity::DocumentsAnIndex), About(52.0), HoldsBut(ROLLOVERS)),
    claim("stability",
        "With random restarts of the following cluster all data is recovered: in less time than it was down, 300 s",
        one(RESTARTS, FIELD, Quantity::LongestCatchUp), AtMost(300.0),
        HoldsBut("A twentieth of the ten days was run, with one seed. The bound is ours: a run in which a copy lacks a \
         write fails.")),
    not_measured("try it yourself",
        "A recipe that is easy to use starts a local environment, whose metrics go to a store",
        "Not a figure. Ours is docs/benchmark-replication.md, whose commands a test runs."),
];
