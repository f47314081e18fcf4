//! What the Python of a track registers: `registry.register_runner("reindex", reindex)`. None of it is run.

use std::path::Path;

/// Files of a track's own Python: of Rally, and of OpenSearch Benchmark.
const FILES: [&str; 2] = ["track.py", "workload.py"];
/// Processors that do what is done here without Python.
const DEFAULT_PROCESSORS: [&str; 2] = ["DefaultTrackPreparator", "DefaultWorkloadPreparator"];

/// The Python of a track.
pub(super) struct Python {
    file: &'static str,
    text: String,
}

/// One thing that it registers.
struct Registered<'a> {
    /// What follows `register_`.
    what: &'a str,
    /// Its first argument, up to a bracket.
    argument: &'a str,
}

impl Python {
    /// That of the track in a folder, where it has any.
    pub(super) fn of(dir: &Path) -> Option<Python> {
        FILES.into_iter().find_map(|file| {
            Some(Python { file, text: std::fs::read_to_string(dir.join(file)).ok()? })
        })
    }

    /// Whether it has this name in quotes: what has it is then its own.
    pub(super) fn quotes(&self, name: &str) -> bool {
        [format!("\"{name}\""), format!("'{name}'")].iter().any(|quoted| self.text.contains(quoted))
    }

    /// Whether it has a runner for operations of a type, be it in place of Rally's own.
    pub(super) fn runs(&self, operation_type: &str) -> bool {
        let is_it = |one: &Registered<'_>| {
            one.what == "runner" && one.argument.trim_matches(['"', '\'']) == operation_type
        };
        self.registered().iter().any(is_it)
    }

    /// What it registers that belongs to no operation and no task, a sentence each.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut found = Vec::new();
        for Registered { what, argument } in self.registered() {
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
            let line = self.text[..at].rsplit('\n').next().unwrap_or_default();
            let (what, rest) = self.text[at + CALL.len()..].split_once('(')?;
            let argument = rest.trim_start().split(['(', ')', ',', '\n']).next()?.trim();
            let is_name = what.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            (is_name && !line.contains('#')).then_some(Registered { what, argument })
        });
        calls.collect()
    }
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
}
