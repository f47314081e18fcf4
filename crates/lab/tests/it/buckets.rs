//! A bucket's documents from one server to another, in both worlds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lab::buckets::check_setting;
use lab::experiments::STEPS;
use lab::plan::{BucketUse, Plan, Resolved, Variant};
use lab::{Error, Place};
use record::{Line, Row, RunDir};

use crate::common::run_in;

const ITEMS: u64 = 1500;

/// The bundled plan, with few documents.
fn plan() -> Resolved {
    let plan = Plan::open("dcp-rebalance").unwrap();
    let mut plan = plan.resolve(1.0, STEPS, check_setting).unwrap();
    let bucket = plan.bucket.clone().unwrap();
    plan.bucket = Some(BucketUse { items: ITEMS, at_least: Duration::ZERO, ..bucket });
    plan
}

/// One variant in a record of its own; what is in there.
fn run(plan: &Resolved, variant: &Variant, place: Place) -> (Row, RunDir) {
    let plan = Resolved { laps: 1, variants: vec![variant.clone()], ..plan.clone() };
    let (rows, run_dir, _) = run_in(plan, place);
    let rows = rows.unwrap_or_else(|error| panic!("{}: {error}", variant.name));
    (rows[0].clone(), run_dir)
}

fn in_virtual_time(plan: &Resolved, variant: &Variant) -> (Row, RunDir) {
    run(plan, variant, Place::VIRTUAL)
}

fn on_threads(plan: &Resolved, variant: &Variant) -> (Row, RunDir) {
    run(plan, variant, Place::Embedded { program: PathBuf::new(), own_mounts: || Ok(()) })
}

#[test]
fn every_variant_carries_every_document() {
    let plan = plan();
    for variant in &plan.variants {
        for (row, record) in [in_virtual_time(&plan, variant), on_threads(&plan, variant)] {
            let stream = row.stream.as_ref().unwrap();
            let keeps = variant.name.contains("mainstream") || variant.name.contains("batching");
            assert_eq!(stream.measuring_device, !keeps, "{}", variant.name);
            assert_eq!((row.verified, row.documents), (keeps, if keeps { ITEMS } else { 0 }));
            assert_eq!(row.bytes, ITEMS * 1024);
            assert!(stream.threads.iter().all(|thread| thread.busy_s > 0.0), "{stream:?}");
            let told = stream.threads.iter().map(|one| one.flow_control_s.zip(one.disk_s));
            assert!(told.into_iter().all(|waits| waits.is_some()), "{stream:?}");
            if variant.name.contains("fast") {
                let device = stream.threads.iter().any(|t| t.name.contains("a measuring device"));
                assert!(device, "{stream:?}");
            }
            // Two of four vbuckets are taken over; a device that keeps no history is sent them again.
            let rolls_back = variant.name.starts_with("rebalance, fast");
            assert_eq!(stream.rollbacks, if rolls_back { 2 } else { 0 }, "{}", variant.name);
            let share = stream.again_bytes as f64 / row.bytes as f64;
            let half = if rolls_back { 0.4..0.6 } else { 0.0..f64::MIN_POSITIVE };
            assert!(half.contains(&share), "{}: {share}", variant.name);
            // What comes again is counted from the beginning: progress is not at its end long before that.
            let coming = row.bytes + if rolls_back { row.bytes / 2 } else { 0 };
            for line in &record.lines {
                let Line::Recovery { sample, .. } = line else { continue };
                assert!(sample.total_bytes >= coming, "{}: {sample:?}", variant.name);
            }
            let written: Vec<_> = record.rows.iter().map(|row| (&row.variant, row.bytes)).collect();
            assert_eq!(written, [(&row.variant, row.bytes)]);
            assert_eq!(record.rows[0].stream, row.stream);
        }
    }
}

#[test]
fn virtual_time_is_the_same_each_time() {
    let plan = plan();
    let once = |name: &str| {
        let variant = plan.variants.iter().find(|variant| variant.name == name).unwrap();
        in_virtual_time(&plan, variant).0
    };
    for name in ["rebalance, mainstream", "data-copy, fast (measuring device)"] {
        assert_eq!(once(name), once(name));
    }
}

