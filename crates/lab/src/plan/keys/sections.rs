//! The tables of a plan's file, in the order in which a plan is written.

use super::Holds::{
    Anything, Number, Parameters, Rate, Settings, Size, Steps, Table, Tables, Text, Texts, Time,
    TimeOrRequests, Values, Whole,
};
use super::{Section, needed, optional};

const NONE: &str = "none";

/// The whole file.
pub(crate) static PLAN: Section = Section {
    title: "The plan",
    about: "Keys above the first table.",
    keys: &[
        needed("name", Text, "\"my-recovery\"", "Lower-case letters, digits and hyphens."),
        needed("about", Text, "\"How long a new replica takes.\"", "One sentence, for lists and pages."),
        optional("source", Text, NONE, "\"benchmark plan, experiment 1\"", "The published experiment that it repeats."),
        needed("steps", Steps, "[\"start\", \"index\", \"recover\", \"verify\"]", "What is done, in order: see Steps."),
        optional("laps", Whole, "1", "4", "Repetitions of every variant, 1 to 1000. Marks of significance need four."),
        optional("sample", Time, "100ms", "\"100ms\"", "Time between two samples, 1ms to 1h."),
        optional("seed", Whole, "42", "42", "Seed of everything random."),
        optional("test_bed", Text, NONE, "\"aws-2019\"", "Parameters of the virtual world for a published experiment's machines."),
        needed("leader", Table(&LEADER), "{ nodes = 3 }", "The cluster that has the data."),
        optional("follower", Table(&FOLLOWER), NONE, "{ nodes = 3 }", "The cluster, or the nodes, across the link."),
        optional("link", Table(&LINK), NONE, "{ rtt = \"100ms\", rate = \"1gbit\" }", "The path between the two."),
        optional("corpus", Table(&CORPUS), "none: a plan has it, or a bucket", "{ name = \"geopoint\", documents = 100_000, bulk_documents = 5000, clients = 8 }", "What is indexed."),
        optional("index", Tables(&INDEX), "none: a plan has one, or a bucket", "[{ name = \"leader\", shards = 3, replicas = 0 }]", "Where it is indexed."),
        optional("bucket", Table(&BUCKET), NONE, "{ vbuckets = 64, items = 100_000, item_size = \"1kb\", quota = \"64mb\" }", "What is streamed, in place of a corpus and indices."),
        optional("twin", Table(&TWIN), NONE, "{ node = [{ name = \"n1\" }, { name = \"n2\" }], index = [{ name = \"logs\", replicas = 0, shard = [{ bytes = \"1gb\", documents = 1000, segments = 9, copies = [\"n1\"] }] }], lose = [\"n2\"] }", "A cluster that was seen, and what is asked of it, in place of a corpus and indices: for `what_if`."),
        optional("operation", Tables(&OPERATION), NONE, "[{ name = \"count\", path = \"/{index}/_count\" }]", "What a load can send."),
        optional("load", Table(&LOAD), NONE, "{ operations = [\"count\"], clients = 8, measured = \"30s\" }", "How operations are sent."),
        optional("fault", Tables(&FAULT), NONE, "[{ node = \"leader-1\", kind = \"pause\" }]", "What goes wrong while the load is sent."),
        optional("change", Tables(&CHANGE), NONE, "[{ at = \"30s\", settings = { \"indices.recovery.max_bytes_per_sec\" = \"500mb\" } }]", "Settings that are changed while a recovery goes on."),
        optional("virtual", Parameters(&PARAMETER), "those of narrows", "{ \"disk.seek\" = { value = \"8ms\", source = \"a data sheet\" } }", "Parameters of the virtual world; `narrows calibrate` measures some."),
        optional("node_settings", Settings, NONE, "{ \"transport.connections_per_node.recovery\" = 6 }", "Settings that every node starts with."),
        optional("settings", Settings, NONE, "{ \"indices.recovery.max_bytes_per_sec\" = \"40mb\" }", "Settings of every variant, by the names that the stores have for them."),
        optional("fitted", Tables(&FITTED), NONE, "[{ setting = \"indices.recovery.max_bytes_per_sec\", calibrated_on = [\"shard-recovery / 40mb\"] }]", "Settings whose values were chosen by a published row."),
        needed("variant", Tables(&VARIANT), "[{ name = \"as it is\" }]", "What is compared; the first is the one that others are compared with."),
    ],
};

