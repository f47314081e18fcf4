//! A ledger of writes and their answers, and the check that copies hold what was acknowledged.
//!
//! The check knows which writes were sent and how they were answered, and it reads the documents of every copy. It
//! relies on nothing that a store says of itself, except whether its history has holes.
//!
//! A driver has at most one write to a document under way, and every write has content of its own. A write without an
//! answer may have been done, may be done later, or never; the check allows all three, and nothing else.

mod copy;
mod fate;
mod runs;
mod violation;

use std::collections::BTreeMap;
use std::fmt;

pub use copy::{Copy, Held, RunSum};
pub use fate::{Action, Fate};
pub use runs::Sums;
pub use violation::{Rule, Violation};

use violation::violation;

/// A write in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it asked for.
    pub action: Action,
    /// What became of it.
    pub fate: Fate,
}

/// What the answers say of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certain {
    /// Whether it is there.
    pub is_there: bool,
    /// Writes that were begun.
    pub writes: usize,
}

/// Names a write of a [`Ledger`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteId {
    document: String,
    number: usize,
}

/// Every write that a driver began, by document, in its order.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    documents: BTreeMap<String, Document>,
    runs: runs::Runs,
}

#[derive(Clone, Debug)]
struct Document {
    shard: u32,
    writes: Vec<Entry>,
}

impl Ledger {
    /// Enters a write that begins. Until [`Ledger::settle`] nobody knows what became of it.
    pub fn begin(&mut self, document: &str, shard: u32, action: Action) -> WriteId {
        let known = self
            .documents
            .entry(document.to_owned())
            .or_insert_with(|| Document { shard, writes: Vec::with_capacity(1) });
        known.writes.push(Entry { action, fate: Fate::Unknown });
        WriteId { document: document.to_owned(), number: known.writes.len() - 1 }
    }

    /// Enters what became of a write.
    pub fn settle(&mut self, write: &WriteId, fate: Fate) {
        if let Some(known) = self.documents.get_mut(&write.document) {
            known.writes[write.number].fate = fate;
        }
    }

    /// Enters a write together with what became of it.
    pub fn enter(&mut self, document: &str, shard: u32, action: Action, fate: Fate) {
        let write = self.begin(document, shard, action);
        self.settle(&write, fate);
    }

    /// Enters a run of documents that exist only as a number, and what became of it: acknowledged under the number of
    /// its first document.
    pub fn enter_run(&mut self, shard: u32, run: RunSum, fate: Fate) {
        self.runs.enter(shard, run, fate);
    }

    /// Writes that were acknowledged, rejected, and neither; a run counts for each of its documents.
    pub fn counts(&self) -> (u64, u64, u64) {
        let (mut acknowledged, mut rejected, mut unknown) = self.runs.counts();
        for write in self.documents.values().flat_map(|document| &document.writes) {
            match write.fate {
                Fate::Acknowledged { .. } => acknowledged += 1,
                Fate::Rejected => rejected += 1,
                Fate::Unknown => unknown += 1,
            }
        }
        (acknowledged, rejected, unknown)
    }

    /// Documents that a write was begun for.
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Whether a write of a document was acknowledged that leaves it there.
    pub fn was_written(&self, document: &str) -> bool {
        let leaves_it = |write: &Entry| {
            write.action != Action::Delete && matches!(write.fate, Fate::Acknowledged { .. })
        };
        self.documents.get(document).is_some_and(|known| known.writes.iter().any(leaves_it))
    }

    /// The documents of which the answers alone say whether they are there: every write was answered, and not one of
    /// them without saying what became of it.
    pub fn certain(&self) -> BTreeMap<String, Certain> {
        let certain = |document: &Document| {
            let writes = document.writes.len();
            let is_unknown = document.writes.iter().any(|write| write.fate == Fate::Unknown);
            let acknowledged = |write: &&Entry| matches!(write.fate, Fate::Acknowledged { .. });
            let last = document.writes.iter().rev().find(acknowledged);
            let is_there = last.is_some_and(|write| write.action != Action::Delete);
            (!is_unknown).then_some(Certain { is_there, writes })
        };
        let documents = self.documents.iter();
        documents.filter_map(|(id, document)| Some((id.clone(), certain(document)?))).collect()
    }

