//! What the source documents conclude from their figures, as orderings of rows: whoever repeats the experiments should
//! find the same.

/// A variant of a bundled plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName {
    /// Plan.
    pub plan: &'static str,
    /// Variant.
    pub variant: &'static str,
}

/// How rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first takes less time than the second.
    Faster(RowName, RowName),
    /// The same change costs more, as a factor of time, in the first pair than in the second; each pair is without
    /// the change, then with it.
    CostsMore([RowName; 2], [RowName; 2]),
    /// This figure of a load is less in the first than in the second.
    Less(&'static str, RowName, RowName),
    /// It is the same in both, within 5 %.
    Alike(&'static str, RowName, RowName),
}

/// What rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Seconds.
    Seconds,
    /// A figure of a load, by its name.
    Load(&'static str),
}

/// A conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordering {
    /// What is concluded.
    pub claim: &'static str,
    /// Who concludes it.
    pub source: &'static str,
    /// What that says of rows.
    pub order: Order,
}

/// What was found of a conclusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The conclusion.
    pub ordering: Ordering,
    /// Whether it holds; none where a row is missing.
    pub holds: Option<bool>,
    /// The two numbers that were compared: seconds, factors, or figures of loads.
    pub compared: Option<(f64, f64)>,
}

/// What is ordered differs by at least this: with less, two rows are the same.
const WORTH_TELLING: f64 = 1.01;

/// What is alike differs by no more than this.
const ALIKE: f64 = 1.05;

const GEOPOINT: &str = "remote-recovery";
const HTTP_LOGS: &str = "remote-recovery-http-logs";
const SMALL: &str = "small-nodes-compression";
const SHARDS: &str = "shard-recovery";

const fn row(plan: &'static str, variant: &'static str) -> RowName {
    RowName { plan, variant }
}

const fn faster(
    claim: &'static str,
    source: &'static str,
    plan: &'static str,
    fast: &'static str,
    slow: &'static str,
) -> Ordering {
    Ordering { claim, source, order: Order::Faster(row(plan, fast), row(plan, slow)) }
}

const SELECTION: &str = "replica-selection";
const ARS: &str = "adaptive replica selection";
const THROUGHPUT: &str = "Median Throughput";
const P50: &str = "50th percentile latency";
const P90: &str = "90th percentile latency";
const P99: &str = "99th percentile latency";

const fn less(
    claim: &'static str,
    figure: &'static str,
    less: &'static str,
    more: &'static str,
) -> Ordering {
    let order = Order::Less(figure, row(SELECTION, less), row(SELECTION, more));
    Ordering { claim, source: ARS, order }
}

/// The two rows of a case.
macro_rules! none {
    ($case:literal) => {
        concat!($case, ": none")
    };
}
macro_rules! ars {
    ($case:literal) => {
        concat!($case, ": ARS")
    };
}

const PLAN_1: &str = "benchmark plan, experiment 1";
const PLAN_2: &str = "benchmark plan, experiment 2";
const PLAN_5: &str = "benchmark plan, experiment 5";

const MOVES: &str = "dcp-rebalance";
const MOVES_FROM: &str = "DCP rebalance throughput";
const REBALANCE: &str = "rebalance, mainstream";
const COPY: &str = "data-copy, mainstream";
const REBALANCE_FAST: &str = "rebalance, fast (measuring device)";
const COPY_FAST: &str = "data-copy, fast (measuring device)";

