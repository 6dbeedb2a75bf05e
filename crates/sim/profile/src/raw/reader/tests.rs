//! Files of intervals: whole, torn, foreign.

use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::RawFile;
use crate::raw::{BUCKETS, End, Interval, Kind, LAYOUT, Signature, Start, Traces, frame};
use crate::{MicroOp, MicroTrace, OpClass, Phase};

fn interval(thread: u32, instructions: u64, before_exec: bool) -> Interval {
    Interval {
        signature: Signature {
            thread,
            instructions,
            before_exec,
            blocks: vec![1; BUCKETS],
            events: [0; 9],
        },
        phase: Phase { instructions, ..Phase::default() },
        traces: Traces { traces: vec![MicroTrace { ops: vec![MicroOp::plain(OpClass::Load); 3] }] },
        caches: None,
    }
}

fn start(layout: u32) -> Vec<u8> {
    let start = Start { layout, pid: 7, program: "/bin/true".into(), forked: false };
    frame(Kind::Start, &start).unwrap()
}

fn written(parts: &[Vec<u8>]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("000000.raw");
    std::fs::write(&path, parts.concat()).unwrap();
    (dir, path)
}

#[test]
fn intervals_are_read_back() {
    let intervals = [interval(0, 10, false), interval(1, 20, false)];
    let mut parts = vec![start(LAYOUT)];
    parts.extend(intervals.iter().map(|interval| interval.frames().unwrap()));
    parts.push(frame(Kind::End, &End { unmetered_threads: 2 }).unwrap());
    let (_dir, path) = written(&parts);
    let file = RawFile::open(&path).unwrap();
    assert_eq!(file.start.program, "/bin/true");
    assert_eq!(file.end, Some(End { unmetered_threads: 2 }));
    assert_eq!(file.intervals.len(), 2);
    for (at, interval) in file.intervals.iter().zip(&intervals) {
        assert_eq!(at.signature, interval.signature);
        assert_eq!(file.phase(at).unwrap(), interval.phase);
        assert_eq!(file.traces(at).unwrap(), interval.traces.traces);
    }
}

#[test]
fn an_interval_before_a_failed_execution_counts_once() {
    let intervals = [
        interval(0, 10, true),
        interval(1, 5, false),
        interval(0, 11, true),
        interval(0, 50, false),
        interval(0, 3, true),
    ];
    let mut parts = vec![start(LAYOUT)];
    parts.extend(intervals.iter().map(|interval| interval.frames().unwrap()));
    let (_dir, path) = written(&parts);
    let file = RawFile::open(&path).unwrap();
    let kept: Vec<u64> = file.intervals.iter().map(|at| at.signature.instructions).collect();
    assert_eq!(kept, [5, 50, 3]);
    assert!(file.executed_another());
}

#[test]
fn a_plugin_of_another_version_is_reported() {
    let (_dir, path) = written(&[start(LAYOUT + 1)]);
    assert!(RawFile::open(&path).unwrap_err().to_string().contains("another version"));
}

proptest! {
    #[test]
    fn a_torn_end_loses_at_most_one_interval(cut in 0_usize..600) {
        let whole = [start(LAYOUT), interval(0, 1, false).frames().unwrap(), interval(0, 2, false).frames().unwrap()];
        let all = whole.concat();
        let cut = cut.min(all.len());
        let (_dir, path) = written(&[all[..cut].to_vec()]);
        let behind = |frames: usize| cut >= whole[..frames].concat().len();
        match RawFile::open(&path) {
            Ok(file) => {
                let expected = usize::from(behind(2)) + usize::from(behind(3));
                prop_assert_eq!(file.intervals.len(), expected);
            }
            Err(_) => prop_assert!(!behind(1)),
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (_dir, path) = written(&[start(LAYOUT), bytes]);
        if let Ok(file) = RawFile::open(&path) {
            for at in &file.intervals {
                let _ = (file.phase(at), file.traces(at));
            }
        }
    }
}
