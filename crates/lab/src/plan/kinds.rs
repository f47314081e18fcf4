//! What our figure beside a published one is worth: derived from what was fitted, and from which figures follow from
//! others.

use std::collections::BTreeMap;

use record::Kind;

/// Where the figure of a row comes from, if not from the model alone.
enum From {
    /// From the same arithmetic as this row. Where a value was fitted to that one, it was to this one, too.
    Row(&'static str),
    /// From this setting, and the bytes that it holds back.
    Setting(&'static str),
}

/// A row that follows from something else.
struct Follows {
    row: &'static str,
    from: From,
    #[cfg_attr(not(test), expect(dead_code, reason = "for who reads the list"))]
    why: &'static str,
}

const HTTP_LOGS_7: From = From::Row("remote-recovery-http-logs / 7: 5 MB x 8, Java 11");
const LINK: &str =
    "12.5 GB over the link's rate, which holds all of them for over 80 % of the time";

const FOLLOWS: [Follows; 5] = [
    Follows { row: "remote-recovery-http-logs / 4: 5 MB x 5", from: HTTP_LOGS_7, why: LINK },
    Follows { row: "remote-recovery-http-logs / 5: 1 MB x 10", from: HTTP_LOGS_7, why: LINK },
    Follows { row: "remote-recovery-http-logs / 6: 5 MB x 8", from: HTTP_LOGS_7, why: LINK },
    Follows {
        row: "dcp-rebalance / data-copy, fast (measuring device)",
        from: From::Row("dcp-rebalance / producer alone"),
        why: "the fast consumer takes all that the producer sends",
    },
    Follows {
        row: "shard-recovery / 20mb, the default",
        from: From::Setting("indices.recovery.max_bytes_per_sec"),
        why: "3.2 TB for each of four nodes, one after the other, at 20 MB/s are a week",
    },
];

/// A row as `calibrated_on` names it.
pub(super) fn row_name(plan: &str, variant: &str) -> String {
    format!("{plan} / {variant}")
}

/// The kind of a row. `fitted` are the rows that values of its plan were fitted to.
pub(super) fn kind(row: &str, settings: &BTreeMap<String, String>, fitted: &[String]) -> Kind {
    let is_fitted = |row: &str| fitted.iter().any(|fitted| fitted == row);
    let follows = FOLLOWS.iter().find(|follows| follows.row == row).map(|follows| &follows.from);
    match follows {
        _ if is_fitted(row) => Kind::Calibrated,
        Some(From::Row(from)) if is_fitted(from) => Kind::Calibrated,
        Some(From::Setting(name)) if settings.get(*name).is_some_and(|value| value != "-1") => {
            Kind::Implied
        }
        _ => Kind::Predicted,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::plan::all_resolved;

    /// Every file of a plan or a test bed, with its tables.
    fn files() -> Vec<(String, toml::Table)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        let files =
            |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files(folder.clone())
            .chain(files(folder.join("test-beds")))
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| {
                let text = std::fs::read_to_string(&path).unwrap();
                (path.file_stem().unwrap().to_str().unwrap().to_owned(), text.parse().unwrap())
            })
            .collect()
    }

    /// Every table below `value`, with the key that it stands at.
    fn tables<'a>(
        key: &'a str,
        value: &'a toml::Value,
        found: &mut Vec<(&'a str, &'a toml::Table)>,
    ) {
        match value {
            toml::Value::Table(table) => {
                found.push((key, table));
                table.iter().for_each(|(key, value)| tables(key, value, found));
            }
            toml::Value::Array(values) => values.iter().for_each(|v| tables(key, v, found)),
            _ => {}
        }
    }

    fn calibrated_on(table: &toml::Table) -> Vec<String> {
        let rows = table.get("calibrated_on").and_then(toml::Value::as_array);
        let text = |row: &toml::Value| row.as_str().unwrap().to_owned();
        rows.map(|rows| rows.iter().map(text).collect()).unwrap_or_default()
    }

    /// Words in the source of a value, or in the comment above it, by which it is known to be fitted.
    const FITTED: [&str; 5] =
        ["fitted", "not published", "chosen", "searches a second", "cores of the "];

