//! The same track where documents have sizes and no words: in virtual time a search costs and counts, and finds
//! nothing.

use serde_json::{Value, json};

use super::{Action, Request, Step, Track};
use crate::corpus::{Conflicts, Written};
use crate::load::{Check, Content, Operation};

const SAID: &str = "In virtual time documents have sizes and no words: every search is one that counts all documents, and a \
     scroll is one such search, and so are the pages of a search.";

const SAID_OF_UPDATES: &str =
    "In virtual time there are no words to change: what an update would change is replaced.";

impl Track {
    /// Has every search count in place of what it asks.
    pub(crate) fn count_in_place_of_searches(&mut self) {
        let mut changed = false;
        for task in self.elements.iter_mut().flat_map(|element| &mut element.tasks) {
            match &mut task.action {
                Action::Send(operation) => changed |= count_all(&mut operation.content),
                Action::Do(steps) => {
                    let requests = steps.iter_mut().flat_map(Step::requests_mut);
                    requests.for_each(|request| changed |= count_request(request));
                }
            }
        }
        if changed {
            self.changes.push(SAID.to_owned());
        }
        if self.replace_in_place_of_updates() {
            self.changes.push(SAID_OF_UPDATES.to_owned());
        }
    }

    fn replace_in_place_of_updates(&mut self) -> bool {
        let mut changed = false;
        for task in self.elements.iter_mut().flat_map(|element| &mut element.tasks) {
            let Action::Send(Operation { content: Content::Corpora(parts), .. }) = &mut task.action
            else {
                continue;
            };
            for part in parts {
                if let Written::Again(Conflicts { updates: updates @ true, .. }) = &mut part.written
                {
                    *updates = false;
                    changed = true;
                }
            }
        }
        changed
    }
}

fn body() -> Value {
    json!({ "size": 0 })
}

/// Parameters that say which indices, shards and copies are asked.
const OF_COPIES: [&str; 5] =
    ["allow_no_indices", "expand_wildcards", "ignore_unavailable", "preference", "routing"];

const SEARCH: &str = "/_search";

fn bare(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// A path with the parameters that say who is asked. What the others say, as `q` does, is of no use to what counts all
/// documents.
pub(crate) fn to_whom(path: &str) -> String {
    let (bare, query) = path.split_once('?').unwrap_or((path, ""));
    // A search by a template is a search.
    let bare = bare.find(SEARCH).map_or(bare, |at| &bare[..at + SEARCH.len()]);
    let is_kept =
        |pair: &&str| pair.split('=').next().is_some_and(|name| OF_COPIES.contains(&name));
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    if kept.is_empty() { bare.to_owned() } else { format!("{bare}?{}", kept.join("&")) }
}

/// What is asked of `_count`: without a body it counts all documents. None of other paths.
fn of_count(path: &str) -> Option<String> {
    bare(path).ends_with("/_count").then(|| to_whom(path))
}

/// The searches of a `_msearch`, which stand in every second line.
fn counting(searches: &str) -> String {
    let line = |(at, line): (usize, &str)| match at % 2 {
        0 => format!("{line}\n"),
        _ => format!("{}\n", body()),
    };
    searches.lines().enumerate().map(line).collect()
}

/// Has a request count in place of what it asks; answers whether it is another one then.
pub(crate) fn count_all(content: &mut Content) -> bool {
    if let Content::Pattern { bodies, check: Check::Searches | Check::SearchesOr(_), .. } = content
    {
        bodies.iter_mut().for_each(|searches| *searches = counting(searches));
        return true;
    }
    if let Content::Pattern { path, bodies, .. } = content
        && let Some(all) = of_count(path)
    {
        let changed = all != *path || !bodies.is_empty();
        *path = all;
        bodies.clear();
        return changed;
    }
    let path = match content {
        Content::Pattern { path, check: Check::Search | Check::SearchOr(_), .. }
        | Content::Scroll { path, .. } => path,
        _ => return false,
    };
    *content = Content::fixed("POST", to_whom(path), vec![body().to_string()], Check::Search);
    true
}

fn count_request(request: &mut Request) -> bool {
    if bare(&request.path).ends_with(SEARCH) {
        let (path, body) = (to_whom(&request.path), Some(body()));
        let changed = path != request.path || body != request.body;
        (request.path, request.body, request.method) = (path, body, "POST");
        request.pages = 1;
        return changed;
    }
    if let Some(Value::String(searches)) = &mut request.body
        && matches!(request.check, Check::Searches | Check::SearchesOr(_))
    {
        *searches = counting(searches);
        return true;
    }
    let Some(all) = of_count(&request.path) else { return false };
    let changed = all != request.path || request.body.is_some();
    (request.path, request.body) = (all, None);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_searches_counts_where_it_was_asked() {
        let searches = "{\"index\":\"a\"}\n{\"query\":{\"match\":{\"b\":1}}}\n{}\n{\"size\":3}\n";
        let counted = "{\"index\":\"a\"}\n{\"size\":0}\n{}\n{\"size\":0}\n";
        assert_eq!(counting(searches), counted);
    }

    #[test]
    fn a_search_of_a_composite_counts_all_documents() {
        let routed = "/a/_search?routing=7&preference=_local";
        for (path, asked, counted) in [
            ("/a/_search?q=tea", Some(body()), "/a/_search"),
            ("/a/_search", None, "/a/_search"),
            ("/a/_search?routing=7&size=3&preference=_local", None, routed),
        ] {
            let mut search = Request::new("GET", path.to_owned(), asked);
            assert!(count_request(&mut search), "{path}");
            assert_eq!(search, Request::new("POST", counted.to_owned(), Some(body())), "{path}");
            assert!(!count_request(&mut search), "{path}");
        }
    }

    #[test]
    fn a_write_to_an_index_that_is_called_a_search_is_none() {
        let path = "/my_search/_doc";
        let mut write =
            Content::fixed("POST", path.to_owned(), vec!["{}".to_owned()], Check::of(path));
        let before = write.clone();
        assert!(!count_all(&mut write));
        assert_eq!(write, before);
    }

    #[test]
    fn a_count_counts_all_documents() {
        let query = json!({"query": {"term": {"item": "tea"}}});
        for (path, query, changes, counted) in [
            ("/a/_count", Some(query), true, "/a/_count"),
            ("/a/_count?q=tea", None, true, "/a/_count"),
            ("/_count", None, false, "/_count"),
            ("/a/_count?routing=7", None, false, "/a/_count?routing=7"),
        ] {
            let pattern = |path: &str, bodies: Vec<String>| {
                Content::fixed("POST", path.to_owned(), bodies, Check::Status)
            };
            let bodies = query.iter().map(Value::to_string).collect();
            let mut content = pattern(path, bodies);
            assert_eq!(count_all(&mut content), changes, "{path}");
            assert_eq!(content, pattern(counted, Vec::new()), "{path}");
            let mut asked = Request::new("POST", path.to_owned(), query);
            assert_eq!(count_request(&mut asked), changes, "{path}");
            assert_eq!(asked, Request::new("POST", counted.to_owned(), None), "{path}");
        }
    }
}
