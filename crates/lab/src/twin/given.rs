//! What machines are like: said on the command line, seen, or assumed.

use std::path::Path;

use record::inventory::{RateOf, SeenRate};
use record::units::{parse_rate, parse_size};
use toml::{Table, Value};
use world::model::Models;

use super::within::{Within, draw, draw_not, is_about, rows};
use super::{TwinPlan, writes};
use crate::error::{Error, Result};

/// Sources of values, which say how each is known: the cluster showed it.
pub(super) const SEEN: &str = "seen";
const SAID: &str = "said on the command line";
const ASSUMED: &str = "assumed";
/// What follows it in a source was seen.
const BUT_SEEN: &str = "; seen: ";
/// The source of a value that was fitted to six cases of `docs/benchmarks/what_if.md`; others judge it.
const FITTED: &str = "fitted to six cases on OpenSearch 2.19.1, two busy cores";
const LINK: &str = "card.bytes_per_s";
const DISK_READ: &str = "disk.read_bytes_per_s";
const DISK_WRITE: &str = "disk.write_bytes_per_s";
/// Time of a copy besides its bytes, in the field; in the embedded engine its steps take their own time.
const OPEN_COPY: &str = "recovery.open_copy";
const NEW_COPY: &str = "recovery.new_copy";
const EACH_FILE: &str = "recovery.each_file";
/// What is assumed of [`EACH_FILE`] where [`OPEN_COPY`] is known: the one that is assumed was fitted to whole copies.
const OF_FILES: &str =
    "assumed: copies of 25 files took 0.1 s longer than of 4, OpenSearch 2.19.1, two busy cores";
/// What the first copies of a node take longer that has just started; nodes of the embedded engine need nothing for it.
const FIRST_COPY: &str = "recovery.first_copy";
/// What a copy waits whose source has not heard of it. Whether that hears in time is a race, so that it may be nothing.
const UNLISTED_COPY: &str = "recovery.unlisted_copy";
const UNLISTED_BETWEEN: (&str, &str) = ("1ms", "1s");
/// How many primaries that move ask a source that has not applied the state yet. That is a race, too: of 21 that moved
/// 5 did (`docs/benchmarks/what_if.md`), so that 8 to 47 % may (95 % confidence). As fewer than half do, the twin as it
/// is assumed has none.
const UNMARKED_SHARE: &str = "recovery.unmarked_share";
const UNMARKED_BETWEEN: (&str, &str) = ("0.08", "0.47");
const OF_PRIMARIES: &str =
    "assumed: 5 of 21 primaries that moved asked again, OpenSearch 2.19.1, two busy cores";
/// What encrypting costs a sender, and decrypting a receiver, where nodes have TLS between them.
const TLS: [&str; 2] = ["cores.encrypt_bytes_per_s", "cores.decrypt_bytes_per_s"];
const TLS_ASSUMED: [&str; 2] = ["800MB/s", "1.1GB/s"];
/// On slower cores, and on faster ones.
const TLS_BETWEEN: (&str, &str) = ("300MB/s", "3GB/s");
const OF_TLS: &str =
    "assumed: measured on OpenSearch 2.19.1, TLS 1.3 with AES-GCM, Java 17, two busy cores";
const RECEIVE: &str = "cores.receive_bytes_per_s";
/// A rate of what is not done.
const UNLIMITED: &str = "unlimited";
/// The option of every parameter that has none of its own.
const ASSUME: &str = "--assume";

/// What the command line says about machines, as plans write it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// What work costs there, as [`calibration`] reads it. What else is said goes before it.
    pub calibration: Table,
    /// Rate of a node's network card.
    pub link: Option<String>,
    /// What a disk reads.
    pub disk_read: Option<String>,
    /// What a disk writes.
    pub disk_write: Option<String>,
    /// Round trip between nodes, in microseconds.
    pub rtt_micros: Option<u64>,
    /// What a copy takes apart from its bytes.
    pub open_copy: Option<Within>,
    /// What a copy takes in addition where it begins without files.
    pub new_copy: Option<Within>,
    /// What each file of a copy takes apart from its bytes and round trips.
    pub each_file: Option<Within>,
    /// What the first copies of a node that has just started take in addition.
    pub first_copy: Option<Within>,
    /// Parameters without an option of their own, with their values, as [`check_parameter`] takes them.
    pub parameters: Vec<(String, String)>,
    /// Documents that are written in a second.
    pub documents_per_s: Option<f64>,
}

