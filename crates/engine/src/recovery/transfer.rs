//! Files, from a source to a target: chunks chosen by a scheduler, throttled, verified, accounted.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use record::Limit;
use store::{Commit, Incoming};
use tokio::sync::mpsc;
use world::{Panicked, Task, Time};

use super::service::RecoveryService;
use super::session_opening::{Answer, Asked, PrefetchedChunks};
use super::source_session::{SourceSession, TransferError};
use crate::remote::claims;
use crate::shard::{FileProgress, Progress};
use crate::transport::{
    CallError, Class, Failure, Request, Response, WireChunk, checksum, decompress, unexpected,
};
use policy::failures::DISK_FULL;
use policy::transfer::accounting::{SourcePhases, TargetPhases, Timeline};
use policy::transfer::chunk::{ChunkRequest, Delivery, FileSpan};
use policy::transfer::chunk_scheduler::ChunkScheduler;
use policy::transfer::compression::Shipment;
use policy::transfer::connections::Connections;

/// How often the round trip is measured while files are copied.
const PING_EVERY: Duration = Duration::from_secs(2);
/// The longest pause between two measurements: a path that does not change is measured less and less often.
const PING_EVERY_MAX: Duration = Duration::from_secs(64);

/// Measures the round trip to the source until the task is ended.
pub(crate) async fn measure_round_trip(service: Rc<RecoveryService>, source: SourceSession) {
    let mut wait = PING_EVERY;
    loop {
        let asked = service.core.env.now();
        if source.ask(&service, Class::Control, Request::Ping).await.is_ok() {
            let took = service.core.env.now() - asked;
            source.round_trip.set(service.core.note_round_trip(&source.address, took));
        }
        service.core.env.sleep(wait).await;
        wait = (wait * 2).min(PING_EVERY_MAX);
    }
}

/// Measures the round trip to the source every so often, for a transfer, until the task is ended.
async fn ping(
    service: Rc<RecoveryService>,
    source: SourceSession,
    every: Duration,
    tell: mpsc::UnboundedSender<TransferEvent>,
) {
    loop {
        let asked = service.core.env.now();
        if source.ask(&service, Class::Control, Request::Ping).await.is_ok() {
            // The transfer may have ended meanwhile.
            let _ = tell.send(TransferEvent::RoundTrip(service.core.env.now() - asked));
        }
        service.core.env.sleep(every).await;
    }
}

/// Chunks that may come damaged one after another before the session is opened anew.
const DAMAGED_IN_A_ROW: u32 = 50;

/// What the tasks of a transfer tell it.
enum TransferEvent {
    Chunk(ChunkOutcome),
    /// A file was checked as a whole.
    File(Result<(), TransferError>),
    /// A ping took so long.
    RoundTrip(Duration),
}

/// What came of one chunk.
struct ChunkOutcome {
    request: ChunkRequest,
    requested_at: Time,
    result: Result<Arrived, ChunkError>,
}

struct Arrived {
    at: Time,
    source: SourcePhases,
    target: TargetPhases,
    pressure: bool,
}

enum ChunkError {
    Damaged,
    Call(CallError),
    Store(store::Error),
}

/// One transfer: what all its parts need.
struct Transfer {
    service: Rc<RecoveryService>,
    source: SourceSession,
    progress: Rc<Progress>,
    incoming: Rc<Incoming>,
    scheduler: ChunkScheduler,
    /// Chunks that were asked for before the files were known.
    prefetched: BTreeMap<ChunkRequest, Asked>,
    /// Bytes of each file that are still missing.
    missing: Vec<u64>,
    /// With the connection that each travels over.
    tasks: BTreeMap<ChunkRequest, (u32, Task<()>)>,
    /// Checks of whole files that run beside the chunks.
    checks: Vec<Task<()>>,
    checking: usize,
    /// Chunks that came damaged since one came whole.
    damaged_in_a_row: u32,
    tell: mpsc::UnboundedSender<TransferEvent>,
    connections: Connections,
    /// Pings the source while the number of connections depends on it.
    pings: Option<Task<()>>,
}

