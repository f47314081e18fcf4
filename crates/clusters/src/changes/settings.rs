//! Settings of a cluster that was not started here: reading them, changing one for a while, and putting it back.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::{Scope, Setting};
use serde_json::{Value, json};
use world::Time;

use super::change::{Change, Kept, SettingValue, Values};
use super::journal::Journal;
use super::late::COMES_LATE_MAX;
use super::settings_back::{SettingsBack, hidden};
use crate::live::LiveClient;
use crate::{Error, Result};

pub(crate) const SETTINGS: &str = "/_cluster/settings";
/// Whoever changes a cluster for a while says so in this setting (`lease.rs`). It is given back last: as long as
/// changes may come late, nobody else is to begin.
pub(super) const LEASE: &str = "cluster.metadata.narrows_steerer";
/// What a node of the field calls its cluster before it has joined one.
const NOT_JOINED: &str = "_na_";
/// How often settings are looked at while changes may come late.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// The scopes in which a cluster's settings can be set, with their names in its API.
const SCOPES: [(Scope, &str); 2] =
    [(Scope::Persistent, "persistent"), (Scope::Transient, "transient")];

/// A setting's value as text. A list is returned as an array and set as text with commas: both are the same here.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The settings that are set, by scope, without defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterSettings {
    persistent: BTreeMap<String, String>,
    transient: BTreeMap<String, String>,
}

impl ClusterSettings {
    /// Asks a cluster for them.
    pub(crate) async fn ask(client: &LiveClient) -> Result<ClusterSettings> {
        let answer = client.get(&format!("{SETTINGS}?flat_settings=true")).await?;
        // Every release tells them, also where none is set.
        if !answer["persistent"].is_object() {
            let reason = "an object with \"persistent\" was expected".to_owned();
            return Err(Error::NotJson { path: SETTINGS.to_owned(), reason });
        }
        let flat = |rank: &str| {
            let pairs = answer[rank].as_object().into_iter().flatten();
            pairs.map(|(name, value)| (name.clone(), text(value))).collect()
        };
        Ok(ClusterSettings { persistent: flat("persistent"), transient: flat("transient") })
    }

    /// The settings of a scope; the scope of defaults has none.
    pub(crate) fn at(&self, scope: Scope) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        match scope {
            Scope::Persistent => &self.persistent,
            Scope::Transient => &self.transient,
            Scope::Default => NONE,
        }
    }

    /// The scope and the value of a setting that count: a transient value hides a persistent one.
    pub(super) fn effective(&self, name: &str) -> Option<(Scope, &String)> {
        let at = |scope| self.at(scope).get(name).map(|value| (scope, value));
        at(Scope::Transient).or_else(|| at(Scope::Persistent))
    }
}

/// What came of putting settings back.
#[derive(Debug, Default)]
pub struct PutBack {
    /// A sentence for each setting that is what it was again.
    pub again: Vec<String>,
    /// A sentence for each setting that someone else has changed since, which is left.
    pub left: Vec<String>,
    /// What the settings of each scope are to stay.
    stays: [Values; SCOPES.len()],
    /// When the cluster was last asked for them.
    looked: Time,
    /// What the cluster says of a value that it does not take back. It keeps nothing else from being put back:
    /// [`BorrowedSettings::settle`] fails with it once all else is done.
    pub refused: Option<Error>,
}

/// Puts back the settings in a journal, but for the lease; those that are `kept` to what they are there. The journal
/// stays, and [`settle`] ends it.
pub(super) async fn put_back(
    client: &LiveClient,
    journal: &Journal,
    kept: &Kept,
) -> Result<PutBack> {
    put_back_these(client, journal, kept, |name| name != LEASE).await
}

