//! The commands, one file each.

mod calibrate;
mod cluster;
mod compare;
mod completions;
mod dcp;
mod diagnose;
mod doctor;
mod explain;
mod link;
mod load;
mod man;
mod plans;
mod published;
mod report;
pub(crate) mod restore;
mod run;
mod runs;
mod show;
mod steer;
mod store;
mod watch;
mod what_if;

use anyhow::Context;
use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a plan and report what narrowed it.
    Run(run::Args),
    /// List the plans that come with narrows.
    Plans(plans::Args),
    /// Repeat the published experiments in virtual time and set the figures side by side.
    Published(published::Args),
    /// List the runs that there are: plan, target, how each ended, and what it found.
    Runs(runs::Args),
    /// Set runs beside each other: what changed, and whether the laps support it.
    Compare(compare::Args),
    /// Show the table of an earlier run.
    Show(show::Args),
    /// Write an earlier run into an Elasticsearch or OpenSearch, as Rally stores races, results and metrics.
    Store(store::Args),
    /// Write the HTML page of an earlier run again.
    Report(report::Args),
    /// Watch a live cluster: recoveries, nodes, followers, what waits, and what holds them. Read-only.
    Watch(watch::Args),
    /// Say what holds a live cluster or a recorded run back, with the evidence and what lifts it. Read-only without
    /// --probe.
    Explain(explain::Args),
    /// Say how long a cluster takes until it is green again if something happens to it, and what would change that: a
    /// twin of it is asked, in virtual time. The cluster itself is only read.
    WhatIf(what_if::Args),
    /// Raise recovery settings of a live cluster while that helps and its users do not suffer, and put them back at the
    /// end. Changes nothing without --apply.
    Steer(steer::Args),
    /// Inject causes into nodes that are started for it, and see whether explain finds them.
    Diagnose(diagnose::Args),
    /// Say what this machine has and lacks for each command, and what to do about it. Exit code 1 if the first run
    /// cannot work.
    Doctor(doctor::Args),
    /// Send searches or other requests to a cluster and measure latency and throughput. Read-only unless told
    /// otherwise.
    Load(load::Args),
    /// Put back what a run or a probe that was killed has changed on a live cluster.
    Restore(restore::Args),
    /// Start a cluster of the embedded engine, for any client or tool to be pointed at.
    Cluster(cluster::Args),
    /// Couchbase's change protocol: drain a bucket, or serve one.
    #[command(subcommand)]
    Dcp(dcp::Command),
    /// A link with delay, rate and window between two addresses.
    Link(link::Args),
    /// Measure what work costs on this machine, for plans in virtual time.
    Calibrate(calibrate::Args),
    /// Write completions for a shell.
    Completions(completions::Args),
    /// Write the manual pages, as packages hold them.
    #[command(hide = true)]
    Man(man::Args),
    /// One node of an embedded cluster; reads its configuration from standard input.
    #[command(hide = true)]
    Node,
    /// A disk of given rates for a node; the kernel asks for it through standard input.
    #[command(hide = true)]
    Disk,
}

pub(crate) fn run(command: Command, mut cli: clap::Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Plans(args) => plans::run(&args),
        Command::Published(args) => published::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::WhatIf(args) => what_if::run(&args),
        Command::Steer(args) => steer::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Dcp(command) => dcp::run(&command),
        Command::Link(args) => link::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Completions(args) => completions::run(&args, &mut cli),
        Command::Man(args) => man::run(&args, cli),
        Command::Node => crate::node_process::run(),
        Command::Disk => clusters::serve_disk().context(
            "standard input is no file system that waits to be served; `narrows diagnose` starts disks",
        ),
    }
}
