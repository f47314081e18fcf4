//! Bodies of requests, within a budget that all clients of a node share.

use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;

use engine::transport::Failure;

/// `http.max_content_length`.
const BODY_BYTES_MAX: usize = 100 << 20;
/// A buffer grows by no more than this ahead of the bytes that really came.
const TRUST_BYTES: usize = 8 << 20;
/// What bodies may hold all together, those that are still arriving, too. The field has a breaker for it,
/// `network.breaker.inflight_requests.limit`.
const HELD_BYTES_MAX: usize = 512 << 20;

/// The budget of a node, of which every connection has a clone.
#[derive(Clone)]
pub(super) struct BodyBudget {
    held_bytes: Rc<Cell<usize>>,
    max_bytes: usize,
}

impl Default for BodyBudget {
    fn default() -> Self {
        BodyBudget { held_bytes: Rc::default(), max_bytes: HELD_BYTES_MAX }
    }
}

/// A part of the budget. Dropping it gives it back.
pub(super) struct HeldBytes {
    budget: BodyBudget,
    bytes: usize,
}

impl HeldBytes {
    fn grow(&mut self, more: usize) -> Result<(), Failure> {
        let BodyBudget { held_bytes, max_bytes } = &self.budget;
        let would = held_bytes.get() + more;
        if would > *max_bytes {
            let reason = format!(
                "[in_flight_requests] Data too large: the bodies of all requests would hold [{would}] bytes, which is \
                 larger than the limit of [{max_bytes}]; send this one again when others were answered"
            );
            return Err(Failure::new(429, "circuit_breaking_exception", reason));
        }
        held_bytes.set(would);
        self.bytes += more;
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let held_bytes = &self.budget.held_bytes;
        held_bytes.set(held_bytes.get() - self.bytes);
    }
}

/// Refuses a body that announces itself as too large.
pub(super) fn check_announced(bytes: Option<u64>) -> Result<(), Failure> {
    match bytes {
        Some(bytes) if bytes > BODY_BYTES_MAX as u64 => Err(too_large()),
        _ => Ok(()),
    }
}

fn too_large() -> Failure {
    let reason = format!(
        "the body is larger than {BODY_BYTES_MAX} bytes (http.max_content_length); send it in parts"
    );
    Failure::new(413, "content_too_long_exception", reason)
}

/// Reads a body, and what of the budget it holds: that is to be kept until the request was answered.
pub(super) async fn read_body<B>(
    mut body: B,
    budget: &BodyBudget,
) -> Result<(Bytes, HeldBytes), Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut held = HeldBytes { budget: budget.clone(), bytes: 0 };
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("the body broke off: {error}; send it again");
            Failure::new(400, "parse_exception", reason)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.is_empty() && all.is_empty() {
            held.grow(data.len())?;
            first = data;
            continue;
        }
        let needed = all.len().max(first.len()) + data.len();
        if needed > BODY_BYTES_MAX {
            return Err(too_large());
        }
        if needed > all.capacity() {
            let ahead = (2 * all.capacity()).max(announced.min(TRUST_BYTES));
            let grown = ahead.clamp(needed, BODY_BYTES_MAX);
            held.grow(grown - all.capacity())?;
            all.reserve_exact(grown - all.len());
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    Ok((if all.is_empty() { first } else { all.into() }, held))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;

    use super::*;

    /// A body of pieces that announces nothing.
    struct Pieces(VecDeque<Bytes>);

    impl Pieces {
        fn new(count: usize, bytes: usize) -> Pieces {
            Pieces((0..count).map(|n| vec![n as u8; bytes].into()).collect())
        }
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn read(body: Pieces, budget: &BodyBudget) -> Result<(Bytes, HeldBytes), Failure> {
        let budget = budget.clone();
        world::virtual_world::run(1, |_| async move { read_body(body, &budget).await })
    }

    #[test]
    fn a_body_is_its_pieces() {
        let budget = BodyBudget::default();
        for count in [0, 1, 2, 5] {
            let (body, _held) = read(Pieces::new(count, 1000), &budget).unwrap();
            let expected: Vec<u8> = (0..count).flat_map(|n| vec![n as u8; 1000]).collect();
            assert_eq!(body, expected);
        }
        assert_eq!(budget.held_bytes.get(), 0);
        let large = read(Pieces::new(101, 1 << 20), &budget).err().unwrap();
        assert_eq!(large.status, 413);
    }

    #[test]
    fn bodies_share_a_budget_until_they_are_answered() {
        let budget = BodyBudget { max_bytes: 10_000, ..BodyBudget::default() };
        let (_, first) = read(Pieces::new(6, 1000), &budget).unwrap();
        let refused = read(Pieces::new(6, 1000), &budget).err().unwrap();
        assert_eq!((refused.status, refused.kind.as_str()), (429, "circuit_breaking_exception"));
        assert_eq!(budget.held_bytes.get(), first.bytes, "what was refused holds nothing");
        assert!(first.bytes >= 6000 && budget.held_bytes.get() <= 10_000);
        drop(first);
        assert!(read(Pieces::new(6, 1000), &budget).is_ok());
    }
}
