//! Following a recovery until every shard is complete, and what it came to.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use record::{Limit, LimitShare, Line, Row};
use world::Direction;

use super::background::BackgroundWriters;
use super::base::Runner;
use super::laps::Turn;
use super::recoveries::{Recoveries, Wanted};
use super::recovery_rows::RecoveryRows;
use crate::error::{Error, Result};
use crate::plan::LEADER;

/// A recovery in which nothing moves for this long has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// ... or for so many samples, where those are far between.
const PATIENCE_SAMPLES: u32 = 20;
/// After so many samples they are taken half as often, and so on: a week is not sampled as a minute is.
const SAMPLES_BEFORE_THINNING: u32 = 1000;

/// A recovery that is followed: of which turn it is, and what counts.
pub(crate) struct WatchedRecovery<'a> {
    pub(crate) turn: &'a Turn<'a>,
    pub(crate) cluster: &'a str,
    pub(crate) wanted: Wanted,
    /// What earlier parts of the same turn recovered.
    pub(crate) already: Recoveries,
    /// Writers that begin once every shard has listed its files.
    pub(crate) writers: Option<&'a BackgroundWriters>,
}

impl<'a> WatchedRecovery<'a> {
    /// All that a turn recovers, while nobody begins to write.
    pub(crate) fn of(turn: &'a Turn<'a>, cluster: &'a str, wanted: Wanted) -> Self {
        let already = Recoveries::default();
        WatchedRecovery { turn, cluster, wanted, already, writers: None }
    }
}

impl Runner<'_> {
    /// Begins the phase of a recovery, with a first sample of every node; answers with the moment, by our own clock.
    pub(crate) async fn begin_recovery(&self, turn: &Turn<'_>) -> Result<u64> {
        let name = turn.variant.name.as_str();
        self.journal.phase("recover", true, Some(name), turn.lap)?;
        self.watch.begin("recover", Some(name), None, "bytes");
        self.sample_nodes(name, turn.lap, &turn.telemetry).await?;
        turn.changes.begin(self.env.now());
        turn.link_busy.set(self.link_busy());
        Ok(self.env.epoch_ms())
    }

    /// From when on recoveries of the leader's copies count, by the clock that tells when they began: that of a cluster
    /// elsewhere is not the runner's.
    pub(crate) async fn recoveries_count_since(&self) -> Result<u64> {
        if !self.is_elsewhere() {
            return Ok(self.env.epoch_ms());
        }
        let path = format!("/{}/_recovery", self.plan.index_names());
        Ok(Recoveries::later_than(&self.ask_recoveries(LEADER, &path).await?))
    }

    pub(crate) async fn ask_recoveries(&self, cluster: &str, path: &str) -> Result<RecoveryRows> {
        let answer = self.clusters.request(cluster, "GET", path, Bytes::new()).await?;
        Ok(answer.read()?)
    }

    pub(crate) fn end_recovery(&self, turn: &Turn<'_>) -> Result<()> {
        self.watch.end();
        self.end_changes(&turn.changes)?;
        self.journal.phase("recover", false, Some(&turn.variant.name), turn.lap)
    }

    /// Samples until every shard is complete, and changes settings meanwhile where the variant does.
    pub(crate) async fn watch_recovery(&self, watched: WatchedRecovery<'_>) -> Result<Recoveries> {
        let Turn { variant, lap, ref changes, ref telemetry, .. } = *watched.turn;
        let path = format!("/{}/_recovery", self.plan.index_names());
        let mut moved = (self.env.now(), 0);
        let held_before = self.held_by_loss();
        let mut not_done_ms = 0;
        let mut next = self.env.now();
        let mut samples = 0;
        loop {
            let every = self.plan.sample * (1 << (samples / SAMPLES_BEFORE_THINNING).min(20));
            samples += 1;
            self.make_changes(changes).await?;
            next = (next + every).max(self.env.now());
            let asked_ms = self.env.epoch_ms();
            let answer = self.ask_recoveries(watched.cluster, &path).await?;
            let answered_ms = self.env.epoch_ms();
            let now_here = Recoveries::of(&answer, &watched.wanted);
            if let Some(writers) = watched.writers.filter(|_| now_here.listed) {
                writers.begin();
            }
            let mut all = watched.already.clone().and(now_here);
            all.held_by_loss_s += self.held_by_loss().saturating_sub(held_before).as_secs_f64();
            let mut sample = all.sample.clone();
            if let Some(writers) = watched.turn.writers {
                writers.tell(&mut sample);
            }
            let t_ms = self.journal.t_ms();
            let line = Line::Recovery { t_ms, variant: variant.name.clone(), lap, sample };
            self.journal.line(&line)?;
            self.sample_nodes(&variant.name, lap, telemetry).await?;
            self.watch.progress(all.sample.recovered_bytes, Some(all.sample.total_bytes));
            if all.done {
                return Ok(match self.is_elsewhere() {
                    true => all.ended_within(not_done_ms, answered_ms),
                    false => all,
                });
            }
            not_done_ms = asked_ms;
            let now = self.env.now();
            if all.moved() > moved.1 {
                moved = (now, all.moved());
            }
            let patience = PATIENCE.max(every * PATIENCE_SAMPLES);
            if now - moved.0 > patience {
                let bytes = all.sample.recovered_bytes;
                let why = all.failure.unwrap_or_else(|| "no shard says why".to_owned());
                let variant = variant.name.clone();
                return Err(Error::Stuck { variant, seconds: patience.as_secs(), bytes, why });
            }
            let due = changes.next(self.clusters.is_virtual()).map(|(at, _)| at);
            self.env.sleep_until(due.map_or(next, |due| due.min(next))).await;
        }
    }

    /// How long connections over the link waited for what the line had lost, since it was opened.
    fn held_by_loss(&self) -> Duration {
        let link = self.clusters.link();
        link.map_or(Duration::ZERO, |link| link.stats(Direction::Back).held_by_loss)
    }

    /// How long the link was busy in each direction, since it was opened.
    fn link_busy(&self) -> [Duration; 2] {
        let link = self.clusters.link();
        let busy = |direction| link.map_or(Duration::ZERO, |link| link.stats(direction).busy);
        [Direction::Out, Direction::Back].map(busy)
    }

    /// The row of a turn that took so long and ended with these recoveries.
    pub(crate) fn row(&self, turn: &Turn<'_>, seconds: f64, end: &Recoveries) -> Row {
        let Turn { variant, lap, .. } = *turn;
        let bytes = end.sample.recovered_bytes + end.operations_bytes;
        let row = Row::measured(&variant.name, lap, seconds, bytes);
        let published = variant.published.as_ref();
        let link = self.plan.link.filter(|_| self.clusters.link().is_some());
        let link_share = link.map(|link| row.bytes_per_s / link.rate_bytes_per_s as f64);
        let link_busy = link.map(|_| {
            let each = self.link_busy().into_iter().zip(turn.link_busy.get());
            let busiest = each.map(|(now, then)| now.saturating_sub(then)).max();
            (busiest.unwrap_or_default().as_secs_f64() / seconds).min(1.0)
        });
        let full = link_share.zip(link_busy).map(|(share, busy)| share.min(busy));
        Row {
            link_share,
            link_busy,
            limits: shares(&end.sample.charged_s, full, end.held_by_loss_s / seconds),
            refetched_chunks: end.refetched_chunks,
            published_s: published.and_then(|published| published.seconds),
            published_bytes: published.and_then(|published| published.bytes),
            ..row
        }
    }
}

