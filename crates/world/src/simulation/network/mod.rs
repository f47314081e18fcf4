//! The virtual network, from the pipes up to the flows of connections.
//!
//! # The way of a lost segment
//!
//! To change loss, open the file of the step:
//!
//! | step | file |
//! | --- | --- |
//! | 1. The share of lost segments and the length of a link's queue are parameters. | `link.loss`: `model/tcp.rs`; `link.queue_bytes`: `model/link.rs`; their rows: `model/table.rs` |
//! | 2. A pipe draws what it loses of a piece: what overflows its queue, then segments at random. | `pipe.rs`: `Pipe::pass` |
//! | 3. The lost bytes are cut off the end of the piece and remembered as a gap at the receiver. When the sender can know of them is decided: after the rest of a round trip (duplicate acknowledgements), or after the retransmission timeout if nothing else was in flight. | `flow/piece.rs`: `Flow::lose` |
//! | 4. The sender learns of it, and its congestion window shrinks. | `flow/sending.rs`: `Flow::process_acks`; `tcp_window.rs` of this crate: `on_loss`, `on_timeout` |
//! | 5. The range is sent again, before anything new, as a piece with `retransmit`. | `flow/sending.rs`: `Flow::next_piece` |
//! | 6. The piece fills the gap; messages that waited behind it are delivered. | `flow/receiving.rs`: `Flow::reach` |
//!
//! # Files, from the ground up
//!
//! | file | holds |
//! | --- | --- |
//! | `pipe.rs` | a queue with a rate, a delay and loss: a direction of a link, of a network card, of the loopback |
//! | `link.rs` | the two pipes of a link |
//! | `flow/` | one direction of a connection, from bytes handed over to messages taken in |

mod flow;
mod link;
mod pipe;

pub(super) use flow::{Ends, Events, Flow, Piece};
pub(super) use link::LinkState;
pub(super) use pipe::Pipe;
