//! Grids of maps from JSON.

use super::places::sides;
use super::terms::sizes;
use crate::aggregation::AggregationKind;
use crate::error::{Result, ensure, parsing};
use crate::geo;
use crate::grid::{Grid, MAX_LETTERS, MAX_ZOOM, letters_within};
use crate::json::{Node, Options, Value};

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
