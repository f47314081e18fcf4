//! Loads, operations and faults of a plan, from plain data to values with units.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use clusters::FaultKind;
use record::units::{parse_duration, parse_size};
use serde_json::json;
use toml::{Spanned, Value};

use super::Plan;
use super::document::{CostTable, FaultTable, LoadTable, OperationTable};
use super::fault::{Fault, LINK};
use super::resolve::LAPS;
use super::resolved::{FullLoad, LoadUse};
use crate::Error;
use crate::choices::unknown;
use crate::load::{Arrival, Check, Content, Draw, Extent, Operation};

const CLIENTS: RangeInclusive<i64> = 1..=10_000;
const REQUESTS: RangeInclusive<i64> = 1..=1_000_000_000_000;
const RATES: RangeInclusive<f64> = 1e-3..=1e7;
const FACTORS: RangeInclusive<f64> = 1.0..=1e6;
const PROCESSES: RangeInclusive<i64> = 1..=100_000;
const THREADS: RangeInclusive<i64> = 1..=64;
const COST_DOCUMENTS: RangeInclusive<i64> = 0..=1_000_000_000_000;
const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(366 * 86_400);
/// Where a plan does not say it.
const TIMEOUT: Duration = Duration::from_secs(60);
const WINDOW: Duration = Duration::from_secs(1);

/// What a variant says, and what the plan does.
#[derive(Clone, Copy)]
struct Tables<'a>(Option<&'a LoadTable>, Option<&'a LoadTable>);

impl<'a> Tables<'a> {
    fn get<T>(self, of: impl Fn(&'a LoadTable) -> Option<T>) -> Option<T> {
        self.0.and_then(&of).or_else(|| self.1.and_then(of))
    }
}

impl Plan {
    /// The load of a variant: the plan's, changed by what the variant says of its own. None where neither has one.
    pub(super) fn load(
        &self,
        own: Option<&Spanned<LoadTable>>,
        nodes: &[String],
        scale: f64,
    ) -> Result<Option<LoadUse>, Error> {
        let common = self.document.load.as_ref();
        let Some(any) = own.or(common) else { return Ok(None) };
        let tables = Tables(own.map(Spanned::get_ref), common.map(Spanned::get_ref));
        let lacks = |message: &str| self.error(any.span(), message);
        let named = tables.get(|table| table.operations.as_ref());
        let named =
            named.ok_or_else(|| lacks("a load names its operations: operations = [\"search\"]"))?;
        let operations = self.operations_called(named)?;
        let clients = tables.get(|table| table.clients.as_ref());
        let clients = clients.ok_or_else(|| lacks("a load says how many clients it has"))?;
        let measured = tables.get(|table| table.measured.as_ref()).ok_or_else(|| {
            lacks("a load says what is measured: a time (\"30s\") or a number of requests")
        })?;
        let warm_up = tables.get(|table| table.warm_up.as_ref());
        let asked = tables.get(|table| table.nodes.as_ref());
        let threads = tables.get(|table| table.threads.as_ref());
        let time = |what: &str, text: Option<&Spanned<String>>, default| match text {
            Some(text) => self.load_time(what, text),
            None => Ok(default),
        };
        let rate = tables.get(|table| table.rate.as_ref());
        let warm_up = warm_up.map_or(Ok(Extent::NONE), |value| self.extent("warm_up", value))?;
        let measured = self.extent("measured", measured)?;
        let full = tables.get(|table| table.full.as_ref());
        let of_full = match full.and_then(|full| full.warm_up.as_ref()) {
            Some(value) => self.extent("warm_up", value)?,
            None => warm_up,
        };
        let laps = full.and_then(|full| full.laps.as_ref());
        let full = FullLoad {
            laps: laps.map(|laps| self.number("laps", laps, LAPS)).transpose()?,
            operations: self.as_costs(named)?,
            warm_up: of_full.scaled(scale),
            measured: match full {
                Some(full) => self.extent("measured", &full.measured)?,
                None => measured,
            }
            .scaled(scale),
        };
        Ok(Some(LoadUse {
            operations,
            full,
            clients: self.number("clients", clients, CLIENTS)?,
            arrival: self.arrival(rate, tables.get(|table| table.arrival.as_ref()))?,
            warm_up,
            measured,
            timeout: time("timeout", tables.get(|table| table.timeout.as_ref()), TIMEOUT)?,
            window: time("window", tables.get(|table| table.window.as_ref()), WINDOW)?,
            nodes: asked.map_or(Ok(Vec::new()), |asked| self.nodes_called(asked, nodes))?,
            threads: threads.map_or(Ok(1), |threads| self.number("threads", threads, THREADS))?,
        }))
    }

