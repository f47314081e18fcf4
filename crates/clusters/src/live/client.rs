//! The client of a cluster that was not started here: several hosts, retries, and errors that say what to do.

mod unreached;

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde_json::Value;
use world::{Env, Time};

use super::answer::{is_known, is_worth_another_host, json_of, judge};
use super::sent_changes::{Sent, SentChanges, Unanswered};
use super::transcript::{Exchanged, Header, Replay, Request, Transcript};
use crate::http::{Address, Exchange, Failure, HttpClient, LiveOptions, is_idempotent};
use crate::{Answer, Error, Result};

/// All questions of one look together may be asked in vain for so many times as long as one answer may take, and so may
/// all hosts for one answer.
const ANSWERS_IN_VAIN: u32 = 3;
/// An answer of a live cluster that is larger than this is refused.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Hosts that are asked at once whether they are there: each takes a connection.
const HOSTS_AT_ONCE: usize = 8;
/// Pauses before a cluster that says it is busy is asked again.
const BUSY_PAUSES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// Whether what is asked is written down, or answered by what was.
enum Tape {
    Off,
    Written(Transcript),
    Played(Replay),
}

/// A look that is under way, until this is dropped.
#[must_use]
pub struct LookUnderWay(Rc<Cell<Option<Time>>>);

impl Drop for LookUnderWay {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// Asks a live cluster.
pub struct LiveClient {
    env: Env,
    plain: Exchange,
    secure: Option<Exchange>,
    hosts: Vec<Address>,
    options: LiveOptions,
    current: Cell<usize>,
    timeout: Duration,
    /// When the look that is under way is to be over, should nothing more be answered.
    look_ends: Rc<Cell<Option<Time>>>,
    requests: Cell<u32>,
    longest: Cell<Duration>,
    answer_bytes: Cell<u64>,
    changes: SentChanges,
    tape: Tape,
}

impl LiveClient {
    /// Reads certificates and keys; connects to nothing yet.
    pub fn new(env: &Env, options: &LiveOptions) -> Result<Self> {
        let client = |client: Exchange| {
            let mut client = client.with_answer_bytes_max(ANSWER_BYTES_MAX);
            client.set_credentials(&options.credentials);
            client
        };
        let secure = match options.addresses.iter().any(|address| address.tls) {
            true => {
                let config = options.tls.config()?;
                Some(client(Exchange::Http(HttpClient::new(env.clone()).with_tls(config))))
            }
            false => None,
        };
        Ok(LiveClient {
            env: env.clone(),
            plain: client(Exchange::of(env)),
            secure,
            hosts: options.addresses.clone(),
            options: options.clone(),
            current: Cell::new(0),
            timeout: options.timeout,
            look_ends: Rc::default(),
            requests: Cell::new(0),
            longest: Cell::default(),
            answer_bytes: Cell::new(0),
            changes: SentChanges::default(),
            tape: Tape::Off,
        })
    }

    /// The same, which writes down everything from now on.
    pub fn written_to(self, transcript: Transcript) -> Self {
        LiveClient { tape: Tape::Written(transcript), ..self }
    }

    /// One that asks nobody: a transcript answers, and tells the time.
    pub fn replaying(env: &Env, header: &Header, replay: Replay) -> Result<Self> {
        let hosts = Address::parse_all(header.hosts.iter().map(String::as_str))?;
        let nobody = LiveOptions::anonymous(Vec::new(), Duration::ZERO);
        let client = LiveClient::new(env, &nobody)?;
        Ok(LiveClient { tape: Tape::Played(replay), hosts, ..client })
    }

    /// The file that everything was written to; none where nothing was. Fails where it could not be written.
    pub fn transcript(&self) -> Result<Option<&Path>> {
        match &self.tape {
            Tape::Written(transcript) => transcript.end().map(Some),
            Tape::Off | Tape::Played(_) => Ok(None),
        }
    }

    /// Whether a transcript answers, and was asked for something after its end.
    pub fn has_broken_off(&self) -> bool {
        matches!(&self.tape, Tape::Played(replay) if replay.has_broken_off())
    }

    /// The time by which evidence is reckoned.
    pub fn now(&self) -> Time {
        match &self.tape {
            Tape::Off => self.env.now(),
            Tape::Written(transcript) => {
                let now = self.env.now();
                transcript.clock(now);
                now
            }
            Tape::Played(replay) => replay.now(),
        }
    }

