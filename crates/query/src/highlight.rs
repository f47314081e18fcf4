//! `highlight`: fragments of the texts of hits, with tags around the words that were found in them.

use serde::{Deserialize, Serialize};

use super::Query;

/// What hits show of their texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Highlight {
    /// Which fields, and how. Of those that name the same field the last one counts.
    pub fields: Vec<HighlightField>,
    /// `highlight_query` of all fields: whose words are tagged in place of those of the search.
    pub query: Option<Query>,
}

/// What cuts texts into fragments: `type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Highlighter {
    /// At the ends of sentences.
    #[default]
    Unified,
    /// Behind so many characters.
    Plain,
}

/// How fragments of a field are made. Characters are counted as Java does, in UTF-16.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HighlightField {
    /// Its path, or a pattern of the paths of texts and keywords.
    pub pattern: String,
    /// What cuts texts into fragments.
    pub highlighter: Highlighter,
    /// What stands before a word that was found, and behind it: `pre_tags`, `post_tags`.
    pub tags: (String, String),
    /// `fragment_size`: characters of a fragment, about; 0 for one sentence each.
    pub fragment_size: usize,
    /// `number_of_fragments`, at most; 0 for the whole of each value that has a word.
    pub fragments: usize,
    /// `no_match_size`: characters of the first value that are shown where no word was found.
    pub no_match_size: usize,
    /// `order` is `score`: the best fragment comes first.
    pub by_score: bool,
    /// `require_field_match`: words that are asked of other fields do not count.
    pub own_words: bool,
    /// `encoder` is `html`: what is no tag is escaped.
    pub html: bool,
    /// `highlight_query`, where the field has one of its own.
    pub query: Option<Query>,
}

impl Default for HighlightField {
    fn default() -> Self {
        HighlightField {
            pattern: String::new(),
            highlighter: Highlighter::Unified,
            tags: ("<em>".to_owned(), "</em>".to_owned()),
            fragment_size: 100,
            fragments: 5,
            no_match_size: 0,
            by_score: false,
            own_words: true,
            html: false,
            query: None,
        }
    }
}

impl Highlight {
    /// How many clauses of its queries compile what finds their words.
    pub fn compiled(&self) -> usize {
        let own = self.fields.iter().filter_map(|field| field.query.as_ref());
        own.chain(&self.query).map(Query::compiled).sum()
    }
}
