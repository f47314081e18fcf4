//! What the Python of a track registers: `registry.register_runner("reindex", reindex)`. None of it is run.

use std::collections::BTreeSet;

use super::render::Files;

/// Files of a track's own Python: of Rally, and of OpenSearch Benchmark.
const FILES: [&str; 2] = ["track.py", "workload.py"];
/// Processors that do what is done here without Python.
const DEFAULT_PROCESSORS: [&str; 2] = ["DefaultTrackPreparator", "DefaultWorkloadPreparator"];

pub(super) struct Python {
    file: &'static str,
    text: String,
}

struct Registered<'a> {
    /// What follows `register_`.
    what: &'a str,
    /// Its first argument, up to a bracket.
    argument: &'a str,
    /// Whether it is registered only where an import fails.
    is_fallback: bool,
}

impl Python {
    pub(super) fn of(track: &Files) -> Option<Python> {
        FILES.into_iter().find_map(|file| {
            let mut text = track.text(&track.dir().join(file)).ok()?;
            // What it registers may stand in a file beside it: `from .runners import register`.
            let module = |line: &str| {
                let name = line.trim_start().strip_prefix("from ")?.split_whitespace().next()?;
                Some(name.trim_start_matches('.').replace('.', "/") + ".py")
            };
            // Each once, however often it is imported.
            let imported: BTreeSet<String> = text.lines().filter_map(module).collect();
            for beside in
                imported.iter().filter_map(|path| track.text(&track.dir().join(path)).ok())
            {
                text = text + "\n" + &beside;
            }
            Some(Python { file, text })
        })
    }

    /// Whether it has this name in quotes: what has it is then its own.
    pub(super) fn quotes(&self, name: &str) -> bool {
        [format!("\"{name}\""), format!("'{name}'")].iter().any(|quoted| self.text.contains(quoted))
    }

    /// Whether it has a runner for operations of a type, be it in place of Rally's own. One for releases of Rally that
    /// had none of their own is not used by those of today, and does the same.
    pub(super) fn runs(&self, operation_type: &str) -> bool {
        let is_it = |one: &Registered<'_>| {
            let argument = one.argument.trim_matches(['"', '\'']);
            one.what == "runner" && argument == operation_type && !one.is_fallback
        };
        self.registered().iter().any(is_it)
    }

    /// What it registers that belongs to no operation and no task, a sentence each.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut found = Vec::new();
        for Registered { what, argument, .. } in self.registered() {
            let name = argument.rsplit('.').next().unwrap_or_default();
            let sentence = match what {
                "runner" | "param_source" | "scheduler" => continue,
                "track_processor" | "workload_processor" if DEFAULT_PROCESSORS.contains(&name) => {
                    continue;
                }
                "track_processor" | "workload_processor" => format!(
                    "The processor {name} of {} is Python and is not run: what it would change, make or download is not \
                     there.",
                    self.file
                ),
                _ => format!(
                    "What {} registers with register_{what}({argument}) is Python and is not run.",
                    self.file
                ),
            };
            found.push(sentence);
        }
        found
    }

    fn registered(&self) -> Vec<Registered<'_>> {
        const CALL: &str = ".register_";
        let calls = self.text.match_indices(CALL).filter_map(|(at, _)| {
            let before = &self.text[..at];
            let line = before.rsplit('\n').next().unwrap_or_default();
            let (what, rest) = self.text[at + CALL.len()..].split_once('(')?;
            let argument = rest.trim_start().split(['(', ')', ',', '\n']).next()?.trim();
            let is_name = what.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let is_fallback = is_in_except_import_error(before);
            let found = Registered { what, argument, is_fallback };
            (is_name && !line.contains('#')).then_some(found)
        });
        calls.collect()
    }
}

/// Whether the line at the end of a text is in the block of an `except ImportError`.
fn is_in_except_import_error(before: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = before.lines().rev();
    let Some(call) = lines.next() else { return false };
    let around = lines.find(|line| !line.trim().is_empty() && indent(line) < indent(call));
    let errors = ["ImportError", "ModuleNotFoundError"];
    around.is_some_and(|line| {
        line.trim_start().starts_with("except") && errors.iter().any(|error| line.contains(error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_registered_is_found_in_the_text() {
        let text = r#"
from esrally.track import loader

def register(registry):
    registry.register_runner(
        "reindex", reindex, async_runner=True)
    registry.register_param_source('own', Own)
    # registry.register_track_processor(NotThis())
    registry.register_track_processor(queries.Downloader())
    registry.register_track_processor(loader.DefaultTrackPreparator())
    registry.register_oracle("later")
"#;
        let python = Python { file: "track.py", text: text.to_owned() };
        assert!(python.runs("reindex") && !python.runs("own") && python.quotes("own"));
        let said = python.left_out();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("The processor Downloader of track.py"), "{said:?}");
        assert!(said[1].contains("register_oracle(\"later\")"), "{said:?}");
    }

    #[test]
    fn a_runner_for_releases_of_rally_without_one_is_not_the_tracks_own() {
        let text = r#"
def register(registry):
    # Older releases have none.
    try:
        from esrally.driver.runner import PutSettings
    except ImportError:

        registry.register_runner("put-settings", put_settings)
    registry.register_runner("sleep", sleep)
    except ValueError:
        registry.register_runner("bulk", bulk)
"#;
        let python = Python { file: "track.py", text: text.to_owned() };
        assert!(!python.runs("put-settings"));
        assert!(python.runs("sleep") && python.runs("bulk"));
    }
}
