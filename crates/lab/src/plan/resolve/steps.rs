//! `steps`: what is done, in order.

use std::collections::BTreeMap;

use toml::{Spanned, Table, Value};

use super::following::ACTIONS;
use super::order::Written;
use super::step_text::{Around, StepText};
use super::together::{Together, every};
use crate::choices::unknown;
use crate::error::Result;
use crate::plan::action::Action;
use crate::plan::background::{Background, Runs};
use crate::plan::declared::{DeclaredStep, DeclaredSteps, Needs, Writers};
use crate::plan::file::Plan;
use crate::plan::keys::{Bounds, steps as options};
use crate::plan::resolved::Resolved;
use crate::plan::step::{Measured, Step};
use crate::plan::topology::Cluster;

const NAMES_AND_PATTERN: &str = "a plan follows its indices by their names or by a pattern: \"follow\" or auto_follow, not both";

enum Meaning {
    Step(Step),
    Action(Action),
}

impl Plan {
    /// The steps, and in a plan that follows what happens in it, in order.
    pub(super) fn steps(
        &self,
        declared: &DeclaredSteps,
        leader: Cluster,
        scale: f64,
    ) -> Result<(Vec<Step>, Vec<Action>)> {
        let written = &self.document.steps;
        if written.get_ref().is_empty() {
            return Err(self.error(written.span(), "a plan has at least one step"));
        }
        let fault_nodes = self.fault_nodes();
        let around = Around { leader, fault_nodes: &fault_nodes, scale };
        let meanings = written.get_ref().iter().map(|entry| {
            let step = StepText::read(self, entry)?;
            let name = Written { name: step.name, at: entry.span() };
            Ok((name, entry, step.meaning(declared, around)?))
        });
        let meanings: Vec<_> = every(meanings)?;
        let names: Vec<Written<'_>> = meanings.iter().map(|(name, ..)| name.clone()).collect();
        // The step that actions are part of, where the plan has it.
        let acting = declared.iter().find(|step| step.has_actions).filter(|acting| {
            meanings.iter().any(|(_, _, meaning)| match meaning {
                Meaning::Step(step) => step.name() == acting.name,
                Meaning::Action(action) => action.follows(),
            })
        });
        let (mut steps, mut actions) = (Vec::new(), Vec::new());
        for (_, entry, meaning) in meanings {
            match (meaning, acting) {
                (Meaning::Step(Step::IndexInBackground(rate)), Some(_)) => {
                    actions.push(Action::IndexInBackground(rate));
                }
                (Meaning::Action(action), Some(acting)) => {
                    if matches!(action, Action::AutoFollow(_)) && !has(&steps, acting.name) {
                        steps.push(Step::Measure(measured(acting, BTreeMap::new())));
                    }
                    actions.push(action);
                }
                (Meaning::Action(_), None) => {
                    let names = ACTIONS.map(|action| action.name).join(", ");
                    let message = format!(
                        "the steps {names} are for a plan that follows; add the step \"follow\""
                    );
                    return Err(self.error(entry.span(), message));
                }
                (Meaning::Step(step), _) => {
                    self.check_step(entry, &step, &steps, &actions)?;
                    if acting.is_some_and(|acting| acting.name == step.name()) {
                        actions.push(Action::Follow);
                    }
                    steps.push(step);
                }
            }
        }
        // What goes together is seen once every key is there and read; the order is that of the steps alone.
        if self.has_right_keys() {
            self.check_together(&steps, declared)?;
        }
        let measured = declared.iter().copied().find(|known| has(&steps, known.name));
        self.check_order(&names, declared, measured)?;
        Ok((steps, actions))
    }

    /// Whether a step can stand where it does, after these steps and actions.
    fn check_step(
        &self,
        entry: &Spanned<Value>,
        step: &Step,
        before: &[Step],
        actions: &[Action],
    ) -> Result<()> {
        let by_pattern = || actions.iter().any(|action| matches!(action, Action::AutoFollow(_)));
        let wrong = match step {
            Step::IndexInBackground(rate) if rate.changes() => {
                "only a plan that follows updates and deletes; add the step \"follow\"".to_owned()
            }
            Step::IndexInBackground(rate) if rate.full.is_some() => {
                "only a plan that follows has a full rate; add the step \"follow\"".to_owned()
            }
            // In a plan that follows by a pattern, auto_follow has put this step there.
            Step::Measure(_) if has(before, step.name()) && by_pattern() => {
                NAMES_AND_PATTERN.to_owned()
            }
            _ if has(before, step.name()) => {
                format!("the step \"{}\" stands here twice", step.name())
            }
            _ => return Ok(()),
        };
        Err(self.error(entry.span(), wrong))
    }

