//! A digest for clusters that have none of their own: every live document of a copy is read through `_search`, and
//! hashed here.
//!
//! The hash of a document is that of `_id` and of `_source` with its keys in order, so it compares copies, not
//! engines.

use record::ShardDigest;
use serde_json::{Value, json};

use super::base::Runner;
use crate::error::Error;

/// Documents of a page: the most that `index.max_result_window` lets through by default.
const PAGE: u64 = 10_000;
/// How long a scroll is kept between two pages.
const KEEP: &str = "5m";

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

/// A started copy.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    shard: u32,
    node: String,
}

impl Runner<'_> {
    /// Reads every document of the copies that are meant, index by index.
    pub(crate) async fn read_copies(
        &self,
        cluster: &str,
        copies: Copies,
    ) -> Result<Vec<ShardDigest>, Error> {
        let mut shards = Vec::new();
        for index in &self.plan.indices {
            let index = index.name.as_str();
            self.ask(cluster, "POST", &format!("/{index}/_refresh"), None).await?;
            let path = format!("/_cat/shards/{index}?format=json&h=shard,prirep,state,node");
            for place in places(&self.ask(cluster, "GET", &path, None).await?, copies) {
                shards.push(self.read_copy(cluster, index, &place).await?);
            }
        }
        Ok(shards)
    }

    async fn read_copy(
        &self,
        cluster: &str,
        index: &str,
        place: &Place,
    ) -> Result<ShardDigest, Error> {
        let copy = format!("_shards:{}%7C_only_nodes:{}", place.shard, place.node);
        let path = format!(
            "/{index}/_search?scroll={KEEP}&size={PAGE}&preference={copy}\
             &filter_path=_scroll_id,_shards.failed,hits.hits._id,hits.hits._source"
        );
        let mut page = self.ask(cluster, "POST", &path, Some(&json!({ "sort": ["_doc"] }))).await?;
        let mut sum = Sum::default();
        loop {
            if page.pointer("/_shards/failed").and_then(Value::as_u64) != Some(0) {
                return Err(self.unread(cluster, place, "a page failed"));
            }
            let id = page["_scroll_id"].clone();
            if !sum.add_page(&page) {
                let body = json!({ "scroll_id": id });
                self.ask(cluster, "DELETE", "/_search/scroll", Some(&body)).await?;
                break;
            }
            let path = "/_search/scroll\
                        ?filter_path=_scroll_id,_shards.failed,hits.hits._id,hits.hits._source";
            let body = json!({ "scroll": KEEP, "scroll_id": id });
            page = self.ask(cluster, "POST", path, Some(&body)).await?;
        }
        let path = format!("/{index}/_count?preference={copy}");
        let count = self.ask(cluster, "GET", &path, None).await?["count"].as_u64();
        if count != Some(sum.documents) {
            let why = format!("_count says {count:?}, and {} documents were read", sum.documents);
            return Err(self.unread(cluster, place, &why));
        }
        Ok(ShardDigest {
            index: index.to_owned(),
            shard: place.shard,
            documents: sum.documents,
            content: format!("{:016x}", sum.hash),
        })
    }

    fn unread(&self, cluster: &str, place: &Place, why: &str) -> Error {
        let why = format!("shard {} on {}: {why}", place.shard, place.node);
        Error::Digest { cluster: cluster.to_owned(), why }
    }
}

/// The started copies that are meant, from `_cat/shards`, by shard.
fn places(rows: &Value, copies: Copies) -> Vec<Place> {
    let place = |row: &Value| {
        let meant = copies.include(row["prirep"] == "p") && row["state"] == "STARTED";
        let shard = row["shard"].as_str()?.parse().ok()?;
        meant.then(|| Some(Place { shard, node: row["node"].as_str()?.to_owned() }))?
    };
    let mut places: Vec<Place> = rows.as_array().into_iter().flatten().filter_map(place).collect();
    places.sort_by(|a, b| (a.shard, &a.node).cmp(&(b.shard, &b.node)));
    places
}

/// The hash of a document as it is sent: it equals that of the document as it is read.
pub(crate) fn hash_of_text(id: &str, source: &[u8]) -> u64 {
    serde_json::from_slice(source).map_or(0, |source| document_hash(id, &source))
}

/// The hash of a document as it is read: of `_id` and of `_source` with its keys in order.
fn document_hash(id: &str, source: &Value) -> u64 {
    store::document_hash(id, source.to_string().as_bytes())
}

/// Documents and the wrapping sum of their hashes: order does not matter.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    documents: u64,
    hash: u64,
}

impl Sum {
    /// Whether there were any.
    fn add_page(&mut self, page: &Value) -> bool {
        let hits = page.pointer("/hits/hits").and_then(Value::as_array);
        for hit in hits.into_iter().flatten() {
            let hash = document_hash(hit["_id"].as_str().unwrap_or_default(), &hit["_source"]);
            self.documents += 1;
            self.hash = self.hash.wrapping_add(hash);
        }
        hits.is_some_and(|hits| !hits.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(pages: &[Value]) -> Sum {
        let mut sum = Sum::default();
        for page in pages {
            assert!(sum.add_page(page));
        }
        assert!(!sum.add_page(&json!({ "_shards": { "failed": 0 } })));
        sum
    }

    fn page(hits: Value) -> Value {
        json!({ "hits": { "hits": hits } })
    }

    #[test]
    fn order_and_pages_do_not_matter_but_every_byte_does() {
        let (a, b) =
            (json!({"_id": "1", "_source": {"x": 1, "y": 2}}), json!({"_id": "2", "_source": {}}));
        let whole = sum(&[page(json!([a, b]))]);
        assert_eq!(whole, sum(&[page(json!([b])), page(json!([a]))]));
        assert_eq!(whole.documents, 2);
        let keys = json!({"_id": "1", "_source": {"y": 2, "x": 1}});
        assert_eq!(whole, sum(&[page(json!([keys, b]))]));
        let other = json!({"_id": "1", "_source": {"x": 1, "y": 3}});
        assert_ne!(whole, sum(&[page(json!([other, b]))]));
        let swapped =
            [json!({"_id": "2", "_source": {"x": 1, "y": 2}}), json!({"_id": "1", "_source": {}})];
        assert_ne!(whole, sum(&[page(json!(swapped))]));
    }

    #[test]
    fn only_started_copies_of_the_kind_are_read() {
        let rows = json!([
            {"shard": "1", "prirep": "p", "state": "STARTED", "node": "b"},
            {"shard": "0", "prirep": "p", "state": "STARTED", "node": "a"},
            {"shard": "0", "prirep": "r", "state": "STARTED", "node": "b"},
            {"shard": "1", "prirep": "r", "state": "UNASSIGNED", "node": null},
        ]);
        let place = |shard, node: &str| Place { shard, node: node.to_owned() };
        assert_eq!(places(&rows, Copies::Primaries), [place(0, "a"), place(1, "b")]);
        assert_eq!(places(&rows, Copies::Replicas), [place(0, "b")]);
        assert_eq!(places(&json!(null), Copies::Primaries), []);
    }
}
