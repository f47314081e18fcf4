//! The steps of a plan: the name of each, and its options as files have them and as they are read. What an experiment
//! needs and does in its step stands in its own file; a test holds that no step is missing here.

use std::ops::RangeInclusive;

use record::units::counted;
use serde::Deserialize;

use super::Bounds::OfLeader;
use super::Holds::{Number, Size, Table, Text, Texts, Time, Whole};
use super::{Key, NONE, Section, needed, optional, tables};
use crate::plan::topology::Cluster;

/// Every step, in the order in which plans have them. The title is the name.
pub(in crate::plan) static STEPS: &[&Section] = &[
    &Section { title: "start", about: "Starts the clusters. It comes first.", keys: &[] },
    &Section { title: "index", about: "Indexes the corpus on the leader, then stops.", keys: &[] },
    &Section { title: "fill", about: "Fills the source's bucket.", keys: &[] },
    &INDEX_IN_BACKGROUND,
    &Section {
        title: "recover",
        about: "The follower recovers every index from the leader (cross-cluster replication).",
        keys: &[],
    },
    &Section {
        title: "recover_peers",
        about: "Copies recover from copies of the same cluster: every index gets one replica more, or nodes restart.",
        keys: &[Key {
            bounds: Some(OfLeader(restarts)),
            ..optional(
                "restart",
                Whole,
                "none: one replica more",
                "2",
                "Nodes that restart one after another, each with an empty disk.",
            )
        }],
    },
    &Section {
        title: "what_if",
        about: "Does to the twin what `[twin]` asks, and waits until it is green; with --on virtual. Without `index`.",
        keys: &[],
    },
    &Section {
        title: "drain",
        about: "Everything leaves some nodes, one after another: each is named by cluster.routing.allocation.exclude._name. With --on URL that is the same setting of the plan's indices: all others stay, and the last node by name that holds any copy goes first.",
        keys: &[Key {
            bounds: Some(OfLeader(drained)),
            ..optional("nodes", Whole, "1", "2", "Nodes that are drained, the last one first.")
        }],
    },
    &Section {
        title: "add_replica",
        about: "Every index gets a replica across the link; with `joins = \"leader\"`.",
        keys: &[],
    },
    &Section {
        title: "restore",
        about: "The follower restores a snapshot of the leader; with --on opensearch.",
        keys: &[],
    },
    &Section { title: "load", about: "Sends the operations of `[load]`.", keys: &[] },
    &Section { title: "move", about: "Streams the bucket from one server to another.", keys: &[] },
    &Section {
        title: "follow",
        about: "The follower follows every index by its name, while what stands below happens. Settings that begin with `follow.` are its parameters, as `follow.max_read_request_size`.",
        keys: &[],
    },
    &AUTO_FOLLOW,
    &Section { title: "stop_indexing", about: "Stops what index_in_background began.", keys: &[] },
    &WAIT,
    &WAIT_FOR_DOCUMENTS,
    &WAIT_FOR_LAG,
    &FAULT,
    &SEARCH_IN_BACKGROUND,
    &RESTART_AT_RANDOM,
    &Section {
        title: "stop_restarts",
        about: "Stops the restarts; nodes that are down start.",
        keys: &[],
    },
    &Section {
        title: "verify",
        about: "Compares what was copied with what the leader holds. It comes last.",
        keys: &[],
    },
];

/// How many nodes may restart: the first node manages and stays up.
fn restarts(leader: Cluster) -> (String, RangeInclusive<i64>) {
    let what = format!("restart on {}, of which the first stays up", counted(leader.nodes, "node", "nodes"));
    (what, 1..=i64::from(leader.nodes) - 1)
}

/// How many nodes may be drained: the first node manages and stays.
fn drained(leader: Cluster) -> (String, RangeInclusive<i64>) {
    let what = format!("nodes to drain of {}, of which the first stays", leader.nodes);
    (what, 1..=i64::from(leader.nodes) - 1)
}

