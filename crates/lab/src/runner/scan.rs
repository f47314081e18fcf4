//! A digest for clusters that have none of their own: every live document of a copy is read through `_search`, and
//! hashed here.
//!
//! The hash of a document is that of `_id` and of `_source` with its keys in order, so it compares copies, not
//! engines.

use record::ledger::RunSum;
use record::{ShardDigest, ledger};
use serde_json::{Value, json};

use super::base::Runner;
use crate::error::{Error, Result};

/// Documents of a page: the most that `index.max_result_window` lets through by default.
const PAGE: u64 = 10_000;
/// How long a scroll is kept between two pages.
const KEEP: &str = "5m";
/// What is read of a page.
const READ: &str = "_scroll_id,_shards.failed,hits.hits._id,hits.hits._seq_no,hits.hits._version,hits.hits._source";

/// Which copies are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    Primaries,
    Replicas,
    All,
}

impl Copies {
    pub(crate) fn include(self, primary: bool) -> bool {
        match self {
            Copies::Primaries => primary,
            Copies::Replicas => !primary,
            Copies::All => true,
        }
    }
}

/// A started copy, and how far its history is.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    shard: u32,
    /// The id of its node.
    node: String,
    is_primary: bool,
    max_seq_no: Option<u64>,
    local_checkpoint: Option<u64>,
}

impl Runner<'_> {
    /// Reads every document of the copies that are meant, index by index.
    pub(crate) async fn read_copies(
        &self,
        cluster: &str,
        copies: Copies,
    ) -> Result<Vec<ShardDigest>> {
        let mut shards = Vec::new();
        for index in &self.plan.indices {
            let index = index.name.as_str();
            for place in self.places(cluster, index, copies).await? {
                let mut sum = RunSum::default();
                self.read_copy(cluster, index, &place, |hit| sum = sum.plus(summed(hit))).await?;
                shards.push(ShardDigest {
                    index: index.to_owned(),
                    shard: place.shard,
                    documents: sum.documents,
                    content: format!("{:016x}", sum.content),
                });
            }
        }
        Ok(shards)
    }

    /// Reads every started copy of an index, document by document; its history is as far as the copy itself says.
    pub(crate) async fn list_copies(
        &self,
        cluster: &str,
        index: &str,
    ) -> Result<Vec<ledger::Copy>> {
        let mut copies = Vec::new();
        for place in self.places(cluster, index, Copies::All).await? {
            let mut documents = Vec::new();
            self.read_copy(cluster, index, &place, |hit| documents.push(held(hit))).await?;
            let Place { shard, node, is_primary, max_seq_no, local_checkpoint } = place;
            let role = if is_primary { "primary" } else { "replica" };
            let name = format!("{cluster}: {node}, {role} [{index}][{shard}]");
            let runs = RunSum::default();
            let copy = ledger::Copy { name, shard, documents, runs, max_seq_no, local_checkpoint };
            copies.push(copy);
        }
        Ok(copies)
    }

    /// The started copies that are meant, once a search finds in them what was written.
    async fn places(&self, cluster: &str, index: &str, copies: Copies) -> Result<Vec<Place>> {
        self.ask(cluster, "POST", &format!("/{index}/_refresh"), None).await?;
        let path = format!(
            "/{index}/_stats?level=shards\
             &filter_path=indices.*.shards.*.routing,indices.*.shards.*.seq_no"
        );
        Ok(places(&self.ask(cluster, "GET", &path, None).await?, copies))
    }

    /// Hands over every document of a copy, and compares their number with what the copy counts.
    async fn read_copy(
        &self,
        cluster: &str,
        index: &str,
        place: &Place,
        mut each: impl FnMut(&Value),
    ) -> Result<()> {
        let copy = format!("_shards:{}%7C_only_nodes:{}", place.shard, place.node);
        let path = format!(
            "/{index}/_search?scroll={KEEP}&size={PAGE}&preference={copy}&filter_path={READ}"
        );
        let body = json!({ "sort": ["_doc"], "version": true, "seq_no_primary_term": true });
        let mut page = self.ask(cluster, "POST", &path, Some(&body)).await?;
        let mut documents = 0;
        loop {
            if page.pointer("/_shards/failed").and_then(Value::as_u64) != Some(0) {
                return Err(self.unread(cluster, place, "a page failed"));
            }
            let id = page["_scroll_id"].clone();
            let hits = page.pointer("/hits/hits").and_then(Value::as_array);
            let Some(hits) = hits.filter(|hits| !hits.is_empty()) else {
                let body = json!({ "scroll_id": id });
                self.ask(cluster, "DELETE", "/_search/scroll", Some(&body)).await?;
                break;
            };
            documents += hits.len() as u64;
            hits.iter().for_each(&mut each);
            let body = json!({ "scroll": KEEP, "scroll_id": id });
            let path = format!("/_search/scroll?filter_path={READ}");
            page = self.ask(cluster, "POST", &path, Some(&body)).await?;
        }
        let path = format!("/{index}/_count?preference={copy}");
        let count = self.ask(cluster, "GET", &path, None).await?["count"].as_u64();
        if count != Some(documents) {
            let why = format!("_count says {count:?}, and {documents} documents were read");
            return Err(self.unread(cluster, place, &why));
        }
        Ok(())
    }

    fn unread(&self, cluster: &str, place: &Place, why: &str) -> Error {
        let why = format!("shard {} on {}: {why}", place.shard, place.node);
        Error::Digest { cluster: cluster.to_owned(), why }
    }
}

