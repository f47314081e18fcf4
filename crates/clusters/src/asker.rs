//! Asking a cluster while its target is in other hands.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;

use crate::changes::LiveCluster;
use crate::{Answer, Error, RestClient};

/// Asks a cluster's nodes in turn, whether they are up or not, each request once. Borrows nothing: somebody who writes
/// goes on while the target ends nodes and starts them again.
pub struct Asker {
    arm: Arm,
}

enum Arm {
    Nodes {
        client: RestClient,
        addresses: Vec<String>,
        turn: Cell<usize>,
    },
    /// It writes down what is changed, and knows which host to ask.
    Live(Rc<LiveCluster>),
}

impl Asker {
    /// Asks the nodes at these addresses, of which there is at least one.
    pub(crate) fn of_nodes(client: RestClient, addresses: Vec<String>) -> Asker {
        Asker { arm: Arm::Nodes { client, addresses, turn: Cell::default() } }
    }

    pub(crate) fn of_live(cluster: Rc<LiveCluster>) -> Asker {
        Asker { arm: Arm::Live(cluster) }
    }

    /// Asks. Any answer but 2xx is [`Error::Refused`].
    pub async fn ask(&self, method: &str, path: &str, body: Bytes) -> Result<Answer, Error> {
        match &self.arm {
            Arm::Nodes { client, addresses, turn } => {
                let at = turn.replace(turn.get().wrapping_add(1)) % addresses.len();
                client.send(&addresses[at], method, path, body).await
            }
            Arm::Live(cluster) => cluster.request(method, path, body).await,
        }
    }
}
