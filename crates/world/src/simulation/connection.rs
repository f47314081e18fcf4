//! Connections of the virtual world. Messages are handed over as values; only their sizes pass through the simulated
//! network.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use super::handle::Host;
use super::host::HostState;
use super::network::{Ends, Flow, LinkState, Pipe};
use super::world::{Listening, World};
use crate::Message;
use crate::faults::LinkFaults;

/// One side of a connection.
type Side<M> = (Sender<M>, Receiver<M>);

/// The messages of a flow that nobody has received yet, in order.
struct Channel<M> {
    world: Weak<World>,
    flow: Rc<Flow>,
    messages: RefCell<VecDeque<M>>,
    /// The faults of the link, where they damage this direction.
    damage: Option<LinkFaults>,
}

/// The sending end; the flow ends when the last is dropped.
pub struct Sender<M> {
    end: Rc<SendEnd<M>>,
}

struct SendEnd<M> {
    channel: Rc<Channel<M>>,
}

impl<M> Drop for SendEnd<M> {
    fn drop(&mut self) {
        if let Some(world) = self.channel.world.upgrade() {
            self.channel.flow.push(&world.events, 1, true);
        }
    }
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        Sender { end: self.end.clone() }
    }
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the peer is gone")
}

impl<M: Message> Sender<M> {
    /// Waits until there is room for a message.
    pub(crate) async fn room(&self) -> io::Result<()> {
        let flow = &self.end.channel.flow;
        let open = || match flow.is_broken() {
            true => Some(Err(reset())),
            false => flow.has_room().then_some(Ok(())),
        };
        flow.writable.until(open).await
    }

    /// Sends a message, for which there is room.
    pub(crate) fn send(&self, mut message: M) -> io::Result<()> {
        let channel = &self.end.channel;
        let flow = &channel.flow;
        let bytes = message.wire_bytes();
        if bytes > 16 << 10 && channel.damage.as_ref().is_some_and(LinkFaults::take_damage) {
            message.damage();
        }
        let world = channel.world.upgrade().ok_or_else(reset)?;
        flow.from.counters.sent(bytes);
        channel.messages.borrow_mut().push_back(message);
        channel.flow.push(&world.events, bytes, false);
        Ok(())
    }
}

/// The receiving end; the flow breaks when it is dropped.
pub struct Receiver<M> {
    channel: Rc<Channel<M>>,
}

impl<M> Drop for Receiver<M> {
    fn drop(&mut self) {
        let now = self.channel.world.upgrade().map(|world| world.events.now());
        self.channel.flow.break_off(now.unwrap_or_default());
    }
}

impl<M: Message> Receiver<M> {
    pub(crate) async fn recv(&mut self) -> io::Result<Option<M>> {
        let channel = &self.channel;
        let flow = &channel.flow;
        let next = || {
            let Some(world) = channel.world.upgrade() else { return Some(Err(reset())) };
            if flow.take(&world.events) {
                return Some(Ok(true));
            }
            match flow.is_broken() {
                true => Some(Err(reset())),
                false => flow.has_ended().then_some(Ok(false)),
            }
        };
        if !flow.readable.until(next).await? {
            return Ok(None);
        }
        let message = channel.messages.borrow_mut().pop_front();
        let message = message.expect("a message for each that arrived");
        flow.to.counters.received(message.wire_bytes());
        Ok(Some(message))
    }
}

fn channel<M: Message>(world: &Rc<World>, flow: Rc<Flow>, damage: Option<LinkFaults>) -> Side<M> {
    world.keep(&flow);
    let channel = Rc::new(Channel {
        world: Rc::downgrade(world),
        flow,
        messages: RefCell::default(),
        damage,
    });
    let end = Rc::new(SendEnd { channel: channel.clone() });
    (Sender { end }, Receiver { channel })
}

/// Accepts connections at an address.
pub struct Listener<M> {
    world: Weak<World>,
    address: String,
    listening: Rc<Listening>,
    message: std::marker::PhantomData<M>,
}

