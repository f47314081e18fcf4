//! `narrows watch`

mod screen;
mod serve;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use insight::diagnosis::{node_paces, paces};
use record::units::parse_duration;
use report::screen::{View, plain_lines};
use serde_json::json;
use world::{Env, Time};

use crate::exit::refuse;
use crate::interrupt::until_told;
use crate::live::{ConnectArgs, Seen, Watching, rest_after};
use crate::terminal;
use screen::Screen;

/// Keys are looked at this often.
const KEYS_EVERY: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster's hosts, repeated or joined by commas: http://a:9200,http://b:9200.
    #[arg(value_name = "URL", required_unless_present_any = ["web", "serve_metrics"])]
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
    serve: serve::Args,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.interval < Duration::from_millis(100) {
        refuse!("--interval must be at least 100ms: looking costs the cluster");
    }
    if args.serve.is_asked_for() {
        return serve::run(
            &args.serve,
            &serve::What {
                urls: &args.urls,
                interval: args.interval,
                span: args.span,
                record: args.record.as_ref(),
                connect: &args.connect,
            },
        );
    }
    world::real_world::run(0, async |env| {
        let watching =
            Watching::connect(&env, &args.urls, &args.connect, args.record.clone()).await?;
        let out = match (args.json, args.plain || !terminal::is_out_terminal()) {
            (true, _) => Out::Json,
            (false, true) => Out::Plain,
            (false, false) => Out::Screen(None),
        };
        let mut watch = Watch { env, watching, out };
        let ended = until_told(watch.watch(args)).await;
        watch.close(ended.map(drop))
    })
}

struct Watch {
    env: Env,
    watching: Watching,
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
        let began = self.watching.began();
        let ends = args.span.map(|span| began + span);
        let mut next = began;
        let late = RefCell::new(None::<View>);
        loop {
            let mut waits = |seen: Seen<'_>| -> anyhow::Result<()> {
                *late.borrow_mut() = Some(seen.view);
                Ok(())
            };
            // A look may be long: a cluster that hangs is waited for, and whoever watches it need not wait as well.
            let seen = tokio::select! {
                biased;
                seen = self.watching.look(&mut waits) => seen?,
                quits = self.out.until_quit(&self.env, &late) => return quits,
            };
            *late.borrow_mut() = None;
            let t_s = (self.env.now() - began).as_secs_f64();
            self.out.show(&seen, t_s)?;
            let rest = rest_after(self.watching.client().longest_answer(), args.interval);
            next = (next + args.interval).max(self.env.now() + rest);
            let until = ends.map_or(next, |ends| next.min(ends));
            if self.wait(until).await? || ends.is_some_and(|ends| self.env.now() >= ends) {
                return Ok(());
            }
        }
    }

    /// Waits, and looks at the keys meanwhile; says whether to stop.
    async fn wait(&mut self, until: Time) -> anyhow::Result<bool> {
        let nothing = RefCell::default();
        tokio::select! {
            biased;
            quits = self.out.until_quit(&self.env, &nothing) => quits.map(|()| true),
            () = self.env.sleep_until(until) => Ok(false),
        }
    }

    /// Gives the terminal back, and ends the record.
    fn close(self, ended: anyhow::Result<()>) -> anyhow::Result<()> {
        drop(self.out);
        self.watching.close()?;
        ended
    }
}

impl Out {
    /// Ends when a key says so; never where no screen is open. Shows what is seen of a cluster that is `late`.
    async fn until_quit(&mut self, env: &Env, late: &RefCell<Option<View>>) -> anyhow::Result<()> {
        let Out::Screen(Some(screen)) = self else { return std::future::pending().await };
        while !screen.wants_to_quit()? {
            if let Some(view) = late.take() {
                screen.show(view)?;
            }
            env.sleep(KEYS_EVERY).await;
        }
        Ok(())
    }

    fn show(&mut self, seen: &Seen<'_>, t_s: f64) -> anyhow::Result<()> {
        let mut out = terminal::out();
        match self {
            Out::Screen(screen) => {
                let screen = match screen {
                    Some(screen) => screen,
                    closed => closed.insert(Box::new(Screen::open()?)),
                };
                screen.show(seen.view.clone())?;
            }
            Out::Plain => {
                let mut lines = plain_lines(&seen.view, t_s);
                lines.extend(seen.events.iter().map(|one| format!("  happened: {}", one.sentence)));
                writeln!(out, "{}", lines.join("\n"))?;
            }
            Out::Json => {
                let line = json!({
                    "t_s": t_s,
                    "trouble": seen.trouble,
                    "answered_s_ago": seen.answered_s_ago,
                    "headline": seen.view.verdict,
                    "findings": seen.diagnosis.findings,
                    "time_to_green": seen.view.green,
                    "events": seen.events,
                    "recoveries": paces(&seen.series),
                    "nodes": node_paces(&seen.series),
                    "observation": seen.series.last(),
                });
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}
