//! Words of the field's search language and mappings that this engine refuses, each with what to send instead.

/// Lines of words, each with what to send instead behind a colon.
type Words = &'static str;

/// Kinds of queries.
pub const QUERIES: Words = r#"
combined_fields: send [multi_match]
wrapper: send [wildcard], [match] or [terms]
common intervals span_containing span_field_masking span_first span_multi span_near span_not span_or span_term span_within field_masking_span: send [match] or [match_phrase]
has_child has_parent nested parent_id: objects are flattened: index each as a document of its own
boosting distance_feature pinned rank_feature: send [function_score], or [boost] in the clauses of [bool]
script script_score terms_set: there are no scripts; index what the script computes
shape xy_shape: send [geo_shape] of a field of points
geo_grid: send [geo_bounding_box] with the corners of the cell
agentic hybrid knn more_like_this neural neural_sparse percolate type: send [match] with the words that matter
"#;

/// Kinds of aggregations.
pub const AGGREGATIONS: Words = r#"
adjacency_matrix children diversified_sampler global nested parent reverse_nested sampler: send a search for each part
rare_terms: send [terms] with a large [size]
ip_range variable_width_histogram: send [date_histogram], [histogram] or [range]
geohex_grid: send [geotile_grid] or [geohash_grid]
top_metrics: send [top_hits]
boxplot matrix_stats median_absolute_deviation percentile_ranks rate string_stats t_test weighted_avg: send [stats], [extended_stats] or [percentiles]
significant_terms significant_text: send [terms]
scripted_metric: there are no scripts; index what the script computes
bucket_count_ks_test bucket_script bucket_selector cumulative_cardinality extended_stats_bucket inference moving_avg moving_fn moving_percentiles normalize percentiles_bucket serial_diff: compute it from the buckets of the answer
"#;

/// Types of fields.
pub const TYPES: Words = r#"
join nested: objects are flattened: index each as a document of its own
aggregate_metric_double date_nanos token_count unsigned_long: map it as long, double, float or date
constant_keyword version wildcard flattened flat_object murmur3: map it as keyword
annotated_text completion search_as_you_type semantic semantic_text: map it as text
date_range float_range integer_range ip_range long_range: map it as double_range, or its two ends as fields of their own
geo_shape point shape xy_point xy_shape: map it as geo_point
alias derived: name the field itself
binary dense_vector histogram knn_vector percolator rank_feature rank_features rank_vectors sparse_vector star_tree: it stays in _source where the mapping says "dynamic": false
"#;

/// Parameters of fields.
pub const PARAMETERS: Words = r#"
script: send the value in each document
normalizer position_increment_gap similarity split_queries_on_whitespace: texts are read by the analyzers that there are; a keyword field keeps them whole
fielddata_frequency_filter index_phrases index_prefixes term_vector: leave it out: it would change only how fast searches are
include_in_parent include_in_root: "dynamic" of the object around it says whether fields are added
ignore_z_value on_script_error: use geo_point with latitudes and longitudes in their bounds
locale: dates are read in English, as in the root locale
dynamic_date_formats numeric_detection runtime: name the fields in "properties"; others are mapped by their first value
_size: put the value into a field of its own
time_series_dimension time_series_metric: leave it out, and index.mode: there are no indices of time series
"#;

/// Options of `highlight`.
pub const HIGHLIGHT: Words = r#"
tags_schema: send [pre_tags] and [post_tags]
boundary_chars boundary_max_scan boundary_scanner boundary_scanner_locale fragmenter: leave it out: [unified] ends fragments with sentences, [plain] behind [fragment_size] characters
fragment_offset highlight_filter phrase_limit: leave it out: it is for the type [fvh], which is not there either
matched_fields: name each of the fields, or send [require_field_match] with false
max_analyzer_offset: leave it out: texts are looked at as a whole
options: leave it out: there are no highlighters of plugins
"#;

/// What `sort` cannot sort by, and options of its keys.
pub const SORTS: Words = r#"
_script: there are no scripts; index what the script computes
nested nested_filter nested_path: objects are flattened: index each as a document of its own
format numeric_type: leave it out: values are those that the field has
"#;

/// Options of queries, aggregations and the like, wherever one does not have them.
pub const OPTIONS: Words = r#"
include exclude: send [filters] with a query for each part, or leave buckets of the answer out
hard_bounds: send [range] in the query
inner_hits: send [terms] with [top_hits]
script lang: there are no scripts; index what the script computes
format: write the numbers of the answer as you like
value_type: leave it out: values are of the type of their field
analyzer quote_analyzer: leave it out: fields have their own
cutoff_frequency execution_hint fuzzy_rewrite hdr rewrite: leave it out
minimum_should_match: send [match], or [bool] with it
quote_field_suffix: send a clause of its own for that field
time_zone: write offsets into the dates, as in 2020-01-01T00:00:00+02:00
"#;

/// Options of a search.
pub const SEARCH: Words = r#"
slice: leave it out, or part the documents by a [range] in the query
indices_boost: boost in the query
rescore rank: send [sort], or [function_score] in the query
suggest: send [match] with [fuzziness]
fields: send [docvalue_fields] or [_source]
derived runtime_mappings script_fields: there are no scripts; index what the script computes
knn retriever: send a query
search_pipeline stats: this engine has no pipelines and no groups of searches; leave it out
"#;

/// What to send instead of a word; none where it is no word of the field.
pub fn instead_of(words: Words, word: &str) -> Option<&'static str> {
    all(words).find(|(name, _)| *name == word).map(|(_, instead)| instead)
}

/// Each word with what to send instead.
pub fn all(words: Words) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = words.lines().filter_map(|line| line.split_once(": "));
    lines.flat_map(|(names, instead)| names.split(' ').map(move |name| (name, instead)))
}

/// The sentence for a word that is refused; none for one that nobody knows.
pub(crate) fn refusal(words: Words, what: &str, word: &str) -> Option<String> {
    let instead = instead_of(words, word)?;
    Some(format!("{what} is not supported by this engine; {instead}"))
}

/// The same, or what is said of a word that nobody knows.
pub(crate) fn said(words: Words, what: &str, word: &str, unknown: String) -> String {
    refusal(words, what, word).unwrap_or(unknown)
}
