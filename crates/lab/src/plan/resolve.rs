//! From plain data to values with units: bounds, names, settings for each variant, published rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use record::units::{parse_duration, parse_rate, parse_size};
use toml::Spanned;

use super::document::{LinkTable, Parameters, PublishedTable, Values, VariantTable};
use super::parameters::parameters;
use super::published::{SECONDS, Table};
use super::resolved::{
    BucketUse, Cluster, CorpusUse, Link, Parameter, Published, Resolved, Scope, Variant,
};
use super::test_bed::{test_bed, unknown_test_bed};
use super::{Plan, scalar};
use crate::Error;
use crate::choices::unknown;
use crate::corpus::Source;
use crate::runner::LEADER;

const NODES: RangeInclusive<i64> = 1..=64;
const LAPS: RangeInclusive<i64> = 1..=1000;
const DOCUMENTS: RangeInclusive<i64> = 1..=1_000_000_000_000;
const BULK_DOCUMENTS: RangeInclusive<i64> = 1..=100_000;
const CLIENTS: RangeInclusive<i64> = 1..=1024;
const SCALE_MAX: f64 = 1e6;
const VBUCKETS: RangeInclusive<i64> = 1..=dcp::bucket::MAX_VBUCKETS as i64;
const ITEM_SIZES: RangeInclusive<u64> = 1..=dcp::bucket::MAX_VALUE_BYTES as u64;
const QUOTAS: RangeInclusive<u64> = 1 << 20..=1 << 40;

impl Plan {
    /// Everything with units and checked. `scale` multiplies the documents of the corpus.
    /// `check_setting` is asked for every setting, name and value, and answers with a sentence
    /// where it is wrong: targets know their settings, plans do not.
    pub fn resolve(
        &self,
        scale: f64,
        check_setting: impl Fn(&str, &str) -> Result<(), String>,
    ) -> Result<Resolved, Error> {
        if !(scale > 0.0 && scale <= SCALE_MAX) {
            return Err(Error::Scale { scale });
        }
        let document = &self.document;
        let cluster = |nodes: &Spanned<i64>| -> Result<Cluster, Error> {
            Ok(Cluster { nodes: self.number("nodes", nodes, NODES)? })
        };
        let leader = cluster(&document.leader.nodes)?;
        let follower = document.follower.as_ref().map(|follower| cluster(&follower.nodes));
        let corpus = self.corpus(scale)?;
        let bucket = self.bucket(scale)?;
        Ok(Resolved {
            name: self.plan_name()?,
            about: document.about.clone(),
            source: document.source.clone(),
            steps: self.steps(leader)?,
            joined: self.joined()?,
            laps: self.number("laps", &document.laps, LAPS)?,
            sample: self.sample()?,
            seed: self.number("seed", &document.seed, 0..=i64::MAX)?,
            scale,
            leader,
            follower: follower.transpose()?,
            link: document.link.as_ref().map(|link| self.link(link)).transpose()?,
            indices: match &corpus {
                Some(corpus) => self.indices(leader, corpus.documents, scale)?,
                None => Vec::new(),
            },
            corpus,
            bucket,
            node_settings: self.settings(&document.node_settings, &check_setting)?,
            variants: self.variants(&check_setting, leader, scale)?,
        })
    }

    /// A whole number within bounds.
    pub(super) fn number<T: TryFrom<i64>>(
        &self,
        what: &str,
        value: &Spanned<i64>,
        bounds: RangeInclusive<i64>,
    ) -> Result<T, Error> {
        self.within(what, value, value.get_ref(), &bounds, |n| n.to_string())?;
        T::try_from(*value.get_ref())
            .map_err(|_| unreachable!("the bounds of {what} fit the type that it is read into"))
    }

    /// That `value`, written at `place`, is within `bounds`; the message shows those with `show`.
    pub(super) fn within<T: PartialOrd, P>(
        &self,
        what: &str,
        place: &Spanned<P>,
        value: &T,
        bounds: &RangeInclusive<T>,
        show: impl Fn(&T) -> String,
    ) -> Result<(), Error> {
        if bounds.contains(value) {
            return Ok(());
        }
        let (least, most) = (show(bounds.start()), show(bounds.end()));
        let message = format!("{what} is out of range; give {least} to {most}");
        Err(self.error(place.span(), message))
    }

