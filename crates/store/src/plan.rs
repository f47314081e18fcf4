//! What a batch of operations changes in the index: which are new, which replace documents, which are superseded.
//!
//! The newest operation on a document wins, by sequence number, in whatever order they arrive. Looking up
//! what the index holds costs; generated ids mostly need none: an operation with one can only be superseded
//! by an update or delete with a higher sequence number, so above the highest of those it is a plain append.
//! Elasticsearch calls that bound `max_seq_no_of_updates_or_deletes`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use world::Time;

use crate::operation::{OpKind, Operation};
use crate::versions::{DELETED_KEPT, Entry, VersionMap};

/// The newest live document with an id, as the refreshed index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
}

/// The newest operation on an id, from wherever it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    /// None where the document is there, else when it was deleted.
    pub(crate) deleted: Option<Time>,
}

impl Current {
    pub(crate) fn is_live(&self) -> bool {
        self.deleted.is_none()
    }
}

/// One change to the index: operation `at` of the batch is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: usize,
    /// Whether a live document with this id must go first.
    pub(crate) replaces: bool,
}

/// Up to where lookups can be skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Highest sequence number in the commit that was opened.
    pub(crate) committed: Option<u64>,
    /// What of the history its files hold above the local checkpoint.
    pub(crate) committed_above: Rc<[Range<u64>]>,
    /// Highest sequence number of an operation that was no plain append.
    pub(crate) updates: Option<u64>,
}

impl Bounds {
    /// Whether `op` can neither be superseded nor replace anything.
    fn is_append(&self, op: &Operation) -> bool {
        matches!(op.kind, OpKind::Index { auto_id: true, .. })
            && Some(op.seq_no) > self.committed
            && Some(op.seq_no) > self.updates
    }

    /// Whether the opened files hold a synthetic batch, which they hold whole or not at all.
    fn is_committed(&self, op: &Operation) -> bool {
        let holds = |range: &Range<u64>| range.contains(&op.seq_no);
        self.committed_above.iter().any(holds)
    }

    fn with(mut self, ops: &[Operation]) -> Self {
        let updates = ops.iter().filter(|op| is_update(op)).map(|op| op.seq_no).max();
        self.updates = self.updates.max(updates);
        self
    }
}

fn is_update(op: &Operation) -> bool {
    match op.kind {
        OpKind::Index { auto_id, .. } => !auto_id,
        OpKind::Delete => true,
        OpKind::NoOp | OpKind::SyntheticBatch(_) => false,
    }
}

/// The ids of `ops` that must be looked up in the index before planning.
pub(crate) fn lookups(ops: &[Operation], bounds: &Bounds, map: &VersionMap) -> Vec<Arc<str>> {
    let bounds = bounds.clone().with(ops);
    let needs = |op: &&Operation| {
        !matches!(op.kind, OpKind::NoOp | OpKind::SyntheticBatch(_))
            && !bounds.is_append(op)
            && map.get(&op.id).is_none()
    };
    let ids: BTreeSet<&Arc<str>> = ops.iter().filter(needs).map(|op| &op.id).collect();
    ids.into_iter().cloned().collect()
}

/// A batch being planned.
pub(crate) struct Planner<'a> {
    map: &'a VersionMap,
    known: HashMap<Arc<str>, Located>,
    fresh: HashMap<Arc<str>, Entry>,
    bounds: Bounds,
    track_appends: bool,
    now: Time,
    plan: Plan,
}

/// What a batch comes to.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) entries: BTreeMap<Arc<str>, Entry>,
    /// Live documents more, or fewer.
    pub(crate) documents: i64,
    /// Whether documents went into the index that the version map does not know.
    pub(crate) untracked: bool,
    pub(crate) updates: Option<u64>,
}

impl<'a> Planner<'a> {
    /// `known` holds what was found of [`lookups`]; `track_appends` puts plain appends into the version map.
    pub(crate) fn new(
        map: &'a VersionMap,
        known: HashMap<Arc<str>, Located>,
        bounds: Bounds,
        ops: &[Operation],
        (track_appends, now): (bool, Time),
    ) -> Self {
        // An update in the same batch must find the appends before it.
        let track_appends = track_appends || ops.iter().any(is_update);
        let bounds = bounds.with(ops);
        let plan = Plan { updates: bounds.updates, ..Plan::default() };
        Planner { map, known, fresh: HashMap::new(), bounds, track_appends, now, plan }
    }

    /// The newest operation on `id` so far.
    pub(crate) fn current(&self, id: &str) -> Option<Current> {
        let of = |e: &Entry| {
            let deleted = e.source.is_none().then_some(e.at);
            Current { seq_no: e.seq_no, version: e.version, deleted }
        };
        let located = |l: &Located| Current { seq_no: l.seq_no, version: l.version, deleted: None };
        let entry = self.fresh.get(id).or_else(|| self.map.get(id));
        entry.map(of).or_else(|| self.known.get(id).map(located))
    }

