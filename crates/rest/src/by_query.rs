//! `_delete_by_query`, `_update_by_query` and `_reindex`: documents that match are read page by page and written anew
//! or deleted, each only if nothing else has written it since the first page was read.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use query::{SearchRequest, SortKey, TrackTotalHits, parse_search};
use serde_json::{Map, Value, json};
use store::{WriteOutcome, WriteRequest};
use tokio::sync::oneshot;
use world::Time;

use super::active::Active;
use super::answer::{Body, Reply};
use super::by_query_body::{Manner, Present, Routing, known, read_dest};
use super::call::{Call, object, small_number, texts};
use super::document::{Refresh, ensure_index_on, refuse_follower, wait_until_active};
use super::error::{bad_body, bad_request, cause_json, invalid, not_supported};
use super::keep_alive::scroll_keep_alive;
use super::names::{filters, indices, write_index};
use super::parameters::Query;
use super::search::{failed, preference};
use super::unchanged::{Condition, Unchanged};
use super::uri_query::uri_query;
use engine::Node;
use engine::core::RunningTask;
use engine::replication::write_documents;
use engine::search::{Hit, SearchJob, SearchOutcome, clear_scroll, next_page, scroll};
use engine::transport::{Failure, Result, unexpected};

/// Parameters of all three. Those of [`UNSUPPORTED`] are known, so that they are refused in words.
pub(super) const KNOWN: &[&str] = &[
    "max_docs pipeline refresh requests_per_second scroll slices timeout wait_for_active_shards \
     wait_for_completion",
];
/// Parameters of those that name their indices in the path.
pub(super) const SEARCHED: &[&str] =
    &["conflicts from preference routing scroll_size size sort stats terminate_after"];

const UNSUPPORTED: [(&str, &str); 5] = [
    ("from", "leave it out"),
    ("pipeline", "transform documents before you send them"),
    ("sort", "documents are read as they lie; leave it out"),
    ("stats", "there are no groups of searches; leave it out"),
    ("terminate_after", "send max_docs"),
];

/// `scroll_size`, or `size` of the search, where the request does not say.
const PAGE: usize = 1000;
/// `scroll`, where the request does not say.
const KEEP_ALIVE: &str = "5m";
/// `timeout`, where the request does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is done to each document.
enum Work {
    Delete,
    Update,
    Reindex { index: String, present: Present, routing: Routing },
}

impl Work {
    fn write(&self, hit: Hit) -> Option<(String, WriteRequest)> {
        let version = hit.document.version;
        let id: Arc<str> = Arc::from(hit.document.id);
        let (seq_no, primary_term) = (hit.document.seq_no, hit.primary_term);
        let as_read = Condition::Unchanged(Unchanged { seq_no, primary_term });
        let (source, routing) = (hit.document.source, hit.document.routing.map(Arc::from));
        Some(match self {
            Work::Delete => (hit.index, as_read.write(id, None, routing)),
            Work::Update => (hit.index, as_read.write(id, Some(source?), routing)),
            Work::Reindex { index, present, routing: to } => {
                let (source, routing) = (source?, to.of(routing));
                let write = match *present {
                    Present::ReplacedIfOlder { or_equal } => {
                        let source = Some(source);
                        WriteRequest::Versioned { id, version, or_equal, source, routing }
                    }
                    present => {
                        let create = present == Present::Kept;
                        WriteRequest::Index { id, source, auto_id: false, create, routing }
                    }
                };
                (index.clone(), write)
            }
        })
    }
}

/// What a request asks for.
struct Asked {
    work: Work,
    job: SearchJob,
    /// `scroll`
    keep_alive: Duration,
    max_docs: u64,
    /// `conflicts=proceed`
    proceeds: bool,
    /// `requests_per_second` as it begins; infinity for as many as there can be.
    per_second: f64,
    refresh: Refresh,
    /// Copies that there must be before anything is written, and how long they are waited for.
    active: (Active, Duration),
    /// `wait_for_completion`
    waits: bool,
}

impl Asked {
    /// The indices that are written to.
    fn written(&self) -> &[String] {
        match &self.work {
            Work::Reindex { index, .. } => std::slice::from_ref(index),
            _ => &self.job.indices,
        }
    }

