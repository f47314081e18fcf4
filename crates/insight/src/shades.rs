//! When something was wrong during a variant, or set otherwise than at its beginning: what charts shade.

use std::collections::BTreeMap;

use record::Line;
use record::observation::Setting;

/// A part of a variant's time, and what was wrong or set otherwise in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shade {
    /// Seconds since the variant began.
    pub from_s: f64,
    /// Seconds since the variant began.
    pub to_s: f64,
    /// What was wrong or set otherwise: `the link is cut off`, `indices.recovery.max_bytes_per_sec = 200mb`.
    pub what: String,
}

/// The shades of a variant that began at `begins_ms` and lasted for `seconds`, in the order in which they begin. What
/// did not end lasts until the variant ends.
pub(crate) fn shades(lines: &[Line], variant: &str, begins_ms: f64, seconds: f64) -> Vec<Shade> {
    let mut found = Found { begins_ms, seconds, open: BTreeMap::new(), shades: Vec::new() };
    let mut first = None::<&Settings>;
    for line in lines {
        match line {
            Line::Fault { t_ms, variant: of, what, begins } if of == variant => match begins {
                true => found.begin(what, *t_ms),
                false => found.end(what, *t_ms),
            },
            Line::Observation { t_ms, observation } => {
                let Some(settings) = &observation.settings else { continue };
                let first = *first.get_or_insert(settings);
                found.set(&changed(first, settings), *t_ms);
            }
            _ => {}
        }
    }
    let open: Vec<String> = found.open.keys().cloned().collect();
    open.iter().for_each(|what| found.end(what, f64::INFINITY));
    found.shades.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    found.shades
}

type Settings = BTreeMap<String, Setting>;

/// What is set otherwise than at first, in words.
fn changed(first: &Settings, now: &Settings) -> Vec<String> {
    let names = first.keys().chain(now.keys().filter(|name| !first.contains_key(*name)));
    let value = |of: &Settings, name: &str| of.get(name).map(|setting| setting.value.clone());
    let differing = names.filter(|name| value(first, name) != value(now, name));
    let words = |name: &String| match value(now, name) {
        Some(value) => format!("{name} = {value}"),
        None => format!("{name} not set"),
    };
    differing.map(words).collect()
}

struct Found {
    begins_ms: f64,
    seconds: f64,
    /// When each shade that has not ended began, in milliseconds since the run did.
    open: BTreeMap<String, f64>,
    shades: Vec<Shade>,
}

impl Found {
    fn begin(&mut self, what: &str, t_ms: f64) {
        self.open.entry(what.to_owned()).or_insert(t_ms);
    }

    /// Keeps it if any of it is within the variant: the same fault may have been in an earlier lap.
    fn end(&mut self, what: &str, t_ms: f64) {
        let Some(began_ms) = self.open.remove(what) else { return };
        let within = |t_ms: f64| ((t_ms - self.begins_ms) / 1000.0).clamp(0.0, self.seconds);
        let (from_s, to_s) = (within(began_ms), within(t_ms));
        if from_s < to_s {
            self.shades.push(Shade { from_s, to_s, what: what.to_owned() });
        }
    }

    /// What is set otherwise from now on is this, and nothing else.
    fn set(&mut self, changed: &[String], t_ms: f64) {
        let over = self.open.keys().filter(|what| !changed.contains(what));
        let over: Vec<String> = over.cloned().collect();
        over.iter().for_each(|what| self.end(what, t_ms));
        changed.iter().for_each(|what| self.begin(what, t_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::observation::{Observation, Scope};

    fn seen(lines: Vec<Line>) -> Vec<(f64, f64, String)> {
        let shades = shades(&lines, "a", 10_000.0, 60.0);
        shades.into_iter().map(|shade| (shade.from_s, shade.to_s, shade.what)).collect()
    }

    #[test]
    fn a_fault_is_shaded_as_far_as_it_is_within_its_variant() {
        let fault = |t_s: f64, variant: &str, what: &str, begins| Line::Fault {
            t_ms: t_s * 1000.0,
            variant: variant.to_owned(),
            what: what.to_owned(),
            begins,
        };
        let (cut, killed) = ("the link is cut off", "n1 is killed");
        let lines = vec![
            fault(1.0, "a", cut, true),
            fault(5.0, "a", cut, false),
            fault(30.0, "b", killed, true),
            fault(30.0, "a", killed, true),
            fault(20.0, "a", cut, true),
            fault(40.0, "a", cut, false),
        ];
        let expected = [(10.0, 30.0, cut.to_owned()), (20.0, 60.0, killed.to_owned())];
        assert_eq!(seen(lines), expected, "the first was in an earlier lap, the last never ended");
    }

    #[test]
    fn a_setting_is_shaded_while_it_is_not_what_it_was() {
        let name = "indices.recovery.max_bytes_per_sec";
        let look = |t_s: f64, value: Option<&str>| {
            let setting = |value: &str| {
                let setting = Setting { value: value.to_owned(), scope: Scope::Transient };
                BTreeMap::from([(name.to_owned(), setting)])
            };
            let observation = Observation { settings: value.map(setting), ..Default::default() };
            Line::Observation { t_ms: t_s * 1000.0, observation: Box::new(observation) }
        };
        let looks = [
            (10.0, Some("40mb")),
            (20.0, Some("200mb")),
            (25.0, None),
            (30.0, Some("400mb")),
            (40.0, Some("40mb")),
        ];
        let lines = looks.map(|(t_s, value)| look(t_s, value)).to_vec();
        let words = |value: &str| format!("{name} = {value}");
        assert_eq!(seen(lines), [(10.0, 20.0, words("200mb")), (20.0, 30.0, words("400mb"))]);
    }
}
