//! Any copy: the baseline that knows nothing and herds nobody.

pub(super) use record::random::split_mix as mix;

/// The places of `copies` copies, shuffled by one random number (Fisher and Yates). It is mixed anew for each step
/// (see [`mix`]), so that it lasts for any number of copies.
pub(super) fn order(copies: usize, random: u64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..copies).collect();
    let mut state = random;
    for at in (1..copies).rev() {
        places.swap(at, (mix(&mut state) % (at as u64 + 1)) as usize);
    }
    places
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
