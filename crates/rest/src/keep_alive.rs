//! How long scrolls and points in time are kept, and which point in time a search is of.

use std::time::Duration;

use query::SearchRequest;
use record::units;

use super::call::Call;
use super::error::{bad_request, invalid};
use super::names::EXPRESSION;
use super::parameters::Query;
use super::time_text::span;
use engine::search::PointInTime;
use engine::transport::Result;

/// How long a scroll is to be kept for its next page.
pub(super) fn scroll_keep_alive(call: &Call, text: Option<&str>) -> Result<Duration> {
    let settings = call.node.core().settings();
    let Some(text) = text else { return Ok(settings.search_default_keep_alive()) };
    bounded(("scroll", text), ("search.max_keep_alive", settings.search_max_keep_alive()))
}

/// How long a point in time is to be kept for its next search.
pub(super) fn point_in_time_keep_alive(call: &Call, text: &str) -> Result<Duration> {
    let most = call.node.core().settings().point_in_time_max_keep_alive();
    bounded(("keep_alive", text), ("point_in_time.max_keep_alive", most))
}

fn bounded((parameter, text): (&str, &str), (setting, most): (&str, Duration)) -> Result<Duration> {
    let keep_alive = units::parse_duration(text).map_err(|error| {
        bad_request(format!("failed to parse parameter [{parameter}]: {error}"))
    })?;
    if keep_alive.is_zero() {
        return Err(bad_request(format!("[{parameter}] must be longer than [{text}]")));
    }
    if keep_alive > most {
        return Err(bad_request(format!(
            "Keep alive for request ({text}) is too large. It must be less than ({}). This limit can be set by changing \
             the [{setting}] cluster level setting.",
            span(most.as_millis() as u64)
        )));
    }
    Ok(keep_alive)
}

/// The point in time that a search is of; none where the body names none.
pub(super) fn point_in_time(
    call: &Call,
    (expression, query): (Option<&str>, &Query),
    request: &SearchRequest,
) -> Result<Option<PointInTime>> {
    let Some(point) = &request.point_in_time else { return Ok(None) };
    let mut refused = EXPRESSION.iter().copied().chain(["preference", "routing"]);
    let given = match expression.filter(|text| !text.is_empty()) {
        Some(_) => Some("indices"),
        None => refused.find(|name| query.get(name).is_some()),
    };
    if let Some(given) = given {
        return Err(invalid(&format!("[{given}] cannot be used with point in time")));
    }
    let keep_alive = point.keep_alive.as_ref().map(|text| point_in_time_keep_alive(call, text));
    PointInTime::parse(&point.id, keep_alive.transpose()?).map(Some)
}
