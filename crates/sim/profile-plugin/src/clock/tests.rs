//! The clock against a list of all accesses.

use proptest::prelude::*;
use symbiont_profile::{Access, ReuseBin};

use super::{Clock, octave};

/// Reuse time of the last of `keys`, by going back through the list.
fn naive(keys: &[u64]) -> ReuseBin {
    let Some((last, before)) = keys.split_last() else { return ReuseBin::NONE };
    match before.iter().rev().position(|key| key == last) {
        Some(between) => ReuseBin::of(between as u64 + 1),
        None => ReuseBin::COLD,
    }
}

fn bins(access: Access) -> [ReuseBin; 3] {
    [access.reuse_64, access.reuse_128, access.reuse_page]
}

/// Lines out of a few pages, some of which share an entry of the cache of
/// recently used pages.
fn lines() -> impl Strategy<Value = Vec<u64>> {
    let line = (0_u64..4, 0_u64..3, 0_u64..64)
        .prop_map(|(near, far, line)| (near + far * super::RECENT as u64) * 64 + line / 8);
    proptest::collection::vec(line, 1..200)
}

proptest! {
    #[test]
    fn reuse_times_are_those_of_a_naive_list(lines in lines(), cut in 0_usize..200) {
        let mut clock = Clock::new();
        for (index, line) in lines.iter().enumerate() {
            if index == cut {
                // Ending an interval forgets counts, never times.
                clock.take();
            }
            let found = bins(clock.data(*line, false));
            let until = &lines[..=index];
            for (level, factor) in [1, 2, 64].into_iter().enumerate() {
                let keys: Vec<u64> = until.iter().map(|line| line / factor).collect();
                prop_assert_eq!(found[level], naive(&keys), "access {} level {}", index, level);
            }
        }
    }

    #[test]
    fn fetches_count_only_where_the_line_changes(lines in lines()) {
        let mut clock = Clock::new();
        let mut changes: [Vec<u64>; 3] = Default::default();
        for line in lines {
            if clock.current() == Some(line) {
                continue;
            }
            let found = bins(clock.fetch(line));
            for (level, factor) in [1, 2, 64].into_iter().enumerate() {
                let key = line / factor;
                if changes[level].last() == Some(&key) {
                    prop_assert_eq!(found[level], ReuseBin::NONE);
                } else {
                    changes[level].push(key);
                    prop_assert_eq!(found[level], naive(&changes[level]));
                }
            }
        }
    }

    #[test]
    fn counts_are_those_of_the_accesses(lines in lines(), stores in any::<u64>()) {
        let mut clock = Clock::new();
        let mut expected = [[0_u64; 256]; 3];
        let mut octaves = [0_u32; super::OCTAVES];
        let mut written = std::collections::BTreeSet::new();
        for (index, line) in lines.iter().enumerate() {
            let store = stores >> (index % 64) & 1 == 1;
            if store {
                written.insert(*line);
            }
            let access = clock.data(*line, store);
            for (level, bin) in bins(access).into_iter().enumerate() {
                expected[level][super::slot(bin)] += 1;
            }
            octaves[octave(access.reuse_64)] += 1;
        }
        let counts = clock.take();
        prop_assert_eq!(&counts.bins, &expected);
        for (index, count) in octaves.iter().enumerate() {
            prop_assert_eq!(counts.sets.iter().map(|set| set[index]).sum::<u32>(), *count);
        }
        let distinct: std::collections::BTreeSet<u64> = lines.iter().copied().collect();
        let pages: std::collections::BTreeSet<u64> = lines.iter().map(|line| line / 64).collect();
        prop_assert_eq!(counts.touched, [distinct.len(), written.len(), pages.len()].map(|n| n as u64));
        prop_assert_eq!(clock.take().touched, [0; 3]);
    }
}
