//! `narrows --version` says the commit, in a clone, in an archive and for whoever builds a package; the build script is
//! compiled by itself and run on folders that look like these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{narrows, printed, said};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", said(&output));
    said(&output).trim().to_owned()
}

/// A workspace with the crate's folder, and the build script as a program.
struct Workspace {
    dir: tempfile::TempDir,
    script: PathBuf,
}

impl Workspace {
    fn new() -> Workspace {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("build-script");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-o"]).arg(&script).arg(source);
        let output = rustc.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        fs::create_dir_all(dir.path().join("outer/workspace/crates/narrows")).unwrap();
        Workspace { dir, script }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("outer/workspace")
    }

    /// What the script says, with `NARROWS_COMMIT` set to this.
    fn says(&self, variable: &str) -> String {
        let crate_folder = self.root().join("crates/narrows");
        let mut script = Command::new(&self.script);
        script.current_dir(&crate_folder).env("CARGO_MANIFEST_DIR", &crate_folder);
        script.env("CARGO_PKG_VERSION", "1.2.3").env("NARROWS_COMMIT", variable);
        // Above the folder may lie somebody's clone.
        script.env("GIT_CEILING_DIRECTORIES", self.dir.path());
        let output = script.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    }

    /// The version that it sets.
    fn version(&self) -> String {
        version_in(&self.says(""))
    }
}

fn version_in(said: &str) -> String {
    let set = said.lines().find_map(|line| line.strip_prefix("cargo::rustc-env=NARROWS_VERSION="));
    set.unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn the_binary_says_the_commit_that_it_was_built_from() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let head = git(&root, &["rev-parse", "HEAD"]);
    let version = format!("narrows {} ({})\n", env!("CARGO_PKG_VERSION"), &head[..12]);
    assert_eq!(printed(&narrows(&["--version"])), version);
}

#[test]
fn a_clone_says_its_last_commit_however_git_keeps_it() {
    let workspace = Workspace::new();
    let root = workspace.root();
    git(&root, &["init", "-q", "-b", "first"]);
    git(&root, &["commit", "-q", "--allow-empty", "-m", "one"]);
    let says = |name: &str| {
        let commit = git(&root, &["rev-parse", "HEAD"]);
        let said = workspace.says("");
        assert_eq!(version_in(&said), format!("1.2.3 ({})", &commit[..12]));
        let watches = said.lines().any(|line| {
            line.starts_with("cargo::rerun-if-changed=") && line.ends_with(&format!(".git/{name}"))
        });
        assert!(watches, "it does not watch {name}: {said}");
    };
    says("HEAD");
    says("refs/heads/first");
    git(&root, &["pack-refs", "--all"]);
    says("packed-refs");
    says("refs/heads");
    git(&root, &["checkout", "-q", "--detach"]);
    git(&root, &["commit", "-q", "--allow-empty", "-m", "two"]);
    says("HEAD");
}

#[test]
fn without_a_clone_the_commit_comes_from_the_archive_or_the_variable() {
    let workspace = Workspace::new();
    assert_eq!(workspace.version(), "1.2.3");
    fs::write(workspace.root().join("COMMIT"), "$Format:%H$\n").unwrap();
    assert_eq!(workspace.version(), "1.2.3", "no archive replaced it");
    fs::write(workspace.root().join("COMMIT"), format!("{COMMIT}\n")).unwrap();
    assert_eq!(workspace.version(), "1.2.3 (0123456789ab)");
    assert_eq!(version_in(&workspace.says("feedbee")), "1.2.3 (feedbee)");
    let refused = workspace.says("v1.2");
    assert!(refused.contains("cargo::error=NARROWS_COMMIT is \"v1.2\""), "{refused}");
}

#[test]
fn git_archive_writes_the_commit_into_the_file() {
    let workspace = Workspace::new();
    let root = workspace.root();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in [".gitattributes", "COMMIT"] {
        fs::copy(ours.join(name), root.join(name)).unwrap();
    }
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "one"]);
    let commit = git(&root, &["rev-parse", "HEAD"]);
    git(&root, &["archive", "-o", "it.tar", "HEAD"]);
    let mut tar = Command::new("tar");
    let unpacked = tar.args(["-xOf", "it.tar", "COMMIT"]).current_dir(&root).output().unwrap();
    assert_eq!(said(&unpacked).trim(), commit);
}

/// Somebody keeps an unpacked archive within a clone of their own.
#[test]
fn somebody_elses_commit_is_not_ours() {
    let workspace = Workspace::new();
    let outer = workspace.dir.path().join("outer");
    git(&outer, &["init", "-q"]);
    git(&outer, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    assert_eq!(workspace.version(), "1.2.3");
}