impl<M> Drop for Listener<M> {
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade() {
            let mut all = world.listening.borrow_mut();
            let mine = all.get(&self.address).is_some_and(|l| Rc::ptr_eq(l, &self.listening));
            let gone = if mine { all.remove(&self.address) } else { None };
            drop(all);
            drop(gone);
        }
    }
}

impl<M: Message> Listener<M> {
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) async fn accept(&mut self) -> io::Result<Side<M>> {
        loop {
            let next = || self.listening.waiting.borrow_mut().pop_front();
            let next = self.listening.came.until(next).await;
            // A connection of another message type is dropped, as one that sends bad frames would be.
            if let Ok(side) = next.downcast::<Side<M>>() {
                return Ok(*side);
            }
        }
    }
}

impl Host {
    pub(crate) fn listen<M: Message>(&self, address: &str) -> io::Result<Listener<M>> {
        let world = self.world();
        let (host, port) = split(address)?;
        if host != self.name() {
            let text = format!("listen on {address}: this host is {}", self.name());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, text));
        }
        let port = if port == 0 { self.state.free_port() } else { port };
        let address = format!("{host}:{port}");
        let mut all = world.listening.borrow_mut();
        if all.contains_key(&address) {
            let text = format!("listen on {address}: it is taken");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        let listening = Rc::new(Listening::default());
        all.insert(address.clone(), listening.clone());
        let world = self.world.clone();
        Ok(Listener { world, address, listening, message: std::marker::PhantomData })
    }

    /// Connects to `host:port`, or to an address through a link, as [`crate::Link::route`] writes it.
    pub(crate) async fn connect<M: Message>(&self, address: &str) -> io::Result<Side<M>> {
        let world = self.world();
        let (link, plain) = world.through(address);
        let far = world.host(split(plain)?.0);
        let (out, back) = paths(&self.state, &far, link.as_deref());
        let round_trip: Duration = out.iter().chain(&back).map(|pipe| pipe.delay()).sum();
        if let Some(link) = &link {
            link.healed.until(|| (!link.faults.is_cut()).then_some(())).await;
        }
        self.sleep_until(self.now() + round_trip).await;
        let listening = world.listening.borrow().get(plain).cloned().ok_or_else(|| {
            let text = format!("connect to {address}: nobody listens there");
            io::Error::new(io::ErrorKind::ConnectionRefused, text)
        })?;
        let damage = link.as_ref().map(|link| link.faults.clone());
        let near = &self.state;
        let there = Ends { from: self.name().into(), to: plain.into() };
        let here = Ends { from: plain.into(), to: self.name().into() };
        let out = Flow::new(near, &far, there, out, link.clone());
        let back = Flow::new(&far, near, here, back, link);
        let (sender, far_receiver) = channel::<M>(&world, out, None);
        let (far_sender, receiver) = channel::<M>(&world, back, damage);
        let far_side: Side<M> = (far_sender, far_receiver);
        listening.waiting.borrow_mut().push_back(Box::new(far_side));
        listening.came.wake();
        Ok((sender, receiver))
    }
}

/// The pipes of both directions.
fn paths(
    near: &HostState,
    far: &HostState,
    link: Option<&LinkState>,
) -> (Vec<Rc<Pipe>>, Vec<Rc<Pipe>>) {
    if near.name == far.name && link.is_none() {
        return (vec![near.loopback.clone()], vec![near.loopback.clone()]);
    }
    let way = |first: &Rc<Pipe>, between: Option<&Rc<Pipe>>, last: &Rc<Pipe>| {
        [Some(first), between, Some(last)].into_iter().flatten().cloned().collect()
    };
    let (out, back) = link.map(|link| (&link.out, &link.back)).unzip();
    (way(&near.card_out, out, &far.card_in), way(&far.card_out, back, &near.card_in))
}

fn split(address: &str) -> io::Result<(&str, u32)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.ok_or_else(|| {
        let text = format!("\"{address}\" is no address; write host:port");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}
