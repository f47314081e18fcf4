//! One copy after another: `RotationShardShuffler` of Elasticsearch, which adaptive selection being off leaves.

/// The places of `copies` copies, beginning one further at each turn.
pub(super) fn order(copies: usize, turn: u64) -> Vec<usize> {
    if copies == 0 {
        return Vec::new();
    }
    let first = (turn % copies as u64) as usize;
    (0..copies).map(|step| (first + step) % copies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_copy_has_its_turn() {
        let firsts: Vec<usize> = (0..6).map(|turn| order(3, turn)[0]).collect();
        assert_eq!(firsts, [0, 1, 2, 0, 1, 2]);
        assert_eq!(order(3, 1), [1, 2, 0]);
    }
}