pub(super) static LEADER: Section = Section {
    title: "[leader]",
    about: "The cluster that has the data. Its nodes are leader-0, leader-1 and so on.",
    keys: &[
        needed("nodes", Whole, "3", "Nodes, 1 to 64; of a twin up to 2001."),
        optional("virtual", Parameters(&PARAMETER), NONE, "{ \"disk.seek\" = { value = \"8ms\", source = \"a data sheet\" } }", "Parameters of its hosts alone."),
    ],
};

pub(super) static FOLLOWER: Section = Section {
    title: "[follower]",
    about: "What is across the link: a cluster of its own, or more nodes of the leader.",
    keys: &[
        needed("nodes", Whole, "3", "Nodes, 1 to 64."),
        optional("joins", Text, "a cluster of its own", "\"leader\"", "The cluster that its nodes join: for `add_replica`."),
        optional("virtual", Parameters(&PARAMETER), NONE, "{ \"disk.seek\" = { value = \"8ms\", source = \"a data sheet\" } }", "Parameters of its hosts alone."),
    ],
};

pub(super) static LINK: Section = Section {
    title: "[link]",
    about: "The path between leader and follower.",
    keys: &[
        needed("rtt", Time, "\"100ms\"", "Round-trip time, up to 60s."),
        needed("rate", Rate, "\"1gbit\"", "Rate in each direction, 8kbit to 1000gbit."),
        optional("window", Size, "not bounded", "\"2mb\"", "Bytes that one connection may have under way, 1kb to 1gb."),
    ],
};

pub(super) static CORPUS: Section = Section {
    title: "[corpus]",
    about: "What is indexed on real processes; `--scale` multiplies it.",
    keys: &[
        needed("name", Text, "\"geopoint\"", "geopoint, http_logs, nginx or pmc, which are generated by the seed; or a file of one JSON object a line (.json, .ndjson, .jsonl, .gz, .zst), from the plan's folder."),
        needed("documents", Whole, "100_000", "Documents."),
        needed("bulk_documents", Whole, "5000", "Documents of one bulk request, 1 to 100000."),
        needed("clients", Whole, "8", "Clients that index at the same time, 1 to 1024."),
    ],
};

pub(super) static INDEX: Section = Section {
    title: "[[index]]",
    about: "An index of the leader.",
    keys: &[
        needed("name", Text, "\"leader\"", "Name, as Elasticsearch takes it."),
        needed("shards", Whole, "3", "Primary shards, 1 to 1024."),
        needed("replicas", Whole, "0", "Replicas of each; fewer than nodes of the leader."),
        optional("share", Number, "1 of an only one", "0.5", "Share of the corpus that it gets, 0 to 1."),
        optional("settings", Settings, NONE, "{ \"index.refresh_interval\" = \"30s\" }", "Settings of the index."),
        optional("mappings", Anything, "those of the corpus; of a file none, and fields are mapped as they come", "{ properties = { title = { type = \"text\" } } }", "Mappings, as the body of a request that creates an index has them."),
        optional("full", Table(&FULL), NONE, "{ documents = 60_844_404, bytes = \"4.9gb\", segments = 36 }", "Its size in virtual time, where it is loaded by its size and not document by document."),
        optional("rollover", Table(&ROLLOVER), NONE, "{ max_docs = 20_000 }", "Makes the name an alias that is rolled over to a new index."),
    ],
};

