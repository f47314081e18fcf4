//! A cluster that was not started here. What a run creates and sets there is written to a [`Journal`] first, and taken
//! back at the end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, ready};
use record::observation::{Identity, Scope};
use serde_json::{Map, Value, json};
use world::{Task, Time};

use super::change::{Change, Kept, SettingValue};
use super::index_names::{INDEX_PREFIX, is_of_a_run};
use super::journal::Journal;
use super::lease::{Lease, Leased, RENEWED, lease_wait_sentence};
use super::settings::{
    ClusterSettings, Journaled, PutBack, SETTINGS, check_cluster, comes_until, may_come_for,
    put_back, settle, text,
};
use crate::live::{LiveClient, LiveOptions, ask_version, check_version};
use crate::{Answer, Credentials, Error, FollowApi, Result};

/// Settings with the addresses of remote clusters. An existing alias may be in use: it is never overwritten.
const REMOTES: &str = "cluster.remote.";
/// What goes on with scrolls and points in time, and ends them, by ids that only those know who opened them.
const OF_SEARCHES: [&str; 3] = ["/_search/scroll", "/_search/point_in_time", "/_pit"];
/// Copies given up by hand, alone and with no more of the answer than is wanted.
const REROUTE: [&str; 2] = ["/_cluster/reroute", "/_cluster/reroute?filter_path=acknowledged"];
/// What makes an index of any other name, which would be in no journal.
const MAKES_ANOTHER: [&str; 4] = ["_clone", "_rollover", "_shrink", "_split"];
/// A request that only a cluster with cross-cluster replication answers.
const CCR: &str = "/_ccr/stats?filter_path=follow_stats.indices.index";
/// A request that only OpenSearch with its plugin for cross-cluster replication answers.
const PLUGIN: &str = "/_plugins/_replication/follower_stats?filter_path=num_syncing_indices";
/// A request that is answered once the manager has done all that it was asked before.
const ALL_DONE: &str = "/_cluster/health?wait_for_events=languid&timeout=30s";
/// Requests to follow an index of another cluster that are under way, through either API.
const FOLLOWS_BEGIN: &str =
    "/_tasks?actions=*ccr/put_follow*,*replication/index/start*&filter_path=nodes.*.tasks.*.action";
/// How long they are waited for, and how often they are asked for.
const FOLLOWS_BEGIN_MAX: Duration = Duration::from_secs(30);
const FOLLOWS_BEGIN_EVERY: Duration = Duration::from_millis(250);
/// How long writes that are under way are waited for before their index is deleted, as long as writers wait for an
/// answer, and how often they are counted.
const WRITES_END_MAX: Duration = Duration::from_secs(30);
const WRITES_END_EVERY: Duration = Duration::from_millis(50);
/// How long one answer may take where a cluster is put back: the removal of an index takes its time.
pub const PUT_BACK_PATIENCE: Duration = Duration::from_secs(60);

/// How a cluster identifies itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterIdentity {
    /// `cluster_uuid`.
    pub uuid: String,
    /// Whether it runs the embedded engine.
    pub embedded: bool,
    /// Whether it presents itself as OpenSearch.
    pub is_opensearch: bool,
    /// Its name, flavour and version.
    pub version: Identity,
}

impl ClusterIdentity {
    /// Asks a cluster.
    pub async fn ask(client: &LiveClient) -> Result<ClusterIdentity> {
        let (root, version) = ask_version(client).await?;
        Ok(ClusterIdentity {
            uuid: root["cluster_uuid"].as_str().unwrap_or_default().to_owned(),
            embedded: version.flavour == "narrows",
            is_opensearch: root["version"]["distribution"] == "opensearch"
                || version.flavour == "opensearch",
            version,
        })
    }

