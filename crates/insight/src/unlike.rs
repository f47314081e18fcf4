//! What two runs do not have in common, which may be where a difference of their figures comes from.

use record::Manifest;

use crate::words::{rate, rtt};

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
    let machine = |m: &Manifest| format!("{} with {} cores", m.machine.cpu, m.machine.cores);
    add("plan", &a.plan, &b.plan);
    add("target", &a.target, &b.target);
    add("scale", &a.scale, &b.scale);
    add("link", &link(a), &link(b));
    add("nodes", &a.nodes.len(), &b.nodes.len());
    add("version", &a.version, &b.version);
    // In virtual time a machine is as good as any other.
    if a.target != "virtual" || b.target != "virtual" {
        add("machine", &machine(a), &machine(b));
    }
    if a.plan == b.plan && a.plan_text != b.plan_text {
        found.push("the text of the plan".to_owned());
    }
    for variant in &a.variants {
        let other = b.variants.iter().find(|other| other.name == variant.name);
        if other.is_some_and(|other| other.settings != variant.settings) {
            found.push(format!("settings of {}", variant.name));
        }
    }
    found
}
