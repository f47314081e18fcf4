//! Clients of the leader: each writes its own documents, one bulk request after another, and keeps the books.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use policy::routing::shard_of;
use record::ledger::{Action, Fate, Ledger, WriteId};
use rest::{RestMessage, RestRequest};
use serde_json::Value;
use world::{Connection, Env, Time};

use crate::scenario::{Chance, Writer};

/// What a node answered, or none where nothing came.
pub type Answer = Option<(u16, Value)>;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks nodes over the network, as any client does.
pub struct Client {
    env: Env,
    kept: Option<(String, Connection<RestMessage>)>,
}

impl Client {
    /// On a host of its own.
    pub fn new(env: &Env, host: &str) -> Client {
        Client { env: env.host(host), kept: None }
    }

    pub async fn ask(&mut self, address: &str, method: &str, path: &str, body: Bytes) -> Answer {
        let (method, path) = (method.to_owned(), path.to_owned());
        let request = RestRequest { method, path, body };
        let kept = self.kept.take().filter(|(to, _)| to == address);
        let env = self.env.clone();
        let asking = async {
            let mut connection = match kept {
                Some((_, connection)) => connection,
                None => env.connect::<RestMessage>(address).await.ok()?,
            };
            connection.sender.send(RestMessage::Request(request)).await.ok()?;
            match connection.receiver.recv().await {
                Ok(Some(RestMessage::Response(response))) => Some((connection, response)),
                _ => None,
            }
        };
        let (connection, response) = self.env.timeout(PATIENCE, asking).await.ok()??;
        self.kept = Some((address.to_owned(), connection));
        let value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        Some((response.status, value))
    }
}

/// What all clients share.
pub struct Load {
    pub ledger: RefCell<Ledger>,
    pub shards: u32,
    pub addresses: Vec<String>,
    pub until: Time,
    pub requests_max: u64,
}

struct Line {
    write: WriteId,
    text: String,
}

fn line(load: &Load, chance: &mut Chance, (client, document, number): (usize, u64, u64)) -> Line {
    let id = format!("c{client}d{document}");
    let padding = "x".repeat(chance.between(0, 400) as usize);
    let source = format!("{{\"client\":{client},\"write\":{number},\"padding\":\"{padding}\"}}");
    let content = store::document_hash(&id, source.as_bytes());
    let (name, action) = match chance.between(0, 99) {
        0..65 => ("index", Action::Index { content }),
        65..80 => ("create", Action::Create { content }),
        _ => ("delete", Action::Delete),
    };
    let mut text = format!("{{\"{name}\":{{\"_id\":\"{id}\"}}}}\n");
    if action != Action::Delete {
        text.push_str(&source);
        text.push('\n');
    }
    let shard = shard_of(&id, load.shards);
    Line { write: load.ledger.borrow_mut().begin(&id, shard, action), text }
}

/// Writes until the end of the load.
pub async fn write(env: Env, load: Rc<Load>, client: usize, writer: Writer, mut chance: Chance) {
    let mut connection = Client::new(&env, &format!("client{client}"));
    let (mut number, mut requests) = (0, 0);
    while env.now() < load.until && requests < load.requests_max {
        requests += 1;
        let count = chance.between(1, writer.batch);
        let documents: BTreeSet<u64> =
            (0..count).map(|_| chance.between(0, writer.documents - 1)).collect();
        let lines: Vec<Line> = documents
            .into_iter()
            .map(|document| {
                number += 1;
                line(&load, &mut chance, (client, document, number))
            })
            .collect();
        let body: String = lines.iter().map(|line| line.text.as_str()).collect();
        let to = chance.between(0, load.addresses.len() as u64 - 1) as usize;
        let answer = connection.ask(&load.addresses[to], "POST", "/a/_bulk", body.into()).await;
        for (place, line) in lines.iter().enumerate() {
            let fate = match &answer {
                Some((200, answer)) => Fate::of_bulk_item(&answer["items"][place]),
                Some((400..500, _)) => Fate::Rejected,
                _ => Fate::Unknown,
            };
            load.ledger.borrow_mut().settle(&line.write, fate);
        }
        env.sleep(Duration::from_millis(chance.between(1, writer.pause_ms))).await;
    }
}

/// Counts documents until the end of the load: an answer holds what was acknowledged and refreshed before it was asked
/// for, and nothing that no write can have left. Answers how many were held against the ledger.
///
/// `wanted` copies have to say that they were refreshed, and all shards that they answered.
pub async fn search(
    env: Env,
    load: Rc<Load>,
    number: u64,
    wanted: u32,
    mut chance: Chance,
) -> Result<u64, String> {
    let mut connection = Client::new(&env, &format!("searcher{number}"));
    let mut held = 0;
    while env.now() < load.until {
        env.sleep(Duration::from_millis(chance.between(1, 1_000))).await;
        let before = load.ledger.borrow().certain();
        // The manager knows of every copy that counts.
        let refreshed =
            connection.ask(&load.addresses[0], "POST", "/a/_refresh", Bytes::new()).await;
        let Some((200, refreshed)) = refreshed else { continue };
        if refreshed["_shards"]["successful"] != wanted {
            continue;
        }
        let to = chance.between(0, load.addresses.len() as u64 - 1) as usize;
        let answer = connection.ask(&load.addresses[to], "GET", "/a/_count", Bytes::new()).await;
        let Some((200, answer)) = answer else { continue };
        if answer["_shards"]["successful"] != load.shards {
            continue;
        }
        let after = load.ledger.borrow().certain();
        let stays = |id: &&String| after.get(*id) == before.get(*id);
        let there = before.iter().filter(|(id, known)| known.is_there && stays(id)).count() as u64;
        let gone = before.iter().filter(|(id, known)| !known.is_there && stays(id)).count() as u64;
        let possible = load.ledger.borrow().documents() as u64 - gone;
        let found = answer["count"].as_u64().unwrap_or(u64::MAX);
        if !(there..=possible).contains(&found) {
            return Err(format!(
                "a search through node {to} at {:?} found {found} documents, at least {there} were acknowledged and \
                 refreshed, at most {possible} can be there: {answer}",
                env.now()
            ));
        }
        held += 1;
    }
    Ok(held)
}
