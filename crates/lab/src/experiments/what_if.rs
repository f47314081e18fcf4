//! `what_if`: a cluster that was seen is put in place in virtual time, one thing is done to it, and the time until
//! it is green again is measured; of a node that is drained until it is empty, of nodes that join until no copy is
//! moved to them any more.

mod came_back;
mod grain;
mod outlook;
mod writing;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use clusters::FaultKind;
use engine::settings::{Settings, Watermark, Watermarks};
use record::random::split_mix;
use record::units::{counted, show_bytes};
use record::{Phase, Row};
use serde_json::{Value, json};
use world::model::{Host, parameters};

use self::came_back::CameBack;
use self::grain::{CHUNK, Grain};
use self::outlook::{Goal, Outlook};
use self::writing::{Writing, written_to};
use crate::error::Result;
use crate::plan::{
    DELAY, DeclaredStep, LEADER, MANAGER, Needs, ParameterScope, Question, Twin, Uncertain,
    Variant, Writers, models,
};
use crate::runner::{Experiment, Recoveries, Runner, Turn};

const ENABLE: &str = "cluster.routing.allocation.enable";
const EXCLUDE: &str = "cluster.routing.allocation.exclude._name";
const SMALLEST_FIRST: &str = "narrows.recovery.smallest_first";
const STEP_BY_STEP: &str = "narrows.recovery.step_by_step";
/// Names the manager of a twin, which stands for no node: where replicas go does not depend on it.
const UNCOUNTED: &str = "narrows.allocation.uncounted";
const OF_INDICES: &str = "index.";

/// When a node that restarts is looked for: it is missed by then.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct WhatIf;

impl WhatIf {
    pub(crate) const STEP: DeclaredStep = DeclaredStep {
        copies: false,
        writers: Writers::Never,
        spoils_indices: |_| true,
        ..DeclaredStep::new("what_if", Needs::Twin)
    };
}

#[async_trait(?Send)]
impl Experiment for WhatIf {
    /// Puts every copy where it was seen. Copies that were unassigned stay so until the variant begins.
    async fn prepare(&mut self, run: &mut Runner<'_>, variant: Option<&Variant>) -> Result<()> {
        let name = variant.map(|variant| variant.name.as_str());
        run.journal.phase("place", true, name, 1)?;
        run.watch.begin("place", name, None, "");
        run.persist(LEADER, &json!({ ENABLE: "none", EXCLUDE: MANAGER })).await?;
        let settings = variant.map(of_indices).unwrap_or_default();
        let indices = twin(run).placements(&settings);
        let controls = run.clusters.virtual_controls();
        let controls = controls.expect("a twin is refused where machines are real");
        controls.place(LEADER, &indices, &twin(run).disks()).await?;
        run.watch.end();
        run.journal.phase("place", false, name, 1)
    }

    async fn measure(&mut self, run: &mut Runner<'_>, turn: &Turn<'_>) -> Result<Row> {
        let twin = twin(run);
        let grain = Grain::of(twin, turn.variant);
        if let Some(controls) = run.clusters.virtual_controls() {
            controls.set_hosts(LEADER, &grain.host(host(run, turn)));
        }
        run.begin_recovery(turn).await?;
        let mut settings = of_the_cluster(twin, turn.variant);
        if let Some(chunk) = grain.setting() {
            settings.insert(CHUNK, json!(chunk));
            // A small file or a request costs as much as a whole step here, and would have nothing beside it.
            settings.extend([SMALLEST_FIRST, STEP_BY_STEP].map(|name| (name, json!("false"))));
            let text = format!("so much is to be copied that {chunk} go as one chunk");
            run.note(Some(turn.variant), &text)?;
        }
        let excluded = settings[EXCLUDE].clone();
        if let Question::Add(nodes) = &twin.question {
            settings.insert(EXCLUDE, and_these(&excluded, nodes));
        }
        // Copies that were unassigned are made from here on, some before this is answered.
        let since_epoch_ms = run.env.epoch_ms();
        run.persist(LEADER, &settings).await?;
        let began = (run.env.now(), run.env.epoch_ms());
        let nodes = twin.nodes.len() + 1;
        let mut outlook = Outlook::new(turn, since_epoch_ms, twin.outstanding(), nodes);
        let writing = match &twin.question {
            Question::Restart { .. } => Some(Writing::begin(run, twin)?),
            _ => None,
        };
        let mut came_back = CameBack::default();
        let end = match &twin.question {
            Question::Lose(nodes) => lose(run, nodes, &mut outlook).await?,
            Question::Restart { nodes, down, flush } => {
                let asked = (&nodes[..], *down, *flush);
                restart(run, asked, &mut outlook, &mut came_back).await?
            }
            Question::Replicas(replicas) => {
                for (index, number) in replicas {
                    let body = json!({ "index.number_of_replicas": number });
                    run.ask(LEADER, "PUT", &format!("/{index}/_settings"), Some(&body)).await?;
                }
                outlook.until_done(run).await?
            }
            Question::Drain(nodes) => {
                outlook.goal = Goal::Empty(nodes.iter().copied().map(Twin::machine).collect());
                run.persist(LEADER, &json!({ EXCLUDE: and_these(&excluded, nodes) })).await?;
                outlook.until_done(run).await?
            }
            Question::Add(_) => {
                outlook.goal = Goal::Balanced;
                run.persist(LEADER, &json!({ EXCLUDE: excluded })).await?;
                outlook.until_done(run).await?
            }
        };
        // What is moved is looked at from time to time, and says itself when it had arrived; so does the last copy that
        // found a place.
        let says_itself =
            outlook.stays_yellow || matches!(twin.question, Question::Drain(_) | Question::Add(_));
        let seconds = match says_itself {
            true => end.seconds_since(began.1),
            false => (run.env.now() - began.0).as_secs_f64(),
        };
        run.end_recovery(turn)?;
        if let Some(writing) = writing {
            let written = writing.end().await;
            if turn.lap == 1 {
                let copied = end.sample.recovered_bytes + end.operations_bytes;
                run.note(Some(turn.variant), &came_back.sentence(written, copied))?;
            }
        }
        if turn.lap == 1 {
            note_away(run, turn.variant)?;
            note_full_disks(run, turn.variant).await?;
        }
        Ok(run.row(turn, seconds, &end))
    }
}

