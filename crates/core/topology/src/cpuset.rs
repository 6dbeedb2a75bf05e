//! A set of hardware threads, written as the kernel writes CPU lists (`0-3,8`).
//!
//! Properties: text round-trips (`text_round_trips`); two sets with the same
//! members are equal and hash alike however they were made
//! (`equal_members_equal_sets`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::PuId;

/// Largest CPU number that a list may name: twice what any kernel's `NR_CPUS`
/// allows. It bounds what a damaged list makes of a machine, whose cores,
/// domains, nodes and packages each have a set as long as its largest member.
pub(crate) const MAX_CPU: u32 = (1 << 14) - 1;

/// A set of hardware threads.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet {
    /// Bit `c % 64` of word `c / 64` stands for CPU `c`; the last word is never 0.
    words: Vec<u64>,
}

impl CpuSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Reads a bit map: words of 32 bits in hexadecimal, highest first, separated by commas; hwloc puts `0x` before
    /// each and leaves out those that are 0.
    pub(crate) fn from_bit_map(text: &str) -> Result<Self, String> {
        let mut set = Self::new();
        for (word, base) in text.rsplit(',').zip((0u32..).step_by(32)) {
            let bits = match word.strip_prefix("0x").unwrap_or(word) {
                "" => 0,
                digits => u32::from_str_radix(digits, 16)
                    .map_err(|_| format!("'{word}' is not a word of a bit map"))?,
            };
            for pu in (0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| PuId(base + bit)) {
                if pu.0 > MAX_CPU {
                    return Err(format!("{pu} is too large a number"));
                }
                set.insert(pu);
            }
        }
        Ok(set)
    }

    /// Adds a hardware thread; true if it was not there before.
    pub fn insert(&mut self, pu: PuId) -> bool {
        let (word, bit) = position(pu);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }

    /// Takes a hardware thread out; true if it was there.
    pub fn remove(&mut self, pu: PuId) -> bool {
        let (word, bit) = position(pu);
        let there = self.contains(pu);
        if there {
            self.words[word] &= !bit;
            self.trim();
        }
        there
    }

    /// Is the hardware thread in the set?
    #[must_use]
    pub fn contains(&self, pu: PuId) -> bool {
        let (word, bit) = position(pu);
        self.words.get(word).is_some_and(|w| w & bit != 0)
    }

    /// Number of hardware threads in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Is the set empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The members in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = PuId> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, index)| {
            let without_lowest = |left: &u64| Some(left & left.wrapping_sub(1));
            let left = std::iter::successors(Some(word), without_lowest);
            left.take_while(|&left| left != 0)
                .map(move |left| PuId(index * 64 + left.trailing_zeros()))
        })
    }

    /// The lowest member.
    #[must_use]
    pub fn first(&self) -> Option<PuId> {
        self.iter().next()
    }

    /// The member of a set that has just one.
    #[must_use]
    pub fn only(&self) -> Option<PuId> {
        let mut members = self.iter();
        members.next().filter(|_| members.next().is_none())
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::from_words(self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect())
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (long, short) =
            if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        for (word, more) in words.iter_mut().zip(&short.words) {
            *word |= more;
        }
        Self::from_words(words)
    }

    /// Members of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut words = self.words.clone();
        for (word, less) in words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        Self::from_words(words)
    }

    /// Are all members also in the other set?
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter().zip(others).all(|(word, other)| word & !other == 0)
    }

    /// Have the sets no member in common?
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(word, other)| word & other == 0)
    }

    fn from_words(words: Vec<u64>) -> Self {
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

fn position(pu: PuId) -> (usize, u64) {
    ((pu.0 / 64) as usize, 1 << (pu.0 % 64))
}

impl FromIterator<PuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = PuId>>(members: I) -> Self {
        let mut set = Self::new();
        set.extend(members);
        set
    }
}

