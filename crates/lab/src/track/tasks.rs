//! The schedule of a challenge: tasks, their clients and rates, and those that go on at the same time.

use std::collections::BTreeSet;
use std::time::Duration;

use query::json::{Node, Value as Json};
use record::names::did_you_mean;

use super::context::{Context, ON_SERVERLESS, REPORTED};
use super::operations::{self, Known};
use super::reader::{Object, Reader, Refusal};
use super::render::Place;
use super::{Action, CompletedBy, Element, Task};
use crate::load::{Arrival, Content, Extent, Load, Operation};

/// The most clients of a task, as of a load.
const CLIENTS_MAX: u64 = 10_000;
const ITERATIONS_MAX: u64 = u64::MAX / 1_000_000;
/// Longer than any load that ends with its documents goes on.
const UNTIL_THE_END: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest a task is measured in test mode, as in Rally.
const TEST_TIME: Duration = Duration::from_secs(10);
const RAMP_UP: &str = "ramp-up-time-period";
/// What an element is completed by where the first of its tasks that ends, whichever it is, ends the others.
const ANY: &str = "any";
const KNOWN: [&str; 19] = [
    "name", "operation", "tags", "meta", "clients", "warmup-iterations", "iterations",
    "warmup-time-period", RAMP_UP, "time-period", "target-throughput", "target-interval",
    "schedule", "ignore-response-error-level", REPORTED[0], REPORTED[1], "completed-by",
    "any-completes-parent", ON_SERVERLESS,
];

/// Members of tasks that Rally does not read of a parallel element.
const OF_TASKS: [&str; 4] = ["operation", "target-throughput", "target-interval", "schedule"];

/// What a task is chosen by: its name, its operation's type, its tags.
struct Chosen<'a> {
    name: &'a str,
    kind: &'a str,
    tags: &'a [String],
}

impl Chosen<'_> {
    fn is(&self, filter: &str) -> bool {
        match filter.split_once(':') {
            Some(("type", kind)) => kind == self.kind,
            Some(("tag", tag)) => self.tags.iter().any(|own| own == tag),
            _ => filter == self.name,
        }
    }

    fn is_one_of(&self, filters: &[String]) -> bool {
        filters.iter().any(|filter| self.is(filter))
    }
}

/// Tasks that were read, and those that are refused.
#[derive(Default)]
pub(super) struct Schedule {
    pub(super) elements: Vec<Element>,
    pub(super) refused: Vec<(String, Refusal)>,
    /// Names of all tasks, chosen or not, for messages.
    pub(super) names: Vec<String>,
    /// Where each of them stands.
    places: Vec<Place>,
    /// What the options choose tasks by, as far as it fits one.
    pub(super) fitting: BTreeSet<String>,
}

/// The operations of a track by name, as its file has them.
pub(super) type Operations<'n> = [(String, Object<'n>)];

pub(super) fn schedule(
    context: &Context<'_>,
    operations: &Operations<'_>,
    node: &Node<'_>,
) -> Schedule {
    let reader = context.reader;
    let mut found = Schedule::default();
    let mut limits = Vec::new();
    for item in reader.list(node, "a schedule") {
        let object = reader.object(item, "a task");
        let Some(parallel) = object.get("parallel") else {
            let tasks: Vec<Task> =
                task(context, operations, &object, None, &mut found).into_iter().collect();
            if !tasks.is_empty() {
                found.elements.push(Element { tasks, completed_by: CompletedBy::All, at_once: 1 });
            }
            continue;
        };
        let parallel = reader.object(parallel, "parallel");
        if let Some(element) = together(context, operations, &parallel, &mut found) {
            let clients = reader.whole(&parallel, "clients", 1, CLIENTS_MAX);
            let at = found.elements.len();
            limits
                .extend(clients.zip(parallel.get("clients")).map(|(most, node)| (at, most, node)));
            found.elements.push(element);
        }
    }
    take_turns(reader, &mut found.elements, &limits);
    found
}

