//! Clusters for tests: nodes in one process, in either world.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod between;
pub mod pair;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use engine::{Node, NodeConfig};
use rest::RestRequest;
use serde_json::{Value, json};
use world::Env;

/// A cluster whose nodes share this process. Its directory goes with it. What a test leaves of it is stopped behind it.
pub struct Cluster {
    pub env: Env,
    pub name: String,
    pub nodes: BTreeMap<String, Node>,
    configs: Vec<NodeConfig>,
    dir: Option<tempfile::TempDir>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.nodes.is_empty() || std::thread::panicking() {
            return;
        }
        let (nodes, dir) = (std::mem::take(&mut self.nodes), self.dir.take());
        testbed::at_the_end(async move {
            for node in nodes.into_values() {
                node.stop().await;
            }
            drop(dir);
        });
    }
}

impl Cluster {
    pub async fn start(env: &Env, name: &str, nodes: usize) -> Cluster {
        Cluster::start_with(env, name, nodes, &[]).await
    }

    pub async fn start_with(
        env: &Env,
        name: &str,
        nodes: usize,
        settings: &[(&str, &str)],
    ) -> Cluster {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Cluster::start_as(env, name, nodes, |config| config.settings = settings.clone().collect())
            .await
    }

    /// With an index of so many shards and replicas of each.
    pub async fn with(
        env: &Env,
        name: &str,
        nodes: usize,
        (index, shards, replicas): (&str, u32, u32),
    ) -> Cluster {
        let cluster = Cluster::start(env, name, nodes).await;
        cluster.create(index, shards, replicas).await;
        cluster
    }

    /// With so many documents in such an index.
    pub async fn holding(
        env: &Env,
        name: &str,
        nodes: usize,
        index: (&str, u32, u32),
        documents: u64,
    ) -> Cluster {
        let cluster = Cluster::with(env, name, nodes, index).await;
        assert_eq!(cluster.index(index.0, 0, documents).await, documents);
        cluster
    }

    /// With something else in every node's configuration.
    pub async fn start_as(
        env: &Env,
        name: &str,
        nodes: usize,
        change: impl Fn(&mut NodeConfig),
    ) -> Cluster {
        let dir = (!env.is_virtual()).then(|| tempfile::tempdir().unwrap());
        Cluster::start_in(env, name, nodes, change, dir).await
    }

    /// Starts it on a directory that was prepared: a node's data is in the one that bears its name.
    pub async fn start_in(
        env: &Env,
        name: &str,
        nodes: usize,
        change: impl Fn(&mut NodeConfig),
        dir: Option<tempfile::TempDir>,
    ) -> Cluster {
        let root = dir.as_ref().map_or(PathBuf::from("/data"), |dir| dir.path().to_owned());
        let members: Vec<String> = (0..nodes).map(|n| format!("{name}-{n}")).collect();
        let configs = members.iter().map(|node| NodeConfig {
            transport: env.host(node).any_address(),
            http: env.host(node).any_address(),
            ..NodeConfig::new(node, name, &members, root.join(node))
        });
        let mut configs: Vec<NodeConfig> = configs.collect();
        configs.iter_mut().for_each(change);
        let (env, name, nodes) = (env.clone(), name.to_owned(), BTreeMap::new());
        let mut cluster = Cluster { env, name, nodes, configs, dir };
        cluster.start_all().await;
        cluster
    }

    /// Starts a node, or starts it again on the same data and the same address.
    pub async fn start_node(&mut self, number: usize) {
        let manager =
            self.nodes.get(&self.configs[0].name).map(|m| m.transport_address().to_owned());
        let config = &mut self.configs[number];
        config.manager = if number == 0 { None } else { manager };
        let host = self.env.host(&config.name);
        let mut tries = 0;
        let node = loop {
            match rest::start(&host, config.clone()).await {
                // While the node was down its port may have become that of a connection of another test.
                Err(engine::Error::Listen { .. }) if tries < 1000 => tries += 1,
                started => break started.unwrap(),
            }
            self.env.sleep(Duration::from_millis(200)).await;
        };
        config.transport = node.transport_address().to_owned();
        config.http = node.http_address().to_owned();
        self.nodes.insert(config.name.clone(), node);
    }