impl Extend<PuId> for CpuSet {
    fn extend<I: IntoIterator<Item = PuId>>(&mut self, members: I) {
        for pu in members {
            self.insert(pu);
        }
    }
}

impl From<PuId> for CpuSet {
    fn from(pu: PuId) -> Self {
        std::iter::once(pu).collect()
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut members = self.iter().map(|pu| pu.0).peekable();
        let mut separator = "";
        while let Some(first) = members.next() {
            let mut last = first;
            while let Some(next) = members.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// A CPU list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a CPU list: '{text}' ({reason} at '{part}'); expected a form like 0-3,8")]
pub struct ParseCpuSetError {
    text: String,
    part: String,
    reason: &'static str,
}

impl ParseCpuSetError {
    /// What is wrong, without the whole text: `not a number at 'x'`.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("{} at '{}'", self.reason, self.part)
    }
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = Self::new();
        for part in text.trim().split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let fail = |reason| ParseCpuSetError {
                text: text.trim().to_owned(),
                part: part.to_owned(),
                reason,
            };
            let number = |digits: &str| match digits.parse::<u32>() {
                Ok(n) if n <= MAX_CPU => Ok(n),
                Ok(_) => Err(fail("CPU number too large")),
                Err(_) => Err(fail("not a number")),
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(fail("range runs backwards"));
            }
            for cpu in first..=last {
                set.insert(PuId(cpu));
            }
        }
        Ok(set)
    }
}

impl TryFrom<String> for CpuSet {
    type Error = ParseCpuSetError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> Self {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set_of(members: &BTreeSet<u32>) -> CpuSet {
        members.iter().map(|&c| PuId(c)).collect()
    }

    fn members() -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(0u32..300, 0..40)
    }

    proptest! {
        #[test]
        fn text_round_trips(m in members()) {
            let set = set_of(&m);
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn equal_members_equal_sets(m in members(), extra in 0u32..500) {
            let mut set = set_of(&m);
            set.insert(PuId(extra));
            if !m.contains(&extra) {
                set.remove(PuId(extra));
            }
            prop_assert_eq!(set, set_of(&m));
        }

        #[test]
        fn set_operations_are_those_of_sets(a in members(), b in members()) {
            let (x, y) = (set_of(&a), set_of(&b));
            prop_assert_eq!(x.union(&y), set_of(&(&a | &b)));
            prop_assert_eq!(x.intersection(&y), set_of(&(&a & &b)));
            prop_assert_eq!(x.difference(&y), set_of(&(&a - &b)));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.is_disjoint(&y), a.is_disjoint(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert!(x.iter().map(|pu| pu.0).eq(a.iter().copied()));
            let only = a.first().filter(|_| a.len() == 1).map(|&cpu| PuId(cpu));
            prop_assert_eq!(x.only(), only);
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in ".{0,40}") {
            let _ = text.parse::<CpuSet>();
        }
    }

    #[test]
    fn kernel_lists_are_read() {
        assert_eq!("0-1\n".parse::<CpuSet>().unwrap().to_string(), "0-1");
        assert_eq!("".parse::<CpuSet>().unwrap(), CpuSet::new());
        assert_eq!("3,1,0-1,64".parse::<CpuSet>().unwrap().to_string(), "0-1,3,64");
    }

    #[test]
    fn bad_lists_say_what_and_where() {
        let error = "0-3,x".parse::<CpuSet>().unwrap_err().to_string();
        assert_eq!(
            error,
            "not a CPU list: '0-3,x' (not a number at 'x'); expected a form like 0-3,8"
        );
        assert!("3-1".parse::<CpuSet>().is_err());
        assert!("99999999".parse::<CpuSet>().is_err());
    }

    #[test]
    fn numbers_beyond_any_kernels_are_refused() {
        assert_eq!("0-16383".parse::<CpuSet>().unwrap().len(), 16384);
        let error = "0-16384".parse::<CpuSet>().unwrap_err();
        assert_eq!(error.reason(), "CPU number too large at '0-16384'");
    }
}
