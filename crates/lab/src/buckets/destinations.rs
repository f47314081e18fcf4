//! The server that documents go to: one thread or several, each with vbuckets and a log of its own, so that the order
//! within a vbucket stays.

use world::Env;

use super::held::HeldByVbucket;
use super::server::{RunningServer, ServerSpec, ServerUse, ThreadTime};
use crate::error::Result;

/// The threads of the destination; none where documents are only read.
pub(crate) struct Destinations(Vec<RunningServer>);

impl Destinations {
    /// No destination: documents are only read.
    pub fn none() -> Destinations {
        Destinations(Vec::new())
    }

    /// Starts so many threads, each as `spec` says.
    pub async fn start(env: &Env, spec: &ServerSpec, threads: u16) -> Result<Destinations> {
        let mut all = Vec::new();
        for thread in 0..threads {
            let (name, dir) = match thread {
                0 => (spec.name.clone(), spec.dir.clone()),
                _ => (
                    format!("{}-{thread}", spec.name),
                    spec.dir.with_extension(format!("{thread}")),
                ),
            };
            let spec = ServerSpec { name, dir, ..spec.clone() };
            all.push(RunningServer::start(env, spec).await?);
        }
        Ok(Destinations(all))
    }

    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Each thread with its part of so many vbuckets.
    pub(crate) fn with_vbuckets(
        &self,
        vbuckets: u16,
    ) -> impl Iterator<Item = (&RunningServer, Vec<u16>)> {
        let of = move |thread| (0..vbuckets).skip(thread).step_by(self.0.len()).collect();
        self.0.iter().enumerate().map(move |(thread, server)| (server, of(thread)))
    }

    /// What all say of themselves, together.
    pub async fn seen(&self) -> Result<ServerUse> {
        let mut all = ServerUse::default();
        for server in &self.0 {
            let one = server.seen().await?;
            all.thread.busy += one.thread.busy;
            all.thread.flow_control += one.thread.flow_control;
            all.thread.disk += one.thread.disk;
            all.items += one.items;
            all.rollbacks += one.rollbacks;
            all.used_bytes += one.used_bytes;
            all.consumers = all.consumers.and(&one.consumers);
        }
        Ok(all)
    }

    /// What all say that they hold of each vbucket, together.
    pub async fn held(&self) -> Result<HeldByVbucket> {
        let mut all = HeldByVbucket::new();
        for server in &self.0 {
            for (vb, held) in server.held().await? {
                let sum = all.entry(vb).or_default();
                sum.documents += held.documents;
                sum.high_seqno = sum.high_seqno.max(held.high_seqno);
            }
        }
        Ok(all)
    }

    /// What each did so far, by what it is called.
    pub async fn threads(&self, name: &str) -> Result<Vec<(String, ThreadTime)>> {
        let mut all = Vec::new();
        for (thread, server) in self.0.iter().enumerate() {
            let name = match self.0.len() {
                1 => name.to_owned(),
                _ => format!("{name} {}", thread + 1),
            };
            all.push((name, server.seen().await?.thread));
        }
        Ok(all)
    }

    /// Waits until all is on disk.
    pub async fn persisted(&self) -> Result<()> {
        for server in &self.0 {
            server.persisted().await?;
        }
        Ok(())
    }

    /// How many of the first `items` documents are here as they should be.
    pub async fn verify(&self, items: u64) -> Result<u64> {
        let mut right = 0;
        for server in &self.0 {
            right += server.verify(items).await?;
        }
        Ok(right)
    }
}
