#![doc = include_str!("../../README.md")]

mod files;
mod graph;
mod imports;
mod layers;
mod source;
mod tidy;
