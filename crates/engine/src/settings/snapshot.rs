//! The typed values that the engine reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use policy::balancing::Balance;

use super::kind::Typed;
use super::remote::{GivenRemote, Remote};
use super::table::{SettingScope, find};
use super::values::{
    TypedValues, count, decimal, duration, flag, limit, names, optional_duration, size, throttle,
    watermark, word,
};
use super::watermark::{HIGH, LOW, Watermarks};
use super::words::{
    AllocationEnable, AllocationWeights, AllowRebalance, CheckOnStartup, Compress,
    CompressionScheme, Durability, FollowPace, RebalanceEnable, Scheduler, Selection,
};
use super::{SettingError, SettingsMap};

/// What a filter asks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// No pattern may fit the node.
    Exclude,
    /// A pattern of one of these filters at least must fit the node.
    Include,
    /// Every pattern of each of these filters must fit the node; of addresses, one of each filter.
    Require,
}

impl FilterKind {
    /// Kind and attribute of a filter by its name: `exclude._name` behind the prefix.
    fn of(name: &'static str, prefix: &str) -> Option<(FilterKind, &'static str)> {
        let (kind, attribute) = name.strip_prefix(prefix)?.split_once('.')?;
        let kind = match kind {
            "exclude" => FilterKind::Exclude,
            "include" => FilterKind::Include,
            "require" => FilterKind::Require,
            _ => return None,
        };
        Some((kind, attribute))
    }
}

/// A setting that says on which nodes copies may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFilter {
    /// Its full name.
    pub setting: &'static str,
    /// Whether it excludes, includes or requires.
    pub kind: FilterKind,
    /// `_name`, `_host` or `_ip`.
    pub attribute: &'static str,
    /// Names or patterns.
    pub patterns: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Values {
    values: ClusterValues,
    plain: TypedValues,
    remotes: BTreeMap<String, Remote>,
    /// A setting of a remote cluster that does not belong to its mode.
    remotes_at_odds: Option<SettingError>,
    /// Values of attributes, by the names of these.
    forced: BTreeMap<String, Vec<String>>,
}