    /// How long views are kept from a page to the next, at such a pace: they are held while pages are held back.
    fn keep_alive(&self, pace: f64) -> Duration {
        self.keep_alive + seconds(self.job.request.size as f64 / pace)
    }

    /// As a list of tasks shows it.
    fn description(&self) -> String {
        let from = self.job.indices.join(", ");
        match &self.work {
            Work::Delete => format!("delete-by-query [{from}]"),
            Work::Update => format!("update-by-query [{from}]"),
            Work::Reindex { index, .. } => format!("reindex from [{from}] to [{index}]"),
        }
    }

    /// Makes the indices that are written to ready for it.
    async fn prepare(&self, node: &Node) -> Result<()> {
        if let Work::Reindex { index, .. } = &self.work {
            ensure_index_on(node, index).await?;
        }
        for index in self.written() {
            wait_until_active(node, index, self.active).await?;
        }
        Ok(())
    }
}

/// What was done.
#[derive(Default)]
struct Done {
    total: u64,
    created: u64,
    updated: u64,
    deleted: u64,
    batches: u64,
    conflicts: u64,
    throttled: Duration,
    failures: Vec<Value>,
    status: u16,
}

/// `POST /{index}/_delete_by_query`.
pub(super) async fn delete(call: Call) -> Result<Reply> {
    let mut body = object(call.json()?, "")?;
    if body.get("query").is_none_or(Value::is_null) && call.query.get("q").is_none() {
        return Err(invalid("query is missing"));
    }
    let manner = Manner::take(&call, &mut body, &["max_docs"])?;
    body.insert("_source".to_owned(), json!(false));
    by_query(call, Work::Delete, manner, body).await
}

/// `POST /{index}/_update_by_query`: without a script, documents are read anew by the mappings of now.
pub(super) async fn update(call: Call) -> Result<Reply> {
    let mut body = object(call.json()?, "")?;
    let manner = Manner::take(&call, &mut body, &["max_docs"])?;
    by_query(call, Work::Update, manner, body).await
}

/// Of one of both that name indices in the path.
async fn by_query(
    call: Call,
    work: Work,
    manner: Manner,
    mut body: Map<String, Value>,
) -> Result<Reply> {
    let size = page(&mut body)?;
    let size = call.query.number("scroll_size")?.unwrap_or(size);
    known(&body, &["_source", "query"], "max_docs, conflicts, size and query")?;
    let state = call.state();
    let names = indices(&state, call.indices(), &call.query)?;
    for index in &names {
        refuse_follower(&call.node, index)?;
    }
    let filters = filters(&state, call.indices(), &names)?;
    let asked = Asked::read(&call, work, manner, (names, filters), (body, size))?;
    run(call, asked).await
}

/// `size` of a search: how many documents are read at once.
fn page(search: &mut Map<String, Value>) -> Result<usize> {
    let Some(size) = search.remove("size") else { return Ok(PAGE) };
    let read = small_number(&size).map(|size| size as usize);
    read.ok_or_else(|| bad_body(format!("[size] of a search is a number, not {size}")))
}

