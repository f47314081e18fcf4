//! What a load sends, as the command line says it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lab::corpus::{Source, check_file};
use lab::load::{Check, Content, Draw, Operation};

use crate::exit::{Usage, refuse};

/// Documents of `bulk` where nothing is said of them.
const CORPUS: &str = "http_logs";
const DOCUMENTS: u64 = 1_000_000;
const BULK_DOCUMENTS: u64 = 1000;
/// Options of `bulk` alone.
const OF_BULK: [&str; 3] = ["--corpus", "--documents", "--bulk-documents"];
/// What to write who has no documents.
const GENERATED: &str = "--corpus geopoint for documents that are generated";

#[derive(clap::Args)]
pub(super) struct OperationArgs {
    /// What is sent: a path (/_cluster/health), a file with a search body (.json) or one on each line (.ndjson, in
    /// turn), or `bulk`, which indexes documents. Without it, searches of --body.
    #[arg(long, value_name = "WHAT")]
    operation: Option<String>,
    /// The body of the searches, or of what is sent to a path.
    #[arg(long, value_name = "JSON")]
    body: Option<String>,
    /// The index to search or to fill; all of them without it.
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Method of a path; GET, or POST where there is a body.
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// A parameter that paths and bodies name as {{NAME}}, drawn for each request: a range of numbers (1..100) or words
    /// joined by commas. May be given several times.
    #[arg(long = "parameter", value_name = "NAME=VALUES", value_parser = parse_parameter)]
    parameters: Vec<(String, Draw)>,
    /// Documents for `bulk`: geopoint, http_logs, pmc, nginx, or a .json, .ndjson, .jsonl, .bz2, .gz or .zst file;
    /// http_logs unless said otherwise.
    #[arg(long, value_name = "NAME")]
    corpus: Option<String>,
    /// How many of them; 1000000 unless said otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    documents: Option<u64>,
    /// Documents in a bulk request; 1000 unless said otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    bulk_documents: Option<u64>,
}

impl OperationArgs {
    /// What is to be sent.
    pub(super) fn operation(&self, seed: u64) -> anyhow::Result<Operation> {
        self.refuse_unused()?;
        let parameters: BTreeMap<String, Draw> = self.parameters.iter().cloned().collect();
        let pattern = |name: &str,
                       method: &str,
                       path: String,
                       bodies: Vec<String>,
                       check: Check| {
            let (method, name) = (method.to_owned(), name.to_owned());
            let content =
                Content::Pattern { method, path, bodies, parameters: parameters.clone(), check };
            Operation { name, content }
        };
        let search = |name: &str, bodies: Vec<String>| {
            let index = self.index.as_deref().map_or_else(String::new, |index| format!("/{index}"));
            pattern(name, "POST", format!("{index}/_search"), bodies, Check::Search)
        };
        let operation = match self.operation.as_deref() {
            None => search("search", self.body.iter().cloned().collect()),
            Some("bulk") => {
                let Some(index) = self.index.as_deref() else { refuse!("bulk needs --index NAME") };
                let corpus = self.corpus.as_deref().unwrap_or(CORPUS);
                let source = Source::named(corpus, None).map_err(Usage)?;
                if let Source::File(path) = &source {
                    check_file(path, "this directory", GENERATED).map_err(Usage)?;
                }
                let documents = self.documents.unwrap_or(DOCUMENTS);
                let at_once = self.bulk_documents.unwrap_or(BULK_DOCUMENTS);
                Operation::bulk(index, source, 0..documents, at_once)
            }
            Some(path) if is_path(path) => {
                let default = if self.body.is_some() { "POST" } else { "GET" };
                let method = self.method.as_deref().unwrap_or(default).to_uppercase();
                let bodies = self.body.iter().cloned().collect();
                pattern(path, &method, path.to_owned(), bodies, Check::of(path))
            }
            Some(file) => search(&stem(file), bodies(file)?),
        };
        // Parameters that are named and not given are found before anything is asked.
        operation.requests(seed, 0, 1)?;
        self.refuse_unnamed(&operation)?;
        Ok(operation)
    }

    /// Refuses options that what is sent has no use for.
    fn refuse_unused(&self) -> anyhow::Result<()> {
        let given = [
            ("--body", self.body.is_some()),
            ("--index", self.index.is_some()),
            ("--method", self.method.is_some()),
            ("--parameter", !self.parameters.is_empty()),
            ("--corpus", self.corpus.is_some()),
            ("--documents", self.documents.is_some()),
            ("--bulk-documents", self.bulk_documents.is_some()),
        ];
        let (what, used): (&str, &[&str]) = match self.operation.as_deref() {
            None => ("searches of --body", &["--body", "--index", "--parameter"]),
            Some("bulk") => ("bulk", &["--index", "--corpus", "--documents", "--bulk-documents"]),
            Some(path) if is_path(path) => (path, &["--body", "--method", "--parameter"]),
            Some(file) => {
                has_lines(file)?;
                (file, &["--index", "--parameter"])
            }
        };
        let unused = given.iter().find(|(option, is_given)| *is_given && !used.contains(option));
        if let Some((option, _)) = unused {
            let or = if OF_BULK.contains(option) { ", or give --operation bulk" } else { "" };
            refuse!("{option} would change nothing of {what}; leave it out{or}");
        }
        let path = self.operation.as_ref().filter(|operation| is_path(operation));
        for (option, text) in [("--index", self.index.as_ref()), ("--operation", path)] {
            if let Some(text) = text.filter(|text| text.contains(char::is_whitespace)) {
                refuse!("{option} \"{text}\": no path of a request has a blank in it; write %20");
            }
        }
        let mut names = BTreeSet::new();
        if let Some((twice, _)) = self.parameters.iter().find(|(name, _)| !names.insert(name)) {
            refuse!("--parameter {twice} is given twice; join its words by commas");
        }
        Ok(())
    }