    /// Every rule that the answers or the copies break. To be called once nobody writes any more and the copies had
    /// time to become equal.
    pub fn check(&self, copies: &[Copy]) -> Vec<Violation> {
        let mut found = self.check_answers();
        for copy in copies {
            found.extend(check_history(copy, self.highest(copy.shard)));
            found.extend(self.check_documents(copy));
            found.extend(self.runs.check(copy));
        }
        found.extend(check_equal(copies));
        found
    }

    fn highest(&self, shard: u32) -> Option<u64> {
        let documents = self.documents.values().filter(|document| document.shard == shard);
        let highest = documents.filter_map(|document| Some(document.last()?.0)).max();
        highest.max(self.runs.highest(shard))
    }

    fn check_answers(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut given: BTreeMap<(u32, u64), &str> = BTreeMap::new();
        for (id, document) in &self.documents {
            let mut before: Option<(u64, u64)> = None;
            // Versions of a document restart at 1 once its tombstone is gone. A delete without an answer may happen at
            // any time, and a delete that was sent twice finds nothing the second time: after either, versions may
            // restart. After the first nobody knows whether the document is there, either.
            let mut may_begin_anew = false;
            let mut is_there = false;
            for write in &document.writes {
                let deletes = write.action == Action::Delete && write.fate != Fate::Rejected;
                let Fate::Acknowledged { seq_no, version } = write.fate else {
                    may_begin_anew |= deletes;
                    continue;
                };
                if let Some(other) = given.insert((document.shard, seq_no), id) {
                    let found_text = format!(
                        "[{other}] and [{id}] of shard {} were both acknowledged as operation {seq_no}",
                        document.shard
                    );
                    found.push(violation(Rule::NumbersAreGivenOnce, found_text));
                }
                if let Some((seq_before, version_before)) = before
                    && (seq_no <= seq_before
                        || version <= version_before && !deletes && !may_begin_anew)
                {
                    let text = format!(
                        "[{id}] was acknowledged as operation {seq_before} version {version_before}, and a later \
                         write as operation {seq_no} version {version}; its writes: {document}"
                    );
                    found.push(violation(Rule::AcknowledgedInOrder, text));
                }
                let creates = matches!(write.action, Action::Create { .. });
                if creates && is_there && !may_begin_anew {
                    let text = format!(
                        "[{id}] was created as operation {seq_no}, though it was there; its writes: {document}"
                    );
                    found.push(violation(Rule::CreatedWhereNoneIs, text));
                }
                is_there = !deletes;
                before = Some((seq_no, if deletes { 0 } else { version }));
            }
        }
        found.extend(self.runs.check_answers(&given));
        found
    }

