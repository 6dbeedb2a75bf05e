//! The checksum of a result.

/// The 64-bit FNV-1a hash, word by word: it depends on each bit and on the order.
pub(super) fn checksum(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_depends_on_each_bit_and_on_the_order() {
        let mut sums: Vec<u64> = (0..64).map(|bit| checksum([1 << bit, 7])).collect();
        sums.extend([checksum([7, 1]), checksum([7]), checksum([])]);
        let distinct: std::collections::BTreeSet<u64> = sums.iter().copied().collect();
        assert_eq!(distinct.len(), sums.len());
    }
}
