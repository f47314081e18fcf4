//! What of a document's source is sent.

use bytes::Bytes;
use query::{SourceFilter, parse_search};
use serde_json::Value;
use world::Work;

use super::answer::with_member;
use super::parameters::{Query, filter_source};
use engine::Node;
use engine::transport::{Failure, Result};

/// What of the source is sent.
pub(super) struct Wanted(SourceFilter);

impl Wanted {
    pub(super) fn read(query: &Query) -> Wanted {
        let mut source = SourceFilter::default();
        filter_source(query, &mut source);
        Wanted(source)
    }

    /// The same of what shows a document only where it is asked to; none where it is not.
    pub(super) fn asked(query: &Query) -> Option<Wanted> {
        let mut source = SourceFilter { enabled: false, ..SourceFilter::default() };
        filter_source(query, &mut source);
        Some(Wanted(source)).filter(Wanted::is_any)
    }

    /// The same as a body says it under `_source`.
    pub(super) fn parse(text: &str) -> Result<Wanted> {
        let read = parse_search(format!("{{\"_source\":{text}}}").as_bytes());
        // Places in it would be those of another text.
        let read = read.map_err(|error| Failure { at: None, ..error.into() })?;
        Ok(Wanted(read.source))
    }

    /// Whether anything is.
    pub(super) fn is_any(&self) -> bool {
        self.0.enabled
    }

    /// The source as it is sent; none where it is not wanted. In the virtual world old documents are sizes alone.
    fn of(&self, source: Bytes) -> Option<Vec<u8>> {
        let sent = if source.is_empty() { None } else { self.0.apply(&source) };
        sent.map(|source| source.to_vec())
    }

    /// The same, away from what else the node does: a source that is filtered is read as JSON, however large it is.
    pub(super) async fn sent(self, node: &Node, source: Bytes) -> Option<Vec<u8>> {
        if self.0 == SourceFilter::default() {
            return self.of(source);
        }
        let work = Work::Parse { bytes: source.len() as u64 };
        node.core().env.work(work, move || self.of(source)).await
    }
}

/// An object with the parts of a source that are wanted.
pub(super) async fn with_source(
    node: &Node,
    object: &Value,
    (source, wanted): (Bytes, Wanted),
) -> Vec<u8> {
    match wanted.sent(node, source).await {
        None => object.to_string().into_bytes(),
        Some(source) => with_member(object, "_source", &source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text).unwrap()
    }

    #[test]
    fn sends_the_wanted_parts_of_a_source() {
        let source = || Bytes::from_static(b"{\"b\": 1.50, \"a\": {\"x\": 1, \"y\": 2}}");
        let sent = |text: &str| Wanted::read(&query(text)).of(source());
        assert_eq!(sent(""), Some(source().to_vec()), "as it came, to the byte");
        assert_eq!(sent("_source=false"), None);
        assert_eq!(sent("_source=a.x"), Some(b"{\"a\":{\"x\":1}}".to_vec()));
        assert_eq!(
            sent("_source_includes=a&_source_excludes=a.x"),
            Some(b"{\"a\":{\"y\":2}}".to_vec())
        );
        // As in a search a star stands for dots, too.
        assert_eq!(sent("_source_includes=*x"), Some(b"{\"a\":{\"x\":1}}".to_vec()));
        assert_eq!(sent("_source_excludes=b,*y"), Some(b"{\"a\":{\"x\":1}}".to_vec()));
        assert_eq!(Wanted::read(&query("")).of(Bytes::new()), None);
    }
}
