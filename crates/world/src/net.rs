//! Connections of typed messages, in either world.

use std::future::Future;
use std::io;

use crate::{Message, machine, simulation};

/// Both ends of one side of a connection.
pub struct Connection<M> {
    /// To the peer.
    pub sender: Sender<M>,
    /// From the peer.
    pub receiver: Receiver<M>,
}

impl<M> Connection<M> {
    pub(crate) fn real((sender, receiver): (machine::Sender<M>, machine::Receiver)) -> Self {
        Connection { sender: Sender::Real(sender), receiver: Receiver::Real(receiver) }
    }

    pub(crate) fn simulated(
        (sender, receiver): (simulation::Sender<M>, simulation::Receiver<M>),
    ) -> Self {
        Connection { sender: Sender::Virtual(sender), receiver: Receiver::Virtual(receiver) }
    }
}

/// Sends messages in order. Clones share the connection; it closes when the last is dropped.
pub enum Sender<M> {
    #[doc(hidden)]
    Real(machine::Sender<M>),
    #[doc(hidden)]
    Virtual(simulation::Sender<M>),
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        match self {
            Sender::Real(sender) => Sender::Real(sender.clone()),
            Sender::Virtual(sender) => Sender::Virtual(sender.clone()),
        }
    }
}

impl<M: Message> Sender<M> {
    /// Hands a message to the connection; waits while its buffer is full. Dropping the future before it is
    /// ready may or may not send the message, never a part of it. A message that is too large for a frame of the real
    /// world is [`io::ErrorKind::InvalidInput`]: nothing of it was sent, and the connection goes on.
    ///
    /// To a peer that is gone it fails at once in the virtual world. In the real one the system may take a first
    /// message, which is lost, and say so at the next: whoever needs to know waits for an answer.
    // Messages are large, and each `async fn` that one is handed to holds it twice: written as one, this took 624 bytes
    // of every task that sends.
    #[expect(clippy::manual_async_fn, reason = "an async fn holds its arguments twice")]
    pub fn send(&self, message: M) -> impl Future<Output = io::Result<()>> {
        async move {
            match self {
                Sender::Real(sender) => Box::pin(sender.send(message)).await,
                Sender::Virtual(sender) => {
                    sender.room().await?;
                    sender.send(message)
                }
            }
        }
    }
}

/// Receives messages in order.
pub enum Receiver<M> {
    #[doc(hidden)]
    Real(machine::Receiver),
    #[doc(hidden)]
    Virtual(simulation::Receiver<M>),
}

impl<M: Message> Receiver<M> {
    /// The next message; none once the peer has closed. An error ends the connection.
    /// Not to be dropped half-way in the real world: read in one loop.
    pub async fn recv(&mut self) -> io::Result<Option<M>> {
        match self {
            Receiver::Real(receiver) => receiver.recv().await,
            Receiver::Virtual(receiver) => receiver.recv().await,
        }
    }
}

/// Accepts connections.
pub enum Listener<M> {
    #[doc(hidden)]
    Real(machine::Listener),
    #[doc(hidden)]
    Virtual(simulation::Listener<M>),
}

impl<M: Message> Listener<M> {
    /// The address to connect to.
    pub fn address(&self) -> &str {
        match self {
            Listener::Real(listener) => listener.address(),
            Listener::Virtual(listener) => listener.address(),
        }
    }

    /// The next connection. Fails in the real world alone, where the system refuses one: its handles may have run out.
    pub async fn accept(&mut self) -> io::Result<Connection<M>> {
        match self {
            Listener::Real(listener) => listener.accept().await.map(Connection::real),
            Listener::Virtual(listener) => listener.accept().await.map(Connection::simulated),
        }
    }
}
