//! What it concludes: the article about that benchmark.

use super::claim::{claim, figure, not_measured, slower};
use super::conclusion::Bound::{HalfOf, HalfTheEffect};
use super::conclusion::Expected::Holds;
use super::conclusion::{Conclusion, Document, Measure, Quantity};

pub(super) const DOCUMENT: Document = Document {
    id: "article",
    title: "Benchmarking Elasticsearch cross-cluster replication",
    by: "Elastic, 2019",
    plans: &[],
    conclusions: CONCLUSIONS,
};

const GEOPOINT: &str = "remote-recovery";
const SMALL: &str = "small-nodes-compression";

const STABILITY: &str = "Not a figure: a run of the plans stability and stability-restarts with --on virtual says whether it was so in the \
                         model, where a document is a number without bytes.";

#[rustfmt::skip]
const CONCLUSIONS: &[Conclusion] = &[
    claim("optimal remote recovery",
        "Fetching chunks of different files in parallel mends a recovery that took too long",
        slower(GEOPOINT, "1 MB x 1", "1 MB x 5"), HalfTheEffect, Holds),
    claim("network compression",
        "Without settings that saturate the network, compression makes the recovery slower: on small nodes",
        slower(SMALL, "compressed", "plain"), HalfTheEffect, Holds),
    claim("network compression", "... due to increased CPU usage: more cores of the leader at the peak",
        Measure::Ratio(figure(SMALL, "compressed", Quantity::PeakCores("leader-0")),
            figure(SMALL, "plain", Quantity::PeakCores("leader-0"))),
        HalfOf(3.151), Holds),
    not_measured("following", "The follower is always able to catch up, with small, medium and large documents",
        "Not a figure: a run of the plans follow-small, follow-medium and follow-large says whether it was so in that \
         run, and fails where it was not."),
    not_measured("following",
        "max_read_request_size of 32 MB in place of unlimited avoids long collections with large documents",
        "The model has no collector. A run of the plan follow-read-size shows how a follower catches up with either."),
    not_measured("stability", "The follower keeps up for ten days: 17 billion documents, 341 rollovers", STABILITY),
    not_measured("stability", "Each index that was rolled over has some 52 million documents and 20 GB of data",
        "Arithmetic on settings of the plan stability: its indices are rolled over at the document's 20 GB, and 341 of \
         them have its 17 billion documents with 50 million in each. With 52 million it would be 17.7 billion."),
    not_measured("stability",
        "With random restarts of the following cluster, down for five minutes, all data is recovered", STABILITY),
];
