//! The templates of indices that a track declares.

use engine::state::TemplateKind;
use serde_json::Value;

use super::TEMPLATES;
use super::reader::Refusal;

/// A kind of template: its member of the track, what its operations are called, and where it is put.
pub(super) struct Kind {
    pub(super) member: &'static str,
    pub(super) create: &'static str,
    pub(super) delete: &'static str,
    pub(super) endpoint: &'static str,
    pub(super) of: TemplateKind,
}

pub(super) static KINDS: [Kind; 3] = [
    Kind {
        member: "templates",
        create: "create-index-template",
        delete: "delete-index-template",
        endpoint: TEMPLATES[0],
        of: TemplateKind::Legacy,
    },
    Kind {
        member: "composable-templates",
        create: "create-composable-template",
        delete: "delete-composable-template",
        endpoint: TEMPLATES[1],
        of: TemplateKind::Index,
    },
    Kind {
        member: "component-templates",
        create: "create-component-template",
        delete: "delete-component-template",
        endpoint: TEMPLATES[2],
        of: TemplateKind::Component,
    },
];

pub(super) struct Template {
    pub(super) kind: &'static Kind,
    pub(super) name: String,
    /// The indices that it is for, where the track says so.
    pub(super) pattern: Option<String>,
    /// Whether these are deleted with it.
    pub(super) deletes_indices: bool,
    pub(super) body: Value,
    /// Why it cannot be made here, if it cannot.
    pub(super) refused: Option<Refusal>,
}

/// The kind whose operations a type is one of.
pub(super) fn kind_of(operation_type: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| [kind.create, kind.delete].contains(&operation_type))
}

/// What is found below a path of names, `a.b`.
pub(super) fn below(body: Value, path: &str) -> Option<Value> {
    path.split('.').try_fold(body, |mut at, name| Some(at.get_mut(name)?.take()))
}
