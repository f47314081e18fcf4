//! `narrows what-if`

mod asking;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clusters::live::inventory;
use engine::settings::SettingError;
use lab::plan::{down_bounds, replicas_bounds};
use lab::twin::{self, Asked, Assumption, Given, Import, TwinPlan, Within};
use record::TwinQuestion;
use record::units::{ParseError, parse_duration, parse_rate, parse_size};
use serde_json::json;

use crate::exit::refuse;
use crate::live::{ClusterFolder, ConnectArgs, client, greet};
use crate::runs;
use crate::terminal::{self, say};
use asking::Asking;

/// The format of `--json`.
const FORMAT: u32 = 1;
const REBALANCE: &str = "cluster.routing.rebalance.enable";
/// Draws of what is not known, unless said otherwise.
const DRAWS: u32 = 5;
/// A round trip goes through four halves of a switch with their cards, each of which takes a second at most.
const RTT_MAX: Duration = Duration::from_secs(4);
/// Documents a second, at most, as a plan may have them.
const DOCUMENTS_MAX: f64 = 10_000_000.0;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A cluster (its hosts, repeated or joined by commas), or the file of a twin, which ends in .toml.
    #[arg(value_name = "URL|FILE", required = true)]
    what: Vec<String>,
    /// These nodes, by name or id, or all nodes of a zone or rack, or with ATTRIBUTE=VALUE, die at once and do not come
    /// back; may be given several times.
    #[arg(long, value_name = "NODE|ZONE", group = "question")]
    lose: Vec<String>,
    /// All nodes restart, one after another: the next one once the cluster is green.
    #[arg(long, group = "question")]
    rolling_restart: bool,
    /// These nodes, named likewise, restart one after another; may be given several times.
    #[arg(long, value_name = "NODE|ZONE", group = "question")]
    restart: Vec<String>,
    /// An index has so many replicas from now on; may be given several times.
    #[arg(long, value_name = "INDEX=N", value_parser = parse_replicas, group = "question")]
    replicas: Vec<(String, u32)>,
    /// These nodes, named likewise, are to hold nothing: `cluster.routing.allocation.exclude._name`; may be given
    /// several times.
    #[arg(long, value_name = "NODE|ZONE", group = "question")]
    drain: Vec<String>,
    /// So many nodes join, empty and like the others, and copies are moved to them as the cluster's rebalancing does.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), group = "question")]
    add: Option<u32>,
    /// The nodes that join are in the zone of this one; otherwise each in the zone that has the fewest.
    #[arg(long, value_name = "NODE")]
    like: Option<String>,
    /// How long a node that restarts is away; 30s unless said otherwise. Bounds where nobody knows it better, for
    /// example 20s..40s, are drawn from.
    #[arg(long, value_name = "TIME", value_parser = parse_down)]
    down: Option<Within>,
    /// Flushes what is written before each node restarts.
    #[arg(long)]
    flush: bool,
    /// So many documents a second are written while nodes restart, and not as many as now; 0 for none.
    #[arg(long, value_name = "RATE", value_parser = parse_documents)]
    indexing: Option<f64>,
    /// Asks it with this setting, too; may be given several times, and all are set at once. Without it settings that
    /// matter are tried one by one.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// Rate of the nodes' network cards, for example 10gbit.
    #[arg(long, value_name = "RATE", value_parser = link_rate)]
    link: Option<String>,
    /// What the nodes' disks read, for example 500mb (a second).
    #[arg(long, value_name = "RATE", value_parser = checked_rate)]
    disk_read: Option<String>,
    /// What the nodes' disks write, for example 400mb (a second).
    #[arg(long, value_name = "RATE", value_parser = checked_rate)]
    disk_write: Option<String>,
    /// Round trip between nodes.
    #[arg(long, value_name = "TIME", value_parser = parse_rtt)]
    rtt: Option<Duration>,
    /// What work costs there, as `narrows calibrate --on URL --write FILE` measured it; other options go before it.
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// What a copy takes in the cluster apart from its bytes; `narrows calibrate --on opensearch` measures it. Bounds
    /// are drawn from here, too.
    #[arg(long, value_name = "TIME", value_parser = parse_within)]
    open_copy: Option<Within>,
    /// What it takes besides where it begins without files; measured likewise.
    // What is assumed of --open-copy was fitted to both together.
    #[arg(long, value_name = "TIME", value_parser = parse_within, requires = "open_copy")]
    new_copy: Option<Within>,
    /// What each of its files takes besides, apart from bytes and round trips; measured likewise.
    #[arg(long, value_name = "TIME", value_parser = parse_within, requires = "open_copy")]
    each_file: Option<Within>,
    /// What the first copies of a node take besides that has just started; measured likewise.
    #[arg(long, value_name = "TIME", value_parser = parse_within)]
    first_copy: Option<Within>,
    /// A parameter of the twin that no other option says, by its name in the plan's `[virtual]`, for example
    /// cores.count=16; may be given several times.
    #[arg(long = "assume", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    parameters: Vec<(String, String)>,
    /// Writes the twin into FILE.toml: a plan, which can be changed, and asked where the cluster cannot be reached.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Hashes the names of nodes, zones and indices in what is saved; nothing is asked.
    #[arg(long, requires = "save", conflicts_with = "question")]
    anonymous: bool,
    /// How often what is not known is drawn.
    #[arg(long, value_name = "N", default_value_t = DRAWS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    draws: u32,
    /// Seed of everything random.
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Where runs are kept.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
    #[command(flatten)]
    connect: ConnectArgs,
}

