//! A plan as it was read: its text, and the same as plain data.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

use super::bundled::{Bundled, bundled};
use super::document::{Document, PLAN};
use super::expand;
use super::keys::{self, Checked, Holds};
use super::unclosed::unclosed;
use crate::choices::near_or_stop;
use crate::diagnostic::{Diagnostic, Mistakes};
use crate::error::{Error, READ_PLAN, Result};

/// A plan as it was read: text and plain data, nothing resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What messages call the file.
    origin: String,
    /// The folder that relative paths in the plan start from; none for a bundled one.
    pub(super) dir: Option<PathBuf>,
    text: String,
    pub(super) document: Document,
    /// What is wrong with its keys, and where the document has an example in the place of something wrong.
    checked: Checked,
}

impl Plan {
    /// The bundled plan of that name, or the file at that path where it ends in `.toml`.
    pub fn open(name_or_path: &str) -> Result<Self> {
        if name_or_path.ends_with(".toml") {
            return Plan::read(Path::new(name_or_path));
        }
        if let Some(found) = bundled().iter().find(|plan| plan.name == name_or_path) {
            return found.plan();
        }
        let (path, beside) = (Path::new(name_or_path), format!("{name_or_path}.toml"));
        let why = if name_or_path.ends_with(".yaml") || name_or_path.ends_with(".yml") {
            format!(
                "{name_or_path} is not TOML, as plans are; `narrows plans remote-recovery > mine.toml` writes one to \
                 start from"
            )
        } else if path.exists() {
            let what = if path.is_dir() {
                "is a folder without track.json or workload.json"
            } else {
                "is not called *.toml"
            };
            format!(
                "{name_or_path} {what}; write the name of a plan, or the path of one that ends in .toml"
            )
        } else if Path::new(&beside).is_file() {
            format!(
                "no plan is called \"{name_or_path}\", but there is a file {beside}; write `narrows run {beside}`"
            )
        } else if path.components().count() > 1 {
            format!(
                "there is no {name_or_path}; write the name of a plan (`narrows plans` lists them), the path of one that ends \
                 in .toml, or the folder of a track"
            )
        } else {
            let known: Vec<&str> = bundled().iter().map(|plan| plan.name).collect();
            format!(
                "no plan is called \"{name_or_path}\"{} `narrows plans` lists the plans; a plan of your own is given by \
                 its path, which ends in .toml",
                near_or_stop(name_or_path, &known)
            )
        };
        Err(Error::Usage { why })
    }

    /// The plan in the file at `path`.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NoPlan { path: path.to_owned() },
            _ => Error::Io { what: READ_PLAN, path: path.to_owned(), source },
        })?;
        let mut plan = Plan::parse(&path.display().to_string(), &text)?;
        plan.dir = path.parent().map(Path::to_owned);
        Ok(plan)
    }

    /// The plan in `text`; messages call it `origin`. Error: it is no TOML. Keys that are unknown, missing or of the
    /// wrong type are told by [`resolve`](Plan::resolve), with all else that is wrong.
    pub fn parse(origin: &str, text: &str) -> Result<Self> {
        let (mut root, errors) = DeTable::parse_recoverable(text);
        let mut wrong: Vec<Diagnostic> =
            errors.iter().map(|error| Diagnostic::from_toml(origin, text, error)).collect();
        let again = || errors.iter().find_map(|error| head_again(text, error));
        if !wrong.is_empty()
            && let Some((at, said)) = unclosed(text).or_else(again)
        {
            // What follows comes from this.
            return Err(Mistakes::from(Diagnostic::new(origin, text, at, said)).into());
        }
        // What follows on the same line comes from the first.
        wrong.sort_by_key(|mistake| mistake.line);
        wrong.dedup_by_key(|mistake| mistake.line);
        if let Some(mistakes) = Mistakes::of(wrong) {
            return Err(mistakes.into());
        }
        let checked = keys::check(text, &mut root);
        let mut document = Document::deserialize(Deserializer::from(root))
            .map_err(|error| Mistakes::from(Diagnostic::from_toml(origin, text, &error)))?;
        let written = std::mem::take(document.variant.get_mut());
        *document.variant.get_mut() = expand::expand(written);
        let (origin, text) = (origin.to_owned(), text.to_owned());
        Ok(Plan { origin, dir: None, text, document, checked })
    }

    /// The plan's name.
    pub fn name(&self) -> &str {
        self.document.name.get_ref()
    }

    /// What the plan says about itself.
    pub fn about(&self) -> &str {
        &self.document.about
    }

    /// The whole text, as a run's manifest keeps it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn error(&self, span: Range<usize>, message: impl Into<String>) -> Error {
        Error::Plan(self.mistake(span, message.into()).into())
    }

    fn mistake(&self, span: Range<usize>, message: String) -> Diagnostic {
        Diagnostic::new(&self.origin, &self.text, span, message)
    }

    /// Whether every key is known, there, and of the right type.
    pub(super) fn has_right_keys(&self) -> bool {
        self.checked.mistakes.is_empty()
    }

    /// What was resolved, where the keys are right, too; otherwise all that is wrong.
    pub(super) fn with_mistakes_of_keys<T>(&self, resolved: Result<T>) -> Result<T> {
        let of_keys = self.checked.mistakes.iter().cloned();
        let Some(of_keys) = Mistakes::of(of_keys.map(|(at, said)| self.mistake(at, said))) else {
            return resolved;
        };
        let Err(Error::Plan(others)) = resolved else { return Err(of_keys.into()) };
        match others.outside(&self.checked.replaced) {
            Some(others) => Err(of_keys.and(others).into()),
            None => Err(of_keys.into()),
        }
    }

    pub(super) fn excerpt(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }
}

