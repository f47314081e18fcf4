//! A place where time is real, and what was found of the conclusions there.

use insight::words::counted;
use serde::{Deserialize, Serialize};

/// What was found at a place where time is real.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Its name: `processes`, `OpenSearch 2.19.1`.
    pub on: String,
    /// The day, as 2026-11-25.
    pub date: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Size of the plans' indices; 1 is their own.
    pub scale: f64,
    /// Repetitions of each variant.
    pub laps: u32,
    /// What made it.
    pub command: String,
    /// Every conclusion that says the same there.
    pub conclusions: Vec<Found>,
}

/// What was found of a conclusion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The document's id.
    pub document: String,
    /// What is claimed.
    pub claim: String,
    /// The number; none where what it speaks of failed.
    pub ours: Option<f64>,
    /// Whether it holds; none where there is no number.
    pub holds: Option<bool>,
    /// Why it does not hold or is not measured; empty where it holds.
    pub why: String,
    /// Laps that were judged each by itself.
    #[serde(default)]
    pub laps: usize,
    /// In how many of them it holds.
    #[serde(default)]
    pub laps_holding: usize,
}

impl Found {
    /// The explanation that it needs; what holds needs none.
    pub(super) fn explained(&self) -> Option<&str> {
        (self.holds != Some(true) && !self.why.is_empty()).then_some(self.why.as_str())
    }

    /// Whether it holds in some laps and not in others.
    fn differs(&self) -> bool {
        (1..self.laps).contains(&self.laps_holding)
    }

    /// ` (holds in 3 of 5 laps)`, where laps differ.
    pub(super) fn in_laps(&self) -> String {
        if !self.differs() {
            return String::new();
        }
        format!(" (holds in {} of {} laps)", self.laps_holding, self.laps)
    }
}

/// `12 of 17 conclusions hold`, of those that hold and those that do not.
pub(super) fn that_hold((holding, failing): (usize, usize), one: &str, many: &str) -> String {
    let all = holding + failing;
    let verb = if holding == 1 || all == 1 { "holds" } else { "hold" };
    format!("{holding} of {} {verb}", counted(all, one, many))
}

impl Place {
    fn count(&self, holds: bool) -> usize {
        self.conclusions.iter().filter(|found| found.holds == Some(holds)).count()
    }

    /// `OpenSearch 2.19.1, 2026-11-25, 2 cores, 4 laps, scale 0.1: 12 of 17 conclusions hold, and laps differ on 3`.
    /// Those that were not measured are not counted.
    pub(super) fn line(&self) -> String {
        let laps = counted(self.laps, "lap", "laps");
        let scale =
            if self.scale == 1.0 { String::new() } else { format!(", scale {}", self.scale) };
        let cores = counted(self.cores, "core", "cores");
        let both = (self.count(true), self.count(false));
        let holding = that_hold(both, "conclusion", "conclusions");
        let differ = match self.conclusions.iter().filter(|found| found.differs()).count() {
            0 => String::new(),
            differ => format!(", and laps differ on {differ}"),
        };
        format!("{}, {}, {cores}, {laps}{scale}: {holding}{differ}", capital(&self.on), self.date)
    }

    /// For a terminal. Ends with a line break.
    pub fn text(&self) -> String {
        let one = |found: &Found| {
            let ours = found.ours.map_or_else(String::new, |ours| format!(": {ours:.2}"));
            let (verdict, laps) = (verdict(found.holds), found.in_laps());
            format!("{verdict:14} {} ({}){ours}{laps}\n", found.claim, found.document)
        };
        let all: String = self.conclusions.iter().map(one).collect();
        format!("{all}\n{}.\n", self.line())
    }
}

/// Whether a conclusion holds, in words.
pub(super) fn verdict(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "not measured",
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// How places where time is real differ.
pub(super) const WHERE_TIME_IS_REAL: &str = "The same inequalities on one machine, with the plans' small indices: processes of this \
    engine, and OpenSearch, where a copy that is added across the link stands for a recovery from remote. Only ratios and \
    shares are asked there: seconds are those of the machine. A number is of all laps together; where laps differ, it says \
    in how many of them the conclusion holds.";
