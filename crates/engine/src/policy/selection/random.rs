//! Any copy: the baseline that knows nothing and herds nobody.

/// The places of `copies` copies, shuffled by one random number (Fisher and Yates).
pub(super) fn order(copies: usize, mut random: u64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..copies).collect();
    for at in (1..copies).rev() {
        let choices = at as u64 + 1;
        places.swap(at, (random % choices) as usize);
        random /= choices;
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
        assert!(seen.values().all(|count| *count == 1000), "{seen:?}");
    }
}
