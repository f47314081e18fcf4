//! `highlight` from JSON.

use super::limits::{MAX_HIGHLIGHT_FIELDS, MAX_TAG_BYTES};
use super::options::Options;
use super::query;
use crate::error::{Result, ensure, illegal};
use crate::highlight::{Highlight, HighlightField};
use crate::json::{Node, Value};
use crate::refused;

/// Options of a field, which may stand above all fields, too.
const OF_FIELD: &str = "force_source fragment_size highlight_query no_match_size number_of_fragments order post_tags \
                        pre_tags require_field_match type";
/// Those that stand above all fields alone.
const OF_ALL: &str = "encoder fields";

/// Sizes of the field's are of 32 bits.
const MAX_SIZE: u64 = i32::MAX as u64;

/// The options that there are.
pub fn highlight_options() -> impl Iterator<Item = &'static str> {
    OF_FIELD.split(' ').chain(OF_ALL.split(' '))
}

/// Reads `highlight`.
pub(super) fn highlight(node: &Node) -> Result<Highlight> {
    let options = known(node, &format!("{OF_FIELD} {OF_ALL}"))?;
    let mut above = HighlightField::default();
    read(&options, &mut above)?;
    let mut highlight = Highlight { fields: Vec::new(), query: above.query.take() };
    let Some(fields) = options.get("fields") else { return Ok(highlight) };
    let is_list = matches!(fields.value, Value::List(_));
    for item in fields.items() {
        let members = item.object("fields")?;
        if is_list && members.len() != 1 {
            return Err(item.wrong("fields", "a list of objects with one field each"));
        }
        for member in members {
            if highlight.fields.len() == MAX_HIGHLIGHT_FIELDS {
                let reason = format!(
                    "[highlight] names more than {MAX_HIGHLIGHT_FIELDS} fields; send a pattern"
                );
                return Err(illegal(reason));
            }
            let mut field = HighlightField { pattern: member.name.to_string(), ..above.clone() };
            read(&known(&member.node, OF_FIELD)?, &mut field)?;
            highlight.fields.push(field);
        }
    }
    Ok(highlight)
}

/// The options of an object, none of which is refused.
fn known<'a>(node: &'a Node<'a>, known: &str) -> Result<Options<'a>> {
    node.refuse_names(refused::HIGHLIGHT, |name| format!("the option [{name}] of [highlight]"))?;
    node.options("highlight", known, 0)
}

/// Puts what options say in place of what is said above them.
fn read(options: &Options<'_>, field: &mut HighlightField) -> Result<()> {
    for (name, node) in options.iter() {
        match name {
            "pre_tags" => field.tags.0 = tag(node, name)?,
            "post_tags" => field.tags.1 = tag(node, name)?,
            "fragment_size" => field.fragment_size = size(node, name)?,
            "number_of_fragments" => field.fragments = size(node, name)?,
            "no_match_size" => field.no_match_size = size(node, name)?,
            "order" => field.by_score = options.one_of(name, &["none", "score"])? == "score",
            "require_field_match" => field.own_words = node.bool(name)?,
            "encoder" => field.html = options.one_of(name, &["default", "html"])? == "html",
            "highlight_query" => field.query = Some(query::query(node)?),
            "type" => field.highlighter = options.named(name, &["unified", "plain"])?,
            // That is where texts are read from in any case: no field is stored.
            "force_source" => drop(node.bool(name)?),
            _ => {}
        }
    }
    let are_pairs = options.get("pre_tags").is_none() || options.get("post_tags").is_some();
    ensure(are_pairs, options.node.at, "pre_tags are set but post_tags are not set")
}

/// The first of some tags: the others are of the type `fvh`, in the field as here.
fn tag(node: &Node, name: &str) -> Result<String> {
    let first = node.items().first().ok_or_else(|| node.wrong(name, "a tag"))?;
    let tag = first.text(name)?;
    if tag.len() > MAX_TAG_BYTES {
        return Err(illegal(format!("[{name}] has more than {MAX_TAG_BYTES} bytes")));
    }
    Ok(tag)
}

