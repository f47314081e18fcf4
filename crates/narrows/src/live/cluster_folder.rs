//! The folder of a live cluster below the directory of runs: what `steer` did there and what `what-if` said of it, each
//! as it is printed with `--json`, for the page of `watch --web` on the same machine.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clusters::ClusterIdentity;
use clusters::live::LiveClient;
use report::live_page::{Outlook, Steering};
use serde_json::{Value, json};
use world::{Env, Time};

use crate::runs::{append_inside, put};

/// Below the directory of runs; no run has such a name.
const FOLDER: &str = "clusters";
/// Every line that `steer --apply` said.
const STEPS: &str = "steps.jsonl";
/// What `what-if` answered last.
const ANSWER: &str = "answer.json";
/// Lines of so many bytes are kept, and the end of them is read.
const STEPS_BYTES_MAX: u64 = 1 << 20;
const STEPS_BYTES_READ: u64 = 256 << 10;
/// A longer answer is not read.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// It is looked for something new so often,
const LOOKED_EVERY: Duration = Duration::from_secs(2);
/// and what is there is read again so often, as it becomes too old to be shown.
const READ_EVERY: Duration = Duration::from_secs(60);

/// Where it is.
pub(crate) struct ClusterFolder(PathBuf);

impl ClusterFolder {
    /// That of a cluster with this `cluster_uuid`; none where it could not be the name of a folder.
    pub(crate) fn of(runs: &Path, uuid: &str) -> Option<ClusterFolder> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        // A node that has found no cluster yet has none.
        let is_name =
            (1..=64).contains(&uuid.len()) && uuid.bytes().all(is_plain) && uuid != "_na_";
        is_name.then(|| ClusterFolder(runs.join(FOLDER).join(uuid)))
    }

    /// That of the cluster that is asked; none where it does not say who it is.
    pub(crate) async fn of_asked(runs: &Path, client: &LiveClient) -> Option<ClusterFolder> {
        ClusterFolder::of(runs, &ClusterIdentity::ask(client).await.ok()?.uuid)
    }

    /// Appends a line of `steer --json`.
    pub(crate) fn step(&self, line: &Value) -> anyhow::Result<()> {
        let path = self.0.join(STEPS);
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.0)?;
            let mut file = append_inside(&path)?;
            if file.metadata()?.len() > STEPS_BYTES_MAX {
                file.set_len(0)?;
            }
            file.write_all(format!("{line}\n").as_bytes())
        };
        write().with_context(|| format!("write {}", path.display()))
    }

    /// Appends the end of a run that told none, as one that was killed; nothing where no run goes on.
    pub(crate) fn end_untold(&self, time: &str, why: &str) -> anyhow::Result<()> {
        let steps = end_of(&self.0.join(STEPS), STEPS_BYTES_READ).unwrap_or_default();
        let mut lines = steps.lines().rev();
        match lines.find_map(|line| serde_json::from_str::<Value>(line).ok()) {
            Some(last) if last["step"] != "end" => {
                self.step(&json!({ "time": time, "step": "end", "why": why }))
            }
            _ => Ok(()),
        }
    }

    /// Keeps what `what-if --json` prints, in place of what it printed before.
    pub(crate) fn answer(&self, printed: &Value) -> anyhow::Result<()> {
        let path = self.0.join(ANSWER);
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.0)?;
            // Two may answer at a time.
            put(&printed.to_string(), &path)
        };
        write().with_context(|| format!("write {}", path.display()))
    }
}

/// When a file was written, and its length.
type Stamp = (SystemTime, u64);

/// Reads the folder of a cluster now and then.
pub(crate) struct FolderReader {
    folder: ClusterFolder,
    /// When to look next, and when to read whatever is there.
    next_look: Time,
    next_read: Time,
    /// Of steps, and of the answer.
    stamps: [Option<Stamp>; 2],
    shown: String,
}

impl FolderReader {
    pub(crate) fn new(folder: ClusterFolder, now: Time) -> FolderReader {
        let (stamps, shown) = ([None; 2], String::new());
        FolderReader { folder, next_look: now, next_read: now, stamps, shown }
    }

    /// What the page is to be sent, as the first fields of an object; empty before anything was there.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The same where it is new; empty otherwise.
    pub(crate) fn look(&mut self, env: &Env) -> &str {
        let now = env.now();
        if now < self.next_look {
            return "";
        }
        self.next_look = now + LOOKED_EVERY;
        let stamps = [STEPS, ANSWER].map(|name| self.stamp(name));
        let is_due = now >= self.next_read && stamps.iter().any(Option::is_some);
        if stamps == self.stamps && !is_due {
            return "";
        }
        (self.stamps, self.next_read) = (stamps, now + READ_EVERY);
        let shown = self.read(env.epoch_ms());
        if shown == self.shown {
            return "";
        }
        self.shown = shown;
        &self.shown
    }

    fn stamp(&self, name: &str) -> Option<Stamp> {
        let found = fs::metadata(self.folder.0.join(name)).ok().filter(fs::Metadata::is_file)?;
        Some((found.modified().ok()?, found.len()))
    }

