//! Plans as they are resolved, and what is said of those that are wrong.

mod following;
mod load;

use std::time::Duration;

use record::names::did_you_mean;
use record::units::parse_size;

use crate::corpus::{Corpus, Source};
use crate::error::{Error, Result};
use crate::plan::file::Plan;
use crate::plan::resolved::Resolved;
use crate::plan::step::Step;

const KNOWN: [&str; 4] = [
    "ccr.indices.recovery.chunk_size",
    "ccr.indices.recovery.max_bytes_per_sec",
    "ccr.indices.recovery.max_concurrent_file_chunks",
    "narrows.recovery.scheduler",
];

fn check(name: &str, value: &str) -> Result<(), String> {
    if !KNOWN.contains(&name) {
        return Err(format!("no setting is called \"{name}\"{}", did_you_mean(name, KNOWN)));
    }
    if name.ends_with("chunk_size") {
        parse_size(value).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A plan of this test alone, so that the messages below do not move when a bundled one changes.
const TEXT: &str = include_str!("test_plan.toml");

fn resolve(
    text: &str,
    scale: f64,
    check: impl Fn(&str, &str) -> Result<(), String>,
) -> Result<Resolved> {
    Plan::parse("my.toml", text)?.resolve(scale, crate::experiments::STEPS, check)
}

fn resolved() -> Resolved {
    resolve(TEXT, 0.01, check).unwrap()
}

fn names(plan: &Resolved) -> Vec<&'static str> {
    plan.steps.iter().map(Step::name).collect()
}

/// What is said of a plan that is wrong.
fn refused(text: &str) -> String {
    resolve(text, 1.0, check).unwrap_err().to_string()
}

/// What is said when `from` in the bundled plan becomes `to`.
fn said(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    refused(&TEXT.replacen(from, to, 1))
}

/// As [`said`], in one line: what is said, and of which text.
fn told(from: &str, to: &str) -> String {
    let said = said(from, to);
    let [first, _, source, marks] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    let marked = source.get(marks.find('^').unwrap()..marks.len()).unwrap_or("the end");
    format!("{} | {marked}", first.trim_start_matches("my.toml:"))
}

#[test]
fn remote_recovery_is_the_published_experiment() {
    let plan = resolved();
    assert_eq!(names(&plan), ["start", "index", "recover", "verify"]);
    assert_eq!((plan.leader.nodes, plan.follower.unwrap().nodes), (3, 3));
    let index = &plan.indices[0];
    assert_eq!((index.shards, index.replicas, index.documents.clone()), (3, 0, 0..25_000));
    let link = plan.link.unwrap();
    assert_eq!(link.rtt, Duration::from_millis(100));
    assert_eq!(link.rate_bytes_per_s, 125_000_000);
    assert_eq!(plan.corpus.as_ref().unwrap().source, Source::Generated(Corpus::Geopoint));
    assert_eq!(plan.corpus.as_ref().unwrap().documents, 25_000);
    let rows: Vec<(&str, Option<f64>)> = plan
        .variants
        .iter()
        .map(|v| (v.name.as_str(), v.published.as_ref().and_then(|row| row.seconds)))
        .collect();
    assert_eq!(
        rows,
        [
            ("64 KB x 1", Some(14384.9)),
            ("1 MB x 1", Some(844.368)),
            ("5 MB x 1", Some(287.406)),
            ("1 MB x 5", Some(73.301)),
            ("adaptive", None),
        ]
    );
    let bytes = plan.variants.iter().filter_map(|v| v.published.as_ref()?.bytes);
    assert!(bytes.eq([5_261_334_938; 4]));
}

#[test]
fn a_replica_needs_one_cluster_and_a_follower_needs_two() {
    insta::assert_snapshot!(said("\"recover\", ", "\"add_replica\", "), @r#"
    my.toml:7:28: add_replica needs nodes of the same cluster across the link; write joins = "leader" below [follower]
      |
    7 | steps = ["start", "index", "add_replica", "verify"]
      |                            ^^^^^^^^^^^^^
    "#);
    let joins = |cluster: &str| format!("[follower]\njoins = \"{cluster}\"");
    insta::assert_snapshot!(told("[follower]", &joins("leader")), @r#"7:28: this step needs two clusters; take joins out of [follower], or use add_replica | "recover""#);
    insta::assert_snapshot!(told("[follower]", &joins("other")), @r#"16:9: the follower's nodes can join "leader" alone | "other""#);
}

#[test]
fn whoever_measures_nothing_is_told_every_step_that_measures() {
    let said = said("\"recover\", ", "");
    let (_, listed) = said.split_once("add one of ").expect(&said);
    let (listed, _) = listed.split_once(" before").expect(&said);
    let declared = crate::experiments::STEPS.iter().map(|step| step.name);
    assert!(listed.split(", ").eq(declared), "{said}");
}

#[test]
fn settings_are_merged_and_the_variants_go_before() {
    let plan = resolved();
    for variant in &plan.variants {
        assert_eq!(variant.settings["ccr.indices.recovery.max_bytes_per_sec"], "-1");
    }
    let five = &plan.variants[3].settings;
    assert_eq!(five["ccr.indices.recovery.chunk_size"], "1mb");
    assert_eq!(five["ccr.indices.recovery.max_concurrent_file_chunks"], "5");
    assert_eq!(five["narrows.recovery.scheduler"], "parallel_files");
    let text = TEXT.replacen(
        "\"narrows.recovery.scheduler\" = \"adaptive\"",
        "\"ccr.indices.recovery.max_bytes_per_sec\" = \"40mb\"",
        1,
    );
    let plan = resolve(&text, 1.0, check).unwrap();
    let throttle =
        |at: usize| &plan.variants[at].settings["ccr.indices.recovery.max_bytes_per_sec"];
    assert_eq!((throttle(0).as_str(), throttle(4).as_str()), ("-1", "40mb"));
}

#[test]
fn scale_multiplies_documents_and_leaves_at_least_one() {
    assert_eq!(resolve(TEXT, 1e-9, check).unwrap().corpus.unwrap().documents, 1);
    for bad in [0.0, -1.0, f64::NAN, 2e6] {
        assert!(matches!(resolve(TEXT, bad, check), Err(Error::Scale { .. })), "{bad}");
    }
    for (scale, written) in [(1e9, "1e9"), (2_500_000.0, "2.5e6"), (-1.5, "-1.5")] {
        let said = resolve(TEXT, scale, check).unwrap_err().to_string();
        assert!(said.starts_with(&format!("scale {written} is out of range; give ")), "{said}");
    }
}

#[test]
fn keys_are_checked() {
    insta::assert_snapshot!(told("[leader]\nnodes = 3", "leader = 3"), @"12:10: leader is a table; write [leader] and below it nodes = 3 | 3");
    insta::assert_snapshot!(told("laps = 1", "laps = 1\nnonsense = 2"), @r#"9:1: unknown key "nonsense". Keys here: name, about, source, steps, laps, sample, seed, test_bed, leader, follower, link, corpus, index, bucket, twin, operation, load, fault, change, virtual, node_settings, settings, fitted, variant | nonsense"#);
    insta::assert_snapshot!(told("steps = [\"start\", \"index\", \"recover\", \"verify\"]", ""), @r#"4:1: the key "steps" is missing here; write steps = ["start", "index", "recover", "verify"] | n"#);
    insta::assert_snapshot!(told("laps = 1", "laps ="), @"8:7: laps has no value | the end");
    insta::assert_snapshot!(told("steps = [", "steps = [3, "), @"7:10: a step is a name or a table, found integer | 3");
    insta::assert_snapshot!(said("[link]\n", "[link.extra]\n"), @r#"
    3 mistakes in my.toml

    my.toml:18:2: the key "rtt" is missing here; write rtt = "100ms"
       |
    18 | [link.extra]
       |  ^^^^

    my.toml:18:2: the key "rate" is missing here; write rate = "1gbit"
       |
    18 | [link.extra]
       |  ^^^^

    my.toml:18:7: unknown key "extra". Keys here: rtt, rate, window
       |
    18 | [link.extra]
       |       ^^^^^
    "#);
}

/// Where following what is said would be the next mistake.
#[test]
fn what_is_to_be_written_is_right_where_it_is_to_stand() {
    let steps = "steps = [\"start\", \"index\", \"recover\", \"verify\"]";
    for (from, to, words) in [
        (steps, "steps = \"start\"", steps),
        (steps, "steps = \"index\"", "write steps = [\"start\", \"index\"]"),
        ("replicas = 0", "replicas = 0\nsettings = [\"a\"]", "write settings = { \"index."),
        (
            "[leader]\n",
            "[leader]\nseed = 1\n",
            "\"seed\"; the plan itself has it, above the first table",
        ),
        ("[link]\n", "[link]\n[link]\n", "[link] stands above already"),
        ("[link]\n", "[index]\n[index]\n[link]\n", "write [[index]], in two pairs"),
    ] {
        let said = said(from, to);
        assert!(said.contains(words) && !said.contains("mistakes in"), "{said}");
    }
}

/// Each line of a plan that is wrong, and what is said of it.
#[test]
fn every_mistake_is_told_at_once_with_the_line_to_write() {
    let mut text = TEXT.to_owned();
    for (from, to) in [
        ("laps = 1", "laps = \"three\""),
        ("sample = \"100ms\"", "sample = 5"),
        ("[leader]\nnodes = 3", "[leader]\nnodes = 65"),
        ("rtt = \"100ms\"", "rtt = 50"),
        ("rate = \"1gbit\"", "rat = \"1gbit\""),
        ("# window = \"2mb\"", "window = 2"),
        ("documents = 2_500_000", "documents = \"2_500_000\""),
        ("bulk_documents = 5000\n", ""),
        ("shards = 3", "shards = 3.0"),
        ("replicas = 0", "replicas = 64"),
        ("recovery.scheduler\" = \"adaptive\"", "recovery.schedular\" = \"adaptive\""),
        (
            "track = \"geopoint\", chunk_size = \"5mb\"",
            "track = \"geopoint\", chunk_size = \"6mb\"",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let Err(Error::Plan(mistakes)) = resolve(&text, 1.0, check) else { panic!("it is refused") };
    let said: Vec<String> =
        mistakes.each().iter().map(|one| format!("{}: {}", one.line, one.message)).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    8: laps is a whole number; write laps = 4
    9: sample is a time, which is a text with a unit; write sample = "5ms" (units: micros, ms, s, m, h, d)
    13: nodes is out of range; give 1 to 64
    19: rtt is a time, which is a text with a unit; write rtt = "50ms" (units: micros, ms, s, m, h, d)
    20: unknown key "rat"; did you mean "rate" or "rtt"? Keys here: rtt, rate, window
    21: window is a size, which is a text with a unit; write window = "2mb" (units: b, kb, mb, gb, tb)
    23: the key "bulk_documents" is missing here; write bulk_documents = 5000
    25: documents is a whole number; write documents = 2500000
    30: shards is a whole number; write shards = 3
    31: replicas on 64 leader nodes is out of range; give 0 to 63
    58: no published row has chunk_size = "6mb"; there are 1mb, 5mb, 64kb
    79: no setting is called "narrows.recovery.schedular"; did you mean "narrows.recovery.scheduler"?
    "#);
    let whole = mistakes.to_string();
    assert!(
        whole.starts_with("12 mistakes in my.toml\n\nmy.toml:8:8: laps is a whole number"),
        "{whole}"
    );
}

#[test]
fn laps_sample_and_seed_have_defaults() {
    let text = TEXT.replace("laps = 1\nsample = \"100ms\"\nseed = 42\n", "");
    assert_ne!(text, TEXT);
    let plan = resolve(&text, 1.0, check).unwrap();
    assert_eq!((plan.laps, plan.sample, plan.seed), (1, Duration::from_millis(100), 42));
}

#[test]
fn an_index_may_have_mappings_of_its_own() {
    let with = |mappings: &str| {
        TEXT.replacen("[settings]\n", &format!("mappings = {mappings}\n\n[settings]\n"), 1)
    };
    let plan =
        resolve(&with("{ properties = { title = { type = \"text\" } } }"), 1.0, check).unwrap();
    let mappings = serde_json::json!({ "properties": { "title": { "type": "text" } } });
    assert_eq!(plan.indices[0].mappings, Some(mappings));
}

#[test]
fn a_corpus_is_looked_at_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let said = |name: &str, content: &str| {
        std::fs::write(dir.path().join(name), content).unwrap();
        let path = dir.path().join(name);
        let text = TEXT.replacen("\"geopoint\"", &format!("\"{}\"", path.display()), 1);
        let text = text.replacen("documents = 2_500_000", "documents = 3", 1);
        let wrong = resolve(&text, 1.0, check).err();
        wrong.map(|wrong| wrong.to_string().replace(&dir.path().display().to_string(), "DIR"))
    };
    let documents = "{\"a\":1}\n{\"a\":2}\n\n{\"a\":3}\n{\"a\":4}\n";
    assert_eq!(said("enough.json", documents), None);
    let one = said("one.json", "{\"a\":1}\n").unwrap();
    assert!(
        one.contains("one.json has 1 document, and 3 are asked for; write documents = 1"),
        "{one}"
    );
}

#[test]
fn a_bad_name_of_an_index_is_told_a_good_one() {
    for (bad, good) in [("Leader", "leader"), ("-my logs", "my-logs"), ("logs/2026", "logs-2026")] {
        let said = said("name = \"leader\"", &format!("name = \"{bad}\""));
        assert!(said.contains(&format!("; write name = \"{good}\"")), "{said}");
    }
}

#[test]
fn a_mistake_in_the_order_of_steps_does_not_hide_others() {
    let text = TEXT.replacen("\"index\", \"recover\"", "\"recover\", \"index\"", 1);
    let both = refused(&text.replacen("rtt = \"100ms\"", "rtt = 50", 1));
    assert!(both.contains("comes before") && both.contains("rtt = \"50ms\""), "{both}");
    let missing = said("\"start\", \"index\", ", "");
    assert!(missing.contains("the step \"start\" is missing; write steps = ["), "{missing}");
}

#[test]
fn values_are_checked() {
    insta::assert_snapshot!(told("rtt = \"100ms\"", "rtt = \"100\""), @r#"19:7: "100" is not a time; write a number with micros, ms, s, m, h or d, for example 100ms or 100s | "100""#);
    insta::assert_snapshot!(told("rtt = \"100ms\"", "rtt = \"5m\""), @r#"19:7: rtt is out of range; give 0s to 60s | "5m""#);
    insta::assert_snapshot!(told("rate = \"1gbit\"", "rate = \"10bit\""), @r#"20:8: rate is out of range; give 8kbit to 1000gbit | "10bit""#);
    insta::assert_snapshot!(told("sample = \"100ms\"", "sample = \"0s\""), @r#"9:10: sample is out of range; give 1ms to 1h | "0s""#);
    insta::assert_snapshot!(told("name = \"geopoint\"", "name = \"http-logs\""), @r#"24:8: no corpus is called "http-logs"; did you mean "http_logs"? Corpora: geopoint, http_logs, pmc, nginx; or give a .json, .ndjson, .jsonl, .bz2, .gz or .zst file | "http-logs""#);
    insta::assert_snapshot!(told("name = \"remote-recovery\"", "name = \"Mine\""), @r#"4:8: a plan's name has lower-case letters, digits and hyphens only | "Mine""#);
}

#[test]
fn settings_are_checked_by_the_caller() {
    insta::assert_snapshot!(told("chunk_size\" = \"64kb\"", "chunk_size\" = \"64 apples\""), @r#"45:1: "64 apples" is not a size; write a number with b, kb, mb, gb or tb, for example 64kb or 1mb | "ccr.indices.recovery.chunk_size" = "64 apples""#);
    insta::assert_snapshot!(told("chunk_size\" = \"64kb\"", "chunk_size\" = [64]"), @"45:37: a setting is a string, a number, true or false, found an array | [64]");
}

/// As [`said`], the message alone: first line, without the place.
#[track_caller]
fn message(from: &str, to: &str, place: &str) -> String {
    let said = said(from, to);
    let first = said.lines().next().unwrap();
    assert!(first.starts_with(&format!("my.toml:{place}: ")), "{said}");
    first[format!("my.toml:{place}: ").len()..].to_owned()
}

#[test]
fn steps_with_options_are_checked() {
    let verify = ", \"verify\"]";
    let step = |to: &str, place: &str| message(verify, &format!(", {to}]"), place);
    insta::assert_snapshot!(step("{ recover_peers = { restrat = 4 } }", "7:39"), @r#"the step "recover_peers" has no option "restrat"; did you mean "restart"? Options: restart"#);
    insta::assert_snapshot!(step("{ recover_peers = { restart = 3 } }", "7:39"), @"restart on 3 nodes, of which the first stays up is out of range; give 1 to 2");
    let alone = TEXT.replacen("nodes = 3", "nodes = 1", 1);
    let alone = alone.replacen(verify, ", { recover_peers = { restart = 1 } }]", 1);
    let said = resolve(&alone, 1.0, check).unwrap_err().to_string();
    let none =
        "restart on 1 node, of which the first stays up: that leaves none; give the leader more";
    assert!(said.contains(none), "{said}");
    insta::assert_snapshot!(step("{ verify = { x = 1 } }", "7:39"), @r#"the step "verify" has no options, found "x""#);
    insta::assert_snapshot!(step("\"index\"", "7:39"), @r#"the step "index" stands here twice"#);
    insta::assert_snapshot!(step("\"recover_peers\"", "7:9"), @r#"a plan has the step "recover" or "recover_peers", not both"#);
    let two = step("{ a = 1, b = 2 }", "7:39");
    assert!(two.starts_with("a step is a name, or a table of one name"), "{two}");
    assert!(step("\"index_in_background\"", "7:39").starts_with("say how many documents a second"));
    let rate = "{ index_in_background = { documents_per_s = 80_000 } }";
    let plan = TEXT.replacen("\"recover\"", &format!("{rate}, \"recover\""), 1);
    let plan = resolve(&plan, 1.0, check).unwrap();
    assert_eq!(plan.background().unwrap().documents_per_s, 80_000);
    assert!(plan.spoils_indices());
    let no_link = message("[link]\nrtt = \"100ms\"\nrate = \"1gbit\"\n", "", "7:9");
    insta::assert_snapshot!(no_link, @r#"the step "recover" needs a [follower] and a [link]; add [link] with rtt = "100ms" and rate = "1gbit""#);
}

#[test]
fn parameters_of_the_virtual_world_are_checked() {
    let link = "[settings]\n";
    let table = |entry: &str| format!("[virtual]\n{entry}\n[settings]\n");
    let said = |entry: &str, place: &str| message(link, &table(entry), place);
    let unknown = said("\"disk.schedular\" = { value = \"cfq\", source = \"x\" }", "35:1");
    assert!(unknown.contains("did you mean \"disk.scheduler\""), "{unknown}");
    let range = said("\"link.loss\" = { value = 0.5, source = \"x\" }", "35:25");
    assert!(range.contains("Share of the segments") && range.contains("0 to 0.1"), "{range}");
    insta::assert_snapshot!(said("\"link.loss\" = { value = 0.1 }", "35:15"), @r#"the key "source" is missing here; write source = "a data sheet""#);
    insta::assert_snapshot!(said("\"link.loss\" = { value = 0.1, source = \" \" }", "35:39"), @"say where the value comes from");
    let leader =
        "[leader]\nnodes = 3\n[leader.virtual]\n\"link.loss\" = { value = 0, source = \"x\" }";
    let own = message("[leader]\nnodes = 3", leader, "15:1");
    assert_eq!(own, "the link belongs to no cluster; write this in [virtual]");
}

#[test]
fn an_index_has_settings_of_its_own() {
    let with = |line: &str| TEXT.replacen("[settings]\n", &format!("{line}\n\n[settings]\n"), 1);
    let text = with("settings = { \"index.priority\" = 7 }");
    let plan = resolve(&text, 1.0, |_, _| Ok(())).unwrap();
    let settings: Vec<_> = plan.indices[0].settings.iter().collect();
    assert_eq!(settings, [(&"index.priority".to_owned(), &"7".to_owned())]);
    let refused = |line: &str| resolve(&with(line), 1.0, |_, _| Ok(())).unwrap_err().to_string();
    let shards = refused("settings = { \"index.number_of_shards\" = 2 }");
    assert!(shards.contains("write shards and replicas beside the index's name"), "{shards}");
    let cluster = refused("settings = { \"transport.compress\" = true }");
    assert!(cluster.contains("settings that begin with index."), "{cluster}");
}

/// Eight segments of a shard take 10 kB without a document.
#[test]
fn a_scale_at_which_segments_have_no_room_is_refused_with_one_at_which_they_have() {
    let full =
        "full = { documents = 12_000_000, bytes = \"600mb\", segments = 24 }\n\n[settings]\n";
    let text = TEXT.replacen("[settings]\n", full, 1);
    let checked = |scale: f64| resolve(&text, scale, check).unwrap().check_size("virtual", true);
    let said = checked(0.00002).unwrap_err();
    assert!(said.is_usage() && said.to_string().contains(" at scale 0.00002: "), "{said}");
    assert!(said.to_string().ends_with("from --scale 0.0002 on"), "{said}");
    // So small that a document is left, and a byte.
    let tiny = checked(1e-9).unwrap_err();
    assert!(tiny.to_string().ends_with("from --scale 0.0002 on"), "{tiny}");
    checked(0.0002).unwrap();
    let real = resolve(&text, 0.00002, check).unwrap();
    real.check_size("embedded", false).unwrap();
    let vast = text.replacen("= 12_000_000", "= 1_000_000_000_000", 1);
    let said = resolve(&vast, 1e5, check).unwrap_err().to_string();
    assert!(said.contains("at --scale 100000 no store could hold this; give a smaller"), "{said}");
}

/// An index without `full` is written document by document in virtual time, too.
#[test]
fn a_plan_that_is_too_large_is_sent_to_virtual_time_only_if_it_fits_there() {
    let full =
        "full = { documents = 12_000_000, bytes = \"600mb\", segments = 24 }\n\n[settings]\n";
    let sized = TEXT.replacen("[settings]\n", full, 1);
    for (text, target, is_virtual, advice) in [
        (TEXT, "embedded", false, "; run it smaller: --scale "),
        (TEXT, "virtual", true, "; run it smaller: --scale "),
        (sized.as_str(), "embedded", false, "; run it with --on virtual, or smaller: --scale "),
    ] {
        let plan = resolve(text, 10_000.0, check).unwrap();
        let said = plan.check_size(target, is_virtual).unwrap_err();
        assert!(said.is_usage() && said.to_string().contains(advice), "{target}: {said}");
    }
}

#[test]
fn a_bucket_of_more_bytes_or_time_than_can_be_counted_is_refused() {
    let bucket = include_str!("../../../../../../plans/dcp-memory.toml");
    // 2^40 documents of 2^20 bytes.
    let most = bucket.replace("200_000", "549_755_813_888").replace("\"1kb\"", "\"1mb\"");
    let said = resolve(&most, 2.0, |_, _| Ok(())).unwrap().check_size("embedded", false);
    assert!(said.unwrap_err().to_string().contains("too much for embedded"));
    let full = "quota = \"1gb\"\nfull = { items = 549_755_813_888, quota = \"1gb\" }";
    for (vast, scale) in [
        (most.clone(), 4.0),
        (most.replace("\"1mb\"", "\"1b\""), 1e6),
        (bucket.replacen("quota = \"1gb\"", full, 1), 1e6),
    ] {
        let said = resolve(&vast, scale, |_, _| Ok(())).unwrap_err().to_string();
        let wanted = format!("at --scale {scale} no bucket could hold this; give a smaller");
        assert!(said.contains(&wanted), "{said}");
    }
    let long = bucket.replace("vbuckets = 4", "vbuckets = 4\nat_least = \"100000000000000d\"");
    let said = resolve(&long, 1e6, |_, _| Ok(())).unwrap_err().to_string();
    assert!(said.contains("at_least is out of range; give 0s to 100d"), "{said}");
}

#[test]
fn indices_share_the_corpus() {
    let two = "share = 0.25\nfull = { documents = 1_000, bytes = \"1mb\", segments = 6 }\n\n\
               [[index]]\nname = \"other\"\nshards = 1\nreplicas = 1\nshare = 0.75\n\n[settings]\n";
    let text = TEXT.replacen("[settings]\n", two, 1);
    let plan = resolve(&text, 0.5, check).unwrap();
    assert_eq!(plan.index_names(), "leader,other");
    assert_eq!((plan.shards(), plan.full_bytes()), (4, None));
    let documents: Vec<_> = plan.indices.iter().map(|index| index.documents.clone()).collect();
    assert_eq!(documents, [0..312_500, 312_500..1_250_000]);
    let full = plan.indices[0].full.unwrap();
    assert_eq!((full.documents, full.bytes, full.segments), (500, 512 << 10, 6));
    let more = message("[settings]\n", &two.replace("0.75", "0.8"), "38:8");
    assert_eq!(more, "the shares of the indices sum to 1.0500; give at most 1");
    let none = message("[settings]\n", &two.replace("share = 0.75\n", ""), "38:8");
    assert_eq!(none, "of several indices each says its share of the corpus, 0 to 1");
    let taken = message("[settings]\n", &two.replace("other", "leader"), "38:8");
    insta::assert_snapshot!(taken, @r#"each index has a name of its own; this one is empty or taken: write for example name = "leader-2""#);
}

#[test]
fn published_rows_are_checked() {
    insta::assert_snapshot!(told("file = \"remote-recovery\"", "file = \"remote\""), @r#"43:22: no published figures are called "remote"; did you mean "remote-recovery"? Files: dcp, remote-recovery, replica-selection, shard-recovery | "remote""#);
    insta::assert_snapshot!(told("track = \"geopoint\", chunk_size", "trak = \"geopoint\", chunk_size"), @r#"43:51: the published figures have no column "trak"; did you mean "track"? Columns: experiment, track, shards, replicas, primary_bytes_gb, chunk_size, max_concurrent_file_chunks, smart_file_fetch, compress, java, commit_or_pr, recovery_seconds, note | trak"#);
    insta::assert_snapshot!(told("track = \"geopoint\", chunk_size = \"64kb\"", "track = \"http_logs\", chunk_size = \"1mb\""), @r#"43:49: no published row has these values together; leave "published" out where there is none | { track = "http_logs", chunk_size = "1mb", max_concurrent_file_chunks = 1 }"#);
}

const FIRST: &str = "name = \"64 KB x 1\"\n";

/// They would be compared as if they had them.
#[test]
fn variants_have_no_replicas_of_their_own_where_indices_are_made_once_for_all() {
    let own = format!("{FIRST}replicas = 1\n");
    let refused = said(FIRST, &own);
    assert!(refused.contains("once for all variants; write replicas into [[index]]"), "{refused}");
    let beside = "{ index_in_background = { documents_per_s = 5 } }, \"recover\"";
    let text = TEXT.replacen(FIRST, &own, 1).replacen("\"recover\"", beside, 1);
    assert_eq!(resolve(&text, 1.0, check).unwrap().variants[0].replicas, Some(1));
    let bucket = include_str!("../../../../../../plans/dcp-memory.toml");
    let own = bucket.replacen("[[variant]]\n", "[[variant]]\nreplicas = 0\n", 1);
    let refused = resolve(&own, 1.0, |_, _| Ok(())).unwrap_err().to_string();
    assert!(refused.contains("no [[index]] that could have replicas"), "{refused}");
}

#[test]
fn changes_of_the_plan_stand_before_those_of_a_variant_each_with_the_time_of_its_world() {
    let limit = "{ \"ccr.indices.recovery.max_bytes_per_sec\" = \"40mb\" }";
    let of_plan =
        format!("[[change]]\nat = \"2s\"\nfull = \"1m\"\nsettings = {limit}\n\n[settings]\n");
    let chunk = "{ \"ccr.indices.recovery.chunk_size\" = \"1mb\" }";
    let own = format!("{FIRST}change = [{{ at = \"5s\", settings = {chunk} }}]\n");
    let text = TEXT.replacen("[settings]\n", &of_plan, 1).replacen(FIRST, &own, 1);
    let plan = resolve(&text, 1.0, check).unwrap();
    let at = |variant: usize| -> Vec<(u64, u64)> {
        let changes = plan.variants[variant].setting_changes.iter();
        changes.map(|change| (change.at.real.as_secs(), change.at.full.as_secs())).collect()
    };
    assert_eq!((at(0), at(1)), (vec![(2, 60), (5, 5)], vec![(2, 60)]));
}

#[test]
fn a_change_says_when_and_what_and_knows_its_settings() {
    let noop = "virtual = { \"disk.scheduler\" = { value = \"noop\", source = \"a slide\" } }";
    let chunk = "settings = { \"ccr.indices.recovery.chunk_size\" = \"1mb\" }";
    for (change, expected) in [
        ("at = \"5s\", settings = {}", "say which: settings = {"),
        (
            &format!("at = \"5s\", {}", chunk.replace("size", "sise")),
            "did you mean \"ccr.indices.recovery.chunk_size\"",
        ),
        (&format!("at = \"5s\", {noop}"), "say whose host it is"),
        ("at = \"5s\", node = \"leader-1\"", "virtual = {"),
        (&format!("at = \"5s\", node = \"leader-99\", {noop}"), "no node is called \"leader-99\""),
        (chunk, "at = \"30s\""),
    ] {
        let said = said(FIRST, &format!("{FIRST}change = [{{ {change} }}]\n"));
        assert!(said.contains(expected), "{change}: {said}");
    }
}