pub(super) static FULL: Section = Section {
    title: "[index.full]",
    about: "The size of an index in virtual time.",
    keys: &[
        needed("documents", Whole, "60_844_404", "Documents; `--scale` multiplies them."),
        needed("bytes", Size, "\"4.9gb\"", "Bytes of segment files of all primaries; `--scale` multiplies them."),
        needed("segments", Whole, "36", "Segments of all primaries."),
        optional("segment_ratio", Number, "0.5", "1.0", "Size of a segment as a share of the next larger one, 0.01 to 1."),
        optional("calibrated_on", Texts, NONE, "[\"remote-recovery / 1 MB x 5\"]", "The published rows that the segments were chosen by."),
    ],
};

pub(super) static ROLLOVER: Section = Section {
    title: "[index.rollover]",
    about: "When an index is rolled over, as index lifecycle management does it: by one of the conditions.",
    keys: &[
        optional("max_docs", Whole, NONE, "20_000", "Documents of the primaries."),
        optional("max_size", Size, NONE, "\"20gb\"", "Bytes of the primaries."),
        optional("max_age", Time, NONE, "\"1d\"", "Age of the index."),
        optional("poll_interval", Time, "10m", "\"10s\"", "How often the conditions are looked at."),
        optional("full", Table(&FULL_ROLLOVER), "the same", "{ max_docs = 52_000_000 }", "What is so in virtual time."),
    ],
};

pub(super) static FULL_ROLLOVER: Section = Section {
    title: "[index.rollover.full]",
    about: "When it is rolled over in virtual time.",
    keys: &[
        optional("max_docs", Whole, NONE, "52_000_000", "Documents of the primaries."),
        optional("max_size", Size, NONE, "\"20gb\"", "Bytes of the primaries."),
        optional("max_age", Time, NONE, "\"1d\"", "Age of the index."),
        optional("poll_interval", Time, "10m", "\"10s\"", "How often the conditions are looked at."),
    ],
};

pub(super) static BUCKET: Section = Section {
    title: "[bucket]",
    about: "Documents in vbuckets, streamed from one server to another by the step `move`.",
    keys: &[
        needed("vbuckets", Whole, "64", "vbuckets."),
        needed("items", Whole, "100_000", "Documents; `--scale` multiplies them."),
        needed("item_size", Size, "\"1kb\"", "Bytes of a document's value."),
        needed("quota", Size, "\"64mb\"", "Memory of the servers, 1mb to 1tb."),
        optional("at_least", Time, "0s", "\"5s\"", "Laps are added until a variant was measured for so long; `--scale` multiplies it."),
        optional("full", Table(&FULL_BUCKET), "the same", "{ items = 10_000_000, quota = \"20gb\" }", "What is so in virtual time."),
    ],
};

pub(super) static FULL_BUCKET: Section = Section {
    title: "[bucket.full]",
    about: "The bucket in virtual time.",
    keys: &[
        needed("items", Whole, "10_000_000", "Documents."),
        needed("quota", Size, "\"20gb\"", "Memory of the servers."),
    ],
};

pub(super) static TWIN: Section = Section {
    title: "[twin]",
    about: "A cluster that was seen (`narrows what-if URL --save FILE` writes one), and one thing that is asked of it: lose, restart, drain, add or replicas. The nodes of [leader] are its nodes, those that are added, and one more, which manages.",
    keys: &[
        needed("node", Tables(&TWIN_NODE), "[{ name = \"n1\", zone = \"a\" }]", "The nodes that hold data."),
        needed("index", Tables(&TWIN_INDEX), "[{ name = \"logs\", replicas = 1, shard = [{ bytes = \"1gb\", documents = 1000, segments = 9, copies = [\"n1\"] }] }]", "Its indices."),
        optional("lose", Texts, NONE, "[\"n1\"]", "Nodes, by name or id, and all of a zone or of `attribute=value`, that die at once and do not come back."),
        optional("restart", Texts, NONE, "[\"n1\"]", "Nodes, named likewise, that restart one after another."),
        optional("down", Time, "30s", "\"30s\"", "How long each restarted node is away, 1s to 1d."),
        optional("before_restart", Text, "nothing", "\"flush\"", "What is done before each node restarts: `flush` flushes the indices that are written to."),
        optional("drain", Texts, NONE, "[\"n1\"]", "Nodes, named likewise, that are to hold nothing in the end."),
        optional("add", Tables(&TWIN_NODE), NONE, "[{ name = \"n9\", zone = \"a\" }]", "Nodes that join, and are empty."),
        optional("replicas", Settings, NONE, "{ logs = 2 }", "Other numbers of replicas."),
        optional("uncertain", Tables(&UNCERTAIN), NONE, "[{ parameter = \"disk.write_bytes_per_s\", least = \"100mb\", most = \"1gb\" }]", "Parameters that are not known: each lap after the first draws them anew."),
    ],
};

