//! Activity by super-set.

use std::ffi::OsString;

use symbiont_profile::capture::Capture;
use symbiont_profile::vectors::{Counts, Geometry, Hierarchy, Vectors};

use crate::or_skip;
use crate::support::{capture, text};
use crate::traces::sweep;

#[test]
fn vectors_are_of_what_the_program_does() {
    or_skip!();
    let built = sweep();
    let words = [OsString::from(text(&built.program))];
    let of = |sets, ways| Geometry { sets, ways, line: 64 };
    let hierarchy = Hierarchy { l1d: of(64, 8), l1i: of(64, 8), l2: of(1024, 8) };
    let capture = Capture { interval: Some(1_000_000), ..capture(&words) };
    let made = || capture.vectors(&hierarchy, |_| {}).unwrap();
    let vectors = made();
    assert_eq!(vectors, made());
    let bytes = tempfile::NamedTempFile::new().unwrap();
    vectors.write(bytes.path()).unwrap();
    assert_eq!(Vectors::read(bytes.path()).unwrap(), vectors);
    let (last, whole) = vectors.intervals.split_last().unwrap();
    assert!(whole.len() >= 3 && last.instructions > 0, "{}", whole.len());
    assert!(whole.iter().all(|it| (1_000_000..1_000_100).contains(&it.instructions)));
    let sum = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    let all = |cache: usize, of: fn(&Counts) -> &Vec<u32>| -> u64 {
        vectors.intervals.iter().map(|it| sum(of(&it.caches[cache]))).sum()
    };
    // 200 rounds over 4,096 lines fit the second level and not the first.
    let (rounds, lines) = (200, 4096);
    let missed = all(0, |counts| &counts.misses);
    assert!((rounds * lines..rounds * lines * 101 / 100).contains(&missed), "{missed}");
    let cold = all(2, |counts| &counts.misses);
    // Each once, and what it takes to start.
    assert!((lines..2 * lines).contains(&cold), "{cold}");
    // They are spread evenly over the sets of the first level.
    let middle = &whole[1].caches[0];
    let (least, most) = (middle.misses.iter().min(), middle.misses.iter().max());
    assert!(*least.unwrap() as f64 > 0.9 * f64::from(*most.unwrap()), "{middle:?}");
    // The loop's code stays.
    assert!(sum(&whole[1].caches[1].misses) < 50, "{:?}", whole[1].caches[1]);
}