/// `POST /_reindex`.
pub(super) async fn reindex(call: Call) -> Result<Reply> {
    let mut body = object(call.needed_json()?, "")?;
    // Before it was `max_docs`, it was `size`.
    let manner = Manner::take(&call, &mut body, &["max_docs", "size"])?;
    let mut part = |name: &str| match body.remove(name) {
        Some(Value::Object(part)) => Ok(part),
        None => Err(invalid("index must be specified")),
        Some(other) => Err(bad_body(format!("[{name}] is an object with an index, not {other}"))),
    };
    let (mut source, mut dest) = (part("source")?, part("dest")?);
    known(&body, &[], "source, dest, max_docs and conflicts")?;
    for (name, instead) in [
        ("remote", "run it in the cluster that has the documents, or follow its index"),
        ("slice", "send one request without slices"),
    ] {
        if source.contains_key(name) {
            return Err(not_supported(&format!("[{name}] of a source"), instead));
        }
    }
    let names = source.remove("index").unwrap_or_else(|| json!([]));
    let expression = texts(&names)
        .map_err(|_| bad_body("[index] of a source is a name, or a list of names"))?
        .join(",");
    if expression.is_empty() {
        return Err(invalid("use _all if you really want to copy from all existing indexes"));
    }
    let size = page(&mut source)?;
    known(&source, &["_source", "query"], "index, query, size and _source")?;
    let (index, present, routing) = read_dest(&mut dest)?;
    let (expression, index) = (call.with_dates(&expression)?, call.with_dates(&index)?);
    let state = call.state();
    let names = indices(&state, Some(&expression), &Query::default())?;
    let index = write_index(&state, &index)?.to_owned();
    if names.contains(&index) {
        let why = format!("reindex cannot write into an index its reading from [{index}]");
        return Err(invalid(&why));
    }
    if state.indices.contains_key(&index) {
        refuse_follower(&call.node, &index)?;
    }
    let work = Work::Reindex { index, present, routing };
    let filters = filters(&state, Some(&expression), &names)?;
    let asked = Asked::read(&call, work, manner, (names, filters), (source, size))?;
    run(call, asked).await
}

impl Asked {
    fn read(
        call: &Call,
        work: Work,
        manner: Manner,
        (indices, filters): (Vec<String>, BTreeMap<String, query::Query>),
        (body, size): (Map<String, Value>, usize),
    ) -> Result<Asked> {
        let query = &call.query;
        for (name, instead) in UNSUPPORTED {
            if query.get(name).is_some() {
                return Err(not_supported(&format!("parameter [{name}]"), instead));
            }
        }
        if query
            .get("slices")
            .is_some_and(|text| text != "auto" && text.parse::<u32>().unwrap_or(0) == 0)
        {
            return Err(bad_request("[slices] must be auto, or at least 1"));
        }
        let refresh = match Refresh::read(query)? {
            Refresh::WaitFor => {
                return Err(bad_request("refresh is true or false here, not [wait_for]"));
            }
            refresh => refresh,
        };
        let per_second = query.requests_per_second()?.unwrap_or(f64::INFINITY);
        let window = indices.iter().filter_map(|name| call.state().indices.get(name).cloned());
        let window = window.map(|meta| meta.max_result_window() as usize).min();
        if size == 0 || window.is_some_and(|window| size > window) {
            let window = window.unwrap_or_default();
            return Err(bad_request(format!(
                "a page has 1 to [{window}] documents (index.max_result_window), not [{size}]"
            )));
        }
        // Places in what is written anew here would be those of another text.
        let parsed = parse_search(Value::Object(body).to_string().as_bytes());
        let parsed = parsed.map_err(|error| Failure { at: None, ..error.into() })?;
        let request = SearchRequest {
            query: uri_query(query)?.unwrap_or(parsed.query).within(filters),
            size: size.min(usize::try_from(manner.max_docs).unwrap_or(usize::MAX)),
            sort: vec![SortKey::of("_doc", None)],
            track_total_hits: TrackTotalHits::All,
            ..parsed
        };
        let preference = preference(query)?;
        let request = Arc::new(request);
        let keep_alive = scroll_keep_alive(call, query.get("scroll").or(Some(KEEP_ALIVE)))?;
        Ok(Asked {
            work,
            job: SearchJob {
                indices,
                request,
                preference,
                allow_partial: false,
                point_in_time: None,
            },
            keep_alive,
            max_docs: manner.max_docs,
            proceeds: manner.proceeds,
            per_second,
            refresh,
            active: (Active::read(query, 0)?, query.duration("timeout", PATIENCE)?),
            waits: query.flag("wait_for_completion", true)?,
        })
    }
}

/// For whom pages are gone through.
struct Wanted {
    task: Rc<RunningTask>,
    /// Whether the client has gone away that waited for the answer.
    gone: Cell<bool>,
}

impl Wanted {
    fn is_over(&self) -> bool {
        self.gone.get() || self.task.is_cancelled()
    }
}

