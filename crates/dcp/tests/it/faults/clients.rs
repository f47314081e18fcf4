//! Who writes, and who has replicas follow.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use dcp::client::Client;
use dcp::codec::{Body, Status};

use super::run::{KEYS, Shared, VBUCKETS, key};

/// A client of one vbucket, with one request at a time.
pub async fn write(shared: Rc<Shared>, vb: u16) {
    let place = usize::from(vb);
    let (mut clients, mut count) = (BTreeMap::new(), 0u64);
    while !shared.ends.get() {
        shared.env.sleep(Duration::from_micros(200 + shared.chance.below(3000))).await;
        if shared.holds.get() || shared.pauses.get() {
            continue;
        }
        let owner = shared.owner.borrow()[place];
        let mut client = match clients.remove(&owner) {
            Some(client) => client,
            None => match Client::connect(&shared.env, &shared.options(owner)).await {
                Ok(client) => client,
                Err(_) => continue,
            },
        };
        if shared.holds.get() || shared.pauses.get() {
            continue;
        }
        count += 1;
        let key = key(shared.chance.below(KEYS));
        let value = (shared.chance.below(5) > 0).then(|| format!("{vb}:{count}"));
        let answered = match &value {
            Some(value) => client.set(vb, &key, Bytes::from(value.clone())).await,
            None => {
                let body = Body::Delete { key: Bytes::from(key.clone()) };
                client.ask(vb, body).await.map(|response| response.status)
            }
        };
        match answered {
            Ok(Ok(Status::Success)) => {
                shared.ledgers.borrow_mut()[place].wrote(&key, value, true);
            }
            // It is as it was.
            Ok(_) => {}
            Err(_) => {
                shared.ledgers.borrow_mut()[place].wrote(&key, value, false);
                continue;
            }
        }
        if shared.chance.below(4) == 0 {
            let written = shared.ledgers.borrow()[place].len();
            if persist(&mut client, vb).await && !shared.holds.get() {
                shared.ledgers.borrow_mut()[place].persisted(written);
                shared.summary.borrow_mut().persisted += 1;
            }
        }
        clients.insert(owner, client);
    }
}

/// Whether all that was written so far is on disk.
async fn persist(client: &mut Client, vb: u16) -> bool {
    let Ok(seqnos) = client.active_seqnos().await else { return false };
    let Some(seqno) = seqnos.get(&vb).copied() else { return false };
    let answered = client.ask(vb, Body::SeqnoPersistence { seqno }).await;
    answered.is_ok_and(|response| response.status == Ok(Status::Success))
}

/// Has the other site follow the vbuckets that `from` has.
pub async fn replicate(shared: Rc<Shared>, from: usize) {
    loop {
        shared.env.sleep(Duration::from_millis(20)).await;
        if shared.holds.get() || shared.still.get() {
            continue;
        }
        let turn = shared.turn.get();
        let owned: Vec<u16> =
            (0..VBUCKETS).filter(|vb| shared.owner.borrow()[usize::from(*vb)] == from).collect();
        if owned.is_empty() {
            continue;
        }
        let rebalance = shared.rebalance(from, shared.path(), &format!("from{from}"));
        let changed = async {
            while shared.turn.get() == turn && !shared.holds.get() && !shared.still.get() {
                shared.env.sleep(Duration::from_millis(5)).await;
            }
        };
        let copying = async {
            if let Ok(copying) = rebalance.replicate(&shared.env, &owned).await {
                copying.failure().await;
            }
        };
        tokio::select! {
            biased;
            () = copying => {}
            () = changed => {}
        }
    }
}
