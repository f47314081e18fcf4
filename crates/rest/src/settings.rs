//! `_cluster/settings`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::Reply;
use super::call::Call;
use super::error::bad_request;
use super::spread::at_once;
use engine::remote::why_no_seed;
use engine::settings::{
    SettingScope, Settings, SettingsMap, Update, When, check_update, cluster_settings, flat,
    nested, parse_cluster_update,
};
use engine::state::Event;
use engine::transport::Result;

/// `GET /_cluster/settings`.
pub(super) async fn get(call: Call) -> Result<Reply> {
    let state = call.state();
    let include_defaults = call.query.flag("include_defaults", false)?;
    let flat_settings = call.query.flag("flat_settings", false)?;
    // Every node has the state, so that nothing is waited for.
    call.query.duration("timeout", Duration::ZERO)?;
    let mut answer =
        cluster_settings(&state.persistent, &state.transient, include_defaults, flat_settings);
    if include_defaults {
        // What a node is configured with stands where the default would.
        for (name, text) in &call.node.core().config.settings {
            if !state.persistent.contains_key(name) && !state.transient.contains_key(name) {
                let one = SettingsMap::from([(name.clone(), text.clone())]);
                let one = if flat_settings { flat(&one) } else { nested(&one) };
                merge(&mut answer["defaults"], one);
            }
        }
    }
    Ok(answer.into())
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// `PUT /_cluster/settings`.
pub(super) async fn put(call: Call) -> Result<Reply> {
    let flat_settings = call.query.flag("flat_settings", false)?;
    let update = parse_cluster_update(&call.needed_json()?)?;
    let mut echo = json!({
        "persistent": given(&update.persistent, flat_settings)?,
        "transient": given(&update.transient, flat_settings)?,
    });
    let (persistent, transient) = (update.persistent, update.transient);
    refuse_wrong_seeds(&call, [&persistent, &transient]).await?;
    let done = call.submit(vec![Event::PutClusterSettings { persistent, transient }]).await?;
    echo["acknowledged"] = json!(done);
    Ok(echo.into())
}

/// Refuses new seeds at which something answers that is no node.
async fn refuse_wrong_seeds(call: &Call, updates: [&Update; 2]) -> Result<()> {
    let core = call.node.core();
    let before = core.settings();
    let is_set = |alias: &str, seed: &String| {
        before.remotes().get(alias).is_some_and(|remote| remote.seeds.contains(seed))
    };
    let mut new = BTreeSet::new();
    for update in updates {
        let values = update.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        let named = Settings::resolve(&[&values.collect::<SettingsMap>()]);
        for (alias, remote) in named.remotes() {
            let seeds = remote.seeds.iter().filter(|seed| !is_set(alias, seed));
            let setting = if remote.proxy.is_some() { "proxy_address" } else { "seeds" };
            let setting = format!("cluster.remote.{alias}.{setting}");
            new.extend(seeds.map(|seed| (setting.clone(), seed.clone())));
        }
    }
    let asking = new.into_iter().map(|(setting, seed)| {
        let env = core.env.clone();
        async move {
            match why_no_seed(&env, &seed).await {
                None => Ok(()),
                Some(why) => Err(bad_request(format!(
                    "{setting}: [{seed}] is no transport address of a node ({why}). Is it the port of REST? \
                     Give the address that GET _nodes there shows as transport_address"
                ))),
            }
        }
    });
    for asked in at_once(&call.node, "asks a new seed", asking).await {
        asked?;
    }
    Ok(())
}

/// What an update sets, as it is kept. What it takes back is not shown.
fn given(update: &Update, flat_settings: bool) -> Result<Value> {
    let checked = check_update(SettingScope::Cluster, When::Running, update)?;
    let map: SettingsMap =
        checked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    Ok(if flat_settings { flat(&map) } else { nested(&map) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_is_set_in_its_own_words() {
        let update = Update::from([
            ("indices.recovery.chunk_size".to_owned(), Some("1024kb".to_owned())),
            ("transport.compress".to_owned(), None),
        ]);
        let flat = given(&update, true).unwrap();
        assert_eq!(flat, json!({"indices.recovery.chunk_size": "1mb"}));
        let nested = given(&update, false).unwrap();
        assert_eq!(nested, json!({"indices": {"recovery": {"chunk_size": "1mb"}}}));
        let unknown = Update::from([("no.such".to_owned(), None)]);
        assert_eq!(given(&unknown, true).unwrap_err().status, 400);
    }

    #[test]
    fn merges_at_every_depth() {
        let mut into = json!({"a": {"b": "1", "c": "2"}});
        merge(&mut into, json!({"a": {"b": "3"}, "d": "4"}));
        assert_eq!(into, json!({"a": {"b": "3", "c": "2"}, "d": "4"}));
    }
}
