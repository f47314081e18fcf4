#![doc = include_str!("../README.md")]

mod ask;
mod disks;
mod java;
mod limits;
mod mounts;
mod programs;
mod quota;
mod tool;

pub use ask::{ask, why_not_started};
pub use disks::OWN_DISKS;
pub use java::{JAVA, JAVA_21, Java, java};
pub use limits::{disk_bytes, free_bytes, memory_free_bytes, memory_limit_bytes, open_files_max};
pub use mounts::{OWN_MOUNTS, own_mounts};
pub use programs::{
    CHROMIUM, COUCHBASE_PY, FOR_TESTS, GO, MAVEN, OPENSEARCH_PY, PROMETHEUS, SCRIPT, STRESS_NG,
    TSHARK, python,
};
pub use quota::{CONTROL_GROUPS, Quota};
pub use tool::Tool;
