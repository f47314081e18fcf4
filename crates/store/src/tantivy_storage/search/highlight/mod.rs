//! `highlight`: fragments of the texts of hits, with tags around the words that were found in them. Here are the fields
//! and their values, and what all of it may take.

mod breaks;
mod plain;
mod sought;
mod tagged;
mod unified;
mod wanted;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tantivy::Searcher;

use query::mapping::Analyzer;
use query::{
    FetchRequest, FetchedHit, Field, FieldType, Highlight, HighlightField, Highlighter, Mapping,
    Query, SearchLimits, illegal,
};
use record::names::matches;

use self::sought::Sought;
use self::wanted::Clause;
use super::failed::Result;
use super::findings::Findings;
use super::resolve::Resolver;

/// Characters of a field's texts, at most: `index.highlight.max_analyzed_offset` of the field, where nothing else is
/// said.
const MAX_CHARS: usize = 1_000_000;
/// What is done for all hits of a fetch: bytes of texts, as often as each is looked at, and of what is made of them.
const MAX_WORK: usize = 1 << 30;
/// What is made stays in memory until it is sent.
const WORK_OF_BYTE: usize = 8;

/// Fails where what is asked does not fit the mapping. A search begins with it: where a fetch fails, hits are left out.
pub(super) fn check(resolver: &Resolver<'_>, asked: &Highlight) -> Result<()> {
    let own = asked.fields.iter().filter_map(|field| field.query.as_ref());
    for query in own.chain(&asked.query) {
        resolver.clauses(query)?;
    }
    for field in &asked.fields {
        if let Some(mapped) = resolver.mapping.field(&field.pattern) {
            is_shown(field, &field.pattern, mapped)?;
        }
    }
    Ok(())
}

/// Adds fragments to hits, which come with their whole sources.
pub(crate) fn highlight(
    (searcher, mapping): (&Searcher, &Mapping),
    findings: &Arc<Findings>,
    (request, limits): (&FetchRequest, &SearchLimits),
    hits: &mut [FetchedHit],
) -> Result<()> {
    let resolver = Resolver::new((searcher, mapping), findings, limits);
    let asked = &request.highlight;
    let of = |query: &Query| resolver.clauses(query);
    let of_search = asked.query.as_ref().map(of).transpose()?.unwrap_or_default();
    let own = asked.fields.iter().map(|field| field.query.as_ref().map(of).transpose());
    let own = own.collect::<Result<Vec<Option<Vec<Clause>>>>>()?;
    let mut shown: BTreeMap<&str, Shown<'_>> = BTreeMap::new();
    for (asked, own) in asked.fields.iter().zip(&own) {
        let clauses = own.as_ref().unwrap_or(&of_search);
        for (path, mapped) in mapping.fields() {
            if !is_shown(asked, path, mapped)? {
                continue;
            }
            let counts = |clause: &&Clause| !asked.own_words || clause.path == *path;
            let sought = Sought::of(clauses.iter().filter(counts));
            shown.insert(path, Shown { asked, path, mapped, sought });
        }
    }
    shown.retain(|_, field| !field.sought.is_empty() || field.asked.no_match_size > 0);
    let mut work = 0;
    for hit in hits {
        let source = hit.source.as_ref().map(|source| serde_json::from_slice::<Value>(source));
        let Some(Ok(source)) = source else { continue };
        for (path, field) in &shown {
            let texts = field.texts(&source);
            let fragments = field.fragments(&texts, (&hit.id, &mut work), limits)?;
            if !fragments.is_empty() {
                hit.highlight.insert((*path).to_owned(), fragments);
            }
        }
    }
    Ok(())
}

/// Whether a field is one of those that are asked for: patterns stand for texts and keywords.
fn is_shown(asked: &HighlightField, path: &str, mapped: &Field) -> Result<bool> {
    let kind = mapped.kind;
    if asked.pattern.contains('*') {
        let is_text = matches!(kind, FieldType::Text | FieldType::Keyword);
        return Ok(is_text && matches(&asked.pattern, path));
    }
    if asked.pattern != path {
        return Ok(false);
    }
    let is_text = kind == FieldType::Keyword || kind.has_words();
    // In another field nothing is found but by chance, and so it has no fragments in the field either.
    if !is_text && (asked.no_match_size > 0 || !asked.own_words) {
        return Err(illegal(format!(
            "[highlight] of [{path}], which is of type [{}], is not supported by this engine with [no_match_size] or \
             without [require_field_match]; name text and keyword fields",
            kind.name()
        ))
        .into());
    }
    Ok(is_text)
}

/// A field that hits show.
struct Shown<'a> {
    asked: &'a HighlightField,
    path: &'a str,
    mapped: &'a Field,
    sought: Sought<'a>,
}

