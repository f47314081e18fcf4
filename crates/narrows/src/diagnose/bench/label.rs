//! What is right of a recording, in a file beside its transcript.

use std::path::Path;

use anyhow::Context;
use insight::diagnosis::Class;
use serde::{Deserialize, Serialize};

use crate::exit::Usage;
use crate::runs;

const FILE: &str = "case.toml";
const FORM: &str = "name = \"a limit of 8mb\" and classes = [\"rate_limit\"], the cause that holds first, [] where all is well";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Label {
    /// What held the cluster, in words.
    pub(super) name: String,
    /// The classes that are right, the one that holds first; none where nothing is to be found.
    pub(super) classes: Vec<Class>,
}

impl Label {
    pub(super) fn write(&self, recording: &Path) -> anyhow::Result<()> {
        let text = toml::to_string(self).context("a label is TOML")?;
        runs::write_inside(&text, &recording.join(FILE))
    }

    pub(super) fn read(recording: &Path) -> anyhow::Result<Label> {
        let path = recording.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Usage(format!("{}: {error}; write what is right into it: {FORM}", path.display()))
        })?;
        toml::from_str(&text).map_err(|error| {
            let why = error.message();
            Usage(format!("{}: {why}; it holds {FORM}", path.display())).into()
        })
    }
}
