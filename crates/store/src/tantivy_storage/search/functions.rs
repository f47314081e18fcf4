//! `function_score`: the scores of a query, changed by functions of each document.

use std::sync::{Arc, OnceLock};

use tantivy::columnar::Column as Library;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TantivyError, Term};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use query::score::{Combine, Modifier, ScoreKind, Shape};
use query::value::point;
use query::{Field, FieldType, Literal, Mapping, SearchError, date, geo, illegal, unfit};

use super::column::{Column, Pair, pair, text_of};
use super::value::{check_sortable, exact};
use crate::tantivy_storage::schema::SEQ_NO;

/// A query whose scores functions change.
#[derive(Clone, Debug)]
pub(super) struct FunctionScored {
    pub(super) query: Arc<dyn Query>,
    pub(super) by: Arc<Functions>,
}

/// The functions, and how they change scores.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) functions: Vec<Function>,
    pub(super) functions_by: Combine,
    pub(super) with_score_by: Combine,
    pub(super) max_boost: f64,
    pub(super) min_score: Option<f32>,
    /// Why a document has no score: the library cannot fail while it scores.
    pub(super) failed: Arc<OnceLock<SearchError>>,
}

/// One function.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) filter: Option<Box<dyn Query>>,
    pub(super) weight: Option<f64>,
    pub(super) kind: Kind,
}

/// What a function is, in the types of its field.
#[derive(Debug)]
pub(super) enum Kind {
    Constant,
    FieldValue { field: (String, FieldType), factor: f64, modifier: Modifier, missing: Option<f64> },
    Random { seed: u64, field: Option<(String, FieldType)> },
    Decay(Decay),
}

/// How far a value is from an origin, and what that makes of it.
#[derive(Debug)]
pub(super) struct Decay {
    pub(super) field: (String, FieldType),
    pub(super) shape: Shape,
    /// A number, or latitude and longitude.
    pub(super) origin: (f64, f64),
    pub(super) scale: f64,
    pub(super) offset: f64,
    pub(super) decay: f64,
    pub(super) of_many: Combine,
}

impl Query for FunctionScored {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let scoring = match scoring {
            // Who counts wants no scores, but those that are too low tell what is left out.
            EnableScoring::Disabled { searcher_opt, .. } if self.by.min_score.is_some() => {
                let searcher = searcher_opt.ok_or_else(|| {
                    let why =
                        "[min_score] of [function_score] has no effect where nothing is scored";
                    TantivyError::InvalidArgument(why.to_owned())
                })?;
                EnableScoring::enabled_from_searcher(searcher)
            }
            EnableScoring::Disabled { .. } => return self.query.weight(scoring),
            enabled => enabled,
        };
        let filters = self.by.functions.iter().map(|function| {
            let schema = scoring.schema();
            let filter = function.filter.as_ref();
            filter.map(|of| of.weight(EnableScoring::disabled_from_schema(schema))).transpose()
        });
        let filters = filters.collect::<tantivy::Result<_>>()?;
        Ok(Box::new(Weighed { query: self.query.weight(scoring)?, filters, by: self.by.clone() }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct Weighed {
    query: Box<dyn Weight>,
    filters: Vec<Option<Box<dyn Weight>>>,
    by: Arc<Functions>,
}

impl Weight for Weighed {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let functions = self.by.functions.iter().zip(&self.filters).map(|(function, filter)| {
            let filter = filter.as_ref().map(|filter| filter.scorer(segment, 1.0)).transpose()?;
            Ok(Open { filter, values: Values::open(segment, &function.kind)? })
        });
        let functions = functions.collect::<tantivy::Result<_>>()?;
        let query = self.query.scorer(segment, boost)?;
        let mut scorer = Scored { query, functions, by: self.by.clone(), score: 0.0 };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument("scores are not explained".to_owned()))
    }
}

/// A function in one segment.
struct Open {
    filter: Option<Box<dyn Scorer>>,
    values: Values,
}

enum Values {
    None,
    Column(Column),
    Points(Option<Pair>),
    SeqNo(Library<u64>),
}

impl Values {
    fn open(segment: &SegmentReader, kind: &Kind) -> tantivy::Result<Self> {
        Ok(match kind {
            Kind::Constant => Values::None,
            Kind::Random { field: None, .. } => Values::SeqNo(segment.fast_fields().u64(SEQ_NO)?),
            Kind::Decay(Decay { field: (path, kind @ FieldType::GeoPoint), .. }) => {
                Values::Points(pair(segment, path, *kind)?)
            }
            Kind::FieldValue { field: (path, kind), .. }
            | Kind::Random { field: Some((path, kind)), .. }
            | Kind::Decay(Decay { field: (path, kind), .. }) => {
                Values::Column(Column::open(segment, path, *kind)?)
            }
        })
    }
}

struct Scored {
    query: Box<dyn Scorer>,
    functions: Vec<Open>,
    by: Arc<Functions>,
    /// Of the document at hand.
    score: Score,
}

impl Scored {
    /// Scores the document at hand, or the next one that scores enough.
    fn settle(&mut self) {
        while self.query.doc() != tantivy::TERMINATED {
            self.score = self.scored() as Score;
            if self.by.min_score.is_none_or(|least| self.score >= least) {
                return;
            }
            self.query.advance();
        }
    }

