//! JSON with the place of every value, so that what is refused can be pointed at.
//!
//! serde keeps no places. Names and values are numbered as they are read, and only where one is refused its number is
//! looked up in the text.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::error::{SearchError, Spot, ensure, parsing};
use super::refused::refusal;
use super::value::Literal;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// Its number, until it is looked up with [`spot`].
    pub at: Spot,
    /// The value.
    pub value: Value<'a>,
}

/// A JSON value; its texts are those of the body where that has them without escapes. Objects keep the order of their
/// names.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Node<'a>>),
    /// An object.
    Object(Vec<Member<'a>>),
}

/// A name of an object, and what stands under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'a> {
    /// The place of the name.
    pub at: Spot,
    /// The name.
    pub name: Cow<'a, str>,
    /// What stands under it.
    pub node: Node<'a>,
}

/// Reads a body, and what `parse` makes of it. Names that stand twice in an object are refused, as in Elasticsearch.
pub(crate) fn read<'a, T>(
    body: &'a [u8],
    parse: impl FnOnce(&Node<'a>) -> Result<T, SearchError>,
) -> Result<T, SearchError> {
    let reader = Reader { tokens: &Cell::new(0), once: true, skipping: None };
    let node = reader.whole(body).map_err(|error| {
        let at = Spot { line: error.line() as u32, column: error.column() as u32 };
        parsing(at, format!("the body is no JSON: {error}"))
    })?;
    parse(&node).map_err(|error| match error.at {
        Some(Spot { line: 0, column: token }) => SearchError { at: spot(body, token), ..error },
        _ => error,
    })
}

/// What of a document is read, by dotted paths.
pub enum Part {
    /// All of it.
    Whole,
    /// Those of its members that are read.
    Members,
    /// None of it.
    Nothing,
}

/// Says what is read of a path.
pub type Parts<'a> = &'a dyn Fn(&str) -> Part;

/// Reads a document; where `skipping` says so, parts of it are passed over and stand there as null. In one that is read
/// whole, names that stand twice in an object are refused.
pub fn document<'a>(
    source: &'a [u8],
    skipping: Option<Parts<'_>>,
) -> serde_json::Result<Value<'a>> {
    let skipping = skipping.map(|part| (part, ""));
    let reader = Reader { tokens: &Cell::new(0), once: skipping.is_none(), skipping };
    reader.whole(source).map(|node| node.value)
}

/// Where a name or value stands in JSON, by its number.
pub fn spot(json: &[u8], token: u32) -> Option<Spot> {
    let start = Tokens { json, at: 0 }.nth(token as usize)?;
    let before = &json[..start];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
    Some(Spot { line, column: (start - line_start) as u32 + 1 })
}

/// Values as they stand in JSON that was read whole. They are asked for in the order in which they stand there, so that
/// all of them together cost what the JSON is long.
pub(crate) struct Written<'a> {
    tokens: Tokens<'a>,
    /// The number of the next token.
    next: u32,
}

impl<'a> Written<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Written<'a> {
        Written { tokens: Tokens { json, at: 0 }, next: 0 }
    }

    /// How a name or value is written that was read there; of an object or array the first sign. None of one that
    /// stands before the last.
    pub(crate) fn at(&mut self, at: Spot) -> Option<Cow<'a, str>> {
        let token = at.column;
        let start = self.tokens.nth(token.checked_sub(self.next)? as usize)?;
        self.next = token + 1;
        Some(String::from_utf8_lossy(self.tokens.json.get(start..self.tokens.at)?))
    }

    /// Whether a value is written as a whole number and read as a fraction: `-0`, and what has more than 64 bits.
    pub(crate) fn is_whole(&mut self, node: &Node<'_>) -> bool {
        let Value::Number(number) = &node.value else { return false };
        let may_be = |value: f64| value.abs() >= 9e18 || value == 0.0 && value.is_sign_negative();
        let is_asked = number.is_f64() && number.as_f64().is_some_and(may_be);
        is_asked && self.at(node.at).is_some_and(|text| !text.contains(['.', 'e', 'E']))
    }
}

/// Where names and values begin in JSON, in the order in which they are numbered.
struct Tokens<'a> {
    json: &'a [u8],
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let rest = self.json.get(self.at..)?.iter();
        self.at += rest.take_while(|byte| b" \t\r\n}],:".contains(byte)).count();
        let start = self.at;
        let first = self.json.get(start)?;
        self.at += 1;
        match first {
            b'{' | b'[' => {}
            b'"' => {
                while self.json.get(self.at)? != &b'"' {
                    self.at += if self.json[self.at] == b'\\' { 2 } else { 1 };
                }
                self.at += 1;
            }
            _ => {
                let rest = self.json[self.at..].iter();
                self.at += rest.take_while(|byte| !b" \t\r\n}],".contains(byte)).count();
            }
        }
        Some(start)
    }
}

