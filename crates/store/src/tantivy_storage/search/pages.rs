//! The page that a `composite` shows. Its tuples are found first: the least in the order that is asked for, and never
//! more of them than are shown, so that a page costs as much memory whether there are a hundred tuples or a billion.
//! What is asked of their documents is then gathered by a column with the names of these tuples alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::aggregation::{ValueSource, ValueSourceProvider};
use tantivy::columnar::{Cardinality, ColumnType};
use tantivy::index::SegmentId;
use tantivy::{BitSet, DocId, Searcher, SegmentReader};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use query::aggregation::Aggregation;
use query::{Literal, illegal};

use super::computed::{Computed, Matches, Source};
use super::failed::Result;
use super::matching::Matching;
use super::rows::{compare_tuples, is_descending, same_key};

/// A page that is looked for.
pub(super) struct Sought<'a> {
    /// The sources, and a column for each.
    pub(super) sources: &'a [Aggregation],
    pub(super) columns: Vec<Computed>,
    /// The tuples up to this one were shown before.
    pub(super) after: Option<Vec<Literal>>,
    /// Tuples that are shown.
    pub(super) size: usize,
    /// The filters around it, each with one query.
    pub(super) around: &'a [Arc<Matches>],
}

/// Combinations of values that one document may have: with several values of each of many sources they are never
/// counted to the end.
const MAX_TUPLES: usize = 1 << 20;

/// Tuples by their names. Equal ones have equal names in all segments and copies.
pub(super) type Named = BTreeMap<u64, Vec<Literal>>;

/// A tuple of a segment: the bits of its values, which sort there as the page does.
type Bits = Vec<u128>;

/// The column of a page: the names of the tuples of a document that are on it.
pub(super) struct Page {
    /// Each source, and whether it begins with the greatest.
    columns: Vec<(Computed, bool)>,
    names: FxHashMap<SegmentId, Arc<FxHashMap<Bits, u64>>>,
}

impl Page {
    /// Looks at the documents that match.
    pub(super) fn find(
        sought: Sought<'_>,
        searcher: &Searcher,
        matching: Matching<'_>,
    ) -> Result<(Page, Named)> {
        let Sought { sources, columns, after, size, around } = sought;
        // Of another page of the search the same values may be shown otherwise: 10 of whole numbers, 10.0 of widths.
        let seed = xxh3_64(format!("{sources:?}").as_bytes());
        let order = |a: &Vec<Literal>, b: &Vec<Literal>| compare_tuples(sources, a, b);
        let is_new =
            |values: &Vec<Literal>| after.as_ref().is_none_or(|after| order(values, after).is_gt());
        let columns: Vec<(Computed, bool)> =
            columns.into_iter().zip(sources.iter().map(is_descending)).collect();
        let (mut page, mut found) = (Vec::<Vec<Literal>>::new(), Vec::new());
        for segment in searcher.segment_readers() {
            let around = around.iter().map(|matches| matches.open(segment));
            let around = around.collect::<tantivy::Result<Vec<_>>>()?.concat();
            let mut tuples = Tuples::open(&columns, segment)?;
            let least = tuples.least((segment, matching), &around, size, &is_new)?;
            page.extend(least.iter().map(|(_, values)| values.clone()));
            page.sort_by(order);
            page.dedup();
            page.truncate(size);
            found.push((segment.segment_id(), least));
        }
        let is_shown =
            |values: &Vec<Literal>| page.last().is_some_and(|last| order(values, last).is_le());
        let names = found.into_iter().map(|(segment, least)| {
            let shown = least.into_iter().filter(|(_, values)| is_shown(values));
            let names = shown.map(|(bits, values)| (bits, name_of(seed, &values)));
            (segment, Arc::new(names.collect::<FxHashMap<Bits, u64>>()))
        });
        let names = names.collect();
        let named = page.into_iter().map(|values| (name_of(seed, &values), values)).collect();
        Ok((Page { columns, names }, named))
    }
}

fn name_of(seed: u64, values: &[Literal]) -> u64 {
    let values: Vec<Literal> = values.iter().map(same_key).collect();
    xxh3_64_with_seed(format!("{values:?}").as_bytes(), seed)
}

/// The tuples of the documents of a segment.
#[derive(Debug)]
struct Tuples {
    /// Each source, and whether it begins with the greatest.
    columns: Vec<(Source, bool)>,
    /// Of each source the values of the document at hand.
    values: Vec<Bits>,
}

impl Tuples {
    fn open(columns: &[(Computed, bool)], segment: &SegmentReader) -> tantivy::Result<Self> {
        let open = |(computed, descending): &(Computed, bool)| -> tantivy::Result<(Source, bool)> {
            Ok((computed.open(segment)?, *descending))
        };
        let columns = columns.iter().map(open).collect::<tantivy::Result<Vec<_>>>()?;
        let values = vec![Vec::new(); columns.len()];
        Ok(Tuples { columns, values })
    }

