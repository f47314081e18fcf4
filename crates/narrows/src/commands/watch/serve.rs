//! `narrows watch --web` and `--serve-metrics`: what is watched, for browsers and for Prometheus.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clusters::live::Address;
use futures_util::future::try_join_all;
use record::names::listed;
use report::live_page::{Document, Frame, History, document};
use report::metrics::{self, Figures};
use world::{Env, Time};

use crate::exit::refuse;
use crate::interrupt::until_told;
use crate::live::{ClusterFolder, ConnectArgs, FolderReader, Seen, Watching, usage};
use crate::runs;
use crate::terminal::{self, say};
use crate::web::{Answer, Guard, Hub, Routes, Server, event, guard};

/// Where the page and the figures are served unless told otherwise.
const WEB: &str = "127.0.0.1:9290";
const METRICS: &str = "127.0.0.1:9291";

/// A page, or figures, instead of a screen.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Serve a page that stays open, on this address instead of a screen. Others than this machine may reach it only
    /// with a token and TLS.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = WEB, conflicts_with_all = ["plain", "json"])]
    web: Option<String>,
    /// Serve figures for Prometheus on this address, as OpenMetrics under /metrics; also beside --web.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = METRICS, conflicts_with_all = ["plain", "json"])]
    serve_metrics: Option<String>,
    /// Another cluster, in a tab of its own: its hosts, joined by commas. It is reached with the same credentials; may
    /// be given several times. Only with --web or --serve-metrics.
    #[arg(long, value_name = "URL")]
    also: Vec<String>,
    /// TOML file with token = "...", which nobody else may read: browsers ask for it as the password of user narrows,
    /// Prometheus shows it as a bearer token.
    #[arg(long, value_name = "FILE")]
    web_token_file: Option<PathBuf>,
    /// Certificate of --web and --serve-metrics, PEM; with it they speak TLS.
    #[arg(long, value_name = "FILE", requires = "web_key")]
    web_cert: Option<PathBuf>,
    /// The key of that certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "web_cert")]
    web_key: Option<PathBuf>,
    /// A name by which browsers may ask for the page, besides localhost and its address; may be given several times.
    #[arg(long = "allow-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Where `steer` and `what-if` keep runs on this machine: the page of --web shows what they did and said.
    #[arg(long, value_name = "DIR", default_value = runs::DEFAULT_DIR)]
    runs: PathBuf,
}

impl Args {
    /// Whether anything is to be served, or asked for as if it were.
    pub(super) fn is_asked_for(&self) -> bool {
        self.web.is_some() || self.serve_metrics.is_some() || self.of_serving().is_some()
    }

    /// Whether it was said where runs are kept.
    fn has_runs(&self) -> bool {
        self.runs != Path::new(runs::DEFAULT_DIR)
    }

    /// The first option that says how something is served.
    fn of_serving(&self) -> Option<&'static str> {
        let options = [
            ("--also", !self.also.is_empty()),
            ("--web-token-file", self.web_token_file.is_some()),
            ("--web-cert", self.web_cert.is_some()),
            ("--allow-host", !self.allowed_hosts.is_empty()),
            ("--runs", self.has_runs()),
        ];
        options.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// The addresses of page and figures, and the cluster that stood where an address may stand.
    fn addresses(&self) -> [(Option<&str>, Option<&str>); 2] {
        [(&self.web, WEB), (&self.serve_metrics, METRICS)].map(|(given, default)| match given {
            // `--web http://es:9200`: the address was left out, and this is the cluster.
            Some(text) if text.contains("://") => (Some(default), Some(text.as_str())),
            Some(text) => (Some(text.as_str()), None),
            None => (None, None),
        })
    }
}

/// One cluster for those who ask.
struct Shown {
    name: String,
    history: History,
    /// What steer and what-if wrote of it on this machine, where a page shows that.
    folder: Option<FolderReader>,
    /// What Prometheus is told, where it asks, and when it was as old as it says.
    last: Option<Figures>,
    told: Time,
}

