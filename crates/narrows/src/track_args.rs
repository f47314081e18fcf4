//! What of a track is run, as the command line says it.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use lab::track::{Params, Track, TrackOptions};

use crate::exit::refuse;
use crate::on::On;

/// Files that a folder of a track begins with: of Rally, and of OpenSearch Benchmark.
const FILES: [&str; 2] = ["track.json", "workload.json"];

/// Options of a track; a plan has none of them.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Tracks of Rally and workloads of OpenSearch Benchmark")]
pub(crate) struct TrackArgs {
    /// Parameters of the track: bulk_size:500,number_of_shards:1, a JSON object, or a file that ends in .json.
    #[arg(long, visible_alias = "workload-params", value_name = "PARAMS", value_parser = Params::read)]
    track_params: Option<Params>,
    /// The challenge, in place of the track's default.
    #[arg(long, visible_alias = "test-procedure", value_name = "NAME")]
    challenge: Option<String>,
    /// Only these tasks: their names, type:search or tag:setup, joined by commas.
    #[arg(long, value_name = "TASKS", value_delimiter = ',', value_parser = trimmed)]
    include_tasks: Vec<String>,
    /// Not these tasks.
    #[arg(long, value_name = "TASKS", value_delimiter = ',', value_parser = trimmed)]
    exclude_tasks: Vec<String>,
    /// Run each task once for each client, or for ten seconds at most where it goes by the time, with a thousand
    /// documents of each file, to see whether the track works.
    #[arg(long)]
    test_mode: bool,
    /// Run the rest of the challenge where some of its operations are refused.
    #[arg(long)]
    skip_refused: bool,
    /// Generate documents where the files of the corpus are not there: like those of geopoint, http_logs and pmc, of
    /// other tracks such as their mappings say.
    #[arg(long)]
    generate: bool,
    /// Where files of documents lie (.json, .bz2, .gz, .zst), besides the track's own folder.
    #[arg(long, value_name = "DIR")]
    corpora: Option<PathBuf>,
    /// Nodes that are started for the track.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    nodes: u32,
}

impl TrackArgs {
    /// How many nodes are started.
    pub(crate) fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The track that a path names; none where it names a plan.
    pub(crate) fn open(&self, path: &str, scale: f64, on: &On) -> anyhow::Result<Option<Track>> {
        let Some(file) = file_of(path) else {
            self.refuse_for_plan(path)?;
            return Ok(None);
        };
        if self.nodes != 1 && matches!(on, On::Url(_)) {
            refuse!("--nodes is for a cluster that is started; that of --on URL is there already");
        }
        if let Some(dir) = self.corpora.as_ref().filter(|dir| !dir.is_dir()) {
            refuse!("--corpora {}: there is no such directory", dir.display());
        }
        let options = TrackOptions {
            params: self.track_params.clone().unwrap_or_default(),
            challenge: self.challenge.clone(),
            include: self.include_tasks.clone(),
            exclude: self.exclude_tasks.clone(),
            test_mode: self.test_mode,
            skip_refused: self.skip_refused,
            generate: self.generate,
            corpora: self.corpora.clone(),
            scale,
            embedded: matches!(on, On::Embedded | On::Virtual),
            is_virtual: matches!(on, On::Virtual),
            live: matches!(on, On::Url(_)),
        };
        Ok(Some(lab::track::open(&file, &options)?))
    }

    fn refuse_for_plan(&self, path: &str) -> anyhow::Result<()> {
        let given = [
            ("--track-params", self.track_params.is_some()),
            ("--challenge", self.challenge.is_some()),
            ("--include-tasks", !self.include_tasks.is_empty()),
            ("--exclude-tasks", !self.exclude_tasks.is_empty()),
            ("--test-mode", self.test_mode),
            ("--skip-refused", self.skip_refused),
            ("--generate", self.generate),
            ("--corpora", self.corpora.is_some()),
            ("--nodes", self.nodes != 1),
        ];
        let Some((option, _)) = given.iter().find(|(_, given)| *given) else { return Ok(()) };
        let found = match Path::new(path) {
            dir if dir.is_dir() => "is a folder without track.json or workload.json",
            gone if gone.components().count() > 1 && !gone.exists() => "is not there",
            _ => "is none",
        };
        refuse!(
            "{option} is for a track, and {path} {found}: give the path of its track.json, of a workload.json, or of \
             their folder"
        );
    }
}

/// One of the tasks of a list, in which spaces may stand around the commas, as in Rally.
fn trimmed(task: &str) -> Result<String, Infallible> {
    Ok(task.trim().to_owned())
}

/// The file of a track: one that ends in .json, or that of a folder.
fn file_of(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    if path.extension().is_some_and(|ending| ending == "json") {
        return Some(path.to_owned());
    }
    FILES.iter().map(|name| path.join(name)).find(|file| file.is_file())
}
