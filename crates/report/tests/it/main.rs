//! Tests of what is shown of a run: pages, tables, the screen, and records of earlier formats.

mod beside;
mod colours;
mod common;
mod fixture;
mod following;
mod fuzz;
mod live_page;
mod loads;
mod metrics;
mod page;
mod screen;
mod text;
mod variants;
