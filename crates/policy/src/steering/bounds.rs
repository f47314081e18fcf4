//! Which settings are ever touched, how their values are read and written, and how far they may rise.

use std::collections::BTreeMap;

use record::names::did_you_mean;
use record::units::{parse_size, parse_throttle, show_size_setting};

use super::look::{Lever, Role};

/// Every setting that is ever touched, and the highest value that any release takes; none where none is known. All are
/// dynamic in the releases that have them.
pub const STEERED: [(&str, Role, Option<u64>); 10] = [
    ("indices.recovery.max_bytes_per_sec", Role::Rate, None),
    ("indices.recovery.max_concurrent_file_chunks", Role::Chunks, Some(8)),
    ("indices.recovery.chunk_size", Role::ChunkSize, Some(100 << 20)),
    ("indices.recovery.max_concurrent_operations", Role::Operations, Some(OPERATIONS_MOST)),
    ("cluster.routing.allocation.node_concurrent_recoveries", Role::Slots, None),
    ("ccr.indices.recovery.max_bytes_per_sec", Role::Rate, None),
    ("ccr.indices.recovery.max_concurrent_file_chunks", Role::Chunks, Some(10)),
    ("ccr.indices.recovery.chunk_size", Role::ChunkSize, Some(1 << 30)),
    (
        "plugins.replication.follower.index.recovery.max_concurrent_file_chunks",
        Role::Chunks,
        Some(10),
    ),
    ("plugins.replication.follower.index.recovery.chunk_size", Role::ChunkSize, Some(1 << 30)),
];

/// Where nobody said how far, a limiter may rise to so many times the value that was found.
const RATE_TIMES: u64 = 8;
/// Where nobody said how far, a limiter never rises above this, in bytes a second.
const RATE_MOST: u64 = 1 << 30;
/// Chunks may grow to this: each that is in flight takes as much memory at both ends.
const CHUNK_MOST: u64 = 4 << 20;
/// Batches at once that the field allows.
const OPERATIONS_MOST: u64 = 4;
const SLOTS_TIMES: u64 = 4;
const SLOTS_MOST: u64 = 16;
/// The most chunks where a release does not say how many it takes.
const CHUNKS_MOST: u64 = 5;
/// What a bound leaves above a step is not worth a trial of its own below this.
const STEP_MIN: f64 = 1.1;

/// How far each setting may rise.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    said: BTreeMap<String, u64>,
}

/// A bound that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongBound {
    /// No setting of this name is ever touched. Holds the names that are near, or all.
    Unknown(String),
    /// The setting does not take such a value. Holds what is accepted.
    Value(&'static str),
    /// No release takes such a value of the setting. Holds the highest that one takes.
    TooHigh(String),
    /// The setting has a bound already, which would be forgotten.
    Twice,
}

impl Bounds {
    /// Never raise `name` above `value`.
    pub fn at_most(&mut self, name: &str, value: &str) -> Result<(), WrongBound> {
        let Some((_, role, taken)) = STEERED.iter().find(|(known, ..)| *known == name) else {
            let names = STEERED.map(|(name, ..)| name);
            let near = did_you_mean(name, names);
            let hint = match near.is_empty() {
                true => format!("; it touches {}", names.join(", ")),
                false => near,
            };
            return Err(WrongBound::Unknown(hint));
        };
        let most = amount(*role, value).ok_or(WrongBound::Value(match role {
            Role::Rate => "write a rate as the cluster does, for example 400mb",
            Role::ChunkSize => "write a size as the cluster does, for example 1mb",
            _ => "write a whole number from 1 on",
        }))?;
        if let Some(taken) = taken.filter(|taken| most > *taken) {
            return Err(WrongBound::TooHigh(text(*role, taken)));
        }
        match self.said.insert(name.to_owned(), most) {
            Some(_) => Err(WrongBound::Twice),
            None => Ok(()),
        }
    }

    /// What was said, in words: `indices.recovery.max_bytes_per_sec up to 400mb`.
    pub fn in_words(&self) -> Vec<String> {
        let of =
            |(name, most): (&String, &u64)| format!("{name} up to {}", text(role_of(name), *most));
        self.said.iter().map(of).collect()
    }

    /// A sentence for each setting whose value `now` is more already than somebody said.
    pub fn passed<'v>(&self, now: impl Fn(&str) -> Option<&'v str>) -> Vec<String> {
        let of = |(name, most): (&String, &u64)| {
            let (role, value) = (role_of(name), now(name)?);
            let is_more = match role {
                // Where there is no limit, no rate is more.
                Role::Rate => parse_throttle(value).ok()?.is_none_or(|rate| rate > *most),
                _ => amount(role, value)? > *most,
            };
            let most = text(role, *most);
            is_more.then(|| {
                format!(
                    "{name} = {value} is more already than --max {most}, and is not lowered to that"
                )
            })
        };
        self.said.iter().filter_map(of).collect()
    }

    /// Whether somebody said how far a setting may rise.
    pub(super) fn is_said(&self, lever: &Lever) -> bool {
        self.said.contains_key(&lever.name)
    }

    /// How far a setting may rise that had the value `found` at first.
    pub(super) fn most(&self, lever: &Lever, found: u64) -> u64 {
        let usual = match lever.role {
            Role::Rate => found.saturating_mul(RATE_TIMES).min(RATE_MOST),
            Role::Chunks => lever.most.unwrap_or(CHUNKS_MOST),
            Role::ChunkSize => CHUNK_MOST,
            Role::Operations => OPERATIONS_MOST,
            Role::Slots => found.saturating_mul(SLOTS_TIMES).min(SLOTS_MOST),
        };
        let said = self.said.get(&lever.name).copied().unwrap_or(usual);
        lever.most.map_or(said, |most| most.min(said))
    }
}