    #[test]
    fn every_fitted_value_names_its_rows() {
        let rows: BTreeSet<String> = all_resolved()
            .iter()
            .flat_map(|plan| plan.variants.iter().map(|v| row_name(&plan.name, &v.name)))
            .collect();
        let files = files();
        let mut parameters = Vec::new();
        let mut wrong = Vec::new();
        for (file, document) in &files {
            let mut found = Vec::new();
            document.iter().for_each(|(key, value)| tables(key, value, &mut found));
            for (key, table) in found {
                let on = calibrated_on(table);
                for row in on.iter().filter(|row| !rows.contains(*row)) {
                    wrong.push(format!("{file}, {key}: there is no row {row}"));
                }
                let source = table.get("source").and_then(toml::Value::as_str);
                if let Some((source, value)) = source.zip(table.get("value")) {
                    let fitted = FITTED.iter().any(|word| source.contains(word));
                    if fitted && on.is_empty() {
                        wrong.push(format!("{file}, {key}: \"{source}\", and no calibrated_on"));
                    }
                    parameters.push((file, key, value.to_string(), on));
                }
            }
        }
        // A value that was fitted for one test bed is fitted where another one has it, too.
        for (file, key, value, on) in &parameters {
            let fitted = parameters.iter().find(|(_, other, same, fitted)| {
                (other, same) == (key, value) && !fitted.is_empty()
            });
            if let Some((other, .., rows)) = fitted.filter(|_| on.is_empty()) {
                wrong.push(format!("{file}, {key}: {other} has it fitted to {rows:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(parameters.iter().filter(|(.., on)| !on.is_empty()).count() > 10);
    }

    /// How many segments an index has is published nowhere. Eight a shard, each half as large as the next larger one,
    /// is what a tiered merge leaves; anything else was chosen, if only because it fits.
    #[test]
    fn segments_other_than_those_of_a_merge_name_the_row_they_were_chosen_by() {
        let mut wrong = Vec::new();
        for (file, document) in files() {
            let published = |value: &toml::Value| value.get("published").is_some();
            let variants = document.get("variant").and_then(toml::Value::as_array);
            // Searches do not depend on how a shard is cut; slides show no seconds that could be met.
            if !variants.is_some_and(|all| all.iter().any(published))
                || ["replica-selection", "replica-selection-pmc"].contains(&file.as_str())
                || ["shard-recovery", "shard-recovery-raised"].contains(&file.as_str())
            {
                continue;
            }
            let indices = document.get("index").and_then(toml::Value::as_array);
            for index in indices.into_iter().flatten() {
                let full = index["full"].as_table().unwrap();
                let a_shard =
                    full["segments"].as_integer().unwrap() / index["shards"].as_integer().unwrap();
                let ratio = full.get("segment_ratio").and_then(toml::Value::as_float);
                let merged = a_shard == 8 && ratio.is_none_or(|ratio| ratio == 0.5);
                if !merged && calibrated_on(full).is_empty() {
                    wrong.push(format!("{file}, {}: {a_shard} a shard, {ratio:?}", index["name"]));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn no_plan_has_a_seed_of_its_own_choice() {
        for plan in all_resolved() {
            assert_eq!(plan.seed, 42, "{}: a seed that differs was chosen by a result", plan.name);
        }
    }

    #[test]
    fn kinds_are_derived() {
        let plans = all_resolved();
        let kinds: BTreeMap<String, Kind> = plans
            .iter()
            .flat_map(|plan| {
                plan.variants.iter().filter_map(|variant| {
                    let published = variant.published.as_ref()?;
                    Some((row_name(&plan.name, &variant.name), published.info.kind))
                })
            })
            .collect();
        let of = |kind: Kind| -> Vec<&str> {
            kinds.iter().filter(|(_, k)| **k == kind).map(|(row, _)| row.as_str()).collect()
        };
        assert_eq!(
            of(Kind::Calibrated),
            [
                "dcp-rebalance / data-copy, fast (measuring device)",
                "dcp-rebalance / data-copy, mainstream",
                "dcp-rebalance / producer alone",
                "dcp-rebalance / rebalance, mainstream",
                "remote-recovery / 1 MB x 5",
                "remote-recovery / 64 KB x 1",
                "remote-recovery-http-logs / 1: 1 MB x 5, files",
                "remote-recovery-http-logs / 4: 5 MB x 5",
                "remote-recovery-http-logs / 5: 1 MB x 10",
                "remote-recovery-http-logs / 6: 5 MB x 8",
                "remote-recovery-http-logs / 7: 5 MB x 8, Java 11",
                "replica-selection / 1 replica, all nodes: none",
                "replica-selection / 1 replica: none",
                "replica-selection / 4 replicas: none",
                "replica-selection-pmc / articles_monthly_agg_cached: none",
                "replica-selection-pmc / articles_monthly_agg_uncached: none",
                "replica-selection-pmc / default: none",
                "replica-selection-pmc / phrase: none",
                "replica-selection-pmc / term: none",
                "small-nodes-compression / compressed",
                "small-nodes-compression / plain",
            ]
        );
        assert_eq!(of(Kind::Implied), ["shard-recovery / 20mb, the default"]);
        for follows in &FOLLOWS {
            assert!(kinds.contains_key(follows.row), "{} ({})", follows.row, follows.why);
        }
    }

    #[test]
    fn a_row_follows_only_from_what_was_fitted_or_set() {
        let row = "remote-recovery-http-logs / 4: 5 MB x 5";
        let seventh = "remote-recovery-http-logs / 7: 5 MB x 8, Java 11".to_owned();
        let none = BTreeMap::new();
        assert_eq!(kind(row, &none, &[]), Kind::Predicted);
        assert_eq!(kind(row, &none, &[seventh]), Kind::Calibrated);
        let slides = "shard-recovery / 20mb, the default";
        let set = |value: &str| {
            BTreeMap::from([("indices.recovery.max_bytes_per_sec".to_owned(), value.to_owned())])
        };
        assert_eq!(kind(slides, &set("20mb"), &[]), Kind::Implied);
        assert_eq!(kind(slides, &set("-1"), &[]), Kind::Predicted);
    }
}
