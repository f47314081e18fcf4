//! A cluster that is watched: looked at again and again, whether it answers or not.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clusters::Error;
use clusters::live::{Depth, LiveClient, Sampler};
use insight::diagnosis::{
    Advised, Diagnosis, Event, EventFinder, OfNodes, Series, Topic, diagnose_again,
};
use record::observation::Observation;
use record::units::show_seconds;
use report::screen::{Nodes, Place, View};
use world::{Env, Time};

use super::{ConnectArgs, History, Recording, connect, usage};
use crate::terminal::say;

/// A look is late if it takes longer than this and longer than so many times the longest one lately: a large cluster,
/// or one with a node that hangs, is slow each time.
const LATE_AFTER: Duration = Duration::from_secs(5);
const LATE_FACTOR: f64 = 2.0;
/// How often what is shown is brought up to date while a look is late.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// One cluster, with what was seen of it lately.
pub(crate) struct Watching {
    sampler: Sampler,
    known: Known,
}

/// What is known of a cluster, and since when.
struct Known {
    env: Env,
    began: Time,
    hosts: String,
    history: History,
    /// Where to record, and the record once it is begun.
    record: Option<PathBuf>,
    recording: Option<Recording>,
    finder: EventFinder,
    of_nodes: OfNodes,
    advised: Advised,
    trouble: Option<String>,
    shown: Option<ShownNodes>,
    /// When the last look was answered.
    answered: Time,
    /// Requests and bytes of answers so far.
    cost: (u32, u64),
}

/// Nodes as they were shown last, and what they were made of: the time of the look that told of them, and who is gone.
struct ShownNodes {
    told_ms: Option<f64>,
    gone: Vec<String>,
    nodes: Arc<Nodes>,
}

/// What is to be shown after a look, or while one is waited for.
pub(crate) struct Seen<'w> {
    pub(crate) series: Series<'w>,
    pub(crate) diagnosis: Diagnosis,
    pub(crate) view: View,
    /// What happened since the look before.
    pub(crate) events: Vec<Event>,
    /// Why the look was not answered, if it was not.
    pub(crate) trouble: Option<String>,
    /// Seconds since the last look that was answered.
    pub(crate) answered_s_ago: f64,
    /// Requests and bytes of answers of all looks.
    pub(crate) cost: (u32, u64),
}

/// Is called with what is to be shown while a look is late or the cluster does not answer.
pub(crate) type Waits<'a> = &'a mut dyn FnMut(Seen<'_>) -> anyhow::Result<()>;

impl Watching {
    /// Connects. `record` is a directory of runs.
    pub(crate) async fn connect(
        env: &Env,
        urls: &[String],
        args: &ConnectArgs,
        record: Option<PathBuf>,
    ) -> anyhow::Result<Watching> {
        let sampler = connect(env, urls, args).await?;
        let hosts: Vec<String> = sampler.client().hosts().iter().map(ToString::to_string).collect();
        let known = Known {
            env: env.clone(),
            began: env.now(),
            hosts: hosts.join(","),
            history: History::of_now(),
            record,
            recording: None,
            finder: EventFinder::default(),
            of_nodes: OfNodes::default(),
            advised: Advised::default(),
            trouble: None,
            shown: None,
            answered: env.now(),
            cost: sampler.client().cost(),
        };
        Ok(Watching { sampler, known })
    }

    /// When it was connected.
    pub(crate) fn began(&self) -> Time {
        self.known.began
    }

    /// Its hosts, as they were given.
    pub(crate) fn hosts(&self) -> &str {
        &self.known.hosts
    }

    /// The client, for other requests to the same cluster.
    pub(crate) fn client(&self) -> &LiveClient {
        self.sampler.client()
    }

    /// The cluster's name, flavour and version.
    pub(crate) fn identity(&self) -> &record::observation::Identity {
        self.sampler.identity()
    }

    /// Looks once. While the look is late, or the one before was not answered, `waits` is called every second with what
    /// was seen before and how old that is.
    pub(crate) async fn look(&mut self, waits: Waits<'_>) -> anyhow::Result<Seen<'_>> {
        let Watching { sampler, known } = self;
        let began = known.env.now();
        let usual_s = LATE_FACTOR * known.history.longest_ms() / 1e3;
        let late_s = LATE_AFTER.as_secs_f64().max(usual_s);
        let looked = {
            let mut look = pin!(sampler.look(Depth::Light));
            loop {
                tokio::select! {
                    biased;
                    looked = &mut look => break looked,
                    () = known.env.sleep(SHOWN_EVERY) => {}
                }
                let waited_s = (known.env.now() - began).as_secs_f64();
                if known.trouble.is_some() || waited_s >= late_s {
                    let since = show_seconds(waited_s.round());
                    let late = || format!("the look that began {since} ago is not over");
                    let why = known.trouble.clone().unwrap_or_else(late);
                    waits(known.seen(Vec::new(), Some(why)))?;
                }
            }
        };
        known.cost = sampler.client().cost();
        let (events, trouble) = (known.take(looked)?, known.trouble.clone());
        Ok(known.seen(events, trouble))
    }

    /// What was seen last of a cluster that is no longer asked; `why` says the reason.
    pub(crate) fn unasked(&mut self, why: &str) -> Seen<'_> {
        self.known.seen(Vec::new(), Some(why.to_owned()))
    }

    /// Ends the record, and says where that is.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        let t_ms = self.known.t_ms();
        if let Some(recording) = self.known.recording {
            let dir = recording.end(t_ms)?;
            say!("recorded in {0}; narrows report {0} makes a page of it", dir.display());
        }
        Ok(())
    }
}

impl Known {
    /// Milliseconds since it was connected.
    fn t_ms(&self) -> f64 {
        (self.env.now() - self.began).as_secs_f64() * 1e3
    }

