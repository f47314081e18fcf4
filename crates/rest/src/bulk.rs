//! `_bulk`.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::WriteRequest;
use world::Work;

use super::answer::Reply;
use super::bulk_answer::{Item, render};
use super::bulk_lines::{Action, Op, parse};
use super::call::Call;
use super::document::{
    Refresh, check_id, ensure_index, refuse_follower, refuse_unsupported, wait_for_active,
};
use super::error::not_supported;
use super::filter::Filter;
use super::names::{no_such_index, write_index};
use engine::Node;
use engine::replication::write_documents;
use engine::transport::unexpected;
use engine::transport::{Failure, Written};

/// Parameters beside those of every write.
pub(super) const KNOWN: &[&str] =
    &["_source", "_source_excludes", "_source_includes", "require_data_stream", "type"];

/// Writes for one index, with the place of each in the request.
#[derive(Default)]
struct Group {
    places: Vec<usize>,
    requests: Vec<WriteRequest>,
    /// Whether there is anything but deletes: only then is a missing index made.
    makes: bool,
}

/// `POST /_bulk`, `POST /{index}/_bulk`.
pub(super) async fn bulk(call: Call) -> Result<Reply, Failure> {
    let began = call.node.core().env.now();
    refuse_unsupported(&call.query)?;
    let refresh = Refresh::read(&call.query)?;
    let (body, index) = (call.body.clone(), call.indices().map(str::to_owned));
    let work = Work::Copy { bytes: body.len() as u64 };
    let actions = call.node.core().env.work(work, move || parse(&body, index.as_deref())).await?;
    let (mut items, groups) = group_by_index(&call.node, actions);
    let names: Vec<String> = groups.keys().map(|name| name.to_string()).collect();
    let mut writes = Vec::with_capacity(groups.len());
    for (index, group) in groups {
        let places = group.places;
        match prepare(&call, &index, group.makes).await {
            Err(failure) => fill_in_results(&mut items, places, Err(failure)),
            Ok(()) => {
                let (node, requests) = (call.node.clone(), group.requests);
                let task = call.node.core().env.spawn("writes a bulk", async move {
                    write_documents(node.core(), &index, requests).await
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

/// Makes an index ready for the writes of a bulk request.
async fn prepare(call: &Call, index: &str, makes: bool) -> Result<(), Failure> {
    if makes {
        ensure_index(&call.node, index).await?;
    } else {
        let state = call.state();
        if !state.indices.contains_key(index) {
            return Err(no_such_index(&state, index));
        }
        refuse_follower(&call.node, index)?;
    }
    wait_for_active(call, index).await
}

fn fill_in_results(
    items: &mut [Item],
    places: Vec<usize>,
    results: Result<Vec<Result<Written, Failure>>, Failure>,
) {
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
type Named = (Arc<str>, Result<Arc<str>, Failure>);

/// An item for each action, and the writes by index. An action that is refused has its failure already. An alias stands
/// for the index that takes its writes.
fn group_by_index(node: &Node, actions: Vec<Action>) -> (Vec<Item>, BTreeMap<Arc<str>, Group>) {
    let state = node.core().state();
    let total = actions.len();
    let mut items = Vec::with_capacity(total);
    let mut groups: BTreeMap<Arc<str>, Group> = BTreeMap::new();
    // The group under way: most requests name one index.
    let mut current: Option<(Arc<str>, Group)> = None;
    let mut named: Option<Named> = None;
    for Action { op, index: name, id, source } in actions {
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
        let mut item = Item { op, index: index.clone(), id: id.clone(), result: None };
        let refused = match op {
            Op::Update => Some(update_refused()),
            _ => unwritable.or_else(|| check_id(&id).err()),
        };
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
            group.requests.reserve(if groups.is_empty() { total - place } else { 0 });
            current = Some((index, group));
        }
        let (_, group) = current.as_mut().expect("it was set above");
        group.places.push(place);
        group.makes |= op != Op::Delete;
        group.requests.push(match op {
            Op::Delete => WriteRequest::Delete { id },
            _ => WriteRequest::Index { id, source, auto_id, create: op == Op::Create },
        });
    }
    groups.extend(current);
    (items, groups)
}

fn update_refused() -> Failure {
    not_supported("a partial update", "send the whole document with index")
}
