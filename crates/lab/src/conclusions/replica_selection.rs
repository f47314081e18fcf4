//! What it concludes: the benchmarks of adaptive replica selection.

use super::claim::{claim, figure, not_measured, one};
use super::conclusion::Bound::{About, AtLeast, AtMost, Between, HalfOf, HalfTheEffect};
use super::conclusion::Expected::{AtItsBound, Fails, Holds, HoldsBut};
use super::conclusion::{Conclusion, Document, Figure, Measure, Quantity};

pub(super) const DOCUMENT: Document = Document {
    id: "replica-selection",
    title: "Adaptive Replica Selection benchmarks",
    by: "Lee Hinman, 2017",
    plans: &["replica-selection", "replica-selection-pmc"],
    conclusions: CONCLUSIONS,
};

const SELECTION: &str = "replica-selection";
const PMC: &str = "replica-selection-pmc";
const THROUGHPUT: &str = "Median Throughput";
const P50: &str = "50th percentile latency";
const P90: &str = "90th percentile latency";
const P99: &str = "99th percentile latency";
const FASTEST: &str = "The hosts here differ in their speed, which selection learns: where a seed draws a slow one, it takes the \
                       slow end off the latencies. In the median of seeds it hardly does.";
const ROTATIONS: &str = "It depends on where rotations of copies begin, which the seed draws: where those of es3's two shards \
                         are in step, half of the searches without selection meet no loaded node, as in the document, \
                         and where they are not, all meet one. Most seeds are in step, but the half that meets no \
                         loaded node is slower here than it was, so that less is traded.";
const LOADED: &str = "Without selection the loaded node holds up more here than it did, as the rows say: that is what the ratio \
                      is over. With selection both agree within a few per cent.";

const NOT_SELECTION: &str = "The document expects not much difference, as it says that 20 searches a second are the \
                             target. Its own table shows one, and nothing here says what makes it \
                             (docs/published/model.md).";

const SEARCHES_OF_ES3: Quantity = Quantity::SearchesOf("leader-3");
const FEWER: &str = "It gets less than in the document: the loaded node is slower here than it was, as the rows without \
                     selection say.";

const ES3_LOADED: &str = "1 replica, es3 loaded; updated tests";
const ALL_NODES: &str = "1 replica, all nodes; updated tests";
const SUGGESTIONS: &str = "What the suggestions changed in the code is in neither the document nor the pull request's description \
                           (elastic/elasticsearch#26128): that revision is not built, and no variant is of it.";
const FIRST_FASTEST: &str = "The hosts here differ in their speed, as the row without selection asks, and selection takes the slow ones \
                             off: by a few per cent, with either exponent.";
const SLOWER_TAIL: &str = "The document's 99th percentile without selection is half as long again as here, where nothing but the hosts' \
                           speed spreads searches: so there is less to gain.";
const TAIL: &str = "The published tail falls with selection and ours does not: here a long search is long wherever it is sent \
                    (docs/published/model.md).";
const NO_TAIL: &str = "Here an aggregation has next to no tail, with selection and without it, and nothing that would lengthen it.";

/// Variants of a case: without selection, and with it.
const ONE: [&str; 2] = ["1 replica: none", "1 replica: ARS"];
const ONE_LOADED: [&str; 2] = ["1 replica, es3 loaded: none", "1 replica, es3 loaded: ARS"];
const ONE_ALL: [&str; 2] = ["1 replica, all nodes: none", "1 replica, all nodes: ARS"];
/// With four replicas the document has the first revision alone, with b = 4.
const FOUR: [&str; 2] = ["4 replicas: none", "4 replicas: ARS, b = 4"];
const FOUR_LOADED: [&str; 2] =
    ["4 replicas, es3 loaded: none", "4 replicas, es3 loaded: ARS, b = 4"];
/// The first revision of the cases with one replica, of which the document's final summary is.
const FIRST: [&str; 2] = ["1 replica: none", "1 replica: ARS, b = 4"];
const FIRST_LOADED: [&str; 2] =
    ["1 replica, es3 loaded: none", "1 replica, es3 loaded: ARS, b = 4"];
const FIRST_ALL: [&str; 2] = ["1 replica, all nodes: none", "1 replica, all nodes: ARS, b = 4"];
const DEFAULT: [&str; 2] = ["default: none", "default: ARS"];
const TERM: [&str; 2] = ["term: none", "term: ARS"];
const PHRASE: [&str; 2] = ["phrase: none", "phrase: ARS"];
const UNCACHED: [&str; 2] =
    ["articles_monthly_agg_uncached: none", "articles_monthly_agg_uncached: ARS"];
