//! A recovery that copies files: all that is known of it, for the judges of its causes.

mod evidence;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use record::observation::{Recovery, Scope, Setting};
use record::units::{parse_size, parse_throttle};

use super::finding::{ANSWERS_BESIDE_OTHERS, ANSWERS_LATE, Evidence, Finding, NODES_STATS};
use super::knobs::Knobs;
use super::node_span::NodeSpan;
use super::rule::Rule;
use super::series::{MS_PER_S, Series, Step, Transfer, is_long};
use super::threshold::{
    CORES_ANSWER, CPU_OWN, HIDES, IDLE, LATE_ANSWERS, LATE_MS, LATE_SHARE, LIMIT_COSTS, LIMIT_FULL,
    LIMIT_PAUSED, LIMIT_USED, LITTLE_USED, NEAR_MS, PASSES, ROUNDS, SAME_RATE, STAGE,
};
use crate::words;

/// A node of a recovery: its source, or its target.
type NodeOf = fn(&Recovery) -> Option<&str>;

const SOURCE: NodeOf = |one| one.sender();
const TARGET: NodeOf = |one| one.target.as_deref();

/// A recovery that is judged, and what the judges of one that copies files are told of it, which is made once.
pub(crate) struct Recovering<'s, 'a> {
    pub(crate) transfer: &'s Transfer<'a>,
    copying: OnceCell<Option<Copying<'s, 'a>>>,
}

impl<'s, 'a> Recovering<'s, 'a> {
    /// All that a series shows: what copies files, and what has long been opening those of its own disk.
    pub(crate) fn all(series: &'s Series<'a>) -> Vec<Self> {
        let is_judged = |one: &&'s Transfer<'a>| one.last().copies_files() || opens_for_long(one);
        let judged = series.transfers().iter().filter(is_judged);
        judged.map(|transfer| Recovering { transfer, copying: OnceCell::new() }).collect()
    }

    /// What its judges are told; none where its bytes are not told, and of one that copies no files.
    pub(crate) fn copying(&self, series: &'s Series<'a>) -> Option<&Copying<'s, 'a>> {
        let make = || {
            let files = Some(self.transfer).filter(|one| one.last().copies_files());
            Copying::of(series, files?, series.transfers())
        };
        self.copying.get_or_init(make).as_ref()
    }
}

/// Whether a copy has for long replayed its own log, or has its files checked: after a crash its data is away
/// meanwhile. Nodes that start open thousands in a moment.
fn opens_for_long(transfer: &Transfer<'_>) -> bool {
    let last = transfer.last();
    let is_told = ["TRANSLOG", CHECKS].iter().any(|stage| transfer.share_in(stage) >= STAGE.value);
    is_long(last) && is_told && !last.ended
}

/// The stage in which `index.shard.check_on_startup` has every file of a copy read before it opens.
pub(crate) const CHECKS: &str = "VERIFY_INDEX";

