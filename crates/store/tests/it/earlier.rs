//! Copies that an earlier build made, on real files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{document, on_real_files, write};
use bytes::Bytes;
use query::{Literal, Mapping, SearchLimits, parse_search};
use serde_json::{Value, json};
use store::sealed::{seal, unseal};
use store::{Options, Shard, WriteRequest};
use tantivy::schema::{DateOptions, DateTimePrecision, FieldEntry};
use world::Env;

fn mapping(properties: &Value) -> Mapping {
    Mapping::parse(&json!({ "properties": properties })).unwrap()
}

/// An empty copy in whose first commit the fields are as an earlier build had them.
async fn opened(env: &Env, dir: &Path, mapping: &Mapping, earlier: fn(&mut Vec<Value>)) -> Shard {
    let new = Shard::create(env, dir, mapping, Options::default()).await.unwrap();
    new.close().await.unwrap();
    let path = dir.join("commit-1/meta.json");
    let mut meta: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    earlier(meta["schema"].as_array_mut().unwrap());
    let text = meta.to_string();
    fs::write(&path, &text).unwrap();
    // Opening compares lengths, whatever the options say.
    let path = dir.join("commit-1.json");
    let sealed = fs::read_to_string(&path).unwrap();
    let mut stored: Value = serde_json::from_str(unseal(&sealed).unwrap()).unwrap();
    let files = stored["commit"]["files"].as_array_mut().unwrap();
    let listed = files.iter_mut().find(|file| file["name"] == "meta.json").unwrap();
    listed["len"] = text.len().into();
    fs::write(&path, seal(&stored.to_string())).unwrap();
    let options = Options { check_on_startup: false, ..Options::default() };
    Shard::open(env, dir, mapping, options).await.unwrap()
}

#[test]
fn a_copy_of_an_earlier_build_takes_routings() {
    on_real_files(async |env, dir| {
        let mapping = mapping(&json!({"n": {"type": "long"}}));
        let without = |fields: &mut Vec<Value>| fields.retain(|field| field["name"] != "_routing");
        let shard = opened(&env, &dir, &mapping, without).await;
        for (id, routing) in [("0", None), ("1", Some("r"))] {
            let (source, routing) = (Bytes::from_static(b"{\"n\":1}"), routing.map(Arc::from));
            let (auto_id, create) = (false, false);
            let put = WriteRequest::Index { id: id.into(), source, auto_id, create, routing };
            write(&shard, vec![put]).await;
            shard.refresh().await.unwrap();
        }
        for when in ["in segments", "merged"] {
            for (id, expected) in [("0", None), ("1", Some("r"))] {
                let found = shard.get(id).await.unwrap().unwrap();
                assert_eq!(found.routing.as_deref(), expected, "{id} {when}");
            }
            shard.force_merge(1).await.unwrap();
        }
        assert_eq!(shard.stats().segments, 1);
    });
}

async fn found(shard: &Shard, body: &Value) -> Vec<i64> {
    let request = Arc::new(parse_search(body.to_string().as_bytes()).unwrap());
    let (hits, _) = shard.search(&request, &SearchLimits::default()).await.unwrap();
    let moment = |sort: &[Option<Literal>]| match sort {
        [Some(Literal::Integer(ms))] => *ms,
        other => panic!("{other:?}"),
    };
    hits.hits.iter().map(|hit| moment(&hit.sort)).collect()
}

/// Dates in nanoseconds are found as others, and merged with those that come; a date that is mapped later is kept in
/// milliseconds beside them.
#[test]
fn a_copy_of_an_earlier_build_goes_on_with_its_dates() {
    on_real_files(async |env, dir| {
        let mapped = mapping(&json!({"d": {"type": "date"}}));
        let with_nanoseconds = |fields: &mut Vec<Value>| {
            let field = fields.iter_mut().find(|field| field["name"] == "d").unwrap();
            let date = DateOptions::default().set_precision(DateTimePrecision::Milliseconds);
            *field = json!(FieldEntry::new_date("d".to_owned(), date.set_fast()));
        };
        let shard = opened(&env, &dir, &mapped, with_nanoseconds).await;
        for (id, date) in [("0", json!("2000-03-01")), ("1", json!(-1))] {
            write(&shard, vec![document(id, &json!({ "d": date }))]).await;
            shard.refresh().await.unwrap();
        }
        let late = document("x", &json!({"d": "3000-01-01"}));
        let said = shard.index(vec![late]).await.unwrap()[0].as_ref().unwrap_err().to_string();
        assert!(said.contains("[3000-01-01T00:00:00.000Z] is out of the range"), "{said}");

        let wider = mapping(&json!({"d": {"type": "date"}, "e": {"type": "date"}}));
        shard.set_mapping(&wider).await.unwrap();
        write(&shard, vec![document("2", &json!({"d": "1970", "e": "3000-01-01"}))]).await;
        shard.refresh().await.unwrap();
        let march = 951_868_800_000;
        for when in ["in segments", "merged"] {
            for (body, expected) in [
                (json!({"sort": ["d"]}), vec![-1, 0, march]),
                (json!({"sort": ["d"], "search_after": [-1]}), vec![0, march]),
                (json!({"sort": ["d"], "query": {"range": {"d": {"lt": "1970"}}}}), vec![-1]),
                (json!({"sort": ["d"], "query": {"term": {"d": "2000-03-01"}}}), vec![march]),
                (
                    json!({"sort": ["e"], "query": {"range": {"e": {"gt": "2999"}}}}),
                    vec![32_503_680_000_000],
                ),
            ] {
                assert_eq!(found(&shard, &body).await, expected, "{body} {when}");
            }
            shard.force_merge(1).await.unwrap();
        }
        assert_eq!(shard.stats().segments, 1);
    });
}
