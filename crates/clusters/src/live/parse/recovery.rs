//! `_recovery`.

use record::observation::Recovery;
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::leaves::{Leaf, Leaves, Take};

/// What stands between an index and the leaves of its recoveries.
const SHARDS: &str = "/shards";

/// Every recovery of an answer, by index and shard.
#[derive(Default)]
pub(crate) struct Recoveries(pub(crate) Vec<Recovery>);

impl<'de> Deserialize<'de> for Recoveries {
    fn deserialize<D: Deserializer<'de>>(answer: D) -> Result<Self, D::Error> {
        let mut drafts = Drafts::default();
        Leaves::new(&mut String::new(), &mut drafts).deserialize(answer)?;
        let is_whole = |draft: &Draft| draft.has_shard && !draft.recovery.stage.is_empty();
        let whole = drafts.0.into_iter().filter(is_whole);
        let mut all: Vec<Recovery> = whole.map(|draft| draft.recovery).collect();
        all.sort_by(|a, b| a.key().cmp(&b.key()));
        Ok(Recoveries(all))
    }
}

/// Recoveries as far as they were read; one that does not say of which shard it is, and its stage, is none.
#[derive(Default)]
struct Drafts(Vec<Draft>);

struct Draft {
    recovery: Recovery,
    has_shard: bool,
}

impl Take for Drafts {
    fn element(&mut self, path: &str) {
        let index = path.strip_prefix('/').and_then(|path| path.strip_suffix(SHARDS));
        if let Some(index) = index.filter(|index| !index.contains('/')) {
            let recovery = Recovery { index: index.to_owned(), ..Recovery::default() };
            self.0.push(Draft { recovery, has_shard: false });
        }
    }

    fn leaf(&mut self, path: &str, leaf: Leaf<'_>) {
        let Some(Draft { recovery, has_shard }) = self.0.last_mut() else { return };
        let path = path.get(1 + recovery.index.len() + SHARDS.len()..).unwrap_or_default();
        let field = match path {
            "/start_time_in_millis" => &mut recovery.start_ms,
            "/total_time_in_millis" => &mut recovery.total_ms,
            "/index/size/total_in_bytes" => &mut recovery.total_bytes,
            "/index/size/reused_in_bytes" => &mut recovery.reused_bytes,
            "/index/size/recovered_in_bytes" => &mut recovery.recovered_bytes,
            "/index/size/recovered_from_snapshot_in_bytes" => &mut recovery.from_snapshot_bytes,
            "/index/files/total" => &mut recovery.total_files,
            "/index/files/recovered" => &mut recovery.recovered_files,
            "/index/source_throttle_time_in_millis" => &mut recovery.source_throttle_ms,
            "/index/target_throttle_time_in_millis" => &mut recovery.target_throttle_ms,
            "/translog/total" => &mut recovery.total_ops,
            "/translog/recovered" => &mut recovery.recovered_ops,
            "/id" => {
                let shard = leaf.count().and_then(|count| u32::try_from(count).ok());
                (recovery.shard, *has_shard) = (shard.unwrap_or_default(), shard.is_some());
                return;
            }
            _ => return words(recovery, path, &leaf),
        };
        *field = leaf.count();
    }
}

/// Leaves that are no counts, and what the embedded engine adds.
fn words(recovery: &mut Recovery, path: &str, leaf: &Leaf<'_>) {
    match path {
        "/type" => recovery.kind = leaf.text().unwrap_or_default(),
        "/stage" => recovery.stage = leaf.text().unwrap_or_default(),
        "/primary" => recovery.primary = leaf.flag().unwrap_or(false),
        "/source/name" => recovery.source = leaf.text().or(recovery.source.take()),
        "/target/name" => recovery.target = leaf.text().or(recovery.target.take()),
        "/source/host" => recovery.source = recovery.source.take().or(leaf.text()),
        "/target/host" => recovery.target = recovery.target.take().or(leaf.text()),
        "/source/repository" => recovery.repository = leaf.text(),
        "/narrows/failure" => recovery.failure = leaf.text(),
        _ => {
            // A limit that this build does not know is left out.
            let limit = path.strip_prefix("/narrows/charged_ns/");
            let limit = limit.and_then(|name| serde_json::from_value(Value::from(name)).ok());
            recovery.charged_ns.extend(limit.zip(leaf.count()));
        }
    }
}

#[cfg(test)]
mod tests {
    use record::Limit;

    use super::*;

    #[test]
    fn reads_both_kinds() {
        let Recoveries(found) =
            serde_json::from_str(include_str!("samples/recovery.json")).unwrap();
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
        // Made after the documentation of the index recovery API: no Elasticsearch was run.
        let size = r#"{"recovered_in_bytes":9,"recovered_from_snapshot_in_bytes":7}"#;
        let peer = format!(
            r#"{{"f":{{"shards":[{{"id":0,"stage":"INDEX","source":{{"name":"a"}},"index":{{"size":{size}}}}}]}}}}"#
        );
        let Recoveries(peer) = serde_json::from_str(&peer).unwrap();
        assert_eq!((peer[0].from_snapshot_bytes, peer[0].sender()), (Some(7), None));
        let failing = r#"{"f":{"shards":[{"id":0,"stage":"INIT","narrows":{"failure":"why"}}]}}"#;
        let Recoveries(failing) = serde_json::from_str(failing).unwrap();
        assert_eq!(failing[0].failure.as_deref(), Some("why"));
    }
}