    fn load_time(&self, what: &str, text: &Spanned<String>) -> Result<Duration, Error> {
        let time = self.unit(text, parse_duration)?;
        self.within(what, text, &time, &(MILLISECOND..=DAY), |time| format!("{time:?}"))?;
        Ok(time)
    }

    fn arrival(
        &self,
        rate: Option<&Spanned<f64>>,
        arrival: Option<&Spanned<String>>,
    ) -> Result<Arrival, Error> {
        let name = arrival.map(|arrival| arrival.get_ref().as_str());
        let Some(rate) = rate else {
            return match arrival {
                Some(arrival) if name != Some("closed") => {
                    let message = "starts that follow a clock need a rate: rate = 500";
                    Err(self.error(arrival.span(), message))
                }
                _ => Ok(Arrival::Closed),
            };
        };
        let rate_per_s = *rate.get_ref();
        self.within("rate", rate, &rate_per_s, &RATES, f64::to_string)?;
        match name {
            None | Some("deterministic") => Ok(Arrival::Deterministic { rate_per_s }),
            Some("poisson") => Ok(Arrival::Poisson { rate_per_s }),
            // A variant may take the plan's rate away.
            Some("closed") => Ok(Arrival::Closed),
            Some(other) => {
                let names = ["closed", "deterministic", "poisson"];
                let said = unknown("no arrival is called", other, "Arrivals", &names);
                Err(self.error(arrival.expect("it has a name").span(), said))
            }
        }
    }

    /// A time as text, or a number of requests.
    fn extent(&self, what: &str, value: &Spanned<Value>) -> Result<Extent, Error> {
        match value.get_ref() {
            Value::Integer(requests) => {
                let spanned = Spanned::new(value.span(), *requests);
                Ok(Extent::Requests(self.number(what, &spanned, REQUESTS)?))
            }
            Value::String(text) => {
                let spanned = Spanned::new(value.span(), text.clone());
                Ok(Extent::Time(self.load_time(what, &spanned)?))
            }
            other => {
                let found = other.type_str();
                let message =
                    format!("{what} is a time (\"30s\") or a number of requests, found {found}");
                Err(self.error(value.span(), message))
            }
        }
    }

    fn nodes_called(
        &self,
        asked: &[Spanned<String>],
        nodes: &[String],
    ) -> Result<Vec<String>, Error> {
        let one = |name: &Spanned<String>| self.node_called(name, nodes);
        asked.iter().map(one).collect()
    }

    fn node_called(&self, name: &Spanned<String>, nodes: &[String]) -> Result<String, Error> {
        if nodes.contains(name.get_ref()) {
            return Ok(name.get_ref().clone());
        }
        let known: Vec<&str> = nodes.iter().map(String::as_str).collect();
        Err(self.error(name.span(), unknown("no node is called", name.get_ref(), "Nodes", &known)))
    }

    fn operations_called(&self, named: &[Spanned<String>]) -> Result<Vec<Operation>, Error> {
        let known: Vec<&str> =
            self.document.operation.iter().map(|table| table.name.get_ref().as_str()).collect();
        let one = |name: &Spanned<String>| {
            let found = self.document.operation.iter().find(|t| t.name.get_ref() == name.get_ref());
            match found {
                Some(table) => self.operation(table),
                None => {
                    let said =
                        unknown("no operation is called", name.get_ref(), "Operations", &known);
                    Err(self.error(name.span(), said))
                }
            }
        };
        named.iter().map(one).collect()
    }

