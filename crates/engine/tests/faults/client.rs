//! Clients of the leader, and of a follower that follows no more: each writes its own documents, one bulk request after
//! another, and keeps the books.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use policy::routing::shard_of;
use record::ledger::{Action, Certain, Fate, Ledger, WriteId};
use rest::{RestMessage, RestRequest};
use serde_json::Value;
use world::{Connection, Env, Time};

use crate::scenario::{Chance, Writer};
use crate::site::Site;

/// What a node answered, or none where nothing came.
pub type Answer = Option<(u16, Value)>;

/// How long an operator waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Asks nodes over the network, as any client does.
pub struct Client {
    env: Env,
    patience: Duration,
    kept: Option<(String, Connection<RestMessage>)>,
}

impl Client {
    /// On a host of its own.
    pub fn new(env: &Env, host: &str, patience: Duration) -> Client {
        Client { env: env.host(host), patience, kept: None }
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
        let (connection, response) = self.env.timeout(self.patience, asking).await.ok()??;
        self.kept = Some((address.to_owned(), connection));
        let value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        Some((response.status, value))
    }
}

/// The client that writes to a follower which follows no more. Others have lower numbers.
pub const OF_FOLLOWER: usize = 9;

/// Whether a document is that client's.
pub fn is_of_follower(document: &str) -> bool {
    document.starts_with(&format!("c{OF_FOLLOWER}d"))
}

/// What all clients of an index share.
pub struct Load {
    pub ledger: RefCell<Ledger>,
    pub shards: u32,
    pub site: Rc<Site>,
    pub index: &'static str,
    pub until: Time,
    pub requests_max: u64,
    /// How long a client waits for an answer.
    pub patience: Duration,
}

struct Line {
    write: WriteId,
    text: String,
}

fn line(
    load: &Load,
    chance: &mut Chance,
    creates_percent: u64,
    (client, document, number): (usize, u64, u64),
) -> Line {
    let id = format!("c{client}d{document}");
    let padding = "x".repeat(chance.between(0, 400) as usize);
    let source = format!("{{\"client\":{client},\"write\":{number},\"padding\":\"{padding}\"}}");
    let content = store::document_hash(&id, source.as_bytes());
    let (name, action) = match chance.between(0, 99) {
        percent if percent >= 80 => ("delete", Action::Delete),
        percent if percent >= 80 - creates_percent => ("create", Action::Create { content }),
        _ => ("index", Action::Index { content }),
    };
    let mut text = format!("{{\"{name}\":{{\"_id\":\"{id}\"}}}}\n");
    if action != Action::Delete {
        text.push_str(&source);
        text.push('\n');
    }
    let shard = shard_of(&id, load.shards);
    Line { write: load.ledger.borrow_mut().begin(&id, shard, action), text }
}

impl Load {
    /// Whether the manager is there, and knows the index as one that follows nobody.
    pub fn is_unfollowed(&self) -> bool {
        self.site.node(0).is_some_and(|manager| {
            let state = manager.state();
            state.indices.get(self.index).is_some_and(|meta| meta.leader.is_none())
        })
    }
}

/// Writes to a follower from the moment on when it follows no more.
pub async fn write_unfollowed(env: Env, load: Rc<Load>, writer: Writer, chance: Chance) {
    // A write to an index that is not there would make it.
    while !load.is_unfollowed() {
        if env.now() >= load.until {
            return;
        }
        env.sleep(Duration::from_millis(20)).await;
    }
    write(env, load, OF_FOLLOWER, writer, chance).await;
}

/// Writes until the end of the load.
pub async fn write(env: Env, load: Rc<Load>, client: usize, writer: Writer, mut chance: Chance) {
    let mut connection = Client::new(&env, &format!("client{client}"), load.patience);
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
                line(&load, &mut chance, writer.creates_percent, (client, document, number))
            })
            .collect();
        let body: String = lines.iter().map(|line| line.text.as_str()).collect();
        let to = chance.between(0, load.site.len() as u64 - 1) as usize;
        let path = format!("/{}/_bulk", load.index);
        let answer = connection.ask(&load.site.http(to), "POST", &path, body.into()).await;
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