/// Charged seconds as shares of their sum, largest first.
///
/// The engine charges transfer time that it cannot attribute elsewhere to the link's rate. The link was the limit only
/// while it was full, which is at most the time that it needs to carry what it carried, once that is compressed: the
/// share `full`. Of the rest, what the link says that connections waited for lost segments, or with a window that a
/// loss had reduced, is loss; and what is left is latency: a connection's window was smaller than what was asked for.
fn shares(charged_s: &BTreeMap<Limit, f64>, full: Option<f64>, loss_share: f64) -> Vec<LimitShare> {
    let total: f64 = charged_s.values().sum();
    let mut charged_s = charged_s.clone();
    if let (Some(full), Some(charged)) = (full, charged_s.get_mut(&Limit::LinkRate)) {
        let more = *charged - charged.min(full * total);
        *charged -= more;
        let lost = more.min(loss_share * total);
        *charged_s.entry(Limit::Loss).or_default() += lost;
        *charged_s.entry(Limit::Latency).or_default() += more - lost;
    }
    let mut shares: Vec<LimitShare> = charged_s
        .iter()
        .filter(|(_, seconds)| **seconds > 0.0)
        .map(|(limit, seconds)| LimitShare { limit: *limit, share: seconds / total })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.limit.cmp(&b.limit)));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They sum to one, the largest first.
    #[test]
    fn what_a_link_was_charged_that_was_not_full_is_loss_and_latency() {
        let charged = BTreeMap::from([(Limit::Latency, 3.0), (Limit::LinkRate, 9.0)]);
        let (latency, loss, link) = (Limit::Latency, Limit::Loss, Limit::LinkRate);
        for (full, loss_share, expected) in [
            (None, 1.0, vec![(link, 0.75), (latency, 0.25)]),
            (Some(0.98), 1.0, vec![(link, 0.75), (latency, 0.25)]),
            (Some(0.125), 0.0, vec![(latency, 0.875), (link, 0.125)]),
            (Some(0.125), 0.5, vec![(loss, 0.5), (latency, 0.375), (link, 0.125)]),
            (Some(0.125), 1.0, vec![(loss, 0.625), (latency, 0.25), (link, 0.125)]),
        ] {
            let shares = shares(&charged, full, loss_share);
            let found: Vec<_> = shares.into_iter().map(|one| (one.limit, one.share)).collect();
            assert_eq!(found, expected, "full for {full:?}, {loss_share} lost");
        }
    }
}
