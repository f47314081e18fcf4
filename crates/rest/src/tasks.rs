//! `_tasks`, `_tasks/{id}`, `_tasks/_cancel`, `_rethrottle`, `_cat/tasks`: the requests that nodes work on.

use std::time::Duration;

use serde_json::{Map, Value, json};
use world::Time;

use super::actions::LIST;
use super::answer::{Reply, object_of};
use super::call::Call;
use super::error::{bad_request, cause_json};
use super::identity::{host, release};
use super::names::matches_any;
use super::nodes::select;
use super::spread::{PATIENCE, nodes_json, on_nodes};
use super::table::{Cell, Column, Table, numbers, words};
use super::time_text::clock;
use engine::state::ClusterState;
use engine::transport::{Failure, Request, Result, unexpected};

/// Parameters that say which tasks are meant.
pub(super) const WHICH: &[&str] = &["actions", "nodes", "parent_task_id"];
/// Parameters of one task.
pub(super) const ONE: &[&str] = &["timeout", "wait_for_completion"];

/// `timeout` of what waits for tasks where the request does not say, and how often it looks.
const WAITS: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A node and a number, from `node:number`.
fn parse_id(text: &str) -> Result<(&str, u64)> {
    let parts = text.rsplit_once(':').filter(|(node, _)| !node.is_empty());
    parts
        .and_then(|(node, number)| Some((node, number.parse().ok()?)))
        .ok_or_else(|| bad_request(format!("malformed task id {text}")))
}

/// The id of a task that a node listed.
fn id_of(task: &Value) -> String {
    format!("{}:{}", task["node"].as_str().unwrap_or_default(), task["id"])
}

/// Which tasks a request means.
struct Which {
    nodes: Vec<String>,
    actions: String,
    /// Whether only children of another task are: there are none.
    children: bool,
}

/// Tasks, and the failures of the nodes that did not say theirs.
type Found = (Vec<Value>, Vec<Value>);

impl Which {
    fn read(call: &Call) -> Result<Which> {
        let query = &call.query;
        let actions = query.get("actions").filter(|text| !text.is_empty()).unwrap_or("*");
        let children = match query.get("parent_task_id") {
            None | Some("" | "-1" | "unset") => false,
            Some(id) => parse_id(id).map(|_| true)?,
        };
        let nodes = select(&call.node, &call.state(), query.get("nodes"))?;
        Ok(Which { nodes, actions: actions.to_owned(), children })
    }

    async fn find(&self, call: &Call, limit: Duration) -> Found {
        let answers = on_nodes(&call.node, self.nodes.clone(), &Request::Tasks, limit).await;
        let (mut tasks, failures) = found(&answers);
        tasks.retain(|task| {
            !self.children
                && matches_any(&self.actions, task["action"].as_str().unwrap_or_default())
        });
        (tasks, failures)
    }
}

/// The tasks that nodes answered with, and what a list says of those that failed.
fn found(answers: &[(String, Result<Value>)]) -> Found {
    let lists = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()?.as_array());
    let failures = nodes_json(answers)["failures"].as_array().cloned();
    (lists.flatten().cloned().collect(), failures.unwrap_or_default())
}

/// What a node says of a task once that has ended, or the time is over. Null where it does not know it any more.
async fn ended(call: &Call, (node, number): (&str, u64), deadline: Time) -> Result<Value> {
    let env = &call.node.core().env;
    loop {
        let names = vec![node.to_owned()];
        let answer = on_nodes(&call.node, names, &Request::Task(number), PATIENCE).await.pop();
        let said = answer.ok_or_else(unexpected)?.1?;
        if said["completed"] != false || env.now() >= deadline {
            return Ok(said);
        }
        env.sleep_until(deadline.min(env.now() + LOOK_EVERY)).await;
    }
}

fn timed_out(id: &str) -> Failure {
    Failure::new(500, "timeout_exception", format!("Timed out waiting for completion of [{id}]"))
}

