//! One run: two clusters, clients, faults; then everything is mended, and `judge` reads what is there.

mod damage;
mod judge;
mod unfollowed;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use engine::Node;
use engine::state::ShardCopy;
use serde_json::{Value, json};
use world::{Env, Link, LinkConfig, Task, virtual_world};

use self::damage::AtRest;
use crate::client::{Client, Load, PATIENCE, search, write};
use crate::moving::choose;
use crate::scenario::{Chance, Scenario, Side, What};
use crate::site::Site;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub acknowledged: u64,
    pub rejected: u64,
    pub unknown: u64,
    /// Virtual time that it took.
    pub ms: u64,
    /// Virtual time from the mending of everything to copies that are equal.
    pub mended_ms: u64,
    /// Followers that were unfollowed, and became equal.
    pub unfollowed: u64,
    /// Writes to them that were acknowledged after they were unfollowed.
    pub acknowledged_unfollowed: u64,
    /// Answers to searches that were held against the ledger.
    pub searched: u64,
    /// Files at rest that were damaged.
    pub damaged: u64,
    /// 1 where a shard without another copy was refused by name.
    pub refused: u64,
    /// Moves of primaries, and of replicas, that the manager began.
    pub moved_primaries: u64,
    pub moved_replicas: u64,
}

/// Runs it. The error says what was lost, or that the clusters never became equal.
pub fn run(
    scenario: &Scenario,
    planted: impl IntoIterator<Item = &'static str> + 'static,
) -> Result<Summary, String> {
    let whole = scenario.clone();
    let played = virtual_world::run_traced(scenario.seed, move |env| async move {
        planted.into_iter().for_each(|fault| env.plant(fault));
        Stage::set(&env, whole).await.play().await
    });
    played.map_err(|deadlock| format!("nothing is left to happen: {deadlock}"))?.0
}

/// Everything that is there.
struct Stage {
    env: Env,
    scenario: Scenario,
    /// Leader, follower, and the last of a chain.
    sites: Vec<Rc<Site>>,
    /// Before each cluster but the first.
    links: Vec<Link>,
    tasks: RefCell<Vec<Task<()>>>,
    unfollowed: Cell<u64>,
    /// What is written to the follower once it follows no more, and who does that.
    own: RefCell<Option<Rc<Load>>>,
    own_writing: RefCell<Option<Task<()>>>,
    acknowledged_unfollowed: Cell<u64>,
    at_rest: Rc<AtRest>,
    moves: Rc<Moves>,
}

/// Moves that were begun.
#[derive(Default)]
struct Moves {
    primaries: Cell<u64>,
    replicas: Cell<u64>,
    /// By the number that was drawn: where a copy of a shard goes.
    under_way: RefCell<BTreeMap<u64, (String, u32, String)>>,
}

/// Draws that came later have streams of their own, so that no seed draws something else than before.
const REFRESHES: u64 = 0x4EF_4E54;

async fn direct(node: &Node, method: &str, path: &str, body: Value) -> (u16, Value) {
    let (method, path, body) = (method.to_owned(), path.to_owned(), rest::json_body(&body));
    let request = rest::RestRequest { method, path, body };
    let response = rest::handle(node, request).await;
    (response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null))
}

/// The setting that keeps copies from a node.
fn exclusion(node: Option<String>) -> Value {
    json!({ "transient": { "cluster.routing.allocation.exclude._name": node } })
}

fn name_of(side: Side) -> &'static str {
    ["leader", "follower", "last"][side as usize]
}

fn index_of(side: Side) -> &'static str {
    ["a", "b", "c"][side as usize]
}

