//! Published figures, embedded from `published/*.csv`, and the look-up of a row.

use std::collections::BTreeMap;

use record::{Kind, PublishedInfo};

use crate::choices::unknown;

const FILES: [(&str, &str); 4] = [
    ("dcp", include_str!("../../published/dcp.csv")),
    ("remote-recovery", include_str!("../../published/remote-recovery.csv")),
    ("replica-selection", include_str!("../../published/replica-selection.csv")),
    ("shard-recovery", include_str!("../../published/shard-recovery.csv")),
];
pub(super) const SECONDS: &str = "recovery_seconds";
/// Columns with a node's rate in MB/s; a file has at most one of the two.
const NODE_RATES: [&str; 2] = ["node_mb_per_s", "throughput_mb_per_s"];
const GIGABYTES: &str = "primary_bytes_gb";
const METRIC: &str = "metric";
const VALUE: &str = "value";
const OPERATION: &str = "operation";
const LAP: &str = "lap";
/// Of all laps together.
const TOTAL: &str = "total";

/// A published row.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// What a record says of it.
    pub info: PublishedInfo,
    /// Seconds that the recovery took, where that is the figure.
    pub seconds: Option<f64>,
    /// Bytes that it moved: those of the primaries, from a column in units of 2^30, as Elasticsearch prints.
    pub bytes: Option<u64>,
    /// The lowest and the highest of a load's figures over its laps, where these are published.
    pub laps: BTreeMap<String, (f64, f64)>,
}

/// A row by its columns; empty cells are left out.
type Row<'a> = BTreeMap<&'a str, String>;

/// A file of published figures.
#[derive(Debug)]
pub(super) struct Table<'a> {
    name: &'a str,
    columns: Vec<String>,
    text: &'a str,
}

impl Table<'static> {
    /// The file called `name`. The error is a sentence.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let names = FILES.map(|(name, _)| name);
        let found = FILES.iter().find(|(known, _)| *known == name);
        let (name, text) = found
            .ok_or_else(|| unknown("no published figures are called", name, "Files", &names))?;
        Ok(Table::of(name, text))
    }
}

impl<'a> Table<'a> {
    fn of(name: &'a str, text: &'a str) -> Self {
        Table { name, columns: cells(text.lines().next().unwrap_or_default()), text }
    }

    /// Whether there is such a column; otherwise a sentence that offers those there are.
    pub(super) fn check_column(&self, name: &str) -> Result<(), String> {
        if self.columns.iter().any(|column| column == name) {
            return Ok(());
        }
        let known: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        Err(unknown("the published figures have no column", name, "Columns", &known))
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.text.lines().skip(1).map(|line| {
            let filled = cells(line).into_iter().zip(&self.columns);
            filled
                .filter(|(cell, _)| !cell.is_empty())
                .map(|(c, name)| (name.as_str(), c))
                .collect()
        })
    }

