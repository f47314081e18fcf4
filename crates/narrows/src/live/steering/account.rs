//! Each step as a line: an account of the night.

use insight::words;
use policy::steering::{Back, Decision, Outcome, Proposal};
use serde_json::{Value, json};

/// How a line begins that tells of a cluster which does not answer. What its hosts say of that comes behind a colon.
pub(super) const SILENT: &str = "the cluster does not answer";

/// Something worth a line.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time, for a moment")]
pub(crate) enum Entry {
    /// What is done, or would be done.
    Decided { decision: Decision, is_done: bool },
    /// Anything else, in words: `lease`, `put back`.
    Said { what: &'static str, text: String },
}

impl Entry {
    pub(crate) fn said(what: &'static str, text: impl Into<String>) -> Entry {
        Entry::Said { what, text: text.into() }
    }

    /// A setting that has another value from now on, and that value; none where it is as it was found.
    pub(super) fn changed(&self) -> Option<(&str, Option<&str>)> {
        let Entry::Decided { decision, is_done: true } = self else { return None };
        match decision {
            Decision::Set(proposal) => Some((&proposal.setting, Some(&proposal.to))),
            Decision::TakeBack(_, back) | Decision::GiveWay(back, _) => {
                Some((&back.setting, (!back.is_as_found).then_some(&*back.to)))
            }
            _ => None,
        }
    }

    /// A line for people.
    pub(crate) fn text(&self) -> String {
        let (decision, is_done) = match self {
            Entry::Said { what, text } => return format!("{what}: {text}"),
            Entry::Decided { decision, is_done } => (decision, *is_done),
        };
        match decision {
            Decision::Look => "look".to_owned(),
            Decision::Wait(why) => format!("wait: {why}"),
            Decision::Leave(why) => format!("leave: {why}; it is not touched"),
            Decision::Stop(why) => format!("stop: {why}"),
            Decision::Set(proposal) => {
                let set = if is_done { "set" } else { "would set" };
                format!(
                    "{set} {}: {} holds; before {}, expected {}",
                    change(proposal),
                    proposal.label,
                    words::rate(proposal.before_per_s),
                    expected(proposal)
                )
            }
            Decision::Keep(outcome) => format!("keep {}", trial(outcome)),
            Decision::TakeBack(outcome, back) => {
                format!("take back {}: {}; it is {} again", trial(outcome), outcome.says, back.to)
            }
            Decision::GiveWay(back, why) => {
                format!("give way: {} {} -> {}: {why}", back.setting, back.from, back.to)
            }
        }
    }

    /// A line for programs.
    pub(crate) fn json(&self, time: &str) -> Value {
        let (decision, is_done) = match self {
            Entry::Said { what, text } => {
                return json!({ "time": time, "step": what.replace(' ', "_"), "why": text });
            }
            Entry::Decided { decision, is_done } => (decision, *is_done),
        };
        let proposed = |step: &str, proposal: &Proposal| {
            json!({
                "time": time, "step": step, "setting": proposal.setting, "from": proposal.from,
                "to": proposal.to, "holds": proposal.label, "before_per_s": proposal.before_per_s,
                "expected": proposal.expected,
            })
        };
        let came = |step: &str, outcome: &Outcome| {
            let mut line = proposed(step, &outcome.proposal);
            line["after_per_s"] = json!(outcome.after_per_s);
            line["got"] = json!(outcome.got());
            line["why"] = json!(outcome.says);
            line
        };
        match decision {
            Decision::Look => json!({ "time": time, "step": "look" }),
            Decision::Wait(why) => json!({ "time": time, "step": "wait", "why": why }),
            Decision::Leave(why) => json!({ "time": time, "step": "leave", "why": why }),
            Decision::Stop(why) => json!({ "time": time, "step": "stop", "why": why }),
            Decision::Set(proposal) if is_done => proposed("set", proposal),
            Decision::Set(proposal) => proposed("would_set", proposal),
            Decision::Keep(outcome) => came("keep", outcome),
            Decision::TakeBack(outcome, _) => came("take_back", outcome),
            Decision::GiveWay(Back { setting, from, to, .. }, why) => json!({
                "time": time, "step": "give_way", "setting": setting, "from": from, "to": to,
                "why": why,
            }),
        }
    }
}

fn change(proposal: &Proposal) -> String {
    format!("{} {} -> {}", proposal.setting, proposal.from, proposal.to)
}

fn expected(proposal: &Proposal) -> String {
    match proposal.expected {
        Some(times) => format!("up to {}", words::times(times)),
        None => "nothing: it is tried".to_owned(),
    }
}

fn trial(outcome: &Outcome) -> String {
    let proposal = &outcome.proposal;
    let after = outcome.after_per_s.map_or_else(|| "not told".to_owned(), words::rate);
    let got = outcome.got().map_or_else(|| "not told".to_owned(), words::times);
    format!(
        "{}: before {}, after {after}, expected {}, got {got}",
        change(proposal),
        words::rate(proposal.before_per_s),
        expected(proposal)
    )
}

/// Where lines go. What is waited for is told once, until it is something else.
pub(crate) struct Account<'a> {
    write: &'a mut dyn FnMut(&Entry) -> anyhow::Result<()>,
    last: Option<Entry>,
}

impl<'a> Account<'a> {
    pub(crate) fn new(write: &'a mut dyn FnMut(&Entry) -> anyhow::Result<()>) -> Account<'a> {
        Account { write, last: None }
    }

    /// Writes a line, unless it is the last one again.
    pub(crate) fn tell(&mut self, entry: Entry) -> anyhow::Result<()> {
        if self.last.as_ref().is_some_and(|last| last.is_again(&entry)) {
            return Ok(());
        }
        (self.write)(&entry)?;
        self.last = Some(entry);
        Ok(())
    }
}

impl Entry {
    /// What it says of a cluster that does not answer, apart from what each host says; none where it is of anything
    /// else.
    fn silence(&self) -> Option<&str> {
        match self {
            Entry::Said { text, .. } if text.starts_with(SILENT) => text.split(':').next(),
            _ => None,
        }
    }

    /// Whether it says nothing new after this one.
    fn is_again(&self, next: &Entry) -> bool {
        let decided = |entry: &Entry| match entry {
            Entry::Decided { decision, is_done } => Some((decision.clone(), *is_done)),
            Entry::Said { .. } => None,
        };
        if let (Some(one), Some(other)) = (self.silence(), next.silence()) {
            return one == other;
        }
        match (decided(self), decided(next)) {
            // What would be set is the same while only the rate before is another.
            (Some((Decision::Set(one), false)), Some((Decision::Set(other), false))) => {
                change(&one) == change(&other)
            }
            // Why it waits is the same while only its figures are others.
            (Some((Decision::Wait(one), _)), Some((Decision::Wait(other), _))) => {
                without_figures(&one) == without_figures(&other)
            }
            _ => self == next,
        }
    }
}

fn without_figures(why: &str) -> String {
    why.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_it_waits_is_told_once_whatever_the_figures() {
        let mut told = Vec::new();
        let mut write = |entry: &Entry| {
            told.push(entry.text());
            Ok(())
        };
        let mut account = Account::new(&mut write);
        let queries = "of the guard's queries failed";
        let waits =
            [format!("2 {queries}"), format!("14 {queries}"), "nothing recovers".to_owned()];
        for why in waits.iter().chain(&waits[..1]) {
            let decision = Decision::Wait(why.clone());
            account.tell(Entry::Decided { decision, is_done: true }).unwrap();
        }
        assert_eq!(told, [&waits[0], &waits[2], &waits[0]].map(|why| format!("wait: {why}")));
    }
}
