//! What the embedded engine cannot do of an action, whatever it holds: requests that it has no API for, and whatever is
//! about indices that it does not make.

use super::context::Context;
use super::reader::{Object, Refusal};
use super::{Action, Step};
use crate::load::{BulkPart, Check, Content};

/// APIs that read documents and write them anew: there are no words to do so with in virtual time.
const OF_WORDS: [&str; 3] = ["_delete_by_query", "_reindex", "_update_by_query"];

/// Refuses an operation of a type of which the engine cannot do what it is for.
pub(super) fn check(
    context: &Context<'_>,
    kind: &str,
    object: &Object<'_>,
    action: &mut Action,
) -> Result<(), Refusal> {
    if !context.options.embedded {
        return Ok(());
    }
    // What makes and deletes indices leaves those out by itself.
    if !["create-index", "delete-index"].contains(&kind) {
        check_indices(context, action)?;
    }
    for (method, path, check) in requests(action) {
        let counts = |status| path.starts_with('/') && check.judge(status, b"").is_err();
        let why = match rest::check_request(method, &path) {
            Err(failure) if counts(failure.status) => {
                format!("the embedded engine does not answer {method} {path}: {}", failure.reason)
            }
            Ok(()) if context.options.is_virtual && needs_words(&path) && counts(400) => format!(
                "{method} {path} goes by what documents say, and in virtual time they have sizes and no words"
            ),
            _ => continue,
        };
        let word = ["path", "request-params"].into_iter().find(|word| object.get(word).is_some());
        let word = word.unwrap_or_default();
        return Err(context.reader.refusal(object.at(word), word, why));
    }
    check_search(context, object, action)
}

/// Documents that go into an index that is not made are not sent; a request that names one is refused.
fn check_indices(context: &Context<'_>, action: &mut Action) -> Result<(), Refusal> {
    if let Action::Send(operation) = action
        && let Content::Corpora(parts) = &mut operation.content
    {
        let refused = parts.iter().find_map(|part| context.refused_index(&part.index)).cloned();
        parts.retain(|part| context.refused_index(&part.index).is_none());
        return match refused {
            Some(refusal) if parts.is_empty() || !context.options.skip_refused => Err(refusal),
            _ => Ok(()),
        };
    }
    for (_, path, _) in requests(action) {
        if let Some(refusal) = context.refused_index(named(&path)) {
            return Err(refusal.clone());
        }
    }
    Ok(())
}

/// Whether what is asked for is in the documents.
fn needs_words(path: &str) -> bool {
    let bare = path.split('?').next().unwrap_or_default();
    bare.split('/').any(|part| OF_WORDS.contains(&part))
}

/// The indices that a path names: at its beginning, or as those whose health is asked for.
fn named(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    let below = path.strip_prefix("/_cluster/health").unwrap_or(path);
    below.split('/').nth(1).unwrap_or_default()
}

/// The body of a search that is sent as it is.
fn check_search(
    context: &Context<'_>,
    object: &Object<'_>,
    action: &Action,
) -> Result<(), Refusal> {
    let Action::Send(operation) = action else { return Ok(()) };
    let Content::Pattern { path, bodies, check, .. } = &operation.content else { return Ok(()) };
    let is_search = path.split('?').next().is_some_and(|path| path.ends_with("/_search"));
    let Some(body) = bodies.first().filter(|_| is_search && check.judge(400, b"").is_err()) else {
        return Ok(());
    };
    query::parse_search(body.as_bytes()).map(drop).map_err(|error| {
        let why = format!("the embedded engine does not answer it: {error}");
        context.reader.refusal(object.at("body"), "body", why)
    })
}

fn requests(action: &Action) -> Vec<(&str, String, Check)> {
    match action {
        Action::Send(operation) => match &operation.content {
            Content::Pattern { method, path, check, .. } => {
                vec![(method.as_str(), path.clone(), *check)]
            }
            Content::Scroll { path, .. } => vec![("POST", path.clone(), Check::Search)],
            Content::Corpora(parts) => {
                let path = |index: &str| match index {
                    "" => "/_bulk".to_owned(),
                    index => format!("/{index}/_bulk"),
                };
                let of = |part: &BulkPart| {
                    ("POST", format!("{}?{}", path(&part.index), part.query), Check::Bulk)
                };
                parts.iter().map(of).collect()
            }
        },
        Action::Do(steps) => {
            let requests = steps.iter().flat_map(Step::requests);
            requests.map(|one| (one.method, one.path.clone(), one.check)).collect()
        }
    }
}
