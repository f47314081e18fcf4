//! The cores or the disk of a node that are busy: with the recovery, or with something else.

use super::class::Class;
use super::copying::{Copying, End};
use super::finding::{Evidence, NODES_STATS};
use super::node_span::NodeSpan;
use super::rivals::{Against, By};
use super::threshold::{CPU_BUSY, CPU_OWN, DISK_BUSY, DISK_OWN, Threshold};
use crate::words;

/// All cores of a node are busy.
pub(crate) struct BusyCores {
    /// Use of all cores, 0 to 1.
    pub(crate) share: f64,
    /// The part of it that is the node's own process, 0 to 1; none where that is not told.
    pub(crate) own: Option<f64>,
    field: &'static str,
}

impl BusyCores {
    /// What speaks against it where they are not busy.
    pub(crate) fn of(end: &End<'_>) -> Result<BusyCores, Against> {
        let name = end.node();
        let cores = BusyCores::seen(end).ok_or_else(|| no_cores(end.span))?;
        if cores.share < CPU_BUSY.value {
            return Err(Against::below_at(name, cores_of, cores.share, CPU_BUSY));
        }
        Ok(cores)
    }

    /// However busy they are; none where that is not told.
    pub(crate) fn seen(end: &End<'_>) -> Option<BusyCores> {
        let (share, field) = end.cpu?;
        Some(BusyCores { share, own: end.process_cpu, field })
    }

    /// Whether it is the node's own process that is busy; its machine may be busy with something else altogether.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_none_or(|own| own >= self.share * CPU_OWN.value)
    }

    /// Its own work, or something else's: what speaks against the other.
    pub(crate) fn against(&self, end: &End<'_>) -> Against {
        let own = words::percent(self.own.unwrap_or(self.share));
        let whose = if self.is_own() { "" } else { "only " };
        Against::figure(format!("{}, and its own process takes {whose}{own}", self.sentence(end)))
    }

    pub(crate) fn sentence(&self, end: &End<'_>) -> String {
        let (name, side) = (end.node(), end.side());
        format!("the cores of {name} ({side}) are busy: {}", words::percent(self.share))
    }

    pub(crate) fn evidence(&self, recovery: &Copying<'_, '_>, end: &End<'_>) -> Vec<Evidence> {
        let value = format!("{}: {}", end.node(), words::percent(self.share));
        let mut evidence =
            vec![recovery.rate_evidence(), Evidence::new(NODES_STATS, self.field, value)];
        if let Some(own) = self.own {
            let value = format!("{}: {} of all cores", end.node(), words::percent(own));
            evidence.push(Evidence::new(NODES_STATS, "process.cpu.total_in_millis", value));
        }
        evidence
    }
}

/// The time in which a device has work says how full it is only of one that does one thing after another.
const SERVES_MANY: &str = "a device that serves many requests at once (NVMe, RAID, cloud volumes) has work all the \
                           time long before it is full: see whether requests wait for it (iostat -x: r_await, w_await)";
const OF_SEVERAL: &str =
    "; of several disks the busiest counts, and which of them the copy is on is not told";

/// The disk of a node is busy.
pub(crate) struct BusyDisk {
    /// Share of the time, 0 to 1.
    pub(crate) share: f64,
    /// The part of its bytes that the recoveries move, 0 to 1; none where the device does not tell.
    pub(crate) own: Option<f64>,
    /// The same with what chunks under way may have moved besides: of a slow disk that is most of it.
    own_at_most: Option<f64>,
}

impl BusyDisk {
    /// What speaks against it where it is not busy.
    pub(crate) fn of(end: &End<'_>) -> Result<BusyDisk, Against> {
        let name = end.node();
        let disk = BusyDisk::seen(end).ok_or_else(|| no_disk(name))?;
        if disk.share < DISK_BUSY.value {
            return Err(Against::below_at(name, disk_of, disk.share, DISK_BUSY));
        }
        Ok(disk)
    }