/// Copies the files of `commit` that `incoming` does not have. Ends at the first error; what was verified
/// until then is kept by `incoming`.
pub(crate) async fn fetch_files(
    service: &Rc<RecoveryService>,
    source: &SourceSession,
    progress: &Rc<Progress>,
    (commit, incoming): (&Commit, &Rc<Incoming>),
    prefetched: PrefetchedChunks,
) -> Result<(), TransferError> {
    let have: BTreeMap<usize, u64> = incoming.have().into_iter().collect();
    let spans: Vec<FileSpan> = commit
        .files
        .iter()
        .enumerate()
        .map(|(i, file)| FileSpan { len: file.len, have: have.get(&i).copied().unwrap_or(0) })
        .collect();
    list_files(progress, commit, &spans);
    // It began with what was asked for ahead.
    let began = prefetched.began().unwrap_or(service.core.env.now());
    let mut scheduler = ChunkScheduler::new(source.scheduler(service), &spans, began);
    // Round trips of small files come while the rate limit holds nothing. Files of a remote cluster are not sorted.
    if source.remote.is_none() && service.core.settings().recovers_smallest_first() {
        scheduler.smallest_first();
    }
    let (tell, events) = mpsc::unbounded_channel();
    let mut transfer = Transfer {
        service: service.clone(),
        source: source.clone(),
        progress: progress.clone(),
        incoming: incoming.clone(),
        scheduler,
        prefetched: prefetched.by_chunk(&source.address, commit),
        missing: spans.iter().map(|span| span.len - span.have).collect(),
        tasks: BTreeMap::new(),
        checks: Vec::new(),
        checking: 0,
        damaged_in_a_row: 0,
        tell,
        connections: Connections::new(
            service.core.settings().transport_recovery_connections(),
            source.connections_max(service),
        ),
        pings: None,
    };
    transfer.connections.round_trip(service.core.env.now(), source.round_trip.get());
    // Each measurement is reported once: a running minimum would hide a path that becomes longer.
    transfer.scheduler.round_trip(service.core.env.now(), source.round_trip.get());
    service.core.pace_changed.notify_waiters();
    for file in 0..spans.len() {
        if transfer.missing[file] == 0 {
            transfer.check_file(file as u32);
        }
    }
    let result = transfer.run(events).await;
    progress.shown.borrow_mut().in_flight_bytes = 0;
    progress.shown.borrow_mut().connections = 0;
    let opened = transfer.connections.additional();
    drop(transfer);
    for which in opened {
        service.core.pool.close_unused(&source.address, Class::Recovery(which));
    }
    service.note_load();
    // The other transfers share the memory of this one.
    service.core.pace_changed.notify_waiters();
    result
}

fn list_files(progress: &Progress, commit: &Commit, spans: &[FileSpan]) {
    let mut files = progress.files.borrow_mut();
    // A retry lists the same files again: bytes that arrived before the failure are recovered, not "reused".
    let before: BTreeMap<String, u64> =
        files.iter().map(|file| (file.name.clone(), file.reused)).collect();
    *files = commit
        .files
        .iter()
        .zip(spans)
        .map(|(file, span)| {
            let reused = before.get(&*file.name).copied().unwrap_or(span.have).min(span.have);
            let recovered = span.have - reused;
            FileProgress { name: file.name.to_string(), len: file.len, reused, recovered }
        })
        .collect();
}

impl Transfer {
    async fn run(
        &mut self,
        mut events: mpsc::UnboundedReceiver<TransferEvent>,
    ) -> Result<(), TransferError> {
        while !self.scheduler.is_complete() || self.checking > 0 {
            self.start_chunks();
            if self.scheduler.is_complete() {
                self.progress
                    .accounting
                    .borrow_mut()
                    .set_idle(self.service.core.env.now(), Limit::DiskWrite);
            }
            let wake_at = self.scheduler.wake_at();
            let service = self.service.clone();
            tokio::select! {
                biased;
                first = events.recv() => {
                    self.handle_event(first.expect("this transfer holds a sender"))?;
                    while let Ok(more) = events.try_recv() {
                        self.handle_event(more)?;
                    }
                }
                () = service.core.pace_changed.notified() => self.reconfigure(),
                () = service.core.env.sleep_until_due(wake_at) => {}
            }
        }
        Ok(())
    }

    fn reconfigure(&mut self) {
        let config = self.source.scheduler(&self.service);
        self.scheduler.reconfigure(self.service.core.env.now(), config);
        self.connections.set_most(self.source.connections_max(&self.service));
    }

    /// Pings while the number of connections depends on it, and closes connections that carry nothing any more.
    fn tend_connections(&mut self) {
        for which in self.connections.unused() {
            let class = Class::Recovery(which);
            self.service.core.pool.close_unused(&self.source.address, class);
        }
        let open = self.connections.open();
        {
            let mut shown = self.progress.shown.borrow_mut();
            shown.connections = open;
            shown.connections_max = shown.connections_max.max(open);
        }
        match self.connections.ping_every() {
            Some(every) if self.pings.is_none() => {
                let pings =
                    ping(self.service.clone(), self.source.clone(), every, self.tell.clone());
                self.pings = Some(self.service.core.env.spawn("pings a source", pings));
            }
            Some(_) => {}
            None => self.pings = None,
        }
    }