/// Has tasks follow one another where there are fewer clients than they have together. There are as many as the element
/// of the schedule with the most of them has, as in Rally, and they take over tasks in turn.
fn take_turns(reader: &Reader<'_>, elements: &mut [Element], limits: &[(usize, u64, &Node<'_>)]) {
    let own = |task: &Task| u64::from(task.load.clients);
    let sum = |element: &Element| element.tasks.iter().map(own).sum::<u64>();
    let clients = elements.iter().enumerate().map(|(at, element)| {
        let limit = limits.iter().find(|(of, ..)| *of == at);
        limit.map_or_else(|| sum(element), |(_, most, _)| *most)
    });
    let clients: u64 = clients.max().unwrap_or(1);
    for (at, _, node) in limits {
        let element = &mut elements[*at];
        let each = element.tasks.first().map_or(1, own);
        let alike = element.tasks.iter().all(|task| own(task) == each);
        match sum(element) {
            all if all <= clients => {}
            _ if alike && clients.is_multiple_of(each) => {
                element.at_once = (clients / each) as usize;
            }
            all => {
                let said = format!(
                    "these tasks have {all} clients and there are {clients}: tasks that wait for others need equal numbers \
                     of clients, of which {clients} is a multiple"
                );
                reader.wrong(node, "clients", said);
            }
        }
    }
}

/// Tasks that go on at the same time. What the element says of clients and times counts for tasks that say nothing.
fn together(
    context: &Context<'_>,
    operations: &Operations<'_>,
    parallel: &Object<'_>,
    found: &mut Schedule,
) -> Option<Element> {
    let reader = context.reader;
    reader.only(parallel, "a parallel element", &[&KNOWN[..], &["tasks"]].concat());
    for name in OF_TASKS.iter().filter(|name| parallel.get(name).is_some()) {
        context.change(format!(
            "\"{name}\" of a parallel element changes nothing, as in Rally: it belongs into its tasks."
        ));
    }
    let before = found.names.len();
    let list = parallel.get("tasks").map_or(&[][..], |node| reader.list(node, "tasks"));
    let tasks: Vec<Task> = list
        .iter()
        .filter_map(|node| {
            let object = reader.object(node, "a task");
            task(context, operations, &object, Some(parallel), found)
        })
        .collect();
    let completed_by = match reader.text(parallel, "completed-by") {
        None => CompletedBy::All,
        Some(any) if any == ANY => {
            if let Some(task) = tasks.first().filter(|_| tasks.iter().all(has_no_end)) {
                let said = format!(
                    "{} has no end of its own, and no task beside it that would end it; give it a time-period",
                    task.name
                );
                reader.wrong(parallel.get("completed-by")?, ANY, said);
            }
            CompletedBy::Any
        }
        Some(name) if tasks.iter().any(|task| task.name == name) => CompletedBy::Task(name),
        Some(name) if found.names[before..].contains(&name) => {
            if let Some(task) = tasks.iter().find(|task| has_no_end(task)) {
                let said = format!(
                    "{} has no end of its own, and {name}, which would end it, is not run; give it a time-period",
                    task.name
                );
                reader.wrong(parallel.get("completed-by")?, &name, said);
            } else if !tasks.is_empty() {
                context.change(format!(
                    "{name} would have ended the tasks that go on beside it, and is not run: they go on to their own end."
                ));
            }
            CompletedBy::All
        }
        Some(name) => {
            let known = found.names[before..].iter().map(String::as_str);
            let near = did_you_mean(&name, known);
            let said = format!("no task here is called \"{name}\"{near}");
            reader.wrong(parallel.get("completed-by")?, &name, said);
            CompletedBy::All
        }
    };
    let at_once = tasks.len();
    (!tasks.is_empty()).then_some(Element { tasks, completed_by, at_once })
}

/// Whether it goes on until another task ends it: what sends documents ends with them.
fn has_no_end(task: &Task) -> bool {
    let sends_documents =
        matches!(&task.action, Action::Send(Operation { content: Content::Corpora(_), .. }));
    task.load.measured == Extent::Time(UNTIL_THE_END) && !sends_documents
}