fn twin<'a>(run: &Runner<'a>) -> &'a Twin {
    run.plan.twin.as_ref().expect("the step needs a twin")
}

async fn lose(
    run: &mut Runner<'_>,
    nodes: &[usize],
    outlook: &mut Outlook<'_>,
) -> Result<Recoveries> {
    let twin = twin(run);
    let names: Vec<&str> = nodes.iter().map(|node| twin.nodes[*node].name.as_str()).collect();
    let (copies, bytes) = twin.outstanding();
    let copies = counted(copies, "copy", "copies");
    let text = format!("{} lost; to be made: {copies} of {}", names.join(", "), show_bytes(bytes));
    run.note(Some(outlook.turn.variant), &text)?;
    for node in nodes {
        run.clusters.faults()?.begin(&Twin::machine(*node), FaultKind::Kill).await?;
    }
    outlook.nodes -= nodes.len();
    outlook.until_done(run).await
}

/// Nodes restart one after another, each after a flush where that is asked; the next one once the cluster is green. How
/// their copies came back is counted in the first lap.
async fn restart(
    run: &mut Runner<'_>,
    (nodes, down, flush): (&[usize], Duration, bool),
    outlook: &mut Outlook<'_>,
    came_back: &mut CameBack,
) -> Result<Recoveries> {
    let turn = outlook.turn;
    let delay = turn.variant.settings.get(DELAY).map(String::as_str);
    let (made, _) = twin(run).made_while_away(delay);
    let drawn = drawn(run, turn).into_iter().find(|(one, _)| one.parameter == Uncertain::DOWN);
    let drawn = drawn.map(|(_, seconds)| Duration::from_secs_f64(seconds));
    // In a draw a node may be away for longer than its copies wait.
    let may_be_made = made > 0 || drawn.is_some();
    let down = drawn.unwrap_or(down);
    let mut end = Recoveries::default();
    for node in nodes {
        let machine = Twin::machine(*node);
        if flush {
            flush_written(run).await?;
        }
        let name = Some(turn.variant.name.as_str());
        let stopped_epoch_ms = run.env.epoch_ms();
        run.clusters.faults()?.begin(&machine, FaultKind::Stop).await?;
        let back = run.env.now() + down;
        run.journal.phase(Phase::AWAY, true, name, turn.lap)?;
        run.env.sleep(LOOK.min(down)).await;
        if may_be_made {
            outlook.while_away(run, back).await?;
        } else {
            outlook.look(run, Duration::from_millis(1)).await?;
        }
        run.env.sleep_until(back).await;
        run.journal.phase(Phase::AWAY, false, name, turn.lap)?;
        run.clusters.faults()?.end(&machine, FaultKind::Stop).await?;
        end = outlook.until_green(run).await?;
        if turn.lap == 1 {
            // Now, as the next node that restarts forgets its own.
            let answer = run.ask(LEADER, "GET", "/_recovery", None).await?;
            came_back.add(&answer, stopped_epoch_ms);
        }
        let text = format!("{} has restarted, and all is green", twin(run).nodes[*node].name);
        run.note(Some(turn.variant), &text)?;
    }
    Ok(end)
}

/// Flushes the indices that are written to: of the others all is committed.
async fn flush_written(run: &Runner<'_>) -> Result<()> {
    let names: Vec<&str> = written_to(twin(run)).map(|index| index.name.as_str()).collect();
    if !names.is_empty() {
        run.ask(LEADER, "POST", &format!("/{}/_flush", names.join(",")), None).await?;
    }
    Ok(())
}

