//! Numbers as text, without the formatting machinery: most of a small document is numbers.

pub(super) fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

pub(super) fn write_address(out: &mut Vec<u8>, address: [u8; 4]) {
    for (i, byte) in address.into_iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        write_u64(out, u64::from(byte));
    }
}

/// Appends `value` with exactly `WIDTH` digits, zeros in front; higher digits are dropped.
pub(super) fn write_padded<const WIDTH: usize>(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [b'0'; WIDTH];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Appends `value / 10^7` as JSON writes a number of seven decimals: `-0.1485188`, `51.525`, `7.0`.
pub(super) fn write_e7(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let magnitude = value.unsigned_abs();
    write_u64(out, magnitude / 10_000_000);
    out.push(b'.');
    let fraction_at = out.len();
    write_padded::<7>(out, magnitude % 10_000_000);
    while out.len() > fraction_at + 1 && out.last() == Some(&b'0') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_what_the_formatter_writes() {
        for value in [0, 7, 10, 999, 1000, 893_971_817, u64::MAX] {
            assert_eq!(text(|out| write_u64(out, value)), value.to_string());
        }
        assert_eq!(text(|out| write_padded::<4>(out, 73)), "0073");
    }

    #[test]
    fn writes_seven_decimals_without_trailing_zeros() {
        assert_eq!(text(|out| write_e7(out, -1_485_188)), "-0.1485188");
        assert_eq!(text(|out| write_e7(out, 515_250_000)), "51.525");
        assert_eq!(text(|out| write_e7(out, -1_799_000_000)), "-179.9");
        assert_eq!(text(|out| write_e7(out, 70_000_000)), "7.0");
        assert_eq!(text(|out| write_e7(out, 1)), "0.0000001");
    }
}
