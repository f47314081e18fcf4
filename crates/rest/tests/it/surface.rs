//! The surface as a page, and each API sent to a node.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bytes::Bytes;
use engine::{Node, NodeConfig};
use query::refused::{AGGREGATIONS, HIGHLIGHT, PARAMETERS, QUERIES, SEARCH, TYPES, all};
use query::{FieldType, Mapping, parse_search};
use rest::{ROUTES, RestRequest, handle_and_list_parameters, refused};
use serde_json::{Value, json};

use crate::documented::{DIFFERENCES, IGNORED, IGNORED_OF, REFUSED_OF};

/// Words of one kind: what there is, and what is refused with what to send instead.
struct Words {
    of: &'static str,
    offered: BTreeSet<&'static str>,
    refused: Vec<(&'static str, &'static str)>,
}

fn words() -> [Words; 5] {
    let words = |of, offered, refused| Words { of, offered, refused: all(refused).collect() };
    [
        words("Queries", query::queries().collect(), QUERIES),
        words("Aggregations", query::aggregations().collect(), AGGREGATIONS),
        words("Types of fields", FieldType::names().collect(), TYPES),
        words("Parameters of fields", FieldType::all_parameters(), PARAMETERS),
        words("Options of highlight", query::highlight_options().collect(), HIGHLIGHT),
    ]
}

fn served() -> BTreeSet<&'static str> {
    ROUTES.iter().flat_map(|route| route.names.split(' ')).collect()
}

fn page() -> String {
    let mut page = String::from(
        "# The REST surface\n\n\
         What Elasticsearch 7.10 and OpenSearch 2 offer works here as it does there, or is refused with status 400 by its \
         name.\nWritten by `NARROWS_WRITE=1 cargo test --release -p rest surface` from the table of routes and from what is\n\
         refused (`crates/rest/src/surface.txt`, `crates/query/src/refused.rs`).\n\n\
         A test sends each request below that works, and each query, aggregation, type and parameter, to OpenSearch \
         2.19.1,\ntoo, and compares the answers. Where they differ, and why, is in\n\
         `crates/narrows/tests/side_by_side/differences.txt`.\n\n",
    );
    page.push_str("| what | works | refused |\n| --- | ---: | ---: |\n");
    let partly: BTreeSet<&str> = refused().iter().map(|api| api.name).collect();
    let only_refused = partly.difference(&served()).count();
    let _ = writeln!(page, "| APIs | {} | {only_refused} |", served().len());
    for Words { of, offered, refused } in words() {
        let _ = writeln!(page, "| {of} | {} | {} |", offered.len(), refused.len());
    }
    page.push_str("\n## What is answered otherwise\n\n| what | how |\n| --- | --- |\n");
    for (what, how) in DIFFERENCES {
        let _ = writeln!(page, "| {what} | {how} |");
    }
    page.push_str(
        "\n## APIs that work\n\n| API | requests | parameters | refused |\n| --- | --- | --- | --- |\n",
    );
    for route in ROUTES {
        let known: BTreeSet<&str> =
            route.known.iter().copied().flatten().flat_map(|of| of.split(' ')).collect();
        let is_never_taken = |name: &&str| is_refused(route.names, name);
        let (never, known): (Vec<&str>, Vec<&str>) = known.into_iter().partition(is_never_taken);
        let (names, methods) = (route.names.replace(' ', ", "), route.methods.join(" "));
        let _ = writeln!(
            page,
            "| {names} | {methods} `{}` | {} | {} |",
            route.paths.join("` `"),
            known.join(" "),
            never.join(" ")
        );
    }
    page.push_str(
        "\nEvery request may have `filter_path`, `format`, `human`, `pretty` and `error_trace`. An unknown parameter is \
         refused,\nthose of the last column are by their names, and others are where their effect would be missed. The body \
         may be\nthe parameter `source`, as clients send it that have none with GET.\n\n\
         ## Parameters that are ignored, harmless\n\n| parameters | why |\n| --- | --- |\n",
    );
    for (why, names) in IGNORED {
        let _ = writeln!(page, "| {names} | {why} |");
    }
    for (why, names, apis) in IGNORED_OF {
        let _ = writeln!(page, "| {names} of {} | {why} |", apis.replace(' ', ", "));
    }
    page.push_str(
        "\n## APIs that are refused\n\n| API | requests | instead |\n| --- | --- | --- |\n",
    );
    for api in refused() {
        let (methods, paths) = (api.methods.join(" "), api.paths.join("` `"));
        let _ = writeln!(page, "| {} | {methods} `{paths}` | {} |", api.name, api.instead);
    }
    for Words { of, offered, refused } in words() {
        let offered: Vec<&str> = offered.into_iter().collect();
        let _ = writeln!(page, "\n## {of}\n\n| there are |\n| --- |\n| {} |\n", offered.join(" "));
        page.push_str("| refused | instead |\n| --- | --- |\n");
        for (name, instead) in refused {
            let _ = writeln!(page, "| {name} | {instead} |");
        }
    }
    page
}

