//! Searches over a few nodes in closed form, for the tests: clients ask coordinators, these ask a copy of every shard,
//! and a node runs what it is asked on its pool, whose threads share its cores with what else is ready to run there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use record::random::gamma_factor;
use world::Time;

use super::{Choice, NodeFeedback, Policy, Question, Selector, ServedLatency};

const MS: f64 = 1e6;

/// Core time of a shard's search, in the mean.
const SEARCH_NS: f64 = 160.0 * MS;

/// How requests come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrival {
    /// So many clients, each with one request at a time.
    Closed(usize),
    /// So many a second, at random.
    Open(f64),
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeModel {
    pub(super) cores: f64,
    pub(super) threads: usize,
    /// Processes of others that are always ready to run.
    pub(super) competitors: f64,
    /// Between these seconds.
    pub(super) competing_s: (f64, f64),
    /// Not there before this second; its first searches find no cache.
    pub(super) joins_s: f64,
    /// Share of requests that fail at once.
    pub(super) failing: f64,
    /// It stands still between these seconds.
    pub(super) paused_s: (f64, f64),
}

impl Default for NodeModel {
    fn default() -> Self {
        NodeModel {
            cores: 16.0,
            threads: 25,
            competitors: 0.0,
            competing_s: (0.0, f64::INFINITY),
            joins_s: 0.0,
            failing: 0.0,
            paused_s: (0.0, 0.0),
        }
    }
}

/// An experiment.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) nodes: Vec<NodeModel>,
    /// Nodes of each shard's copies.
    pub(super) shards: Vec<Vec<usize>>,
    pub(super) coordinators: usize,
    pub(super) arrival: Arrival,
    pub(super) requests: usize,
    pub(super) warm_up: usize,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) per_s: f64,
    /// Sorted, in milliseconds.
    pub(super) latencies_ms: Vec<f64>,
    /// Searches that each node ran.
    pub(super) by_node: Vec<u64>,
    /// Requests to nodes that failed.
    pub(super) failures: u64,
    /// Requests in flight at the end, by every coordinator's count.
    pub(super) left: u64,
    pub(super) events: u64,
}

impl Figures {
    pub(super) fn at(&self, share: f64) -> f64 {
        let place = (share * self.latencies_ms.len() as f64) as usize;
        self.latencies_ms[place.min(self.latencies_ms.len() - 1)]
    }
}

/// Between a coordinator and a node, one way.
const WAY: Duration = Duration::from_micros(150);
const FAILS_AFTER: Duration = Duration::from_micros(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client's request comes.
    Request,
    /// A shard is to be chosen for.
    Choose(usize),
    /// Arrives at its node.
    Arrive(usize),
    /// Has run.
    Ran(usize),
    /// The answer is back.
    Answer(usize),
    /// Its failure is back.
    Failed(usize),
    /// A node that stood still goes on.
    GoesOn(usize),
    /// A probe reaches its node.
    Probe {
        coordinator: usize,
        node: usize,
    },
    Probed {
        coordinator: usize,
        node: usize,
        in_flight: u64,
        latency_ns: Option<u64>,
    },
}

#[derive(Clone, Debug)]
struct Request {
    coordinator: usize,
    intended: Time,
    open: usize,
}

/// A search of one shard.
#[derive(Clone, Debug, Default)]
struct Search {
    request: usize,
    shard: usize,
    demand_ns: f64,
    order: Vec<usize>,
    tried: usize,
    sent: Time,
    arrived_rif: u64,
    arrived: Time,
    began: Time,
    took: Duration,
}

#[derive(Clone, Debug, Default)]
struct NodeState {
    running: Vec<usize>,
    waiting: VecDeque<usize>,
    served: ServedLatency,
    service_ns: f64,
    ran: u64,
}

struct Run<'a> {
    case: &'a Case,
    policy: Policy,
    names: Vec<String>,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    made: u64,
    random: u64,
    requests: Vec<Request>,
    searches: Vec<Search>,
    nodes: Vec<NodeState>,
    selectors: Vec<Selector>,
    done: Vec<(Time, f64)>,
    failures: u64,
}

/// Runs a case.
pub(super) fn run(case: &Case, policy: Policy) -> Figures {
    let mut run = Run {
        case,
        policy,
        names: (0..case.nodes.len()).map(|n| format!("n{n:03}")).collect(),
        now: Time(0),
        events: BinaryHeap::new(),
        made: 0,
        random: case.seed,
        requests: Vec::new(),
        searches: Vec::new(),
        nodes: vec![NodeState::default(); case.nodes.len()],
        selectors: (0..case.coordinators as u64).map(|n| Selector::new(case.seed ^ n)).collect(),
        done: Vec::new(),
        failures: 0,
    };
    let first = if let Arrival::Closed(clients) = case.arrival { clients } else { 1 };
    (0..first).for_each(|_| run.at(Duration::ZERO, Event::Request));
    for (node, model) in case.nodes.iter().enumerate() {
        run.at(Duration::from_secs_f64(model.paused_s.1), Event::GoesOn(node));
    }
    while let Some(Reverse((when, _, event))) = run.events.pop() {
        run.now = when;
        run.happens(event);
    }
    run.figures()
}

