//! Points, boxes, areas and grids of the Earth, from JSON.

use super::limits::{POLYGON_POINTS, few};
use super::options::Options;
use super::terms::sizes;
use crate::aggregation::AggregationKind;
use crate::error::{Result, ensure, parsing};
use crate::geo::{self, Polygon};
use crate::grid::{Grid, MAX_LETTERS, MAX_ZOOM, letters_within};
use crate::json::{Node, Value};
use crate::query::FieldQuery;
use crate::value::{is_point, point as point_of_text};

/// A point: `{"lat":..,"lon":..}`, `[lon, lat]` or `"lat,lon"`.
pub(super) fn point(node: &Node, name: &str) -> Result<(f64, f64)> {
    let read = match &node.value {
        Value::List(items) => match items.as_slice() {
            [lon, lat] => Some((lat.float(name)?, lon.float(name)?)),
            _ => None,
        },
        Value::Object(_) => {
            let options = node.options(name, "lat lon", 0)?;
            Some((options.need("lat")?.float("lat")?, options.need("lon")?.float("lon")?))
        }
        Value::Text(text) => point_of_text(text),
        _ => None,
    };
    let on_earth = read.filter(|(lat, lon)| is_point(*lat, *lon));
    on_earth.ok_or_else(|| {
        node.wrong(name, "a point of the Earth: {\"lat\":..,\"lon\":..}, [lon, lat] or \"lat,lon\"")
    })
}

/// Metres of `unit`; of the metre where none is named.
pub(super) fn unit_m(options: &Options<'_>) -> Result<f64> {
    let unit = options.read("unit", |node, name| {
        geo::meters("1", &node.text(name)?).ok_or_else(|| node.wrong(name, "a unit, like km"))
    })?;
    Ok(unit.unwrap_or(1.0))
}

/// Top, left, bottom, right of a box; `what` names it in errors.
pub(super) fn sides(node: &Node, what: &str) -> Result<[f64; 4]> {
    const KNOWN: &str = "top left bottom right top_left top_right bottom_left bottom_right";
    let options = node.options(what, KNOWN, 0)?;
    let mut sides: [Option<f64>; 4] = [None; 4];
    for (name, node) in options.iter() {
        let vertical = if name.starts_with("top") { 0 } else { 2 };
        let horizontal = if name.ends_with("left") { 1 } else { 3 };
        match name {
            "top" | "bottom" => sides[vertical] = Some(node.float(name)?),
            "left" | "right" => sides[horizontal] = Some(node.float(name)?),
            _ => {
                let (lat, lon) = point(node, name)?;
                (sides[vertical], sides[horizontal]) = (Some(lat), Some(lon));
            }
        }
    }
    let [Some(top), Some(left), Some(bottom), Some(right)] = sides else {
        return Err(options.missing("all of top, left, bottom and right"));
    };
    let is_box = is_point(top, left) && is_point(bottom, right) && top >= bottom;
    let is_none = format_args!("bottom [{bottom}], right [{right}] is no box");
    ensure(is_box, node.at, format_args!("top [{top}], left [{left}], {is_none}"))?;
    Ok([top, left, bottom, right])
}

