//! Which shard a document belongs to.
//!
//! As Elasticsearch does it (`Murmur3HashFunction`, `IndexRouting`): MurmurHash3 x86 32-bit with seed
//! 0 over the UTF-16LE bytes of the id, then the floor modulus. One simplification: Elasticsearch
//! takes the modulus by `routing_num_shards`, a multiple of the shard count that allows an index to
//! be split later, and divides. Nothing here splits an index, so the modulus is the shard count.

/// The shard of a document in an index of `shards` shards: 0 to `shards - 1`.
///
/// `routing` is the `_routing` of the document where it has one, else its `_id`.
///
/// # Panics
/// If `shards` is zero: an index has at least one.
pub fn shard_of(routing: &str, shards: u32) -> u32 {
    assert!(shards > 0, "an index has at least one shard");
    i64::from(hash(routing)).rem_euclid(i64::from(shards)) as u32
}

/// The hash of an id, signed as in Elasticsearch: MurmurHash3 x86 32-bit (A. Appleby), seed 0, over
/// the UTF-16LE bytes.
pub fn hash(id: &str) -> i32 {
    let mut state = 0u32;
    let mut bytes = 0u32;
    let mut units = id.encode_utf16();
    while let Some(low) = units.next() {
        match units.next() {
            Some(high) => {
                let block = u32::from(low) | u32::from(high) << 16;
                state = (state ^ scramble(block)).rotate_left(13);
                state = state.wrapping_mul(5).wrapping_add(0xe654_6b64);
                bytes = bytes.wrapping_add(4);
            }
            // A tail of two bytes: UTF-16 leaves no others.
            None => {
                state ^= scramble(u32::from(low));
                bytes = bytes.wrapping_add(2);
            }
        }
    }
    finish(state ^ bytes) as i32
}

fn scramble(block: u32) -> u32 {
    block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

fn finish(mut state: u32) -> u32 {
    state = (state ^ (state >> 16)).wrapping_mul(0x85eb_ca6b);
    state = (state ^ (state >> 13)).wrapping_mul(0xc2b2_ae35);
    state ^ (state >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_elasticsearch_does() {
        for (id, expected) in [
            ("hell", 0x5a0c_b7c3_u32),
            ("hello", 0xd7c3_1989),
            ("hello w", 0x22ab_2984),
            ("hello wo", 0xdf0c_a123),
            ("hello wor", 0xe774_4d61),
            ("The quick brown fox jumps over the lazy dog", 0xe07d_b09c),
            ("The quick brown fox jumps over the lazy cog", 0x4e63_d2ad),
            ("", 0),
        ] {
            assert_eq!(hash(id) as u32, expected, "{id}");
        }
    }

    #[test]
    fn the_modulus_is_that_of_the_signed_hash() {
        // 0xd7c31989 is -675079799: the floor modulus by 5 is 1, that of the unsigned hash 2.
        assert_eq!(hash("hello"), -675_079_799);
        assert_eq!(shard_of("hello", 5), 1);
        assert_eq!(shard_of("anything", 1), 0);
    }
}