/// Waits for these tasks where the request wants that; the failures of those that it waited for in vain.
async fn wait_for(call: &Call, tasks: &[Value]) -> Result<Vec<Value>> {
    let limit = call.query.duration("timeout", WAITS)?;
    let mut failures = Vec::new();
    if !call.query.flag("wait_for_completion", false)? {
        return Ok(failures);
    }
    let deadline = call.node.core().env.now() + limit;
    // Two that wait for each other would do so for ever.
    for task in tasks.iter().filter(|task| task["action"] != LIST) {
        let id = id_of(task);
        let failure = match ended(call, parse_id(&id)?, deadline).await {
            Ok(said) if said["completed"] == false => timed_out(&id),
            Ok(_) => continue,
            Err(failure) => failure,
        };
        failures.push(json!({
            "task_id": task["id"],
            "node_id": task["node"],
            "status": "INTERNAL_SERVER_ERROR",
            "reason": cause_json(&failure),
        }));
    }
    Ok(failures)
}

/// By what a list is grouped.
#[derive(Clone, Copy)]
enum GroupBy {
    Nodes,
    Parents,
    Nothing,
}

impl GroupBy {
    fn read(call: &Call) -> Result<GroupBy> {
        match call.query.get("group_by") {
            None | Some("" | "nodes") => Ok(GroupBy::Nodes),
            Some("parents") => Ok(GroupBy::Parents),
            Some("none") => Ok(GroupBy::Nothing),
            Some(other) => Err(bad_request(format!(
                "group_by must be one of [nodes], [parents] or [none] but was [{other}]"
            ))),
        }
    }

    /// The answer, with the failures of nodes and of tasks.
    fn answer(self, state: &ClusterState, (tasks, of_nodes): Found, of_tasks: Vec<Value>) -> Value {
        let mut answer = Map::new();
        for (name, failures) in [("task_failures", of_tasks), ("node_failures", of_nodes)] {
            if !failures.is_empty() {
                answer.insert(name.to_owned(), Value::Array(failures));
            }
        }
        let (name, tasks) = match self {
            GroupBy::Nothing => ("tasks", Value::Array(tasks)),
            GroupBy::Parents => {
                ("tasks", object_of(tasks.into_iter().map(|task| (id_of(&task), task))))
            }
            GroupBy::Nodes => {
                let mut nodes: Map<String, Value> = Map::new();
                for task in tasks {
                    let name = task["node"].as_str().unwrap_or_default().to_owned();
                    let node = nodes.entry(&name).or_insert_with(|| node_json(state, &name));
                    let id = id_of(&task);
                    node["tasks"][id] = task;
                }
                ("nodes", Value::Object(nodes))
            }
        };
        answer.insert(name.to_owned(), tasks);
        Value::Object(answer)
    }
}

fn node_json(state: &ClusterState, name: &str) -> Value {
    let member = state.members.get(name);
    let address = member.map_or("", |member| member.transport_address.as_str());
    let mut node = json!({
        "name": name, "transport_address": address, "host": host(address), "ip": address,
        "roles": ["data", "master"], "tasks": {},
    });
    if let Some(member) = member.filter(|member| !member.attributes.is_empty()) {
        node["attributes"] = json!(member.attributes);
    }
    node
}

/// Leaves out what a list has only where it is asked for.
fn strip(tasks: &mut [Value]) {
    for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
        task.remove("description");
        task.remove("status");
    }
}

/// `GET /_tasks`.
pub(super) async fn list(call: Call) -> Result<Reply> {
    let (which, group_by) = (Which::read(&call)?, GroupBy::read(&call)?);
    let detailed = call.query.flag("detailed", false)?;
    let limit = call.query.duration("timeout", PATIENCE)?;
    let mut found = which.find(&call, limit).await;
    let failures = wait_for(&call, &found.0).await?;
    if !detailed {
        strip(&mut found.0);
    }
    Ok(group_by.answer(&call.state(), found, failures).into())
}

