//! The guard's query: sent again and again beside everything else, as a user would.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::anyhow;
use clusters::live::LiveClient;
use serde_json::Value;
use world::{Env, Task, Time};

use crate::exit::Usage;

/// From one query to the next, and no sooner than the last was answered.
const EVERY: Duration = Duration::from_millis(200);

/// What queries took since somebody last asked.
#[derive(Default)]
struct Taken {
    ms: Vec<f64>,
    failed: u32,
    /// How the last one failed.
    error: Option<String>,
    /// When the one that is under way was sent.
    under_way: Option<Time>,
}

impl Taken {
    /// The query that was under way took so long, or failed; in words.
    fn answered(&mut self, took_ms: Result<f64, String>) {
        self.under_way = None;
        match took_ms {
            Ok(took_ms) => self.ms.push(took_ms),
            Err(error) => {
                self.failed += 1;
                self.error = Some(error);
            }
        }
    }
}

/// A query that is sent for as long as this lives.
pub(crate) struct GuardQuery {
    env: Env,
    taken: Rc<RefCell<Taken>>,
    _task: Task<()>,
}

impl GuardQuery {
    /// Sends it once, to see whether the cluster answers at all, and then goes on.
    pub(crate) async fn start(
        env: &Env,
        client: LiveClient,
        query: &str,
        body: Value,
    ) -> anyhow::Result<GuardQuery> {
        let path = format!("/{}", query.trim_start_matches('/'));
        client.ask("GET", &path, &body).await.map_err(|error| {
            let text = format!(
                "--guard {query}: the cluster does not answer it: {error}; give a search that it answers, as \
                 --guard 'logs/_search?q=error'"
            );
            anyhow!(Usage(text))
        })?;
        let taken = Rc::new(RefCell::new(Taken::default()));
        let (own_env, own) = (env.clone(), taken.clone());
        let task = env.spawn("guard", async move {
            loop {
                let sent = own_env.now();
                own.borrow_mut().under_way = Some(sent);
                let answer = client.ask("GET", &path, &body).await;
                let took_ms = (own_env.now() - sent).as_secs_f64() * 1e3;
                let took_ms = answer.map(|_| took_ms).map_err(|error| error.to_string());
                own.borrow_mut().answered(took_ms);
                own_env.sleep_until((sent + EVERY).max(own_env.now())).await;
            }
        });
        Ok(GuardQuery { env: env.clone(), taken, _task: task })
    }

    /// How long queries took since this was last asked, in milliseconds, how many failed, and how the last of those
    /// did. One that is not answered yet counts by its age where that is more than all others took: it would be told of
    /// too late otherwise.
    pub(crate) fn take(&self) -> (Vec<f64>, u32, Option<String>) {
        let mut taken = self.taken.borrow_mut();
        let mut ms = std::mem::take(&mut taken.ms);
        if let Some(sent) = taken.under_way {
            let age_ms = (self.env.now() - sent).as_secs_f64() * 1e3;
            let is_slowest = ms.iter().all(|other| *other < age_ms);
            ms.extend(Some(age_ms).filter(|_| is_slowest));
        }
        (ms, std::mem::take(&mut taken.failed), taken.error.take())
    }
}
