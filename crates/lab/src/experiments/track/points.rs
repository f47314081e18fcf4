//! The points in time that clients of a task have open, by the API that there is, and the pages of searches.

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use clusters::Asker;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use crate::track::{PointInTime, Request};

const OPENSEARCH: &str = "/_search/point_in_time";
const ELASTICSEARCH: &str = "/_pit";
/// How long one is kept for the next search, as in Rally.
const KEEP_ALIVE: &str = "1m";
/// How long the end of one that was left open may take: it ends by itself soon after.
const END_MAX: Duration = Duration::from_secs(10);
/// Hits of a search that does not say how many.
const SIZE: u64 = 10;

/// What a client has opened, by the name of the operation that did.
struct Open {
    client: u32,
    name: String,
    id: String,
}

/// All that are open, of all clients.
pub(super) struct Points {
    of_elasticsearch: bool,
    open: RefCell<Vec<Open>>,
}

impl Points {
    pub(super) fn new(of_elasticsearch: bool) -> Points {
        Points { of_elasticsearch, open: RefCell::default() }
    }

    /// A request as it is sent first. The error is a sentence.
    pub(super) fn first(&self, client: u32, request: &Request) -> Result<Request, String> {
        self.with_id(client, request.clone())
    }

    /// What is sent after the answer to `sent`, the last of what `request` had sent; nothing after its last page. The
    /// error is a sentence.
    pub(super) fn next(
        &self,
        client: u32,
        request: &Request,
        mut sent: Request,
        answer: &[u8],
    ) -> Result<Option<Request>, String> {
        let said: Value = serde_json::from_slice(answer)
            .map_err(|error| format!("the answer is no JSON: {error}"))?;
        let id = said["pit_id"].as_str().or(said["id"].as_str());
        match (&sent.point_in_time, id) {
            (Some(PointInTime::Opens(name)), Some(id)) => {
                let (name, id) = (name.clone(), id.to_owned());
                self.open.borrow_mut().push(Open { client, name, id });
                return Ok(None);
            }
            (Some(PointInTime::Opens(_)), None) => {
                return Err("the answer has no id of a point in time".to_owned());
            }
            // By its id: there may be others of the same name.
            (Some(PointInTime::Closes(_)), _) => {
                self.open.borrow_mut().retain(|open| sent.body != Some(self.end(&open.id)));
                return Ok(None);
            }
            // The id may be another one after each search.
            (Some(PointInTime::Searches(_)), Some(id)) => {
                let searched = sent.body.as_ref().map(|body| &body["pit"]["id"]);
                let mut open = self.open.borrow_mut();
                let same = open.iter_mut().filter(|open| searched.is_some_and(|of| *of == open.id));
                same.for_each(|open| open.id = id.to_owned());
            }
            (Some(PointInTime::Searches(_)) | None, _) => {}
        }
        let Some(Value::Object(body)) = &mut sent.body else { return Ok(None) };
        let size = body.get("size").and_then(Value::as_u64).unwrap_or(SIZE);
        let seen = u64::from(request.pages - sent.pages + 1) * size;
        let total = &said["hits"]["total"];
        // As in Rally, which believes in a total that is only a lower bound.
        let is_all = total["value"].as_u64().or(total.as_u64()).is_some_and(|total| total <= seen);
        let last = said["hits"]["hits"].as_array().and_then(|hits| hits.last());
        match last.map(|hit| &hit["sort"]) {
            Some(Value::Array(after)) if sent.pages > 1 && !is_all => {
                body.insert("search_after".to_owned(), json!(after));
                sent.pages -= 1;
                self.with_id(client, sent).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Ends those that a client has left open, or all clients; answers whether there were any.
    pub(super) async fn end_left(&self, asker: &Asker, client: Option<u32>) -> bool {
        let is_meant = |open: &&Open| client.is_none_or(|client| open.client == client);
        let left: Vec<String> =
            self.open.borrow().iter().filter(is_meant).map(|open| open.id.clone()).collect();
        let end = |id: &String| {
            let body = Bytes::from(self.end(id).to_string());
            asker.ask_within(END_MAX, "DELETE", self.api(), body)
        };
        // At once: a cluster that does not answer is waited for once. Where one fails it ends by itself.
        join_all(left.iter().map(end)).await;
        self.open.borrow_mut().retain(|open| !left.contains(&open.id));
        !left.is_empty()
    }

    fn api(&self) -> &'static str {
        if self.of_elasticsearch { ELASTICSEARCH } else { OPENSEARCH }
    }

    /// The body of what ends one.
    fn end(&self, id: &str) -> Value {
        if self.of_elasticsearch { json!({ "id": id }) } else { json!({ "pit_id": [id] }) }
    }

    fn with_id(&self, client: u32, mut request: Request) -> Result<Request, String> {
        match &request.point_in_time {
            None => {}
            Some(PointInTime::Opens(_)) => {
                request.path = request.path.replacen(OPENSEARCH, self.api(), 1);
            }
            Some(PointInTime::Searches(name)) => {
                let point = json!({ "id": self.id(client, name)?, "keep_alive": KEEP_ALIVE });
                let body = request.body.get_or_insert_with(|| Value::Object(Map::new()));
                match body {
                    Value::Object(body) => drop(body.insert("pit".to_owned(), point)),
                    other => return Err(format!("a search has an object for a body, not {other}")),
                }
            }
            Some(PointInTime::Closes(name)) => {
                request.body = Some(self.end(&self.id(client, name)?));
                request.path = request.path.replacen(OPENSEARCH, self.api(), 1);
            }
        }
        Ok(request)
    }

    fn id(&self, client: u32, name: &str) -> Result<String, String> {
        let open = self.open.borrow();
        let found = open.iter().rev().find(|open| open.client == client && open.name == name);
        found.map(|open| open.id.clone()).ok_or_else(|| {
            format!(
                "no point in time called \"{name}\" is open; a stream beside this one may open it yet, or have ended it"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(point_in_time: PointInTime) -> Request {
        let path = match &point_in_time {
            PointInTime::Opens(_) => "/a/_search/point_in_time?keep_alive=1m",
            PointInTime::Searches(_) => "/_search",
            PointInTime::Closes(_) => "/_search/point_in_time",
        };
        let point_in_time = Some(point_in_time);
        Request { point_in_time, ..Request::new("GET", path.to_owned(), None) }
    }

    /// The path and the body of what is sent first, and what the answer brings after it.
    fn asked(points: &Points, request: &Request, answer: &Value) -> (String, Value) {
        let first = points.first(3, request).unwrap();
        let sent = (first.path.clone(), first.body.clone().unwrap_or_default());
        let next = points.next(3, request, first, answer.to_string().as_bytes());
        assert_eq!(next, Ok(None), "{sent:?}");
        sent
    }

    fn of_one_name() -> [Request; 3] {
        [PointInTime::Opens, PointInTime::Searches, PointInTime::Closes]
            .map(|of| about(of("p".to_owned())))
    }

    #[test]
    fn of_two_of_one_name_the_last_is_searched_and_ended_and_the_other_is_still_known() {
        let ([opens, searches, closes], points) = (of_one_name(), Points::new(false));
        for id in ["first", "second"] {
            asked(&points, &opens, &json!({ "pit_id": id }));
        }
        asked(&points, &searches, &json!({ "pit_id": "third" }));
        let (_, end) = asked(&points, &closes, &json!({}));
        assert_eq!(end, json!({ "pit_id": ["third"] }));
        let left: Vec<String> = points.open.borrow().iter().map(|open| open.id.clone()).collect();
        assert_eq!(left, ["first"]);
    }

    #[test]
    fn each_api_has_its_own_paths_and_bodies() {
        let [opens, searches, closes] = of_one_name();
        for (of_elasticsearch, api, id, end) in [
            (false, "/_search/point_in_time", "pit_id", json!({ "pit_id": ["second"] })),
            (true, "/_pit", "id", json!({ "id": "second" })),
        ] {
            let points = Points::new(of_elasticsearch);
            assert!(points.first(3, &searches).unwrap_err().contains("\"p\""));
            let (path, _) = asked(&points, &opens, &json!({ id: "first" }));
            assert_eq!(path, format!("/a{api}?keep_alive=1m"));
            assert!(points.first(4, &searches).is_err(), "it is of another client");
            let (_, body) = asked(&points, &searches, &json!({ "pit_id": "second" }));
            assert_eq!(body, json!({ "pit": { "id": "first", "keep_alive": "1m" } }));
            assert_eq!(asked(&points, &closes, &json!({})), (api.to_owned(), end));
            assert!(points.first(3, &closes).is_err());
            let without = points.next(3, &opens, points.first(3, &opens).unwrap(), b"{}");
            assert!(without.unwrap_err().contains("no id"));
        }
    }

    #[test]
    fn pages_go_on_from_the_last_hit_to_the_total_or_as_many_as_are_wanted() {
        let pages = |most: u32, total: u64| {
            let points = Points::new(false);
            let body = json!({ "size": 2, "sort": ["n"] });
            let search = Request::new("GET", "/a/_search".to_owned(), Some(body));
            let request = Request { pages: most, ..search };
            let mut sent = points.first(0, &request).unwrap();
            for page in 1.. {
                let hits = json!([{ "sort": [0] }, { "sort": [page] }]);
                let answer = json!({ "hits": { "total": { "value": total }, "hits": hits } });
                let answer = answer.to_string();
                match points.next(0, &request, sent, answer.as_bytes()).unwrap() {
                    Some(next) => sent = next,
                    None => return page,
                }
                assert_eq!(sent.body.as_ref().unwrap()["search_after"], json!([page]));
            }
            0
        };
        assert_eq!((pages(3, 100), pages(u32::MAX, 5), pages(u32::MAX, 4)), (3, 3, 2));
        assert_eq!((pages(u32::MAX, 0), pages(1, 100)), (1, 1));
    }
}
