//! `narrows node`: one node of an embedded cluster, as a child of whoever started it.
//!
//! The first line of standard input is what it is started with ([`NodeStart`]); when that input ends, so does the node.
//! It prints one line when it is ready, and does what further lines of its input order. If the input ends without the
//! word that announces an end in order, the runner has vanished, and the last node takes the temporary directory away.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Read};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use clusters::{NodeReady, NodeStart, Order, STOP, Strain, TemporaryUse};
use engine::NodeConfig;
use tokio::sync::{mpsc, oneshot};

use crate::{interrupt, terminal};

/// What it is started with is no longer than this.
const START_BYTES_MAX: u64 = 1 << 20;
/// How long copies may take to close. Nobody may be left to end a node that hangs.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Why the node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ordered,
    RunnerVanished,
}

pub(crate) fn run() -> anyhow::Result<()> {
    clusters::end_process_on_panic();
    let mut line = String::new();
    io::stdin()
        .lock()
        .take(START_BYTES_MAX)
        .read_line(&mut line)
        .context("read the node's configuration")?;
    let start: NodeStart = serde_json::from_str(&line)
        .context("standard input holds no node configuration; `narrows cluster` starts nodes")?;
    let temporary = match &start.temporary {
        Some(dir) => {
            let what = || format!("use the temporary directory {}", dir.display());
            Some(TemporaryUse::begin(dir).with_context(what)?)
        }
        None => None,
    };
    // A fresh one at every start, or ids would be given out twice over the same data.
    let seed = RandomState::new().hash_one(&start.config.name);
    let ended = world::real_world::run(seed, |env| serve(env, start.config));
    if let (Ok(End::RunnerVanished), Some(temporary)) = (&ended, temporary) {
        temporary.end_without_runner().context("remove the temporary directory")?;
    }
    ended.map(drop)
}

async fn serve(env: world::Env, config: NodeConfig) -> anyhow::Result<End> {
    let (orders, mut came) = mpsc::unbounded_channel();
    let mut stdin_ended = pin!(stdin_ended(orders));
    let node = tokio::select! {
        biased;
        node = rest::start(&env, config) => node?,
        end = &mut stdin_ended => return Ok(end),
    };
    let ready = NodeReady {
        name: node.name().to_owned(),
        transport: node.transport_address().to_owned(),
        http: node.http_address().to_owned(),
    };
    let ready = serde_json::to_string(&ready).expect("it is plain data");
    let (ordered, own) = (node.clone(), env.clone());
    let _obeys = env.spawn("does what it is told", async move {
        while let Some(order) = came.recv().await {
            match order {
                Order::CutOff(cut) => ordered.cut_off(cut),
                Order::FailSearches(fails) => ordered.fail_searches(fails),
                Order::Slow(factor) => ordered.slow_down(factor),
                Order::Strain(Strain::Disk(rates)) => own.emulate_disk(rates.map(Into::into)),
                // Nothing is collected here, and an emulated disk has no neighbours.
                Order::Strain(Strain::Collections(_) | Strain::Neighbours(_)) => {}
            }
        }
    });
    let stop = interrupt::listen()?;
    // Where nobody is there to hear it, the input tells how that came.
    let _ = writeln!(terminal::out(), "{ready}");
    let end = tokio::select! {
        biased;
        end = stdin_ended => end,
        () = stop => End::Ordered,
    };
    // Copies that cannot be closed in order are recovered from their logs.
    let _ = env.timeout(STOP_PATIENCE, node.stop()).await;
    Ok(end)
}

/// Waits for the end of standard input on a thread of its own; hands on the orders before it.
async fn stdin_ended(orders: mpsc::UnboundedSender<Order>) -> End {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let mut last = None;
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if let Some(order) = Order::of(&line) {
                // It fails where the node is ending already.
                let _ = orders.send(order);
            }
            last = Some(line);
        }
        let ordered = last.is_some_and(|line| line == STOP);
        let _ = ended.send(if ordered { End::Ordered } else { End::RunnerVanished });
    });
    end.await.unwrap_or(End::Ordered)
}
