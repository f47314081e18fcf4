//! What a test may need of the machine, and how it is had. `.ci/run` installs all of it.

use crate::SmallDisk;

pub use machine::{
    CHROMIUM, CONTROL_GROUPS, COUCHBASE_PY, GO, JAVA, JAVA_21, MAVEN, OPENSEARCH_PY, OWN_MOUNTS,
    PROMETHEUS, SCRIPT, STRESS_NG, TSHARK, python,
};

/// The right to mount a file system where everybody sees it.
pub static MOUNT: machine::Tool = machine::Tool::new(
    "mounts",
    || {
        let place = std::env::temp_dir().join(format!("mount-{}", std::process::id()));
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let mounted = SmallDisk::mount(&place, 1 << 20).map(drop);
        let _ = std::fs::remove_dir(&place);
        mounted.map_err(|error| format!("this user may not mount a file system: {error}"))?;
        Ok("a file system can be mounted".to_owned())
    },
    "run the tests as root",
);
