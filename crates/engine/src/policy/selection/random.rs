//! Any copy: the baseline that knows nothing and herds nobody.

/// The places of `copies` copies, shuffled by one random number (Fisher and Yates). It is mixed anew for each step
/// (SplitMix64; Steele, Lea, Flood 2014), so that it lasts for any number of copies.
pub(super) fn order(copies: usize, random: u64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..copies).collect();
    let mut state = random;
    for at in (1..copies).rev() {
        places.swap(at, (mix(&mut state) % (at as u64 + 1)) as usize);
    }
    places
}

/// The next number of a sequence.
pub(super) fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_order_is_as_likely() {
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for random in 0..6000 {
            *seen.entry(order(3, random)).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|count| (900..1100).contains(count)), "{seen:?}");
        let firsts: BTreeMap<usize, u32> = (0..6000).fold(BTreeMap::new(), |mut firsts, random| {
            *firsts.entry(order(100, random)[0]).or_default() += 1;
            firsts
        });
        assert!(firsts.len() == 100 && firsts.values().all(|count| *count > 20), "{firsts:?}");
    }
}
