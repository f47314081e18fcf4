//! Reads the mapped fields of a document. A new one is read whole, since all of it must be JSON; of one that was
//! accepted before, the rest is skipped.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::dynamic::{Dynamic, adds};
use super::forms::{integer, is_other_form, number, place, range};
use super::{Analyzer, Field, FieldType, Mapping, is_metadata};
use crate::Refusal;
use crate::json::{self, Member, Node, Part, Value};
use crate::value::{ip, is_point as is_on_earth};

/// A value as it is indexed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Indexed<'a> {
    /// Of a text or keyword field.
    Text(&'a str),
    /// Of an integer field of any width.
    Integer(i64),
    /// Of a float or double field.
    Float(f64),
    /// Of a boolean field.
    Boolean(bool),
    /// Milliseconds since 1970.
    Date(i64),
    /// An IPv4 address is mapped into IPv6.
    Address(Ipv6Addr),
    /// Of a geo_point field.
    Point {
        /// Degrees, -90 to 90.
        lat: f64,
        /// Degrees, -180 to 180.
        lon: f64,
    },
    /// Of a range, both ends within.
    Range {
        /// The least number.
        low: f64,
        /// The greatest.
        high: f64,
    },
}

/// Takes the values of one document, each with the number of its field among [`Mapping::fields`]; a field with an array
/// has several.
pub type Sink<'a> = dyn FnMut(usize, Indexed<'_>) + 'a;

/// Where values go that are only to be read.
pub(super) fn nowhere(_: usize, _: Indexed<'_>) {}

/// How much of a document was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every field that is mapped, or is not to be mapped.
    Whole,
    /// It has fields that are to be mapped first, see [`super::NewFields`].
    NewFields,
}

impl Mapping {
    /// Reads one document. A new one must be JSON throughout and fit its mapping. One that was accepted before may
    /// hold anything where no field was mapped then; of its fields, what does not fit by now is left out.
    pub fn read(
        &self,
        source: &[u8],
        is_new: bool,
        sink: &mut Sink<'_>,
    ) -> Result<Extent, Refusal> {
        let part = |path: &str| match self.field(path) {
            Some(field) if self.kept_ways(path, field).next().is_some() => Part::Whole,
            None if self.objects.get(path).is_some_and(|of| *of != Dynamic::Disabled) => {
                Part::Members
            }
            _ => Part::Nothing,
        };
        let document = json::document(source, if is_new { None } else { Some(&part) });
        let document = document.map_err(|error| match source.trim_ascii().is_empty() {
            true => Refusal::parsing("the document is empty; send an object, {} at least"),
            false => Refusal::parsing(error),
        })?;
        if !matches!(document, Value::Object(_)) {
            return Err(Refusal::parsing(format!("a document is an object, not {document}")));
        }
        let (path, dynamic) = (String::new(), self.dynamic);
        let (written, extent) = (json::Written::new(source), Extent::Whole);
        let mut walk =
            Walk { mapping: self, sink, written, path, is_new, dynamic, extent, timestamps: 0 };
        walk.object(&document)?;
        // With new fields it is read again.
        let is_checked = self.wants_timestamp && is_new && walk.extent == Extent::Whole;
        if is_checked && walk.timestamps != 1 {
            return Err(Refusal::parsing(NOT_ONE));
        }
        Ok(walk.extent)
    }

    /// Refuses a field on the way to another, which an object alone may be.
    pub(super) fn check_object(&self, path: &str, to: &str) -> Result<(), Refusal> {
        let Some(field) = self.field(path) else { return Ok(()) };
        Err(Refusal::parsing(format!(
            "Could not dynamically add mapping for field [{to}]. Existing mapping for [{path}] must be of type object \
             but found [{}].",
            field.kind.name()
        )))
    }

