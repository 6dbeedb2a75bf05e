use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use symbiont_machine::test_support::{FakeMachine, thread};
use symbiont_machine::{
    Ability, Assignment, Change, CoreCookie, CountedGroup, Counting, Ended, GroupCounts,
    GroupReading, Lifecycle, Machine, Move, Outcome, Placement, Priority, Program, ProgramId,
    RunState, Sample, Signal, Target, ThreadSample, Timestamp,
};
use symbiont_topology::{CpuSet, PuId, Topology};

use super::*;

fn header() -> Header {
    let mut machine = FakeMachine::new(Topology::synthetic("core:2 smt:2").unwrap());
    machine.support.signals.retain(|signal, _| !signal.is_counted());
    Header {
        topology: machine.topology().clone(),
        support: machine.support().clone(),
        policy: "phases".into(),
        quantum: Duration::from_millis(20),
        programs: vec![Program::new(ProgramId(0), "make")],
        processor: None,
    }
}

/// A quantum with a thread on cpu 0.
fn quantum(at: u64) -> Quantum {
    let t = thread(0, 7, &"0-3".parse().unwrap());
    let target = Target::Cpus("0".parse().unwrap());
    let assignment = Assignment { target: target.clone(), ..Assignment::os("a core of its own") };
    Quantum {
        moves: vec![(Move { thread: t.id, change: Change::Affinity(target) }, Outcome::Done)],
        placement: Placement::from([(t.id, assignment)]),
        sample: Sample {
            at: Timestamp(at),
            threads: vec![t],
            programs: header().programs,
            ..Sample::default()
        },
    }
}

fn write(header: &Header, quanta: &[Quantum]) -> Vec<u8> {
    let mut recorder = Recorder::new(Vec::new(), "test", header).unwrap();
    for q in quanta {
        let moves = q.moves.iter().map(|(m, o)| (m, o));
        recorder.record(&q.sample, &q.placement, moves).unwrap();
    }
    recorder.into_inner()
}

fn read(bytes: &[u8]) -> Result<(Vec<Quantum>, Option<usize>), TraceError> {
    let mut reader = Reader::new(bytes, "test")?;
    let mut quanta = Vec::new();
    while let Some(q) = reader.next_quantum()? {
        quanta.push(q);
    }
    Ok((quanta, reader.truncated()))
}

fn three() -> Vec<Quantum> {
    [10, 20, 30].map(quantum).to_vec()
}

/// A recording with this text for one of its lines (counted from 1).
fn with_line(line: usize, text: &str) -> Vec<u8> {
    let whole = String::from_utf8(write(&header(), &three())).unwrap();
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[line - 1] = text;
    (lines.join("\n") + "\n").into_bytes()
}

fn message(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn a_replay_gives_the_recorded_samples_and_ends() {
    let bytes = write(&header(), &three());
    let mut replay = Replay::new(Reader::new(&bytes[..], "test").unwrap());
    assert_eq!(replay.topology(), &header().topology);
    assert_eq!(replay.header(), &header());
    for q in three() {
        assert!(!replay.ended());
        assert_eq!(replay.sample().unwrap(), q.sample);
        assert_eq!(replay.recorded(), Some(&q));
        replay.wait(Duration::from_secs(3600)).unwrap();
    }
    assert!(replay.ended());
    let end = replay.sample().unwrap_err();
    assert!(matches!(end, TraceError::Ended { .. }));
    assert_eq!(end.to_string(), "test: the recording ends after 3 quanta");
}

#[test]
fn a_replay_carries_out_nothing() {
    let bytes = write(&header(), &three());
    let mut replay = Replay::new(Reader::new(&bytes[..], "test").unwrap());
    let moves: Vec<Move> = quantum(0).moves.into_iter().map(|(m, _)| m).collect();
    assert_eq!(replay.apply(&moves).unwrap(), [Outcome::NotEnforced]);
    assert_eq!(replay.support(), &header().support);
}

#[test]
fn a_file_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let mut recorder = Recorder::create(&path, &header()).unwrap();
    recorder.record(&quantum(5).sample, &Placement::new(), []).unwrap();
    let mut replay = Replay::open(&path).unwrap();
    assert_eq!(replay.sample().unwrap(), quantum(5).sample);
    assert!(replay.ended());

    let lost = folder.path().join("nowhere").join("run.jsonl");
    let error = Replay::open(&lost).unwrap_err().to_string();
    assert!(error.contains("run.jsonl: cannot open the recording: "), "{error}");
    let error = Recorder::create(&lost, &header()).unwrap_err().to_string();
    assert!(error.contains("run.jsonl: cannot create the recording: "), "{error}");
}

