//! What to do, with the reason and the figures.

/// What a steerer answers to a look.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Look again: something is being measured.
    Look,
    /// Nothing; why, in words that stay the same while the reason does.
    Wait(String),
    /// Set a setting.
    Set(Proposal),
    /// What was set last helps: it stays.
    Keep(Outcome),
    /// What was set last does not help: put it back to what it was before.
    TakeBack(Outcome, Back),
    /// Users suffer: put a setting back; why, in words.
    GiveWay(Back, String),
    /// Somebody else changed a setting that was not touched: from now on it is left alone; in words.
    Leave(String),
    /// End; why, in words.
    Stop(String),
}

/// A setting to set, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Its name.
    pub setting: String,
    /// Its value now.
    pub from: String,
    /// The value to set.
    pub to: String,
    /// What holds recoveries now: `rate limit`.
    pub label: String,
    /// Bytes a second (operations where they are replayed) before.
    pub before_per_s: f64,
    /// How many times as high the rate is expected to be, at most; none where nobody can say.
    pub expected: Option<f64>,
}

/// What came of a proposal.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What was tried.
    pub proposal: Proposal,
    /// The rate after; none where it could not be measured.
    pub after_per_s: Option<f64>,
    /// What that says, in words.
    pub says: String,
}

impl Outcome {
    /// The rate after, divided by the rate before.
    pub fn got(&self) -> Option<f64> {
        let before = self.proposal.before_per_s;
        self.after_per_s.filter(|_| before > 0.0).map(|after| after / before)
    }
}

/// A setting to put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// Its name.
    pub setting: String,
    /// Its value now.
    pub from: String,
    /// The value that it had before.
    pub to: String,
    /// Whether that is how it was found, where it may not have been set at all.
    pub is_as_found: bool,
}