/// Every conclusion, in the order of the documents.
pub static ORDERINGS: [Ordering; 35] = [
    faster("larger chunks help", PLAN_1, GEOPOINT, "1 MB x 1", "64 KB x 1"),
    faster("larger chunks help", PLAN_1, GEOPOINT, "5 MB x 1", "1 MB x 1"),
    faster("more chunks in flight help", PLAN_1, GEOPOINT, "1 MB x 5", "1 MB x 1"),
    faster(
        "more chunks in flight help more than larger ones",
        PLAN_1,
        GEOPOINT,
        "1 MB x 5",
        "5 MB x 1",
    ),
    faster(
        "smart fetch beats file-parallel",
        PLAN_1,
        HTTP_LOGS,
        "3: 1 MB x 5",
        "1: 1 MB x 5, files",
    ),
    faster(
        "smart fetch beats file-parallel",
        PLAN_1,
        HTTP_LOGS,
        "4: 5 MB x 5",
        "2: 5 MB x 5, files",
    ),
    faster("larger chunks help", PLAN_1, HTTP_LOGS, "4: 5 MB x 5", "3: 1 MB x 5"),
    faster("more chunks in flight help", PLAN_1, HTTP_LOGS, "5: 1 MB x 10", "3: 1 MB x 5"),
    faster(
        "compression hurts when the link is not full",
        PLAN_2,
        HTTP_LOGS,
        "3: 1 MB x 5",
        "compressed: 1 MB x 5",
    ),
    faster(
        "compression helps when the link is full",
        PLAN_2,
        HTTP_LOGS,
        "compressed: 5 MB x 8",
        "6: 5 MB x 8",
    ),
    faster("compression hurts small nodes", PLAN_5, SMALL, "plain", "compressed"),
    Ordering {
        claim: "small nodes pay most for compression",
        source: PLAN_5,
        order: Order::CostsMore(
            [row(SMALL, "plain"), row(SMALL, "compressed")],
            [row(HTTP_LOGS, "3: 1 MB x 5"), row(HTTP_LOGS, "compressed: 1 MB x 5")],
        ),
    },
    faster("raising the throttle helps", "slides 28 and 29", SHARDS, "500mb", "20mb, the default"),
    faster("noop removes the limit", "slides 43 to 53", SHARDS, "2gb, noop", "2gb"),
    Ordering {
        claim: "without load selection changes little",
        source: ARS,
        order: Order::Alike(
            THROUGHPUT,
            row(SELECTION, none!("1 replica")),
            row(SELECTION, ars!("1 replica")),
        ),
    },
    less(
        "it doubles the throughput beside a loaded node",
        THROUGHPUT,
        none!("1 replica, es3 loaded"),
        ars!("1 replica, es3 loaded"),
    ),
    less(
        "it trades the 50th percentile for that",
        P50,
        none!("1 replica, es3 loaded"),
        ars!("1 replica, es3 loaded"),
    ),
    less(
        "... and for the 90th",
        P90,
        ars!("1 replica, es3 loaded"),
        none!("1 replica, es3 loaded"),
    ),
    less("... and the 99th", P99, ars!("1 replica, es3 loaded"), none!("1 replica, es3 loaded")),
    less(
        "with more copies it is better in all",
        THROUGHPUT,
        none!("4 replicas"),
        ars!("4 replicas"),
    ),
    less("with more copies it is better in all", P50, ars!("4 replicas"), none!("4 replicas")),
    less("with more copies it is better in all", P90, ars!("4 replicas"), none!("4 replicas")),
    less("with more copies it is better in all", P99, ars!("4 replicas"), none!("4 replicas")),
    less(
        "it is better in all beside a loaded node",
        THROUGHPUT,
        none!("4 replicas, es3 loaded"),
        ars!("4 replicas, es3 loaded"),
    ),
    less(
        "it is better in all beside a loaded node",
        P50,
        ars!("4 replicas, es3 loaded"),
        none!("4 replicas, es3 loaded"),
    ),
    less(
        "it is better in all beside a loaded node",
        P90,
        ars!("4 replicas, es3 loaded"),
        none!("4 replicas, es3 loaded"),
    ),
    less(
        "it is better in all beside a loaded node",
        P99,
        ars!("4 replicas, es3 loaded"),
        none!("4 replicas, es3 loaded"),
    ),
    less(
        "it is better in all where all nodes are asked",
        THROUGHPUT,
        none!("1 replica, all nodes"),
        ars!("1 replica, all nodes"),
    ),
    less(
        "it is better in all where all nodes are asked",
        P50,
        ars!("1 replica, all nodes"),
        none!("1 replica, all nodes"),
    ),
    less(
        "it is better in all where all nodes are asked",
        P90,
        ars!("1 replica, all nodes"),
        none!("1 replica, all nodes"),
    ),
    less(
        "it is better in all where all nodes are asked",
        P99,
        ars!("1 replica, all nodes"),
        none!("1 replica, all nodes"),
    ),
    faster("the consumer is the first limit", MOVES_FROM, MOVES, REBALANCE_FAST, REBALANCE),
    faster("the consumer is the first limit", MOVES_FROM, MOVES, COPY_FAST, COPY),
    faster("the manager's proxy is the next", MOVES_FROM, MOVES, COPY_FAST, REBALANCE_FAST),
    faster("the producer is faster than both", MOVES_FROM, MOVES, "producer alone", COPY_FAST),
];

