//! `_analyze`: the words that an analyzer finds in a text.

use query::mapping::Analyzer;
use query::{FieldType, Mapping};
use serde_json::{Value, json};
use store::{AnalyzedWord, analyzed};
use world::Work;

use super::answer::Reply;
use super::call::{Call, object, texts};
use super::error::{bad_body, bad_request, invalid, not_supported};
use super::names::one_index;
use engine::transport::Result;

/// Words of an answer, at most: the field's default of `index.analyze.max_token_count`.
const WORDS_MAX: usize = 10_000;

/// `GET /{index}/_analyze`.
pub(super) async fn analyze(call: Call) -> Result<Reply> {
    let (mut analyzer, mut field, mut text) = (None, None, None);
    for (key, value) in object(call.needed_json()?, ": {\"analyzer\", \"field\", \"text\"}")? {
        match (key.as_str(), value) {
            ("analyzer", Value::String(name)) => analyzer = Some(named(&name)?),
            ("field", Value::String(path)) => field = Some(path),
            ("text", value) => text = Some(one_text(&value)?),
            ("explain", Value::Bool(false)) => {}
            (key, value) => {
                let what = format!("[{key}] of _analyze that is {value}");
                return Err(not_supported(&what, "send [text], with [analyzer] or [field]"));
            }
        }
    }
    let text = text.ok_or_else(|| invalid("text is missing"))?;
    let analyzer = match (analyzer, field) {
        (Some(_), Some(_)) => {
            let why = "[analyzer] and [field] are two analyzers; send one of them";
            return Err(bad_request(why));
        }
        (Some(analyzer), None) => analyzer,
        (None, field) => of_field(&call, field.as_deref())?,
    };
    let work = Work::Parse { bytes: text.len() as u64 };
    let env = &call.node.core().env;
    let words = env.work(work, move || analyzed(analyzer, &text, WORDS_MAX + 1)).await;
    if words.len() > WORDS_MAX {
        return Err(bad_request(format!(
            "the text has more than [{WORDS_MAX}] words; send it in parts"
        )));
    }
    let token = |AnalyzedWord { text, from, to, position, kind }: AnalyzedWord| {
        json!({
            "token": text, "start_offset": from, "end_offset": to, "type": kind, "position": position,
        })
    };
    let tokens: Vec<Value> = words.into_iter().map(token).collect();
    Ok(json!({ "tokens": tokens }).into())
}

fn named(name: &str) -> Result<Analyzer> {
    let found = Analyzer::NAMED.iter().find(|(known, _)| *known == name);
    found.map(|(_, analyzer)| *analyzer).ok_or_else(|| {
        let instead = "send standard, simple, whitespace, keyword or english";
        not_supported(&format!("the analyzer [{name}]"), instead)
    })
}

fn one_text(value: &Value) -> Result<String> {
    let texts = texts(value).map_err(|_| bad_body("[text] is a text, or a list of one"))?;
    let [text] = <[String; 1]>::try_from(texts).map_err(|texts| {
        let what = format!("[text] of _analyze with {} texts", texts.len());
        not_supported(&what, "send a request for each")
    })?;
    Ok(text)
}

/// The analyzer of a field, or that of fields of which nothing is known.
fn of_field(call: &Call, field: Option<&str>) -> Result<Analyzer> {
    let state = call.state();
    let index = call.indices().map(|name| one_index(&state, name)).transpose()?;
    let Some(path) = field else { return Ok(Analyzer::Standard) };
    let index = index.ok_or_else(|| {
        bad_request("analysis based on a specific field requires an index; name it in the path")
    })?;
    let mapping = Mapping::stored(&state.indices[index].mappings)?;
    match mapping.field(path) {
        None => Ok(Analyzer::Standard),
        Some(of) if of.kind.has_words() => Ok(of.analyzers.0),
        Some(of) if of.kind == FieldType::Keyword => Ok(Analyzer::Keyword),
        Some(_) => Err(bad_request(format!(
            "Can't process field [{path}], Analysis requests are only supported on tokenized fields"
        ))),
    }
}
