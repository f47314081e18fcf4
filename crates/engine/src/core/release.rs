//! Which release of the field a node presents itself as.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which release of the field a node presents itself as to clients of REST. What the node does is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PresentedAs {
    /// Elasticsearch 7.10, with which clients of both families go on: those of OpenSearch do not look.
    #[default]
    Elasticsearch7,
    /// OpenSearch 2. Elasticsearch's own clients refuse it from 7.14 on.
    OpenSearch2,
}

impl PresentedAs {
    /// All of them, by name.
    pub const NAMES: [(&str, PresentedAs); 2] = [
        ("elasticsearch-7.10", PresentedAs::Elasticsearch7),
        ("opensearch-2", PresentedAs::OpenSearch2),
    ];
}

impl fmt::Display for PresentedAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::NAMES.iter().find(|(_, this)| this == self).expect("it has a name");
        f.write_str(name)
    }
}

impl FromStr for PresentedAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let known = || Self::NAMES.map(|(name, _)| name).join(" or ");
        found
            .map(|(_, this)| *this)
            .ok_or_else(|| format!("there is no release [{text}] here; write {}", known()))
    }
}
