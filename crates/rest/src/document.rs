//! Single documents.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use store::{WriteOutcome, WriteRequest};

use super::active::Active;
use super::answer::Reply;
use super::call::Call;
use super::error::{bad_body, bad_request, not_supported};
use super::names::{check_alias, no_such_index, one_index, write_index};
use super::parameters::Query;
use super::spread::{AskedCopy, ask, coming_up, on_shards, primaries, started};
use super::unchanged::{Condition, Unchanged, may_be_equal};
use super::wanted::{Wanted, with_source};
use engine::Node;
use engine::replication::{WRITE_TIMEOUT, write_documents};
use engine::search::Preference;
use engine::state::{ClusterState, Event, IndexMeta, Made};
use engine::transport::{Failure, Result, ShardAction, ShardAnswer, Written, unexpected};

/// Parameters of writes. Those of [`UNSUPPORTED`] are known, so that they are refused in words.
pub(super) const WRITE: &[&str] = &[
    "if_primary_term if_seq_no refresh routing timeout version version_type wait_for_active_shards",
];
/// A parameter of writes that may make an index.
pub(super) const REQUIRE_ALIAS: &[&str] = &["require_alias"];
/// A parameter of writes of whole documents.
pub(super) const PIPELINE: &[&str] = &["pipeline"];
/// A parameter of writes of one whole document.
pub(super) const OP_TYPE: &[&str] = &["op_type"];
/// Parameters of reads.
pub(super) const READ: &[&str] = &[
    "_source _source_excludes _source_includes preference realtime refresh routing stored_fields",
];
/// Parameters of reads that show the version.
pub(super) const VERSION: &[&str] = &["version version_type"];

const UNSUPPORTED: [&str; 2] = ["lang", "stored_fields"];

/// The name of no pipeline.
pub(super) const NO_PIPELINE: &str = "_none";

/// How long a write waits for copies, and a read for its shard.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest `_id`, as in the field.
const MAX_ID_BYTES: usize = 512;

/// Whether and how a write is made visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refresh {
    No,
    /// Before the answer. `wait_for` is the same here: nobody refreshes by the clock, so there is nothing to
    /// wait for.
    Now,
    WaitFor,
}

impl Refresh {
    pub(super) fn read(query: &Query) -> Result<Refresh> {
        match query.get("refresh") {
            None | Some("false") => Ok(Refresh::No),
            Some("" | "true") => Ok(Refresh::Now),
            Some("wait_for") => Ok(Refresh::WaitFor),
            Some(other) => Err(bad_request(format!("unknown value for refresh: [{other}]"))),
        }
    }

    /// Refreshes every copy of these indices. A copy that fails at it is reported to the manager by its node.
    pub(super) async fn carry_out(self, node: &Node, indices: &[String]) {
        if self != Refresh::No {
            let state = node.core().state();
            let places = [started(&state, indices), coming_up(&state, indices)].concat();
            on_shards(node, places, &ShardAction::Refresh, PATIENCE).await;
        }
    }
}

