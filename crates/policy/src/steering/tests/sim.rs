//! A cluster of a few formulas.

use std::collections::BTreeMap;
use std::time::Duration;

use record::observation::{Scope, Setting};
use world::Time;

use crate::steering::bounds::amount;
use crate::steering::{
    Bounds, Decision, Foreground, Holds, Lever, Look, Marks, Role, Steering, Verdict,
};

pub(super) const LIMIT: &str = "indices.recovery.max_bytes_per_sec";
pub(super) const CHUNKS: &str = "indices.recovery.max_concurrent_file_chunks";
pub(super) const SLOTS: &str = "cluster.routing.allocation.node_concurrent_recoveries";
pub(super) const MB: f64 = (1 << 20) as f64;

/// Recoveries whose rate is the least of some ceilings.
pub(super) struct Sim {
    pub(super) now: Time,
    pub(super) settings: BTreeMap<&'static str, (Role, Setting)>,
    /// Bytes a second of each chunk in flight.
    pub(super) per_chunk: f64,
    /// What disks and link carry.
    pub(super) knee: f64,
    pub(super) moved: f64,
    pub(super) later_only: bool,
    /// When the recovery that goes on began, and how long one takes; none for one that never ends.
    pub(super) began: Time,
    pub(super) takes: Option<Duration>,
    pub(super) active: usize,
    pub(super) waiting: u32,
    pub(super) targets: u32,
    /// Milliseconds of a search at a rate.
    pub(super) search_ms: Option<Box<dyn Fn(f64) -> f64>>,
    /// Requests that are refused in a second at a rate.
    pub(super) refused: fn(f64) -> u64,
    pub(super) cpu: Option<f64>,
    /// What is said to hold, where that is not what does.
    pub(super) says: Option<Vec<Verdict>>,
    pub(super) passes_in: Duration,
    pub(super) gain: Option<f64>,
    pub(super) then: Option<Holds>,
    /// Values that recoveries which go on keep to.
    pub(super) obeyed: BTreeMap<&'static str, u64>,
    /// Whether recoveries have ended, so that their settings rule nothing.
    pub(super) rests: bool,
    pub(super) did: Vec<Decision>,
}

impl Sim {
    pub(super) fn new(limit: &str, chunks: &str) -> Sim {
        let found = |role, value: &str, scope| (role, Setting { value: value.to_owned(), scope });
        let settings = BTreeMap::from([
            (LIMIT, found(Role::Rate, limit, Scope::Persistent)),
            (CHUNKS, found(Role::Chunks, chunks, Scope::Default)),
        ]);
        Sim {
            now: Time(0),
            settings,
            per_chunk: 1e9,
            knee: 1e9,
            moved: 0.0,
            later_only: false,
            began: Time(0),
            takes: None,
            active: 1,
            waiting: 0,
            targets: 1,
            search_ms: None,
            refused: |_| 0,
            cpu: None,
            says: None,
            passes_in: Duration::from_millis(100),
            gain: None,
            then: None,
            obeyed: BTreeMap::new(),
            rests: false,
            did: Vec::new(),
        }
    }

    pub(super) fn value(&self, name: &str) -> &str {
        &self.settings[name].1.value
    }

    fn number(&self, name: &'static str) -> f64 {
        let (role, setting) = &self.settings[name];
        let now = amount(*role, &setting.value).unwrap_or(u64::MAX);
        let obeyed = if self.later_only && name == CHUNKS { self.obeyed.get(name) } else { None };
        *obeyed.unwrap_or(&now) as f64
    }

