//! Columns that are computed for aggregations: what the index library gathers by values, it gathers so by the starts of
//! months, by ranges that overlap, or by milliseconds.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use tantivy::aggregation::{ValueSource, ValueSourceProvider};
use tantivy::columnar::{Cardinality, ColumnType};
use tantivy::query::Weight;
use tantivy::{BitSet, DocId, SegmentReader};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use query::aggregation::{AggregationKind, Distances, RangeBucket};
use query::grid::Grid;
use query::histogram::Histogram;
use query::{FieldType, Literal, geo};

use super::bounds::Bounds;
use super::column::{Column, Pair, double_bits, double_of, long_bits, long_of, pair, text_of};
use super::findings::Findings;

/// What is made of a value.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    /// The value itself; dates in milliseconds, booleans as 0 and 1.
    Value,
    /// The same of some values alone.
    Kept(Arc<Kept>),
    /// The start of its bucket.
    Start(Histogram),
    /// The places of the ranges that it lies in.
    Places(Arc<[RangeBucket]>),
    /// The places of the ranges that the distance of a point lies in.
    Distance(Arc<Distances>),
    /// The cell of a point, from the greatest on: of equal buckets the library takes the least, the field the greatest.
    Cell(Arc<Grid>),
    /// A side of a point, as Lucene keeps it.
    Side(Side),
    /// The places of the queries that a document matches.
    Matches(Arc<Matches>),
    /// A hash: equal values have equal hashes in all segments and copies.
    Hash,
    /// A number, of fewer bits where values are many. Equal values of a document differ in their last bits, so that
    /// they count as several.
    Sample,
}

/// What of a point is gathered, in degrees.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Latitude,
    Longitude,
    /// The longitude west of Greenwich.
    West,
    /// Any other.
    East,
}

impl Side {
    /// Those that an aggregation is made of, each with statistics of its own.
    pub(super) fn all(kind: &AggregationKind) -> &'static [Side] {
        match kind {
            AggregationKind::GeoCentroid => &[Side::Latitude, Side::Longitude],
            AggregationKind::GeoBounds { .. } => &[Side::Latitude, Side::West, Side::East],
            _ => &[],
        }
    }

    /// The name of its statistics.
    pub(super) fn name(self, aggregation: &str) -> String {
        format!("{aggregation}\0{self:?}")
    }

    fn of(self, (lat, lon): (f64, f64)) -> Option<f64> {
        match self {
            Side::Latitude => Some(lat),
            Side::Longitude => Some(lon),
            Side::West => Some(lon).filter(|lon| *lon < 0.0),
            Side::East => Some(lon).filter(|lon| *lon >= 0.0),
        }
    }
}

/// Values by their bits: those that count, if not all do, and those that do not.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) include: Option<BTreeSet<u128>>,
    pub(super) exclude: Option<BTreeSet<u128>>,
}

impl Kept {
    fn holds(&self, bits: u128) -> bool {
        self.include.as_ref().is_none_or(|of| of.contains(&bits))
            && self.exclude.as_ref().is_none_or(|of| !of.contains(&bits))
    }
}

/// Queries, by which documents get places.
pub(super) struct Matches {
    pub(super) weights: Vec<Box<dyn Weight>>,
    /// Whether documents that match none have the place behind all others.
    pub(super) other: bool,
}

impl fmt::Debug for Matches {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} queries", self.weights.len())
    }
}

impl Matches {
    /// For each query the documents of a segment that match.
    pub(super) fn open(&self, segment: &SegmentReader) -> tantivy::Result<Vec<BitSet>> {
        let open = |weight: &dyn Weight| {
            let mut found = BitSet::with_max_value(segment.max_doc());
            weight.for_each_no_score(segment, &mut |docs| {
                docs.iter().for_each(|doc| _ = found.insert(*doc));
            })?;
            Ok(found)
        };
        self.weights.iter().map(|weight| open(weight.as_ref())).collect()
    }

    fn put(&self, found: &[BitSet], doc: DocId, values: &mut Vec<u64>) {
        let before = values.len();
        let fits = (0u32..).zip(found).filter(|(_, found)| found.contains(doc));
        values.extend(fits.map(|(place, _)| double_bits(place.into())));
        if self.other && values.len() == before {
            values.push(double_bits(found.len() as f64));
        }
    }
}

/// Of segments with more values than this [`DROPPED_BITS`] of each value are dropped.
const EXACT_VALUES: u32 = 1 << 16;
/// Bits of a double that are dropped where values are many: what is left has a relative error of 1/16384.
const DROPPED_BITS: u32 = 38;

