//! Time zones: fixed offsets, and those that have a name (`America/New_York`), by the rules of the IANA database.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, AmbiguousTimestamp, Offset, TimeZone};

/// A time zone.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone {
    name: String,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq)]
enum Rules {
    /// Milliseconds that its clocks are ahead.
    Fixed(i64),
    Named(TimeZone),
}

impl Default for Zone {
    fn default() -> Self {
        Zone { name: "Z".to_owned(), rules: Rules::Fixed(0) }
    }
}

impl TryFrom<String> for Zone {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let rules = match fixed_ms(&name) {
            Some(ms) => Rules::Fixed(ms),
            None => Rules::Named(TimeZone::get(&name).map_err(|_| {
                format!(
                    "[{name}] is no time zone; write Z, +02:00, or a name like Europe/Paris of the IANA time zone \
                     database"
                )
            })?),
        };
        Ok(Zone { name, rules })
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> String {
        zone.name
    }
}

/// Milliseconds of an offset: `Z`, `UTC`, `+02:00`.
fn fixed_ms(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "UTC" | "GMT" | "Etc/UTC" | "utc") {
        return Some(0);
    }
    let rest = text.strip_prefix(['+', '-'])?;
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if rest.len() == 4 && rest.is_ascii() => rest.split_at(2),
        None => (rest, "0"),
    };
    let number = |text: &str| text.parse::<u8>().ok().map(i64::from);
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

impl Zone {
    /// Whether its clocks show UTC.
    pub fn is_utc(&self) -> bool {
        self.rules == Rules::Fixed(0)
    }

    /// Milliseconds that its clocks are ahead at a moment. Moments that no calendar has are those of UTC.
    pub fn offset_ms(&self, ms: i64) -> i64 {
        match &self.rules {
            Rules::Fixed(offset) => *offset,
            Rules::Named(zone) => Timestamp::from_millisecond(ms)
                .map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()) * 1000),
        }
    }

    /// What its clocks show at a moment, in milliseconds.
    pub fn local(&self, ms: i64) -> i64 {
        ms.saturating_add(self.offset_ms(ms))
    }

    /// The last moment up to this one at which its clocks were changed.
    pub fn last_change(&self, ms: i64) -> Option<i64> {
        let Rules::Named(zone) = &self.rules else { return None };
        let behind = Timestamp::from_millisecond(ms.checked_add(1)?).ok()?;
        zone.preceding(behind).next().map(|change| change.timestamp().as_millisecond())
    }

    /// The moment at which its clocks show `local`: the first where they show it twice; where they leave it out, as
    /// much behind the gap as it lies in it. So the field reads dates.
    pub fn moment(&self, local: i64) -> i64 {
        self.found(local, |_, shown| shown.compatible())
    }

    /// The same, but the end of the gap where clocks leave it out. There the field begins buckets.
    pub fn first_moment_from(&self, local: i64) -> i64 {
        self.found(local, |zone, shown| match shown.offset() {
            AmbiguousOffset::Gap { .. } => {
                let before = shown.earlier()?;
                let mut changes = zone.following(before);
                Ok(changes.next().map_or(before, |change| change.timestamp()))
            }
            _ => shown.compatible(),
        })
    }

    /// What `of` takes of the moments at which its clocks may show `local`.
    fn found(
        &self,
        local: i64,
        of: impl FnOnce(&TimeZone, AmbiguousTimestamp) -> Result<Timestamp, jiff::Error>,
    ) -> i64 {
        let zone = match &self.rules {
            Rules::Fixed(offset) => return local.saturating_sub(*offset),
            Rules::Named(zone) => zone,
        };
        let found = Timestamp::from_millisecond(local).and_then(|shown| {
            of(zone, zone.to_ambiguous_timestamp(Offset::UTC.to_datetime(shown)))
        });
        found.map_or(local, |moment| moment.as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::iso;

    #[test]
    fn clocks_of_zones() {
        let zone = |text: &str| Zone::try_from(text.to_owned());
        let at = |text: &str| iso(text).unwrap().ms;
        for (name, ms) in [("+02:00", 7_200_000), ("-0530", -19_800_000), ("UTC", 0)] {
            assert_eq!(zone(name).unwrap().offset_ms(5), ms, "{name}");
        }
        assert!(zone("Europe/Roma").unwrap_err().contains("IANA"));
        let york = zone("America/New_York").unwrap();
        for (utc, local) in [
            ("2015-01-01T05:00:00Z", "2015-01-01T00:00:00Z"),
            ("2015-07-01T04:00:00Z", "2015-07-01T00:00:00Z"),
            // Shown twice: the first counts.
            ("2015-11-01T05:30:00Z", "2015-11-01T01:30:00Z"),
        ] {
            assert_eq!(york.local(at(utc)), at(local), "{utc}");
            assert_eq!(york.moment(at(local)), at(utc), "{utc}");
        }
        // Left out: clocks went from 2 to 3.
        for (left_out, moment) in [
            ("2015-03-08T02:00:00Z", "2015-03-08T07:00:00Z"),
            ("2015-03-08T02:40:00Z", "2015-03-08T07:40:00Z"),
        ] {
            assert_eq!(york.moment(at(left_out)), at(moment));
            assert_eq!(york.first_moment_from(at(left_out)), at("2015-03-08T07:00:00Z"));
        }
        let sao_paulo = zone("America/Sao_Paulo").unwrap();
        assert_eq!(sao_paulo.moment(at("2017-10-15")), at("2017-10-15T03:00:00Z"), "no midnight");
        assert_eq!(york.moment(i64::MAX), i64::MAX);
    }
}