    /// As [`ClusterIdentity::ask`], before something is changed: refuses a cluster that is red, and a version that
    /// narrows was not built for unless `any_version`.
    pub async fn ask_before_changes(
        client: &LiveClient,
        any_version: bool,
    ) -> Result<ClusterIdentity> {
        let identity = ClusterIdentity::ask(client).await?;
        if !any_version {
            check_version(&identity.version)?;
        }
        let health = client.get("/_cluster/health?filter_path=status,unassigned_shards").await?;
        if health["status"] == "red" {
            let unassigned = health["unassigned_shards"].as_u64().unwrap_or(0);
            return Err(Error::Red { unassigned });
        }
        Ok(identity)
    }
}

/// Why nothing is asked of a cluster any more.
#[derive(Clone)]
enum Lost {
    /// Somebody else has the lease by now.
    Lease { holder: String },
    /// Another cluster answers by now: a bulk would make its index there, which no journal names.
    Cluster { found: String },
}

/// A live cluster that may be changed.
pub struct LiveCluster {
    pub(crate) client: LiveClient,
    pub(crate) end_client: LiveClient,
    pub(crate) identity: ClusterIdentity,
    journal: RefCell<Option<Journal>>,
    /// None before it is taken, and where the cluster keeps none.
    lease: RefCell<Option<Rc<Lease>>>,
    lost: RefCell<Option<Lost>>,
    /// Each write that is under way has it, too.
    writes: Rc<()>,
}

impl Journaled for &LiveCluster {
    fn client(&self) -> &LiveClient {
        &self.client
    }

    fn cluster_uuid(&self) -> &str {
        &self.identity.uuid
    }

    fn record(&mut self, change: Change) -> Result<usize> {
        self.write_down(change)
    }

    fn answered(&mut self, change: usize) {
        if let Some(journal) = self.journal.borrow_mut().as_mut() {
            journal.answered(change);
        }
    }
}

impl LiveCluster {
    /// A cluster whose changes are written to `journal`, which is that of this very cluster. Where they are put back,
    /// `end_client` asks it: nobody waits for that as long as for what is measured.
    pub fn new(
        mut client: LiveClient,
        mut end_client: LiveClient,
        identity: ClusterIdentity,
        journal: Journal,
    ) -> Self {
        client.before_each_change(journal.stamp());
        end_client.before_each_change(journal.stamp());
        let journal = RefCell::new(Some(journal));
        let (lease, lost) = (RefCell::default(), RefCell::default());
        LiveCluster { client, end_client, identity, journal, lease, lost, writes: Rc::default() }
    }

    /// Takes the lease for `holder`, so that neither this run nor whoever steers puts back what the other has set. The
    /// task that is returned renews it as long as it lives; where the cluster keeps none, it looks who answers. `tell`
    /// says what there is to be said of another holder.
    pub(crate) async fn hold(
        self: &Rc<Self>,
        holder: &str,
        tell: &dyn Fn(&str),
    ) -> Result<Task<()>> {
        let env = self.client.env();
        let waits = |other: &str| tell(&lease_wait_sentence(other));
        let leased = Lease::take(env, &mut &**self, holder, waits).await?;
        if let Some(sentence) = leased.sentence() {
            tell(&sentence);
        }
        let lease = if let Leased::Ours(lease, _) = leased { Some(Rc::new(lease)) } else { None };
        self.lease.replace(lease.clone());
        let cluster = self.clone();
        let renews = async move {
            loop {
                cluster.client.sleep_until(cluster.client.now() + RENEWED).await;
                let found = match &lease {
                    Some(lease) => lease.renew_in_time(&mut &*cluster).await,
                    None => check_cluster(&cluster.client, &cluster.identity.uuid).await,
                };
                let lost = match found {
                    Err(Error::Leased { holder }) => Lost::Lease { holder },
                    Err(Error::OtherCluster { found, .. }) => Lost::Cluster { found },
                    // Where it fails otherwise, that is tried again, and before the next change at the latest.
                    _ => continue,
                };
                cluster.lost.replace(Some(lost));
                return;
            }
        };
        Ok(env.spawn("lease", renews))
    }

    /// The lease, where it was taken.
    fn held(&self) -> Option<Rc<Lease>> {
        self.lease.borrow().clone()
    }