#[test]
fn a_half_line_at_the_end_is_left_out_and_reported() {
    let bytes = write(&header(), &three());
    let (quanta, truncated) = read(&bytes[..bytes.len() - 10]).unwrap();
    assert_eq!((quanta, truncated), (three()[..2].to_vec(), Some(4)));
    // Only the end of the line is missing: nothing is lost.
    let (quanta, truncated) = read(&bytes[..bytes.len() - 1]).unwrap();
    assert_eq!((quanta, truncated), (three(), None));
}

#[test]
fn a_damaged_line_is_reported_by_its_number() {
    let error = message(&with_line(3, "{\"at\":[]}"));
    assert!(error.starts_with("test, line 3: damaged: invalid type: sequence"), "{error}");
    let error = message(&with_line(4, ""));
    assert!(error.starts_with("test, line 4: damaged: "), "{error}");
    // Lines before the damage are replayed; the replay fails, and ends, there.
    let bytes = with_line(3, "oops");
    let mut replay = Replay::new(Reader::new(&bytes[..], "test").unwrap());
    assert!(replay.sample().is_ok() && !replay.ended());
    assert!(matches!(replay.sample(), Err(TraceError::Damaged { line: 3, .. })));
    assert!(replay.ended());
}

#[test]
fn contradictions_are_damage() {
    let error = message(&write(&header(), &[quantum(20), quantum(10)]));
    assert_eq!(error, "test, line 3: damaged: time runs backwards, from 20 ns to 10 ns");
    let stranger = "{\"at\":20,\"gone\":[[1,2,0,0]]}";
    assert_eq!(
        message(&with_line(3, stranger)),
        "test, line 3: damaged: thread 2 of process 1 is gone before it was there"
    );
}

#[test]
fn what_stays_as_it_was_is_not_written_again() {
    let mut second = quantum(20);
    second.moves.clear();
    let text = String::from_utf8(write(&header(), &[quantum(10), second])).unwrap();
    assert_eq!(text.lines().last(), Some("{\"at\":20}"));
}

#[test]
fn a_thread_may_be_placed_and_not_sampled_or_sampled_and_not_placed() {
    let mut ghost = quantum(20);
    ghost.sample.threads.clear();
    let mut unplaced = quantum(30);
    unplaced.placement.clear();
    let quanta = vec![quantum(10), ghost, unplaced, quantum(40)];
    assert_eq!(read(&write(&header(), &quanta)).unwrap().0, quanta);
}

#[test]
fn other_files_are_refused_with_a_reason() {
    assert_eq!(message(b""), "test: the recording is empty");
    for foreign in [&b"\x7fELF\x02\x01\0\0"[..], b"hello\nworld\n", b"[1,2]\n", b"{\"a\":1}\n"] {
        let error = message(foreign);
        assert!(error.starts_with("test: this is not a recording that Symbiont made: "), "{error}");
    }
    let error = message(b"{\"format\":\"CSV\",\"version\":1}\n");
    assert!(error.ends_with("it calls itself 'CSV'"), "{error}");
}

#[test]
fn a_newer_version_is_refused_before_its_header_is_read() {
    let newer = b"{\"format\":\"symbiont recording\",\"version\":9,\"topology\":\"?\"}\n";
    assert_eq!(
        message(newer),
        "test: the recording has format version 9, this program reads versions 1 to 2; read it with \
         the Symbiont that made it, or a newer one"
    );
    let damaged = b"{\"format\":\"symbiont recording\",\"version\":1,\"topology\":\"?\"}\n";
    assert!(message(damaged).starts_with("test, line 1: damaged: "));
}

#[test]
fn a_full_disk_is_reported() {
    #[derive(Debug)]
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = Recorder::new(Full, "test", &header()).unwrap_err().to_string();
    assert!(error.starts_with("test: cannot write the recording: "), "{error}");
}