/// All that is served.
struct Served {
    env: Env,
    clusters: RefCell<Vec<Shown>>,
    hub: Hub,
    document: Document,
    /// Whether anybody may ask for the page.
    shows_page: bool,
    /// Whether anybody may ask for figures.
    tells_figures: bool,
    /// How many clusters are looked at yet.
    watched: Cell<usize>,
}

/// What is watched, and how.
pub(super) struct What<'a> {
    pub(super) urls: &'a [String],
    pub(super) interval: Duration,
    pub(super) span: Option<Duration>,
    pub(super) record: Option<&'a PathBuf>,
    pub(super) connect: &'a ConnectArgs,
}

pub(super) fn run(serve: &Args, args: &What<'_>) -> anyhow::Result<()> {
    let [(web, first), (metrics, second)] = serve.addresses();
    if web.is_none() && serve.has_runs() {
        refuse!(
            "--runs is where the page of --web finds what steer and what-if did: add --web, or leave --runs out"
        );
    }
    if web.is_none() && metrics.is_none() {
        let option = serve.of_serving().unwrap_or_default();
        refuse!("{option} goes with --web or --serve-metrics");
    }
    let stood = [first, second].into_iter().flatten().map(str::to_owned);
    let urls: Vec<String> = args.urls.iter().cloned().chain(stood).collect();
    if urls.is_empty() {
        refuse!(
            "which cluster? Write its URL, for example: narrows watch http://localhost:9200 --web{}",
            web.filter(|text| *text != WEB).map_or_else(String::new, |text| format!(" {text}"))
        );
    }
    refuse_twins(&urls, &serve.also)?;
    let who = Guard {
        token_file: serve.web_token_file.clone(),
        cert: serve.web_cert.clone(),
        key: serve.web_key.clone(),
        allowed_hosts: serve.allowed_hosts.clone(),
    };
    let guarded = |option: &'static str, address: Option<&str>| {
        let guarded = address.map(|address| guard(option, address, &who)).transpose();
        guarded.map(|guarded| guarded.map(|guarded| (option, guarded)))
    };
    let (web, metrics) = (guarded("--web", web)?, guarded("--serve-metrics", metrics)?);
    world::real_world::run(0, async |env| {
        let mut all =
            vec![Watching::connect(&env, &urls, args.connect, args.record.cloned()).await?];
        for also in &serve.also {
            let urls = [also.clone()];
            all.push(Watching::connect(&env, &urls, args.connect, args.record.cloned()).await?);
        }
        let mut clusters = shown(&all);
        for (shown, watching) in clusters.iter_mut().zip(&all).filter(|_| web.is_some()) {
            let folder = ClusterFolder::of_asked(&serve.runs, watching.client()).await;
            shown.folder = folder.map(|folder| FolderReader::new(folder, env.now()));
        }
        let served = Rc::new(Served {
            env: env.clone(),
            clusters: RefCell::new(clusters),
            hub: Hub::default(),
            document: document(),
            shows_page: web.is_some(),
            tells_figures: metrics.is_some(),
            watched: Cell::new(all.len()),
        });
        let mut servers = Vec::new();
        for (option, guarded) in [web, metrics].into_iter().flatten() {
            let server = Server::bind(&env, option, guarded).await?;
            announce(option, &server, &served)?;
            servers.push(env.spawn("serves pages", server.serve(routes(option, served.clone()))));
        }
        let looks = all.iter_mut().enumerate().map(|(at, one)| watch(&env, at, one, args, &served));
        let ended = until_told(async { try_join_all(looks).await.map(drop) }).await;
        drop(servers);
        for one in all {
            one.close()?;
        }
        ended.map(drop)
    })
}

/// Refuses a host that stands twice: two clusters of one name and one address could not be told apart.
fn refuse_twins(urls: &[String], also: &[String]) -> anyhow::Result<()> {
    let hosts = Address::parse_all(urls.iter().chain(also).map(String::as_str)).map_err(usage)?;
    let twin = hosts.iter().enumerate().find(|(at, host)| hosts[..*at].contains(host));
    if let Some((_, host)) = twin {
        refuse!("{host} stands there twice; --also gives another cluster");
    }
    Ok(())
}

