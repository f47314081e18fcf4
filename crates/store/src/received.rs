//! What another node sends, as plain data in `postcard`'s form.

use postcard::de_flavors::{Flavor, Slice};
use serde::Deserialize;

/// Data within data of its own kind calls what reads it for each level: it stops once that takes so much of the stack.
const STACK_BYTES_MAX: usize = 512 << 10;

/// Reads what another node sent. No memory is reserved for lists that only claim to be long, and nothing is read that
/// is nested so deep that the stack would end.
///
/// # Errors
/// If it is no such data.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> postcard::Result<T> {
    let received = Received { bytes: Slice::new(bytes), stack_top: stack_address() };
    T::deserialize(&mut postcard::Deserializer::from_flavor(received))
}

fn stack_address() -> usize {
    let here = 0_u8;
    std::hint::black_box(std::ptr::from_ref(&here)).addr()
}

struct Received<'a> {
    bytes: Slice<'a>,
    stack_top: usize,
}

impl<'a> Flavor<'a> for Received<'a> {
    type Remainder = <Slice<'a> as Flavor<'a>>::Remainder;
    type Source = <Slice<'a> as Flavor<'a>>::Source;

    fn pop(&mut self) -> postcard::Result<u8> {
        match stack_address().abs_diff(self.stack_top) > STACK_BYTES_MAX {
            true => Err(postcard::Error::SerdeDeCustom),
            false => self.bytes.pop(),
        }
    }

    /// As many as there are bytes left might be believed: 128 levels of lists would reserve 128 MB for a few hundred.
    fn size_hint(&self) -> Option<usize> {
        Some(0)
    }

    fn try_take_n(&mut self, count: usize) -> postcard::Result<&'a [u8]> {
        self.bytes.try_take_n(count)
    }

    fn finalize(self) -> postcard::Result<Self::Remainder> {
        self.bytes.finalize()
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Nested(Vec<Nested>);

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let shallow = (0..100).fold(Nested(vec![]), |inner, _| Nested(vec![Nested(vec![]), inner]));
        let bytes = postcard::to_stdvec(&shallow).unwrap();
        assert_eq!(from_bytes::<Nested>(&bytes).unwrap(), shallow);
        assert!(from_bytes::<Nested>(&[1; 1 << 20]).is_err());
    }
}