/// Compares with `golden/version-1.jsonl`; with `UPDATE_GOLDEN=1` writes it.
#[test]
fn version_1_is_written_as_ever() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/version-1.jsonl");
    let mut second = quantum(20_000_000);
    second.sample.threads[0].state = RunState::Runnable;
    second.sample.threads[0].run_time = Duration::from_micros(1500);
    let id = second.sample.threads[0].id;
    let boost = Move { thread: id, change: Change::Priority(Priority::Boosted(10)) };
    let refused = Outcome::Refused("no permission to raise priority".into());
    second.moves = vec![(boost, refused)];
    second.placement = Placement::from([(
        id,
        Assignment { predicted_slowdown: Some(1.25), ..Assignment::os("left to the OS") },
    )]);
    let quanta = [quantum(0), second];
    let bytes = write(&header(), &quanta);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &bytes).unwrap();
    }
    let golden = std::fs::read(path).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&golden),
        String::from_utf8_lossy(&bytes),
        "the format changed; if that is meant, raise VERSION or run with UPDATE_GOLDEN=1"
    );
    assert_eq!(read(&golden).unwrap(), (quanta.to_vec(), None));
}

/// Two quanta of a machine that counts.
fn counted() -> (Header, Vec<Quantum>) {
    let mut header = header();
    header.support.signals.insert(Signal::Ipc, Ability::Partial("for most threads".into()));
    let group = CountedGroup { name: "stack".into(), events: vec!["CYC".into(), "INS".into()] };
    let counting = Arc::new(Counting {
        catalogue: "toy".into(),
        text: "name = \"toy\"\n".into(),
        signals: [Signal::Ipc].into(),
        groups: vec![group],
        refused: [("STALL".into(), "unknown here".into())].into(),
    });
    let reading = |enabled: u64, counts: [u64; 2]| GroupReading {
        opened: Timestamp(3),
        enabled: Duration::from_nanos(enabled),
        running: Duration::from_nanos(enabled / 2),
        counts: counts.to_vec(),
    };
    let mut first = quantum(10);
    first.sample.counting = Some(Arc::clone(&counting));
    first.sample.threads[0].counts = vec![Err("just born".into())];
    let mut second = quantum(20);
    second.sample.counting = Some(counting);
    second.sample.threads[0].counts = vec![Ok(reading(400, [100, u64::MAX]))];
    second.sample.ended = vec![Ended {
        id: thread(0, 8, &CpuSet::new()).id,
        program: ProgramId(0),
        counts: vec![Ok(reading(40, [10, 5]))],
    }];
    (header, vec![first, second])
}

/// Compares with `golden/version-2.jsonl`; with `UPDATE_GOLDEN=1` writes it.
#[test]
fn version_2_is_written_as_ever() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/version-2.jsonl");
    let (header, quanta) = counted();
    let bytes = write(&header, &quanta);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &bytes).unwrap();
    }
    let golden = std::fs::read(path).unwrap();
    assert_eq!(String::from_utf8_lossy(&golden), String::from_utf8_lossy(&bytes));
    assert_eq!(read(&golden).unwrap(), (quanta, None));
}

#[test]
fn counting_is_written_when_it_changes() {
    let (header, mut quanta) = counted();
    let mut third = quantum(30);
    third.sample.threads[0].counts.clear();
    quanta.push(third);
    let bytes = write(&header, &quanta);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let listed: Vec<bool> = text.lines().skip(1).map(|line| line.contains("counting")).collect();
    assert_eq!(listed, [true, false, true]);
    assert_eq!(read(&bytes).unwrap().0, quanta);
}

fn group_counts() -> impl Strategy<Value = GroupCounts> {
    prop_oneof![
        ".{0,9}".prop_map(|why| Err(why.into())),
        (any::<[u64; 3]>(), prop::collection::vec(any::<u64>(), 0..4)).prop_map(
            |(times, counts)| {
                let [opened, enabled, running] = times;
                Ok(GroupReading {
                    opened: Timestamp(opened),
                    enabled: Duration::from_nanos(enabled),
                    running: Duration::from_nanos(running),
                    counts,
                })
            }
        ),
    ]
}