/// Refuses parameters whose effect the caller would miss.
pub(super) fn refuse_unsupported(query: &Query) -> Result<()> {
    if query.get("pipeline").is_some_and(|name| name != NO_PIPELINE) {
        return Err(not_supported("parameter [pipeline]", "leave it out, or send _none"));
    }
    match UNSUPPORTED.iter().find(|name| query.get(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(not_supported(&format!("parameter [{name}]"), "leave it out")),
    }
}

/// Refuses versions where there is nothing that they could be of.
pub(super) fn refuse_versions(query: &Query) -> Result<()> {
    match ["version", "version_type"].into_iter().find(|name| query.get(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(not_supported(&format!("parameter [{name}] here"), "leave it out")),
    }
}

/// Refuses of a read what it would not do. Answers whether what it reads is refreshed before.
pub(super) fn check_read(query: &Query) -> Result<bool> {
    refuse_unsupported(query)?;
    // Reads are always realtime, and always of the primary.
    if !query.flag("realtime", true)? {
        return Err(not_supported("[realtime] false", "search with [ids] for what is searchable"));
    }
    let preference = query.get("preference").unwrap_or_default();
    // OpenSearch has these two, and they are what happens.
    if !matches!(preference, "_primary" | "_primary_first") {
        Preference::parse(preference)?;
    }
    if preference.starts_with("_only_") || preference.starts_with("_shards:") {
        let what = format!("[preference] {preference} of a read by id");
        let instead = "leave it out: the primary answers, which has every document";
        return Err(not_supported(&what, instead));
    }
    query.flag("refresh", false)
}

/// `routing` of a request for documents; as in the field the empty one is none.
pub(super) fn routing(query: &Query) -> Option<Arc<str>> {
    query.get("routing").filter(|text| !text.is_empty()).map(Arc::from)
}

/// Refuses what is no `_id`.
pub(super) fn check_id(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(bad_request("if _id is specified it must not be empty"));
    }
    if id.len() > MAX_ID_BYTES {
        let len = id.len();
        return Err(bad_request(format!(
            "id [{id}] is too long, must be no longer than {MAX_ID_BYTES} bytes but was: {len}"
        )));
    }
    Ok(())
}

/// As [`ensure_index_on`], within the request's limits.
pub(super) async fn ensure_index(call: &Call, index: &str) -> Result<()> {
    if call.state().indices.contains_key(index) {
        return refuse_follower(&call.node, index);
    }
    // A request that is refused makes no index.
    Refresh::read(&call.query)?;
    Active::read(&call.query, 0)?;
    write_limit(&call.query)?;
    let (node, name) = (call.node.clone(), index.to_owned());
    let making = async move { ensure_index_on(&node, &name).await };
    match call.within_limits("makes an index", making).await? {
        true => Ok(()),
        false => {
            let reason = format!("[{index}] was not made within the timeout; try again");
            Err(Failure::new(503, "process_cluster_event_timeout_exception", reason))
        }
    }
}

/// Makes sure that an index can be written to; makes it with defaults where there is none.
pub(super) async fn ensure_index_on(node: &Node, index: &str) -> Result<()> {
    if node.core().state().indices.contains_key(index) {
        return refuse_follower(node, index);
    }
    let event = Event::CreateIndex { index: index.to_owned(), made: Made::default() };
    match node.core().submit(event).await {
        // Somebody else was faster.
        Err(failure) if failure.kind != "resource_already_exists_exception" => Err(failure),
        _ => refuse_follower(node, index),
    }
}

/// A follower's documents are its leader's.
pub(super) fn refuse_follower(node: &Node, index: &str) -> Result<()> {
    let state = node.core().state();
    let meta = state.indices.get(index).ok_or_else(|| no_such_index(&state, index))?;
    match &meta.leader {
        None => Ok(()),
        Some(leader) => {
            let reason = format!(
                "[{index}] follows [{}] of [{}] and takes no writes of its own; write to the leader",
                leader.leader_index, leader.remote_cluster
            );
            Err(Failure::new(403, "status_exception", reason))
        }
    }
}

/// `_shards` of a write: the copies of its shard, and those that have it.
pub(super) fn copies_written(state: &ClusterState, index: &str, shard: u32) -> (usize, usize) {
    let Some(routing) = state.shard(index, shard) else { return (1, 1) };
    let have_it = routing.assigned().filter(|copy| copy.in_sync).count();
    (routing.copies.len(), have_it.max(1))
}

/// The words and the status of an outcome.
pub(super) fn result_of(outcome: WriteOutcome) -> (&'static str, u16) {
    match outcome {
        WriteOutcome::Created => ("created", 201),
        WriteOutcome::Updated => ("updated", 200),
        WriteOutcome::Deleted => ("deleted", 200),
        WriteOutcome::NotFound => ("not_found", 404),
        WriteOutcome::Noop => ("noop", 200),
    }
}

/// `PUT /{index}/_doc/{id}`, `POST /{index}/_doc`.
pub(super) async fn index(call: Call) -> Result<Reply> {
    // In any case, as in the field.
    let create = match call.query.get("op_type").map(str::to_ascii_lowercase).as_deref() {
        None | Some("index") => false,
        Some("create") => true,
        Some(other) => {
            return Err(bad_request(format!("unknown op_type [{other}]; write index or create")));
        }
    };
    put(call, create).await
}

/// `PUT /{index}/_create/{id}`.
pub(super) async fn create(call: Call) -> Result<Reply> {
    let op_type = call.query.get("op_type");
    if let Some(other) = op_type.filter(|of| !of.eq_ignore_ascii_case("create")) {
        return Err(bad_request(format!("opType must be 'create', found: [{other}]")));
    }
    put(call, true).await
}

async fn put(call: Call, create: bool) -> Result<Reply> {
    refuse_unsupported(&call.query)?;
    if call.body.is_empty() {
        return Err(bad_body("request body is required"));
    }
    let (id, auto_id) = match call.part("id") {
        Some(id) => {
            check_id(id)?;
            (Arc::from(id), false)
        }
        None => (Arc::from(call.node.core().next_id()), true),
    };
    let condition = Condition::read(&call.query, create || auto_id)?;
    let (source, routing) = (call.body.clone(), routing(&call.query));
    let request = match condition {
        None => WriteRequest::Index { id, source, auto_id, create, routing },
        Some(condition) => condition.write(id, Some(source), routing),
    };
    let index = index_to_fill(&call)?;
    ensure_index(&call, &index).await?;
    write(&call, index, request).await
}

/// The index that takes documents of this request, and may have to be made.
pub(super) fn index_to_fill(call: &Call) -> Result<String> {
    let state = call.state();
    if call.query.flag("require_alias", false)? {
        check_alias(&state, call.index())?;
    }
    write_index(&state, call.index()).map(str::to_owned)
}

/// `DELETE /{index}/_doc/{id}`.
pub(super) async fn delete(call: Call) -> Result<Reply> {
    refuse_unsupported(&call.query)?;
    let id = call.part("id").unwrap_or_default();
    check_id(id)?;
    let condition = Condition::read(&call.query, false)?;
    let index = write_index(&call.state(), call.index())?.to_owned();
    let (id, routing) = (Arc::from(id), routing(&call.query));
    let request = match condition {
        None => WriteRequest::Delete { id, routing },
        Some(condition) => condition.write(id, None, routing),
    };
    match condition {
        // As in the field: the version of the deletion is to be known.
        Some(Condition::External(_)) => ensure_index(&call, &index).await?,
        _ => refuse_follower(&call.node, &index)?,
    }
    write(&call, index, request).await
}

async fn write(call: &Call, index: String, request: WriteRequest) -> Result<Reply> {
    let refresh = Refresh::read(&call.query)?;
    let (id, routing) = (request.id().clone(), request.routing().cloned());
    wait_for_active(call, &index).await?;
    let limit = write_limit(&call.query)?;
    let written = write_one(&call.node, (&index, limit), request).await?;
    refresh.carry_out(&call.node, std::slice::from_ref(&index)).await;
    let document = (&*id, routing.as_deref());
    let (status, answer) = written_json(&call.state(), &index, document, written, refresh);
    Ok(Reply { location: location(status, &index, document), ..Reply::with(status, answer) })
}

pub(super) async fn write_one(
    node: &Node,
    (index, limit): (&str, Duration),
    request: WriteRequest,
) -> Result<Written> {
    let written = write_documents(node.core(), index, vec![request], limit).await?;
    written.into_iter().next().ok_or_else(unexpected)?
}

/// How long a write waits for its primary, and for other copies that it wants.
pub(super) fn write_limit(query: &Query) -> Result<Duration> {
    query.duration("timeout", WRITE_TIMEOUT)
}

/// Waits as a write must that wants more than its primary.
pub(super) async fn wait_for_active(call: &Call, index: &str) -> Result<()> {
    // A write waits for its primary in any case.
    let active = Active::read(&call.query, 0)?;
    let limit = write_limit(&call.query)?;
    wait_until_active(&call.node, index, (active, limit)).await
}

/// Waits until an index has so many copies; fails where that takes too long.
pub(super) async fn wait_until_active(
    node: &Node,
    index: &str,
    (active, limit): (Active, Duration),
) -> Result<()> {
    if active.wait(node, index, limit).await {
        return Ok(());
    }
    let reason =
        format!("[{index}] has not enough active shard copies: {active:?} within {limit:?}");
    Err(Failure::new(503, "unavailable_shards_exception", reason))
}

/// The answer to a write, and its status.
pub(super) fn written_json(
    state: &ClusterState,
    index: &str,
    (id, routing): (&str, Option<&str>),
    written: Written,
    refresh: Refresh,
) -> (u16, Value) {
    let (result, status) = result_of(written.outcome);
    let shard = |meta: &Arc<IndexMeta>| meta.shard_of(routing.unwrap_or(id));
    let (total, successful) = match written.outcome {
        WriteOutcome::Noop => (0, 0),
        _ => copies_written(state, index, state.indices.get(index).map_or(0, shard)),
    };
    let mut answer = json!({
        "_index": index,
        "_id": id,
        "_version": written.version,
        "result": result,
        "_shards": { "total": total, "successful": successful, "failed": 0 },
        "_seq_no": written.seq_no,
        "_primary_term": written.primary_term,
    });
    if refresh == Refresh::Now {
        answer["forced_refresh"] = json!(true);
    }
    (status, answer)
}

/// What stands in a path as it is: what Java's `URLEncoder`, by which the field writes `Location`, leaves so.
const IN_LOCATION: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'*').remove(b'_');