async fn put_back_these(
    client: &LiveClient,
    journal: &Journal,
    kept: &Kept,
    which: impl Fn(&str) -> bool + Copy,
) -> Result<PutBack> {
    let mut done = PutBack { looked: client.now(), ..PutBack::default() };
    if !journal.has_changed(which) {
        return Ok(done);
    }
    let there = ClusterSettings::ask(client).await?;
    for ((scope, rank), stays) in SCOPES.into_iter().zip(&mut done.stays) {
        let back = SettingsBack::of(journal, scope, there.at(scope), kept, which);
        done.refused = set(client, rank, &back.set).await?.or(done.refused);
        done.again.extend(back.sentences());
        for (name, value) in back.again {
            done.refused = set_again(client, rank, &name, &value).await?.or(done.refused);
        }
        done.left.extend(back.left);
        *stays = back.stays;
    }
    done.left.extend(hidden(journal, there.at(Scope::Transient), which));
    Ok(done)
}

/// Waits, behind [`put_back`], until nothing comes any more, and gives the lease back. A change that one host was sent
/// and did not answer may still be held up there, and so be made after what is sent to another one: until `ends` what
/// comes so is put back, too. Refuses another cluster than the journal's. Where this fails or is dropped, it may be
/// tried again.
pub(super) async fn settle(
    client: &LiveClient,
    journal: &Journal,
    ends: Time,
    done: &mut PutBack,
) -> Result<()> {
    let expected = &journal.head().cluster_uuid;
    while journal.late().settings_may_come() && done.looked < ends {
        client.sleep_until(client.now() + LOOKED_AT_EVERY).await;
        check_cluster(client, expected).await?;
        let looked = client.now();
        let there = ClusterSettings::ask(client).await?;
        for ((scope, rank), stays) in SCOPES.into_iter().zip(&mut done.stays) {
            let came = journal.late().came(scope, there.at(scope), stays);
            done.refused = set(client, rank, &came).await?.or(done.refused.take());
        }
        done.looked = looked;
    }
    if journal.has_changed(|name| name == LEASE) {
        check_cluster(client, expected).await?;
    }
    let lease = put_back_these(client, journal, &Kept::new(), |name| name == LEASE).await?;
    done.left.extend(lease.left);
    done.refused.take().or(lease.refused).map_or(Ok(()), Err)
}

/// Until when changes may come that this client was not answered.
pub(super) fn comes_until(client: &LiveClient) -> Time {
    client.unanswered().sent.map_or(client.now(), |sent| sent + COMES_LATE_MAX)
}

/// How long a change of settings may come yet, where changes may come until `ends`.
pub(super) fn may_come_for(client: &LiveClient, journal: &Journal, ends: Time) -> Duration {
    match journal.late().settings_may_come() {
        true => ends - client.now(),
        false => Duration::ZERO,
    }
}

/// Sets values; what the cluster says where it does not take one. It has set none of them then: each is sent alone, so
/// that it keeps no other one from being set, and again while that brings another one, as some depend on others.
async fn set(client: &LiveClient, rank: &str, values: &Values) -> Result<Option<Error>> {
    if values.is_empty() {
        return Ok(None);
    }
    let mut refused = refusal(client.ask("PUT", SETTINGS, &json!({ rank: values })).await)?;
    let (mut left, mut before): (Vec<_>, usize) = (values.iter().collect(), usize::MAX);
    while refused.is_some() && values.len() > 1 && left.len() < before {
        (before, refused) = (left.len(), None);
        for (name, value) in std::mem::take(&mut left) {
            let body = json!({ rank: BTreeMap::from([(name, value)]) });
            if let Some(error) = refusal(client.ask("PUT", SETTINGS, &body).await)? {
                left.push((name, value));
                refused = Some(error);
            }
        }
    }
    Ok(refused)
}

/// What the cluster says where it does not take a value, or does not know the setting.
fn refusal<T>(answer: Result<T>) -> Result<Option<Error>> {
    match answer {
        Err(error @ Error::Refused { status: 400, .. }) => Ok(Some(error)),
        answer => answer.map(|_| None),
    }
}

/// Sets a setting to the value that it has, behind a change that may be made yet. Each alone: of several that are sent
/// together none is set where the cluster does not know one.
async fn set_again(
    client: &LiveClient,
    rank: &str,
    name: &str,
    original: &SettingValue,
) -> Result<Option<Error>> {
    let body = json!({ rank: BTreeMap::from([(name, original)]) });
    let refused = refusal(client.ask("PUT", SETTINGS, &body).await)?;
    // A setting that the cluster does not know: it has refused the change, too.
    Ok(refused.filter(|_| original.is_some()))
}

