//! What a test may need of the machine, and how it is had. `.ci/run` installs all of it.

use std::path::PathBuf;

use crate::SmallDisk;
use crate::generated::path_of;

pub use machine::{
    CHROMIUM, CONTROL_GROUPS, COUCHBASE_PY, GO, JAVA, JAVA_21, MAVEN, OPENSEARCH_PY, OWN_DISKS,
    OWN_MOUNTS, PROMETHEUS, SCRIPT, STRESS_NG, TSHARK, python,
};

/// The right to mount a file system where everybody sees it.
pub static MOUNT: machine::Tool = machine::Tool::new(
    "mounts",
    || {
        // Each test that looks has a place of its own.
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mounted = SmallDisk::mount(place.path(), 1 << 20).map(drop);
        mounted.map_err(|error| format!("this user may not mount a file system: {error}"))?;
        Ok("a file system can be mounted".to_owned())
    },
    "run the tests as root",
);

/// Where `.ci/clients` puts other people's clients of Elasticsearch and OpenSearch.
pub fn clients_folder() -> PathBuf {
    path_of("target/clients")
}

/// Clients of Elasticsearch and OpenSearch, in the versions that the list of the tests has.
pub static CLIENTS: machine::Tool = machine::Tool::new(
    "clients of Elasticsearch and OpenSearch",
    || {
        let wanted = path_of("crates/narrows/tests/clients/list.txt");
        let wanted = std::fs::read_to_string(wanted).map_err(|error| error.to_string())?;
        match std::fs::read_to_string(clients_folder().join("list.txt")) {
            Ok(installed) if installed == wanted => Ok("all of the list".to_owned()),
            Ok(_) => Err("target/clients has other versions than the list".to_owned()),
            Err(_) => Err("target/clients has no clients".to_owned()),
        }
    },
    ".ci/clients",
);