fn parse_pair(text: &str, form: &str, example: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("write {form}, for example {example}")),
    }
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = match text.split_once('=') {
        // Without a value a filter lets copies be anywhere.
        Some((name, "")) if name.ends_with("._name") => (name.to_owned(), String::new()),
        _ => parse_pair(text, "NAME=VALUE", "indices.recovery.max_bytes_per_sec=160mb")?,
    };
    match name.as_str() {
        "index.number_of_replicas" => return Err("ask that with --replicas INDEX=N".to_owned()),
        "index.number_of_shards" => {
            return Err(
                "an index that is there keeps its shards, here as in the cluster".to_owned()
            );
        }
        _ => {}
    }
    match engine::settings::check(&name, &value) {
        Ok(_) if !twin::models(&name) => Err(format!(
            "a twin does not model {name}: its answer would be the same with any value, and say nothing of the \
             cluster; \"What it goes by\" in docs/what-if.md says what is modelled"
        )),
        Ok(_) => Ok((name, value)),
        // The cluster may well have it.
        Err(SettingError::Unknown { name, hint }) => {
            let list = match hint.is_empty() {
                true => "; \"What it goes by\" in docs/what-if.md says what is modelled",
                false => "",
            };
            Err(format!(
                "a twin has no setting {name}, so that it cannot say what that brings{hint}{list}"
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn parse_parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = parse_pair(text, "NAME=VALUE", "cores.count=16")?;
    twin::check_parameter(&name, &value)?;
    Ok((name, value))
}

fn parse_within(text: &str) -> Result<Within, String> {
    text.parse()
}

fn parse_down(text: &str) -> Result<Within, String> {
    let bounds = down_bounds();
    let (least, most) = (bounds.start().as_secs(), bounds.end().as_secs());
    let wrong = || format!("a node that restarts is away for {least} s to {most} s");
    parse_within(text)
        .and_then(|down| Some(down).filter(|down| down.is_in(&bounds)).ok_or_else(wrong))
}

fn parse_rtt(text: &str) -> Result<Duration, String> {
    let rtt = parse_duration(text).map_err(|error| error.to_string())?;
    let wrong = || format!("a round trip between nodes is {} s at most", RTT_MAX.as_secs());
    Some(rtt).filter(|rtt| *rtt <= RTT_MAX).ok_or_else(wrong)
}

fn parse_replicas(text: &str) -> Result<(String, u32), String> {
    let (index, number) = parse_pair(text, "INDEX=N", "logs=2")?;
    let number = number.parse::<u32>().ok();
    let bounds = replicas_bounds();
    let number = number.filter(|number| bounds.contains(&i64::from(*number)));
    let (least, most) = (bounds.start(), bounds.end());
    let wrong = || format!("write INDEX=N with N from {least} to {most}, for example logs=2");
    Ok((index, number.ok_or_else(wrong)?))
}

fn parse_documents(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.0..=DOCUMENTS_MAX).contains(rate));
    rate.ok_or_else(|| format!("write documents a second, 0 to {DOCUMENTS_MAX}"))
}

/// A rate as links have them, or as settings have them.
fn link_rate(text: &str) -> Result<String, ParseError> {
    parse_rate(text).map(|_| text.to_owned())
}

/// A rate of a disk, which may also be written as settings of a cluster have it: as a size.
fn checked_rate(text: &str) -> Result<String, String> {
    match parse_rate(text).is_ok() || parse_size(text).is_ok() {
        true => Ok(text.to_owned()),
        false => Err("write a rate, for example 10gbit, 400MB/s or 400mb".to_owned()),
    }
}

/// What the engine does otherwise than the field where nodes restart while documents are written.
const FORMER_PRIMARIES: &str = "that a copy which was its shard's primary comes back by operations: here it copies its \
    files, so that bytes and times are upper bounds";

/// What it does otherwise where a primary is lost that has more than one replica.
const FURTHER_REPLICAS: &str = "that further replicas of a lost primary stay in use: here each recovers from the new \
    primary, without files where nothing was being written, and takes a slot and what opening a copy takes";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    runs::refuse_file(&args.runs)?;
    let asked = asked(args);
    let (is_asked, restarts) = (asked.is_some(), matches!(asked, Some(Asked::Restart { .. })));
    refuse_unused(args, is_asked, restarts)?;
    let is_file = |what: &&String| what.ends_with(".toml");
    if let (Some(file), 2..) = (args.what.iter().find(is_file), args.what.len()) {
        refuse!("{file} is the file of a twin, which is asked without a cluster: give one of both");
    }
    if !is_asked && args.save.is_none() {
        let text = "say what happens: --lose NODE, --drain NODE, --add N, --rolling-restart, --restart NODE, or \
                    --replicas INDEX=N; or --save FILE to write the twin only";
        refuse!("{text}");
    }
    if args.anonymous && file(args).is_some() {
        let text = "--anonymous hashes names as they are read from a cluster, and a file has them already: give the \
                    cluster's URL with it";
        refuse!("{text}");
    }
    check_once("--set", &args.settings)?;
    check_once("--assume", &args.parameters)?;
    check_once("--replicas", &args.replicas)?;
    args.save.as_deref().map_or(Ok(()), check_save)?;
    let (Import { mut plan, mut left_out, voters }, folder) = twin_of(args)?;
    check_filters(&plan, &args.settings)?;
    if let Some(why) = twin::refusal(&plan, &args.settings) {
        refuse!("{why}");
    }
    let written = twin::documents_per_s(&plan);
    if args.flush && written == 0.0 {
        let text =
            "--flush has nothing to flush, as nothing is written to the twin: say --indexing RATE";
        refuse!("{text}");
    }
    if is_asked && !restarts && written >= 1.0 {
        let text = "documents a second that are written: they go on beside restarts alone";
        left_out.push(format!("{written:.0} {text}"));
    }
    if is_asked && !restarts && args.first_copy.is_some() {
        let text = "what the first copies of a node take besides (--first-copy): it counts where nodes restart alone";
        left_out.push(text.to_owned());
    }
    left_out.extend(twin::without_manager(&voters, &args.lose));
    match &asked {
        Some(Asked::Add { like: Some(like), .. }) => check_has(&plan, like)?,
        Some(Asked::Add { like: None, .. }) => left_out.extend(twin::joins_like(&plan).map(|like| {
            format!("what a node that joins is like: copies may be on it as on {like}; --like NODE says another")
        })),
        _ => {}
    }
    match asked {
        Some(asked) => twin::ask(&mut plan, &asked),
        // What is saved can be run: as long as nothing else is asked, the first node is lost, or an only one restarts.
        None => ask_for_the_first(&mut plan),
    }
    twin::as_it_is(&mut plan);
    if let Some(path) = &args.save {
        save(path, &plan)?;
    }
    if is_asked {
        answer(args, plan, left_out, folder.as_ref())?;
    }
    Ok(())
}

