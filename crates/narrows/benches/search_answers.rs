//! The embedded engine and OpenSearch, asked the same: the bodies of `search_answers/requests.txt`, each sent to both,
//! which have the same documents in one shard.
//!
//! Hits with their scores, order, values and fragments, counts, and aggregations are to be equal. Hits that score the
//! same come in the order of their documents in the shard: no refresh by time cuts these into several segments, which a
//! merge would put into the order of their sizes. A request that both refuse is equal; those that one of them refuses
//! are counted apart. It fails where an answer is another one.
//! Needs Java and mvn, or `NARROWS_OPENSEARCH_HOME`. `NARROWS_BENCH_ONLY` is a part of the names of groups to ask.

mod common;

use std::fmt::Write as _;

use bytes::Bytes;
use clusters::{Clusters, Error};
use serde_json::{Value, json};
use testbed::bench::Table;
use world::Env;

const CLUSTER: &str = "answers";
const MAPPING: &str = include_str!("search_answers/mapping.json");
const REQUESTS: &str = include_str!("search_answers/requests.txt");
const DOCUMENTS: usize = 120;

const TABLE: Table = Table {
    page: "search_answers",
    name: "measured",
    columns: &[
        "asked for", "asked", "equal", "refused here", "refused or wrong there", "another answer",
    ],
};

const TITLES: [&str; 15] = [
    "Quick brown fox",
    "The quick brown fox jumps over the lazy dog",
    "roam",
    "roams roaming roam foam",
    "room for a fox",
    "home from Rome",
    "quick quick dog",
    "lazy Dog and lazy fox",
    "Wi-Fi in 2024, as O'Neil said",
    "naïve 3.14 a.b_c",
    "brown roam",
    "quick fox quick room",
    "raom and quikc are misspelt",
    "form of foam",
    "Fox",
];

/// For stems: possessives, stop words alone and within phrases, and words whose stems other stemmers tell apart.
const PROSE: [&str; 12] = [
    "The generations of generously gifted generals",
    "It is not to be",
    "The dog's bones and the foxes' skies",
    "Relational operators, conditional flies, dying",
    "A running runner ran the runs",
    "possibly the possible possibility of possession",
    "to be or not to be, that is the question",
    "Agreed: the agreement of the agreeing was agreeable",
    "the fox of the dog",
    "fox dog",
    "fox in dog",
    "Archaeology\u{2019}s happiness: ponies, cafés and naïvely hopping hopefuls",
];

/// For fragments: where sentences end and where they seem to, sentences longer than a fragment, signs of HTML, and
/// characters of two units of UTF-16.
const STORIES: [&str; 10] = [
    "The quick fox ran. It was late! Nobody saw that the fox, which had never been seen by day, went to the old mill \
     behind the river where the lazy dog slept. Fox and dog. The end",
    "Mr. Fox lives at 3.14 Mill Road, e.g. near the river. \"Is it far?\" asked the dog. No. It is not far, said the \
     fox; follow me (it is this way). They went...",
    "One fox. - two foxes; three dogs. The U.S.-based fox ran to the mill. Then what? Then nothing.",
    "<b>Fox</b> & \"dogs\": 5$ / day, it's so. <i>The mill</i> is closed.\nThe river\tis not.",
    "na\u{ef}ve caf\u{e9} \u{1f98a} fox. \u{c9}clair of the mill \u{2013} \u{201c}the dog\u{2019}s\u{201d} own. \
     \u{1f98a}\u{1f98a} The fox again, and the fox again, and again the fox until nobody counts the fox any more, \
     neither the dog nor the old miller who has seen a fox or two in his long life by the slow brown river",
    "fox",
    "The dog slept.   The dog slept.  The dog slept all day long, and all night long, and in the morning the dog woke \
     up and ran to the mill, where the fox was not. The fox had gone. A dog is not a fox. No dog ever was one.",
    "quick quick fox quick fox dog fox quick, brown fox: quick brown fox and quick-brown fox",
    "  A story without what is looked for. It has sentences, which are short. It ends.  ",
    "mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill mill \
     mill mill mill mill mill mill mill mill fox mill mill mill mill mill mill mill mill mill mill mill mill mill",
];

