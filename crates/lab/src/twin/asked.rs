//! One thing that is asked of a twin, and the variants of settings that it is asked with.

use std::collections::{BTreeMap, BTreeSet};

use record::TwinQuestion;
use record::units::{parse_duration, parse_size, show_size_setting};
use toml::{Table, Value};

use super::TwinPlan;
use super::cluster_settings::{HIGH, INCOMING, LOW, OUTGOING, SLOTS};
use super::within::{Within, draw, draw_not};
use crate::plan::{DELAY, Uncertain};

const RATE: &str = "indices.recovery.max_bytes_per_sec";
const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";
/// The nodes that copies are kept to, whatever was written of them in the cluster.
const KEPT_TO: &str = "cluster.routing.allocation.include._name";
/// As the field has them.
const RATE_WITHOUT: &str = "40mb";
const SLOTS_WITHOUT: i64 = 2;
const CHUNKS_WITHOUT: i64 = 2;
/// The most chunks that Elasticsearch takes, and OpenSearch.
const CHUNKS_MAX: i64 = 8;
const CHUNKS_MAX_OF_OPENSEARCH: i64 = 5;
/// The name of the variant without changes.
const AS_IT_IS: &str = TwinQuestion::AS_IT_IS;

/// One thing that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nodes or zones die at once.
    Lose(Vec<String>),
    /// Nodes or zones restart, node by node; all of them where none is named.
    Restart {
        /// Names.
        nodes: Vec<String>,
        /// How long a node is away.
        down: Option<Within>,
        /// Whether what is written is flushed before each.
        flush: bool,
    },
    /// Nodes or zones are to hold nothing in the end.
    Drain(Vec<String>),
    /// So many empty nodes join.
    Add {
        /// How many.
        count: u32,
        /// In the zone of this node; without it each in the zone that has the fewest nodes.
        like: Option<String>,
    },
    /// Other numbers of replicas.
    Replicas(BTreeMap<String, u32>),
}

/// The keys of `[twin]` that ask.
pub const QUESTIONS: [&str; 5] = ["lose", "restart", "drain", "add", "replicas"];

/// Asks this, and nothing else.
pub fn ask(plan: &mut TwinPlan, asked: &Asked) {
    let Some(twin) = plan.get_mut("twin").and_then(Value::as_table_mut) else { return };
    for key in QUESTIONS.into_iter().chain(["down", "before_restart"]) {
        twin.remove(key);
    }
    draw_not(twin, Uncertain::DOWN);
    let texts = |names: &[String]| {
        let mut seen = BTreeSet::new();
        let each_once = names.iter().filter(|name| seen.insert(name.as_str()));
        each_once.map(|name| Value::from(name.as_str())).collect::<Vec<_>>()
    };
    match asked {
        Asked::Lose(names) => {
            twin.insert("lose".to_owned(), texts(names).into());
        }
        Asked::Restart { nodes, down, flush } => {
            let all = || {
                let rows = twin.get("node").and_then(Value::as_array).into_iter().flatten();
                rows.filter_map(|row| row.get("name").cloned()).collect::<Vec<_>>()
            };
            let nodes = if nodes.is_empty() { all() } else { texts(nodes) };
            twin.insert("restart".to_owned(), nodes.into());
            if let Some(down) = down {
                twin.insert("down".to_owned(), down.written().into());
                if let Some((least, most)) = down.bounds() {
                    draw(twin, Uncertain::DOWN, (&least, &most));
                }
            }
            if *flush {
                twin.insert("before_restart".to_owned(), "flush".into());
            }
        }
        Asked::Drain(names) => {
            twin.insert("drain".to_owned(), texts(names).into());
        }
        Asked::Add { count, like } => {
            let joining = joining(twin, *count, like.as_deref());
            twin.insert("add".to_owned(), joining.into());
        }
        Asked::Replicas(replicas) => {
            let number = |(index, n): (&String, &u32)| (index.clone(), Value::from(i64::from(*n)));
            let table: Table = replicas.iter().map(number).collect();
            twin.insert("replicas".to_owned(), table.into());
        }
    }
    let rows = |key: &str| twin.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    // One more manages.
    let nodes = i64::try_from(rows("node") + rows("add") + 1).unwrap_or(i64::MAX);
    if let Asked::Add { like, .. } = asked {
        pass_filters_of(plan, like.as_deref());
    }
    plan.insert("leader".to_owned(), Table::from_iter([("nodes".to_owned(), nodes.into())]).into());
}