    /// Whether steps go together, and with the clusters or the bucket of the plan.
    fn check_together(&self, steps: &[Step], declared: &DeclaredSteps) -> Result<()> {
        let measured: Vec<&DeclaredStep> =
            declared.iter().copied().filter(|known| has(steps, known.name)).collect();
        let lacks_follower = self.document.follower.is_none() || self.document.link.is_none();
        let writes = steps.iter().any(|step| matches!(step, Step::IndexInBackground(_)));
        let wrong = match measured.as_slice() {
            [one, other, ..] => {
                let (one, other) = (one.name, other.name);
                format!("a plan has the step \"{one}\" or \"{other}\", not both")
            }
            [one] if (one.needs == Needs::Bucket) != self.document.bucket.is_some() => {
                let bucket = declared.iter().find(|known| known.needs == Needs::Bucket);
                let name = bucket.map_or(one.name, |known| known.name);
                format!("the step \"{name}\" and a [bucket] need each other")
            }
            [one] if (one.needs == Needs::Twin) != self.document.twin.is_some() => {
                let twin = declared.iter().find(|known| known.needs == Needs::Twin);
                let name = twin.map_or(one.name, |known| known.name);
                format!("the step \"{name}\" and a [twin] need each other")
            }
            [one]
                if matches!(one.needs, Needs::TwoClusters | Needs::SecondSite)
                    && lacks_follower =>
            {
                let (name, lacking) = (one.name, self.lacking_site());
                format!("the step \"{name}\" needs a [follower] and a [link]; add {lacking}")
            }
            all if writes && !all.iter().any(|one| one.writers != Writers::Never) => format!(
                "the step \"index_in_background\" goes on while {} does; add one of them",
                any_of(declared.iter().filter(|known| known.writers != Writers::Never))
            ),
            _ => return Ok(()),
        };
        Err(self.error(self.document.steps.span(), wrong))
    }

    /// The tables of the second cluster and of the way to it that the plan lacks, as they are written.
    fn lacking_site(&self) -> String {
        let follower = self.document.follower.is_none().then_some("[follower] with nodes = 3");
        let link = self.document.link.is_none();
        let link = link.then_some("[link] with rtt = \"100ms\" and rate = \"1gbit\"");
        follower.into_iter().chain(link).collect::<Vec<_>>().join(", and ")
    }

    /// Refuses tables and keys that the step in which variants are measured passes over.
    pub(super) fn check_tables_are_used(
        &self,
        declared: &DeclaredSteps,
        resolved: &Resolved,
    ) -> Result<()> {
        let (plan, variants) = (&self.document, self.document.variant.get_ref());
        let changes = plan.change.iter().chain(variants.iter().flat_map(|own| &own.change));
        let loads = plan.load.iter().chain(variants.iter().filter_map(|own| own.load.as_ref()));
        let faults = plan.fault.iter().chain(variants.iter().flat_map(|own| &own.fault));
        let (changes, loads, faults) = (
            changes.map(|change| change.at.span()).next(),
            loads.map(Spanned::span).next(),
            faults.map(|fault| fault.kind.span()).next(),
        );
        let sends_load: fn(&DeclaredStep) -> bool = |step| step.sends_load;
        let changes_settings: fn(&DeclaredStep) -> bool = |step| step.changes_settings;
        let measured = resolved.measured_step().map_or("", |measured| measured.name);
        for (first, uses, what) in [
            (changes, changes_settings, "settings are changed while a recovery goes on"),
            (loads, sends_load, "[load] says what is sent"),
            (
                faults,
                sends_load,
                "a [[fault]] is brought about while a load is sent (a plan that follows has the step fault)",
            ),
        ] {
            let Some(first) = first else { continue };
            let steps = declared.iter().filter(|step| uses(step)).map(|step| step.name);
            let steps: Vec<&str> = steps.collect();
            if !steps.contains(&measured) {
                let message = match steps.as_slice() {
                    [one] => format!("{what}, in the step {one}; this plan does not have it"),
                    all => {
                        let all = all.join(", ");
                        format!("{what}, in one of the steps {all}; this plan has none of them")
                    }
                };
                return Err(self.error(first, message));
            }
        }
        // A load makes indices anew for a variant with other replicas; what is loaded by its size is made for each.
        let sends = declared.iter().any(|step| step.name == measured && step.sends_load);
        let made_for_each = resolved.spoils_indices() || resolved.full_bytes().is_some() || sends;
        let replicas = variants.iter().find_map(|own| own.replicas.as_ref());
        let why = match resolved.indices.is_empty() {
            true => "this plan has no [[index]] that could have replicas; leave them out",
            false if made_for_each => return Ok(()),
            false => {
                "the indices of this plan are made once for all variants; write replicas into [[index]]"
            }
        };
        replicas.map_or(Ok(()), |number| Err(self.error(number.span(), why)))
    }

