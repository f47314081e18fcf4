//! Settings of a cluster that was not started here: reading them, changing one for a while, and putting it back.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::{Scope, Setting};
use serde_json::{Value, json};

use super::journal::{Change, Journal, SettingValue, Values};
use crate::live::LiveClient;
use crate::{Error, Result};

pub(crate) const SETTINGS: &str = "/_cluster/settings";
/// How long settings are looked at after they were put back, where a change that was sent to another host may come yet:
/// in the field a manager that has not begun a change after 30 s does not begin it (`master_timeout`). And how often.
const COMES_LATE_MAX: Duration = Duration::from_secs(30);
const COMES_LATE_EVERY: Duration = Duration::from_secs(1);

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
    fn effective(&self, name: &str) -> Option<(Scope, &String)> {
        let at = |scope| self.at(scope).get(name).map(|value| (scope, value));
        at(Scope::Transient).or_else(|| at(Scope::Persistent))
    }
}

/// Puts back the settings in a journal; returns a sentence for each that someone else has changed since, which is left.
/// The journal stays.
///
/// A change that one host was sent and did not answer may still be held up there, and so come after what is sent to
/// another one. Where changes went to several hosts, what comes for as long as an answer may take is put back, too.
pub(crate) async fn put_back(client: &LiveClient, journal: &Journal) -> Result<Vec<String>> {
    if !journal.has_settings() {
        return Ok(Vec::new());
    }
    let left = put_back_now(client, journal, true).await?;
    if journal.head().hosts.len() > 1 && journal.settings_may_come() {
        let ends = client.now() + COMES_LATE_MAX.min(client.options().timeout);
        while client.now() < ends {
            client.sleep_until(client.now() + COMES_LATE_EVERY).await;
            // What somebody else changes from now on is theirs, and no news.
            put_back_now(client, journal, false).await?;
        }
    }
    Ok(left)
}

/// As [`put_back`], once. What has its original value is sent again only where that is `first`.
async fn put_back_now(client: &LiveClient, journal: &Journal, first: bool) -> Result<Vec<String>> {
    let mut left = Vec::new();
    let there = ClusterSettings::ask(client).await?;
    for (scope, rank) in SCOPES {
        let back = journal.settings_back(scope, there.at(scope));
        if !back.set.is_empty() {
            client.ask("PUT", SETTINGS, &json!({ rank: back.set })).await?;
        }
        for (name, original) in if first { back.again } else { Values::new() } {
            set_again(client, rank, &name, &original).await?;
        }
        left.extend(back.left);
    }
    Ok(left)
}

/// Sets a setting to the value that it has, behind a change that may be made yet. Each alone: of several that are sent
/// together none is set where the cluster does not know one.
async fn set_again(
    client: &LiveClient,
    rank: &str,
    name: &str,
    original: &SettingValue,
) -> Result<()> {
    let body = json!({ rank: BTreeMap::from([(name, original)]) });
    match client.ask("PUT", SETTINGS, &body).await {
        // A setting that the cluster does not know: it has refused the change, too.
        Err(Error::Refused { status: 400, .. }) if original.is_none() => Ok(()),
        answer => answer.map(drop),
    }
}

/// The name of a scope in the API; what nobody set is set for good.
fn rank_of(scope: Scope) -> &'static str {
    SCOPES.iter().find(|(one, _)| *one == scope).map_or("persistent", |rank| rank.1)
}

/// Settings of a live cluster that are changed for a while. Each change is journaled before it is made.
pub struct BorrowedSettings {
    client: LiveClient,
    journal: Journal,
}

impl BorrowedSettings {
    /// Settings of the cluster behind `client`, which is that of the journal.
    pub fn new(client: LiveClient, journal: Journal) -> BorrowedSettings {
        BorrowedSettings { client, journal }
    }

    /// Changes a setting in the scope in which it is set; one that is not set becomes persistent. Refuses if it no
    /// longer has the value that was `found`: someone else is changing it.
    pub async fn set(&mut self, name: &str, found: &Setting, to: &str) -> Result<()> {
        let there = ClusterSettings::ask(&self.client).await?;
        let (scope, now) = match there.effective(name) {
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
        let change = self.journal.record(Change::Settings { scope, before, set })?;
        let unanswered = self.client.unanswered();
        let answer = self.client.ask("PUT", SETTINGS, &body).await;
        if self.client.unanswered() == unanswered {
            self.journal.answered(change, &answer);
        }
        answer.map(drop)
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
        let now = self.now(name).await?;
        let now = now.filter(|now| self.journal.has_set(now.scope, name, Some(&now.value)));
        match self.set(name, now.as_ref().unwrap_or(ours), to).await {
            Err(error @ Error::ChangedMeanwhile { .. }) => Ok(Some(error.to_string())),
            answer => answer.map(|()| None),
        }
    }

    /// A setting in the scope that counts; none where nobody set it.
    pub(super) async fn now(&self, name: &str) -> Result<Option<Setting>> {
        let there = ClusterSettings::ask(&self.client).await?;
        let effective = there.effective(name);
        Ok(effective.map(|(scope, value)| Setting { value: value.clone(), scope }))
    }

    /// Removes what somebody who died has left, if it is still that. It is in no journal: nobody wants it back.
    pub(super) async fn clear(&self, name: &str, found: &Setting) -> Result<()> {
        if self.now(name).await?.as_ref() != Some(found) {
            return Ok(());
        }
        let body = json!({ rank_of(found.scope): BTreeMap::from([(name, Value::Null)]) });
        self.client.ask("PUT", SETTINGS, &body).await.map(drop)
    }

    /// Puts one setting back to what it was before the first change; returns a sentence where someone else has changed
    /// it since, and leaves it then. It may be changed again afterwards.
    pub async fn give_back(&self, name: &str) -> Result<Option<String>> {
        let there = ClusterSettings::ask(&self.client).await?;
        for (scope, rank) in SCOPES {
            let back = self.journal.settings_back(scope, there.at(scope));
            if let Some(value) = back.set.get(name) {
                let body = json!({ rank: BTreeMap::from([(name, value)]) });
                self.client.ask("PUT", SETTINGS, &body).await?;
            }
            if let Some(original) = back.again.get(name) {
                set_again(&self.client, rank, name, original).await?;
            }
            if let Some(left) =
                back.left.iter().find(|left| left.starts_with(&format!("{name} is ")))
            {
                return Ok(Some(left.clone()));
            }
        }
        Ok(None)
    }

    /// Removes the journal, once everything is as it is to stay: nothing will put it back.
    pub fn finish(self) -> Result<()> {
        self.journal.finish()
    }

    /// Puts everything back; returns a sentence for each setting that someone else has changed since, which is left.
    /// Settings may be changed again afterwards.
    pub async fn put_back(&self) -> Result<Vec<String>> {
        put_back(&self.client, &self.journal).await
    }

    /// Puts everything back and removes the journal. Where that fails, the journal stays.
    pub async fn end(self) -> Result<Vec<String>> {
        let left = self.put_back().await?;
        self.journal.finish()?;
        Ok(left)
    }
}