    /// The same operations where indices are loaded by their sizes: searches that count, at the cost that their table
    /// declares. Other requests are what they are.
    fn as_costs(&self, named: &[Spanned<String>]) -> Result<Vec<Operation>, Error> {
        let mut operations = Vec::new();
        for table in &self.document.operation {
            let operation = self.operation(table)?;
            operations.push(match &operation.content {
                Content::Pattern { check: Check::Search, .. } => {
                    let body = match &table.cost {
                        Some(cost) => self.cost(cost)?,
                        None => json!({ "size": 0 }).to_string(),
                    };
                    Operation::search(&operation.name, &self.index_of(table), vec![body])
                }
                _ => operation,
            });
        }
        let of = |name: &Spanned<String>| operations.iter().find(|o| o.name == *name.get_ref());
        Ok(named.iter().filter_map(of).cloned().collect())
    }

    fn cost(&self, table: &CostTable) -> Result<String, Error> {
        let documents: u64 = match &table.documents {
            Some(documents) => self.number("documents", documents, COST_DOCUMENTS)?,
            None => 0,
        };
        let bytes = match &table.bytes {
            Some(bytes) => self.unit(bytes, parse_size)?,
            None => 0,
        };
        let cost = json!({ "documents": documents, "bytes": bytes });
        Ok(json!({ "size": 0, "ext": { "narrows": { "cost": cost } } }).to_string())
    }

    fn index_of(&self, table: &OperationTable) -> String {
        table.index.clone().unwrap_or_else(|| {
            let names = self.document.index.iter();
            names.map(|index| index.name.get_ref().as_str()).collect::<Vec<_>>().join(",")
        })
    }

    fn operation(&self, table: &OperationTable) -> Result<Operation, Error> {
        let index = self.index_of(table);
        let mut parameters = BTreeMap::new();
        for (name, values) in &table.parameters {
            parameters.insert(name.get_ref().clone(), self.draw(values)?);
        }
        let path = table.path.clone().unwrap_or_else(|| "/{index}/_search".to_owned());
        let path = path.replace("{index}", &index);
        let bodies: Vec<String> = table.body.iter().chain(&table.bodies).cloned().collect();
        let default = if bodies.is_empty() && !path.contains("_search") { "GET" } else { "POST" };
        let check = if path.contains("_search") { Check::Search } else { Check::Status };
        let method = table.method.as_deref().unwrap_or(default).to_uppercase();
        let content = Content::Pattern { method, path, bodies, parameters, check };
        let operation = Operation { name: table.name.get_ref().clone(), content };
        match operation.requests(0, 0, 1) {
            Ok(_) => Ok(operation),
            Err(error) => Err(self.error(table.name.span(), error.to_string())),
        }
    }

