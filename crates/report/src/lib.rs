#![doc = include_str!("../README.md")]

pub mod benched;
mod changed;
pub mod compared;
mod csv;
pub mod diagnosed;
mod following;
mod grid;
mod json;
mod listed;
pub mod live_page;
mod load;
pub mod metrics;
mod page;
pub mod published;
pub mod screen;
pub mod stored;
mod style;
mod svg;
mod table;
mod what_if;

pub use csv::csv;
pub use grid::grid;
pub use json::json;
pub use listed::{Listed, listed, listed_json};
pub use load::{load, load_json};
pub use page::html;
pub use style::{Style, fitted, labelled};
pub use table::table;
pub use what_if::what_if;
