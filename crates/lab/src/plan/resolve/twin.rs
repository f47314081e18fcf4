//! `[twin]`: a cluster that was seen, and what is asked of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use engine::ShardContents;
use record::text::has_hidden;
use record::units::{counted, parse_duration, parse_size};
use toml::Spanned;
use world::model::{Models, parameters};

use super::together::{Together, every};
use crate::error::Result;
use crate::plan::document::{
    TWIN, TWIN_INDEX, TWIN_SHARD, TwinIndexTable, TwinNodeTable, TwinShardTable, TwinTable,
    UncertainTable,
};
use crate::plan::file::Plan;
use crate::plan::keys::parse_number;
use crate::plan::topology::Cluster;
use crate::plan::twin::{Question, Twin, TwinIndex, TwinNode, TwinShard, Uncertain};

pub(super) const TWIN_NODES_MAX: u32 = 2000;
const FLUSH: &str = "flush";
/// How long a node is away where the plan does not say it.
pub const DOWN_WITHOUT: Duration = Duration::from_secs(30);

/// How long a node of a twin may be away.
pub fn down_bounds() -> RangeInclusive<Duration> {
    TWIN.bounds("down", parse_duration).1
}

/// How many replicas an index of a twin may have.
pub fn replicas_bounds() -> RangeInclusive<i64> {
    TWIN_INDEX.bounds("replicas", parse_number).1
}

