//! The members of an object that are known by name; others are refused by theirs.

use record::names::did_you_mean;
use serde::Deserialize;
use serde::de::value::{Error as NoSuchName, StrDeserializer};

use crate::error::{SearchError, parsing};
use crate::json::{Member, Node, Value};
use crate::refused::{OPTIONS, said};

/// The members of an object that `what` may have.
pub(crate) struct Options<'a> {
    what: &'a str,
    /// The object.
    pub(crate) node: &'a Node<'a>,
    members: &'a [Member<'a>],
    /// Those whose names are those of fields.
    pub(crate) fields: Vec<&'a Member<'a>>,
}

impl<'b> Node<'b> {
    /// The members of an object; `known` are the names that it may have, with spaces in between, `fields` how many
    /// others it may have. Behind `=` stand the words that one may say, with `|` in between.
    pub(crate) fn options<'a>(
        &'a self,
        what: &'a str,
        known: &str,
        fields: usize,
    ) -> Result<Options<'a>, SearchError> {
        let known = known.split(' ').map(|known| known.split_once('=').unwrap_or((known, "")));
        let names: Vec<&str> = known.clone().map(|(name, _)| name).collect();
        let options = self.options_among(what, &names, fields)?;
        for (name, words) in known.filter(|(_, words)| !words.is_empty()) {
            options.one_of(name, &words.split('|').collect::<Vec<_>>())?;
        }
        Ok(options)
    }

    /// The same of names that may be any.
    pub(crate) fn options_among<'a>(
        &'a self,
        what: &'a str,
        known: &[&str],
        fields: usize,
    ) -> Result<Options<'a>, SearchError> {
        let members = self.object(what)?;
        let is_known = |member: &&Member| known.iter().any(|known| *known == member.name);
        let others: Vec<&Member<'b>> = members.iter().filter(|member| !is_known(member)).collect();
        if let Some(Member { at, name, .. }) = others.get(fields) {
            let near = did_you_mean(name, known.iter().copied());
            let unknown = format!("[{what}] does not support [{name}]{near}");
            let reason = said(OPTIONS, &format!("[{what}] [{name}]"), name, unknown);
            return Err(parsing(*at, reason));
        }
        Ok(Options { what, node: self, members, fields: others })
    }
}

impl<'a> Options<'a> {
    /// None of them: in place of an object stands a value.
    pub(crate) fn none(what: &'a str, node: &'a Node<'a>) -> Self {
        Options { what, node, members: &[], fields: Vec::new() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Node<'a>)> {
        self.members.iter().map(|member| (member.name.as_ref(), &member.node))
    }

    /// The option of a name; null counts as none.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node<'a>> {
        let found = self.members.iter().find(|member| member.name == name);
        found.map(|member| &member.node).filter(|node| node.value != Value::Null)
    }

    /// What is made of an option by one of the readers of [`Node`].
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a Node<'a>, &str) -> Result<T, SearchError>,
    ) -> Result<Option<T>, SearchError> {
        self.get(name).map(|node| read(node, name)).transpose()
    }

    pub(crate) fn need(&self, name: &str) -> Result<&'a Node<'a>, SearchError> {
        self.get(name).ok_or_else(|| self.missing(name))
    }

    /// Refuses the option of a name.
    pub(crate) fn without(&self, name: &str, reason: &str) -> Result<(), SearchError> {
        self.get(name).map_or(Ok(()), |node| Err(parsing(node.at, reason)))
    }

    /// The one field.
    pub(crate) fn field(&self) -> Result<(&'a str, &'a Node<'a>), SearchError> {
        let field = self.fields.first().map(|member| (member.name.as_ref(), &member.node));
        field.ok_or_else(|| self.missing("a field"))
    }

    pub(crate) fn missing(&self, name: &str) -> SearchError {
        parsing(self.node.at, format!("[{}] requires [{name}]", self.what))
    }

    /// The value whose name an option is: one of some words, as [`Options::one_of`] reads it.
    pub(crate) fn named<T: Deserialize<'static>>(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<T, SearchError> {
        let word = StrDeserializer::<NoSuchName>::new(self.one_of(name, words)?);
        T::deserialize(word).map_err(|error| parsing(self.node.at, error.to_string()))
    }

    /// Which of some words an option is, in any case; the first where it is not there.
    pub(crate) fn one_of<'w>(&self, name: &str, words: &[&'w str]) -> Result<&'w str, SearchError> {
        let Some(node) = self.get(name) else { return Ok(words[0]) };
        let given = node.text(name)?;
        let found = words.iter().find(|word| given.eq_ignore_ascii_case(word));
        found.copied().ok_or_else(|| {
            let reason = format!(
                "[{}] {name} [{given}] is not supported by this engine; send {}",
                self.what,
                words.join(" or ")
            );
            parsing(node.at, reason)
        })
    }
}
