//! A made-up run for tests and for looking at reports: five variants over an ocean, with samples of
//! recoveries, link and nodes as a real run leaves them.

use std::collections::BTreeMap;

use record::Limit::{self, Cpu, DiskWrite, Latency, LinkRate};
use record::{
    FORMAT, LimitShare, Line, LinkInfo, LinkSample, Machine, Manifest, NodeInfo, NodeSample, Phase,
    RecoverySample, Row, RunDir, ShardDigest, Status, VariantInfo,
};

const BYTES: u64 = 320_000_000;
const DOCUMENTS: u64 = 3_970_000;
const SHARDS: u32 = 3;
const LINK: f64 = 125e6;

/// What is made up about a variant.
struct Made {
    name: &'static str,
    chunk: &'static str,
    chunks: &'static str,
    scheduler: &'static str,
    seconds: f64,
    published_s: Option<f64>,
    limits: &'static [(Limit, f64)],
}

#[rustfmt::skip]
const MADE: [Made; 5] = [
    Made { name: "64 KB x 1", chunk: "64kb", chunks: "1", scheduler: "sequential", seconds: 164.1,
        published_s: Some(14384.9), limits: &[(Latency, 0.972), (LinkRate, 0.017), (DiskWrite, 0.006), (Cpu, 0.005)] },
    Made { name: "1 MB x 1", chunk: "1mb", chunks: "1", scheduler: "sequential", seconds: 11.74,
        published_s: Some(844.368), limits: &[(Latency, 0.846), (LinkRate, 0.118), (Cpu, 0.021), (DiskWrite, 0.015)] },
    Made { name: "5 MB x 1", chunk: "5mb", chunks: "1", scheduler: "sequential", seconds: 4.38,
        published_s: Some(287.406), limits: &[(Latency, 0.553), (LinkRate, 0.391), (Cpu, 0.034), (DiskWrite, 0.022)] },
    Made { name: "1 MB x 5", chunk: "1mb", chunks: "5", scheduler: "parallel_files", seconds: 3.42,
        published_s: Some(73.301), limits: &[(LinkRate, 0.784), (Latency, 0.142), (Cpu, 0.047), (DiskWrite, 0.027)] },
    Made { name: "adaptive", chunk: "1mb", chunks: "5", scheduler: "adaptive", seconds: 2.8,
        published_s: None, limits: &[(LinkRate, 0.905), (Latency, 0.041), (Cpu, 0.033), (DiskWrite, 0.021)] },
];

/// The run, with a sample every `least_ms`, or 60 a variant if those are fewer and `thin` is set.
pub fn made_up(least_ms: f64, thin: bool) -> RunDir {
    let mut run =
        RunDir { manifest: manifest(), lines: Vec::new(), rows: Vec::new(), damage: Vec::new() };
    let mut now_ms = 9_000.0;
    run.lines.push(digest(8_900.0, None, "leader"));
    for (index, made) in MADE.iter().enumerate() {
        let every_ms = if thin { (made.seconds * 16.0).max(least_ms).round() } else { least_ms };
        Sampler { run: &mut run, made, begins_ms: now_ms, noise: 17 + index as u64 }.play(every_ms);
        now_ms += made.seconds * 1000.0 + 2_500.0;
        run.lines.push(digest(now_ms, Some(made.name), "follower"));
        run.rows.push(row(made));
    }
    run
}

