//! Green, yellow, red.

use serde::{Deserialize, Serialize};

use super::ClusterState;
use super::counted::CopyCounts;

/// How well off a cluster or an index is. Ordered from well to ill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every copy is started.
    Green,
    /// Every primary is started, some replica is not.
    Yellow,
    /// Some primary is not started.
    Red,
}

impl Status {
    /// The name that REST shows and `wait_for_status` takes.
    pub fn name(self) -> &'static str {
        match self {
            Status::Green => "green",
            Status::Yellow => "yellow",
            Status::Red => "red",
        }
    }
}

/// The counts of `GET _cluster/health`, under their names there.
#[expect(missing_docs, reason = "the fields that a name says enough about have no description")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    pub cluster_name: String,
    pub status: Status,
    pub number_of_nodes: u32,
    /// Members present: every one holds data.
    pub number_of_data_nodes: u32,
    pub active_primary_shards: u32,
    pub active_shards: u32,
    /// Copies that are being moved: they are started, too.
    pub relocating_shards: u32,
    /// Copies that recover, without the targets of those that are moved.
    pub initializing_shards: u32,
    pub unassigned_shards: u32,
    /// Started copies of all that there should be, 0 to 100; 100 if there are none.
    pub active_shards_percent_as_number: f64,
}

/// The health of the cluster. To a node that has not joined yet it is red: it knows of no copy, which is not the same
/// as none that is missing.
pub fn health(state: &ClusterState) -> Health {
    let mut health = health_by(state, state.counted.copies(&state.routing));
    if !state.is_joined() {
        health.status = Status::Red;
    }
    health
}

/// The health of some indices together; those that are not there count for nothing.
pub fn health_of_some(state: &ClusterState, names: &[String]) -> Health {
    let shards = names.iter().filter_map(|name| state.routing.get(name));
    health_by(state, CopyCounts::of(shards.flat_map(|shards| shards.iter())))
}

/// The health of one index; none if there is no such index.
pub fn health_of(state: &ClusterState, index: &str) -> Option<Health> {
    Some(health_by(state, CopyCounts::of(state.routing.get(index)?.iter())))
}

fn health_by(state: &ClusterState, counts: CopyCounts) -> Health {
    let nodes = u32::try_from(state.present.len()).expect("a cluster has few members");
    let missing = counts.initializing + counts.unassigned;
    let status = match (counts.other_primaries, missing) {
        (0, 0) => Status::Green,
        (0, _) => Status::Yellow,
        _ => Status::Red,
    };
    let active_share = match missing {
        0 => 1.0,
        _ => f64::from(counts.started) / f64::from(counts.started + missing),
    };
    Health {
        cluster_name: state.cluster_name.clone(),
        status,
        number_of_nodes: nodes,
        number_of_data_nodes: nodes,
        active_primary_shards: counts.started_primaries,
        active_shards: counts.started,
        relocating_shards: counts.relocating,
        initializing_shards: counts.initializing,
        unassigned_shards: counts.unassigned,
        active_shards_percent_as_number: active_share * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::lab::Lab;
    use super::*;

    #[test]
    fn counts_and_colours() {
        let mut lab = Lab::new(2);
        let empty = health(&lab.state);
        assert_eq!((empty.status, empty.active_shards_percent_as_number), (Status::Green, 100.0));

        lab.create("a", 2, 1);
        let h = health(&lab.state);
        assert_eq!((h.status, h.initializing_shards, h.unassigned_shards), (Status::Red, 2, 2));
        assert_eq!(h.active_shards_percent_as_number, 0.0);

        lab.start_all();
        lab.create("b", 1, 2);
        lab.start_all();
        let h = health(&lab.state);
        assert_eq!(h.status, Status::Yellow, "two nodes cannot hold three copies");
        assert_eq!((h.active_primary_shards, h.active_shards, h.unassigned_shards), (3, 6, 1));
        assert!((h.active_shards_percent_as_number - 600.0 / 7.0).abs() < 1e-9);
        assert_eq!(health_of(&lab.state, "a").unwrap().status, Status::Green);
        assert_eq!(health_of(&lab.state, "zzz"), None);

        let json = serde_json::to_value(&h).unwrap();
        assert_eq!(json["status"], "yellow");
        assert_eq!(json["relocating_shards"], 0);
    }
}
