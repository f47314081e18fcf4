//! A process that is given fewer cores, or has to share them.

use std::fs;
use std::path::{Path, PathBuf};

use clusters::{Clusters, EmbeddedClusters, FaultKind, Faults, TopologySpec};

use crate::common::{BINARY, until};

const NODE: &str = "leader-0";
/// Where groups are, of the first version and of the second.
const HOMES: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];

/// Gives a fault to a node; `look` sees the node's process while it lasts.
fn with_fault(fault: FaultKind, look: impl AsyncFnOnce(u32)) {
    world::real_world::run(1, async |env| {
        let mut target = EmbeddedClusters::new(&env, PathBuf::from(BINARY));
        target.start(&TopologySpec::alone("leader", 1)).await.unwrap();
        let pid = target.process_id(NODE).unwrap();
        let before = group_of(pid);
        target.begin(NODE, fault).await.unwrap();
        look(pid).await;
        target.end(NODE, fault).await.unwrap();
        assert_eq!((group_of(pid), members(pid)), (before, vec![]));
        target.stop().await;
    });
}

fn group_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap()
}

/// The processes in the group that a node with a fault has.
fn members(pid: u32) -> Vec<u32> {
    let files = HOMES.map(|home| format!("{home}/narrows-{pid}/cgroup.procs"));
    let listed = files.iter().find_map(|file| fs::read_to_string(file).ok());
    listed.unwrap_or_default().lines().map(|pid| pid.parse().unwrap()).collect()
}

/// Core time of a process so far, in the system's ticks.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0);
    number(11) + number(12)
}

pub fn a_slow_node_is_held_to_a_share_of_the_cores() {
    with_fault(FaultKind::Slow { factor: 3.0 }, async |pid| {
        assert!(group_of(pid).contains(&format!("narrows-{pid}")));
        assert_eq!(members(pid), [pid]);
    });
}

/// Competitors get time of the same group, and end with the fault.
pub fn a_loaded_node_shares_its_cores_with_competitors() {
    with_fault(FaultKind::Load { processes: 4, factor: 4.0 }, async |pid| {
        let others = || members(pid).into_iter().filter(|other| *other != pid);
        until("competitors get time", || others().map(ticks).sum::<u64>() >= 10);
    });
}

/// In a container that sees the groups of its host no path leads to that of a process; and an empty one is left of a
/// process of this number that was killed together with whoever had slowed it.
pub fn a_slow_node_whose_own_group_is_nowhere_is_held_no_longer() {
    world::real_world::run(1, async |env| {
        let mut target = EmbeddedClusters::new(&env, PathBuf::from(BINARY));
        target.start(&TopologySpec::alone("leader", 1)).await.unwrap();
        let pid = target.process_id(NODE).unwrap();
        let mut homes = HOMES.map(Path::new).into_iter();
        let home = homes.find(|home| home.join("cgroup.procs").exists()).unwrap();
        let [own, left] = ["own", "narrows"].map(|name| home.join(format!("{name}-{pid}")));
        for group in [&own, &left] {
            fs::create_dir(group).unwrap();
        }
        fs::write(own.join("cgroup.procs"), pid.to_string()).unwrap();
        let slow = FaultKind::Slow { factor: 3.0 };
        target.begin(NODE, slow).await.unwrap();
        assert_eq!(members(pid), [pid]);
        until("nobody is in its own group", || fs::remove_dir(&own).is_ok());
        target.end(NODE, slow).await.unwrap();
        assert!(!left.exists(), "{}", group_of(pid));
        target.stop().await;
    });
}