    /// `{ from = 1, to = 100 }`, or a list of texts and numbers.
    fn draw(&self, values: &Spanned<Value>) -> Result<Draw, Error> {
        let wrong = || {
            let message = "a parameter is a range { from = 1, to = 100 } or a list of values";
            self.error(values.span(), message)
        };
        match values.get_ref() {
            Value::Table(range) => {
                let end = |name: &str| range.get(name).and_then(Value::as_integer);
                match (end("from"), end("to")) {
                    (Some(from), Some(to)) if from <= to && range.len() == 2 => {
                        Ok(Draw::Integer { from, to })
                    }
                    _ => Err(wrong()),
                }
            }
            Value::Array(list) if !list.is_empty() => {
                let texts: Result<Vec<String>, _> = list.iter().map(super::scalar::text).collect();
                texts.map(Draw::Choice).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }

    /// The faults of the plan, then those of a variant.
    pub(super) fn faults(&self, own: &[FaultTable], nodes: &[String]) -> Result<Vec<Fault>, Error> {
        self.document.fault.iter().chain(own).map(|table| self.fault(table, nodes)).collect()
    }

    /// A fault. `nodes` are the names that it may befall: nodes, and clusters.
    pub(super) fn fault(&self, table: &FaultTable, nodes: &[String]) -> Result<Fault, Error> {
        let kind = &table.kind;
        let lacks = |message: &str| self.error(kind.span(), message);
        let kind = match kind.get_ref().as_str() {
            "slow" => FaultKind::Slow { factor: self.factor(table)? },
            "load" => FaultKind::Load {
                processes: match &table.processes {
                    Some(processes) => self.number("processes", processes, PROCESSES)?,
                    None => return Err(lacks("say how many processes: processes = 32")),
                },
                factor: self.factor(table)?,
            },
            "pause" => FaultKind::Pause,
            "cut" => FaultKind::Cut,
            "fail" => FaultKind::Fail,
            "stop" => FaultKind::Stop,
            "kill" => FaultKind::Kill,
            "full_disk" => {
                let free = table.free.as_ref();
                let free = free.ok_or_else(|| lacks("say what is left: free = \"100mb\""))?;
                FaultKind::FullDisk { free_bytes: self.unit(free, parse_size)? }
            }
            "clock" => {
                let by = table.by.as_ref();
                let by = by.ok_or_else(|| lacks("say how far: by = \"1h\", or by = \"-1h\""))?;
                FaultKind::Clock { by_ms: self.jump(by)? }
            }
            other => {
                let said = unknown("no fault is called", other, "Faults", &FaultKind::NAMES);
                return Err(self.error(kind.span(), said));
            }
        };
        let has_factor = matches!(kind, FaultKind::Slow { .. } | FaultKind::Load { .. });
        if let (Some(factor), false) = (&table.factor, has_factor) {
            return Err(self.error(factor.span(), "only \"slow\" and \"load\" have a factor"));
        }
        let has_processes = matches!(kind, FaultKind::Load { .. });
        if let (Some(processes), false) = (&table.processes, has_processes) {
            return Err(self.error(processes.span(), "only \"load\" has processes"));
        }
        if let (Some(free), false) = (&table.free, matches!(kind, FaultKind::FullDisk { .. })) {
            return Err(self.error(free.span(), "only \"full_disk\" leaves room free"));
        }
        if let (Some(by), false) = (&table.by, matches!(kind, FaultKind::Clock { .. })) {
            return Err(self.error(by.span(), "only a \"clock\" is set by a time"));
        }
        let at = table.at.as_ref().map(|at| self.unit(at, parse_duration)).transpose()?;
        let lasts = table.lasts.as_ref().map(|lasts| self.load_time("lasts", lasts)).transpose()?;
        let node = match (&table.node, kind) {
            (None, FaultKind::Cut) if self.document.link.is_some() => LINK.to_owned(),
            (None, FaultKind::Cut) => {
                return Err(lacks("say which node is cut off; the plan has no [link] to cut"));
            }
            (Some(node), _) => self.node_called(node, nodes)?,
            (None, _) => {
                let message =
                    "say whom the fault befalls: a node, or a cluster for all of its nodes";
                return Err(lacks(message));
            }
        };
        Ok(Fault { node, kind, at: at.unwrap_or_default(), lasts })
    }

    /// How far a clock jumps, in milliseconds; back where it begins with a minus.
    fn jump(&self, by: &Spanned<String>) -> Result<i64, Error> {
        let (sign, text) = match by.get_ref().strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, by.get_ref().as_str()),
        };
        let time = self.unit(&Spanned::new(by.span(), text.to_owned()), parse_duration)?;
        self.within("by", by, &time, &(MILLISECOND..=YEAR), |time| format!("{time:?}"))?;
        Ok(sign * time.as_millis() as i64)
    }

