//! Whether the source or the target holds: its cores, its disk, its memory.

use record::observation::Node;

use super::super::knobs::today;
use super::super::rules::{CPU_BUSY, CPU_OWN, DISK_BUSY, DISK_OWN, GC, NEIGHBOUR, QUOTA};
use super::super::series::NodeSpan;
use super::super::{Class, Evidence, Finding, Gain, Lift, rule};
use super::STATS;
use super::case::{Case, cpu, starved};
use crate::words;

impl Case<'_, '_> {
    pub(super) fn node_causes(&self, side: &str, span: &NodeSpan<'_>) -> Vec<Finding> {
        let subject = self.transfer.name();
        let causes = [
            self.quota(side, span),
            collections(&subject, span),
            self.cores(side, span),
            self.disk(side, span),
            memory(&subject, span),
        ];
        causes.into_iter().flatten().collect()
    }

    fn quota(&self, side: &str, span: &NodeSpan<'_>) -> Option<Finding> {
        let summed = starved(span)?;
        if summed < QUOTA.value {
            return None;
        }
        // A node with threads on several cores is kept from each of them.
        let share = summed.min(1.0);
        let mut finding =
            node_finding(Class::CpuQuota, &self.transfer.name(), span, 0.55 + share * 0.45);
        finding.sentence = format!(
            "the control group of {} ({side}) kept it from running for {} of the time",
            span.last().name,
            words::percent(share)
        );
        let cores = if summed > 1.0 { ", summed over its cores" } else { "" };
        let value =
            format!("{}: rose by {} of the time{cores}", span.last().name, words::percent(summed));
        finding.evidence = vec![
            self.rate_evidence(),
            Evidence::new(STATS, "os.cgroup.cpu.stat.time_throttled_nanos", value),
        ];
        finding.gain = Some(Gain {
            factor: 1.0 / (1.0 - share.min(0.9)),
            formula: format!("1 / (1 - {})", words::percent(share)),
        });
        Some(finding)
    }

    fn cores(&self, side: &str, span: &NodeSpan<'_>) -> Option<Finding> {
        let name = &span.last().name;
        let (share, field) = cpu(span)?;
        let threads = self.hot(name, &["tls", "compression"]);
        if share >= CPU_BUSY.value {
            // Its machine may be busy with something else altogether.
            let own = span.share(|node| node.process_cpu_ms).zip(span.last().cores);
            let own = own.map(|(used, cores)| used / cores.max(1) as f64);
            let is_own = own.is_none_or(|own| own >= share * CPU_OWN.value);
            let class = if is_own { Class::Cpu } else { Class::NoisyNeighbour };
            let most = if is_own { 0.95 } else { NEIGHBOUR.value };
            let mut finding =
                node_finding(class, &self.transfer.name(), span, share.min(1.0) * most);
            finding.sentence =
                format!("the cores of {name} ({side}) are busy: {}", words::percent(share));
            finding.evidence = vec![
                self.rate_evidence(),
                Evidence::new(STATS, field, format!("{name}: {}", words::percent(share))),
            ];
            if let Some(own) = own {
                let value = format!("{name}: {} of all cores", words::percent(own));
                finding.evidence.push(Evidence::new(STATS, "process.cpu.total_in_millis", value));
                if !is_own {
                    finding.sentence.push_str(&format!(
                        ", of which its own process takes {}",
                        words::percent(own)
                    ));
                }
            }
            return Some(finding);
        }
        // One core's worth of work in a process that has more, where stacks or the engine's single loop say why.
        let one = span.share(|node| node.process_cpu_ms)?;
        let single_loop = self.series.flavour() == "narrows";
        if one < CPU_BUSY.value || !(single_loop || threads > 0) {
            return None;
        }
        let mut finding = node_finding(
            Class::ThreadCpu,
            &self.transfer.name(),
            span,
            if threads > 0 { 0.75 } else { 0.55 },
        );
        finding.sentence = format!(
            "{name} ({side}) uses {} cores, and what it does stands in line on few threads",
            words::three_digits(one)
        );
        finding.evidence = vec![
            self.rate_evidence(),
            Evidence::new(
                STATS,
                "process.cpu.total_in_millis",
                format!("{name}: {} cores", words::three_digits(one)),
            ),
        ];
        if threads > 0 {
            let value = format!("{name}: {threads} threads in TLS or compression");
            finding.evidence.push(Evidence::new("_nodes/hot_threads", "stacks", value));
        }
        let (setting, default, most) = self.knobs.chunks;
        let today = today(self.series, setting, default);
        finding.lift = Some(Lift {
            setting: Some(setting.to_owned()),
            to: (today.value != most.to_string()).then(|| most.to_string()),
            now: Some(today.value),
            set_by: Some(today.scope),
            action: "spread the work over more threads; look at transport.compress".to_owned(),
        });
        Some(finding)
    }