    /// Stops a node in order.
    pub async fn stop_node(&mut self, number: usize) {
        let node = self.nodes.remove(&self.configs[number].name).unwrap();
        node.stop().await;
    }

    /// Kills a node without warning. In the real world, where all share one process, it is stopped instead.
    pub async fn kill_node(&mut self, number: usize) {
        let name = self.configs[number].name.clone();
        if self.env.is_virtual() {
            let node = self.nodes.remove(&name);
            self.env.kill_host(&name);
            drop(node);
        } else {
            self.stop_node(number).await;
        }
    }

    pub async fn start_all(&mut self) {
        for number in 0..self.configs.len() {
            self.start_node(number).await;
        }
    }

    /// Stops all nodes in order.
    pub async fn stop_all(&mut self) {
        for number in 0..self.configs.len() {
            self.stop_node(number).await;
        }
    }

    /// Kills all nodes, and the manager last.
    pub async fn kill_all(&mut self) {
        for number in (0..self.configs.len()).rev() {
            self.kill_node(number).await;
        }
    }

    /// Where a node's data is.
    pub fn data_dir(&self, number: usize) -> PathBuf {
        self.configs[number].data.clone()
    }

    /// Where a node that is down has a copy.
    pub fn copy_dir(&self, number: usize, uuid: &str, shard: u32) -> PathBuf {
        self.data_dir(number).join("indices").join(uuid).join(shard.to_string())
    }

    /// Accepts, as an operator, that a copy of a node that is down may have lost operations.
    pub fn accept_data_loss(&self, number: usize, uuid: &str, shard: u32) {
        let dir = self.copy_dir(number, uuid, shard);
        match self.env.is_virtual() {
            true => {
                let host = self.env.host(&self.configs[number].name);
                assert!(store::accept_data_loss(&host, &dir));
            }
            false => std::fs::write(dir.join("oplog.ckp"), "accept_data_loss\n").unwrap(),
        }
    }

