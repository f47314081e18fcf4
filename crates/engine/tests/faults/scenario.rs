//! What happens in a run: drawn from a seed, and nothing else.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use record::random::split_mix;
use serde_json::{Value, json};

/// Random numbers from a seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// From `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// From `from` to `to`, both included; small ones as often as large ones, by their order of magnitude.
    pub fn magnitude(&mut self, from: u64, to: u64) -> u64 {
        let doublings = (to / from.max(1)).ilog2() + 1;
        let most = from.max(1) << self.between(1, u64::from(doublings));
        self.between(from, most.min(to))
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.between(0, all.len() as u64 - 1) as usize]
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// Which cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Leader,
    Follower,
    /// Of a chain: it follows the follower.
    Last,
}

/// What goes wrong, or is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `kill -9`; it is started again at the end of the fault.
    Kill(Side, usize),
    /// Every node of a cluster at once.
    KillAll(Side),
    /// Stopped in order, and started again.
    Stop(Side, usize),
    /// It stands still.
    Pause(Side, usize),
    /// Nothing passes the link.
    Cut,
    /// Nothing passes between a node and all others, of its cluster and of the others; clients reach it.
    CutOff(Side, usize),
    /// The disk takes so many bytes more.
    FullDisk(Side, usize, u64),
    /// Every copy of the index is committed.
    Flush(Side),
    /// The follower is paused, and resumed.
    PauseFollowing,
    /// A node's clock jumps by so many milliseconds, and back at the end.
    MoveClock(Side, usize, i64),
    /// `kill -9`, and something befalls a file of its copies before it is started again; what, by a drawn number.
    Damage(Side, usize, u64),
    /// The follower is paused, and is no follower any more at the end. After all, it is made anew.
    Unfollow,
    /// A copy is moved to another node; which, and to where, by a drawn number. The move is given up at the end of the
    /// fault, where it goes on still.
    Move(Side, u64),
    /// Everything is to leave a node, until the end.
    Drain(Side, usize),
}

/// A fault: from when on, how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at_ms: u64,
    pub lasts_ms: u64,
    pub what: What,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms, for {} ms: {:?}", self.at_ms, self.lasts_ms, self.what)
    }
}

/// A client that writes.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Documents that are its own.
    pub documents: u64,
    /// Writes of a bulk request, at most.
    pub batch: u64,
    /// Between two requests, at most.
    pub pause_ms: u64,
    /// So many of a hundred writes create a document, and fail where it is there.
    pub creates_percent: u64,
}

/// Of what kind a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Up to three nodes a cluster.
    Small,
    /// Three to seven nodes a cluster, searches beside the writes, and often a second follower behind the first.
    Wide,
    /// Two faults that overlap, every two kinds in turn, on machines that are slow enough for much to be under way:
    /// about
    /// the last writes, about the moment when following begins, or anywhere.
    Pair,
    /// A small one in which files of a node that is down are damaged.
    AtRest,
    /// As one of the others, and copies are moved all the time, most often about the faults.
    Moving,
    /// All nodes of a cluster are killed and start again, and one of them is cut off at that moment.
    Restarting,
}

/// What a host's disk and network card take.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub seek_us: u64,
    pub sync_us: u64,
    pub delay_us: u64,
}

/// A seed, and what is left of its run: which faults, how many bulk requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub shape: Shape,
    pub seed: u64,
    /// Numbers of the faults that happen; none for all of them.
    pub faults: Option<Vec<usize>>,
    /// Bulk requests of each client, at most; none for no limit.
    pub requests: Option<u64>,
}

impl From<u64> for Case {
    fn from(seed: u64) -> Case {
        Case { shape: Shape::Small, seed, faults: None, requests: None }
    }
}

impl Case {
    /// Of runs that take turns.
    pub fn in_turn(seed: u64) -> Case {
        Case { shape: SHAPES[(seed % SHAPES.len() as u64) as usize], ..Case::from(seed) }
    }
}

