//! The conclusions on processes of the embedded engine and on OpenSearch: which plans are run there, and which of their
//! rows stand for the documents'.

use self::Elsewhere::{Embedded, OpenSearch};
use super::conclusion::{Measure, Quantity, RowName};

/// Where the conclusions are tried beside virtual time: on this machine, at the plans' small size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// The embedded engine, one process a node.
    Embedded,
    /// OpenSearch, one JVM a node.
    OpenSearch,
}

const CHUNKS: &str = "chunks-over-link";
const CHUNKS_COMPRESSED: &str = "chunks-over-link-compressed";
/// The row of the small nodes, whose chunks are these.
const SMALL_CHUNKS: &str = "1 MB x 5";

impl Elsewhere {
    /// Every place.
    pub const ALL: [Elsewhere; 2] = [Embedded, OpenSearch];

    /// Its name in file names.
    pub fn id(self) -> &'static str {
        match self {
            Embedded => "embedded",
            OpenSearch => "opensearch",
        }
    }

    /// What docs/published has of it, as `narrows published --on` wrote it.
    pub fn known(self) -> &'static str {
        match self {
            Embedded => include_str!("../../../../docs/published/embedded.json"),
            OpenSearch => include_str!("../../../../docs/published/opensearch.json"),
        }
    }

    /// The plans that are run there, in the order of the documents.
    pub fn plans(self) -> &'static [&'static str] {
        match self {
            Embedded => &[
                "remote-recovery", "small-nodes-compression", "replica-selection", "dcp-rebalance",
            ],
            OpenSearch => &[CHUNKS, CHUNKS_COMPRESSED, "replica-selection"],
        }
    }

    /// The row that stands there for one of a document. OpenSearch has no recovery from remote: a copy that is added
    /// across the link stands for it, with the same chunks. Its rank of copies has the exponent 3, whatever the row's.
    pub fn row(self, row: RowName) -> Option<RowName> {
        let found = match (self, row.plan, row.variant) {
            (OpenSearch, "remote-recovery", variant) => RowName { plan: CHUNKS, variant },
            (OpenSearch, "small-nodes-compression", "plain") => {
                RowName { plan: CHUNKS, variant: SMALL_CHUNKS }
            }
            (OpenSearch, "small-nodes-compression", "compressed") => {
                RowName { plan: CHUNKS_COMPRESSED, variant: SMALL_CHUNKS }
            }
            (OpenSearch, "replica-selection", variant) => {
                RowName { variant: variant.strip_suffix(", b = 4").unwrap_or(variant), ..row }
            }
            _ => row,
        };
        self.plans().contains(&found.plan).then_some(found)
    }

    /// Whether a number says the same there: a ratio or a share does; seconds, rates and cores are those of a machine.
    pub fn can_compare(self, measure: &Measure) -> bool {
        let figures = measure.figures();
        let is_run = figures.iter().all(|figure| self.row(figure.row).is_some());
        let is_relative = match measure {
            Measure::Ratio(..) | Measure::RatioOfRatios(..) | Measure::Improved(..) => true,
            Measure::One(figure) => matches!(
                figure.of,
                Quantity::HeldBy(_)
                    | Quantity::Busy(_)
                    | Quantity::SearchesOf(_)
                    | Quantity::SearchesSpread
            ),
            Measure::Difference(..) | Measure::NotMeasured => false,
        };
        is_run && is_relative
    }

    /// Why a conclusion does not hold there or is not measured; empty where it holds. `some_laps` says whether it holds
    /// in some laps.
    pub fn why(
        self,
        document: &str,
        claim: &str,
        holds: Option<bool>,
        some_laps: bool,
    ) -> &'static str {
        if holds == Some(true) {
            return "";
        }
        let is_it = |(on, of, begins, _): &&Known| {
            *on == self && *of == document && claim.starts_with(begins)
        };
        let otherwise = if some_laps { LAPS_DIFFER } else { UNKNOWN };
        KNOWN.iter().find(is_it).map_or(otherwise, |(.., why)| *why)
    }
}

const LAPS_DIFFER: &str = "Laps differ by more than what is asked: on two cores that all nodes share, so few do not decide it.";

/// What is said of a conclusion that does not hold and of which nothing is known.
const UNKNOWN: &str = "Not looked into.";

