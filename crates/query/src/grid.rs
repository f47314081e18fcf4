//! Grids over the Earth, whose cells are geohashes or the tiles of maps.

use std::f64::consts::{LN_2, PI};

use serde::{Deserialize, Serialize};

use crate::geo;

/// The letters of a geohash, each of which has five bits.
pub(crate) const GEOHASH: &str = "0123456789bcdefghjkmnpqrstuvwxyz";
/// The most letters of a geohash.
pub(crate) const MAX_LETTERS: u32 = 12;
/// The greatest zoom of tiles. A column and a row have as many bits.
pub(crate) const MAX_ZOOM: u32 = 29;

/// A grid whose cells are buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// Whether cells are the tiles of maps, and not geohashes.
    pub of_tiles: bool,
    /// Letters of the geohashes, or zoom of the tiles.
    pub precision: u32,
    /// Top, left, bottom and right: points beyond are left out.
    pub bounds: Option<[f64; 4]>,
    /// Buckets that are shown.
    pub size: usize,
    /// Buckets that each shard sends.
    pub shard_size: usize,
}

impl Grid {
    /// The cell of a point (latitude, longitude), as the field numbers and sorts cells; none beyond the bounds.
    pub fn cell(&self, point: (f64, f64)) -> Option<i64> {
        let (lat, lon) = geo::quantized(point);
        if let Some([top, left, bottom, right]) = self.bounds {
            let (east, west) = (lon >= left, lon <= right);
            let between = if left <= right { east && west } else { east || west };
            if lat > top || lat < bottom || !between {
                return None;
            }
        }
        if self.of_tiles {
            return Some(tile_at(self.precision, (lat, lon)));
        }
        let (lat, lon) = geo::steps(point);
        let letters = ((spread(lon) << 1) | spread(lat)) >> (64 - 5 * self.precision);
        // As in the field four bits follow, so that the first of twelve letters has the sign.
        Some((letters << 4) as i64)
    }

    /// The key of a cell: a geohash, or zoom, column and row of a tile.
    pub fn key(&self, cell: i64) -> String {
        let bits = cell as u64;
        if self.of_tiles {
            let place = |bits: u64| bits & ((1 << MAX_ZOOM) - 1);
            return format!("{}/{}/{}", self.precision, place(bits >> MAX_ZOOM), place(bits));
        }
        let letter = |from_last: u32| (bits >> (4 + 5 * from_last)) as usize % GEOHASH.len();
        let letters = (0..self.precision).rev().map(letter);
        letters.map(|letter| char::from(GEOHASH.as_bytes()[letter])).collect()
    }
}

