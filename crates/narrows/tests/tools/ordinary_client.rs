//! OpenSearch's own client for Python against clusters of processes.

use std::process::Command;

use crate::common::cluster::Cluster;
use crate::common::{SECRET, said};

pub fn opensearch_py_works() {
    let open = Cluster::start(2);
    let guarded = Cluster::start_with(2, |command| {
        command.env("NARROWS_USER", "watcher").env("NARROWS_PASSWORD", SECRET)
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/opensearch_client.py");
    for cluster in [open, guarded] {
        let mut client = Command::new(testbed::tools::python());
        client.arg(script).arg(cluster.url());
        client.env("NARROWS_USER", "watcher").env("NARROWS_PASSWORD", SECRET);
        let output = client.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(output.stdout.ends_with(b"OK\n"), "{}", said(&output));
    }
}