    /// The ways in which the values of a field are kept, with their paths: its own, its `fields`, and the fields of
    /// `copy_to`.
    fn kept_ways<'a>(
        &'a self,
        path: &'a str,
        field: &'a Field,
    ) -> impl Iterator<Item = (&'a str, &'a Field)> {
        // A document names the field itself, never one of its `fields`.
        let ways = std::iter::once((path, field)).chain(self.multi_fields(path, field));
        ways.filter(|(_, way)| way.is_kept() && !field.is_multi)
    }
}

/// A walk through a document.
struct Walk<'a> {
    mapping: &'a Mapping,
    sink: &'a mut Sink<'a>,
    written: json::Written<'a>,
    /// Of the object at hand.
    path: String,
    is_new: bool,
    /// Of the object at hand.
    dynamic: Dynamic,
    extent: Extent,
    /// Dates in `@timestamp`, where these are to be counted.
    timestamps: usize,
}

impl Walk<'_> {
    /// Reads an object of the document; also an array of such objects, whose fields then have many values.
    fn object(&mut self, json: &Value) -> Result<(), Refusal> {
        let members = match json {
            _ if self.dynamic == Dynamic::Disabled => return Ok(()),
            Value::Null => return Ok(()),
            Value::List(items) => {
                return items.iter().try_for_each(|item| self.object(&item.value));
            }
            Value::Object(members) => members,
            other if self.is_new => {
                return Err(Refusal::parsing(format!(
                    "[{other}] is no object or array of objects"
                )));
            }
            _ => return Ok(()),
        };
        let above = self.path.len();
        for Member { name, node, .. } in members {
            if above > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            match self.mapping.field(&self.path).filter(|field| !field.is_multi) {
                Some(field) => {
                    if self.is_new {
                        self.check_numbers(field, node)?;
                    }
                    for (path, way) in self.mapping.kept_ways(&self.path, field) {
                        match way.read(path, &node.value, self.is_new, self.sink) {
                            Err(refusal) if self.is_new => return Err(refusal),
                            _ => {}
                        }
                    }
                    if self.mapping.wants_timestamp
                        && self.path == TIMESTAMP
                        && (field.kind, field.has_column) == (FieldType::Date, true)
                    {
                        // What is wrong with it was told above.
                        let mut count = |_: usize, _: Indexed<'_>| self.timestamps += 1;
                        let _ = field.read(&self.path, &node.value, self.is_new, &mut count);
                    }
                    // What is not kept must be a value of its field all the same; of a boolean nothing is read then.
                    if self.is_new && !field.is_kept() && field.kind != FieldType::Boolean {
                        field.read(&self.path, &node.value, true, &mut nowhere)?;
                    }
                }
                None => match self.mapping.objects.get(&self.path) {
                    Some(dynamic) => {
                        let above = std::mem::replace(&mut self.dynamic, *dynamic);
                        self.object(&node.value)?;
                        self.dynamic = above;
                    }
                    None if self.is_new => self.unmapped(name, above, &node.value)?,
                    None => {}
                },
            }
            self.path.truncate(above);
        }
        Ok(())
    }

    /// Refuses a number that a field of texts would keep otherwise than it is written: `1.50`, `1e3`, or one of more
    /// digits than there are.
    fn check_numbers(&mut self, field: &Field, node: &Node<'_>) -> Result<(), Refusal> {
        let number = match &node.value {
            Value::List(items) => {
                return items.iter().try_for_each(|item| self.check_numbers(field, item));
            }
            Value::Number(number) if number.is_f64() => number,
            _ => return Ok(()),
        };
        let mut ways = self.mapping.kept_ways(&self.path, field);
        let Some((path, _)) = ways.find(|(_, way)| way.kind.is_of_texts()) else { return Ok(()) };
        match (self.written.at(node.at), number.to_string()) {
            (Some(written), kept) if written != kept => Err(Refusal::parsing(format!(
                "the number [{written}] in the field [{path}] of texts is not supported by this engine, which would \
                 keep it as [{kept}]; send it as a string"
            ))),
            _ => Ok(()),
        }
    }

    /// Meets a field that is not mapped, in the object whose path ends at `above`.
    fn unmapped(&mut self, name: &str, above: usize, value: &Value) -> Result<(), Refusal> {
        check_name(name, &self.path)?;
        let whole = self.path.trim_end_matches('.');
        let is_mapped =
            || self.mapping.field(whole).is_some() || self.mapping.objects.contains_key(whole);
        if name.ends_with('.') && is_mapped() {
            return Err(Refusal::parsing(format!(
                "the name [{name}] with a dot at its end is not supported by this engine; write [{whole}]"
            )));
        }
        let dynamic = match name.contains('.') {
            true => self.mapping.dynamic_within(&self.path),
            false => self.dynamic,
        };
        match dynamic {
            Dynamic::Strict => return Err(Refusal::strict(name, &self.path[..above])),
            Dynamic::True if adds(value) => self.extent = Extent::NewFields,
            Dynamic::True | Dynamic::False if !matches!(value, Value::Null) => {
                let start = self.path.len() - name.len();
                for (end, _) in name.match_indices('.') {
                    self.mapping.check_object(&self.path[..start + end], &self.path)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Refuses what is no name of a field. As in the field it is none where fields are not mapped, either, and `a.` is one.
fn check_name(name: &str, path: &str) -> Result<(), Refusal> {
    let parts = || name.trim_end_matches('.').split('.');
    let why = if name.is_empty() {
        "field name cannot be an empty string".to_owned()
    } else if name.bytes().all(|byte| byte == b'.') {
        "field name cannot contain only dots".to_owned()
    } else if name.contains('.') && parts().any(str::is_empty) {
        format!(
            "object field starting or ending with a [.] makes object resolution ambiguous: [{name}]"
        )
    } else if name.contains('.') && parts().any(|part| part.trim_start().is_empty()) {
        format!("object field cannot contain only whitespace: ['{name}']")
    } else if path.starts_with('_') && is_metadata(path) {
        format!(
            "Field [{path}] is a metadata field and cannot be added inside a document. Use the index API request \
             parameters."
        )
    } else {
        return Ok(());
    };
    Err(Refusal::parsing(why))
}

impl Field {
    /// Whether what stands for null is a value of the field.
    pub(super) fn check_null(&self) -> Result<(), String> {
        let Some(null) = &self.null_value else { return Ok(()) };
        if self.is_null(null) {
            return Err("\"null_value\" is a value, which an empty text is not".to_owned());
        }
        let strict = Field { ignore_malformed: false, ..self.clone() };
        strict.read("null_value", null, true, &mut nowhere).map_err(|refusal| refusal.reason)
    }

    /// Whether a value is none. As in the field an empty text is, where numbers may stand in texts.
    fn is_null(&self, json: &Value) -> bool {
        match json {
            Value::Null => true,
            Value::Text(text) => text.is_empty() && self.coerce && self.kind.is_number(),
            _ => false,
        }
    }

    /// Whether its texts are one term each, however long they are.
    fn keeps_whole_texts(&self) -> bool {
        self.kind == FieldType::Keyword || self.analyzers.0 == Analyzer::Keyword
    }

    /// Puts a value, or each of an array.
    fn read(
        &self,
        path: &str,
        json: &Value,
        is_new: bool,
        sink: &mut Sink<'_>,
    ) -> Result<(), Refusal> {
        let is_point = self.kind == FieldType::GeoPoint;
        let is_text = self.kind.is_of_texts();
        if self.is_null(json) {
            let null = self.null_value.as_ref();
            return null.map_or(Ok(()), |value| self.read(path, value, is_new, sink));
        }
        match json {
            // A point's array is [lon, lat] as in GeoJSON; an altitude may follow.
            Value::List(items) if is_point && items.iter().any(|of| number(of).is_some()) => {}
            Value::List(items) => {
                return items
                    .iter()
                    .try_for_each(|item| self.read(path, &item.value, is_new, sink));
            }
            Value::Object(_) if is_text => {}
            plain if is_text => {
                let text = match plain {
                    Value::Text(text) => Cow::Borrowed(text.as_ref()),
                    other => other.to_string().into(),
                };
                if self.ignores(&text) {
                    return Ok(());
                }
                if text.len() > MAX_TERM_BYTES && self.keeps_whole_texts() && self.is_kept() {
                    return Err(immense(path, &text));
                }
                sink(self.number, Indexed::Text(&text));
                return Ok(());
            }
            _ => {}
        }
        let value = match self.kind {
            FieldType::Long | FieldType::Integer | FieldType::Short | FieldType::Byte => {
                let (least, greatest) = self.kind.integer_range();
                let value = integer(json, self.coerce, self.kind == FieldType::Long);
                let value = value.filter(|value| (least..=greatest).contains(value));
                value.map(Indexed::Integer)
            }
            FieldType::Double
            | FieldType::Float
            | FieldType::HalfFloat
            | FieldType::ScaledFloat => match json {
                Value::Text(text) if self.coerce => {
                    text.trim().parse().ok().filter(|n: &f64| n.is_finite())
                }
                Value::Number(number) => number.as_f64(),
                _ => None,
            }
            .filter(|number| self.has_room(*number))
            .map(|number| Indexed::Float(self.stepped(number))),
            FieldType::DoubleRange => range(json).map(|(low, high)| Indexed::Range { low, high }),
            FieldType::Date => match json {
                // What is malformed by now is left out of new documents, and so of every copy of them.
                Value::Text(text) if is_new || self.ignore_malformed => self.dates.read_ms(text),
                Value::Text(text) => self.dates.read_stored_ms(text),
                Value::Number(number) => match number.as_i64() {
                    Some(whole) => self.dates.read_number_ms(whole),
                    None => self.dates.read_ms(&number.to_string()),
                },
                _ => None,
            }
            .map(Indexed::Date),
            FieldType::Ip => match json {
                Value::Text(text) => ip(text).map(Indexed::Address),
                _ => None,
            },
            FieldType::Boolean => match json {
                Value::Bool(yes) => Some(*yes),
                Value::Text(text) if text == "true" => Some(true),
                Value::Text(text) if text == "false" || text.is_empty() => Some(false),
                _ => None,
            }
            .map(Indexed::Boolean),
            FieldType::GeoPoint => {
                let found = place(json).filter(|(lat, lon)| is_on_earth(*lat, *lon));
                found.map(|(lat, lon)| Indexed::Point { lat, lon })
            }
            FieldType::Keyword | FieldType::Text | FieldType::MatchOnlyText => None,
        };
        match value {
            Some(value) => sink(self.number, value),
            None if self.ignore_malformed && !is_other_form(json, is_point) => {}
            None => {
                let kind = self.kind.name();
                return Err(Refusal::parsing(format!(
                    "[{json}] is no value for field [{path}] of type [{kind}]"
                )));
            }
        }
        Ok(())
    }
}

/// The field that has a date of each document, where the mapping asks for it.
const TIMESTAMP: &str = "@timestamp";
/// What is said of a document without it, or with several, in the words of OpenSearch.
const NOT_ONE: &str =
    "documents must contain a single-valued timestamp field '@timestamp' of date type";

/// Lucene's `IndexWriter.MAX_TERM_LENGTH`. The index library silently drops terms of about twice that length.
const MAX_TERM_BYTES: usize = 32_766;

/// A text that would be too long a term, in the words of the field.
fn immense(path: &str, text: &str) -> Refusal {
    let (len, first) = (text.len(), &text.as_bytes()[..30]);
    let reason = format!(
        "Document contains at least one immense term in field=\"{path}\" (whose UTF8 encoding is longer than the max \
         length {MAX_TERM_BYTES}), all of which were skipped. Please correct the analyzer to not produce such terms, or \
         map the field with [ignore_above]. The prefix of the first immense term is: '{first:?}...', original message: \
         bytes can be at most {MAX_TERM_BYTES} in length; got {len}"
    );
    Refusal { status: 400, kind: "illegal_argument_exception".to_owned(), reason }
}

#[cfg(test)]
mod tests;
