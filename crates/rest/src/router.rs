//! From a request to its handler.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::OnceLock;

use bytes::Bytes;
use record::names::nearest;

use super::actions;
use super::answer::{Look, Reply};
use super::call::{Call, manager_limit};
use super::date_names::with_dates;
use super::error::bad_request;
use super::parameters::{LookedUp, Query, percent_decode};
use super::routes::{Handler, ROUTES, Route};
use super::surface::{Refused, refused};
use super::{RestRequest, RestResponse};
use engine::Node;
use engine::transport::{Failure, Result};
use world::LocalFuture;

/// `http.max_initial_line_length`. It bounds what lists of patterns cost that stand in a path.
const MAX_LINE_BYTES: usize = 4096;

fn too_long() -> Failure {
    let reason = format!(
        "an HTTP line is larger than {MAX_LINE_BYTES} bytes (http.max_initial_line_length); send the rest in the body"
    );
    Failure::new(400, "too_long_http_line_exception", reason)
}

/// What stands at a path, by method.
#[derive(Default)]
struct Methods {
    served: BTreeMap<&'static str, &'static Route>,
    refused: BTreeMap<&'static str, &'static Refused>,
}

fn router() -> &'static matchit::Router<Methods> {
    static ROUTER: OnceLock<matchit::Router<Methods>> = OnceLock::new();
    ROUTER.get_or_init(|| {
        let mut by_path: BTreeMap<&str, Methods> = BTreeMap::new();
        for route in ROUTES {
            for path in route.paths {
                let methods = by_path.entry(path).or_default();
                for method in route.methods {
                    let before = methods.served.insert(method, route);
                    assert!(before.is_none(), "{method} {path} stands twice in the table");
                }
            }
        }
        for api in refused() {
            for path in &api.paths {
                let methods = by_path.entry(path).or_default();
                for method in &api.methods {
                    let twice = methods.served.contains_key(method)
                        || methods.refused.insert(method, api).is_some();
                    assert!(!twice, "{method} {path} is refused twice, or served");
                }
            }
        }
        let mut router = matchit::Router::new();
        for (path, methods) in by_path {
            router.insert(path, methods).expect("the paths of the table go together");
        }
        router
    })
}

fn split(path: &str) -> (&str, &str) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let trimmed = path.trim_end_matches('/');
    (if trimmed.is_empty() { "/" } else { trimmed }, query)
}

/// Whether a request is lines of documents, each of which is answered.
pub(super) fn is_bulk(path: &str) -> bool {
    split(path).0.ends_with("/_bulk")
}

/// What matches a path. Names of indices do not begin with `_`, but `_all` does.
fn find(path: &str) -> Option<matchit::Match<'static, '_, &'static Methods>> {
    let found = router().at(path).ok()?;
    let index = found.params.get("index").unwrap_or_default();
    (!index.starts_with('_') || index.starts_with("_all")).then_some(found)
}

/// The methods that a path allows; none for an unknown one.
pub(super) fn allowed(path: &str) -> Vec<&'static str> {
    find(split(path).0)
        .map(|found| found.value.served.keys().copied().collect())
        .unwrap_or_default()
}

/// Checks that there is an API for a request, which knows its parameters.
///
/// # Errors
/// What its client would be answered.
pub fn check_request(method: &str, path: &str) -> Result<()> {
    if path.len() > MAX_LINE_BYTES {
        return Err(too_long());
    }
    let (path, query) = split(path);
    let query = Query::parse(query)?;
    Look::read(&query, path.starts_with("/_cat"))?;
    route(method, path, &query).map(drop)
}

/// Answers one request. Never fails: what goes wrong is an answer, too.
pub fn handle(node: &Node, request: RestRequest) -> LocalFuture<'_, RestResponse> {
    handle_as(node, request, None)
}

/// The same; and the names of the parameters that were looked up for it, given or not. By these it is known which of
/// those that a route knows its handler reads.
pub async fn handle_and_list_parameters(
    node: &Node,
    request: RestRequest,
) -> (RestResponse, BTreeSet<String>) {
    let names = LookedUp::default();
    let response = answer(node, request, None, Some(names.clone())).await;
    (response, names.take())
}

/// Answers a request of a client that may have sent an `X-Opaque-Id`.
pub(super) fn handle_as(
    node: &Node,
    request: RestRequest,
    opaque_id: Option<String>,
) -> LocalFuture<'_, RestResponse> {
    Box::pin(async move {
        node.passes().await;
        let response = answer(node, request, opaque_id, None).await;
        node.passes().await;
        response
    })
}

async fn answer(
    node: &Node,
    mut request: RestRequest,
    opaque_id: Option<String>,
    looked_up: Option<LookedUp>,
) -> RestResponse {
    // Only the handler has it, so that it can let it go once that is read.
    let body = std::mem::take(&mut request.body);
    let (path, query) = split(&request.path);
    let is_head = request.method == "HEAD";
    if request.path.len() > MAX_LINE_BYTES {
        return Look::default().render(Err(too_long()), is_head);
    }
    let is_cat = path.starts_with("/_cat");
    let read = Query::parse(query).and_then(|mut query| {
        query.looked_up = looked_up;
        Ok((Look::read(&query, is_cat)?, query))
    });
    let (look, query) = match read {
        Ok(read) => read,
        Err(failure) => return Look::default().render(Err(failure), is_head),
    };
    let prepared = prepare(node, &request.method, (path, query), body, opaque_id);
    let reply = match prepared {
        Ok((run, call)) => until_cancelled(run, call).await,
        Err(failure) => Err(failure),
    };
    look.render(reply, is_head)
}

