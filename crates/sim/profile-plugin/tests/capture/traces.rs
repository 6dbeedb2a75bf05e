//! Windows of instruction traces.

use std::ffi::OsString;

use symbiont_profile::capture::{CaptureError, Windows};
use symbiont_profile::trace::{BranchKind, TraceFile, TraceOp};
use symbiont_profile::{OpClass, Profile};

use crate::or_skip;
use crate::support::{Built, build, capture, profile, text};

/// Sweeps over 4,096 lines, with a load of each and a store every fourth time.
pub fn sweep() -> Built {
    build(
        r#"static volatile char lines[4096 * 64];
        int main(void) {
            for (int round = 0; round < 200; round++)
                for (int line = 0; line < 4096; line++) {
                    (void)lines[line * 64];
                    if (line % 4 == 0) lines[line * 64] = 1;
                }
            return 0;
        }"#,
    )
}

const WINDOWS: Windows =
    Windows { most: 1, warm_up: 10_000, instructions: 50_000, continuous: false };

#[test]
fn a_trace_is_of_what_the_program_does() {
    or_skip!();
    let built = sweep();
    let profile = profile(&[text(&built.program)]);
    let dir = tempfile::tempdir().unwrap();
    let words = [OsString::from(text(&built.program))];
    let made = |name: &str| {
        let path = dir.path().join(name);
        let about = capture(&words).trace(&profile, WINDOWS, &path, |_| {}).unwrap();
        assert_eq!(about.gaps, Vec::<String>::new());
        path
    };
    let path = made("a.trace");
    let file = TraceFile::open(&path).unwrap();
    let [info] = file.windows() else { panic!("one window, not {:?}", file.windows()) };
    assert!((60_000..60_100).contains(&info.instructions), "{info:?}");
    assert_eq!(info.warm_up, 10_000);
    assert!(info.start > 1_000_000 && info.share > 0.5, "{info:?}");
    let window = file.window(0).unwrap();
    let ops: Vec<TraceOp> = window.ops.map(Result::unwrap).collect();
    let starts = ops.iter().filter(|op| op.starts_instruction).count();
    assert_eq!(starts as u64, info.instructions);
    assert_eq!(ops.len() as u64, info.ops);
    // The sweep's loads go from line to line.
    let loads: Vec<u64> = ops
        .iter()
        .filter(|op| op.class == OpClass::Load)
        .filter_map(|op| op.address)
        .map(|address| address / 64)
        .collect();
    let next = loads.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!(next as f64 > 0.99 * loads.len() as f64, "{next} of {}", loads.len());
    // What the sweep will access next was used longest ago of all its lines.
    let place = |line: u64| window.data.iter().position(|known| known.line == line);
    let places: Option<Vec<usize>> = loads[..100].iter().map(|line| place(*line)).collect();
    assert!(places.unwrap().is_sorted());
    // Every fourth of them was written.
    let (first, last) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
    let swept = window.data.iter().filter(|line| (first..=last).contains(&&line.line));
    let written = swept.filter(|line| line.written).count();
    assert!((1_024..1_100).contains(&written), "{written}");
    // Execution goes on where a branch or an instruction's length says.
    for pair in ops.windows(2).filter(|pair| pair[1].starts_instruction) {
        let behind = pair[0].at + u64::from(pair[0].length);
        let next = pair[0].branch.map_or(behind, |branch| branch.next);
        assert_eq!(pair[1].at, next, "{pair:?}");
    }
    let conditional = ops.iter().filter_map(|op| op.branch);
    let conditional = conditional.filter(|branch| branch.kind == BranchKind::Conditional);
    let (taken, not): (Vec<_>, Vec<_>) = conditional.partition(|branch| branch.taken);
    assert!(!taken.is_empty() && !not.is_empty());
    assert!(std::fs::read(path).unwrap() == std::fs::read(made("b.trace")).unwrap());
}

#[test]
fn a_profile_of_another_program_is_refused() {
    or_skip!();
    let built = sweep();
    let profile = Profile { digest: "00".to_owned(), ..profile(&[text(&built.program)]) };
    let words = [OsString::from(text(&built.program))];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.trace");
    let error = capture(&words).trace(&profile, WINDOWS, &path, |_| {}).unwrap_err();
    assert!(matches!(error, CaptureError::OtherProgram { .. }), "{error}");
    assert!(!path.exists());
}
