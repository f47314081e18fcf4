//! The conclusions on processes of the embedded engine and on OpenSearch: which plans are run there, and which of their
//! rows stand for the documents'.

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
    pub const ALL: [Elsewhere; 2] = [Elsewhere::Embedded, Elsewhere::OpenSearch];

    /// Its name in file names.
    pub fn id(self) -> &'static str {
        match self {
            Elsewhere::Embedded => "embedded",
            Elsewhere::OpenSearch => "opensearch",
        }
    }

    /// The plans that are run there, in the order of the documents.
    pub fn plans(self) -> &'static [&'static str] {
        match self {
            Elsewhere::Embedded => &[
                "remote-recovery",
                "small-nodes-compression",
                "replica-selection",
                "dcp-rebalance",
            ],
            Elsewhere::OpenSearch => &[CHUNKS, CHUNKS_COMPRESSED, "replica-selection"],
        }
    }

    /// The row that stands there for one of a document. OpenSearch has no recovery from remote: a copy that is added
    /// across the link stands for it, with the same chunks. Its rank of copies has the exponent 3, whatever the row's.
    pub fn row(self, row: RowName) -> Option<RowName> {
        let found = match (self, row.plan, row.variant) {
            (Elsewhere::OpenSearch, "remote-recovery", variant) => {
                RowName { plan: CHUNKS, variant }
            }
            (Elsewhere::OpenSearch, "small-nodes-compression", "plain") => {
                RowName { plan: CHUNKS, variant: SMALL_CHUNKS }
            }
            (Elsewhere::OpenSearch, "small-nodes-compression", "compressed") => {
                RowName { plan: CHUNKS_COMPRESSED, variant: SMALL_CHUNKS }
            }
            (Elsewhere::OpenSearch, "replica-selection", "4 replicas: ARS, b = 4") => {
                RowName { variant: "4 replicas: ARS", ..row }
            }
            (Elsewhere::OpenSearch, "replica-selection", "4 replicas, es3 loaded: ARS, b = 4") => {
                RowName { variant: "4 replicas, es3 loaded: ARS", ..row }
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

    /// What is to be known of a conclusion there; empty where there is nothing to say.
    pub fn why(self, document: &str, claim: &str) -> &'static str {
        let of_it = |known: &&Known| {
            known.on == self && known.document == document && claim.starts_with(known.claim)
        };
        KNOWN.iter().find(of_it).map_or("", |known| known.why)
    }
}

/// What is known of a conclusion at a place.
struct Known {
    on: Elsewhere,
    document: &'static str,
    /// How the claim begins.
    claim: &'static str,
    why: &'static str,
}

const fn known(
    on: Elsewhere,
    document: &'static str,
    claim: &'static str,
    why: &'static str,
) -> Known {
    Known { on, document, claim, why }
}

const PLAN: &str = "benchmark-plan";
const ARTICLE: &str = "article";
const SELECTION: &str = "replica-selection";
const DCP: &str = "dcp-rebalance";
const SMALL: &str = "The index has some MB in place of 4.9 GB: what comes before its first chunk and after its last one is most of \
                     the time that is left.";
const ZSTD: &str = "This engine compresses with zstd, which takes a thirtieth of what DEFLATE takes, so that compression no longer \
                    costs what it saves.";
const SHARED: &str = "All nodes share two cores: what one is spared the others get, and nothing is gained where none is slow by \
                      itself.";
const NO_TRADE: &str = "On shared cores the loaded node slows every search that meets it, the median one too: with selection it falls.";
const WAITING: &str = "The servers share two cores with all else on the machine: no thread is busy for most of the time, so none is \
                       the bottleneck.";

const COLD: &str = "The case without selection is the first, on nodes that have just started: their JVMs may still compile.";
const HEAVIER: &str = "More than that: 32 processes slow a node on two cores far more than they did one of 16, and selection avoids it \
                       for nine requests of ten.";
const UNEVEN: &str = "Which node is slow for a while changes with what else the machine does, and selection follows.";

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    known(Elsewhere::Embedded, PLAN, "Parallel recovery is essential", SMALL),
    known(Elsewhere::Embedded, PLAN, "Chunks of 5 MB in place of 1 MB", SMALL),
    known(Elsewhere::Embedded, PLAN, "More chunks in flight", SMALL),
    known(Elsewhere::Embedded, PLAN, "Compression ends up slower", ZSTD),
    known(Elsewhere::Embedded, ARTICLE, "Fetching chunks of different files", SMALL),
    known(Elsewhere::Embedded, ARTICLE, "Without settings that saturate", ZSTD),
    known(Elsewhere::Embedded, ARTICLE, "... due to increased CPU usage", ZSTD),
    known(Elsewhere::Embedded, SELECTION, "Not a huge difference: throughput", SHARED),
    known(Elsewhere::Embedded, SELECTION, "Not a huge difference: 50th", SHARED),
    known(Elsewhere::Embedded, SELECTION, "Not a huge difference: 90th", SHARED),
    known(Elsewhere::Embedded, SELECTION, "With more copies it improves throughput", SHARED),
    known(Elsewhere::Embedded, SELECTION, "... and latency: 50th percentile", SHARED),
    known(Elsewhere::Embedded, SELECTION, "... 90th percentile", SHARED),
    known(Elsewhere::Embedded, SELECTION, "... 99th percentile", SHARED),
    known(Elsewhere::Embedded, SELECTION, "An improvement where all nodes are asked: throughput", SHARED),
    known(Elsewhere::Embedded, SELECTION, "... for a large reduction", SHARED),
    known(Elsewhere::Embedded, SELECTION, "Trades the 50th percentile", NO_TRADE),
    known(Elsewhere::Embedded, DCP, "Rebalance: the consumer's thread", WAITING),
    known(Elsewhere::Embedded, DCP, "DataCopy: the consumer's thread", WAITING),
    known(Elsewhere::Embedded, DCP, "Rebalance: the fast consumer's thread", WAITING),
    known(Elsewhere::Embedded, DCP, "DataCopy: the fast consumer's thread", WAITING),
    known(Elsewhere::Embedded, DCP, "The consumer is the first bottleneck", WAITING),
    known(Elsewhere::Embedded, DCP, "... and DataCopy by much more", WAITING),
    known(Elsewhere::Embedded, DCP, "The producer carries more", WAITING),
    known(Elsewhere::OpenSearch, PLAN, "Parallel recovery is essential", SMALL),
    known(Elsewhere::OpenSearch, PLAN, "Chunks of 1 MB in place of 64 KB", SMALL),
    known(Elsewhere::OpenSearch, PLAN, "Chunks of 5 MB in place of 1 MB", SMALL),
    known(Elsewhere::OpenSearch, ARTICLE, "Fetching chunks of different files", SMALL),
    known(Elsewhere::OpenSearch, SELECTION, "Not a huge difference: throughput", COLD),
    known(Elsewhere::OpenSearch, SELECTION, "Not a huge difference: 50th", COLD),
    known(Elsewhere::OpenSearch, SELECTION, "Not a huge difference: 90th", COLD),
    known(Elsewhere::OpenSearch, SELECTION, "Not a huge difference: 99th", COLD),
    known(Elsewhere::OpenSearch, SELECTION, "Doubles the median throughput", HEAVIER),
    known(Elsewhere::OpenSearch, SELECTION, "Trades the 50th percentile", NO_TRADE),
    known(Elsewhere::OpenSearch, SELECTION, "... and latency: 50th percentile", SHARED),
    known(Elsewhere::OpenSearch, SELECTION, "Increases the median throughput", HEAVIER),
    known(Elsewhere::OpenSearch, SELECTION, "An improvement where all nodes are asked: throughput", SHARED),
    known(Elsewhere::OpenSearch, SELECTION, "An improvement where all nodes are asked: 50th", SHARED),
    known(Elsewhere::OpenSearch, SELECTION, "An improvement where all nodes are asked: 90th", SHARED),
    known(Elsewhere::OpenSearch, SELECTION, "Requests are routed roughly evenly", UNEVEN),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::{DOCUMENTS, conclusions};
    use crate::plan::Plan;

    #[test]
    fn every_row_that_stands_for_another_is_in_its_plan() {
        for on in Elsewhere::ALL {
            let compared = conclusions().filter(|c| on.can_compare(&c.measure));
            let figures = compared.flat_map(|conclusion| conclusion.measure.figures());
            let rows: Vec<RowName> = figures.filter_map(|figure| on.row(figure.row)).collect();
            assert!(rows.len() > 20, "{on:?}: {}", rows.len());
            for row in rows {
                let plan = Plan::open(row.plan).unwrap();
                let plan = plan.resolve(1.0, crate::experiments::STEPS, |_, _| Ok(())).unwrap();
                let known = plan.variants.iter().any(|variant| variant.name == row.variant);
                assert!(known, "{on:?}: {row:?}");
            }
            for plan in on.plans() {
                Plan::open(plan).unwrap();
            }
        }
    }

    #[test]
    fn what_is_known_is_known_of_a_conclusion() {
        for known in KNOWN {
            let of_it = |c: &&crate::conclusions::Conclusion| c.claim.starts_with(known.claim);
            let document = DOCUMENTS.iter().find(|d| d.id == known.document).unwrap();
            assert_eq!(document.conclusions.iter().filter(of_it).count(), 1, "{}", known.claim);
        }
    }
}