fn role_of(name: &str) -> Role {
    let known = STEERED.iter().find(|(known, ..)| *known == name);
    known.map_or(Role::Slots, |(_, role, _)| *role)
}

/// A value as a number; none where it sets no limit or cannot be read.
pub(super) fn amount(role: Role, value: &str) -> Option<u64> {
    match role {
        Role::Rate => parse_throttle(value).ok().flatten(),
        Role::ChunkSize => parse_size(value).ok(),
        Role::Chunks | Role::Operations | Role::Slots => value.trim().parse().ok(),
    }
    .filter(|amount| *amount > 0)
}

/// A number as the cluster writes it.
pub(super) fn text(role: Role, amount: u64) -> String {
    match role {
        Role::Rate | Role::ChunkSize => show_size_setting(amount),
        Role::Chunks | Role::Operations | Role::Slots => amount.to_string(),
    }
}

/// The next value above, `times` as large and no more than `most`; none where there is no room. In round numbers, but
/// for `most` itself, which is taken where hardly anything is left up to there.
pub(super) fn raised(role: Role, from: u64, times: f64, most: u64) -> Option<u64> {
    let to = (from as f64 * times) as u64;
    let to = match role {
        // Whole kilobytes, or megabytes where there are some: a limit is written as a size.
        Role::Rate | Role::ChunkSize if to >= 8 << 20 => to >> 20 << 20,
        Role::Rate | Role::ChunkSize if to >= 8 << 10 => to >> 10 << 10,
        _ => to.max(from.saturating_add(1)),
    };
    let to = if to as f64 * STEP_MIN >= most as f64 { most } else { to };
    Some(to).filter(|to| *to as f64 >= from as f64 * STEP_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written_as_the_cluster_does() {
        assert_eq!(amount(Role::Rate, "40mb"), Some(40 << 20));
        assert_eq!(amount(Role::Rate, "-1"), None, "no limit is nothing to raise");
        assert_eq!(amount(Role::Slots, "0"), None);
        assert_eq!(text(Role::Rate, 160 << 20), "160mb");
        assert_eq!(raised(Role::Rate, 40 << 20, 2.0, u64::MAX), Some(80 << 20));
        assert_eq!(raised(Role::Rate, 40 << 20, 2.0, 60 << 20), Some(60 << 20));
        assert_eq!(raised(Role::Rate, 40 << 20, 2.0, 40 << 20), None);
        assert_eq!(raised(Role::Chunks, 1, 1.4, 8), Some(2));
        assert_eq!(raised(Role::Chunks, u64::MAX, 2.0, u64::MAX), None);
    }

    #[test]
    fn a_step_that_ends_just_below_the_bound_goes_up_to_it() {
        // In whole megabytes it would end at 43 MB, and what is left would be too little for another trial.
        let (found, most) = (5_648_609, 8 * 5_648_609);
        assert_eq!(raised(Role::Rate, found * 4, 2.0, most), Some(most));
        assert_eq!(raised(Role::Rate, 40 << 20, 2.0, 43 << 20), None);
        assert_eq!(raised(Role::Rate, 20 << 20, 2.0, 43 << 20), Some(43 << 20));
    }

    #[test]
    fn a_bound_is_of_a_setting_that_is_touched_and_has_a_value_of_its() {
        let mut bounds = Bounds::default();
        let limit = "indices.recovery.max_bytes_per_sec";
        bounds.at_most(limit, "400mb").unwrap();
        let wrong = bounds.at_most("indices.recovery.max_byte_per_sec", "1mb");
        assert!(matches!(wrong, Err(WrongBound::Unknown(hint)) if hint.contains(limit)));
        let wrong = bounds.at_most("zzz", "1");
        assert!(matches!(wrong, Err(WrongBound::Unknown(hint)) if hint.contains(limit)));
        assert!(matches!(bounds.at_most(limit, "-1"), Err(WrongBound::Value(_))));
        assert_eq!(bounds.at_most(limit, "800mb"), Err(WrongBound::Twice));
    }

    #[test]
    fn a_bound_below_the_value_that_is_set_is_said() {
        let (mut bounds, limit) = (Bounds::default(), "indices.recovery.max_bytes_per_sec");
        bounds.at_most(limit, "16mb").unwrap();
        bounds.at_most("indices.recovery.max_concurrent_operations", "2").unwrap();
        let now =
            |rate: &'static str| bounds.passed(|name| Some(if name == limit { rate } else { "1" }));
        let said = "is more already than --max 16mb, and is not lowered to that";
        assert_eq!(now("40mb"), [format!("{limit} = 40mb {said}")]);
        assert_eq!(now("-1").len(), 1, "no limit");
        assert_eq!((now("16mb"), bounds.passed(|_| None)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_bound_that_no_release_takes_is_refused_with_the_one_that_it_does() {
        let mut bounds = Bounds::default();
        for (name, taken, too_high) in [
            ("indices.recovery.chunk_size", "100mb", "101mb"),
            ("indices.recovery.max_concurrent_file_chunks", "8", "9"),
            ("indices.recovery.max_concurrent_operations", "4", "5"),
            ("ccr.indices.recovery.chunk_size", "1gb", "2gb"),
        ] {
            bounds.at_most(name, taken).unwrap();
            let refused = bounds.at_most(name, too_high);
            assert_eq!(refused, Err(WrongBound::TooHigh(taken.to_owned())), "{name}");
        }
        bounds.at_most("indices.recovery.max_bytes_per_sec", "40gb").unwrap();
    }
}