impl Ordering {
    /// Judges it by the figures of rows.
    pub fn judge(&self, figure: impl Fn(RowName, By) -> Option<f64>) -> Judged {
        let seconds = |row| figure(row, By::Seconds);
        let factor = |pair: [RowName; 2]| Some(seconds(pair[1])? / seconds(pair[0])?);
        let compared = match self.order {
            Order::Faster(fast, slow) => seconds(fast).zip(seconds(slow)),
            Order::CostsMore(more, less) => factor(less).zip(factor(more)),
            Order::Less(name, a, b) | Order::Alike(name, a, b) => {
                figure(a, By::Load(name)).zip(figure(b, By::Load(name)))
            }
        };
        let holds = compared.map(|(a, b)| match self.order {
            Order::Alike(..) => a.max(b) <= a.min(b) * ALIKE,
            _ => a * WORTH_TELLING < b,
        });
        Judged { ordering: *self, holds, compared }
    }

    /// The rows that it is about.
    pub fn rows(&self) -> Vec<RowName> {
        match self.order {
            Order::Faster(a, b) | Order::Less(_, a, b) | Order::Alike(_, a, b) => vec![a, b],
            Order::CostsMore(more, less) => [more, less].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::{Published, bundled};

    /// The published row of every variant of every bundled plan.
    fn published() -> BTreeMap<(String, String), Option<Published>> {
        let mut rows = BTreeMap::new();
        for bundled in bundled() {
            let plan = bundled
                .plan()
                .unwrap()
                .resolve(1.0, crate::experiments::STEPS, |_, _| Ok(()))
                .unwrap();
            for variant in plan.variants {
                rows.insert((plan.name.clone(), variant.name), variant.published);
            }
        }
        rows
    }

    #[test]
    fn every_row_is_in_a_plan_and_the_documents_agree_with_themselves() {
        let published = published();
        for ordering in &ORDERINGS {
            let of = |row: RowName, by: By| {
                let key = (row.plan.to_owned(), row.variant.to_owned());
                let found = published.get(&key).unwrap_or_else(|| panic!("{row:?} is in no plan"));
                match by {
                    By::Seconds => found.as_ref()?.seconds,
                    By::Load(name) => found.as_ref()?.load.get(name).copied(),
                }
            };
            for row in ordering.rows() {
                of(row, By::Seconds);
            }
            // The slides show charts where they have no numbers.
            assert_ne!(ordering.judge(of).holds, Some(false), "{}", ordering.claim);
        }
        let numbers = |o: &&Ordering| o.rows().iter().all(|row| row.plan != SHARDS);
        assert_eq!(ORDERINGS.iter().filter(numbers).count(), 33);
    }

    #[test]
    fn a_missing_row_is_neither_and_equal_is_not_faster() {
        let judge = |ordering: &Ordering, seconds: &dyn Fn(RowName) -> Option<f64>| {
            ordering.judge(|row, _| seconds(row)).holds
        };
        assert_eq!(judge(&ORDERINGS[0], &|_| None), None);
        assert_eq!(judge(&ORDERINGS[0], &|_| Some(5.0)), Some(false));
        let hair = |row: RowName| Some(if row.variant == "1 MB x 1" { 5.0 } else { 5.01 });
        assert_eq!(judge(&ORDERINGS[0], &hair), Some(false));
        let costs = &ORDERINGS[11];
        let by = |small: f64| {
            move |row: RowName| match (row.plan, row.variant) {
                (SMALL, "compressed") => Some(small),
                (_, "compressed: 1 MB x 5") => Some(11.0),
                _ => Some(10.0),
            }
        };
        assert_eq!(judge(costs, &by(12.0)), Some(true));
        assert_eq!(judge(costs, &by(10.5)), Some(false));
        let alike = &ORDERINGS[14];
        let ars = |value: f64| {
            move |row: RowName| Some(if row.variant == "1 replica: ARS" { value } else { 100.0 })
        };
        assert_eq!(judge(alike, &ars(104.0)), Some(true));
        assert_eq!(judge(alike, &ars(94.0)), Some(false));
    }
}
