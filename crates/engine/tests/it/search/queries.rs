//! Queries of several fields and by patterns, as a parameter and in a body. What each finds is what OpenSearch 2.19.1
//! finds of the same documents.

use serde_json::{Value, json};
use world::Env;

use crate::common::Cluster;

testbed::real_world!(
    a_parameter_asks_as_a_body_does,
    bodies_ask_several_fields,
    words_that_score_alike_are_found_with_their_phrases,
    what_cannot_be_asked_is_said,
    a_query_is_valid_or_it_is_said_why_not,
    the_words_of_a_text_are_shown,
);

async fn a_query_is_valid_or_it_is_said_why_not(env: Env) {
    let c = filled(&env).await;
    let said = async |path: &str, query: Value| {
        let body = if query.is_null() { query } else { json!({ "query": query }) };
        let answer = c.must("POST", &format!("{path}/_validate/query"), body).await;
        (answer["valid"].as_bool().unwrap(), answer["error"].as_str().unwrap_or("").to_owned())
    };
    for (path, query) in [
        ("", Value::Null),
        ("/a", json!({"match_all": {}})),
        ("/a", json!({"range": {"d": {"gte": "2020-01-01"}}})),
        ("/a", json!({"term": {"unmapped": 1}})),
    ] {
        assert_eq!(said(path, query.clone()).await, (true, String::new()), "{query}");
    }
    for (query, why) in [
        (json!({"mtch": {"t": "fox"}}), "unknown query [mtch]"),
        (json!({"nested": {}}), "the query [nested] is not supported"),
        (json!({"term": {"n": "many"}}), "many"),
        (json!({"range": {"d": {"gte": "no date"}}}), "no date"),
        (json!({"query_string": {"query": "(fox"}}), "Failed to parse query [(fox]"),
        (json!({"bool": {"must": vec![json!({"match_all": {}}); 1024]}}), "max_clause_count"),
    ] {
        let (valid, error) = said("/a", query.clone()).await;
        assert!(!valid && error.contains(why), "{query}: {error}");
    }
    let of_text = c.get("/a/_validate/query?q=(fox").await;
    assert_eq!(of_text["valid"], false, "{of_text}");
    let of_one = c.get("/a/_validate/query?q=t:fox&all_shards=false").await;
    assert_eq!(of_one["_shards"], json!({"total": 1, "successful": 1, "failed": 0}));
    for name in ["all_shards", "explain", "rewrite"] {
        let (path, why) =
            (format!("/a/_validate/query?{name}=true"), format!("[{name}] is not supported"));
        c.refuses(400, &why, "GET", &path, Value::Null).await;
    }
    c.refuses(400, "query cannot be null", "POST", "/a/_validate/query", json!({})).await;
    c.answers(404, "GET", "/nope*/_validate/query", Value::Null).await;
}