    /// A text with a unit.
    pub(super) fn unit<T, E: Display>(
        &self,
        value: &Spanned<String>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, Error> {
        parse(value.get_ref()).map_err(|error| self.error(value.span(), error.to_string()))
    }

    fn plan_name(&self) -> Result<String, Error> {
        let name = &self.document.name;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let message = "a plan's name has lower-case letters, digits and hyphens only";
            return Err(self.error(name.span(), message));
        }
        Ok(name.get_ref().clone())
    }

    /// Whether the follower's nodes join the leader. `add_replica` needs that, `recover` two clusters.
    fn joined(&self) -> Result<bool, Error> {
        let joins = self.document.follower.as_ref().and_then(|follower| follower.joins.as_ref());
        if let Some(joins) = joins.filter(|joins| joins.get_ref() != "leader") {
            let message = "the follower's nodes can join \"leader\" alone";
            return Err(self.error(joins.span(), message));
        }
        for step in self.document.steps.get_ref() {
            let wrong = match step.get_ref().as_str() {
                Some("add_replica") if joins.is_none() => {
                    "add_replica needs nodes of the same cluster across the link; write \
                     joins = \"leader\" below [follower]"
                }
                Some("recover" | "restore") if joins.is_some() => {
                    "this step needs two clusters; take joins out of [follower], or use add_replica"
                }
                _ => continue,
            };
            return Err(self.error(step.span(), wrong));
        }
        Ok(joins.is_some())
    }

    fn sample(&self) -> Result<Duration, Error> {
        let sample = &self.document.sample;
        let time = self.unit(sample, parse_duration)?;
        let bounds = Duration::from_millis(1)..=Duration::from_secs(3600);
        self.within("sample", sample, &time, &bounds, |time| format!("{time:?}"))?;
        Ok(time)
    }

    fn link(&self, link: &LinkTable) -> Result<Link, Error> {
        let rtt = self.unit(&link.rtt, parse_duration)?;
        let rtt_bounds = Duration::ZERO..=Duration::from_secs(60);
        self.within("rtt", &link.rtt, &rtt, &rtt_bounds, |rtt| format!("{}s", rtt.as_secs()))?;
        let rate_bytes_per_s = self.unit(&link.rate, parse_rate)?;
        let rate_bounds = 1_000..=125_000_000_000;
        let show = |rate: &u64| match rate / 125 {
            kbit if kbit >= 1_000_000 => format!("{}gbit", kbit / 1_000_000),
            kbit => format!("{kbit}kbit"),
        };
        self.within("rate", &link.rate, &rate_bytes_per_s, &rate_bounds, show)?;
        let mut window_bytes = None;
        if let Some(window) = &link.window {
            let bytes = self.unit(window, parse_size)?;
            // The most that TCP can announce, RFC 7323.
            let bounds = 1 << 10..=1 << 30;
            let show = |bytes: &u64| record::units::show_size_setting(*bytes);
            self.within("window", window, &bytes, &bounds, show)?;
            window_bytes = Some(bytes);
        }
        Ok(Link { rtt, rate_bytes_per_s, window_bytes })
    }

    /// What is indexed; a plan has that, or a bucket.
    fn corpus(&self, scale: f64) -> Result<Option<CorpusUse>, Error> {
        let document = &self.document;
        let corpus = match (&document.corpus, &document.bucket) {
            (None, Some(bucket)) if !document.index.is_empty() => {
                let message = "a plan has a [bucket], or a [corpus] and [[index]], not both";
                return Err(self.error(bucket.span(), message));
            }
            (None, Some(_)) => return Ok(None),
            (Some(corpus), None) if !document.index.is_empty() => corpus,
            _ => {
                let message = "a plan has a [corpus] and at least one [[index]], or a [bucket]";
                return Err(self.error(document.steps.span(), message));
            }
        };
        let named = |name: &str| Source::named(name, self.dir.as_deref());
        let documents: u64 = self.number("documents", &corpus.documents, DOCUMENTS)?;
        Ok(Some(CorpusUse {
            source: self.unit(&corpus.name, named)?,
            documents: ((documents as f64 * scale).round() as u64).max(1),
            bulk_documents: self.number(
                "bulk_documents",
                &corpus.bulk_documents,
                BULK_DOCUMENTS,
            )?,
            clients: self.number("clients", &corpus.clients, CLIENTS)?,
        }))
    }