    /// Waits; not at all where a transcript answers.
    pub async fn sleep_until(&self, until: Time) {
        if !matches!(self.tape, Tape::Played(_)) {
            self.env.sleep_until(until).await;
        }
    }

    /// Begins a look: what is asked until the result is dropped shares one deadline, or a cluster that hangs would make
    /// it last as long as all of its questions together. Each answer moves the deadline by what it took: a cluster that
    /// is slow but answers is heard out.
    pub fn begin_look(&self) -> LookUnderWay {
        self.longest.set(Duration::ZERO);
        self.look_ends.set(Some(self.env.now() + self.timeout.saturating_mul(ANSWERS_IN_VAIN)));
        LookUnderWay(self.look_ends.clone())
    }

    /// How long something may take that could take `limit`.
    fn within_look(&self, limit: Duration) -> Duration {
        let ends = self.look_ends.get();
        ends.map_or(limit, |ends| within_half(limit, ends - self.env.now()))
    }

    /// How it was told to reach the cluster.
    pub fn options(&self) -> &LiveOptions {
        &self.options
    }

    /// The hosts, as they were given.
    pub fn hosts(&self) -> &[Address] {
        &self.hosts
    }

    /// Requests and bytes of answers so far.
    pub fn cost(&self) -> (u32, u64) {
        (self.requests.get(), self.answer_bytes.get())
    }

    /// The longest that a question has taken since the last look began.
    pub fn longest_answer(&self) -> Duration {
        self.longest.get()
    }

    /// Where it asks.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// Changes that may be made yet, also where another host has made them.
    pub(crate) fn unanswered(&self) -> Unanswered {
        self.changes.unanswered()
    }

    /// From now on `call` is called before a change is sent to a host.
    pub(crate) fn before_each_change(&mut self, call: impl Fn() + 'static) {
        self.changes.before_each = Some(Box::new(call));
    }

    /// Sends a GET to the host that answered last, or to the next where that one does not answer.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.read(path).await
    }

