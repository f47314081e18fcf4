//! What a reader must know of runs that are compared.

use std::collections::BTreeMap;

use record::Status;
use record::names::listed;

use super::figures::{Compared, Contender, draw_alike, has_others};
use crate::difference::{SUPPORTED_P, can_support};
use crate::unlike::unlike;
use crate::words::counted;

/// Figures beside which one in twenty differs by chance are worth a sentence from so many on.
const MANY: usize = 20;

/// What a reader must know to read the figures right, a sentence each.
pub(super) fn remarks(contenders: &[Contender<'_>], figures: &[Compared]) -> Vec<String> {
    let mut said = Vec::new();
    let Some((first, others)) = contenders.split_first() else { return said };
    for contender in contenders {
        let damage = contender.run.damage.iter();
        said.extend(damage.map(|text| format!("{}: {text}", contender.label)));
        let how = match contender.run.manifest.status {
            Status::Complete => continue,
            Status::Running => "is still running",
            Status::BrokenOff => "broke off",
            Status::Interrupted => "was interrupted",
            Status::Failed => "failed",
            Status::Unknown => "ended nobody knows how",
        };
        said.push(format!("{} {how}: it has what was measured until then.", contender.label));
    }
    for (at, other) in others.iter().enumerate() {
        let both = format!("{} and {}", first.label, other.label);
        let unlike = unlike(&first.run.manifest, &other.run.manifest);
        if !unlike.is_empty() {
            said.push(format!("Not the same in {both}: {}.", unlike.join("; ")));
        }
        let missing = |of: usize, lacks: usize| {
            let lacking =
                figures.iter().filter(|f| !f.laps[of].is_empty() && f.laps[lacks].is_empty());
            let name = |figure: &Compared| match has_others(figures, figure, lacks) {
                true => format!("{} of {}", figure.name, figure.of()),
                false => figure.of(),
            };
            let mut names: Vec<String> = lacking.map(name).collect();
            names.dedup();
            names
        };
        for (of, lacks) in [(0, at + 1), (at + 1, 0)] {
            let names = missing(of, lacks);
            let [of, lacks] = [of, lacks].map(|at| &contenders[at]);
            let only = format!("In {} and not in {}", of.label, lacks.label);
            if !names.is_empty() {
                said.push(format!("{only}: {}.", names.join(", ")));
            }
            let known = &lacks.run.manifest.changes;
            let changes = of.run.manifest.changes.iter().filter(|change| !known.contains(change));
            said.extend(changes.map(|change| format!("{only}, not as in the plan: {change}")));
        }
        // More laps of a figure whose laps are copies would be more copies.
        let tells = |figure: &&Compared| {
            figure.differences[at].is_some() && !figure.copies[0] && !figure.copies[at + 1]
        };
        let laps = |run: usize| figures.iter().filter(tells).map(|one| one.laps[run].len()).max();
        let (base, laps) = (laps(0).unwrap_or(0), laps(at + 1).unwrap_or(0));
        if (base, laps) == (1, 1) && draw_alike(first, other) {
            said.push(format!(
                "{both} ran in virtual time with seed {}: run again, they have the same figures, and differ by what is \
                 not the same in them. Another seed (--seed) may differ in plans that draw.",
                first.run.manifest.seed
            ));
        } else if base > 0 && laps > 0 && !can_support(base, laps) {
            let have = match (base, laps) {
                (1, 1) => "one lap each".to_owned(),
                _ => format!("{base} and {}", counted(laps, "lap", "laps")),
            };
            said.push(format!(
                "{both} have {have}, too few to tell a difference from chance: run both with --laps 5."
            ));
        }
    }
    let of_copies = contenders.iter().enumerate();
    let of_copies: Vec<String> =
        of_copies.filter_map(|(at, one)| copied(figures, at, &one.label)).collect();
    if !of_copies.is_empty() {
        said.push(format!(
            "Laps of {} are copies of one: virtual time repeats what has no chance in it. They count as one lap, without \
             p. Chance is in runs on real nodes, and in other seeds (--seed) of plans that draw.",
            listed(&of_copies)
        ));
    }
    // Of figures that can have an asterisk: three laps of each never do.
    let can = |figure: &Compared, at: usize| {
        let has_p = figure.differences[at].is_some_and(|difference| difference.p.is_some());
        has_p && can_support(figure.lap_count(0), figure.lap_count(at + 1))
    };
    let of = |figure: &Compared| (0..others.len()).filter(|at| can(figure, *at)).count();
    let compared: usize = figures.iter().map(of).sum();
    if compared >= MANY {
        said.push(format!(
            "Of {compared} differences up to {:.0} on average have an asterisk by chance, if nothing differs.",
            compared as f64 * SUPPORTED_P
        ));
    }
    said
}

/// Whose laps are copies of one: a run, or some of its variants; none where no laps are.
fn copied(figures: &[Compared], at: usize, label: &str) -> Option<String> {
    let own = figures.iter().filter(|figure| !figure.laps[at].is_empty());
    let variants: BTreeMap<&str, bool> =
        own.map(|figure| (figure.variant.as_str(), figure.copies[at])).collect();
    let copies = variants.iter().filter(|(_, are_copies)| **are_copies);
    let copies: Vec<&str> = copies.map(|(variant, _)| *variant).collect();
    match copies.len() {
        0 => None,
        all if all == variants.len() => Some(label.to_owned()),
        _ => Some(format!("{} in {label}", copies.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use record::Row;

    use super::super::Runs;
    use super::super::tests::{in_virtual_time, recovery};

    #[test]
    fn copies_are_told_by_variant_and_other_variants_may_need_more_laps() {
        let of = |others: &[f64]| {
            let mut run = in_virtual_time(&[10.0; 4]);
            let other = |(seconds, lap): (&f64, u32)| Row::measured("b", lap, *seconds, 1_000_000);
            run.rows.extend(others.iter().zip(1..).map(other));
            run
        };
        let said = |others: &[f64]| Runs::of(&[&of(others), &of(others)]).remarks;
        let one = said(&[5.0]);
        assert!(one[0].starts_with("A and B ran in virtual time with seed 7: "), "{one:?}");
        assert!(one[1].starts_with("Laps of a in A and a in B are copies of one: "), "{one:?}");
        let several = said(&[5.0, 5.1, 5.2, 5.3]);
        assert_eq!(several, one[1..], "laps enough of what has chance in it");
    }

    #[test]
    fn chance_is_not_said_to_mark_what_has_too_few_laps_for_a_mark() {
        let of = |laps: u32| {
            let mut run = recovery(&[]);
            for variant in 0..10 {
                let row = |lap: u32| {
                    Row::measured(&format!("v{variant}"), lap, 10.0 + f64::from(lap), 1_000_000)
                };
                run.rows.extend((1..=laps).map(row));
            }
            run
        };
        let said = |laps: u32| Runs::of(&[&of(laps), &of(laps)]).remarks.join(" ");
        assert!(!said(3).contains("asterisk"), "{}", said(3));
        assert_eq!(
            said(4),
            "Of 20 differences up to 1 on average have an asterisk by chance, if nothing differs."
        );
    }

    #[test]
    fn damage_and_what_one_run_alone_changed_are_said() {
        let (mut a, mut b) = (recovery(&[10.0; 5]), recovery(&[10.0; 5]));
        let (both, alone) = ("Faults are left out.", "The documents are generated.");
        a.manifest.changes = vec![both.to_owned()];
        b.manifest.changes = vec![both.to_owned(), alone.to_owned()];
        b.damage.push("rows.jsonl is cut off: 1 of its 2 bytes are there.".to_owned());
        let said = [
            "B: rows.jsonl is cut off: 1 of its 2 bytes are there.",
            "In B and not in A, not as in the plan: The documents are generated.",
        ];
        assert_eq!(Runs::of(&[&a, &b]).remarks, said);
        assert_eq!(Runs::of(&[&a, &a]).remarks, [""; 0]);
    }
}