/// How many copies the twin has once that is done.
pub fn copies(plan: &TwinPlan) -> u64 {
    let twin = plan.get("twin");
    let indices = twin.and_then(|twin| twin.get("index")).and_then(Value::as_array);
    let of = |index: &Value| -> Option<u64> {
        let asked = |name: &str| twin?.get("replicas")?.get(name)?.as_integer();
        let asked = index.get("name").and_then(Value::as_str).and_then(asked);
        let replicas = asked.or_else(|| index.get("replicas")?.as_integer()).unwrap_or(0);
        let each = u64::try_from(replicas).unwrap_or(0).saturating_add(1);
        Some(each.saturating_mul(index.get("shard")?.as_array()?.len() as u64))
    };
    indices.into_iter().flatten().filter_map(of).fold(0, u64::saturating_add)
}

/// Whether a shard has so many copies that one of them is neither its primary nor takes the place of that.
pub fn has_further_replicas(plan: &TwinPlan) -> bool {
    let indices = plan.get("twin").and_then(|twin| twin.get("index")?.as_array());
    let shards = indices.into_iter().flatten().filter_map(|index| index.get("shard")?.as_array());
    let copies = |shard: &Value| shard.get("copies").and_then(Value::as_array).map_or(0, Vec::len);
    shards.flatten().any(|shard| copies(shard) > 2)
}

fn joining(twin: &Table, count: u32, like: Option<&str>) -> Vec<Value> {
    let rows = twin.get("node").and_then(Value::as_array);
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut zones: BTreeMap<String, usize> = BTreeMap::new();
    let (mut zone_of_like, mut disk) = (None, None);
    for row in rows.into_iter().flatten() {
        let (name, zone) = (text(row, "name"), text(row, "zone"));
        if like.is_some() && name.as_deref() == like {
            zone_of_like.clone_from(&zone);
            disk = text(row, "disk");
        }
        disk = disk.or_else(|| text(row, "disk").filter(|_| like.is_none()));
        names.extend(name);
        if let Some(zone) = zone {
            *zones.entry(zone).or_default() += 1;
        }
    }
    let free = (1..).map(|number| format!("added-{number}")).filter(|name| !names.contains(name));
    let one = |name: String| {
        let emptiest =
            || zones.iter().min_by_key(|(_, nodes)| **nodes).map(|(zone, _)| zone.clone());
        let zone = if like.is_some() { zone_of_like.clone() } else { emptiest() };
        let mut row = Table::from_iter([("name".to_owned(), Value::from(name))]);
        if let Some(zone) = zone {
            *zones.entry(zone.clone()).or_default() += 1;
            row.insert("zone".to_owned(), zone.into());
        }
        // All of it is free.
        if let Some(disk) = &disk {
            row.insert("disk".to_owned(), disk.as_str().into());
        }
        Value::Table(row)
    };
    free.take(count as usize).map(one).collect()
}

/// Names nodes that join where a filter of an index names the node that they are like, or the first one, and where the
/// cluster's copies are kept to nodes with that one among them: filters are lists of names in a twin, and by them it is
/// in a tier or has an attribute.
fn pass_filters_of(plan: &mut TwinPlan, like: Option<&str>) {
    let names = |key: &str| -> Vec<String> {
        let rows = plan.get("twin").and_then(|twin| twin.get(key)?.as_array());
        let name = |row: &Value| row.get("name")?.as_str().map(str::to_owned);
        rows.into_iter().flatten().filter_map(name).collect()
    };
    let joining = names("add");
    let first = || names("node").into_iter().next();
    let Some(like) = like.map(str::to_owned).or_else(first) else { return };
    let pass = |value: &mut Value| {
        let Some(list) = value.as_str() else { return };
        // What joined when this was asked before may have been like another one.
        let was_there = |name: &&str| !joining.iter().any(|one| one == name);
        let mut names: Vec<&str> = list.split(',').map(str::trim).filter(was_there).collect();
        if names.contains(&like.as_str()) {
            names.extend(joining.iter().map(String::as_str));
        }
        *value = names.join(",").into();
    };
    if let Some(kept_to) = plan.get_mut("settings").and_then(|all| all.get_mut(KEPT_TO)) {
        pass(kept_to);
    }
    let indices = plan.get_mut("twin").and_then(|twin| twin.get_mut("index")?.as_array_mut());
    let settings = indices.into_iter().flatten();
    let settings = settings.filter_map(|index| index.get_mut("settings")?.as_table_mut());
    settings
        .flatten()
        .filter(|(name, _)| name.ends_with("._name"))
        .for_each(|(_, list)| pass(list));
}