#[test]
fn the_page_of_the_surface_is_current() {
    testbed::generated::check_page("docs/rest.md", &page());
}

/// The router itself fails where a path with a method stands in both tables.
#[test]
fn a_word_is_offered_or_refused_with_a_hint() {
    for Words { of, offered, refused } in words() {
        let twice: Vec<&str> =
            refused.iter().map(|(name, _)| *name).filter(|n| offered.contains(n)).collect();
        assert!(twice.is_empty(), "{of}: {twice:?} are offered");
        let once: BTreeSet<&str> = refused.iter().map(|(name, _)| *name).collect();
        assert_eq!(once.len(), refused.len(), "{of}: a word is refused twice");
    }
    for name in query::queries() {
        let said = parse_search(format!("{{\"query\":{{\"{name}\":{{}}}}}}").as_bytes());
        assert!(!said.is_err_and(|error| error.reason.contains("unknown query")), "{name}");
    }
    let searched = |body: Value| parse_search(body.to_string().as_bytes()).unwrap_err().reason;
    let mapped = |field: Value| {
        let said = Mapping::parse(&json!({ "properties": { "f": field } })).unwrap_err();
        said.to_string()
    };
    type SaidOf<'a> = &'a dyn Fn(&str) -> String;
    let kinds: [(_, SaidOf<'_>); 6] = [
        (QUERIES, &|name| searched(json!({ "query": { name: {} } }))),
        (AGGREGATIONS, &|name| searched(json!({ "aggs": { "a": { name: {} } } }))),
        (HIGHLIGHT, &|name| searched(json!({ "highlight": { "fields": { "a": { name: 1 } } } }))),
        (SEARCH, &|name| searched(json!({ name: 1 }))),
        (TYPES, &|name| mapped(json!({ "type": name }))),
        (PARAMETERS, &|name| mapped(json!({ "type": "keyword", name: 1 }))),
    ];
    for (words, said_of) in kinds {
        for (name, instead) in all(words) {
            let said = said_of(name);
            let of_search = format!("[{name}] of a search is not supported");
            let named: &str = if words == SEARCH { &of_search } else { name };
            assert!(said.contains(named) && said.ends_with(instead), "{said}");
        }
    }
}

async fn ask(node: &Node, method: &str, path: &str, body: &str) -> (u16, String) {
    let (status, said, _) = ask_and_list_parameters(node, method, path, body).await;
    (status, said)
}

async fn ask_and_list_parameters(
    node: &Node,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String, BTreeSet<String>) {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = RestRequest { method: method.to_owned(), path: path.to_owned(), body };
    let (answer, parameters) = handle_and_list_parameters(node, request).await;
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned(), parameters)
}

/// A path of the table as a client writes it.
fn concrete(path: &str) -> String {
    let path = path.replace("{index}", "logs").replace("{id}", "1").replace("{node}", "n");
    let path = path.replace("{index_metric}", "docs").replace("{*rest}", "x/y");
    let metric = if path.contains("_cluster/state") { "version" } else { "_all" };
    path.replace("{metric}", metric).replace(['{', '}'], "")
}

/// Asks a node, which is stopped then.
fn at_a_node(test: impl AsyncFnOnce(&Node) + 'static) {
    world::virtual_world::run(7, move |env| async move {
        let host = env.host("n");
        let (transport, http) = (host.any_address(), host.any_address());
        let config = NodeConfig::new("n", "c", &["n".to_owned()], "/data/n");
        let node = rest::start(&host, NodeConfig { transport, http, ..config }).await.unwrap();
        test(&node).await;
        node.stop().await;
    });
}

/// Each of the methods with each of the paths.
fn requests<'a>(
    methods: &'a [&'a str],
    paths: &'a [&'a str],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    paths.iter().flat_map(move |path| methods.iter().map(move |method| (*method, *path)))
}

/// Each API that is refused is refused by its name, whatever its parameters are.
#[test]
fn what_is_refused_says_what_to_do() {
    at_a_node(async |node| {
        for api in refused() {
            for (method, path) in requests(&api.methods, &api.paths) {
                let path = format!("{}?some=parameter", concrete(path));
                let (status, said) = ask(node, method, &path, "{}").await;
                assert_eq!(status, 400, "{method} {path}: {said}");
                let hint = method == "HEAD"
                    || said.contains(&format!("the API [{}] is not supported", api.name));
                assert!(hint, "{method} {path}: {said}");
            }
        }
    });
}

