//! A plan's file against the table of keys: every mistake, and what to write instead.
//!
//! What is wrong is replaced by an example, so that the rest of the plan can be checked, too. Whoever checks on leaves
//! out what it finds in those places.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::steps::section_of;
use super::{Bounds, Holds, Key, Section};
use crate::choices::unknown;
use crate::plan::document::PLAN;

#[derive(Clone, Debug, Default)]
pub(in crate::plan) struct Checked {
    /// Where something is wrong, and what in a sentence.
    pub(in crate::plan) mistakes: Vec<(Range<usize>, String)>,
    /// Places that hold an example now.
    pub(in crate::plan) replaced: Vec<Range<usize>>,
}

/// Checks a file that was parsed from `text`, and replaces what is wrong.
pub(in crate::plan) fn check(text: &str, root: &mut Spanned<DeTable<'_>>) -> Checked {
    let mut check = Check { text, found: Checked::default() };
    // The file as a whole: its first key rather than a comment above.
    let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let first = text.split_inclusive('\n').take_while(blank).map(str::len).sum();
    check.table(&PLAN, root.get_mut(), first..first);
    check.found
}

struct Check<'t> {
    text: &'t str,
    found: Checked,
}

impl Check<'_> {
    fn wrong(&mut self, at: Range<usize>, message: String) {
        self.found.mistakes.push((at, message));
    }

    fn table(&mut self, section: &'static Section, table: &mut DeTable<'_>, at: Range<usize>) {
        let mut meant = Vec::new();
        let mut rest = DeTable::new();
        for (name, mut value) in std::mem::take(table) {
            let Some(key) = section.key(name.get_ref()) else {
                meant.extend(record::names::nearest(name.get_ref(), section.names()));
                let names = section.names();
                let said = match PLAN.key(name.get_ref()).is_some_and(Key::is_in_one_line) {
                    true => format!(
                        "unknown key \"{}\"; the plan itself has it, above the first table. Keys here: {}",
                        name.get_ref(),
                        names.join(", ")
                    ),
                    false => unknown("unknown key", name.get_ref(), "Keys here", &names),
                };
                self.wrong(name.span(), said);
                continue;
            };
            self.value(section, key, &mut value);
            rest.insert(name, value);
        }
        *table = rest;
        for key in section.keys.iter().filter(|key| key.default.is_none()) {
            if table.contains_key(key.name) {
                continue;
            }
            // A name that is written wrongly was said already.
            if !meant.contains(&key.name) {
                let line = key.line();
                self.wrong(
                    at.clone(),
                    format!("the key \"{}\" is missing here; write {line}", key.name),
                );
            }
            table.insert(Spanned::new(at.clone(), key.name.into()), key.replacement(at.clone()));
            self.found.replaced.push(at.clone());
        }
    }

    fn value(
        &mut self,
        section: &'static Section,
        key: &'static Key,
        value: &mut Spanned<DeValue<'_>>,
    ) {
        let at = value.span();
        let fits = match (key.holds, value.get_mut()) {
            (Holds::Text | Holds::Time | Holds::Size | Holds::Rate, DeValue::String(_)) => true,
            (Holds::Whole, DeValue::Integer(number)) => {
                // Wider than any bounds: only what cannot be read at all is wrong here.
                i64::from_str_radix(number.as_str(), number.radix()).is_ok()
            }
            (Holds::Number, DeValue::Integer(_) | DeValue::Float(_)) => true,
            // What else stands there is said where it is read.
            (Holds::TimeOrRequests, DeValue::String(_) | DeValue::Integer(_)) => true,
            (Holds::Texts, DeValue::Array(list)) => list.iter().all(|one| one.get_ref().is_str()),
            (Holds::Values, DeValue::Array(_)) => true,
            (Holds::Settings, DeValue::Table(_)) => true,
            (Holds::Anything, value) => value.is_table() || section.title == "[virtual]",
            (Holds::Steps, DeValue::Array(steps)) => {
                self.steps(steps);
                true
            }
            (Holds::Parameters(section), DeValue::Table(table)) => {
                self.parameters(section, table);
                true
            }
            (Holds::Table(section), DeValue::Table(table)) => {
                self.table(section, table, at);
                true
            }
            (Holds::Tables(section), DeValue::Array(list))
                if list.iter().all(|one| one.get_ref().is_table()) =>
            {
                self.tables(section, list);
                true
            }
            _ => false,
        };
        if !fits {
            self.replace(key, value);
        }
    }

    /// Says what is wrong with a value, and puts an example in its place.
    fn replace(&mut self, key: &Key, value: &mut Spanned<DeValue<'_>>) {
        let (at, said) = (value.span(), self.instead(key, value));
        self.wrong(at.clone(), said);
        self.found.replaced.push(at.clone());
        *value = key.replacement(at);
    }

    fn tables(&mut self, section: &'static Section, list: &mut DeArray<'_>) {
        for one in list.iter_mut() {
            let at = one.span();
            if let DeValue::Table(table) = one.get_mut() {
                self.table(section, table, at);
            }
        }
    }

    fn parameters(&mut self, section: &'static Section, table: &mut DeTable<'_>) {
        let mut rest = DeTable::new();
        for (name, mut value) in std::mem::take(table) {
            let at = value.span();
            match value.get_mut() {
                DeValue::Table(one) => {
                    self.table(section, one, at);
                    rest.insert(name, value);
                }
                other => {
                    let written = self.written(&at, other);
                    let name = name.get_ref();
                    self.wrong(at, format!(
                        "a parameter says where its value comes from; write \"{name}\" = {{ value = {written}, source = \"...\" }}"
                    ));
                }
            }
        }
        *table = rest;
    }

    /// Checks what the options of steps hold. Which options a step has is checked where steps are read.
    fn steps(&mut self, steps: &mut DeArray<'_>) {
        for entry in steps.iter_mut() {
            let DeValue::Table(step) = entry.get_mut() else { continue };
            for (name, mut value) in std::mem::take(step) {
                match (section_of(name.get_ref()), value.get_mut()) {
                    (Some(section), DeValue::Table(options)) => self.options(section, options),
                    (_, DeValue::String(_)) => {}
                    // A wait has one option, so its value may stand alone.
                    (Some(section), _) if section.title == "wait" => {
                        let lasts = section.key("lasts").expect("a wait lasts");
                        self.replace(&Key { name: "wait", ..*lasts }, &mut value);
                    }
                    _ => {}
                }
                step.insert(name, value);
            }
        }
    }

    fn options(&mut self, section: &'static Section, options: &mut DeTable<'_>) {
        for (name, mut value) in std::mem::take(options) {
            match section.key(name.get_ref()).map(|key| (key, key.holds)) {
                // A table of options is read like the options themselves.
                Some((_, Holds::Table(full))) if value.get_ref().is_table() => {
                    if let DeValue::Table(table) = value.get_mut() {
                        self.options(full, table);
                    }
                }
                Some((key, _)) => self.value(section, key, &mut value),
                None => {}
            }
            options.insert(name, value);
        }
    }

    /// A value as the file writes it, or an example of its own where it is long or a table.
    fn written(&self, at: &Range<usize>, value: &DeValue<'_>) -> String {
        let text = self.text.get(at.clone()).unwrap_or_default();
        match value.is_table() || value.is_array() || text.len() > 40 || text.is_empty() {
            true => "...".to_owned(),
            false => text.to_owned(),
        }
    }

    /// What a key holds, and the line to write instead.
    fn instead(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> String {
        let written = self.written(&value.span(), value.get_ref());
        let line = match (key.holds, value.get_ref()) {
            (Holds::Table(_) | Holds::Parameters(_), DeValue::Array(_)) => {
                format!("[{}], in one pair of brackets", key.name)
            }
            (Holds::Tables(_), DeValue::Table(_)) => {
                format!("[[{}]], in two pairs of brackets", key.name)
            }
            (holds, found) => match mended(holds, key, found, &written) {
                Some(value) => format!("{} = {value}", key.name),
                None => key.line(),
            },
        };
        let units = match key.holds {
            Holds::Time | Holds::TimeOrRequests => " (units: micros, ms, s, m, h, d)",
            Holds::Size => " (units: b, kb, mb, gb, tb)",
            Holds::Rate => " (units: kbit, mbit, gbit, or kB/s, MB/s, GB/s)",
            _ => "",
        };
        format!("{} is {}; write {line}{units}", key.name, key.holds.words())
    }
}