/// `GET /_tasks/{task_id}`: one that runs, or the result of one that nobody waited for.
pub(super) async fn get(call: Call) -> Result<Reply> {
    let limit = call.query.duration("timeout", WAITS)?;
    let waits = call.query.flag("wait_for_completion", false)?;
    let id = call.part("task_id").unwrap_or_default();
    let (node, number) = parse_id(id)?;
    let missing = |why: String| Failure::new(404, "resource_not_found_exception", why);
    if call.node.core().address_of(node).is_none() {
        return Err(missing(format!(
            "task [{id}] belongs to the node [{node}] which isn't part of the cluster and there is no record of the \
             task"
        )));
    }
    let deadline = call.node.core().env.now() + if waits { limit } else { Duration::ZERO };
    match ended(&call, (node, number), deadline).await? {
        Value::Null => {
            Err(missing(format!("task [{id}] isn't running and hasn't stored its results")))
        }
        said if waits && said["completed"] == false => Err(timed_out(id)),
        said => Ok(said.into()),
    }
}

/// `POST /_tasks/_cancel`, `POST /_tasks/{task_id}/_cancel`.
pub(super) async fn cancel(call: Call) -> Result<Reply> {
    let group_by = GroupBy::read(&call)?;
    let can: Can = (|task| task["cancellable"] == true, "doesn't support cancellation");
    let mut found = change(&call, can, Request::CancelTasks).await?;
    let of_tasks = wait_for(&call, &found.0).await?;
    strip(&mut found.0);
    Ok(group_by.answer(&call.state(), found, of_tasks).into())
}

/// `POST /_reindex/{task_id}/_rethrottle`, and of the other two that go through pages: each takes the tasks of all.
pub(super) async fn rethrottle(call: Call) -> Result<Reply> {
    let (group_by, pace) = (GroupBy::read(&call)?, call.query.requests_per_second()?);
    let pace = pace.ok_or_else(|| bad_request("requests_per_second is a required parameter"))?;
    let can: Can = (
        |task| task["status"]["requests_per_second"].is_number(),
        "doesn't support this operation",
    );
    let found = change(&call, can, |numbers| Request::RethrottleTasks(numbers, pace)).await?;
    Ok(group_by.answer(&call.state(), found, Vec::new()).into())
}

