//! `narrows link`

use std::time::Duration;

use record::units::{parse_duration, parse_rate, parse_size};
use world::LinkConfig;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to listen, host:port.
    #[arg(long, value_name = "ADDRESS")]
    listen: String,
    /// Where to lead, host:port.
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Round-trip time, for example 100ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0ms")]
    rtt: Duration,
    /// Rate in each direction, for example 1gbit; unlimited without it.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,
    /// Bytes that one connection may have unacknowledged, for example 2mb; unlimited without it.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    window: Option<u64>,
    /// Listen on an address that is not loopback. Whoever reaches it reaches what is behind.
    #[arg(long)]
    allow_remote: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let config = LinkConfig {
        rtt: args.rtt,
        rate_bytes_per_s: args.rate,
        window_bytes: args.window,
        ..LinkConfig::default()
    };
    Ok(clusters::standalone_link(&args.listen, &args.to, config, args.allow_remote)?)
}
