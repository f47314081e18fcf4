//! `narrows cluster`

use std::path::PathBuf;

use anyhow::Context;
use clusters::{ClusterSpec, EmbeddedTarget, Target, TopologySpec};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// The first node's HTTP port; the others follow. Transport listens 100 above.
    #[arg(long, default_value_t = 9200)]
    port: u16,
    /// Where data is kept between starts; without it, it goes with the cluster.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The cluster's name.
    #[arg(long, default_value = "narrows")]
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

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    world::real_world::run(0, async |env| {
        let mut target = EmbeddedTarget::new(&env, std::env::current_exe()?).with_port(args.port);
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
            ended = serve(&mut target, &topology, (&args.name, args.port)) => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        eprintln!("stopping");
        target.stop().await;
        ended
    })
}

async fn serve(
    target: &mut EmbeddedTarget,
    topology: &TopologySpec,
    (name, port): (&str, u16),
) -> anyhow::Result<()> {
    let what = || format!("start a cluster with its first port at {port} (--port chooses another)");
    target.start(topology).await.with_context(what)?;
    for node in target.nodes(name) {
        println!("http://{}  {}", node.http, node.name);
    }
    eprintln!("ready; Ctrl-C stops it");
    let gone = target.wait_for_exit().await;
    Err(gone.into())
}
