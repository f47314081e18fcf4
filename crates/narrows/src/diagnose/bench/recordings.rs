//! Recordings of clusters as cases: what `narrows explain --record` kept, beside what somebody knows of the cause.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clusters::live::is_transcript;
use insight::diagnosis::Class;
use insight::diagnosis::score::Scored;
use report::benched::Bench;
use serde::{Deserialize, Serialize};
use world::Env;

use super::trial::{Judgement, classes};
use crate::exit::Usage;
use crate::live::looked_again;

/// What is right, beside a transcript.
const LABEL: &str = "case.toml";
const LABEL_FORM: &str = "name = \"a limit of 8mb\" and classes = [\"rate_limit\"], the cause that holds first, [] where all is well";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Label {
    /// What held the cluster, in words.
    name: String,
    /// The classes that are right, the one that holds first; none where nothing is to be found.
    classes: Vec<Class>,
}

/// The verdict on every recording in the folders of a folder, by their names.
pub(crate) async fn of_recordings(env: &Env, dir: &Path) -> anyhow::Result<Bench> {
    let mut cases = Vec::new();
    for (number, recording) in (0..).zip(folders(dir)?) {
        let Label { name, classes: right } = labelled(&recording)?;
        let looking = looked_again(env, &recording).await?;
        let series = looking.series();
        if series.looks().len() < 2 {
            let text = format!("{} broke off before the second look", recording.display());
            return Err(Usage(text).into());
        }
        let Judgement { diagnosis, seconds, guesses } = Judgement::of(&series, &right);
        let folder = recording.file_name().unwrap_or_default().to_string_lossy();
        cases.push(Scored {
            target: "recordings".to_owned(),
            name: format!("{name} ({folder})"),
            classes: right,
            severity: 0,
            seed: number,
            verdicts: classes(&diagnosis),
            probed: None,
            sentence: diagnosis.headline,
            promised: None,
            got: None,
            seconds,
            guesses,
        });
    }
    let target = "recordings".to_owned();
    Ok(Bench { target, cases, refused: BTreeMap::new(), is_drawn: false })
}

/// The folders with a transcript, by their names.
fn folders(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let usage = |text: String| anyhow::Error::new(Usage(text));
    let entries = std::fs::read_dir(dir)
        .map_err(|error| usage(format!("cannot read the folder {}: {error}", dir.display())))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("read {}", dir.display()))?.path();
        if is_transcript(&path) {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(usage(format!(
            "no folder in {} holds a transcript; `narrows explain URL --record {}/NAME` makes one",
            dir.display(),
            dir.display()
        )));
    }
    found.sort();
    Ok(found)
}

/// Writes what is right beside a transcript.
pub(super) fn label(recording: &Path, name: &str, classes: &[Class]) -> anyhow::Result<()> {
    let label = Label { name: name.to_owned(), classes: classes.to_vec() };
    let path = recording.join(LABEL);
    let text = toml::to_string(&label).context("a label is TOML")?;
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

fn labelled(recording: &Path) -> anyhow::Result<Label> {
    let path = recording.join(LABEL);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Usage(format!("{}: {error}; write what is right into it: {LABEL_FORM}", path.display()))
    })?;
    toml::from_str(&text).map_err(|error| {
        let why = error.message();
        Usage(format!("{}: {why}; it holds {LABEL_FORM}", path.display())).into()
    })
}