/// Carries it out in a task of its own: where the client goes away, or the task is cancelled, the page under way is
/// written whole, and its views are let go.
async fn run(call: Call, asked: Asked) -> Result<Reply> {
    let (node, task) = (call.node.clone(), call.task.clone());
    let (waits, id) = (asked.waits, task.id());
    let place = if waits { None } else { Some(task.go_on_alone(call.body.len())?) };
    // The body is read, and pages may go on for days.
    drop(call);
    task.describe(asked.description());
    task.set_pace(asked.per_second);
    let wanted = Wanted { task, gone: Cell::new(false) };
    wanted.task.set_status(Done::default().status(&wanted));
    let (core, (answer, answered)) = (node.core().clone(), oneshot::channel());
    core.keep("works through a query", async move {
        let (mut answer, _place) = (answer, place);
        let reply = {
            let work = carry_out(&node, asked, &wanted);
            tokio::pin!(work);
            tokio::select! {
                biased;
                reply = &mut work => reply,
                () = answer.closed(), if waits => {
                    wanted.gone.set(true);
                    work.await
                }
            }
        };
        if !waits {
            let (kind, result) = result_of(&reply);
            wanted.task.finish(kind, result);
        }
        drop(wanted);
        // This fails where nobody waits.
        let _ = answer.send(reply);
    });
    if !waits {
        return Ok(json!({ "task": id }).into());
    }
    answered.await.unwrap_or_else(|_| Err(unexpected()))
}

/// What is kept of an answer that nobody waited for.
fn result_of(reply: &Result<Reply>) -> (&'static str, Value) {
    match reply {
        Ok(Reply { body: Body::Json(value), .. }) => match value.get("error") {
            Some(error) => ("error", error.clone()),
            None => ("response", value.clone()),
        },
        Ok(_) => ("error", cause_json(&unexpected())),
        Err(failure) => ("error", cause_json(failure)),
    }
}

async fn carry_out(node: &Node, asked: Asked, wanted: &Wanted) -> Result<Reply> {
    let (service, env, pace) = (node.search(), &node.core().env, wanted.task.pace());
    let began = env.now();
    let (first, id) = match scroll(service, asked.job.clone(), asked.keep_alive(pace)).await {
        Ok(first) => first,
        Err(failures) => return Ok(failed(&failures)),
    };
    let total = first.total.min(asked.max_docs);
    let mut done = Done { total, status: 200, ..Done::default() };
    let id = id.unwrap_or_default();
    let ended = done.go_through(node, &asked, (first, &id, pace), wanted).await;
    // A view that is not let go here ends with its keep-alive. Where nothing was searched, there is none.
    let _ = clear_scroll(service, Some(&id)).await;
    if let Some(reply) = ended? {
        return Ok(reply);
    }
    if !wanted.task.is_cancelled() {
        asked.refresh.carry_out(node, asked.written()).await;
    }
    let status = done.status(wanted);
    wanted.task.set_status(status.clone());
    Ok(done.reply(&asked.work, env.now() - began, status))
}

/// So many seconds; a month where they are more.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.min(30.0 * 86_400.0))
}

/// Waits as long as a page of so many documents takes that began then, at such a pace; how long it was. Ends soon where
/// nothing more is wanted. The task may be given a faster pace meanwhile; a slower one holds from the next page on, as
/// in the field.
async fn pause(node: &Node, page: (Time, usize), pace: f64, wanted: &Wanted) -> Duration {
    const LOOK: Duration = Duration::from_millis(200);
    let ((began, count), env) = (page, &node.core().env);
    let from = env.now();
    loop {
        let until = began + seconds(count as f64 / pace.max(wanted.task.pace()));
        if env.now() >= until || wanted.is_over() {
            return env.now() - from;
        }
        env.sleep_until(until.min(env.now() + LOOK)).await;
    }
}

