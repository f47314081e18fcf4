//! Settings of a cluster that we did not start: what they are, setting one for a while, and putting it back.

use std::collections::BTreeMap;

use record::observation::{Scope, Setting};
use serde_json::{Value, json};

use super::journal::{Change, Journal};
use crate::Error;
use crate::live::LiveClient;

pub(crate) const SETTINGS: &str = "/_cluster/settings";

/// The ranks at which a cluster's settings are set, with their names in its API.
const RANKS: [(Scope, &str); 2] =
    [(Scope::Persistent, "persistent"), (Scope::Transient, "transient")];

/// A setting's value as a text. A list is told as an array and set as a text with commas: both are the same here.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// What is set, by rank. Defaults are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SettingsThere {
    persistent: BTreeMap<String, String>,
    transient: BTreeMap<String, String>,
}

impl SettingsThere {
    /// Asks a cluster.
    pub(crate) async fn ask(client: &LiveClient) -> Result<SettingsThere, Error> {
        let answer = client.get(&format!("{SETTINGS}?flat_settings=true")).await?;
        let flat = |rank: &str| {
            let pairs = answer[rank].as_object().into_iter().flatten();
            pairs.map(|(name, value)| (name.clone(), text(value))).collect()
        };
        Ok(SettingsThere { persistent: flat("persistent"), transient: flat("transient") })
    }

    /// Those of a rank; none are set at the rank of defaults.
    pub(crate) fn at(&self, scope: Scope) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        match scope {
            Scope::Persistent => &self.persistent,
            Scope::Transient => &self.transient,
            Scope::Default => NONE,
        }
    }

    /// Where a setting is set, and to what: a transient value hides a persistent one.
    fn effective(&self, name: &str) -> Option<(Scope, &String)> {
        let at = |scope| self.at(scope).get(name).map(|value| (scope, value));
        at(Scope::Transient).or_else(|| at(Scope::Persistent))
    }
}

/// Puts back the settings that a journal tells of; a sentence for each that someone else has changed since, which is
/// left. The journal stays.
pub(crate) async fn put_back(client: &LiveClient, journal: &Journal) -> Result<Vec<String>, Error> {
    let there = SettingsThere::ask(client).await?;
    let mut left = Vec::new();
    for (scope, rank) in RANKS {
        let back = journal.settings_back(scope, there.at(scope));
        if !back.set.is_empty() {
            client.ask("PUT", SETTINGS, &json!({ rank: back.set })).await?;
        }
        left.extend(back.left);
    }
    Ok(left)
}

/// Settings of a live cluster that are changed for a while. Each change is in the journal before it is made.
pub struct Borrowed {
    client: LiveClient,
    journal: Journal,
}

impl Borrowed {
    /// Changes of the cluster behind `client`, which is the one that the journal is about.
    pub fn new(client: LiveClient, journal: Journal) -> Borrowed {
        Borrowed { client, journal }
    }

    /// Sets a setting at the rank where it is set today; one that nobody set becomes persistent. Refuses where it is
    /// no longer what was `found`: someone else is at work.
    pub async fn set(&mut self, name: &str, found: &Setting, to: &str) -> Result<(), Error> {
        let there = SettingsThere::ask(&self.client).await?;
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
        let rank = RANKS.iter().find(|(one, _)| *one == scope).map_or("persistent", |rank| rank.1);
        let one = |value: Option<String>| BTreeMap::from([(name.to_owned(), value)]);
        let (before, set) = (one(now), one(Some(to.to_owned())));
        let body = json!({ rank: set });
        self.journal.record(Change::Settings { scope, before, set })?;
        self.client.ask("PUT", SETTINGS, &body).await.map(drop)
    }

    /// Puts everything back; a sentence for each setting that someone else has changed since, which is left. Others
    /// may be set afterwards.
    pub async fn put_back(&self) -> Result<Vec<String>, Error> {
        put_back(&self.client, &self.journal).await
    }

    /// Puts everything back, and removes the journal. Where that fails, the journal is still there.
    pub async fn end(self) -> Result<Vec<String>, Error> {
        let left = self.put_back().await?;
        self.journal.finish()?;
        Ok(left)
    }
}