    /// Refuses parameters that nothing names.
    fn refuse_unnamed(&self, operation: &Operation) -> anyhow::Result<()> {
        let Content::Pattern { path, bodies, .. } = &operation.content else { return Ok(()) };
        let is_named = |name: &str| {
            let place = format!("{{{{{name}}}}}");
            path.contains(&place) || bodies.iter().any(|body| body.contains(&place))
        };
        if let Some((name, _)) = self.parameters.iter().find(|(name, _)| !is_named(name)) {
            refuse!(
                "--parameter {name} is named nowhere; write {{{{{name}}}}} in the path or in a body"
            );
        }
        Ok(())
    }
}

/// Whether what is sent goes to a path of the cluster.
fn is_path(operation: &str) -> bool {
    operation.starts_with('/') && !Path::new(operation).is_file()
}

fn stem(file: &str) -> String {
    Path::new(file)
        .file_stem()
        .map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Whether a file has a search body on each line, and not one in all. Refuses what is no file of search bodies.
fn has_lines(file: &str) -> anyhow::Result<bool> {
    match file.rsplit_once('.').map(|(_, ending)| ending) {
        Some("ndjson" | "jsonl") => Ok(true),
        Some("json") => Ok(false),
        _ => refuse!(
            "--operation {file}: give a path that begins with /, a file that ends in .json, .ndjson or .jsonl, or \
             `bulk`; searches are sent without it, for example --index logs --body '{{\"size\":0}}'"
        ),
    }
}

/// The search bodies of a file: one, or one on each line.
fn bodies(file: &str) -> anyhow::Result<Vec<String>> {
    let has_lines = has_lines(file)?;
    let text = std::fs::read_to_string(file)
        .map_err(|error| Usage(format!("cannot read {file}: {error}")))?;
    let mut bodies: Vec<String> = match has_lines {
        true => text.lines().map(str::to_owned).collect(),
        false => vec![text],
    };
    bodies.retain(|body| !body.trim().is_empty());
    match bodies.is_empty() {
        true => refuse!("{file} has no search body in it"),
        false => Ok(bodies),
    }
}

fn parse_parameter(text: &str) -> Result<(String, Draw), String> {
    let wrong = || "write NAME=1..100 or NAME=word,word".to_owned();
    let (name, values) = text.split_once('=').ok_or_else(wrong)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) || values.is_empty() {
        return Err(wrong());
    }
    let draw = match values.split_once("..").map(|(from, to)| (from.parse(), to.parse())) {
        Some((Ok(from), Ok(to))) if from <= to => Draw::Integer { from, to },
        Some((Ok(_), Ok(_))) => return Err("a range goes from the less to the more".to_owned()),
        _ => Draw::Choice(values.split(',').map(str::to_owned).collect()),
    };
    Ok((name.to_owned(), draw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_changes_nothing_is_refused() {
        use clap::Parser;

        #[derive(clap::Parser)]
        struct Given {
            #[command(flatten)]
            operation: OperationArgs,
        }

        let refused = |args: &[&str]| {
            let given = Given::try_parse_from([&["load"][..], args].concat()).unwrap();
            given.operation.operation(1).err().map(|error| error.to_string())
        };
        assert_eq!(refused(&["--index", "a", "--body", "{}"]), None);
        assert_eq!(refused(&["--operation", "/_refresh", "--method", "post"]), None);
        for (option, args) in [
            ("--method", &["--method", "GET"][..]),
            ("--index", &["--operation", "/_refresh", "--index", "a"][..]),
            ("--body", &["--operation", "bulk", "--index", "a", "--body", "{}"][..]),
            ("--parameter", &["--operation", "bulk", "--index", "a", "--parameter", "n=1..2"][..]),
            ("--corpus would change nothing of searches", &["--corpus", "http_logs"][..]),
            ("--documents", &["--operation", "/_refresh", "--documents", "5"][..]),
            ("--bulk-documents", &["--body", "{}", "--bulk-documents", "5"][..]),
            ("--index \"a b\": no path", &["--index", "a b"][..]),
            ("--operation \"/a b\": no path", &["--operation", "/a b"][..]),
            ("--parameter n is given twice", &["--parameter", "n=1", "--parameter", "n=2"][..]),
            ("--parameter n is named nowhere", &["--body", "{}", "--parameter", "n=1..2"][..]),
        ] {
            let said = refused(args).unwrap();
            assert!(said.starts_with(option), "{said}");
        }
        assert_eq!(refused(&["--body", "{\"size\":{{n}}}", "--parameter", "n=1..2"]), None);
    }

    /// It would be sent as a search of everything.
    #[test]
    fn a_file_without_a_body_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["empty.json", "empty.ndjson"] {
            let path = dir.path().join(name);
            std::fs::write(&path, "\n").unwrap();
            let said = bodies(path.to_str().unwrap()).unwrap_err().to_string();
            assert!(said.ends_with("has no search body in it"), "{said}");
        }
    }

    #[test]
    fn parameters_are_ranges_or_words() {
        let (name, draw) = parse_parameter("year=1998..2004").unwrap();
        assert_eq!((name.as_str(), draw), ("year", Draw::Integer { from: 1998, to: 2004 }));
        let words = parse_parameter("q=a..b,c").unwrap().1;
        assert_eq!(words, Draw::Choice(vec!["a..b".to_owned(), "c".to_owned()]));
        for wrong in ["year", "=1", "a b=1", "n=", "n=5..1"] {
            assert!(parse_parameter(wrong).is_err(), "{wrong}");
        }
    }
}
