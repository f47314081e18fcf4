//! What a test may need of the machine, and how it is had. `.ci/run` installs all of it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::SmallDisk;

/// Something that is not on every machine.
pub struct Tool {
    look: fn() -> bool,
    /// What is the case where it is not there: "chromium is not installed".
    pub missing: &'static str,
    /// What is to be done about it.
    pub remedy: &'static str,
}

impl Tool {
    /// Looks for it.
    pub fn is_here(&self) -> bool {
        (self.look)()
    }
}

/// A browser.
pub static CHROMIUM: Tool = Tool {
    look: || runs("chromium", &["--version"]),
    missing: "chromium is not installed",
    remedy: "apt install chromium",
};

/// A JVM for OpenSearch 1 and 2, Elasticsearch 7 and Couchbase's client.
pub static JAVA: Tool = Tool {
    look: || java_version("java") >= 11,
    missing: "there is no Java 11 or newer on the path",
    remedy: "apt install openjdk-17-jre-headless",
};

/// A JVM for OpenSearch 3. One beside that on the path is enough.
pub static JAVA_21: Tool = Tool {
    look: || {
        let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
        let newest = installed.map(|entry| java_version(entry.path().join("bin/java"))).max();
        let on_path = java_version("java");
        on_path >= 21 || on_path > 0 && newest >= Some(21)
    },
    missing: "there is no Java 21 or newer on the path or in /usr/lib/jvm",
    remedy: "apt install openjdk-21-jre-headless",
};

/// Fetches jars.
pub static MAVEN: Tool = Tool {
    look: || runs("mvn", &["-version"]),
    missing: "mvn is not installed",
    remedy: "apt install maven",
};

/// Builds Couchbase's Go clients; from this version on it fetches the one that they ask for.
pub static GO: Tool = Tool {
    look: || {
        let said = said_by("go", &["version"]);
        let minor = said.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ']).next());
        minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor >= 21)
    },
    missing: "Go 1.21 or newer is not installed",
    remedy: "apt install golang-go, where that is new enough",
};

/// Reads captured packets.
pub static TSHARK: Tool = Tool {
    look: || runs("tshark", &["--version"]),
    missing: "tshark is not installed",
    remedy: "apt install tshark",
};

/// OpenSearch's client for Python.
pub static OPENSEARCH_PY: Tool = Tool {
    look: || runs(&python(), &["-c", "import opensearchpy"]),
    missing: "python3 has no opensearch-py",
    remedy: "pip install opensearch-py, and name that Python in NARROWS_PYTHON",
};

/// Couchbase's client for Python.
pub static COUCHBASE_PY: Tool = Tool {
    look: || runs(&python(), &["-c", "import couchbase"]),
    missing: "python3 has no couchbase",
    remedy: "pip install couchbase, and name that Python in NARROWS_PYTHON",
};

/// A terminal for a program that wants one.
pub static SCRIPT: Tool = Tool {
    look: || runs("script", &["--version"]),
    missing: "script is not installed",
    remedy: "apt install bsdutils",
};

/// The right to mount a file system.
pub static MOUNT: Tool = Tool {
    look: || tempfile::tempdir().is_ok_and(|dir| SmallDisk::mount(dir.path(), 1 << 20).is_ok()),
    missing: "this user may not mount a file system",
    remedy: "run the tests as root",
};

/// Mounts of a process's own.
pub static OWN_MOUNTS: Tool = Tool {
    look: || {
        let user = ["--mount", "--user", "--map-root-user", "true"];
        runs("unshare", &["--mount", "true"]) || runs("unshare", &user)
    },
    missing: "this user may not have a namespace of mounts",
    remedy: "run the tests as root",
};

/// Groups of processes that are given a share of the cores.
pub static CONTROL_GROUPS: Tool = Tool {
    look: || {
        let first = Path::new("/sys/fs/cgroup/cpu");
        let root = if first.exists() { first } else { Path::new("/sys/fs/cgroup") };
        let group = root.join(format!("narrows-test-{}", std::process::id()));
        let can = std::fs::create_dir(&group).is_ok()
            && ["cpu.max", "cpu.cfs_quota_us"].iter().any(|file| group.join(file).exists());
        let _ = std::fs::remove_dir(&group);
        can
    },
    missing: "no control group with a quota of cores can be made here",
    remedy: "run the tests as root on Linux, outside of a container",
};

/// Keeps cores busy.
pub static STRESS_NG: Tool = Tool {
    look: || runs("stress-ng", &["--version"]),
    missing: "stress-ng is not installed",
    remedy: "apt install stress-ng",
};

/// The Python whose packages are looked for.
pub fn python() -> String {
    std::env::var("NARROWS_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn said_by(program: impl AsRef<OsStr>, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    output.map_or_else(|_| String::new(), |output| text(&output.stdout) + &text(&output.stderr))
}

/// The major version of a Java; 0 where there is none.
fn java_version(java: impl AsRef<OsStr>) -> u32 {
    let said = said_by(java, &["-version"]);
    // The first line is `openjdk version "17.0.15" 2025-04-15`.
    let version = said.split('"').nth(1).and_then(|version| version.split(['.', '-']).next());
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}