/// What an API needs to be answered well: a body, or 404 where it asks for what this cluster has not.
fn example(names: &str) -> (&'static str, u16) {
    let name = names.split(' ').next().unwrap_or_default();
    match name {
        "index" | "create" => (r#"{"n":1}"#, 201),
        "bulk" => (
            "{\"index\":{\"_index\":\"logs\"}}\n{\"n\":1}\n\
             {\"update\":{\"_index\":\"logs\",\"_id\":\"1\"}}\n{\"doc\":{\"n\":2}}\n",
            200,
        ),
        "msearch" => ("{\"index\":\"logs\"}\n{}\n", 200),
        // The virtual world keeps no documents, only their number.
        "search" => (r#"{"size":0}"#, 200),
        "indices.put_mapping" => (r#"{"properties":{"n":{"type":"long"}}}"#, 200),
        "indices.put_settings" => (r#"{"refresh_interval":"5s"}"#, 200),
        "indices.update_aliases" => {
            (r#"{"actions":[{"add":{"index":"logs","alias":"name"}}]}"#, 200)
        }
        "cluster.put_settings" => {
            (r#"{"persistent":{"indices.recovery.max_bytes_per_sec":"40mb"}}"#, 200)
        }
        "update" => (r#"{"doc":{"n":2}}"#, 200),
        "delete_by_query" => (r#"{"query":{"match_all":{}}}"#, 200),
        "reindex" => (r#"{"source":{"index":"logs"},"dest":{"index":"copy"}}"#, 200),
        "field_caps" => (r#"{"fields":"*"}"#, 200),
        "terms_enum" => (r#"{"field":"none"}"#, 200),
        "indices.analyze" => (r#"{"text":"a word"}"#, 200),
        "indices.put_template" | "indices.put_index_template" => {
            (r#"{"index_patterns":["none-*"]}"#, 200)
        }
        "cluster.put_component_template" => (r#"{"template":{}}"#, 200),
        "mget" => (r#"{"docs":[{"_index":"logs","_id":"1"}]}"#, 200),
        // Of no index at all: that one has nothing to let go.
        "delete_pit" => (r#"{"pit_id":["AAA"]}"#, 200),
        "close_point_in_time" => (r#"{"id":"AAA"}"#, 404),
        _ => ("", 200),
    }
}

/// Routes that read some parameters only in requests that are not made here: nothing dangles, and documents that exist
/// only as a number are no example.
const READ_LATER: [&str; 3] = [
    "dangling_indices.delete_dangling_index",
    "dangling_indices.import_dangling_index",
    "narrows.run",
];

/// Whether a parameter is among `names`, and one of these APIs among `of`.
fn is_of((names, of): (&str, &str), apis: &str, name: &str) -> bool {
    let among = |words: &str, word: &str| words.split(' ').any(|one| one == word);
    among(names, name) && apis.split(' ').any(|api| among(of, api))
}

/// Whether the page says of a parameter of these APIs that it is ignored.
fn is_ignored(apis: &str, name: &str) -> bool {
    IGNORED.iter().any(|(_, names)| is_of((*names, apis), apis, name))
        || IGNORED_OF.iter().any(|(_, names, of)| is_of((*names, *of), apis, name))
}

/// Whether the page says of it that it is refused whatever it says.
fn is_refused(apis: &str, name: &str) -> bool {
    REFUSED_OF.iter().any(|(names, of)| is_of((*names, *of), apis, name))
}

/// Each parameter that the page shows as refused is, by its name.
#[test]
fn parameters_that_are_refused_are_named() {
    at_a_node(async |node| {
        ask(node, "PUT", "/logs/_doc/1", r#"{"n":1}"#).await;
        let mut shown = BTreeSet::new();
        for route in ROUTES {
            let known = route.known.iter().copied().flatten().flat_map(|of| of.split(' '));
            for name in known.filter(|name| is_refused(route.names, name)) {
                shown.insert(name);
                let (body, _) = example(route.names);
                for (method, path) in requests(route.methods, route.paths) {
                    let path = format!("{}?{name}=1", concrete(path));
                    let (status, said) = ask(node, method, &path, body).await;
                    let is_named = method == "HEAD" || said.contains(name);
                    assert!(status == 400 && is_named, "{method} {path}: {status} {said}");
                }
            }
        }
        let listed = REFUSED_OF.iter().flat_map(|(names, _)| names.split(' '));
        assert_eq!(shown, listed.collect::<BTreeSet<_>>(), "some are known nowhere");
    });
}

/// Each API that works is answered, once for each of its requests; and each of its parameters is read, or the page says
/// that it is ignored.
#[test]
fn what_is_offered_is_answered() {
    at_a_node(async |node| {
        let mut wrong = Vec::new();
        for route in ROUTES {
            let mut read = BTreeSet::new();
            for (method, path) in requests(route.methods, route.paths) {
                // Each begins with an index and a document, and an alias of it.
                ask(node, "DELETE", "/logs*", "").await;
                let makes_it = method == "PUT" && path == "/{index}";
                if !makes_it {
                    ask(node, "PUT", "/logs", r#"{"aliases":{"name":{}}}"#).await;
                }
                // What makes a document says 201 where there was none.
                if !makes_it && !matches!(route.names, "index" | "create") {
                    ask(node, "PUT", "/logs/_doc/1", r#"{"n":1}"#).await;
                }
                if route.names.contains("template") {
                    let of_kind = |kind: &str, body: &'static str| (format!("/{kind}/name"), body);
                    for (path, body) in [
                        of_kind("_template", r#"{"index_patterns":["none-*"]}"#),
                        of_kind("_index_template", r#"{"index_patterns":["none-*"]}"#),
                        of_kind("_component_template", r#"{"template":{}}"#),
                    ] {
                        ask(node, "PUT", &path, body).await;
                    }
                }
                let (body, expected) = example(route.names);
                // Points in time are kept for as long as their requests say, which have to.
                let opens = matches!(route.names, "create_pit" | "open_point_in_time");
                let more = if opens { "?keep_alive=1m" } else { "" };
                let path = concrete(path) + more;
                let (status, said, looked_up) =
                    ask_and_list_parameters(node, method, &path, body).await;
                read.extend(looked_up);
                let fits = status == expected || known(route.names, status);
                if !fits {
                    wrong.push(format!("{method} {path}: {status}, not {expected}: {said}"));
                }
            }
            let parameters = route.known.iter().copied().flatten().flat_map(|of| of.split(' '));
            let is_missed = |name: &&str| !read.contains(*name) && !is_ignored(route.names, name);
            if !READ_LATER.contains(&route.names) {
                let missed = parameters.filter(is_missed);
                wrong.extend(missed.map(|name| format!("{}: [{name}] is not read", route.names)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// As in the field, where the parameter is only what stands for a body that does not say.
#[test]
fn the_order_of_a_template_is_that_of_its_body() {
    at_a_node(async |node| {
        for (body, order) in [
            (r#"{"index_patterns":["a"],"order":7}"#, "\"order\":7"),
            (r#"{"index_patterns":["a"]}"#, "\"order\":3"),
        ] {
            ask(node, "PUT", "/_template/t?order=3", body).await;
            let (_, said) = ask(node, "GET", "/_template/t", "").await;
            assert!(said.contains(order), "{body}: {said}");
        }
    });
}

#[test]
fn a_body_may_be_a_parameter() {
    at_a_node(async |node| {
        ask(node, "PUT", "/logs/_doc/1", r#"{"n":1}"#).await;
        let path = "/logs/_search?source_content_type=application/json&source=%7B%22size%22:0%7D";
        let (status, said) = ask(node, "GET", path, "").await;
        assert_eq!(status, 200, "{said}");
        for (path, body, why) in [
            ("_search?source=%7B%22sice%22:0%7D", "", "does not support [sice]"),
            ("_search?source=%7B%7D", r#"{"size":0}"#, "unrecognized parameter: [source]"),
            ("_search?source=a&source_content_type=text/yaml", "", "[text/yaml]"),
            ("_settings?source=%7B%22a%22:1%7D", "", "does not support having a body"),
        ] {
            let (status, said) = ask(node, "GET", &format!("/logs/{path}"), body).await;
            assert!(status == 400 && said.contains(why), "{path}: {status} {said}");
        }
    });
}

#[test]
fn a_bulk_that_waits_for_no_number_is_refused_whole() {
    at_a_node(async |node| {
        let body = "{\"index\":{\"_id\":\"1\"}}\n{\"n\":1}\n";
        let (status, said) =
            ask(node, "POST", "/logs/_bulk?wait_for_active_shards=many", body).await;
        assert_eq!(status, 400, "{said}");
        assert_eq!(ask(node, "HEAD", "/logs", "").await.0, 404, "it made its index");
    });
}

/// What these ask for is not there: nothing is followed, nothing dangles, no cluster is remote.
fn known(names: &str, status: u16) -> bool {
    const ABSENT: [&str; 4] = ["ccr.", "replication.", "dangling", "indices.rollover"];
    let absent = ABSENT.iter().any(|begin| names.starts_with(begin));
    // No scroll is open, as the virtual world has no hits; and the path of an example names no task.
    const STRANGE: [&str; 11] = [
        "clear_scroll",
        "cluster.allocation_explain",
        "delete_by_query",
        "delete_by_query_rethrottle reindex_rethrottle update_by_query_rethrottle",
        "narrows.run",
        "reindex",
        "scroll",
        "tasks.cancel",
        "tasks.get",
        "update",
        "update_by_query",
    ];
    let no_stream = names == "indices.get_data_stream" && status == 404;
    no_stream || absent && matches!(status, 400 | 404) || STRANGE.contains(&names) && status == 400
}