    fn start_chunks(&mut self) {
        self.tend_connections();
        let compress = self.service.core.compress(self.source.remote.as_deref());
        loop {
            self.scheduler.set_spread(self.connections.spread());
            let Some(request) = self.scheduler.next(self.service.core.env.now()) else { break };
            let now = self.service.core.env.now();
            self.progress.accounting.borrow_mut().issued(now, request.into());
            let connection = self.connections.take(request.len.into());
            let class = Class::Recovery(connection);
            let asked = self
                .prefetched
                .remove(&request)
                .unwrap_or_else(|| self.ask(request, class, compress));
            let task = self.service.core.env.spawn_with("fetches a chunk", || {
                fetch_chunk(
                    self.service.clone(),
                    self.source.clone(),
                    self.incoming.clone(),
                    (request, asked),
                    self.tell.clone(),
                )
            });
            self.tasks.insert(request, (connection, task));
        }
        let in_flight = self.scheduler.in_flight_bytes();
        {
            let mut shown = self.progress.shown.borrow_mut();
            shown.chunk_bytes = self.scheduler.chunk_bytes();
            shown.in_flight_bytes = in_flight;
            shown.in_flight_bytes_max = shown.in_flight_bytes_max.max(in_flight);
        }
        self.service.note_load();
    }

    fn ask(&self, request: ChunkRequest, class: Class, compress: u8) -> Asked {
        let ChunkRequest { file, offset, len } = request;
        let (service, source) = (self.service.clone(), self.source.clone());
        let ask = Request::ReadChunk { session: source.session, file, offset, len, compress };
        let at = service.core.env.now();
        let answer = self.service.core.env.spawn_with("asks for a chunk", move || async move {
            let answer = source.ask(&service, class, ask).await;
            (service.core.env.now(), answer)
        });
        Asked { at, compress, answer }
    }

    fn handle_event(&mut self, event: TransferEvent) -> Result<(), TransferError> {
        let outcome = match event {
            TransferEvent::Chunk(outcome) => outcome,
            TransferEvent::File(result) => {
                self.checking -= 1;
                return result;
            }
            TransferEvent::RoundTrip(took) => {
                let now = self.service.core.env.now();
                self.connections.round_trip(now, took);
                self.scheduler.round_trip(now, took);
                return Ok(());
            }
        };
        let now = self.service.core.env.now();
        let request = outcome.request;
        let connection = self.tasks.remove(&request).map_or(0, |(connection, _)| connection);
        let arrived = match outcome.result {
            Ok(arrived) => arrived,
            Err(error) => {
                self.progress.accounting.borrow_mut().failed(now, request.into());
                self.scheduler.failed(request);
                self.connections.release(connection, request.len.into());
                return match error {
                    ChunkError::Damaged => {
                        self.progress.shown.borrow_mut().refetched_chunks += 1;
                        self.damaged_in_a_row += 1;
                        match self.damaged_in_a_row {
                            DAMAGED_IN_A_ROW.. => Err(always_damaged().into()),
                            _ => Ok(()),
                        }
                    }
                    ChunkError::Call(error) => Err(error.into()),
                    ChunkError::Store(error) => Err(error.into()),
                };
            }
        };
        self.damaged_in_a_row = 0;
        self.account(now, &outcome.requested_at, request, &arrived);
        let len = u64::from(request.len);
        self.connections.delivered(now, connection, len, outcome.requested_at);
        let file = request.file as usize;
        self.missing[file] -= u64::from(request.len);
        self.progress.files.borrow_mut()[file].recovered += u64::from(request.len);
        if self.missing[file] == 0 {
            self.check_file(request.file);
        }
        Ok(())
    }

    fn account(
        &mut self,
        now: Time,
        requested_at: &Time,
        request: ChunkRequest,
        arrived: &Arrived,
    ) {
        let (source, target) = (arrived.source, arrived.target);
        let add = |total: &Cell<Duration>, more| total.set(total.get() + more);
        add(&self.progress.source_throttle, source.throttle);
        add(&self.progress.target_throttle, target.throttle);
        let timeline = Timeline {
            requested_at: *requested_at,
            arrived_at: arrived.at,
            base_round_trip: self.source.round_trip.get(),
            source,
            target,
        };
        self.progress.accounting.borrow_mut().finished(now, request.into(), timeline);
        let delivery = Delivery {
            requested_at: *requested_at,
            throttled: source.throttle + target.throttle,
            foreground_pressure: arrived.pressure || self.service.core.pressure(),
        };
        let shipment = Shipment {
            requested_at: *requested_at,
            plain_bytes: u64::from(request.len),
            is_full: true,
            pressure: delivery.foreground_pressure,
        };
        self.service.core.note_shipment(self.source.remote.as_deref(), shipment);
        self.scheduler.delivered(now, request, delivery);
    }