/// A recovery that copies files, for its judges.
pub(crate) struct Copying<'s, 'a> {
    pub(crate) series: &'s Series<'a>,
    pub(crate) transfer: &'s Transfer<'a>,
    pub(crate) knobs: Knobs,
    pub(crate) rate_bytes_per_s: f64,
    /// Rate of all recoveries that share a limiter at the busier end, sent and received, and the name of that node.
    pub(crate) node_bytes_per_s: f64,
    pub(crate) node: String,
    /// The end whose limiter let most through since this recovery began, and how many bytes of all that share it.
    pub(crate) passed: Option<(&'a str, f64)>,
    /// The setting of the limiter of `node`, and what it is by default there.
    pub(crate) limiter: Option<(Setting, &'static str)>,
    /// None without a limit, and where so much more passes that it is not the one of this node.
    pub(crate) limit_bytes_per_s: Option<f64>,
    /// Bytes of a chunk and chunks in flight, as settings have it.
    pub(crate) chunk_bytes: Option<f64>,
    pub(crate) chunk_count: Option<f64>,
    pub(crate) in_flight_bytes: Option<f64>,
    /// The shortest round trip that was measured, and the longest.
    pub(crate) rtt_ms: Option<f64>,
    rtt_max_ms: Option<f64>,
    /// What it hardly exceeds, where it was not measured and that is known.
    pub(crate) rtt_at_most_ms: Option<f64>,
    /// Source and target, as far as their nodes were seen.
    pub(crate) ends: Vec<End<'s>>,
    /// What all recoveries between the same two nodes moved from one look to the next.
    pub(crate) path_steps: Vec<Step>,
}

/// The chunks of a recovery and their time, from their request to their last byte on disk.
pub(crate) struct ChunkTimes {
    /// Size of one.
    pub(crate) bytes: f64,
    /// Time of one.
    pub(crate) each_ms: f64,
    /// The part of it in which it paused for limiters.
    pub(crate) paused_ms: f64,
}

impl ChunkTimes {
    /// Time of one without its pauses.
    pub(crate) fn unpaused_ms(&self) -> f64 {
        self.each_ms - self.paused_ms
    }
}

/// A node that stands still for a part of the time.
pub(crate) struct Standstill<'a> {
    pub(crate) node: &'a str,
    late: usize,
    answers: usize,
    latest_ms: f64,
}

impl Standstill<'_> {
    pub(crate) fn why(&self) -> String {
        format!("{} stands still for a part of the time, and no counter says why", self.node)
    }

    pub(crate) fn evidence(&self) -> Evidence {
        let Standstill { node, late, answers, latest_ms } = self;
        let value = format!(
            "{node}: {late} of {answers} answers came {LATE_MS} or more late, up to {latest}",
            LATE_MS = words::rtt(LATE_MS.value),
            latest = words::rtt(latest_ms.round())
        );
        Evidence::new(NODES_STATS, ANSWERS_LATE, value)
    }
}

/// Cores that something else keeps busy, and that a recovery hardly waits for.
pub(crate) struct HardlyWaits {
    /// What the node's own process takes of all cores, 0 to 1.
    own: f64,
    answer_ms: f64,
    chunk_ms: f64,
}

impl HardlyWaits {
    pub(crate) fn why(&self, end: &End<'_>) -> String {
        format!(
            "the cores of {} are busy with something else, but it answers within {}, and a chunk takes {}",
            end.node(),
            words::rtt_tenths(self.answer_ms),
            words::rtt(self.chunk_ms.round())
        )
    }
}

/// The source or the target of a recovery, and what its node did meanwhile.
pub(crate) struct End<'a> {
    pub(crate) is_source: bool,
    pub(crate) span: &'a NodeSpan<'a>,
    /// Use of its cores and the field that says so, and what its own process takes of them: most judges ask.
    pub(crate) cpu: Option<(f64, &'static str)>,
    pub(crate) process_cpu: Option<f64>,
    /// Bytes a second that all recoveries read and write there, whichever limiters they pass.
    pub(crate) moved_bytes_per_s: f64,
    /// What chunks that were under way may have moved there besides: a recovery tells of whole ones.
    pub(crate) under_way_bytes_per_s: f64,
}

impl<'a> End<'a> {
    /// Name of the node.
    pub(crate) fn node(&self) -> &'a str {
        &self.span.last().name
    }

    /// `source` or `target`.
    pub(crate) fn side(&self) -> &'static str {
        if self.is_source { "source" } else { "target" }
    }
}

/// A recovery among all that are seen at the same time: they share its nodes, their limiters and its path.
struct Among<'s, 't, 'a> {
    series: &'s Series<'a>,
    transfer: &'s Transfer<'a>,
    all: &'t [Transfer<'a>],
    knobs: Knobs,
}

