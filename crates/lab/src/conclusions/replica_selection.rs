//! What it concludes: the benchmarks of adaptive replica selection.

use super::claim::{claim, figure, one};
use super::conclusion::Bound::{About, AtMost, Between, HalfTheEffect};
use super::conclusion::Expected::{AtItsBound, Fails, Holds, HoldsBut};
use super::conclusion::{Conclusion, Document, Measure, Quantity};

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

const NOT_SELECTION: &str = "The document itself calls this not much difference: if so, something else than selection changed the throughput \
                             between its runs, and nothing here says what (docs/published/model.md).";

const SEARCHES_OF_ES3: Quantity = Quantity::SearchesOf("leader-3");
const FEWER: &str = "It gets less than in the document: the loaded node is slower here than it was, as the rows without \
                     selection say.";

/// Variants of a case: without selection, and with it.
const ONE: [&str; 2] = ["1 replica: none", "1 replica: ARS"];
const ONE_LOADED: [&str; 2] = ["1 replica, es3 loaded: none", "1 replica, es3 loaded: ARS"];
const ONE_ALL: [&str; 2] = ["1 replica, all nodes: none", "1 replica, all nodes: ARS"];
const FOUR: [&str; 2] = ["4 replicas: none", "4 replicas: ARS"];
const FOUR_LOADED: [&str; 2] = ["4 replicas, es3 loaded: none", "4 replicas, es3 loaded: ARS"];
const DEFAULT: [&str; 2] = ["default: none", "default: ARS"];
const TERM: [&str; 2] = ["term: none", "term: ARS"];
const PHRASE: [&str; 2] = ["phrase: none", "phrase: ARS"];
const UNCACHED: [&str; 2] =
    ["articles_monthly_agg_uncached: none", "articles_monthly_agg_uncached: ARS"];
const CACHED: [&str; 2] = ["articles_monthly_agg_cached: none", "articles_monthly_agg_cached: ARS"];

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

#[rustfmt::skip]
const CONCLUSIONS: &[Conclusion] = &[
    claim("updated tests, no load", "Not a huge difference: throughput",
        gain(ONE, THROUGHPUT), Between(0.95, 1.05), Holds),
    claim("updated tests, no load", "Not a huge difference: 50th percentile",
        gain(ONE, P50), Between(0.95, 1.05), Holds),
    claim("updated tests, no load", "Not a huge difference: 90th percentile",
        gain(ONE, P90), Between(0.95, 1.05), AtItsBound(FASTEST)),
    claim("updated tests, no load", "Not a huge difference: 99th percentile",
        gain(ONE, P99), Between(0.95, 1.05), AtItsBound(FASTEST)),
    claim("1 replica, es3 loaded", "Doubles the median throughput, 41 to 88 ops/s",
        gain(ONE_LOADED, THROUGHPUT), About(2.0), Holds),
    claim("1 replica, es3 loaded", "Trades the 50th percentile for that",
        gain(ONE_LOADED, P50), HalfTheEffect, Fails(ROTATIONS)),
    claim("1 replica, es3 loaded", "... for a large reduction in the 90th",
        gain(ONE_LOADED, P90), HalfTheEffect, Holds),
    claim("1 replica, es3 loaded", "... and the 99th", gain(ONE_LOADED, P99), HalfTheEffect, Holds),
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
    claim("1 replica, all nodes", "An improvement where all nodes are asked: throughput",
        gain(ONE_ALL, THROUGHPUT), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "An improvement where all nodes are asked: 50th percentile",
        gain(ONE_ALL, P50), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "An improvement where all nodes are asked: 90th percentile",
        gain(ONE_ALL, P90), HalfTheEffect, Holds),
    claim("1 replica, all nodes", "An improvement where all nodes are asked: 99th percentile",
        gain(ONE_ALL, P99), HalfTheEffect,
        AtItsBound("The document's 99th percentile without selection is half as long again as here, where nothing but the \
         hosts' speed spreads searches: so there is less to gain.")),
    claim("4 replicas, no load", "Requests are routed roughly evenly: the busiest node's over the least busy one's",
        one(SELECTION, FOUR[1], Quantity::SearchesSpread), AtMost(1.25), Holds),
    claim("1 replica, es3 loaded", "Without selection requests are distributed evenly: those of es3 over the others'",
        one(SELECTION, ONE_LOADED[0], SEARCHES_OF_ES3), About(1.0), Holds),
    claim("1 replica, es3 loaded",
        "Requests are routed away from es3: 0.51 of what others get; at least half of that effect",
        one(SELECTION, ONE_LOADED[1], SEARCHES_OF_ES3), AtMost(0.716), HoldsBut(FEWER)),
    claim("4 replicas, es3 loaded",
        "Requests are routed away from es3: 0.54 of what others get; at least half of that effect",
        one(SELECTION, FOUR_LOADED[1], SEARCHES_OF_ES3), AtMost(0.737), HoldsBut(FEWER)),
    claim("PMC tests", "Not much difference in throughput: monthly aggregation, cached",
        gain_of(PMC, CACHED, THROUGHPUT), Between(0.95, 1.05), Holds),
    claim("PMC tests", "Throughput changes by -15.4 %, which the text calls not much: default",
        gain_of(PMC, DEFAULT, THROUGHPUT), About(0.846), Fails(NOT_SELECTION)),
    claim("PMC tests", "Throughput changes by +21.8 %, which the text calls not much: term",
        gain_of(PMC, TERM, THROUGHPUT), About(1.218), AtItsBound(NOT_SELECTION)),
    claim("PMC tests", "Throughput changes by +28.1 %, which the text calls not much: phrase",
        gain_of(PMC, PHRASE, THROUGHPUT), About(1.281), Fails(NOT_SELECTION)),
    claim("PMC tests", "Throughput changes by -5.7 %, which the text calls not much: monthly aggregation, uncached",
        gain_of(PMC, UNCACHED, THROUGHPUT), About(0.943), Holds),
];
