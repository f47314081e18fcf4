#![doc = include_str!("../README.md")]

mod commands;
mod diagnose;
mod doctor;
mod elsewhere;
mod exit;
mod interrupt;
mod live;
mod node_process;
mod on;
mod opensearch_args;
mod own_mounts;
mod progress;
mod runs;
mod seeds;
mod store;
mod terminal;
mod track_args;
mod web;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use commands::Command;

/// Find what narrows the flow of a replicated store: measure it, name it, widen it, prove it.
///
/// Exit codes: 0 all went well, 1 it was tried and failed or a threshold was passed, 2 it cannot be done as asked.
#[derive(Parser)]
#[command(name = "narrows", version = env!("NARROWS_VERSION"), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Does what the command line asks for, and answers with the code to exit with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::of_clap(error, &Cli::command()),
    };
    engine::core::print_warnings_with(|words| terminal::say!("{words}"));
    exit::of(commands::run(cli.command, Cli::command()))
}