/// A document of its number alone. Some lack a field, and some have several values, or null.
fn document(i: usize) -> Value {
    let pick = |of: usize, salt: usize| (i * 7919 + salt * 104_729 + i * i * 31) % of;
    let one = |of: &[&'static str], salt: usize| of[pick(of.len(), salt)];
    let mut document = json!({
        "title": TITLES[pick(TITLES.len(), 1)],
        "body": format!("{} {}", TITLES[pick(TITLES.len(), 2)], TITLES[pick(TITLES.len(), 3)]),
        "mixed": TITLES[pick(TITLES.len(), 4)],
        "tag": one(&["red", "blue", "green", "beige", "Red"], 5),
        "code": one(&["abc", "x", "abcd", "yy"], 6),
        "flag": pick(3, 7) == 0,
        "count": pick(9, 8),
        "small": pick(200, 9) as i64 - 100,
        "big": i as i64 * 10 - 300,
        "price": pick(1000, 10) as f64 / 100.0,
        "rating": pick(70, 11) as f64 / 8.0,
        // Every 73 hours and 11 minutes from 2024 on: all changes of clocks of that year.
        "when": 1_704_067_200_000 + i as i64 * 263_460_000,
        "day": format!("2024-{:02}-{:02}", 1 + pick(12, 12), 1 + pick(28, 13)),
        "address": format!("10.0.0.{}", pick(6, 14)),
        "place": { "lat": pick(40, 15) as f64 - 5.0, "lon": pick(50, 16) as f64 },
        "span": { "gte": pick(8, 17) as f64 / 2.0, "lt": 4.0 + pick(6, 18) as f64 / 2.0 },
        "k_kind": format!("Kind {}", one(&["One", "Two", "Three"], 19)),
        "n_size": pick(8, 20),
        "n_size_raw": pick(5, 21),
        "a_note": format!("note {}", pick(4, 22)),
        "a_number": pick(6, 23),
        "deep": { "one": { "name": one(&["inner", "outer"], 24) } },
        "prose": (i % 7 != 5).then_some(PROSE[i % PROSE.len()]),
        "story": (i % 9 != 4).then_some(STORIES[i % STORIES.len()]),
    });
    let names = ["tag", "count", "flag", "price", "day", "code", "body", "place", "span", "title"];
    let name = names[i % names.len()];
    match i % 4 {
        0 => drop(document.as_object_mut().and_then(|fields| fields.remove(name))),
        1 => document[name] = Value::Null,
        _ => {}
    }
    if i.is_multiple_of(11) {
        document["tag"] = json!(["red", "violet", "red"]);
        document["big"] = json!([i as i64 * 10 - 300, 40]);
        document["prose"] = json!(["fox dog", "fox in dog"]);
        document["story"] = json!([STORIES[i % 5], "", STORIES[5 + i % 5], STORIES[(i + 1) % 10]]);
        document["place"] = json!([[i % 50, i % 30], [20, 30]]);
    }
    document
}

/// The status of an answer, and what it says; of a refusal, the reason.
async fn ask(target: &impl Clusters, method: &str, path: &str, body: String) -> (u16, Value) {
    match target.request(CLUSTER, method, path, Bytes::from(body)).await {
        Ok(answer) => (answer.status, answer.json().expect("it is JSON")),
        Err(Error::Refused { status, kind, reason, .. }) => {
            (status, json!({ "error": format!("{kind}: {reason}") }))
        }
        Err(error) => panic!("{}: {method} {path}: {error}", target.name()),
    }
}

/// The index that bodies of a group are sent to: one that says what is asked where no field is named, or one that does
/// not.
fn index_of(group: &str) -> &'static str {
    if group == "default_field" { "named" } else { "answers" }
}

async fn fill(target: &impl Clusters, name: &str) {
    let mapping: Value = serde_json::from_str(MAPPING).expect("it is JSON");
    let mut settings =
        json!({ "number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1" });
    if name == index_of("default_field") {
        settings["index.query.default_field"] = json!(["title^2", "tag", "count", "n_*"]);
    }
    let index = json!({ "settings": settings, "mappings": mapping }).to_string();
    let mut bulk = String::new();
    for i in 0..DOCUMENTS {
        let _ = writeln!(bulk, "{}\n{}", json!({ "index": { "_id": i.to_string() } }), document(i));
    }
    for (method, path, body) in [("PUT", "", index), ("POST", "/_bulk?refresh=true", bulk)] {
        let path = format!("/{name}{path}");
        let (status, answer) = ask(target, method, &path, body).await;
        let failed = answer["errors"] == true;
        assert!(status == 200 && !failed, "{}: {method} {path}: {answer}", target.name());
    }
}