/// A column that is computed.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    pub(super) path: String,
    /// Type of the field; none where it is not mapped.
    pub(super) kind: Option<FieldType>,
    pub(super) reading: Reading,
    /// The bits and the text that documents without the field count as.
    pub(super) missing: Option<(u128, String)>,
    /// Whether documents without the field have a null in its place, as sources of tuples may have.
    pub(super) has_null: bool,
}

impl Computed {
    /// In one segment.
    pub(super) fn open(&self, segment: &SegmentReader) -> tantivy::Result<Source> {
        let (column, points) = match (self.kind, self.kind.and_then(FieldType::columns)) {
            (Some(kind), Some((first, _))) => {
                let path = format!("{}.{first}", self.path);
                let column = Column::open(segment, &path, FieldType::Double)?;
                (column, pair(segment, &self.path, kind)?)
            }
            (Some(kind), None) => (Column::open(segment, &self.path, kind)?, None),
            (None, _) => (Column::absent(FieldType::Long), None),
        };
        let hashes = match (&self.reading, column.texts()) {
            (Reading::Hash, Some(texts)) => vec![0; texts.num_terms()],
            _ => Vec::new(),
        };
        let matched = match &self.reading {
            Reading::Matches(matches) => matches.open(segment)?,
            _ => Vec::new(),
        };
        let many = column.values() > EXACT_VALUES;
        let mask = if many { u64::MAX << DROPPED_BITS } else { u64::MAX };
        let (computed, bits) = (self.clone(), Vec::new());
        Ok(Source { computed, column, points, hashes, matched, mask, bits })
    }
}

impl ValueSourceProvider for Computed {
    fn for_segment(
        &self,
        reader: &SegmentReader,
        _: Option<&[ColumnType]>,
    ) -> tantivy::Result<Option<Box<dyn ValueSource>>> {
        Ok(Some(Box::new(self.open(reader)?)))
    }
}

/// A computed column in one segment.
#[derive(Debug)]
pub(super) struct Source {
    computed: Computed,
    column: Column,
    /// Of a field that is kept in two.
    points: Option<Pair>,
    /// Of texts by ordinal; 0 where it was not needed yet. A search that looked each up anew would
    /// take ten times as long (2026-12-01, docs/benchmarks/search_side_by_side.md).
    hashes: Vec<u64>,
    /// Of queries the documents that match.
    matched: Vec<BitSet>,
    /// The bits of a sample that are kept.
    mask: u64,
    bits: Vec<u64>,
}

impl Source {
    /// The least and the greatest values of blocks of documents, where each has one.
    pub(super) fn bounds(
        &self,
        segment: &SegmentReader,
        findings: &Findings,
    ) -> tantivy::Result<Option<Arc<Bounds>>> {
        findings.bounds(segment, &self.computed.path, &self.column)
    }

    /// The points of a document.
    fn points(&self, doc: DocId) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().flat_map(move |points| points.of(doc))
    }

    /// What is made of a value with these bits.
    pub(super) fn put(&mut self, bits: u128, values: &mut Vec<u64>) {
        let kind = self.column.kind();
        let number = || match kind {
            kind if kind.is_float() => double_of(bits as u64),
            _ => long_of(bits as u64) as f64,
        };
        values.push(match &self.computed.reading {
            Reading::Kept(kept) if !kept.holds(bits) => return,
            Reading::Value | Reading::Kept(_) => bits as u64,
            Reading::Start(histogram) => double_bits(histogram.start(number())),
            Reading::Places(ranges) => return put_places(ranges, number(), values),
            Reading::Distance(_) | Reading::Cell(_) | Reading::Side(_) | Reading::Matches(_) => {
                return;
            }
            Reading::Hash => match self.column.texts() {
                None => xxh3_64(&bits.to_le_bytes()),
                Some(texts) => {
                    let known = &mut self.hashes[bits as usize];
                    if *known == 0 {
                        *known = hash_text(&text_of(texts, bits as u64));
                    }
                    *known
                }
            },
            Reading::Sample => double_bits(number()) & self.mask,
        });
    }

    fn put_missing(&mut self, values: &mut Vec<u64>) {
        match self.computed.missing.clone() {
            Some((_, text)) if self.is_hash_of_text() => values.push(hash_text(&text)),
            Some((bits, _)) => self.put(bits, values),
            None => {}
        }
    }

    /// Reads the values of a document, each once, as bits that sort as they do in this segment.
    pub(super) fn read_bits(&mut self, doc: DocId, found: &mut Vec<u128>) {
        found.clear();
        match &self.computed.reading {
            Reading::Cell(grid) => {
                let cells = self.points(doc).filter_map(|point| grid.cell(point));
                found.extend(cells.map(|cell| u128::from(long_bits(cell))));
            }
            _ => self.column.each_bits(doc, |bits| found.push(bits)),
        }
        if let Reading::Start(_) = self.computed.reading {
            let mut starts = Vec::new();
            found.drain(..).for_each(|bits| self.put(bits, &mut starts));
            found.extend(starts.into_iter().map(u128::from));
        }
        if found.is_empty() {
            found.extend(self.computed.missing.as_ref().map(|(bits, _)| *bits));
        }
        if self.computed.has_null {
            // Null comes before all. Only an address fills all bits, and the last two of these are nobody's.
            found.iter_mut().for_each(|bits| *bits = bits.saturating_add(1));
            if found.is_empty() {
                found.push(0);
            }
        }
        found.sort_unstable();
        found.dedup();
    }

    /// The value with such bits.
    pub(super) fn literal(&self, bits: u128) -> Literal {
        let Some(bits) = bits.checked_sub(u128::from(self.computed.has_null)) else {
            return Literal::Null;
        };
        let is_text = self.column.kind() == FieldType::Keyword;
        match (&self.computed.reading, &self.computed.missing, self.column.texts()) {
            (Reading::Start(_), ..) => Literal::Float(double_of(bits as u64)),
            (Reading::Cell(_), ..) => Literal::Integer(long_of(bits as u64)),
            (_, Some((_, text)), None) if is_text => Literal::Text(text.clone()),
            _ => self.column.literal(bits),
        }
    }

    fn is_hash_of_text(&self) -> bool {
        let Computed { kind, reading, .. } = &self.computed;
        matches!(kind, Some(FieldType::Keyword | FieldType::Text))
            && matches!(reading, Reading::Hash)
    }

    /// Sets apart, or makes one, what a document has several times.
    fn tidy(&self, values: &mut [u64]) {
        values.sort_unstable();
        for at in 1..values.len() {
            if matches!(self.computed.reading, Reading::Sample) && values[at] <= values[at - 1] {
                values[at] = values[at - 1] + 1;
            }
        }
    }
}

