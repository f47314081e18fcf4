//! Observations that tests are made of.

use std::collections::BTreeMap;

use insight::diagnosis::Series;
use record::observation::{
    Decision, Health, Identity, Node, Observation, Recovery, RoundTrip, Scope, Setting, WaitingCopy,
};

pub const MB: u64 = 1_000_000;

pub const MAX_BYTES: &str = "indices.recovery.max_bytes_per_sec";
pub const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";
pub const CHUNK_SIZE: &str = "indices.recovery.chunk_size";

pub fn settings(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, Setting>> {
    settings_of(Scope::Persistent, pairs)
}

pub fn settings_of(scope: Scope, pairs: &[(&str, &str)]) -> Option<BTreeMap<String, Setting>> {
    let one = |(name, value): &(&str, &str)| {
        ((*name).to_owned(), Setting { value: (*value).to_owned(), scope })
    };
    Some(pairs.iter().map(one).collect())
}

pub fn cluster(flavour: &str) -> Identity {
    Identity { name: "c".into(), flavour: flavour.into(), version: "2.19.1".into() }
}

/// A node that idles.
pub fn node(name: &str, s: u64) -> Node {
    Node {
        id: format!("id-{name}"),
        name: name.into(),
        timestamp_ms: Some(1_000_000 + s * 1000),
        uptime_ms: Some(500_000 + s * 1000),
        os_cpu_percent: Some(10),
        process_cpu_ms: Some(s * 100),
        cores: Some(8),
        io_time_ms: Some(s * 50),
        read_kib: Some(s * 20_000),
        write_kib: Some(s * 20_000),
        throttle_ms: Some(0),
        gc_ms: Some(s * 5),
        transport_tx_bytes: Some(s * 10 * MB),
        transport_rx_bytes: Some(s * 10 * MB),
        breakers_tripped: BTreeMap::from([("parent".to_owned(), 0)]),
        pressure_rejections: Some(0),
        cgroup_throttled_ns: Some(0),
        ..Node::default()
    }
}

/// A peer recovery of a large shard at a rate.
pub fn recovery(index: &str, s: u64, rate: u64) -> Recovery {
    Recovery {
        index: index.into(),
        shard: 0,
        kind: "PEER".into(),
        stage: "INDEX".into(),
        source: Some("a".into()),
        target: Some("b".into()),
        start_ms: Some(999_000),
        total_ms: Some(1000 + s * 1000),
        total_bytes: Some(50_000 * MB),
        reused_bytes: Some(0),
        recovered_bytes: Some(rate * (s + 1)),
        source_throttle_ms: Some(0),
        target_throttle_ms: Some(0),
        recovered_ops: Some(0),
        ..Recovery::default()
    }
}

/// The files of a recovery come from a repository, and not from a node.
pub fn restore_from(repository: &str, recovery: &mut Recovery) {
    recovery.kind = "SNAPSHOT".into();
    (recovery.source, recovery.repository) = (None, Some(repository.into()));
}

/// Two idle nodes and one recovery at a rate, on OpenSearch.
pub fn case(s: u64, rate: u64) -> Observation {
    Observation {
        cluster: cluster("opensearch"),
        nodes: vec![node("a", s), node("b", s)],
        recoveries: vec![recovery("i", s, rate)],
        health: Some(Health { status: "yellow".into(), ..Health::default() }),
        settings: settings(&[(MAX_BYTES, "40mb")]),
        ..Observation::default()
    }
}

/// A replica that waits, of which the cluster and its deciders say this by node.
pub fn waiting(can_allocate: &str, decisions: &[(&str, &str, &str)]) -> WaitingCopy {
    let decision = |(node, decider, decision): &(&str, &str, &str)| Decision {
        node: (*node).into(),
        decider: (*decider).into(),
        decision: (*decision).into(),
        explanation: "so it is".into(),
    };
    WaitingCopy {
        index: "w".into(),
        state: "UNASSIGNED".into(),
        can_allocate: Some(can_allocate.into()),
        decisions: decisions.iter().map(decision).collect(),
        ..WaitingCopy::default()
    }
}

pub fn rtt(rtt_ms: f64) -> Vec<RoundTrip> {
    vec![RoundTrip { from: "a".into(), to: "b".into(), rtt_ms }]
}

/// Ten looks, a second apart; `at` makes each from the seconds gone by.
pub fn looks(at: impl Fn(u64) -> Observation) -> Vec<(f64, Observation)> {
    (0..=10).map(|s| (s as f64 * 1000.0, at(s))).collect()
}

/// The same of a [`case`] with a rate, each with a change that is given the seconds gone by.
pub fn looks_at(rate: u64, change: impl Fn(&mut Observation, u64)) -> Vec<(f64, Observation)> {
    looks(|s| {
        let mut look = case(s, rate);
        change(&mut look, s);
        look
    })
}

pub fn series(looks: &[(f64, Observation)]) -> Series<'_> {
    Series::new(looks.iter().map(|(t_ms, look)| (*t_ms, look)))
}
