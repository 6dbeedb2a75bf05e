//! Gathering of intervals that are made by hand.

use std::path::PathBuf;

use tempfile::TempDir;

use super::{About, choose, files, profile, thin};
use crate::capture::CaptureError;
use crate::raw::{BUCKETS, End, Interval, Kind, LAYOUT, Signature, Start, Traces, frame};
use crate::test_support::{branchy, streaming};
use crate::{
    LONGEST_FILE, MicroOp, MicroTrace, OpClass, Phase, Profile, ReuseBin, ReuseHistogram, Span,
    to_bytes,
};

/// Writes files of intervals into a folder.
struct Folder {
    dir: TempDir,
    next: u32,
}

impl Folder {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), next: 0 }
    }

    fn add(&mut self, pid: u32, forked: bool, intervals: &[Interval], ended: bool) -> PathBuf {
        let start = Start { layout: LAYOUT, pid, program: format!("/bin/p{pid}"), forked };
        let mut bytes = frame(Kind::Start, &start).unwrap();
        for interval in intervals {
            bytes.extend(interval.frames().unwrap());
        }
        if ended {
            bytes.extend(frame(Kind::End, &End { unmetered_threads: 0 }).unwrap());
        }
        let path = self.dir.path().join(format!("{:06}.raw", self.next));
        self.next += 1;
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn gather(&self) -> Result<Profile, CaptureError> {
        let about = About {
            program: "p".into(),
            command: vec!["p".into(), "-x".into()],
            digest: "d".into(),
            not_followed: Some("the kernel refuses".into()),
        };
        profile(&files(self.dir.path())?, about)
    }
}

fn interval(thread: u32, bucket: usize, of: &Phase) -> Interval {
    let mut phase = of.clone();
    let traces = Traces { traces: std::mem::take(&mut phase.traces) };
    let mut blocks = vec![0; BUCKETS];
    blocks[bucket] = phase.instructions;
    let signature = Signature {
        thread,
        instructions: phase.instructions,
        before_exec: false,
        blocks,
        events: [0; 9],
    };
    Interval { signature, phase, traces, caches: None }
}

#[test]
fn intervals_that_behave_alike_become_one_phase_with_their_sum() {
    let (stream, branch) = (streaming().phases.remove(0), branchy().phases.remove(0));
    let each = stream.instructions;
    let mut folder = Folder::new();
    let order = [0, 0, 1, 0, 1, 1, 0];
    let intervals: Vec<Interval> =
        order.iter().map(|i| interval(0, *i, if *i == 0 { &stream } else { &branch })).collect();
    folder.add(10, false, &intervals, true);
    let profile = folder.gather().unwrap();
    assert_eq!(profile.phases.len(), 2);
    assert_eq!(profile.instructions, 7 * each);
    let span = |phase, count: u64| Span { phase, instructions: count * each };
    assert_eq!(profile.sequence(), [span(0, 2), span(1, 1), span(0, 1), span(1, 2), span(0, 1)]);
    let first = &profile.phases[0];
    assert_eq!(first.mix.count(OpClass::Load), 4 * stream.mix.count(OpClass::Load));
    assert_eq!(first.footprint, stream.footprint);
    assert_eq!(first.data.line_64.curve().misses(100.0), stream.data.line_64.curve().misses(100.0));
    assert!((5..=20).contains(&first.traces.len()));
    assert!(profile.gaps.is_empty());
    assert!(to_bytes(&profile).unwrap().len() <= LONGEST_FILE);
    assert_eq!(profile, folder.gather().unwrap(), "equal files give equal profiles");
}

#[test]
fn each_thread_of_each_process_has_its_sequence_the_longest_first() {
    let stream = streaming().phases.remove(0);
    let part = |thread| interval(thread, 0, &stream);
    let mut folder = Folder::new();
    folder.add(10, false, &[part(0), part(1), part(1)], true);
    folder.add(11, false, &[part(0), part(0), part(0)], true);
    let profile = folder.gather().unwrap();
    let lengths: Vec<(u32, u64)> = profile
        .threads
        .iter()
        .map(|thread| (thread.process, thread.instructions() / stream.instructions))
        .collect();
    assert_eq!(lengths, [(1, 3), (0, 2), (0, 1)]);
    assert_eq!(profile.threads[0].program, "p11");
}

#[test]
fn what_was_not_followed_is_reported() {
    let stream = streaming().phases.remove(0);
    let mut last = interval(0, 0, &stream);
    last.signature.before_exec = true;
    let mut folder = Folder::new();
    // Executed another program, which was followed.
    folder.add(10, false, std::slice::from_ref(&last), false);
    folder.add(10, false, &[interval(0, 0, &stream)], true);
    assert!(folder.gather().unwrap().gaps.is_empty());
    // Executed one that was not.
    folder.add(11, true, std::slice::from_ref(&last), false);
    let gaps = folder.gather().unwrap().gaps;
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].contains("/bin/p11") && gaps[0].contains("the kernel refuses"), "{gaps:?}");
    // Was killed.
    folder.add(12, false, &[interval(0, 0, &stream)], false);
    assert!(folder.gather().unwrap().gaps[1].contains("was killed"));
}

#[test]
fn a_folder_without_intervals_is_an_error() {
    assert!(matches!(Folder::new().gather(), Err(CaptureError::NothingRan)));
}

#[test]
fn a_damaged_file_is_reported_by_its_path() {
    let mut folder = Folder::new();
    let path = folder.add(10, false, &[], true);
    std::fs::write(&path, b"?").unwrap();
    let error = folder.gather().unwrap_err().to_string();
    assert!(error.contains("000000.raw"), "{error}");
}

#[test]
fn a_phase_too_short_for_micro_traces_borrows_some() {
    let stream = streaming().phases.remove(0);
    let mut bare = stream.clone();
    bare.traces.clear();
    bare.instructions /= 2;
    let mut folder = Folder::new();
    folder.add(10, false, &[interval(0, 0, &stream), interval(0, 1, &bare)], true);
    let profile = folder.gather().unwrap();
    assert_eq!(profile.phases.len(), 2);
    assert_eq!(profile.phases[1].traces, profile.phases[0].traces);
}

#[test]
fn micro_traces_are_chosen_evenly() {
    let trace = |length| MicroTrace { ops: vec![MicroOp::plain(OpClass::Load); length] };
    let traces: Vec<MicroTrace> = (1..=24).map(trace).collect();
    let lengths = |most| -> Vec<usize> {
        choose(&traces, most).iter().map(|trace| trace.ops.len()).collect()
    };
    assert_eq!(lengths(8), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(lengths(2), [1, 5]);
    assert_eq!(lengths(12).len(), 12);
    assert_eq!(choose(&traces[..3], 8).len(), 3);
}

#[test]
fn thinning_keeps_ratios() {
    let mut histogram = ReuseHistogram { accesses: 9_000_000, ..ReuseHistogram::default() };
    histogram.add(ReuseBin::of(1), 6_000_000);
    histogram.add(ReuseBin::of(1000), 3_000_000);
    let before = histogram.curve();
    thin(&mut histogram);
    assert!(histogram.sampled() <= 8_192 + 2);
    assert_eq!(histogram.accesses, 9_000_000);
    let after = histogram.curve();
    for t in [0.0, 1.0, 500.0, 2_000.0] {
        assert!((before.survival(t) - after.survival(t)).abs() < 1e-3);
    }
}
