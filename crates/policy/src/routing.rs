//! Which shard a document belongs to.
//!
//! As Elasticsearch does it (`Murmur3HashFunction`, `IndexRouting`): MurmurHash3 x86 32-bit with seed
//! 0 over the UTF-16LE bytes of the id, then the floor modulus by the routing shards, of which each
//! shard has as many as any other. They are what allows Elasticsearch to split an index later.

/// The shard of a document in an index of `shards` shards that was made without
/// `index.number_of_routing_shards`: 0 to `shards - 1`.
///
/// `routing` is the `_routing` of the document where it has one, else its `_id`.
///
/// # Panics
/// If `shards` is zero: an index has at least one.
pub fn shard_of(routing: &str, shards: u32) -> u32 {
    shard_among(routing, shards, routing_shards(shards))
}

/// The same in an index of `routing_shards` routing shards.
///
/// # Panics
/// If they are no multiple of the shards.
pub fn shard_among(routing: &str, shards: u32, routing_shards: u32) -> u32 {
    assert!(is_multiple(routing_shards, shards), "{routing_shards} is no multiple of {shards}");
    let number = i64::from(hash(routing)).rem_euclid(i64::from(routing_shards)) as u32;
    number / (routing_shards / shards)
}

/// Whether an index of so many shards can have so many routing shards.
pub fn is_multiple(routing_shards: u32, shards: u32) -> bool {
    shards > 0 && routing_shards > 0 && routing_shards.is_multiple_of(shards)
}

/// The routing shards of a new index, where `index.number_of_routing_shards` does not say: its shards,
/// doubled while there are at most 1024 of them, and once at least (`calculateNumRoutingShards`).
///
/// # Panics
/// If `shards` is zero: an index has at least one.
pub fn routing_shards(shards: u32) -> u32 {
    assert!(shards > 0, "an index has at least one shard");
    let doublings = 10_u32.saturating_sub(shards.next_power_of_two().ilog2()).max(1);
    shards << doublings
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
        assert_eq!(shard_among("hello", 5, 5), 1);
        // By 640, which are 128 for each of 5 shards, it is 521.
        assert_eq!(shard_of("hello", 5), 4);
        assert_eq!(shard_of("anything", 1), 0);
    }

    #[test]
    fn an_index_could_be_split_to_1024_shards() {
        let of = |shards| (shards, routing_shards(shards));
        let known = [(1, 1024), (2, 1024), (3, 768), (5, 640), (513, 1026), (1024, 2048)];
        assert_eq!(known.map(|(shards, _)| of(shards)), known);
        // A shard that is split in two leaves each document in one of its halves.
        for id in ["hell", "hello", "hello w", "hello wo"] {
            assert_eq!(shard_of(id, 2), shard_of(id, 4) / 2, "{id}");
        }
    }
}