/// The name of a scope in the API; what nobody set is set for good.
fn rank_of(scope: Scope) -> &'static str {
    SCOPES.iter().find(|(one, _)| *one == scope).map_or("persistent", |rank| rank.1)
}

/// Somebody's cluster, and the journal in which each change of it is written first.
pub trait Journaled {
    /// Who asks the cluster.
    fn client(&self) -> &LiveClient;
    /// Which cluster that is.
    fn cluster_uuid(&self) -> &str;
    /// As [`Journal::record`].
    fn record(&mut self, change: Change) -> Result<usize>;
    /// As `Journal::answered`.
    fn answered(&mut self, change: usize);
}

impl Journaled for (&LiveClient, &mut Journal) {
    fn client(&self) -> &LiveClient {
        self.0
    }

    fn cluster_uuid(&self) -> &str {
        &self.1.head().cluster_uuid
    }

    fn record(&mut self, change: Change) -> Result<usize> {
        self.1.record(change)
    }

    fn answered(&mut self, change: usize) {
        self.1.answered(change);
    }
}

/// Settings of a live cluster that are changed for a while. Each change is journaled before it is made.
pub struct BorrowedSettings {
    client: LiveClient,
    journal: Journal,
}

impl Journaled for BorrowedSettings {
    fn client(&self) -> &LiveClient {
        &self.client
    }

    fn cluster_uuid(&self) -> &str {
        &self.journal.head().cluster_uuid
    }

    fn record(&mut self, change: Change) -> Result<usize> {
        self.journal.record(change)
    }

    fn answered(&mut self, change: usize) {
        self.journal.answered(change);
    }
}

/// Fails where another cluster answers by now, as behind a name or a balancer that was turned to it: it would be
/// changed, and what is not set there would count as put back, and the journal would go.
pub(super) async fn check_cluster(client: &LiveClient, expected: &str) -> Result<()> {
    let root = match client.get("/").await {
        // Who may not ask for this any more has been told it before the first change.
        Err(Error::Forbidden { .. }) => return Ok(()),
        root => root?,
    };
    match root["cluster_uuid"].as_str().filter(|uuid| *uuid != NOT_JOINED) {
        Some(found) if found != expected => {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            Err(Error::OtherCluster { expected, found })
        }
        _ => Ok(()),
    }
}

/// A setting in the scope that counts; none where nobody set it.
pub(super) async fn now(client: &LiveClient, name: &str) -> Result<Option<Setting>> {
    let there = ClusterSettings::ask(client).await?;
    let effective = there.effective(name);
    Ok(effective.map(|(scope, value)| Setting { value: value.clone(), scope }))
}

/// Removes what somebody who died has left, if it is still that. It is in no journal: nobody wants it back.
pub(super) async fn clear(client: &LiveClient, name: &str, found: &Setting) -> Result<()> {
    if now(client, name).await?.as_ref() != Some(found) {
        return Ok(());
    }
    let body = json!({ rank_of(found.scope): BTreeMap::from([(name, Value::Null)]) });
    client.ask("PUT", SETTINGS, &body).await.map(drop)
}

/// Changes a setting in the scope in which it is set; one that is not set becomes persistent. Refuses if it no longer
/// has the value that was `found`: someone else is changing it.
pub(super) async fn set_from(
    there: &mut impl Journaled,
    name: &str,
    found: &Setting,
    to: &str,
) -> Result<()> {
    let settings = ClusterSettings::ask(there.client()).await?;
    let (scope, now) = match settings.effective(name) {
        Some((scope, value)) => (scope, Some(value.clone())),
        None => (Scope::Persistent, None),
    };
    let is_as_found = match found.scope {
        Scope::Default => now.is_none(),
        expected => scope == expected && now.as_ref() == Some(&found.value),
    };
    if !is_as_found {
        let now = now.unwrap_or_else(|| "not set".to_owned());
        let (name, found) = (name.to_owned(), found.value.clone());
        return Err(Error::ChangedMeanwhile { name, found, now });
    }
    let rank = rank_of(scope);
    let one = |value: Option<String>| BTreeMap::from([(name.to_owned(), value)]);
    let (before, set) = (one(now), one(Some(to.to_owned())));
    let body = json!({ rank: set });
    let change = there.record(Change::Settings { scope, before, set })?;
    let unanswered = there.client().unanswered();
    let answer = there.client().ask("PUT", SETTINGS, &body).await;
    if there.client().unanswered() == unanswered {
        there.answered(change);
    }
    answer.map(drop)
}