/// The path of what has a name, within an object of a path.
pub(crate) fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

/// Reads a value; counts names and values.
#[derive(Clone, Copy)]
struct Reader<'a> {
    tokens: &'a Cell<u32>,
    /// Whether a name may stand once in an object.
    once: bool,
    /// What is to be read, and the path of the object at hand.
    skipping: Option<(Parts<'a>, &'a str)>,
}

impl Reader<'_> {
    fn whole<'de>(self, text: &'de [u8]) -> serde_json::Result<Node<'de>> {
        let mut json = serde_json::Deserializer::from_slice(text);
        let node = self.deserialize(&mut json)?;
        json.end().map(|()| node)
    }

    /// The place of the next name or value: its number, which [`read`] looks up where it is needed.
    fn next(self) -> Spot {
        let token = self.tokens.get();
        self.tokens.set(token + 1);
        Spot { line: 0, column: token }
    }

    /// Reads what stands under a name, or passes over it.
    fn member<'de, A: MapAccess<'de>>(
        self,
        name: &str,
        map: &mut A,
    ) -> Result<Node<'de>, A::Error> {
        let Some((part, above)) = self.skipping else { return map.next_value_seed(self) };
        let path = join(above, name);
        let skipping = match part(&path) {
            Part::Whole => None,
            Part::Members => Some((part, path.as_str())),
            Part::Nothing => {
                map.next_value::<IgnoredAny>()?;
                return Ok(Node { at: self.next(), value: Value::Null });
            }
        };
        map.next_value_seed(Reader { skipping, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Node<'de>;
    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Node<'de>, D::Error> {
        let at = self.next();
        Ok(Node { at, value: json.deserialize_any(self)? })
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, yes: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(yes))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.into()))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number.into()))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let mut members: Vec<Member<'de>> = Vec::new();
        while let Some(Node { at, value: Value::Text(name) }) = map.next_key_seed(self)? {
            // Objects of requests are small; those that are not would take the square of their size.
            let is_small = self.once && members.len() < 1024;
            if is_small && members.iter().any(|member| member.name == name) {
                return Err(A::Error::custom(format!("duplicate field '{name}'")));
            }
            let node = self.member(&name, &mut map)?;
            members.push(Member { at, name, node });
        }
        Ok(Value::Object(members))
    }
}

impl<'a> Value<'a> {
    /// What stands under a name of an object.
    pub(crate) fn member(&self, name: &str) -> Option<&Node<'a>> {
        let Value::Object(members) = self else { return None };
        members.iter().find(|member| member.name == name).map(|member| &member.node)
    }

    /// Without places.
    pub fn plain(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(yes) => (*yes).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.as_ref().into(),
            Value::List(items) => items.iter().map(Node::plain).collect(),
            Value::Object(members) => {
                members.iter().map(|of| (of.name.to_string(), of.node.plain())).collect()
            }
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(yes) => yes.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
            Value::List(items) => write!(f, "an array of {}", items.len()),
            Value::Object(_) => f.write_str("an object"),
        }
    }
}