impl Stage {
    async fn set(env: &Env, scenario: Scenario) -> Stage {
        let mut sites = Vec::new();
        for (side, nodes) in [
            (Side::Leader, scenario.leaders),
            (Side::Follower, scenario.followers),
            (Side::Last, scenario.last),
        ] {
            if nodes > 0 {
                let machines = &scenario.machines[side as usize];
                sites.push(Site::start(env, name_of(side), nodes, machines).await);
            }
        }
        let mut settings = scenario.leader_settings.clone();
        settings["index.number_of_shards"] = json!(scenario.shards);
        settings["index.number_of_replicas"] = json!(scenario.leader_replicas);
        let manager = sites[0].node(0).expect("it was started");
        // Documents bring no fields: what the faults are drawn for does not wait for mappings.
        let body = json!({ "settings": settings, "mappings": { "dynamic": false } });
        let made = direct(&manager, "PUT", "/a", body).await;
        assert_eq!(made.0, 200, "{}", made.1);
        let mut links = Vec::new();
        for pair in sites.windows(2) {
            let config = LinkConfig {
                rtt: Duration::from_millis(scenario.rtt_ms),
                rate_bytes_per_s: Some(scenario.rate_bytes_per_s),
                ..LinkConfig::default()
            };
            let link = Link::open(env, config);
            let mut seeds = Vec::new();
            for number in 0..pair[0].len() {
                let transport = pair[0].transport(number);
                seeds.push(link.route(&transport).await.expect("a virtual route"));
            }
            let remote = json!({ "persistent": { "cluster.remote.leader.seeds": seeds } });
            let manager = pair[1].node(0).expect("it was started");
            let set = direct(&manager, "PUT", "/_cluster/settings", remote).await;
            assert_eq!(set.0, 200, "{}", set.1);
            links.push(link);
        }
        Stage {
            env: env.clone(),
            scenario,
            sites,
            links,
            tasks: RefCell::default(),
            unfollowed: Cell::new(0),
            own: RefCell::default(),
            own_writing: RefCell::default(),
            acknowledged_unfollowed: Cell::new(0),
            at_rest: Rc::default(),
            moves: Rc::default(),
        }
    }

    fn site(&self, side: Side) -> &Rc<Site> {
        &self.sites[side as usize]
    }

    /// Clusters that follow another.
    fn followers(&self) -> impl Iterator<Item = Side> {
        [Side::Follower, Side::Last].into_iter().take(self.links.len())
    }

    fn keep(&self, name: &'static str, task: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().push(self.env.spawn(name, task));
    }

    async fn play(self) -> Result<Summary, String> {
        let began = self.env.now();
        let load = Rc::new(Load {
            ledger: RefCell::default(),
            shards: self.scenario.shards,
            site: self.sites[0].clone(),
            index: index_of(Side::Leader),
            until: began + Duration::from_millis(self.scenario.load_ms),
            requests_max: self.scenario.requests_max,
            patience: Duration::from_millis(self.scenario.patience_ms),
        });
        let clients: Vec<Task<()>> = self
            .scenario
            .writers
            .iter()
            .enumerate()
            .map(|(number, writer)| {
                let chance = Chance::new(self.scenario.seed ^ (number as u64 + 1) << 40);
                let writing = write(self.env.clone(), load.clone(), number, writer.clone(), chance);
                self.env.spawn("writes", writing)
            })
            .collect();
        let following: Vec<Task<()>> = self
            .followers()
            .map(|side| self.follow(side, self.scenario.follow_at_ms))
            .map(|following| self.env.spawn("has a follower follow", following))
            .collect();
        let searching: Vec<Task<Result<u64, String>>> = (0..self.scenario.searchers)
            .map(|number| {
                let wanted = self.scenario.shards * (self.scenario.leader_replicas + 1);
                let chance = Chance::new(self.scenario.seed ^ (number + 1) << 50);
                let through = Chance::new(self.scenario.seed ^ (number + 1) << 50 ^ REFRESHES);
                let searching =
                    search(self.env.clone(), load.clone(), number, wanted, chance, through);
                self.env.spawn("searches", searching)
            })
            .collect();
        self.keep_texts();
        self.have_unfollowed_written();
        self.have_faults().await;
        for client in clients {
            client.await.map_err(|_| "a client ended".to_owned())?;
        }
        let mut searched = 0;
        for searcher in searching {
            searched += searcher.await.map_err(|_| "a client that searches ended".to_owned())??;
        }
        let mended = self.env.now();
        self.mend();
        // Nobody writes any more.
        let ledger = load.ledger.take();
        let (acknowledged, rejected, unknown) = ledger.counts();
        self.become_equal(&ledger).await?;
        self.leases_kept().await?;
        drop(following);
        let now = self.env.now();
        let ms = |since: world::Time| (now - since).as_millis() as u64;
        Ok(Summary {
            acknowledged,
            rejected,
            unknown,
            ms: ms(began),
            mended_ms: ms(mended),
            unfollowed: self.unfollowed.get(),
            acknowledged_unfollowed: self.acknowledged_unfollowed.get(),
            searched,
            damaged: self.at_rest.damaged.get(),
            refused: u64::from(self.at_rest.refused.get()),
            moved_primaries: self.moves.primaries.get(),
            moved_replicas: self.moves.replicas.get(),
        })
    }