async fn the_words_of_a_text_are_shown(env: Env) {
    let c = filled(&env).await;
    let token = |word: &str, from: usize, to: usize, position: usize| {
        json!({
            "token": word, "start_offset": from, "end_offset": to, "type": "<ALPHANUM>", "position": position,
        })
    };
    let text = "A Fox jumps";
    for (path, body, expected) in [
        (
            "",
            json!({"text": text}),
            json!([token("a", 0, 1, 0), token("fox", 2, 5, 1), token("jumps", 6, 11, 2)]),
        ),
        (
            "",
            json!({"text": [text], "analyzer": "english"}),
            json!([token("fox", 2, 5, 1), token("jump", 6, 11, 2)]),
        ),
        ("/a", json!({"text": "Fox", "field": "t"}), json!([token("fox", 0, 3, 0)])),
        ("/a", json!({"text": "Fox", "field": "nowhere"}), json!([token("fox", 0, 3, 0)])),
    ] {
        let answer = c.must("POST", &format!("{path}/_analyze"), body.clone()).await;
        assert_eq!(answer["tokens"], expected, "{body}");
    }
    let whole = c.must("POST", "/a/_analyze", json!({"text": text, "field": "m.raw"})).await;
    assert_eq!(
        (&whole["tokens"][0]["token"], &whole["tokens"][0]["type"]),
        (&json!(text), &json!("word"))
    );
    for (path, body, said) in [
        ("/a", json!({"text": text, "field": "n"}), "only supported on tokenized fields"),
        ("", json!({"text": text, "field": "t"}), "requires an index"),
        ("", json!({"text": text, "analyzer": "french"}), "the analyzer [french] is not supported"),
        ("", json!({"text": text, "filter": ["stop"]}), "[filter] of _analyze"),
        ("", json!({"text": [text, text]}), "with 2 texts is not supported"),
        ("", json!({"text": "a ".repeat(10_001)}), "more than [10000] words"),
        ("", json!({"analyzer": "simple"}), "text is missing"),
    ] {
        c.refuses(400, said, "POST", &format!("{path}/_analyze"), body).await;
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn filled(env: &Env) -> Cluster {
    let c = Cluster::start(env, "c", 1).await;
    let text = json!({"type": "text"});
    let properties = json!({
        "t": text, "u": text, "k": {"type": "keyword"}, "n": {"type": "integer"}, "d": {"type": "date"},
        "p": {"type": "geo_point"},
        "m": {"type": "match_only_text", "fields": {"raw": {"type": "keyword", "ignore_above": 256}}},
    });
    let body = json!({
        "settings": {"number_of_shards": 1, "number_of_replicas": 0, "index.codec": "best_compression"},
        "mappings": {"properties": properties},
    });
    c.make("a", body).await;
    let documents = [
        json!({"t": "the quick brown fox", "k": "Quick Fox", "n": 1, "d": "2020-01-01", "m": "GET /images/logo.gif HTTP/1.0"}),
        json!({"t": "quick quick dog and brown cat", "k": "dog", "n": 2, "d": "2020-02-01", "m": "GET / HTTP/1.0"}),
        json!({"t": "lazy dog", "k": "Lazy", "n": 30, "d": "2021-01-01", "u": "fox and dog", "m": "POST /form HTTP/1.1"}),
        json!({"t": "brown brown brown", "k": "brown", "n": 404, "u": "quick", "m": "logo GET"}),
        json!({"t": "fox", "k": "fo*x", "n": 5, "m": "..."}),
        json!({"n": -7, "u": "lazy cat", "p": {"lat": 1, "lon": 2}}),
    ];
    for (id, document) in documents.into_iter().enumerate() {
        c.must("PUT", &format!("/a/_doc/{id}?refresh"), document).await;
    }
    c
}

fn ids(found: &Value) -> String {
    let hits = found["hits"]["hits"].as_array().unwrap();
    let mut ids: Vec<&str> = hits.iter().map(|hit| hit["_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.concat()
}

async fn a_parameter_asks_as_a_body_does(env: Env) {
    let c = filled(&env).await;
    for (q, any, all) in [
        ("fox", "024", "024"),
        ("quick dog", "0123", "1"),
        ("quick AND dog", "1", "1"),
        ("+quick -dog", "03", "03"),
        ("quick NOT dog", "03", "03"),
        ("t:quick u:lazy", "015", ""),
        ("n:>=30", "23", "23"),
        ("n:[1 TO 5}", "01", "01"),
        ("d:[2020-01-15 TO *]", "12", "12"),
        ("404", "3", "3"),
        ("\"quick brown\"", "0", "0"),
        ("k:Qui* OR t:LA?Y", "02", "02"),
        ("br*n", "013", "013"),
        ("t:/d.g/", "12", "12"),
        ("_exists_:u", "235", "235"),
        ("u:*", "235", "235"),
        ("*", "012345", "012345"),
        ("!fox", "135", "135"),
        ("_id:3", "3", "3"),
        ("(quick OR lazy) AND dog", "12", "12"),
        ("fox AND ...", "4", "4"),
        ("t:fox AND t:...", "04", "04"),
        ("k:fo\\*x", "4", "4"),
        ("none:x", "", ""),
    ] {
        let path = format!("/a/_search?q={}", percent_encoded(q));
        assert_eq!(ids(&c.get(&path).await), any, "{q}");
        // It stands above the query of a body, as in the field.
        let body = json!({"query": {"match_none": {}}});
        let path = format!("{path}&default_operator=and");
        assert_eq!(ids(&c.must("POST", &path, body).await), all, "{q} with AND");
        let body = json!({"query": {"query_string": {"query": q}}});
        assert_eq!(ids(&c.must("POST", "/a/_search", body).await), any, "{q} in a body");
        let count = c.get(&format!("/a/_count?q={}", percent_encoded(q))).await;
        assert_eq!(count["count"], any.len(), "{q} counted");
    }
    // Unlike a search, a count takes one of both.
    let body = json!({"query": {"match_none": {}}});
    assert_eq!(c.ask("POST", "/a/_count?q=fox", body).await.0, 400);
    assert_eq!(ids(&c.get("/a/_search?q=fox&df=u").await), "2");
    c.answers(400, "GET", "/a/_search?q=fox&df=n", Value::Null).await;
    assert_eq!(ids(&c.get("/a/_search?q=fox&df=n&lenient").await), "");
    let gone = c.post("/a/_delete_by_query?q=t:lazy&refresh").await;
    assert_eq!(gone["deleted"], 1, "{gone}");
    c.post("/a/_update_by_query?q=k:dog&refresh").await;
    assert_eq!(c.get("/a/_doc/1").await["_version"], 2);
}

async fn bodies_ask_several_fields(env: Env) {
    let c = filled(&env).await;
    let asked = |more: Value| {
        let mut body = json!({"query": "quick dog", "fields": ["t", "u"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "multi_match": body })
    };
    let of_t = |(kind, text): (&str, &str)| json!({ kind: {"query": text, "fields": ["t"]} });
    let within = |query: Value| json!({"bool": {"must": [query, {"match": {"t": "quick"}}]}});
    for (query, found) in [
        (asked(json!({})), "0123"),
        (asked(json!({"operator": "and"})), "1"),
        (asked(json!({"type": "most_fields"})), "0123"),
        (asked(json!({"query": "lazy cat", "type": "phrase"})), "5"),
        (asked(json!({"query": "..."})), ""),
        (asked(json!({"query": "404", "fields": ["t", "n"]})), "3"),
        (json!({"multi_match": {"query": "fox"}}), "024"),
        (json!({"dis_max": {"queries": [{"match": {"t": "lazy"}}, {"term": {"k": "dog"}}]}}), "12"),
        (json!({"wildcard": {"k": "*o*"}}), "0134"),
        (json!({"wildcard": {"k": {"value": "fo\\*?"}}}), "4"),
        (json!({"wildcard": {"t": "qui*"}}), "01"),
        (json!({"wildcard": {"t": "QUI*"}}), ""),
        (json!({"regexp": {"k": "[A-Z].*"}}), "02"),
        (json!({"regexp": {"k": "ro"}}), ""),
        (json!({"regexp": {"k": ""}}), ""),
        (json!({"wildcard": {"k": ""}}), ""),
        (json!({"prefix": {"k": ""}}), "01234"),
        (json!({"prefix": {"k": {"value": "", "case_insensitive": true}}}), "01234"),
        (json!({"term": {"k": {"value": "QUICK fox", "case_insensitive": true}}}), "0"),
        (json!({"term": {"k": {"value": "FO*X", "case_insensitive": true}}}), "4"),
        (json!({"prefix": {"k": {"value": "l", "case_insensitive": true}}}), "2"),
        (json!({"wildcard": {"t": {"value": "QUI*", "case_insensitive": true}}}), "01"),
        (json!({"regexp": {"k": {"value": "qUI[c]K .*", "case_insensitive": true}}}), "0"),
        (json!({"regexp": {"k": {"value": "[a-m]azy", "case_insensitive": true}}}), ""),
        (json!({"match_bool_prefix": {"t": "dog bro"}}), "0123"),
        (json!({"match_bool_prefix": {"t": {"query": "quick bro", "operator": "and"}}}), "01"),
        (json!({"match_bool_prefix": {"k": "Qui"}}), "0"),
        (json!({"match_bool_prefix": {"n": 2}}), "1"),
        (json!({"match_phrase_prefix": {"t": "quick bro"}}), "0"),
        (json!({"match_phrase_prefix": {"t": "quick"}}), "01"),
        (json!({"match_phrase_prefix": {"t": "quick brown d"}}), ""),
        (json!({"match_phrase_prefix": {"t": {"query": "and b", "max_expansions": 1}}}), "1"),
        (json!({"match_phrase_prefix": {"t": {"query": "quick", "max_expansions": 1}}}), "01"),
        (json!({"match_phrase_prefix": {"m": "images lo"}}), "0"),
        // A text without words finds nothing, whatever stands around it; of its clauses those with words count.
        (of_t(("query_string", "...")), ""),
        (within(of_t(("query_string", "..."))), ""),
        (within(of_t(("simple_query_string", "..."))), ""),
        (within(of_t(("simple_query_string", "... + !"))), ""),
        (of_t(("query_string", "\"...\" AND \"!\"")), ""),
        (within(of_t(("query_string", "\"...\" AND \"!\""))), ""),
        (within(of_t(("query_string", "\"...\" AND dog"))), "1"),
        (of_t(("query_string", "+\"...\" dog")), "12"),
        (of_t(("query_string", "-\"...\"")), ""),
        (of_t(("query_string", "\"...\" -fox")), "1235"),
        (within(of_t(("query_string", "+\"...\" -fox"))), "1"),
    ] {
        let answer = c.must("POST", "/a/_search", json!({ "query": query })).await;
        assert_eq!(ids(&answer), found, "{query}");
    }
    let hidden = json!({"query": of_t(("query_string", "...")), "post_filter": {"term": {"n": 1}}});
    assert_eq!(ids(&c.must("POST", "/a/_search", hidden).await), "", "as with a post_filter");
    // No pattern is compiled but regular expressions, and these are few: else one search stops a node for minutes.
    let any = |clauses: Vec<Value>| json!({"query": {"bool": {"should": clauses}}, "sort": "n"});
    let wildcards = (0..1000).map(|n| json!({"wildcard": {"k": "*?".repeat(500 - n % 7)}}));
    assert_eq!(ids(&c.must("POST", "/a/_search", any(wildcards.collect())).await), "");
    let same = (0..100).map(|_| json!({"regexp": {"k": "((a?){20}){30}b"}})).collect();
    assert_eq!(ids(&c.must("POST", "/a/_search", any(same)).await), "");
    let many = (0..17).map(|n| json!({"regexp": {"k": format!("a{{{n}}}")}})).collect();
    let long = |kind: &str, bytes: usize| {
        let asked = json!({"value": "a".repeat(bytes), "case_insensitive": true});
        json!({ kind: {"k": asked} })
    };
    let kinds = ["term", "prefix", "wildcard"];
    let longest = kinds.map(|kind| long(kind, 4000)).to_vec();
    assert_eq!(ids(&c.must("POST", "/a/_search", any(longest)).await), "");
    let [term, prefix, wildcard] = kinds.map(|kind| vec![long(kind, 4096)]);
    let of_number = json!({"term": {"n": {"value": "2", "case_insensitive": true}}});
    for (clauses, why) in [
        (many, "more than 16 regular expressions"),
        (vec![long("regexp", 1001)], "index.max_regex_length"),
        (term, "[term] or [prefix] with [case_insensitive], has more than 4095 bytes"),
        (prefix, "[term] or [prefix] with [case_insensitive], has more than 4095 bytes"),
        (wildcard, "the pattern of a [wildcard]"),
        (vec![of_number], "Can only use case-insensitive term"),
    ] {
        c.refuses(400, why, "POST", "/a/_search", any(clauses)).await;
    }
    // The best field scores; the others add their share.
    let score = async |query: Value| {
        let body = json!({"query": {"bool": {"must": query, "filter": {"term": {"n": 2}}}}});
        let answer = c.must("POST", "/a/_search", body).await;
        answer["hits"]["max_score"].as_f64().unwrap()
    };
    let (one, other) = (json!({"match": {"t": "quick"}}), json!({"term": {"k": "dog"}}));
    let (a, b) = (score(one.clone()).await, score(other.clone()).await);
    let in_text = score(json!({"match": {"t": "dog"}})).await;
    for share in [0.0, 0.5, 1.0] {
        let both = json!({"dis_max": {"queries": [one, other], "tie_breaker": share}});
        let expected = a.max(b) + share * a.min(b);
        assert!((score(both).await - expected).abs() < 1e-4, "{share}");
        let fields = json!({"query": "dog", "fields": ["t", "k"], "type": "most_fields", "tie_breaker": share});
        let expected = in_text.max(b) + share * in_text.min(b);
        let found = score(json!({"multi_match": fields})).await;
        assert!((found - expected).abs() < 1e-4, "most_fields {share}");
    }
    let summed = json!({"query": "dog", "fields": ["t", "k"], "type": "most_fields"});
    assert!((score(json!({"multi_match": summed})).await - in_text - b).abs() < 1e-4);
    assert_eq!(score(json!({"match_all": {}})).await, 1.0, "beside a filter");
    // The words of one place count together: where there is but one, as in a phrase.
    let phrase = json!({"match_phrase": {"t": "quick dog"}});
    let begun = json!({"match_phrase_prefix": {"t": "quick do"}});
    assert!((score(begun).await - score(phrase).await).abs() < 1e-4);
    let unplaced = json!({"properties": {"unplaced": {"type": "text", "index_options": "freqs"}}});
    c.must("PUT", "/unplaced", json!({"mappings": unplaced})).await;
    c.must("PUT", "/unplaced/_doc/1?refresh", json!({"unplaced": "quick dog"})).await;
    for (kind, status) in [("match", 200), ("match_phrase", 400), ("match_phrase_prefix", 400)] {
        let body = json!({"query": {kind: {"unplaced": "quick dog"}}});
        assert_eq!(c.ask("POST", "/unplaced/_search", body).await.0, status, "{kind}");
    }
    let one_more = json!({"constant_score": {"filter": {"match_all": {}}}});
    let two = json!({"bool": {"should": [{"match": {"t": "quick"}}, one_more]}});
    let begun = json!({"match_bool_prefix": {"t": "quick do"}});
    assert!((score(begun).await - score(two).await).abs() < 1e-4);
    let boosted = json!({"multi_match": {"query": "quick", "fields": ["t^3"]}});
    assert!((score(boosted).await - 3.0 * a).abs() < 1e-4);
}

async fn words_that_score_alike_are_found_with_their_phrases(env: Env) {
    let c = filled(&env).await;
    for (query, found, score) in [
        (json!({"match": {"m": "GET"}}), "013", 1.0),
        (json!({"match": {"m": "GET logo"}}), "013", 2.0),
        (json!({"match": {"m": {"query": "get logo", "operator": "and"}}}), "3", 2.0),
        (json!({"match_phrase": {"m": "GET logo"}}), "", 0.0),
        (json!({"match_phrase": {"m": "logo get"}}), "3", 1.0),
        (json!({"term": {"m": {"value": "post", "boost": 3}}}), "2", 3.0),
        (json!({"prefix": {"m": "lo"}}), "03", 1.0),
        (json!({"exists": {"field": "m"}}), "01234", 1.0),
        (json!({"range": {"m": {"lt": "http"}}}), "0123", 1.0),
        (json!({"match": {"m": "..."}}), "", 0.0),
        (json!({"term": {"m.raw": "GET / HTTP/1.0"}}), "1", 0.0),
    ] {
        let answer = c.must("POST", "/a/_search", json!({ "query": query })).await;
        assert_eq!(ids(&answer), found, "{query}");
        if score > 0.0 {
            assert_eq!(answer["hits"]["max_score"], score, "{query}");
        }
    }
    let shown = c.get("/a/_mapping").await;
    assert_eq!(shown["a"]["mappings"]["properties"]["m"]["type"], "match_only_text");
    let body = json!({"properties": {"m": {"type": "text"}}});
    assert_eq!(c.ask("PUT", "/a/_mapping", body).await.0, 400, "the type of a field stays");
    for (parameter, value) in
        [("norms", json!(true)), ("index", json!(false)), ("analyzer", json!("x"))]
    {
        let body = json!({"properties": {"z": {"type": "match_only_text", parameter: value}}});
        c.refuses(400, parameter, "PUT", "/a/_mapping", body).await;
    }
}

async fn what_cannot_be_asked_is_said(env: Env) {
    let c = filled(&env).await;
    c.set(json!({"search.default_search_timeout": "0s"})).await;
    for (path, body, ends) in [
        ("/a/_search", json!({}), true),
        ("/a/_search", json!({"timeout": "1m"}), false),
        ("/a/_search", json!({"timeout": "-1"}), false),
        ("/a/_search?timeout=-1", json!({}), false),
    ] {
        let found = c.must("POST", path, body.clone()).await;
        assert!(!found["timed_out"].as_bool().unwrap() || ends, "{path} {body}: {found}");
    }
    c.set(json!({"search.default_search_timeout": "-1"})).await;
    for (parameters, why) in [
        ("q=(fox", "a parenthesis is not closed"),
        ("q=fox~1", "[~] is not supported"),
        ("q=x&analyzer=german", "[analyzer]"),
        ("q=x&analyzer=standard", "[analyzer]"),
        ("q=x*&analyze_wildcard=true", "[analyze_wildcard]"),
        ("q=x&default_operator=xor", "[default_operator]"),
        ("df=t", "there is no [q]"),
        // `lenient` is the default of all fields, not of one that is named.
        ("q=n:abc&lenient=false", "abc"),
    ] {
        c.refuses(400, why, "POST", &format!("/a/_search?{parameters}"), json!({})).await;
    }
    for (query, why) in [
        (json!({"query_string": {"query": "(x"}}), "not closed"),
        (json!({"query_string": {"query": "x", "fuzziness": 1}}), "fuzziness [1] is not"),
        (json!({"multi_match": {"query": "x", "type": "cross_fields"}}), "cross_fields"),
        (json!({"wildcard": {"n": "1*"}}), "keyword and text"),
        (json!({"regexp": {"k": "a@"}}), "[@] is not supported"),
        (json!({"regexp": {"k": "a("}}), "cannot be read"),
        (json!({"term": {"_index": "a"}}), "[_index] cannot be searched"),
    ] {
        c.refuses(400, why, "POST", "/a/_search", json!({ "query": query })).await;
    }
    let none = json!({"query": {"match_none": {}}});
    let counted = c.must("GET", "/_cat/count/a?format=json&h=count", none).await;
    assert_eq!(counted, json!([{"count": "0"}]));
    c.refuses(400, "best_compression", "PUT", "/z", json!({"settings": {"index.codec": "zstd"}}))
        .await;
}
