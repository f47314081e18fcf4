//! What people see of a run: a table in the terminal, JSON, CSV and one self-contained HTML page.
//!
//! | module | makes |
//! | --- | --- |
//! | [`table`] | the table of the terminal, in a [`Style`] |
//! | [`json`] | one object for scripts |
//! | [`csv`] | one line a lap for spreadsheets |
//! | [`html`] | the page: no scripts, nothing from outside, light and dark, for screen and paper |
//! | [`diagnosed`] | injected causes, and the verdicts on them |
//! | [`published`] | published figures beside ours, over several runs |
//! | [`load`], [`load_json`] | a load by itself, of one lap or several |
//! | [`screen`] | a live cluster, drawn or in lines; a diagnosis in words |
//!
//! The one rule: a report reads a [`record::RunDir`] or observations and asks nobody, so it can be rebuilt from
//! the run's directory at any time, also from a run that was interrupted.

mod csv;
pub mod diagnosed;
mod following;
mod grid;
mod json;
mod load;
mod page;
pub mod published;
pub mod screen;
mod style;
mod svg;
mod table;

pub use csv::csv;
pub use grid::grid;
pub use json::json;
pub use load::{load, load_json};
pub use page::html;
pub use style::Style;
pub use table::table;