pub const SHAPES: [Shape; 4] = [Shape::Small, Shape::Wide, Shape::Pair, Shape::Pair];
/// What a case begins with that is not a small one.
const PREFIXES: [(&str, Shape); 5] = [
    ("wide:", Shape::Wide),
    ("pair:", Shape::Pair),
    ("at-rest:", Shape::AtRest),
    ("moving:", Shape::Moving),
    ("restarting:", Shape::Restarting),
];

/// `SEED`, or `SEED/FAULT.FAULT/REQUESTS`; a part that is `all` takes nothing away. A wide run has `wide:` before
/// its seed, one of a pair `pair:`, one with damage `at-rest:`, and so on.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = PREFIXES.iter().find(|(_, shape)| *shape == self.shape);
        let prefix = prefix.map_or("", |(prefix, _)| prefix);
        write!(f, "{prefix}{}", self.seed)?;
        if (&self.faults, &self.requests) == (&None, &None) {
            return Ok(());
        }
        let numbers = |faults: &Vec<usize>| {
            let numbers: Vec<String> = faults.iter().map(usize::to_string).collect();
            if numbers.is_empty() { "none".to_owned() } else { numbers.join(".") }
        };
        let faults = self.faults.as_ref().map_or("all".to_owned(), numbers);
        let requests = self.requests.map_or("all".to_owned(), |requests| requests.to_string());
        write!(f, "/{faults}/{requests}")
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Case, String> {
        let refuse =
            || format!("[{text}] is no case; write SEED, wide:SEED, pair:SEED or SEED/1.4.5/20");
        let of = |(prefix, shape)| Some((shape, text.strip_prefix(prefix)?));
        let (shape, rest) = PREFIXES.into_iter().find_map(of).unwrap_or((Shape::Small, text));
        let mut parts = rest.split('/');
        let seed = parts.next().and_then(|seed| seed.parse().ok()).ok_or_else(refuse)?;
        let faults = match parts.next() {
            None | Some("all") => None,
            Some("none") => Some(Vec::new()),
            Some(list) => Some(
                list.split('.')
                    .map(|n| n.parse().map_err(|_| refuse()))
                    .collect::<Result<_, _>>()?,
            ),
        };
        let requests = match parts.next() {
            None | Some("all") => None,
            Some(number) => Some(number.parse().map_err(|_| refuse())?),
        };
        Ok(Case { shape, seed, faults, requests })
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub leaders: usize,
    pub followers: usize,
    /// Nodes of the cluster that follows the follower; none without a chain.
    pub last: usize,
    /// Clients that search.
    pub searchers: u64,
    pub shards: u32,
    pub leader_replicas: u32,
    pub follower_replicas: u32,
    pub rtt_ms: u64,
    pub rate_bytes_per_s: u64,
    /// Settings of the leader's index, and of the follower's.
    pub leader_settings: Value,
    pub follower_settings: Value,
    /// Parameters of the follower; empty for the adaptive pace.
    pub parameters: Value,
    pub follow_at_ms: u64,
    /// How long clients write.
    pub load_ms: u64,
    pub writers: Vec<Writer>,
    pub requests_max: u64,
    /// How long a client waits for an answer.
    pub patience_ms: u64,
    /// Of the hosts of each cluster; empty for the world's own.
    pub machines: [Vec<Machine>; 3],
    pub faults: Vec<Fault>,
}

/// How long a lease lasts that is not renewed.
pub const LEASE_PERIOD: &str = "index.soft_deletes.retention_lease.period";

/// Bytes of a client's write with its id and what a log or a message adds, at most.
const OPERATION_BYTES: u64 = 600;

pub fn replicas_of(chance: &mut Chance, nodes: usize) -> u32 {
    chance.between(0, (nodes as u64 - 1).min(2)) as u32
}

pub fn index_settings(chance: &mut Chance, is_follower: bool) -> Value {
    let mut settings = json!({});
    if chance.percent(50) {
        let bytes = chance.between(1, 40);
        settings["index.translog.flush_threshold_size"] = json!(format!("{bytes}kb"));
    }
    if !is_follower && chance.percent(25) {
        // Renewed every 30 s.
        let seconds = chance.between(35, 60);
        settings[LEASE_PERIOD] = json!(format!("{seconds}s"));
    }
    if is_follower && chance.percent(20) {
        settings["index.translog.durability"] = json!("async");
        settings["index.translog.sync_interval"] =
            json!(format!("{}ms", chance.between(100, 3000)));
    }
    settings
}

