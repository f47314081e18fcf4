//! The APIs of the field that this engine does not offer, each with what to do instead: `surface.txt`, read.

use std::sync::OnceLock;

use super::error::not_supported;
use engine::transport::Failure;

/// An API of the field that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// As the field's clients name it.
    pub(super) name: &'static str,
    pub(super) methods: Vec<&'static str>,
    pub(super) paths: Vec<&'static str>,
    /// What its callers are to do instead.
    pub(super) instead: &'static str,
}

impl Refused {
    /// What its callers are told.
    pub(super) fn failure(&self) -> Failure {
        not_supported(&format!("the API [{}]", self.name), self.instead)
    }
}

/// Parameters that are taken and change nothing, by the reason why that is harmless.
#[cfg(test)]
pub(super) const IGNORED: &[(&str, &str)] = &[
    (
        "every node has the whole state and reads its own, but asks the manager for the health unless `local`; that \
         and every change wait for the manager up to 30 s, as in the field where the request does not say how long",
        "cluster_manager_timeout local master_timeout",
    ),
    (
        "it changes how much is asked at once, not what is found",
        "batched_reduce_size ccs_minimize_roundtrips max_concurrent_searches max_concurrent_shard_requests \
         pre_filter_shard_size",
    ),
    (
        "it adds parts that this engine does not keep",
        "completion_fields fielddata_fields groups types",
    ),
    (
        "it adds details, or explanations for people",
        "error_trace human include_disk_info include_segment_file_sizes include_yes_decisions",
    ),
    ("the answer has it in any case", "full_id"),
    ("it changes how much is done at once, not what is done", "slices"),
    ("it is kept nowhere: nobody reads why a template was put", "cause"),
    ("no index is closed, and each is loaded", "forbid_closed_indices include_unloaded_segments"),
    ("a flush waits for one that runs, and writes where something is new", "force wait_if_ongoing"),
    ("documents have one type, whatever it is called", "type"),
];

/// The same of parameters that have their effect elsewhere: the reason, the parameters, and the APIs.
#[cfg(test)]
pub(super) const IGNORED_OF: &[(&str, &str, &str)] = &[
    ("it adds parts that this engine does not keep", "fields", "indices.stats nodes.stats"),
    (
        "the primary answers, which has every document; a preference for certain copies alone is refused",
        "preference",
        "get get_source mget",
    ),
    ("it is answered at once", "timeout", "cluster.get_settings nodes.info"),
    ("the answer has no settings", "flat_settings", "indices.put_settings"),
    ("there are no data streams", "expand_wildcards include_defaults", "indices.get_data_stream"),
    ("files are listed in no table", "detailed", "cat.recovery"),
    ("as in the field no column is written in such units", "size", "cat.thread_pool"),
];

/// What is answered otherwise than in the field.
#[cfg(test)]
pub(super) const DIFFERENCES: &[(&str, &str)] = &[
    (
        "scores of a text field that was mapped later",
        "a copy that has segments when the field is mapped keeps no lengths of its texts, so that all texts count as \
         equally long there, and the scores of a copy without segments differ",
    ),
    (
        "`_count` and `_cat/count` without a query",
        "they count every document that was written, also those that no search finds before the next refresh",
    ),
    (
        "`timeout` of what changes the cluster",
        "it counts from the request on, in the field from when all nodes are told: `acknowledged` is false where the \
         manager has not come to it, which it does all the same",
    ),
    (
        "fragments of `highlight` of the type `unified`",
        "sentences and words end by the rules of Unicode (UAX 29), in OpenSearch by those of Java, which are older: \
         fragments begin and end elsewhere behind abbreviations and signs",
    ),
    (
        "a phrase within `function_score` in `highlight`",
        "its words have tags where the phrase stands, in OpenSearch wherever one of them does",
    ),
];

/// All that is refused.
pub(super) fn refused() -> &'static [Refused] {
    static READ: OnceLock<Vec<Refused>> = OnceLock::new();
    READ.get_or_init(|| read(include_str!("surface.txt")))
}

fn read(text: &'static str) -> Vec<Refused> {
    let mut instead = "";
    let mut refused = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[') {
            instead = heading.trim_end_matches(']');
            continue;
        }
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let methods = words.next().unwrap_or_default().split(',').collect();
        refused.push(Refused { name, methods, paths: words.collect(), instead });
    }
    refused
}
