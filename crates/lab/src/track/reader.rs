//! Values of a track with their places, and what is found wrong with them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use query::json::{Member, Node, Value as Json, spot};
use record::names::did_you_mean;
use serde_json::Value;

use super::render::{Files, Place, Rendered};
use crate::choices::near_or_stop;
use crate::diagnostic::{Diagnostic, Mistakes};

/// Where mistakes and refusals of a track are gathered, so that all of them are told at once.
pub(super) struct Reader<'a> {
    pub(super) files: &'a Files,
    rendered: &'a Rendered,
    mistakes: RefCell<Vec<Diagnostic>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(files: &'a Files, rendered: &'a Rendered) -> Self {
        Reader { files, rendered, mistakes: RefCell::default() }
    }

    pub(super) fn place(&self, node: &Node<'_>) -> Place {
        let found = spot(self.rendered.placed_text().as_bytes(), node.at.column);
        found.map_or_else(Place::default, |at| self.rendered.place(at.line as usize))
    }

    /// What is wrong at a node, to be told with the rest.
    pub(super) fn wrong(&self, node: &Node<'_>, word: &str, message: impl Into<String>) {
        self.mistakes.borrow_mut().push(self.files.mistake(self.place(node), word, message));
    }

    pub(super) fn refusal(&self, node: &Node<'_>, word: &str, why: String) -> Refusal {
        Refusal { place: self.place(node), word: word.to_owned(), why }
    }

    pub(super) fn mistakes(&self) -> Option<Mistakes> {
        Mistakes::of(self.mistakes.borrow().iter().cloned())
    }

    /// The members of an object; none, and a mistake, where it is another value.
    pub(super) fn object<'n>(&self, node: &'n Node<'n>, what: &str) -> Object<'n> {
        match &node.value {
            Json::Object(members) => Object { node, members },
            _ => {
                self.wrong(node, "", format!("{what} is an object, found {}", node.kind()));
                Object { node, members: &[] }
            }
        }
    }

    pub(super) fn list<'n>(&self, node: &'n Node<'n>, what: &str) -> &'n [Node<'n>] {
        match &node.value {
            Json::List(items) => items,
            _ => {
                self.wrong(node, "", format!("{what} is an array, found {}", node.kind()));
                &[]
            }
        }
    }

    pub(super) fn text(&self, object: &Object<'_>, name: &str) -> Option<String> {
        let node = object.get(name)?;
        let text = node.text(name).ok();
        if text.is_none() {
            self.wrong(node, name, format!("{name} is a text, found {}", node.kind()));
        }
        text
    }

    /// A number of at least `least`, also in a text, as templates often write it.
    pub(super) fn number(&self, object: &Object<'_>, name: &str, least: f64) -> Option<f64> {
        let node = object.get(name)?;
        let number = node.float(name).ok().filter(|number| *number >= least);
        if number.is_none() {
            let said = format!("{name} is a number of at least {least}, found {}", shown(node));
            self.wrong(node, name, said);
        }
        number
    }

    pub(super) fn whole(
        &self,
        object: &Object<'_>,
        name: &str,
        least: u64,
        most: u64,
    ) -> Option<u64> {
        let number = self.number(object, name, least as f64)?;
        if number.fract() != 0.0 || number > most as f64 {
            let node = object.get(name)?;
            let message =
                format!("{name} is a whole number from {least} to {most}, found {}", shown(node));
            self.wrong(node, name, message);
            return None;
        }
        Some(number as u64)
    }

    pub(super) fn bool(&self, object: &Object<'_>, name: &str) -> Option<bool> {
        let node = object.get(name)?;
        let found = match node.text(name).ok()?.to_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        if found.is_none() {
            self.wrong(node, name, format!("{name} is true or false, found {}", shown(node)));
        }
        found
    }

    /// One text or several.
    pub(super) fn texts(&self, object: &Object<'_>, name: &str) -> Vec<String> {
        let Some(node) = object.get(name) else { return Vec::new() };
        let texts: Result<Vec<String>, _> =
            node.items().iter().map(|item| item.text(name)).collect();
        texts.unwrap_or_else(|_| {
            self.wrong(node, name, format!("{name} is a text or an array of texts"));
            Vec::new()
        })
    }

    /// Tells the members that are neither known nor comments.
    pub(super) fn only(&self, object: &Object<'_>, what: &str, known: &[&str]) {
        for Member { name, node, .. } in strangers(object, known) {
            let near = did_you_mean(name, known.iter().copied());
            self.wrong(node, name, format!("{what} has no \"{name}\"{near}"));
        }
    }

    /// Why what has a member that is neither known nor a comment is not run, if it has one.
    pub(super) fn unknown(
        &self,
        object: &Object<'_>,
        what: &str,
        known: &[&str],
    ) -> Option<Refusal> {
        let Member { name, node, .. } = strangers(object, known).next()?;
        let end = near_or_stop(name, known);
        let why = format!("{what} has no \"{name}\"{end} What it asks for is not known");
        Some(self.refusal(node, name, why))
    }

    /// Tells the second of two that have one name, with the place of the first.
    pub(super) fn second(&self, node: &Node<'_>, what: &str, name: &str, first: Place) {
        let first = self.files.mistake(first, "", "");
        let said = format!(
            "two {what} are called \"{name}\", the other in {}:{}; give one of them another \"name\"",
            first.origin, first.line
        );
        self.wrong(node, name, said);
    }

    /// Tells names that several have: which of them is meant nobody knows.
    pub(super) fn distinct<'x, 'n>(
        &self,
        what: &str,
        named: impl Iterator<Item = (&'x str, Object<'n>)>,
    ) {
        let mut known: BTreeMap<&'x str, Place> = BTreeMap::new();
        for (name, object) in named.filter(|(name, _)| !name.is_empty()) {
            let node = object.at("name");
            match known.get(name) {
                Some(first) => self.second(node, what, name, *first),
                None => {
                    known.insert(name, self.place(node));
                }
            }
        }
    }
}

/// The members that are neither known nor comments.
fn strangers<'n>(object: &Object<'n>, known: &[&str]) -> impl Iterator<Item = &'n Member<'n>> {
    let is_known = move |name: &str| name.starts_with('#') || known.contains(&name);
    object.members.iter().filter(move |member| !is_known(&member.name))
}

/// A value, as messages show it.
fn shown(node: &Node<'_>) -> String {
    let text = node.plain().to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// What cannot be run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) place: Place,
    pub(super) word: String,
    pub(super) why: String,
}

#[derive(Clone, Copy)]
pub(super) struct Object<'n> {
    pub(super) node: &'n Node<'n>,
    pub(super) members: &'n [Member<'n>],
}

impl<'n> Object<'n> {
    /// What stands under a name; null counts as nothing, the last of several counts.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node<'n>> {
        let found = self.members.iter().rev().find(|member| member.name == name);
        found.map(|member| &member.node).filter(|node| node.value != Json::Null)
    }

    /// Where what stands under a name is, or lacks.
    pub(super) fn at(&self, name: &str) -> &'n Node<'n> {
        self.get(name).unwrap_or(self.node)
    }

    /// The same, without places.
    pub(super) fn plain(&self, name: &str) -> Option<Value> {
        self.get(name).map(Node::plain)
    }
}
