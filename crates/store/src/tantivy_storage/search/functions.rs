//! `function_score`: the scores of a query, changed by functions of each document.

use std::sync::{Arc, OnceLock};

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TantivyError, Term};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use query::score::{Combine, ScoreKind, lesser};
use query::value::point;
use query::{Field, FieldType, Literal, Mapping, SearchError, date, geo, illegal, unfit};

use super::column::{Column, pair, text_of};
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
pub(super) struct Function {
    pub(super) filter: Option<Box<dyn Query>>,
    pub(super) weight: Option<f64>,
    pub(super) opens: Opens,
}

/// What a function comes to of a document of one segment.
type Number = Box<dyn Fn(DocId) -> Result<f64, SearchError> + Send>;
/// Opens a function in a segment.
pub(super) type Opens = Box<dyn Fn(&SegmentReader) -> tantivy::Result<Number> + Send + Sync>;

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?}, {:?}", self.filter, self.weight)
    }
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
        let unscored = EnableScoring::disabled_from_schema(scoring.schema());
        let filters = self.by.functions.iter().map(|function| {
            function.filter.as_ref().map(|filter| filter.weight(unscored)).transpose()
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
            Ok((filter, (function.opens)(segment)?))
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

struct Scored {
    query: Box<dyn Scorer>,
    /// With their filters, in the segment at hand.
    functions: Vec<(Option<Box<dyn Scorer>>, Number)>,
    by: Arc<Functions>,
    /// Of the document at hand.
    score: Score,
}

impl Scored {
    /// Scores the document at hand, or the next one that scores enough.
    fn settle(&mut self) {
        while self.query.doc() != tantivy::TERMINATED {
            self.score = self.scored() as Score;
            if !(0.0..=Score::MAX).contains(&self.score) {
                let (score, doc) = (self.score, self.query.doc());
                let reason = format!(
                    "function score query returned an invalid score: {score} for doc: {doc}; send [filter] in \
                     [functions], or [max_boost]"
                );
                _ = self.by.failed.set(illegal(reason));
                self.score = 0.0;
            }
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
        for ((filter, number), function) in self.functions.iter_mut().zip(&self.by.functions) {
            let fits = filter.as_mut().is_none_or(|filter| {
                filter.doc() == doc || (filter.doc() < doc && filter.seek(doc) == doc)
            });
            if fits {
                let weight = function.weight.unwrap_or(1.0);
                match number(doc) {
                    Ok(number) => found.push((number * weight, weight)),
                    Err(error) => _ = self.by.failed.set(error),
                }
                // As in the field the others are not asked then.
                if self.by.functions_by == Combine::First {
                    break;
                }
            }
        }
        let functions = self.by.functions_by.all(found.into_iter()).unwrap_or(1.0);
        self.by.with_score_by.with_score(score, lesser(functions, self.by.max_boost))
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

/// Reads a function in the types of its field. Fails where it does not fit them.
pub(super) fn opens(
    kind: &ScoreKind,
    mapping: &Mapping,
    now_ms: i64,
) -> Result<Opens, SearchError> {
    let field = |path: &str| {
        let mapped = mapping.field(path);
        mapped.ok_or_else(|| unfit(format!("unknown field [{path}] in [function_score]")))
    };
    let sortable = |path: &str, mapped: &Field| {
        check_sortable(path, mapped).map(|()| (path.to_owned(), mapped.kind))
    };
    let opens: Opens = match kind {
        ScoreKind::Constant => Box::new(|_: &SegmentReader| -> tantivy::Result<Number> {
            Ok(Box::new(|_: DocId| Ok(1.0)))
        }),
        ScoreKind::FieldValue { field: path, factor, modifier, missing } => {
            let (path, kind) = match mapping.field(path) {
                Some(mapped) => {
                    check_numeric(path, mapped.kind).and_then(|()| sortable(path, mapped))?
                }
                None if missing.is_some() => (path.clone(), FieldType::Long),
                None => {
                    let reason = format!(
                        "Unable to find a field mapper for field [{path}]. No 'missing' value defined."
                    );
                    return Err(unfit(reason));
                }
            };
            let (factor, modifier, missing) = (*factor, *modifier, *missing);
            Box::new(move |segment: &SegmentReader| -> tantivy::Result<Number> {
                let (column, path) = (Column::open(segment, &path, kind)?, path.clone());
                Ok(Box::new(move |doc: DocId| -> Result<f64, SearchError> {
                    let mut least = None::<f64>;
                    column.each_number(doc, |n| least = Some(least.unwrap_or(n).min(n)));
                    let value = least.or(missing).ok_or_else(|| {
                        illegal(format!(
                            "Missing value for field [{path}]; send [missing] in [field_value_factor]"
                        ))
                    })?;
                    let result = modifier.of(value * factor);
                    if result.is_nan() || result < 0.0 {
                        return Err(illegal(format!(
                            "field value function must not produce negative scores, but got: [{result}] for field \
                             value: [{value}]"
                        )));
                    }
                    Ok(result)
                }))
            })
        }
        ScoreKind::Random { seed, field: path } => {
            let field = path.as_deref().map(|path| sortable(path, field(path)?)).transpose()?;
            let seed = seed.unwrap_or(now_ms) as u64;
            Box::new(move |segment: &SegmentReader| -> tantivy::Result<Number> {
                // As many bits as a score has.
                let random = move |bytes: &[u8]| {
                    (xxh3_64_with_seed(bytes, seed) >> 40) as f64 / (1u64 << 24) as f64
                };
                let Some((path, kind)) = &field else {
                    let numbers = segment.fast_fields().u64(SEQ_NO)?;
                    return Ok(Box::new(move |doc: DocId| {
                        Ok(random(&numbers.first(doc).unwrap_or(0).to_le_bytes()))
                    }));
                };
                let column = Column::open(segment, path, *kind)?;
                Ok(Box::new(move |doc: DocId| {
                    let mut first = None;
                    column.each_bits(doc, |bits| first = first.or(Some(bits)));
                    Ok(match (first, column.texts()) {
                        (Some(ord), Some(texts)) => random(text_of(texts, ord as u64).as_bytes()),
                        (bits, _) => random(&bits.unwrap_or(0).to_le_bytes()),
                    })
                }))
            })
        }
        ScoreKind::Decay { shape, field: path, origin, scale, offset, decay, of_many } => {
            let mapped = field(path)?;
            let ends = (origin.as_ref(), scale, offset);
            let (origin, scale, offset) = decay_ends((path, mapped), ends, now_ms)?;
            let (path, kind) = (path.clone(), mapped.kind);
            let (shape, decay, of_many) = (*shape, *decay, *of_many);
            Box::new(move |segment: &SegmentReader| -> tantivy::Result<Number> {
                // One of both is there: points have no column of their own.
                let column = Column::open(segment, &path, kind)?;
                let points = pair(segment, &path, kind)?;
                Ok(Box::new(move |doc: DocId| {
                    let mut away = Vec::new();
                    column.each_number(doc, |number| away.push((number - origin.0).abs()));
                    let points = points.iter().flat_map(|points| points.of(doc));
                    away.extend(points.map(|point| geo::haversine_m(origin, point)));
                    let away = away.into_iter().map(|away| ((away - offset).max(0.0), 1.0));
                    let distance = of_many.all(away);
                    Ok(distance.map_or(1.0, |distance| shape.at(distance, scale, decay)))
                }))
            })
        }
    };
    Ok(opens)
}

/// Where a decay begins (a number, or latitude and longitude), its scale and its offset, as the field keeps its values.
fn decay_ends(
    (path, mapped): (&str, &Field),
    (origin, scale, offset): (Option<&Literal>, &Literal, &Literal),
    now_ms: i64,
) -> Result<((f64, f64), f64, f64), SearchError> {
    let wrong = |what: &str, value: &Literal| {
        let (kind, text) = (mapped.kind.name(), value.text());
        unfit(format!("[{what}] [{text}] is no distance of the field [{path}] of type [{kind}]"))
    };
    let distance = |what: &str, value: &Literal| {
        let text = value.text();
        let found = match mapped.kind {
            FieldType::GeoPoint => geo::meters(&text, "m"),
            FieldType::Date if text == "0" => Some(0.0),
            FieldType::Date => date::fixed_interval_ms(&text).map(|ms| ms as f64),
            _ => text.parse().ok().filter(|n: &f64| n.is_finite()),
        };
        found.ok_or_else(|| wrong(what, value))
    };
    let now = Literal::Text("now".to_owned());
    let origin = match (mapped.kind, origin) {
        (FieldType::GeoPoint, Some(origin)) => {
            point(&origin.text()).ok_or_else(|| wrong("origin", origin))?
        }
        (FieldType::Date, origin) => {
            let origin = origin.unwrap_or(&now);
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
        check_numeric(path, mapped.kind)?;
        check_sortable(path, mapped)?;
    }
    let scale = distance("scale", scale)?;
    if scale <= 0.0 {
        return Err(unfit("[scale] must be > 0.0"));
    }
    let offset = distance("offset", offset)?;
    if offset < 0.0 {
        return Err(unfit("[offset] must be >= 0.0"));
    }
    Ok((origin, scale, offset))
}

/// Fails where the values of a field are no numbers, so that a function would pass over all of them.
fn check_numeric(path: &str, kind: FieldType) -> Result<(), SearchError> {
    if kind.is_set() {
        let kind = kind.name();
        return Err(unfit(format!(
            "field [{path}] is of type [{kind}], but only numeric types are supported in [function_score]"
        )));
    }
    Ok(())
}