/// The copies that are meant, from `_stats`, by shard; a copy that is not started has no figures. One that moves to
/// another node is in use until it has arrived there.
fn places(stats: &Value, copies: Copies) -> Vec<Place> {
    let indices = stats["indices"].as_object().into_iter().flat_map(serde_json::Map::values);
    let shards = indices.flat_map(|index| index["shards"].as_object().into_iter().flatten());
    let place = |(number, copy): (&String, &Value)| {
        let is_primary = copy["routing"]["primary"].as_bool()?;
        let state = copy["routing"]["state"].as_str()?;
        let started = ["STARTED", "RELOCATING"].contains(&state);
        let at = |name: &str| copy["seq_no"][name].as_u64();
        (started && copies.include(is_primary)).then_some(Place {
            shard: number.parse().ok()?,
            node: copy["routing"]["node"].as_str()?.to_owned(),
            is_primary,
            max_seq_no: at("max_seq_no"),
            local_checkpoint: at("local_checkpoint"),
        })
    };
    let of_shard = |(number, all): (&String, &Value)| {
        let all = all.as_array().cloned().unwrap_or_default();
        let number = number.clone();
        all.into_iter().filter_map(move |copy| place((&number, &copy)))
    };
    let mut places: Vec<Place> = shards.flat_map(of_shard).collect();
    places.sort_by(|a, b| (a.shard, &a.node).cmp(&(b.shard, &b.node)));
    places
}

/// A document as a page has it.
fn held(hit: &Value) -> ledger::Held {
    let id = hit["_id"].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| hit[name].as_u64().unwrap_or(0);
    let content = document_hash(&id, &hit["_source"]);
    ledger::Held { id, seq_no: number("_seq_no"), version: number("_version"), content }
}

/// The hash of a document as it is sent: it equals that of the document as it is read.
pub(crate) fn hash_of_text(id: &str, source: &[u8]) -> u64 {
    serde_json::from_slice(source).map_or(0, |source| document_hash(id, &source))
}

/// The hash of a document as it is read: of `_id` and of `_source` with its keys in order.
fn document_hash(id: &str, source: &Value) -> u64 {
    store::document_hash(id, source.to_string().as_bytes())
}

/// A document as one of a sum, in which order does not matter.
fn summed(hit: &Value) -> RunSum {
    RunSum { documents: 1, content: held(hit).content }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(hits: &[&Value]) -> RunSum {
        hits.iter().fold(RunSum::default(), |sum, hit| sum.plus(summed(hit)))
    }

    #[test]
    fn order_does_not_matter_but_every_byte_does() {
        let (a, b) =
            (json!({"_id": "1", "_source": {"x": 1, "y": 2}}), json!({"_id": "2", "_source": {}}));
        let whole = sum(&[&a, &b]);
        assert_eq!(whole, sum(&[&b, &a]));
        assert_eq!(whole.documents, 2);
        let keys = json!({"_id": "1", "_source": {"y": 2, "x": 1}});
        assert_eq!(whole, sum(&[&keys, &b]));
        let other = json!({"_id": "1", "_source": {"x": 1, "y": 3}});
        assert_ne!(whole, sum(&[&other, &b]));
        let swapped =
            [json!({"_id": "2", "_source": {"x": 1, "y": 2}}), json!({"_id": "1", "_source": {}})];
        assert_ne!(whole, sum(&[&swapped[0], &swapped[1]]));
    }

    #[test]
    fn a_document_is_held_with_its_number_and_version() {
        let hit = json!({"_id": "1", "_seq_no": 7, "_version": 2, "_source": {"x": 1}});
        let content = hash_of_text("1", br#"{ "x": 1 }"#);
        assert_eq!(held(&hit), ledger::Held { id: "1".to_owned(), seq_no: 7, version: 2, content });
    }

    #[test]
    fn only_started_copies_of_the_kind_are_read() {
        let copy = |primary: bool, state: &str, node: &str| {
            json!({
                "routing": { "primary": primary, "state": state, "node": node },
                "seq_no": { "max_seq_no": 4, "local_checkpoint": -1 },
            })
        };
        let stats = json!({ "indices": { "a": { "shards": {
            "1": [copy(true, "RELOCATING", "b"), copy(false, "INITIALIZING", "a")],
            "0": [copy(false, "STARTED", "b"), copy(true, "STARTED", "a")],
        } } } });
        let found = |copies| -> Vec<(u32, String)> {
            let places = places(&stats, copies);
            assert!(places.iter().all(|p| (p.max_seq_no, p.local_checkpoint) == (Some(4), None)));
            places.into_iter().map(|place| (place.shard, place.node)).collect()
        };
        let (a0, b0, b1) = ((0, "a".to_owned()), (0, "b".to_owned()), (1, "b".to_owned()));
        assert_eq!(found(Copies::Primaries), [a0.clone(), b1.clone()]);
        assert_eq!(found(Copies::Replicas), std::slice::from_ref(&b0));
        assert_eq!(found(Copies::All), [a0, b0, b1]);
        assert_eq!(places(&json!(null), Copies::Primaries), []);
    }
}
