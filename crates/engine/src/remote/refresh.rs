//! The tasks that connect to remote clusters, and ask them again and again what has changed.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use super::asking::ask_any;
use super::patience::{REMOTE_TIMEOUT, SILENT_PATIENCE};
use super::service::{Known, RemoteClusterService};
use super::sniffed::Sniffed;
use super::sockets::reopen_sockets;
use crate::transport::{Class, Request, Response};

/// How often a remote cluster is asked what has changed.
const REFRESH: Duration = Duration::from_secs(30);
/// The pause before it is asked again because a node of it did not answer.
const SNIFF_PACE: Duration = Duration::from_secs(1);

impl RemoteClusterService {
    /// Begins with the remote clusters of the node's own configuration; those of the state are begun with as it comes.
    pub(crate) fn begin(self: &Rc<Self>) {
        if self.keeping.borrow().is_none() && !self.core.settings().remotes().is_empty() {
            self.restart();
        }
    }

    /// Connects to the remote clusters of the settings and keeps asking them. What was known before is forgotten, but
    /// for the nodes of those whose seeds are the same: a seed may be gone by now.
    pub(crate) fn restart(self: &Rc<Self>) {
        self.by_alias.borrow_mut().clear();
        let mut before = self.sniffed.take();
        let settings = self.core.settings();
        let sniffed = settings.remotes().iter().map(|(alias, remote)| {
            let known = before.remove(alias).filter(|known| known.is_of(&remote.seeds));
            (alias.clone(), known.unwrap_or_else(|| Sniffed::of(&remote.seeds)))
        });
        let sniffed = sniffed.collect();
        self.sniffed.replace(sniffed);
        let missed = settings.remotes().keys().map(|alias| (alias.clone(), Rc::default()));
        self.missed.replace(missed.collect());
        let keeping = keep_in_touch(self.clone());
        let task = self.core.env.spawn("keeps in touch with remote clusters", keeping);
        *self.keeping.borrow_mut() = Some(task);
    }
}

async fn keep_in_touch(service: Rc<RemoteClusterService>) {
    let (env, aliases) = (&service.core.env, service.missed.borrow().clone());
    // Each by itself: a cluster that stands still holds up no other.
    let refreshing = aliases.into_iter().map(|(alias, missed)| {
        let refreshing = keep_fresh(service.clone(), alias, missed);
        env.spawn("keeps in touch with a remote cluster", refreshing)
    });
    let refreshing: Vec<_> = refreshing.collect();
    let connecting = env.spawn("connects to remote clusters", connect(service.clone()));
    for task in refreshing {
        let _ = task.await;
    }
    drop(connecting);
}

async fn keep_fresh(service: Rc<RemoteClusterService>, alias: String, missed: Rc<Notify>) {
    loop {
        refresh(&service, &alias).await;
        tokio::select! {
            biased;
            () = missed.notified() => service.core.env.sleep(SNIFF_PACE).await,
            () = service.core.env.sleep(REFRESH) => {}
        }
    }
}

async fn refresh(service: &Rc<RemoteClusterService>, alias: &str) {
    // The answer below may name a node that has come back: whether its seed leads to it must be known before.
    let silent = service.sniffed.borrow().get(alias).map(Sniffed::silent).unwrap_or_default();
    for seed in silent {
        let answer =
            service.core.call(&seed, Class::Control, Request::Hello, SILENT_PATIENCE).await;
        service.note_seed(alias, &seed, &answer);
    }
    let known_version = service.version(alias);
    let request = Request::RemoteIndices { known_version, wait: Duration::ZERO };
    // Without an answer the old description stays: a follow confirms it with the leader.
    if let Ok(Response::RemoteIndices { version, indices, .. }) =
        ask_any(service, alias, request, Duration::ZERO).await
    {
        let known = Known { version, indices };
        service.by_alias.borrow_mut().insert(alias.to_owned(), known);
    }
    reopen_sockets(service, alias).await;
}

/// Connects to every seed of every remote cluster, so that the first recovery need not wait for it, and asks who is
/// there.
async fn connect(service: Rc<RemoteClusterService>) {
    let settings = service.core.settings();
    let mut calls = Vec::new();
    for (alias, remote) in settings.remotes() {
        let classes: Vec<Class> = match &remote.proxy {
            Some(proxy) => (0..proxy.sockets).map(Class::Proxied).collect(),
            None => {
                let recovery = (0..settings.transport_recovery_connections()).map(Class::Recovery);
                std::iter::once(Class::Control).chain(recovery).collect()
            }
        };
        for seed in &remote.seeds {
            calls.extend(classes.iter().map(|class| (alias.clone(), seed.clone(), *class)));
        }
    }
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(alias, seed, class)| {
            let service2 = service.clone();
            service.core.env.spawn("connects to a seed", async move {
                let asks_who = matches!(class, Class::Control | Class::Proxied(0));
                let question = if asks_who { Request::Hello } else { Request::Ping };
                // The first call connects; the second finds a warm connection.
                for _ in 0..2 {
                    let asked = service2.core.env.now();
                    let answer =
                        service2.core.call(&seed, class, question.clone(), REMOTE_TIMEOUT).await;
                    if asks_who {
                        service2.note_seed(&alias, &seed, &answer);
                    }
                    if answer.is_ok() {
                        service2.core.note_round_trip(&seed, service2.core.env.now() - asked);
                    }
                }
            })
        })
        .collect();
    for call in calls {
        let _ = call.await;
    }
}