/// What was meant by a value of another kind, as a file writes it.
fn mended(holds: Holds, key: &Key, found: &DeValue<'_>, written: &str) -> Option<String> {
    let number = written.parse::<f64>().ok().filter(|number| number.is_finite());
    match (holds, found) {
        // The unit is that of the example.
        (Holds::Time | Holds::Size | Holds::Rate | Holds::TimeOrRequests, _)
            if number.is_some_and(|number| number >= 0.0) =>
        {
            let unit = key
                .example
                .trim_matches('"')
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            Some(format!("\"{written}{unit}\""))
        }
        (Holds::Text, DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_)) => {
            Some(format!("\"{written}\""))
        }
        (Holds::Texts, DeValue::String(_)) => Some(format!("[{written}]")),
        (Holds::Whole, DeValue::Float(_)) => Some(format!("{:.0}", number?)),
        (Holds::Whole | Holds::Number, DeValue::String(text)) => {
            let plain = text.replace(['_', ',', ' '], "");
            let is_number = match holds {
                Holds::Whole => plain.parse::<i64>().is_ok(),
                _ => plain.parse::<f64>().is_ok_and(f64::is_finite),
            };
            is_number.then_some(plain)
        }
        (Holds::Steps, DeValue::String(text)) if text != "start" => {
            Some(format!("[\"start\", {written}]"))
        }
        _ => None,
    }
}