    fn rows_of(&self, values: &BTreeMap<String, String>) -> impl Iterator<Item = Row<'_>> {
        self.rows().filter(move |row| {
            values.iter().all(|(name, cell)| row.get(name.as_str()) == Some(cell))
        })
    }

    /// The one row whose columns have these values, with its column `figure`. The error is a sentence: none or
    /// several match, or there is no such figure.
    pub(super) fn row(
        &self,
        values: &BTreeMap<String, String>,
        figure: &str,
    ) -> Result<Published, String> {
        self.check_column(figure)?;
        let found: Vec<Row> = self.rows_of(values).collect();
        match found.as_slice() {
            [row] => self.published(row, values, figure),
            [] => Err(self.none_fits(values)),
            rows => {
                let differ = |name: &str| rows.iter().any(|row| row.get(name) != rows[0].get(name));
                let columns = self.columns.iter().map(String::as_str);
                let tell = columns.filter(|name| ![figure, "note"].contains(name) && differ(name));
                let (count, tell) = (rows.len(), tell.collect::<Vec<_>>().join(", "));
                Err(format!("{count} published rows match; these columns tell them apart: {tell}"))
            }
        }
    }

    fn published(
        &self,
        row: &Row,
        values: &BTreeMap<String, String>,
        figure: &str,
    ) -> Result<Published, String> {
        let number = |name: &str| -> Result<Option<f64>, String> {
            let Some(cell) = row.get(name) else { return Ok(None) };
            let number =
                cell.parse().map_err(|_| format!("the published {name} \"{cell}\" is no number"));
            number.map(Some)
        };
        let mut node_rate = None;
        for name in NODE_RATES {
            node_rate = node_rate.or(number(name)?);
        }
        let text = row.get(figure).ok_or_else(|| format!("the published row has no {figure}"))?;
        let info = PublishedInfo {
            node_bytes_per_s: node_rate.map(|rate| rate * 1e6),
            ..self.info(values, figure, text.clone())
        };
        let bytes = number(GIGABYTES)?.map(|gb| (gb * (1u64 << 30) as f64).round() as u64);
        Ok(Published { info, seconds: number(SECONDS)?, bytes, laps: BTreeMap::new() })
    }

    /// A figure as it is printed, without rates and loads.
    fn info(&self, values: &BTreeMap<String, String>, figure: &str, text: String) -> PublishedInfo {
        let found_by: Vec<String> =
            values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        PublishedInfo {
            figure: format!("{}, {figure}", self.name),
            row: found_by.join(", "),
            text,
            node_bytes_per_s: None,
            load: BTreeMap::new(),
            kind: Kind::Predicted,
        }
    }

    /// Whether its rows are figures of loads: a metric, and its value.
    pub(super) fn has_loads(&self) -> bool {
        self.columns.iter().any(|column| column == METRIC)
    }

    /// The figures of the one load whose columns have these values. The error is a sentence.
    pub(super) fn load(&self, values: &BTreeMap<String, String>) -> Result<Published, String> {
        let mut load = BTreeMap::new();
        let mut texts = Vec::new();
        for row in self.rows_of(values) {
            let (Some(metric), Some(cell)) = (row.get(METRIC), row.get(VALUE)) else { continue };
            // Rows without an operation are figures of nodes.
            let (Ok(value), true) = (cell.parse(), row.contains_key(OPERATION)) else { continue };
            if load.insert(metric.clone(), value).is_some() {
                return Err(format!(
                    "several published rows are the {metric} of this load; say which case, selection, revision, lap and \
                     operation"
                ));
            }
            texts.push(format!("{metric} {cell}"));
        }
        if load.is_empty() {
            return Err(self.none_fits(values));
        }
        let info = PublishedInfo { load, ..self.info(values, VALUE, texts.join(", ")) };
        Ok(Published { info, seconds: None, bytes: None, laps: self.laps(values) })
    }

    /// The lowest and the highest of each figure over the laps of which the load with these values is the total.
    fn laps(&self, values: &BTreeMap<String, String>) -> BTreeMap<String, (f64, f64)> {
        let mut laps = BTreeMap::new();
        let mut any_lap = values.clone();
        if any_lap.remove(LAP).is_none_or(|lap| lap != TOTAL) {
            return laps;
        }
        for row in self.rows_of(&any_lap) {
            let is_one =
                row.contains_key(OPERATION) && row.get(LAP).is_some_and(|lap| lap != TOTAL);
            let value = row.get(VALUE).and_then(|cell| cell.parse::<f64>().ok());
            if let (true, Some(metric), Some(value)) = (is_one, row.get(METRIC), value) {
                let (low, high) = laps.entry(metric.clone()).or_insert((value, value));
                (*low, *high) = (low.min(value), high.max(value));
            }
        }
        laps
    }

    /// Says which value no row has, or that only the combination is missing.
    fn none_fits(&self, values: &BTreeMap<String, String>) -> String {
        for (name, value) in values {
            let mut known: Vec<String> =
                self.rows().filter_map(|row| row.get(name.as_str()).cloned()).collect();
            known.sort();
            known.dedup();
            if !known.contains(value) {
                let known = known.join(", ");
                return format!("no published row has {name} = \"{value}\"; there are {known}");
            }
        }
        "no published row has these values together; leave \"published\" out where there is none"
            .to_owned()
    }
}

