//! The parameters of a follower, by the names that they have in the field. They belong to one follower index and come
//! with `_ccr/follow` and `_ccr/resume_follow`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::kind::{Kind, Typed};
use super::{SettingError, SettingsMap};
use policy::following::Limits;

const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
const COUNT_MAX: u64 = i32::MAX as u64;
/// Sizes are read as floating point, which has no 2^63 - 1.
const SIZE_MAX: u64 = 1 << 63;

/// One parameter: what a value may be, and where it stands among the limits.
struct Parameter {
    name: &'static str,
    kind: Kind,
    set: fn(&mut Limits, Typed),
    show: fn(&Limits) -> Value,
}

macro_rules! count {
    ($name:ident, $min:literal) => {
        Parameter {
            name: stringify!($name),
            kind: Kind::Count { min: $min, max: COUNT_MAX },
            set: |limits, value| {
                if let Typed::Count(count) = value {
                    limits.$name = count;
                }
            },
            show: |limits| json!(limits.$name),
        }
    };
}

macro_rules! size {
    ($name:ident) => {
        Parameter {
            name: stringify!($name),
            kind: Kind::Size { min: 1, max: SIZE_MAX },
            set: |limits, value| {
                if let Typed::Size(bytes) = value {
                    limits.$name = bytes;
                }
            },
            show: |limits| json!(record::units::show_size_setting(limits.$name)),
        }
    };
}

macro_rules! time {
    ($name:ident, $min:expr) => {
        Parameter {
            name: stringify!($name),
            kind: Kind::Duration { min: $min, may_be_off: false },
            set: |limits, value| {
                if let Typed::Duration(Some(time)) = value {
                    limits.$name = time;
                }
            },
            show: |limits| json!(super::kind::show_time(limits.$name)),
        }
    };
}

static PARAMETERS: [Parameter; 10] = [
    count!(max_outstanding_read_requests, 1),
    count!(max_outstanding_write_requests, 1),
    count!(max_read_request_operation_count, 1),
    size!(max_read_request_size),
    time!(max_retry_delay, Duration::from_nanos(1)),
    count!(max_write_buffer_count, 1),
    size!(max_write_buffer_size),
    count!(max_write_request_operation_count, 1),
    size!(max_write_request_size),
    time!(read_poll_timeout, Duration::ZERO),
];

/// The parameters that a follower was given, as canonical text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowParameters(SettingsMap);

impl FollowParameters {
    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PARAMETERS.iter().map(|parameter| parameter.name)
    }

    /// Takes the parameters out of the body of a request; what else it holds is left.
    pub fn take(body: &mut Map<String, Value>) -> Result<Self, SettingError> {
        let mut given = SettingsMap::new();
        for Parameter { name, kind, .. } in &PARAMETERS {
            let text = match body.remove(*name) {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
            };
            let refused = |why: String| SettingError::Value {
                name: (*name).to_owned(),
                value: text.clone(),
                why,
            };
            let read = kind.read(&text).map_err(refused)?;
            if *name == "max_retry_delay"
                && matches!(read, Typed::Duration(Some(delay)) if delay > MAX_RETRY_DELAY)
            {
                return Err(refused("it must be at most 5m".to_owned()));
            }
            given.insert((*name).to_owned(), kind.canonical(&text).map_err(refused)?);
        }
        Ok(FollowParameters(given))
    }

    /// Whether any was given.
    pub(crate) fn any_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// The values: those given, else the defaults.
    pub fn limits(&self) -> Limits {
        let may_rest = !self.0.contains_key("read_poll_timeout");
        let mut limits = Limits { may_rest, ..Limits::default() };
        for Parameter { name, kind, set, .. } in &PARAMETERS {
            // A value of an older build that this one does not accept counts as not given.
            if let Some(value) = self.0.get(*name).and_then(|text| kind.read(text).ok()) {
                set(&mut limits, value);
            }
        }
        limits
    }

    /// All of them with their values, as `_ccr/info` shows them.
    pub fn to_json(&self) -> Value {
        let limits = self.limits();
        let shown = |p: &Parameter| (p.name.to_owned(), (p.show)(&limits));
        Value::Object(PARAMETERS.iter().map(shown).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(body: Value) -> Result<FollowParameters, SettingError> {
        let Value::Object(mut body) = body else { panic!("a body is an object") };
        FollowParameters::take(&mut body)
    }

    #[test]
    fn what_was_not_given_has_the_default_of_the_field() {
        let none = taken(json!({"leader_index": "a"})).unwrap();
        assert!(!none.any_given());
        assert_eq!(none.limits(), Limits::default());
        assert_eq!(
            none.to_json(),
            json!({
                "max_outstanding_read_requests": 12,
                "max_outstanding_write_requests": 9,
                "max_read_request_operation_count": 5120,
                "max_read_request_size": "32mb",
                "max_retry_delay": "500ms",
                "max_write_buffer_count": 2_147_483_647,
                "max_write_buffer_size": "512mb",
                "max_write_request_operation_count": 5120,
                "max_write_request_size": "9223372036854775807b",
                "read_poll_timeout": "1m",
            })
        );
    }

    #[test]
    fn given_ones_are_read_and_refused_as_settings_are() {
        let body = json!({"max_outstanding_read_requests": 3, "read_poll_timeout": "5s",
            "max_read_request_size": "1024kb"});
        let limits = taken(body).unwrap().limits();
        assert_eq!(limits.max_outstanding_read_requests, 3);
        assert_eq!((limits.read_poll_timeout, limits.may_rest), (Duration::from_secs(5), false));
        assert_eq!(limits.max_read_request_size, 1 << 20);
        let said = |body: Value| taken(body).unwrap_err().to_string();
        assert!(said(json!({"max_retry_delay": "6m"})).contains("at most 5m"));
        assert!(said(json!({"max_retry_delay": "0s"})).contains("[max_retry_delay]"));
        assert!(said(json!({"max_outstanding_read_requests": 0})).contains("from 1 to"));
        assert!(said(json!({"max_write_buffer_size": "much"})).contains("max_write_buffer_size"));
    }
}