    fn bucket(&self, scale: f64) -> Result<Option<BucketUse>, Error> {
        let Some(bucket) = &self.document.bucket else { return Ok(None) };
        let bucket = bucket.get_ref();
        let items = |items: &Spanned<i64>| -> Result<u64, Error> {
            let whole: u64 = self.number("items", items, DOCUMENTS)?;
            Ok(((whole as f64 * scale).round() as u64).max(1))
        };
        let bytes = |what: &str, size: &Spanned<String>, bounds: RangeInclusive<u64>| {
            let bytes = self.unit(size, parse_size)?;
            self.within(what, size, &bytes, &bounds, |b| record::units::show_size_setting(*b))?;
            Ok::<u64, Error>(bytes)
        };
        let full = match &bucket.full {
            Some(full) => Some((items(&full.items)?, bytes("quota", &full.quota, QUOTAS)?)),
            None => None,
        };
        Ok(Some(BucketUse {
            vbuckets: self.number("vbuckets", &bucket.vbuckets, VBUCKETS)?,
            items: items(&bucket.items)?,
            item_bytes: bytes("item_size", &bucket.item_size, ITEM_SIZES)?,
            quota_bytes: bytes("quota", &bucket.quota, QUOTAS)?,
            full,
        }))
    }

    fn variants(
        &self,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
        leader: Cluster,
        scale: f64,
    ) -> Result<Vec<Variant>, Error> {
        let nodes: Vec<String> = (0..leader.nodes).map(|n| format!("{LEADER}-{n}")).collect();
        let variants = &self.document.variant;
        if variants.get_ref().is_empty() {
            return Err(self.error(variants.span(), "a plan has at least one [[variant]]"));
        }
        let common = self.settings(&self.document.settings, check_setting)?;
        let common_parameters = self.common_parameters()?;
        let mut names = BTreeSet::new();
        let mut resolved = Vec::new();
        for variant in variants.get_ref() {
            let VariantTable { name, settings, parameters, published, load, fault, .. } = variant;
            if name.get_ref().is_empty() || !names.insert(name.get_ref()) {
                let message = "each variant has a name of its own; this one is empty or taken";
                return Err(self.error(name.span(), message));
            }
            let mut merged = common.clone();
            merged.extend(self.settings(settings, check_setting)?);
            let own = self.parameters(Scope::Everywhere, parameters)?;
            let own_parameters = own.iter().map(|parameter| parameter.name.clone()).collect();
            resolved.push(Variant {
                name: name.get_ref().clone(),
                settings: merged,
                parameters: common_parameters.iter().cloned().chain(own).collect(),
                own_parameters,
                published: published.as_ref().map(|table| self.published(table)).transpose()?,
                beside: self.beside(variant)?,
                replicas: match &variant.replicas {
                    Some(replicas) => Some(self.replicas(replicas, leader)?),
                    None => None,
                },
                load: self.load(load.as_ref(), &nodes, scale)?,
                faults: self.faults(fault, &nodes)?,
            });
        }
        Ok(resolved)
    }

    /// The variant that another is compared with: one that stands before it.
    fn beside(&self, variant: &VariantTable) -> Result<Option<String>, Error> {
        let Some(beside) = &variant.beside else { return Ok(None) };
        let names = self.document.variant.get_ref().iter().map(|variant| variant.name.get_ref());
        let before: Vec<&str> =
            names.take_while(|name| *name != variant.name.get_ref()).map(String::as_str).collect();
        if before.contains(&beside.get_ref().as_str()) {
            return Ok(Some(beside.get_ref().clone()));
        }
        let said =
            unknown("no variant before this one is called", beside.get_ref(), "There are", &before);
        Err(self.error(beside.span(), said))
    }

