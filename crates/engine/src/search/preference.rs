//! `preference` and `routing`: which shards, and which of their copies, a search goes to.

use std::collections::BTreeSet;

use crate::state::IndexMeta;
use crate::transport::{Failure, Result};
use policy::routing;

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// Only these shards, if any.
    pub(super) shards: Option<Vec<u32>>,
    /// Only the shards of documents with one of these values of `_routing`, if any.
    routing: Vec<String>,
    pub(super) rule: Rule,
}

/// Which of the copies of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// As the policy says.
    #[default]
    None,
    /// The node that was asked, where it has one.
    Local,
    /// The node that was asked, and no other.
    OnlyLocal,
    /// Nodes that fit these patterns, where they have one.
    PreferNodes(Vec<String>),
    /// Nodes that fit these patterns, and no others.
    OnlyNodes(Vec<String>),
    /// Always the same for the same text.
    Sticky(String),
}

impl Preference {
    /// Reads the parameter.
    pub fn parse(text: &str) -> Result<Preference> {
        let wrong = |reason: String| Failure::new(400, "illegal_argument_exception", reason);
        if let Some(rest) = text.strip_prefix("_shards:") {
            let (numbers, rest) = rest.split_once('|').unwrap_or((rest, ""));
            let shards = numbers.split(',').map(|number| {
                let number = number.trim();
                number.parse().map_err(|_| {
                    wrong(format!("preference [{text}] needs numbers of shards, found [{number}]"))
                })
            });
            let shards = Some(shards.collect::<Result<Vec<u32>, _>>()?);
            // Read one inside the other, a text of very many would take all of the stack.
            if rest.starts_with("_shards:") {
                return Err(wrong(format!("preference [{text}] names shards twice")));
            }
            let Preference { rule, .. } = Preference::parse(rest)?;
            return Ok(Preference { shards, rule, ..Preference::default() });
        }
        let nodes = |list: &str| {
            let nodes: Vec<String> =
                list.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect();
            if nodes.is_empty() {
                return Err(wrong(format!("preference [{text}] names no node")));
            }
            Ok(nodes)
        };
        let rule = match text.split_once(':').unwrap_or((text, "")) {
            ("", _) => Rule::None,
            ("_local", "") => Rule::Local,
            ("_only_local", "") => Rule::OnlyLocal,
            ("_prefer_nodes", list) => Rule::PreferNodes(nodes(list)?),
            ("_only_nodes", list) => Rule::OnlyNodes(nodes(list)?),
            (name, _) if name.starts_with('_') => {
                return Err(wrong(format!(
                    "no Preference for [{text}]; known are _local, _only_local, _prefer_nodes:, _only_nodes:, \
                     _shards: and texts without an underscore in front"
                )));
            }
            _ => Rule::Sticky(text.to_owned()),
        };
        Ok(Preference { rule, ..Preference::default() })
    }

    /// The same, of the shards alone that the parameter `routing` leads to: values separated by commas.
    pub fn routed(mut self, routing: Option<&str>) -> Preference {
        let values = routing.into_iter().flat_map(|text| text.split(','));
        self.routing = values.filter(|value| !value.is_empty()).map(str::to_owned).collect();
        self
    }

    /// The shards of an index that are searched; none where all are.
    pub(super) fn shards_of(&self, index: &IndexMeta) -> Option<BTreeSet<u32>> {
        let named: Option<BTreeSet<u32>> =
            self.shards.as_ref().map(|only| only.iter().copied().collect());
        if self.routing.is_empty() {
            return named;
        }
        let routed = self.routing.iter().map(|value| index.shard_of(value));
        let is_named = |shard: &u32| named.as_ref().is_none_or(|only| only.contains(shard));
        Some(routed.filter(is_named).collect())
    }
}

/// The turn of a rotation that a sticky text gives a shard.
pub(super) fn sticky_turn(text: &str, shard: u32) -> u64 {
    // As `OperationRouting`: 31 times the hash of the text, plus that of the shard.
    let hash = routing::hash(text).wrapping_mul(31).wrapping_add(shard as i32);
    u64::from(hash.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routing_leads_to_the_shards_of_its_values() {
        let meta = IndexMeta { shards: 5, ..IndexMeta::default() };
        let of = |preference: &str, routing: Option<&str>| {
            let preference = Preference::parse(preference).unwrap().routed(routing);
            preference.shards_of(&meta).map(Vec::from_iter)
        };
        let shards = |values: [&str; 2]| {
            Vec::from_iter(BTreeSet::from(values.map(|value| meta.shard_of(value))))
        };
        assert_eq!((of("", None), of("", Some(""))), (None, None));
        // "hello" is the known value of `policy::routing`.
        assert_eq!(of("_local", Some("hello")), Some(vec![1]));
        assert_eq!(of("", Some("hello,hell,hello")), Some(shards(["hello", "hell"])));
        assert_eq!(of("_shards:3,0", None), Some(vec![0, 3]));
        assert_eq!(of("_shards:1,2|_local", Some("hello")), Some(vec![1]));
        assert_eq!(of("_shards:2", Some("hello")), Some(vec![]));
    }

    #[test]
    fn reads_every_form() {
        let rule = |text: &str| Preference::parse(text).unwrap().rule;
        assert_eq!(rule(""), Rule::None);
        assert_eq!(rule("_local"), Rule::Local);
        assert_eq!(rule("_only_local"), Rule::OnlyLocal);
        assert_eq!(rule("_only_nodes:a,b*"), Rule::OnlyNodes(vec!["a".into(), "b*".into()]));
        assert_eq!(rule("_prefer_nodes:a"), Rule::PreferNodes(vec!["a".into()]));
        assert_eq!(rule("session-7"), Rule::Sticky("session-7".into()));
        let both = Preference::parse("_shards:2,0|_local").unwrap();
        let expected = Preference { shards: Some(vec![2, 0]), ..Preference::default() };
        assert_eq!(both, Preference { rule: Rule::Local, ..expected });
        for bad in
            ["_primary", "_only_nodes:", "_shards:x", "_shards:", "_shards:1|_shards:2", "_x:y"]
        {
            let failure = Preference::parse(bad).unwrap_err();
            assert_eq!(failure.status, 400, "{bad}");
            assert!(failure.reason.contains('['), "{bad}");
        }
    }

    /// The heads of `_msearch` stand in its body, which may be long.
    #[test]
    fn shards_that_are_named_very_often_are_refused_as_those_named_twice() {
        let failure = Preference::parse(&"_shards:0|".repeat(1 << 20)).unwrap_err();
        assert!(failure.status == 400 && failure.reason.ends_with("names shards twice"));
    }
}