/// Reads a task; none where it is not chosen, refused or wrong.
fn task(
    context: &Context<'_>,
    operations: &Operations<'_>,
    object: &Object<'_>,
    parallel: Option<&Object<'_>>,
    found: &mut Schedule,
) -> Option<Task> {
    let reader = context.reader;
    let Some(node) = object.get("operation") else {
        reader.wrong(object.node, "", "a task has an operation: its name, its type or an object");
        return None;
    };
    let inline;
    let (named, operation) = match &node.value {
        Json::Text(name) => match operations.iter().find(|(known, _)| known == name) {
            Some((_, operation)) => (name.to_string(), *operation),
            // A type whose operation says nothing else.
            None => (name.to_string(), Object { node, members: &[] }),
        },
        _ => {
            inline = reader.object(node, "an operation");
            let kind = reader.text(&inline, "operation-type").unwrap_or_default();
            (reader.text(&inline, "name").unwrap_or(kind), inline)
        }
    };
    let kind = reader.text(&operation, "operation-type").unwrap_or_else(|| named.clone());
    let name = reader.text(object, "name").unwrap_or_else(|| named.clone());
    let tags = [reader.texts(object, "tags"), reader.texts(&operation, "tags")].concat();
    let named_at = object.get("name").unwrap_or(node);
    // As in Rally: their figures could not be told apart.
    if let Some(at) = found.names.iter().position(|known| *known == name) {
        reader.second(named_at, "tasks", &name, found.places[at]);
    }
    found.names.push(name.clone());
    found.places.push(reader.place(named_at));
    let chosen = Chosen { name: &name, kind: &kind, tags: &tags };
    let options = context.options;
    let filters = options.include.iter().chain(&options.exclude);
    found.fitting.extend(filters.filter(|filter| chosen.is(filter)).cloned());
    let included = options.include.is_empty() || chosen.is_one_of(&options.include);
    if !included || chosen.is_one_of(&options.exclude) {
        return None;
    }
    if matches!(operation.node.value, Json::Object(_)) && operation.get("operation-type").is_none()
    {
        let said = format!("the operation of {name} has no \"operation-type\"");
        reader.wrong(operation.node, "", said);
        return None;
    }
    let is_declared = || operations.iter().any(|(known, _)| *known == named);
    if matches!(node.value, Json::Text(_)) && !is_declared() && !operations::is_type(context, &kind)
    {
        let near = did_you_mean(&named, operations.iter().map(|(known, _)| known.as_str()));
        let why = format!("the track has no operation \"{named}\"{near}, and it is no type of one");
        found.refused.push((name, reader.refusal(node, &named, why)));
        return None;
    }
    let known = match operations::operation(context, &name, &kind, &operation) {
        Ok(known) => known,
        Err(refusal) => {
            found.refused.push((name, refusal));
            return None;
        }
    };
    let unknown = || reader.unknown(object, "a task", &KNOWN);
    if let Some(refusal) = unknown_schedule(context, object).or_else(unknown) {
        found.refused.push((name, refusal));
        return None;
    }
    scheduled(context, name, object, parallel, known)
}

