//! Java: which one, and of which version.

use std::path::{Path, PathBuf};

use crate::ask::ask;
use crate::tool::Tool;

/// Where Debian installs every Java, besides the one on the path.
const JAVAS: &str = "/usr/lib/jvm";

/// A JVM for OpenSearch 1 and 2, Elasticsearch 7 and Couchbase's client.
pub static JAVA: Tool = Tool {
    name: "Java 11 or newer",
    look: || found(11),
    remedy: "apt-get install default-jre-headless",
};

/// A JVM for OpenSearch 3.
pub static JAVA_21: Tool = Tool {
    name: "Java 21 or newer",
    look: || found(21),
    remedy: "apt-get install openjdk-21-jre-headless",
};

/// A Java that was asked for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Java {
    /// Its program; `java` where it is on the path.
    pub path: PathBuf,
    /// Its major version.
    pub version: u32,
    /// Its versions in its own words: another build says something else.
    pub build: String,
}

/// The Java to use: that of an unpacked distribution (`home`), `JAVA_HOME`'s, or the one on the path; where that is
/// older than `oldest`, one of `/usr/lib/jvm` that is not.
///
/// # Errors
/// What was found instead, in words for people.
pub fn java(home: Option<&Path>, oldest: u32) -> Result<Java, String> {
    let below = |dir: &Path| Some(dir.join("bin/java")).filter(|java| java.is_file());
    let bundled = home.and_then(|home| below(&home.join("jdk")));
    let set = std::env::var_os("JAVA_HOME").and_then(|dir| below(Path::new(&dir)));
    let path = bundled.or(set).unwrap_or_else(|| "java".into());
    let first = asked(path)?;
    if first.version >= oldest {
        return Ok(first);
    }
    let installed = installed().iter().filter_map(|dir| below(dir)).map(asked).collect::<Vec<_>>();
    let new_enough = installed.into_iter().flatten().find(|java| java.version >= oldest);
    new_enough.ok_or_else(|| format!("{} is Java {}", first.path.display(), first.version))
}

fn found(oldest: u32) -> Result<String, String> {
    java(None, oldest).map(|java| format!("Java {}: {}", java.version, java.path.display()))
}

/// Directories of [`JAVAS`]; none where there is no such place.
fn installed() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(JAVAS).into_iter().flatten();
    let mut dirs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    dirs.sort_unstable();
    dirs
}

/// A Java with its version; the error is what was found instead.
fn asked(path: PathBuf) -> Result<Java, String> {
    let said = ask(&path, &["-version"])?;
    let version = version_in(&said);
    let version =
        version.ok_or_else(|| format!("{} -version says {:?}", path.display(), said.trim()))?;
    // What it warns of comes first, and may have times in it.
    let build = said.split_once(" version ").map_or("", |(_, build)| build).trim().to_owned();
    Ok(Java { path, version, build })
}

/// The major version that `java -version` says: `17` of `17.0.15`, `8` of `1.8.0_402`. Options of the environment are
/// told before it, and may have quotes of their own.
fn version_in(said: &str) -> Option<u32> {
    let (_, quoted) = said.split_once(" version \"")?;
    let mut numbers = quoted.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match numbers.next()?.ok()? {
        1 => numbers.next()?.ok(),
        version => Some(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_says_its_version_in_many_ways() {
        assert_eq!(version_in("openjdk version \"17.0.15\" 2025-04-15"), Some(17));
        assert_eq!(version_in("java version \"1.8.0_402\"\nJava(TM) SE"), Some(8));
        assert_eq!(version_in("openjdk version \"21\" 2023-09-19"), Some(21));
        assert_eq!(version_in("openjdk version \"22-ea\" 2024-03-19"), Some(22));
        let picked_up = "Picked up JAVA_TOOL_OPTIONS: -X\nopenjdk version \"11.0.2\" 2019-01-15";
        assert_eq!(version_in(picked_up), Some(11));
        let quoted =
            "Picked up JAVA_TOOL_OPTIONS: -Da=\"b 7\"\nopenjdk version \"17.0.15\" 2025-04-15";
        assert_eq!(version_in(quoted), Some(17));
        assert_eq!(version_in("bash: no such thing"), None);
        assert_eq!(version_in("\"\""), None);
    }

    /// A distribution brings its own, which is taken before that of the path; what is not new enough is told.
    #[test]
    fn a_distributions_own_java_comes_first() {
        use std::os::unix::fs::PermissionsExt;
        let home = std::env::temp_dir().join(format!("machine-java-{}", std::process::id()));
        let own = home.join("jdk/bin/java");
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, "#!/bin/sh\necho 'openjdk version \"1.8.0_1\"' >&2\n").unwrap();
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).unwrap();
        let build = "\"1.8.0_1\"".to_owned();
        assert_eq!(java(Some(&home), 8), Ok(Java { path: own.clone(), version: 8, build }));
        let refused = java(Some(&home), 999).unwrap_err();
        assert_eq!(refused, format!("{} is Java 8", own.display()));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