/// The path of a document that was created; none by any other status.
///
/// A space is `%20`: the field writes `+`, which is a plus where a path is read.
pub(super) fn location(
    status: u16,
    index: &str,
    (id, routing): (&str, Option<&str>),
) -> Option<String> {
    let encoded = |text| utf8_percent_encode(text, IN_LOCATION);
    (status == 201).then(|| {
        let by = routing.map(|routing| format!("?routing={}", encoded(routing)));
        format!("/{}/_doc/{}{}", encoded(index), encoded(id), by.unwrap_or_default())
    })
}

/// A document that was read.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) version: u64,
    pub(super) seq_no: u64,
    pub(super) primary_term: u64,
    /// Empty in the virtual world, once only its size is kept.
    pub(super) source: Bytes,
    /// `_routing`; none where it goes by its id.
    pub(super) routing: Option<Arc<str>>,
}

impl From<&Found> for Unchanged {
    fn from(found: &Found) -> Unchanged {
        Unchanged { seq_no: found.seq_no, primary_term: found.primary_term }
    }
}

/// The document of an id and a routing as its primary has it, searchable or not yet.
pub(super) async fn find(
    node: &Node,
    index: &str,
    (id, routing): (String, Option<&str>),
) -> Result<Option<Found>> {
    let state = node.core().state();
    let meta = state.indices.get(index).ok_or_else(|| no_such_index(&state, index))?;
    if meta.closed {
        return Err(Failure::index_closed(index, &meta.uuid));
    }
    if routing.is_none() && meta.requires_routing() {
        return Err(Failure::routing_missing(index, &id));
    }
    let shard = meta.shard_of(routing.unwrap_or(&id));
    let of_shard = |place: &AskedCopy| place.shard == shard;
    let place = primaries(&state, &[index.to_owned()]).into_iter().find(of_shard);
    let place = place.ok_or_else(|| no_such_index(&state, index))?;
    let is_here = || node.core().state().indices.contains_key(index);
    let answer = match ask(node, &place, ShardAction::Get { id }, PATIENCE).await {
        Err(failure) if failure.status == 404 && is_here() => {
            let why = "is on a node that does not know of it yet; try again";
            return Err(Failure::unavailable(index, shard, why));
        }
        answer => answer?,
    };
    match answer {
        ShardAnswer::Get(found) => Ok(found.map(|(version, seq_no, source, routing)| Found {
            version,
            seq_no,
            primary_term: state.shard(index, shard).map_or(1, |shard| shard.primary_term),
            source,
            routing,
        })),
        _ => Err(unexpected()),
    }
}

