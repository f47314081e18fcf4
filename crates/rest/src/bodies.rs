//! Bodies of requests and of answers, within a budget that all clients of a node share.

use std::cell::Cell;
use std::fmt::Display;
use std::io::Read;
use std::rc::Rc;

use bytes::{Buf, Bytes};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Body;

use super::error::bad_body;
use engine::transport::{Failure, Result};

/// `http.max_content_length`.
const BODY_BYTES_MAX: usize = 100 << 20;
/// A buffer grows by no more than this ahead of the bytes that really came.
const TRUST_BYTES: usize = 8 << 20;
/// What bodies may hold all together, those that are still arriving and answers that nobody has taken, too. The field
/// has a breaker for it, `network.breaker.inflight_requests.limit`.
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

impl BodyBudget {
    #[cfg(test)]
    pub(super) fn of(max_bytes: usize) -> BodyBudget {
        BodyBudget { max_bytes, ..BodyBudget::default() }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held_bytes.get()
    }
}

/// A part of the budget. Dropping it gives it back.
pub(super) struct HeldBytes {
    budget: BodyBudget,
    bytes: usize,
}

impl HeldBytes {
    /// Takes more.
    ///
    /// # Errors
    /// 429 where there is no room.
    pub(super) fn grow(&mut self, more: usize) -> Result<()> {
        let BodyBudget { held_bytes, max_bytes } = &self.budget;
        let would = held_bytes.get() + more;
        if would > *max_bytes {
            let reason = format!(
                "[in_flight_requests] Data too large: the bodies of all requests and answers would hold [{would}] \
                 bytes, which is larger than the limit of [{max_bytes}]; send this one again when others were answered"
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

/// A part of an answer that its client has not taken. It counts whatever the budget is, because what was asked was
/// done: past the budget the next requests are refused.
pub(super) struct HeldAnswer {
    bytes: Bytes,
    _held: HeldBytes,
}

impl HeldAnswer {
    pub(super) fn new(bytes: Bytes, budget: &BodyBudget) -> HeldAnswer {
        let held = HeldBytes { budget: budget.clone(), bytes: bytes.len() };
        budget.held_bytes.update(|held| held + bytes.len());
        HeldAnswer { bytes, _held: held }
    }
}

impl Buf for HeldAnswer {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

/// Refuses a body that announces itself as too large.
pub(super) fn check_announced(bytes: Option<u64>) -> Result<()> {
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

/// Reads a body, and what of the budget it holds: that is to be kept until the request was answered. `arrived` is told
/// how many bytes came.
pub(super) async fn read_body<B>(
    mut body: B,
    budget: &BodyBudget,
    arrived: impl Fn(usize),
) -> Result<(Bytes, HeldBytes)>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut held = HeldBytes { budget: budget.clone(), bytes: 0 };
    // Answers that nobody takes may have used it up.
    held.grow(0)?;
    let mut first = Bytes::new();
    let mut all: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let broke_off = |error| bad_body(format!("the body broke off: {error}; send it again"));
        let frame = frame.map_err(broke_off)?;
        let Ok(data) = frame.into_data() else { continue };
        arrived(data.len());
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
            // Twice of what came, and no more than is to come.
            let to_come = announced.checked_sub(needed).unwrap_or(TRUST_BYTES);
            let grown = (needed + needed.min(TRUST_BYTES).min(to_come)).min(BODY_BYTES_MAX);
            held.grow(grown - all.capacity() - first.len())?;
            all.reserve_exact(grown - all.len());
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    Ok((if all.is_empty() { first } else { all.into() }, held))
}

/// How many bytes a body in gzip says that it has unpacked, so that there is room for them before they are.
pub(super) fn unpacked_bytes(packed: &[u8]) -> Result<usize> {
    let said = packed.last_chunk().filter(|_| packed.starts_with(&GZIP_MAGIC));
    let bytes = u32::from_le_bytes(*said.ok_or_else(no_gzip)?);
    check_announced(Some(bytes.into()))?;
    Ok(bytes as usize)
}

/// Unpacks a body in gzip of so many bytes.
pub(super) fn unpack(packed: &[u8], bytes: usize) -> Result<Bytes> {
    let mut unpacked = Vec::with_capacity(bytes);
    // One more would be one too many.
    let mut unpacking = MultiGzDecoder::new(packed).take(bytes as u64 + 1);
    match unpacking.read_to_end(&mut unpacked) {
        Ok(read) if read == bytes => Ok(unpacked.into()),
        _ => Err(no_gzip()),
    }
}

/// What gzip begins with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

fn no_gzip() -> Failure {
    bad_body(
        "the body is no gzip of one part, or broke off; send it again, or without Content-Encoding",
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::io::Write;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::{Frame, SizeHint};

    use super::*;

    /// A body of pieces.
    struct Pieces {
        pieces: VecDeque<Bytes>,
        announced: u64,
    }

    impl Pieces {
        fn new(count: usize, bytes: usize) -> Pieces {
            let pieces = (0..count).map(|n| vec![n as u8; bytes].into()).collect();
            Pieces { pieces, announced: 0 }
        }
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.announced)
        }
    }

    fn read(body: Pieces, budget: &BodyBudget) -> Result<(Bytes, HeldBytes)> {
        let budget = budget.clone();
        world::virtual_world::run(1, |_| async move { read_body(body, &budget, |_| ()).await })
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

    pub(in super::super) fn packed(body: &[u8]) -> Vec<u8> {
        let mut packing = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packing.write_all(body).unwrap();
        packing.finish().unwrap()
    }

    #[test]
    fn a_body_in_gzip_is_as_long_as_it_says() {
        let body = b"{\"a\":1}".repeat(1000);
        let whole = packed(&body);
        assert_eq!(unpacked_bytes(&whole).unwrap(), body.len());
        assert_eq!(unpack(&whole, body.len()).unwrap(), body);
        let twice = [whole.clone(), whole.clone()].concat();
        let (shorter, longer) = (body.len() - 1, body.len() + 1);
        for (wrong, bytes) in [
            (&whole[..], shorter),
            (&whole[..], longer),
            (&whole[..whole.len() - 9], body.len()),
            (&twice[..], body.len()),
            (&body[..], body.len()),
        ] {
            assert_eq!(unpack(wrong, bytes).unwrap_err().status, 400);
        }
        assert_eq!(unpacked_bytes(b"{}").unwrap_err().status, 400);
        assert_eq!(unpacked_bytes(b"{\"a\":1}").unwrap_err().status, 400);
        let bomb = [&whole[..whole.len() - 4], &(101_u32 << 20).to_le_bytes()].concat();
        assert_eq!(unpacked_bytes(&bomb).unwrap_err().status, 413);
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

    #[test]
    fn a_body_holds_no_more_than_twice_of_what_came() {
        let budget = BodyBudget::default();
        let large = Pieces { announced: 90 << 20, ..Pieces::new(3, 1000) };
        let (body, held) = read(large, &budget).unwrap();
        assert!(held.bytes <= 2 * body.len(), "{} bytes are held for {}", held.bytes, body.len());
        let whole = Pieces { announced: 3000, ..Pieces::new(3, 1000) };
        assert_eq!(read(whole, &budget).unwrap().1.bytes, 3000);
    }

    #[test]
    fn answers_that_nobody_takes_use_up_the_budget() {
        let budget = BodyBudget { max_bytes: 10_000, ..BodyBudget::default() };
        let mut first = HeldAnswer::new(vec![1; 9_000].into(), &budget);
        assert!(read(Pieces::new(0, 0), &budget).is_ok());
        let second = HeldAnswer::new(vec![1; 9_000].into(), &budget);
        assert_eq!(read(Pieces::new(0, 0), &budget).err().unwrap().status, 429);
        first.advance(8_000);
        assert_eq!((first.remaining(), first.chunk()), (1_000, &[1; 1_000][..]));
        drop((first, second));
        assert_eq!(budget.held_bytes.get(), 0);
    }
}