tables! {
    Background INDEX_IN_BACKGROUND: "index_in_background", "Goes on indexing on the leader while variants are measured." {
        documents_per_s: i64 = needed(Whole, "2_000", "Documents a second, of all clients.").within("1", "1_000_000_000");
        // Updates and deletes need documents that were written before.
        updates: Option<f64> = optional(Number, "0", "0.1", "Share of the writes that replace a document; with `follow`.").within("0", "0.4");
        deletes: Option<f64> = optional(Number, "0", "0.02", "Share of the writes that delete one; with `follow`.").within("0", "0.4");
        full: Option<toml::Table> = optional(Table(&FULL_BACKGROUND), "the same", "{ documents_per_s = 19_700 }", "What is written in virtual time; with `follow`.");
    }

    FullBackground FULL_BACKGROUND: "full of index_in_background", "Documents that exist only as a number." {
        documents_per_s: i64 = needed(Whole, "19_700", "Documents a second.");
        document_size: Option<String> = optional(Size, "that of the corpus", "\"993b\"", "Bytes of a document's source.").within("1b", "100mb");
    }

    AutoFollow AUTO_FOLLOW: "auto_follow", "The follower follows indices that are created from here on; in place of `follow`." {
        name: Option<String> = optional(Text, "narrows", "\"logs\"", "Name of the pattern on the follower.");
        patterns: Vec<String> = needed(Texts, "[\"logs-*\"]", "Patterns of names.");
        exclude: Option<Vec<String>> = optional(Texts, NONE, "[\"logs-old-*\"]", "Patterns of names that are not followed.");
    }

    Wait WAIT: "wait", "Lets time pass; `{ wait = \"30s\" }` is short for it." {
        lasts: String = needed(Time, "\"30s\"", "How long.").within("1ms", "100d");
        full: Option<String> = optional(Time, "the same", "\"10m\"", "What is so in virtual time.").within("1ms", "100d");
    }

    WaitForDocuments WAIT_FOR_DOCUMENTS: "wait_for_documents", "Waits until so many documents were written in the background." {
        written: i64 = needed(Whole, "100_000", "Documents; `--scale` multiplies them.").within("1", "1_000_000_000_000");
        full: Option<i64> = optional(Whole, "the same", "17_020_000_000", "Documents in virtual time.").within("1", "1_000_000_000_000");
    }

    WaitForLag WAIT_FOR_LAG: "wait_for_lag", "Waits until the follower lacks fewer operations than that." {
        under: i64 = needed(Whole, "1000", "Operations.").within("1", "1_000_000_000_000");
        within: Option<String> = optional(Time, "10m", "\"5m\"", "If it takes longer, the run has failed.").within("1ms", "100d");
        full: Option<String> = optional(Time, "the same", "\"10m\"", "What is so in virtual time.").within("1ms", "100d");
    }

    Fault FAULT: "fault", "Has a fault begin, waits as long as it lasts, and ends it. Keys as of [[fault]]." {
        kind: String = needed(Text, "\"kill\"", "slow, load, pause, cut, fail, stop, kill, full_disk or clock.");
        node: Option<String> = optional(Text, "the link, for `cut`", "\"follower-2\"", "A node, or a cluster for all of its nodes.");
        factor: Option<f64> = optional(Number, "none; slow and load have one", "4.0", "How many times as slow.");
        processes: Option<i64> = optional(Whole, "none; load has them", "32", "Processes that take its cores.");
        free: Option<String> = optional(Size, "none; full_disk has it", "\"100mb\"", "What is left of its disk.");
        by: Option<String> = optional(Text, "none; clock has it", "\"-1h\"", "How far its clock jumps.");
        lasts: Option<String> = optional(Time, "none; only a jump of a clock lasts no time", "\"30s\"", "How long it lasts.").within("1ms", "100d");
        full: Option<String> = optional(Time, "the same", "\"10m\"", "What is so in virtual time.").within("1ms", "100d");
    }

    SearchInBackground SEARCH_IN_BACKGROUND: "search_in_background", "Searches the leader, and holds every answer against what was acknowledged." {
        clients: Option<i64> = optional(Whole, "1", "2", "Clients.").within("1", "1000");
        pause: Option<String> = optional(Time, "1s", "\"500ms\"", "How long a client waits after an answer.").within("1ms", "100d");
    }

    RestartAtRandom RESTART_AT_RANDOM: "restart_at_random", "Restarts nodes of a cluster, drawn from the seed." {
        cluster: String = needed(Text, "\"follower\"", "leader or follower.");
        nodes: Option<String> = optional(Text, "any", "\"all\"", "any: one or all of them, as likely; all: all at once.");
        kind: Option<String> = optional(Text, "any", "\"kill\"", "kill, stop, or any of both.");
        every: String = needed(Time, "\"2h\"", "Mean time between two restarts.").within("1ms", "100d");
        pause: String = needed(Time, "\"5m\"", "How long nodes are down.").within("1ms", "100d");
        full: Option<toml::Table> = optional(Table(&FULL_RESTARTS), "the same", "{ every = \"4h\", pause = \"5m\" }", "What is so in virtual time.");
    }

    FullRestarts FULL_RESTARTS: "full of restart_at_random", "Times in virtual time." {
        every: Option<String> = optional(Time, "the same", "\"4h\"", "Mean time between two restarts.");
        pause: Option<String> = optional(Time, "the same", "\"5m\"", "How long nodes are down.");
    }
}

/// The section of the step of that name.
pub(in crate::plan) fn section_of(step: &str) -> Option<&'static Section> {
    STEPS.iter().copied().find(|section| section.title == step)
}
