//! What two runs do not have in common, which may be where a difference of their figures comes from.

use std::collections::{BTreeMap, BTreeSet};

use record::Manifest;

use crate::words::{counted, rate, rtt};

/// The most parameters of a track that are named, and the most of their values that is shown.
const PARAMS_MAX: usize = 6;
const PARAM_CHARS_MAX: usize = 40;

/// What is not the same in two runs, and so may be what the difference comes from.
pub(crate) fn unlike(a: &Manifest, b: &Manifest) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |what: &str, a: &dyn ToString, b: &dyn ToString| {
        let (a, b) = (a.to_string(), b.to_string());
        if a != b {
            found.push(format!("{what} {a} and {b}"));
        }
    };
    let link = |m: &Manifest| {
        m.link.as_ref().map_or("none".to_owned(), |link| {
            format!("{} at {}", rtt(link.rtt_ms), rate(link.rate_bytes_per_s as f64))
        })
    };
    let machine = |m: &Manifest| {
        format!("{} with {}", m.machine.cpu, counted(m.machine.cores, "core", "cores"))
    };
    add("plan", &a.plan, &b.plan);
    if let (Some(a), Some(b)) = (&a.question, &b.question) {
        add("question", &format!("\"{}\"", a.asked), &format!("\"{}\"", b.asked));
    }
    add("target", &a.target, &b.target);
    add("scale", &a.scale, &b.scale);
    add("link", &link(a), &link(b));
    add("nodes", &a.nodes.len(), &b.nodes.len());
    add("version", &a.version, &b.version);
    // In virtual time a machine is as good as any other.
    if a.target != "virtual" || b.target != "virtual" {
        add("machine", &machine(a), &machine(b));
    }
    let given = params(a, b);
    // What a track was rendered with changes its text.
    if a.plan == b.plan && a.plan_text != b.plan_text && given.is_none() {
        let what = if a.challenge.is_some() { "track" } else { "plan" };
        found.push(format!("the text of the {what}"));
    }
    found.extend(given);
    for variant in &a.variants {
        let other = b.variants.iter().find(|other| other.name == variant.name);
        if other.is_some_and(|other| other.settings != variant.settings) {
            found.push(format!("settings of {}", variant.name));
        }
    }
    found
}

/// The parameters that two tracks were not given alike; none where they were, or where a run does not say.
fn params(a: &Manifest, b: &Manifest) -> Option<String> {
    let (a, b) = (a.track_params.as_ref()?, b.track_params.as_ref()?);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let names: Vec<&String> =
        names.into_iter().filter(|name| a.get(*name) != b.get(*name)).collect();
    let value = |of: &BTreeMap<String, String>, name: &String| match of.get(name) {
        None => "not given".to_owned(),
        Some(text) => match text.char_indices().nth(PARAM_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text.clone(),
        },
    };
    let one = |name: &&String| format!("{name} {} and {}", value(a, name), value(b, name));
    let mut said: Vec<String> = names.iter().take(PARAMS_MAX).map(one).collect();
    if names.len() > PARAMS_MAX {
        said.push(format!("{} more", names.len() - PARAMS_MAX));
    }
    (!said.is_empty()).then(|| format!("--track-params: {}", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use record::{FORMAT, TwinQuestion};

    use super::*;

    fn track(text: &str, params: &[(&str, &str)]) -> Manifest {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Manifest {
            plan_text: text.to_owned(),
            challenge: Some("default".to_owned()),
            track_params: Some(params.collect()),
            ..Manifest::unknown("r", FORMAT)
        }
    }

    #[test]
    fn parameters_of_a_track_that_differ_are_named_with_a_bound() {
        let a = track("a", &[("bulk_size", "500"), ("clients", "4")]);
        let b = track("b", &[("bulk_size", "2000"), ("clients", "4"), ("merge", "false")]);
        let said = "--track-params: bulk_size 500 and 2000, merge not given and false";
        assert_eq!(unlike(&a, &b), [said]);
        let other = track("b", &[("bulk_size", "500"), ("clients", "4")]);
        assert_eq!(unlike(&a, &other), ["the text of the track"]);
        let earlier = Manifest { track_params: None, ..b.clone() };
        assert_eq!(unlike(&a, &earlier), ["the text of the track"]);
        let long = "x".repeat(1000);
        let names: Vec<String> = (0..9).map(|n| format!("p{n}")).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), &*long)).collect();
        let found = unlike(&track("a", &many), &track("a", &[]));
        let said = found.join("; ");
        assert!(said.ends_with("… and not given, 3 more"), "{said}");
        assert!(said.chars().count() < 500, "{said}");
    }

    #[test]
    fn twins_that_were_asked_something_else_are_told_apart() {
        let of = |asked: &str| Manifest {
            question: Some(TwinQuestion { asked: asked.to_owned(), until: "green".to_owned() }),
            ..Manifest::unknown("r", FORMAT)
        };
        let (lost, drained) = (of("a lost for good"), of("everything is moved away from a"));
        let expected = "question \"a lost for good\" and \"everything is moved away from a\"";
        assert_eq!(unlike(&lost, &drained), [expected]);
        let earlier = Manifest::unknown("r", FORMAT);
        assert!(unlike(&lost, &earlier).is_empty(), "a run of an earlier build does not say");
    }
}
