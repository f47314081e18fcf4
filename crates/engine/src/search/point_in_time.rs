//! A point in time, as its id has it: which node holds which view, and the filters of the aliases that it is of.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::transport::{Failure, Result};

/// Views of one point in time, at most: an id that somebody made up may name any number of them.
const MAX_VIEWS: usize = 1 << 16;

/// A point in time that a search is to be of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointInTime {
    pub(super) views: Vec<View>,
    filters: BTreeMap<String, String>,
    /// How long it is kept from now on, at least; none for as long as was said before.
    pub keep_alive: Option<Duration>,
}

/// The view of one shard, as the id has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct View {
    pub(super) index: String,
    pub(super) shard: u32,
    pub(super) node: String,
    pub(super) context: u64,
}

impl PointInTime {
    /// Reads an id.
    pub fn parse(id: &str, keep_alive: Option<Duration>) -> Result<Self> {
        let is_few = |bytes: &Vec<u8>| {
            postcard::take_from_bytes(bytes).is_ok_and(|(count, _): (usize, _)| count <= MAX_VIEWS)
        };
        let bytes = URL_SAFE_NO_PAD.decode(id).ok().filter(is_few);
        let read = bytes.and_then(|bytes| {
            postcard::from_bytes::<(Vec<View>, BTreeMap<String, String>)>(&bytes).ok()
        });
        // A shard that was named often would be searched as often.
        let read = read.filter(|(views, _)| {
            let shards: BTreeSet<(&str, u32)> =
                views.iter().map(|view| (view.index.as_str(), view.shard)).collect();
            shards.len() == views.len()
        });
        let wrong = || {
            let begins: String = id.chars().take(1000).collect();
            Failure::new(400, "illegal_argument_exception", format!("invalid id: [{begins}]"))
        };
        let (views, filters) = read.ok_or_else(wrong)?;
        let mut point = PointInTime { views, filters, keep_alive };
        // Each is parsed for each search, and an id that somebody made up may have any number of them.
        let indices = point.indices();
        point.filters.retain(|name, _| indices.binary_search(name).is_ok());
        Ok(point)
    }

    /// The indices that it is of, sorted.
    pub fn indices(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.views.iter().map(|view| &view.index).collect();
        names.into_iter().cloned().collect()
    }

    /// The filters of its indices by their names, as queries are written in a request. Of an index without one all
    /// documents are found. As in the field they are those that aliases had when it was opened.
    pub fn filters(&self) -> &BTreeMap<String, String> {
        &self.filters
    }
}

/// The id of these views, with filters.
pub(super) fn id_of(views: &[View], filters: &BTreeMap<String, String>) -> String {
    let bytes = postcard::to_stdvec(&(views, filters));
    let bytes = bytes.expect("plain values are bytes, and memory takes all");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_views_of_the_shards() {
        let view = |index: &str, shard| View {
            index: index.to_owned(),
            shard,
            node: "c-1".to_owned(),
            context: 7,
        };
        let views = vec![view("b", 0), view("a", 1), view("b", 1)];
        let all = |index: &str| (index.to_owned(), "{\"match_all\":{}}".to_owned());
        let filters = BTreeMap::from([all("a"), all("elsewhere")]);
        let id = id_of(&views, &filters);
        let read = PointInTime::parse(&id, None).unwrap();
        assert_eq!(read.filters(), &BTreeMap::from([all("a")]));
        assert_eq!((read.indices(), read.views), (vec!["a".to_owned(), "b".to_owned()], views));
        let twice = id_of(&[view("b", 0), view("a", 1), view("b", 0)], &filters);
        let many = URL_SAFE_NO_PAD.encode(postcard::to_stdvec(&(MAX_VIEWS + 1)).unwrap());
        for wrong in ["x", "DnF1ZXJ5", "!", &twice, &many] {
            assert_eq!(PointInTime::parse(wrong, None).unwrap_err().status, 400, "{wrong}");
        }
    }
}
