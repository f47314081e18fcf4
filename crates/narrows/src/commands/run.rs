//! `narrows run`

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clusters::live::LiveClient;
use clusters::{
    ClusterIdentity, Clusters, EmbeddedClusters, LiveCluster, LiveClusters, NodeHandle,
    VirtualClusters, check_follows,
};
use lab::plan::{Plan, Resolved, Step, Variant, models_in_use};
use lab::runner::{self, Runner, Watch};
use record::units::{parse_duration, parse_rate};
use record::{
    FORMAT, LinkInfo, Manifest, ModelInfo, NodeInfo, PublishedInfo, RunDir, Status, VariantInfo,
    Writer,
};
use world::Env;

use super::restore;
use super::run_buckets;
use super::show::{Form, write_page, write_table};
use crate::exit::Usage;
use crate::interrupt::{Ended, until_told};
use crate::live::{ConnectArgs, client, usage};
use crate::on::On;
use crate::opensearch_args::OpenSearchArgs;
use crate::progress::Progress;
use crate::{machine, own_mounts, runs};

/// How long a live cluster may take to answer: a wait for health is one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(300);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A plan that comes with narrows (see `narrows plans`), or a path that ends in .toml.
    plan: String,
    /// Where the clusters live: embedded (real processes on this machine), virtual (the same, simulated),
    /// opensearch (started for the run, one JVM a node; the first use fetches it with mvn), or the URL of a
    /// cluster that is already there, with its hosts joined by commas.
    #[arg(long, value_name = "WHERE", default_value_t = On::Embedded, value_parser = On::parse)]
    on: On,
    /// With a URL: the cluster that has the data, where a plan recovers from another one; the URL of --on is the one
    /// that follows.
    #[arg(long, value_name = "URL")]
    leader: Option<String>,
    /// With a URL: make an index and change settings there. Both are taken back at the end.
    #[arg(long)]
    allow_changes: bool,
    #[command(flatten)]
    opensearch: OpenSearchArgs,
    /// Size of the corpus; 1 is the plan's own.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Repetitions of every variant, instead of the plan's.
    #[arg(long, value_name = "N")]
    laps: Option<u32>,
    /// Only these variants; may be given several times.
    #[arg(long = "variant", value_name = "NAME")]
    variants: Vec<String>,
    /// Round trip of the link, instead of the plan's.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    rtt: Option<Duration>,
    /// Rate of the link, instead of the plan's; for example 100mbit.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,
    /// Seed of everything random, instead of the plan's.
    #[arg(long)]
    seed: Option<u64>,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Executed { dir, run, ended } = execute(args)?;
    let page = dir.join("report.html");
    match ended {
        Ok(Ended::Complete) => write_table(&run, &args.form, Some(&page)),
        Ok(Ended::Interrupted) => {
            write_table(&run, &args.form, Some(&page))?;
            anyhow::bail!("interrupted; what was measured until then is in {}", dir.display())
        }
        Err(error) => {
            if !run.rows.is_empty() {
                write_table(&run, &args.form, Some(&page))?;
            }
            Err(error)
        }
    }
}

/// A run that took place, however it ended.
struct Executed {
    dir: PathBuf,
    run: RunDir,
    ended: anyhow::Result<Ended>,
}

/// Runs a plan in the virtual world, at a scale of its published size, and answers its record.
pub(crate) fn in_virtual_time(plan: &str, scale: f64, runs: &Path) -> anyhow::Result<RunDir> {
    let args = Args {
        plan: plan.to_owned(),
        on: On::Virtual,
        scale,
        laps: None,
        variants: Vec::new(),
        rtt: None,
        rate: None,
        seed: None,
        runs: runs.to_owned(),
        form: Form { json: false, csv: false },
        allow_changes: false,
        leader: None,
        opensearch: OpenSearchArgs::default(),
        connect: ConnectArgs::default(),
    };
    let Executed { run, ended, .. } = execute(&args)?;
    ended.map(|_| run)
}

