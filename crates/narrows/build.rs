//! Sets `NARROWS_VERSION` for this crate: its version and, where it is known, the commit.
//!
//! The commit comes from the variable `NARROWS_COMMIT`; or from the file `COMMIT` at the root of the workspace, into
//! which `git archive` writes it; or from git. It is that of the last build after a checkout or a commit: changes that
//! are not committed do not show, for to look for them at each build would compile this crate at each build.
//!
//! And has the linker that Rust brings with it for Linux on x86_64 keep one of functions that are the same code, which
//! is a megabyte and a half less. Where another linker is asked for, nothing is said to it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of a commit that are shown.
const DIGITS: usize = 12;

fn main() {
    let set = |name: &str| std::env::var(name).expect("cargo sets it");
    let root = Path::new(&set("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NARROWS_COMMIT");
    let given = std::env::var("NARROWS_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(given) = given.as_ref().filter(|given| !is_commit(given)) {
        println!("cargo::error=NARROWS_COMMIT is \"{given}\", and not the hash of a commit");
    }
    let commit = given.or_else(|| archived(&root)).or_else(|| cloned(&root));
    let version = set("CARGO_PKG_VERSION");
    match commit.as_deref().and_then(|commit| commit.get(..DIGITS.min(commit.len()))) {
        Some(commit) => println!("cargo::rustc-env=NARROWS_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=NARROWS_VERSION={version}"),
    }
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = std::env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    let target = std::env::var("TARGET").unwrap_or_default();
    if target == "x86_64-unknown-linux-gnu" && !is_chosen {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The commit of an archive. In a clone the file holds what `git archive` replaces.
fn archived(root: &Path) -> Option<String> {
    let file = root.join("COMMIT");
    let text = std::fs::read_to_string(&file).ok()?;
    println!("cargo::rerun-if-changed={}", file.display());
    Some(text.trim().to_owned()).filter(|text| is_commit(text))
}

/// The commit of a clone. An unpacked archive in a folder of somebody else's clone has none.
fn cloned(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let said = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        let text = String::from_utf8(said.stdout).ok()?;
        said.status.success().then(|| text.trim().to_owned())
    };
    git(&["rev-parse", "--show-prefix"]).filter(String::is_empty)?;
    let path = |name: &str| Some(root.join(git(&["rev-parse", "--git-path", name])?));
    watch(path("HEAD")?);
    // Without a branch HEAD holds the commit itself.
    if let Some(branch) = git(&["symbolic-ref", "HEAD"]) {
        let loose = path(&branch)?;
        if !loose.exists() {
            watch(path("packed-refs")?);
            // The next commit makes a file of the branch there.
            watch(loose.parent()?.to_owned());
        }
        watch(loose);
    }
    git(&["rev-parse", "HEAD"])
}

/// Cargo builds anew each time where a file that it watches is not there.
fn watch(path: PathBuf) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