fn manifest() -> Manifest {
    let node = |cluster: &str, i: u32| NodeInfo {
        cluster: cluster.to_owned(),
        name: format!("{cluster}-{i}"),
    };
    Manifest {
        plan: "remote-recovery".into(),
        about: "Recovery from remote over 100 ms and 1 Gbit/s: chunk size, concurrency, and what \
                narrows does by itself."
            .into(),
        plan_text: "name = \"remote-recovery\"\nlaps = 1\nsample = \"100ms\"\nseed = 42\n\n\
                    [leader]\nnodes = 3\n\n[follower]\nnodes = 3\n\n[link]\nrtt = \"100ms\"\n\
                    rate = \"1gbit\"\n"
            .into(),
        target: "embedded".into(),
        started: "2026-04-12T10:15:00Z".into(),
        version: "0.1.0".into(),
        seed: 42,
        scale: 0.065,
        status: Status::Complete,
        machine: Machine {
            os: "Linux 6.12".into(),
            cpu: "made-up processor".into(),
            cores: 8,
            memory_bytes: 34_359_738_368,
        },
        link: Some(LinkInfo {
            rtt_ms: 100.0,
            rate_bytes_per_s: LINK as u64,
            window_bytes: None,
            ceiling_bytes_per_s: Some(1_840_000_000),
        }),
        nodes: ["leader", "follower"].iter().flat_map(|c| (0..3).map(|i| node(c, i))).collect(),
        variants: MADE
            .iter()
            .map(|made| VariantInfo {
                name: made.name.to_owned(),
                settings: BTreeMap::from([
                    ("ccr.indices.recovery.chunk_size".to_owned(), made.chunk.to_owned()),
                    (
                        "ccr.indices.recovery.max_concurrent_file_chunks".to_owned(),
                        made.chunks.to_owned(),
                    ),
                    ("ccr.indices.recovery.max_bytes_per_sec".to_owned(), "-1".to_owned()),
                    ("narrows.recovery.scheduler".to_owned(), made.scheduler.to_owned()),
                ]),
                published_s: made.published_s,
                ..VariantInfo::default()
            })
            .collect(),
        ..Manifest::unknown("20260412-101500-remote-recovery", FORMAT)
    }
}

fn row(made: &Made) -> Row {
    let row = Row::measured(made.name, 1, made.seconds, BYTES);
    Row {
        link_share: Some(row.bytes_per_s / LINK),
        limits: made.limits.iter().map(|&(limit, share)| LimitShare { limit, share }).collect(),
        verified: true,
        documents: DOCUMENTS,
        published_s: made.published_s,
        published_bytes: made.published_s.map(|_| 4_900_000_000),
        ..row
    }
}

fn digest(t_ms: f64, variant: Option<&str>, side: &str) -> Line {
    let shard = |shard: u32| ShardDigest {
        index: side.to_owned(),
        shard,
        documents: DOCUMENTS / u64::from(SHARDS),
        content: format!("{:016x}", 0x9e37_79b9_7f4a_7c15u64.rotate_left(shard * 7)),
    };
    Line::Digest {
        t_ms,
        variant: variant.map(str::to_owned),
        side: side.to_owned(),
        shards: (0..SHARDS).map(shard).collect(),
    }
}

/// Writes the lines of one variant.
struct Sampler<'a> {
    run: &'a mut RunDir,
    made: &'a Made,
    begins_ms: f64,
    noise: u64,
}

