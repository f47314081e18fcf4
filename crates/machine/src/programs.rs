//! Other people's programs.

use crate::ask::ask;
use crate::disks::OWN_DISKS;
use crate::java::{JAVA, JAVA_21};
use crate::mounts::OWN_MOUNTS;
use crate::quota::CONTROL_GROUPS;
use crate::tool::Tool;

/// Fetches jars.
pub static MAVEN: Tool = Tool {
    name: "Maven", // In batch mode it writes no colours.
    look: || first_line("mvn", &["-B", "-version"]),
    remedy: "apt-get install maven",
};

/// Keeps cores busy.
pub static STRESS_NG: Tool = Tool {
    name: "stress-ng",
    look: || first_line("stress-ng", &["--version"]),
    remedy: "apt-get install stress-ng",
};

/// A browser.
pub static CHROMIUM: Tool = Tool {
    name: "Chromium",
    look: || first_line("chromium", &["--version"]),
    remedy: "apt-get install chromium",
};

/// Asks for figures and keeps them.
pub static PROMETHEUS: Tool = Tool {
    name: "Prometheus",
    look: || first_line("prometheus", &["--version"]),
    remedy: "apt-get install prometheus",
};

/// Builds Couchbase's Go clients; from 1.21 on it fetches the version that they ask for.
pub static GO: Tool = Tool {
    name: "Go 1.21 or newer",
    look: || {
        let said = first_line("go", &["version"])?;
        let minor = said.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ']).next());
        let minor = minor.and_then(|minor| minor.parse::<u32>().ok());
        if minor >= Some(21) { Ok(said) } else { Err(format!("go is too old: {said}")) }
    },
    remedy: "apt-get install golang-go, where that is new enough",
};

/// Reads captured packets.
pub static TSHARK: Tool = Tool {
    name: "tshark",
    look: || first_line("tshark", &["--version"]),
    remedy: "apt-get install tshark",
};

/// A terminal for a program that wants one.
pub static SCRIPT: Tool = Tool {
    name: "script",
    look: || first_line("script", &["--version"]),
    remedy: "apt-get install bsdutils",
};

/// OpenSearch's client for Python.
pub static OPENSEARCH_PY: Tool = Tool {
    name: "Python with opensearch-py",
    look: || python_has("opensearchpy"),
    remedy: "pip install opensearch-py, and name that Python in NARROWS_PYTHON",
};

/// Couchbase's client for Python.
pub static COUCHBASE_PY: Tool = Tool {
    name: "Python with couchbase",
    look: || python_has("couchbase"),
    remedy: "pip install couchbase, and name that Python in NARROWS_PYTHON",
};

/// What the tests of this workspace need. `.ci/run` installs all of it.
pub static FOR_TESTS: [&Tool; 14] = [
    &CHROMIUM, &PROMETHEUS, &JAVA, &JAVA_21, &MAVEN, &GO, &TSHARK, &OPENSEARCH_PY, &COUCHBASE_PY,
    &SCRIPT, &OWN_MOUNTS, &OWN_DISKS, &CONTROL_GROUPS, &STRESS_NG,
];

/// The Python whose packages are looked for: `NARROWS_PYTHON`, or `python3` of the path.
pub fn python() -> String {
    std::env::var("NARROWS_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// The first line that a program says of itself.
fn first_line(program: &str, arguments: &[&str]) -> Result<String, String> {
    let said = ask(program, arguments)?;
    let lines = said.lines().map(without_colours);
    Ok(lines.map(|line| line.trim().to_owned()).find(|line| !line.is_empty()).unwrap_or_default())
}

/// Maven colours its answer whoever listens.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    [first].into_iter().chain(rest).collect()
}

fn python_has(package: &str) -> Result<String, String> {
    let python = python();
    let missing = |why: String| match why.contains("Traceback") {
        true => format!("{python} has no {package}"),
        false => why,
    };
    ask(&python, &["-c", &format!("import {package}")]).map_err(missing)?;
    Ok(format!("{python} has {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_said_without_colours() {
        let said = "printf '\\n\\033[1mApache Maven\\033[0m 3\\nmore\\n'";
        assert_eq!(first_line("sh", &["-c", said]), Ok("Apache Maven 3".to_owned()));
        assert_eq!(first_line("sh", &["-c", "true"]), Ok(String::new()));
    }
}
