//! Writing a run into a metrics store, and reading one from it: an Elasticsearch or OpenSearch that somebody keeps
//! records in.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use clusters::live::{LiveClient, LiveOptions};
use clusters::wire::WireHost;
use lab::load::{Check, Client, Failure, Request, SocketClient};
use record::RunDir;
use report::stored::{Document, documents, read_race, templates, without_nested};
use serde_json::{Value, json};
use world::Env;

use crate::exit::refuse;
use crate::terminal::say;

/// Where documents are written; answered with the errors alone.
const BULK: &str = "/_bulk?filter_path=errors,items.*.error.type";
/// The error of an index that takes no writes.
const BLOCKED: &str = "cluster_block_exception";
/// Documents in a request.
const AT_ONCE: usize = 500;
/// Pauses before a store that is away or full is asked again: two minutes in all.
const PAUSES_S: [u64; 7] = [1, 2, 5, 10, 20, 40, 42];
/// How long an answer may take at the end of a run, at least.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a run waits before it begins for an answer of its store.
const IS_THERE_WITHIN: Duration = Duration::from_secs(2);

/// Writes the templates and the documents of a run; a sentence of what was written. Fails if the store refuses them, or
/// is away for longer than two minutes. Written again, a run has the same documents.
pub(crate) fn write(run: &RunDir, options: &LiveOptions) -> anyhow::Result<String> {
    let hosts: Rc<[WireHost]> = WireHost::all(options)?.into();
    let documents = documents(run);
    world::real_world::run(0, async |env| {
        let client = SocketClient::new(&hosts);
        let mut store =
            Store { client, env, patience: options.timeout, hosts: hosts.len(), next: 0 };
        for (name, template) in templates() {
            store.template(name, &template).await?;
        }
        for part in documents.chunks(AT_ONCE) {
            store.bulk(part).await?;
        }
        let (id, count) = (&run.manifest.run, documents.len());
        Ok(format!("{id}: {count} documents in rally-races-*, rally-results-* and rally-metrics-*"))
    })
}

/// Says that a store is away before a run begins, and not only after it. The run goes on: its record is here.
pub(crate) fn say_if_away(options: &LiveOptions) {
    let options = LiveOptions { timeout: IS_THERE_WITHIN, ..options.clone() };
    let asked =
        world::real_world::run(0, async |env| LiveClient::new(&env, &options)?.get("/").await);
    match asked {
        // Whoever may write there need not be allowed to ask who it is.
        Ok(_) | Err(clusters::Error::Refused { status: 403, .. }) => {}
        Err(error) => say!(
            "narrows: the store cannot be written to now ({error}); the run goes on, and the store is asked again at \
             its end"
        ),
    }
}

/// Reads a race by its id. Fails if the store does not answer, has no such race, or has one that says too little.
pub(crate) fn read(id: &str, options: &LiveOptions) -> anyhow::Result<RunDir> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !id.bytes().all(is_plain) {
        refuse!("\"{id}\" is no id of a race; they have letters, digits, - _ and .");
    }
    let found = world::real_world::run(0, async |env| {
        let path = format!("/rally-races-*/_search?size=1&q=race-id:%22{id}%22");
        LiveClient::new(&env, options)?.get(&path).await
    });
    let found = found.context("ask the store")?;
    let Some(race) = found["hits"]["hits"].get(0) else {
        refuse!("neither here nor in the store is a run called \"{id}\"");
    };
    let read = read_race(&race["_source"]);
    read.map_err(|why| anyhow::anyhow!("the race {id} cannot be compared: {why}"))
}

struct Store {
    client: SocketClient,
    env: Env,
    /// How long an answer may take.
    patience: Duration,
    hosts: usize,
    /// The host that is asked next.
    next: usize,
}

impl Store {
    /// Makes an index template where there is none of its name: one that somebody has changed stays.
    async fn template(&mut self, name: &str, template: &Value) -> anyhow::Result<()> {
        let Some(why) = self.refusal(name, template).await? else { return Ok(()) };
        // Without a template no date of a race is a date, and no id is found as it is.
        if let Some(flat) = without_nested(template)
            && self.refusal(name, &flat).await?.is_none()
        {
            say!(
                "narrows: the store refuses the index template {name} ({why}) and takes it without nested fields: a search \
                 looks at all operations of a race at once"
            );
            return Ok(());
        }
        say!(
            "narrows: the store refuses the index template {name} ({why}): it maps fields of {name}-* by itself"
        );
        Ok(())
    }

    /// Puts an index template; what the store refuses it with, if it does. One that is there already is none.
    async fn refusal(&mut self, name: &str, template: &Value) -> anyhow::Result<Option<String>> {
        let path = format!("/_index_template/{name}?create=true");
        match self.ask("PUT", &path, template.to_string(), Check::Status).await {
            Ok(()) => Ok(None),
            Err(Failure::Refused { status: 400, kind, .. })
                if kind == "illegal_argument_exception" =>
            {
                Ok(None)
            }
            // A store that has no templates, or not all types of fields.
            Err(Failure::Refused { status: status @ (400 | 404 | 405), kind, .. }) => {
                Ok(Some(format!("{status} {kind}")))
            }
            Err(failure) => Err(refused(&failure)),
        }
    }