    fn hot(&self, node: &str, kinds: &[&str]) -> u32 {
        let looks = self.series.looks().iter().flat_map(|(_, look)| &look.hot_threads);
        let of_node = looks.filter(|hot| hot.node == node);
        of_node
            .map(|hot| kinds.iter().filter_map(|kind| hot.threads.get(*kind)).sum::<u32>())
            .max()
            .unwrap_or(0)
    }

    fn disk(&self, side: &str, span: &NodeSpan<'_>) -> Option<Finding> {
        let busy = span.share(|node| node.io_time_ms)?;
        if busy < DISK_BUSY.value {
            return None;
        }
        let kib = if side == "source" {
            span.per_s(|node| node.read_kib)
        } else {
            span.per_s(|node| node.write_kib)
        };
        let device = sum(span.per_s(|node| node.read_kib), span.per_s(|node| node.write_kib))
            .map(|kib| kib * 1024.0);
        let own =
            device.map(
                |device| if device > 0.0 { (self.node_bytes_per_s / device).min(1.0) } else { 1.0 },
            );
        let name = &span.last().name;
        let is_own = own.is_none_or(|own| own >= DISK_OWN.value);
        let class = if is_own { Class::Disk } else { Class::NoisyNeighbour };
        let most = if is_own { 0.9 } else { NEIGHBOUR.value };
        let mut finding = node_finding(class, &self.transfer.name(), span, busy.min(1.0) * most);
        let verb = if side == "source" { "reads" } else { "writes" };
        finding.sentence = if is_own {
            format!(
                "the disk of {name} ({side}) is busy {} of the time with what it {verb} for the recovery",
                words::percent(busy)
            )
        } else {
            format!(
                "the disk of {name} ({side}) is busy {} of the time, {} of it with something else",
                words::percent(busy),
                words::percent(1.0 - own.unwrap_or(0.0))
            )
        };
        finding.evidence = vec![
            self.rate_evidence(),
            Evidence::new(
                STATS,
                "fs.io_stats.total.io_time_in_millis",
                format!("{name}: {} of the time", words::percent(busy)),
            ),
        ];
        if let Some(kib) = kib {
            let field = if side == "source" {
                "fs.io_stats.total.read_kilobytes"
            } else {
                "fs.io_stats.total.write_kilobytes"
            };
            finding.evidence.push(Evidence::new(
                STATS,
                field,
                format!("{name}: {}", words::rate(kib * 1024.0)),
            ));
        }
        if !is_own {
            for (field, rate) in [
                ("indices.search.query_total", span.per_s(|node| node.searches)),
                ("indices.indexing.index_total", span.per_s(|node| node.indexed_ops)),
            ] {
                if let Some(rate) = rate {
                    let value = format!("{name}: {} a second", words::three_digits(rate));
                    finding.evidence.push(Evidence::new(STATS, field, value));
                }
            }
        }
        Some(finding)
    }
}