impl Key {
    /// Whether a file has it in a line, and not as the head of a table.
    fn is_in_one_line(&self) -> bool {
        use Holds::{Parameters, Settings, Table, Tables};
        !matches!(self.holds, Table(_) | Tables(_) | Parameters(_) | Settings)
    }

    /// The line that a file has for it.
    fn line(&self) -> String {
        match self.holds {
            // The options of a step stand in one line with it.
            Holds::Table(section) | Holds::Tables(section) if section.title.starts_with('[') => {
                match section.keys.iter().find(|key| key.default.is_none()) {
                    Some(first) => format!("{} and below it {}", section.title, first.line()),
                    None => format!("{} = {}", self.name, self.example),
                }
            }
            _ => format!("{} = {}", self.name, self.example),
        }
    }

    /// A value that is right, with the places of what it stands for.
    pub(super) fn replacement(&self, at: Range<usize>) -> Spanned<DeValue<'static>> {
        let example = match self.bounds {
            // As many as a cluster can have: nothing else is wrong because of their number.
            Some(Bounds::Within(_, most)) if self.name == "nodes" => most,
            _ => self.example,
        };
        placed(DeValue::parse(example).expect("a test parses every example"), &at)
    }
}

/// A value of which everything stands at `at`.
fn placed(value: Spanned<DeValue<'static>>, at: &Range<usize>) -> Spanned<DeValue<'static>> {
    let value = match value.into_inner() {
        DeValue::Array(list) => {
            DeValue::Array(list.into_iter().map(|one| placed(one, at)).collect())
        }
        DeValue::Table(table) => {
            let one = |(name, one): (Spanned<_>, _)| {
                (Spanned::new(at.clone(), name.into_inner()), placed(one, at))
            };
            DeValue::Table(table.into_iter().map(one).collect())
        }
        other => other,
    };
    Spanned::new(at.clone(), value)
}