    fn read(&self, now_ms: u64) -> String {
        let [steps, answer] = &self.stamps;
        let steering = steps.as_ref().and_then(|_| {
            Steering::read(&end_of(&self.folder.0.join(STEPS), STEPS_BYTES_READ).ok()?, now_ms)
        });
        let outlook = answer.as_ref().filter(|(_, bytes)| *bytes <= ANSWER_BYTES_MAX);
        let outlook = outlook.and_then(|(written, bytes)| {
            let at_ms = written.duration_since(UNIX_EPOCH).ok()?.as_millis() as u64;
            Outlook::read(&end_of(&self.folder.0.join(ANSWER), *bytes).ok()?, at_ms, now_ms)
        });
        let whole = json!({ "steering": steering, "outlook": outlook }).to_string();
        format!("{},", &whole[1..whole.len() - 1])
    }
}

/// The last bytes of a file.
fn end_of(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &str = "\"outlook\":null,\"steering\":null,";

    fn line(env: &Env, why: &str) -> Value {
        // The virtual world begins with the year 2020.
        let s = env.epoch_ms() / 1000 - 1_577_836_800;
        let time = format!("2020-01-01T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60);
        json!({"time": time, "step": "set", "setting": "a", "from": "1", "to": "2", "why": why})
    }

    #[test]
    fn what_is_written_is_shown_once_it_is_new_and_for_an_hour() {
        world::virtual_world::run(1, async |env| {
            let dir = tempfile::tempdir().unwrap();
            let folder = || ClusterFolder::of(dir.path(), "Uu-1_").unwrap();
            let mut reader = FolderReader::new(folder(), env.now());
            assert_eq!(reader.look(&env), "", "nothing is there");
            folder().step(&line(&env, "one")).unwrap();
            assert_eq!(reader.look(&env), "", "it was looked a moment ago");
            env.sleep(LOOKED_EVERY).await;
            assert!(reader.look(&env).contains("\"why\":\"one\""), "{}", reader.shown());
            env.sleep(LOOKED_EVERY).await;
            assert_eq!(reader.look(&env), "", "it was told");
            folder().step(&line(&env, "two")).unwrap();
            env.sleep(LOOKED_EVERY).await;
            assert!(reader.look(&env).contains("\"why\":\"two\""), "{}", reader.shown());
            env.sleep(Duration::from_secs(3700)).await;
            assert_eq!(reader.look(&env), NOTHING, "it is older than an hour");
            env.sleep(LOOKED_EVERY).await;
            assert_eq!(reader.look(&env), "");
            assert_eq!(reader.shown(), NOTHING, "so it is told to a page that is opened");
        });
    }

    #[test]
    fn a_run_that_was_killed_ends_where_it_is_put_back_and_no_other_does() {
        world::virtual_world::run(1, async |env| {
            let dir = tempfile::tempdir().unwrap();
            let folder = || ClusterFolder::of(dir.path(), "u").unwrap();
            let end = || folder().end_untold("2020-01-01T00:00:05Z", "it was killed").unwrap();
            end();
            assert!(!folder().0.exists(), "nobody steered");
            folder().step(&line(&env, "one")).unwrap();
            end();
            end();
            let steps = fs::read_to_string(folder().0.join(STEPS)).unwrap();
            assert_eq!(steps.lines().count(), 2, "{steps}");
            let mut reader = FolderReader::new(folder(), env.now());
            let shown = reader.look(&env);
            assert!(shown.contains("\"end\":{") && shown.contains("it was killed"), "{shown}");
            assert!(!shown.contains("\"ended_ms\":null"), "nothing is on trial: {shown}");
        });
    }

    #[test]
    fn what_links_lead_to_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, other) =
            (ClusterFolder::of(dir.path(), "u").unwrap(), dir.path().join("other"));
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(&other, "of somebody else").unwrap();
        for name in [STEPS, ANSWER, "answer.json.new"] {
            std::os::unix::fs::symlink(&other, folder.0.join(name)).unwrap();
        }
        let error = folder.step(&json!({ "step": "set" })).unwrap_err();
        assert!(format!("{error:#}").contains("something else than a file"), "{error:#}");
        folder.answer(&json!({ "asked": "a" })).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "of somebody else");
        let answer = folder.0.join(ANSWER);
        assert!(fs::symlink_metadata(&answer).unwrap().is_file(), "it is in the place of the link");
        assert_eq!(fs::read_to_string(answer).unwrap(), "{\"asked\":\"a\"}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3, "no part of an answer is left");
    }

    #[test]
    fn files_are_bounded_and_what_is_no_name_has_no_folder() {
        world::virtual_world::run(1, async |env| {
            let dir = tempfile::tempdir().unwrap();
            let folder = || ClusterFolder::of(dir.path(), "u").unwrap();
            let steps = folder().0.join(STEPS);
            let long = "x".repeat(200 << 10);
            let mut lengths = Vec::new();
            for _ in 0..8 {
                folder().step(&line(&env, &long)).unwrap();
                lengths.push(fs::metadata(&steps).unwrap().len() >> 10);
            }
            assert!(lengths.iter().all(|kb| *kb < 1300), "{lengths:?}");
            // The first half of what is read is the end of a line.
            let mut reader = FolderReader::new(folder(), env.now());
            assert_eq!(reader.look(&env).matches("\"setting\":\"a\"").count(), 1);
            folder().answer(&json!("x".repeat(5 << 20))).unwrap();
            env.sleep(LOOKED_EVERY).await;
            assert_eq!(reader.look(&env), "", "too long to be read");
        });
        for uuid in ["", "_na_", "..", "a/b", "a b", "ü", &"u".repeat(65)] {
            assert!(ClusterFolder::of(Path::new("runs"), uuid).is_none(), "{uuid}");
        }
    }
}
