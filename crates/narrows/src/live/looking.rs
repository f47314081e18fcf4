//! Looking at a cluster for a while.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clusters::live::{Depth, LiveClient, Replay, Sampler};
use insight::diagnosis::Series;
use record::units::show_seconds;
use world::{Env, Time};

use super::{History, usage};

/// A diagnosis rests on so many looks, where fewer were not asked for.
const LOOKS_MIN: usize = 6;
/// It may take so many times as long as was asked for.
const LONGER_MAX: u32 = 4;
/// A look is up to this part of the interval late, by steps that meet every part of it equally often. With half of it,
/// a node that stands still for half of each interval may never be asked while it does.
const LATE_MAX: f64 = 1.0;
/// A pause is so many times as long as the longest answer of the look before it, where that took as long as looks are
/// apart, or longer: what is asked goes to every node and each of its copies, and large clusters are slow to answer
/// because it costs them much.
const REST: u32 = 2;
/// And no longer: one node that hangs makes a look slow, too.
const REST_MAX: Duration = Duration::from_secs(5);
const GOLDEN: f64 = 0.618_033_988_749_895;

/// How long a cluster is left in peace after a look whose longest answer took so long.
pub(crate) fn rest_after(longest: Duration, interval: Duration) -> Duration {
    let rest = if longest < interval { Duration::ZERO } else { longest * REST };
    rest.min(REST_MAX).max(interval / 4)
}

/// Looks at one cluster, one after another.
pub(crate) struct Looking {
    pub(crate) sampler: Sampler,
    history: History,
    began: Time,
    interval: Duration,
    next: Time,
    /// Looks that were waited for.
    waited: u32,
    /// Whether the last look asked for settings; others repeat what one before them was told.
    settings_are_new: bool,
    /// Why the looks after the last one that counts failed, where they did.
    silent: Option<clusters::Error>,
}

impl Looking {
    pub(crate) fn new(sampler: Sampler, interval: Duration) -> Looking {
        let began = sampler.client().now();
        let history = History::default();
        let (settings_are_new, silent) = (false, None);
        Looking {
            sampler,
            history,
            began,
            interval,
            next: began,
            waited: 0,
            settings_are_new,
            silent,
        }
    }

    /// All that was seen.
    pub(crate) fn series(&self) -> Series<'_> {
        self.history.series()
    }

    /// What speaks of now, as `watch` takes it.
    pub(crate) fn recent(&self) -> Series<'_> {
        self.history.recent()
    }

    /// Whether the last look asked for settings.
    pub(crate) fn settings_are_new(&self) -> bool {
        self.settings_are_new
    }

    /// Since when nothing answers, and why; none where the last look was answered.
    pub(crate) fn silence(&self) -> Option<String> {
        let error = self.silent.as_ref()?;
        let (t_ms, _) = *self.series().looks().last()?;
        let since = show_seconds(t_ms / 1e3);
        Some(format!("nothing answers any more since {since} after the first look: {error}"))
    }

    /// When the time of looks begins.
    pub(crate) fn began(&self) -> Time {
        self.began
    }

    fn now(&self) -> Time {
        self.sampler.client().now()
    }

    /// Whether what is looked at is a transcript that ended in the middle of a look, which does not count.
    pub(crate) fn has_broken_off(&self) -> bool {
        self.sampler.client().has_broken_off()
    }

    /// Looks once, and answers the look's time in milliseconds since the first.
    pub(crate) async fn look(&mut self, depth: Depth) -> anyhow::Result<f64> {
        self.try_look(depth).await.map_err(usage)
    }

    /// The same, for whoever looks again where that failed.
    pub(crate) async fn try_look(&mut self, depth: Depth) -> Result<f64, clusters::Error> {
        let t_ms = (self.now() - self.began).as_secs_f64() * 1e3;
        let look = self.sampler.look(depth).await?;
        if self.has_broken_off() {
            return Ok(t_ms);
        }
        self.settings_are_new = look.settings.is_some();
        self.history.push(t_ms, look);
        Ok(t_ms)
    }

    /// Waits until the next look is due, give or take: looks that keep an even beat would always miss, or always meet,
    /// what comes and goes in the same beat. A slow answer is followed by a longer pause: the cluster has better things
    /// to do.
    pub(crate) async fn pause(&mut self) {
        let rest = rest_after(self.sampler.client().longest_answer(), self.interval);
        self.next = (self.next + self.interval).max(self.now() + rest);
        self.waited += 1;
        let late = (f64::from(self.waited) * GOLDEN).fract() * LATE_MAX;
        let until = self.next + self.interval.mul_f64(late);
        self.sampler.client().sleep_until(until).await;
    }

    /// Looks for so long, the first time deeply. Longer where the cluster answers so late that there would be too few
    /// looks: that alone says that something is wrong with it. Where it stops answering after two looks, these count,
    /// and [`Looking::silence`] says so.
    pub(crate) async fn look_for(&mut self, span: Duration) -> anyhow::Result<()> {
        let (ends, gives_up) = (self.began + span, self.began + span.saturating_mul(LONGER_MAX));
        let wanted = (span.as_secs_f64() / self.interval.as_secs_f64()) as usize;
        let wanted = LOOKS_MIN.min(wanted.saturating_add(1));
        self.look(Depth::Deep).await?;
        // Counters say something only by how they change, however late the first answers came.
        while !self.has_broken_off()
            && (self.series().looks().len() < 2
                || self.now() < ends
                || (self.series().looks().len() < wanted && self.now() < gives_up))
        {
            self.pause().await;
            match self.try_look(Depth::Full).await {
                Ok(_) if self.has_broken_off() => {}
                Ok(_) => self.silent = None,
                Err(error) if self.series().looks().len() < 2 => return Err(usage(error)),
                // What was seen is judged, and who is away for a moment may come back.
                Err(error) => {
                    self.silent.get_or_insert(error);
                }
            }
        }
        Ok(())
    }
}