    /// The same for a write that a primary decides on: as in the field a deletion is forgotten after a while.
    pub(crate) fn remembered(&self, id: &str) -> Option<Current> {
        let is_known =
            |current: &Current| current.deleted.is_none_or(|at| self.now - at < DELETED_KEPT);
        self.current(id).filter(is_known)
    }

    /// Takes operation `at` of the batch.
    pub(crate) fn take(&mut self, at: usize, op: &Operation) {
        let source = match &op.kind {
            OpKind::NoOp => return,
            OpKind::SyntheticBatch(batch) => {
                // Its documents are always new, unless the opened files hold them.
                if !self.bounds.is_committed(op) {
                    self.plan.documents += batch.documents() as i64;
                    self.plan.changes.push(Change { at, replaces: false });
                    self.plan.untracked = true;
                }
                return;
            }
            OpKind::Delete => None,
            OpKind::Index { source, .. } => Some(source.clone()),
        };
        if self.bounds.is_append(op) {
            self.plan.documents += 1;
            self.plan.changes.push(Change { at, replaces: false });
            if self.track_appends {
                self.remember(op, source);
            } else {
                self.plan.untracked = true;
            }
            return;
        }
        let current = self.current(&op.id);
        if current.is_some_and(|current| current.seq_no >= op.seq_no) {
            return;
        }
        let replaces = current.is_some_and(|current| current.is_live());
        if replaces || source.is_some() {
            self.plan.changes.push(Change { at, replaces });
        }
        self.plan.documents += i64::from(source.is_some()) - i64::from(replaces);
        self.remember(op, source);
    }

    fn remember(&mut self, op: &Operation, source: Option<bytes::Bytes>) {
        let routing = op.routing().cloned();
        let (seq_no, version, at) = (op.seq_no, op.version, self.now);
        let entry = Entry { seq_no, version, source, routing, at };
        self.fresh.insert(op.id.clone(), entry);
    }

    /// The plan of all that was taken.
    pub(crate) fn finish(mut self) -> Plan {
        self.plan.entries = self.fresh.into_iter().collect();
        self.plan
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn op(seq_no: u64, id: &str, kind: char) -> Operation {
        let source = Bytes::from_static(b"{}");
        let kind = match kind {
            'a' => OpKind::Index { source, auto_id: true, routing: None },
            _ => OpKind::NoOp,
        };
        Operation { seq_no, version: 1, id: Arc::from(id), kind }
    }

    fn plan(ops: &[Operation], map: &VersionMap, known: &[(&str, u64)], bounds: Bounds) -> Plan {
        let known = known
            .iter()
            .map(|(id, seq_no)| (Arc::from(*id), Located { seq_no: *seq_no, version: 1 }))
            .collect();
        let mut planner = Planner::new(map, known, bounds, ops, (false, Time(0)));
        for (at, op) in ops.iter().enumerate() {
            planner.take(at, op);
        }
        planner.finish()
    }

    fn changes(plan: &Plan) -> Vec<(usize, bool)> {
        plan.changes.iter().map(|change| (change.at, change.replaces)).collect()
    }

    #[test]
    fn appends_need_no_lookup_and_are_not_remembered() {
        let ops = [op(5, "x", 'a'), op(3, "y", 'a'), op(4, "", 'n')];
        let map = VersionMap::default();
        let bounds = Bounds { committed: Some(2), updates: Some(2), ..Bounds::default() };
        assert!(lookups(&ops, &bounds, &map).is_empty());
        let plan = plan(&ops, &map, &[], bounds);
        assert_eq!(changes(&plan), [(0, false), (1, false)]);
        assert!(plan.untracked && plan.entries.is_empty() && plan.documents == 2);
    }

    #[test]
    fn runs_are_applied_unless_the_files_hold_them() {
        let batch = |seq_no| {
            let kind = OpKind::SyntheticBatch(crate::SyntheticBatch::new(10, 100));
            Operation { seq_no, version: 1, id: Arc::from("batch"), kind }
        };
        let ops = [batch(20), batch(30)];
        let map = VersionMap::default();
        let bounds = Bounds {
            committed: Some(39),
            committed_above: Rc::from([20..20, 30..40]),
            ..Bounds::default()
        };
        assert!(lookups(&ops, &bounds, &map).is_empty());
        let plan = plan(&ops, &map, &[], bounds);
        assert_eq!((changes(&plan), plan.documents), (vec![(0, false)], 10));
    }

    #[test]
    fn below_a_bound_appends_are_looked_up() {
        let ops = [op(2, "x", 'a'), op(7, "y", 'a')];
        let map = VersionMap::default();
        let bounds = Bounds { committed: Some(2), ..Bounds::default() };
        assert_eq!(lookups(&ops, &bounds, &map), [Arc::from("x")]);
        assert_eq!(changes(&plan(&ops, &map, &[("x", 2)], bounds)), [(1, false)]);
    }
}