    /// The plan's parameters of the virtual world, then those of its clusters.
    fn common_parameters(&self) -> Result<Vec<Parameter>, Error> {
        let document = &self.document;
        let mut all = self.test_bed()?;
        all.extend(self.parameters(Scope::Everywhere, &document.parameters)?);
        all.extend(self.parameters(Scope::Leader, &document.leader.parameters)?);
        if let Some(follower) = &document.follower {
            all.extend(self.parameters(Scope::Follower, &follower.parameters)?);
        }
        Ok(all)
    }

    /// The parameters of the test bed that the plan names.
    fn test_bed(&self) -> Result<Vec<Parameter>, Error> {
        let Some(name) = &self.document.test_bed else { return Ok(Vec::new()) };
        let bed = test_bed(name.get_ref())
            .ok_or_else(|| self.error(name.span(), unknown_test_bed(name.get_ref())))?;
        bed.parameters()
    }

    fn parameters(&self, scope: Scope, tables: &Parameters) -> Result<Vec<Parameter>, Error> {
        parameters(scope, tables, |span, message| self.error(span, message))
    }

    fn settings(
        &self,
        settings: &Values,
        check_setting: &dyn Fn(&str, &str) -> Result<(), String>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let texts = self.texts(settings, "a setting")?;
        for (name, value) in settings {
            // Name and value together: only the check knows which of the two is wrong.
            check_setting(name.get_ref(), &texts[name.get_ref()])
                .map_err(|why| self.error(name.span().start..value.span().end, why))?;
        }
        Ok(texts)
    }

    fn texts(&self, values: &Values, what: &str) -> Result<BTreeMap<String, String>, Error> {
        let text = |(name, value): (&Spanned<String>, &Spanned<toml::Value>)| {
            let text = scalar::text(value.get_ref()).map_err(|found| {
                let hint = if found == "a table" { "; put a dotted name in quotes" } else { "" };
                let message =
                    format!("{what} is a string, a number, true or false, found {found}{hint}");
                self.error(value.span(), message)
            })?;
            Ok((name.get_ref().clone(), text))
        };
        values.iter().map(text).collect()
    }

    fn published(&self, table: &PublishedTable) -> Result<Published, Error> {
        let figures = self.unit(&table.file, Table::named)?;
        for name in table.columns.get_ref().keys() {
            self.unit(name, |name| figures.check_column(name))?;
        }
        if let Some(figure) = &table.figure {
            self.unit(figure, |name| figures.check_column(name))?;
        }
        let values = self.texts(table.columns.get_ref(), "a column's value")?;
        let found = match &table.figure {
            None if figures.has_loads() => figures.load(&values),
            figure => figures.row(&values, figure.as_ref().map_or(SECONDS, |f| f.get_ref())),
        };
        let row = found.map_err(|why| self.error(table.columns.span(), why))?;
        Ok(Published { calibrated: table.calibrated, ..row })
    }
}

#[cfg(test)]
mod tests {
    use record::names::did_you_mean;

    use super::*;
    use crate::corpus::Corpus;
    use crate::plan::resolved::Step;

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

    fn resolved() -> Resolved {
        Plan::parse("my.toml", TEXT).unwrap().resolve(0.01, check).unwrap()
    }

