//! The transfer of a copy's files: which chunk is next, how much is in flight, and what each moment is charged to.
//!
//! | file | holds |
//! | --- | --- |
//! | `chunk` | what is asked for, and what is known once it has come |
//! | `pending` | the parts of files that nobody has asked for |
//! | `file_window`, `parallel_files` | the schedulers of Elasticsearch's versions |
//! | `adaptive` | the scheduler that follows the path, with `path` (what was measured of it), `bandwidth_delay_product` and `give_way` |
//! | `connections` | over how many connections an adaptive transfer's chunks travel, and which takes each |
//! | `chunk_scheduler` | one face for all of them |
//! | `prefetch` | which chunks are asked for together with the session, before files are known |
//! | `timeline`, `accounting` | what a chunk spent its time on; which limit each moment of a transfer is charged to |
//! | `compression` | whether what is fetched is worth compressing |

pub mod accounting;
pub(crate) mod adaptive;
pub(crate) mod bandwidth_delay_product;
pub mod chunk;
pub mod chunk_scheduler;
pub mod compression;
pub mod connections;
mod file_window;
pub(crate) mod give_way;
mod parallel_files;
pub(crate) mod path;
mod pending;
pub mod prefetch;
mod timeline;

#[cfg(test)]
mod link_sim;
#[cfg(test)]
mod tests;