/// Why a conclusion does not hold at a place, as the figures of its last run have it: the place, the document, how the
/// claim begins, and why.
type Known = (Elsewhere, &'static str, &'static str, &'static str);

const PLAN: &str = "benchmark-plan";
const ARTICLE: &str = "article";
const SELECTION: &str = "replica-selection";
const DCP: &str = "dcp-rebalance";
const SMALL: &str = "The index has some MB in place of 5.26 GB: what comes before its first chunk and after its last \
     one is most of the time that is left.";
const ZSTD: &str = "This engine compresses with zstd, which takes a thirtieth of what DEFLATE takes, so that compression no \
     longer costs what it saves.";
const SAMPLES: &str = "It takes two samples, a second apart, in which one index alone recovers: here the last one is done sooner.";
const SHARED: &str = "All nodes share two cores: what one is spared the others get, and nothing is gained where none is slow by \
     itself.";
const HEAVIER: &str = "More than that: 32 processes slow a node on two cores far more than they did one of 16, and selection avoids \
     it.";
const TWO_PERCENT: &str = "It asks for a difference of 2 %, and two laps of one case differ by more where all nodes share two \
     cores.";
const WAITING: &str = "Both servers, the proxy, the driver and what writes logs share two cores, and the path waits between its \
     threads: none is busy for as long as on a core of its own (docs/benchmarks/consumer.md).";
const CHEAPER: &str = "The consumer's thread is busy for 41 % of the time: the path waits between its threads, which a cheaper \
     consumer does not shorten.";
const TWO_CORES: &str = "A document takes 5.67 microseconds of a core with the mainstream consumer and 2.73 with the fast one, with \
     all threads of the path (docs/benchmarks/consumer.md): where all share two cores that is 2.1 times at most.";
const ONCE: &str = "Of three documents that the fast consumer is streamed two count, as two of four vbuckets roll back: two \
     thirds of what it carries.";
const USED_UP: &str = "With data copy the two shared cores are used up before its thread is, which is busy for 32 % of the time. \
     With rebalance it is for 54 %, where half as much again is streamed.";
const WARMING: &str = "Java went on compiling: the case without load and selection carried 34, 75 and 134 searches a second in its \
     three laps, so that which case came first counts for more than what is asked.";
const FEW_SAMPLES: &str =
    "One lap of three tells it, by samples a second apart of indices of some MB: that says little.";
const NO_TRADE: &str = "On shared cores the loaded node slows every search that meets it, the median one too: with selection it \
     falls.";

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    (Embedded, PLAN, "Parallel recovery is essential", SMALL),
    (Embedded, PLAN, "More chunks in flight", SMALL),
    (Embedded, PLAN, "Compression ends up slower", ZSTD),
    (Embedded, PLAN, "CPU has a peak with all three indices", SAMPLES),
    (Embedded, PLAN, "... and 66.18 to 19 %", SAMPLES),
    (Embedded, PLAN, "... of the follower: 20.4 to 5 %", SAMPLES),
    (Embedded, PLAN, "... and 18.5 to 5 %", SAMPLES),
    (Embedded, ARTICLE, "Fetching chunks of different files", SMALL),
    (Embedded, ARTICLE, "Without settings that saturate", ZSTD),
    (Embedded, SELECTION, "First tests: roughly 1 % of difference without load, at most 1.9 %: throughput", TWO_PERCENT),
    (Embedded, SELECTION, "First tests: doubles the median throughput", HEAVIER),
    (Embedded, SELECTION, "With more copies it improves throughput", SHARED),
    (Embedded, SELECTION, "... and latency: 50th percentile", SHARED),
    (Embedded, SELECTION, "... 90th percentile", SHARED),
    (Embedded, SELECTION, "... 99th percentile", SHARED),
    (Embedded, SELECTION, "Increases the median throughput", HEAVIER),
    (Embedded, SELECTION, "An improvement where all nodes are asked: throughput", SHARED),
    (Embedded, DCP, "Rebalance: the consumer's thread", WAITING),
    (Embedded, DCP, "DataCopy: the consumer's thread", WAITING),
    (Embedded, DCP, "Rebalance: the fast consumer's thread", WAITING),
    (Embedded, DCP, "DataCopy: the fast consumer's thread", WAITING),
    (Embedded, DCP, "The consumer is the first bottleneck", CHEAPER),
    (Embedded, DCP, "... and DataCopy by much more", TWO_CORES),
    (Embedded, DCP, "Rebalance improves marginally", ONCE),
    (Embedded, DCP, "With DataCopy it uses much more", USED_UP),
    (OpenSearch, PLAN, "Parallel recovery is essential", SMALL),
    (OpenSearch, PLAN, "Chunks of 5 MB in place of 1 MB", SMALL),
    (OpenSearch, PLAN, "More chunks in flight", SMALL),
    (OpenSearch, PLAN, "CPU has a peak with all three indices", FEW_SAMPLES),
    (OpenSearch, PLAN, "... and 66.18 to 19 %", FEW_SAMPLES),
    (OpenSearch, PLAN, "... of the follower: 20.4 to 5 %", FEW_SAMPLES),
    (OpenSearch, PLAN, "... and 18.5 to 5 %", FEW_SAMPLES),
    (OpenSearch, ARTICLE, "Fetching chunks of different files", SMALL),
    (OpenSearch, SELECTION, "First tests: roughly 1 % of difference without load, at most 1.9 %: throughput", WARMING),
    (OpenSearch, SELECTION, "First tests: roughly 1 % of difference without load, at most 1.9 %: 90th", WARMING),
    (OpenSearch, SELECTION, "First tests: roughly 1 % of difference without load, at most 1.9 %: 99th", WARMING),
    (OpenSearch, SELECTION, "First tests: trades the 50th percentile", NO_TRADE),
    (OpenSearch, SELECTION, "Not a huge difference: throughput", WARMING),
    (OpenSearch, SELECTION, "Not a huge difference: 50th", WARMING),
    (OpenSearch, SELECTION, "Not a huge difference: 90th", WARMING),
    (OpenSearch, SELECTION, "Not a huge difference: 99th", WARMING),
    (OpenSearch, SELECTION, "Trades the 50th percentile", NO_TRADE),
    (OpenSearch, SELECTION, "Increases the median throughput", HEAVIER),
    (OpenSearch, SELECTION, "It should help to route around", WARMING),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::{DOCUMENTS, conclusions};
    use crate::plan::{Plan, Variant, all_resolved};

    #[test]
    fn every_row_that_stands_for_another_is_in_its_plan() {
        let plans = all_resolved();
        for on in Elsewhere::ALL {
            let compared = conclusions().filter(|c| on.can_compare(&c.measure));
            let figures = compared.flat_map(|conclusion| conclusion.measure.figures());
            let rows: Vec<RowName> = figures.filter_map(|figure| on.row(figure.row)).collect();
            assert!(rows.len() > 20, "{on:?}: {}", rows.len());
            for row in rows {
                let plan = plans.iter().find(|plan| plan.name == row.plan).unwrap();
                let is_it = |variant: &Variant| variant.name == row.variant;
                assert!(plan.variants.iter().any(is_it), "{on:?}: {row:?}");
            }
            for plan in on.plans() {
                Plan::open(plan).unwrap();
            }
        }
    }

    #[test]
    fn what_is_known_is_known_of_a_conclusion() {
        for (_, of, begins, _) in KNOWN {
            let document = DOCUMENTS.iter().find(|document| document.id == *of).unwrap();
            let claims = document.conclusions.iter().map(|one| one.claim);
            assert_eq!(claims.filter(|claim| claim.starts_with(begins)).count(), 1, "{begins}");
        }
    }

    /// What was found is kept with the documents, and its explanations are those of here: a run that finds something
    /// else needs others.
    #[test]
    fn what_does_not_hold_where_time_is_real_has_its_explanation_and_nothing_else_has() {
        for on in Elsewhere::ALL {
            let kept: serde_json::Value = serde_json::from_str(on.known()).unwrap();
            for found in kept["conclusions"].as_array().unwrap() {
                let [document, claim, why] =
                    ["document", "claim", "why"].map(|key| found[key].as_str().unwrap());
                let holds = found["holds"].as_bool();
                let some_laps = found["laps_holding"].as_u64().is_some_and(|laps| laps > 0);
                assert_eq!(why, on.why(document, claim, holds, some_laps), "{on:?}: {claim}");
                assert_ne!(why, UNKNOWN, "{on:?}: {claim}");
                assert_eq!(why.is_empty(), holds == Some(true), "{on:?}: {claim}");
            }
        }
    }
}
