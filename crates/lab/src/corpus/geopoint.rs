//! `geopoint`: points of interest as in the Rally track, `{"location": [lon, lat]}` from
//! OpenStreetMap.
//!
//! The original: 60 844 404 documents, 2 448 564 579 bytes. Points cluster as people do: regions of
//! the world by their weight in OpenStreetMap, towns within a region, streets around a town's
//! centre, and some points in the open country. Neighbours in the file are often neighbours on the
//! map.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::number::write_e7;
use super::random::Random;
use super::weighted::Weighted;

pub(super) const MEAN_BYTES: f64 = 40.24;

const FAMILY_RUN: u64 = 0x10;
const FAMILY_POINT: u64 = 0x11;
const FAMILY_TOWN: u64 = 0x12;
/// Documents in a row that lie around the same town.
const RUN: u64 = 16;
const TOWNS_PER_REGION: u32 = 1024;
const E7: f64 = 1e7;

/// Centre (longitude, latitude), reach in degrees, weight.
const REGIONS: [(f64, f64, f64, f64); 40] = [
    (10.4, 51.2, 3.6, 120.0),  // Germany
    (2.6, 46.8, 3.8, 90.0),    // France
    (-1.6, 52.6, 2.4, 70.0),   // England
    (-3.9, 56.4, 1.8, 10.0),   // Scotland
    (-7.9, 53.2, 1.8, 8.0),    // Ireland
    (5.1, 51.6, 1.4, 34.0),    // Low Countries
    (14.2, 47.6, 2.4, 26.0),   // Austria
    (8.2, 46.9, 1.1, 16.0),    // Switzerland
    (12.2, 43.2, 3.4, 42.0),   // Italy
    (-3.8, 40.2, 3.8, 30.0),   // Spain
    (-8.3, 39.7, 1.2, 8.0),    // Portugal
    (19.3, 52.0, 3.0, 34.0),   // Poland
    (15.6, 49.8, 1.9, 22.0),   // Czechia
    (19.2, 47.2, 1.9, 10.0),   // Hungary
    (25.0, 45.8, 3.0, 10.0),   // Romania
    (21.6, 41.6, 3.6, 12.0),   // Balkans
    (23.6, 38.6, 2.0, 8.0),    // Greece
    (30.8, 49.2, 4.4, 18.0),   // Ukraine
    (37.9, 55.4, 5.0, 36.0),   // western Russia
    (62.0, 56.2, 9.0, 14.0),   // Urals
    (104.0, 53.6, 14.0, 6.0),  // Siberia
    (15.6, 59.4, 3.4, 18.0),   // Sweden
    (9.4, 60.2, 2.6, 10.0),    // Norway
    (25.2, 61.6, 2.6, 12.0),   // Finland
    (10.2, 55.9, 1.4, 10.0),   // Denmark
    (33.4, 39.2, 4.4, 10.0),   // Turkey
    (-75.6, 40.6, 3.6, 64.0),  // north-east United States
    (-82.8, 33.2, 4.6, 48.0),  // south-east United States
    (-89.4, 41.6, 4.6, 44.0),  // Midwest
    (-97.4, 31.8, 4.0, 30.0),  // Texas
    (-119.6, 36.8, 3.2, 44.0), // California
    (-121.6, 47.0, 2.4, 18.0), // north-west United States
    (-79.4, 44.6, 3.8, 18.0),  // Ontario
    (-100.2, 20.6, 4.2, 10.0), // Mexico
    (-47.4, -21.4, 5.4, 16.0), // Brazil
    (-61.6, -34.4, 4.4, 8.0),  // Argentina
    (138.2, 35.8, 2.6, 26.0),  // Japan
    (112.6, 30.8, 8.0, 14.0),  // China
    (78.6, 21.6, 6.6, 14.0),   // India
    (146.4, -34.8, 4.4, 16.0), // south-east Australia
];

static BY_WEIGHT: LazyLock<Weighted> =
    LazyLock::new(|| Weighted::new(&REGIONS.map(|(_, _, _, weight)| weight)));

/// The mapping of the Rally track.
pub(super) fn mapping() -> Value {
    json!({"dynamic": "strict", "properties": {"location": {"type": "geo_point"}}})
}

/// Where the documents of a run lie.
#[derive(Clone, Copy)]
pub(super) struct Town {
    run: u64,
    lon_e7: i64,
    lat_e7: i64,
    reach_e7: f64,
}

impl Town {
    /// The town around which the documents of document `n`'s run lie.
    pub(super) fn of(seed: u64, n: u64) -> Self {
        let run = n / RUN;
        let mut random = Random::new(seed, FAMILY_RUN, run);
        let region = BY_WEIGHT.draw(&mut random);
        let (lon, lat, reach, _) = REGIONS[region];
        // The smaller of two: the first towns are the big ones.
        let town = random.below(TOWNS_PER_REGION).min(random.below(TOWNS_PER_REGION));
        // Not of the seed: towns stay where they are, their points differ.
        let mut place = Random::new(region as u64, FAMILY_TOWN, u64::from(town));
        Town {
            run,
            lon_e7: ((lon + spread(&mut place) * reach) * E7) as i64,
            lat_e7: ((lat + spread(&mut place) * reach * 0.7) * E7) as i64,
            reach_e7: reach * E7,
        }
    }

    /// Whether document `n` lies around this town.
    pub(super) fn holds(&self, n: u64) -> bool {
        n / RUN == self.run
    }
}

/// Between -1 and 1, most often near 0.
fn spread(random: &mut Random) -> f64 {
    random.unit() - random.unit()
}

pub(super) fn write(seed: u64, n: u64, town: &Town, out: &mut Vec<u8>) {
    let mut random = Random::new(seed, FAMILY_POINT, n);
    // One in eight in the open country; the rest within a few kilometres.
    let around_e7 = if random.below(8) == 0 { town.reach_e7 * 0.2 } else { 0.04 * E7 };
    let lon = town.lon_e7 + (spread(&mut random) * around_e7) as i64;
    let lat = town.lat_e7 + (spread(&mut random) * around_e7) as i64;
    out.extend_from_slice(b"{\"location\": [");
    write_e7(out, lon.clamp(-1_800_000_000, 1_800_000_000));
    out.extend_from_slice(b", ");
    write_e7(out, lat.clamp(-850_000_000, 850_000_000));
    out.extend_from_slice(b"]}");
}