    /// Whether all that the plan has goes with the step that variants are measured in, as its experiment says.
    pub(super) fn check_measured(
        &self,
        declared: &DeclaredSteps,
        resolved: &Resolved,
    ) -> Result<()> {
        let Some(measured) = resolved.measured_step() else { return Ok(()) };
        let step = declared.iter().find(|step| step.name == measured.name);
        let checked = step.map_or(Ok(()), |step| (step.check)(resolved));
        checked.map_err(|why| self.error(self.document.steps.span(), why))
    }
}

fn has(steps: &[Step], name: &str) -> bool {
    steps.iter().any(|step| step.name() == name)
}

fn measured(step: &DeclaredStep, options: BTreeMap<&'static str, u32>) -> Measured {
    let measured = Measured { name: step.name, options, spoils_indices: false };
    Measured { spoils_indices: (step.spoils_indices)(&measured), ..measured }
}

/// `"a", "b" or "c"`.
fn any_of<'a>(steps: impl Iterator<Item = &'a &'static DeclaredStep>) -> String {
    let mut names: Vec<String> = steps.map(|step| format!("\"{}\"", step.name)).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
}

pub(in crate::plan) fn names(declared: &DeclaredSteps) -> Vec<&'static str> {
    let mut names = Step::BEFORE.to_vec();
    for step in declared {
        names.extend((step.needs == Needs::Bucket).then_some(Step::FILL));
        names.push(step.name);
    }
    names.push(Step::VERIFY);
    names.extend(ACTIONS.map(|action| action.name));
    names
}

impl StepText<'_> {
    fn meaning(&self, declared: &DeclaredSteps, around: Around<'_>) -> Result<Meaning> {
        if let Some(action) = ACTIONS.iter().find(|action| action.name == self.name) {
            return (action.read)(self, around).map(Meaning::Action);
        }
        if let Some(step) = declared.iter().find(|step| step.name == self.name) {
            return self.measured(step, around.leader).map(Meaning::Step);
        }
        Ok(Meaning::Step(match self.name {
            "start" => Step::Start,
            "index" => Step::Index,
            "index_in_background" => Step::IndexInBackground(self.background()?),
            Step::FILL => Step::Fill,
            Step::VERIFY => Step::Verify,
            name => {
                return Err(self.wrong(unknown("unknown step", name, "Steps", &names(declared))));
            }
        }))
    }

    fn measured(&self, step: &DeclaredStep, leader: Cluster) -> Result<Step> {
        let options = self.section.keys.iter().map(|key| {
            let given = (self.whole(key.name), key.bounds);
            let (Some(value), Some(Bounds::OfLeader(bounds))) = given else { return Ok(None) };
            let (what, bounds) = bounds(leader);
            Ok(Some((key.name, self.plan.number_within(&what, &value, bounds)?)))
        });
        let options: Vec<_> = every(options)?;
        Ok(Step::Measure(measured(step, options.into_iter().flatten().collect())))
    }

    fn background(&self) -> Result<Background> {
        let example = "{ index_in_background = { documents_per_s = 80_000 } }";
        let lacks = format!("say how many documents a second, as {example}");
        let options::Background { documents_per_s, updates, deletes, full } =
            self.options(&lacks)?;
        let found = (
            self.plan.number(self.section, "documents_per_s", &self.here(documents_per_s)),
            self.in_1000("updates", updates),
            self.in_1000("deletes", deletes),
            full.map(|full| self.runs(full)).transpose(),
        );
        let (documents_per_s, updates_in_1000, deletes_in_1000, full) = found.together()?;
        let background = Background { documents_per_s, updates_in_1000, deletes_in_1000, full };
        if background.full.is_some() && background.changes() {
            let message = "what is written at a full rate exists only as a number, and is never changed; take updates and \
                           deletes out, or full";
            return Err(self.wrong(message));
        }
        Ok(background)
    }

    fn runs(&self, full: Table) -> Result<Runs> {
        let lacks = "say in full how many documents_per_s";
        let options::FullBackground { documents_per_s, document_size } =
            self.full(&options::FULL_BACKGROUND, full, lacks)?;
        let of = &options::FULL_BACKGROUND;
        let size = document_size.map(|text| self.plan.size(of, "document_size", &self.here(text)));
        let document_bytes = size.transpose()?;
        let rate = self.here(documents_per_s);
        let documents_per_s = self.plan.number(self.section, "documents_per_s", &rate)?;
        Ok(Runs { documents_per_s, document_bytes })
    }
}
