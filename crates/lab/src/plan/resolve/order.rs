//! The order of steps: what comes before what, and what a plan cannot do without.

use std::ops::Range;

use crate::error::Result;
use crate::plan::declared::{DeclaredStep, DeclaredSteps, Needs};
use crate::plan::file::Plan;
use crate::plan::step::Step;

/// A step or an action by its name, where it is written.
#[derive(Clone)]
pub(super) struct Written<'a> {
    pub(super) name: &'a str,
    pub(super) at: Range<usize>,
}

impl Plan {
    /// Whether the steps stand in an order in which they can be done, and none is missing.
    pub(super) fn check_order(
        &self,
        written: &[Written<'_>],
        declared: &DeclaredSteps,
        measured: Option<&DeclaredStep>,
    ) -> Result<()> {
        let span = self.document.steps.span();
        let Some(measured) = measured else {
            let all: Vec<&str> = declared.iter().map(|step| step.name).collect();
            let all = all.join(", ");
            let message = format!("no step measures anything; add one of {all} before \"verify\"");
            return Err(self.error(span, message));
        };
        let fills = match measured.needs {
            Needs::Bucket => Step::FILL,
            _ => Step::BEFORE[1],
        };
        let fills_it = !measured.has_actions && measured.needs != Needs::Twin;
        let needed = [(Step::BEFORE[0], true), (fills, fills_it), (Step::VERIFY, measured.copies)];
        let missing: Vec<&str> = needed
            .iter()
            .filter(|(name, needed)| *needed && !written.iter().any(|step| step.name == *name))
            .map(|(name, _)| *name)
            .collect();
        // What follows by a pattern is made after it; that is said by its experiment.
        let by_pattern = written.iter().any(|step| step.name == "auto_follow");
        let rank = |name: &str| match name {
            "index" if by_pattern => rank("auto_follow", measured),
            name => rank(name, measured),
        };
        let mut right: Vec<(u32, &str)> =
            written.iter().map(|step| (rank(step.name), self.excerpt(step.at.clone()))).collect();
        let quoted: Vec<String> = missing.iter().map(|name| format!("\"{name}\"")).collect();
        right.extend(missing.iter().zip(&quoted).map(|(name, text)| (rank(name), text.as_str())));
        // Stable: steps of one rank stay as they are.
        right.sort_by_key(|(rank, _)| *rank);
        let right: Vec<&str> = right.into_iter().map(|(_, text)| text).collect();
        let line = format!("steps = [{}]", right.join(", "));
        if let [first, ..] = missing.as_slice() {
            let message = format!("the step \"{first}\" is missing; write {line}");
            return Err(self.error(span, message));
        }
        let ranks = written.windows(2).map(|pair| (&pair[0], &pair[1]));
        for (before, step) in ranks {
            if rank(before.name) > rank(step.name) {
                let (before, name) = (before.name, step.name);
                let message = format!("\"{name}\" comes before \"{before}\"; write {line}");
                return Err(self.error(step.at.clone(), message));
            }
        }
        self.check_ends(written)
    }

    /// Whether what is stopped was begun.
    fn check_ends(&self, written: &[Written<'_>]) -> Result<()> {
        for (begins, ends) in
            [("index_in_background", "stop_indexing"), ("restart_at_random", "stop_restarts")]
        {
            let mut goes_on = false;
            for step in written {
                if step.name == ends && !goes_on {
                    let message = format!(
                        "{ends} stops nothing here; take it out, or put {begins} before it"
                    );
                    return Err(self.error(step.at.clone(), message));
                }
                if step.name == begins || step.name == ends {
                    goes_on = step.name == begins;
                }
            }
        }
        Ok(())
    }
}

/// What is done earlier has a lower rank. What happens in a plan that follows is done as it stands.
fn rank(name: &str, measured: &DeclaredStep) -> u32 {
    match name {
        "start" => 0,
        "index" | Step::FILL => 1,
        "index_in_background" if !measured.has_actions => 2,
        Step::VERIFY => 4,
        _ => 3,
    }
}