/// What is shown of clusters that were connected to. Two of the same name are told apart by their hosts.
fn shown(all: &[Watching]) -> Vec<Shown> {
    let name = |one: &Watching| match one.identity().name.as_str() {
        "" => one.hosts().to_owned(),
        name => name.to_owned(),
    };
    let one = |watching: &Watching| {
        let own = name(watching);
        let twins = all.iter().filter(|other| name(other) == own).count();
        let name = if twins > 1 { format!("{own}, {}", watching.hosts()) } else { own };
        let (history, told) = (History::default(), watching.began());
        Shown { name, history, folder: None, last: None, told }
    };
    all.iter().map(one).collect()
}

/// Says where it is, to whoever started it.
fn announce(option: &str, server: &Server, served: &Served) -> anyhow::Result<()> {
    let url = server.url()?;
    let names: Vec<String> = served.clusters.borrow().iter().map(|one| one.name.clone()).collect();
    let what = match option {
        "--web" => format!("{url} shows {}; Ctrl-C ends it", listed(&names)),
        _ => format!("{url}metrics has figures of {} for Prometheus", listed(&names)),
    };
    Ok(writeln!(terminal::out(), "{what}")?)
}

fn routes(option: &str, served: Rc<Served>) -> Routes {
    match option {
        "--web" => Rc::new(move |path, query| served.page(path, query)),
        _ => Rc::new(move |path, _| served.figures(path)),
    }
}

impl Served {
    /// What the page asks for: itself, events, and what was shown at a moment.
    fn page(&self, path: &str, query: &str) -> Answer {
        match path {
            "/" => Answer::Text {
                content_type: "text/html; charset=utf-8",
                policy: Some(self.document.policy.clone()),
                text: self.document.html.clone(),
            },
            "/events" => Answer::Feed(self.hub.open([event("all", &self.all())])),
            "/at" => match self.at(query) {
                Some(text) => Answer::Text { content_type: "application/json", policy: None, text },
                None => Answer::NotFound,
            },
            _ => Answer::NotFound,
        }
    }

    /// All clusters with their last hour, as JSON.
    fn all(&self) -> String {
        let clusters = self.clusters.borrow();
        let one = |shown: &Shown| {
            let name = serde_json::Value::from(shown.name.as_str());
            let folder = shown.folder.as_ref().map_or("", FolderReader::shown);
            format!("{{\"name\":{name},{folder}{}", &shown.history.all()[1..])
        };
        format!("[{}]", clusters.iter().map(one).collect::<Vec<_>>().join(","))
    }

    /// `cluster=0&ms=1700000000000`: what was shown then.
    fn at(&self, query: &str) -> Option<String> {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let (cluster, at_ms): (usize, u64) =
            (value("cluster")?.parse().ok()?, value("ms")?.parse().ok()?);
        self.clusters.borrow().get(cluster)?.history.at(at_ms)
    }

    /// What Prometheus asks for.
    fn figures(&self, path: &str) -> Answer {
        if path != "/metrics" {
            return Answer::NotFound;
        }
        let (mut clusters, now) = (self.clusters.borrow_mut(), self.env.now());
        for shown in clusters.iter_mut() {
            // What was told last has grown older since.
            if let Some(last) = &mut shown.last {
                last.answered_s_ago += (now - shown.told).as_secs_f64();
            }
            shown.told = now;
        }
        let looks = clusters.iter().filter_map(|shown| shown.last.as_ref());
        Answer::Text {
            content_type: metrics::CONTENT_TYPE,
            policy: None,
            text: metrics::openmetrics(looks),
        }
    }