/// What `geo_shape` asks of a field of points: whether one lies in the shape.
pub(super) fn shape(node: &Node, ignore_unmapped: bool) -> Result<FieldQuery> {
    let options = node.options("geo_shape", "shape relation", 0)?;
    // As in OpenSearch 2; Elasticsearch answers the others of points from 8 on.
    let relation = options.read("relation", Node::text)?.unwrap_or_default().to_lowercase();
    let is_there = ["", "intersects"].contains(&relation.as_str());
    let reason = format_args!(
        "the relation [{relation}] to points is not supported by this engine; send [intersects], and [bool] with \
         [must_not] for what is disjoint"
    );
    ensure(is_there, options.get("relation").unwrap_or(node).at, reason)?;
    let node = options.need("shape")?;
    let options = node.options("shape", "type coordinates orientation radius", 0)?;
    let kind = options.need("type")?.text("type")?.to_lowercase();
    let coordinates = options.need("coordinates")?;
    if let Some(radius) = options.get("radius") {
        ensure(kind == "circle", radius.at, format_args!("a [{kind}] has no [radius]"))?;
    }
    let polygons = match kind.as_str() {
        "envelope" | "bbox" => {
            let [top_left, bottom_right] = coordinates.list("coordinates")? else {
                return Err(coordinates.wrong("coordinates", "two corners"));
            };
            let (top, left) = point(top_left, "coordinates")?;
            let (bottom, right) = point(bottom_right, "coordinates")?;
            let reason = format_args!("top [{top}] is below bottom [{bottom}]");
            ensure(top >= bottom, coordinates.at, reason)?;
            let sides = [top, left, bottom, right];
            return Ok(FieldQuery::GeoBoundingBox { sides, ignore_unmapped });
        }
        "circle" if !ignore_unmapped => {
            let radius = options.need("radius")?;
            let text = radius.text("radius")?;
            let distance_m = geo::meters(&text, "m")
                .ok_or_else(|| parsing(radius.at, format!("radius [{text}] is not like [12km]")))?;
            let center = point(coordinates, "coordinates")?;
            return Ok(FieldQuery::GeoDistance { center, distance_m });
        }
        "polygon" => vec![polygon(coordinates)?],
        "multipolygon" => {
            let each = coordinates.list("coordinates")?.iter().map(polygon);
            each.collect::<Result<Vec<Polygon>>>()?
        }
        _ => {
            let reason = format!(
                "the shape [{kind}] is not supported by this engine; send [polygon], [multipolygon] or [envelope], or \
                 the query [geo_distance]"
            );
            return Err(parsing(node.at, reason));
        }
    };
    few(node.at, polygons.iter().map(Polygon::points).sum(), POLYGON_POINTS)?;
    Ok(FieldQuery::GeoPolygons { polygons, ignore_unmapped })
}

/// A polygon of GeoJSON: a ring around it and those around its holes, each closed.
fn polygon(node: &Node) -> Result<Polygon> {
    let mut rings = Vec::new();
    for ring in node.list("coordinates")? {
        let points = ring.list("coordinates")?.iter().map(|at| point(at, "coordinates"));
        let points = points.collect::<Result<Vec<_>>>()?;
        let is_closed = points.len() >= 4 && points.first() == points.last();
        let reason = "a ring of a polygon has 4 points at least, and the last is the first";
        ensure(is_closed, ring.at, reason)?;
        rings.push(points);
    }
    if rings.is_empty() {
        return Err(node.wrong("coordinates", "the rings of a polygon, each an array of points"));
    }
    area(node, rings)
}

/// The polygon of `geo_polygon`: its corners, the last of which need not be the first.
pub(super) fn corners(node: &Node) -> Result<Polygon> {
    let options = node.options("geo_polygon", "points", 0)?;
    let node = options.need("points")?;
    let points = node.list("points")?.iter().map(|at| point(at, "points"));
    let mut points = points.collect::<Result<Vec<_>>>()?;
    if points.first() != points.last() {
        points.extend(points.first().copied());
    }
    ensure(points.len() >= 4, node.at, "too few points defined for [geo_polygon] query")?;
    few(node.at, points.len(), POLYGON_POINTS)?;
    area(node, vec![points])
}

fn area(node: &Node, rings: Vec<Vec<(f64, f64)>>) -> Result<Polygon> {
    Polygon::new(rings).ok_or_else(|| {
        let reason = "a polygon that is wider than 180 degrees, or crosses the date line, is not supported by this \
                      engine; send its parts";
        parsing(node.at, reason)
    })
}

/// Buckets that are the cells of a map.
pub(super) fn grid(options: &Options<'_>, of_tiles: bool) -> Result<AggregationKind> {
    let given = options.read("precision", |node, name| precision(node, name, of_tiles))?;
    let bounds = options.read("bounds", sides)?;
    let (size, shard_size) = sizes(options, 10_000)?;
    let precision = given.unwrap_or(if of_tiles { 7 } else { 5 });
    Ok(AggregationKind::Grid(Grid { of_tiles, precision, bounds, size, shard_size }))
}