/// Whether two answers say the same; numbers with a fraction to four digits, as both compute scores with 24 bits.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= 1e-4 * a.abs().max(b.abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| alike(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => a == b,
    }
}

/// What of an answer is compared: all but times.
fn essence((status, answer): &(u16, Value)) -> Value {
    if *status != 200 {
        return json!({ "status": status });
    }
    let hits = answer["hits"]["hits"].as_array().into_iter().flatten();
    let shown = |hit: &Value| {
        json!([hit["_score"], hit["_id"], hit["sort"], hit["fields"], hit["highlight"]])
    };
    let hits: Vec<Value> = hits.map(shown).collect();
    let found = &answer["hits"];
    let (total, best) = (&found["total"], &found["max_score"]);
    json!({ "total": total, "max_score": best, "hits": hits, "aggregations": answer["aggregations"] })
}

/// Bodies by what they ask for, each with whether OpenSearch answers it wrongly.
fn asked() -> Vec<(&'static str, Vec<(Value, bool)>)> {
    let mut groups: Vec<(&str, Vec<(Value, bool)>)> = Vec::new();
    for line in REQUESTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            groups.push((name.trim_end_matches(']'), Vec::new()));
            continue;
        }
        let (line, is_wrong) = line.strip_prefix('!').map_or((line, false), |line| (line, true));
        let mut body: Value = serde_json::from_str(line).expect(line);
        if body.get("size").is_none() {
            body["size"] = json!(200);
        }
        groups.last_mut().expect("a group comes first").1.push((body, is_wrong));
    }
    groups
}

async fn compare(embedded: &impl Clusters, opensearch: &impl Clusters) -> usize {
    let only = std::env::var("NARROWS_BENCH_ONLY").unwrap_or_default();
    let mut all = [0; 5];
    for (name, bodies) in asked().into_iter().filter(|(name, _)| name.contains(&only)) {
        let mut counts = [bodies.len(), 0, 0, 0, 0];
        let path = format!("/{}/_search", index_of(name));
        for (body, is_wrong) in bodies {
            let ours = ask(embedded, "POST", &path, body.to_string()).await;
            let theirs = ask(opensearch, "POST", &path, body.to_string()).await;
            let (here, there) = (essence(&ours), essence(&theirs));
            let outcome = match (ours.0, theirs.0) {
                _ if alike(&here, &there) => 1,
                // What is refused here is a failure of the server there, now and then.
                (400, 400..) => 1,
                (400, 200) => 2,
                (200, 400..) => 3,
                (200, 200) if is_wrong => 3,
                _ => 4,
            };
            counts[outcome] += 1;
            if outcome > 1 {
                let (why, its_why) = (&ours.1["error"], &theirs.1["error"]);
                eprintln!(
                    "[{name}] {body}\n  embedded   {here} {why}\n  OpenSearch {there} {its_why}"
                );
            }
        }
        (0..5).for_each(|i| all[i] += counts[i]);
        add_row(name, counts);
    }
    add_row("all", all);
    all[4]
}

fn add_row(name: &str, counts: [usize; 5]) {
    let mut cells = vec![name.to_owned()];
    cells.extend(counts.map(|count| count.to_string()));
    TABLE.row(&cells);
}

async fn bench(env: &Env) {
    let (mut embedded, mut opensearch) = common::start_both(env, CLUSTER, 1024).await;
    for group in ["", "default_field"] {
        fill(&embedded, index_of(group)).await;
        fill(&opensearch, index_of(group)).await;
    }
    TABLE.begin();
    let others = compare(&embedded, &opensearch).await;
    embedded.stop().await;
    opensearch.stop().await;
    assert_eq!(others, 0, "answers that are not those of OpenSearch");
}

fn main() {
    world::real_world::run(1, async |env| bench(&env).await);
}
