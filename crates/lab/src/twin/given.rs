//! What machines are like: said on the command line, seen, or assumed.

use toml::{Table, Value};

use super::TwinPlan;

const SEEN: &str = "seen";
const SAID: &str = "said on the command line";
const ASSUMED: &str = "assumed";
/// From six of the cases of `docs/benchmarks/what_if.md` that other cases are judged by.
const FITTED: &str = "fitted to six cases on OpenSearch 2.19.1, two busy cores";
/// What a copy takes apart from its bytes in the field. Nodes of the embedded engine take what their steps take.
const OPEN_COPY: &str = "recovery.open_copy";
const NEW_COPY: &str = "recovery.new_copy";
/// Where a value is changed that has no option.
const IN_THE_PLAN: &str = "in the plan";

/// What the command line says about machines, as plans write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Rate of a node's network card.
    pub link: Option<String>,
    /// What a disk reads.
    pub disk_read: Option<String>,
    /// What a disk writes.
    pub disk_write: Option<String>,
    /// Round trip between nodes, in microseconds.
    pub rtt_micros: Option<u64>,
    /// What a copy takes apart from its bytes.
    pub open_copy: Option<String>,
    /// What it takes besides where it begins without files.
    pub new_copy: Option<String>,
}

/// How a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The cluster showed it.
    Seen,
    /// The command line said it.
    Said,
    /// Nobody knows.
    Assumed,
    /// It makes other clusters come out right.
    Fitted,
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
const NEEDED: [Needed; 6] = [
    Needed {
        parameter: "card.bytes_per_s",
        option: "--link",
        assumed: "10gbit",
        between: Some(("1gbit", "25gbit")),
    },
    Needed {
        parameter: "disk.read_bytes_per_s",
        option: "--disk-read",
        assumed: "500MB/s",
        between: Some(("150MB/s", "2GB/s")),
    },
    Needed {
        parameter: "disk.write_bytes_per_s",
        option: "--disk-write",
        assumed: "400MB/s",
        between: Some(("100MB/s", "1.5GB/s")),
    },
    Needed {
        parameter: "card.delay",
        option: "--rtt",
        assumed: "50micros",
        between: Some(("15micros", "150micros")),
    },
    Needed {
        parameter: OPEN_COPY,
        option: "--open-copy",
        assumed: "600ms",
        between: Some(("100ms", "1600ms")),
    },
    Needed { parameter: "cores.count", option: IN_THE_PLAN, assumed: "4", between: None },
];

impl Known {
    fn word(self) -> &'static str {
        match self {
            Known::Seen => SEEN,
            Known::Said => SAID,
            Known::Assumed => ASSUMED,
            Known::Fitted => FITTED,
        }
    }
}

/// Writes a parameter into the plan. What is known is uncertain no longer.
pub(super) fn put(plan: &mut TwinPlan, parameter: &str, value: impl Into<Value>, known: Known) {
    let table = plan.entry("virtual").or_insert_with(|| Value::Table(Table::new()));
    if let Some(table) = table.as_table_mut() {
        let mut row = Table::new();
        row.insert("value".to_owned(), value.into());
        row.insert("source".to_owned(), known.word().into());
        table.insert(parameter.to_owned(), row.into());
    }
    if let Some(uncertain) = uncertain(plan) {
        uncertain.retain(|row| row.get("parameter").and_then(Value::as_str) != Some(parameter));
    }
}

fn uncertain(plan: &mut TwinPlan) -> Option<&mut Vec<Value>> {
    let twin = plan.get_mut("twin")?.as_table_mut()?;
    twin.entry("uncertain").or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
}

/// Writes what is said on the command line into the plan.
pub fn say(plan: &mut TwinPlan, given: &Given) {
    let said = [
        ("card.bytes_per_s", given.link.clone()),
        ("disk.read_bytes_per_s", given.disk_read.clone()),
        ("disk.write_bytes_per_s", given.disk_write.clone()),
        // A round trip goes through four halves of a switch with their cards.
        ("card.delay", given.rtt_micros.map(|micros| format!("{}ns", micros * 1000 / 4))),
        (OPEN_COPY, given.open_copy.clone()),
        (NEW_COPY, given.new_copy.clone()),
    ];
    for (parameter, value) in said {
        if let Some(value) = value {
            put(plan, parameter, value, Known::Said);
        }
    }
}

/// Writes what is neither seen nor said, for nodes of the embedded engine or of the field.
pub(super) fn assume(plan: &mut TwinPlan, is_field: bool) {
    for Needed { parameter, assumed, between, .. } in NEEDED {
        let is_known = plan.get("virtual").is_some_and(|table| table.get(parameter).is_some());
        if is_known || (parameter == OPEN_COPY && !is_field) {
            continue;
        }
        put(
            plan,
            parameter,
            assumed,
            if parameter == OPEN_COPY { Known::Fitted } else { Known::Assumed },
        );
        if let (Some((least, most)), Some(uncertain)) = (between, uncertain(plan)) {
            let mut row = Table::new();
            row.insert("parameter".to_owned(), parameter.into());
            row.insert("least".to_owned(), least.into());
            row.insert("most".to_owned(), most.into());
            uncertain.push(row.into());
        }
    }
}

/// What the plan goes by that nobody has seen or said.
pub fn assumptions(plan: &TwinPlan) -> Vec<Assumption> {
    let parameters = plan.get("virtual").and_then(Value::as_table);
    let uncertain =
        plan.get("twin").and_then(|twin| twin.get("uncertain")).and_then(Value::as_array);
    let between = |parameter: &str| {
        let row = uncertain?
            .iter()
            .find(|row| row.get("parameter").and_then(Value::as_str) == Some(parameter))?;
        Some((row.get("least")?.as_str()?.to_owned(), row.get("most")?.as_str()?.to_owned()))
    };
    let one = |(name, row): (&String, &Value)| {
        let source = row.get("source").and_then(Value::as_str)?;
        if ![ASSUMED, FITTED].iter().any(|start| source.starts_with(start)) {
            return None;
        }
        let option = NEEDED.iter().find(|needed| needed.parameter == name);
        let value = row.get("value")?;
        Some(Assumption {
            what: name.clone(),
            value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            between: between(name),
            option: option.map_or(IN_THE_PLAN, |needed| needed.option),
        })
    };
    parameters.into_iter().flatten().filter_map(one).collect()
}
