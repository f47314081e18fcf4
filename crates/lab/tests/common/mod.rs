//! What tests of runs share.

use record::{FORMAT, Manifest, Status};

/// A manifest of nothing in particular.
pub fn manifest() -> Manifest {
    Manifest {
        format: FORMAT,
        run: "test".to_owned(),
        plan: "remote-recovery".to_owned(),
        about: String::new(),
        plan_text: String::new(),
        target: "virtual".to_owned(),
        started: String::new(),
        version: String::new(),
        seed: 1,
        scale: 1.0,
        status: Status::Running,
        machine: record::Machine {
            os: String::new(),
            cpu: String::new(),
            cores: 1,
            memory_bytes: 0,
        },
        link: None,
        nodes: Vec::new(),
        variants: Vec::new(),
    }
}
