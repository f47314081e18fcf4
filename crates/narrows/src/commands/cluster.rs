//! `narrows cluster`

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clusters::{
    ClusterSpec, Clusters, Credentials, EmbeddedClusters, TRANSPORT_ABOVE, TopologySpec,
};

use rest::PresentedAs;

use crate::exit::{Usage, refuse};
use crate::interrupt;
use crate::terminal::{self, say};

/// A node that ends so often within this time is not started again.
const ENDS_MAX: usize = 3;
const ENDS_WITHIN: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// The first node's HTTP port; the others follow, and transport listens 100 above. 0: any ports that are free.
    #[arg(long, default_value_t = 9200)]
    port: u16,
    /// The address that serves REST. One that others can reach needs credentials (see below); nodes speak to each other
    /// on loopback always.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into())]
    http_host: IpAddr,
    /// A TOML file with `user = "..."` and `password = "..."`, readable by nobody else, that clients must show. Without
    /// it, NARROWS_USER and NARROWS_PASSWORD of the environment count.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// A name by which clients may ask it, besides localhost and its address; may be given several times. Others are
    /// refused: a page of a stranger could have its own name lead here.
    #[arg(long = "allow-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Where data is kept between starts; without it, it goes with the cluster.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The cluster's name.
    #[arg(long, default_value = "narrows", value_parser = cluster_name)]
    name: String,
    /// Which release it presents itself as: version, tagline and build, by which clients decide whether they go on.
    /// Elasticsearch's clients need the first; OpenSearch's go on with either.
    #[arg(long = "as", value_name = "RELEASE", default_value_t, value_parser = release())]
    presented_as: PresentedAs,
    /// A cluster setting, NAME=VALUE; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

fn release() -> impl TypedValueParser<Value = PresentedAs> {
    PossibleValuesParser::new(PresentedAs::NAMES.map(|(name, _)| name))
        .try_map(|name| name.parse::<PresentedAs>())
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write NAME=VALUE, for example indices.recovery.max_bytes_per_sec=2mb")?;
    let value = engine::settings::check(name, value).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), value))
}

fn cluster_name(text: &str) -> Result<String, String> {
    clusters::check_cluster_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// The credentials that the cluster is to ask for. Without any, only this machine may reach it.
fn credentials(args: &Args) -> anyhow::Result<Credentials> {
    let usage = |error: clusters::Error| Usage(error.to_string());
    let found = Credentials::read(args.credentials.as_deref()).map_err(usage)?;
    let guarded = found.basic().map_err(usage)?.is_some();
    if !guarded && !args.http_host.is_loopback() {
        refuse!(
            "others can reach {}: give credentials that they must show, by --credentials FILE or by NARROWS_USER and \
             NARROWS_PASSWORD in the environment",
            args.http_host
        );
    }
    Ok(found)
}

/// Refuses a first port above which there are too few.
fn check_port(args: &Args) -> anyhow::Result<()> {
    let most = u16::MAX - TRANSPORT_ABOVE - (args.nodes - 1);
    if args.port <= most {
        return Ok(());
    }
    refuse!(
        "--port {}: {} nodes need as many ports for REST, and others {TRANSPORT_ABOVE} above; give at most {most}",
        args.port,
        args.nodes
    );
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    check_port(args)?;
    let credentials = credentials(args)?;
    world::real_world::run(0, async |env| {
        let mut target = EmbeddedClusters::new(&env, std::env::current_exe()?)
            .with_http_ip(args.http_host)
            .with_allowed_hosts(&args.allowed_hosts)
            .with_presented_as(args.presented_as)
            .with_credentials(&credentials)?;
        if args.port != 0 {
            target = target.with_port(args.port);
        }
        if let Some(data) = &args.data {
            target = target.with_data(data);
        }
        let cluster = ClusterSpec {
            name: args.name.clone(),
            nodes: usize::from(args.nodes),
            settings: args.settings.iter().cloned().collect(),
            attributes: Vec::new(),
        };
        let topology = TopologySpec { clusters: vec![cluster], link: None, joined: false };
        let ended = tokio::select! {
            biased;
            ended = serve(&mut target, &topology, args, &credentials) => ended,
            told = interrupt::told_to_stop() => Ok(told?),
        };
        // Where nothing has started, the reason is all that is to be said.
        if !target.nodes(&args.name).is_empty() {
            say!("stopping");
        }
        lab::stopped_unless_told(&env, target.stop(), interrupt::told_to_stop()).await;
        ended
    })
}

async fn serve(
    target: &mut EmbeddedClusters,
    topology: &TopologySpec,
    args: &Args,
    credentials: &Credentials,
) -> anyhow::Result<()> {
    let port = args.port;
    let what = || format!("start a cluster with its first port at {port} (--port chooses another)");
    target.start(topology).await.with_context(what)?;
    for node in target.nodes(&args.name) {
        // Whoever reads may be gone: that ends it, as an end in order.
        writeln!(terminal::out(), "http://{}  {}", node.http, node.name)?;
    }
    if *credentials != Credentials::None {
        say!("every request must show user and password (HTTP basic authentication)");
    }
    if !args.http_host.is_loopback() {
        say!(
            "REST is served on {} as plain HTTP: whoever sees the traffic on the way can read the password and the data",
            args.http_host
        );
    }
    say!("ready; Ctrl-C stops it");
    keep_alive(target, &args.name).await
}

/// Starts a node again that has ended, until it runs or has ended too often: then the error is how it ended last.
async fn start_again(
    target: &mut EmbeddedClusters,
    name: &str,
    mut ended: clusters::Error,
    ends: &mut Vec<Instant>,
) -> Result<(), clusters::Error> {
    loop {
        say!("narrows: {ended}");
        ends.push(Instant::now());
        if ends.len() >= ENDS_MAX {
            return Err(ended);
        }
        match target.restart(name).await {
            Ok(()) => {
                say!("{name} was started again, on its data and at its address");
                return Ok(());
            }
            Err(error) => ended = error,
        }
    }
}

/// Starts nodes again that end by themselves, until one does so again and again.
async fn keep_alive(target: &mut EmbeddedClusters, cluster: &str) -> anyhow::Result<()> {
    let mut ends: BTreeMap<String, Vec<Instant>> = BTreeMap::new();
    loop {
        target.node_ended().await;
        while let Some((name, ended)) = target.take_failed().await {
            let before = ends.entry(name.clone()).or_default();
            before.retain(|at| at.elapsed() < ENDS_WITHIN);
            if let Err(ended) = start_again(target, &name, ended, before).await {
                if target.nodes(cluster).is_empty() {
                    return Err(ended.into());
                }
                say!(
                    "{name} stays down: it has ended {ENDS_MAX} times in a minute. The other nodes go on; with --data DIR, \
                     the next start of the cluster has it again"
                );
            }
        }
    }
}