/// Whether something can be done to a task, and what is said of one to which it cannot.
type Can = (fn(&Value) -> bool, &'static str);

/// Has the nodes of the tasks that are meant do something to them; what they are then.
async fn change(
    call: &Call,
    (can, cannot): Can,
    request: impl Fn(Vec<u64>) -> Request,
) -> Result<Found> {
    let mut which = Which::read(call)?;
    let one = call.part("task_id").map(|id| parse_id(id).map(|of| (id, of))).transpose()?;
    if let Some((_, (node, _))) = one {
        which.nodes = vec![node.to_owned()];
    }
    let (mut listed, mut failures) = which.find(call, PATIENCE).await;
    if let Some((id, (node, number))) = one {
        listed.retain(|task| task["id"] == number);
        let failure = match listed.first() {
            None if failures.is_empty() => {
                let why = format!("task [{id}] is not found");
                Some(Failure::new(404, "resource_not_found_exception", why))
            }
            Some(task) if !can(task) => Some(bad_request(format!("task [{id}] {cannot}"))),
            _ => None,
        };
        if let Some(failure) = failure {
            failures.extend(found(&[(node.to_owned(), Err(failure))]).1);
        }
    }
    listed.retain(can);
    let mut changed = Vec::new();
    for node in which.nodes {
        let of_node = listed.iter().filter(|task| task["node"] == node.as_str());
        let numbers: Vec<u64> = of_node.filter_map(|task| task["id"].as_u64()).collect();
        if numbers.is_empty() {
            continue;
        }
        let (tasks, failed) =
            found(&on_nodes(&call.node, vec![node], &request(numbers), PATIENCE).await);
        changed.extend(tasks);
        failures.extend(failed);
    }
    Ok((changed, failures))
}

static COLUMNS: [Column; 16] = [
    words("id", "id", "number of the task on its node").on_demand(),
    words("action", "ac", "what is done"),
    words("task_id", "ti", "node and number"),
    words("parent_task_id", "pti", "the task that began it"),
    words("type", "ty", "transport: asked for by a client"),
    numbers("start_time", "start", "when it began, in milliseconds since 1970"),
    words("timestamp", "ts,hms,hhmmss", "time of day when it began, in UTC"),
    numbers("running_time_ns", "time", "nanoseconds since then").on_demand(),
    numbers("running_time", "time", "time since then"),
    words("node_id", "ni", "node name").on_demand(),
    words("ip", "i", "host of the transport address"),
    numbers("port", "po", "port of the transport address").on_demand(),
    words("node", "n", "node name"),
    words("version", "v", "version of the node").on_demand(),
    words("x_opaque_id", "x", "X-Opaque-Id of the client").on_demand(),
    words("description", "desc", "what it works on"),
];

/// `GET /_cat/tasks`.
pub(super) async fn cat(call: Call) -> Result<Reply> {
    let which = Which::read(&call)?;
    let shown = COLUMNS.len() - usize::from(!call.query.flag("detailed", false)?);
    let state = call.state();
    let version = release(&call.node).number;
    let mut table = Table::new(&COLUMNS[..shown]);
    for task in which.find(&call, PATIENCE).await.0 {
        let text = |part: &str| Cell::from(task[part].as_str().unwrap_or_default());
        let number = |part: &str| task[part].as_u64().unwrap_or(0);
        let member = task["node"].as_str().and_then(|name| state.members.get(name));
        let address = member.map_or("", |member| member.transport_address.as_str());
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let opaque_id = task["headers"]["X-Opaque-Id"].as_str();
        let (began, runs) = (number("start_time_in_millis"), number("running_time_in_nanos"));
        let mut row: Vec<Cell> = vec![
            task["id"].to_string().into(),
            text("action"),
            id_of(&task).into(),
            "-".into(),
            text("type"),
            Cell::Number(began),
            clock(began).into(),
            Cell::Number(runs),
            Cell::Millis(runs / 1_000_000),
            text("node"),
            host(address).into(),
            port.map(Cell::Number).into(),
            text("node"),
            version.into(),
            opaque_id.into(),
            text("description"),
        ];
        row.truncate(shown);
        table.push(row);
    }
    table.answer(&call.query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_a_node_and_a_number() {
        assert_eq!(parse_id("n1:7"), Ok(("n1", 7)));
        assert_eq!(parse_id("a:b:7"), Ok(("a:b", 7)));
        for bad in ["", "n1", "n1:", ":7", "n1:x", "n1:-1"] {
            let said = parse_id(bad).unwrap_err();
            assert_eq!(said.reason, format!("malformed task id {bad}"));
        }
    }

    #[test]
    fn lists_are_grouped_as_the_field_does() {
        let state = ClusterState::new("c", [], || 1);
        let tasks = || {
            let task = |node: &str, id: u64| json!({ "node": node, "id": id, "status": {} });
            vec![task("a", 7), task("a", 8), task("b", 7)]
        };
        let by_node = GroupBy::Nodes.answer(&state, (tasks(), Vec::new()), Vec::new());
        assert_eq!(by_node["nodes"]["a"]["tasks"]["a:8"]["id"], 8);
        assert_eq!(by_node["nodes"]["b"]["tasks"].as_object().unwrap().len(), 1);
        assert_eq!(by_node.get("node_failures"), None);
        let by_parent = GroupBy::Parents.answer(&state, (tasks(), Vec::new()), Vec::new());
        assert_eq!(by_parent["tasks"]["b:7"]["node"], "b");
        let (_, failures) = found(&[("c".to_owned(), Err(timed_out("c:1")))]);
        let mut stripped = tasks();
        strip(&mut stripped);
        let list = GroupBy::Nothing.answer(&state, (stripped, failures), vec![json!({})]);
        assert_eq!(list["tasks"][2], json!({ "node": "b", "id": 7 }));
        let failure = &list["node_failures"][0];
        assert_eq!(failure["node_id"], "c");
        assert_eq!(failure["type"], "failed_node_exception");
        assert_eq!(failure["caused_by"]["type"], "timeout_exception");
        assert_eq!(list["task_failures"], json!([{}]));
    }
}