impl<'b> Node<'b> {
    /// What kind of value it is, in words.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "an array",
            Value::Object(_) => "an object",
        }
    }

    /// The members of an object. `what` names it in the error.
    pub(crate) fn object(&self, what: &str) -> Result<&[Member<'b>], SearchError> {
        match &self.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.wrong(what, "an object")),
        }
    }

    /// The items of an array; anything else counts as an array of one.
    pub fn items(&self) -> &[Node<'b>] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The items of an array.
    pub(crate) fn list(&self, what: &str) -> Result<&[Node<'b>], SearchError> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => Err(self.wrong(what, "an array")),
        }
    }

    /// A string; numbers and booleans count as their texts.
    pub fn text(&self, what: &str) -> Result<String, SearchError> {
        match &self.value {
            Value::Text(text) => Ok(text.to_string()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(yes) => Ok(yes.to_string()),
            _ => Err(self.wrong(what, "a string")),
        }
    }

    /// What `of` says of a number; or a number that a string holds.
    fn number<T: FromStr>(&self, of: fn(&Number) -> Option<T>) -> Option<T> {
        match &self.value {
            Value::Number(number) => of(number),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A finite number, or a string that holds one.
    pub fn float(&self, what: &str) -> Result<f64, SearchError> {
        let number = self.number(Number::as_f64);
        number.filter(|n: &f64| n.is_finite()).ok_or_else(|| self.wrong(what, "a number"))
    }

    /// A whole number, or a string that holds one. `5.0` is one, too.
    pub(crate) fn integer(&self, what: &str) -> Result<i64, SearchError> {
        // Larger ones need not be what was written.
        let is_exact = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
        let float = || self.number(Number::as_f64).filter(is_exact).map(|number| number as i64);
        let whole = self.number(Number::as_i64).or_else(float);
        whole.ok_or_else(|| self.wrong(what, "a whole number"))
    }

    /// A whole number of at least 0.
    pub(crate) fn count(&self, what: &str) -> Result<u64, SearchError> {
        let number = self.integer(what)?;
        let reason = format_args!("[{what}] parameter cannot be negative, found [{number}]");
        ensure(number >= 0, self.at, reason).map(|()| number.unsigned_abs())
    }

    /// True or false, or one of them in a string.
    pub(crate) fn bool(&self, what: &str) -> Result<bool, SearchError> {
        match &self.value {
            Value::Bool(yes) => Ok(*yes),
            Value::Text(text) if text == "true" => Ok(true),
            Value::Text(text) if text == "false" => Ok(false),
            _ => Err(self.wrong(what, "true or false")),
        }
    }

    /// A value of a query, as it was written.
    pub(crate) fn literal(&self, what: &str) -> Result<Literal, SearchError> {
        Ok(match &self.value {
            Value::Text(text) => Literal::Text(text.to_string()),
            Value::Bool(yes) => Literal::Boolean(*yes),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Literal::Integer(whole),
                None => Literal::Float(self.float(what)?),
            },
            _ => return Err(self.wrong(what, "a value")),
        })
    }

    /// Refuses the first name of an object that is one of some words of [`super::refused`]; `what` names it.
    pub(crate) fn refuse_names(
        &self,
        words: &'static str,
        what: impl Fn(&str) -> String,
    ) -> Result<(), SearchError> {
        let Value::Object(members) = &self.value else { return Ok(()) };
        members.iter().try_for_each(|Member { at, name, .. }| {
            let refusal = refusal(words, &what(name), name);
            refusal.map_or(Ok(()), |reason| Err(parsing(*at, reason)))
        })
    }

    /// Without places.
    pub fn plain(&self) -> serde_json::Value {
        self.value.plain()
    }

    pub(crate) fn wrong(&self, what: &str, wanted: &str) -> SearchError {
        parsing(self.at, format!("[{what}] is {wanted}, found {}", self.kind()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> Result<serde_json::Value, SearchError> {
        read(text.as_bytes(), |node| Ok(node.plain()))
    }

    #[test]
    fn knows_where_everything_stands() {
        let at = |text: &str, find: fn(&Node) -> Spot| {
            let error =
                read(text.as_bytes(), |node| Err::<(), _>(parsing(find(node), ""))).unwrap_err();
            error.at.map(|at| (at.line, at.column))
        };
        let text = "{\n  \"query\": {\"f\\\"oo\":\n 7}}";
        assert_eq!(at(text, |node| node.object("").unwrap()[0].at), Some((2, 3)));
        let foo = |node: &Node| node.object("").unwrap()[0].node.object("").unwrap()[0].node.at;
        assert_eq!((at(text, |node| node.at), at(text, foo)), (Some((1, 1)), Some((3, 2))));
        assert_eq!(
            at("[-1.5, true,{}, [null]]", |node| node.items()[3].items()[0].at),
            Some((1, 18))
        );
        assert_eq!(at("[\"\\\\\", \"a\"]", |node| node.items()[1].at), Some((1, 8)));
    }

    #[test]
    fn says_what_is_no_json() {
        for (text, said) in [
            ("", "EOF"),
            ("{", "EOF"),
            ("{\"a\" 1}", "expected `:`"),
            ("[1 2]", "expected `,`"),
            ("\"abc", "EOF"),
            ("01", "invalid number"),
            ("{} {}", "trailing"),
            ("{\"a\":1,\"a\":2}", "duplicate field 'a'"),
        ] {
            let error = plain(text).unwrap_err();
            assert!(error.reason.contains(said), "{text}: {error}");
            assert!(error.at.is_some_and(|at| at.line == 1), "{text}: {error:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(plain(&deep).unwrap_err().reason.contains("recursion"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"\\\\a0-9.eE+ntf\\n-]{0,40}", token in 0u32..20) {
            spot(text.as_bytes(), token);
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            // Ours is stricter in names that stand twice.
            if let Ok(ours) = plain(&text) {
                prop_assert_eq!(ours, theirs.unwrap());
            }
        }
    }
}