    /// Sends a request, after journaling what it changes, and waits for its answer as long as `limit`. Settings are
    /// changed as long as the lease is held, and nothing is asked any more where that was lost, or the cluster itself.
    pub(crate) async fn request(
        &self,
        limit: Duration,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        match self.lost.borrow().clone() {
            None => {}
            Some(Lost::Lease { holder }) => return Err(Error::Leased { holder }),
            Some(Lost::Cluster { found }) => {
                let expected = self.identity.uuid.clone();
                return Err(Error::OtherCluster { expected, found });
            }
        }
        let mut there = self;
        let lease = self.held().filter(|_| sets(method, path));
        if let Some(lease) = &lease {
            lease.renew_in_time(&mut there).await?;
        }
        let (body, change) = self.journal_before(method, path, body).await?;
        let _is_under_way = writes(path).then(|| self.writes.clone());
        let unanswered = self.client.unanswered();
        let asked = self.client.request(limit, method, path, body);
        let answer = match &lease {
            Some(lease) => lease.while_held(asked).await,
            None => asked.await,
        };
        if let Some(change) = change
            && self.client.unanswered() == unanswered
        {
            there.answered(change);
        }
        answer
    }

    /// Puts all settings back; [`LiveCluster::settle`] does the rest. None where that was begun before.
    pub(crate) async fn put_back(&self) -> Option<Result<Unsettled>> {
        let journal = self.journal.take()?;
        Some(restore_until(&self.end_client, journal, comes_until(&self.client)).await)
    }

    /// As [`Unsettled::settle`]. The lease is renewed before, where late changes are looked for.
    pub(crate) async fn settle(&self, mut put_back: Unsettled) -> Result<Vec<String>> {
        let client = &self.end_client;
        if let Some(lease) = self.held()
            && !put_back.may_come_for(client).is_zero()
        {
            // Where that fails, or somebody else has it by now, they are looked for all the same.
            lease.renew(&mut (client, &mut put_back.journal)).await.ok();
            put_back.ends = put_back.ends.max(comes_until(client));
        }
        put_back.settle_after(self.writes_end(), client).await
    }

    /// Waits until the writes that are under way are answered or given up: one that comes once its index is deleted
    /// makes it anew.
    async fn writes_end(&self) {
        let gives_up = self.client.now() + WRITES_END_MAX;
        while Rc::strong_count(&self.writes) > 1 && self.client.now() < gives_up {
            self.client.sleep_until(self.client.now() + WRITES_END_EVERY).await;
        }
    }

