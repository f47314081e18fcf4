//! A time that is said to be within bounds, and the rows of a plan whose values each lap draws anew.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use record::units::{parse_duration, show_time_setting};
use toml::{Table, Value};

const UNCERTAIN: &str = "uncertain";
const PARAMETER: &str = "parameter";

/// A time that is known, so that both bounds are the same, or not better than within them: `20s`, or `20s..40s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    least: Duration,
    most: Duration,
}

impl Within {
    /// What it is taken for where nothing is drawn.
    pub fn middle(self) -> Duration {
        self.least + (self.most - self.least) / 2
    }

    /// Whether it can be no time outside of `times`.
    pub fn is_in(self, times: &RangeInclusive<Duration>) -> bool {
        times.contains(&self.least) && times.contains(&self.most)
    }

    /// The same as plans write it.
    pub(super) fn written(self) -> String {
        show_time_setting(self.middle())
    }

    /// Its bounds as plans write them; none where it is known.
    pub(super) fn bounds(self) -> Option<(String, String)> {
        (self.least < self.most)
            .then(|| (show_time_setting(self.least), show_time_setting(self.most)))
    }
}

impl FromStr for Within {
    type Err = String;

    fn from_str(text: &str) -> Result<Within, String> {
        let time = |text: &str| parse_duration(text.trim()).map_err(|error| error.to_string());
        let Some((least, most)) = text.split_once("..") else {
            let known = time(text)?;
            return Ok(Within { least: known, most: known });
        };
        let within = Within { least: time(least)?, most: time(most)? };
        // Twice as much is as likely as half as much, of which there is no end above 0.
        match within.least > Duration::ZERO && within.least <= within.most {
            true => Ok(within),
            false => {
                Err("bounds are above 0, and the least comes first, for example 20s..40s"
                    .to_owned())
            }
        }
    }
}

/// The rows of `[twin]` whose values laps draw.
pub(super) fn rows(twin: &mut Table) -> Option<&mut Vec<Value>> {
    let rows = twin.entry(UNCERTAIN).or_insert_with(|| Value::Array(Vec::new()));
    rows.as_array_mut()
}

pub(super) fn is_about(row: &Value, parameter: &str) -> bool {
    row.get(PARAMETER).and_then(Value::as_str) == Some(parameter)
}

/// Has laps draw no such value any more.
pub(super) fn draw_not(twin: &mut Table, parameter: &str) {
    if let Some(rows) = rows(twin) {
        rows.retain(|row| !is_about(row, parameter));
    }
}

/// Has laps draw a value between these bounds.
pub(super) fn draw(twin: &mut Table, parameter: &str, (least, most): (&str, &str)) {
    draw_not(twin, parameter);
    let row = [(PARAMETER, parameter), ("least", least), ("most", most)];
    let row: Table =
        row.map(|(key, text)| (key.to_owned(), Value::from(text))).into_iter().collect();
    if let Some(rows) = rows(twin) {
        rows.push(row.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_or_within_bounds() {
        let read = |text: &str| text.parse::<Within>();
        let bounds = |least: &str, most: &str| Some((least.to_owned(), most.to_owned()));
        let known = read("1500ms").unwrap();
        assert_eq!((known.written(), known.bounds()), ("1.5s".to_owned(), None));
        let within = read("20s..40s").unwrap();
        assert_eq!(within.middle(), Duration::from_secs(30));
        assert_eq!(within.bounds(), bounds("20s", "40s"));
        assert_eq!(read("0.5ms .. 2ms").unwrap().bounds(), bounds("500µs", "2ms"));
        assert_eq!(read("3s..3s").unwrap().bounds(), None);
        for wrong in ["0s..3s", "4s..3s"] {
            assert!(read(wrong).unwrap_err().contains("20s..40s"), "{wrong}");
        }
        assert!(read("20s..").is_err());
    }

    #[test]
    fn bounds_are_written_once() {
        let mut twin = Table::new();
        draw(&mut twin, "down", ("20s", "40s"));
        draw(&mut twin, "recovery.open_copy", ("1s", "2s"));
        draw(&mut twin, "down", ("25s", "30s"));
        let found = rows(&mut twin).unwrap();
        assert_eq!(found.len(), 2);
        assert!(
            found.iter().any(|row| is_about(row, "down") && row["most"].as_str() == Some("30s"))
        );
        draw_not(&mut twin, "down");
        assert!(rows(&mut twin).unwrap().iter().all(|row| !is_about(row, "down")));
    }
}