impl Bundled {
    /// The plan, parsed. A test holds that none of the bundled fails.
    pub fn plan(&self) -> Result<Plan> {
        Plan::parse(&format!("plans/{}.toml", self.name), self.text)
    }
}

/// The head of a table that stands above already: where, and what to write.
fn head_again(text: &str, error: &toml::de::Error) -> Option<(Range<usize>, String)> {
    let at = error.span().filter(|_| error.message().contains("duplicate key"))?;
    let line = text.get(..at.start)?.lines().next_back()?;
    let name = text.get(at.clone()).filter(|_| matches!(line.trim(), "[" | "[["))?;
    let said = match PLAN.key(name).map(|key| key.holds) {
        Some(Holds::Tables(_)) => {
            format!(
                "{name} is a list of tables; write [[{name}]], in two pairs of brackets, each time"
            )
        }
        _ => format!("[{name}] stands above already; write its keys there"),
    };
    Some((at, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_is_like_no_other_is_told_where_they_are_listed() {
        let said = |name: &str| Plan::open(name).unwrap_err().to_string();
        let far = said("zzz");
        assert!(far.starts_with("no plan is called \"zzz\". `narrows plans` lists"), "{far}");
        let path = said("tracks/geonames/");
        assert!(path.starts_with("there is no tracks/geonames/; "), "{path}");
        assert!(path.ends_with("or the folder of a track"), "{path}");
    }

    #[test]
    fn a_plan_without_its_ending_is_told_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("mine").display().to_string();
        std::fs::write(format!("{name}.toml"), "").unwrap();
        let said = Plan::open(&name).unwrap_err();
        assert!(said.is_usage(), "{said}");
        assert!(said.to_string().ends_with(&format!("write `narrows run {name}.toml`")), "{said}");
    }

    #[test]
    fn of_each_line_that_is_no_toml_one_mistake_is_told() {
        let text = "laps: 3\nseed: 4 # not 5\n";
        let Err(Error::Plan(mistakes)) = Plan::parse("mine.toml", text) else { panic!("refused") };
        let said = mistakes.each().iter().map(|one| format!("{}: {}", one.line, one.message));
        insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r#"
        1: a key and its value are joined by =; write laps = 3
        2: a key and its value are joined by =; write seed = 4
        "#);
    }

    #[test]
    fn a_file_is_read_as_the_bundled_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        let text = Plan::open("remote-recovery").unwrap().text;
        std::fs::write(&path, &text).unwrap();
        let plan = Plan::open(path.to_str().unwrap()).unwrap();
        assert_eq!((plan.name(), plan.text()), ("remote-recovery", text.as_str()));
    }
}