pub(super) static TWIN_NODE: Section = Section {
    title: "[[twin.node]]",
    about: "A node of the cluster that was seen. In virtual time the first is leader-1, as leader-0 manages.",
    keys: &[
        needed("name", Text, "\"n1\"", "Its name."),
        optional("id", Text, NONE, "\"K3x\"", "Its id, where that is not its name."),
        optional("zone", Text, NONE, "\"a\"", "Its zone or rack."),
        optional("attributes", Settings, NONE, "{ rack = \"r1\" }", "Attributes by which it is told from others."),
        optional("disk", Size, NONE, "\"500gb\"", "Size of its disk; without it no watermark is obeyed there."),
        optional("disk_free", Size, NONE, "\"80gb\"", "What of it is free; all of it unless said."),
    ],
};

pub(super) static TWIN_INDEX: Section = Section {
    title: "[[twin.index]]",
    about: "An index of the cluster that was seen.",
    keys: &[
        needed("name", Text, "\"logs\"", "Its name."),
        needed("replicas", Whole, "1", "Replicas of each shard, 0 to 10."),
        optional("settings", Settings, NONE, "{ \"index.priority\" = 5 }", "Its settings."),
        optional("documents_per_s", Number, "0", "120.5", "Documents that are written to it in a second while nodes restart."),
        optional("lost", Values, NONE, "[3]", "Numbers of its shards that have no primary: they are lost already, and are no rows of `shard`."),
        needed("shard", Tables(&TWIN_SHARD), "[{ bytes = \"1gb\", documents = 1000, segments = 9, copies = [\"n1\"] }]", "Its shards, in the order of their numbers, without those that are lost."),
    ],
};

pub(super) static TWIN_SHARD: Section = Section {
    title: "shard of [[twin.index]]",
    about: "A shard of the cluster that was seen.",
    keys: &[
        needed("bytes", Size, "\"1gb\"", "Bytes of the segment files of a copy."),
        needed("documents", Whole, "1000", "Documents."),
        needed("segments", Whole, "9", "Segments of a copy, each half as large as the next larger one."),
        needed("copies", Texts, "[\"n1\"]", "The nodes that have it, that of the primary first. Fewer than the replicas ask for: the others have no place yet."),
    ],
};

pub(super) static UNCERTAIN: Section = Section {
    title: "uncertain of [twin]",
    about: "A parameter of the virtual world that is not known better than within bounds.",
    keys: &[
        needed("parameter", Text, "\"disk.write_bytes_per_s\"", "Its name; `down` is how long each node is away that restarts."),
        needed("least", Text, "\"100mb\"", "The least that it may be."),
        needed("most", Text, "\"1gb\"", "The most."),
    ],
};

pub(super) static OPERATION: Section = Section {
    title: "[[operation]]",
    about: "A search, or any other request that a load can send.",
    keys: &[
        needed("name", Text, "\"search\"", "Name, for `load`."),
        optional("index", Text, "all indices", "\"logs\"", "The index that is asked."),
        optional("method", Text, "POST, without a body GET", "\"GET\"", "Method of the request."),
        optional("path", Text, "/{index}/_search", "\"/{index}/_count\"", "Path of the request; `{index}` stands for the index."),
        optional("body", Text, NONE, "'{\"query\": {\"match\": {\"request\": \"{{word}}\"}}}'", "Body of the request; `{{word}}` stands for a parameter."),
        optional("bodies", Texts, NONE, "['{\"size\": 1}', '{\"size\": 2}']", "Several bodies, sent in turn."),
        optional("parameters", Anything, NONE, "{ word = [\"images\", \"english\"], size = { from = 1, to = 100 } }", "What is drawn for each request: from a list, or a whole number from a range."),
        optional("cost", Table(&COST), NONE, "{ documents = 50_000 }", "What a search of a shard costs where indices are loaded by their sizes."),
    ],
};