impl BorrowedSettings {
    /// Settings of the cluster behind `client`, which is that of the journal.
    pub fn new(mut client: LiveClient, journal: Journal) -> BorrowedSettings {
        client.before_each_change(journal.stamp());
        BorrowedSettings { client, journal }
    }

    /// Changes a setting in the scope in which it is set; one that is not set becomes persistent. Refuses if it no
    /// longer has the value that was `found`: someone else is changing it. Refuses another cluster than the journal's.
    pub async fn set(&mut self, name: &str, found: &Setting, to: &str) -> Result<()> {
        self.check_cluster().await?;
        set_from(self, name, found, to).await
    }

    /// Sets a setting that was set here, last to the value `ours`, to an earlier one of its values. Returns a sentence
    /// where someone else has changed it since, and leaves it then.
    pub async fn set_back(
        &mut self,
        name: &str,
        ours: &Setting,
        to: &str,
    ) -> Result<Option<String>> {
        // Of changes that were not answered some were made, and nobody knows which.
        let now = now(&self.client, name).await?;
        let now = now.filter(|now| self.journal.has_set(now.scope, name, Some(&now.value)));
        match self.set(name, now.as_ref().unwrap_or(ours), to).await {
            Err(error @ Error::ChangedMeanwhile { .. }) => Ok(Some(error.to_string())),
            answer => answer.map(|()| None),
        }
    }

    /// Puts one setting back to what it was before the first change; returns a sentence where someone else has changed
    /// it since, and leaves it then. It may be changed again afterwards. Refuses another cluster than the journal's.
    pub async fn give_back(&self, name: &str) -> Result<Option<String>> {
        self.check_cluster().await?;
        let which = |one: &str| one == name;
        let done = put_back_these(&self.client, &self.journal, &Kept::new(), which).await?;
        done.refused.map_or(Ok(done.left.into_iter().next()), Err)
    }

    async fn check_cluster(&self) -> Result<()> {
        check_cluster(&self.client, self.cluster_uuid()).await
    }

    /// Puts everything but the lease back, and what is `kept` to what it is there. Settings may be changed again
    /// afterwards; where they are not, [`BorrowedSettings::settle`] comes next. Refuses another cluster than the
    /// journal's.
    pub async fn put_back(&self, kept: &Kept) -> Result<PutBack> {
        self.check_cluster().await?;
        put_back(&self.client, &self.journal, kept).await
    }

    /// How long a change may come yet.
    pub fn may_come_for(&self) -> Duration {
        may_come_for(&self.client, &self.journal, comes_until(&self.client))
    }

    /// Waits until no change comes any more, each of which is put back, too, and gives the lease back. Then it fails
    /// where the cluster has refused a value. Where that fails or is broken off, the journal stays.
    pub async fn settle(&self, done: &mut PutBack) -> Result<()> {
        settle(&self.client, &self.journal, comes_until(&self.client), done).await
    }

    /// Removes the journal, once everything is as it is to stay: nothing will put it back.
    pub fn finish(self) -> Result<()> {
        self.journal.finish()
    }

    /// Puts everything back, for good, and removes the journal. Where that fails, the journal stays. Returns a sentence
    /// for each setting that someone else has changed since, which is left.
    pub async fn end(self) -> Result<Vec<String>> {
        let mut done = self.put_back(&Kept::new()).await?;
        self.settle(&mut done).await?;
        self.finish()?;
        Ok(done.left)
    }
}