impl Shown<'_> {
    /// Its values in a document. What was copied into it is not there, as it is not in the field.
    fn texts(&self, source: &Value) -> Vec<String> {
        // One of the `fields` of another has the values of that one.
        let parent = self.path.rsplit_once('.').filter(|_| self.mapped.is_multi_field());
        let path = parent.map_or(self.path, |(parent, _)| parent);
        let mut values = Vec::new();
        collect(source, path, &mut values);
        let texts = values.into_iter().filter_map(|value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Null => self.mapped.null_text(),
            Value::Object(_) | Value::Array(_) => None,
            other => Some(other.to_string()),
        });
        texts.filter(|text| !self.mapped.ignores(text)).collect()
    }

    fn fragments(
        &self,
        texts: &[String],
        (id, work): (&str, &mut usize),
        limits: &SearchLimits,
    ) -> Result<Vec<String>> {
        let Shown { asked, path, mapped, sought } = self;
        let chars: usize = texts.iter().map(|text| text.encode_utf16().count()).sum();
        if chars > MAX_CHARS {
            return Err(illegal(format!(
                "The length of [{path}] field of [{id}] doc of [{}] index has exceeded [{MAX_CHARS}] - maximum allowed \
                 to be analyzed for highlighting. Leave the field out of [highlight].",
                limits.index
            ))
            .into());
        }
        spend(work, chars.saturating_mul(sought.work()))?;
        let is_plain = asked.highlighter == Highlighter::Plain;
        let is_keyword = mapped.kind == FieldType::Keyword;
        let analyzer = if is_keyword { Analyzer::Keyword } else { mapped.analyzers.0 };
        let texts = texts.iter().map(|text| sought.text(analyzer, text, is_plain));
        let texts: Vec<sought::Text> = texts.collect();
        let is_whole = asked.fragments == 0 || is_keyword;
        let fragments = match asked.highlighter {
            Highlighter::Plain => plain::fragments(asked, &texts, sought),
            Highlighter::Unified => unified::fragments(asked, is_whole, &texts, sought),
        };
        spend(work, WORK_OF_BYTE * fragments.iter().map(String::len).sum::<usize>())?;
        Ok(fragments)
    }
}

/// Counts what is done. Fails where that becomes too much.
fn spend(work: &mut usize, more: usize) -> Result<()> {
    *work = work.saturating_add(more);
    if *work <= MAX_WORK {
        return Ok(());
    }
    let reason = "[highlight] has too many texts to look at, each as often as there are patterns and words of phrases \
                  to look for; send fewer of these, or ask for fewer hits, fields or fragments";
    Err(illegal(reason).into())
}