/// Refuses options that another one gives a meaning, without that one.
fn refuse_unused(args: &Args, is_asked: bool, restarts: bool) -> anyhow::Result<()> {
    for (is_said, what) in [
        (args.down.is_some(), "--down says how long a node is away that restarts"),
        (args.flush, "--flush is done before a node restarts"),
        (
            args.indexing.is_some() && is_asked,
            "--indexing says what is written while nodes restart",
        ),
    ] {
        if is_said && !restarts {
            refuse!("{what}: with --rolling-restart or --restart NODE");
        }
    }
    if args.like.is_some() && args.add.is_none() {
        refuse!("--like says which node those are like that join: with --add N");
    }
    let of_answers = [
        ("--set", !args.settings.is_empty()),
        ("--draws", args.draws != DRAWS),
        ("--seed", args.seed.is_some()),
        ("--json", args.json),
    ];
    let unused = of_answers.iter().find(|(_, is_given)| *is_given && !is_asked);
    if let Some((option, _)) = unused {
        refuse!(
            "{option} is for an answer, and nothing is asked: say what happens, as --lose NODE, or leave it out"
        );
    }
    if let Some(file) = file(args) {
        let why = format!("{} is asked without one; leave it out", file.display());
        args.connect.refuse_given(&why)?;
    }
    Ok(())
}

