//! What the bodies of `_delete_by_query`, `_update_by_query` and `_reindex` say beside the query.

use std::sync::Arc;

use record::names::did_you_mean;
use serde_json::{Map, Value};

use super::call::Call;
use super::error::{bad_body, bad_request, invalid, not_supported};
use super::unchanged::may_be_equal;
use engine::transport::Result;

/// What `_routing` documents get where they are copied to.
pub(super) enum Routing {
    Kept,
    Discarded,
    Set(Arc<str>),
}

impl Routing {
    /// Reads `routing` of a dest.
    fn read(text: Option<&str>) -> Result<Routing> {
        match text {
            None | Some("keep") => Ok(Routing::Kept),
            Some("discard") => Ok(Routing::Discarded),
            Some(text) => match text.strip_prefix('=') {
                Some("") => Ok(Routing::Discarded),
                Some(value) => Ok(Routing::Set(Arc::from(value))),
                None => {
                    Err(invalid("routing must be unset, [keep], [discard] or [=<some new value>]"))
                }
            },
        }
    }

    pub(super) fn of(&self, before: Option<Arc<str>>) -> Option<Arc<str>> {
        match self {
            Routing::Kept => before,
            Routing::Discarded => None,
            Routing::Set(value) => Some(value.clone()),
        }
    }
}

/// Parts of the body that say how to go on, and not what to look for.
pub(super) struct Manner {
    pub(super) max_docs: u64,
    pub(super) proceeds: bool,
}

impl Manner {
    /// Takes them out of the body. As in the field the path says `conflicts` above it, and no other `max_docs`, which
    /// the body may say by any of these names.
    pub(super) fn take(
        call: &Call,
        body: &mut Map<String, Value>,
        max_docs: &[&str],
    ) -> Result<Manner> {
        for (name, instead) in [
            ("script", "compute values before you send documents"),
            ("slice", "send one request without slices"),
        ] {
            if body.contains_key(name) {
                return Err(not_supported(&format!("[{name}]"), instead));
            }
        }
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // `5.0` is a whole number, too; larger ones need not be what was written.
        let count = |value: Value| match value.as_f64() {
            Some(count) if count.fract() == 0.0 && count.abs() < 9e15 => (count as i64).to_string(),
            _ => text(value),
        };
        let of_body = max_docs.iter().filter_map(|name| body.remove(*name).map(count));
        let of_path = ["max_docs", "size"].into_iter().filter_map(|name| call.query.get(name));
        let mut all = of_body.chain(of_path.map(str::to_owned));
        let most = all.next();
        if let (Some(one), Some(other)) = (&most, all.find(|other| Some(other) != most.as_ref())) {
            let reason = format!("[max_docs] set to two different values [{one}] and [{other}]");
            return Err(bad_request(reason));
        }
        let max_docs = match most.as_deref() {
            None => u64::MAX,
            Some(text) => text.parse().ok().filter(|most| *most > 0).ok_or_else(|| {
                bad_request(format!("[max_docs] must be greater than 0, not [{text}]"))
            })?,
        };
        let conflicts = body.remove("conflicts").map(text);
        let proceeds = match call.query.get("conflicts").or(conflicts.as_deref()) {
            None | Some("abort") => false,
            Some("proceed") => true,
            Some(other) => {
                let reason =
                    format!("conflicts may only be \"proceed\" or \"abort\" but was [{other}]");
                return Err(bad_request(reason));
            }
        };
        Ok(Manner { max_docs, proceeds })
    }
}

/// What becomes of a document that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Present {
    Replaced,
    /// It is a conflict (`op_type` create).
    Kept,
    /// It is replaced where its version is lower, or as high (`version_type` external and external_gte).
    ReplacedIfOlder {
        or_equal: bool,
    },
}

/// Where documents go, what becomes of those that are there already, and of the routing of each.
pub(super) fn read_dest(dest: &mut Map<String, Value>) -> Result<(String, Present, Routing)> {
    let mut text = |name: &str| match dest.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(bad_body(format!("[{name}] of a dest is a text, not {other}"))),
    };
    let index = text("index")?.ok_or_else(|| invalid("index must be specified"))?;
    let create = match text("op_type")?.map(|of| of.to_ascii_lowercase()).as_deref() {
        None | Some("index") => false,
        Some("create") => true,
        Some(other) => {
            return Err(bad_request(format!(
                "op_type [{other}] is not allowed; use index or create"
            )));
        }
    };
    let present = match may_be_equal(text("version_type")?.as_deref())? {
        None if create => Present::Kept,
        None => Present::Replaced,
        Some(_) if create => {
            let why = "create operations only support internal versioning. use index instead";
            return Err(invalid(why));
        }
        Some(or_equal) => Present::ReplacedIfOlder { or_equal },
    };
    let routing = Routing::read(text("routing")?.as_deref())?;
    if dest.contains_key("pipeline") {
        return Err(not_supported(
            "[pipeline] of a dest",
            "transform documents before you send them",
        ));
    }
    known(dest, &[], "index, op_type, version_type and routing")?;
    Ok((index, present, routing))
}

pub(super) fn known(object: &Map<String, Value>, names: &[&str], all: &str) -> Result<()> {
    match object.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = did_you_mean(key, all.split([' ', ',']).filter(|word| *word != "and"));
            Err(bad_body(format!("unknown key [{key}]{near}; there are {all}")))
        }
    }
}