impl Done {
    /// Goes through the pages; an answer where the search of one failed.
    async fn go_through(
        &mut self,
        node: &Node,
        asked: &Asked,
        (first, id, mut pace): (SearchOutcome, &str, f64),
        wanted: &Wanted,
    ) -> Result<Option<Reply>> {
        let (env, mut hits, mut left) = (&node.core().env, first.hits, self.total);
        if !hits.is_empty() {
            asked.prepare(node).await?;
        }
        wanted.task.set_status(self.status(wanted));
        while !hits.is_empty() && left > 0 && !wanted.is_over() {
            hits.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            let (began, count) = (env.now(), hits.len());
            left -= count as u64;
            self.write(node, asked, hits).await;
            wanted.task.set_status(self.status(wanted));
            // As in the field no page follows one that was the last by [max_docs], but one follows any other.
            if self.status != 200 || (left == 0 && self.total == asked.max_docs) {
                break;
            }
            self.throttled += pause(node, (began, count), pace, wanted).await;
            if left == 0 || wanted.is_over() {
                break;
            }
            pace = wanted.task.pace();
            hits = match next_page(node.search(), id, asked.keep_alive(pace)).await?.found {
                Ok(page) => page.hits,
                Err(failures) => return Ok(Some(failed(&failures))),
            };
        }
        Ok(None)
    }

    /// Writes a page, and counts what came of it.
    async fn write(&mut self, node: &Node, asked: &Asked, hits: Vec<Hit>) {
        let Asked { work, proceeds, active: (_, limit), .. } = asked;
        self.batches += 1;
        let mut by_index: BTreeMap<String, Vec<WriteRequest>> = BTreeMap::new();
        for hit in hits {
            let (index, id) = (hit.index.clone(), hit.document.id.clone());
            match work.write(hit) {
                Some((index, request)) => by_index.entry(index).or_default().push(request),
                None => self.fail(&index, &id, unexpected()),
            }
        }
        for (index, requests) in by_index {
            let ids: Vec<Arc<str>> = requests.iter().map(|request| request.id().clone()).collect();
            let results = match write_documents(node.core(), &index, requests, *limit).await {
                Ok(results) => results,
                Err(failure) => vec![Err(failure); ids.len()],
            };
            for (id, result) in ids.into_iter().zip(results) {
                match result.map(|written| written.outcome) {
                    Ok(WriteOutcome::Created) => self.created += 1,
                    Ok(WriteOutcome::Updated) => self.updated += 1,
                    Ok(WriteOutcome::Deleted) => self.deleted += 1,
                    Ok(WriteOutcome::NotFound | WriteOutcome::Noop) => {}
                    Err(failure) if failure.status == 409 => {
                        self.conflicts += 1;
                        if !*proceeds {
                            self.fail(&index, &id, failure);
                        }
                    }
                    Err(failure) => self.fail(&index, &id, failure),
                }
            }
        }
    }

    fn fail(&mut self, index: &str, id: &str, failure: Failure) {
        self.status = self.status.max(failure.status);
        let cause = cause_json(&failure);
        let status = failure.status;
        self.failures.push(json!({ "index": index, "id": id, "cause": cause, "status": status }));
    }

    /// As a task shows it while it runs.
    fn status(&self, wanted: &Wanted) -> Value {
        let mut status = json!({
            "total": self.total,
            "created": self.created,
            "updated": self.updated,
            "deleted": self.deleted,
            "batches": self.batches,
            "version_conflicts": self.conflicts,
            "noops": 0,
            "retries": { "bulk": 0, "search": 0 },
            "throttled_millis": self.throttled.as_millis() as u64,
            "requests_per_second": wanted.task.pace_json(),
            "throttled_until_millis": 0,
        });
        if wanted.task.is_cancelled() {
            status["canceled"] = json!("by user request");
        }
        status
    }

    /// The answer: the status of the end, without what this kind of work never counts.
    fn reply(self, work: &Work, took: Duration, status: Value) -> Reply {
        let mut answer = status;
        answer["took"] = json!(took.as_millis() as u64);
        answer["timed_out"] = json!(false);
        answer["failures"] = json!(self.failures);
        let never: &[&str] = match work {
            Work::Delete => &["created", "updated"],
            Work::Update => &["created"],
            Work::Reindex { .. } => &[],
        };
        if let Some(answer) = answer.as_object_mut() {
            answer.retain(|name, _| !never.contains(&name.as_str()));
        }
        Reply::with(self.status, answer)
    }
}