    /// Has a whole file checked while chunks of other files are fetched.
    fn check_file(&mut self, file: u32) {
        let check = check_file(
            self.service.clone(),
            self.source.clone(),
            self.progress.clone(),
            self.incoming.clone(),
            file,
        );
        let tell = self.tell.clone();
        self.checking += 1;
        self.checks.push(self.service.core.env.spawn("checks a file", async move {
            let result = check.await;
            // The transfer may have failed meanwhile.
            let _ = tell.send(TransferEvent::File(result));
        }));
    }
}

/// Checks a file as a whole. Where it is damaged, the source is asked whether the damage is there.
async fn check_file(
    service: Rc<RecoveryService>,
    source: SourceSession,
    progress: Rc<Progress>,
    incoming: Rc<Incoming>,
    file: u32,
) -> Result<(), TransferError> {
    match incoming.finish_file(file as usize).await {
        Err(damaged @ store::Error::ReceivedDamaged { .. }) => {
            let request = Request::VerifyFile { session: source.session, file };
            source.ask(&service, Class::Control, request).await?;
            // The source is whole: the file was damaged after the chunks' checksums were compared.
            progress.shown.borrow_mut().refetched_chunks += 1;
            Err(damaged.into())
        }
        other => Ok(other?),
    }
}

async fn fetch_chunk(
    service: Rc<RecoveryService>,
    source: SourceSession,
    incoming: Rc<Incoming>,
    (request, asked): (ChunkRequest, Asked),
    tell: mpsc::UnboundedSender<TransferEvent>,
) {
    let Asked { at: requested_at, compress, answer } = asked;
    let answer: Result<Answer, _> = answer.await;
    let failed = |failure| ChunkError::Call(CallError::Failed(failure));
    let result = match answer {
        Ok((at, Ok(Response::Chunk(chunk)))) => {
            let phases = claims::phases_within(at - requested_at, &chunk.phases);
            let stored = store_chunk(&service, &source, &incoming, (request, compress), *chunk, at);
            let stored = service.core.env.caught(pin!(stored)).await;
            let stored = stored.unwrap_or_else(|panicked| Err(failed(panicked.into())));
            stored.map(|(target, pressure)| Arrived { at, source: phases, target, pressure })
        }
        Ok((_, Ok(_))) => Err(failed(unexpected())),
        Ok((_, Err(error))) => Err(ChunkError::Call(error)),
        // Where the node is going down, this task goes with it.
        Err(_) => Err(failed(Panicked("asking for a chunk".to_owned()).into())),
    };
    // Nobody listens any more where the transfer has failed meanwhile.
    let _ = tell.send(TransferEvent::Chunk(ChunkOutcome { request, requested_at, result }));
}

/// Decompresses, verifies, waits for the throttle, and writes.
async fn store_chunk(
    service: &Rc<RecoveryService>,
    source: &SourceSession,
    incoming: &Incoming,
    (request, compress): (ChunkRequest, u8),
    wire: WireChunk,
    at: Time,
) -> Result<(TargetPhases, bool), ChunkError> {
    let env = &service.core.env;
    let mut target = TargetPhases::default();
    let chunk = match wire.plain_len {
        None => wire.chunk,
        Some(len) if len == u64::from(request.len) => {
            decompress(env, wire.chunk, len, compress).await.map_err(|_| ChunkError::Damaged)?
        }
        Some(_) => return Err(ChunkError::Damaged),
    };
    if checksum(env, &chunk).await != wire.crc32c || chunk.len() != u64::from(request.len) {
        return Err(ChunkError::Damaged);
    }
    target.cpu = env.now() - at;
    target.throttle = service.core.throttle(source.throttle(), chunk.len()).await;
    let writing = env.now();
    let written = incoming.write_chunk(request.file as usize, request.offset, chunk).await;
    written.map_err(ChunkError::Store)?;
    target.disk_write = env.now() - writing;
    Ok((target, wire.pressure))
}

fn always_damaged() -> Failure {
    let reason = format!("{DAMAGED_IN_A_ROW} chunks came damaged, one after another");
    Failure::new(503, "recovery_failed_exception", reason)
}

/// The limit that a transfer of operations is charged to while it waits for an answer.
pub(crate) const WAITS_FOR_ANSWER: Limit = Limit::Latency;

/// A failure in the words of the target.
pub(crate) fn as_failure(error: &TransferError) -> Failure {
    match error {
        TransferError::Call(CallError::Failed(failure)) => failure.clone(),
        TransferError::Store(error) if error.is_disk_full() => {
            Failure::new(429, DISK_FULL, error.to_string())
        }
        other => Failure::new(500, "recovery_failed_exception", other.to_string()),
    }
}