    /// Calls with each tuple of a document: none where it lacks one of the values. Answers whether it has no more than
    /// it may have.
    fn each(&mut self, doc: DocId, mut call: impl FnMut(&[(Source, bool)], &[u128])) -> bool {
        let Tuples { columns, values } = self;
        for ((source, descending), values) in columns.iter_mut().zip(values.iter_mut()) {
            source.read_bits(doc, values);
            if *descending {
                values.iter_mut().for_each(|bits| *bits = !*bits);
            }
            if values.is_empty() {
                return true;
            }
        }
        let count = values.iter().try_fold(1usize, |count, of| count.checked_mul(of.len()));
        if count.is_none_or(|count| count > MAX_TUPLES) {
            return false;
        }
        let (mut at, mut tuple) = (vec![0; values.len()], Bits::with_capacity(values.len()));
        loop {
            tuple.clear();
            tuple.extend(at.iter().zip(values.iter()).map(|(at, values)| values[*at]));
            call(columns, &tuple);
            // The next one, as a counter of so many wheels goes on.
            let next = (0..at.len()).rev().find(|wheel| at[*wheel] + 1 < values[*wheel].len());
            let Some(next) = next else { return true };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }

    /// The first tuples in the order of the page that are new, so many at most.
    fn least(
        &mut self,
        (segment, matching): (&SegmentReader, Matching<'_>),
        around: &[BitSet],
        size: usize,
        is_new: &dyn Fn(&Vec<Literal>) -> bool,
    ) -> Result<Vec<(Bits, Vec<Literal>)>> {
        // Bits say nothing of what was shown before: that is asked of tuples between the last one that is known to be
        // old and the first that is known to be new.
        let (mut least, mut old, mut new) = (BTreeSet::<Bits>::new(), None::<Bits>, None::<Bits>);
        let mut has_too_many = false;
        matching.each(segment, |doc| {
            if has_too_many || !around.iter().all(|found| found.contains(doc)) {
                return;
            }
            let may_have = self.each(doc, |columns, tuple| {
                let is_behind = |last: &Bits| tuple > last.as_slice();
                if least.len() >= size && least.last().is_none_or(is_behind) {
                    return;
                }
                if least.contains(tuple) || old.as_deref().is_some_and(|old| tuple <= old) {
                    return;
                }
                if new.as_deref().is_none_or(|new| tuple < new) {
                    if !is_new(&literals(columns, tuple)) {
                        old = Some(tuple.to_vec());
                        return;
                    }
                    new = Some(tuple.to_vec());
                }
                least.insert(tuple.to_vec());
                if least.len() > size {
                    least.pop_last();
                }
            });
            has_too_many = !may_have;
        })?;
        if has_too_many {
            let reason = format!(
                "[composite] over a document with more than [{MAX_TUPLES}] combinations of values is not supported by \
                 this engine; send fewer [sources]"
            );
            return Err(illegal(reason).into());
        }
        let named = least.into_iter().map(|bits| {
            let values = literals(&self.columns, &bits);
            (bits, values)
        });
        Ok(named.collect())
    }
}

fn literals(columns: &[(Source, bool)], tuple: &[u128]) -> Vec<Literal> {
    let pairs = columns.iter().zip(tuple);
    let value = |((source, descending), bits): (&(Source, bool), &u128)| match descending {
        true => source.literal(!*bits),
        false => source.literal(*bits),
    };
    pairs.map(value).collect()
}

impl ValueSourceProvider for Page {
    fn for_segment(
        &self,
        segment: &SegmentReader,
        _: Option<&[ColumnType]>,
    ) -> tantivy::Result<Option<Box<dyn ValueSource>>> {
        let names = self.names.get(&segment.segment_id()).cloned().unwrap_or_default();
        let tuples = Tuples::open(&self.columns, segment)?;
        Ok(Some(Box::new(PageOfSegment { tuples, names })))
    }
}

#[derive(Debug)]
struct PageOfSegment {
    tuples: Tuples,
    names: Arc<FxHashMap<Bits, u64>>,
}

impl ValueSource for PageOfSegment {
    fn column_type(&self) -> ColumnType {
        ColumnType::U64
    }

    fn load_block(
        &mut self,
        docs: &[DocId],
        values: &mut Vec<u64>,
        docids: &mut Vec<DocId>,
        _: &mut Vec<u32>,
    ) -> Cardinality {
        values.clear();
        docids.clear();
        let PageOfSegment { tuples, names } = self;
        for doc in docs {
            tuples.each(*doc, |_, tuple| values.extend(names.get(tuple)));
            docids.resize(values.len(), *doc);
        }
        Cardinality::Multivalued
    }

    fn to_f64(self: Box<Self>) -> Box<dyn ValueSource> {
        self
    }
}
