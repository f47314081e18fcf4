//! `narrows watch`

use std::path::PathBuf;
use std::time::Duration;

use clusters::Error;
use clusters::live::{Depth, Sampler};
use insight::diagnosis::{diagnose, node_paces, paces};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use record::observation::Observation;
use record::units::parse_duration;
use report::screen::{Place, View, draw, plain_lines};
use serde_json::json;
use world::{Env, Time};

use crate::exit::Usage;
use crate::interrupt::until_told;
use crate::live::{ConnectArgs, History, Recording, connect, usage};
use crate::terminal::{self, say};

/// Keys are looked at this often.
const KEYS_EVERY: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster's hosts, repeated or joined by commas: http://a:9200,http://b:9200.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Time from one look to the next.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// Stop by itself after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    span: Option<Duration>,
    /// Lines instead of a screen.
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// One JSON object a look.
    #[arg(long)]
    json: bool,
    /// Record what is seen in a run directory below this one; `narrows report` makes a page of it.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.interval < Duration::from_millis(100) {
        return Err(Usage(
            "--interval must be at least 100ms: looking costs the cluster".to_owned(),
        )
        .into());
    }
    world::real_world::run(0, async |env| {
        let sampler = connect(&env, &args.urls, &args.connect).await?;
        let out = match (args.json, args.plain || !terminal::is_out_terminal()) {
            (true, _) => Out::Json,
            (false, true) => Out::Plain,
            (false, false) => Out::Screen(None),
        };
        let mut watch = Watch {
            began: env.now(),
            hosts: sampler
                .client()
                .hosts()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(","),
            env: env.clone(),
            sampler,
            history: History::default(),
            recording: None,
            trouble: None,
            answered: env.now(),
            out,
        };
        let ended = until_told(watch.watch(args)).await;
        watch.close(ended.map(drop))
    })
}

struct Watch {
    env: Env,
    began: Time,
    hosts: String,
    sampler: Sampler,
    history: History,
    recording: Option<Recording>,
    trouble: Option<String>,
    /// When the last look was answered.
    answered: Time,
    out: Out,
}

enum Out {
    /// Opened by the first look: from then on somebody listens to signals, which must find the way back.
    Screen(Option<Box<Screen>>),
    Plain,
    Json,
}

impl Watch {
    async fn watch(&mut self, args: &Args) -> anyhow::Result<()> {
        let ends = args.span.map(|span| self.began + span);
        let mut next = self.began;
        loop {
            let looked = self.sampler.look(Depth::Light).await;
            self.took(looked, args)?;
            next = (next + args.interval).max(self.env.now() + args.interval / 4);
            let until = ends.map_or(next, |ends| next.min(ends));
            if self.wait(until).await? || ends.is_some_and(|ends| self.env.now() >= ends) {
                return Ok(());
            }
        }
    }

    /// Takes a look in. A cluster that does not answer is shown as such, and asked again.
    fn took(&mut self, looked: Result<Observation, Error>, args: &Args) -> anyhow::Result<()> {
        let t_ms = (self.env.now() - self.began).as_secs_f64() * 1e3;
        match looked {
            Ok(look) => {
                self.trouble = None;
                self.answered = self.env.now();
                self.history.push(t_ms, look);
                self.record(t_ms, args)?;
            }
            // Others would be locked out by an account that is asked with a wrong password every second; and what is
            // forbidden stays forbidden.
            Err(error @ (Error::Unauthorized { .. } | Error::Forbidden { .. })) => {
                return Err(usage(&error));
            }
            Err(error) => {
                let sentence = error.to_string();
                if let Some(recording) = &mut self.recording
                    && self.trouble.is_none()
                {
                    recording.note(t_ms, &sentence)?;
                }
                self.trouble = Some(sentence);
            }
        }
        self.show()
    }

    fn record(&mut self, t_ms: f64, args: &Args) -> anyhow::Result<()> {
        let (Some(dir), Some((_, look))) = (&args.record, self.history.last()) else {
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

    fn show(&mut self) -> anyhow::Result<()> {
        let series = self.history.recent();
        let diagnosis = diagnose(&series);
        let answered_s_ago = (self.env.now() - self.answered).as_secs_f64();
        let place = Place {
            hosts: self.hosts.clone(),
            trouble: self.trouble.clone(),
            answered_s_ago,
            record: self.recording.as_ref().map(|recording| recording.dir().display().to_string()),
        };
        let view = View::of(&series, &diagnosis, &place);
        let t_s = (self.env.now() - self.began).as_secs_f64();
        let mut out = terminal::out();
        match &mut self.out {
            Out::Screen(screen) => {
                let screen = match screen {
                    Some(screen) => screen,
                    closed => closed.insert(Box::new(Screen::open()?)),
                };
                screen.show(view)?;
            }
            Out::Plain => {
                for line in plain_lines(&view, t_s) {
                    writeln!(out, "{line}")?;
                }
            }
            Out::Json => {
                let line = json!({
                    "t_s": t_s,
                    "trouble": self.trouble,
                    "answered_s_ago": answered_s_ago,
                    "headline": diagnosis.headline,
                    "findings": diagnosis.findings,
                    "recoveries": paces(&series),
                    "nodes": node_paces(&series),
                    "observation": series.last(),
                });
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// Waits, and looks at the keys meanwhile; says whether to stop.
    async fn wait(&mut self, until: Time) -> anyhow::Result<bool> {
        loop {
            let pause = match &mut self.out {
                Out::Screen(Some(screen)) => {
                    if screen.wants_to_quit()? {
                        return Ok(true);
                    }
                    until.min(self.env.now() + KEYS_EVERY)
                }
                _ => until,
            };
            self.env.sleep_until(pause).await;
            if self.env.now() >= until {
                return Ok(false);
            }
        }
    }

    /// Gives the terminal back, ends the record, and says where that is.
    fn close(self, ended: anyhow::Result<()>) -> anyhow::Result<()> {
        let t_ms = (self.env.now() - self.began).as_secs_f64() * 1e3;
        drop(self.out);
        if let Some(recording) = self.recording {
            let dir = recording.end(t_ms)?;
            say!("recorded in {0}; narrows report {0} makes a page of it", dir.display());
        }
        ended
    }
}

/// A terminal that is drawn on. Dropping it leaves the terminal as it was; so does a panic.
struct Screen {
    terminal: ratatui::DefaultTerminal,
    view: Option<View>,
    color: bool,
}

impl Screen {
    fn open() -> anyhow::Result<Screen> {
        let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Ok(Screen { terminal: ratatui::try_init()?, view: None, color })
    }

    fn show(&mut self, view: View) -> anyhow::Result<()> {
        self.view = Some(view);
        self.draw()
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        if let Some(view) = &self.view {
            self.terminal.draw(|frame| draw(frame, view, self.color))?;
        }
        Ok(())
    }

    /// Takes what was typed; in raw mode Ctrl-C is a key like any other. A new size is drawn at once.
    fn wants_to_quit(&mut self) -> anyhow::Result<bool> {
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let is_ctrl_c = key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL);
                    if is_ctrl_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(true);
                    }
                }
                Event::Resize(..) => self.draw()?,
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