impl<'s, 'a> Among<'s, '_, 'a> {
    /// Bytes of another since this one began. How much of it came before is not told: it is taken to have come evenly.
    fn since_this_began(&self, one: &Transfer<'a>) -> Option<f64> {
        let one = one.last();
        let share =
            self.transfer.last().total_ms? as f64 / one.total_ms.filter(|ms| *ms > 0)? as f64;
        (!one.ended).then_some(one.recovered_bytes? as f64 * share.min(1.0))
    }

    /// The sum over all that pass the same limiter of the node at an end: one a node serves everything that the setting
    /// of its rate rules, whichever shard it is of, and whether the node is its source or its target. That is so in
    /// Elasticsearch and OpenSearch (`RecoverySettings`, `CcrSettings`) as in our own engine; restores pass the limiter
    /// of recoveries there (`BlobStoreRepository.maybeRateLimitRestores`).
    fn shared(&self, end: NodeOf, what: impl Fn(&Transfer<'a>) -> Option<f64>) -> f64 {
        let Some(node) = end(self.transfer.last()) else { return 0.0 };
        let same = self.all.iter().filter(|other| {
            let other = other.last();
            [SOURCE, TARGET].iter().any(|end| end(other) == Some(node))
                && Knobs::of(other, self.series).rate == self.knobs.rate
        });
        same.filter_map(what).sum()
    }

    /// The node whose limiter holds rather than the other end's, and the rate of all that share it.
    fn busier_end(&self, rate_bytes_per_s: f64) -> (String, f64) {
        let last = self.transfer.last();
        let from = self.shared(SOURCE, |one| self.transfer.meanwhile(one));
        let onto = self.shared(TARGET, |one| self.transfer.meanwhile(one));
        let paused = |end: NodeOf| self.series.node(end(last)?)?.rise(|node| node.throttle_ms);
        // Of two ends that move the same, the one that pauses more holds the other. Where neither hides the other, it
        // is the same one of them in every look.
        let pauses_more = || match (paused(SOURCE), paused(TARGET)) {
            (Some(source), Some(target))
                if source.max(target) as f64 <= source.min(target) as f64 * HIDES.value
                    && source.min(target) > 0 =>
            {
                last.sender() < last.target.as_deref()
            }
            (source, target) => source > target,
        };
        let at_source = from > onto * (1.0 + SAME_RATE.value)
            || (from >= onto * (1.0 - SAME_RATE.value) && pauses_more());
        match (last.sender(), &last.target) {
            (Some(source), _) if at_source => (source.to_owned(), from),
            (_, Some(target)) => (target.clone(), onto.max(rate_bytes_per_s)),
            (Some(source), None) => (source.to_owned(), from),
            (None, None) => (String::new(), rate_bytes_per_s),
        }
    }

    /// The end whose limiter let most through since this recovery began, and how much; of two alike, the busier `node`.
    fn passed(&self, node: &str) -> Option<(&'a str, f64)> {
        let last = self.transfer.last();
        let of =
            |end: NodeOf| Some((end(last)?, self.shared(end, |one| self.since_this_began(one))));
        [SOURCE, TARGET]
            .into_iter()
            .filter_map(of)
            .reduce(|a, b| if b.1 > a.1 || (b.1 == a.1 && b.0 == node) { b } else { a })
    }

    /// Whether a node moves far more than its limiter is told to let through. Chunks that came in a lump, and a limit
    /// that changed meanwhile, do not tell.
    fn passes(&self, bytes_per_s: f64, limit: f64, in_flight_bytes: Option<f64>) -> bool {
        let few = in_flight_bytes.unwrap_or(0.0) * ROUNDS.value;
        let is_told = self.transfer.bytes().is_some_and(|came| came as f64 >= few);
        // Settings of all looks are compared last: few recoveries come that far.
        let is_changed =
            || self.knobs.rate.is_some_and(|(name, _)| self.series.changed(name).is_some());
        is_told && bytes_per_s > limit * PASSES.value && !is_changed()
    }

    /// An end, and what all recoveries move there; none where its node was not seen.
    fn end(&self, is_source: bool, in_flight_bytes: Option<f64>) -> Option<End<'s>> {
        let last = self.transfer.last();
        let name = if is_source { last.sender() } else { last.target.as_deref() };
        let span = self.series.node(name?)?;
        let there = self.all.iter().filter(|other| {
            let other = other.last();
            other.sender() == name || other.target.as_deref() == name
        });
        let under_way = there.clone().filter(|other| !other.last().ended).count() as f64;
        let under_way_bytes = under_way * in_flight_bytes.unwrap_or(0.0);
        Some(End {
            is_source,
            span,
            cpu: span.cpu(),
            process_cpu: span.process_cpu(),
            moved_bytes_per_s: there.filter_map(|one| self.transfer.meanwhile(one)).sum(),
            under_way_bytes_per_s: under_way_bytes / (self.transfer.wall_ms() / MS_PER_S),
        })
    }

    /// Shortest and longest round trip between its nodes, or to the remote cluster that it copies from.
    fn rtts_ms(&self) -> Option<(f64, f64)> {
        let last = self.transfer.last();
        match (last.repository.as_deref().and_then(alias_of), last.sender(), &last.target) {
            (Some(alias), ..) => self.series.remote_rtts_ms(alias),
            (None, Some(source), Some(target)) => self.series.rtts_ms(source, target),
            _ => None,
        }
    }

    /// What that between two nodes hardly exceeds.
    fn rtt_at_most_ms(&self) -> Option<f64> {
        let last = self.transfer.last();
        self.series.rtt_at_most_ms(last.sender()?, last.target.as_deref()?)
    }

    /// What it and all others between the same two nodes moved from one look to the next.
    fn path_steps(&self) -> Vec<Step> {
        let last = self.transfer.last();
        let is_beside = |other: &&Transfer<'_>| {
            let other = other.last();
            (other.sender(), &other.target) == (last.sender(), &last.target)
                && other.key() != last.key()
        };
        let beside: Vec<&Transfer<'_>> = self.all.iter().filter(is_beside).collect();
        self.transfer.steps_with(&beside)
    }
}

