//! Statistics as servers name them.
//!
//! Names and units are those of `kv_engine`: `engines/ep/src/connhandler.cc`, `dcp/producer.cc`, `dcp/consumer.cc`,
//! `dcp/backfill-manager.cc`, `dcp/active_stream.cc`. Of what is said more than once the last counts; what is not
//! known here is passed over.

use std::collections::BTreeMap;

use record::bucket::{BucketNode, DcpConnection};

use crate::codec::parse_time_text;

/// Before the name of a connection.
const CONNECTION: &str = "eq_dcpq:";
/// Older servers write it before each reason of a pause.
const REASON: &str = "PausedReason::";
/// The longest name of a connection that is kept: servers allow 200 bytes.
const NAME_BYTES_MAX: usize = 256;
/// The most connections of one node that are kept.
const CONNECTIONS_MAX: usize = 10_000;

/// What a node says, statistic by statistic.
#[derive(Debug, Default)]
pub struct Statistics {
    node: BucketNode,
    connections: BTreeMap<String, Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    known: DcpConnection,
    /// The pause that lasts, in milliseconds.
    paused_now_ms: u64,
}

impl Statistics {
    /// A statistic of the bucket or of its connections.
    pub fn take(&mut self, name: &str, value: &str) {
        let number = value.parse().ok();
        match name {
            "mem_used" => self.node.mem_used_bytes = number,
            "ep_max_size" => self.node.quota_bytes = number,
            "ep_cursors_dropped" => self.node.cursors_dropped = number,
            // Both say the same; not every server has both.
            "ep_diskqueue_items" | "ep_queue_size" => self.node.disk_queue_items = number,
            _ => self.of_connection(&name.replace(REASON, ""), value),
        }
    }

    fn of_connection(&mut self, name: &str, value: &str) {
        // The name of a connection may hold colons, that of a statistic does not.
        let rest = name.strip_prefix(CONNECTION).and_then(|rest| rest.rsplit_once(':'));
        let Some((name, statistic)) = rest.filter(|(name, _)| name.len() <= NAME_BYTES_MAX) else {
            return;
        };
        if !self.connections.contains_key(name) {
            if self.connections.len() == CONNECTIONS_MAX {
                return;
            }
            let known = DcpConnection { name: name.to_owned(), ..DcpConnection::default() };
            self.connections.insert(name.to_owned(), Connection { known, paused_now_ms: 0 });
        }
        if let Some(connection) = self.connections.get_mut(name) {
            connection.take(statistic, value);
        }
    }

    /// All that was said, of the node at `node`, which had answered at this time.
    pub fn of_node(self, node: &str, answered_ms: f64) -> BucketNode {
        let connections = self.connections.into_values().map(Connection::whole).collect();
        BucketNode { node: node.to_owned(), answered_ms, connections, ..self.node }
    }
}

impl Connection {
    fn take(&mut self, statistic: &str, value: &str) {
        let (number, known) = (value.parse::<u64>().ok(), &mut self.known);
        let flag = match value {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        let ms = || u64::try_from(parse_time_text(value)?.as_millis()).ok();
        match statistic {
            "type" => known.kind = value.to_owned(),
            "items_sent" => known.items_sent = number,
            "items_remaining" => known.items_remaining = number,
            "total_bytes_sent" => known.bytes_sent = number,
            "total_acked_bytes" => known.acked_bytes = number,
            "unacked_bytes" => known.unacked_bytes = number,
            "max_buffer_bytes" => known.max_buffer_bytes = number.filter(|bytes| *bytes > 0),
            "flow_control" => known.flow_control = Some(value == "enabled"),
            "paused" => known.paused = flag,
            "paused_current_reason" => known.paused_for = Some(value.replace(REASON, "")),
            "paused_current_duration" => self.paused_now_ms = ms().unwrap_or(0),
            "total_backoffs" => known.backoffs = number,
            "processor_task_state" => {
                known.has_more_to_process = Some(value == "MORE_TO_PROCESS");
            }
            "backfill_buffer_full" => known.backfill_full = flag,
            "backfill_num_active"
            | "backfill_num_pending"
            | "backfill_num_snoozing"
            | "backfill_num_initializing" => {
                let sum = known.backfills.unwrap_or(0).saturating_add(number.unwrap_or(0));
                known.backfills = Some(sum);
            }
            _ => {
                let reason = statistic
                    .strip_prefix("paused_previous_")
                    .and_then(|rest| rest.strip_suffix("_duration"));
                if let (Some(reason), Some(ms)) = (reason, ms()) {
                    known.paused_ms.insert(reason.to_owned(), ms);
                } else if is_state(statistic) {
                    known.streams += 1;
                    known.backfilling += u64::from(value == "backfilling");
                }
            }
        }
    }

    fn whole(mut self) -> DcpConnection {
        if let Some(reason) = &self.known.paused_for {
            let all_ms = self.known.paused_ms.entry(reason.clone()).or_default();
            *all_ms = all_ms.saturating_add(self.paused_now_ms);
        }
        self.known
    }
}

/// `stream_512_state`.
fn is_state(statistic: &str) -> bool {
    let vbucket = statistic.strip_prefix("stream_").and_then(|rest| rest.strip_suffix("_state"));
    vbucket.is_some_and(|vbucket| vbucket.parse::<u16>().is_ok())
}
