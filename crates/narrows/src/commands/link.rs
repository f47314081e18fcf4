//! `narrows link`

use std::net::SocketAddr;
use std::time::Duration;

use lab::plan::bounds;
use record::units::{show_bytes, show_rate, show_seconds};
use world::{Direction, Env, Link, LinkConfig, LinkStats};

use crate::exit::{Usage, refuse};
use crate::interrupt;
use crate::terminal::{self, say};

/// Whoever is behind a link is there if a connection to it is open by then.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to listen, host:port.
    #[arg(long, value_name = "ADDRESS", value_parser = with_port)]
    listen: String,
    /// Where to lead, host:port.
    #[arg(long, value_name = "ADDRESS", value_parser = with_port)]
    to: String,
    /// Round-trip time, for example 100ms.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| bounds::RTT.read(text), default_value = "0ms")]
    rtt: Duration,
    /// Rate in each direction, for example 1gbit; unlimited without it.
    #[arg(long, value_name = "RATE", value_parser = |text: &str| bounds::RATE.read(text))]
    rate: Option<u64>,
    /// Bytes that one connection may have unacknowledged, for example 2mb; unlimited without it.
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| bounds::WINDOW.read(text))]
    window: Option<u64>,
    /// Connections that it carries at once, each with two file handles; others wait until one of them closes.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Listen on an address that is not loopback. Whoever reaches it reaches what is behind.
    #[arg(long)]
    allow_remote: bool,
}

/// A host and a port; whoever leaves one of them out is told what to write.
fn with_port(text: &str) -> Result<String, String> {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    if is_port(text) {
        return Err(format!("write host:port, as 127.0.0.1:{text}"));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && is_port(port) => Ok(text.to_owned()),
        Some(("", port)) if is_port(port) => Err(format!("write host:port, as 127.0.0.1:{port}")),
        Some((host, _)) if !text.ends_with(']') => Err(format!("write host:port, as {host}:9300")),
        _ => Err(format!("write host:port, as {text}:9300")),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let loopback = args.listen.parse::<SocketAddr>().is_ok_and(|listen| listen.ip().is_loopback())
        || args.listen.starts_with("localhost:");
    if !args.allow_remote && !loopback {
        refuse!(
            "{} is not a loopback address; say --allow-remote if others may reach what is behind",
            args.listen
        );
    }
    let config = LinkConfig {
        rtt: args.rtt,
        rate_bytes_per_s: args.rate,
        window_bytes: args.window,
        ..LinkConfig::default()
    };
    world::real_world::run(0, async |env| {
        let stop = interrupt::listen()?;
        let link = Link::open(&env, config);
        link.bound_connections(args.connections as usize);
        let address =
            link.route_from(&args.listen, &args.to).await.map_err(|error| match error.kind() {
                std::io::ErrorKind::InvalidInput => {
                    Usage(format!("--listen and --to: a link cannot {error}")).into()
                }
                std::io::ErrorKind::AddrInUse => {
                    let host = args.listen.rsplit_once(':').map_or("", |(host, _)| host);
                    let free = format!("--listen {host}:0 takes a port that is free");
                    Usage(format!("--listen: a link cannot {error}; {free}")).into()
                }
                _ => anyhow::Error::new(error).context("open the link"),
            })?;
        writeln!(terminal::out(), "{address} leads to {}", args.to)?;
        if let Some(why) = why_nobody_answers(&env, &args.to).await {
            say!(
                "narrows: nobody answers at {} ({why}); whoever connects is sent away until somebody does",
                args.to
            );
        }
        say!("Ctrl-C ends it");
        tokio::select! {
            biased;
            () = stop => Ok(()),
            () = say_stats(&env, &link, args.connections as usize) => Ok(()),
        }
    })
}

/// Why nobody can be reached there, tried once; none where somebody is.
async fn why_nobody_answers(env: &Env, to: &str) -> Option<String> {
    match env.timeout(ANSWERS_WITHIN, tokio::net::TcpStream::connect(to)).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => {
            Some(format!("no connection within {}", show_seconds(ANSWERS_WITHIN.as_secs_f64())))
        }
    }
}

/// A line of figures each second, where there is something new.
async fn say_stats(env: &Env, link: &Link, connections_max: usize) {
    let mut before = (LinkStats::default(), LinkStats::default());
    let (mut looked, mut was_full) = (env.now(), false);
    loop {
        env.sleep(Duration::from_secs(1)).await;
        let now = (link.stats(Direction::Out), link.stats(Direction::Back));
        if now != before {
            // A machine with much to do wakes this late.
            let time = env.now() - looked;
            say!("{}; {}", line("out", now.0, before.0, time), line("back", now.1, before.1, time));
        }
        (before, looked) = (now, env.now());
        let is_full = link.connections().is_some_and(|open| open >= connections_max);
        if is_full && !was_full {
            say!(
                "{connections_max} connections are open, and --connections allows no more: others wait"
            );
        }
        was_full = is_full;
    }
}

/// What went through in a direction in so much time.
fn line(name: &str, now: LinkStats, before: LinkStats, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(1e-9);
    let busy = now.busy.saturating_sub(before.busy).as_secs_f64() / seconds * 100.0;
    let rate = show_rate((now.bytes - before.bytes) as f64 / seconds);
    format!("{name} {rate}, busy {:.0} %, {} in all", busy.min(100.0), show_bytes(now.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_a_second_however_late_they_are_taken() {
        let busy = Duration::from_secs(1);
        let now = LinkStats { bytes: 2_000_000, busy, ..LinkStats::default() };
        let text = line("out", now, LinkStats::default(), Duration::from_secs(2));
        assert_eq!(
            text,
            format!("out {}, busy 50 %, {} in all", show_rate(1e6), show_bytes(2_000_000))
        );
    }
}
