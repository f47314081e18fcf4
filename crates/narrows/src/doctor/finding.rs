//! One thing that was looked for, and all that a group of commands needs.

use machine::Tool;

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It is there.
    Here,
    /// The commands work, and do less or want an option.
    Less,
    /// The commands do not work.
    Lacks,
}

impl State {
    /// As it is printed, and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Here => "ok",
            State::Less => "less",
            State::Lacks => "lacks",
        }
    }
}

/// One thing that was looked for.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) what: &'static str,
    pub(crate) state: State,
    /// What there is, or what was found instead.
    pub(crate) found: String,
    /// What has it, where it is not there.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn here(what: &'static str, found: String) -> Finding {
        Finding { what, state: State::Here, found, remedy: None }
    }

    pub(crate) fn not_here(
        what: &'static str,
        state: State,
        found: String,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding { what, state, found, remedy: Some(remedy.into()) }
    }

    /// Looks for a tool; without it the state is `without`, and `then` says what that means.
    pub(crate) fn of(tool: &Tool, without: State, then: &str) -> Finding {
        match tool.look() {
            Ok(found) => Finding::here(tool.name, found),
            Err(why) => {
                let comma = if then.is_empty() { "" } else { ": " };
                Finding::not_here(tool.name, without, format!("{why}{comma}{then}"), tool.remedy)
            }
        }
    }
}

/// What some commands need.
#[derive(Debug)]
pub(crate) struct Group {
    /// What they do, and how they are called.
    pub(crate) title: &'static str,
    pub(crate) findings: Vec<Finding>,
}

impl Group {
    /// The worst state of what they need.
    pub(crate) fn state(&self) -> State {
        self.findings.iter().map(|finding| finding.state).max().unwrap_or(State::Here)
    }

    /// What they do not work without.
    pub(crate) fn lacking(&self) -> Vec<&'static str> {
        let lacking = self.findings.iter().filter(|finding| finding.state == State::Lacks);
        lacking.map(|finding| finding.what).collect()
    }
}