    /// What a node is started with.
    pub fn config(&self, number: usize) -> NodeConfig {
        self.configs[number].clone()
    }

    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[&self.configs[number].name]
    }

    pub fn any(&self) -> &Node {
        self.nodes.values().next().unwrap()
    }

    /// The node that has the primary of the first shard of an index.
    pub fn primary_of(&self, index: &str) -> String {
        self.any().state().shard(index, 0).unwrap().primary().node.clone().unwrap()
    }

    /// Where others reach its nodes.
    pub fn seeds(&self) -> Vec<&str> {
        self.nodes.values().map(Node::transport_address).collect()
    }

    pub async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        ask(self.any(), method, path, body).await
    }

    /// Asks, and expects it to go well.
    pub async fn must(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// Asks, and expects an answer of this status.
    pub async fn answers(&self, status: u16, method: &str, path: &str, body: Value) -> Value {
        let (found, answer) = self.ask(method, path, body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
        answer
    }

    /// The same, and that it says this.
    pub async fn refuses(&self, status: u16, words: &str, method: &str, path: &str, body: Value) {
        let answer = self.answers(status, method, path, body).await;
        assert!(answer.to_string().contains(words), "{method} {path}: {words}: {answer}");
    }

    pub async fn get(&self, path: &str) -> Value {
        self.must("GET", path, Value::Null).await
    }

    pub async fn post(&self, path: &str) -> Value {
        self.must("POST", path, Value::Null).await
    }

    pub async fn delete(&self, path: &str) -> Value {
        self.must("DELETE", path, Value::Null).await
    }

    /// Sets what lasts.
    pub async fn set(&self, settings: Value) {
        self.must("PUT", "/_cluster/settings", json!({ "persistent": settings })).await;
    }

    /// Sets what is transient.
    pub async fn set_for_now(&self, settings: Value) {
        self.must("PUT", "/_cluster/settings", json!({ "transient": settings })).await;
    }

    pub async fn stop(mut self) {
        for node in std::mem::take(&mut self.nodes).into_values() {
            node.stop().await;
        }
    }

    pub async fn green(&self, index: &str) {
        self.green_within(index, if self.env.is_virtual() { 30 } else { 300 }).await;
    }

    pub async fn green_within(&self, index: &str, seconds: u64) {
        let path = format!("/_cluster/health/{index}?wait_for_status=green&timeout={seconds}s");
        let health = self.get(&path).await;
        assert_eq!(health["status"], "green", "{health}");
    }

    pub async fn create(&self, index: &str, shards: u32, replicas: u32) {
        let properties = json!({
            "n": { "type": "long" }, "word": { "type": "keyword" },
            "place": { "type": "geo_point" },
        });
        self.map(index, (shards, replicas), json!({ "properties": properties })).await;
    }

    /// Makes an index of so many shards and replicas with these mappings, and waits for its copies.
    pub async fn map(&self, index: &str, (shards, replicas): (u32, u32), mappings: Value) {
        let settings = json!({ "number_of_shards": shards, "number_of_replicas": replicas });
        self.make(index, json!({ "settings": settings, "mappings": mappings })).await;
    }

    /// Waits until this is said of what is not where it should be.
    pub async fn explains(&self, words: &str) {
        eventually(&self.env, words, async || {
            let (_, said) = self.ask("GET", "/_cluster/allocation/explain", Value::Null).await;
            said.to_string().contains(words)
        })
        .await;
    }

    /// Makes an index of this description, and waits for its copies.
    pub async fn make(&self, index: &str, body: Value) {
        self.must("PUT", &format!("/{index}"), body).await;
        self.green(index).await;
    }

    /// Has an index follow one of a remote cluster, with so many replicas; waits for so many copies of each shard.
    pub async fn follow(
        &self,
        index: &str,
        (remote, leader): (&str, &str),
        replicas: u32,
        copies: &str,
    ) {
        let body = json!({
            "remote_cluster": remote, "leader_index": leader,
            "settings": { "index.number_of_replicas": replicas },
        });
        let path = format!("/{index}/_ccr/follow?wait_for_active_shards={copies}");
        self.must("PUT", &path, body).await;
    }

    /// Indexes documents `from..to` under ids of their own; answers how many were acknowledged.
    pub async fn index(&self, index: &str, from: u64, to: u64) -> u64 {
        let mut body = String::new();
        for n in from..to {
            body.push_str(&format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n"));
            body.push_str(&format!(
                "{{\"n\":{n},\"word\":\"w{}\",\"place\":[{}.5,51.5]}}\n",
                n % 7,
                n % 90
            ));
        }
        let (status, answer) =
            raw(self.any(), "POST", &format!("/{index}/_bulk"), body.into()).await;
        assert_eq!(status, 200, "{answer}");
        let items = answer["items"].as_array().unwrap();
        items.iter().filter(|item| item["index"]["status"].as_u64().unwrap() < 300).count() as u64
    }

    /// The answer to `_count` of an index, once all that was written is searchable.
    pub async fn counted(&self, index: &str) -> Value {
        self.post(&format!("/{index}/_refresh")).await;
        self.get(&format!("/{index}/_count")).await
    }

    /// There are so many copies of the one shard of `a`, each is the same, and has so many documents.
    pub async fn has(&self, copies: usize, documents: u64) {
        let digests = self.digests("a").await;
        assert_eq!(digests.len(), copies, "{digests:?}");
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
        assert_eq!(digests[0].1, documents);
    }

    /// The digests of every started copy of an index, sorted.
    pub async fn digests(&self, index: &str) -> Vec<(u64, u64, String)> {
        self.answered_digests(index).await.unwrap_or_else(|answer| panic!("{index}: {answer}"))
    }

    /// The same, or what is answered where a copy cannot be read now.
    pub async fn answered_digests(&self, index: &str) -> Result<Vec<(u64, u64, String)>, Value> {
        let path = format!("/{index}/_narrows/digest?replicas=true");
        let (status, answer) = self.ask("GET", &path, Value::Null).await;
        if status != 200 {
            return Err(answer);
        }
        let rows = answer["shards"].as_array().unwrap();
        let mut digests: Vec<_> = rows
            .iter()
            .map(|row| {
                let content = row["content"].as_str().unwrap().to_owned();
                (row["shard"].as_u64().unwrap(), row["documents"].as_u64().unwrap(), content)
            })
            .collect();
        digests.sort();
        Ok(digests)
    }
}

pub async fn ask(node: &Node, method: &str, path: &str, body: Value) -> (u16, Value) {
    raw(node, method, path, rest::json_body(&body)).await
}

/// The answer, which refuses with this status and this type.
#[track_caller]
pub fn refuses((found, answer): (u16, Value), status: u16, kind: &str) -> Value {
    assert_eq!((found, &answer["error"]["type"]), (status, &json!(kind)), "{answer}");
    answer
}

pub async fn raw(node: &Node, method: &str, path: &str, body: Bytes) -> (u16, Value) {
    let request = RestRequest { method: method.to_owned(), path: path.to_owned(), body };
    let response = rest::handle(node, request).await;
    let value = serde_json::from_slice(&response.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&response.body).into_owned()));
    (response.status, value)
}