    /// Asks a follower to follow until it does.
    fn follow(&self, side: Side, after_ms: u64) -> impl Future<Output = ()> + use<> + 'static {
        let (env, scenario, site) =
            (self.env.clone(), self.scenario.clone(), self.site(side).clone());
        let leader_index = if side == Side::Last { "b" } else { "a" };
        let replicas = self.replicas_of(side);
        async move {
            env.sleep(Duration::from_millis(after_ms)).await;
            let mut settings = scenario.follower_settings;
            settings["index.number_of_replicas"] = json!(replicas);
            let mut body = json!({
                "remote_cluster": "leader", "leader_index": leader_index, "settings": settings,
            });
            let parameters = scenario.parameters.as_object().cloned().unwrap_or_default();
            body.as_object_mut().expect("an object").extend(parameters);
            let body = Bytes::from(body.to_string());
            let mut client = Client::new(&env, "operator", PATIENCE);
            let path = format!("/{}/_ccr/follow?wait_for_active_shards=0", index_of(side));
            for node in (0..site.len()).cycle() {
                let answer = client.ask(&site.http(node), "PUT", &path, body.clone()).await;
                match answer {
                    Some((200, _)) => return,
                    Some((400, answer))
                        if answer["error"]["type"] == "resource_already_exists_exception" =>
                    {
                        return;
                    }
                    Some((status, answer)) if status < 500 && status != 404 => {
                        panic!("the follower will not follow: {status} {answer}")
                    }
                    _ => env.sleep(Duration::from_millis(300)).await,
                }
            }
        }
    }

    async fn have_faults(&self) {
        let began = self.env.now();
        // By the moment; beginnings before ends.
        let mut moments: BTreeMap<(u64, usize), (usize, bool)> = BTreeMap::new();
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            moments.insert((fault.at_ms, 2 * number), (number, true));
            moments.insert((fault.at_ms + fault.lasts_ms, 2 * number + 1), (number, false));
        }
        for ((at_ms, _), (number, begins)) in moments {
            self.env.sleep_until(began + Duration::from_millis(at_ms)).await;
            let what = &self.scenario.faults[number].what;
            if begins { self.begin(what) } else { self.end(what) }
        }
    }

    fn begin(&self, what: &What) {
        match *what {
            What::Kill(side, node) | What::Damage(side, node, _) => self.site(side).kill(node),
            What::KillAll(side) => {
                (0..self.site(side).len()).for_each(|node| self.site(side).kill(node));
            }
            What::Stop(side, node) => self.site(side).clone().stop(node),
            What::Pause(side, node) => self.site(side).pause(node, true),
            What::Cut => self.links.iter().for_each(Link::cut),
            What::CutOff(side, node) => self.site(side).cut_off(node, true),
            What::FullDisk(side, node, bytes) => {
                store::set_disk_free_bytes(&self.site(side).host(node), Some(bytes));
            }
            What::Flush(side) => self.request(side, format!("/{}/_flush", index_of(side))),
            What::PauseFollowing | What::Unfollow => {
                self.request(Side::Follower, "/b/_ccr/pause_follow");
            }
            What::MoveClock(side, node, by_ms) => {
                self.site(side).host(node).move_clock(by_ms);
            }
            What::Move(side, drawn) => self.move_copy(side, drawn),
            What::Drain(side, node) => self.exclude(side, Some(node)),
        }
    }

    /// Has the manager move a copy, as far as it is there.
    fn move_copy(&self, side: Side, drawn: u64) {
        let (site, moves) = (self.site(side).clone(), self.moves.clone());
        let Some(chosen) = site.node(0).and_then(|node| choose(&node.state(), drawn)) else {
            return;
        };
        let env = self.env.clone();
        self.keep("moves a copy", async move {
            let mut client = Client::new(&env, "operator", PATIENCE);
            let body = Bytes::from(chosen.body.to_string());
            let asked = client.ask(&site.http(0), "POST", "/_cluster/reroute", body).await;
            if asked.is_some_and(|(status, _)| status == 200) {
                let count = if chosen.is_primary { &moves.primaries } else { &moves.replicas };
                count.set(count.get() + 1);
                let place = (chosen.index, chosen.shard, chosen.to_node);
                moves.under_way.borrow_mut().insert(drawn, place);
            }
        });
    }

    /// Has the manager give up a move, where it goes on still.
    fn cancel_move(&self, side: Side, drawn: u64) {
        let place = self.moves.under_way.borrow_mut().remove(&drawn);
        let (Some((index, shard, node)), Some(manager)) = (place, self.site(side).node(0)) else {
            return;
        };
        let state = manager.state();
        let routing = state.shard(&index, shard);
        if !routing.and_then(|routing| routing.on_node(&node)).is_some_and(|copy| copy.is_target())
        {
            return;
        }
        let cancel = json!({ "index": index, "shard": shard, "node": node });
        let body = json!({ "commands": [{ "cancel": cancel }] }).to_string();
        let address = self.site(side).http(0);
        self.ask("gives up a move", address, ("POST", "/_cluster/reroute".into()), body);
    }

    fn exclude(&self, side: Side, node: Option<usize>) {
        let body = exclusion(node.map(|node| format!("{}-{node}", name_of(side)))).to_string();
        let address = self.site(side).http(0);
        self.ask("says where copies may be", address, ("PUT", "/_cluster/settings".into()), body);
    }

    fn end(&self, what: &What) {
        match *what {
            What::Kill(side, node) | What::Stop(side, node) => {
                self.site(side).clone().bring_up(node);
            }
            What::Damage(side, node, drawn) => self.damage(side, node, drawn),
            What::KillAll(side) => {
                (0..self.site(side).len()).for_each(|node| self.site(side).clone().bring_up(node));
            }
            What::Pause(side, node) => self.site(side).pause(node, false),
            What::Cut => self.links.iter().for_each(Link::heal),
            What::CutOff(side, node) => self.site(side).cut_off(node, false),
            What::FullDisk(side, node, _) => {
                store::set_disk_free_bytes(&self.site(side).host(node), None);
            }
            What::Flush(_) => {}
            What::PauseFollowing => self.request(Side::Follower, "/b/_ccr/resume_follow"),
            What::MoveClock(side, node, by_ms) => {
                self.site(side).host(node).move_clock(-by_ms);
            }
            What::Unfollow => self.request(Side::Follower, "/b/_ccr/unfollow"),
            What::Move(side, drawn) => self.cancel_move(side, drawn),
            What::Drain(side, _) => self.exclude(side, None),
        }
    }

    /// Asks a node that is there, whatever becomes of it.
    fn request(&self, side: Side, path: impl Into<String>) {
        let number = self.scenario.seed as usize % self.site(side).len();
        let address = self.site(side).http(number);
        self.ask("asks for something", address, ("POST", path.into()), String::new());
    }

    /// An operator asks a node, and need not hear of it.
    fn ask(
        &self,
        name: &'static str,
        address: String,
        (method, path): (&'static str, String),
        body: String,
    ) {
        let env = self.env.clone();
        self.keep(name, async move {
            let mut client = Client::new(&env, "operator", PATIENCE);
            let _ = client.ask(&address, method, &path, body.into()).await;
        });
    }

    /// Ends every fault.
    fn mend(&self) {
        self.links.iter().for_each(Link::heal);
        for site in &self.sites {
            for node in 0..site.len() {
                site.pause(node, false);
                site.cut_off(node, false);
                store::set_disk_free_bytes(&site.host(node), None);
                site.clone().bring_up(node);
            }
        }
    }

    /// What an operator does: starts nodes, has the manager try again what it gave up, resumes.
    async fn help(&self) {
        for site in &self.sites {
            (0..site.len()).for_each(|node| site.clone().bring_up(node));
        }
        // Before what is tried again forgets why it failed.
        for side in self.followers() {
            self.help_follower(side).await;
        }
        for site in &self.sites {
            if let Some(manager) = site.node(0) {
                let path = "/_cluster/reroute?retry_failed=true";
                direct(&manager, "POST", path, Value::Null).await;
                if self.scenario.faults.iter().any(|fault| matches!(fault.what, What::Drain(..))) {
                    direct(&manager, "PUT", "/_cluster/settings", exclusion(None)).await;
                }
            }
        }
    }

    async fn help_follower(&self, side: Side) {
        let Some(node) = self.site(side).node(0) else { return };
        let index = index_of(side);
        direct(&node, "POST", &format!("/{index}/_ccr/resume_follow"), Value::Null).await;
        if !node.state().indices.contains_key(index) {
            // The request that made it failed in the end, and what it made went with it.
            let _ = self.env.timeout(Duration::from_secs(60), self.follow(side, 0)).await;
        }
        let stats = self.stats(side).await;
        let shards = stats["indices"][0]["shards"].as_array().cloned().unwrap_or_default();
        let is_lost = |shard: &Value| match shard["fatal_exception"]["type"].as_str() {
            Some("resource_not_found_exception") => {
                shard["narrows"].get("recovered_from_remote_again").is_some()
            }
            // What it followed was made anew.
            Some("index_not_found_exception") => side == Side::Last,
            _ => false,
        };
        // The same of a copy that had not begun yet.
        let is_of_another = |copy: &ShardCopy| {
            let why = copy.last_failure.as_deref();
            side == Side::Last && why.is_some_and(|why| why.contains("follow it anew"))
        };
        let state = node.state();
        let mut copies = state.routing.get(index).into_iter().flat_map(|shards| shards.iter());
        let cannot_begin = copies.any(|shard| shard.copies.iter().any(is_of_another));
        // It recovers by itself once; an operator begins anew.
        if cannot_begin || shards.iter().any(is_lost) {
            direct(&node, "DELETE", &format!("/{index}"), Value::Null).await;
            // Where that takes longer, the next time goes on with it.
            let _ = self.env.timeout(Duration::from_secs(60), self.follow(side, 0)).await;
        }
    }

    fn replicas_of(&self, side: Side) -> u32 {
        match side {
            Side::Leader => self.scenario.leader_replicas,
            Side::Follower => self.scenario.follower_replicas,
            Side::Last => self.scenario.follower_replicas.min(self.scenario.last as u32 - 1),
        }
    }

    async fn stats(&self, side: Side) -> Value {
        match self.site(side).node(0) {
            Some(node) => {
                let path = format!("/{}/_ccr/stats", index_of(side));
                direct(&node, "GET", &path, Value::Null).await.1
            }
            None => Value::Null,
        }
    }
}