    /// As [`LiveClient::get`], read as what is wanted of it and no more.
    pub(super) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        json_of(path, &self.send("GET", path, Bytes::new()).await?)
    }

    /// As [`LiveClient::get`], with a body.
    pub async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        json_of(path, &self.send(method, path, rest::json_body(body)).await?)
    }

    /// As [`LiveClient::get`], for answers that are text.
    pub async fn text(&self, path: &str) -> Result<String> {
        let body = self.send("GET", path, Bytes::new()).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// As [`LiveClient::get`], for any method and any body: the whole answer, which may take as long as `limit`.
    pub async fn request(
        &self,
        limit: Duration,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer> {
        let body = self.send_within(limit, method, path, body).await?;
        Ok(Answer { path: path.to_owned(), status: 200, body })
    }

    /// As [`LiveClient::get`], from one host and no other; and how long it took.
    pub(super) async fn get_from(&self, host: usize, path: &str) -> Result<(Value, Duration)> {
        let (body, took) = self.exchange(self.timeout, host, "GET", path, Bytes::new()).await?;
        Ok((json_of(path, &body)?, took))
    }

    /// Whether no host even says who it is, which none needs another one for. A few are asked at once, and of many no
    /// more once one is there.
    pub(super) async fn is_silent(&self) -> bool {
        let root = |host: &usize| self.exchange(self.timeout, *host, "GET", "/", Bytes::new());
        let all: Vec<usize> = (0..self.hosts.len()).collect();
        for few in all.chunks(HOSTS_AT_ONCE) {
            let answers = join_all(few.iter().map(root)).await;
            let are_silent = answers.iter().all(|answer| {
                matches!(
                    answer,
                    Err(Error::Connection { .. }
                        | Error::Broken { .. }
                        | Error::Peer { .. }
                        | Error::Timeout { .. })
                )
            });
            if !are_silent {
                return false;
            }
        }
        true
    }

    async fn send(&self, method: &str, path: &str, body: Bytes) -> Result<Bytes> {
        self.send_within(self.timeout, method, path, body).await
    }

    async fn send_within(
        &self,
        limit: Duration,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes> {
        let (mut left, mut tried) = (limit.saturating_mul(ANSWERS_IN_VAIN), Vec::new());
        for _ in 0..self.hosts.len() {
            let index = self.current.get() % self.hosts.len();
            let (limit, began) = (within_half(limit, left), self.env.now());
            match self.with_retries(limit, index, method, path, body.clone()).await {
                Err(error) if is_worth_another_host(&error, method, path) => {
                    left = left.saturating_sub(self.env.now() - began);
                    self.current.set((index + 1) % self.hosts.len());
                    tried.push(error);
                }
                answer => return answer,
            }
        }
        match tried.len() {
            1 => Err(tried.remove(0)),
            _ => Err(Error::NoHost { tried }),
        }
    }

    /// Sends a request, and again after a pause where the cluster says that it is busy (429).
    async fn with_retries(
        &self,
        limit: Duration,
        host: usize,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Bytes> {
        for pause in BUSY_PAUSES {
            match self.exchange(limit, host, method, path, body.clone()).await {
                Err(Error::Refused { status: 429, .. }) => {
                    self.sleep_until(self.env.now() + self.within_look(pause)).await;
                }
                answer => return answer.map(|(body, _)| body),
            }
        }
        self.exchange(limit, host, method, path, body).await.map(|(body, _)| body)
    }

    /// The answer of one host, and how long it took.
    async fn exchange(
        &self,
        limit: Duration,
        host: usize,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<(Bytes, Duration)> {
        let address = &self.hosts[host];
        let name = address.to_string();
        let request = Request { host, address: &name, method, path };
        self.requests.set(self.requests.get() + 1);
        let sent = self.changes.begin(method, self.env.now());
        let (exchanged, took) = match &self.tape {
            Tape::Played(replay) => replay.answer(request),
            Tape::Off | Tape::Written(_) => {
                self.reach(limit, address, method, path, body, &sent).await
            }
        };
        if let Tape::Written(transcript) = &self.tape {
            transcript.asked(request, took, &exchanged);
        }
        self.longest.set(self.longest.get().max(took));
        let (status, body) = exchanged?;
        self.answer_bytes.set(self.answer_bytes.get() + body.len() as u64);
        let answer = judge(self.options.credentials.kind(), address, method, path, status, body);
        if is_known(&answer) {
            sent.mark_known();
        }
        Ok((answer?, took))
    }

    async fn reach(
        &self,
        limit: Duration,
        address: &Address,
        method: &str,
        path: &str,
        body: Bytes,
        sent: &Sent<'_>,
    ) -> (Exchanged, Duration) {
        let client = match &self.secure {
            Some(client) if address.tls => client,
            _ => &self.plain,
        };
        let whole = format!("{}{path}", address.prefix);
        let authority = address.authority();
        let limit = self.within_look(limit);
        let broken = client.broken();
        let asking = client.send(&authority, method, &whole, body);
        let began = self.env.now();
        let ended = self.env.timeout(limit, asking).await;
        let ended = ended.unwrap_or_else(|elapsed| Err(Failure::Late(elapsed.0)));
        let took = self.env.now() - began;
        if let (Ok(_), Some(ends)) = (&ended, self.look_ends.get()) {
            self.look_ends.set(Some(ends + took));
        }
        // A connection that was idle may have broken before the one that was answered.
        if client.broken() != broken {
            sent.was_sent_twice();
        }
        if matches!(ended, Err(Failure::Unread(_))) {
            sent.mark_known();
        }
        let error = |failure: Failure| failure.error(&address.to_string(), method, path);
        let exchanged = match ended {
            Ok(answer) => Ok(answer),
            Err(Failure::Unread(source)) => Err(self.why_not(address, source).await),
            // The request may have been carried out: only an idempotent one may go to another host.
            Err(Failure::Broken(source)) if is_idempotent(method) => {
                match self.why_not(address, source).await {
                    Error::Connection { source, .. } => Err(error(Failure::Broken(source))),
                    other => Err(other),
                }
            }
            Err(failure) => Err(error(failure)),
        };
        (exchanged, took)
    }
}

/// Half of the time that is left at most, so that one question that hangs leaves time for the others. Whole
/// milliseconds, as a transcript has them.
fn within_half(limit: Duration, left: Duration) -> Duration {
    let half_ms = left.as_millis() / 2;
    limit.min(Duration::from_millis(u64::try_from(half_ms).unwrap_or(u64::MAX)))
}
