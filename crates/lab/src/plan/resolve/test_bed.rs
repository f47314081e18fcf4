//! Test beds: the machines and lines of a published experiment, as parameters of the virtual world. Every plan that
//! repeats an experiment of the same bed names it, so that one set of parameters answers for all its rows.

use serde::Deserialize;

use super::parameters::parameters;
use crate::choices::unknown;
use crate::diagnostic::{Diagnostic, Mistakes};
use crate::error::{Error, Result};
use crate::plan::document::Parameters;
use crate::plan::parameter::{Parameter, ParameterScope};

/// A test bed inside the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestBed {
    pub(super) name: &'static str,
    text: &'static str,
}

/// The file `plans/test-beds/NAME.toml`.
macro_rules! bed {
    ($name:literal) => {
        TestBed {
            name: $name,
            text: include_str!(concat!("../../../../../plans/test-beds/", $name, ".toml")),
        }
    };
}

/// One line for each file in `plans/test-beds/`.
const BEDS: [TestBed; 7] = [
    bed!("aws-2019"),
    bed!("aws-2019-small"),
    bed!("code-search-2013"),
    bed!("couchbase-2020"),
    bed!("elasticsearch-8"),
    bed!("gce-2017"),
    bed!("opensearch-2"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "virtual")]
    parameters: Parameters,
}

/// The bed with what work costs in a release of a target; none where it is our own engine, or unknown.
pub fn target_bed(flavour: &str) -> Option<&'static str> {
    match flavour {
        "opensearch" => Some("opensearch-2"),
        "elasticsearch" => Some("elasticsearch-8"),
        _ => None,
    }
}

pub(super) fn test_bed(name: &str) -> Option<&'static TestBed> {
    BEDS.iter().find(|bed| bed.name == name)
}

pub(super) fn unknown_test_bed(name: &str) -> String {
    unknown("no test bed is called", name, "Test beds", &BEDS.map(|bed| bed.name))
}

impl TestBed {
    /// Its parameters. A test holds that those of the bundled are right.
    pub(super) fn parameters(&self) -> Result<Vec<Parameter>> {
        let origin = format!("plans/test-beds/{}.toml", self.name);
        let document: Document = toml::from_str(self.text)
            .map_err(|error| Mistakes::from(Diagnostic::from_toml(&origin, self.text, &error)))?;
        parameters(ParameterScope::Everywhere, &document.parameters, |span, message| {
            Error::Plan(Diagnostic::new(&origin, self.text, span, message).into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_and_right() {
        assert!(BEDS.is_sorted_by_key(|bed| bed.name));
        for bed in BEDS {
            assert!(!bed.parameters().unwrap().is_empty(), "{}", bed.name);
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/test-beds");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), BEDS.len());
    }

    #[test]
    fn an_unknown_one_is_told_which_there_are() {
        let said = unknown_test_bed("aws-2018");
        assert!(said.contains("did you mean \"aws-2019\""), "{said}");
    }
}
