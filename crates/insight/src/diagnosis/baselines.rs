//! What simpler tools would say, to compare verdicts with: one reads settings alone, one takes what is used most.

use super::class::Class;
use super::copying::{Copying, Recovering};
use super::deciders::ENABLE;
use super::knobs::SLOTS;
use super::series::Series;
use super::threshold::{CPU_BUSY, DISK_BUSY};
use record::units::{parse_size, parse_throttle};

/// Defaults of the field, below which a lint complains.
const LIMIT_BYTES_PER_S: u64 = 40 << 20;
const CHUNK_BYTES: u64 = 512 << 10;
const CHUNKS: u64 = 2;
const RECOVERIES: u64 = 2;

/// A lint that reads settings and nothing else: the first that is below its default is to blame. None where none is.
pub fn settings_lint(series: &Series<'_>) -> Option<Class> {
    let text = |name: &str| series.setting(name).map(|setting| setting.value.as_str());
    let is_below = |name: &str, least: u64| {
        text(name).and_then(|text| text.parse::<u64>().ok()).is_some_and(|value| value < least)
    };
    let is_on = |name: &str, default: &str| text(name).is_some_and(|text| text != default);
    if is_on(ENABLE.0, ENABLE.1) || is_on("cluster.routing.allocation.exclude._name", "") {
        return Some(Class::AllocationBlock);
    }
    let limit = text("indices.recovery.max_bytes_per_sec").and_then(|t| parse_throttle(t).ok()?);
    if limit.is_some_and(|limit| limit < LIMIT_BYTES_PER_S) {
        return Some(Class::RateLimit);
    }
    if is_below(SLOTS.0, RECOVERIES) {
        return Some(Class::AllocationSlots);
    }
    let chunk = text("indices.recovery.chunk_size").and_then(|text| parse_size(text).ok());
    let is_small = chunk.is_some_and(|bytes| bytes < CHUNK_BYTES)
        || is_below("indices.recovery.max_concurrent_file_chunks", CHUNKS);
    is_small.then_some(Class::Latency)
}

/// The resource that is used most, where one is used as much as an alarm of monitoring wants. None where none is.
pub fn highest_utilisation(series: &Series<'_>) -> Option<Class> {
    let recovering = Recovering::all(series);
    let all: Vec<&Copying<'_, '_>> =
        recovering.iter().filter_map(|one| one.copying(series)).collect();
    let limit = all.iter().filter_map(|one| Some(one.node_bytes_per_s / one.limit_bytes_per_s?));
    let little =
        all.iter().filter_map(|one| Some(one.rate_bytes_per_s / one.little_bytes_per_s()?));
    let cpu = series.nodes().filter_map(|node| Some(node.cpu()?.0));
    let disk = series.nodes().filter_map(|node| node.disk_busy());
    let used = [
        (Class::RateLimit, limit.reduce(f64::max), DISK_BUSY.value),
        (Class::Latency, little.reduce(f64::max), DISK_BUSY.value),
        (Class::Cpu, cpu.reduce(f64::max), CPU_BUSY.value),
        (Class::Disk, disk.reduce(f64::max), DISK_BUSY.value),
    ];
    let alarms = used.into_iter().filter_map(|(class, used, least)| {
        used.filter(|used| *used >= least).map(|used| (class, used))
    });
    alarms.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(class, _)| class)
}
