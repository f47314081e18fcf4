//! Distances and areas on the Earth.

use serde::{Deserialize, Serialize};

/// The Earth's mean radius as Lucene has it (`GeoUtils.EARTH_MEAN_RADIUS_METERS`).
const EARTH_RADIUS_M: f64 = 6_371_008.771_4;

/// Metres along the arc between two points (latitude, longitude in degrees), by the haversine formula; the same
/// as Lucene's `SloppyMath.haversinMeters` but for its tabulated cosines.
pub fn haversine_m(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (lat1, lat2) = (a.0.to_radians(), b.0.to_radians());
    let half = |x: f64| (x / 2.0).sin().powi(2);
    let h = half(lat2 - lat1) + lat1.cos() * lat2.cos() * half((b.1 - a.1).to_radians());
    2.0 * EARTH_RADIUS_M * h.sqrt().min(1.0).asin()
}

/// Latitudes between which everything within `distance_m` of a point lies; a little wider.
pub fn latitudes_within(center: (f64, f64), distance_m: f64) -> (f64, f64) {
    let degrees = (distance_m / EARTH_RADIUS_M).to_degrees() * 1.000_001 + 1e-9;
    (center.0 - degrees, center.0 + degrees)
}

/// Steps of the whole, as Lucene counts them.
const STEPS: f64 = (1_u64 << 32) as f64;

/// How many steps a point (latitude, longitude) lies from the south pole and from the date line, as Lucene keeps it
/// (`GeoEncodingUtils`).
pub(crate) fn steps((lat, lon): (f64, f64)) -> (u32, u32) {
    // The other end is in the last step: what a cast has no room for becomes the greatest number.
    let steps =
        |degrees: f64, whole: f64| ((degrees / (whole / STEPS)).floor() + STEPS / 2.0) as u32;
    (steps(lat, 180.0), steps(lon, 360.0))
}

/// A point (latitude, longitude) as Lucene gives it back: where its steps begin.
pub fn quantized(point: (f64, f64)) -> (f64, f64) {
    let (lat, lon) = steps(point);
    let kept = |steps: u32, whole: f64| f64::from(steps) * (whole / STEPS) - whole / 2.0;
    (kept(lat, 180.0), kept(lon, 360.0))
}

/// An area, as a shape on a plane of degrees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Polygon {
    /// Closed rings of points (latitude, longitude): the first around it, others around its holes.
    rings: Vec<Vec<(f64, f64)>>,
}

impl Polygon {
    /// Of closed rings. None without a ring, or where one is so wide that it may go around the Earth either way.
    pub fn new(rings: Vec<Vec<(f64, f64)>>) -> Option<Polygon> {
        let width = |ring: &[(f64, f64)]| {
            let lons = || ring.iter().map(|(_, lon)| *lon);
            lons().fold(f64::MIN, f64::max) - lons().fold(f64::MAX, f64::min)
        };
        let is_narrow = !rings.is_empty() && rings.iter().all(|ring| width(ring) <= 180.0);
        is_narrow.then_some(Polygon { rings })
    }

    /// How many points its rings have.
    pub fn points(&self) -> usize {
        self.rings.iter().map(Vec::len).sum()
    }

    /// Whether a point lies in it: in the ring around it, also on its edge, and in no hole.
    pub fn holds(&self, point: (f64, f64)) -> bool {
        self.rings.split_first().is_some_and(|(around, holes)| {
            is_within(around, point) && !holes.iter().any(|hole| is_within(hole, point))
        })
    }
}

/// Whether a point lies in a ring or on it: a ray from it to the east crosses an odd number of edges.
fn is_within(ring: &[(f64, f64)], (lat, lon): (f64, f64)) -> bool {
    let mut within = false;
    for edge in ring.windows(2) {
        let ((lat_a, lon_a), (lat_b, lon_b)) = (edge[0], edge[1]);
        let side = (lon_b - lon_a) * (lat - lat_a) - (lat_b - lat_a) * (lon - lon_a);
        let is_beside = lon >= lon_a.min(lon_b) && lon <= lon_a.max(lon_b);
        if side == 0.0 && is_beside && lat >= lat_a.min(lat_b) && lat <= lat_a.max(lat_b) {
            return true;
        }
        // Of the ends of an edge the lower one counts, so that a ray through a corner crosses once.
        if (lat_a > lat) != (lat_b > lat) {
            within ^= (side > 0.0) == (lat_b > lat_a);
        }
    }
    within
}

