//! A cluster that is watched: looked at again and again, whether it answers or not.

use std::path::PathBuf;
use std::sync::Arc;

use clusters::Error;
use clusters::live::{Depth, Sampler};
use insight::diagnosis::{Diagnosis, Event, EventFinder, OfNodes, Series, Topic, diagnose_again};
use record::units::show_seconds;
use report::screen::{Nodes, Place, View};
use world::{Env, Time};

use super::{ConnectArgs, History, Recording, connect, usage};
use crate::terminal::say;

/// One cluster, with what was seen of it lately.
pub(crate) struct Watching {
    env: Env,
    began: Time,
    hosts: String,
    sampler: Sampler,
    history: History,
    /// Where to record, and the record once it is begun.
    record: Option<PathBuf>,
    recording: Option<Recording>,
    finder: EventFinder,
    of_nodes: OfNodes,
    trouble: Option<String>,
    shown: Option<ShownNodes>,
    /// When the last look was answered.
    answered: Time,
}

/// Nodes as they were shown last, and what they were made of: the time of the look that told of them, and who is gone.
struct ShownNodes {
    told_ms: Option<f64>,
    gone: Vec<String>,
    nodes: Arc<Nodes>,
}

/// What is to be shown after a look.
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
}

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
        Ok(Watching {
            env: env.clone(),
            began: env.now(),
            hosts: hosts.join(","),
            sampler,
            history: History::of_now(),
            record,
            recording: None,
            finder: EventFinder::default(),
            of_nodes: OfNodes::default(),
            trouble: None,
            shown: None,
            answered: env.now(),
        })
    }

    /// When it was connected.
    pub(crate) fn began(&self) -> Time {
        self.began
    }

    /// Its hosts, as they were given.
    pub(crate) fn hosts(&self) -> &str {
        &self.hosts
    }

    /// The cluster's name, flavour and version.
    pub(crate) fn identity(&self) -> &record::observation::Identity {
        self.sampler.identity()
    }

    /// Requests and bytes of answers so far.
    pub(crate) fn cost(&self) -> (u32, u64) {
        self.sampler.client().cost()
    }

    /// Seconds since it was connected.
    pub(crate) fn t_s(&self) -> f64 {
        (self.env.now() - self.began).as_secs_f64()
    }

    /// Looks once. A cluster that does not answer is shown as such, and asked again.
    pub(crate) async fn look(&mut self) -> anyhow::Result<Seen<'_>> {
        let looked = self.sampler.look(Depth::Light).await;
        let t_ms = self.t_s() * 1e3;
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
                return Err(usage(&error));
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
        let series = self.history.recent();
        let told_ms = series.last_nodes().map(|(told_ms, _)| told_ms);
        let gone = series.last().map_or(&[][..], |look| &look.gone[..]);
        let as_before = |shown: &&ShownNodes| shown.told_ms == told_ms && shown.gone == gone;
        let nodes = self.shown.as_ref().filter(as_before).map(|shown| shown.nodes.clone());
        let place = Place { nodes, ..self.place() };
        let diagnosis = diagnose_again(&series, &mut self.of_nodes);
        if let (None, Some(look)) = (&self.trouble, series.last()) {
            events.extend(self.finder.take(look, &diagnosis));
        }
        let view = View::of(&series, &diagnosis, &place);
        if place.nodes.is_none() {
            let (gone, nodes) = (gone.to_vec(), view.nodes.clone());
            self.shown = Some(ShownNodes { told_ms, gone, nodes });
        }
        let (trouble, answered_s_ago) = (place.trouble, place.answered_s_ago);
        Ok(Seen { series, diagnosis, view, events, trouble, answered_s_ago })
    }

    fn place(&self) -> Place {
        Place {
            hosts: self.hosts.clone(),
            trouble: self.trouble.clone(),
            answered_s_ago: (self.env.now() - self.answered).as_secs_f64(),
            record: self.recording.as_ref().map(|recording| recording.dir().display().to_string()),
            nodes: None,
        }
    }

    fn record(&mut self, t_ms: f64) -> anyhow::Result<()> {
        let (Some(dir), Some((_, look))) = (&self.record, self.history.last()) else {
            return Ok(());
        };
        if self.recording.is_none() {
            self.recording = Some(Recording::create(dir, "watch", &self.hosts, look)?);
        }
        let series = self.history.recent();
        match &mut self.recording {
            Some(recording) => recording.look(t_ms, look, &series),
            None => Ok(()),
        }
    }

    /// Ends the record, and says where that is.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        let t_ms = self.t_s() * 1e3;
        if let Some(recording) = self.recording {
            let dir = recording.end(t_ms)?;
            say!("recorded in {0}; narrows report {0} makes a page of it", dir.display());
        }
        Ok(())
    }
}
