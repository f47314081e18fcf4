//! Recordings of clusters as cases: what `narrows explain --record` kept, beside what somebody knows of the cause.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clusters::live::is_transcript;
use insight::diagnosis::score::Scored;
use report::benched::Bench;
use world::Env;

use super::label::Label;
use super::trial::Judgement;
use crate::exit::{Usage, refuse};
use crate::live::looked_again;

/// The verdict on every recording in the folders of a folder, by their names.
pub(crate) async fn of_recordings(env: &Env, dir: &Path) -> anyhow::Result<Bench> {
    let mut cases = Vec::new();
    for (number, recording) in (0..).zip(folders(dir)?) {
        let Label { name, classes: right } = Label::read(&recording)?;
        let looking = looked_again(env, &recording).await?;
        let series = looking.series();
        if series.looks().len() < 2 {
            refuse!("{} broke off before the second look", recording.display());
        }
        let judgement = Judgement::of(&series, &right);
        let folder = recording.file_name().unwrap_or_default().to_string_lossy();
        cases.push(Scored {
            target: "recordings".to_owned(),
            name: format!("{name} ({folder})"),
            classes: right,
            seed: number,
            ..judgement.scored()
        });
    }
    let target = "recordings".to_owned();
    Ok(Bench { target, cases, refused: BTreeMap::new(), is_drawn: false, took_s: Vec::new() })
}

/// The folders with a transcript, by their names.
fn folders(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir)
        .map_err(|error| Usage(format!("cannot read the folder {}: {error}", dir.display())))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("read {}", dir.display()))?.path();
        if is_transcript(&path) {
            found.push(path);
        }
    }
    if found.is_empty() {
        refuse!(
            "no folder in {0} holds a transcript; `narrows explain URL --record {0}/NAME` makes one",
            dir.display()
        );
    }
    found.sort();
    Ok(found)
}
