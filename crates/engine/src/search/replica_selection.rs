//! Which policy is in use, by the settings (`choice` asks it), and what `_nodes/stats` shows of what it knows.

use policy::selection::{ArsForm, Policy};
use serde_json::{Map, Value, json};

use super::service::SearchService;
use crate::settings::{Selection, Settings};

/// How the copy of a shard that is asked first is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaSelection {
    /// A policy, of what it was told.
    Policy(Policy),
    /// Knows the state of every node; in the virtual world alone.
    Oracle,
}

impl ReplicaSelection {
    /// As the settings say.
    pub(super) fn of(settings: &Settings) -> ReplicaSelection {
        let adaptive = settings.use_adaptive_replica_selection();
        ReplicaSelection::Policy(match settings.search_selection() {
            Selection::Field if adaptive => Policy::Ars(ArsForm::Corrected),
            Selection::Field | Selection::None => Policy::Rotation,
            Selection::Random => Policy::Random,
            Selection::LeastOutstanding => Policy::LeastOutstanding,
            Selection::Ars61 => Policy::Ars(ArsForm::Inverted),
            Selection::Ars61B4 => Policy::Ars(ArsForm::FourthPower),
            Selection::Ars713 => Policy::Ars(ArsForm::Corrected),
            Selection::Ars95 => Policy::Ars(ArsForm::QueueOnly),
            Selection::C3 => Policy::C3,
            Selection::TwoChoices => Policy::TwoChoices,
            Selection::Prequal => Policy::Prequal,
            Selection::Narrows => Policy::Narrows,
            Selection::Oracle => return ReplicaSelection::Oracle,
        })
    }
}

/// The part of `_nodes/stats` about the choice of copies: as the field has it, and the rank's form and numbers.
pub(crate) fn adaptive_selection_json(service: &SearchService) -> Value {
    let form = match ReplicaSelection::of(&service.core.settings()) {
        ReplicaSelection::Policy(Policy::Ars(form)) => form,
        _ => ArsForm::Corrected,
    };
    let selector = service.selector.borrow();
    let rows = selector.rows(form).into_iter().map(|row| {
        let text = |ns: f64| format!("{:.1}ms", ns / 1e6);
        let value = json!({
            "outgoing_searches": selector.outstanding(&row.node),
            "avg_queue_size": row.stats.queue as u64,
            "avg_service_time": text(row.stats.service_ns),
            "avg_service_time_ns": row.stats.service_ns as u64,
            "avg_response_time": text(row.stats.response_ns),
            "avg_response_time_ns": row.stats.response_ns as u64,
            "rank": format!("{:.1}", row.rank_ms),
        });
        (row.node, value)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}
