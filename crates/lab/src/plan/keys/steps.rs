//! The steps of a plan, and the options of each. Experiments declare their own; a test holds that none is missing here.

use super::Holds::{Number, Size, Table, Text, Texts, Time, Whole};
use super::{Key, NONE, Section, needed, optional};

const FULL_TIME: Key = optional("full", Time, "the same", "\"10m\"", "What is so in virtual time.");

/// Every step, in the order in which plans have them. The title is the name.
pub(in crate::plan) static STEPS: &[Section] = &[
    Section { title: "start", about: "Starts the clusters. It comes first.", keys: &[] },
    Section { title: "index", about: "Indexes the corpus on the leader, then stops.", keys: &[] },
    Section { title: "fill", about: "Fills the source's bucket.", keys: &[] },
    Section {
        title: "index_in_background",
        about: "Goes on indexing on the leader while variants are measured.",
        keys: &[
            needed("documents_per_s", Whole, "2_000", "Documents a second, of all clients."),
            optional("updates", Number, "0", "0.1", "Share of the writes that replace a document; with `follow`."),
            optional("deletes", Number, "0", "0.02", "Share of the writes that delete one; with `follow`."),
            optional("full", Table(&FULL_BACKGROUND), "the same", "{ documents_per_s = 19_700 }", "What is written in virtual time; with `follow`."),
        ],
    },
    Section { title: "recover", about: "The follower recovers every index from the leader (cross-cluster replication).", keys: &[] },
    Section {
        title: "recover_peers",
        about: "Copies recover from copies of the same cluster: every index gets one replica more, or nodes restart.",
        keys: &[optional("restart", Whole, "none: one replica more", "2", "Nodes that restart one after another, each with an empty disk.")],
    },
    Section { title: "what_if", about: "Does to the twin what `[twin]` asks, and waits until it is green; with --on virtual. Without `index`.", keys: &[] },
    Section {
        title: "drain",
        about: "Everything leaves some nodes, one after another: each is named by cluster.routing.allocation.exclude._name. With --on URL that is the same setting of the plan's indices: all others stay, and the last node by name that holds any copy goes first.",
        keys: &[optional("nodes", Whole, "1", "2", "Nodes that are drained, the last one first.")],
    },
    Section { title: "add_replica", about: "Every index gets a replica across the link; with `joins = \"leader\"`.", keys: &[] },
    Section { title: "restore", about: "The follower restores a snapshot of the leader; with --on opensearch.", keys: &[] },
    Section { title: "load", about: "Sends the operations of `[load]`.", keys: &[] },
    Section { title: "move", about: "Streams the bucket from one server to another.", keys: &[] },
    Section { title: "follow", about: "The follower follows every index by its name, while what stands below happens. Settings that begin with `follow.` are its parameters, as `follow.max_read_request_size`.", keys: &[] },
    Section {
        title: "auto_follow",
        about: "The follower follows indices that are created from here on; in place of `follow`.",
        keys: &[
            optional("name", Text, "narrows", "\"logs\"", "Name of the pattern on the follower."),
            needed("patterns", Texts, "[\"logs-*\"]", "Patterns of names."),
            optional("exclude", Texts, NONE, "[\"logs-old-*\"]", "Patterns of names that are not followed."),
        ],
    },
    Section { title: "stop_indexing", about: "Stops what index_in_background began.", keys: &[] },
    Section {
        title: "wait",
        about: "Lets time pass; `{ wait = \"30s\" }` is short for it.",
        keys: &[needed("lasts", Time, "\"30s\"", "How long."), FULL_TIME],
    },
    Section {
        title: "wait_for_documents",
        about: "Waits until so many documents were written in the background.",
        keys: &[
            needed("written", Whole, "100_000", "Documents; `--scale` multiplies them."),
            optional("full", Whole, "the same", "17_020_000_000", "Documents in virtual time."),
        ],
    },
    Section {
        title: "wait_for_lag",
        about: "Waits until the follower lacks fewer operations than that.",
        keys: &[
            needed("under", Whole, "1000", "Operations."),
            optional("within", Time, "10m", "\"5m\"", "If it takes longer, the run has failed."),
            FULL_TIME,
        ],
    },
    Section {
        title: "fault",
        about: "Has a fault begin, waits as long as it lasts, and ends it. Keys as of [[fault]].",
        keys: &[
            needed("kind", Text, "\"kill\"", "slow, load, pause, cut, fail, stop, kill, full_disk or clock."),
            optional("node", Text, "the link, for `cut`", "\"follower-2\"", "A node, or a cluster for all of its nodes."),
            optional("factor", Number, "none; slow and load have one", "4.0", "How many times slower."),
            optional("processes", Whole, "none; load has them", "32", "Processes that take its cores."),
            optional("free", Size, "none; full_disk has it", "\"100mb\"", "What is left of its disk."),
            optional("by", Text, "none; clock has it", "\"-1h\"", "How far its clock jumps."),
            optional("lasts", Time, "none; only a jump of a clock lasts no time", "\"30s\"", "How long it lasts."),
            FULL_TIME,
        ],
    },
    Section {
        title: "search_in_background",
        about: "Searches the leader, and holds every answer against what was acknowledged.",
        keys: &[
            optional("clients", Whole, "1", "2", "Clients, 1 to 1000."),
            optional("pause", Time, "1s", "\"500ms\"", "How long a client waits after an answer."),
        ],
    },
    Section {
        title: "restart_at_random",
        about: "Restarts nodes of a cluster, drawn from the seed.",
        keys: &[
            needed("cluster", Text, "\"follower\"", "leader or follower."),
            optional("nodes", Text, "any", "\"all\"", "any: one or all of them, as likely; all: all at once."),
            optional("kind", Text, "any", "\"kill\"", "kill, stop, or any of both."),
            needed("every", Time, "\"2h\"", "Mean time between two restarts."),
            needed("pause", Time, "\"5m\"", "How long nodes are down."),
            optional("full", Table(&FULL_RESTARTS), "the same", "{ every = \"4h\", pause = \"5m\" }", "What is so in virtual time."),
        ],
    },
    Section { title: "stop_restarts", about: "Stops the restarts; nodes that are down start.", keys: &[] },
    Section { title: "verify", about: "Compares what was copied with what the leader holds. It comes last.", keys: &[] },
];

static FULL_BACKGROUND: Section = Section {
    title: "full of index_in_background",
    about: "Documents that exist only as a number.",
    keys: &[
        needed("documents_per_s", Whole, "19_700", "Documents a second."),
        optional("document_size", Size, "that of the corpus", "\"993b\"", "Bytes of a document's source."),
    ],
};

static FULL_RESTARTS: Section = Section {
    title: "full of restart_at_random",
    about: "Times in virtual time.",
    keys: &[
        optional("every", Time, "the same", "\"4h\"", "Mean time between two restarts."),
        optional("pause", Time, "the same", "\"5m\"", "How long nodes are down."),
    ],
};

/// The names of the options of a step; none where no step has that name.
pub(in crate::plan) fn options_of(step: &str) -> Vec<&'static str> {
    let section = STEPS.iter().find(|section| section.title == step);
    section.map_or_else(Vec::new, Section::names)
}