fn asked(args: &Args) -> Option<Asked> {
    if !args.lose.is_empty() {
        return Some(Asked::Lose(args.lose.clone()));
    }
    if args.rolling_restart || !args.restart.is_empty() {
        let nodes = args.restart.clone();
        return Some(Asked::Restart { nodes, down: args.down, flush: args.flush });
    }
    if !args.drain.is_empty() {
        return Some(Asked::Drain(args.drain.clone()));
    }
    if let Some(count) = args.add {
        return Some(Asked::Add { count, like: args.like.clone() });
    }
    let replicas: BTreeMap<String, u32> = args.replicas.iter().cloned().collect();
    (!replicas.is_empty()).then_some(Asked::Replicas(replicas))
}

fn check_has(plan: &TwinPlan, node: &str) -> anyhow::Result<()> {
    let known = twin::node_names(plan);
    if known.contains(&node) {
        return Ok(());
    }
    let mut hint = record::names::did_you_mean(node, known.iter().copied());
    if hint.is_empty() {
        hint = format!("; there are {}", record::names::told(&known));
    }
    refuse!("no node is called \"{node}\"{hint}");
}

/// Filters name nodes of the twin: a name that no node has, or a pattern, would filter nothing.
fn check_filters(plan: &TwinPlan, settings: &[(String, String)]) -> anyhow::Result<()> {
    let filters = settings.iter().filter(|(name, _)| name.ends_with("._name"));
    let named = filters.flat_map(|(_, value)| value.split(',').map(str::trim));
    named.filter(|node| !node.is_empty()).try_for_each(|node| check_has(plan, node))
}

fn ask_for_the_first(plan: &mut TwinPlan) {
    let has_asked = twin::QUESTIONS
        .iter()
        .any(|key| plan.get("twin").is_some_and(|twin| twin.get(key).is_some()));
    let asked = match twin::node_names(plan)[..] {
        // Without it nothing would be left.
        [_] => Asked::Restart { nodes: Vec::new(), down: None, flush: false },
        [first, ..] => Asked::Lose(vec![first.to_owned()]),
        [] => return,
    };
    if !has_asked {
        twin::ask(plan, &asked);
    }
}

/// Of two values of one name one would be asked, and both may be told.
fn check_once<T>(option: &str, values: &[(String, T)]) -> anyhow::Result<()> {
    let mut names = BTreeSet::new();
    if let Some((name, _)) = values.iter().find(|(name, _)| !names.insert(name.as_str())) {
        refuse!("{option} {name} is given twice; ask with one value at a time");
    }
    Ok(())
}

/// A twin is saved as a plan, and takes the place of nothing but another twin.
fn check_save(path: &Path) -> anyhow::Result<()> {
    let why = if path.extension().is_none_or(|ending| ending != "toml") {
        "a twin is a plan, whose name ends in .toml"
    } else if path.exists() && twin::read(path).is_err() {
        "what is there is no twin, and would be lost"
    } else if path.parent().is_some_and(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) {
        "there is no such directory"
    } else {
        return Ok(());
    };
    let path = path.display();
    refuse!("--save {path}: {why}; give another name, for example --save twin.toml");
}

/// The file of a twin, where one is given and no cluster.
fn file(args: &Args) -> Option<&Path> {
    match &args.what[..] {
        [file] if file.ends_with(".toml") => Some(Path::new(file)),
        _ => None,
    }
}

/// The twin of a cluster with where its answers are kept, or the one in a file.
fn twin_of(args: &Args) -> anyhow::Result<(Import, Option<ClusterFolder>)> {
    let calibration = args.calibration.as_deref().map(twin::calibration).transpose()?;
    let given = Given {
        calibration: calibration.unwrap_or_default(),
        link: args.link.clone(),
        disk_read: args.disk_read.clone(),
        disk_write: args.disk_write.clone(),
        open_copy: args.open_copy,
        new_copy: args.new_copy,
        each_file: args.each_file,
        first_copy: args.first_copy,
        parameters: args.parameters.clone(),
        documents_per_s: args.indexing,
        rtt_micros: args.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
    };
    if let Some(file) = file(args) {
        let mut plan = twin::read(file)?;
        twin::say(&mut plan, &given);
        return Ok((Import { plan, left_out: Vec::new(), voters: Vec::new() }, None));
    }
    world::real_world::run(0, async |env| {
        let client = client(&env, &args.what, &args.connect, args.connect.timeout())?;
        let sampler = greet(&env, client, &args.connect).await?;
        say!("narrows: looks twice, 2 s apart, at what is indexed, sent and written now");
        let mut seen = inventory(sampler.client(), sampler.identity()).await?;
        if args.anonymous {
            // What the environment draws first is the same in every process: names could be guessed.
            let salt = RandomState::new().build_hasher().finish();
            seen = twin::anonymous(&seen, salt);
        }
        let folder = ClusterFolder::of_asked(&args.runs, sampler.client()).await;
        Ok((twin::import(&seen, &given)?, folder))
    })
}

