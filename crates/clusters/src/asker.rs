//! A client of a cluster that does not borrow the [`Clusters`](crate::Clusters) it came from.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use crate::changes::LiveCluster;
use crate::{Answer, RestClient, Result};

/// Asks a cluster's nodes in turn, whether they are up or not, and sends each request once. It borrows nothing: a
/// writer goes on while nodes are stopped and started again.
pub struct Asker {
    arm: Arm,
}

enum Arm {
    Nodes {
        client: RestClient,
        addresses: Vec<String>,
        turn: Cell<usize>,
    },
    /// Journals changes, and knows which host to ask; waits so long for an answer.
    Live(Rc<LiveCluster>, Duration),
}

impl Asker {
    /// Asks the nodes at these addresses, of which there is at least one.
    pub(crate) fn of_nodes(client: RestClient, addresses: Vec<String>) -> Asker {
        Asker { arm: Arm::Nodes { client, addresses, turn: Cell::default() } }
    }

    pub(crate) fn of_live(cluster: Rc<LiveCluster>, limit: Duration) -> Asker {
        Asker { arm: Arm::Live(cluster, limit) }
    }

    /// Whether it asks a cluster that was there already and is no OpenSearch. The embedded engine has the APIs of both.
    pub fn is_elasticsearch(&self) -> bool {
        match &self.arm {
            Arm::Nodes { .. } => false,
            Arm::Live(cluster, _) => !cluster.identity.is_opensearch,
        }
    }

    /// How many requests in turn reach every node; one where that is not known.
    pub fn nodes(&self) -> usize {
        match &self.arm {
            Arm::Nodes { addresses, .. } => addresses.len(),
            Arm::Live(..) => 1,
        }
    }

    /// The place of the node whose turn it is.
    pub fn turn(&self) -> usize {
        match &self.arm {
            Arm::Nodes { addresses, turn, .. } => {
                turn.replace(turn.get().wrapping_add(1)) % addresses.len()
            }
            Arm::Live(..) => 0,
        }
    }

    /// Sends a request to the node whose turn it is. Any status but 2xx is [`crate::Error::Refused`].
    pub async fn ask(&self, method: &str, path: &str, body: Bytes) -> Result<Answer> {
        self.ask_at(self.turn(), method, path, body).await
    }

    /// As [`Asker::ask`], with another limit for this answer.
    pub async fn ask_within(
        &self,
        limit: Duration,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        match &self.arm {
            Arm::Nodes { client, addresses, .. } => {
                client.send_within(limit, &addresses[self.turn()], method, path, body).await
            }
            Arm::Live(cluster, _) => cluster.request(limit, method, path, body).await,
        }
    }

    /// As [`Asker::ask`], of the node at this place among [`Asker::nodes`].
    pub async fn ask_at(&self, at: usize, method: &str, path: &str, body: Bytes) -> Result<Answer> {
        match &self.arm {
            Arm::Nodes { client, addresses, .. } => {
                client.send(&addresses[at % addresses.len()], method, path, body).await
            }
            Arm::Live(cluster, limit) => cluster.request(*limit, method, path, body).await,
        }
    }
}