impl Run<'_> {
    fn next(&mut self) -> u64 {
        super::random::mix(&mut self.random)
    }

    fn at(&mut self, after: Duration, event: Event) {
        self.made += 1;
        self.events.push(Reverse((self.now + after, self.made, event)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Request => self.request(),
            Event::Choose(search) => self.choose(search),
            Event::Arrive(search) => self.arrive(search),
            Event::Ran(search) => self.ran(search),
            Event::Answer(search) => self.answer(search),
            Event::Failed(search) => self.failed(search),
            Event::GoesOn(node) => self.start(node),
            Event::Probe { coordinator, node } => {
                let state = &self.nodes[node];
                let in_flight = (state.running.len() + state.waiting.len()) as u64;
                let latency = state.served.answer(in_flight).latency;
                let latency_ns = latency.map(|latency| latency.as_nanos() as u64);
                self.at(WAY, Event::Probed { coordinator, node, in_flight, latency_ns });
            }
            Event::Probed { coordinator, node, in_flight, latency_ns } => {
                let latency = latency_ns.map(Duration::from_nanos);
                let answer = super::ProbeAnswer { in_flight, latency };
                let (now, servers) = (self.now, self.nodes.len());
                self.selectors[coordinator].probed(now, &self.names[node], answer, servers);
            }
        }
    }

    fn request(&mut self) {
        if self.requests.len() == self.case.requests {
            return;
        }
        if let Arrival::Open(per_s) = self.case.arrival {
            let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
            self.at(Duration::from_secs_f64(-(1.0 - uniform).ln() / per_s), Event::Request);
        }
        let request = self.requests.len();
        let coordinator = request % self.case.coordinators;
        let open = self.case.shards.len();
        self.requests.push(Request { coordinator, intended: self.now, open });
        for shard in 0..open {
            let demand_ns = gamma_factor(1.0, || self.next()) * SEARCH_NS;
            self.searches.push(Search { request, shard, demand_ns, ..Search::default() });
            self.choose(self.searches.len() - 1);
        }
    }

    fn choose(&mut self, search: usize) {
        let (shard, request) = (self.searches[search].shard, self.searches[search].request);
        let coordinator = self.requests[request].coordinator;
        let case = self.case;
        let there = |node: &&usize| self.now >= Time((case.nodes[**node].joins_s * 1e9) as u64);
        let copies: Vec<usize> = case.shards[shard].iter().filter(there).copied().collect();
        let random = self.next();
        let names: Vec<&str> = copies.iter().map(|n| self.names[*n].as_str()).collect();
        let question = Question { index: "a", shard: shard as u32, copies: &names, random };
        let selector = &mut self.selectors[coordinator];
        let order: Vec<usize> = match selector.choose(self.policy, self.now, question) {
            Choice::Ask(order) => order.into_iter().map(|place| copies[place]).collect(),
            Choice::WaitUntil(when) => return self.at(when - self.now, Event::Choose(search)),
        };
        self.searches[search].order = order;
        self.probe(coordinator, &copies);
        self.send(search);
    }

    fn probe(&mut self, coordinator: usize, copies: &[usize]) {
        let random = self.next();
        let names: Vec<&str> = copies.iter().map(|n| self.names[*n].as_str()).collect();
        for place in self.selectors[coordinator].probes(self.policy, &names, || random) {
            self.at(WAY, Event::Probe { coordinator, node: copies[place] });
        }
    }

    fn send(&mut self, search: usize) {
        let node = self.target(search);
        self.searches[search].sent = self.now;
        let coordinator = self.coordinator(search);
        self.selectors[coordinator].sent(self.now, &self.names[node]);
        self.at(WAY, Event::Arrive(search));
    }

    fn target(&self, search: usize) -> usize {
        let search = &self.searches[search];
        search.order[search.tried]
    }

    fn coordinator(&self, search: usize) -> usize {
        self.requests[self.searches[search].request].coordinator
    }

    fn arrive(&mut self, search: usize) {
        let node = self.target(search);
        let failing = self.case.nodes[node].failing;
        if failing > 0.0 && ((self.next() >> 11) as f64 / (1u64 << 53) as f64) < failing {
            return self.at(WAY + FAILS_AFTER, Event::Failed(search));
        }
        let state = &mut self.nodes[node];
        self.searches[search].arrived = self.now;
        self.searches[search].arrived_rif = (state.running.len() + state.waiting.len()) as u64;
        state.waiting.push_back(search);
        self.start(node);
    }

    /// How long work takes on a node with so many searches running, for each unit of it.
    fn stretch(&self, node: usize, running: usize, ran: u64) -> f64 {
        let model = &self.case.nodes[node];
        let now_s = self.now.as_secs_f64();
        let competes = now_s >= model.competing_s.0 && now_s < model.competing_s.1;
        let ready = running as f64 + if competes { model.competitors } else { 0.0 };
        // A node that joins finds its caches empty.
        let cold = if model.joins_s > 0.0 && ran < 50 { 4.0 } else { 1.0 };
        (ready / model.cores).max(1.0) * cold
    }

    /// How long it stands still, where it does now.
    fn paused(&self, node: usize) -> Option<Duration> {
        let (from_s, to_s) = self.case.nodes[node].paused_s;
        let now_s = self.now.as_secs_f64();
        let whole = Duration::from_secs_f64((to_s - from_s).max(0.0));
        (now_s >= from_s && now_s < to_s - 1e-9).then_some(whole)
    }

    fn start(&mut self, node: usize) {
        if self.paused(node).is_some() {
            return;
        }
        while self.nodes[node].running.len() < self.case.nodes[node].threads {
            let Some(search) = self.nodes[node].waiting.pop_front() else { return };
            let state = &self.nodes[node];
            let stretch = self.stretch(node, state.running.len() + 1, state.ran);
            let service = Duration::from_nanos((self.searches[search].demand_ns * stretch) as u64);
            self.searches[search].began = self.now;
            self.nodes[node].running.push(search);
            self.nodes[node].ran += 1;
            self.at(service, Event::Ran(search));
        }
    }

    fn ran(&mut self, search: usize) {
        let node = self.target(search);
        if let Some(whole) = self.paused(node) {
            // What was left of it when the node stopped comes after the pause.
            return self.at(whole, Event::Ran(search));
        }
        let took = self.now - self.searches[search].began;
        let since = self.now - self.searches[search].arrived;
        let rif = self.searches[search].arrived_rif;
        self.searches[search].took = took;
        let state = &mut self.nodes[node];
        state.running.retain(|running| *running != search);
        state.served.note(rif, since);
        let sample = took.as_nanos() as f64;
        state.service_ns =
            if state.service_ns == 0.0 { sample } else { 0.7 * state.service_ns + 0.3 * sample };
        self.start(node);
        self.at(WAY, Event::Answer(search));
    }

    fn answer(&mut self, search: usize) {
        let node = self.target(search);
        let (state, threads) = (&self.nodes[node], self.case.nodes[node].threads as u64);
        let feedback = NodeFeedback {
            queue: state.waiting.len() as u64,
            service_time: Duration::from_nanos(state.service_ns as u64),
            in_flight: (state.running.len() + state.waiting.len()) as u64,
            threads,
            took: self.searches[search].took,
        };
        let response_time = self.now - self.searches[search].sent;
        let coordinator = self.coordinator(search);
        let name = &self.names[node];
        self.selectors[coordinator].answered(self.now, name, response_time, feedback);
        self.part_done(self.searches[search].request);
    }

    fn failed(&mut self, search: usize) {
        let node = self.target(search);
        self.failures += 1;
        let after = self.now - self.searches[search].sent;
        let coordinator = self.coordinator(search);
        self.selectors[coordinator].failed(self.now, &self.names[node], after);
        self.searches[search].tried += 1;
        match self.searches[search].tried < self.searches[search].order.len() {
            true => self.send(search),
            false => self.part_done(self.searches[search].request),
        }
    }

    fn part_done(&mut self, request: usize) {
        let request = &mut self.requests[request];
        request.open -= 1;
        if request.open > 0 {
            return;
        }
        let latency = self.now - request.intended;
        self.done.push((self.now, latency.as_nanos() as f64 / MS));
        if let Arrival::Closed(_) = self.case.arrival {
            self.at(Duration::ZERO, Event::Request);
        }
    }

    fn figures(self) -> Figures {
        let kept = &self.done[self.case.warm_up.min(self.done.len() - 2)..];
        let mut latencies_ms: Vec<f64> = kept.iter().map(|done| done.1).collect();
        latencies_ms.sort_by(f64::total_cmp);
        let span = kept.last().expect("requests were made").0 - kept[0].0;
        let left = self.selectors.iter().flat_map(|s| self.names.iter().map(|n| s.outstanding(n)));
        Figures {
            per_s: (kept.len() - 1) as f64 / span.as_secs_f64(),
            latencies_ms,
            by_node: self.nodes.iter().map(|node| node.ran).collect(),
            failures: self.failures,
            left: left.sum(),
            events: self.made,
        }
    }
}
