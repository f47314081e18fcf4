//! The protocol's decisions as pure state machines: an event in, a decision out.

mod failover;
mod flow_control;
mod liveness;
mod memory;
mod pauses;
mod snapshot;
mod takeover;

pub use failover::{FailoverTable, StartDecision, StreamStart};
pub use flow_control::{AckPolicy, OverAcknowledged, RateCap, Window, consumer_window_bytes};
pub use liveness::{ConsumerLiveness, Liveness, ProducerLiveness};
pub use memory::{
    ClientWrite, MemorySettings, ReplicationPressure, memory_of_2020, memory_of_today,
};
pub(crate) use memory::{MEM_HIGH_WAT, MEM_LOW_WAT};
pub use pauses::{PausedReason, Pauses};
pub use snapshot::{OutOfOrder, SnapshotCursor};
pub use takeover::{Takeover, TakeoverStep};
