//! A line of JSON whose last member is a hash of itself and of the line before.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What stands before the hash of a line, and behind it.
const HASH: (&str, &str) = (",\"xxh3\":\"", "\"}");

/// A line with its hash as its last member. `before` is the hash of the line before it, 0 of the first.
pub(super) fn hashed(mut line: String, before: u64) -> (String, u64) {
    let hash = xxh3_64_with_seed(line.as_bytes(), before);
    line.pop();
    (format!("{line}{}{hash:016x}{}", HASH.0, HASH.1), hash)
}

/// The hash of a line that has one; 0 where it has none. None where it is that of another line.
pub(super) fn checked(line: &str, before: u64) -> Option<u64> {
    let Some((own, _)) = line.rsplit_once(HASH.0) else { return Some(0) };
    let (whole, hash) = hashed(format!("{own}}}"), before);
    (whole == line).then_some(hash)
}

/// Whether a line that ends without a newline lacks nothing else.
pub(super) fn lacks_its_end_alone(torn: &str) -> bool {
    torn.rsplit_once(HASH.0).is_some_and(|(_, rest)| rest.len() >= 16 + HASH.1.len())
}