    /// Shows a cluster, after so many looks.
    fn show(&self, at: usize, seen: Seen<'_>, looks: u64) {
        let shown = &mut self.clusters.borrow_mut()[at];
        if self.shows_page {
            let frame = Frame::of(self.env.epoch_ms(), &seen.view, &seen.diagnosis);
            let folder = shown.folder.as_mut().map_or("", |folder| folder.look(&self.env));
            let look = shown.history.push(&frame, seen.events);
            if self.hub.is_heard() {
                let look = format!("{{\"cluster\":{at},{folder}{}", &look[1..]);
                self.hub.send(&event("look", &look));
            }
        }
        if self.tells_figures {
            let last = seen.series.last();
            let (requests, answer_bytes) = seen.cost;
            shown.told = self.env.now();
            shown.last = Some(Figures {
                cluster: shown.name.clone(),
                view: seen.view,
                diagnosis: seen.diagnosis,
                health: last.and_then(|look| look.health.clone()),
                followers: last.map(|look| look.followers.clone()).unwrap_or_default(),
                answered_s_ago: seen.answered_s_ago,
                looks,
                requests: requests.into(),
                answer_bytes,
            });
        }
    }

    /// Whether the others are watched on where one is not, as its credentials have expired. Says so.
    fn goes_on_without(&self, at: usize, error: &anyhow::Error) -> bool {
        self.watched.set(self.watched.get() - 1);
        let goes_on = self.watched.get() > 0;
        if goes_on {
            let name = &self.clusters.borrow()[at].name;
            say!("narrows: {name} is watched no more: {error:#}");
        }
        goes_on
    }
}

/// Looks at one cluster for as long as is wanted, and shows it.
async fn watch(
    env: &Env,
    at: usize,
    watching: &mut Watching,
    args: &What<'_>,
    served: &Served,
) -> anyhow::Result<()> {
    let ends = args.span.map(|span| watching.began() + span);
    let mut next = watching.began();
    let (mut looks, mut is_over) = (0, None::<String>);
    loop {
        let mut waits = |seen: Seen<'_>| -> anyhow::Result<()> {
            served.show(at, seen, looks);
            Ok(())
        };
        let seen = if let Some(why) = is_over.clone() {
            watching.unasked(&why)
        } else {
            match watching.look(&mut waits).await {
                Ok(seen) => seen,
                Err(error) if served.goes_on_without(at, &error) => {
                    is_over = Some(format!("it is asked no more: {error:#}"));
                    continue;
                }
                Err(error) => return Err(error),
            }
        };
        looks += u64::from(is_over.is_none());
        served.show(at, seen, looks);
        next = (next + args.interval).max(env.now() + args.interval / 4);
        env.sleep_until(ends.map_or(next, |ends| next.min(ends))).await;
        if ends.is_some_and(|ends| env.now() >= ends) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use insight::diagnosis::{Series, diagnose};
    use record::observation::Observation;
    use report::screen::{Place, View};

    use super::*;

    #[test]
    fn the_age_of_the_last_answer_counts_on_between_two_looks() {
        world::virtual_world::run(1, async |env| {
            let (name, told) = ("c".to_owned(), env.now());
            let shown = Shown { name, history: History::default(), folder: None, last: None, told };
            let served = Served {
                env: env.clone(),
                clusters: RefCell::new(vec![shown]),
                hub: Hub::default(),
                document: document(),
                shows_page: false,
                tells_figures: true,
                watched: Cell::new(1),
            };
            let look = Observation::default();
            let series = Series::new([(0.0, &look)]);
            let diagnosis = diagnose(&series);
            let view = View::of(&series, &diagnosis, &Place::default());
            let (events, trouble, answered_s_ago, cost) = (Vec::new(), None, 2.0, (1, 1));
            let seen = Seen { series, diagnosis, view, events, trouble, answered_s_ago, cost };
            served.show(0, seen, 1);
            for expected in ["2", "16", "30"] {
                let Answer::Text { text, .. } = served.figures("/metrics") else {
                    panic!("no figures");
                };
                let line = format!("narrows_answer_age_seconds{{cluster=\"c\"}} {expected}\n");
                assert!(text.contains(&line), "{line} is not in {text}");
                env.sleep(Duration::from_secs(14)).await;
            }
        });
    }
}
