//! One node over several looks.

use std::collections::BTreeMap;

use record::observation::Node;

/// One node over several looks, since its last start. Not every look asks for every counter, so each counter is
/// compared over the looks that have it.
#[derive(Clone, Debug)]
pub(crate) struct NodeSpan<'a> {
    steps: Vec<(f64, &'a Node)>,
}

/// By how much a counter rose, and in what time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rise {
    pub count: u64,
    pub wall_ms: f64,
}

impl Rise {
    /// A counter of milliseconds as a share of the time.
    pub fn share(self) -> f64 {
        self.count as f64 / self.wall_ms
    }

    /// The rise in a second.
    pub fn per_s(self) -> f64 {
        self.share() * 1e3
    }
}

impl<'a> NodeSpan<'a> {
    /// A node's span, of all that looks told of it in the order of time.
    pub fn of(told: &[(f64, &'a Node)]) -> Self {
        let mut span = NodeSpan { steps: Vec::with_capacity(told.len()) };
        for &(t_ms, node) in told {
            span.push(t_ms, node);
        }
        span
    }

    fn push(&mut self, t_ms: f64, node: &'a Node) {
        let steps = &mut self.steps;
        // Names need not be unique: the first of a name counts.
        if steps.last().is_some_and(|(last_ms, _)| *last_ms == t_ms) {
            return;
        }
        // A node that started again counts from zero. Not every look asks for both of these.
        let fell = |counter: fn(&Node) -> Option<u64>| {
            let before = steps.iter().rev().find_map(|(_, before)| counter(before));
            counter(node).zip(before).is_some_and(|(now, then)| now < then)
        };
        if fell(|node| node.uptime_ms) || fell(|node| node.process_cpu_ms) {
            steps.clear();
        }
        steps.push((t_ms, node));
    }

    /// Whether it was seen twice since it last started.
    pub fn is_told(&self) -> bool {
        self.steps.len() >= 2
    }

    pub fn last(&self) -> &'a Node {
        self.steps[self.steps.len() - 1].1
    }

    /// The first and the last value that looks have.
    pub fn ends<T>(&self, told: impl Fn(&'a Node) -> Option<T>) -> Option<(T, T)> {
        let first = self.steps.iter().find_map(|(_, node)| told(node))?;
        Some((first, self.latest(told)?))
    }

    /// The last value that a look has.
    pub fn latest<T>(&self, told: impl Fn(&'a Node) -> Option<T>) -> Option<T> {
        self.steps.iter().rev().find_map(|(_, node)| told(node))
    }

    /// The rise of a counter from the first look that has it to the last; none if fewer than two have it, or it fell.
    pub fn over(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<Rise> {
        let mut told = self.steps.iter().filter(|(_, node)| counter(node).is_some());
        rise(told.next()?, told.next_back()?, counter)
    }

    /// The same over the last two looks that have it.
    pub fn lately(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<Rise> {
        let mut told = self.steps.iter().rev().filter(|(_, node)| counter(node).is_some());
        let last = told.next()?;
        rise(told.next()?, last, counter)
    }

    /// The counters of a map that rose, by name, and by how much.
    pub fn rises(&self, counters: fn(&Node) -> &BTreeMap<String, u64>) -> Vec<(&'a str, u64)> {
        let told = |node: &'a Node| Some(counters(node)).filter(|all| !all.is_empty());
        let Some((then, now)) = self.ends(told) else { return Vec::new() };
        let rise = |(name, now): (&'a String, &u64)| {
            let rise = now.checked_sub(*then.get(name)?)?;
            (rise > 0).then_some((name.as_str(), rise))
        };
        now.iter().filter_map(rise).collect()
    }

    /// By how much a counter rose.
    pub fn rise(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<u64> {
        Some(self.over(counter)?.count)
    }

    /// A counter of milliseconds as a share of the time.
    pub fn share(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        Some(self.over(counter)?.share())
    }

    /// By how much a counter rose in a second.
    pub fn per_s(&self, counter: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        Some(self.over(counter)?.per_s())
    }

    /// The mean of a gauge over the looks that have it.
    pub fn mean(&self, gauge: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        let values = self.steps.iter().filter_map(|(_, node)| gauge(node));
        let (sum, count) = values.fold((0, 0), |(sum, count), one| (sum + one, count + 1));
        (count > 0).then(|| sum as f64 / f64::from(count))
    }
}

impl NodeSpan<'_> {
    /// CPU of the node as a share of its cores, and the field that says so: of its machine or of its process,
    /// whichever is more. A process is measured against the cores that it may use.
    pub fn cpu(&self) -> Option<(f64, &'static str)> {
        let os = self
            .mean(|node| node.os_cpu_percent)
            .map(|percent| (percent / 100.0, "os.cpu.percent"));
        let own = self.process_cpu().map(|share| (share, "process.cpu.total_in_millis"));
        match (os, own) {
            (Some(os), Some(own)) => Some(if own.0 > os.0 { own } else { os }),
            (os, own) => os.or(own),
        }
    }

    /// CPU of the process as a share of the cores that it may use.
    pub fn process_cpu(&self) -> Option<f64> {
        let used_cores = self.share(|node| node.process_cpu_ms)?;
        Some(used_cores / self.last().cores?.max(1) as f64)
    }

    /// The share of the time for which the busiest of its disks was busy. What is told of all of them is a sum.
    pub fn disk_busy(&self) -> Option<f64> {
        self.busiest_disk(|counter| self.over(counter))
    }

    /// The same over the last two looks that tell of it.
    pub fn disk_busy_lately(&self) -> Option<f64> {
        self.busiest_disk(|counter| self.lately(counter))
    }

    fn busiest_disk(
        &self,
        rise: impl Fn(&dyn Fn(&Node) -> Option<u64>) -> Option<Rise>,
    ) -> Option<f64> {
        let count = self.latest(|node| Some(node.io_times_ms.len()).filter(|count| *count > 0));
        let shares = (0..count.unwrap_or(0))
            .filter_map(|disk| rise(&|node| node.io_times_ms.get(disk).copied()));
        let busiest = shares.map(|rise| rise.share()).reduce(f64::max);
        busiest.or_else(|| Some(rise(&|node| node.io_time_ms)?.share()))
    }

    /// The share of the time, 0 to 1, for which the node's control group kept a thread of it from running. The kernel
    /// sums it over the cores on which threads stood still: as many as ran or stood still in the mean, one at least.
    pub fn cgroup_throttled(&self) -> Option<f64> {
        let summed = self.share(|node| node.cgroup_throttled_ns)? / 1e6;
        let ran = self.share(|node| node.process_cpu_ms).unwrap_or(0.0);
        Some(summed / (summed + ran).max(1.0))
    }

    /// Bytes a second of a counter in KiB.
    pub fn bytes_per_s(&self, kib: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
        Some(self.per_s(kib)? * 1024.0)
    }
}

/// What a counter did between two looks, by the node's own clock where it has one.
fn rise(
    (then_ms, then): &(f64, &Node),
    (now_ms, now): &(f64, &Node),
    counter: impl Fn(&Node) -> Option<u64>,
) -> Option<Rise> {
    let count = counter(now)?.checked_sub(counter(then)?)?;
    let wall_ms = match now.timestamp_ms.zip(then.timestamp_ms) {
        Some((now, then)) if now > then => (now - then) as f64,
        _ => now_ms - then_ms,
    };
    Some(Rise { count, wall_ms })
}

#[cfg(test)]
mod tests {
    use record::observation::Observation;

    use super::*;
    use crate::diagnosis::series::Series;

    /// Looks every second of a node whose two disks are asked for every fifth time.
    #[test]
    fn a_counter_that_is_asked_for_rarely_is_taken_over_the_looks_that_told_it() {
        let look = |s: u64| Observation {
            nodes: vec![Node {
                name: "a".into(),
                transport_rx_bytes: Some(s * 1000),
                io_time_ms: (s.is_multiple_of(5)).then_some(s * 500),
                io_times_ms: [s * 200, s * 300]
                    .into_iter()
                    .filter(|_| s.is_multiple_of(5))
                    .collect(),
                ..Node::default()
            }],
            ..Observation::default()
        };
        let looks: Vec<Observation> = (0..=13).map(look).collect();
        let series = Series::new((0..=13).map(|s| (f64::from(s) * 1e3, &looks[s as usize])));
        let node = series.node("a").unwrap();
        let disk = node.over(|node| node.io_time_ms).unwrap();
        assert_eq!((disk.wall_ms, disk.share()), (10_000.0, 0.5));
        assert_eq!(node.disk_busy(), Some(0.3), "that of the busiest, and no sum");
        assert_eq!(node.lately(|node| node.io_time_ms).unwrap().wall_ms, 5000.0);
        assert_eq!(node.lately(|node| node.transport_rx_bytes).unwrap().per_s(), 1000.0);
        assert_eq!(node.latest(|node| node.io_time_ms), Some(5000));
        assert_eq!(node.over(|node| node.gc_ms), None);
    }
}