    fn scored(&mut self) -> f64 {
        let (doc, score) = (self.query.doc(), f64::from(self.query.score()));
        // As in the field [boost_mode] says nothing then.
        if self.functions.is_empty() {
            return score;
        }
        let mut found = Vec::with_capacity(self.functions.len());
        for (open, function) in self.functions.iter_mut().zip(&self.by.functions) {
            let fits = open.filter.as_mut().is_none_or(|filter| {
                filter.doc() == doc || (filter.doc() < doc && filter.seek(doc) == doc)
            });
            if fits {
                let weight = function.weight.unwrap_or(1.0);
                match function.kind.number(&open.values, doc) {
                    Ok(number) => found.push((number * weight, weight)),
                    Err(error) => _ = self.by.failed.set(error),
                }
            }
        }
        let functions = self.by.functions_by.all(found.into_iter()).unwrap_or(1.0);
        self.by.with_score_by.with_score(score, functions.min(self.by.max_boost))
    }
}

impl DocSet for Scored {
    fn advance(&mut self) -> DocId {
        self.query.advance();
        self.settle();
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.query.seek(target);
        self.settle();
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.query.doc()
    }

    fn size_hint(&self) -> u32 {
        self.query.size_hint()
    }
}

impl Scorer for Scored {
    fn score(&mut self) -> Score {
        self.score
    }
}

impl Kind {
    /// A function in the types of its field. Fails where it does not fit them.
    pub(super) fn of(
        kind: &ScoreKind,
        mapping: &Mapping,
        now_ms: i64,
    ) -> Result<Kind, SearchError> {
        let field = |path: &str| {
            let mapped = mapping.field(path);
            mapped.ok_or_else(|| unfit(format!("unknown field [{path}] in [function_score]")))
        };
        let sortable = |path: &str, mapped: &Field| {
            check_sortable(path, mapped).map(|()| (path.to_owned(), mapped.kind))
        };
        Ok(match kind {
            ScoreKind::Constant => Kind::Constant,
            ScoreKind::FieldValue { field: path, factor, modifier, missing } => {
                let field = match mapping.field(path) {
                    Some(mapped) => sortable(path, mapped)?,
                    None if missing.is_some() => (path.clone(), FieldType::Long),
                    None => {
                        let reason = format!(
                            "Unable to find a field mapper for field [{path}]. No 'missing' value defined."
                        );
                        return Err(unfit(reason));
                    }
                };
                let (factor, modifier, missing) = (*factor, *modifier, *missing);
                Kind::FieldValue { field, factor, modifier, missing }
            }
            ScoreKind::Random { seed, field: path } => {
                let field = path.as_deref().map(|path| sortable(path, field(path)?));
                let seed = seed.unwrap_or(now_ms) as u64;
                Kind::Random { seed, field: field.transpose()? }
            }
            ScoreKind::Decay { shape, field: path, origin, scale, offset, decay, of_many } => {
                let mapped = field(path)?;
                let wrong = |what: &str, value: &Literal| {
                    let (kind, text) = (mapped.kind.name(), value.text());
                    unfit(format!(
                        "[{what}] [{text}] is no distance of the field [{path}] of type [{kind}]"
                    ))
                };
                let distance = |what: &str, value: &Literal| {
                    let text = value.text();
                    let found = match mapped.kind {
                        FieldType::GeoPoint => geo::meters(&text, "m"),
                        FieldType::Date if text == "0" => Some(0.0),
                        FieldType::Date => date::fixed_interval_ms(&text).map(|ms| ms as f64),
                        _ => text.parse().ok(),
                    };
                    found.ok_or_else(|| wrong(what, value))
                };
                let now = Literal::Text("now".to_owned());
                let origin = match (mapped.kind, origin) {
                    (FieldType::GeoPoint, Some(origin)) => {
                        point(&origin.text()).ok_or_else(|| wrong("origin", origin))?
                    }
                    (FieldType::Date, origin) => {
                        let origin = origin.as_ref().unwrap_or(&now);
                        let read = (None, None, now_ms);
                        match exact(path, mapped, origin, read)? {
                            Some((Literal::Integer(ms), _)) => (ms as f64, 0.0),
                            _ => return Err(wrong("origin", origin)),
                        }
                    }
                    (_, Some(origin)) => (distance("origin", origin)?, 0.0),
                    (_, None) => return Err(unfit(format!("[{path}] has no [origin]"))),
                };
                if mapped.kind != FieldType::GeoPoint {
                    check_sortable(path, mapped)?;
                }
                let scale_of = distance("scale", scale)?;
                if scale_of <= 0.0 {
                    return Err(unfit("[scale] must be > 0.0"));
                }
                Kind::Decay(Decay {
                    field: (path.clone(), mapped.kind),
                    shape: *shape,
                    origin,
                    scale: scale_of,
                    offset: distance("offset", offset)?,
                    decay: *decay,
                    of_many: *of_many,
                })
            }
        })
    }

