//! The server before clients that are slow, break off, or send too much.

use engine::NodeConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::bodies::tests::packed;
use super::super::clients::tests::short;
use super::*;

const PUT: &str = "PUT /a/_doc/1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                   content-length: 90000000\r\n\r\n{";

/// The head of a request with so many bytes of JSON, but for the line that ends it.
fn head(line: &str, bytes: usize) -> String {
    format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {bytes}\r\n"
    )
}

/// Stands for what answers requests, so that these tests do not compile all that is served: `engine` tries that.
fn in_place_of_handlers(
    _: &Node,
    request: RestRequest,
    _: Option<String>,
) -> LocalFuture<'_, RestResponse> {
    Box::pin(async move {
        let bytes = match request.path.as_str() {
            "/_nodes/stats" => 8192,
            path if path.contains("wait_for_nodes") => std::future::pending().await,
            _ => 2,
        };
        let content_type = "application/json".to_owned();
        let body = vec![b' '; bytes].into();
        RestResponse { status: 200, content_type, location: None, body }
    })
}

/// The door to a node, whose limits are those of the test.
struct Door {
    env: Env,
    address: String,
    clients: Clients,
    budget: BodyBudget,
}

impl Door {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }

    async fn send(&self, request: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(request.as_ref()).await.unwrap();
        stream
    }

    async fn ask(&self, request: impl AsRef<[u8]>) -> String {
        let mut stream = self.send(request).await;
        self.answer(&mut stream).await
    }

    /// The first line of the answer; empty where the connection closes without.
    async fn answer(&self, stream: &mut TcpStream) -> String {
        let mut bytes = [0; 4096];
        let read = self.env.timeout(Duration::from_secs(60), stream.read(&mut bytes)).await;
        let read = read.expect("an answer or the end").unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
        text.lines().next().unwrap_or_default().to_owned()
    }

    async fn get(&self, path: &str) -> String {
        self.ask(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let looks = async {
            while !holds() {
                self.env.sleep(Duration::from_millis(5)).await;
            }
        };
        self.env.timeout(Duration::from_secs(60), looks).await.expect(what);
    }

    async fn nothing_is_left(&self) {
        self.until("all is given back", || self.clients.count() == 0 && self.budget.held() == 0)
            .await;
    }
}

fn at_a_door(limits: Limits, test: impl AsyncFnOnce(&Door)) {
    at_a_door_within(BodyBudget::default(), limits, test);
}

