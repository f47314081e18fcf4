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
use super::resolve_steps::Around;
use super::resolved::{
    BucketUse, Cluster, CorpusUse, Link, Parameter, Published, Resolved, Scope, Variant,
};
use super::test_bed::{test_bed, unknown_test_bed};
use super::{Plan, scalar};
use crate::Error;
use crate::choices::unknown;
use crate::corpus::Source;
use crate::runner::{FOLLOWER, LEADER};

const NODES: RangeInclusive<i64> = 1..=64;
pub(super) const LAPS: RangeInclusive<i64> = 1..=1000;
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
        let fault_nodes = self.fault_nodes();
        let (steps, actions) = self.steps(Around { leader, fault_nodes: &fault_nodes, scale })?;
        let bucket = self.bucket(scale)?;
        let indices = match &corpus {
            Some(corpus) => self.indices(leader, corpus.documents, scale, &check_setting)?,
            None => Vec::new(),
        };
        self.check_indices(&indices, &actions)?;
        Ok(Resolved {
            name: self.plan_name()?,
            about: document.about.clone(),
            source: document.source.clone(),
            steps,
            actions,
            joined: self.joined()?,
            laps: self.number("laps", &document.laps, LAPS)?,
            sample: self.sample()?,
            seed: self.number("seed", &document.seed, 0..=i64::MAX)?,
            scale,
            leader,
            follower: follower.transpose()?,
            link: document.link.as_ref().map(|link| self.link(link)).transpose()?,
            indices,
            corpus,
            bucket,
            node_settings: self.settings(&document.node_settings, &check_setting)?,
            variants: self.variants(&check_setting, leader, scale)?,
        })
    }

    /// What faults may befall: every node, and the clusters, which are all of their nodes. Numbers that are out of range
    /// were said to be so before.
    fn fault_nodes(&self) -> Vec<String> {
        let document = &self.document;
        let follower = document.follower.as_ref().map(|follower| (FOLLOWER, &follower.nodes));
        let clusters = [Some((LEADER, &document.leader.nodes)), follower];
        let mut names = Vec::new();
        for (cluster, nodes) in clusters.into_iter().flatten() {
            names.extend((0..*nodes.get_ref()).map(|n| format!("{cluster}-{n}")));
            names.push(cluster.to_owned());
        }
        names
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
                Some("recover" | "restore" | "follow") if joins.is_some() => {
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
                faults: self.faults(fault, &self.fault_nodes())?,
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

    pub(super) fn settings(
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
#[path = "resolve_tests.rs"]
mod tests;