pub(super) static COST: Section = Section {
    title: "[operation.cost]",
    about: "In addition to what every search costs in the test bed.",
    keys: &[
        optional("documents", Whole, "0", "50_000", "Documents that are looked at."),
        optional("bytes", Size, "0b", "\"1mb\"", "Bytes that are read."),
    ],
};

pub(super) static LOAD: Section = Section {
    title: "[load]",
    about: "How operations are sent. A variant's own `load` goes before the plan's, key by key.",
    keys: &[
        optional("operations", Texts, "none; a load has some", "[\"search\"]", "Names of operations, sent one after another."),
        optional("clients", Whole, "none; a load has some", "8", "Clients, 1 to 10000."),
        optional("rate", Number, "as fast as answers come", "500", "Requests a second."),
        optional("arrival", Text, "closed; with a rate deterministic", "\"poisson\"", "closed, deterministic or poisson: when requests start."),
        optional("warm_up", TimeOrRequests, "0", "\"5s\"", "What is sent before it is measured."),
        optional("measured", TimeOrRequests, "none; a load says it", "\"30s\"", "What is measured of each operation."),
        optional("timeout", Time, "60s", "\"10s\"", "An answer that takes longer is given up."),
        optional("window", Time, "1s", "\"1s\"", "Throughput is counted in windows of this length."),
        optional("nodes", Texts, "all of the leader", "[\"leader-0\"]", "The nodes that are asked; of a cluster that is already there, the hosts of --on."),
        optional("threads", Whole, "1", "2", "Threads of the driver on real processes, 1 to 64."),
        optional("full", Table(&FULL_LOAD), "the same", "{ measured = 5_000 }", "What is so in virtual time."),
    ],
};

pub(super) static FULL_LOAD: Section = Section {
    title: "[load.full]",
    about: "How much is sent in virtual time; `--scale` multiplies it.",
    keys: &[
        optional("laps", Whole, "those of the plan", "1", "Repetitions of every variant."),
        optional("warm_up", TimeOrRequests, "that of the load", "1_000", "What is sent before it is measured."),
        needed("measured", TimeOrRequests, "5_000", "What is measured of each operation."),
    ],
};

pub(super) static FAULT: Section = Section {
    title: "[[fault]]",
    about: "What goes wrong while a load is sent.",
    keys: &[
        optional("node", Text, "the link, for `cut`", "\"leader-1\"", "A node, or a cluster for all of its nodes."),
        needed("kind", Text, "\"pause\"", "slow, load, pause, cut, fail, stop, kill, full_disk or clock."),
        optional("factor", Number, "none; slow and load have one", "4.0", "How many times slower."),
        optional("processes", Whole, "none; load has them", "32", "Processes that take its cores."),
        optional("free", Size, "none; full_disk has it", "\"100mb\"", "What is left of its disk."),
        optional("by", Text, "none; clock has it", "\"-1h\"", "How far its clock jumps: a time, with a minus back."),
        optional("at", Time, "0s", "\"10s\"", "When it begins, after the load began."),
        optional("lasts", Time, "until the load ends", "\"30s\"", "How long it lasts."),
    ],
};

