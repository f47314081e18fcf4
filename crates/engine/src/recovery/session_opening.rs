//! The opening of a session, and the chunks that are asked for with it.
//!
//! The target asks every node that may have the primary at once, and only the primary's node opens a session. This
//! costs one round trip; asking first where the primary is would cost two. In the same round trip the target asks for
//! the first chunks by number (`policy::transfer::prefetch`), so that the link is not idle until the files are known.

use super::service::RecoveryService;
use crate::transport::unexpected;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use store::Commit;
use world::{Task, Time};

use super::source_session::{SourceSession, TransferError};
use crate::remote::{self, claims};
use crate::transport::{CallError, Class, Request, Response, SessionKind, SessionOpened};
use policy::transfer::chunk::ChunkRequest;
use policy::transfer::chunk_scheduler::SchedulerConfig;
use policy::transfer::prefetch::{Prefetch, prefetched_chunk};

/// Which shard, and for whom.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) index: String,
    pub(crate) shard: u32,
    pub(crate) kind: SessionKind,
}

/// An answer that may not be there yet, and when it came.
pub(crate) type Answer = (Time, Result<Response, CallError>);

/// A chunk that was asked for.
pub(crate) struct Asked {
    pub(crate) at: Time,
    /// `compress` of the request.
    pub(crate) compress: u8,
    pub(crate) answer: Task<Answer>,
}

/// Chunks that were asked for before the files were known.
#[derive(Default)]
pub(crate) struct PrefetchedChunks {
    began: Option<Time>,
    chunk_bytes: u32,
    /// By number and address.
    asked: BTreeMap<(u64, String), Asked>,
}

impl PrefetchedChunks {
    /// When the first was asked for.
    pub(crate) fn began(&self) -> Option<Time> {
        self.began
    }

    /// The chunks that were asked of `address`, by file and offset. The others are dropped: those asked of other nodes,
    /// and those past the end of the files.
    pub(crate) fn by_chunk(self, address: &str, commit: &Commit) -> BTreeMap<ChunkRequest, Asked> {
        let chunk = |number| {
            let lens = commit.files.iter().map(|file| file.len);
            prefetched_chunk(lens, self.chunk_bytes, number)
        };
        let of_address = self.asked.into_iter().filter(|((_, asked), _)| asked == address);
        of_address.filter_map(|((number, _), asked)| Some((chunk(number)?, asked))).collect()
    }
}

/// Opens a session on whichever of `sources` has the primary; with a scheduler's configuration, the first chunks are
/// asked for at the same time.
pub(crate) async fn open(
    service: &Rc<RecoveryService>,
    sources: Vec<SourceSession>,
    wanted: Wanted,
    prefetch: Option<SchedulerConfig>,
) -> Result<(SourceSession, SessionOpened, PrefetchedChunks), TransferError> {
    let key = service.core.env.random_u64();
    let mut opened = pin!(open_any(service, sources.clone(), wanted.clone(), key));
    let mut prefetched = PrefetchedChunks::default();
    let mut policy = prefetch.map(|config| Prefetch::new(config, service.core.env.now()));
    if let Some(policy) = &mut policy {
        // Of the farthest source: any of them may have the primary.
        let round_trips = sources.iter().map(|source| source.round_trip.get());
        policy.round_trip(service.core.env.now(), round_trips.max().unwrap_or_default());
        (prefetched.began, prefetched.chunk_bytes) =
            (Some(service.core.env.now()), policy.chunk_bytes());
    }
    let connections = service.core.settings().transport_recovery_connections().max(1);
    loop {
        while let Some(number) =
            policy.as_mut().and_then(|policy| policy.next(service.core.env.now()))
        {
            let class = Class::Recovery((number % u64::from(connections)) as u32);
            for source in &sources {
                let asked = prefetch_chunk(
                    service,
                    source,
                    &wanted,
                    class,
                    (key, number, prefetched.chunk_bytes),
                );
                prefetched.asked.insert((number, source.address.clone()), asked);
            }
        }
        let wake_at = policy.as_ref().and_then(Prefetch::wake_at);
        tokio::select! {
            biased;
            opened = &mut opened => {
                let (source, session) = opened?;
                return Ok((source, session, prefetched));
            }
            () = service.core.env.sleep_until_due(wake_at) => {}
        }
    }
}

fn prefetch_chunk(
    service: &Rc<RecoveryService>,
    source: &SourceSession,
    wanted: &Wanted,
    class: Class,
    (key, number, chunk_bytes): (u64, u64, u32),
) -> Asked {
    let compress = service.core.compress(source.remote.as_deref());
    let (index, shard) = (wanted.index.clone(), wanted.shard);
    let request = Request::ReadOpening { index, shard, key, number, chunk_bytes, compress };
    let (service2, source) = (service.clone(), source.clone());
    let answer = service.core.env.spawn("asks for a chunk ahead", async move {
        let answer = source.ask(&service2, class, request).await;
        (service2.core.env.now(), answer)
    });
    Asked { at: service.core.env.now(), compress, answer }
}

async fn open_any(
    service: &Rc<RecoveryService>,
    sources: Vec<SourceSession>,
    wanted: Wanted,
    key: u64,
) -> Result<(SourceSession, SessionOpened), CallError> {
    let calls = sources
        .into_iter()
        .map(|source| {
            let (service, asked) = (service.clone(), source.clone());
            let Wanted { index, shard, kind } = wanted.clone();
            let call = async move {
                let request = Request::OpenSession { index, shard, kind, key };
                asked.ask(&service, Class::Control, request).await
            };
            (source, call)
        })
        .collect();
    let opened =
        remote::first_of(&service.core, calls, |source: &SourceSession| source.address.as_str());
    match opened.await? {
        (source, Response::Session(opened)) => {
            if source.remote.is_some() {
                claims::session(&opened).map_err(CallError::Failed)?;
            }
            Ok((SourceSession { session: opened.session, ..source }, *opened))
        }
        _ => Err(CallError::Failed(unexpected())),
    }
}
