//! A case of searches: what is injected how strongly into which surroundings, all of it drawn from one number. Pure.

use std::time::Duration;

use insight::diagnosis::Class;

use super::super::draw::{Draw, Subject, Turn};
use super::super::one_cause::{CaseOf, Known, OneCause};

/// How many times as long the slow node takes, by severity.
const SLOWER: [f64; 3] = [4.0, 8.0, 20.0];

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All nodes are alike, and searches are spread without looking.
    Alike,
    /// One node answers late, and searches go around it.
    Around,
    /// One node answers late, and searches are spread without looking.
    Unlooked,
}

/// Every kind. Half are healthy.
const DECK: [Kind; 4] = [Kind::Unlooked, Kind::Alike, Kind::Unlooked, Kind::Around];

/// Something that an operator can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// `cluster.routing.use_adaptive_replica_selection`.
    Selection,
    /// The slow node is mended.
    Node,
}

/// Everything that a run is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) shards: u32,
    pub(crate) cores: u32,
    /// What a core is occupied with a search of one shard.
    pub(crate) search: Duration,
    /// Searches at once.
    pub(crate) clients: u32,
    /// Whether nodes look before they choose a copy.
    pub(crate) is_adaptive: bool,
    /// How many times as long one node takes for everything.
    pub(crate) slower: f64,
}

pub(crate) type Case = CaseOf<Kind, Conditions>;

impl Case {
    /// The case of searches of a seed; none of most seeds.
    pub(crate) fn of(seed: u64) -> Option<Case> {
        let turn = Turn::among(Subject::Searches, seed)?;
        let (kind, severity) = (turn.kind(&DECK), turn.severity_in_turn(&DECK));
        let mut draw = Draw::of(seed.rotate_left(16));
        let surroundings = Conditions {
            shards: draw.one_of(&[2, 4]),
            cores: draw.one_of(&[4, 8]),
            search: Duration::from_secs_f64(draw.between(1.0, 8.0) / 1e3),
            clients: draw.one_of(&[4, 8, 12]),
            is_adaptive: kind != Kind::Alike,
            slower: if kind == Kind::Alike { 1.0 } else { SLOWER[severity - 1] },
        };
        Some(Case { seed, kind, severity, surroundings })
    }
}

impl OneCause for Case {
    type Conditions = Conditions;
    type Action = Action;
    const ACTIONS: &'static [Action] = &[Action::Selection, Action::Node];

    fn known(&self) -> Known<Action> {
        match self.kind {
            Kind::Alike => ("healthy: searches of nodes that are alike", None, &[]),
            // A slow node that searches go around holds none.
            Kind::Around => ("healthy: searches that go around a slow node", None, &[]),
            // A node that is mended needs no way around it.
            Kind::Unlooked => (
                "searches that are spread without looking",
                Some(Class::ReplicaRouting),
                &[Action::Selection, Action::Node],
            ),
        }
    }

    /// As strong as its severity, however much is searched.
    fn injected(&self, _: f64) -> Conditions {
        let is_adaptive = self.surroundings.is_adaptive && self.kind != Kind::Unlooked;
        Conditions { is_adaptive, ..self.surroundings.clone() }
    }

    fn act(&self, conditions: &mut Conditions, action: Action) {
        match action {
            Action::Selection => conditions.is_adaptive = true,
            Action::Node => conditions.slower = 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::one_cause::counted;
    use super::*;

    #[test]
    fn one_seed_in_five_and_its_neighbour_draw_searches_of_every_kind_and_severity() {
        let all: Vec<Case> = (0..120).filter_map(Case::of).collect();
        assert_eq!(counted(&all, &DECK), (24, 12));
    }

    #[test]
    fn what_is_injected_is_taken_back_by_its_usual_action() {
        for case in (0..120).filter_map(Case::of) {
            let mut conditions = case.injected(0.0);
            assert_eq!(conditions == case.surroundings, case.lifted_by().is_empty(), "{case:?}");
            if let [usual, ..] = case.lifted_by() {
                case.act(&mut conditions, *usual);
                assert_eq!(conditions, case.surroundings, "{case:?}");
            }
        }
    }
}