/// The plan with a single variant: nothing is changed.
pub fn as_it_is(plan: &mut TwinPlan) {
    plan.insert("variant".to_owned(), vec![variant(AS_IT_IS, &[])].into());
}

/// Adds a variant with these settings.
pub fn set(plan: &mut TwinPlan, settings: &[(String, String)]) {
    let settings: Vec<(&str, String)> =
        settings.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    push(plan, variant(&called(&settings), &settings));
}

/// The name of a variant with these settings.
fn called(settings: &[(&str, String)]) -> String {
    let shown = |(name, value): &(&str, String)| match value.as_str() {
        "" => format!("{name} = \"\""),
        value => format!("{name} = {value}"),
    };
    settings.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// The most chunks that the product takes which the twin is of.
fn chunks_max(plan: &TwinPlan) -> i64 {
    match plan.get("test_bed").and_then(Value::as_str) {
        Some("opensearch-2") => CHUNKS_MAX_OF_OPENSEARCH,
        _ => CHUNKS_MAX,
    }
}

/// Why the product that the twin is of, or the twin, refuses one of these settings, which the engine takes by itself.
pub fn refusal(plan: &TwinPlan, settings: &[(String, String)]) -> Option<String> {
    let most = chunks_max(plan);
    let is_more = |value: &str| value.parse::<i64>().is_ok_and(|chunks| chunks > most);
    let chunks = settings.iter().find(|(name, value)| name == CHUNKS && is_more(value));
    let too_many = chunks
        .map(|(_, value)| format!("--set {CHUNKS}={value}: the cluster takes {most} at most"));
    too_many.or_else(|| unlike_the_other_watermark(plan, settings))
}

/// Why one watermark cannot be set alone: a share does not go with bytes, which a headroom may have made of both.
fn unlike_the_other_watermark(plan: &TwinPlan, settings: &[(String, String)]) -> Option<String> {
    let asked = |mark: &str| settings.iter().find(|(name, _)| name == mark);
    let is_share = |value: &str| value.ends_with('%') || value.parse::<f64>().is_ok();
    let refused = |(one, other): (&str, &str)| {
        let (_, value) = asked(one).filter(|_| asked(other).is_none())?;
        let seen = plan.get("settings")?.get(other)?.as_str()?;
        (is_share(value) != is_share(seen)).then(|| {
            format!(
                "--set {one}={value}: {other} is {seen}, which may be what a max_headroom makes of a share; set both \
                 as shares, or both as bytes: --set {LOW}=85% --set {HIGH}=90%"
            )
        })
    };
    [(LOW, HIGH), (HIGH, LOW)].into_iter().find_map(refused)
}

/// Adds a variant for each of the settings that matter, and one with all of them.
pub fn trials(plan: &mut TwinPlan) {
    let of = |name: &str| plan.get("settings").and_then(|settings| settings.get(name)).cloned();
    let text = |value: Option<Value>| {
        value.and_then(|value| match value {
            Value::String(text) => Some(text),
            Value::Integer(number) => Some(number.to_string()),
            _ => None,
        })
    };
    let number = |name: &str, without: i64| {
        text(of(name)).and_then(|text| text.parse::<i64>().ok()).unwrap_or(without)
    };
    let mut trials: Vec<Vec<(&str, String)>> = Vec::new();
    let rate = text(of(RATE)).unwrap_or_else(|| RATE_WITHOUT.to_owned());
    if let Ok(rate) = parse_size(&rate)
        && rate > 0
    {
        trials.push(vec![(RATE, show_size_setting(rate.saturating_mul(4)))]);
    }
    // Where a direction has its own, that of both does not count for it. -1 is none.
    let mut slots = vec![INCOMING, OUTGOING];
    slots.retain(|&name| number(name, -1) >= 0);
    if slots.len() < 2 {
        slots.insert(0, SLOTS);
    }
    let twice = |name| (name, number(name, SLOTS_WITHOUT).saturating_mul(2).to_string());
    trials.push(slots.into_iter().map(twice).collect());
    let chunks = number(CHUNKS, CHUNKS_WITHOUT);
    let chunks_max = chunks_max(plan);
    if chunks < chunks_max {
        trials.push(vec![(CHUNKS, (chunks * 2).min(chunks_max).to_string())]);
    }
    let loses = plan.get("twin").is_some_and(|twin| twin.get("lose").is_some());
    if loses && some_wait(plan) {
        trials.push(vec![(DELAY, "0s".to_owned())]);
    }
    for settings in &trials {
        push(plan, variant(&called(settings), settings));
    }
    push(plan, variant("all of these", &trials.concat()));
}

/// Whether copies of any index wait for a node that was lost. A setting of the plan is one of all indices.
fn some_wait(plan: &TwinPlan) -> bool {
    let waits = |settings: Option<&Value>| {
        let delay = settings?.get(DELAY)?.as_str()?;
        Some(parse_duration(delay).is_ok_and(|delay| !delay.is_zero()))
    };
    let indices = plan.get("twin").and_then(|twin| twin.get("index")?.as_array());
    let some = || indices.into_iter().flatten().any(|own| waits(own.get("settings")) == Some(true));
    waits(plan.get("settings")).unwrap_or_else(some)
}

fn push(plan: &mut TwinPlan, variant: Value) {
    let variants = plan.entry("variant").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(variants) = variants.as_array_mut() {
        variants.push(variant);
    }
}

fn variant(name: &str, settings: &[(&str, String)]) -> Value {
    let mut table = Table::new();
    table.insert("name".to_owned(), name.into());
    if !settings.is_empty() {
        let settings: Table = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
            .collect();
        table.insert("settings".to_owned(), settings.into());
    }
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_joins_is_in_the_tier_of_the_one_that_it_is_like() {
        let plan = "[[twin.node]]\nname = \"hot\"\n[[twin.node]]\nname = \"warm\"\n\
                    [[twin.index]]\nsettings = { \"index.routing.allocation.include._name\" = \"warm\" }\n";
        let joined = |like: Option<&str>| {
            let mut plan: TwinPlan = plan.parse().unwrap();
            let asked = Asked::Add { count: 2, like: like.map(str::to_owned) };
            // What was asked before is forgotten.
            ask(&mut plan, &Asked::Add { count: 2, like: Some("warm".to_owned()) });
            ask(&mut plan, &asked);
            let settings = &plan["twin"]["index"][0]["settings"];
            settings["index.routing.allocation.include._name"].as_str().unwrap().to_owned()
        };
        assert_eq!(joined(Some("warm")), "warm,added-1,added-2");
        assert_eq!(joined(None), "warm", "it is like the first one");
        assert_eq!(joined(Some("hot")), "warm");
        let mut plan: TwinPlan = plan.parse().unwrap();
        let settings = Table::from_iter([(KEPT_TO.to_owned(), Value::from("hot"))]);
        plan.insert("settings".to_owned(), settings.into());
        let mut kept_to = |like: &str| {
            ask(&mut plan, &Asked::Add { count: 1, like: Some(like.to_owned()) });
            plan["settings"][KEPT_TO].as_str().unwrap().to_owned()
        };
        assert_eq!([kept_to("hot"), kept_to("warm")], ["hot,added-1", "hot"]);
    }

    #[test]
    fn copies_are_counted_as_they_are_asked_for() {
        let plan = "[[twin.index]]\nname = \"a\"\nreplicas = 1\nshard = [{}, {}, {}]\n\
                    [[twin.index]]\nname = \"b\"\nreplicas = 0\nshard = [{}]\n";
        let mut plan: TwinPlan = plan.parse().unwrap();
        assert_eq!(copies(&plan), 7);
        ask(&mut plan, &Asked::Replicas(BTreeMap::from([("b".to_owned(), 2)])));
        assert_eq!(copies(&plan), 9);
    }

    #[test]
    fn how_long_a_node_is_away_is_drawn_where_bounds_are_said() {
        let mut plan: TwinPlan = "[[twin.node]]\nname = \"a\"\n".parse().unwrap();
        let mut drawn = |down: &str| {
            let down = Some(down.parse().unwrap());
            ask(&mut plan, &Asked::Restart { nodes: Vec::new(), down, flush: false });
            let rows = plan["twin"]["uncertain"].as_array().unwrap();
            let text = |row: &Value| ["parameter", "least", "most"].map(|key| row[key].to_string());
            (plan["twin"]["down"].to_string(), rows.iter().map(text).collect::<Vec<_>>())
        };
        let row = ["\"down\"", "\"20s\"", "\"40s\""].map(str::to_owned);
        assert_eq!(drawn("20s..40s"), ("\"30s\"".to_owned(), vec![row]));
        assert_eq!(drawn("20s"), ("\"20s\"".to_owned(), vec![]), "it is known now");
    }

    #[test]
    fn the_delay_of_a_lost_node_is_tried_where_copies_wait() {
        let tried = |delay: &str| {
            let plan = format!("[twin]\nlose = [\"a\"]\n[[twin.index]]\nname = \"b\"\n{delay}");
            let mut plan: TwinPlan = plan.parse().unwrap();
            trials(&mut plan);
            plan["variant"].as_array().unwrap().iter().any(|variant| {
                variant.get("settings").is_some_and(|settings| settings.get(DELAY).is_some())
            })
        };
        let of = |delay: &str| tried(&format!("settings = {{ \"{DELAY}\" = \"{delay}\" }}\n"));
        assert_eq!((of("1m"), of("0s"), tried("")), (true, false, false));
        assert!(!tried(&format!("[settings]\n\"{DELAY}\" = \"0s\"\n")));
    }

    #[test]
    fn slots_are_tried_by_the_settings_that_count() {
        let tried = |set: &[(&str, &str)]| -> Vec<String> {
            let set = set.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
            let mut plan = TwinPlan::new();
            plan.insert("settings".to_owned(), Table::from_iter(set).into());
            trials(&mut plan);
            let names = plan["variant"].as_array().unwrap().iter().map(|one| one["name"].as_str());
            let slots = names.flatten().filter(|name| name.contains("_recoveries"));
            slots
                .map(|name| name.replace("cluster.routing.allocation.node_concurrent_", ""))
                .collect()
        };
        assert_eq!(tried(&[(SLOTS, "3"), (INCOMING, "-1")]), ["recoveries = 6"]);
        let one = "recoveries = 4, outgoing_recoveries = 10";
        assert_eq!(tried(&[(OUTGOING, "5")]), [one]);
        let both = "incoming_recoveries = 2, outgoing_recoveries = 10";
        assert_eq!(tried(&[(SLOTS, "3"), (INCOMING, "1"), (OUTGOING, "5")]), [both]);
    }

    #[test]
    fn no_more_chunks_are_tried_than_the_product_takes() {
        let tried = |bed: &str, chunks: i64| {
            let settings = Table::from_iter([(CHUNKS.to_owned(), Value::from(chunks))]);
            let mut plan = Table::from_iter([
                ("test_bed".to_owned(), Value::from(bed)),
                ("settings".to_owned(), Value::from(settings)),
            ]);
            trials(&mut plan);
            let all = plan["variant"].as_array().unwrap().last().unwrap();
            all["settings"].get(CHUNKS).and_then(Value::as_str).map(str::to_owned)
        };
        let most = |bed: &str| [2, 4, 5, 8].map(|chunks| tried(bed, chunks).unwrap_or_default());
        assert_eq!(most("opensearch-2"), ["4", "5", "", ""]);
        let refused = |bed: &str, chunks: &str| {
            let plan = Table::from_iter([("test_bed".to_owned(), Value::from(bed))]);
            refusal(&plan, &[(CHUNKS.to_owned(), chunks.to_owned())]).is_some()
        };
        assert!(refused("opensearch-2", "6") && !refused("opensearch-2", "5"));
        assert!(!refused("elasticsearch-8", "8"));
        assert_eq!(most("elasticsearch-8"), ["4", "8", "8", ""]);
    }

    #[test]
    fn a_watermark_that_is_set_alone_is_to_be_written_as_the_other_one() {
        let marks = [(LOW, "200gb"), (HIGH, "150gb")];
        let marks = marks.map(|(name, value)| (name.to_owned(), Value::from(value)));
        let mut plan = TwinPlan::new();
        let refused = |plan: &TwinPlan, set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            refusal(plan, &set.collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(refused(&plan, &[(LOW, "80%")]), "", "it goes with the default");
        plan.insert("settings".to_owned(), Table::from_iter(marks).into());
        for share in ["90%", "0.9"] {
            let why = refused(&plan, &[(LOW, share)]);
            assert!(why.contains("is 150gb") && why.contains("set both"), "{why}");
        }
        assert!(!refused(&plan, &[(HIGH, "90%")]).is_empty());
        assert_eq!(refused(&plan, &[(LOW, "300gb")]), "");
        assert_eq!(refused(&plan, &[(LOW, "85%"), (HIGH, "90%")]), "");
    }
}
