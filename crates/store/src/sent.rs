//! Operations as they are sent to another node: their heads, then all their sources in one buffer.
//!
//! So the receiver allocates once for all sources, and each operation has a slice of that buffer. A field takes this
//! form with `#[serde(with = "store::sent")]`.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::operation::SyntheticBatch;
use crate::{OpKind, Operation};

/// An operation without its source.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    seq_no: u64,
    version: u64,
    id: &'a str,
    #[serde(borrow)]
    kind: HeadKind<'a>,
}

#[derive(Serialize, Deserialize)]
enum HeadKind<'a> {
    /// Length of the source, whether the id was generated, and `_routing`.
    Index(usize, bool, #[serde(borrow)] Option<&'a str>),
    Delete,
    NoOp,
    SyntheticBatch(SyntheticBatch),
}

/// Writes operations in this form.
pub fn serialize<S: Serializer>(
    ops: &impl AsRef<Vec<Operation>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let ops = ops.as_ref();
    let mut sources = Vec::with_capacity(ops.iter().map(|op| source_of(op).len()).sum());
    ops.iter().for_each(|op| sources.extend_from_slice(source_of(op)));
    let heads: Vec<Head<'_>> = ops.iter().map(head_of).collect();
    (heads, Bytes::from(sources)).serialize(serializer)
}

/// Reads what [`serialize`] wrote. Fails where the sources are not as long as the operations say.
pub fn deserialize<'de, D: Deserializer<'de>, T: From<Vec<Operation>>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let (heads, mut sources) = <(Vec<Head<'de>>, Bytes)>::deserialize(deserializer)?;
    let mut ops = Vec::with_capacity(heads.len());
    for Head { seq_no, version, id, kind } in heads {
        let kind = match kind {
            HeadKind::Index(len, ..) if len > sources.len() => {
                return Err(D::Error::custom("operations have longer sources than came"));
            }
            HeadKind::Index(len, auto_id, routing) => {
                let routing = routing.map(Arc::from);
                OpKind::Index { source: sources.split_to(len), auto_id, routing }
            }
            HeadKind::Delete => OpKind::Delete,
            HeadKind::NoOp => OpKind::NoOp,
            HeadKind::SyntheticBatch(batch) => OpKind::SyntheticBatch(batch),
        };
        ops.push(Operation { seq_no, version, id: Arc::from(id), kind });
    }
    match sources.is_empty() {
        true => Ok(ops.into()),
        false => Err(D::Error::custom("more sources came than the operations have")),
    }
}

fn source_of(op: &Operation) -> &[u8] {
    match &op.kind {
        OpKind::Index { source, .. } => source,
        OpKind::Delete | OpKind::NoOp | OpKind::SyntheticBatch(_) => &[],
    }
}

fn head_of(op: &Operation) -> Head<'_> {
    let kind = match &op.kind {
        OpKind::Index { source, auto_id, routing } => {
            HeadKind::Index(source.len(), *auto_id, routing.as_deref())
        }
        OpKind::Delete => HeadKind::Delete,
        OpKind::NoOp => HeadKind::NoOp,
        OpKind::SyntheticBatch(batch) => HeadKind::SyntheticBatch(batch.clone()),
    };
    Head { seq_no: op.seq_no, version: op.version, id: &op.id, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sent(#[serde(with = "super")] Vec<Operation>);

    fn some() -> Sent {
        let routed = |source: &'static [u8], auto_id, routing: Option<&str>| OpKind::Index {
            source: Bytes::from_static(source),
            auto_id,
            routing: routing.map(Arc::from),
        };
        let index = |source: &'static [u8], auto_id| routed(source, auto_id, None);
        let kinds = [
            index(b"{\"n\":1}", true),
            routed(b"{\"n\":2}", false, Some("r")),
            OpKind::Delete,
            OpKind::SyntheticBatch(SyntheticBatch::new(7, 700)),
            index(b"{}", false),
            OpKind::NoOp,
            index(b"", false),
        ];
        let op = |(seq_no, kind)| Operation { seq_no, version: 3, id: Arc::from("id"), kind };
        Sent((5..).zip(kinds).map(op).collect())
    }

    #[test]
    fn come_as_they_were_sent() {
        let bytes = postcard::to_stdvec(&some()).unwrap();
        assert_eq!(postcard::from_bytes::<Sent>(&bytes).unwrap(), some());
    }

    #[test]
    fn sources_of_another_length_are_refused() {
        let Sent(ops) = some();
        let heads: Vec<Head<'_>> = ops.iter().map(head_of).collect();
        for sources in ["{\"n\":1}{\"n\":2}{", "{\"n\":1}{\"n\":2}{}{"] {
            let bytes = postcard::to_stdvec(&(&heads, sources.as_bytes())).unwrap();
            let said = postcard::from_bytes::<Sent>(&bytes);
            assert!(said.is_err(), "{said:?}");
        }
    }
}