    /// Journals what a request is about to change; returns the body to send, and the number of the change. Refuses to
    /// change what does not belong to the run.
    async fn journal_before(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<(Bytes, Option<usize>)> {
        let bare = without_query(path);
        let parts: Vec<&str> = bare.split('/').filter(|part| !part.is_empty()).collect();
        if matches!(method, "GET" | "HEAD") || OF_SEARCHES.contains(&bare) {
            return Ok((body, None));
        }
        // A writer of a run that was interrupted may go on, and would make anew the index that is deleted.
        if self.journal.borrow().is_none() {
            return Err(Error::NotOurs { method: method.to_owned(), path: path.to_owned() });
        }
        if sets(method, path) {
            return self.journal_before_settings(&body).await;
        }
        if method == "POST" && REROUTE.contains(&path) && self.gives_up_own_copies(&body) {
            return Ok((body, None));
        }
        // Whoever stands before a cluster may read dots as another path.
        let is_dots = |part: &&str| part.trim_matches('.').is_empty();
        match parts.as_slice() {
            parts
                if parts.iter().any(is_dots)
                    || parts.get(1).is_some_and(|api| MAKES_ANOTHER.contains(api)) =>
            {
                Err(Error::NotOurs { method: method.to_owned(), path: path.to_owned() })
            }
            // To follow creates an index, too.
            [name] | [name, "_ccr", "follow"] | ["_plugins", "_replication", name, "_start"]
                if is_of_a_run(name) && method == "PUT" =>
            {
                check_cluster(&self.client, &self.identity.uuid).await?;
                let change = Change::Index { name: (*name).to_owned() };
                Ok((body, Some(self.write_down(change)?)))
            }
            [name, ..] | ["_plugins", "_replication", name, _] if are_of_runs(name) => {
                Ok((body, None))
            }
            _ => Err(Error::NotOurs { method: method.to_owned(), path: path.to_owned() }),
        }
    }

    /// Whether a reroute does nothing but give up replicas of indices that were made here, which are in the journal.
    fn gives_up_own_copies(&self, body: &[u8]) -> bool {
        let asked: Value = serde_json::from_slice(body).unwrap_or_default();
        let journal = self.journal.borrow();
        let own = journal.as_ref().map(Journal::indices).unwrap_or_default();
        let is_own = |command: &Value| {
            let cancel = &command["cancel"];
            command.as_object().is_some_and(|members| members.len() == 1)
                && cancel["index"].as_str().is_some_and(|index| own.contains(index))
                && cancel.get("allow_primary").is_none()
        };
        let commands = asked["commands"].as_array().filter(|commands| !commands.is_empty());
        commands.is_some_and(|commands| commands.iter().all(is_own))
    }

    /// Journals an index that others make, be it after they have given up their requests.
    pub(crate) fn will_make(&self, index: &str) -> Result<()> {
        self.write_down(Change::Index { name: index.to_owned() }).map(drop)
    }

    fn write_down(&self, change: Change) -> Result<usize> {
        match self.journal.borrow_mut().as_mut() {
            Some(journal) => journal.record(change),
            None => {
                Err(Error::NotOurs { method: "PUT".to_owned(), path: "it has ended".to_owned() })
            }
        }
    }

    /// The text of a value as the cluster tells it later: the embedded engine keeps `1gb` where `1024mb` is set.
    fn kept(&self, name: &str, value: &Value) -> String {
        let text = text(value);
        match self.identity.embedded {
            true => engine::settings::check(name, &text).unwrap_or(text),
            false => text,
        }
    }

    /// As [`LiveCluster::journal_before`], for settings. Null stands for the value before the run, which need not be
    /// the default.
    async fn journal_before_settings(&self, body: &Bytes) -> Result<(Bytes, Option<usize>)> {
        let not_json = |error: serde_json::Error| Error::NotJson {
            path: SETTINGS.to_owned(),
            reason: error.to_string(),
        };
        let asked: Value = serde_json::from_slice(body).map_err(not_json)?;
        let asked = asked["persistent"].as_object().cloned().unwrap_or_default();
        check_cluster(&self.client, &self.identity.uuid).await?;
        let there = ClusterSettings::ask(&self.client).await?;
        if let Some(lease) = self.held() {
            lease.check(&there)?;
        }
        let now = |name: &str| there.at(Scope::Persistent).get(name).cloned();
        let original = |name: &str| {
            let journal = self.journal.borrow();
            let known = journal
                .as_ref()
                .and_then(|journal| journal.original(Scope::Persistent, name).cloned());
            known.unwrap_or_else(|| now(name))
        };
        let has_set = |name: &str, value: &SettingValue| {
            let journal = self.journal.borrow();
            let value = value.as_deref();
            journal.as_ref().is_some_and(|it| it.has_set(Scope::Persistent, name, value))
        };
        let mut before: BTreeMap<String, SettingValue> = BTreeMap::new();
        let mut set: BTreeMap<String, SettingValue> = BTreeMap::new();
        for (name, value) in &asked {
            // A cluster takes that for all settings whose names begin so, and the journal has one.
            if name.contains('*') {
                let (method, path) = ("PUT".to_owned(), format!("{name} of {SETTINGS}"));
                return Err(Error::NotOurs { method, path });
            }
            if let Some(value) = there.at(Scope::Transient).get(name) {
                let (name, value) = (name.clone(), value.clone());
                return Err(Error::Transient { name, value });
            }
            let found = original(name);
            if name.starts_with(REMOTES) && found.is_some() && found != Some(text(value)) {
                return Err(Error::RemoteTaken { name: name.clone() });
            }
            // Whoever runs the cluster may have had a reason, and wants to find it so at the end.
            let now = now(name);
            if now != found && !has_set(name, &now) {
                let (name, found) = (name.clone(), "as this run had set it".to_owned());
                let now = now.unwrap_or_else(|| "not set".to_owned());
                return Err(Error::ChangedMeanwhile { name, found, now });
            }
            before.insert(name.clone(), found);
            let value = if value.is_null() { original(name) } else { Some(self.kept(name, value)) };
            set.insert(name.clone(), value);
        }
        let body = json!({ "persistent": set });
        let change = self.write_down(Change::Settings { scope: Scope::Persistent, before, set })?;
        Ok((Bytes::from(body.to_string()), Some(change)))
    }
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

/// Whether a request sets settings of the cluster.
fn sets(method: &str, path: &str) -> bool {
    without_query(path) == SETTINGS && method == "PUT"
}

/// Whether a request writes documents, which makes an index that is not there.
fn writes(path: &str) -> bool {
    let api = without_query(path).split('/').nth(2);
    matches!(api, Some("_bulk" | "_create" | "_doc" | "_update"))
}

/// Whether all indices that a path names are called as those of runs: `narrows-a-*,-narrows-a-1`.
fn are_of_runs(names: &str) -> bool {
    let is_own = |name: &str| name.strip_prefix('-').unwrap_or(name).starts_with(INDEX_PREFIX);
    names.starts_with(INDEX_PREFIX) && !names.contains('%') && names.split(',').all(is_own)
}

/// How a cluster follows the indices of another one. Fails with [`Error::NoFollowing`] where it cannot.
pub async fn follow_api(client: &LiveClient, identity: &ClusterIdentity) -> Result<FollowApi> {
    let apis = [(FollowApi::Ccr, CCR), (FollowApi::Plugin, PLUGIN)];
    // A cluster that has one of them may refuse to answer the other with anything but "no handler".
    let order = if identity.is_opensearch { [1, 0] } else { [0, 1] };
    let mut refusals = Vec::new();
    for (api, path) in order.map(|at| apis[at]) {
        match client.get(path).await {
            Ok(_) => return Ok(api),
            Err(error @ (Error::Refused { .. } | Error::Forbidden { .. })) => {
                refusals.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let Identity { flavour, version, .. } = &identity.version;
    Err(Error::NoFollowing { cluster: format!("{flavour} {version}"), refusals })
}

/// What to type so that what a run has changed is put back. Credentials go to no host that only its journal names.
pub fn restore_command(dir: &Path, options: &LiveOptions) -> String {
    let on = if options.credentials == Credentials::None { "" } else { " --on URL" };
    format!("narrows restore {}{on}", dir.display())
}

/// What is left to be done where the settings in a journal were put back. Of several clusters those of all are put
/// back before one is waited for. Dropped, it leaves the journal.
#[must_use]
pub struct Unsettled {
    journal: Journal,
    identity: ClusterIdentity,
    done: PutBack,
    /// Until when changes may come.
    ends: Time,
}

impl Unsettled {
    /// How long settings may be changed yet.
    pub fn may_come_for(&self, client: &LiveClient) -> Duration {
        may_come_for(client, &self.journal, self.ends)
    }

    /// A sentence for each setting that is what it was again.
    pub fn again(&self) -> &[String] {
        &self.done.again
    }

    /// Removes indices, of which one that may be made yet is waited for, and waits meanwhile until no change comes any
    /// more, each of which is put back, too. Then it removes the journal. What someone else has changed is left; it
    /// returns a sentence for each. Errors leave the journal, so that it can be tried again.
    pub async fn settle(self, client: &LiveClient) -> Result<Vec<String>> {
        self.settle_after(ready(()), client).await
    }

    /// As [`Unsettled::settle`], which removes no index before `writes_end`.
    async fn settle_after(
        self,
        writes_end: impl Future<Output = ()>,
        client: &LiveClient,
    ) -> Result<Vec<String>> {
        let Unsettled { journal, identity, mut done, ends } = self;
        let settles = settle(client, &journal, ends, &mut done);
        let removes = async {
            writes_end.await;
            remove_all(client, &identity, &journal).await
        };
        // Neither a wait nor a failure of one keeps the other from being done.
        let (removed, settled) = join(removes, settles).await;
        settled.and(removed)?;
        journal.finish()?;
        Ok(done.left)
    }
}

/// Puts back the settings in the journal of a run that was killed; [`Unsettled::settle`] does the rest. Errors leave
/// the journal, so that it can be tried again.
pub async fn restore(client: &LiveClient, journal: Journal) -> Result<Unsettled> {
    let ends = client.now() + journal.may_come_for();
    restore_until(client, journal, ends).await
}

/// As [`restore`], where changes may come until then.
async fn restore_until(client: &LiveClient, journal: Journal, ends: Time) -> Result<Unsettled> {
    let identity = ClusterIdentity::ask(client).await?;
    if identity.uuid != journal.head().cluster_uuid {
        let expected = journal.head().cluster_uuid.clone();
        return Err(Error::OtherCluster { expected, found: identity.uuid });
    }
    let done = put_back(client, &journal, &Kept::new()).await?;
    Ok(Unsettled { journal, identity, done, ends })
}

/// Deletes the indices of a journal.
async fn remove_all(
    client: &LiveClient,
    identity: &ClusterIdentity,
    journal: &Journal,
) -> Result<()> {
    for index in journal.indices() {
        remove(client, identity, index, journal.late().may_be_made(index)).await?;
    }
    Ok(())
}

/// Deletes an index. One that is not there and may be made yet is waited for: the request to delete it would not stand
/// in line behind the one that makes it.
async fn remove(
    client: &LiveClient,
    identity: &ClusterIdentity,
    index: &str,
    mut may_be_made: bool,
) -> Result<()> {
    loop {
        if identity.is_opensearch {
            stop_following(client, index).await?;
        }
        match client.ask("DELETE", &format!("/{index}"), &Value::Null).await {
            Err(Error::Refused { status: 404, .. }) if may_be_made => {
                until_followers_began(client, index).await?;
                until_all_is_done(client, index).await?;
                may_be_made = false;
            }
            Ok(_) | Err(Error::Refused { status: 404, .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Waits until no follower is being begun. Until its leader has been asked, nobody has asked the manager for its index,
/// and neither a request that is given up nor a connection that breaks ends that.
async fn until_followers_began(client: &LiveClient, index: &str) -> Result<()> {
    let gives_up = client.now() + FOLLOWS_BEGIN_MAX;
    loop {
        match client.get(FOLLOWS_BEGIN).await {
            Ok(tasks) if tasks["nodes"].as_object().is_none_or(Map::is_empty) => return Ok(()),
            Ok(_) if client.now() >= gives_up => {
                return Err(Error::Busy { index: index.to_owned() });
            }
            Ok(_) => client.sleep_until(client.now() + FOLLOWS_BEGIN_EVERY).await,
            // Where the list is refused nobody can tell, and the manager's queue has to do.
            Err(error) if error.is_absent() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Waits until the manager has done all that it was asked before.
async fn until_all_is_done(client: &LiveClient, index: &str) -> Result<()> {
    match client.get(ALL_DONE).await {
        Ok(health) if health["timed_out"] != true => Ok(()),
        // Releases say with either status that the time was over.
        Ok(_) | Err(Error::Refused { status: 408, .. }) => {
            Err(Error::Busy { index: index.to_owned() })
        }
        Err(error) => Err(error),
    }
}

/// OpenSearch's plugin goes on to follow with what it knows of an index that is deleted. An index that follows nobody
/// is refused, and so is the request by a cluster without the plugin: that is as good.
async fn stop_following(client: &LiveClient, index: &str) -> Result<()> {
    let path = format!("/_plugins/_replication/{index}/_stop");
    match client.ask("POST", &path, &json!({})).await {
        Ok(_) | Err(Error::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
