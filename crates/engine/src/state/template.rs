//! Templates: what new indices are given whose names fit.

use std::collections::BTreeMap;

use record::names::matches;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alias::Aliases;
use super::json_text;
use crate::settings::SettingsMap;

/// A kind of template. Each has its own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TemplateKind {
    /// `_template`
    Legacy,
    /// `_index_template`
    Index,
    /// `_component_template`
    Component,
}

impl TemplateKind {
    /// What the field calls one.
    pub fn name(self) -> &'static str {
        match self {
            TemplateKind::Legacy => "index_template",
            TemplateKind::Index => "index template",
            TemplateKind::Component => "component template",
        }
    }
}

/// A template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Which names fit, with `*`; none of a component.
    pub index_patterns: Vec<String>,
    /// `order` of a legacy template, `priority` of an index template.
    pub order: Option<i64>,
    /// Settings of an index by full name.
    pub settings: SettingsMap,
    /// Mappings: an object, or null for none.
    #[serde(with = "json_text")]
    pub mappings: Value,
    /// Aliases.
    pub aliases: Aliases,
    /// Names of component templates, lowest first.
    pub composed_of: Vec<String>,
    /// `version`, for people.
    pub version: Option<i64>,
    /// `_meta`, for people.
    #[serde(with = "json_text")]
    pub meta: Value,
}

impl Template {
    /// Whether an index of this name is given it.
    pub(super) fn fits(&self, index: &str) -> bool {
        self.index_patterns.iter().any(|pattern| matches(pattern, index))
    }

    pub(super) fn order(&self) -> i64 {
        self.order.unwrap_or(0)
    }
}

/// What is to be done with the template of a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TemplateChange {
    /// There is this one from now on.
    Put {
        /// What it says.
        template: Box<Template>,
        /// Whether there must be none of its name.
        create: bool,
    },
    /// There is none.
    Delete,
}

/// All templates, by kind and name.
pub type Templates = BTreeMap<TemplateKind, BTreeMap<String, Template>>;