/// Searches for all documents until the end of the load: an answer holds what was acknowledged and refreshed before
/// it was
/// asked for, and nothing that no write can have left. Answers how many were held against the ledger.
///
/// `wanted` copies have to say that they were refreshed, and all shards that they answered. Which node is asked for the
/// refresh is drawn by `through`.
pub async fn search(
    env: Env,
    load: Rc<Load>,
    number: u64,
    wanted: u32,
    mut chance: Chance,
    mut through: Chance,
) -> Result<u64, String> {
    let mut connection = Client::new(&env, &format!("searcher{number}"), PATIENCE);
    let mut held = 0;
    while env.now() < load.until {
        env.sleep(Duration::from_millis(chance.between(1, 1_000))).await;
        let before = load.ledger.borrow().certain();
        // Also one whose state is old: the primaries say which copies count.
        let is_up = |node: &usize| load.site.node(*node).is_some();
        let up: Vec<usize> = (0..load.site.len()).filter(is_up).collect();
        if up.is_empty() {
            continue;
        }
        let to = load.site.http(through.one_of(&up));
        let refreshed = connection.ask(&to, "POST", "/a/_refresh", Bytes::new()).await;
        let Some((200, refreshed)) = refreshed else { continue };
        if refreshed["_shards"]["successful"] != wanted {
            continue;
        }
        // What was refreshed stays searchable, whatever becomes of nodes and of who is asked.
        for _ in 0..chance.between(1, 4) {
            let to = chance.between(0, load.site.len() as u64 - 1) as usize;
            let is_member = || load.site.is_member(to);
            let was_member = is_member();
            let answer = found_by(&mut connection, &load, to, &mut chance).await;
            // A node that the others have given up shows what it had, as in the field, until it knows.
            let Some(answer) = answer.filter(|_| was_member && is_member()) else { continue };
            held += 1;
            check_found(&load, &before, answer)
                .map_err(|why| format!("a search through node {to} at {:?} {why}", env.now()))?;
            env.sleep(Duration::from_millis(chance.magnitude(1, 500))).await;
        }
    }
    Ok(held)
}

/// How many documents an answer of all shards found, and the answer.
async fn found_by(
    connection: &mut Client,
    load: &Load,
    to: usize,
    chance: &mut Chance,
) -> Option<(u64, Value)> {
    let address = load.site.http(to);
    let (found, answer) = match chance.percent(30) {
        true => {
            let (status, answer) =
                connection.ask(&address, "GET", "/a/_count", Bytes::new()).await?;
            ((status == 200).then(|| answer["count"].as_u64())??, answer)
        }
        false => {
            let body = Bytes::from_static(b"{\"size\":0,\"track_total_hits\":true}");
            let (status, answer) = connection.ask(&address, "POST", "/a/_search", body).await?;
            ((status == 200).then(|| answer["hits"]["total"]["value"].as_u64())??, answer)
        }
    };
    (answer["_shards"]["successful"] == load.shards).then_some((found, answer))
}

fn check_found(
    load: &Load,
    before: &BTreeMap<String, Certain>,
    (found, answer): (u64, Value),
) -> Result<(), String> {
    let after = load.ledger.borrow().certain();
    let stays = |id: &&String| after.get(*id) == before.get(*id);
    let there = before.iter().filter(|(id, known)| known.is_there && stays(id)).count() as u64;
    let gone = before.iter().filter(|(id, known)| !known.is_there && stays(id)).count() as u64;
    let possible = load.ledger.borrow().documents() as u64 - gone;
    if (there..=possible).contains(&found) {
        return Ok(());
    }
    Err(format!(
        "found {found} documents, at least {there} were acknowledged and refreshed, at most {possible} can be there: {answer}"
    ))
}