pub(super) static CHANGE: Section = Section {
    title: "[[change]]",
    about: "Settings that are changed while a recovery goes on, in every cluster of the plan: with `recover`, `recover_peers`, `add_replica`, `drain` and `restore`. In virtual time also what the host of a node is like; other places leave out variants that change one. Charts shade what is not as it was at the beginning.",
    keys: &[
        needed("at", Time, "\"30s\"", "When, after the recovery began, 1ms to 100d."),
        optional("full", Time, "the same", "\"10m\"", "What is so in virtual time."),
        optional("settings", Settings, NONE, "{ \"indices.recovery.max_bytes_per_sec\" = \"500mb\" }", "Settings that a cluster in use takes, and their values from then on."),
        optional("node", Text, "none; `virtual` has one", "\"leader-1\"", "Whose host is changed: a node, or a cluster for all of its nodes."),
        optional("virtual", Parameters(&PARAMETER), NONE, "{ \"disk.scheduler\" = { value = \"noop\", source = \"a slide\" } }", "Parameters of that host from then on."),
    ],
};

pub(super) static PARAMETER: Section = Section {
    title: "[virtual]",
    about: "Each key is the name of a parameter of the virtual world, in quotes, and has this table.",
    keys: &[
        needed("value", Anything, "\"8ms\"", "Its value."),
        needed("source", Text, "\"a data sheet\"", "Where the value comes from."),
        optional("calibrated_on", Texts, NONE, "[\"shard-recovery / 40mb\"]", "The published rows that it was fitted to."),
    ],
};

pub(super) static FITTED: Section = Section {
    title: "[[fitted]]",
    about: "A setting whose value was fitted.",
    keys: &[
        needed("setting", Text, "\"indices.recovery.max_bytes_per_sec\"", "One of the plan's own settings."),
        needed("calibrated_on", Texts, "[\"shard-recovery / 40mb\"]", "The published rows that it was fitted to."),
    ],
};

pub(super) static VARIANT: Section = Section {
    title: "[[variant]]",
    about: "What is compared.",
    keys: &[
        needed("name", Text, "\"1 MB x 5\"", "Name, for tables."),
        optional("each", Table(&EACH), NONE, "{ setting = \"indices.recovery.max_bytes_per_sec\", values = [\"40mb\", \"80mb\"] }", "Makes it several variants, one for each value of a setting."),
        optional("settings", Settings, "those of the plan", "{ \"indices.recovery.max_bytes_per_sec\" = \"80mb\" }", "Settings, in addition to the plan's or in their place."),
        optional("virtual", Parameters(&PARAMETER), "those of the plan", "{ \"disk.seek\" = { value = \"0ms\", source = \"a data sheet\" } }", "Parameters of the virtual world, likewise."),
        optional("published", Table(&PUBLISHED), NONE, "{ file = \"remote-recovery\", match = { track = \"geopoint\" } }", "The published row that it stands beside."),
        optional("beside", Text, "the first variant", "\"64 KB x 1\"", "The variant that it is compared with."),
        optional("replicas", Whole, "those of the index", "1", "Replicas of every index."),
        optional("load", Table(&LOAD), "that of the plan", "{ clients = 16 }", "Keys of the load, in place of the plan's."),
        optional("fault", Tables(&FAULT), "those of the plan", "[{ node = \"leader-1\", kind = \"pause\" }]", "Faults, in addition to the plan's."),
        optional("change", Tables(&CHANGE), "those of the plan", "[{ at = \"30s\", settings = { \"indices.recovery.max_bytes_per_sec\" = \"500mb\" } }]", "Changes of settings, in addition to the plan's."),
    ],
};

pub(super) static EACH: Section = Section {
    title: "[variant.each]",
    about: "A setting and its values; the first value is what the others are compared with.",
    keys: &[
        needed("setting", Text, "\"indices.recovery.max_bytes_per_sec\"", "The setting."),
        needed("values", Values, "[\"40mb\", \"80mb\"]", "Its values."),
    ],
};

pub(super) static PUBLISHED: Section = Section {
    title: "[variant.published]",
    about: "A row of published figures.",
    keys: &[
        needed("file", Text, "\"remote-recovery\"", "dcp, remote-recovery, replica-selection or shard-recovery."),
        needed("match", Settings, "{ track = \"geopoint\", chunk_size = \"64kb\" }", "Columns, and the values that pick the row."),
        optional("figure", Text, "the seconds of the recovery", "\"mb_per_s\"", "The column that is compared."),
    ],
};
