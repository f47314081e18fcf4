//! The last looks at a cluster.

use std::collections::VecDeque;

use insight::diagnosis::Series;
use record::observation::Observation;

/// Looks that are kept: two minutes at one a second.
const LOOKS_MAX: usize = 120;
/// Looks that a verdict rests on while one watches: recent enough to be of now, and so many.
const RECENT: usize = 15;
/// They span this time at least, in milliseconds: what is asked for rarely was asked twice by then.
const RECENT_MS: f64 = 12_000.0;

/// Looks in order of time, the oldest forgotten first; of what does not speak of now alone, the oldest but the first.
#[derive(Default)]
pub(crate) struct History {
    looks: VecDeque<(f64, Observation)>,
    /// Whether looks are forgotten that no longer speak of now.
    is_of_now: bool,
}

impl History {
    /// One that keeps what speaks of now and nothing else: of a large cluster a look is large.
    pub(crate) fn of_now() -> History {
        History { is_of_now: true, ..History::default() }
    }

    pub(crate) fn push(&mut self, t_ms: f64, mut look: Observation) {
        // Settings and round trips come with every tenth look; with what is forgotten they would go too.
        if !self.is_of_now && look.settings.is_none() && self.looks.len() >= RECENT {
            look.settings = self.looks.iter().rev().find_map(|(_, look)| look.settings.clone());
        }
        if look.round_trips.is_empty() {
            let last = self.looks.back().map(|(_, look)| look.round_trips.clone());
            look.round_trips = last.unwrap_or_default();
        }
        if self.looks.len() == LOOKS_MAX {
            // What the first asked for alone is asked for once, and counters are taken from it on.
            self.looks.remove(usize::from(!self.is_of_now));
        }
        self.looks.push_back((t_ms, look));
        while self.is_of_now && self.looks.len() > self.recent_looks() {
            let forgotten = self.looks.pop_front().and_then(|(_, look)| look.settings);
            if let Some((_, oldest)) = self.looks.front_mut() {
                oldest.settings = oldest.settings.take().or(forgotten);
            }
        }
    }

    /// How many of the last looks speak of now.
    fn recent_looks(&self) -> usize {
        let last_ms = self.looks.back().map_or(0.0, |(t_ms, _)| *t_ms);
        let recent = self.looks.iter().rev().take_while(|(t_ms, _)| last_ms - t_ms <= RECENT_MS);
        recent.count().max(RECENT)
    }

    /// All looks.
    pub(crate) fn series(&self) -> Series<'_> {
        Series::new(self.looks.iter().map(|(t_ms, look)| (*t_ms, look)))
    }

    /// Those that speak of now.
    pub(crate) fn recent(&self) -> Series<'_> {
        self.series().tail(self.recent_looks())
    }

    /// The longest that a look took, in milliseconds.
    pub(crate) fn longest_ms(&self) -> f64 {
        self.looks.iter().map(|(_, look)| look.cost.took_ms).fold(0.0, f64::max)
    }

    pub(crate) fn last(&self) -> Option<&(f64, Observation)> {
        self.looks.back()
    }
}

#[cfg(test)]
mod tests {
    use record::observation::Remote;

    use super::*;

    /// Every look has all that are known: a cluster that was removed is not cut off for as long as one watches.
    #[test]
    fn a_remote_cluster_that_was_removed_is_forgotten() {
        let mut history = History::of_now();
        for remotes in [vec![Remote::default()], Vec::new()] {
            history.push(0.0, Observation { remotes, ..Observation::default() });
        }
        assert!(history.last().is_some_and(|(_, look)| look.remotes.is_empty()));
    }

    #[test]
    fn a_long_look_keeps_its_first_which_alone_asked_for_everything() {
        let seen = |mut history: History| {
            for s in 0..300 {
                let look = Observation { unseen_bytes: Some(s), ..Observation::default() };
                history.push(s as f64 * 1e3, look);
            }
            let first = history.looks.front().and_then(|(_, look)| look.unseen_bytes);
            (history.looks.len(), first)
        };
        assert_eq!(seen(History::default()), (LOOKS_MAX, Some(0)));
        assert_eq!(seen(History::of_now()), (RECENT, Some(285)));
    }
}
