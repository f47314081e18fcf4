//! Which requests change nothing, by their methods and paths. Pure.

/// APIs that read by a body, of all indices or of those that a path begins with.
pub const READING: [&str; 10] = [
    "_analyze", "_count", "_field_caps", "_mget", "_msearch", "_msearch/template", "_rank_eval",
    "_search", "_search/template", "_validate/query",
];
/// APIs that read by a body, which not every cluster has. One of Elasticsearch 7 or OpenSearch 1 that lacks them takes
/// their names for the type of a document and makes the index that stands before it. So none may.
pub const READING_ALONE: [&str; 3] = ["_eql/search", "_plugins/_ppl", "_query"];
/// Why a copy waits.
pub(crate) const EXPLAIN: &str = "/_cluster/allocation/explain";

/// Whether a path without parameters is one of an API that reads. No index begins with `_`, but what else does may keep
/// what is sent by any name: `_scripts/_search`.
pub fn reads(path: &str) -> bool {
    let is_of_indices =
        |index: &str| index == "/_all" || (index.rfind('/') == Some(0) && !index.starts_with("/_"));
    let is_alone = path.strip_prefix('/').is_some_and(|api| READING_ALONE.contains(&api));
    is_alone
        || READING.iter().any(|&api| {
            let index = path.strip_suffix(api).and_then(|index| index.strip_suffix('/'));
            index.is_some_and(|index| index.is_empty() || is_of_indices(index))
        })
}

/// Whether a request changes nothing.
pub(crate) fn changes_nothing(method: &str, path: &str) -> bool {
    match method {
        "POST" => {
            let bare = path.split('?').next().unwrap_or(path);
            bare == EXPLAIN || reads(bare)
        }
        _ => matches!(method, "GET" | "HEAD" | "OPTIONS"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_changes_nothing_and_nothing_else_does_not() {
        for (method, path, is_so) in [
            ("GET", "/_nodes", true),
            ("POST", EXPLAIN, true),
            ("POST", "/logs/_search?size=0", true),
            ("POST", "/_search/scroll", false),
            ("POST", "/logs/_bulk", false),
            ("POST", "/_cluster/reroute", false),
            ("PUT", "/logs/_search", false),
        ] {
            assert_eq!(changes_nothing(method, path), is_so, "{method} {path}");
        }
    }
}