/// The values at a path, with those of all items where an object or a value stands in a list.
fn collect<'a>(json: &'a Value, path: &str, values: &mut Vec<&'a Value>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, values)),
        leaf if path.is_empty() => values.push(leaf),
        Value::Object(members) => {
            for (name, value) in members {
                let Some(rest) = path.strip_prefix(name.as_str()) else { continue };
                match rest.strip_prefix('.') {
                    Some(below) => collect(value, below, values),
                    None if rest.is_empty() => collect(value, "", values),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::wanted::Wanted;
    use super::*;

    const STORY: &str = "The quick fox ran. It was late! Nobody saw that the fox, which had never been seen by day, \
                         went to the old mill behind the river where the lazy dog slept. Fox and dog. The end";

    /// The fragments of values in which words are looked for, and a phrase where `phrase` is not empty.
    fn found(asked: &HighlightField, texts: &[&str], words: &str, phrase: &str) -> Vec<String> {
        found_in("text", asked, texts, (words, phrase))
    }

    fn found_in(
        kind: &str,
        asked: &HighlightField,
        texts: &[&str],
        (words, phrase): (&str, &str),
    ) -> Vec<String> {
        let clause = |wanted| Clause { path: "t".to_owned(), boost: 1.0, wanted };
        let words = words.split_whitespace().map(|word| match word.strip_suffix('*') {
            Some(start) => {
                let start = start.to_owned();
                Wanted::Fitting(Box::new(move |word: &str| word.starts_with(&start)))
            }
            None => Wanted::Word(word.to_owned()),
        });
        let phrase = phrase.split_whitespace().enumerate();
        let phrase: Vec<(usize, String)> = phrase.map(|(at, word)| (at, word.to_owned())).collect();
        let phrase = (!phrase.is_empty()).then_some(Wanted::Phrase(phrase));
        let clauses: Vec<Clause> = words.chain(phrase).map(clause).collect();
        let mapping = json!({"properties": {"t": {"type": kind}}});
        let mapping = Mapping::parse(&mapping).unwrap();
        let (mapped, sought) = (mapping.field("t").unwrap(), Sought::of(clauses.iter()));
        let limits = SearchLimits::default();
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let shown = Shown { asked, path: "t", mapped, sought };
        shown.fragments(&texts, ("1", &mut 0), &limits).unwrap()
    }

    fn unified() -> HighlightField {
        let tags = ("[".to_owned(), "]".to_owned());
        HighlightField { tags, ..HighlightField::default() }
    }

    fn plain() -> HighlightField {
        HighlightField { highlighter: Highlighter::Plain, ..unified() }
    }

    #[test]
    fn passages_are_sentences_up_to_their_size_and_words_of_longer_ones() {
        let fragments = found(&unified(), &[STORY], "fox", "");
        assert_eq!(
            fragments,
            [
                "The quick [fox] ran. It was late!",
                "Nobody saw that the [fox], which had never been seen by day, went to the old mill behind the river \
                 where",
                "[Fox] and dog. The end",
            ]
        );
        let sentences = HighlightField { fragment_size: 0, ..unified() };
        assert_eq!(
            found(&sentences, &[STORY], "quick late", ""),
            ["The [quick] fox ran.", "It was [late]!"]
        );
        let whole = HighlightField { fragments: 0, ..unified() };
        let all = found(&whole, &["the fox", "no", "a Fox. Foxes"], "fox", "");
        assert_eq!(all, ["the [fox]", "a [Fox]. Foxes"]);
        // A long sentence goes on, and its passages do not overlap.
        let long = "fox ".repeat(60);
        let parts = found(&unified(), &[&long], "fox", "");
        assert_eq!(parts.len(), 3);
        assert_eq!(parts.join(" ").matches("[fox]").count(), 60);
    }

    #[test]
    fn the_best_passages_are_kept_and_may_come_first() {
        let text =
            "A fox. Nothing at all of it is here. A fox and a dog. And so on and so forth. A dog.";
        let best = HighlightField { fragment_size: 20, fragments: 1, ..unified() };
        assert_eq!(found(&best, &[text], "fox dog", ""), ["A [fox] and a [dog]."]);
        let ranked = HighlightField { by_score: true, fragments: 5, ..best };
        assert_eq!(
            found(&ranked, &[text], "fox dog", ""),
            ["A [fox] and a [dog].", "A [fox].", "A [dog]."]
        );
    }

    #[test]
    fn phrases_are_found_where_they_stand() {
        for asked in [unified(), plain()] {
            let of =
                |words, phrase| found(&asked, &["red fox, a fox red; the red fox"], words, phrase);
            assert_eq!(of("", "red fox"), ["[red] [fox], a fox red; the [red] [fox]"]);
            assert_eq!(of("fox", "red fox"), ["[red] [fox], a [fox] red; the [red] [fox]"]);
            assert_eq!(of("", "fox a"), ["red [fox], [a] fox red; the red fox"]);
            assert_eq!(of("", "blue fox"), [""; 0]);
            assert_eq!(of("re*", ""), ["[red] fox, a fox [red]; the [red] fox"]);
            assert_eq!(of("re* red", ""), ["[red] fox, a fox [red]; the [red] fox"]);
        }
    }

    #[test]
    fn plain_pieces_are_cut_by_size() {
        let sized = HighlightField { fragment_size: 20, ..plain() };
        assert_eq!(
            found(
                &sized,
                &["The quick fox ran over the lazy dog and slept for a day"],
                "fox dog",
                ""
            ),
            ["The quick [fox] ran", " over the lazy [dog] and"]
        );
        let whole = HighlightField { fragments: 0, ..plain() };
        assert_eq!(found(&whole, &["a fox.", "no", "Fox "], "fox", ""), ["a [fox].", "[Fox] "]);
        let best = HighlightField { fragment_size: 10, fragments: 1, ..plain() };
        assert_eq!(found(&best, &["a fox over there, a fox and a dog"], "fox dog", "").len(), 1);
    }

    #[test]
    fn the_beginning_stands_in_for_what_was_not_found() {
        let of = |asked: HighlightField, size: usize, texts: &[&str]| {
            found(&HighlightField { no_match_size: size, ..asked }, texts, "none", "")
        };
        assert_eq!(of(unified(), 5, &["", "The quick fox"]), ["The quick"]);
        assert_eq!(of(unified(), 50, &["The quick fox", "x"]), ["The quick fox"]);
        assert_eq!(of(plain(), 9, &["The quick fox"]), ["The quick"]);
        assert_eq!(of(plain(), 8, &["The quick fox"]), ["The"]);
        assert_eq!((of(plain(), 2, &["The"]), of(unified(), 0, &["The"])), (vec![], vec![]));
        for asked in [unified(), plain()] {
            assert_eq!(found_in("keyword", &asked, &[""], ("none", "")), [""; 0]);
        }
    }

    #[test]
    fn text_may_be_escaped_and_offsets_are_those_of_java() {
        let asked = HighlightField { html: true, ..unified() };
        let text = "<b>Tom's</b> & \"fox\"";
        let escaped = "&lt;b&gt;Tom&#x27;s&lt;&#x2F;b&gt; &amp; &quot;[fox]&quot;";
        assert_eq!(found(&asked, &[text], "fox", ""), [escaped]);
        for asked in [unified(), plain()] {
            let text = "😀 naïve 😀 fox, 漢 fox 😀";
            assert_eq!(found(&asked, &[text], "fox", ""), ["😀 naïve 😀 [fox], 漢 [fox] 😀"]);
        }
    }

    #[test]
    fn values_are_found_by_paths_through_lists_and_dots() {
        let source =
            json!({"a": [{"b": ["x", ["y"]]}, {"b": null}], "a.b": "z", "ab": "no", "a.": "no"});
        let mut values = Vec::new();
        collect(&source, "a.b", &mut values);
        assert_eq!(values, [&json!("x"), &json!("y"), &Value::Null, &json!("z")]);
    }
}