/// A finding of a node, with the action of its class.
pub(super) fn node_finding(
    class: Class,
    subject: &str,
    span: &NodeSpan<'_>,
    strength: f64,
) -> Finding {
    let rule = rule(class);
    Finding {
        class,
        subjects: vec![subject.to_owned()],
        place: span.last().name.clone(),
        strength,
        sentence: String::new(),
        evidence: Vec::new(),
        lift: Some(Lift {
            setting: None,
            now: None,
            set_by: None,
            to: None,
            action: rule.lift.to_owned(),
        }),
        gain: None,
        next: None,
        doubt: None,
    }
}

fn collections(subject: &str, span: &NodeSpan<'_>) -> Option<Finding> {
    let share = span.share(|node| node.gc_ms)?;
    if share < GC.value {
        return None;
    }
    let name = &span.last().name;
    let mut finding = node_finding(Class::Gc, subject, span, 0.5 + share.min(1.0) / 2.0);
    finding.sentence =
        format!("garbage collections take {} of the time on {name}", words::percent(share));
    let value = format!("{name}: {} of the time", words::percent(share));
    finding.evidence =
        vec![Evidence::new(STATS, "jvm.gc.collectors.*.collection_time_in_millis", value)];
    if let Some(heap) = span.mean(|node| node.heap_used_percent) {
        finding.evidence.push(Evidence::new(
            STATS,
            "jvm.mem.heap_used_percent",
            format!("{name}: {heap:.0} % on average"),
        ));
    }
    finding.gain = Some(Gain {
        factor: 1.0 / (1.0 - share.min(0.9)),
        formula: format!("1 / (1 - {})", words::percent(share)),
    });
    Some(finding)
}

/// Breakers that tripped and requests that were refused while we looked.
pub(crate) fn memory<'a>(subject: &str, span: &NodeSpan<'a>) -> Option<Finding> {
    let last = span.last();
    let told =
        |node: &'a Node| Some(&node.breakers_tripped).filter(|breakers| !breakers.is_empty());
    let tripped: Vec<String> = span.ends(told).map_or_else(Vec::new, |(then, now)| {
        let rise = |(name, now): (&String, &u64)| {
            let rise = now.checked_sub(*then.get(name)?)?;
            (rise > 0).then(|| format!("{name} +{rise}"))
        };
        now.iter().filter_map(rise).collect()
    });
    let rejected = span.rise(|node| node.pressure_rejections).filter(|count| *count > 0);
    if tripped.is_empty() && rejected.is_none() {
        return None;
    }
    let mut finding = node_finding(Class::Memory, subject, span, 0.65);
    finding.sentence = format!("a bound on memory refuses work on {}", last.name);
    if !tripped.is_empty() {
        let value = format!("{}: {}", last.name, tripped.join(", "));
        finding.evidence.push(Evidence::new(STATS, "breakers.*.tripped", value));
    }
    if let Some(count) = rejected {
        let value = format!("{}: +{count}", last.name);
        finding.evidence.push(Evidence::new(
            STATS,
            "indexing_pressure.memory.total.*_rejections",
            value,
        ));
    }
    Some(finding)
}

/// How much merges hold indexing back, 0 to 1, and what says so.
pub(super) fn merges(span: &NodeSpan<'_>) -> Option<(f64, Evidence)> {
    let share = span.share(|node| node.merge_throttled_ms);
    let flag = span.latest(|node| node.indexing_throttled);
    let flagged = flag == Some(true);
    let strength = share.unwrap_or(0.0).max(if flagged { 1.0 } else { 0.0 });
    let told = share.is_some() || flag.is_some();
    let value = format!(
        "{}: {} of the time{}",
        span.last().name,
        words::percent(share.unwrap_or(0.0)),
        if flagged { ", indexing.is_throttled" } else { "" }
    );
    told.then(|| {
        (strength, Evidence::new(STATS, "indices.merges.total_throttled_time_in_millis", value))
    })
}

fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
    }
}