impl Plan {
    pub(super) fn twin(
        &self,
        leader: Cluster,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Option<Twin>> {
        let Some(table) = &self.document.twin else { return Ok(None) };
        let twin = table.get_ref();
        let nodes = self.twin_nodes(table, leader)?;
        let places: BTreeMap<&str, usize> = nodes
            .iter()
            .take(twin.node.len())
            .enumerate()
            .map(|(at, node)| (node.name.as_str(), at))
            .collect();
        let index = |index| self.twin_index(index, &places, check_setting);
        let indices = every(twin.index.iter().map(index));
        let indices: Vec<TwinIndex> = indices?;
        let question = self.question(table, &nodes, &indices);
        let uncertain = every(twin.uncertain.iter().map(|one| self.uncertain(one)));
        let (question, uncertain) = (question, uncertain).together()?;
        Ok(Some(Twin { nodes, indices, question, uncertain }))
    }

    fn twin_nodes(&self, table: &Spanned<TwinTable>, leader: Cluster) -> Result<Vec<TwinNode>> {
        let mut names = BTreeSet::new();
        let twin = table.get_ref();
        let nodes = twin.node.iter().chain(&twin.add).map(|node| {
            let name = node.name.get_ref();
            if name.is_empty() || has_hidden(name) || !names.insert(name) {
                let message =
                    "each node of a twin has a name of its own, of characters that can be seen";
                return Err(self.error(node.name.span(), message));
            }
            let attributes = self.texts(&node.attributes, "an attribute");
            let (disk, attributes) = (self.twin_disk(node), attributes).together()?;
            let (id, zone) = (node.id.clone(), node.zone.clone());
            Ok(TwinNode { name: name.clone(), id, zone, attributes, disk })
        });
        let nodes: Vec<TwinNode> = every(nodes)?;
        if self.has_right_keys() && leader.nodes as usize != nodes.len() + 1 {
            let message = format!(
                "the twin has {} with those that are added, and one more manages them; write nodes = {} in [leader]",
                counted(nodes.len(), "node", "nodes"),
                nodes.len() + 1
            );
            return Err(self.error(self.document.leader.nodes.span(), message));
        }
        Ok(nodes)
    }

    /// Bytes of a node's disk, and those of them that are free.
    fn twin_disk(&self, node: &TwinNodeTable) -> Result<Option<(u64, u64)>> {
        let size = |text: &Option<Spanned<String>>| {
            text.as_ref().map(|text| self.unit(text, parse_size)).transpose()
        };
        let (total, free) = (size(&node.disk), size(&node.disk_free)).together()?;
        match (total, free) {
            (Some(total), free) if free.is_none_or(|free| free <= total) => {
                Ok(Some((total, free.unwrap_or(total))))
            }
            (None, None) => Ok(None),
            _ => {
                let message = "disk_free is a part of disk: write both, and disk as the larger one";
                Err(self.error(node.name.span(), message))
            }
        }
    }

    fn twin_index(
        &self,
        index: &TwinIndexTable,
        places: &BTreeMap<&str, usize>,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<TwinIndex> {
        let name = engine::state::check_index_name(index.name.get_ref())
            .map_err(|why| self.error(index.name.span(), why.to_string()));
        let replicas = self.number::<u32>(&TWIN_INDEX, "replicas", &index.replicas);
        let copies = replicas.as_ref().map_or(usize::MAX, |replicas| *replicas as usize + 1);
        let shards = every(index.shard.iter().map(|shard| self.twin_shard(shard, places, copies)));
        let settings = self.settings(&index.settings, check_setting);
        let rate = index.documents_per_s.as_ref();
        let documents_per_s =
            rate.map_or(Ok(0.0), |rate| self.real(&TWIN_INDEX, "documents_per_s", rate));
        let all = (name, replicas, settings, documents_per_s, shards);
        let ((), replicas, settings, documents_per_s, shards) = all.together()?;
        let name = index.name.get_ref().clone();
        let lost = index.lost.clone();
        Ok(TwinIndex { name, replicas, settings, documents_per_s, lost, shards })
    }

    fn twin_shard(
        &self,
        shard: &TwinShardTable,
        places: &BTreeMap<&str, usize>,
        copies: usize,
    ) -> Result<TwinShard> {
        let size = |text: &Spanned<String>| self.size(&TWIN_SHARD, "bytes", text);
        let place = |node: &Spanned<String>| {
            places.get(node.get_ref().as_str()).copied().ok_or_else(|| {
                let known: Vec<&str> = places.keys().copied().collect();
                self.unknown("no node of the twin is called", node, "Nodes", &known)
            })
        };
        let found = (
            size(&shard.bytes),
            self.number(&TWIN_SHARD, "documents", &shard.documents),
            self.number(&TWIN_SHARD, "segments", &shard.segments),
            every(shard.copies.get_ref().iter().map(place)),
        );
        let (bytes, documents, segments, nodes): (_, _, _, Vec<usize>) = found.together()?;
        let distinct: BTreeSet<&usize> = nodes.iter().collect();
        if nodes.is_empty() || distinct.len() < nodes.len() || nodes.len() > copies {
            let message = "a shard's copies are the nodes that have it, the primary's first: one at least, each once, \
                           and no more than the primary and the replicas of the index";
            return Err(self.error(shard.copies.span(), message));
        }
        let contents = ShardContents { documents, bytes, segments };
        Ok(TwinShard { contents, nodes })
    }

    fn question(
        &self,
        table: &Spanned<TwinTable>,
        nodes: &[TwinNode],
        indices: &[TwinIndex],
    ) -> Result<Question> {
        let twin = table.get_ref();
        let asked = [
            twin.lose.is_some(),
            twin.restart.is_some(),
            twin.drain.is_some(),
            !twin.add.is_empty(),
            !twin.replicas.is_empty(),
        ];
        if asked.iter().filter(|asked| **asked).count() != 1 {
            let message = "a twin is asked one thing: lose = [nodes or zones], restart = [nodes or zones], drain = \
                           [nodes or zones], add = [nodes], or replicas = { index = number }";
            return Err(self.error(table.span(), message));
        }
        let of_restart = [("down", &twin.down), ("before_restart", &twin.before_restart)];
        let given = of_restart.into_iter().find_map(|(key, given)| Some((key, given.as_ref()?)));
        if let Some((key, given)) = given.filter(|_| twin.restart.is_none()) {
            let message = format!(
                "{key} is for nodes that restart; leave it out, or ask with restart = [nodes or zones]"
            );
            return Err(self.error(given.span(), message));
        }
        let called = |names: &Spanned<Vec<Spanned<String>>>| -> Result<Vec<usize>> {
            let all: Vec<Vec<usize>> =
                every(names.get_ref().iter().map(|name| self.nodes_called(name, nodes)))?;
            let mut all = all.concat();
            let mut seen = BTreeSet::new();
            all.retain(|node| seen.insert(*node));
            if all.is_empty() || all.len() == nodes.len() && twin.restart.is_none() {
                let message = "name one node or zone at least, and leave one node; where there is but one, ask first \
                               what another one brings";
                return Err(self.error(names.span(), message));
            }
            Ok(all)
        };
        if let Some(lost) = &twin.lose {
            return Ok(Question::Lose(called(lost)?));
        }
        if let Some(drained) = &twin.drain {
            return Ok(Question::Drain(called(drained)?));
        }
        if !twin.add.is_empty() {
            return Ok(Question::Add((twin.node.len()..nodes.len()).collect()));
        }
        if let Some(restarted) = &twin.restart {
            let down = twin.down.as_ref().map_or(Ok(DOWN_WITHOUT), |d| self.time(&TWIN, "down", d));
            let flush = twin.before_restart.as_ref().map_or(Ok(false), |done| {
                let message = "what is done before a node restarts is \"flush\"; without before_restart it is nothing";
                let is_flush = done.get_ref() == FLUSH;
                is_flush.then_some(true).ok_or_else(|| self.error(done.span(), message))
            });
            let (nodes, down, flush) = (called(restarted), down, flush).together()?;
            return Ok(Question::Restart { nodes, down, flush });
        }
        let bounds = replicas_bounds();
        let replicas = twin.replicas.iter().map(|(name, number)| {
            if !indices.iter().any(|index| index.name == *name.get_ref()) {
                let known: Vec<&str> = indices.iter().map(|index| index.name.as_str()).collect();
                return Err(self.unknown("no index of the twin is called", name, "Indices", &known));
            }
            let number = match number.get_ref().as_integer() {
                Some(number) if bounds.contains(&number) => number as u32,
                _ => {
                    let (least, most) = (bounds.start(), bounds.end());
                    let message = format!("replicas are a whole number, {least} to {most}");
                    return Err(self.error(number.span(), message));
                }
            };
            Ok((name.get_ref().clone(), number))
        });
        Ok(Question::Replicas(every(replicas)?))
    }

    /// A node by its name or id, or the nodes of a zone or of an attribute's value.
    fn nodes_called(&self, name: &Spanned<String>, nodes: &[TwinNode]) -> Result<Vec<usize>> {
        let found = TwinNode::called(nodes, name.get_ref());
        if !found.is_empty() {
            return Ok(found);
        }
        let pair = |(name, value): (&String, &String)| format!("{name}={value}");
        let pairs: BTreeSet<String> =
            nodes.iter().flat_map(|node| node.attributes.iter().map(pair)).collect();
        let zones: BTreeSet<&str> = nodes.iter().filter_map(|node| node.zone.as_deref()).collect();
        let names = nodes.iter().map(|node| node.name.as_str());
        let known = zones.into_iter().chain(names).chain(pairs.iter().map(String::as_str));
        let known: Vec<&str> = known.collect();
        let said = "no node, zone or attribute of the twin is called";
        Err(self.unknown(said, name, "There are", &known))
    }

    fn uncertain(&self, table: &UncertainTable) -> Result<Uncertain> {
        let name = table.parameter.get_ref();
        let bound = |text: &Spanned<String>| {
            if name == Uncertain::DOWN {
                return self.time(&TWIN, "down", text).map(|time| time.as_secs_f64());
            }
            let mut models = Models::default();
            models
                .set(name, text.get_ref())
                .map_err(|wrong| self.error(text.span(), wrong.to_string()))?;
            let parameter = parameters().iter().find(|one| one.name == *name);
            let number = parameter.and_then(|one| one.number(&models));
            number.filter(|number| *number > 0.0).ok_or_else(|| {
                let message = format!("{name} has no bounds: it is no number above 0");
                self.error(text.span(), message)
            })
        };
        let (least, most) = (bound(&table.least), bound(&table.most)).together()?;
        if least > most {
            let message = "least is at most most";
            return Err(self.error(table.least.span(), message));
        }
        Ok(Uncertain { parameter: name.clone(), least, most })
    }
}
