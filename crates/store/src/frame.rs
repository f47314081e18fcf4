//! Records in a file: `[length u32][crc32c u32][payload]`, little endian, after a header.
//!
//! The checksum covers the length too: a damaged length in the middle must not look like a torn end.

const HEADER_BYTES: usize = 8;
/// No record is larger; anything above is damage.
const MAX_PAYLOAD_BYTES: usize = 1 << 30;

/// Bytes that a payload of `len` bytes takes in the file.
pub(crate) fn framed_bytes(len: usize) -> usize {
    HEADER_BYTES + len
}

/// Appends one record; `fill` writes its payload.
pub(crate) fn append(buffer: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; HEADER_BYTES]);
    fill(buffer);
    let len = (buffer.len() - start - HEADER_BYTES) as u32;
    buffer[start..start + 4].copy_from_slice(&len.to_le_bytes());
    let crc = checksum(len, &buffer[start + HEADER_BYTES..]);
    buffer[start + 4..start + HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(len: u32, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&len.to_le_bytes()), payload)
}

/// What stands at one place of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A whole record; the next one begins at `next`.
    Whole { payload: &'a [u8], next: usize },
    /// The file ends here, after a whole record.
    End,
    /// A record that was not written to its end; nothing whole follows it.
    Torn,
    /// A damaged record with more behind it.
    Damaged(&'static str),
}

/// Reads the record at `at`. `plausible` says of a payload whether it can be one; it is asked only while
/// searching for records behind a damaged one.
pub(crate) fn read(file: &[u8], at: usize, plausible: impl Fn(&[u8]) -> bool) -> Frame<'_> {
    let rest = &file[at..];
    if rest.is_empty() {
        return Frame::End;
    }
    match whole(rest) {
        Some(payload) => Frame::Whole { payload, next: at + HEADER_BYTES + payload.len() },
        None if rest.iter().all(|byte| *byte == 0) => Frame::Torn,
        None if followed_by_a_record(rest, plausible) => {
            Frame::Damaged("the checksum of a record does not match, and whole records follow it")
        }
        None => Frame::Torn,
    }
}

fn whole(rest: &[u8]) -> Option<&[u8]> {
    let header = rest.get(..HEADER_BYTES)?;
    let len = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
    let crc = u32::from_le_bytes(header[4..].try_into().expect("four bytes"));
    if len == 0 || len as usize > MAX_PAYLOAD_BYTES {
        return None;
    }
    let payload = rest.get(HEADER_BYTES..HEADER_BYTES + len as usize)?;
    (checksum(len, payload) == crc).then_some(payload)
}

/// Slow (every byte is a candidate), but only ever run on a damaged file.
fn followed_by_a_record(rest: &[u8], plausible: impl Fn(&[u8]) -> bool) -> bool {
    (1..rest.len()).any(|at| {
        let candidate = &rest[at..];
        candidate.len() > HEADER_BYTES
            && plausible(&candidate[HEADER_BYTES..])
            && whole(candidate).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut buffer = Vec::new();
        for payload in payloads {
            append(&mut buffer, |b| b.extend_from_slice(payload));
        }
        buffer
    }

    fn read_all(file: &[u8]) -> (usize, Frame<'_>) {
        let mut at = 0;
        let mut count = 0;
        loop {
            match read(file, at, |p| p[0] < 10) {
                Frame::Whole { next, .. } => (at, count) = (next, count + 1),
                end => return (count, end),
            }
        }
    }

    #[test]
    fn every_truncation_is_a_torn_end_and_keeps_what_is_before() {
        let whole = file(&[&[1, 2, 3], &[4; 40], &[5; 7]]);
        for len in 0..whole.len() {
            let (count, end) = read_all(&whole[..len]);
            let (expected, at_boundary) = match len {
                0..11 => (0, len == 0),
                11..59 => (1, len == 11),
                _ => (2, len == 59),
            };
            assert_eq!(count, expected, "cut at {len}");
            assert_eq!(end, if at_boundary { Frame::End } else { Frame::Torn }, "cut at {len}");
        }
    }

    #[test]
    fn every_flipped_bit_before_the_last_record_is_damage_and_in_it_a_torn_end() {
        let whole = file(&[&[1, 2, 3], &[4; 40], &[5; 7]]);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (_, end) = read_all(&flipped);
            if bit / 8 < 59 {
                assert!(matches!(end, Frame::Damaged(_)), "bit {bit}: {end:?}");
            } else {
                assert_eq!(end, Frame::Torn, "bit {bit}");
            }
        }
    }

    #[test]
    fn a_tail_of_zeros_is_torn() {
        let mut zeros = file(&[&[1, 2, 3]]);
        zeros.extend_from_slice(&[0; 5000]);
        assert_eq!(read_all(&zeros), (1, Frame::Torn));
    }
}
