//! From a plan to its record.

use std::path::PathBuf;

use clusters::EmbeddedClusters;
use record::{Manifest, RunDir, Status, Writer};
use world::Trace;

use super::adapt::adapted;
use super::manifest::manifest;
use super::options::Options;
use super::place::Place;
use super::record_dir::fresh;
use super::working::Ended;
use super::{in_virtual_time, on_live, on_processes, on_servers};
use crate::error::{Error, Result, with_causes};
use crate::plan::{Plan, Resolved};

/// A run that took place, however it ended.
pub struct Executed {
    /// Its id.
    pub id: String,
    /// The directory of its record.
    pub dir: PathBuf,
    /// The record, in whatever state the run left it.
    pub run: RunDir,
    /// How it ended. A variant whose copy is not right is an error, too.
    pub ended: Result<Ended>,
    /// What happened in the virtual world, if the clusters were there.
    pub trace: Option<Trace>,
}

/// Executes a plan in a place. Fails if the plan cannot be run as it is asked for, or its record cannot be written.
/// What goes wrong once the record is begun is in [`Executed::ended`].
pub fn execute(plan: &Plan, place: &Place, options: &Options) -> Result<Executed> {
    let resolved = adapted(plan, place, options)?;
    execute_resolved(plan.text(), resolved, place, options)
}

/// Refuses a cluster that nobody has said may be changed.
fn may_change(place: &Place) -> Result<()> {
    if matches!(place, Place::Live(live) if !live.allow_changes) {
        let why = "a run makes an index and changes settings on that cluster, and takes both back at the end; \
                   say --allow-changes if it may";
        return Err(Error::Usage { why: why.to_owned() });
    }
    Ok(())
}

/// Executes a plan that was changed after it was resolved. The record keeps `plan_text`. Fails as [`execute`] does.
pub fn execute_resolved(
    plan_text: &str,
    mut plan: Resolved,
    place: &Place,
    options: &Options,
) -> Result<Executed> {
    plan.check_size(place.name(), place.is_virtual())?;
    plan.check_faults(place.name(), place.is_virtual())?;
    // Nobody is asked for leave to do what cannot be done.
    may_change(place)?;
    if let Place::Embedded { own_mounts, .. } = place
        && !plan.full_disks().is_empty()
    {
        own_mounts().map_err(|why| Error::Usage { why })?;
    }
    let (id, dir) = fresh(&options.runs, &plan.name);
    if matches!(place, Place::Live(_)) {
        plan.name_indices(&clusters::index_of_run(&id));
    }
    let mut manifest = manifest(plan_text, &plan, place, id.clone());
    // Before anything is started: a directory that cannot be written is found now.
    let writer = Writer::create(&dir, &manifest)?;
    let held = writer.hold();
    let mut trace = None;
    let ended = run(&plan, place, options, &dir, writer, &mut manifest, &mut trace);
    manifest.failure = ended.as_ref().err().map(failure);
    manifest.status = match &ended {
        Ok(Ended::Complete) => Status::Complete,
        Ok(Ended::Interrupted) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    let kept = record::replace_manifest(&dir, &manifest);
    drop(held);
    let mut run = RunDir::open(&dir)?;
    // The disk may be full. What was measured is told all the same.
    let ended = match kept {
        Ok(()) => ended,
        Err(error) => {
            run.manifest = manifest;
            ended.and(Err(error.into()))
        }
    };
    Ok(Executed { id, dir, run, ended, trace })
}

/// What a run failed by, as a terminal tells it.
fn failure(error: &Error) -> String {
    let error: &(dyn std::error::Error + 'static) = error;
    let causes = std::iter::successors(Some(error), |error| error.source());
    with_causes(causes.map(ToString::to_string))
}

/// Runs the plan; the record has all that was measured when this returns.
fn run(
    plan: &Resolved,
    place: &Place,
    options: &Options,
    dir: &std::path::Path,
    mut writer: Writer,
    manifest: &mut Manifest,
    trace: &mut Option<Trace>,
) -> Result<Ended> {
    if plan.bucket.is_some() {
        return on_servers::run(plan, place, options, writer);
    }
    match place {
        Place::Embedded { program, .. } => {
            on_processes::run(plan, options, &mut writer, manifest, |env| {
                let clusters = EmbeddedClusters::new(env, program.clone());
                Box::new(clusters.with_small_disks(plan.full_disks()))
            })
        }
        Place::OpenSearch(nodes) => {
            on_processes::run(plan, options, &mut writer, manifest, |env| {
                Box::new(nodes.clusters(env).with_node_links(plan.cuts_nodes_off()))
            })
        }
        Place::Live(live) => on_live::run(plan, live, options, dir, &mut writer, manifest),
        Place::Virtual { planted } => {
            let (ended, happened) = in_virtual_time::run(plan, options, planted, writer)?;
            *trace = Some(happened);
            ended
        }
    }
}