/// The cells of a line: commas between, quotes around a cell that holds one (RFC 4180, without line
/// breaks in cells, which our files do not have).
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().expect("never empty").push(c),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn every_line_has_every_column() {
        for (name, text) in FILES {
            let table = Table::of(name, text);
            for line in text.lines().skip(1) {
                assert_eq!(cells(line).len(), table.columns.len(), "{name}: {line}");
            }
            assert!(text.lines().count() > 4, "{name}");
        }
    }

    #[test]
    fn finds_the_row() {
        let table = Table::named("remote-recovery").unwrap();
        let row =
            table.row(&values(&[("track", "geopoint"), ("chunk_size", "64kb")]), SECONDS).unwrap();
        assert_eq!((row.seconds, row.bytes), (Some(14384.9), Some(5_261_334_938)));
        assert_eq!(row.info.figure, "remote-recovery, recovery_seconds");
        assert_eq!(row.info.row, "chunk_size = 64kb, track = geopoint");
        // Three indices of 633.5mb, 2gb and 9.9gb.
        let http_logs =
            values(&[("track", "http_logs"), ("commit_or_pr", "808db1f"), ("chunk_size", "1mb")]);
        let row = table.row(&http_logs, SECONDS).unwrap();
        let printed = (633.5 / 1024.0 + 2.0 + 9.9) * f64::from(1 << 30);
        assert!((row.bytes.unwrap() as f64 / printed - 1.0).abs() < 1e-5, "{row:?}");
    }

    #[test]
    fn a_row_may_have_seconds_a_rate_or_words_alone() {
        let table = Table::named("shard-recovery").unwrap();
        let row = |setting: &str| table.row(&values(&[("setting", setting)]), "observed").unwrap();
        let noop = row("disk scheduler noop instead of cfq");
        assert_eq!((noop.seconds, noop.info.node_bytes_per_s), (None, None));
        assert_eq!(noop.info.text, "limit removed (shown as charts)");
        let default = row("indices.recovery.max_bytes_per_sec=20mb (default)");
        assert_eq!(
            (default.seconds, default.info.node_bytes_per_s),
            (Some(604_800.0), Some(20.97e6))
        );
        // 216 782 024 539 bytes at 21:34:59.352, and 217 412 218 715 at 21:35:29.405.
        let slide_13 = 630_194_176.0 / 30.052_412;
        assert!((20.97e6 / slide_13 - 1.0f64).abs() < 1e-3, "{slide_13}");
    }

    #[test]
    fn a_load_has_several_figures() {
        let table = Table::named("replica-selection").unwrap();
        assert!(table.has_loads());
        let mut wanted = values(&[
            ("case", "1-replica-es3-loaded"),
            ("selection", "none"),
            ("revision", "first"),
            ("lap", "total"),
        ]);
        let found = table.load(&wanted).unwrap();
        assert_eq!(found.info.load["Median Throughput"], 41.1558);
        assert_eq!(found.info.load["50th percentile latency"], 411.721);
        assert!(!found.info.load.contains_key("Segment count"));
        assert_eq!(found.laps["Median Throughput"], (38.2174, 42.4385));
        assert!(!found.laps.contains_key("Segment count"));
        let pmc = [("case", "pmc"), ("selection", "none"), ("operation", "term"), ("lap", "total")];
        assert!(table.load(&values(&pmc)).unwrap().laps.is_empty(), "one run has no laps");
        wanted.remove("lap");
        assert!(table.load(&wanted).unwrap_err().starts_with("several published rows"));
        wanted.insert("case".to_owned(), "9-replicas".to_owned());
        assert!(table.load(&wanted).unwrap_err().contains("there are 1-replica, "));
    }

    #[test]
    fn several_rows_are_told_with_the_columns_that_tell_them_apart() {
        let values = values(&[("track", "geopoint"), ("chunk_size", "1mb")]);
        let said = Table::named("remote-recovery").unwrap().row(&values, SECONDS).unwrap_err();
        insta::assert_snapshot!(said, @"2 published rows match; these columns tell them apart: max_concurrent_file_chunks, commit_or_pr");
    }
}