    /// However busy it is; none where that is not told.
    pub(crate) fn seen(end: &End<'_>) -> Option<BusyDisk> {
        let share = end.span.disk_busy()?;
        let read = end.span.bytes_per_s(|node| node.read_kib);
        let written = end.span.bytes_per_s(|node| node.write_kib);
        let is_told = read.is_some() || written.is_some();
        let device = read.unwrap_or(0.0) + written.unwrap_or(0.0);
        let part = |moved: f64| {
            let part = if device > 0.0 { (moved / device).min(1.0) } else { 1.0 };
            is_told.then_some(part)
        };
        Some(BusyDisk {
            share,
            own: part(end.moved_bytes_per_s),
            own_at_most: part(end.moved_bytes_per_s + end.under_way_bytes_per_s),
        })
    }

    /// Whether it is busy with the recoveries.
    pub(crate) fn is_own(&self) -> bool {
        self.own_at_most.is_none_or(|own| own >= DISK_OWN.value)
    }

    /// Busy with the recoveries, or with something else: what speaks against the other.
    pub(crate) fn against(&self, end: &End<'_>) -> Against {
        let own = words::percent(self.own_at_most.unwrap_or(1.0));
        Against::figure(format!(
            "the disk of {} is busy, and up to {own} of what it moves is the recovery's",
            end.node()
        ))
    }

    /// What its time does not tell.
    pub(crate) fn doubt(end: &End<'_>) -> String {
        let has_several = end.span.latest(|node| (node.io_times_ms.len() > 1).then_some(()));
        format!("{SERVES_MANY}{}", has_several.map_or("", |()| OF_SEVERAL))
    }

    pub(crate) fn evidence(&self, recovery: &Copying<'_, '_>, end: &End<'_>) -> Vec<Evidence> {
        let name = end.node();
        let value = format!("{name}: {} of the time", words::percent(self.share));
        let mut evidence = vec![
            recovery.rate_evidence(),
            Evidence::new(NODES_STATS, "fs.io_stats.total.io_time_in_millis", value),
        ];
        let (field, moved) = match end.is_source {
            true => ("read_kilobytes", end.span.bytes_per_s(|node| node.read_kib)),
            false => ("write_kilobytes", end.span.bytes_per_s(|node| node.write_kib)),
        };
        if let Some(moved) = moved {
            let field = format!("fs.io_stats.total.{field}");
            let value = format!("{name}: {}", words::rate(moved));
            evidence.push(Evidence::new(NODES_STATS, field, value));
        }
        evidence
    }
}

/// What the cores and the disk of a node say beside a cause that is not a recovery's: what is idle does not hold, and
/// what is busy may be why the node is slow.
pub(crate) fn of_node(span: &NodeSpan<'_>) -> Vec<(Class, Against)> {
    let name = &span.last().name;
    let cores = match span.cpu() {
        Some((share, _)) => used(name, cores_of, share, CPU_BUSY),
        None => no_cores(span),
    };
    let disk = match span.disk_busy() {
        Some(share) => used(name, disk_of, share, DISK_BUSY),
        None => no_disk(name),
    };
    vec![(Class::Cpu, cores), (Class::Disk, disk)]
}

fn used(name: &str, what: fn(&str) -> String, share: f64, least: Threshold) -> Against {
    if share < least.value {
        return Against::below_at(name, what, share, least);
    }
    let why = format!("{} {} of the time", what(name), words::percent(share));
    Against { by: By::Weaker, why: why.into() }
}

fn cores_of(name: &str) -> String {
    format!("the cores of {name} are busy")
}

fn disk_of(name: &str) -> String {
    format!("the disk of {name} is busy")
}

/// What a node does not tell of its cores. Of one that tells what its process uses, and not of how many cores, the use
/// is shown in cores.
pub(crate) fn no_cores(span: &NodeSpan<'_>) -> Against {
    let is_used = span.latest(|node| node.process_cpu_ms).is_some();
    let what = if is_used { "how many cores there are" } else { "the use of cores" };
    Against::untold_at(&span.last().name, what)
}

fn no_disk(name: &str) -> Against {
    Against::untold_at(name, "the time of disks")
}
