//! The APIs of the field that this engine does not offer, each with what to do instead: `surface.txt`, read.

use std::sync::OnceLock;

use super::error::not_supported;
use engine::transport::Failure;

/// An API of the field that is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// As the field's clients name it.
    pub name: &'static str,
    /// The methods of its requests.
    pub methods: Vec<&'static str>,
    /// Their paths, with the names of the parts in braces.
    pub paths: Vec<&'static str>,
    /// What its callers are to do instead.
    pub instead: &'static str,
}

impl Refused {
    /// What its callers are told.
    pub(super) fn failure(&self) -> Failure {
        not_supported(&format!("the API [{}]", self.name), self.instead)
    }
}

/// All APIs that are refused.
pub fn refused() -> &'static [Refused] {
    static READ: OnceLock<Vec<Refused>> = OnceLock::new();
    READ.get_or_init(|| read(include_str!("surface.txt")))
}

fn read(text: &'static str) -> Vec<Refused> {
    let mut instead = "";
    let mut refused = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[') {
            instead = heading.trim_end_matches(']');
            continue;
        }
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let methods = words.next().unwrap_or_default().split(',').collect();
        refused.push(Refused { name, methods, paths: words.collect(), instead });
    }
    refused
}