/// Runs a plan; its record has a page, whatever state it was left in.
fn execute(args: &Args) -> anyhow::Result<Executed> {
    if matches!(args.on, On::Url(_)) && !args.allow_changes {
        let text = "a run makes an index and changes settings on that cluster, and takes both back at the end; \
                    say --allow-changes if it may";
        return Err(Usage(text.to_owned()).into());
    }
    let plan = Plan::open(&args.plan)?;
    let mut resolved = resolve(args, &plan)?;
    resolved.check_size(args.on.name(), args.on == On::Virtual)?;
    resolved.check_faults(args.on.name(), args.on == On::Virtual)?;
    if args.on == On::Embedded && !resolved.full_disks().is_empty() {
        own_mounts::ensure()?;
    }
    let (id, dir) = runs::fresh(&args.runs, &resolved.name);
    if matches!(args.on, On::Url(_)) {
        // Nobody else has an index of this name.
        resolved.name_indices(&format!("narrows-{id}"));
    }
    let mut manifest = describe(args, &plan, &resolved, id);
    // Before anything is started: a directory that cannot be written is found now.
    let mut writer = Writer::create(&dir, &manifest)?;
    let ended = match &args.on {
        on if resolved.bucket.is_some() => run_buckets::run(&resolved, on, writer),
        On::Url(hosts) => on_url(args, hosts, &dir, &resolved, &mut writer, &mut manifest),
        On::Embedded => on_real(&resolved, &mut writer, &mut manifest, |env| {
            let target = EmbeddedClusters::new(env, std::env::current_exe()?);
            Ok(target.with_small_disks(resolved.full_disks()))
        }),
        On::OpenSearch => on_real(&resolved, &mut writer, &mut manifest, |env| {
            Ok(args.opensearch.target(env)?.with_node_links(resolved.cuts_nodes_off()))
        }),
        On::Virtual => on_virtual(&resolved, writer),
    };
    manifest.status = match &ended {
        Ok(Ended::Complete) => Status::Complete,
        Ok(Ended::Interrupted) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    record::replace_manifest(&dir, &manifest)?;
    let run = RunDir::open(&dir)?;
    write_page(&run, &dir.join("report.html"))?;
    let id = &manifest.run;
    let ended =
        ended.with_context(|| format!("run {id} failed; its record is in {}", dir.display()));
    Ok(Executed { dir, run, ended })
}

/// The plan with what the command line says otherwise.
fn resolve(args: &Args, plan: &Plan) -> anyhow::Result<Resolved> {
    let foreign = matches!(args.on, On::OpenSearch | On::Url(_));
    let mut resolved = plan.resolve(args.scale, |name, value| match args.on {
        // It knows its settings itself; what it refuses it says.
        On::OpenSearch | On::Url(_) if !is_our_own(name) => Ok(()),
        // Of a snapshot's repository; the target says that it has none.
        _ if name.starts_with("repository.") => Ok(()),
        _ if name.starts_with("dcp.") => lab::buckets::check_setting(name, value),
        _ => engine::settings::check(name, value).map(drop).map_err(|error| error.to_string()),
    })?;
    if args.laps == Some(0) {
        return Err(Usage("--laps must be at least 1".to_owned()).into());
    }
    if args.on == On::Virtual {
        resolved.take_full_size();
    }
    resolved.laps = args.laps.unwrap_or(resolved.laps);
    resolved.seed = args.seed.unwrap_or(resolved.seed);
    match &mut resolved.link {
        Some(link) => {
            link.rtt = args.rtt.unwrap_or(link.rtt);
            link.rate_bytes_per_s = args.rate.unwrap_or(link.rate_bytes_per_s);
        }
        None if args.rtt.is_some() || args.rate.is_some() => {
            let text =
                format!("plan {} has no link: --rtt and --rate change nothing", resolved.name);
            return Err(Usage(text).into());
        }
        None => {}
    }
    let recovers = resolved.way() == Some(Step::Recover);
    if args.leader.is_some() && !(recovers && matches!(args.on, On::Url(_))) {
        return Err(Usage(NO_LEADER.to_owned()).into());
    }
    if foreign && recovers {
        match &args.on {
            On::OpenSearch => through_snapshot(&mut resolved)?,
            _ if args.leader.is_none() => return Err(Usage(NO_SECOND_CLUSTER.to_owned()).into()),
            _ => without_our_own(&mut resolved),
        }
    }
    if foreign && resolved.way() == Some(Step::Follow) {
        return Err(Usage(NO_FOLLOWING.to_owned()).into());
    }
    for name in &args.variants {
        let known = || resolved.variants.iter().map(|variant| variant.name.as_str());
        if !known().any(|variant| variant == name) {
            let hint = record::names::did_you_mean(name, known());
            let all: Vec<&str> = known().collect();
            let text =
                format!("no variant is called \"{name}\"{hint}; there are {}", all.join(", "));
            return Err(Usage(text).into());
        }
    }
    if foreign {
        leave_out_our_own(&mut resolved, &args.variants)?;
    }
    if !args.variants.is_empty() {
        resolved.variants.retain(|variant| args.variants.contains(&variant.name));
    }
    Ok(resolved)
}

const NO_SECOND_CLUSTER: &str = "this plan recovers from another cluster, and a URL gives one: give the one that has \
    the data with --leader URL; \"replica-over-link\" adds a replica inside one cluster, and --on opensearch starts two";
const NO_LEADER: &str = "--leader is for a plan that recovers from another cluster, with --on URL as the one that follows";
const NO_FOLLOWING: &str = "this plan follows through cross-cluster replication, which OpenSearch has in a plugin that is not on \
    Maven Central, and counts on numbers that a single cluster does not have; run it with --on embedded or --on virtual";
/// The plan of a restore, with the settings that one has.
const RESTORE_PLAN: &str = "restore-over-link";

/// Puts a snapshot in the place of cross-cluster replication, and says so.
fn through_snapshot(plan: &mut Resolved) -> anyhow::Result<()> {
    let variants = Plan::open(RESTORE_PLAN)?.resolve(1.0, |_, _| Ok(()))?.variants;
    plan.restore_instead(variants);
    eprintln!(
        "{} goes through a snapshot and its restore: these nodes have no cross-cluster replication (OpenSearch has it in a \
         plugin that is not on Maven Central); the variants are those of {RESTORE_PLAN}",
        plan.name
    );
    Ok(())
}

/// Settings that the embedded engine alone has.
fn is_our_own(setting: &str) -> bool {
    setting.starts_with("narrows.")
}

/// Takes the embedded engine's own settings from variants that have others, too.
fn without_our_own(plan: &mut Resolved) {
    for variant in &mut plan.variants {
        if variant.settings.keys().any(|name| !is_our_own(name)) {
            variant.settings.retain(|name, _| !is_our_own(name));
        }
    }
}

/// Leaves out the variants that only the embedded engine can run, and says so.
fn leave_out_our_own(plan: &mut Resolved, asked_for: &[String]) -> anyhow::Result<()> {
    let own = |variant: &Variant| variant.settings.keys().any(|name| is_our_own(name));
    for variant in plan.variants.iter().filter(|variant| own(variant)) {
        if asked_for.contains(&variant.name) {
            let text = format!(
                "\"{}\" has settings of the embedded engine alone; run it with --on embedded",
                variant.name
            );
            return Err(Usage(text).into());
        }
        eprintln!("{} is left out: only the embedded engine has its settings", variant.name);
    }
    plan.variants.retain(|variant| !own(variant));
    if plan.variants.is_empty() {
        let text =
            "every variant has settings of the embedded engine alone; run it with --on embedded";
        return Err(Usage(text.to_owned()).into());
    }
    Ok(())
}

fn describe(args: &Args, plan: &Plan, resolved: &Resolved, id: String) -> Manifest {
    // A bucket's servers are threads, which its rows name.
    let clusters = match resolved.bucket {
        Some(_) => Vec::new(),
        None => runner::topology(resolved).clusters,
    };
    let nodes = clusters.into_iter().flat_map(|cluster| {
        (0..cluster.nodes).map(move |n| NodeInfo {
            cluster: cluster.name.clone(),
            name: format!("{}-{n}", cluster.name),
        })
    });
    // Its nodes and its network are its own.
    let elsewhere = matches!(args.on, On::Url(_));
    let variants = resolved.variants.iter().map(|variant| VariantInfo {
        name: variant.name.clone(),
        settings: variant.settings.clone(),
        published_s: variant.published.as_ref().and_then(|published| published.seconds),
        published: variant.published.as_ref().map(|published| PublishedInfo {
            figure: published.figure.clone(),
            row: published.row.clone(),
            text: published.text.clone(),
            node_bytes_per_s: published.node_bytes_per_s,
            load: published.load.clone(),
            calibrated: published.calibrated,
        }),
        baseline: variant.beside.clone(),
        models: models(&args.on, variant),
    });
    Manifest {
        format: FORMAT,
        run: id,
        plan: resolved.name.clone(),
        about: resolved.about.clone(),
        plan_text: plan.text().to_owned(),
        target: args.on.to_string(),
        started: runs::now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: resolved.seed,
        scale: resolved.scale,
        status: Status::Running,
        machine: machine::describe(),
        link: resolved.link.filter(|_| !elsewhere).map(|link| LinkInfo {
            rtt_ms: link.rtt.as_secs_f64() * 1e3,
            rate_bytes_per_s: link.rate_bytes_per_s,
            window_bytes: link.window_bytes,
            ceiling_bytes_per_s: None,
        }),
        nodes: if elsewhere { Vec::new() } else { nodes.collect() },
        variants: variants.collect(),
    }
}

/// What the virtual world is like; nothing is modelled elsewhere.
fn models(on: &On, variant: &Variant) -> Vec<ModelInfo> {
    if *on != On::Virtual {
        return Vec::new();
    }
    let info = |row: lab::plan::ModelInUse| ModelInfo {
        hosts: row.scope.name().to_owned(),
        name: row.name.to_owned(),
        value: row.value,
        unit: row.unit.to_owned(),
        source: row.source,
        calibrated_on: row.calibrated_on,
    };
    models_in_use(variant).into_iter().map(info).collect()
}

fn on_real<T: Clusters>(
    plan: &Resolved,
    writer: &mut Writer,
    manifest: &mut Manifest,
    target: impl FnOnce(&Env) -> anyhow::Result<T>,
) -> anyhow::Result<Ended> {
    world::real_world::run(plan.seed, async |env| {
        let progress = Progress::new();
        let ceiling = clusters::measure_ceiling().context("measure the link's own ceiling")?;
        if let Some(link) = &mut manifest.link {
            link.ceiling_bytes_per_s = Some(ceiling);
        }
        writer.manifest(manifest)?;
        let mut target = target(&env)?;
        let node_ended = target.node_ended();
        let work = until_told(work(&env, plan, &mut target, writer, &progress));
        let ended = tokio::select! {
            biased;
            ended = work => ended,
            () = node_ended => Err(anyhow!("a node has ended")),
        };
        progress.clear();
        // What failed may be no more than a node's end as others saw it.
        let ended = match ended {
            Err(error) => Err(target.failed_node().await.map_or(error, Into::into)),
            ended => ended,
        };
        target.stop().await;
        ended
    })
}

/// On a cluster that is already there: whatever the end, it is left as it was.
fn on_url(
    args: &Args,
    hosts: &[String],
    dir: &Path,
    plan: &Resolved,
    writer: &mut Writer,
    manifest: &mut Manifest,
) -> anyhow::Result<Ended> {
    world::real_world::run(plan.seed, async |env| {
        let follower = there(&env, args, hosts).await?;
        let mut found = vec![(hosts.to_vec(), follower)];
        if let Some(leader) = &args.leader {
            let (client, identity) = &found[0].1;
            check_follows(client, identity).await.map_err(|error| usage(&error))?;
            let hosts = vec![leader.clone()];
            let leader = there(&env, args, &hosts).await?;
            if leader.1.uuid == identity.uuid {
                let text = "--leader and --on name the same cluster; a plan that recovers from another one needs two";
                return Err(Usage(text.to_owned()).into());
            }
            found.insert(0, (hosts, leader));
        }
        let names = [restore::JOURNAL, restore::SECOND_JOURNAL];
        let mut clusters = Vec::new();
        for ((hosts, (client, identity)), name) in found.into_iter().rev().zip(names) {
            let journal = restore::journal(&dir.join(name), &identity.uuid, hosts)?;
            clusters.insert(0, LiveCluster::new(client, identity, journal));
        }
        let mut target = LiveClusters::new(clusters);
        let progress = Progress::new();
        let ended = until_told(work(&env, plan, &mut target, writer, &progress)).await;
        progress.clear();
        let nodes = [runner::LEADER, runner::FOLLOWER].into_iter().flat_map(|site| {
            let name = |node: NodeHandle| NodeInfo { cluster: site.to_owned(), name: node.name };
            target.nodes(site).into_iter().map(name)
        });
        manifest.nodes = nodes.collect();
        target.stop().await;
        match target.ended() {
            Some(Err(error)) => Err(anyhow::Error::from(error).context(format!(
                "the cluster could not be put back as it was; once it answers, say `narrows restore {}`",
                dir.display()
            ))),
            Some(Ok(left)) => {
                restore::tell(&left);
                ended
            }
            None => ended,
        }
    })
}

/// A cluster that is already there, and may be changed.
async fn there(
    env: &Env,
    args: &Args,
    hosts: &[String],
) -> anyhow::Result<(LiveClient, ClusterIdentity)> {
    let client = client(env, hosts, &args.connect, ANSWER_PATIENCE)?;
    let asked = ClusterIdentity::ask_before_changes(&client, args.connect.any_version()).await;
    Ok((client, asked.map_err(|error| usage(&error))?))
}

fn on_virtual(plan: &Resolved, writer: Writer) -> anyhow::Result<Ended> {
    let plan = plan.clone();
    let seed = plan.seed;
    let (result, _trace) = world::virtual_world::run_traced(seed, async move |env: Env| {
        let mut writer = writer;
        let mut target = VirtualClusters::new(&env);
        let progress = Progress::new();
        let result = work(&env, &plan, &mut target, &mut writer, &progress).await;
        progress.clear();
        target.stop().await;
        result
    })?;
    result.map(|()| Ended::Complete)
}

async fn work(
    env: &Env,
    plan: &Resolved,
    target: &mut dyn Clusters,
    writer: &mut Writer,
    progress: &Progress,
) -> anyhow::Result<()> {
    let topology = runner::topology(plan);
    let nodes: usize = topology.clusters.iter().map(|cluster| cluster.nodes).sum();
    progress.begin("start", None, None, "");
    target.start(&topology).await.with_context(|| format!("start {nodes} nodes"))?;
    progress.end();
    Runner::new(env, plan, target, writer, progress).run().await?;
    Ok(())
}