impl<'s, 'a> Copying<'s, 'a> {
    /// None where its bytes are not told.
    pub(crate) fn of(
        series: &'s Series<'a>,
        transfer: &'s Transfer<'a>,
        all: &[Transfer<'a>],
    ) -> Option<Self> {
        let rate_bytes_per_s = transfer.bytes_per_s()?;
        let knobs = Knobs::of(transfer.last(), series);
        let among = Among { series, transfer, all, knobs };
        let (node, node_bytes_per_s) = among.busier_end(rate_bytes_per_s);
        let (chunk_bytes, chunk_count) = (knobs.chunk_bytes(series), knobs.chunk_count(series));
        let in_flight_bytes = chunk_bytes.zip(chunk_count).map(|(bytes, count)| bytes * count);
        let limiter = knobs.limiter_of(&node, series);
        let limit = limiter.as_ref().and_then(|(one, _)| {
            let limit = parse_throttle(&one.value).ok().flatten()? as f64;
            let is_for_all = one.scope != Scope::Default;
            (is_for_all || !among.passes(node_bytes_per_s, limit, in_flight_bytes)).then_some(limit)
        });
        let ends = [true, false].map(|is_source| among.end(is_source, in_flight_bytes));
        let (rtt_ms, rtt_max_ms) = among.rtts_ms().unzip();
        Some(Copying {
            limiter,
            limit_bytes_per_s: limit,
            chunk_bytes,
            chunk_count,
            in_flight_bytes,
            series,
            transfer,
            knobs,
            rate_bytes_per_s,
            node_bytes_per_s,
            passed: among.passed(&node),
            node,
            rtt_ms,
            rtt_max_ms,
            rtt_at_most_ms: if rtt_ms.is_none() { among.rtt_at_most_ms() } else { None },
            ends: ends.into_iter().flatten().collect(),
            path_steps: among.path_steps(),
        })
    }

    /// Bytes a second of all recoveries that meet a condition.
    fn together(&self, is_meant: impl Fn(&Recovery) -> bool) -> f64 {
        let all = self.series.transfers().iter().filter(|one| is_meant(one.last()));
        all.filter_map(|one| self.transfer.meanwhile(one)).sum()
    }

    /// Bytes a second of all that its source sends or of all that its target receives, whichever are more: a card
    /// carries so much each way, where a limiter counts both ways together.
    pub(crate) fn one_way_bytes_per_s(&self) -> f64 {
        let last = self.transfer.last();
        let of = |end: NodeOf| self.together(|one| end(last).is_some() && end(one) == end(last));
        of(SOURCE).max(of(TARGET))
    }

    /// Bytes a second of all restores from the repository of this one to its node: they share a limiter of their own.
    pub(crate) fn restored_bytes_per_s(&self) -> f64 {
        let last = self.transfer.last();
        self.together(|one| {
            (one.restored_from(), &one.target) == (last.restored_from(), &last.target)
        })
    }

    /// The rate at which the repository of a restore is read, as it is set and in bytes a second.
    pub(crate) fn repository_limit(&self) -> Option<(&'a str, &'a str, f64)> {
        let repository = self.transfer.last().restored_from()?;
        let mut looks = self.series.looks().iter().rev();
        let value = looks.find_map(|(_, look)| look.restore_limits.get(repository))?;
        let rate = parse_throttle(value).ok().flatten().filter(|rate| *rate > 0)?;
        Some((repository, value, rate as f64))
    }

    /// Pauses over wall time; none of a restore, whose pauses no API tells.
    pub(crate) fn paused(&self) -> Option<f64> {
        if self.transfer.last().restored_from().is_some() {
            return None;
        }
        Some(self.transfer.paused_ms()? as f64 / self.transfer.wall_ms())
    }

    /// Whether its chunks pause one after another: the field's source sends them in one line, and pauses before each of
    /// them. In our own engine, and where a follower asks for them, they pause side by side, as the files of a snapshot
    /// do.
    pub(crate) fn pauses_in_line(&self) -> bool {
        let last = self.transfer.last();
        self.series.flavour() != "narrows" && !last.is_from_remote() && !last.comes_from_snapshot()
    }

    /// Share of the time in which a source that pauses in line sends, and waits for answers; none where pauses are not
    /// told.
    pub(crate) fn sends(&self) -> Option<f64> {
        Some((1.0 - self.paused()?).max(0.0))
    }

    /// What each chunk in flight has of pauses that are summed over them.
    pub(crate) fn of_each(&self, paused: f64) -> f64 {
        paused / self.chunk_count.unwrap_or(1.0)
    }

    /// Whether the limiter of the node holds the recovery, where the node moves the share `used` of what the limiter
    /// lets through, and chunks pause for the share `paused` of the time, summed over those in flight.
    pub(crate) fn is_limited(&self, used: f64, paused: f64) -> bool {
        let each_paused = self.of_each(paused);
        let is_full = used >= LIMIT_FULL.value && paused >= LIMIT_PAUSED.value;
        is_full || (used >= LIMIT_USED.value && each_paused >= LIMIT_COSTS.value)
    }

    /// Whether the limiter of the node may hold the recovery though its pauses do not show it: too few chunks came to
    /// tell, and with those that are under way the node may have moved nearly all that the limiter lets through. A
    /// pause is told once it is over.
    pub(crate) fn may_be_limited(&self) -> bool {
        let (Some(limit), Some(in_flight)) = (self.limit_bytes_per_s, self.in_flight_bytes) else {
            return false;
        };
        let is_few = |came: u64| (came as f64) < in_flight * ROUNDS.value;
        let own = in_flight / (self.transfer.wall_ms() / MS_PER_S);
        let end = self.ends.iter().find(|end| end.node() == self.node);
        let under_way = end.map_or(own, |end| end.under_way_bytes_per_s);
        self.transfer.bytes().is_some_and(is_few)
            && self.node_bytes_per_s + under_way >= limit * LIMIT_USED.value
    }

    /// How long chunks take; none where a scheduler chooses how many there are, too few came to tell, or not all of
    /// them are on their way because the embedded engine's source keeps no room for more.
    pub(crate) fn chunk_times(&self) -> Option<ChunkTimes> {
        let (bytes, in_flight) = (self.chunk_bytes?, self.chunk_count?);
        let beside = self.path_steps.iter().map(|step| step.shards).max().unwrap_or(1);
        let room = self.series.setting("narrows.recovery.read_ahead");
        let room = room.and_then(|room| parse_size(&room.value).ok());
        if room.is_some_and(|room| bytes * in_flight * beside as f64 > room as f64) {
            return None;
        }
        let copied = self.transfer.copied()?;
        let count = copied.bytes as f64 / bytes;
        if count < in_flight * ROUNDS.value {
            return None;
        }
        Some(ChunkTimes {
            bytes,
            each_ms: in_flight * copied.wall_ms / count,
            paused_ms: copied.paused_ms as f64 / count,
        })
    }

    /// Bytes a second of all recoveries between the same two nodes.
    pub(crate) fn path_bytes_per_s(&self) -> f64 {
        let bytes: u64 = self.path_steps.iter().map(|step| step.bytes).sum();
        let wall_ms: f64 = self.path_steps.iter().map(|step| step.wall_ms).sum();
        bytes as f64 / (wall_ms / MS_PER_S)
    }

    /// The rate that chunks in flight allow over the round trip (Little's law); none where the round trip is not
    /// known or too short to tell.
    pub(crate) fn little_bytes_per_s(&self) -> Option<f64> {
        let rtt_ms = self.rtt_ms.filter(|rtt| *rtt >= NEAR_MS.value)?;
        Some(self.in_flight_bytes? / (rtt_ms / MS_PER_S))
    }

    /// Whether round trips tell at which rate latency holds: nodes that are busy answer late, now more and now less.
    pub(crate) fn tells_little(&self) -> bool {
        let (Some(shortest), Some(longest)) = (self.rtt_ms, self.rtt_max_ms) else { return false };
        shortest >= longest * LITTLE_USED.value && (self.is_idle() || shortest >= LATE_MS.value)
    }

    /// Highest use of a resource over both ends; none where neither tells.
    pub(crate) fn busiest(&self, of: impl Fn(&NodeSpan<'_>) -> Option<f64>) -> Option<f64> {
        self.ends.iter().filter_map(|end| of(end.span)).reduce(f64::max)
    }

    /// Share of the time for which a control group or garbage collections keep either end from running, 0 to 1.
    pub(crate) fn starved(&self) -> f64 {
        let by_quota = self.busiest(|span| span.cgroup_throttled());
        let by_collections = self.busiest(|span| span.share(|node| node.gc_ms));
        [by_quota, by_collections].into_iter().flatten().fold(0.0, f64::max).min(1.0)
    }

    /// The end that stands still for a part of the time though its cores are free; none where neither does.
    pub(crate) fn standstill(&self) -> Option<Standstill<'s>> {
        let of = |end: &End<'s>| {
            let node = end.node();
            let is_busy = end.cpu.is_some_and(|(share, _)| share >= IDLE.value);
            let answers = self.series.late_ms(node);
            let late: Vec<f64> =
                answers.iter().copied().filter(|ms| *ms >= LATE_MS.value).collect();
            let is_still = !is_busy
                && late.len() as f64 >= LATE_ANSWERS.value
                && late.len() as f64 >= answers.len() as f64 * LATE_SHARE.value;
            let latest_ms = late.iter().copied().reduce(f64::max)?;
            is_still.then_some(Standstill {
                node,
                late: late.len(),
                answers: answers.len(),
                latest_ms,
            })
        };
        self.ends.iter().filter_map(of).max_by_key(|one| one.late)
    }

