//! The leaves of an answer one after another, each with its path, and no tree of all that is in it: a look at a large
//! cluster reads ten thousands of them, and keeps a few numbers of each node.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::whole;

/// A value that holds no others.
pub enum Leaf<'a> {
    /// A whole number that is zero or more.
    Whole(u64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// `true` or `false`.
    Flag(bool),
}

impl Leaf<'_> {
    /// A count that is zero or more, also as a text.
    pub fn count(&self) -> Option<u64> {
        match self {
            Leaf::Whole(count) => Some(*count),
            Leaf::Number(number) => whole(*number),
            Leaf::Text(text) => text.parse().ok(),
            Leaf::Flag(_) => None,
        }
    }

    /// A finite number, also as a text.
    pub fn number(&self) -> Option<f64> {
        let number = match self {
            Leaf::Whole(count) => Some(*count as f64),
            Leaf::Number(number) => Some(*number),
            Leaf::Text(text) => text.parse().ok(),
            Leaf::Flag(_) => None,
        };
        number.filter(|number| number.is_finite())
    }

    /// A text of some length.
    pub fn text(&self) -> Option<String> {
        match self {
            Leaf::Text(text) if !text.is_empty() => Some((*text).to_owned()),
            _ => None,
        }
    }

    /// A flag; none where it is something else.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Leaf::Flag(flag) => Some(*flag),
            _ => None,
        }
    }
}

/// A receiver of leaves. A path is keys, with a `/` before each; elements of an array have the path of the array.
pub trait Take {
    /// Takes a leaf; `null` is none.
    fn leaf(&mut self, path: &str, leaf: Leaf<'_>);

    /// The leaves that follow belong to another object of the array at this path.
    fn element(&mut self, _path: &str) {}
}

/// Gives the leaves of one value to whoever takes them.
pub struct Leaves<'w, T> {
    path: &'w mut String,
    taker: &'w mut T,
    is_element: bool,
}

impl<'w, T: Take> Leaves<'w, T> {
    /// `path` is where the value itself stands.
    pub fn new(path: &'w mut String, taker: &'w mut T) -> Leaves<'w, T> {
        Leaves { path, taker, is_element: false }
    }

    fn below(&mut self, is_element: bool) -> Leaves<'_, T> {
        Leaves { path: self.path, taker: self.taker, is_element }
    }

    fn give<E>(self, leaf: Leaf<'_>) -> Result<(), E> {
        self.taker.leaf(self.path, leaf);
        Ok(())
    }
}

impl<'de, T: Take> DeserializeSeed<'de> for Leaves<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, T: Take> Visitor<'de> for Leaves<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.give(Leaf::Flag(flag))
    }

    fn visit_u64<E>(self, count: u64) -> Result<(), E> {
        self.give(Leaf::Whole(count))
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.give(Leaf::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.give(Leaf::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.give(Leaf::Text(text))
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(self.below(true))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        if self.is_element {
            self.taker.element(self.path);
        }
        let length = self.path.len();
        while entries.next_key_seed(Key(self.path))?.is_some() {
            entries.next_value_seed(self.below(false))?;
            self.path.truncate(length);
        }
        Ok(())
    }
}

/// Adds a key to a path.
struct Key<'w>(&'w mut String);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<(), D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        self.0.push('/');
        self.0.push_str(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Take for Seen {
        fn leaf(&mut self, path: &str, leaf: Leaf<'_>) {
            self.0.push(format!("{path} {:?} {:?} {:?}", leaf.count(), leaf.text(), leaf.flag()));
        }

        fn element(&mut self, path: &str) {
            self.0.push(format!("{path} begins"));
        }
    }

    #[test]
    fn every_leaf_comes_with_its_path_and_every_object_of_an_array_begins() {
        let text = r#"{"a": {"b": -1, "c": "7", "": null}, "l": [{"d": true}, 5, {"e": [2.0]}]}"#;
        let mut seen = Seen::default();
        let mut answer = serde_json::Deserializer::from_str(text);
        Leaves::new(&mut String::new(), &mut seen).deserialize(&mut answer).unwrap();
        assert_eq!(
            seen.0,
            [
                "/a/b None None None", "/a/c Some(7) Some(\"7\") None", "/l begins",
                "/l/d None None Some(true)", "/l Some(5) None None", "/l begins",
                "/l/e Some(2) None None",
            ]
        );
    }
}
