//! `_bulk`.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::WriteRequest;
use world::Work;

use super::active::Active;
use super::answer::Reply;
use super::bulk_answer::{Item, render};
use super::bulk_lines::{Action, Op, parse};
use super::call::Call;
use super::document::{
    Refresh, check_id, ensure_index, refuse_follower, refuse_unsupported, refuse_versions, routing,
    wait_for_active, write_limit,
};
use super::error::not_supported;
use super::filter::Filter;
use super::names::{check_alias, no_such_index, write_index};
use super::unchanged::{Condition, Unchanged};
use super::update::{BulkWrite, Update, refuse_parts, write_all};
use engine::Node;
use engine::transport::{Result, Written, unexpected};

/// Parameters beside those of every write.
pub(super) const KNOWN: &[&str] =
    &["_source", "_source_excludes", "_source_includes", "require_data_stream", "type"];

/// Writes for one index, with the place of each in the request.
#[derive(Default)]
struct Group {
    places: Vec<usize>,
    writes: Vec<BulkWrite>,
    /// Whether there is anything but deletes: only then is a missing index made.
    makes: bool,
}

/// `POST /_bulk`, `POST /{index}/_bulk`.
pub(super) async fn bulk(call: Call) -> Result<Reply> {
    let began = call.node.core().env.now();
    refuse_unsupported(&call.query)?;
    refuse_versions(&call.query)?;
    if call.query.flag("require_data_stream", false)? {
        return Err(not_supported("[require_data_stream]", "there are no data streams"));
    }
    if Unchanged::read(&call.query)?.is_some() {
        let instead = "write if_seq_no and if_primary_term into the action lines";
        return Err(not_supported("if_seq_no of a bulk request", instead));
    }
    let refresh = Refresh::read(&call.query)?;
    // What is wrong with the request is no failure of each of its documents.
    Active::read(&call.query, 0)?;
    let limit = write_limit(&call.query)?;
    let (body, index) = (call.body.clone(), call.indices().map(str::to_owned));
    let work = Work::Copy { bytes: body.len() as u64 };
    let parsed = call.node.core().env.work(work, move || parse(&body, index.as_deref())).await;
    let mut actions = parsed?;
    with_dates(&call, &mut actions)?;
    if actions.iter().any(|action| action.op == Op::Update) {
        refuse_parts(&call.query)?;
    }
    let of_all = (routing(&call.query), call.query.flag("require_alias", false)?);
    let (mut items, groups) = group_by_index(&call.node, actions, of_all);
    let names: Vec<String> = groups.keys().map(|name| name.to_string()).collect();
    let mut writes = Vec::with_capacity(groups.len());
    for (index, group) in groups {
        let places = group.places;
        match prepare(&call, &index, group.makes).await {
            Err(failure) => fill_in_results(&mut items, places, Err(failure)),
            Ok(()) => {
                let (node, group) = (call.node.clone(), group.writes);
                let task = call.node.core().env.spawn("writes a bulk", async move {
                    write_all(&node, &index, group, limit).await
                });
                writes.push((places, task));
            }
        }
    }
    for (places, task) in writes {
        fill_in_results(&mut items, places, task.await.unwrap_or_else(|_| Err(unexpected())));
    }
    refresh.carry_out(&call.node, &names).await;
    let took_ms = (call.node.core().env.now() - began).as_millis() as u64;
    let filter = call.query.get("filter_path").map(Filter::parse);
    let with_items = filter.is_none_or(|filter| filter.may_want("items"));
    let state = call.state();
    Ok(Reply::written(200, render(&state, took_ms, &items, with_items, refresh == Refresh::Now)))
}

/// Gives the names of indices the dates of now. As in the field one that is none fails the whole request.
fn with_dates(call: &Call, actions: &mut [Action]) -> Result<()> {
    // Most requests name one index.
    let mut last: Option<(Arc<str>, Arc<str>)> = None;
    for action in actions.iter_mut().filter(|action| action.index.starts_with('<')) {
        let known = last.as_ref().filter(|(name, _)| *name == action.index);
        let dated = match known.map(|(_, dated)| dated.clone()) {
            Some(dated) => dated,
            None => Arc::from(call.with_dates(&action.index)?),
        };
        let name = std::mem::replace(&mut action.index, dated.clone());
        last = Some((name, dated));
    }
    Ok(())
}