/// Half the core time of the thread that holds a path makes it faster; of the others it changes next to nothing.
#[test]
fn the_busiest_thread_is_the_limit() {
    let mut plan = plan();
    // The first packets find every thread idle: enough of them that this is little.
    plan.bucket.iter_mut().for_each(|bucket| bucket.items = 10 * ITEMS);
    let variant = |name: &str| {
        let mut variant = plan.variants.iter().find(|v| v.name == name).unwrap().clone();
        // Of so few documents it would be most of the time.
        variant.settings.remove("dcp.move_overhead");
        variant
    };
    let seconds = |variant: &Variant| in_virtual_time(&plan, variant).0.seconds;
    let with = |variant: &Variant, parameter: &str, value: &str| {
        let mut changed = variant.clone();
        let own = changed.parameters.iter_mut().filter(|p| p.name == parameter);
        own.for_each(|parameter| parameter.value = value.to_owned());
        changed
    };
    let copy = variant("data-copy, mainstream");
    let as_it_is = seconds(&copy);
    assert!(seconds(&with(&copy, "packets.apply", "1us")) < as_it_is * 0.8);
    assert!(seconds(&with(&copy, "packets.send", "1us")) > as_it_is * 0.95);
    // With each packet read by itself the fast consumer is slower than the proxy.
    let fast = variant("rebalance, fast (measuring device)");
    let as_it_is = seconds(&fast);
    assert!(seconds(&with(&fast, "packets.receive", "1us")) < as_it_is * 0.98);
    assert!(seconds(&with(&fast, "packets.relay", "1us")) > as_it_is * 0.99);
    // Between a faster producer and a faster consumer it is the proxy that holds the path.
    let fast = with(&with(&fast, "packets.send", "1us"), "packets.receive", "1us");
    let as_it_is = seconds(&fast);
    assert!(seconds(&with(&fast, "packets.relay", "1us")) < as_it_is * 0.95);
    assert!(seconds(&with(&fast, "packets.apply", "1us")) > as_it_is * 0.99);
}

#[test]
fn a_setting_that_is_not_right_is_named() {
    let mut plan = plan();
    let mut variant = plan.variants.remove(0);
    variant.settings = BTreeMap::from([("dcp.path".to_owned(), "by hand".to_owned())]);
    plan.variants = vec![variant];
    let error = run_in(plan, Place::VIRTUAL).0.unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }));
    let said = error.to_string();
    assert!(said.contains("rebalance, data-copy, none"), "{said}");
}

/// Without item expel a consumer with little memory stops until whole checkpoints are removed; with it, it goes on.
#[test]
fn item_expel_lets_a_consumer_go_on() {
    let plan = Plan::open("dcp-memory").unwrap();
    let mut plan = plan.resolve(0.1, STEPS, check_setting).unwrap();
    for variant in &mut plan.variants {
        variant.settings.insert("dcp.destination_quota".to_owned(), "10mb".to_owned());
    }
    let memory = |name: &str| {
        let variant = plan.variants.iter().find(|variant| variant.name == name).unwrap();
        let row = in_virtual_time(&plan, variant).0;
        assert!(row.verified, "{name}");
        row.stream.unwrap().memory.unwrap()
    };
    for (with, without) in
        [("2020, item expel", "2020, without"), ("today, item expel", "today, without")]
    {
        let (with, without) = (memory(with), memory(without));
        assert!(without.stops > 0 && without.longest_stop_s > 1.0, "{without:?}");
        assert!(with.longest_stop_s < 0.5, "{with:?}");
        assert!(with.stopped_s * 4.0 < without.stopped_s, "{with:?} {without:?}");
    }
    assert!(memory("2020, without").buffered_items_max > 0);
    assert_eq!(memory("today, without").buffered_items_max, 0);
}

#[test]
fn a_variant_on_threads_has_laps_until_they_took_long_enough() {
    let plan = plan();
    let at_least = Duration::from_millis(100);
    let bucket = plan.bucket.clone().map(|bucket| BucketUse { at_least, ..bucket });
    let plan = Resolved { bucket, ..plan };
    let (row, record) = on_threads(&plan, &plan.variants[1]);
    let took = |rows: &[Row]| rows.iter().map(|row| row.seconds).sum::<f64>();
    let (last, before) = record.rows.split_last().expect("a lap");
    assert_eq!(row.lap, 1);
    assert!(took(&record.rows) >= 0.1 && took(before) < 0.1, "{before:?} {last:?}");
    let laps: Vec<u32> = record.rows.iter().map(|row| row.lap).collect();
    assert_eq!(laps, (1..=record.rows.len() as u32).collect::<Vec<_>>());
    // In virtual time, where a second lap would be the same, there is one.
    assert_eq!(in_virtual_time(&plan, &plan.variants[1]).1.rows.len(), 1);
}
