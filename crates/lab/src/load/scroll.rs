//! The further pages of a search, through a scroll.

use std::rc::Rc;

use bytes::Bytes;

use super::check::{after, behind_scroll_id, scroll_id};
use super::client::{Client, Reply};
use super::{Check, Failure, Request};

/// Asks for a search and the pages after its first one, until one is not as it should be; the answer is that of the
/// last page, its bytes those of all. The scroll is cleared at the end, as far as the cluster does it: it ends by
/// itself soon after. Calls `goes_on` before each further request, which has a deadline of its own; if it returns
/// false, no further page is requested.
pub(super) async fn ask_pages<C: Client>(
    client: &mut C,
    host: usize,
    request: &Request,
    goes_on: impl Fn() -> bool,
) -> Result<Reply, Failure> {
    let mut reply = client.ask(host, request).await?;
    let Some(id) = scroll_id(client.body()).map(|(id, _)| id.to_owned()) else {
        // A refusal has none.
        let refused = !(200..300).contains(&reply.status);
        return if refused { Ok(reply) } else { Err(Failure::NoScrollId) };
    };
    let next = page(&id);
    let mut judged = Check::Search.judge(reply.status, client.body());
    for _ in 1..request.pages {
        if judged.is_err() || has_no_hits(client.body()) || !goes_on() {
            break;
        }
        let further = client.ask(host, &next).await?;
        reply = Reply { status: further.status, bytes: reply.bytes + further.bytes };
        judged = Check::Search.judge(reply.status, client.body());
    }
    goes_on();
    let cleared = client.ask(host, &clear(&id)).await;
    // Not for the driver to judge, which would find the body of the last request.
    judged.and(cleared).map(|_| reply)
}

fn page(id: &str) -> Request {
    let body = serde_json::json!({ "scroll": "10s", "scroll_id": id }).to_string();
    request("POST", body)
}

fn clear(id: &str) -> Request {
    request("DELETE", serde_json::json!({ "scroll_id": [id] }).to_string())
}

fn request(method: &str, body: String) -> Request {
    let (method, path): (Rc<str>, Rc<str>) = (method.into(), "/_search/scroll".into());
    let body = Bytes::from(body);
    Request { method, path, body, check: Check::Status, documents: 0, pages: 1 }
}

/// Whether a page says that it has no hits: its list of them is empty.
fn has_no_hits(body: &[u8]) -> bool {
    let list = after(after(behind_scroll_id(body), b"\"hits\""), b"\"hits\"");
    list.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: &str = "POST /a/_search";
    const PAGE: &str = "POST /_search/scroll";
    const CLEAR: &str = "DELETE /_search/scroll";
    /// So much of an answer is kept here.
    const KEPT_BYTES: usize = 4096;

    /// A cluster with so many pages of hits.
    struct Pages {
        left: u32,
        id: String,
        /// The request of which a shard fails; 0 for none.
        fails_at: usize,
        asked: Vec<String>,
        body: Vec<u8>,
    }

    impl Pages {
        fn new(left: u32) -> Self {
            let id = "abc=".to_owned();
            Pages { left, id, fails_at: 0, asked: Vec::new(), body: Vec::new() }
        }
    }

    impl Client for Pages {
        async fn ask(&mut self, _: usize, request: &Request) -> Result<Reply, Failure> {
            self.asked.push(format!("{} {}", request.method, request.path));
            let hits = if self.left > 0 { "[{}]" } else { "[]" };
            self.left = self.left.saturating_sub(1);
            let (id, failed) = (&self.id, u32::from(self.asked.len() == self.fails_at));
            let shards = format!("{{\"total\":28,\"failed\":{failed}}}");
            let hits = format!("{{\"total\":{{\"value\":9}},\"hits\": {hits}}}");
            let body = format!("{{\"_scroll_id\":\"{id}\",\"_shards\":{shards},\"hits\":{hits}}}");
            self.body = body.into_bytes();
            self.body.truncate(KEPT_BYTES);
            Ok(Reply { status: 200, bytes: 10 })
        }

        fn body(&self) -> &[u8] {
            &self.body
        }

        fn give_up(&mut self, _: usize) {}
    }

    /// What a cluster is asked for so many pages, and what comes of it.
    fn asked(client: Pages, wanted: u32) -> (Vec<String>, Result<u64, Failure>) {
        asked_while(client, wanted, true)
    }

    fn asked_while(
        mut client: Pages,
        wanted: u32,
        goes_on: bool,
    ) -> (Vec<String>, Result<u64, Failure>) {
        let search = Request { path: "/a/_search".into(), pages: wanted, ..page("") };
        world::virtual_world::run(1, async move |_| {
            let reply = ask_pages(&mut client, 0, &search, || goes_on).await;
            (client.asked, reply.map(|reply| reply.bytes))
        })
    }

    #[test]
    fn pages_are_fetched_until_there_are_enough_or_none_is_left() {
        let all = [SEARCH, PAGE, PAGE, CLEAR].map(str::to_owned).to_vec();
        assert_eq!(asked(Pages::new(9), 3), (all.clone(), Ok(30)));
        assert_eq!(asked(Pages::new(2), 100), (all, Ok(30)), "the third page is empty");
    }

    #[test]
    fn a_scroll_of_a_load_that_is_stopped_is_cleared() {
        let (asked, outcome) = asked_while(Pages::new(9), u32::MAX, false);
        assert_eq!((asked, outcome), ([SEARCH, CLEAR].map(str::to_owned).to_vec(), Ok(10)));
    }

    #[test]
    fn an_empty_list_within_a_hit_is_not_that_of_the_page() {
        let page = br#"{"_scroll_id":"a","hits":{"hits":[{"x":{"hits":{"hits":[]}}}]}}"#;
        assert!(!has_no_hits(page));
    }

    #[test]
    fn a_shard_that_failed_is_seen_behind_a_long_id_on_any_page() {
        for fails_at in [1, 2] {
            let client = Pages { id: "a".repeat(2000), fails_at, ..Pages::new(9) };
            let (asked, outcome) = asked(client, 3);
            assert_eq!(asked.len(), fails_at + 1, "{asked:?}");
            assert_eq!(asked.last().map(String::as_str), Some(CLEAR));
            assert_eq!(outcome, Err(Failure::Partial));
        }
    }

    #[test]
    fn an_id_that_is_not_all_there_is_a_failure() {
        let client = Pages { id: "a".repeat(6000), ..Pages::new(9) };
        assert_eq!(asked(client, 3), (vec![SEARCH.to_owned()], Err(Failure::NoScrollId)));
    }
}