    fn check_documents(&self, copy: &Copy) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut held: BTreeMap<&str, &Held> = BTreeMap::new();
        for document in &copy.documents {
            if held.insert(&document.id, document).is_some() {
                let text = format!("{} lists [{}] twice", copy.name, document.id);
                found.push(violation(Rule::OnceEach, text));
            }
            let why = match self.documents.get(&document.id).map(|known| known.shard) {
                None => "which nobody wrote".to_owned(),
                // No copy of this one is compared with the document's writes.
                Some(shard) if shard != copy.shard => format!("which belongs to shard {shard}"),
                Some(_) => continue,
            };
            let text = format!("{} has [{}], {why}", copy.name, document.id);
            found.push(violation(Rule::NothingElseIsThere, text));
        }
        for (id, document) in self.documents.iter().filter(|(_, d)| d.shard == copy.shard) {
            let broken = match held.get(id.as_str()) {
                Some(held) => document.check_present(held),
                None => document.check_absent(),
            };
            found.extend(broken.map(|(rule, text)| {
                violation(rule, format!("{}: [{id}] {text}; its writes: {document}", copy.name))
            }));
        }
        found
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.writes.len().saturating_sub(6);
        for (number, write) in self.writes.iter().enumerate().skip(from) {
            let action = match write.action {
                Action::Index { .. } => "index",
                Action::Create { .. } => "create",
                Action::Delete => "delete",
            };
            let fate = match write.fate {
                Fate::Acknowledged { seq_no, version } => format!("#{seq_no} v{version}"),
                Fate::Rejected => "rejected".to_owned(),
                Fate::Unknown => "no answer".to_owned(),
            };
            write!(f, "{}{number} {action} {fate}", if number > from { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl Document {
    /// The acknowledged write with the highest number: its number, and what it asked for.
    fn last(&self) -> Option<(u64, Action)> {
        let of = |write: &Entry| match write.fate {
            Fate::Acknowledged { seq_no, .. } => Some((seq_no, write.action)),
            _ => None,
        };
        self.writes.iter().filter_map(of).max_by_key(|(seq_no, _)| *seq_no)
    }

    fn check_present(&self, held: &Held) -> Option<(Rule, String)> {
        let content = |action| match action {
            Action::Index { content } | Action::Create { content } => Some(content),
            Action::Delete => None,
        };
        let Held { seq_no, version, .. } = *held;
        let by = self.writes.iter().find(|write| content(write.action) == Some(held.content));
        let Some(by) = by else {
            let text = format!("has a content that nobody wrote, as operation {seq_no}");
            return Some((Rule::NothingElseIsThere, text));
        };
        let last = self.last();
        let older = |(last, action): (u64, Action)| {
            let (rule, what) = match action {
                Action::Delete => (Rule::DeletedStaysDeleted, "was deleted"),
                _ => (Rule::AcknowledgedIsThere, "was replaced"),
            };
            let text = format!("{what} by operation {last}, and operation {seq_no} is there");
            (rule, text)
        };
        match by.fate {
            Fate::Rejected => {
                Some((Rule::NothingElseIsThere, format!("has a rejected write, #{seq_no}")))
            }
            Fate::Unknown => last.filter(|(last, _)| seq_no <= *last).map(older),
            Fate::Acknowledged { seq_no: acknowledged, version: v } => {
                if let Some(last) = last.filter(|(last, _)| acknowledged < *last) {
                    return Some(older(last));
                }
                ((seq_no, version) != (acknowledged, v)).then(|| {
                    let text = format!(
                        "was acknowledged as #{acknowledged} v{v}, and is #{seq_no} v{version}"
                    );
                    (Rule::AcknowledgedIsThere, text)
                })
            }
        }
    }

    fn check_absent(&self) -> Option<(Rule, String)> {
        let (seq_no, action) = self.last()?;
        let may_be_deleted = self
            .writes
            .iter()
            .any(|write| write.action == Action::Delete && write.fate == Fate::Unknown);
        if action == Action::Delete || may_be_deleted {
            return None;
        }
        let text = format!("was acknowledged as operation {seq_no} and is not there");
        Some((Rule::AcknowledgedIsThere, text))
    }
}

fn check_history(copy: &Copy, acknowledged: Option<u64>) -> Option<Violation> {
    let Copy { name, max_seq_no, local_checkpoint, .. } = copy;
    if max_seq_no != local_checkpoint {
        let text =
            format!("{name} has all up to {local_checkpoint:?} and some up to {max_seq_no:?}");
        return Some(violation(Rule::NoHoles, text));
    }
    (acknowledged > *max_seq_no).then(|| {
        let text = format!("{name} ends at {max_seq_no:?}, and {acknowledged:?} was acknowledged");
        violation(Rule::AcknowledgedIsThere, text)
    })
}

/// Compares every copy with the first of its shard.
fn check_equal(copies: &[Copy]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut first: BTreeMap<u32, &Copy> = BTreeMap::new();
    let by_id = |copy: &Copy| -> BTreeMap<String, Held> {
        copy.documents.iter().map(|held| (held.id.clone(), held.clone())).collect()
    };
    for copy in copies {
        let Some(other) = first.get(&copy.shard) else {
            first.insert(copy.shard, copy);
            continue;
        };
        let (one, two) = (by_id(other), by_id(copy));
        let differs = one.keys().chain(two.keys()).find(|id| one.get(*id) != two.get(*id));
        let text = if let Some(id) = differs {
            let (a, b) = (one.get(id), two.get(id));
            format!("[{id}] of {} is {a:?}, of {} {b:?}", other.name, copy.name)
        } else if other.runs != copy.runs {
            let (a, b) = (other.runs, copy.runs);
            format!("runs of {} are {a:?}, of {} {b:?}", other.name, copy.name)
        } else if other.max_seq_no != copy.max_seq_no {
            let (a, b) = (other.max_seq_no, copy.max_seq_no);
            format!("{} ends at {a:?}, {} at {b:?}", other.name, copy.name)
        } else {
            continue;
        };
        found.push(violation(Rule::CopiesAreEqual, text));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: fn(u64, u64) -> Fate = |seq_no, version| Fate::Acknowledged { seq_no, version };

    fn ledger(writes: &[(&str, Action, Fate)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (id, action, fate) in writes {
            ledger.enter(id, 0, *action, *fate);
        }
        ledger
    }

    fn copy(documents: &[(&str, u64, u64, u64)], max: u64) -> Copy {
        let held = |&(id, seq_no, version, content): &(&str, u64, u64, u64)| Held {
            id: id.to_owned(),
            seq_no,
            version,
            content,
        };
        Copy {
            name: "copy".to_owned(),
            shard: 0,
            documents: documents.iter().map(held).collect(),
            runs: RunSum::default(),
            max_seq_no: Some(max),
            local_checkpoint: Some(max),
        }
    }

    fn rules(ledger: &Ledger, copies: &[Copy]) -> Vec<Rule> {
        ledger.check(copies).into_iter().map(|violation| violation.rule).collect()
    }

    fn index(content: u64) -> Action {
        Action::Index { content }
    }

    #[test]
    fn what_is_as_acknowledged_passes() {
        let ledger = ledger(&[
            ("a", index(1), ACK(0, 1)),
            ("a", index(2), ACK(1, 2)),
            ("b", index(3), ACK(2, 1)),
            ("b", Action::Delete, ACK(3, 2)),
        ]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 1, 2, 2)], 3)]), []);
        assert_eq!(ledger.counts(), (4, 0, 0));
    }

    #[test]
    fn what_was_acknowledged_must_be_there_in_its_last_version() {
        let ledger = ledger(&[("a", index(1), ACK(0, 1)), ("a", index(2), ACK(1, 2))]);
        assert_eq!(rules(&ledger, &[copy(&[], 1)]), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 0, 1, 1)], 1)]), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 1, 3, 2)], 1)]), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 1, 2, 2)], 0)]), [Rule::AcknowledgedIsThere]);
    }

    #[test]
    fn what_was_deleted_stays_deleted() {
        let ledger = ledger(&[("a", index(1), ACK(0, 1)), ("a", Action::Delete, ACK(1, 2))]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 0, 1, 1)], 1)]), [Rule::DeletedStaysDeleted]);
    }

    #[test]
    fn what_nobody_knows_may_be_there_or_not_but_not_in_place_of_what_is_newer() {
        let ledger = ledger(&[
            ("a", index(1), ACK(0, 1)),
            ("a", index(2), Fate::Unknown),
            ("b", index(3), ACK(1, 1)),
            ("b", Action::Delete, Fate::Unknown),
        ]);
        let at = |a: (&'static str, u64, u64, u64)| copy(&[a, ("b", 1, 1, 3)], 2);
        assert_eq!(rules(&ledger, &[at(("a", 0, 1, 1))]), []);
        assert_eq!(rules(&ledger, &[at(("a", 2, 2, 2))]), []);
        assert_eq!(rules(&ledger, &[at(("a", 0, 1, 2))]), [Rule::AcknowledgedIsThere]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 0, 1, 1)], 2)]), [], "b may be deleted");
    }

    #[test]
    fn what_was_rejected_or_never_written_must_not_be_there() {
        let ledger = ledger(&[
            ("a", index(1), ACK(0, 1)),
            ("a", Action::Create { content: 2 }, Fate::Rejected),
        ]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 1, 2, 2)], 1)]), [Rule::NothingElseIsThere]);
        assert_eq!(rules(&ledger, &[copy(&[("a", 0, 1, 9)], 0)]), [Rule::NothingElseIsThere]);
        let stranger = copy(&[("a", 0, 1, 1), ("x", 1, 1, 5)], 1);
        assert_eq!(rules(&ledger, &[stranger]), [Rule::NothingElseIsThere]);
    }

    #[test]
    fn a_document_is_in_its_own_shard_alone() {
        let mut ledger = ledger(&[("a", index(1), ACK(0, 1))]);
        ledger.enter("b", 1, index(2), ACK(0, 1));
        let own = copy(&[("a", 0, 1, 1)], 0);
        let other = Copy { shard: 1, ..copy(&[("b", 0, 1, 2)], 0) };
        assert_eq!(rules(&ledger, &[own, other.clone()]), []);
        let both = copy(&[("a", 0, 1, 1), ("b", 1, 1, 2)], 1);
        assert_eq!(rules(&ledger, &[both.clone(), both, other]), [Rule::NothingElseIsThere; 2]);
    }

    #[test]
    fn answers_that_contradict_each_other_are_found() {
        let twice = ledger(&[("a", index(1), ACK(4, 1)), ("b", index(2), ACK(4, 1))]);
        assert_eq!(rules(&twice, &[]), [Rule::NumbersAreGivenOnce]);
        let back = ledger(&[("a", index(1), ACK(4, 2)), ("a", index(2), ACK(3, 3))]);
        assert_eq!(rules(&back, &[]), [Rule::AcknowledgedInOrder]);
        let same = ledger(&[("a", index(1), ACK(4, 2)), ("a", index(2), ACK(5, 2))]);
        assert_eq!(rules(&same, &[]), [Rule::AcknowledgedInOrder]);
        let deleted = [ACK(5, 3), Fate::Unknown];
        for fate in deleted {
            let writes = [
                ("a", index(1), ACK(4, 2)),
                ("a", Action::Delete, fate),
                ("a", index(2), ACK(6, 1)),
            ];
            assert_eq!(rules(&ledger(&writes), &[]), []);
        }
    }

    #[test]
    fn versions_begin_anew_after_a_delete_that_came_late_or_twice() {
        let twice = [("a", index(1), ACK(4, 7)), ("a", Action::Delete, ACK(6, 1))];
        assert_eq!(rules(&ledger(&twice), &[]), []);
        let late = [
            ("a", Action::Delete, Fate::Unknown),
            ("a", index(1), ACK(4, 1)),
            ("a", Action::Create { content: 2 }, ACK(6, 1)),
        ];
        assert_eq!(rules(&ledger(&late), &[]), []);
        let back = [late[0], late[1], ("a", index(2), ACK(3, 2))];
        assert_eq!(rules(&ledger(&back), &[]), [Rule::AcknowledgedInOrder]);
    }

    #[test]
    fn what_is_there_is_not_created() {
        let create = |content| Action::Create { content };
        let twice = [("a", index(1), ACK(4, 1)), ("a", create(2), ACK(6, 2))];
        assert_eq!(rules(&ledger(&twice), &[]), [Rule::CreatedWhereNoneIs]);
        let deleted = [twice[0], ("a", Action::Delete, ACK(5, 2)), ("a", create(2), ACK(6, 3))];
        assert_eq!(rules(&ledger(&deleted), &[]), []);
        let perhaps = [twice[0], ("a", Action::Delete, Fate::Unknown), twice[1]];
        assert_eq!(rules(&ledger(&perhaps), &[]), []);
        let refused = [twice[0], ("a", create(2), Fate::Rejected), ("a", index(3), ACK(6, 2))];
        assert_eq!(rules(&ledger(&refused), &[]), []);
    }

    #[test]
    fn holes_repetitions_and_differences_are_found() {
        let ledger = ledger(&[("a", index(1), ACK(0, 1)), ("b", index(2), Fate::Unknown)]);
        let sound = copy(&[("a", 0, 1, 1)], 0);
        let hole = Copy { max_seq_no: Some(2), ..sound.clone() };
        assert_eq!(rules(&ledger, &[hole]), [Rule::NoHoles]);
        let twice = copy(&[("a", 0, 1, 1), ("a", 0, 1, 1)], 0);
        assert_eq!(rules(&ledger, &[twice]), [Rule::OnceEach]);
        let more = copy(&[("a", 0, 1, 1), ("b", 1, 1, 2)], 1);
        assert_eq!(rules(&ledger, &[sound.clone(), more]), [Rule::CopiesAreEqual]);
        let longer = copy(&[("a", 0, 1, 1)], 1);
        assert_eq!(rules(&ledger, &[sound, longer]), [Rule::CopiesAreEqual]);
    }
}
