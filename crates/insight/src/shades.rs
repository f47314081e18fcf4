//! When something was wrong during a variant, or set otherwise than at its beginning: what charts shade.

use std::collections::{BTreeMap, BTreeSet};

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
    // Whoever changes a setting says when. Looks ask now and then, and repeat what one before them was told.
    let changed_here = lines.iter().filter_map(|line| match line {
        Line::Fault { variant: of, what, .. } if of == variant => Some(what.split_once(" = ")?.0),
        _ => None,
    });
    let told: BTreeSet<&str> = changed_here.collect();
    let (mut first, mut seen) = (None::<&Settings>, Vec::<String>::new());
    for line in lines {
        match line {
            Line::Fault { t_ms, variant: of, what, begins } if of == variant => match begins {
                true => found.begin(what, *t_ms),
                false => found.end(what, *t_ms),
            },
            Line::Observation { t_ms, observation } => {
                let Some(settings) = &observation.settings else { continue };
                let first = *first.get_or_insert(settings);
                let now = changed(first, settings, &told);
                let over = seen.iter().filter(|what| !now.contains(what));
                over.for_each(|what| found.end(what, *t_ms));
                now.iter().for_each(|what| found.begin(what, *t_ms));
                seen = now;
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

/// What is set otherwise than at first, in words, but for settings whose changes are told.
fn changed(first: &Settings, now: &Settings, told: &BTreeSet<&str>) -> Vec<String> {
    let names = first.keys().chain(now.keys().filter(|name| !first.contains_key(*name)));
    let value = |of: &Settings, name: &str| of.get(name).map(|setting| setting.value.clone());
    let untold = names.filter(|name| !told.contains(name.as_str()));
    let differing = untold.filter(|name| value(first, name) != value(now, name));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::observation::{Observation, Scope};

    const LIMIT: &str = "indices.recovery.max_bytes_per_sec";

    fn seen(lines: Vec<Line>) -> Vec<(f64, f64, String)> {
        let shades = shades(&lines, "a", 10_000.0, 60.0);
        shades.into_iter().map(|shade| (shade.from_s, shade.to_s, shade.what)).collect()
    }

    fn fault(t_s: f64, variant: &str, what: &str, begins: bool) -> Line {
        let (variant, what) = (variant.to_owned(), what.to_owned());
        Line::Fault { t_ms: t_s * 1000.0, variant, what, begins }
    }

    /// A look that was told the value of a setting, where it asked.
    fn look(t_s: f64, value: Option<&str>) -> Line {
        let setting = |value: &str| {
            let setting = Setting { value: value.to_owned(), scope: Scope::Transient };
            BTreeMap::from([(LIMIT.to_owned(), setting)])
        };
        let observation = Observation { settings: value.map(setting), ..Default::default() };
        Line::Observation { t_ms: t_s * 1000.0, observation: Box::new(observation) }
    }

    fn words(value: &str) -> String {
        format!("{LIMIT} = {value}")
    }

    #[test]
    fn a_fault_is_shaded_as_far_as_it_is_within_its_variant() {
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
        let looks = [
            (10.0, Some("40mb")),
            (20.0, Some("200mb")),
            (25.0, None),
            (30.0, Some("400mb")),
            (40.0, Some("40mb")),
        ];
        let lines = looks.map(|(t_s, value)| look(t_s, value)).to_vec();
        assert_eq!(seen(lines), [(10.0, 20.0, words("200mb")), (20.0, 30.0, words("400mb"))]);
    }

    /// The first look repeats what was told before the change, and none was made once it was taken back.
    #[test]
    fn a_setting_that_was_changed_here_is_shaded_from_its_change_to_its_end() {
        let what = words("200mb");
        let lines = vec![
            look(10.0, Some("40mb")),
            fault(12.0, "a", &what, true),
            look(14.0, Some("40mb")),
            look(24.0, Some("200mb")),
            fault(30.0, "a", &what, false),
            look(31.0, Some("200mb")),
        ];
        assert_eq!(seen(lines), [(2.0, 20.0, what)]);
    }
}
