//! JSON with the place of every value, so that what is refused can be pointed at.

use serde_json::Number;

use super::error::{SearchError, Spot, parsing};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Spot,
    pub(crate) value: Value,
}

/// A JSON value. Objects keep the order of their names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// A name of an object, and what stands under it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) at: Spot,
    pub(crate) name: String,
    pub(crate) node: Node,
}

/// Objects and lists within each other, at most.
const MAX_DEPTH: usize = 100;

/// Reads a body. Names that stand twice in an object are refused, as in Elasticsearch.
pub(crate) fn read(text: &[u8]) -> Result<Node, SearchError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| parsing(Spot::default(), format!("the body is no UTF-8: {error}")))?;
    let mut reader = Reader { text, at: 0, line: 1, line_start: 0, depth: 0 };
    let node = reader.node()?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.error("something follows the JSON value"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    depth: usize,
}

impl Reader<'_> {
    fn spot(&self) -> Spot {
        Spot { line: self.line, column: (self.at - self.line_start) as u32 + 1 }
    }

    fn error(&self, reason: impl Into<String>) -> SearchError {
        parsing(self.spot(), format!("the body is no JSON: {}", reason.into()))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek().filter(|byte| b" \t\r\n".contains(byte)) {
            self.at += 1;
            if byte == b'\n' {
                (self.line, self.line_start) = (self.line + 1, self.at);
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), SearchError> {
        self.space();
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.error(format!("expected [{}]", char::from(byte))))
    }

    fn node(&mut self) -> Result<Node, SearchError> {
        self.space();
        let at = self.spot();
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return Err(self.error("expected a value")),
        };
        Ok(Node { at, value })
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, SearchError>,
    ) -> Result<Value, SearchError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Whether another item follows, behind the first.
    fn more(&mut self, first: bool, end: u8) -> Result<bool, SearchError> {
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if !first {
            self.expect(b',')?;
        }
        Ok(true)
    }

    fn list(&mut self) -> Result<Value, SearchError> {
        let mut items = Vec::new();
        while self.more(items.is_empty(), b']')? {
            items.push(self.node()?);
        }
        Ok(Value::List(items))
    }

    fn object(&mut self) -> Result<Value, SearchError> {
        let mut members: Vec<Member> = Vec::new();
        while self.more(members.is_empty(), b'}')? {
            self.space();
            let at = self.spot();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a name in quotes"));
            }
            let name = self.string()?;
            // Objects of requests are small; those that are not would take the square of their size.
            if members.len() < 1024 && members.iter().any(|member| member.name == name) {
                return Err(parsing(at, format!("duplicate field '{name}'")));
            }
            self.expect(b':')?;
            members.push(Member { at, name, node: self.node()? });
        }
        Ok(Value::Object(members))
    }

    fn string(&mut self) -> Result<String, SearchError> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let Some(raw) = self.text.get(self.at..=end) else {
            return Err(self.error("a string has no end"));
        };
        let text = serde_json::from_str(raw).map_err(|error| self.error(error.to_string()))?;
        self.at = end + 1;
        Ok(text)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, SearchError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, SearchError> {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().take_while(|byte| b"+-.eE0123456789".contains(byte)).count();
        let raw = &self.text[self.at..self.at + len];
        let number = serde_json::from_str(raw).map_err(|error| self.error(error.to_string()))?;
        self.at += len;
        Ok(Value::Number(number))
    }
}

impl Node {
    /// What kind of value it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
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
    pub(crate) fn object(&self, what: &str) -> Result<&[Member], SearchError> {
        match &self.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.wrong(what, "an object")),
        }
    }

    /// The items of an array; anything else counts as an array of one.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The items of an array.
    pub(crate) fn list(&self, what: &str) -> Result<&[Node], SearchError> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => Err(self.wrong(what, "an array")),
        }
    }

    /// A string; numbers and booleans count as their texts.
    pub(crate) fn text(&self, what: &str) -> Result<String, SearchError> {
        match &self.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(yes) => Ok(yes.to_string()),
            _ => Err(self.wrong(what, "a string")),
        }
    }

    /// A finite number, or a string that holds one.
    pub(crate) fn float(&self, what: &str) -> Result<f64, SearchError> {
        let number = match &self.value {
            Value::Number(number) => number.as_f64(),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.filter(|n: &f64| n.is_finite()).ok_or_else(|| self.wrong(what, "a number"))
    }

    /// A whole number, or a string that holds one.
    pub(crate) fn integer(&self, what: &str) -> Result<i64, SearchError> {
        let number = match &self.value {
            Value::Number(number) => number.as_i64(),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(what, "a whole number"))
    }

    /// A whole number of at least 0.
    pub(crate) fn count(&self, what: &str) -> Result<u64, SearchError> {
        let number = self.integer(what)?;
        u64::try_from(number).map_err(|_| {
            parsing(self.at, format!("[{what}] parameter cannot be negative, found [{number}]"))
        })
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

    pub(crate) fn wrong(&self, what: &str, wanted: &str) -> SearchError {
        parsing(self.at, format!("[{what}] is {wanted}, found {}", self.kind()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(node: &Node) -> serde_json::Value {
        match &node.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(yes) => (*yes).into(),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(plain).collect(),
            Value::Object(members) => {
                let pairs = members.iter().map(|m| (m.name.clone(), plain(&m.node)));
                serde_json::Value::Object(pairs.collect())
            }
        }
    }

    #[test]
    fn knows_where_everything_stands() {
        let node = read(b"{\n  \"query\": {\"foo\":\n 7}}").unwrap();
        let query = &node.object("").unwrap()[0];
        assert_eq!(query.at, Spot { line: 2, column: 3 });
        let foo = &query.node.object("").unwrap()[0];
        assert_eq!(
            (foo.at, foo.node.at),
            (Spot { line: 2, column: 13 }, Spot { line: 3, column: 2 })
        );
    }

    #[test]
    fn says_what_is_no_json() {
        for (text, said) in [
            ("", "expected a value"),
            ("{", "expected a name"),
            ("{\"a\" 1}", "expected [:]"),
            ("[1 2]", "expected [,]"),
            ("[1,]", "expected a value"),
            ("\"abc", "no end"),
            ("\"\\", "no end"),
            ("01", "no JSON"),
            ("{} {}", "follows"),
            ("{\"a\":1,\"a\":2}", "duplicate field 'a'"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.reason.contains(said), "{text}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(deep.as_bytes()).unwrap_err().reason.contains("100 levels"));
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[ -~é\\n\"\\\\]{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::btree_map("[a-zé\"]{0,4}", inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_reads(json in any_json(), pretty in any::<bool>()) {
            let text = if pretty { format!("{json:#}") } else { json.to_string() };
            prop_assert_eq!(plain(&read(text.as_bytes()).unwrap()), json);
        }

        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"\\\\a0-9.eE+ntf\\n-]{0,40}") {
            let ours = read(text.as_bytes()).is_ok();
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            // Ours is stricter in names that stand twice, and never laxer.
            prop_assert!(theirs || !ours, "{}", text);
        }
    }
}