/// The bits of a number, each behind a 0.
fn spread(number: u32) -> u64 {
    const STEPS: [(u32, u64); 5] = [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    STEPS.iter().fold(u64::from(number), |bits, (by, mask)| (bits | (bits << by)) & mask)
}

fn tile_at(zoom: u32, (lat, lon): (f64, f64)) -> i64 {
    let tiles = f64::from(1_u32 << zoom);
    // The map ends at 85 degrees: what lies beyond is in its first or last row.
    let place = |share: f64| (share * tiles).floor().clamp(0.0, tiles - 1.0) as u32;
    let sin = lat.to_radians().sin();
    let row = 0.5 - ((1.0 + sin) / (1.0 - sin)).ln() / (4.0 * PI);
    tile(zoom, place((lon + 180.0) / 360.0), place(row))
}

fn tile(zoom: u32, column: u32, row: u32) -> i64 {
    (i64::from(zoom) << (2 * MAX_ZOOM)) | (i64::from(column) << MAX_ZOOM) | i64::from(row)
}

/// The cell of the tile with a key, `zoom/column/row`.
pub(crate) fn tile_of_key(key: &str) -> Option<i64> {
    let parts: Option<Vec<u32>> = key.split('/').map(|part| part.parse().ok()).collect();
    let &[zoom, column, row] = parts?.as_slice() else { return None };
    let is_tile = zoom <= MAX_ZOOM && column.max(row) < (1 << zoom);
    is_tile.then(|| tile(zoom, column, row))
}

/// The fewest letters of geohashes whose cells measure no more than so many metres across
/// (`GeoUtils.geoHashLevelsForPrecision`).
pub(crate) fn letters_within(meters: f64) -> u32 {
    // The Earth along its equator, and from pole to pole (WGS 84).
    let (equator, poles) = (2.0 * PI * 6_378_137.0, PI * 6_356_752.314_245);
    let width = meters / (1.0 + poles / equator);
    let bits = ((equator / width).ceil().ln() / LN_2).ceil().max(1.0) as u32;
    let left = bits % 5;
    2 * (bits / 5) + u32::from(left > 0) + u32::from(left > 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(of_tiles: bool, precision: u32, points: &[(f64, f64)]) -> Vec<String> {
        let grid = Grid { of_tiles, precision, bounds: None, size: 1, shard_size: 1 };
        points.iter().map(|point| grid.key(grid.cell(*point).unwrap())).collect()
    }

    #[test]
    fn cells_are_those_that_are_known() {
        let places = [(57.64911, 10.40744), (42.6, -5.6), (52.374081, 4.912350)];
        assert_eq!(keys(false, 12, &places), ["u4pruydqqvj8", "ezs42e44yx96", "u173zy3j4h3d"]);
        assert_eq!(keys(false, 5, &places), ["u4pru", "ezs42", "u173z"]);
        assert_eq!(keys(false, 1, &places), ["u", "e", "u"]);
        assert_eq!(keys(true, 8, &places), ["8/135/77", "8/124/94", "8/131/84"]);
        assert_eq!(keys(true, 29, &places[2..]), ["29/275761283/176426620"]);
        assert_eq!(keys(true, 0, &places), ["0/0/0"; 3]);
        let ends = [(90.0, 180.0), (-90.0, -180.0), (0.0, 180.0), (0.0, -180.0), (-1e-9, -1e-9)];
        assert_eq!(keys(false, 5, &ends), ["zzzzz", "00000", "xbpbp", "80000", "7zzzz"]);
        let tiles = ["8/255/0", "8/0/255", "8/255/128", "8/0/128", "8/127/128"];
        assert_eq!(keys(true, 8, &ends), tiles);
        for key in tiles.into_iter().chain(["29/275761283/176426620"]) {
            let cell = tile_of_key(key).unwrap();
            let precision = (cell >> (2 * MAX_ZOOM)) as u32;
            let grid = Grid { of_tiles: true, precision, bounds: None, size: 1, shard_size: 1 };
            assert_eq!(grid.key(cell), key);
        }
        for none in ["", "1/0", "1/0/0/0", "1/2/0", "1/0/2", "30/0/0", "1/-1/0", "a/0/0"] {
            assert_eq!(tile_of_key(none), None, "{none}");
        }
    }

    #[test]
    fn a_distance_is_as_many_letters_as_in_the_field() {
        let meters = [1e8, 1e7, 5e6, 1e6, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01];
        assert_eq!(meters.map(letters_within), [1, 1, 2, 3, 7, 8, 9, 11, 12, 13]);
        assert!(letters_within(0.0) > MAX_LETTERS);
    }

    #[test]
    fn points_beyond_the_bounds_have_no_cell() {
        let within = |bounds: [f64; 4], point: (f64, f64)| {
            let bounds = Some(bounds);
            let grid = Grid { of_tiles: true, precision: 3, bounds, size: 1, shard_size: 1 };
            grid.cell(point).is_some()
        };
        let (near, across) = ([10.0, -5.0, -10.0, 5.0], [10.0, 170.0, -10.0, -170.0]);
        for (point, held, held_across) in [
            ((0.0, 0.0), true, false),
            ((9.9, -4.9), true, false),
            ((10.1, 0.0), false, false),
            ((0.0, 6.0), false, false),
            ((0.0, 175.0), false, true),
            ((0.0, -175.0), false, true),
            ((-11.0, 175.0), false, false),
        ] {
            assert_eq!(within(near, point), held, "{point:?}");
            assert_eq!(within(across, point), held_across, "{point:?}");
        }
    }
}
