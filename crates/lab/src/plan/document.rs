//! The tables of a plan's file, in the order in which a plan is written. Each is a type of plain data (strings and
//! numbers with their places, no meaning yet) and the section that says of each key what it holds, what counts
//! without it, an example, and what it is for. `keys/check.rs` takes unknown keys out before.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::{Spanned, Value};

use super::keys::Holds::{
    self, Anything, Number, Rate, Settings, Size, Steps, Table, Tables, Text, Texts, Time,
    TimeOrRequests, Whole,
};
use super::keys::{NONE, Section, needed, optional, tables};

/// Settings or columns: names and values with their places.
pub(super) type Values = BTreeMap<Spanned<String>, Spanned<Value>>;

/// Parameters of the virtual world by name.
pub(super) type Parameters = BTreeMap<Spanned<String>, ParameterTable>;

tables! {
    Document PLAN: "The plan", "Keys above the first table." {
        name: Spanned<String> = needed(Text, "\"my-recovery\"", "Lower-case letters, digits and hyphens.");
        about: String = needed(Text, "\"How long a new replica takes.\"", "One sentence, for lists and pages.");
        source: Option<String> = optional(Text, NONE, "\"benchmark plan, experiment 1\"", "The published experiment that it repeats.");
        steps: Spanned<Vec<Spanned<Value>>> = needed(Steps, "[\"start\", \"index\", \"recover\", \"verify\"]", "What is done, in order: see Steps.");
        laps: Option<Spanned<i64>> = optional(Whole, "1", "4", "Repetitions of every variant. Marks of significance need four.").within("1", "1000");
        sample: Option<Spanned<String>> = optional(Time, "100ms", "\"100ms\"", "Time between two samples.").within("1ms", "1h");
        seed: Option<Spanned<i64>> = optional(Whole, "42", "42", "Seed of everything random.").within("0", "9_223_372_036_854_775_807");
        test_bed: Option<Spanned<String>> = optional(Text, NONE, "\"aws-2019\"", "Parameters of the virtual world for a published experiment's machines.");
        leader: ClusterTable = needed(Table(&LEADER), "{ nodes = 3 }", "The cluster that has the data.");
        follower: Option<FollowerTable> = optional(Table(&FOLLOWER), NONE, "{ nodes = 3 }", "The cluster, or the nodes, across the link.");
        link: Option<LinkTable> = optional(Table(&LINK), NONE, "{ rtt = \"100ms\", rate = \"1gbit\" }", "The path between the two.");
        corpus: Option<CorpusTable> = optional(Table(&CORPUS), "none: a plan has it, or a bucket", "{ name = \"geopoint\", documents = 100_000, bulk_documents = 5000, clients = 8 }", "What is indexed.");
        #[serde(default)] index: Vec<IndexTable> = optional(Tables(&INDEX), "none: a plan has one, or a bucket", "[{ name = \"leader\", shards = 3, replicas = 0 }]", "Where it is indexed.");
        bucket: Option<Spanned<BucketTable>> = optional(Table(&BUCKET), NONE, "{ vbuckets = 64, items = 100_000, item_size = \"1kb\", quota = \"64mb\" }", "What is streamed, in place of a corpus and indices.");
        twin: Option<Spanned<TwinTable>> = optional(Table(&TWIN), NONE, "{ node = [{ name = \"n1\" }, { name = \"n2\" }], index = [{ name = \"logs\", replicas = 0, shard = [{ bytes = \"1gb\", documents = 1000, segments = 9, copies = [\"n1\"] }] }], lose = [\"n2\"] }", "A cluster that was seen, and what is asked of it, in place of a corpus and indices: for `what_if`.");
        #[serde(default)] operation: Vec<OperationTable> = optional(Tables(&OPERATION), NONE, "[{ name = \"count\", path = \"/{index}/_count\" }]", "What a load can send.");
        load: Option<Spanned<LoadTable>> = optional(Table(&LOAD), NONE, "{ operations = [\"count\"], clients = 8, measured = \"30s\" }", "How operations are sent.");
        #[serde(default)] fault: Vec<FaultTable> = optional(Tables(&FAULT), NONE, "[{ node = \"leader-1\", kind = \"pause\" }]", "What goes wrong while the load is sent.");
        #[serde(default)] change: Vec<ChangeTable> = optional(Tables(&CHANGE), NONE, "[{ at = \"30s\", settings = { \"indices.recovery.max_bytes_per_sec\" = \"500mb\" } }]", "Settings that are changed while a recovery goes on.");
        #[serde(default)] parameters "virtual": Parameters = optional(Holds::Parameters(&PARAMETER), "those of narrows", "{ \"disk.seek\" = { value = \"8ms\", source = \"a data sheet\" } }", "Parameters of the virtual world; `narrows calibrate` measures some.");
        #[serde(default)] node_settings: Values = optional(Settings, NONE, "{ \"transport.connections_per_node.recovery\" = 6 }", "Settings that every node starts with.");
        #[serde(default)] settings: Values = optional(Settings, NONE, "{ \"indices.recovery.max_bytes_per_sec\" = \"40mb\" }", "Settings of every variant, by the names that the stores have for them.");
        #[serde(default)] fitted: Vec<FittedTable> = optional(Tables(&FITTED), NONE, "[{ setting = \"indices.recovery.max_bytes_per_sec\", calibrated_on = [\"shard-recovery / 40mb\"] }]", "Settings whose values were chosen by a published row.");
        variant: Spanned<Vec<VariantTable>> = needed(Tables(&VARIANT), "[{ name = \"as it is\" }]", "What is compared; the first is the one that others are compared with.");
    }

    ClusterTable LEADER: "[leader]", "The cluster that has the data. Its nodes are leader-0, leader-1 and so on." {
        nodes: Spanned<i64> = needed(Whole, "3", "Nodes; of a twin up to 2001.").within("1", "64");
        #[serde(default)] parameters "virtual": Parameters = optional(Holds::Parameters(&PARAMETER), NONE, "{ \"disk.seek\" = { value = \"8ms\", source = \"a data sheet\" } }", "Parameters of its hosts alone.");
    }

    FollowerTable FOLLOWER: "[follower]", "What is across the link: a cluster of its own, or more nodes of the leader." {
        nodes: Spanned<i64> = needed(Whole, "3", "Nodes.").within("1", "64");
        joins: Option<Spanned<String>> = optional(Text, "a cluster of its own", "\"leader\"", "The cluster that its nodes join: for `add_replica`.");
        #[serde(default)] parameters "virtual": Parameters = optional(Holds::Parameters(&PARAMETER), NONE, "{ \"disk.seek\" = { value = \"8ms\", source = \"a data sheet\" } }", "Parameters of its hosts alone.");
    }

    LinkTable LINK: "[link]", "The path between leader and follower." {
        rtt: Spanned<String> = needed(Time, "\"100ms\"", "Round-trip time.").within("0s", "60s");
        rate: Spanned<String> = needed(Rate, "\"1gbit\"", "Rate in each direction.").within("8kbit", "1000gbit");
        window: Option<Spanned<String>> = optional(Size, "not bounded", "\"2mb\"", "Bytes that one connection may have under way.").within("1kb", "1gb");
    }

    CorpusTable CORPUS: "[corpus]", "What is indexed on real processes; `--scale` multiplies it." {
        name: Spanned<String> = needed(Text, "\"geopoint\"", "geopoint, http_logs, nginx or pmc, which are generated by the seed; or a file of one JSON object a line (.json, .ndjson, .jsonl, .bz2, .gz, .zst), from the plan's folder.");
        documents: Spanned<i64> = needed(Whole, "100_000", "Documents.").within("1", "1_000_000_000_000");
        bulk_documents: Spanned<i64> = needed(Whole, "5000", "Documents of one bulk request.").within("1", "100_000");
        clients: Spanned<i64> = needed(Whole, "8", "Clients that index at the same time.").within("1", "1024");
    }

    IndexTable INDEX: "[[index]]", "An index of the leader." {
        name: Spanned<String> = needed(Text, "\"leader\"", "Name, as Elasticsearch takes it.");
        shards: Spanned<i64> = needed(Whole, "3", "Primary shards.").within("1", "1024");
        replicas: Spanned<i64> = needed(Whole, "0", "Replicas of each; fewer than nodes of the leader.");
        share: Option<Spanned<f64>> = optional(Number, "1 of an only one", "0.5", "Share of the corpus that it gets.").within("0", "1");
        #[serde(default)] settings: Values = optional(Settings, NONE, "{ \"index.refresh_interval\" = \"30s\" }", "Settings of the index.");
        mappings: Option<Spanned<toml::Table>> = optional(Anything, "those of the corpus; of a file none, and fields are mapped as they come", "{ properties = { title = { type = \"text\" } } }", "Mappings, as the body of a request that creates an index has them.");
        full: Option<FullTable> = optional(Table(&FULL), NONE, "{ documents = 60_844_404, bytes = \"4.9gb\", segments = 36 }", "Its size in virtual time, where it is loaded by its size and not document by document.");
        rollover: Option<Spanned<RolloverTable>> = optional(Table(&ROLLOVER), NONE, "{ max_docs = 20_000 }", "Makes the name an alias that is rolled over to a new index.");
    }

    FullTable FULL: "[index.full]", "The size of an index in virtual time." {
        documents: Spanned<i64> = needed(Whole, "60_844_404", "Documents; `--scale` multiplies them.").within("1", "1_000_000_000_000");
        bytes: Spanned<String> = needed(Size, "\"4.9gb\"", "Bytes of segment files of all primaries; `--scale` multiplies them.").within("1b", "1048576tb");
        segments: Spanned<i64> = needed(Whole, "36", "Segments of all primaries.").within("1", "1_000_000");
        segment_ratio: Option<Spanned<f64>> = optional(Number, "0.5", "1.0", "Size of a segment as a share of the next larger one.").within("0.01", "1");
        #[serde(default)] calibrated_on: Vec<String> = optional(Texts, NONE, "[\"remote-recovery / 1 MB x 5\"]", "The published rows that the segments were chosen by.");
    }

    RolloverTable ROLLOVER: "[index.rollover]", "When an index is rolled over, as index lifecycle management does it: by one of the conditions." {
        max_docs: Option<Spanned<i64>> = optional(Whole, NONE, "20_000", "Documents of the primaries.").within("1", "1_000_000_000_000");
        max_size: Option<Spanned<String>> = optional(Size, NONE, "\"20gb\"", "Bytes of the primaries.").within("1b", "1048576tb");
        max_age: Option<Spanned<String>> = optional(Time, NONE, "\"1d\"", "Age of the index.").within("100ms", "1000d");
        poll_interval: Option<Spanned<String>> = optional(Time, "10m", "\"10s\"", "How often the conditions are looked at.").within("100ms", "1000d");
        full: Option<Box<Spanned<RolloverTable>>> = optional(Table(&FULL_ROLLOVER), "the same", "{ max_docs = 52_000_000 }", "What is so in virtual time.");
    }

    BucketTable BUCKET: "[bucket]", "Documents in vbuckets, streamed from one server to another by the step `move`." {
        vbuckets: Spanned<i64> = needed(Whole, "64", "vbuckets.").within("1", "1024");
        items: Spanned<i64> = needed(Whole, "100_000", "Documents; `--scale` multiplies them.").within("1", "1_000_000_000_000");
        item_size: Spanned<String> = needed(Size, "\"1kb\"", "Bytes of a document's value.").within("1b", "20mb");
        quota: Spanned<String> = needed(Size, "\"64mb\"", "Memory of the servers.").within("1mb", "1tb");
        at_least: Option<Spanned<String>> = optional(Time, "0s", "\"5s\"", "Laps are added until a variant was measured for so long; `--scale` multiplies it.").within("0s", "100d");
        full: Option<FullBucketTable> = optional(Table(&FULL_BUCKET), "the same", "{ items = 10_000_000, quota = \"20gb\" }", "What is so in virtual time.");
    }

    FullBucketTable FULL_BUCKET: "[bucket.full]", "The bucket in virtual time." {
        items: Spanned<i64> = needed(Whole, "10_000_000", "Documents.");
        quota: Spanned<String> = needed(Size, "\"20gb\"", "Memory of the servers.");
    }

    TwinTable TWIN: "[twin]", "A cluster that was seen (`narrows what-if URL --save FILE` writes one), and one thing that is asked of it: lose, restart, drain, add or replicas. The nodes of [leader] are its nodes, those that are added, and one more, which manages." {
        node: Vec<TwinNodeTable> = needed(Tables(&TWIN_NODE), "[{ name = \"n1\", zone = \"a\" }]", "The nodes that hold data.");
        index: Vec<TwinIndexTable> = needed(Tables(&TWIN_INDEX), "[{ name = \"logs\", replicas = 1, shard = [{ bytes = \"1gb\", documents = 1000, segments = 9, copies = [\"n1\"] }] }]", "Its indices.");
        lose: Option<Spanned<Vec<Spanned<String>>>> = optional(Texts, NONE, "[\"n1\"]", "Nodes, by name or id, and all of a zone or of `attribute=value`, that die at once and do not come back.");
        restart: Option<Spanned<Vec<Spanned<String>>>> = optional(Texts, NONE, "[\"n1\"]", "Nodes, named likewise, that restart one after another.");
        down: Option<Spanned<String>> = optional(Time, "30s", "\"30s\"", "How long each restarted node is away.").within("1s", "1d");
        before_restart: Option<Spanned<String>> = optional(Text, "nothing", "\"flush\"", "What is done before each node restarts: `flush` flushes the indices that are written to.");
        drain: Option<Spanned<Vec<Spanned<String>>>> = optional(Texts, NONE, "[\"n1\"]", "Nodes, named likewise, that are to hold nothing in the end.");
        #[serde(default)] add: Vec<TwinNodeTable> = optional(Tables(&TWIN_NODE), NONE, "[{ name = \"n9\", zone = \"a\" }]", "Nodes that join, and are empty.");
        #[serde(default)] replicas: Values = optional(Settings, NONE, "{ logs = 2 }", "Other numbers of replicas.");
        #[serde(default)] uncertain: Vec<UncertainTable> = optional(Tables(&UNCERTAIN), NONE, "[{ parameter = \"disk.write_bytes_per_s\", least = \"100mb\", most = \"1gb\" }]", "Parameters that are not known: each lap after the first draws them anew.");
    }

    TwinNodeTable TWIN_NODE: "[[twin.node]]", "A node of the cluster that was seen. In virtual time the first is leader-1, as leader-0 manages." {
        name: Spanned<String> = needed(Text, "\"n1\"", "Its name.");
        id: Option<String> = optional(Text, NONE, "\"K3x\"", "Its id, where that is not its name.");
        zone: Option<String> = optional(Text, NONE, "\"a\"", "Its zone or rack.");
        #[serde(default)] attributes: Values = optional(Settings, NONE, "{ rack = \"r1\" }", "Attributes by which it is told from others.");
        disk: Option<Spanned<String>> = optional(Size, NONE, "\"500gb\"", "Size of its disk; without it no watermark is obeyed there.");
        disk_free: Option<Spanned<String>> = optional(Size, NONE, "\"80gb\"", "What of it is free; all of it unless said.");
    }

    TwinIndexTable TWIN_INDEX: "[[twin.index]]", "An index of the cluster that was seen." {
        name: Spanned<String> = needed(Text, "\"logs\"", "Its name.");
        replicas: Spanned<i64> = needed(Whole, "1", "Replicas of each shard.").within("0", "10");
        #[serde(default)] settings: Values = optional(Settings, NONE, "{ \"index.priority\" = 5 }", "Its settings.");
        documents_per_s: Option<Spanned<f64>> = optional(Number, "0", "120.5", "Documents that are written to it in a second while nodes restart.").within("0", "10_000_000");
        #[serde(default)] lost: BTreeSet<u32> = optional(Holds::Values, NONE, "[3]", "Numbers of its shards that have no primary: they are lost already, and are no rows of `shard`.");
        shard: Vec<TwinShardTable> = needed(Tables(&TWIN_SHARD), "[{ bytes = \"1gb\", documents = 1000, segments = 9, copies = [\"n1\"] }]", "Its shards, in the order of their numbers, without those that are lost.");
    }

    TwinShardTable TWIN_SHARD: "shard of [[twin.index]]", "A shard of the cluster that was seen." {
        bytes: Spanned<String> = needed(Size, "\"1gb\"", "Bytes of the segment files of a copy.").within("0b", "1024tb");
        documents: Spanned<i64> = needed(Whole, "1000", "Documents.").within("0", "1_000_000_000_000");
        segments: Spanned<i64> = needed(Whole, "9", "Segments of a copy, each half as large as the next larger one.").within("1", "10_000");
        copies: Spanned<Vec<Spanned<String>>> = needed(Texts, "[\"n1\"]", "The nodes that have it, that of the primary first. Fewer than the replicas ask for: the others have no place yet.");
    }

    UncertainTable UNCERTAIN: "uncertain of [twin]", "A parameter of the virtual world that is not known better than within bounds." {
        parameter: Spanned<String> = needed(Text, "\"disk.write_bytes_per_s\"", "Its name; `down` is how long each node is away that restarts.");
        least: Spanned<String> = needed(Text, "\"100mb\"", "The least that it may be.");
        most: Spanned<String> = needed(Text, "\"1gb\"", "The most.");
    }

    OperationTable OPERATION: "[[operation]]", "A search, or any other request that a load can send." {
        name: Spanned<String> = needed(Text, "\"search\"", "Name, for `load`.");
        index: Option<String> = optional(Text, "all indices", "\"logs\"", "The index that is asked.");
        method: Option<String> = optional(Text, "POST, without a body GET", "\"GET\"", "Method of the request.");
        path: Option<String> = optional(Text, "/{index}/_search", "\"/{index}/_count\"", "Path of the request; `{index}` stands for the index.");
        body: Option<String> = optional(Text, NONE, "'{\"query\": {\"match\": {\"request\": \"images\"}}}'", "Body of the request; `{{word}}` stands for a parameter.");
        #[serde(default)] bodies: Vec<String> = optional(Texts, NONE, "['{\"size\": 1}', '{\"size\": 2}']", "Several bodies, sent in turn.");
        #[serde(default)] parameters: Values = optional(Anything, NONE, "{ word = [\"images\", \"english\"], size = { from = 1, to = 100 } }", "What is drawn for each request: from a list, or a whole number from a range.");
        cost: Option<CostTable> = optional(Table(&COST), NONE, "{ documents = 50_000 }", "What a search of a shard costs in virtual time, where it counts all documents.");
    }

    CostTable COST: "[operation.cost]", "In addition to what every search costs in the test bed." {
        documents: Option<Spanned<i64>> = optional(Whole, "0", "50_000", "Documents that are looked at.").within("0", "1_000_000_000_000");
        bytes: Option<Spanned<String>> = optional(Size, "0b", "\"1mb\"", "Bytes that are read.");
    }

    LoadTable LOAD: "[load]", "How operations are sent. A variant's own `load` goes before the plan's, key by key." {
        operations: Option<Vec<Spanned<String>>> = optional(Texts, "none; a load has some", "[\"search\"]", "Names of operations, sent one after another.");
        clients: Option<Spanned<i64>> = optional(Whole, "none; a load has some", "8", "Clients.").within("1", "10_000");
        rate: Option<Spanned<f64>> = optional(Number, "as fast as answers come", "500", "Requests a second.").within("0.001", "10_000_000");
        arrival: Option<Spanned<String>> = optional(Text, "closed; with a rate deterministic", "\"poisson\"", "closed, deterministic or poisson: when requests start.");
        warm_up: Option<Spanned<Value>> = optional(TimeOrRequests, "0", "\"5s\"", "What is sent before it is measured.").within("1ms", "1d");
        measured: Option<Spanned<Value>> = optional(TimeOrRequests, "none; a load says it", "\"30s\"", "What is measured of each operation.").within("1ms", "1d");
        timeout: Option<Spanned<String>> = optional(Time, "60s", "\"10s\"", "An answer that takes longer is given up.").within("1ms", "1d");
        window: Option<Spanned<String>> = optional(Time, "1s", "\"1s\"", "Throughput is counted in windows of this length.").within("1ms", "1d");
        nodes: Option<Vec<Spanned<String>>> = optional(Texts, "all of the leader", "[\"leader-0\"]", "The nodes that are asked; of a cluster that is already there, the hosts of --on.");
        threads: Option<Spanned<i64>> = optional(Whole, "1", "2", "Threads of the driver on real processes.").within("1", "64");
        full: Option<FullLoadTable> = optional(Table(&FULL_LOAD), "the same", "{ measured = 5_000 }", "What is so in virtual time.");
    }

    FullLoadTable FULL_LOAD: "[load.full]", "How much is sent in virtual time to indices that have `full`; `--scale` multiplies it." {
        laps: Option<Spanned<i64>> = optional(Whole, "those of the plan", "1", "Repetitions of every variant.");
        warm_up: Option<Spanned<Value>> = optional(TimeOrRequests, "that of the load", "1_000", "What is sent before it is measured.");
        measured: Spanned<Value> = needed(TimeOrRequests, "5_000", "What is measured of each operation.");
    }

    FaultTable FAULT: "[[fault]]", "What goes wrong while a load is sent." {
        node: Option<Spanned<String>> = optional(Text, "the link, for `cut`", "\"leader-1\"", "A node, or a cluster for all of its nodes.");
        kind: Spanned<String> = needed(Text, "\"pause\"", "slow, load, pause, cut, fail, stop, kill, full_disk or clock.");
        factor: Option<Spanned<f64>> = optional(Number, "none; slow and load have one", "4.0", "How many times as slow.").within("1", "1_000_000");
        processes: Option<Spanned<i64>> = optional(Whole, "none; load has them", "32", "Processes that take its cores.").within("1", "100_000");
        free: Option<Spanned<String>> = optional(Size, "none; full_disk has it", "\"100mb\"", "What is left of its disk.");
        by: Option<Spanned<String>> = optional(Text, "none; clock has it", "\"-1h\"", "How far its clock jumps: a time, with a minus back.").within("1ms", "366d");
        at: Option<Spanned<String>> = optional(Time, "0s", "\"10s\"", "When it begins, after the load began.");
        lasts: Option<Spanned<String>> = optional(Time, "until the load ends", "\"30s\"", "How long it lasts.").within("1ms", "1d");
    }

    ChangeTable CHANGE: "[[change]]", "Settings that are changed while a recovery goes on, in every cluster of the plan: with `recover`, `recover_peers`, `add_replica`, `drain` and `restore`. In virtual time also what the host of a node is like; other places leave out variants that change one. Charts shade what is not as it was at the beginning." {
        at: Spanned<String> = needed(Time, "\"30s\"", "When, after the recovery began.").within("1ms", "100d");
        full: Option<Spanned<String>> = optional(Time, "the same", "\"10m\"", "What is so in virtual time.").within("1ms", "100d");
        #[serde(default)] settings: Values = optional(Settings, NONE, "{ \"indices.recovery.max_bytes_per_sec\" = \"500mb\" }", "Settings that a cluster in use takes, and their values from then on.");
        node: Option<Spanned<String>> = optional(Text, "none; `virtual` has one", "\"leader-1\"", "Whose host is changed: a node, or a cluster for all of its nodes.");
        #[serde(default)] parameters "virtual": Parameters = optional(Holds::Parameters(&PARAMETER), NONE, "{ \"disk.scheduler\" = { value = \"noop\", source = \"a slide\" } }", "Parameters of that host from then on.");
    }

    ParameterTable PARAMETER: "[virtual]", "Each key is the name of a parameter of the virtual world, in quotes, and has this table." {
        value: Spanned<Value> = needed(Anything, "\"8ms\"", "Its value.");
        source: Spanned<String> = needed(Text, "\"a data sheet\"", "Where the value comes from.");
        #[serde(default)] calibrated_on: Vec<String> = optional(Texts, NONE, "[\"shard-recovery / 40mb\"]", "The published rows that it was fitted to.");
    }

    FittedTable FITTED: "[[fitted]]", "A setting whose value was fitted." {
        setting: Spanned<String> = needed(Text, "\"indices.recovery.max_bytes_per_sec\"", "One of the plan's own settings.");
        calibrated_on: Vec<String> = needed(Texts, "[\"shard-recovery / 40mb\"]", "The published rows that it was fitted to.");
    }

    VariantTable VARIANT: "[[variant]]", "What is compared." {
        name: Spanned<String> = needed(Text, "\"1 MB x 5\"", "Name, for tables.");
        each: Option<EachTable> = optional(Table(&EACH), NONE, "{ setting = \"indices.recovery.max_bytes_per_sec\", values = [\"40mb\", \"80mb\"] }", "Makes it several variants, one for each value of a setting.");
        #[serde(default)] settings: Values = optional(Settings, "those of the plan", "{ \"indices.recovery.max_bytes_per_sec\" = \"80mb\" }", "Settings, in addition to the plan's or in their place.");
        #[serde(default)] parameters "virtual": Parameters = optional(Holds::Parameters(&PARAMETER), "those of the plan", "{ \"disk.seek\" = { value = \"0ms\", source = \"a data sheet\" } }", "Parameters of the virtual world, likewise.");
        published: Option<PublishedTable> = optional(Table(&PUBLISHED), NONE, "{ file = \"remote-recovery\", match = { track = \"geopoint\" } }", "The published row that it stands beside.");
        beside: Option<Spanned<String>> = optional(Text, "the first variant", "\"64 KB x 1\"", "The variant that it is compared with.");
        replicas: Option<Spanned<i64>> = optional(Whole, "those of the index", "1", "Replicas of every index.");
        load: Option<Spanned<LoadTable>> = optional(Table(&LOAD), "that of the plan", "{ clients = 16 }", "Keys of the load, in place of the plan's.");
        #[serde(default)] fault: Vec<FaultTable> = optional(Tables(&FAULT), "those of the plan", "[{ node = \"leader-1\", kind = \"pause\" }]", "Faults, in addition to the plan's.");
        #[serde(default)] change: Vec<ChangeTable> = optional(Tables(&CHANGE), "those of the plan", "[{ at = \"30s\", settings = { \"indices.recovery.max_bytes_per_sec\" = \"500mb\" } }]", "Changes of settings, in addition to the plan's.");
    }

    EachTable EACH: "[variant.each]", "A setting and its values; the first value is what the others are compared with." {
        setting: Spanned<String> = needed(Text, "\"indices.recovery.max_bytes_per_sec\"", "The setting.");
        values: Vec<Spanned<Value>> = needed(Holds::Values, "[\"40mb\", \"80mb\"]", "Its values.");
    }

    PublishedTable PUBLISHED: "[variant.published]", "A row of published figures." {
        file: Spanned<String> = needed(Text, "\"remote-recovery\"", "dcp, remote-recovery, replica-selection or shard-recovery.");
        columns "match": Spanned<Values> = needed(Settings, "{ track = \"geopoint\", chunk_size = \"64kb\" }", "Columns, and the values that pick the row.");
        figure: Option<Spanned<String>> = optional(Text, "the seconds of the recovery", "\"mb_per_s\"", "The column that is compared.");
    }
}

/// That of a rollover without `full`: their rule is one type.
#[rustfmt::skip]
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