    /// Takes in a look, or why there was none; what happened.
    fn take(&mut self, looked: Result<Observation, Error>) -> anyhow::Result<Vec<Event>> {
        let t_ms = self.t_ms();
        let (was_in_trouble, since) = (self.trouble.is_some(), self.answered);
        let mut events = Vec::new();
        match looked {
            Ok(look) => {
                self.trouble = None;
                self.answered = self.env.now();
                if was_in_trouble {
                    let away = show_seconds((self.answered - since).as_secs_f64().round());
                    let sentence = format!("the cluster answers again, after {away}");
                    events.push(Event::new(Topic::Reach, sentence));
                }
                self.history.push(t_ms, look);
                self.record(t_ms)?;
            }
            // Others would be locked out by an account that is asked with a wrong password every second; and what is
            // forbidden stays forbidden.
            Err(error @ (Error::Unauthorized { .. } | Error::Forbidden { .. })) => {
                return Err(usage(error));
            }
            Err(error) => {
                let sentence = error.to_string();
                if !was_in_trouble {
                    if let Some(recording) = &mut self.recording {
                        recording.note(t_ms, &sentence)?;
                    }
                    let text = format!("the cluster does not answer: {sentence}");
                    events.push(Event::new(Topic::Reach, text));
                }
                self.trouble = Some(sentence);
            }
        }
        Ok(events)
    }

    /// What is to be shown, with what happened. If it is of an earlier look, `trouble` says why.
    fn seen(&mut self, mut events: Vec<Event>, trouble: Option<String>) -> Seen<'_> {
        let series = self.history.recent();
        let told_ms = series.last_nodes().map(|(told_ms, _)| told_ms);
        let gone = series.last().map_or(&[][..], |look| &look.gone[..]);
        let as_before = |shown: &&ShownNodes| shown.told_ms == told_ms && shown.gone == gone;
        let place = Place {
            hosts: self.hosts.clone(),
            trouble,
            answered_s_ago: (self.env.now() - self.answered).as_secs_f64(),
            record: self.recording.as_ref().map(|recording| recording.dir().display().to_string()),
            nodes: self.shown.as_ref().filter(as_before).map(|shown| shown.nodes.clone()),
        };
        let mut diagnosis = diagnose_again(&series, &mut self.of_nodes);
        self.advised.keep(&mut diagnosis, place.trouble.is_none());
        if let (None, Some(look)) = (&place.trouble, series.last()) {
            events.extend(self.finder.take(look, &diagnosis));
        }
        let view = View::of(&series, &diagnosis, &place);
        if place.nodes.is_none() {
            let (gone, nodes) = (gone.to_vec(), view.nodes.clone());
            self.shown = Some(ShownNodes { told_ms, gone, nodes });
        }
        let Place { trouble, answered_s_ago, .. } = place;
        Seen { series, diagnosis, view, events, trouble, answered_s_ago, cost: self.cost }
    }

    fn record(&mut self, t_ms: f64) -> anyhow::Result<()> {
        let (Some(dir), Some((_, look))) = (&self.record, self.history.last()) else {
            return Ok(());
        };
        let recording = match &mut self.recording {
            Some(recording) => recording,
            none => none.insert(Recording::create(dir, "watch", &self.hosts, look)?),
        };
        recording.look(t_ms, look, &self.history.recent())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use rest::RestRequest;

    use super::*;
    use crate::live::fake_node::{CALM, serve};

    #[test]
    fn what_was_seen_grows_older_while_a_look_hangs() {
        world::virtual_world::run(1, async |env| {
            let hangs = Rc::new(Cell::new(false));
            let is_hanging = hangs.clone();
            let answer = move |_: &RestRequest| (!is_hanging.get()).then(|| CALM.to_owned());
            let (url, _node) = serve(&env, answer).await;
            let args = ConnectArgs::default();
            let mut watching = Watching::connect(&env, &[url], &args, None).await.unwrap();
            let mut ages = Vec::new();
            let mut waits = |seen: Seen<'_>| -> anyhow::Result<()> {
                let trouble = seen.view.trouble.unwrap();
                assert!(trouble.contains("is not over") && seen.events.is_empty(), "{trouble}");
                ages.push(seen.answered_s_ago);
                Ok(())
            };
            assert_eq!(watching.look(&mut waits).await.unwrap().trouble, None);
            env.sleep(Duration::from_secs(9)).await;
            hangs.set(true);
            let seen = watching.look(&mut waits).await.unwrap();
            assert!(seen.trouble.unwrap().contains("did not answer"));
            assert!(ages.len() > 2 && ages[0] >= 14.0, "{ages:?}");
            assert!(ages.windows(2).all(|pair| pair[1] - pair[0] >= 1.0), "{ages:?}");
        });
    }

    /// A node hangs for long: each look is as slow as the one before, and answered.
    #[test]
    fn a_look_that_is_no_longer_than_those_before_it_is_not_late() {
        world::virtual_world::run(1, async |env| {
            let answer = |asked: &RestRequest| {
                (!asked.path.starts_with("/_nodes/stats")).then(|| CALM.to_owned())
            };
            let (url, _node) = serve(&env, answer).await;
            let args = ConnectArgs::default();
            let mut watching = Watching::connect(&env, &[url], &args, None).await.unwrap();
            for is_told in [true, false] {
                let (began, mut told) = (env.now(), 0);
                let mut waits = |_: Seen<'_>| -> anyhow::Result<()> {
                    told += 1;
                    Ok(())
                };
                assert_eq!(watching.look(&mut waits).await.unwrap().trouble, None);
                assert!(env.now() - began >= Duration::from_secs(10));
                assert_eq!(told > 0, is_told, "{told}");
            }
        });
    }
}
