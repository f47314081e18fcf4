//! `narrows dcp drain`

use std::time::Duration;

use dcp::client::BucketAddress;
use dcp::drain::{Drain, DrainReport, DrainSettings};
use record::units::{parse_rate, parse_size, parse_time_above_zero};
use record::units::{show_bytes, show_rate, show_seconds};
use report::grid;
use world::Env;

use crate::interrupt::{Ended, until_told};
use crate::live::{ConnectArgs, asked, client_options, say_if_insecure};
use crate::terminal::{self, say};

/// How often it is said how far it is.
const SHOW_EVERY: Duration = Duration::from_secs(1);
/// How many vbuckets that are left out are named; `--json` has all.
const NAMED: usize = 10;

#[derive(clap::Args)]
#[command(mut_arg("any_version", |unused| unused.hide(true)))]
pub(crate) struct Args {
    /// The bucket: couchbase://HOST[:PORT]/BUCKET, or couchbases:// for TLS. The cluster's other nodes are found by it.
    #[arg(value_name = "URL")]
    address: String,
    /// Bytes that each connection may have unacknowledged (`connection_buffer_size`).
    #[arg(long, value_name = "SIZE", default_value = "20mb", value_parser = window)]
    window: u32,
    /// Connections to each node; vbuckets are spread over them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,
    /// Take no more than this, over all connections: 100mbit, 12.5MB/s. At the start windows come at once, up to what
    /// this allows in five seconds.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,
    /// Read these vbuckets alone: 0-99,512.
    #[arg(long, value_name = "LIST", value_parser = vbuckets)]
    vbuckets: Option<Vbuckets>,
    /// Begin with what is written from now on, and go on until told to stop.
    #[arg(long)]
    follow: bool,
    /// Stop by itself after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time_above_zero)]
    span: Option<Duration>,
    /// A line for each vbucket, too.
    #[arg(long, conflicts_with = "json")]
    each: bool,
    /// One JSON object, with connections and vbuckets.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

#[derive(Clone)]
struct Vbuckets(Vec<u16>);

fn window(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    match u32::try_from(bytes) {
        Ok(bytes @ 1..) => Ok(bytes),
        _ => {
            Err("a window is 1 byte to 4 GiB; without one a producer sends without end".to_owned())
        }
    }
}

fn vbuckets(text: &str) -> Result<Vbuckets, String> {
    let wrong = || "write numbers and ranges of vbuckets, 0 to 1023: 0-99,512".to_owned();
    let number =
        |text: &str| text.trim().parse::<u16>().ok().filter(|vb| *vb < 1024).ok_or_else(wrong);
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(wrong());
        }
        all.extend(first..=last);
    }
    Ok(Vbuckets(all))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.connect.refuse_any_version()?;
    let address = BucketAddress::parse(&args.address).map_err(asked)?;
    let options = client_options(&address, &args.connect)?;
    say_if_insecure(&address, &args.connect);
    world::real_world::run(0, async |env| {
        let settings = DrainSettings {
            window_bytes: args.window,
            connections: args.connections,
            rate_bytes_per_s: args.rate.map(|rate| rate as f64),
            vbuckets: args.vbuckets.clone().map(|Vbuckets(all)| all),
            follow: args.follow,
            // A name of its own: a connection of the same name would be ended.
            name: format!("narrows-drain-{}", std::process::id()),
        };
        let mut drain = Drain::start(&env, &options, &settings).await.map_err(asked)?;
        say_left_out(&drain.report().not_active);
        let ended = until_told(follow(&env, &mut drain, args)).await;
        let report = drain.report();
        // The connections end before anything is said.
        drop(drain);
        let interrupted = !matches!(ended, Ok(Ended::Complete));
        show(&report, args, interrupted)?;
        ended?;
        let broken: Vec<String> =
            report.broken().map(|(vb, why)| format!("vbucket {vb}: {why}")).collect();
        match broken.is_empty() {
            true => Ok(()),
            false => anyhow::bail!("not everything came: {}", broken.join(", ")),
        }
    })
}

/// Names the first of the vbuckets that are active nowhere.
fn say_left_out(vbuckets: &[u16]) {
    let first: Vec<String> = vbuckets.iter().take(NAMED).map(u16::to_string).collect();
    let (first, more) = (first.join(", "), vbuckets.len().saturating_sub(NAMED));
    match (vbuckets.len(), more) {
        (0, _) => {}
        (1, _) => say!("narrows: vbucket {first} is active nowhere, and is left out"),
        (_, 0) => say!("narrows: vbuckets {first} are active nowhere, and are left out"),
        _ => say!("narrows: vbuckets {first} and {more} more are active nowhere, and are left out"),
    }
}

/// Reads until its end, or until the time is over, and says how far it is.
async fn follow(env: &Env, drain: &mut Drain, args: &Args) -> anyhow::Result<()> {
    let ends = args.span.map(|span| env.now() + span);
    let mut before = drain.report();
    loop {
        let next = env.now() + SHOW_EVERY;
        let next = ends.map_or(next, |ends| next.min(ends));
        tokio::select! {
            biased;
            finished = drain.finish() => return Ok(finished?),
            () = env.sleep_until(next) => {}
        }
        let now = drain.report();
        if !args.json {
            let seconds = (now.seconds - before.seconds).max(1e-9);
            let rate = (now.bytes() - before.bytes()) as f64 / seconds;
            let items = (now.items() - before.items()) as f64 / seconds;
            say!("{:>8}  {:>9}  {items:.0} items/s", show_seconds(now.seconds), show_rate(rate));
        }
        before = now;
        if ends.is_some_and(|ends| env.now() >= ends) {
            return Ok(());
        }
    }
}

fn show(report: &DrainReport, args: &Args, interrupted: bool) -> anyhow::Result<()> {
    let mut out = terminal::out();
    if args.json {
        writeln!(out, "{}", report.json(interrupted))?;
        return Ok(());
    }
    let row = |name: &str, node: &str, vbuckets: String, bytes: u64, items: u64, seconds: f64| {
        let per_s = |count: u64| count as f64 / seconds.max(1e-9);
        let (size, time) = (show_bytes(bytes), show_seconds(seconds));
        let (rate, items_per_s) = (show_rate(per_s(bytes)), format!("{:.0}", per_s(items)));
        let (name, node, items) = (name.to_owned(), node.to_owned(), items.to_string());
        vec![name, node, vbuckets, items, size, time, rate, items_per_s]
    };
    let mut rows = Vec::new();
    for connection in &report.connections {
        let (bytes, items, seconds) = (connection.bytes(), connection.items(), connection.seconds);
        let vbuckets = connection.vbuckets.len().to_string();
        rows.push(row(&connection.name, &connection.node, vbuckets, bytes, items, seconds));
        for (vb, of) in connection.vbuckets.iter().filter(|_| args.each) {
            let name = format!("  vbucket {vb}");
            rows.push(row(&name, "", String::new(), of.bytes, of.items, seconds));
        }
    }
    if report.connections.len() > 1 {
        let vbuckets = report.connections.iter().map(|connection| connection.vbuckets.len());
        let vbuckets = vbuckets.sum::<usize>().to_string();
        rows.push(row("all", "", vbuckets, report.bytes(), report.items(), report.seconds));
    }
    let columns = [
        ("connection", false),
        ("node", false),
        ("vbuckets", true),
        ("items", true),
        ("bytes", true),
        ("time", true),
        ("rate", true),
        ("items/s", true),
    ];
    for line in grid(columns, rows) {
        writeln!(out, "{line}")?;
    }
    if interrupted {
        writeln!(out, "\nstopped before its end")?;
    }
    Ok(())
}
