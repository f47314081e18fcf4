//! Small texts on the disk that end with a checksum of themselves, so that a byte that turned is found.

use xxhash_rust::xxh3::xxh3_64;

const MARK: &str = "\nxxh3 ";
const HEX_DIGITS: usize = 16;

/// The text with its checksum behind it, on a line of its own.
pub fn seal(text: &str) -> String {
    format!("{text}{MARK}{:016x}\n", xxh3_64(text.as_bytes()))
}

/// The text without its checksum. Earlier builds wrote none: such a text is taken as it is, and whoever parses it finds
/// out where it was cut.
///
/// Fails where the two do not belong together.
pub fn unseal(sealed: &str) -> Result<&str, String> {
    let Some((text, digits)) = sealed.rsplit_once(MARK) else { return Ok(sealed) };
    let digits = digits.strip_suffix('\n').unwrap_or(digits);
    let found = xxh3_64(text.as_bytes());
    if digits.len() == HEX_DIGITS && u64::from_str_radix(digits, 16) == Ok(found) {
        return Ok(text);
    }
    Err(format!("its xxh3 is {found:016x}, its last line says {digits:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_byte_is_turned_is_found_or_breaks_the_json() {
        let text = r#"{"term": 12}"#;
        let sealed = seal(text);
        assert_eq!(unseal(&sealed), Ok(text));
        assert_eq!(unseal(text), Ok(text), "of an earlier build");
        let is_json = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] ^= 1;
            let turned = String::from_utf8(bytes).unwrap();
            // What ends the last line carries nothing.
            let found = unseal(&turned).is_err_and(|_| true) || !is_json(unseal(&turned).unwrap());
            assert!(found, "{turned:?}");
            assert!(at == 0 || !is_json(unseal(&sealed[..at]).unwrap_or("")) || at >= text.len());
        }
    }
}