/// Declares the values that are read when settings are resolved, so that the name of each is written once: what it is
/// called here, its type, and what reads it. By its name a value is searched for among a hundred, and some are asked
/// for every second for each copy in use.
macro_rules! values {
    ($values:ident of $settings:ident
        $($(#[$about:meta])* $name:ident: $type:ty = $read:ident($setting:literal $(, $of:path)?);)*
    ) => {
        #[derive(Debug, PartialEq, Eq)]
        struct $values {
            $($name: $type,)*
        }

        impl $values {
            fn read(plain: &TypedValues) -> Self {
                $values { $($name: $read(plain, $setting $(, $of)?),)* }
            }
        }

        impl $settings {
            $(
            #[doc = concat!("`", $setting, "`.")]
            $(#[$about])*
            pub fn $name(&self) -> $type {
                self.values().$name
            }
            )*
        }
    };
}

/// Declares the readers of settings that are searched for whenever they are asked for.
macro_rules! readers {
    ($($name:ident: $type:ty = $read:ident($setting:literal);)*) => {
        $(
        #[doc = concat!("`", $setting, "`.")]
        pub fn $name(&self) -> $type {
            $read(&self.0.plain, $setting)
        }
        )*
        #[cfg(test)]
        fn read_each(&self) {
            $(let _ = self.$name();)*
        }
    };
    (of_one $($name:ident: $type:ty = $read:ident($setting:literal);)*) => {
        $(
        #[doc = concat!("`", $setting, "` of an index with the settings `given`, without the others.")]
        pub(crate) fn $name(given: &SettingsMap) -> $type {
            $read(&TypedValues::of_one($setting, given), $setting)
        }
        )*
        #[cfg(test)]
        fn read_each_of(given: &SettingsMap) {
            $(let _ = Self::$name(given);)*
        }
    };
}

/// The cluster's settings at one moment. Cheap to clone; resolved anew when a setting changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(Arc<Values>);

impl Default for Settings {
    fn default() -> Self {
        Settings::resolve(&[])
    }
}

impl Settings {
    /// Takes each setting from the first layer that has it, else its default. The order of the field:
    /// transient, persistent, the node's configuration.
    ///
    /// A value that this build does not accept (kept by an older one) counts as not given.
    pub fn resolve(layers: &[&SettingsMap]) -> Self {
        let mut given: BTreeMap<String, GivenRemote> = BTreeMap::new();
        let mut forced = BTreeMap::new();
        // The weakest layer first, so that a stronger one overwrites it.
        for (name, text) in layers.iter().rev().flat_map(|layer| layer.iter()) {
            let Some(setting) = find(name) else { continue };
            let Some(alias) = setting.alias(name) else { continue };
            let typed = setting.kind.read(text);
            if let Ok(Typed::Names(values)) = typed {
                forced.insert(alias.to_owned(), values);
                continue;
            }
            if let Ok(typed) = typed {
                given.entry(alias.to_owned()).or_default().set(setting.name, typed);
            }
        }
        let remotes_at_odds = given.iter().find_map(|(alias, remote)| remote.at_odds(alias));
        let remotes =
            given.into_iter().filter_map(|(alias, remote)| Some((alias, remote.remote()?)));
        let remotes = remotes.collect();
        let plain = TypedValues::resolve(SettingScope::Cluster, layers);
        Settings(Arc::new(Values {
            values: ClusterValues::read(&plain),
            plain,
            remotes,
            remotes_at_odds,
            forced,
        }))
    }

    fn values(&self) -> &ClusterValues {
        &self.0.values
    }

    /// Why a setting of a remote cluster does not go with its mode.
    pub(super) fn remotes_at_odds(&self) -> Option<&SettingError> {
        self.0.remotes_at_odds.as_ref()
    }

    readers! {
        uncounted_nodes: &[String] = names("narrows.allocation.uncounted");
        hearing_last: &[String] = names("narrows.recovery.hears_last._name");
        awareness_attributes: &[String] = names("cluster.routing.allocation.awareness.attributes");
    }

    /// `cluster.routing.allocation.balance.*`.
    pub fn balance(&self) -> Balance {
        Balance {
            shard: decimal(&self.0.plain, "cluster.routing.allocation.balance.shard"),
            index: decimal(&self.0.plain, "cluster.routing.allocation.balance.index"),
            threshold: decimal(&self.0.plain, "cluster.routing.allocation.balance.threshold"),
        }
    }

    /// `cluster.routing.allocation.awareness.force.*.values`, by attribute.
    pub(crate) fn awareness_forced(&self) -> &BTreeMap<String, Vec<String>> {
        &self.0.forced
    }

    /// `cluster.routing.allocation.exclude.*`, `include.*` and `require.*`, as far as they are set.
    pub fn allocation_filters(&self) -> Vec<NodeFilter> {
        let of_name = |name: &'static str| {
            let (kind, attribute) = FilterKind::of(name, "cluster.routing.allocation.")?;
            let patterns = names(&self.0.plain, name).to_vec();
            Some(NodeFilter { setting: name, kind, attribute, patterns })
        };
        let filters = self.0.plain.names_of_settings().filter_map(of_name);
        let mut set: Vec<NodeFilter> = filters.filter(|one| !one.patterns.is_empty()).collect();
        set.sort_unstable_by_key(|filter| filter.setting);
        set
    }

    /// `cluster.routing.allocation.disk.watermark.*`.
    pub fn disk_watermarks(&self) -> Watermarks {
        let mark = |name| watermark(&self.0.plain, name);
        Watermarks { low: mark(LOW), high: mark(HIGH) }
    }

    /// The remote clusters that have seeds, by alias.
    pub fn remotes(&self) -> &BTreeMap<String, Remote> {
        &self.0.remotes
    }

    /// Whether messages to a remote cluster are compressed: its own setting, else
    /// `transport.compress`.
    pub(crate) fn remote_compress(&self, alias: &str) -> Compress {
        let own = self.0.remotes.get(alias).and_then(|remote| remote.compress);
        own.unwrap_or_else(|| self.transport_compress())
    }
}

values! {
    ClusterValues of Settings
    /// Bytes a second, none without a limit.
    ccr_max_bytes_per_sec: Option<u64> = throttle("ccr.indices.recovery.max_bytes_per_sec");
    /// In bytes.
    ccr_chunk_size: u64 = size("ccr.indices.recovery.chunk_size");
    ccr_max_concurrent_file_chunks: u32 = count("ccr.indices.recovery.max_concurrent_file_chunks");
    ccr_recovery_activity_timeout: Duration = duration("ccr.indices.recovery.recovery_activity_timeout");
    ccr_internal_action_timeout: Duration = duration("ccr.indices.recovery.internal_action_timeout");
    /// Bytes a second, none without a limit.
    recovery_max_bytes_per_sec: Option<u64> = throttle("indices.recovery.max_bytes_per_sec");
    /// In bytes.
    recovery_chunk_size: u64 = size("indices.recovery.chunk_size");
    recovery_max_concurrent_file_chunks: u32 = count("indices.recovery.max_concurrent_file_chunks");
    recovery_max_concurrent_operations: u32 = count("indices.recovery.max_concurrent_operations");
    recovery_retry_delay_network: Duration = duration("indices.recovery.retry_delay_network");
    recovery_retry_delay_state_sync: Duration = duration("indices.recovery.retry_delay_state_sync");
    recovery_internal_action_timeout: Duration = duration("indices.recovery.internal_action_timeout");
    /// In, and as many out.
    node_concurrent_recoveries: u32 = count("cluster.routing.allocation.node_concurrent_recoveries");
    /// None where it is as many as of both.
    node_concurrent_incoming_recoveries: Option<u32> =
        limit("cluster.routing.allocation.node_concurrent_incoming_recoveries");
    /// None where it is as many as of both.
    node_concurrent_outgoing_recoveries: Option<u32> =
        limit("cluster.routing.allocation.node_concurrent_outgoing_recoveries");
    node_initial_primaries_recoveries: u32 = count("cluster.routing.allocation.node_initial_primaries_recoveries");
    allocation_enable: AllocationEnable = word("cluster.routing.allocation.enable", AllocationEnable::of);
    rebalance_enable: RebalanceEnable = word("cluster.routing.rebalance.enable", RebalanceEnable::of);
    allocates_in_field_order: bool = flag("narrows.allocation.field_order");
    allocates_replicas_in_a_ring: bool = flag("narrows.allocation.replica_ring");
    returns_to_files: bool = flag("narrows.allocation.return_to_files");
    allocation_weights: AllocationWeights = word("narrows.allocation.weights", AllocationWeights::of);
    allow_rebalance: AllowRebalance = word("cluster.routing.allocation.allow_rebalance", AllowRebalance::of);
    /// None without a limit.
    cluster_concurrent_rebalance: Option<u32> = limit("cluster.routing.allocation.cluster_concurrent_rebalance");
    /// None without a limit, which 0 is, too.
    total_shards_per_node: Option<u32> = limit("cluster.routing.allocation.total_shards_per_node");
    transport_compress: Compress = word("transport.compress", Compress::of);
    transport_compression_scheme: CompressionScheme = word("transport.compression_scheme", CompressionScheme::of);
    follower_check_interval: Duration = duration("cluster.fault_detection.follower_check.interval");
    checks_on_disconnect: bool = flag("narrows.fault_detection.on_disconnect");
    disk_threshold_enabled: bool = flag("cluster.routing.allocation.disk.threshold_enabled");
    info_update_interval: Duration = duration("cluster.info.update.interval");
    leader_check_interval: Duration = duration("cluster.fault_detection.leader_check.interval");
    transport_recovery_connections: u32 = count("transport.connections_per_node.recovery");
    /// In bytes.
    following_memory_max: u64 = size("narrows.following.memory_max");
    following_pace: FollowPace = word("narrows.following.pace", FollowPace::of);
    recovery_scheduler: Scheduler = word("narrows.recovery.scheduler", Scheduler::of);
    recovers_smallest_first: bool = flag("narrows.recovery.smallest_first");
    recovers_step_by_step: bool = flag("narrows.recovery.step_by_step");
    recovery_connections_max: u32 = count("narrows.recovery.connections_max");
    /// In bytes.
    recovery_memory_max: u64 = size("narrows.recovery.memory_max");
    /// In bytes.
    recovery_read_ahead: u64 = size("narrows.recovery.read_ahead");
    search_selection: Selection = word("narrows.search.selection", Selection::of);
    use_adaptive_replica_selection: bool = flag("cluster.routing.use_adaptive_replica_selection");
    action_destructive_requires_name: bool = flag("action.destructive_requires_name");
    search_default_keep_alive: Duration = duration("search.default_keep_alive");
    search_max_keep_alive: Duration = duration("search.max_keep_alive");
    search_max_open_scroll_context: u32 = count("search.max_open_scroll_context");
    /// None for as long as it takes.
    search_default_search_timeout: Option<Duration> = optional_duration("search.default_search_timeout");
    search_max_open_pit_context: u32 = count("search.max_open_pit_context");
    point_in_time_max_keep_alive: Duration = duration("point_in_time.max_keep_alive");
    max_shards_per_node: u32 = count("cluster.max_shards_per_node");
    search_max_buckets: u32 = count("search.max_buckets");
    search_default_allow_partial_results: bool = flag("search.default_allow_partial_results");
    /// 0 leaves it to the cores.
    thread_pool_search_size: u32 = count("thread_pool.search.size");
    thread_pool_search_queue_size: u32 = count("thread_pool.search.queue_size");
}

/// The settings of one index at one moment. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSettings(Arc<IndexValues>);

impl IndexSettings {
    /// Each setting from `given`, else its default.
    pub fn resolve(given: &SettingsMap) -> Self {
        let plain = TypedValues::resolve(SettingScope::Index, &[given]);
        IndexSettings(Arc::new(IndexValues::read(&plain)))
    }

    fn values(&self) -> &IndexValues {
        &self.0
    }

    /// How often time refreshes a copy; none where requests alone do.
    pub(crate) fn refreshed_every(&self) -> Option<Duration> {
        self.refresh_interval().filter(|interval| !interval.is_zero())
    }

    readers! { of_one
        priority_of: u32 = count("index.priority");
        delayed_timeout_of: Duration = duration("index.unassigned.node_left.delayed_timeout");
        total_shards_per_node_of: Option<u32> = limit("index.routing.allocation.total_shards_per_node");
        max_result_window_of: u32 = count("index.max_result_window");
        requests_cache_enable_of: bool = flag("index.requests.cache.enable");
    }

    /// `index.routing.allocation.exclude.*`, `include.*` and `require.*` of an index with the settings `given`, without
    /// the others.
    pub(crate) fn filters_of(given: &SettingsMap) -> Vec<NodeFilter> {
        const PREFIX: &str = "index.routing.allocation.";
        let of_index = given.range(PREFIX.to_owned()..).take_while(|(n, _)| n.starts_with(PREFIX));
        let filter = |(name, text): (&String, &String)| {
            let setting = find(name)?;
            let (kind, attribute) = FilterKind::of(setting.name, PREFIX)?;
            let Ok(Typed::Names(patterns)) = setting.kind.read(text) else { return None };
            Some(NodeFilter { setting: setting.name, kind, attribute, patterns })
        };
        of_index.filter_map(filter).filter(|filter| !filter.patterns.is_empty()).collect()
    }

    /// `index.query.default_field` of an index with the settings `given`, without the others, as every search asks for
    /// it: names and patterns, each with its boost, as in `name^2`. As in the field the last boost of a name counts.
    pub fn default_fields_of(given: &SettingsMap) -> Vec<(String, f32)> {
        const NAME: &str = "index.query.default_field";
        let mut fields = BTreeMap::new();
        for text in names(&TypedValues::of_one(NAME, given), NAME) {
            let boosted = text.split_once('^').and_then(|(name, boost)| {
                let boost = boost.parse().ok();
                let boost = boost.filter(|boost: &f32| (0.0..=f32::MAX).contains(boost))?;
                Some((name.to_owned(), boost))
            });
            match boosted {
                Some((name, boost)) => _ = fields.insert(name, boost),
                None => _ = fields.entry(text.clone()).or_insert(1.0),
            }
        }
        fields.into_iter().collect()
    }
}

values! {
    IndexValues of IndexSettings
    number_of_shards: u32 = count("index.number_of_shards");
    /// Of a new index that names them.
    number_of_routing_shards: u32 = count("index.number_of_routing_shards");
    number_of_replicas: u32 = count("index.number_of_replicas");
    /// None means never by itself.
    refresh_interval: Option<Duration> = optional_duration("index.refresh_interval");
    retention_lease_period: Duration = duration("index.soft_deletes.retention_lease.period");
    check_on_startup: CheckOnStartup = word("index.shard.check_on_startup", CheckOnStartup::of);
    translog_durability: Durability = word("index.translog.durability", Durability::of);
    translog_sync_interval: Duration = duration("index.translog.sync_interval");
    total_fields_limit: u32 = count("index.mapping.total_fields.limit");
    /// In bytes.
    translog_flush_threshold_size: u64 = size("index.translog.flush_threshold_size");
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn map(pairs: &[(&str, &str)]) -> SettingsMap {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_last_boost_of_a_default_field_counts() {
        let given = map(&[("index.query.default_field", "b^2,a*,b^3,b,c^1e99")]);
        let fields = [("a*", 1.0), ("b", 3.0), ("c^1e99", 1.0)];
        let fields = fields.map(|(name, boost)| (name.to_owned(), boost));
        assert_eq!(IndexSettings::default_fields_of(&given), fields);
    }

    #[test]
    fn every_accessor_reads_its_default() {
        let (settings, none) = (Settings::default(), SettingsMap::new());
        settings.read_each();
        IndexSettings::resolve(&none);
        IndexSettings::read_each_of(&none);
        assert_eq!(IndexSettings::default_fields_of(&none), [("*".to_owned(), 1.0_f32)]);
        assert_eq!(settings.balance(), Balance { shard: 0.45, index: 0.55, threshold: 1.0 });
        let Watermarks { low, high } = settings.disk_watermarks();
        assert_eq!([low, high].map(|mark| mark.to_string()), ["85%", "90%"]);
        assert!(settings.allocation_filters().is_empty() && settings.remotes().is_empty());
        let off = IndexSettings::resolve(&map(&[("index.refresh_interval", "-1")]));
        assert_eq!(off.refresh_interval(), None);
    }

    #[test]
    fn the_first_layer_wins() {
        let transient = map(&[("indices.recovery.chunk_size", "2mb")]);
        let persistent = map(&[
            ("indices.recovery.chunk_size", "1mb"),
            ("indices.recovery.max_bytes_per_sec", "-1"),
        ]);
        let node = map(&[
            ("indices.recovery.max_bytes_per_sec", "10mb"),
            ("narrows.recovery.scheduler", "adaptive"),
        ]);
        let s = Settings::resolve(&[&transient, &persistent, &node]);
        assert_eq!(s.recovery_chunk_size(), 2 * MB);
        assert_eq!(s.recovery_max_bytes_per_sec(), None);
        assert_eq!(s.recovery_scheduler(), Scheduler::Adaptive);
    }

    #[test]
    fn a_value_of_an_older_build_counts_as_not_given() {
        let old = map(&[("transport.compression_scheme", "deflate"), ("gone.setting", "1")]);
        assert_eq!(Settings::resolve(&[&old]), Settings::default());
    }

    #[test]
    fn remotes_are_gathered_by_alias() {
        let transient = map(&[("cluster.remote.eu.seeds", "c:3")]);
        let persistent = map(&[
            ("cluster.remote.eu.seeds", "a:1,b:2"),
            ("cluster.remote.eu.transport.compress", "true"),
            ("cluster.remote.us.seeds", "d:4"),
            ("cluster.remote.gone.seeds", ""),
            ("cluster.remote.half.transport.compress", "true"),
        ]);
        let s = Settings::resolve(&[&transient, &persistent]);
        assert_eq!(s.remotes().keys().collect::<Vec<_>>(), ["eu", "us"]);
        assert_eq!(s.remotes()["eu"].seeds, ["c:3"]);
        assert_eq!(s.remote_compress("eu"), Compress::True);
        assert_eq!(s.remote_compress("us"), Compress::False);
        let compressed = map(&[("transport.compress", "true")]);
        assert_eq!(
            Settings::resolve(&[&compressed, &persistent]).remote_compress("us"),
            Compress::True
        );
    }
}