/// A value that a twin goes by and nobody has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The parameter.
    pub what: String,
    /// Its value.
    pub value: String,
    /// The bounds that laps draw it from, where there are some.
    pub between: Option<(String, String)>,
    /// What was seen of it: `at least 312MB/s, in a recovery of 4.20 GB in 13.5 s`.
    pub seen: Option<String>,
    /// The option that says it.
    pub option: &'static str,
}

/// A parameter that a twin needs: what it is assumed to be, and between which bounds.
struct Needed {
    parameter: &'static str,
    option: &'static str,
    assumed: &'static str,
    between: Option<(&'static str, &'static str)>,
}

/// What cannot be seen through the API of a cluster.
#[rustfmt::skip]
const NEEDED: [Needed; 8] = [
    Needed { parameter: LINK, option: "--link", assumed: "10gbit", between: Some(("1gbit", "25gbit")) },
    Needed { parameter: DISK_READ, option: "--disk-read", assumed: "500MB/s", between: Some(("150MB/s", "2GB/s")) },
    Needed { parameter: DISK_WRITE, option: "--disk-write", assumed: "400MB/s", between: Some(("100MB/s", "1.5GB/s")) },
    Needed { parameter: "card.delay", option: "--rtt", assumed: "50micros", between: Some(("15micros", "150micros")) },
    Needed { parameter: OPEN_COPY, option: "--open-copy", assumed: "600ms", between: Some(("100ms", "1600ms")) },
    Needed { parameter: EACH_FILE, option: "--each-file", assumed: "5ms", between: Some(("1ms", "15ms")) },
    Needed { parameter: FIRST_COPY, option: "--first-copy", assumed: "1s", between: Some(("300ms", "2s")) },
    Needed { parameter: "cores.count", option: ASSUME, assumed: "4", between: None },
];

/// Writes a parameter into the plan. What is known is uncertain no longer.
pub(super) fn put(plan: &mut TwinPlan, parameter: &str, value: impl Into<Value>, source: &str) {
    let mut row = Table::new();
    row.insert("value".to_owned(), value.into());
    row.insert("source".to_owned(), source.into());
    put_row(plan, parameter, row.into());
}

fn put_row(plan: &mut TwinPlan, parameter: &str, row: Value) {
    let table = plan.entry("virtual").or_insert_with(|| Value::Table(Table::new()));
    if let Some(table) = table.as_table_mut() {
        table.insert(parameter.to_owned(), row);
    }
    if let Some(twin) = twin(plan) {
        draw_not(twin, parameter);
    }
}

fn twin(plan: &mut TwinPlan) -> Option<&mut Table> {
    plan.get_mut("twin")?.as_table_mut()
}