    fn ceilings(&self) -> [(Holds, &'static str, f64); 3] {
        let slots = if self.settings.contains_key(SLOTS) { self.number(SLOTS) } else { 1.0 };
        [
            (Holds::Rate, "rate limit", self.number(LIMIT)),
            (Holds::InFlight, "latency", self.number(CHUNKS) * self.per_chunk * slots),
            (Holds::Elsewhere, "disk", self.knee),
        ]
    }

    pub(super) fn rate(&self) -> f64 {
        self.ceilings().iter().map(|(.., rate)| *rate).fold(f64::MAX, f64::min)
    }

    pub(super) fn look(&self) -> Look {
        let rate = self.rate();
        let (holds, label, _) = *self.ceilings().iter().find(|(.., one)| *one == rate).unwrap();
        let levers = self.settings.iter().map(|(name, (role, setting))| Lever {
            name: (*name).to_owned(),
            role: *role,
            setting: setting.clone(),
            most: (*role == Role::Chunks).then_some(8),
            later_only: self.later_only && *role == Role::Chunks,
        });
        let (resting, levers) = levers.partition(|_| self.rests);
        let search_ms = self.search_ms.as_ref().map(|of| of(rate));
        let held =
            Verdict { holds, label: label.into(), setting: None, gain: self.gain, then: self.then };
        Look {
            at: self.now,
            moved_bytes: self.moved as u64,
            replayed_ops: 0,
            active: vec![self.began; self.active],
            waiting: self.waiting,
            targets: self.targets,
            passes_in: self.passes_in,
            verdicts: self.says.clone().unwrap_or_else(|| vec![held]),
            levers,
            resting,
            settings_are_new: true,
            foreground: Foreground {
                search_ms,
                rejected: (self.refused)(rate),
                cpu: self.cpu,
                ..Foreground::default()
            },
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &str, scope: Scope) {
        let (_, setting) = self.settings.iter_mut().find(|(known, _)| **known == name).unwrap().1;
        *setting = Setting { value: value.to_owned(), scope };
    }

    /// Steers for some seconds; what was decided, without waiting.
    pub(super) fn steer(&mut self, steering: &mut Steering, seconds: u64) -> Vec<Decision> {
        let from = self.did.len();
        for _ in 0..seconds {
            // A chunk more or less between looks.
            let lump = 1.0 + 0.02 * f64::from((self.now.0 / 1_000_000_000 % 5) as u32) - 0.04;
            self.moved += self.rate() * lump * if self.active > 0 { 1.0 } else { 0.0 };
            self.now = self.now + Duration::from_secs(1);
            if self.takes.is_some_and(|takes| self.now - self.began >= takes) {
                self.began = self.now;
                self.obeyed.clear();
            }
            let decision = steering.next(&self.look());
            match &decision {
                Decision::Set(proposal) => {
                    if self.later_only && proposal.setting == CHUNKS {
                        self.obeyed.insert(CHUNKS, self.number(CHUNKS) as u64);
                    }
                    self.set(&proposal.setting, &proposal.to, Scope::Persistent);
                }
                Decision::TakeBack(_, back) | Decision::GiveWay(back, _) => {
                    let default = back.is_as_found && back.setting == CHUNKS;
                    let scope = if default { Scope::Default } else { Scope::Persistent };
                    self.set(&back.setting, &back.to, scope);
                }
                _ => {}
            }
            if !matches!(decision, Decision::Look | Decision::Wait(_)) {
                self.did.push(decision);
            }
        }
        self.did[from..].to_vec()
    }

    pub(super) fn waits(&mut self, steering: &mut Steering) -> String {
        // What is measured has its time.
        for _ in 0..10 {
            self.now = self.now + Duration::from_secs(1);
            self.moved += self.rate();
            match steering.next(&self.look()) {
                Decision::Wait(why) => return why,
                Decision::Look => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("it goes on measuring")
    }
}

pub(super) fn steering() -> Steering {
    Steering::new(Time(0), Bounds::default(), Marks::default())
}

pub(super) fn within(name: &str, most: &str) -> Steering {
    let mut bounds = Bounds::default();
    bounds.at_most(name, most).unwrap();
    Steering::new(Time(0), bounds, Marks::default())
}

/// The values that a setting was given, one after the other.
pub(super) fn tried<'d>(did: &'d [Decision], name: &str) -> Vec<&'d str> {
    let sets = did.iter().filter_map(|one| match one {
        Decision::Set(proposal) if proposal.setting == name => Some(proposal.to.as_str()),
        _ => None,
    });
    sets.collect()
}