fn counting() -> impl Strategy<Value = Option<Arc<Counting>>> {
    let some = ("[a-z]{0,3}", ".{0,9}").prop_map(|(catalogue, text)| {
        Arc::new(Counting { catalogue, text, ..Counting::default() })
    });
    prop::option::of(some)
}

fn cpus() -> impl Strategy<Value = CpuSet> {
    prop::collection::vec(0u32..200, 1..5).prop_map(|list| list.into_iter().map(PuId).collect())
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![Just(Target::Os), cpus().prop_map(Target::Cpus)]
}

fn assignment() -> impl Strategy<Value = Assignment> {
    let slowdown = prop::option::of(prop::num::f64::NORMAL | prop::num::f64::ZERO);
    let all = (target(), target(), ".{0,20}", slowdown);
    all.prop_map(|(target, mask, reason, predicted_slowdown)| Assignment {
        own_cores: predicted_slowdown.is_some(),
        mask,
        target,
        priority: Priority::Idle,
        reason: Cow::Owned(reason),
        predicted_slowdown,
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Gone),
        Just(Outcome::ExternallyChanged),
        ".{0,20}".prop_map(Outcome::Refused),
        Just(Outcome::NotEnforced),
    ]
}

fn lifecycle() -> impl Strategy<Value = Lifecycle> {
    prop_oneof![Just(Lifecycle::Fresh), Just(Lifecycle::Starting), Just(Lifecycle::Settled)]
}

fn any_quantum() -> impl Strategy<Value = Quantum> {
    let counts = || prop::collection::vec(group_counts(), 0..3);
    let bare = (cpus(), any::<[u64; 3]>(), lifecycle(), prop::option::of(0u32..9), counts());
    let moves = prop::collection::vec((target(), outcome()), 0..4);
    let placed = prop::collection::vec(assignment(), 0..5);
    let counted = (counting(), prop::collection::vec(counts(), 0..3));
    (prop::collection::vec(bare, 0..5), placed, moves, ".{0,9}", counted).prop_map(
        |(list, placed, moves, name, (counting, ended))| {
            let threads: Vec<ThreadSample> = (0u32..)
                .zip(list)
                .map(|(number, (allowed, times, lifecycle, cpu, counts))| ThreadSample {
                    run_time: Duration::from_nanos(times[0]),
                    wait_time: Duration::from_nanos(times[1]),
                    switches: times[2],
                    counts,
                    cpu: cpu.map(PuId),
                    lifecycle,
                    cookie: CoreCookie::new(times[2] % 3),
                    ..thread(number / 2, number, &allowed)
                })
                .collect();
            let id = |number: u32| thread(0, number, &CpuSet::new()).id;
            let ended = (0u32..).zip(ended);
            let ended = ended.map(|(n, counts)| Ended { id: id(n), program: ProgramId(0), counts });
            Quantum {
                sample: Sample {
                    at: Timestamp(0),
                    threads,
                    programs: vec![Program::new(ProgramId(0), name)],
                    counting,
                    ended: ended.collect(),
                },
                placement: (0u32..).zip(placed).map(|(n, a)| (id(n), a)).collect(),
                moves: (0u32..)
                    .zip(moves)
                    .map(|(n, (to, o))| (Move { thread: id(n), change: Change::Affinity(to) }, o))
                    .collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn recordings_round_trip(quanta in prop::collection::vec(any_quantum(), 0..4), step: u32) {
        let quanta: Vec<Quantum> = (0u64..)
            .zip(quanta)
            .map(|(n, mut q)| {
                q.sample.at = Timestamp(n * u64::from(step));
                q
            })
            .collect();
        prop_assert_eq!(read(&write(&header(), &quanta)).unwrap(), (quanta, None));
    }

    #[test]
    fn damage_anywhere_is_an_error_or_harmless(at: prop::sample::Index, byte: u8, cut: bool) {
        let mut bytes = write(&header(), &three());
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(if cut { at } else { bytes.len() });
        if let Err(error) = read(&bytes) {
            prop_assert!(error.to_string().starts_with("test"));
        }
    }

    #[test]
    fn any_file_is_read_or_refused_without_panic(bytes: Vec<u8>) {
        let _ = read(&bytes);
    }
}