/// Runs a handler; one that breaks off where its client goes away does so where its task is cancelled, too.
async fn until_cancelled(run: Handler, call: Call) -> Result<Reply> {
    let task = call.task.clone();
    let cancelled = async {
        match actions::breaks_off(task.action()) {
            true => task.cancelled().await,
            false => pending().await,
        }
    };
    tokio::select! {
        biased;
        reply = run(call) => reply,
        () = cancelled => {
            let reason = "cancelled task with reason: by user request";
            Err(Failure::new(400, "task_cancelled_exception", reason))
        }
    }
}

/// Whether a node answers this before it has joined its cluster: it says how it is, and nothing of what there is.
fn answers_alone(path: &str) -> bool {
    path == "/" || path.starts_with("/_cluster/health") || path.starts_with("/_nodes")
}

/// The route of a request, and the parts of its path.
fn route<'p>(
    method: &str,
    path: &'p str,
    query: &Query,
) -> Result<(&'static Route, matchit::Params<'static, 'p>)> {
    let found = find(path).ok_or_else(|| unknown(path, method))?;
    let methods = found.value;
    let route = methods.served.get(method).copied().ok_or_else(|| {
        // `HEAD` asks what `GET` does.
        let refused = methods.refused.get(method).or_else(|| methods.refused.values().next());
        let nothing_else = methods.served.is_empty() || methods.refused.contains_key(method);
        if let Some(refused) = refused.filter(|_| nothing_else) {
            return refused.failure();
        }
        let allowed = methods.served.keys().copied().collect::<Vec<_>>().join(", ");
        let reason = format!(
            "Incorrect HTTP method for uri [{path}] and method [{method}], allowed: [{allowed}]"
        );
        Failure::new(405, "method_not_allowed_exception", reason)
    })?;
    query.check(path, route.known)?;
    Ok((route, found.params))
}

fn prepare(
    node: &Node,
    method: &str,
    (path, mut query): (&str, Query),
    mut body: Bytes,
    opaque_id: Option<String>,
) -> Result<(Handler, Call)> {
    if method == "GET" && body.is_empty() {
        body = query.take_body()?;
    }
    let (route, params) = route(method, path, &query)?;
    if !node.state().is_joined() && !answers_alone(path) {
        let reason = "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];";
        return Err(Failure::new(503, "cluster_block_exception", reason));
    }
    if !route.reads_body() {
        if !matches!(body.trim_ascii(), b"" | b"{}") {
            let reason = format!(
                "request [{method} {path}] does not support having a body; send what it says as parameters"
            );
            return Err(bad_request(reason));
        }
        // The handler may wait for hours.
        body = Bytes::new();
    }
    let decoded = |(name, part): (&str, &str)| Ok((name.to_owned(), percent_decode(part)?));
    let mut parts = params.iter().map(decoded).collect::<Result<BTreeMap<_, _>>>()?;
    let now_ms = node.core().env.epoch_ms() as i64;
    for name in ["index", "new_index"] {
        if let Some(part) = parts.get_mut(name).filter(|part| part.contains('<')) {
            *part = with_dates(part, now_ms)?;
        }
    }
    let manager_limit = manager_limit(&query)?;
    let index = parts.get("index").map(String::as_str);
    let task = actions::begin(node, route.names, index, &body, opaque_id);
    Ok((route.handler(), Call { node: node.clone(), parts, query, body, manager_limit, task }))
}

/// No route: says so, and which one was probably meant.
fn unknown(path: &str, method: &str) -> Failure {
    let known = ROUTES.iter().flat_map(|route| route.paths.iter().copied());
    let plain = known.filter(|known| known.len() > 1 && !known.contains('{'));
    let hint = match nearest(path, plain).first() {
        Some(near) => format!("; did you mean [{near}]?"),
        None => String::new(),
    };
    bad_request(format!("no handler found for uri [{path}] and method [{method}]{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_to_its_own_route() {
        for route in ROUTES {
            for path in route.paths {
                let concrete = path.replace("{index}", "logs").replace(['{', '}'], "");
                let found = find(&concrete).unwrap_or_else(|| panic!("{concrete}"));
                for method in route.methods {
                    assert!(found.value.served[method].paths.contains(path), "{method} {concrete}");
                }
            }
        }
    }

    #[test]
    fn what_changes_something_is_a_task_by_its_own_name() {
        let changes = ROUTES.iter().filter(|route| !route.methods.contains(&"GET"));
        for route in changes.filter(|route| route.methods != ["HEAD"]) {
            assert_ne!(actions::action(route.names), actions::STATE, "{}", route.names);
        }
    }

    #[test]
    fn parts_may_hold_an_encoded_slash() {
        let found = find("/logs/_doc/a%2Fb").unwrap();
        assert_eq!(found.params.get("id"), Some("a%2Fb"));
        assert!(find("/logs/_doc/a/b").is_none());
        assert_eq!(split("/logs/?pretty"), ("/logs", "pretty"));
        assert_eq!(split("/"), ("/", ""));
    }

    #[test]
    fn unknown_paths_and_methods_are_named() {
        assert!(find("/_clutser").is_none(), "no index has such a name");
        assert!(find("/_all").is_some());
        assert_eq!(
            unknown("/_cluster/helth", "GET").reason,
            "no handler found for uri [/_cluster/helth] and method [GET]; did you mean \
             [/_cluster/health]?"
        );
        assert_eq!(allowed("/_cluster/settings?pretty"), ["GET", "PUT"]);
        assert_eq!(allowed("/nowhere/to/go"), Vec::<&str>::new());
    }
}