/// Waits until `done` is true; fails after a minute, in the real world after some, as the machine may be busy.
pub async fn eventually(env: &Env, what: &str, mut done: impl AsyncFnMut() -> bool) {
    let minutes = if env.is_virtual() { 1 } else { 5 };
    for _ in 0..minutes * 1200 {
        if done().await {
            return;
        }
        env.sleep(Duration::from_millis(50)).await;
    }
    panic!("not within {minutes} minutes: {what}");
}

/// Waits until every copy of an index holds what those of one of another cluster hold.
pub async fn same((leader, from): (&Cluster, &str), (follower, to): (&Cluster, &str)) {
    let each_once = |mut digests: Vec<(u64, u64, String)>| {
        digests.dedup();
        digests
    };
    let expected = each_once(leader.digests(from).await);
    let shards = leader.any().state().routing[from].len();
    assert_eq!(expected.len(), shards, "the leader's copies differ: {expected:?}");
    let mut found = Err(Value::Null);
    let minutes = if leader.env.is_virtual() { 1 } else { 5 };
    for _ in 0..minutes * 600 {
        found = follower.answered_digests(to).await.map(each_once);
        if found.as_ref() == Ok(&expected) {
            return;
        }
        leader.env.sleep(Duration::from_millis(100)).await;
    }
    let stats = follower.ask("GET", &format!("/{to}/_ccr/stats"), Value::Null).await.1;
    panic!("not the same within {minutes} minutes: {expected:?} {found:?} {stats:#}");
}

/// Plays a test with a bug planted, in virtual time: it must fail, and say this.
#[track_caller]
pub fn fails_with<F: Future<Output = ()> + 'static>(
    bug: &'static str,
    test: impl FnOnce(Env) -> F,
    says: &str,
) {
    let run = || {
        world::virtual_world::run(7, |env| {
            env.plant(bug);
            test(env)
        });
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err(bug);
    let said = panic.downcast_ref::<String>();
    assert!(said.is_some_and(|said| said.contains(says)), "{bug}: {said:?}");
}

/// Whatever was searched: nothing runs, waits, is in flight, or is held.
pub async fn settled(c: &Cluster) {
    eventually(&c.env, "every counter is zero", async || {
        let stats = c.get("/_nodes/stats").await;
        stats["nodes"].as_object().unwrap().values().all(|node| {
            let pool = &node["thread_pool"]["search"];
            let in_flight = node["adaptive_selection"].as_object().unwrap().values();
            pool["active"] == 0
                && pool["queue"] == 0
                && node["indices"]["search"]["open_contexts"] == 0
                && in_flight.into_iter().all(|row| row["outgoing_searches"] == 0)
        })
    })
    .await;
}
