//! What hits show of their columns (`docvalue_fields`, and the field that they are collapsed by).

use record::names::matches;
use tantivy::{DocId, Searcher, SegmentReader};

use query::{
    ColumnField, DateFormat, Field, FieldType, Literal, Mapping, SearchRequest, ShardHit, geo,
    illegal,
};

use super::column::{Column, pair};
use super::failed::Result;
use super::value::{check_sortable, show_double};

/// Puts into hits what the request asks for.
pub(super) fn show_columns(
    request: &SearchRequest,
    mapping: &Mapping,
    searcher: &Searcher,
    hits: &mut [ShardHit],
) -> Result<()> {
    let asked = |path: &String| request.column_fields.iter().any(|of| of.pattern == *path);
    let collapsed = request.collapse.clone().filter(|path| !asked(path));
    let collapsed = collapsed.map(|pattern| ColumnField { pattern, format: None });
    for asked in request.column_fields.iter().chain(&collapsed) {
        for (path, field) in mapping.fields() {
            let is_point = field.kind == FieldType::GeoPoint;
            let check = if is_point { Ok(()) } else { check_sortable(path, field) };
            match () {
                () if *path == asked.pattern => check?,
                () if !matches(&asked.pattern, path) || check.is_err() => continue,
                () => {}
            }
            if asked.format.is_some() && field.kind != FieldType::Date {
                let kind = field.kind.name();
                return Err(illegal(format!(
                    "[docvalue_fields] with [format] of [{path}], which is of type [{kind}], is not supported by this \
                     engine; dates alone have one"
                ))
                .into());
            }
            for hit in hits.iter_mut() {
                let segment = searcher.segment_reader(hit.segment);
                let values = values(segment, (path, field), asked.format.as_ref(), hit.doc)?;
                if !values.is_empty() {
                    hit.fields.entry(path.clone()).or_default().extend(values);
                }
            }
        }
    }
    Ok(())
}

/// The values of a document as the field shows them.
fn values(
    segment: &SegmentReader,
    (path, field): (&str, &Field),
    format: Option<&DateFormat>,
    doc: DocId,
) -> tantivy::Result<Vec<Literal>> {
    if field.kind.columns().is_some() {
        let columns = pair(segment, path, field.kind)?;
        let points = columns.iter().flat_map(|columns| columns.of(doc)).map(|point| {
            let (lat, lon) = geo::quantized(point);
            format!("{}, {}", show_double(lat), show_double(lon))
        });
        // As in the field these are sorted as texts.
        let mut points: Vec<String> = points.collect();
        points.sort_unstable();
        return Ok(points.into_iter().map(Literal::Text).collect());
    }
    let column = Column::open(segment, path, field.kind)?;
    let dates = format.unwrap_or(&field.dates);
    let mut found = Vec::new();
    column.read_bits(doc, &mut found);
    // Bits are in the order of values, other than texts of dates and addresses.
    found.sort_unstable();
    let value = |bits: u128| match (field.kind, column.literal(bits)) {
        (FieldType::Boolean, Literal::Integer(yes)) => Literal::Boolean(yes == 1),
        (FieldType::Date, Literal::Integer(ms)) => Literal::Text(dates.show(ms)),
        (FieldType::Ip, address) => Literal::Text(address.text()),
        (_, value) => value,
    };
    Ok(found.into_iter().map(value).collect())
}
