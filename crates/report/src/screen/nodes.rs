//! The nodes of a view. Not every look asks for them, so that what is made of them is kept until one does.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;

use insight::diagnosis::NodePace;
use insight::words;

/// Nodes by name, and what was made of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    all: Vec<NodePace>,
    json: OnceLock<String>,
    samples: OnceLock<BTreeMap<&'static str, String>>,
}

impl From<Vec<NodePace>> for Nodes {
    fn from(all: Vec<NodePace>) -> Nodes {
        Nodes { all, ..Nodes::default() }
    }
}

impl Deref for Nodes {
    type Target = [NodePace];

    fn deref(&self) -> &[NodePace] {
        &self.all
    }
}

impl Nodes {
    /// The node of this name that is there.
    pub(crate) fn present(&self, name: &str) -> Option<&NodePace> {
        let at = self.all.binary_search_by(|node| node.name.as_str().cmp(name)).ok()?;
        Some(&self.all[at]).filter(|node| !node.gone)
    }

    /// What comes first where not all have room: those that are gone, and those that something recovers from or to.
    pub(crate) fn busy_first(&self, room: usize) -> Vec<&NodePace> {
        let is_idle = |node: &&NodePace| {
            !node.gone && node.as_source.unwrap_or(0) + node.as_target.unwrap_or(0) == 0
        };
        let mut all: Vec<&NodePace> = self.all.iter().collect();
        if all.len() > room {
            all.sort_by_key(is_idle);
        }
        all
    }

    /// The rows of a page, as JSON; made once.
    pub(crate) fn json(&self, make: impl FnOnce() -> String) -> &str {
        self.json.get_or_init(make)
    }

    /// The samples of figures on nodes, by the figure's name; made once.
    pub(crate) fn samples(
        &self,
        make: impl FnOnce() -> BTreeMap<&'static str, String>,
    ) -> &BTreeMap<&'static str, String> {
        self.samples.get_or_init(make)
    }
}

/// What stands on the line of a node: CPU, disk, network, pauses, recoveries, heap.
pub(crate) fn node_cells(node: &NodePace) -> [String; 7] {
    let dash = || "-".to_owned();
    if node.gone {
        return [node.name.clone(), "gone".into(), dash(), dash(), dash(), dash(), dash()];
    }
    let cpu = match (node.cpu, node.cpu_of_all) {
        (Some(share), true) => words::percent(share),
        (Some(cores), false) => format!("{} cores", words::cores(cores)),
        (None, _) => dash(),
    };
    let pair = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (None, None) => dash(),
        (a, b) => {
            let one = |rate: Option<f64>| rate.map_or_else(dash, words::mb_per_s);
            format!("{} / {}", one(a), one(b))
        }
    };
    let busy = node
        .disk_busy
        .map_or_else(String::new, |busy| format!(" ({})", words::percent(busy.min(1.0))));
    let disk = format!("{}{busy}", pair(node.read_bytes_per_s, node.write_bytes_per_s));
    let count = |count: Option<u64>| count.map_or_else(dash, |count| count.to_string());
    [
        node.name.clone(),
        cpu,
        disk,
        pair(node.rx_bytes_per_s, node.tx_bytes_per_s),
        // Several recoveries may pause at the same time, so this is no share of the time.
        node.paused.map_or_else(dash, |paused| format!("{paused:.2}")),
        format!("{} / {}", count(node.as_source), count(node.as_target)),
        node.heap.map_or_else(dash, words::percent),
    ]
}