pub fn parameters(chance: &mut Chance) -> Value {
    if chance.percent(40) {
        return json!({});
    }
    let read_bytes = [200, 2000, 1 << 20][chance.between(0, 2) as usize];
    json!({
        "max_read_request_operation_count": chance.between(1, 50),
        "max_read_request_size": format!("{read_bytes}b"),
        "max_outstanding_read_requests": chance.between(1, 5),
        "max_write_request_operation_count": chance.between(1, 50),
        "max_outstanding_write_requests": chance.between(1, 5),
        "max_write_buffer_count": chance.between(5, 200),
        "max_retry_delay": format!("{}ms", chance.between(10, 500)),
        "read_poll_timeout": format!("{}ms", chance.between(200, 10_000)),
    })
}

/// Nodes of leader, follower, and the last of a chain.
pub type Nodes = [usize; 3];

pub fn some_node(chance: &mut Chance, nodes: Nodes, leader_percent: u64) -> (Side, usize) {
    let side = match nodes[2] > 0 && chance.percent(30) {
        true => Side::Last,
        false if chance.percent(leader_percent) => Side::Leader,
        false => Side::Follower,
    };
    (side, chance.between(0, nodes[side as usize] as u64 - 1) as usize)
}

fn fault(chance: &mut Chance, load_ms: u64, nodes: Nodes) -> Fault {
    let (side, node) = some_node(chance, nodes, 50);
    let what = match chance.between(0, 99) {
        0..35 => What::Kill(side, node),
        35..43 => What::KillAll(side),
        43..51 => What::Stop(side, node),
        51..64 => What::Pause(side, node),
        64..76 => What::Cut,
        76..83 => What::FullDisk(side, node, chance.between(0, 20_000)),
        83..95 => What::Flush(side),
        _ => What::PauseFollowing,
    };
    let longest = match chance.between(0, 99) {
        0..33 => 300,
        33..66 => 3_000,
        66..92 => 25_000,
        // Longer than a lease that is as short as it may be.
        _ => 120_000,
    };
    Fault { at_ms: chance.between(0, load_ms), lasts_ms: chance.between(10, longest), what }
}

/// Faults of a stream of their own: those before them were there first, and keep their numbers.
fn more_faults(seed: u64, load_ms: u64, nodes: Nodes) -> Vec<Fault> {
    let followers = nodes[1];
    let mut chance = Chance::new(!seed);
    let mut faults = Vec::new();
    while chance.percent(40) {
        let (side, node) = some_node(&mut chance, nodes, 60);
        // Seconds, the period of a short lease, more than that of a lease that is as long as it is by itself.
        let far_ms = [5_000, 120_000, 24 * 3_600_000][chance.between(0, 2) as usize];
        let by_ms = chance.between(1, far_ms) as i64;
        let by_ms = if chance.percent(50) { by_ms } else { -by_ms };
        let at_ms = chance.between(0, load_ms);
        let lasts_ms = chance.between(10, 30_000);
        // Who follows an index that is no follower any more has nothing left to follow.
        if chance.percent(60) || nodes[2] > 0 {
            faults.push(Fault { at_ms, lasts_ms, what: What::MoveClock(side, node, by_ms) });
            continue;
        }
        // What is on its way to a node that stands still when following is paused.
        if chance.percent(70) {
            let what =
                What::Pause(Side::Follower, chance.between(0, followers as u64 - 1) as usize);
            let before_ms = chance.between(0, 2_000).min(at_ms);
            let (at_ms, lasts_ms) = (at_ms - before_ms, before_ms + chance.between(10, 3_000));
            faults.push(Fault { at_ms, lasts_ms, what });
        }
        faults.push(Fault { at_ms, lasts_ms, what: What::Unfollow });
    }
    faults
}