/// The index that was meant, and the document if it has it.
async fn read(call: &Call) -> Result<(String, Option<Found>)> {
    let refreshes = check_read(&call.query)?;
    let version = expected_version(&call.query)?;
    let index = one_index(&call.state(), call.index())?.to_owned();
    if refreshes {
        Refresh::Now.carry_out(&call.node, std::slice::from_ref(&index)).await;
    }
    let id = call.part("id").unwrap_or_default().to_owned();
    let routing = routing(&call.query);
    let found = find(&call.node, &index, (id.clone(), routing.as_deref())).await?;
    let other = |found: &&Found| version.is_some_and(|version| version != found.version);
    if let Some(Found { version: now, .. }) = found.as_ref().filter(other) {
        let given = version.unwrap_or_default();
        let reason = format!(
            "[{id}]: version conflict, current version [{now}] is different than the one provided [{given}]"
        );
        return Err(Failure::new(409, "version_conflict_engine_exception", reason));
    }
    Ok((index, found))
}

/// The version that a document must have to be read, whoever counts it.
fn expected_version(query: &Query) -> Result<Option<u64>> {
    may_be_equal(query.get("version_type"))?;
    query.number("version")
}

/// `GET /{index}/_doc/{id}`. The source is sent as it came, not written anew.
pub(super) async fn get(call: Call) -> Result<Reply> {
    let id = call.part("id").unwrap_or_default();
    let (index, found) = read(&call).await?;
    let status = if found.is_some() { 200 } else { 404 };
    let text = found_json(&call.node, (&index, id), found, Wanted::read(&call.query)).await;
    Ok(Reply::written(status, text))
}