/// A zoom, or letters of a geohash: these also by how large a cell may be.
fn precision(node: &Node, name: &str, of_tiles: bool) -> Result<u32> {
    if let Value::Text(text) = &node.value
        && !of_tiles
        && text.trim().parse::<i64>().is_err()
    {
        let meters = geo::meters(text, "m");
        let wanted = || node.wrong(name, "letters of a geohash, or the size of a cell, like 1km");
        let letters = letters_within(meters.ok_or_else(wanted)?);
        ensure(letters <= MAX_LETTERS, node.at, format_args!("precision too high [{text}]"))?;
        return Ok(letters);
    }
    let (what, least, most) = match of_tiles {
        true => ("geotile_grid", 0, MAX_ZOOM),
        false => ("geohash aggregation", 1, MAX_LETTERS),
    };
    let given = node.integer(name)?;
    let reason =
        format_args!("Invalid {what} precision of {given}. Must be between {least} and {most}.");
    let fits = u32::try_from(given).ok().filter(|given| (least..=most).contains(given));
    fits.ok_or_else(|| parsing(node.at, reason.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::parse_search;
    use crate::query::{FieldQuery, QueryKind};

    fn read(query: serde_json::Value) -> Result<FieldQuery, String> {
        let body = json!({ "query": query }).to_string();
        let request = parse_search(body.as_bytes()).map_err(|error| error.to_string())?;
        let QueryKind::Field(_, asked) = request.query.kind else { panic!("{body}") };
        Ok(asked)
    }

    #[test]
    fn a_shape_is_read_as_the_box_or_the_polygon_that_it_is() {
        let shape = |kind: &str, coordinates: serde_json::Value| {
            read(json!({"geo_shape": {"p": {"shape": {"type": kind, "coordinates": coordinates}}}}))
        };
        let of_box =
            json!({"geo_bounding_box": {"p": {"top": 2, "left": -1, "bottom": 0, "right": 1}}});
        assert_eq!(shape("Envelope", json!([[-1, 2], [1, 0]])), read(of_box));
        let circle = json!({"type": "circle", "coordinates": [1, 2], "radius": "3km"});
        assert_eq!(
            read(json!({"geo_shape": {"p": {"shape": circle, "relation": "INTERSECTS"}}})),
            read(json!({"geo_distance": {"p": [1, 2], "distance": 3000}})),
        );
        let ring = json!([[0, 0], [4, 0], [4, 4], [0, 0]]);
        let polygon = shape("polygon", json!([ring])).unwrap();
        assert_eq!(shape("MultiPolygon", json!([[ring]])).unwrap(), polygon);
        let corners =
            json!({"geo_polygon": {"p": {"points": ["0,0", [4, 0], {"lat": 4, "lon": 4}]}}});
        assert_eq!(read(corners).unwrap(), polygon);
    }

    #[test]
    fn a_shape_scores_nothing_unless_it_has_a_boost() {
        let circle = json!({"type": "circle", "coordinates": [1, 2], "radius": "3km"});
        let boost = |query: serde_json::Value| {
            let body = json!({ "query": query }).to_string();
            parse_search(body.as_bytes()).unwrap().query.boost
        };
        assert_eq!(boost(json!({"geo_shape": {"p": {"shape": circle}}})), 0.0);
        assert_eq!(boost(json!({"geo_shape": {"p": {"shape": circle}, "boost": 2}})), 2.0);
        assert_eq!(boost(json!({"geo_distance": {"p": [1, 2], "distance": "3km"}})), 1.0);
    }

    #[test]
    fn what_is_no_area_or_not_answered_of_points_is_refused() {
        let ring = json!([[0, 0], [4, 0], [4, 4], [0, 0]]);
        let asked = |kind: &str, coordinates: serde_json::Value, relation: &str| {
            let shape = json!({ "type": kind, "coordinates": coordinates });
            read(json!({"geo_shape": {"p": {"shape": shape, "relation": relation}}})).unwrap_err()
        };
        assert!(asked("polygon", json!([ring]), "contains").contains("[contains]"));
        assert!(asked("point", json!([0, 0]), "intersects").contains("[point]"));
        let open = json!([[[0, 0], [4, 0], [4, 4], [1, 1]]]);
        assert!(asked("polygon", open, "intersects").contains("the last is the first"));
        let wide = json!([[[-170, 0], [170, 0], [170, 4], [-170, 0]]]);
        assert!(asked("polygon", wide, "intersects").contains("date line"));
        assert!(asked("envelope", json!([[0, 0], [4, 4]]), "intersects").contains("below bottom"));
        let two = json!({"geo_polygon": {"p": {"points": [[0, 0], [4, 0]]}}});
        assert!(read(two).unwrap_err().contains("too few points"));
    }
}
