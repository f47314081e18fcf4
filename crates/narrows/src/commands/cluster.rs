//! `narrows cluster`

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::Context;
use clusters::{ClusterSpec, Clusters, Credentials, EmbeddedClusters, TopologySpec};

use crate::exit::Usage;

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
    /// Where data is kept between starts; without it, it goes with the cluster.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The cluster's name.
    #[arg(long, default_value = "narrows", value_parser = cluster_name)]
    name: String,
    /// A cluster setting, NAME=VALUE; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let value = engine::settings::check(name, value).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), value))
}

fn cluster_name(text: &str) -> Result<String, String> {
    clusters::check_cluster_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// The credentials that the cluster is to ask for. Without any, only this machine may reach it.
fn credentials(args: &Args) -> anyhow::Result<Credentials> {
    let found = match &args.credentials {
        Some(file) => Credentials::from_file(file),
        None => Credentials::from_environment(|name| std::env::var(name).ok()),
    };
    let usage = |error: clusters::Error| Usage(error.to_string());
    let found = found.map_err(usage)?;
    let guarded = found.basic().map_err(usage)?.is_some();
    if !guarded && !args.http_host.is_loopback() {
        let text = format!(
            "others can reach {}: give credentials that they must show, by --credentials FILE or by NARROWS_USER and \
             NARROWS_PASSWORD in the environment",
            args.http_host
        );
        return Err(Usage(text).into());
    }
    Ok(found)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let credentials = credentials(args)?;
    world::real_world::run(0, async |env| {
        let mut target = EmbeddedClusters::new(&env, std::env::current_exe()?)
            .with_http_ip(args.http_host)
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
        };
        let topology = TopologySpec { clusters: vec![cluster], link: None, joined: false };
        let ended = tokio::select! {
            biased;
            ended = serve(&mut target, &topology, args, &credentials) => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        eprintln!("stopping");
        target.stop().await;
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
        writeln!(std::io::stdout(), "http://{}  {}", node.http, node.name)?;
    }
    if *credentials != Credentials::None {
        eprintln!("every request must show user and password (HTTP basic authentication)");
    }
    if !args.http_host.is_loopback() {
        eprintln!(
            "REST is served on {} as plain HTTP: whoever sees the traffic on the way can read the password and the data",
            args.http_host
        );
    }
    eprintln!("ready; Ctrl-C stops it");
    loop {
        target.node_ended().await;
        if let Some(gone) = target.failed_node().await {
            return Err(gone.into());
        }
    }
}
