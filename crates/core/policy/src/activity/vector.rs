//! Activity vectors: which regions of a cache a job uses much.

/// A bit for each super-set of a cache: was it used (or missed) more often than the threshold?
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vector {
    words: Vec<u64>,
    bits: usize,
}

impl Vector {
    /// From counts of one sample, by super-set.
    pub fn above(counts: impl IntoIterator<Item = u64>, threshold: u64) -> Self {
        let mut vector = Self::default();
        for count in counts {
            let (word, bit) = (vector.bits / 64, vector.bits % 64);
            if bit == 0 {
                vector.words.push(0);
            }
            if let Some(word) = vector.words.get_mut(word) {
                *word |= u64::from(count > threshold) << bit;
            }
            vector.bits += 1;
        }
        vector
    }

    /// Super-sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bits
    }

    /// Is it of no super-set at all?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    /// Bits that are set.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Super-sets that are active in both: the population count of the logical AND (section 4.2).
    #[must_use]
    pub fn overlap(&self, other: &Self) -> u32 {
        self.words.iter().zip(&other.words).map(|(own, other)| (own & other).count_ones()).sum()
    }

    /// The share of bits that are equal in both, as of a prediction and what came; none where they are not of
    /// equally many super-sets.
    #[must_use]
    pub fn agreement(&self, other: &Self) -> Option<f64> {
        let alike = self.bits == other.bits && self.bits > 0;
        let different: u32 = self
            .words
            .iter()
            .zip(&other.words)
            .map(|(own, other)| (own ^ other).count_ones())
            .sum();
        alike.then(|| 1.0 - f64::from(different) / self.bits as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn overlap_and_agreement_are_those_of_single_bits(
            pairs in prop::collection::vec((0_u64..6, 0_u64..6), 1..200), threshold in 0_u64..6,
        ) {
            let own = Vector::above(pairs.iter().map(|pair| pair.0), threshold);
            let other = Vector::above(pairs.iter().map(|pair| pair.1), threshold);
            let bits = || pairs.iter().map(|pair| (pair.0 > threshold, pair.1 > threshold));
            let both = bits().filter(|(own, other)| *own && *other).count();
            let equal = bits().filter(|(own, other)| own == other).count();
            prop_assert_eq!(own.len(), pairs.len());
            prop_assert_eq!(own.active() as usize, bits().filter(|(own, _)| *own).count());
            prop_assert_eq!(own.overlap(&other) as usize, both);
            prop_assert_eq!(own.overlap(&other), other.overlap(&own));
            let share = equal as f64 / pairs.len() as f64;
            prop_assert!((own.agreement(&other).unwrap() - share).abs() < 1e-12);
        }
    }

    #[test]
    fn vectors_of_another_length_cannot_be_compared() {
        let vector = |length| Vector::above(vec![9; length], 1);
        assert_eq!(vector(32).agreement(&vector(64)), None);
        assert_eq!(vector(0).agreement(&vector(0)), None);
    }
}
