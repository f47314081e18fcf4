//! `narrows node`: one node of an embedded cluster, as a child of whoever started it.
//!
//! The first line of standard input is its configuration; when that input ends, so does the node. It prints
//! one line when it is ready.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Read, Write};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use engine::{Node, NodeConfig};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// A configuration is no longer than this.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// How long copies may take to close. Nobody may be left to end a node that hangs.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run() -> anyhow::Result<()> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .take(CONFIG_BYTES_MAX)
        .read_line(&mut line)
        .context("read the node's configuration")?;
    let config: NodeConfig = serde_json::from_str(&line)
        .context("standard input holds no node configuration; `narrows cluster` starts nodes")?;
    // A fresh one at every start, or ids would be given out twice over the same data.
    let seed = RandomState::new().hash_one(&config.name);
    world::real_world::run(seed, async |env| {
        let mut stdin_ended = pin!(stdin_ended());
        let node = tokio::select! {
            biased;
            node = Node::start(&env, config) => node?,
            () = &mut stdin_ended => return Ok(()),
        };
        let ready = json!({
            "name": node.name(),
            "transport": node.transport_address(),
            "http": node.http_address(),
        });
        let mut out = io::stdout();
        writeln!(out, "{ready}")
            .and_then(|()| out.flush())
            .context("say that the node is ready")?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            biased;
            () = stdin_ended => {}
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        // Copies that cannot be closed in order are recovered from their logs.
        let _ = env.timeout(STOP_PATIENCE, node.stop()).await;
        Ok(())
    })
}

/// Waits for the end of standard input on a thread of its own.
async fn stdin_ended() {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = ended.send(());
    });
    let _ = end.await;
}