/// The places of the ranges that a number lies in.
fn put_places(ranges: &[RangeBucket], number: f64, values: &mut Vec<u64>) {
    let within = (0u32..).zip(ranges).filter(|(_, range)| range.holds(number));
    values.extend(within.map(|(place, _)| double_bits(place.into())));
}

fn hash_text(text: &str) -> u64 {
    xxh3_64_with_seed(text.as_bytes(), 1)
}

impl ValueSource for Source {
    fn column_type(&self) -> ColumnType {
        match &self.computed.reading {
            Reading::Hash => ColumnType::U64,
            Reading::Cell(_) => ColumnType::I64,
            Reading::Value | Reading::Kept(_) if !self.column.kind().is_float() => ColumnType::I64,
            _ => ColumnType::F64,
        }
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
        let is_of_column = !matches!(
            self.computed.reading,
            Reading::Matches(_) | Reading::Distance(_) | Reading::Cell(_) | Reading::Side(_)
        );
        // Read at once: `stats` of dates is 2.3 times as fast for that (2026-12-01).
        if is_of_column && self.column.is_single() {
            let mut bits = std::mem::take(&mut self.bits);
            self.column.block_bits(docs, &mut bits);
            for (doc, bits) in docs.iter().zip(&bits) {
                self.put(u128::from(*bits), values);
                if let Reading::Places(_) | Reading::Kept(_) = self.computed.reading {
                    docids.resize(values.len(), *doc);
                }
            }
            self.bits = bits;
            return match self.computed.reading {
                Reading::Places(_) | Reading::Kept(_) => Cardinality::Multivalued,
                _ => Cardinality::Full,
            };
        }
        let mut found = Vec::new();
        for doc in docs {
            let from = values.len();
            match &self.computed.reading {
                Reading::Matches(matches) => matches.put(&self.matched, *doc, values),
                Reading::Distance(asked) => {
                    for point in self.points(*doc) {
                        let distance = geo::haversine_m(asked.origin, point) / asked.unit_m;
                        put_places(&asked.ranges, distance, values);
                    }
                }
                Reading::Cell(grid) => {
                    let cells = self.points(*doc).filter_map(|point| grid.cell(point));
                    values.extend(cells.map(|cell| long_bits(!cell)));
                }
                Reading::Side(side) => {
                    let degrees =
                        self.points(*doc).filter_map(|point| side.of(geo::quantized(point)));
                    values.extend(degrees.map(double_bits));
                }
                _ => {
                    self.column.read_bits(*doc, &mut found);
                    found.iter().for_each(|bits| self.put(*bits, values));
                    if found.is_empty() {
                        self.put_missing(values);
                    }
                }
            }
            self.tidy(&mut values[from..]);
            docids.resize(values.len(), *doc);
        }
        Cardinality::Multivalued
    }

    fn to_f64(self: Box<Self>) -> Box<dyn ValueSource> {
        self
    }
}
