//! What `docs/rest.md` says beside the tables of the program: parameters that are ignored or refused, and what is
//! answered otherwise.

/// Parameters that are taken and change nothing, by the reason why that is harmless.
pub const IGNORED: &[(&str, &str)] = &[
    (
        "every node has the whole state and reads its own, so that the manager is waited for by changes, and by the \
         health unless `local`: as long as the request says, and 30 s at most",
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
    ("each copy is loaded", "include_unloaded_segments"),
    ("no index is frozen", "ignore_throttled"),
    ("a flush waits for one that runs, and writes where something is new", "force wait_if_ongoing"),
    ("documents have one type, whatever it is called", "type"),
];

/// The same of parameters that have their effect elsewhere: the reason, the parameters, and the APIs.
pub const IGNORED_OF: &[(&str, &str, &str)] = &[
    ("it adds parts that this engine does not keep", "fields", "indices.stats nodes.stats"),
    (
        "the primary answers, which has every document; a preference for certain copies alone is refused",
        "preference",
        "get get_source mget",
    ),
    ("it is answered at once", "timeout", "cluster.get_settings nodes.info"),
    ("it adds parts that this engine does not keep", "verbose", "indices.segments"),
    ("there is no such cache", "file", "indices.clear_cache"),
    ("the answer has no settings", "flat_settings", "cluster.stats indices.put_settings"),
    ("there are no data streams", "expand_wildcards include_defaults", "indices.get_data_stream"),
    ("files are listed in no table", "detailed", "cat.recovery"),
    ("as in the field no column is written in such units", "size", "cat.thread_pool"),
];

/// Parameters that are known so that they are refused by their names, whatever they say: the parameters, and the APIs.
pub const REFUSED_OF: &[(&str, &str)] = &[
    ("stored_fields", "exists exists_source get get_source mget search"),
    ("stats", "delete_by_query search update_by_query"),
    ("search_pipeline suggest_field suggest_mode suggest_size suggest_text", "search"),
    ("version version_type", "bulk mget update"),
    ("if_primary_term if_seq_no", "bulk"),
    ("lang", "update"),
    ("order", "cluster.put_component_template indices.put_index_template"),
    ("min_score terminate_after", "count"),
    ("from pipeline sort terminate_after", "delete_by_query reindex update_by_query"),
    ("analyzer", "count delete_by_query indices.validate_query search update_by_query"),
];

/// What is answered otherwise than in the field.
pub const DIFFERENCES: &[(&str, &str)] = &[
    (
        "scores of a text field that was mapped later",
        "a copy that has segments when the field is mapped keeps no lengths of its texts, so that all texts count as \
         equally long there, and the scores of a copy without segments differ",
    ),
    (
        "`timeout` of what changes the cluster",
        "it counts from the request on, in the field from when all nodes are told: `acknowledged` is false where the \
         manager has not come to it, which it does all the same",
    ),
    (
        "`terms` of addresses with `include`, `exclude` or `missing`",
        "they are refused: `filters` has a bucket for each network, and `missing` one for those without an address",
    ),
    (
        "sorting hits by `_id`",
        "it is refused, as by Elasticsearch 8 where nothing else is set: sort by `_doc`, or by a field with the same \
         value",
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
    (
        "`_type` of hits, documents and items of a bulk",
        "it is in no answer, also not where a node presents itself as Elasticsearch 7, which writes `_doc`",
    ),
    (
        "`_ignored` of hits",
        "hits do not name the fields whose values were left out by `ignore_malformed` or `ignore_above`",
    ),
    (
        "values that are left out by `ignore_malformed`",
        "a geohash, GeoJSON, coordinates as texts and points beyond the Earth are refused with their document: the field \
         reads them",
    ),
    (
        "numbers in fields of texts",
        "a number that is not written as it would be kept is refused with its document: `1.50`, `1e3`, one of more \
         digits than 64 bits have; as strings they are texts like others",
    ),
    (
        "values of the type `float`",
        "they are kept as `double`: 0.1 is 0.1 in aggregations and ranges, in the field 0.10000000149011612, and whole \
         numbers above 16777216 stay apart",
    ),
    ("`-0.0`", "it equals 0.0 in queries, aggregations and hits, in the field it lies before it"),
    (
        "`multi_terms`, and `terms` of numbers with a point",
        "a shard sends all of its buckets: no count is too low, and those below `min_doc_count` are not in \
         `sum_other_doc_count`",
    ),
    (
        "`missing` of texts, and of fields without `doc_values`",
        "it counts the documents without them, and is refused in the field",
    ),
    (
        "sort values of the type `half_float`",
        "they are written with all their digits, 0.0999755859375, in the field as numbers of 32 bits are, 0.09997559",
    ),
    (
        "`composite` over numbers, dates or booleans of which a document has several",
        "a document counts once for a bucket, in the field as often as it has the value, or values of one bucket",
    ),
    (
        "parts of `_nodes/stats`",
        "`breaker` and `indexing_pressure` are left out, also where they are asked for, as monitors do together with \
         others; `discovery`, `http`, `script` and `script_cache` are refused where they are asked for by name; `fs` has \
         the space of the disk where it is asked for alone, or with `indices`",
    ),
    (
        "parts of `_cluster/stats`",
        "`indices` has `count`, `shards`, `docs`, `store` and `segments.count`; `nodes` has `count`, `versions`, `jvm` \
         with the longest uptime, `fs` and `plugins`; the others are left out",
    ),
    (
        "`_segments` and `_cat/segments`",
        "`generation`, `version`, `attributes` and memory are left out, and of a segment that only the last commit has \
         the numbers of documents",
    ),
    (
        "`_cache/clear`",
        "there is a cache of requests, and none for what `fielddata`, `fields` and `query` name; where no cache is \
         named the documents that hits showed lately and what was found out about segments are dropped, too",
    ),
    (
        "nodes by their roles",
        "every node has the roles `data` and `master`; `ingest:true` and the other roles are refused",
    ),
    (
        "`extended_stats` of dates and booleans",
        "`sum_of_squares`, `variance`, `std_deviation` and what follows from them have no `_as_string`",
    ),
    (
        "values that sort hits without one",
        "of every integer type they are those of `long` (9223372036854775807), in OpenSearch those of `integer` for the \
         shorter ones",
    ),
    (
        "`_cat/nodes`",
        "the column of the manager is `master`, also where a node presents itself as OpenSearch 2",
    ),
    (
        "`_tasks`",
        "a task is a request at the node that was asked for it; what that asks of other nodes is none, so that no task \
         has a parent. A search that is cancelled is answered with 400, in the field with other statuses",
    ),
    (
        "results of `wait_for_completion=false`",
        "the node that did the work keeps the last 100 of them, or 4 MB, in memory until it ends: there is no index \
         `.tasks`. What is wrong with a request is said at once, and not in the result",
    ),
    ("`stored_fields` of `_none_`", "hits show their `_id` all the same"),
    (
        "`max_expansions` of `match_phrase_prefix`",
        "of all words of a shard that begin so the first count, in OpenSearch those of its first segments",
    ),
    ("`random_score`", "documents of two shards may have the same score for one seed"),
    (
        "scores of `function_score` that are no number",
        "the search is refused with 400, in the field with 500; so is an infinite one, which the field writes as a text",
    ),
    (
        "`_close`",
        "copies stay started, in the field they are opened anew; an index that is closed already is in the answer, \
         because its primaries are asked again whether their writes have ended; settings that are fixed stay so",
    ),
    (
        "the header `Location` of a document with a space in its `_id`",
        "it has `%20`, in the field `+`, which leads to another document",
    ),
    (
        "`_validate/query`",
        "why a query is not valid is said in any case, as `error`; one that is refused here by its name is not valid; \
         where the text of `q` or of `query_string` cannot be read, there is no `_shards`",
    ),
    ("conflicts of versions", "the error has no `index`, `index_uuid` and `shard`"),
    (
        "versions of deleted documents",
        "they are known for a minute as in the field, of very many deletions those of the newer half",
    ),
    (
        "dates in names of indices",
        "`index.provided_name` is what came of them, and so `_rollover` without a name counts on with the same date",
    ),
];