impl Scenario {
    /// How long a follower takes at most to read so many operations if nothing else goes wrong: the time that they take
    /// on the link, and with parameters as many round trips, one after another, as these make of them.
    pub fn reading_takes(&self, operations: u64) -> Duration {
        let number = |name: &str| self.parameters[name].as_u64();
        let size = |name: &str| self.parameters[name].as_str()?.strip_suffix('b')?.parse().ok();
        let on_the_link_ms = operations * OPERATION_BYTES * 1000 / self.rate_bytes_per_s;
        let operations_a_read = number("max_read_request_operation_count")
            .zip(size("max_read_request_size"))
            // A read brings one operation, however large it is.
            .map(|(operations, bytes): (u64, u64)| operations.min(bytes / OPERATION_BYTES).max(1));
        let round_trips = operations_a_read
            .zip(number("max_outstanding_read_requests"))
            .map_or(0, |(at_once, reads)| operations.div_ceil(at_once * reads));
        Duration::from_millis(on_the_link_ms + round_trips * self.rtt_ms)
    }

    pub fn of(case: &Case) -> Scenario {
        let mut scenario = match case.shape {
            Shape::Pair => Scenario::pair(case),
            Shape::AtRest => Scenario::at_rest(case),
            Shape::Moving => Scenario::moving(case),
            Shape::Restarting => Scenario::restarting(case),
            Shape::Small | Shape::Wide => Scenario::at_random(case),
        };
        if let Some(kept) = &case.faults {
            let all = std::mem::take(&mut scenario.faults);
            let kept = all.into_iter().enumerate().filter(|(number, _)| kept.contains(number));
            scenario.faults = kept.map(|(_, fault)| fault).collect();
        }
        scenario
    }

    fn at_random(case: &Case) -> Scenario {
        let mut chance = Chance::new(case.seed);
        let (least, most) = if case.shape == Shape::Wide { (3, 7) } else { (1, 3) };
        let mut nodes = || chance.between(least, most) as usize;
        let (leaders, followers) = (nodes(), nodes());
        let is_chain = case.shape == Shape::Wide && chance.percent(40);
        let last = if is_chain { chance.between(1, 4) as usize } else { 0 };
        let is_searched = case.shape == Shape::Wide && chance.percent(70);
        let searchers = if is_searched { chance.between(1, 3) } else { 0 };
        let load_ms = chance.between(1_000, 20_000);
        let writers = (0..chance.between(1, 3))
            .map(|_| Writer {
                documents: chance.between(3, 30),
                batch: chance.between(1, 15),
                pause_ms: chance.between(5, 1500),
                creates_percent: 15,
            })
            .collect();
        let mut scenario = Scenario {
            seed: case.seed,
            leaders,
            followers,
            last,
            searchers,
            shards: chance.between(1, 2) as u32,
            leader_replicas: replicas_of(&mut chance, leaders),
            follower_replicas: replicas_of(&mut chance, followers),
            rtt_ms: chance.between(1, 150),
            rate_bytes_per_s: 1000 * chance.between(20, 20_000),
            leader_settings: index_settings(&mut chance, false),
            follower_settings: index_settings(&mut chance, true),
            parameters: parameters(&mut chance),
            follow_at_ms: if chance.percent(50) { 0 } else { chance.between(0, load_ms) },
            load_ms,
            writers,
            requests_max: case.requests.unwrap_or(u64::MAX),
            patience_ms: 10_000,
            machines: Default::default(),
            faults: Vec::new(),
        };
        let faults = chance.between(1, 7);
        scenario.faults =
            (0..faults).map(|_| fault(&mut chance, load_ms, [leaders, followers, last])).collect();
        scenario.faults.extend(more_faults(case.seed, load_ms, [leaders, followers, last]));
        scenario
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "leader {} nodes, {} shards, {} replicas, {}; follower {} nodes, {} replicas, {} {}, from {} ms; \
             {} ms and {} kB/s between; {} nodes behind it; {} clients and {} that search for {} ms, and wait {} ms; {:?}",
            self.leaders,
            self.shards,
            self.leader_replicas,
            self.leader_settings,
            self.followers,
            self.follower_replicas,
            self.follower_settings,
            self.parameters,
            self.follow_at_ms,
            self.rtt_ms,
            self.rate_bytes_per_s / 1000,
            self.last,
            self.writers.len(),
            self.searchers,
            self.load_ms,
            self.patience_ms,
            self.machines,
        )?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}