/// Looks again as somebody looked before, without the cluster: at the transcript in a directory.
pub(crate) async fn looked_again(env: &Env, dir: &Path) -> anyhow::Result<Looking> {
    let (header, replay) = Replay::open(dir).map_err(usage)?;
    let client = LiveClient::replaying(env, &header, replay).map_err(usage)?;
    let sampler = Sampler::connect(client).await.with_context(|| dir.display().to_string())?;
    let mut looking = Looking::new(sampler, Duration::from_millis(header.interval_ms));
    looking.look_for(Duration::from_millis(header.span_ms)).await?;
    Ok(looking)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rest::RestRequest;

    use super::*;
    use crate::live::fake_node::{CALM, looking, serve};

    #[test]
    fn a_cluster_that_is_slow_to_answer_is_left_in_peace_for_longer() {
        let rest =
            |took| rest_after(Duration::from_millis(took), Duration::from_secs(1)).as_millis();
        assert_eq!([50, 999, 1000, 2000, 60_000].map(rest), [250, 250, 2000, 4000, 5000]);
    }

    #[test]
    fn the_longest_time_can_be_asked_for() {
        world::virtual_world::run(1, async |env| {
            let is_connected = Cell::new(false);
            let answer =
                move |_: &RestRequest| (!is_connected.replace(true)).then(|| CALM.to_owned());
            let (url, _node) = serve(&env, answer).await;
            let mut looking = looking(&env, &url).await;
            assert!(looking.look_for(Duration::MAX).await.is_err(), "nobody answers");
        });
    }

    #[test]
    fn what_was_seen_before_a_cluster_vanished_is_kept() {
        world::virtual_world::run(1, async |env| {
            let (clock, ends) = (env.clone(), env.now() + Duration::from_secs(5));
            let answer = move |_: &RestRequest| (clock.now() < ends).then(|| CALM.to_owned());
            let (url, _node) = serve(&env, answer).await;
            let mut looking = looking(&env, &url).await;
            looking.look_for(Duration::from_secs(20)).await.unwrap();
            assert!(looking.series().looks().len() >= 2);
            let said = looking.silence().unwrap();
            assert!(said.contains("since ") && said.contains("did not answer"), "{said}");
        });
    }
}
