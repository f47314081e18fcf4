//! One thread of a node is busy, where several could be.

use record::observation::HotThreads;

use super::{Answer, Cause, Class, Judge, Rule};
use crate::diagnosis::busy::{BusyCores, no_cores};
use crate::diagnosis::copying::{Copying, End};
use crate::diagnosis::finding::{Evidence, Finding, Lift, NODES_STATS};
use crate::diagnosis::rivals::{Against, Why};
use crate::diagnosis::series::Series;
use crate::diagnosis::threshold::{
    CPU_BUSY, CPU_OWN, DISK_OWN, IN_LINE_USE, NEAR_USE, Threshold, at,
};
use crate::words;

/// Chunks are worked on one after another: they wait for a core where they spend so much of their time on one.
const ON_CORE: Threshold = at("CPU time over wall time x chunks in flight", 0.5);
/// Any busy node has such stacks. They say something only where the busiest of their threads runs for so long.
const THREAD_BUSY: Threshold =
    at("percent of a core that the busiest thread in TLS or compression uses", 50.0);
/// Stacks in TLS or compression are better evidence than the use of one core alone.
const STRENGTH_BY_STACKS: Threshold = at("strength where stacks show it", 0.75);
const STRENGTH: Threshold = at("strength where they do not, at least", 0.55);

pub(super) static CAUSE: Cause = Cause {
    rule: Rule {
        class: Class::ThreadCpu,
        label: "thread CPU",
        signature: "one thread in TLS, compression or the event loop, or chunks on cores one after another, while \
                    other cores are free",
        reads: "_nodes/hot_threads frames, CPU; _nodes/stats os.cpu.percent, process.cpu.total_in_millis",
        thresholds: &[
            CPU_BUSY, ON_CORE, THREAD_BUSY, STRENGTH_BY_STACKS, STRENGTH, NEAR_USE, IN_LINE_USE,
            CPU_OWN, DISK_OWN,
        ],
        lift: "max_concurrent_file_chunks, transport.compress",
        default: "2",
        probe: "chunks up gains at low latency",
    },
    judges: &[Judge::End(judge)],
};

fn judge(recovery: &Copying<'_, '_>, end: &End<'_>) -> Answer {
    let name = end.node();
    if let Some((share, _)) = end.cpu.filter(|_| BusyCores::of(end).is_ok()) {
        let why = format!("all cores of {name} are busy: {}", words::percent(share));
        return Err(Against::figure(why));
    }
    let untold = || no_cores(end.span);
    end.cpu.ok_or_else(untold)?;
    let threads = hot_threads(recovery.series, name);
    // One core's worth of work in a process that has more, where stacks or the embedded engine's single loop say why.
    let has_one_loop = recovery.series.flavour() == "narrows";
    let cores = end.span.share(|node| node.process_cpu_ms).ok_or_else(untold)?;
    let on_core = on_core(recovery, end, cores).filter(|share| *share >= ON_CORE.value);
    if (cores < CPU_BUSY.value && on_core.is_none()) || !(has_one_loop || threads > 0) {
        let stacks = if has_one_loop { "" } else { ", and no stack is in TLS or compression" };
        let name = name.to_owned();
        let why =
            Why::later(move || format!("{name} uses {} cores{stacks}", words::three_digits(cores)));
        return Err(Against::figure(why));
    }
    let shown = words::three_digits(cores);
    let sentence = format!(
        "{name} ({}) uses {shown} cores, and its work waits in line for few threads",
        end.side()
    );
    let value = format!("{name}: {shown} cores");
    let mut evidence = vec![
        recovery.rate_evidence(),
        Evidence::new(NODES_STATS, "process.cpu.total_in_millis", value),
    ];
    if threads > 0 {
        let threads = words::counted(threads, "thread", "threads");
        let value = format!("{name}: {threads} in TLS or compression");
        evidence.push(Evidence::new("_nodes/hot_threads", "stacks", value));
    }
    let action = "spread the work over more threads; look at transport.compress";
    let of_setting = |(setting, default, most): (&str, &str, u32)| {
        let found = recovery.series.setting_or_default(setting, default);
        let is_below = recovery.chunk_count.is_none_or(|count| count < f64::from(most));
        let to = is_below.then(|| most.to_string());
        Lift::setting(setting, found, to, action).with_default(Some(default))
    };
    let chunks = recovery.knobs.chunks_setting(recovery.series);
    let lift = chunks.map_or_else(|| Lift::action(action), of_setting);
    let strength = match on_core {
        _ if threads > 0 => STRENGTH_BY_STACKS.value,
        Some(share) => STRENGTH.up_to_one(share),
        None => STRENGTH.value,
    };
    Ok(Finding {
        evidence,
        lift: Some(lift),
        ..recovery.finding_at(end, &CAUSE.rule, strength, sentence)
    })
}

/// How much of their time the chunks in flight spend on the cores of one end, of which `cores` are used; none where a
/// scheduler chooses how many there are.
fn on_core(recovery: &Copying<'_, '_>, end: &End<'_>, cores: f64) -> Option<f64> {
    let transfers =
        end.span.latest(|node| if end.is_source { node.as_source } else { node.as_target });
    let chunks = recovery.chunk_count? * transfers?.max(1) as f64;
    Some(cores / chunks)
}

/// Threads of a node whose stacks are in TLS or in compression, in the look that shows most; none where they hardly
/// run.
fn hot_threads(series: &Series<'_>, node: &str) -> u32 {
    let looks = series.looks().iter().flat_map(|(_, look)| &look.hot_threads);
    let count = |hot: &HotThreads| -> u32 {
        let is_busy = |kind: &&&str| {
            let percent = hot.busiest_percent.get(**kind);
            percent.is_none_or(|percent| f64::from(*percent) >= THREAD_BUSY.value)
        };
        let kinds = ["tls", "compression"];
        kinds.iter().filter(is_busy).filter_map(|kind| hot.threads.get(*kind)).sum()
    };
    looks.filter(|hot| hot.node == node).map(count).max().unwrap_or(0)
}