    fn factor(&self, table: &FaultTable) -> Result<f64, Error> {
        let Some(factor) = &table.factor else {
            return Err(self.error(table.kind.span(), "say how slow: factor = 4"));
        };
        self.within("factor", factor, factor.get_ref(), &FACTORS, f64::to_string)?;
        Ok(*factor.get_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Resolved, Step};

    const TEXT: &str = r#"
name = "my-load"
about = "A load."
steps = ["start", "index", "load"]
laps = 2
sample = "1s"
seed = 42

[leader]
nodes = 3

[corpus]
name = "pmc"
documents = 1000
bulk_documents = 100
clients = 2

[[index]]
name = "pmc"
shards = 3
replicas = 1

[[operation]]
name = "term"
body = '{"query":{"term":{"body":"{{word}}"}}}'
parameters = { word = ["physician", "cell"] }

[[operation]]
name = "health"
path = "/_cluster/health"

[load]
operations = ["term"]
clients = 100
warm_up = 500
measured = "30s"

[[variant]]
name = "closed"

[[variant]]
name = "open"
[variant.load]
rate = 200.0
arrival = "poisson"
operations = ["health", "term"]
nodes = ["leader-0"]
[[variant.fault]]
node = "leader-2"
kind = "slow"
factor = 4.0
at = "5s"
lasts = "10s"
"#;

    fn resolve(text: &str) -> Result<Resolved, Error> {
        Plan::parse("my.toml", text).and_then(|plan| plan.resolve(1.0, |_, _| Ok(())))
    }

    fn said(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from), "{from}");
        resolve(&TEXT.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn a_variant_changes_what_it_says_and_keeps_the_rest() {
        let plan = resolve(TEXT).unwrap();
        assert_eq!(plan.way(), Some(Step::Load));
        let load = |n: usize| plan.variants[n].load.clone().unwrap();
        assert_eq!((load(0).clients, load(0).arrival), (100, Arrival::Closed));
        assert_eq!(load(0).measured, Extent::Time(Duration::from_secs(30)));
        assert_eq!(load(1).arrival, Arrival::Poisson { rate_per_s: 200.0 });
        assert_eq!((load(1).warm_up, load(1).clients), (Extent::Requests(500), 100));
        let names: Vec<String> = load(1).operations.iter().map(|o| o.name.clone()).collect();
        assert_eq!(
            (names, load(1).nodes),
            (vec!["health".into(), "term".into()], vec!["leader-0".into()])
        );
        let Content::Pattern { method, path, .. } = &load(0).operations[0].content else {
            panic!()
        };
        assert_eq!((method.as_str(), path.as_str()), ("POST", "/pmc/_search"));
        let fault = Fault {
            node: "leader-2".to_owned(),
            kind: FaultKind::Slow { factor: 4.0 },
            at: Duration::from_secs(5),
            lasts: Some(Duration::from_secs(10)),
        };
        assert_eq!(
            (plan.variants[0].faults.len(), &plan.variants[1].faults[..]),
            (0, &[fault][..])
        );
    }

    #[test]
    fn the_published_run_has_its_own_size_costs_and_replicas() {
        let text = TEXT
            .replacen(
                "clients = 100\n",
                "clients = 100\nfull = { laps = 2, measured = 40_000 }\n",
                1,
            )
            .replacen(
                "[[variant]]\nname = \"open\"",
                "[[variant]]\nname = \"open\"\nbeside = \"closed\"\nreplicas = 2",
                1,
            )
            .replacen(
                "[[operation]]\nname = \"health\"",
                "cost = { documents = 7, bytes = \"1kb\" }\n[[operation]]\nname = \"health\"",
                1,
            )
            .replacen("kind = \"slow\"", "kind = \"load\"\nprocesses = 32", 1);
        let plan = resolve(&text).unwrap();
        let [closed, open] = &plan.variants[..] else { panic!() };
        let full = &closed.load.as_ref().unwrap().full;
        assert_eq!(
            (full.laps, full.warm_up, full.measured),
            (Some(2), Extent::Requests(500), Extent::Requests(40_000))
        );
        let Content::Pattern { path, bodies, .. } = &full.operations[0].content else { panic!() };
        assert_eq!(path, "/pmc/_search");
        assert_eq!(
            bodies,
            &[r#"{"ext":{"narrows":{"cost":{"bytes":1024,"documents":7}}},"size":0}"#]
        );
        assert_eq!((closed.beside.clone(), open.beside.as_deref()), (None, Some("closed")));
        assert_eq!(
            (plan.indices[0].replicas_of(closed), plan.indices[0].replicas_of(open)),
            (1, 2)
        );
        assert_eq!(open.faults[0].kind, FaultKind::Load { processes: 32, factor: 4.0 });
        let said = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            resolve(&text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        let later = said(&text, "beside = \"closed\"", "beside = \"open\"");
        assert!(later.contains("no variant before this one is called \"open\""), "{later}");
        assert!(said(&text, "replicas = 2", "replicas = 3").contains("give 0 to 2"));
        assert!(said(&text, "processes = 32\n", "").contains("say how many processes"));
        assert!(
            said(TEXT, "factor = 4.0", "factor = 4.0\nprocesses = 3").contains("only \"load\"")
        );
    }

    #[test]
    fn a_variant_for_each_value_of_a_setting() {
        let each = r#"name = "open"
each = { setting = "narrows.search.selection", values = ["none", "c3"] }"#;
        let plan = resolve(&TEXT.replacen("name = \"open\"", each, 1)).unwrap();
        let seen: Vec<_> = plan.variants[1..]
            .iter()
            .map(|v| {
                let value = v.settings["narrows.search.selection"].as_str();
                (v.name.as_str(), v.beside.as_deref(), value, v.faults.len())
            })
            .collect();
        let first = "open: none";
        assert_eq!(seen, [(first, None, "none", 1), ("open: c3", Some(first), "c3", 1)]);
        let wrong = each.replace("\"c3\"", "[1]");
        let said = resolve(&TEXT.replacen("name = \"open\"", &wrong, 1)).unwrap_err().to_string();
        assert!(said.contains("found an array"), "{said}");
    }

    #[test]
    fn an_index_that_is_called_otherwise_is_searched_by_that_name() {
        let mut plan = resolve(TEXT).unwrap();
        plan.name_indices("narrows-1");
        let load = plan.variants[0].load.as_ref().unwrap();
        let Content::Pattern { path, .. } = &load.operations[0].content else { panic!() };
        assert_eq!(path, "/narrows-1/_search");
    }

    #[test]
    fn what_is_wrong_is_shown_in_its_place() {
        for (from, to, part) in [
            ("operations = [\"term\"]", "operations = [\"trem\"]", "did you mean \"term\""),
            ("operations = [\"term\"]\n", "", "a load names its operations"),
            ("measured = \"30s\"", "", "what is measured"),
            ("clients = 100", "clients = 0", "clients is out of range"),
            ("measured = \"30s\"", "measured = true", "found boolean"),
            ("arrival = \"poisson\"", "arrival = \"fishy\"", "Arrivals: closed"),
            ("rate = 200.0\n", "", "need a rate"),
            ("nodes = [\"leader-0\"]", "nodes = [\"leader-9\"]", "Nodes: leader-0"),
            ("kind = \"slow\"", "kind = \"slowly\"", "did you mean \"slow\""),
            ("factor = 4.0\n", "", "say how slow"),
            ("{{word}}", "{{wrod}}", "did you mean \"word\""),
            ("word = [\"physician\", \"cell\"]", "word = { from = 3 }", "a parameter is a range"),
            ("[load]", "[load]\nspeed = 3", "unknown key \"speed\""),
        ] {
            let said = said(from, to);
            assert!(said.contains(part) && said.starts_with("my.toml:"), "{to}: {said}");
        }
        let without = |text: &str, from: &str, to: &str| {
            let (before, rest) = text.split_once(from).unwrap();
            format!("{before}{}", &rest[rest.find(to).unwrap_or(rest.len())..])
        };
        let none =
            without(&without(TEXT, "[load]", "[[variant]]"), "[variant.load]", "no such text");
        let said = resolve(&none).unwrap_err().to_string();
        assert!(said.contains("needs a [load]"), "{said}");
    }
}
