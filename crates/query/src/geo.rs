//! Distances on the Earth.

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

/// A point (latitude, longitude) as Lucene keeps it, each in 32 bits of the whole (`GeoEncodingUtils`).
pub fn kept((lat, lon): (f64, f64)) -> (f64, f64) {
    let kept = |degrees: f64, whole: f64| {
        let step = whole / (1_u64 << 32) as f64;
        let degrees = if degrees == whole / 2.0 { degrees.next_down() } else { degrees };
        (degrees / step).floor() * step
    };
    (kept(lat, 180.0), kept(lon, 360.0))
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