/// Names of units, and metres of each.
const UNITS: [(&str, f64); 9] = [
    ("nauticalmiles nmi NM", 1852.0),
    ("miles mi", 1609.344),
    ("yards yd", 0.9144),
    ("feet ft", 0.3048),
    ("inch in", 0.0254),
    ("kilometers km", 1000.0),
    ("centimeters cm", 0.01),
    ("millimeters mm", 0.001),
    ("meters m", 1.0),
];

fn unit(name: &str) -> Option<f64> {
    let unit = UNITS.iter().find(|(names, _)| names.split(' ').any(|known| known == name));
    unit.map(|(_, meters)| *meters)
}

/// Metres of `12km`; of a bare number in the unit `default`.
pub fn meters(text: &str, default: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.bytes().take_while(|b| b"+-.0123456789eE".contains(b)).count();
    let number: f64 = text[..digits].parse().ok()?;
    let name = text[digits..].trim();
    let meters = number * unit(if name.is_empty() { default } else { name })?;
    (meters.is_finite() && meters >= 0.0).then_some(meters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_globe() {
        let (london, paris) = ((51.5074, -0.1278), (48.8566, 2.3522));
        assert!((haversine_m(london, paris) - 343_556.0).abs() < 500.0);
        let quarter = std::f64::consts::FRAC_PI_2 * EARTH_RADIUS_M;
        assert!((haversine_m((0.0, 0.0), (90.0, 17.0)) - quarter).abs() < 1e-3);
        assert!((haversine_m((0.0, 179.5), (0.0, -179.5)) - quarter / 90.0).abs() < 1e-3);
        assert_eq!(haversine_m(paris, paris), 0.0);
    }

    #[test]
    fn a_polygon_holds_what_lies_in_it_and_on_its_edge_but_not_in_its_holes() {
        let square = |least: f64, most: f64| {
            vec![(least, least), (least, most), (most, most), (most, least), (least, least)]
        };
        let backward: Vec<(f64, f64)> = square(4.0, 6.0).into_iter().rev().collect();
        let with_hole = Polygon::new(vec![square(0.0, 10.0), backward]).unwrap();
        assert_eq!(with_hole.points(), 10);
        let corners = vec![(0.0, 5.0), (5.0, 10.0), (10.0, 5.0), (5.0, 0.0), (0.0, 5.0)];
        let diamond = Polygon::new(vec![corners]).unwrap();
        for (polygon, points, held) in [
            (&with_hole, "1,2 5,1 5,9 0,5 10,10 4,2", true),
            (&with_hole, "5,5 5,11 5,-1 11,5 -1,5 10,-1 0,11", false),
            // Rays through its corners.
            (&diamond, "5,5 9,5", true),
            (&diamond, "5,-1 0,0 1,1 9,9 10,1", false),
        ] {
            for point in points.split(' ') {
                let read = crate::value::point(point).unwrap();
                assert_eq!(polygon.holds(read), held, "{polygon:?}: {point}");
            }
        }
        assert_eq!(Polygon::new(vec![square(-95.0, 95.0)]), None);
        assert_eq!(Polygon::new(Vec::new()), None);
    }

    #[test]
    fn reads_units() {
        for (text, meters_of) in [
            ("200km", 200_000.0),
            ("1.5 mi", 2414.016),
            ("7", 7000.0),
            ("3m", 3.0),
            ("1e3ft", 304.8),
        ] {
            assert!((meters(text, "km").unwrap() - meters_of).abs() < 1e-6, "{text}");
        }
        for bad in ["", "km", "-1km", "5 parsecs"] {
            assert_eq!(meters(bad, "m"), None, "{bad}");
        }
    }
}