/// The schedule of a task around what it does.
fn scheduled(
    context: &Context<'_>,
    name: String,
    object: &Object<'_>,
    parallel: Option<&Object<'_>>,
    known: Known,
) -> Option<Task> {
    let reader = context.reader;
    let number = |member: &str, least: f64| {
        let own = reader.number(object, member, least);
        own.or_else(|| reader.number(parallel?, member, least))
    };
    let whole = |member: &str| {
        let own = reader.whole(object, member, 0, ITERATIONS_MAX);
        own.or_else(|| reader.whole(parallel?, member, 0, ITERATIONS_MAX))
    };
    let as_time = |seconds: f64| Duration::from_secs_f64(seconds.min(1e7));
    let seconds = |member: &str| number(member, 0.0).map(as_time);
    let clients = reader.whole(object, "clients", 1, CLIENTS_MAX).unwrap_or(1);
    let (warm_up_time, time) = (seconds("warmup-time-period"), seconds("time-period"));
    let (warm_up, iterations) = (whole("warmup-iterations"), whole("iterations"));
    if (warm_up_time.is_some() || time.is_some()) && (warm_up.is_some() || iterations.is_some()) {
        let said = format!("{name} counts iterations and goes by the time; give one of the two");
        reader.wrong(object.node, "iterations", said);
    }
    let ramp_up = seconds(RAMP_UP);
    if let Some(time) = ramp_up {
        let of_all = parallel.and_then(|all| reader.number(all, RAMP_UP, 0.0)).map(as_time);
        let counts = warm_up.is_some() || iterations.is_some();
        let said = wrong_ramp_up(time, warm_up_time, counts, (parallel.is_some(), of_all));
        if let Some(said) = said {
            let own = object.get(RAMP_UP).or_else(|| parallel?.get(RAMP_UP));
            reader.wrong(own.unwrap_or(object.node), RAMP_UP, format!("{name} {said}"));
        }
    }
    let ends_with_documents = known.bulk_documents.is_some();
    let test_mode = context.options.test_mode;
    let per_client =
        |count: u64| Extent::Requests(if test_mode { clients } else { count * clients });
    let warm_up = match (warm_up_time, warm_up) {
        (Some(time), _) => Extent::Time(if test_mode { Duration::ZERO } else { time }),
        (None, Some(count)) if count > 0 => per_client(count),
        _ => Extent::NONE,
    };
    let measured = match (time, iterations) {
        (Some(time), _) => Extent::Time(if test_mode { time.min(TEST_TIME) } else { time }),
        (None, Some(count)) => per_client(count.max(1)),
        (None, None) if ends_with_documents => Extent::Time(UNTIL_THE_END),
        // As in Rally: it goes by the time, and has no end of its own.
        (None, None) if warm_up_time.is_some() && another_ends(reader, &name, parallel) => {
            Extent::Time(UNTIL_THE_END)
        }
        (None, None) if warm_up_time.is_some() => {
            let said = format!(
                "{name} has a warmup-time-period and no end; give it a time-period, or iterations"
            );
            reader.wrong(object.node, "warmup-time-period", said);
            Extent::Requests(clients)
        }
        (None, None) => Extent::Requests(clients),
    };
    // What is wrong about a rate is told in test mode too.
    let arrival = arrival(context, object, &known);
    let arrival = arrival.map(|own| if test_mode { Arrival::Closed } else { own });
    let reported = context.is_reported(object).unwrap_or(known.reported);
    Some(Task {
        name,
        operation_type: known.operation_type,
        load: Load {
            arrival: arrival?,
            warm_up,
            ramp_up: ramp_up.filter(|_| !test_mode).unwrap_or_default(),
            timeout: known.timeout,
            ..Load::closed(Vec::new(), clients as u32, measured, 0)
        },
        connections: known.connections,
        reported: reported && !matches!(known.action, Action::Do(ref steps) if steps.is_empty()),
        action: known.action,
    })
}

/// Whether another task of its element ends a task.
fn another_ends(reader: &Reader<'_>, name: &str, parallel: Option<&Object<'_>>) -> bool {
    let ends = parallel.and_then(|all| reader.text(all, "completed-by"));
    ends.is_some_and(|ends| ends != name)
}

/// What is wrong about a ramp-up, as in Rally: it is a part of a warm-up by the time, and one for all tasks that go on
/// together.
fn wrong_ramp_up(
    ramp_up: Duration,
    warm_up: Option<Duration>,
    counts: bool,
    (is_parallel, of_all): (bool, Option<Duration>),
) -> Option<String> {
    let seconds = ramp_up.as_secs_f64();
    let said = match (of_all, warm_up) {
        (None, _) if is_parallel => {
            "specifies a ramp-up-time-period but it is only allowed on the 'parallel' element"
                .to_owned()
        }
        (Some(of_all), _) if of_all != ramp_up => {
            "specifies a different ramp-up-time-period than its enclosing 'parallel' element"
                .to_owned()
        }
        _ if counts => format!(
            "defines a ramp-up time period of {seconds} seconds and counts iterations, but mixing time periods and \
             iterations is not allowed"
        ),
        (_, None) => format!(
            "defines a ramp-up time period of {seconds} seconds but no warmup-time-period; give it one that is as long"
        ),
        (_, Some(warm_up)) if warm_up < ramp_up => format!(
            "has a warmup-time-period of {} seconds, which must be greater than or equal to the ramp-up-time-period of \
             {seconds} seconds",
            warm_up.as_secs_f64()
        ),
        _ => return None,
    };
    Some(said)
}