/// A document as it is answered, or that there is none.
pub(super) async fn found_json(
    node: &Node,
    (index, id): (&str, &str),
    found: Option<Found>,
    wanted: Wanted,
) -> Vec<u8> {
    let Some(found) = found else {
        return json!({ "_index": index, "_id": id, "found": false }).to_string().into_bytes();
    };
    let mut head = json!({
        "_index": index,
        "_id": id,
        "_version": found.version,
        "_seq_no": found.seq_no,
        "_primary_term": found.primary_term,
        "found": true,
    });
    if let Some(routing) = &found.routing {
        head["_routing"] = json!(**routing);
    }
    with_source(node, &head, (found.source, wanted)).await
}

/// `GET /{index}/_source/{id}`.
pub(super) async fn get_source(call: Call) -> Result<Reply> {
    let (index, found) = read(&call).await?;
    let sent = match found {
        Some(found) => Wanted::read(&call.query).sent(&call.node, found.source).await,
        None => None,
    };
    match sent {
        Some(source) => Ok(Reply::written(200, source)),
        None => {
            let id = call.part("id").unwrap_or_default();
            let reason = format!("Document not found [{index}]/[{id}]");
            Err(Failure::new(404, "resource_not_found_exception", reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text).unwrap()
    }

    #[test]
    fn ids_have_bounds() {
        assert!(check_id("a").is_ok());
        assert!(check_id("").is_err());
        assert!(check_id(&"x".repeat(512)).is_ok());
        assert!(check_id(&"x".repeat(513)).unwrap_err().reason.ends_with("but was: 513"));
    }

    #[test]
    fn a_document_that_was_created_has_a_path() {
        let path = |id, routing| location(201, "a-1", (id, routing)).unwrap();
        assert_eq!(path("x_1.2*", None), "/a-1/_doc/x_1.2*");
        assert_eq!(
            path("a/b c?d+é", Some("r&s")),
            "/a-1/_doc/a%2Fb%20c%3Fd%2B%C3%A9?routing=r%26s"
        );
        assert_eq!(location(200, "a", ("1", None)), None);
    }

    #[test]
    fn reads_refresh_and_refuses_what_would_be_missed() {
        for (text, refresh) in [
            ("", Refresh::No),
            ("refresh", Refresh::Now),
            ("refresh=true", Refresh::Now),
            ("refresh=wait_for", Refresh::WaitFor),
            ("refresh=false", Refresh::No),
        ] {
            assert_eq!(Refresh::read(&query(text)), Ok(refresh));
        }
        assert!(Refresh::read(&query("refresh=maybe")).is_err());
        let said = refuse_unsupported(&query("pipeline=a")).unwrap_err().reason;
        assert!(said.contains("[pipeline]"), "{said}");
        assert!(refuse_unsupported(&query("pipeline=_none")).is_ok());
        assert!(refuse_unsupported(&query("refresh=true&timeout=1s&routing=a")).is_ok());
        assert_eq!(routing(&query("routing=a,b")).as_deref(), Some("a,b"));
        assert_eq!(routing(&query("routing=")), None);
        assert_eq!(check_read(&query("refresh&realtime=true")), Ok(true));
        for fine in ["_local", "_primary", "_primary_first"] {
            assert_eq!(check_read(&query(&format!("preference={fine}"))), Ok(false));
        }
        for bad in ["_only_local", "_only_nodes:n1", "_shards:1", "_replica"] {
            assert_eq!(check_read(&query(&format!("preference={bad}"))).unwrap_err().status, 400);
        }
        let said = check_read(&query("realtime=false")).unwrap_err().reason;
        assert!(said.contains("[realtime] false is not supported"), "{said}");
    }
}