impl Sampler<'_> {
    fn play(&mut self, every_ms: f64) {
        self.phase(0.0, true);
        let (mut sent, mut counters) = (0u64, [0u64; 6]);
        let steps = (self.made.seconds * 1000.0 / every_ms).floor() as u64;
        let mut before = 0.0;
        for step in 1..=steps {
            let t_s = step as f64 * every_ms / 1000.0;
            // Nothing goes faster than the link, which also carries one per cent of headers.
            let jitter_s = (self.random() - 0.5) * 0.2 * every_ms / 1000.0;
            let wanted = (self.progress(t_s + jitter_s) - before).max(0.0) * BYTES as f64;
            let moved = wanted.min(LINK * 0.985 * every_ms / 1000.0) as u64;
            let done = before + moved as f64 / BYTES as f64;
            sent += moved + moved / 100;
            let rate = moved as f64 / (every_ms / 1000.0);
            self.recovery(t_s, done);
            self.link(t_s, sent, rate);
            self.nodes(t_s, moved, rate, &mut counters);
            before = done;
        }
        self.phase(self.made.seconds, false);
    }

    /// Share recovered: a session opens, then bytes flow, and the last file has fewer companions.
    fn progress(&self, t_s: f64) -> f64 {
        let adaptive = self.made.scheduler == "adaptive";
        let (opens_s, at_knee) = if adaptive { (0.15, 0.915) } else { (0.25, 0.94) };
        let part = ((t_s - opens_s) / (self.made.seconds - opens_s)).clamp(0.0, 1.0);
        let knee = 0.9;
        if part < knee {
            part * at_knee / knee
        } else {
            at_knee + (part - knee) * (1.0 - at_knee) / (1.0 - knee)
        }
    }

    fn recovery(&mut self, t_s: f64, done: f64) {
        let recovered = (done * BYTES as f64) as u64;
        let all = t_s * f64::from(SHARDS);
        let charged = self.made.limits.iter();
        let fixed = self.made.scheduler != "adaptive";
        let sample = RecoverySample {
            recovered_bytes: recovered,
            total_bytes: BYTES,
            recovered_files: (done * 87.0) as u64,
            total_files: 87,
            stages: BTreeMap::from([("INDEX".to_owned(), SHARDS)]),
            charged_s: charged.map(|(limit, share)| (*limit, round(all * share, 3))).collect(),
            chunk_bytes: record::units::parse_size(self.made.chunk).ok(),
            in_flight_bytes: Some(if fixed {
                u64::from(SHARDS) * record::units::parse_size(self.made.chunk).unwrap()
            } else {
                13_000_000
            }),
            ..RecoverySample::default()
        };
        let (t_ms, variant) = self.place(t_s);
        self.run.lines.push(Line::Recovery { t_ms, variant, lap: 1, sample });
    }

    fn link(&mut self, t_s: f64, sent: u64, rate: f64) {
        let sample = LinkSample {
            to_follower_bytes: sent,
            to_leader_bytes: sent / 400,
            busy_share: round((rate / LINK).min(1.0), 3),
            ..LinkSample::default()
        };
        let (t_ms, variant) = self.place(t_s);
        self.run.lines.push(Line::Link { t_ms, variant: Some(variant), lap: 1, sample });
    }

    fn nodes(&mut self, t_s: f64, moved: u64, rate: f64, counters: &mut [u64; 6]) {
        for node in self.run.manifest.nodes.clone().iter().enumerate() {
            let (index, info) = node;
            let follows = info.cluster == "follower";
            counters[index] += moved / 3;
            let work = rate / 3.0 / if follows { 110e6 } else { 260e6 };
            let cpu_cores = round(0.012 + work * (0.8 + 0.4 * self.random()), 3);
            let (received, sent) =
                if follows { (counters[index], 9_000) } else { (9_000, counters[index]) };
            let sample = NodeSample {
                cluster: info.cluster.clone(),
                node: info.name.clone(),
                cpu_cores,
                resident_bytes: 148_000_000 + (self.random() * 4e6) as u64,
                transport_rx_bytes: received,
                transport_tx_bytes: sent,
                ..NodeSample::default()
            };
            let (t_ms, variant) = self.place(t_s);
            self.run.lines.push(Line::Node { t_ms, variant: Some(variant), lap: 1, sample });
        }
    }

    fn phase(&mut self, t_s: f64, begins: bool) {
        let (t_ms, variant) = self.place(t_s);
        let phase = Phase { name: "recover".to_owned(), begins };
        self.run.lines.push(Line::Phase { t_ms, variant: Some(variant), lap: 1, phase });
    }

    fn place(&self, t_s: f64) -> (f64, String) {
        (round(self.begins_ms + t_s * 1000.0, 1), self.made.name.to_owned())
    }

    /// 0 to 1, the same in every run.
    fn random(&mut self) -> f64 {
        self.noise = self
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.noise >> 33) as f64 / f64::from(1u32 << 31)
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let factor = 10f64.powi(digits);
    (value * factor).round() / factor
}

/// The run as an interrupt during its third variant leaves it.
pub fn interrupted() -> RunDir {
    let mut run = made_up(100.0, false);
    let third = MADE[2].name;
    let of_third = |line: &Line| matches!(line, Line::Recovery { variant, .. } if variant == third);
    let begins = run.lines.iter().position(of_third).expect("the third variant has samples");
    run.lines.truncate(begins + 8 * 20);
    run.rows.truncate(2);
    run.manifest.status = Status::Interrupted;
    let note = "interrupted by the user".to_owned();
    run.lines.push(Line::Note { t_ms: 187_000.0, variant: Some(third.to_owned()), text: note });
    run
}