/// Makes an index ready for the writes of a bulk request.
async fn prepare(call: &Call, index: &str, makes: bool) -> Result<()> {
    if makes {
        ensure_index(call, index).await?;
    } else {
        let state = call.state();
        if !state.indices.contains_key(index) {
            return Err(no_such_index(&state, index));
        }
        refuse_follower(&call.node, index)?;
    }
    wait_for_active(call, index).await
}

fn fill_in_results(items: &mut [Item], places: Vec<usize>, results: Result<Vec<Result<Written>>>) {
    match results {
        Ok(results) => {
            for (place, result) in places.into_iter().zip(results) {
                items[place].result = Some(result);
            }
        }
        Err(failure) => {
            places.into_iter().for_each(|place| items[place].result = Some(Err(failure.clone())));
        }
    }
}

/// A name of a request, and the index that takes its writes.
type Named = (Arc<str>, Result<Arc<str>>);

/// An item for each action, and the writes by index. An action that is refused has its failure already. An alias stands
/// for the index that takes its writes. What an action says of its routing, and whether it requires an alias, stands
/// above what the request says.
fn group_by_index(
    node: &Node,
    actions: Vec<Action>,
    (routing_of_all, requires_alias): (Option<Arc<str>>, bool),
) -> (Vec<Item>, BTreeMap<Arc<str>, Group>) {
    let state = node.core().state();
    let total = actions.len();
    let mut items = Vec::with_capacity(total);
    let mut groups: BTreeMap<Arc<str>, Group> = BTreeMap::new();
    // The group under way: most requests name one index.
    let mut current: Option<(Arc<str>, Group)> = None;
    let mut named: Option<Named> = None;
    for action in actions {
        let Action { op, index: name, id, routing, source, condition, retries, require_alias } =
            action;
        let routing = routing.or_else(|| routing_of_all.clone());
        // As in the field a deletion asks for none.
        let requires_alias = op != Op::Delete && require_alias.unwrap_or(requires_alias);
        let no_alias = requires_alias.then(|| check_alias(&state, &name).err()).flatten();
        if named.as_ref().is_none_or(|(before, _)| *before != name) {
            let index = match write_index(&state, &name) {
                Ok(index) if *index == *name => Ok(name.clone()),
                found => found.map(Arc::from),
            };
            named = Some((name, index));
        }
        let (name, index) = named.as_ref().expect("it was set above");
        let (index, unwritable) = match index {
            Ok(index) => (index.clone(), None),
            Err(failure) => (name.clone(), Some(failure.clone())),
        };
        let auto_id = id.is_none();
        let id = id.unwrap_or_else(|| Arc::from(node.core().next_id()));
        let place = items.len();
        let (shown, by) = (id.clone(), routing.clone());
        let mut item = Item { op, index: index.clone(), id: shown, routing: by, result: None };
        let refused = no_alias.or(unwritable).or_else(|| check_id(&id).err());
        if let Some(failure) = refused {
            item.result = Some(Err(failure));
            items.push(item);
            continue;
        }
        items.push(item);
        if current.as_ref().is_none_or(|(name, _)| *name != index) {
            if let Some((name, group)) = current.take() {
                groups.insert(name, group);
            }
            let mut group = groups.remove(&index).unwrap_or_default();
            let room = if groups.is_empty() { total - place } else { 0 };
            group.places.reserve(room);
            group.writes.reserve(room);
            current = Some((index, group));
        }
        let (_, group) = current.as_mut().expect("it was set above");
        group.places.push(place);
        // As in the field: the version of a deletion is to be known.
        group.makes |= op != Op::Delete || matches!(condition, Some(Condition::External(_)));
        let of_document = |source| if op == Op::Delete { None } else { Some(source) };
        group.writes.push(match (op, condition) {
            (Op::Update, condition) => {
                let unchanged = match condition {
                    Some(Condition::Unchanged(unchanged)) => Some(unchanged),
                    _ => None,
                };
                let doc_as_upsert = false;
                let update =
                    Update { id, routing, body: source, doc_as_upsert, unchanged, retries };
                BulkWrite::Update(Box::new(update))
            }
            (_, Some(condition)) => {
                BulkWrite::Plain(condition.write(id, of_document(source), routing))
            }
            (Op::Delete, None) => BulkWrite::Plain(WriteRequest::Delete { id, routing }),
            (_, None) => {
                let create = op == Op::Create;
                BulkWrite::Plain(WriteRequest::Index { id, source, auto_id, create, routing })
            }
        });
    }
    groups.extend(current);
    (items, groups)
}