    /// What is said when `from` in the bundled plan becomes `to`.
    fn said(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from), "{from}");
        let plan = Plan::parse("my.toml", &TEXT.replacen(from, to, 1));
        plan.and_then(|plan| plan.resolve(1.0, check)).unwrap_err().to_string()
    }

    #[test]
    fn remote_recovery_is_the_published_experiment() {
        let plan = resolved();
        assert_eq!(plan.steps, [Step::Start, Step::Index, Step::Recover, Step::Verify]);
        assert_eq!((plan.leader.nodes, plan.follower.unwrap().nodes), (3, 3));
        let index = &plan.indices[0];
        assert_eq!((index.shards, index.replicas, index.documents.clone()), (3, 0, 0..25_000));
        let link = plan.link.unwrap();
        assert_eq!(link.rtt, Duration::from_millis(100));
        assert_eq!(link.rate_bytes_per_s, 125_000_000);
        assert_eq!(plan.corpus.as_ref().unwrap().source, Source::Generated(Corpus::Geopoint));
        assert_eq!(plan.corpus.unwrap().documents, 25_000);
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
        insta::assert_snapshot!(said("[follower]", &joins("leader")), @r#"
        my.toml:7:28: this step needs two clusters; take joins out of [follower], or use add_replica
          |
        7 | steps = ["start", "index", "recover", "verify"]
          |                            ^^^^^^^^^
        "#);
        insta::assert_snapshot!(said("[follower]", &joins("other")), @r#"
        my.toml:16:9: the follower's nodes can join "leader" alone
           |
        16 | joins = "other"
           |         ^^^^^^^
        "#);
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
        let plan = Plan::parse("my.toml", &text).unwrap().resolve(1.0, check).unwrap();
        let throttle =
            |at: usize| &plan.variants[at].settings["ccr.indices.recovery.max_bytes_per_sec"];
        assert_eq!((throttle(0).as_str(), throttle(4).as_str()), ("-1", "40mb"));
    }

    #[test]
    fn scale_multiplies_documents_and_leaves_at_least_one() {
        let plan = Plan::parse("my.toml", TEXT).unwrap();
        assert_eq!(plan.resolve(1e-9, check).unwrap().corpus.unwrap().documents, 1);
        for bad in [0.0, -1.0, f64::NAN, 2e6] {
            assert!(matches!(plan.resolve(bad, check), Err(Error::Scale { .. })), "{bad}");
        }
        insta::assert_snapshot!(plan.resolve(0.0, check).unwrap_err(), @"scale 0 is out of range; give a number above 0 and at most 1000000, for example 0.1");
    }

    #[test]
    fn keys_are_checked() {
        insta::assert_snapshot!(said("[leader]\nnodes = 3", "leader = 3"), @r"
        my.toml:12:10: invalid type: integer 3, expected a table
           |
        12 | leader = 3
           |          ^
        ");
        insta::assert_snapshot!(said("rtt = ", "rt = "), @r#"
        my.toml:19:1: unknown key "rt"; did you mean "rtt" or "rate"? Keys here: rtt, rate, window
           |
        19 | rt = "100ms"
           | ^^
        "#);
        insta::assert_snapshot!(said("laps = 1", "laps = 1\nnonsense = 2"), @r#"
        my.toml:9:1: unknown key "nonsense". Keys here: name, about, source, steps, laps, sample, seed, leader, follower, link, corpus, index, bucket, operation, load, fault, test_bed, virtual, node_settings, settings, variant
          |
        9 | nonsense = 2
          | ^^^^^^^^
        "#);
        insta::assert_snapshot!(said("seed = 42", ""), @r#"
        my.toml:4:1: the key "seed" is missing here
          |
        4 | name = "remote-recovery"
          | ^
        "#);
        insta::assert_snapshot!(said("laps = 1", "laps = \"1\""), @r#"
        my.toml:8:8: invalid type: string "1", expected a whole number
          |
        8 | laps = "1"
          |        ^^^
        "#);
        insta::assert_snapshot!(said("laps = 1", "laps ="), @r"
        my.toml:8:7: string values must be quoted, expected literal string
          |
        8 | laps =
          |       ^
        ");
        insta::assert_snapshot!(said("steps = [", "steps = [3, "), @r#"
        my.toml:7:10: a step is a name or a table, found integer
          |
        7 | steps = [3, "start", "index", "recover", "verify"]
          |          ^
        "#);
        insta::assert_snapshot!(said("[follower]", "[folower]"), @r#"
        my.toml:15:2: unknown key "folower"; did you mean "follower"? Keys here: name, about, source, steps, laps, sample, seed, leader, follower, link, corpus, index, bucket, operation, load, fault, test_bed, virtual, node_settings, settings, variant
           |
        15 | [folower]
           |  ^^^^^^^
        "#);
        insta::assert_snapshot!(said("[link]\n", "[link.extra]\n"), @r#"
        my.toml:18:7: unknown key "extra". Keys here: rtt, rate, window
           |
        18 | [link.extra]
           |       ^^^^^
        "#);
    }

    #[test]
    fn values_are_checked() {
        insta::assert_snapshot!(said("rtt = \"100ms\"", "rtt = \"100\""), @r#"
        my.toml:19:7: "100" is not a time; write a number with micros, ms, s, m, h or d, for example 100ms
           |
        19 | rtt = "100"
           |       ^^^^^
        "#);
        insta::assert_snapshot!(said("rtt = \"100ms\"", "rtt = \"5m\""), @r#"
        my.toml:19:7: rtt is out of range; give 0s to 60s
           |
        19 | rtt = "5m"
           |       ^^^^
        "#);
        insta::assert_snapshot!(said("rate = \"1gbit\"", "rate = \"10bit\""), @r#"
        my.toml:20:8: rate is out of range; give 8kbit to 1000gbit
           |
        20 | rate = "10bit"
           |        ^^^^^^^
        "#);
        insta::assert_snapshot!(said("sample = \"100ms\"", "sample = \"0s\""), @r#"
        my.toml:9:10: sample is out of range; give 1ms to 3600s
          |
        9 | sample = "0s"
          |          ^^^^
        "#);
        insta::assert_snapshot!(said("[leader]\nnodes = 3", "[leader]\nnodes = 0"), @r"
        my.toml:13:9: nodes is out of range; give 1 to 64
           |
        13 | nodes = 0
           |         ^
        ");
        insta::assert_snapshot!(said("replicas = 0", "replicas = 3"), @r"
        my.toml:32:12: replicas on 3 leader nodes is out of range; give 0 to 2
           |
        32 | replicas = 3              # the published 64 KB row had 1; all others 0
           |            ^
        ");
        insta::assert_snapshot!(said("\"recover\", ", "\"recovery\", "), @r#"
        my.toml:7:28: unknown step "recovery"; did you mean "recover" or "recover_peers" or "restore"? Steps: start, index, index_in_background, recover, recover_peers, add_replica, restore, load, fill, move, verify
          |
        7 | steps = ["start", "index", "recovery", "verify"]
          |                            ^^^^^^^^^^
        "#);
        insta::assert_snapshot!(said("name = \"geopoint\"", "name = \"http-logs\""), @r#"
        my.toml:24:8: no corpus is called "http-logs"; did you mean "http_logs"? Corpora: geopoint, http_logs, pmc, nginx; or give a .json, .json.gz or .json.zst file
           |
        24 | name = "http-logs"
           |        ^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(said("name = \"remote-recovery\"", "name = \"Mine\""), @r#"
        my.toml:4:8: a plan's name has lower-case letters, digits and hyphens only
          |
        4 | name = "Mine"
          |        ^^^^^^
        "#);
        insta::assert_snapshot!(said("name = \"1 MB x 1\"", "name = \"64 KB x 1\""), @r#"
        my.toml:50:8: each variant has a name of its own; this one is empty or taken
           |
        50 | name = "64 KB x 1"
           |        ^^^^^^^^^^^
        "#);
    }

    #[test]
    fn settings_are_checked_by_the_caller() {
        insta::assert_snapshot!(said("recovery.scheduler", "recovery.sheduler"), @r#"
        my.toml:47:1: no setting is called "narrows.recovery.sheduler"; did you mean "narrows.recovery.scheduler"?
           |
        47 | "narrows.recovery.sheduler" = "sequential"
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(said("chunk_size\" = \"64kb\"", "chunk_size\" = \"64 apples\""), @r#"
        my.toml:45:1: "64 apples" is not a size; write a number with b, kb, mb, gb or tb, for example 1mb
           |
        45 | "ccr.indices.recovery.chunk_size" = "64 apples"
           | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
        insta::assert_snapshot!(said("chunk_size\" = \"64kb\"", "chunk_size\" = [64]"), @r#"
        my.toml:45:37: a setting is a string, a number, true or false, found an array
           |
        45 | "ccr.indices.recovery.chunk_size" = [64]
           |                                     ^^^^
        "#);
        insta::assert_snapshot!(said("\"ccr.indices.recovery.max_bytes_per_sec\"", "ccr.indices.recovery.max_bytes_per_sec"), @r#"
        my.toml:37:1: a setting is a string, a number, true or false, found a table; put a dotted name in quotes
           |
        37 | ccr.indices.recovery.max_bytes_per_sec = "-1"
           | ^^^
        "#);
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
        assert_eq!(
            step("{ recover_peers = { restrat = 4 } }", "7:39"),
            "the step \"recover_peers\" has no option \"restrat\"; did you mean \"restart\"? Options: restart"
        );
        assert_eq!(
            step("{ recover_peers = { restart = 3 } }", "7:39"),
            "restart on 3 nodes, of which the first stays up is out of range; give 1 to 2"
        );
        assert_eq!(
            step("{ verify = { x = 1 } }", "7:39"),
            "the step \"verify\" has no options, found \"x\""
        );
        assert!(
            step("{ a = 1, b = 2 }", "7:39")
                .starts_with("a step is a name, or a table of one name")
        );
        assert!(
            step("\"index_in_background\"", "7:39").starts_with("say how many documents a second")
        );
        assert_eq!(step("\"index\"", "7:39"), "the step \"index\" stands here twice");
        assert_eq!(
            step("\"recover_peers\"", "7:9"),
            "a plan has the step \"recover\" or \"recover_peers\", not both"
        );
        let rate = "{ index_in_background = { documents_per_s = 80_000 } }";
        let plan = TEXT.replacen(verify, &format!(", {rate}]"), 1);
        let plan = Plan::parse("my.toml", &plan).unwrap().resolve(1.0, check).unwrap();
        assert_eq!(plan.background().unwrap().documents_per_s, 80_000);
        assert!(plan.spoils_indices());
        let no_link = message("[link]\nrtt = \"100ms\"\nrate = \"1gbit\"\n", "", "7:9");
        assert_eq!(no_link, "the step \"recover\" needs a [follower] and a [link]");
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
        assert_eq!(
            said("\"link.loss\" = { value = 0.1 }", "35:15"),
            "the key \"source\" is missing here"
        );
        assert_eq!(
            said("\"link.loss\" = { value = 0.1, source = \" \" }", "35:39"),
            "say where the value comes from"
        );
        let leader =
            "[leader]\nnodes = 3\n[leader.virtual]\n\"link.loss\" = { value = 0, source = \"x\" }";
        let own = message("[leader]\nnodes = 3", leader, "15:1");
        assert_eq!(own, "the link belongs to no cluster; write this in [virtual]");
    }

    #[test]
    fn indices_share_the_corpus() {
        let two = "share = 0.25\nfull = { documents = 1_000, bytes = \"1mb\", segments = 6 }\n\n\
                   [[index]]\nname = \"other\"\nshards = 1\nreplicas = 1\nshare = 0.75\n\n[settings]\n";
        let text = TEXT.replacen("[settings]\n", two, 1);
        let plan = Plan::parse("my.toml", &text).unwrap().resolve(0.5, check).unwrap();
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
        assert_eq!(taken, "each index has a name of its own; this one is empty or taken");
    }

    #[test]
    fn published_rows_are_checked() {
        insta::assert_snapshot!(said("file = \"remote-recovery\"", "file = \"remote\""), @r#"
        my.toml:43:22: no published figures are called "remote"; did you mean "remote-recovery"? Files: dcp, remote-recovery, replica-selection, shard-recovery
           |
        43 | published = { file = "remote", match = { track = "geopoint", chunk_size = "64kb", max_concurrent_file_chunks = 1 } }
           |                      ^^^^^^^^
        "#);
        insta::assert_snapshot!(said("track = \"geopoint\", chunk_size", "trak = \"geopoint\", chunk_size"), @r#"
        my.toml:43:51: the published figures have no column "trak"; did you mean "track"? Columns: experiment, track, shards, replicas, primary_bytes_gb, chunk_size, max_concurrent_file_chunks, smart_file_fetch, compress, java, commit_or_pr, recovery_seconds, note
           |
        43 | published = { file = "remote-recovery", match = { trak = "geopoint", chunk_size = "64kb", max_concurrent_file_chunks = 1 } }
           |                                                   ^^^^
        "#);
        insta::assert_snapshot!(said("track = \"geopoint\", chunk_size = \"64kb\"", "track = \"http_logs\", chunk_size = \"1mb\""), @r#"
        my.toml:43:49: no published row has these values together; leave "published" out where there is none
           |
        43 | published = { file = "remote-recovery", match = { track = "http_logs", chunk_size = "1mb", max_concurrent_file_chunks = 1 } }
           |                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#);
    }
}