fn size(node: &Node, name: &str) -> Result<usize> {
    let size = node.count(name)?;
    let reason = format_args!("[{name}] is {MAX_SIZE} at most, found [{size}]");
    ensure(size <= MAX_SIZE, node.at, reason).map(|()| size as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SearchErrorKind;
    use crate::highlight::Highlighter;
    use crate::parse::parse_search;
    use crate::parse::tests::pairs;

    fn parsed(highlight: &str) -> Result<Highlight> {
        parse_search(format!("{{\"highlight\":{highlight}}}").as_bytes()).map(|of| of.highlight)
    }

    #[test]
    fn a_field_has_what_is_said_above_and_its_own() {
        let read = parsed(
            r#"{"pre_tags":["<b>","<i>"],"post_tags":"</b>","fragment_size":20,"order":"score","encoder":"html",
                "highlight_query":{"match":{"a":"x"}},
                "fields":{"a":{},"b*":{"pre_tags":"(","post_tags":")","type":"plain","number_of_fragments":0,
                    "no_match_size":7,"order":"none","require_field_match":false,"force_source":true,
                    "highlight_query":{"match_all":{}}}}}"#,
        )
        .unwrap();
        let tags = |before: &str, behind: &str| (before.to_owned(), behind.to_owned());
        let first = HighlightField {
            pattern: "a".to_owned(),
            tags: tags("<b>", "</b>"),
            fragment_size: 20,
            by_score: true,
            html: true,
            ..HighlightField::default()
        };
        let second = HighlightField {
            pattern: "b*".to_owned(),
            highlighter: Highlighter::Plain,
            tags: tags("(", ")"),
            fragments: 0,
            no_match_size: 7,
            by_score: false,
            own_words: false,
            query: Some(crate::Query::match_all()),
            ..first.clone()
        };
        assert_eq!(read.fields, [first, second]);
        assert!(read.query.is_some() && read.compiled() == 0);
        let listed = parsed(r#"{"fields":[{"b":{}},{"a":{}}]}"#).unwrap();
        let names: Vec<&str> = listed.fields.iter().map(|field| field.pattern.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(parsed("{}").unwrap(), Highlight::default());
        let whole =
            HighlightField { fragment_size: i32::MAX as usize, ..HighlightField::default() };
        let asked = parsed(r#"{"fields":{"*":{"fragment_size":2147483647}}}"#).unwrap();
        assert_eq!(asked.fields, [HighlightField { pattern: "*".to_owned(), ..whole }]);
    }

    #[test]
    fn what_is_not_done_is_refused_by_its_name() {
        const REFUSED: &str = r#"
            {"fields":{"a":{"type":"fvh"}}} => type [fvh] is not supported by this engine; send unified or plain
            {"type":"semantic","fields":{}} => type [semantic]
            {"tags_schema":"styled","fields":{}} => [tags_schema] of [highlight] is not supported
            {"fields":{"a":{"matched_fields":["b"]}}} => [matched_fields]
            {"fields":{"a":{"encoder":"html"}}} => does not support [encoder]
            {"fields":{"a":{"fragment_sise":1}}} => did you mean "fragment_size"?
            {"fragment_size":-1} => cannot be negative
            {"fragment_size":2147483648} => [fragment_size] is 2147483647 at most
            {"order":"random"} => order [random]
            {"encoder":"xml"} => encoder [xml]
            {"pre_tags":["<b>"]} => post_tags are not set
            {"pre_tags":[],"post_tags":[]} => [pre_tags] is a tag
            {"fields":["a"]} => [fields] is an object
            {"fields":[{"a":{},"b":{}}]} => objects with one field each
            {"fields":{"a":7}} => [highlight] is an object
            {"highlight_query":{"mtch":{}}} => did you mean "match"?
        "#;
        for (body, part) in pairs(REFUSED) {
            let error = parsed(body).unwrap_err();
            assert!(error.reason.contains(part), "{body}: {}", error.reason);
            assert!(error.at.is_some_and(|at| at.column > 1), "{body}: {:?}", error.at);
        }
        for (name, instead) in refused::all(refused::HIGHLIGHT) {
            let said = parsed(&format!("{{\"fields\":{{\"a\":{{\"{name}\":1}}}}}}")).unwrap_err();
            assert!(said.reason.contains(name) && said.reason.ends_with(instead), "{said}");
        }
        let many: Vec<String> = (0..1025).map(|n| format!("\"f{n}\":{{}}")).collect();
        let many = parsed(&format!("{{\"fields\":{{{}}}}}", many.join(","))).unwrap_err();
        assert_eq!(many.kind, SearchErrorKind::IllegalArgument);
        let long = parsed(&format!("{{\"post_tags\":\"{}\"}}", "x".repeat(1025))).unwrap_err();
        assert!(long.reason.contains("1024 bytes"), "{long}");
    }
}