    async fn bulk(&mut self, part: &[Document]) -> anyhow::Result<()> {
        let lines = part.iter().map(|Document { index, id, source }| {
            format!("{}\n{source}\n", json!({ "index": { "_index": index, "_id": id } }))
        });
        let body: String = lines.collect();
        let asked = self.ask("POST", BULK, body, Check::Bulk).await;
        asked.map_err(|failure| refused(&failure))
    }

    /// Asks until there is an answer, for as long as it is worth waiting.
    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: String,
        check: Check,
    ) -> Result<(), Failure> {
        let body = Bytes::from(body);
        let request = Request {
            method: method.into(),
            path: path.into(),
            body,
            check,
            documents: 0,
            pages: 1,
        };
        let mut pauses = PAUSES_S.into_iter();
        loop {
            let host = self.next % self.hosts.max(1);
            let asked = self.env.timeout(self.patience, self.client.ask(host, &request)).await;
            let answer = asked.unwrap_or(Err(Failure::NoAnswer));
            let failure = match answer {
                Ok(reply) => match check.judge(reply.status, self.client.body()) {
                    Ok(()) => return Ok(()),
                    Err(Failure::Items) => of_documents(self.client.body()),
                    Err(failure) => failure,
                },
                Err(failure) => {
                    self.client.give_up(host);
                    failure
                }
            };
            let passes = matches!(
                failure,
                Failure::NoAnswer
                    | Failure::Unreachable
                    | Failure::Closed
                    | Failure::Refused { status: 429 | 502 | 503 | 504, .. }
            );
            let Some(pause_s) = pauses.next().filter(|_| passes) else { return Err(failure) };
            if pause_s > 1 {
                say!(
                    "narrows: the store does not take the record ({failure}); it is asked again in {pause_s} s"
                );
            }
            self.next += 1;
            self.env.sleep(Duration::from_secs(pause_s)).await;
        }
    }
}

/// Why documents were refused, by the first of them, as if it were the whole request: a shard whose queue is full
/// refuses documents, and that passes.
fn of_documents(body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let kind = body.split("\"type\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let Some(kind) = kind else { return Failure::Items };
    let is_busy = ["rejected_execution", "circuit_breaking"].iter().any(|of| kind.contains(of));
    let status = match kind {
        _ if is_busy => 429,
        BLOCKED => 403,
        _ => 400,
    };
    Failure::Refused { status, kind: kind.to_owned(), reason: String::new() }
}

fn refused(failure: &Failure) -> anyhow::Error {
    let hint = match failure {
        Failure::Refused { kind, .. } if kind == BLOCKED => {
            "; an index there takes no writes now: its disk may be full"
        }
        Failure::Refused { status: 401 | 403, .. } => {
            "; give credentials that may write there: NARROWS_USER and NARROWS_PASSWORD, or --credentials FILE"
        }
        Failure::Refused { kind, .. } if kind.contains("parsing") || kind.contains("mapping") => {
            "; the mapping of its rally-* indices does not take these documents"
        }
        _ => "",
    };
    if matches!(failure, Failure::Unreachable | Failure::NoAnswer | Failure::Closed) {
        return anyhow::anyhow!(
            "the store did not answer for two minutes ({failure}): it is down, or its REST is elsewhere; give \
             http://HOST:9200"
        );
    }
    anyhow::anyhow!("the store answered: {failure}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_a_full_queue_refuses_are_not_blamed_on_the_mapping() {
        let said = |kind: &str| {
            let body = format!(
                "{{\"errors\":true,\"items\":[{{\"index\":{{\"error\":{{\"type\":\"{kind}\"}}}}}}]}}"
            );
            let failure = of_documents(body.as_bytes());
            (matches!(failure, Failure::Refused { status: 429, .. }), refused(&failure).to_string())
        };
        for kind in ["es_rejected_execution_exception", "rejected_execution_exception"] {
            let (passes, text) = said(kind);
            assert!(passes && text.contains(kind) && !text.contains("mapping"), "{text}");
        }
        let (passes, text) = said("document_parsing_exception");
        assert!(!passes && text.contains("mapping"), "{text}");
        let (passes, text) = said("cluster_block_exception");
        assert!(!passes && text.contains("disk") && !text.contains("mapping"), "{text}");
        assert_eq!(of_documents(b"{\"errors\":true}"), Failure::Items);
    }

    #[test]
    fn a_store_that_stayed_away_has_not_answered() {
        let said = refused(&Failure::Unreachable).to_string();
        assert!(said.contains("did not answer") && said.contains("http://HOST:9200"), "{said}");
    }
}