fn save(path: &Path, plan: &TwinPlan) -> anyhow::Result<()> {
    runs::write(&twin::text(plan), path)?;
    let path = path.display();
    // An only one cannot be lost: nothing would be left.
    let question = match twin::node_names(plan)[..] {
        [_] => "--rolling-restart",
        _ => "--lose NODE",
    };
    say!("narrows: the twin is in {path}; `narrows what-if {path} {question}` asks it again");
    Ok(())
}

fn answer(
    args: &Args,
    plan: TwinPlan,
    mut left_out: Vec<String>,
    folder: Option<&ClusterFolder>,
) -> anyhow::Result<()> {
    let TwinQuestion { asked, mut until } = twin::in_words(&plan);
    let mut with_settings = plan.clone();
    if !args.settings.is_empty() {
        let enable = plan.get("settings").and_then(|all| all.get(REBALANCE)?.as_str());
        if until == "balanced" && matches!(enable, None | Some("none")) {
            // Without the setting nothing would move: there is nothing to compare with.
            with_settings.remove("variant");
        }
        twin::set(&mut with_settings, &args.settings);
    }
    let trials = args.settings.is_empty().then(|| {
        let mut trials = plan.clone();
        twin::trials(&mut trials);
        trials
    });
    let asking = Asking { runs: &args.runs, seed: args.seed, draws: args.draws };
    let ((answers, page), tried) = asking.ask(&with_settings, trials.as_ref())?;
    // The answer is known, whatever became of the settings: it is told first.
    let (tried, failed) = match tried {
        Ok(tried) => (tried, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    if answers.iter().any(|answer| !answer.never_green.is_empty()) {
        TwinQuestion::PLACED.clone_into(&mut until);
    }
    // A cluster of our own engine does the same.
    let of_the_field = plan.contains_key("test_bed");
    let restarts = plan.get("twin").is_some_and(|twin| twin.get("restart").is_some());
    if of_the_field && restarts && answers.iter().any(|answer| answer.bytes > 0) {
        left_out.push(FORMER_PRIMARIES.to_owned());
    }
    let loses = restarts || plan.get("twin").is_some_and(|twin| twin.get("lose").is_some());
    if of_the_field && loses && twin::has_further_replicas(&plan) {
        left_out.push(FURTHER_REPLICAS.to_owned());
    }
    let assumed = twin::assumptions(&plan);
    let whole = json!({
        "format": FORMAT, "asked": asked, "until": until, "lost": twin::lost(&plan), "answers": answers, "tried": tried,
        "assumed": assumed.iter().map(assumption_json).collect::<Vec<_>>(), "left_out": left_out,
    });
    // Whoever asked has waited for the answer: it is told all the same.
    if let Some(Err(error)) = folder.map(|folder| folder.answer(&whole)) {
        say!("narrows: watch --web will not show it: {error:#}");
    }
    let mut out = terminal::out();
    if args.json {
        writeln!(out, "{whole}")?;
        return failed;
    }
    let width = out.line_width();
    let mut text = report::what_if((&asked, &until), &answers, &tried, width);
    if !assumed.is_empty() {
        text += "\nAssumed, because no API tells it\n";
    }
    for Assumption { what, value, between, seen, option } in &assumed {
        let between = between.as_ref().filter(|_| args.draws > 1);
        let between = between.map_or(String::new(), |(a, b)| format!(", drawn from {a} to {b}"));
        let seen = seen.as_ref().map_or(String::new(), |seen| format!("; seen: {seen}"));
        text += &format!("  {what} = {value}{between} ({option}){seen}\n");
    }
    if !left_out.is_empty() {
        text += "\nNot in the twin\n";
    }
    for one in left_out {
        text += &format!("  {one}\n");
    }
    if let Some(page) = page {
        text += &format!("\nReport: {}\n", page.display());
    }
    writeln!(out, "{}", report::fitted(&text, width))?;
    failed
}

fn assumption_json(assumed: &Assumption) -> serde_json::Value {
    let Assumption { what, value, between, seen, option } = assumed;
    json!({ "parameter": what, "value": value, "between": between, "seen": seen, "option": option })
}