    /// The evidence that an end answers late while other nodes answer soon. A node that hardly runs answers a second
    /// question as late as the first, which [`Copying::standstill`] takes for a slow node.
    pub(crate) fn late_beside_others(&self) -> Option<Evidence> {
        let nodes = self.series.answering();
        let of = |end: &End<'s>| {
            let node = end.node();
            let own = self.series.slower_by_ms(node)?;
            let others = nodes.iter().filter(|other| **other != node);
            let others =
                others.filter_map(|other| self.series.slower_by_ms(other)).reduce(f64::max)?;
            let [shown, at_most] = [own, others].map(|ms| words::rtt(ms.round()));
            let value = format!(
                "{node}: {shown} later than its fastest answer on average; other nodes: at most {at_most}"
            );
            let is_late = own - others >= LATE_MS.value;
            is_late.then(|| Evidence::new(NODES_STATS, ANSWERS_BESIDE_OTHERS, value))
        };
        self.ends.iter().find_map(of)
    }

    /// Something else keeps the cores of an end busy, and chunks hardly wait for them all the same; none where that is
    /// not so, or nobody asked the node itself. A question waits for cores as a chunk does.
    pub(crate) fn hardly_waits(&self, end: &End<'_>) -> Option<HardlyWaits> {
        let (share, own) = (end.cpu?.0, end.process_cpu?);
        let answer_ms = self.series.answers_in_ms(end.node())?;
        // Where next to nothing came, chunks take as long as one looked, or longer.
        let chunk_ms =
            (self.in_flight_bytes? / self.rate_bytes_per_s * MS_PER_S).min(self.transfer.wall_ms());
        let hardly = own < share * CPU_OWN.value && answer_ms < chunk_ms * CORES_ANSWER.value;
        hardly.then_some(HardlyWaits { own, answer_ms, chunk_ms })
    }

    /// Use of the cores of an end, 0 to 1, as far as that may hold the recovery.
    fn cores_in_use(&self, end: &End<'_>) -> Option<f64> {
        let share = end.cpu?.0;
        Some(self.hardly_waits(end).map_or(share, |others| others.own))
    }

    pub(crate) fn is_idle(&self) -> bool {
        let cpu = self.ends.iter().filter_map(|end| self.cores_in_use(end));
        let cpu = cpu.reduce(f64::max).unwrap_or(0.0);
        let disk = self.busiest(|span| span.disk_busy()).unwrap_or(0.0);
        cpu < IDLE.value && disk < IDLE.value
    }

    /// Whether both ends that were seen tell of their cores and their disks: what is not told is not idle.
    pub(crate) fn tells_use(&self) -> bool {
        let tells = |end: &End<'_>| end.cpu.is_some() && end.span.disk_busy().is_some();
        !self.ends.is_empty() && self.ends.iter().all(tells)
    }

    pub(crate) fn in_flight(&self) -> Option<String> {
        let (chunk, count) = (self.chunk_bytes? as u64, self.chunk_count?);
        Some(format!("{} of {}", words::counted(count, "chunk", "chunks"), words::chunk(chunk)))
    }

    /// A finding on the node at one end.
    pub(crate) fn finding_at(
        &self,
        end: &End<'_>,
        rule: &Rule,
        strength: f64,
        sentence: String,
    ) -> Finding {
        Finding {
            subjects: vec![self.transfer.name()],
            ..Finding::of(rule, end.node(), strength, sentence)
        }
    }
}

/// By the name of each recovery that copies files: the evidence that its source or its target stands still.
pub(crate) fn standstills(series: &Series<'_>) -> BTreeMap<String, Evidence> {
    let all = Recovering::all(series);
    let copying = all.iter().filter_map(|one| one.copying(series));
    copying.filter_map(|one| Some((one.transfer.name(), one.standstill()?.evidence()))).collect()
}

/// The remote cluster behind a repository.
pub(crate) fn alias_of(repository: &str) -> Option<&str> {
    repository.strip_prefix("_ccr_").or_else(|| repository.strip_prefix("replication-remote-repo-"))
}
