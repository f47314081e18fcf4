//! Words of the field's search language and mappings that this engine refuses, each with what to send instead.

/// Words by what to send instead.
type Words = &'static [(&'static str, &'static str)];

/// Kinds of queries.
pub const QUERIES: Words = &[
    ("send [multi_match]", "combined_fields"),
    ("send [wildcard], [match] or [terms]", "wrapper"),
    (
        "send [match] or [match_phrase]",
        "common intervals match_bool_prefix match_phrase_prefix span_containing span_field_masking span_first span_multi \
         span_near span_not span_or span_term span_within field_masking_span",
    ),
    (
        "objects are flattened: index each as a document of its own",
        "has_child has_parent nested parent_id",
    ),
    (
        "send [function_score], or [boost] in the clauses of [bool]",
        "boosting distance_feature pinned rank_feature",
    ),
    ("there are no scripts; index what the script computes", "script script_score terms_set"),
    ("send [geo_bounding_box] or [geo_distance]", "geo_polygon geo_shape shape xy_shape"),
    (
        "send [match] with the words that matter",
        "agentic hybrid knn more_like_this neural neural_sparse percolate type",
    ),
];

/// Kinds of aggregations.
pub const AGGREGATIONS: Words = &[
    (
        "send a search for each part",
        "adjacency_matrix children diversified_sampler global nested parent reverse_nested sampler",
    ),
    ("send [terms] with a large [size]", "rare_terms"),
    ("send [date_histogram], [histogram] or [range]", "ip_range variable_width_histogram"),
    (
        "send a search with [geo_distance] or [geo_bounding_box]",
        "geo_bounds geo_centroid geohash_grid geohex_grid geotile_grid",
    ),
    ("send [top_hits]", "top_metrics"),
    (
        "send [stats], [extended_stats] or [percentiles]",
        "boxplot matrix_stats median_absolute_deviation percentile_ranks rate string_stats t_test weighted_avg",
    ),
    ("send [terms]", "significant_terms significant_text"),
    ("there are no scripts; index what the script computes", "scripted_metric"),
    (
        "compute it from the buckets of the answer",
        "bucket_count_ks_test bucket_script bucket_selector cumulative_cardinality extended_stats_bucket inference \
         moving_avg moving_fn moving_percentiles normalize percentiles_bucket serial_diff",
    ),
];

/// Types of fields.
pub const TYPES: Words = &[
    ("objects are flattened: index each as a document of its own", "join nested"),
    (
        "map it as long, double, float or date",
        "aggregate_metric_double date_nanos half_float token_count unsigned_long",
    ),
    ("map it as keyword", "constant_keyword version wildcard flattened flat_object murmur3"),
    ("map it as text", "annotated_text completion search_as_you_type semantic semantic_text"),
    (
        "map it as double_range, or its two ends as fields of their own",
        "date_range float_range integer_range ip_range long_range",
    ),
    ("map it as geo_point", "geo_shape point shape xy_point xy_shape"),
    ("name the field itself", "alias derived"),
    (
        "it stays in _source where the mapping says \"dynamic\": false",
        "binary dense_vector histogram knn_vector percolator rank_feature rank_features rank_vectors sparse_vector star_tree",
    ),
];

/// Parameters of fields.
pub const PARAMETERS: Words = &[
    ("send the value in each document", "script"),
    (
        "texts are read by the analyzers that there are; a keyword field keeps them whole",
        "normalizer position_increment_gap similarity split_queries_on_whitespace",
    ),
    (
        "leave it out: it would change only how fast searches are",
        "fielddata_frequency_filter index_phrases index_prefixes term_vector",
    ),
    (
        "\"dynamic\" of the object around it says whether fields are added",
        "enabled include_in_parent include_in_root",
    ),
    (
        "use geo_point with latitudes and longitudes in their bounds",
        "ignore_z_value on_script_error",
    ),
    ("dates are read in English, as in the root locale", "locale"),
    (
        "name the fields in \"properties\"; others are mapped by their first value",
        "dynamic_date_formats numeric_detection runtime",
    ),
    ("put the value into a field of its own", "_size"),
    ("map it as long or double", "time_series_dimension time_series_metric"),
];

/// Options of `highlight`.
pub const HIGHLIGHT: Words = &[
    ("send [pre_tags] and [post_tags]", "tags_schema"),
    (
        "leave it out: [unified] ends fragments with sentences, [plain] behind [fragment_size] characters",
        "boundary_chars boundary_max_scan boundary_scanner boundary_scanner_locale fragmenter",
    ),
    (
        "leave it out: it is for the type [fvh], which is not there either",
        "fragment_offset highlight_filter phrase_limit",
    ),
    ("name each of the fields, or send [require_field_match] with false", "matched_fields"),
    ("leave it out: texts are looked at as a whole", "max_analyzer_offset"),
    ("leave it out: there are no highlighters of plugins", "options"),
];

/// Options of a search.
pub const SEARCH: Words = &[
    ("go on with search_after", "slice terminate_after"),
    ("boost in the query", "indices_boost"),
    ("send [sort], or [function_score] in the query", "rescore rank"),
    ("send [match] with [fuzziness]", "suggest"),
    ("send [docvalue_fields] or [_source]", "fields"),
    (
        "there are no scripts; index what the script computes",
        "derived runtime_mappings script_fields",
    ),
    ("send a query", "knn retriever"),
    (
        "this engine has no pipelines and no groups of searches; leave it out",
        "search_pipeline stats",
    ),
];

/// What to send instead of a word; none where it is no word of the field.
pub fn instead_of(words: Words, word: &str) -> Option<&'static str> {
    all(words).find(|(name, _)| *name == word).map(|(_, instead)| instead)
}

/// Each word with what to send instead.
pub fn all(words: Words) -> impl Iterator<Item = (&'static str, &'static str)> {
    words.iter().flat_map(|(instead, names)| names.split(' ').map(move |name| (name, *instead)))
}

/// The sentence for a word that is refused, or for one that nobody knows.
pub(crate) fn said(words: Words, what: &str, word: &str, unknown: String) -> String {
    match instead_of(words, word) {
        Some(instead) => format!("{what} is not supported by this engine; {instead}"),
        None => unknown,
    }
}
