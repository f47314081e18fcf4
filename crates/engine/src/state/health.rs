//! Green, yellow, red.

use serde::{Deserialize, Serialize};

use super::{ClusterState, IndexShardRoutingTable};

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
    let mut health = count(state, state.shards().map(|(_, _, shard)| shard));
    if !state.is_joined() {
        health.status = Status::Red;
    }
    health
}

/// The health of some indices together; those that are not there count for nothing.
pub fn health_of_some(state: &ClusterState, names: &[String]) -> Health {
    let shards = names.iter().filter_map(|name| state.routing.get(name));
    count(state, shards.flat_map(|shards| shards.iter()))
}

/// The health of one index; none if there is no such index.
pub fn health_of(state: &ClusterState, index: &str) -> Option<Health> {
    Some(count(state, state.routing.get(index)?.iter()))
}

fn count<'a>(
    state: &ClusterState,
    shards: impl IntoIterator<Item = &'a IndexShardRoutingTable>,
) -> Health {
    let nodes = u32::try_from(state.present.len()).expect("a cluster has few members");
    let mut health = Health {
        cluster_name: state.cluster_name.clone(),
        status: Status::Green,
        number_of_nodes: nodes,
        number_of_data_nodes: nodes,
        active_primary_shards: 0,
        active_shards: 0,
        relocating_shards: 0,
        initializing_shards: 0,
        unassigned_shards: 0,
        active_shards_percent_as_number: 100.0,
    };
    for copy in shards.into_iter().flat_map(|shard| &shard.copies) {
        if copy.is_started() {
            health.active_shards += 1;
            health.active_primary_shards += u32::from(copy.primary);
            health.relocating_shards += u32::from(copy.is_relocating());
            continue;
        }
        health.initializing_shards += u32::from(copy.is_assigned());
        health.unassigned_shards += u32::from(!copy.is_assigned());
        let status = if copy.primary { Status::Red } else { Status::Yellow };
        health.status = health.status.max(status);
    }
    let missing = health.initializing_shards + health.unassigned_shards;
    if missing > 0 {
        let all = f64::from(health.active_shards + missing);
        health.active_shards_percent_as_number = f64::from(health.active_shards) / all * 100.0;
    }
    health
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