fn at_a_door_within(budget: BodyBudget, limits: Limits, test: impl AsyncFnOnce(&Door)) {
    world::real_world::run(7, async |env| {
        let dir = tempfile::tempdir().unwrap();
        let config = NodeConfig {
            transport: env.any_address(),
            ..NodeConfig::new("n", "c", &["n".to_owned()], dir.path().to_owned())
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serve = Box::new(|_: &Node| ());
        let node = Node::start(&env, config, address.clone(), serve).await.unwrap();
        let clients = Clients::new(&env, limits);
        let door = Door { env: env.clone(), address, clients, budget: budget.clone() };
        let service = HttpService { node: node.clone(), budget, handle: in_place_of_handlers };
        tokio::select! {
            biased;
            () = test(&door) => {}
            () = service.accept(listener, &door.clients) => {}
        }
        drop((door, service));
        node.stop().await;
    });
}

#[test]
fn a_body_and_a_head_of_a_byte_now_and_then_end() {
    // A machine that stands still does not count as a head that never ends.
    let of_a_body = Limits { head: Limits::default().head, ..short(100) };
    for (limits, sent, answered) in [
        (of_a_body, PUT, "HTTP/1.1 408 Request Timeout"),
        (short(100), "GET / HTTP/1.1\r\nx: ", ""),
    ] {
        at_a_door(limits, async |door| {
            let stream = door.send(sent).await;
            let (mut read, mut write) = tokio::io::split(stream);
            let trickle = async {
                while write.write_all(b" ").await.is_ok() {
                    door.env.sleep(Duration::from_millis(20)).await;
                }
                std::future::pending::<()>().await
            };
            let mut bytes = vec![0; 4096];
            let said = tokio::select! {
                biased;
                read = read.read(&mut bytes) => &bytes[..read.unwrap_or(0)],
                () = trickle => unreachable!(),
                () = door.env.sleep(Duration::from_secs(60)) => panic!("{sent} goes on"),
            };
            let said = String::from_utf8_lossy(said);
            assert_eq!(said.lines().next().unwrap_or_default(), answered);
            door.nothing_is_left().await;
        });
    }
}

#[test]
fn who_takes_no_answers_is_cut_off() {
    at_a_door(short(100), async |door| {
        let mut stream = door.connect().await;
        let question = "GET /_nodes/stats HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
        // As many as it takes until the node reads no more, and cuts it off.
        let asks = async {
            while stream.write_all(question.as_bytes()).await.is_ok() {
                assert!(door.budget.held() <= 8192, "the next is read once the first is taken");
            }
        };
        door.env.timeout(Duration::from_secs(60), asks).await.expect("it is cut off");
        door.nothing_is_left().await;
    });
}

#[test]
fn who_breaks_off_leaves_nothing_behind() {
    at_a_door(Limits::default(), async |door| {
        let mut streams = Vec::new();
        for _ in 0..20 {
            streams.push(door.send(PUT).await);
            streams.push(door.send("GET / HT").await);
        }
        door.until("all are there", || door.clients.count() == 40).await;
        for stream in streams {
            stream.set_zero_linger().unwrap();
        }
        door.nothing_is_left().await;
    });
}

#[test]
fn all_connections_share_one_budget_of_bodies() {
    at_a_door_within(BodyBudget::of(10_000), Limits::default(), async |door| {
        let body = format!("{{}}{}", " ".repeat(5998));
        let put = |announced| head("PUT /a", announced) + "\r\n" + &body;
        let first = door.send(put(7000)).await;
        door.until("its bytes are held", || door.budget.held() >= body.len()).await;
        let mut second = door.send(put(7000)).await;
        assert_eq!(door.answer(&mut second).await, "HTTP/1.1 429 Too Many Requests");
        assert!(door.clients.phases().contains(&Phase::Body), "the first may go on");
        first.set_zero_linger().unwrap();
        drop((first, second));
        door.nothing_is_left().await;
        assert_eq!(door.ask(put(body.len())).await, "HTTP/1.1 200 OK");
    });
}

#[test]
fn tables_are_json_for_those_who_accept_that_alone() {
    let json = Some("application/json");
    for (path, accept, expected) in [
        ("/_cat/health", json, "/_cat/health?format=json&"),
        ("/_cat/health?v", Some("application/json; charset=utf-8"), "/_cat/health?format=json&v"),
        ("/_cat/health?format=txt", json, "/_cat/health?format=json&format=txt"),
        ("/_cat/health?v", Some("text/plain,application/json"), "/_cat/health?v"),
        ("/_cat/health", None, "/_cat/health"),
        ("/a/_search?q=b", json, "/a/_search?q=b"),
    ] {
        assert_eq!(with_format(path, accept), expected);
    }
}

#[test]
fn bodies_in_gzip_count_as_what_they_unpack_to() {
    at_a_door_within(BodyBudget::of(10_000), Limits::default(), async |door| {
        for (body, answered) in [
            (packed(&[b' '; 5_000]), "HTTP/1.1 200 OK"),
            (packed(&[b' '; 20_000]), "HTTP/1.1 429 Too Many Requests"),
            (b"{}".to_vec(), "HTTP/1.1 400 Bad Request"),
            (Vec::new(), "HTTP/1.1 200 OK"),
        ] {
            let head = head("PUT /a", body.len()) + "content-encoding: gzip\r\n\r\n";
            assert_eq!(door.ask([head.as_bytes(), &body].concat()).await, answered);
        }
        door.nothing_is_left().await;
    });
}

#[test]
fn what_comes_of_a_bulk_counts_by_its_lines() {
    at_a_door_within(BodyBudget::of(10_000), Limits::default(), async |door| {
        for (path, lines, answered) in [
            ("/a/_bulk?refresh=true", 50, "HTTP/1.1 429 Too Many Requests"),
            ("/a/_bulk", 10, "HTTP/1.1 200 OK"),
        ] {
            let body = "{\"delete\":{\"_id\":\"a\"}}\n".repeat(lines);
            let post = head(&format!("POST {path}"), body.len()) + "\r\n" + &body;
            assert_eq!(door.ask(post).await, answered);
        }
        door.nothing_is_left().await;
    });
}

#[test]
fn idle_connections_give_way_and_busy_ones_do_not() {
    at_a_door(Limits { connections_max: 4, ..Limits::default() }, async |door| {
        let mut idle = Vec::new();
        for _ in 0..8 {
            idle.push(door.connect().await);
            assert_eq!(door.get("/").await, "HTTP/1.1 200 OK");
            assert!(door.clients.count() <= 4);
        }
        assert_eq!(door.answer(&mut idle[0]).await, "", "the first idled longest");
        drop(idle);
        door.nothing_is_left().await;
        let waits =
            "GET /_cluster/health?wait_for_nodes=2&timeout=60s HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let mut busy = Vec::new();
        for n in 1..=4 {
            busy.push(door.send(waits).await);
            door.until("it works for all", || door.clients.phases() == vec![Phase::Working; n])
                .await;
        }
        assert_eq!(door.get("/").await, "HTTP/1.1 503 Service Unavailable");
        busy.pop();
        door.until("one has gone", || door.clients.count() == 3).await;
        assert_eq!(door.get("/").await, "HTTP/1.1 200 OK");
    });
}

#[test]
fn lines_may_have_bytes_that_are_not_percent_encoded() {
    at_a_door(Limits::default(), async |door| {
        let mut stream = door.connect().await;
        let pieces = [
            "POST /<a>?q=\"b\" HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: 5\r\n\r\n\"<>`\"",
            "GET /a?q=b:>",
            "1&x=`{|}\\^ HTTP/1.1\r\nhost: localhost\r\nx: \"<>\"\r\n",
            "\r\n",
        ];
        stream.write_all(pieces[0].as_bytes()).await.unwrap();
        assert_eq!(door.answer(&mut stream).await, "HTTP/1.1 200 OK");
        // A body that was changed would not end where it says, and spoil what follows it.
        for piece in &pieces[1..] {
            stream.write_all(piece.as_bytes()).await.unwrap();
            door.env.sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(door.answer(&mut stream).await, "HTTP/1.1 200 OK");
    });
}

#[test]
fn a_head_that_goes_on_and_on_is_refused() {
    at_a_door(Limits::default(), async |door| {
        let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(HEAD_BYTES_MAX));
        let refused = "HTTP/1.1 431 Request Header Fields Too Large";
        assert_eq!(door.ask(head).await, refused);
    });
}
