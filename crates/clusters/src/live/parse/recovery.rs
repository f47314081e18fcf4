//! `_recovery`.

use std::collections::BTreeMap;

use record::Limit;
use record::observation::Recovery;
use serde_json::Value;

use super::{at, count, count_at, elements, entries, text_at};

/// Every recovery of an answer, by index and shard.
pub(crate) fn recoveries(answer: &Value) -> Vec<Recovery> {
    let one = |(index, value): (&String, &Value)| -> Vec<Recovery> {
        elements(value.get("shards")).filter_map(|shard| recovery(index, shard)).collect()
    };
    let mut all: Vec<Recovery> = entries(Some(answer)).flat_map(one).collect();
    all.sort_by(|a, b| a.key().cmp(&b.key()));
    all
}

fn recovery(index: &str, shard: &Value) -> Option<Recovery> {
    let target = text_at(shard, "/target/name").or_else(|| text_at(shard, "/target/host"));
    Some(Recovery {
        index: index.to_owned(),
        shard: u32::try_from(count(shard.get("id"))?).ok()?,
        kind: text_at(shard, "/type").unwrap_or_default(),
        stage: text_at(shard, "/stage")?,
        primary: shard.get("primary").and_then(Value::as_bool).unwrap_or(false),
        source: text_at(shard, "/source/name").or_else(|| text_at(shard, "/source/host")),
        repository: text_at(shard, "/source/repository"),
        target,
        start_ms: count_at(shard, "/start_time_in_millis"),
        total_ms: count_at(shard, "/total_time_in_millis"),
        total_bytes: count_at(shard, "/index/size/total_in_bytes"),
        reused_bytes: count_at(shard, "/index/size/reused_in_bytes"),
        recovered_bytes: count_at(shard, "/index/size/recovered_in_bytes"),
        total_files: count_at(shard, "/index/files/total"),
        recovered_files: count_at(shard, "/index/files/recovered"),
        source_throttle_ms: count_at(shard, "/index/source_throttle_time_in_millis"),
        target_throttle_ms: count_at(shard, "/index/target_throttle_time_in_millis"),
        total_ops: count_at(shard, "/translog/total"),
        recovered_ops: count_at(shard, "/translog/recovered"),
        ended: false,
        charged_ns: charged(shard),
    })
}

/// What the embedded engine adds; a limit that this build does not know is left out.
fn charged(shard: &Value) -> BTreeMap<Limit, u64> {
    let limit = |name: &String| serde_json::from_value(Value::String(name.clone())).ok();
    entries(at(shard, "/narrows/charged_ns"))
        .filter_map(|(name, value)| Some((limit(name)?, count(Some(value))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds() {
        let answer = serde_json::from_str(include_str!("samples/recovery.json")).unwrap();
        let found = recoveries(&answer);
        let [remote, peer] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (peer.shard_name().as_str(), peer.source.as_deref()),
            ("logs-1[3]", Some("es-1"))
        );
        assert_eq!((peer.total_ops, peer.recovered_ops), (None, Some(0)));
        assert_eq!((peer.source_throttle_ms, peer.target_throttle_ms), (Some(1200), Some(2100)));
        assert!(!peer.is_from_remote() && peer.charged_ns.is_empty());
        assert!(remote.is_from_remote() && remote.source.is_none());
        assert_eq!(remote.charged_ns[&Limit::Latency], 700_000_000);
    }
}
