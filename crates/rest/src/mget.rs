//! `_mget`: documents by their ids.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::answer::Reply;
use super::call::{Call, refuse_unknown_keys, truth};
use super::document::{Found, Refresh, check_read, find, found_json, refuse_versions, routing};
use super::error::{bad_body, bad_request, error_json};
use super::names::one_index;
use super::parameters::Query;
use super::wanted::Wanted;
use engine::Node;
use engine::search::AnswerBudget;
use engine::transport::{Failure, Result, unexpected};

/// Documents of one request, at most; those that are read at once, each of which may have 100 MB.
const MAX_DOCUMENTS: usize = 10_000;
const AT_ONCE: usize = 8;

/// A document that is asked for.
struct Asked {
    /// As it was written; maybe an alias.
    name: String,
    id: String,
    routing: Option<Arc<str>>,
    wanted: Wanted,
}

/// `POST /_mget`, `POST /{index}/_mget`.
pub(super) async fn mget(call: Call) -> Result<Reply> {
    let refreshes = check_read(&call.query)?;
    refuse_versions(&call.query)?;
    let mut asked = read(&call.needed_json()?, call.indices(), &call.query)?;
    for one in asked.iter_mut().filter(|one| one.name.starts_with('<')) {
        one.name = call.with_dates(&one.name)?;
    }
    if refreshes {
        let state = call.state();
        let indices = asked.iter().filter_map(|one| one_index(&state, &one.name).ok());
        let indices: BTreeSet<String> = indices.map(str::to_owned).collect();
        Refresh::Now.carry_out(&call.node, &Vec::from_iter(indices)).await;
    }
    let budget = AnswerBudget::default();
    let mut text = b"{\"docs\":[".to_vec();
    let mut asked = asked.into_iter();
    loop {
        let some: Vec<_> = asked
            .by_ref()
            .take(AT_ONCE)
            .map(|one| {
                let node = call.node.clone();
                let env = node.core().env.clone();
                env.spawn("reads a document", async move {
                    let state = node.core().state();
                    let index = one_index(&state, &one.name).map(str::to_owned);
                    let found = match &index {
                        Ok(index) => {
                            find(&node, index, (one.id.clone(), one.routing.as_deref())).await
                        }
                        Err(failure) => Err(failure.clone()),
                    };
                    written(&node, (&index.unwrap_or(one.name), &one.id), found, one.wanted).await
                })
            })
            .collect();
        if some.is_empty() {
            break;
        }
        for task in some {
            let document = task.await.map_err(|_| unexpected())?;
            if !text.ends_with(b"[") {
                text.push(b',');
            }
            budget.add(document.len())?;
            text.extend_from_slice(&document);
        }
    }
    text.extend_from_slice(b"]}");
    Ok(Reply::written(200, text))
}

async fn written(
    node: &Node,
    (index, id): (&str, &str),
    found: Result<Option<Found>>,
    wanted: Wanted,
) -> Vec<u8> {
    match found {
        Ok(found) => found_json(node, (index, id), found, wanted).await,
        Err(failure) => {
            let error = &error_json(&failure)["error"];
            serde_json::json!({ "_index": index, "_id": id, "error": error }).to_string().into()
        }
    }
}

/// Reads `{"docs": [{"_index", "_id", "routing", "_source"}]}` or `{"ids": []}`.
fn read(body: &Value, index: Option<&str>, query: &Query) -> Result<Vec<Asked>> {
    let list = |name: &str| body.get(name).map(|list| list.as_array().ok_or_else(malformed));
    let object = body.as_object().ok_or_else(malformed)?;
    refuse_unknown_keys(object, &["docs", "ids"], "in the body of _mget")?;
    let mut asked = Vec::new();
    for document in list("docs").transpose()?.into_iter().flatten() {
        asked.push(one(document, index, query)?);
    }
    for id in list("ids").transpose()?.into_iter().flatten() {
        asked.push(one(&serde_json::json!({ "_id": id }), index, query)?);
    }
    match asked.len() {
        0 => Err(bad_request("no documents to get; name them in [docs] or [ids]")),
        count if count > MAX_DOCUMENTS => Err(bad_request(format!(
            "[{count}] documents are more than [{MAX_DOCUMENTS}]; ask several times"
        ))),
        _ => Ok(asked),
    }
}

fn one(document: &Value, index: Option<&str>, query: &Query) -> Result<Asked> {
    let mut query = query.clone();
    let (mut name, mut id, mut wanted) = (index.map(str::to_owned), None, None);
    for (key, value) in document.as_object().ok_or_else(malformed)? {
        let text = || value.as_str().map(str::to_owned);
        let name_or_number = || text().or_else(|| value.as_i64().map(|number| number.to_string()));
        match key.as_str() {
            // Clients of Java write null for what is not set, and these of versions.
            _ if value.is_null() => {}
            "version" if *value == -3 => {}
            "version_type" if value == "internal" => {}
            "_index" => name = Some(text().ok_or_else(malformed)?),
            "_id" => id = name_or_number(),
            // Nothing is none.
            "routing" | "_routing" if value == "" => {}
            // That of one document stands above that of the request.
            "routing" | "_routing" => {
                query.set("routing", &name_or_number().ok_or_else(malformed)?)
            }
            // Every document has this type.
            "_type" => {}
            // It stands above that of the request; a truth value may be a text here.
            "_source" => {
                let said = truth(value).map_or_else(|| value.to_string(), |yes| yes.to_string());
                wanted = Some(Wanted::parse(&said)?);
            }
            other => {
                let reason = format!(
                    "[{other}] of a document of _mget is not supported by this engine; leave it out"
                );
                return Err(bad_request(reason));
            }
        }
    }
    let name = name.ok_or_else(|| bad_request("index is missing for a document of _mget"))?;
    let id = id.ok_or_else(|| bad_request("id is missing for a document of _mget"))?;
    let wanted = wanted.unwrap_or_else(|| Wanted::read(&query));
    Ok(Asked { name, id, routing: routing(&query), wanted })
}

fn malformed() -> Failure {
    bad_body(
        "write {\"docs\": [{\"_index\": \"a\", \"_id\": \"1\", \"_source\": true}]} or {\"ids\": [\"1\"]}",
    )
}
