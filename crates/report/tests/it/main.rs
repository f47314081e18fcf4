//! Tests of what is shown of a run: pages, tables, the screen, and records of earlier formats.

mod beside;
mod common;
mod fixture;
mod fuzz;
mod page;
mod screen;
mod text;
