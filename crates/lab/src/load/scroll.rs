//! The further pages of a search, through a scroll.

use std::rc::Rc;

use bytes::Bytes;

use super::client::{Client, Reply};
use super::operation::text_after;
use super::{Check, Failure, Request};

/// Asks for a search and the pages after its first one; the answer is that of the last page, its bytes those of all.
/// The scroll is cleared at the end, as far as the cluster does it: it ends by itself soon after.
pub(super) async fn ask_pages<C: Client>(
    client: &mut C,
    host: usize,
    request: &Request,
) -> Result<Reply, Failure> {
    let mut reply = client.ask(host, request).await?;
    let Some(id) = text_after(client.body(), b"\"_scroll_id\"").map(str::to_owned) else {
        return Ok(reply);
    };
    let next = page(&id);
    for _ in 1..request.pages {
        if !(200..300).contains(&reply.status) || has_no_hits(client.body()) {
            break;
        }
        let further = client.ask(host, &next).await?;
        reply = Reply { status: further.status, bytes: reply.bytes + further.bytes };
    }
    // What is judged is the last page.
    if Check::Search.judge(reply.status, client.body()).is_ok() {
        client.ask(host, &clear(&id)).await?;
    }
    Ok(reply)
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
    let compact: Vec<u8> =
        body.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    compact.windows(9).any(|part| part == b"\"hits\":[]")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster with so many pages of hits.
    struct Pages {
        left: u32,
        asked: Vec<String>,
        body: Vec<u8>,
    }

    impl Client for Pages {
        async fn ask(&mut self, _: usize, request: &Request) -> Result<Reply, Failure> {
            self.asked.push(format!("{} {}", request.method, request.path));
            let hits = if self.left > 0 { "[{}]" } else { "[]" };
            self.left = self.left.saturating_sub(1);
            self.body =
                format!("{{\"_scroll_id\":\"abc=\",\"hits\":{{\"hits\": {hits}}}}}").into_bytes();
            Ok(Reply { status: 200, bytes: 10 })
        }

        fn body(&self) -> &[u8] {
            &self.body
        }

        fn give_up(&mut self, _: usize) {}
    }

    fn asked(there: u32, wanted: u32) -> (Vec<String>, u64) {
        let mut client = Pages { left: there, asked: Vec::new(), body: Vec::new() };
        let search = Request { path: "/a/_search".into(), pages: wanted, ..page("") };
        world::virtual_world::run(1, async move |_| {
            let reply = ask_pages(&mut client, 0, &search).await.unwrap();
            (client.asked, reply.bytes)
        })
    }

    #[test]
    fn pages_are_fetched_until_there_are_enough_or_none_is_left() {
        let (search, page, clear) =
            ("POST /a/_search", "POST /_search/scroll", "DELETE /_search/scroll");
        assert_eq!(asked(9, 3), (vec![search.into(), page.into(), page.into(), clear.into()], 30));
        let (asked, _) = asked(2, 100);
        assert_eq!(asked, [search, page, page, clear], "the third page is empty");
    }
}