const CACHED: [&str; 2] = ["articles_monthly_agg_cached: none", "articles_monthly_agg_cached: ARS"];

/// The cases of the document's final summary.
const CASES: &[[&str; 2]] = &[FIRST, FIRST_LOADED, FOUR, FOUR_LOADED, FIRST_ALL];

/// A figure of a load with selection over the same without.
const fn gain(variants: [&'static str; 2], of: &'static str) -> Measure {
    gain_of(SELECTION, variants, of)
}

const fn gain_of(
    plan: &'static str,
    [without, with]: [&'static str; 2],
    of: &'static str,
) -> Measure {
    let load = Quantity::Load(of);
    Measure::Ratio(figure(plan, with, load), figure(plan, without, load))
}

/// The throughput with selection, and without it.
const fn throughput([without, with]: [&'static str; 2]) -> [Figure; 2] {
    let load = Quantity::Load(THROUGHPUT);
    [figure(SELECTION, with, load), figure(SELECTION, without, load)]
}

#[rustfmt::skip]
const CONCLUSIONS: &[Conclusion] = &[
    claim("1 replica, no load", "First tests: roughly 1 % of difference without load, at most 1.9 %: throughput",
        gain(FIRST, THROUGHPUT), Between(0.98, 1.02), AtItsBound(FIRST_FASTEST)),
    claim("1 replica, no load", "First tests: roughly 1 % of difference without load, at most 1.9 %: 50th percentile",
        gain(FIRST, P50), Between(0.98, 1.02), AtItsBound(FIRST_FASTEST)),
    claim("1 replica, no load", "First tests: roughly 1 % of difference without load, at most 1.9 %: 90th percentile",
        gain(FIRST, P90), Between(0.98, 1.02), Fails(FIRST_FASTEST)),
    claim("1 replica, no load", "First tests: roughly 1 % of difference without load, at most 1.9 %: 99th percentile",
        gain(FIRST, P99), Between(0.98, 1.02), Fails(FIRST_FASTEST)),
    claim("1 replica, es3 loaded", "First tests: doubles the median throughput, 41 to 88 ops/s",
        gain(FIRST_LOADED, THROUGHPUT), About(2.0), Holds),
    claim("1 replica, es3 loaded", "First tests: trades the 50th percentile for that",
        gain(FIRST_LOADED, P50), HalfTheEffect, Fails(ROTATIONS)),
    claim("1 replica, es3 loaded", "First tests: ... for a large reduction in the 90th",
        gain(FIRST_LOADED, P90), HalfTheEffect, Holds),
    claim("1 replica, es3 loaded", "First tests: ... and the 99th", gain(FIRST_LOADED, P99), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "First tests: an improvement for all categories: throughput",
        gain(FIRST_ALL, THROUGHPUT), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "First tests: an improvement for all categories: 50th percentile",
        gain(FIRST_ALL, P50), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "First tests: an improvement for all categories: 90th percentile",
        gain(FIRST_ALL, P90), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "First tests: an improvement for all categories: 99th percentile",
        gain(FIRST_ALL, P99), HalfTheEffect, AtItsBound(SLOWER_TAIL)),
    not_measured("1 replica, no load", "After Adrien's suggestions: just as before, a negligible difference", SUGGESTIONS),
    not_measured("1 replica, es3 loaded", "After Adrien's suggestions: around the same improvements", SUGGESTIONS),
    not_measured("1 replica, all nodes", "After Adrien's suggestions: pretty much the same as before", SUGGESTIONS),
    not_measured("4 replicas, no load", "One node sometimes has a queue of searches, as it cannot keep up and data is hot-spotted",
        "No length of a queue is published: in the document's own tables of nodes every queue is empty. No sample here has \
         that of a node's searches. That one host keeps up less than the others is what cores.spread is fitted to."),
    not_measured("updated tests", "Outstanding searches were not measured correctly before",
        "How they were counted then is not published. Ours count from the request to its answer in every revision, so \
         that the first one is repeated by its exponent alone, b = 4."),
    not_measured("updated tests", "The cases without selection should not change with it",
        "Ours without selection have no revision: one run of each stands beside all of them."),
    claim("updated tests, no load", "Not a huge difference: throughput",
        gain(ONE, THROUGHPUT), Between(0.95, 1.05), Holds),
    claim("updated tests, no load", "Not a huge difference: 50th percentile",
        gain(ONE, P50), Between(0.95, 1.05), Holds),
    claim("updated tests, no load", "Not a huge difference: 90th percentile",
        gain(ONE, P90), Between(0.95, 1.05), AtItsBound(FASTEST)),
    claim("updated tests, no load", "Not a huge difference: 99th percentile",
        gain(ONE, P99), Between(0.95, 1.05), AtItsBound(FASTEST)),
    claim(ES3_LOADED, "Again a large improvement in throughput, 41 to 88 ops/s",
        gain(ONE_LOADED, THROUGHPUT), HalfTheEffect, Holds),
    claim(ES3_LOADED, "Trades the 50th percentile for that",
        gain(ONE_LOADED, P50), HalfTheEffect, Fails(ROTATIONS)),
    claim(ES3_LOADED, "... for a large reduction in the 90th",
        gain(ONE_LOADED, P90), HalfTheEffect, Holds),
    claim(ES3_LOADED, "... and the 99th", gain(ONE_LOADED, P99), HalfTheEffect, Holds),
    claim("4 replicas, no load", "With more copies it improves throughput",
        gain(FOUR, THROUGHPUT), HalfTheEffect, Holds),
    claim("4 replicas, no load", "... and latency: 50th percentile", gain(FOUR, P50), HalfTheEffect, Holds),
    claim("4 replicas, no load", "... 90th percentile", gain(FOUR, P90), HalfTheEffect, Holds),
    claim("4 replicas, no load", "... 99th percentile", gain(FOUR, P99), HalfTheEffect, Holds),
    claim("4 replicas, es3 loaded", "Increases the median throughput from 52 to 86 ops/s",
        gain(FOUR_LOADED, THROUGHPUT), About(1.658), Fails(LOADED)),
    claim("4 replicas, es3 loaded", "An improvement in all latencies: 50th percentile",
        gain(FOUR_LOADED, P50), HalfTheEffect, Holds),
    claim("4 replicas, es3 loaded", "An improvement in all latencies: 90th percentile",
        gain(FOUR_LOADED, P90), HalfTheEffect, Holds),
    claim("4 replicas, es3 loaded", "An improvement in all latencies: 99th percentile",
        gain(FOUR_LOADED, P99), HalfTheEffect, Holds),
    claim(ALL_NODES, "An improvement where all nodes are asked: throughput",
        gain(ONE_ALL, THROUGHPUT), HalfTheEffect, Holds),
    claim(ALL_NODES, "An improvement where all nodes are asked: 50th percentile",
        gain(ONE_ALL, P50), HalfTheEffect, Holds),
    claim(ALL_NODES, "An improvement where all nodes are asked: 90th percentile",
        gain(ONE_ALL, P90), HalfTheEffect, Holds),
    claim(ALL_NODES, "An improvement where all nodes are asked: 99th percentile",
        gain(ONE_ALL, P99), HalfTheEffect, AtItsBound(SLOWER_TAIL)),
    claim("4 replicas, no load", "Requests are routed roughly evenly: the busiest node's over the least busy one's",
        one(SELECTION, FOUR[1], Quantity::SearchesSpread), AtMost(1.25), Holds),
    claim("1 replica, es3 loaded", "Without selection requests are distributed evenly: those of es3 over the others'",
        one(SELECTION, ONE_LOADED[0], SEARCHES_OF_ES3), About(1.0),
        HoldsBut("Copies take turns, so that this cannot fail.")),
    claim("1 replica, es3 loaded",
        "Requests are routed away from es3: 0.50 of what others get; at least half of that effect",
        one(SELECTION, FIRST_LOADED[1], SEARCHES_OF_ES3), HalfOf(0.502), HoldsBut(FEWER)),
    claim("4 replicas, es3 loaded",
        "Requests are routed away from es3: 0.53 of what others get; at least half of that effect",
        one(SELECTION, FOUR_LOADED[1], SEARCHES_OF_ES3), HalfOf(0.5326), HoldsBut(FEWER)),
    claim("4 replicas, es3 loaded",
        "With more replicas selection should be better: what it brings to throughput with four over that with one, no load",
        Measure::RatioOfRatios(throughput(FOUR), throughput(ONE)), HalfTheEffect,
        HoldsBut("With es3 loaded the document's own figures say otherwise: +66 % with four replicas and +113 % with one.")),
    claim("conclusion", "An improvement for almost all tests: 17 of the 20 changes in its summary",
        Measure::Improved(SELECTION, CASES), AtLeast(0.85), Holds),
    claim("conclusion", "It should help to route around overloaded nodes: with es3 loaded 0.89 of the throughput is left",
        Measure::Ratio(throughput(ONE_LOADED)[0], throughput(ONE)[0]), About(0.891), Holds),
    not_measured("conclusion", "It is dynamically configurable: it can be toggled on or off as desired",
        "Not a figure: it is a setting of running clusters here, too, and each variant sets it on one. To toggle it within a \
         load a plan's change would have to be made during loads: it is made during recoveries alone."),
    not_measured("PMC tests", "Throughput is targeted at 20 ops/s",
        "The document's own table has 606 to 3397, which no client that keeps to such a target would reach."),
    claim("PMC tests", "The difference is in the latency: 99th percentile, -49.3 %: default",
        gain_of(PMC, DEFAULT, P99), HalfTheEffect, Fails(TAIL)),
    claim("PMC tests", "The difference is in the latency: 99th percentile, -45.7 %: term",
        gain_of(PMC, TERM, P99), HalfTheEffect, Fails(TAIL)),
    claim("PMC tests", "The difference is in the latency: 99th percentile, -19.9 %: phrase",
        gain_of(PMC, PHRASE, P99), HalfTheEffect, Fails(TAIL)),
    claim("PMC tests", "The difference is in the latency: 99th percentile, +14.2 %: monthly aggregation, uncached",
        gain_of(PMC, UNCACHED, P99), HalfTheEffect, Fails(NO_TAIL)),
    claim("PMC tests", "The difference is in the latency: 99th percentile, +11.8 %: monthly aggregation, cached",
        gain_of(PMC, CACHED, P99), HalfTheEffect, Fails(NO_TAIL)),
    claim("PMC tests", "Not much difference in throughput: monthly aggregation, cached",
        gain_of(PMC, CACHED, THROUGHPUT), Between(0.95, 1.05), Holds),
    claim("PMC tests", "Throughput changes by -15.4 %, where the text expects not much: default",
        gain_of(PMC, DEFAULT, THROUGHPUT), About(0.846), Fails(NOT_SELECTION)),
    claim("PMC tests", "Throughput changes by +21.8 %, where the text expects not much: term",
        gain_of(PMC, TERM, THROUGHPUT), About(1.218), AtItsBound(NOT_SELECTION)),
    claim("PMC tests", "Throughput changes by +28.1 %, where the text expects not much: phrase",
        gain_of(PMC, PHRASE, THROUGHPUT), About(1.281), Fails(NOT_SELECTION)),
    claim("PMC tests", "Throughput changes by -5.7 %, where the text expects not much: monthly aggregation, uncached",
        gain_of(PMC, UNCACHED, THROUGHPUT), About(0.943), Holds),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentence stands below the first tests; that of the updated ones has "again, a large improvement".
    #[test]
    fn the_throughput_doubles_where_the_document_says_so() {
        let doubles = |one: &&Conclusion| one.claim.to_lowercase().contains("doubles the median");
        let found: Vec<_> = CONCLUSIONS.iter().filter(doubles).collect();
        assert!(found.len() == 1 && found[0].place == "1 replica, es3 loaded", "{found:?}");
    }

    /// What es1, es2, es4 and es5 completed in the document's tables, and es3. Its esclient holds no copy: what it
    /// completed, one for each search, are no searches of shards.
    #[test]
    fn what_es3_gets_is_compared_with_the_nodes_that_hold_copies() {
        for (variant, others, es3) in [
            (FIRST_LOADED[1], [220_730.0, 226_168.0, 241_512.0, 212_850.0], 113_115.0),
            (FOUR_LOADED[1], [229_143.0, 224_000.0, 234_915.0, 207_679.0], 119_263.0),
        ] {
            let share = es3 / (others.iter().sum::<f64>() / 4.0);
            let measure = one(SELECTION, variant, SEARCHES_OF_ES3);
            let found = CONCLUSIONS.iter().find(|one| one.measure == measure).unwrap();
            let HalfOf(effect) = found.bound else { panic!("{found:?}") };
            assert!((effect - share).abs() < 5e-4, "{effect} is {share}");
            assert!(found.claim.contains(&format!("{share:.2} of what others get")), "{found:?}");
        }
    }
}
