//! What a drain measured.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What one vbucket sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VbucketReport {
    /// Mutations, deletions and expirations.
    pub items: u64,
    /// Bytes of all messages, headers too.
    pub bytes: u64,
    /// The last sequence number.
    pub seqno: u64,
    /// Why its stream ended, if not because all was sent.
    pub end: Option<String>,
}

/// What one connection received.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionReport {
    /// Its name at the producer.
    pub name: String,
    /// The producer, `host:port`.
    pub node: String,
    /// How long it took, or has taken so far.
    pub seconds: f64,
    /// By vbucket.
    pub vbuckets: BTreeMap<u16, VbucketReport>,
}

/// What all connections received.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainReport {
    /// How long it has taken so far.
    pub seconds: f64,
    /// By connection.
    pub connections: Vec<ConnectionReport>,
    /// The vbuckets that were asked for and are active nowhere: they were left out.
    pub not_active: Vec<u16>,
}

impl ConnectionReport {
    /// Items received.
    pub fn items(&self) -> u64 {
        self.vbuckets.values().map(|vb| vb.items).sum()
    }

    /// Bytes received.
    pub fn bytes(&self) -> u64 {
        self.vbuckets.values().map(|vb| vb.bytes).sum()
    }
}

impl DrainReport {
    /// Items received.
    pub fn items(&self) -> u64 {
        self.connections.iter().map(ConnectionReport::items).sum()
    }

    /// Bytes received.
    pub fn bytes(&self) -> u64 {
        self.connections.iter().map(ConnectionReport::bytes).sum()
    }

    /// Vbuckets whose stream ended before all was sent, and why.
    pub fn broken(&self) -> impl Iterator<Item = (u16, &str)> {
        let all = self.connections.iter().flat_map(|connection| &connection.vbuckets);
        all.filter_map(|(vb, report)| report.end.as_deref().map(|end| (*vb, end)))
    }

    /// The same as one JSON object; `interrupted` says that it was stopped before its end.
    pub fn json(&self, interrupted: bool) -> Value {
        let sum = |bytes: u64, items: u64, seconds: f64| {
            let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
            json!({
                "seconds": seconds, "bytes": bytes, "items": items,
                "mb_per_s": per_s(bytes) / 1e6, "items_per_s": per_s(items),
            })
        };
        let connections = self.connections.iter().map(|connection| {
            let mut shown = sum(connection.bytes(), connection.items(), connection.seconds);
            shown["name"] = json!(connection.name);
            shown["node"] = json!(connection.node);
            let vbuckets = connection.vbuckets.iter().map(|(vb, report)| {
                let mut shown = sum(report.bytes, report.items, connection.seconds);
                shown["vbucket"] = json!(vb);
                shown["seqno"] = json!(report.seqno);
                shown["ended"] = json!(report.end.as_deref().unwrap_or("ok"));
                shown
            });
            shown["vbuckets"] = vbuckets.collect();
            shown
        });
        let mut shown = sum(self.bytes(), self.items(), self.seconds);
        shown["connections"] = connections.collect();
        shown["not_active"] = json!(self.not_active);
        shown["interrupted"] = json!(interrupted);
        shown
    }
}
