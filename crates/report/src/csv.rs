//! A run as comma-separated values (RFC 4180), one line a lap.

use record::{Limit, Row, RunDir};

/// A header and one line for each variant and lap, lines ended by CR LF. Limits have a column each
/// with their share; what is not known is empty.
pub fn csv(run: &RunDir) -> String {
    let mut header: Vec<String> = [
        "run", "plan", "target", "variant", "lap", "seconds", "bytes", "bytes_per_s", "link_share",
        "verified", "documents", "refetched_chunks", "published_s", "published_bytes",
    ]
    .map(str::to_owned)
    .to_vec();
    header.extend(
        Limit::ALL.map(|limit| format!("{}_share", limit.label().to_lowercase().replace(' ', "_"))),
    );
    let mut text = line(&header);
    for row in &run.rows {
        text.push_str(&line(&cells(run, row)));
    }
    text
}

fn cells(run: &RunDir, row: &Row) -> Vec<String> {
    let known = |value: Option<String>| value.unwrap_or_default();
    // A load copies nothing, and what only counts keeps nothing: there is nothing to verify.
    let only_counts = row.stream.as_ref().is_some_and(|stream| stream.measuring_device);
    let of_copies = |value: String| known((row.loads.is_empty() && !only_counts).then_some(value));
    let mut cells = vec![
        run.manifest.run.clone(),
        run.manifest.plan.clone(),
        run.manifest.target.clone(),
        row.variant.clone(),
        row.lap.to_string(),
        row.seconds.to_string(),
        row.bytes.to_string(),
        row.bytes_per_s.to_string(),
        known(row.link_share.map(|share| share.to_string())),
        of_copies(row.verified.to_string()),
        of_copies(row.documents.to_string()),
        row.refetched_chunks.to_string(),
        known(row.published_s.map(|seconds| seconds.to_string())),
        known(row.published_bytes.map(|bytes| bytes.to_string())),
    ];
    cells.extend(Limit::ALL.map(|limit| {
        known(row.limits.iter().find(|share| share.limit == limit).map(|s| s.share.to_string()))
    }));
    cells
}

fn line(cells: &[String]) -> String {
    let quoted: Vec<String> = cells.iter().map(|cell| quote(cell)).collect();
    format!("{}\r\n", quoted.join(","))
}

fn quote(cell: &str) -> String {
    // A spreadsheet takes a text that begins so for a formula, and a record may come from anybody.
    let may_be_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_number = cell.parse::<f64>().is_ok();
    let mark = if may_be_formula && !is_number { "'" } else { "" };
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{mark}{}\"", cell.replace('"', "\"\""))
    } else {
        format!("{mark}{cell}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(quote("1 MB x 5"), "1 MB x 5");
        assert_eq!(quote("a, \"b\""), "\"a, \"\"b\"\"\"");
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (cell, written) in [
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("@x", "'@x"),
            ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
            ("-1.5e3", "-1.5e3"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(quote(cell), written);
        }
    }
}