/// One request in four months: whatever is rarer comes as seldom.
const RATE_MIN_PER_S: f64 = 1e-7;

/// When requests start: `target-throughput` is a number of requests a second, or says its unit; `target-interval` are
/// seconds between two requests.
fn arrival(context: &Context<'_>, object: &Object<'_>, known: &Known) -> Option<Arrival> {
    let reader = context.reader;
    let rate_per_s = match (object.get("target-throughput"), object.get("target-interval")) {
        (Some(node), Some(_)) => {
            let said = "a task has a target-throughput or a target-interval, not both";
            reader.wrong(node, "target-throughput", said);
            return None;
        }
        (Some(node), None) => {
            let wrong = |why| reader.wrong(node, "target-throughput", why);
            rate(node, known).map_err(wrong).ok()?
        }
        (None, Some(node)) => {
            let seconds = reader.number(object, "target-interval", 0.0)?;
            if seconds <= 0.0 {
                let said = "target-interval is a number of seconds above 0; without one, requests follow at once";
                reader.wrong(node, "target-interval", said);
                return None;
            }
            Some((1.0 / seconds).max(RATE_MIN_PER_S))
        }
        (None, None) => None,
    };
    let schedule = reader.text(object, "schedule");
    let Some(rate_per_s) = rate_per_s else { return Some(Arrival::Closed) };
    Some(match schedule.as_deref() {
        Some(POISSON) => Arrival::Poisson { rate_per_s },
        _ => Arrival::Deterministic { rate_per_s },
    })
}

const POISSON: &str = "poisson";
const SCHEDULES: [&str; 2] = ["deterministic", POISSON];

/// A schedule that there is not. It may have a rate of its own, so that it counts also where the task names none.
fn unknown_schedule(context: &Context<'_>, object: &Object<'_>) -> Option<Refusal> {
    let reader = context.reader;
    let named = reader.text(object, "schedule")?;
    if SCHEDULES.contains(&named.as_str()) {
        return None;
    }
    let near = did_you_mean(&named, SCHEDULES);
    let why = format!(
        "the schedule \"{named}\" is Python of a track or not known{near}; there are deterministic and poisson"
    );
    Some(reader.refusal(object.at("schedule"), "schedule", why))
}

/// Requests a second; none for as fast as it goes.
fn rate(node: &Node<'_>, known: &Known) -> Result<Option<f64>, String> {
    let text = node.text("target-throughput").unwrap_or_default();
    // As workloads of OpenSearch Benchmark say it: target_throughput:"".
    if matches!(&node.value, Json::Text(text) if text.is_empty()) {
        return Ok(None);
    }
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "ops/s"));
    let rate = number.parse::<f64>().ok().filter(|rate| *rate >= 0.0 && *rate <= 10e6);
    let Some(rate) = rate else {
        return Err(format!(
            "target-throughput is a number, or a number and a unit as \"500 docs/s\"; found \"{text}\""
        ));
    };
    let rate = match (unit.trim(), known.bulk_documents) {
        ("ops/s", _) => rate,
        ("docs/s", Some(documents)) => rate / documents as f64,
        (unit, _) => {
            return Err(format!(
                "target-throughput in {unit} is not known here: write ops/s, or docs/s for bulk requests"
            ));
        }
    };
    Ok((rate > 0.0).then_some(rate.max(RATE_MIN_PER_S)))
}