/// The rows of the table that `narrows calibrate` wrote into a file. Fails if it cannot be read, or is no such table.
pub fn calibration(path: &Path) -> Result<Table> {
    let wrong = |why: String| Error::Usage {
        why: format!(
            "cannot take {} for what work costs: {why}; `narrows calibrate --on URL --write FILE` writes such a file",
            path.display()
        ),
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut whole: Table =
        text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let Some(Value::Table(rows)) = whole.remove("virtual") else {
        return Err(wrong("it has no [virtual]".to_owned()));
    };
    for (name, row) in &rows {
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        let (Some(value), Some(_)) = (text("value"), text("source")) else {
            return Err(wrong(format!("{name} has no value or no source")));
        };
        Models::default().set(name, value).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(rows)
}

/// Fails if no parameter has this name, or if it does not take the value or has an option of its own.
pub fn check_parameter(name: &str, value: &str) -> std::result::Result<(), String> {
    Models::default().set(name, value).map_err(|error| error.to_string())?;
    let needed = NEEDED.iter().find(|needed| needed.parameter == name);
    let option = match name {
        NEW_COPY => "--new-copy",
        _ => needed.map_or(ASSUME, |needed| needed.option),
    };
    match option {
        ASSUME => Ok(()),
        _ => Err(format!("say that with {option}")),
    }
}

/// Writes what is said on the command line into the plan.
pub fn say(plan: &mut TwinPlan, given: &Given) {
    let was_fitted = is_fitted(plan);
    for (parameter, row) in &given.calibration {
        if !TLS.contains(&parameter.as_str()) || encrypts(plan, parameter) {
            put_row(plan, parameter, row.clone());
        }
    }
    let has_measured = |parameter: &str| given.calibration.contains_key(parameter);
    let is_in_receiving = has_measured(RECEIVE) && !TLS.into_iter().any(has_measured);
    for parameter in TLS {
        if is_in_receiving && encrypts(plan, parameter) {
            put(plan, parameter, UNLIMITED, "a part of what was measured of receiving");
        }
    }
    let times = [
        (OPEN_COPY, given.open_copy),
        (NEW_COPY, given.new_copy),
        (EACH_FILE, given.each_file),
        (FIRST_COPY, given.first_copy),
    ];
    let said = [
        (LINK, given.link.clone()),
        (DISK_READ, given.disk_read.clone()),
        (DISK_WRITE, given.disk_write.clone()),
        // A round trip goes through four halves of a switch with their cards.
        ("card.delay", given.rtt_micros.map(|micros| format!("{}ns", micros * 1000 / 4))),
    ];
    let written = times.map(|(parameter, time)| (parameter, time.map(Within::written)));
    let others = given.parameters.iter().map(|(name, value)| (name.as_str(), Some(value.clone())));
    for (parameter, value) in said.into_iter().chain(written).chain(others) {
        if let Some(value) = value {
            put(plan, parameter, value, SAID);
        }
    }
    for (parameter, time) in times {
        let bounds = time.and_then(Within::bounds);
        if let Some(((least, most), twin)) = bounds.zip(twin(plan)) {
            draw(twin, parameter, (&least, &most));
        }
    }
    // A twin that was saved gets what the cluster's own would: its files were in the value that is gone now.
    if was_fitted && !is_fitted(plan) {
        assume(plan, true);
    }
    if let Some(documents_per_s) = given.documents_per_s {
        writes::say(plan, documents_per_s);
    }
}

/// Raises what is assumed of links and disks to what was seen of them at least, and says so beside it.
pub(super) fn raise(plan: &mut TwinPlan, seen: &[SeenRate]) {
    for SeenRate { of, bytes_per_s, seen_in } in seen {
        let parameter = match of {
            RateOf::Link => LINK,
            RateOf::DiskRead => DISK_READ,
            RateOf::DiskWrite => DISK_WRITE,
        };
        // Two digits of a rate of few megabytes; rounded down, for it is a bound.
        let at_least = match *bytes_per_s {
            ..100_000 => format!("{}kB/s", bytes_per_s / 1000),
            100_000..10_000_000 => format!("{:.1}MB/s", (bytes_per_s / 100_000) as f64 / 10.0),
            _ => format!("{}MB/s", bytes_per_s / 1_000_000),
        };
        let raise = |value: &mut Value| {
            if value.as_str().and_then(rate_of).is_some_and(|rate| rate < *bytes_per_s) {
                *value = at_least.as_str().into();
            }
        };
        let row = plan.get_mut("virtual").and_then(|table| table.get_mut(parameter));
        let Some(row) = row.and_then(Value::as_table_mut) else { continue };
        if row.get("source").and_then(Value::as_str) != Some(ASSUMED) {
            continue;
        }
        row.get_mut("value").into_iter().for_each(raise);
        let source = format!("{ASSUMED}{BUT_SEEN}at least {at_least}, in {seen_in}");
        row.insert("source".to_owned(), source.into());
        for row in twin(plan).and_then(rows).into_iter().flatten() {
            if is_about(row, parameter) {
                row.get_mut("least").into_iter().for_each(raise);
                row.get_mut("most").into_iter().for_each(raise);
            }
        }
    }
}

/// A rate as links have it, or of a disk, which settings write as a size.
fn rate_of(text: &str) -> Option<u64> {
    parse_rate(text).or_else(|_| parse_size(text)).ok()
}

/// Writes what is neither seen nor said, for nodes of the embedded engine or of the field.
pub(super) fn assume(plan: &mut TwinPlan, is_field: bool) {
    for Needed { parameter, assumed, between, .. } in NEEDED {
        let is_known = plan.get("virtual").is_some_and(|table| table.get(parameter).is_some());
        let is_of_copies = [OPEN_COPY, EACH_FILE, FIRST_COPY].contains(&parameter);
        if is_known || (is_of_copies && !is_field) || (parameter == EACH_FILE && is_fitted(plan)) {
            continue;
        }
        let source = match parameter {
            OPEN_COPY => FITTED,
            EACH_FILE => OF_FILES,
            _ => ASSUMED,
        };
        put(plan, parameter, assumed, source);
        if let Some((bounds, twin)) = between.zip(twin(plan)) {
            draw(twin, parameter, bounds);
        }
    }
}

/// Whether what a copy takes is a value that was fitted to whole copies, with all their files.
fn is_fitted(plan: &TwinPlan) -> bool {
    let source =
        plan.get("virtual").and_then(|table| table.get(OPEN_COPY)?.get("source")?.as_str());
    source == Some(FITTED)
}

/// Writes what TLS between nodes costs, where they have it, or nothing tells whether they do.
pub(super) fn assume_tls(plan: &mut TwinPlan, encrypts: Option<bool>) {
    for (parameter, assumed) in TLS.into_iter().zip(TLS_ASSUMED) {
        match encrypts {
            Some(true) => assume_within(plan, (parameter, assumed, OF_TLS), TLS_BETWEEN),
            Some(false) => {}
            None => put(plan, parameter, UNLIMITED, ASSUMED),
        }
    }
}

/// Whether the nodes of a twin encrypt, or decrypt, what they send each other.
fn encrypts(plan: &TwinPlan, parameter: &str) -> bool {
    let row = plan.get("virtual").and_then(|table| table.get(parameter));
    row.is_some_and(|row| row.get("value").and_then(Value::as_str) != Some(UNLIMITED))
}

/// Writes how long copies of OpenSearch 2 wait whose source has not heard of them.
pub(super) fn assume_unlisted(plan: &mut TwinPlan) {
    assume_within(plan, (UNLISTED_COPY, UNLISTED_BETWEEN.1, ASSUMED), UNLISTED_BETWEEN);
}

/// Writes how many primaries of OpenSearch 2 that move wait because their source has not heard of that.
pub(super) fn assume_unmarked(plan: &mut TwinPlan) {
    assume_within(plan, (UNMARKED_SHARE, "0", OF_PRIMARIES), UNMARKED_BETWEEN);
}

fn assume_within(
    plan: &mut TwinPlan,
    (parameter, assumed, source): (&str, &str, &str),
    between: (&str, &str),
) {
    if plan.get("virtual").is_some_and(|table| table.get(parameter).is_some()) {
        return;
    }
    put(plan, parameter, assumed, source);
    if let Some(twin) = twin(plan) {
        draw(twin, parameter, between);
    }
}

/// What the plan goes by, for what it asks, that nobody has seen or said.
pub fn assumptions(plan: &TwinPlan) -> Vec<Assumption> {
    let parameters = plan.get("virtual").and_then(Value::as_table);
    let uncertain =
        plan.get("twin").and_then(|twin| twin.get("uncertain")).and_then(Value::as_array);
    let between = |parameter: &str| {
        let row = uncertain?.iter().find(|row| is_about(row, parameter))?;
        Some((row.get("least")?.as_str()?.to_owned(), row.get("most")?.as_str()?.to_owned()))
    };
    let asks = |key: &str| plan.get("twin").is_some_and(|twin| twin.get(key).is_some());
    // A plan that is saved keeps what is not asked for: it may be asked for a restart later.
    let matters = |name: &str| match name {
        FIRST_COPY => asks("restart"),
        UNMARKED_SHARE => asks("drain") || asks("add"),
        _ => true,
    };
    let one = |(name, row): (&String, &Value)| {
        if !matters(name) {
            return None;
        }
        let source = row.get("source").and_then(Value::as_str)?;
        if ![ASSUMED, FITTED].iter().any(|start| source.starts_with(start)) {
            return None;
        }
        let option = NEEDED.iter().find(|needed| needed.parameter == name);
        let value = row.get("value")?;
        let seen = source.split_once(BUT_SEEN).map(|(_, seen)| seen.to_owned());
        Some(Assumption {
            what: name.clone(),
            value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            between: between(name),
            seen,
            option: option.map_or(ASSUME, |needed| needed.option),
        })
    };
    parameters.into_iter().flatten().filter_map(one).collect()
}