/// Says which shards nobody can read while their node restarts: the cluster is red then.
fn note_away(run: &Runner<'_>, variant: &Variant) -> Result<()> {
    let away = twin(run).shards_without_a_copy_meanwhile();
    let shards = match &away[..] {
        [] => return Ok(()),
        [one] => format!("{one} has"),
        [first, ..] => format!("{} shards ({first} is the first) have", away.len()),
    };
    let text = "one copy, so that the cluster was red until the node of such a copy came back and opened it; a replica \
                on another node would prevent that";
    run.note(Some(variant), &format!("{shards} {text}"))
}

/// Says which disks are above a watermark in the end, whether nodes obey it or not.
async fn note_full_disks(run: &Runner<'_>, variant: &Variant) -> Result<()> {
    let twin = twin(run);
    if twin.nodes.iter().all(|node| node.disk.is_none()) {
        return Ok(());
    }
    let Watermarks { low, high } = Settings::resolve(&[&variant.settings]).disk_watermarks();
    let stats = run.ask(LEADER, "GET", "/_nodes/stats/indices,fs", None).await?;
    for node in stats["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values()) {
        let bytes = |name: &str| node["fs"]["total"][name].as_u64();
        let disk = bytes("total_in_bytes").zip(bytes("available_in_bytes"));
        let name = node["name"].as_str().and_then(|machine| twin.stands_for(machine));
        let (Some((total, free)), Some(name)) = (disk, name) else { continue };
        let is_above = |mark: Watermark| free < mark.free_bytes(total);
        let above = [("high", high), ("low", low)].into_iter().find(|(_, mark)| is_above(*mark));
        if let Some((which, mark)) = above {
            let percent = (total - free.min(total)) as f64 / total.max(1) as f64 * 100.0;
            let text = format!(
                "The disk of {name} is {percent:.1} % full in the end, above \
                 cluster.routing.allocation.disk.watermark.{which} [{mark}]"
            );
            run.note(Some(variant), &text)?;
        }
    }
    Ok(())
}

fn of_indices(variant: &Variant) -> BTreeMap<&str, &str> {
    let settings = variant.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    settings.filter(|(name, _)| name.starts_with(OF_INDICES)).collect()
}

/// A variant's settings of the cluster, in the words of virtual time. No copy is placed on the manager.
fn of_the_cluster<'v>(twin: &Twin, variant: &'v Variant) -> BTreeMap<&'v str, Value> {
    let settings = variant.settings.iter().filter(|(name, _)| !name.starts_with(OF_INDICES));
    let one =
        |(name, value): (&'v String, &String)| (name.as_str(), json!(twin.translated(name, value)));
    let mut settings: BTreeMap<&str, Value> = settings.map(one).collect();
    let excluded = settings.get(EXCLUDE).and_then(Value::as_str).filter(|names| !names.is_empty());
    let excluded = excluded.map_or_else(|| MANAGER.to_owned(), |more| format!("{more},{MANAGER}"));
    settings.insert(EXCLUDE, json!(excluded));
    settings.insert(UNCOUNTED, json!(MANAGER));
    settings.entry(ENABLE).or_insert(Value::Null);
    settings
}

/// The value of [`EXCLUDE`] with further nodes of the twin.
fn and_these(excluded: &Value, nodes: &[usize]) -> Value {
    let first = excluded.as_str().unwrap_or(MANAGER).to_owned();
    json!(nodes.iter().fold(first, |all, node| format!("{all},{}", Twin::machine(*node))))
}

/// What hosts are like: in the first lap as the plan says, in later ones as it is drawn.
fn host(run: &Runner<'_>, turn: &Turn<'_>) -> Host {
    let mut models = models(turn.variant, ParameterScope::Leader);
    let of_hosts = drawn(run, turn).into_iter().filter(|(one, _)| one.parameter != Uncertain::DOWN);
    for (uncertain, number) in of_hosts {
        let parameter = parameters().iter().find(|one| one.name == uncertain.parameter);
        parameter.expect("a resolved plan names it").set_number(&mut models, number);
    }
    models.host
}

/// What is not known, with what it is in this lap: nothing in the first one, which goes by the plan, and drawn anew in
/// later ones, the same for all variants of a lap. The bounds of each are cut into as many parts as there are such
/// laps, and each lap draws from another one: a few independent draws would often miss a whole end of what may be.
fn drawn<'a>(run: &Runner<'a>, turn: &Turn<'_>) -> Vec<(&'a Uncertain, f64)> {
    let mut drawn = Vec::new();
    let mut state = run.plan.seed.wrapping_add(u64::from(turn.lap) << 32);
    let mut order = run.plan.seed;
    let parts = u64::from(run.plan.laps.max(2) - 1);
    for uncertain in &twin(run).uncertain {
        let part = (split_mix(&mut order) % parts + u64::from(turn.lap)) % parts;
        let within = (split_mix(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
        let share = (part as f64 + within) / parts as f64;
        // A variant that is about this parameter knows it.
        if turn.lap == 1 || turn.variant.own_parameters.contains(&uncertain.parameter) {
            continue;
        }
        // Twice as much is as likely as half as much.
        let number = uncertain.least * (uncertain.most / uncertain.least).powf(share);
        drawn.push((uncertain, number));
    }
    drawn
}