    /// What it comes to of a document.
    fn number(&self, values: &Values, doc: DocId) -> Result<f64, SearchError> {
        let mut numbers = Vec::new();
        match values {
            Values::Column(column) => column.each_number(doc, |number| numbers.push(number)),
            Values::Points(Some(points)) => {
                let Kind::Decay(decay) = self else { return Ok(1.0) };
                numbers.extend(points.of(doc).map(|point| geo::haversine_m(decay.origin, point)));
            }
            _ => {}
        }
        Ok(match self {
            Kind::Constant => 1.0,
            Kind::FieldValue { field, factor, modifier, missing } => {
                let found = numbers.into_iter().reduce(f64::min).or(*missing);
                let path = &field.0;
                let value = found.ok_or_else(|| {
                    illegal(format!(
                        "Missing value for field [{path}]; send [missing] in [field_value_factor]"
                    ))
                })?;
                let result = modifier.of(value * factor);
                if result.is_nan() || result < 0.0 {
                    return Err(illegal(format!(
                        "field value function must not produce negative scores, but got: [{result}] for field value: \
                         [{value}]"
                    )));
                }
                result
            }
            Kind::Random { seed, .. } => {
                let hash = |bytes: &[u8]| xxh3_64_with_seed(bytes, *seed);
                let hash = match values {
                    Values::SeqNo(column) => hash(&column.first(doc).unwrap_or(0).to_le_bytes()),
                    Values::Column(column) => {
                        let mut first = None;
                        column.each_bits(doc, |bits| first = first.or(Some(bits)));
                        match (first, column.texts()) {
                            (Some(ord), Some(texts)) => hash(text_of(texts, ord as u64).as_bytes()),
                            (bits, _) => hash(&bits.unwrap_or(0).to_le_bytes()),
                        }
                    }
                    _ => 0,
                };
                // As many bits as a score has.
                (hash >> 40) as f64 / (1u64 << 24) as f64
            }
            Kind::Decay(of) => {
                let is_point = of.field.1 == FieldType::GeoPoint;
                let distance = |value: f64| match is_point {
                    true => value,
                    false => (value - of.origin.0).abs(),
                };
                let away = |value: f64| ((distance(value) - of.offset).max(0.0), 1.0);
                let distance = of.of_many.all(numbers.into_iter().map(away));
                distance.map_or(1.0, |distance| of.shape.at(distance, of.scale, of.decay))
            }
        })
    }
}
