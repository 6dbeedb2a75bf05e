//! Windows of synthetic programs: written, read back, damaged.

use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::chunk::{Kind, append};
use super::*;
use crate::{FromStore, OpClass, Operand};

/// One execution of a block of [`program`].
#[derive(Debug, Clone)]
struct Execution {
    block: usize,
    again: bool,
    accesses: Vec<DataAccess>,
}

fn op(class: OpClass, reads: &[u8], writes: &[u8]) -> StaticOp {
    let bytes = if class.is_memory() { 8 } else { 0 };
    let operand = Operand { bytes, form: 1 };
    StaticOp { class, reads: reads.to_vec(), writes: writes.to_vec(), operand }
}

/// Three blocks: a loop with a load and a store, one that leaves it, and a repeated
/// string instruction.
fn program() -> Vec<Code> {
    let one = |length, ops: &[StaticOp]| StaticInstruction { length, ops: ops.to_vec() };
    let body = [
        one(
            4,
            &[
                op(OpClass::Load, &[3], &[TEMPORARY]),
                op(OpClass::Integer, &[0, TEMPORARY], &[0, FLAGS]),
            ],
        ),
        one(3, &[op(OpClass::Store, &[3, 0], &[])]),
        one(2, &[op(OpClass::Branch, &[FLAGS], &[])]),
    ];
    let out = [
        one(5, &[op(OpClass::FpMultiply, &[16, 17, 0], &[16])]),
        one(1, &[op(OpClass::Branch, &[], &[])]),
    ];
    let string = [one(
        2,
        &[op(OpClass::Load, &[6], &[TEMPORARY]), op(OpClass::Store, &[7, TEMPORARY], &[])],
    )];
    let code = |start, leaves, instructions: &[StaticInstruction]| Code {
        start,
        leaves,
        instructions: instructions.to_vec(),
    };
    vec![
        code(0x40_1000, Leaves::Conditionally, &body),
        code(0x40_1009, Leaves::Return, &out),
        code(0x50_0000, Leaves::Onward, &string),
    ]
}

/// Where execution goes on behind each window.
const AFTER: u64 = 0x60_0000;

fn record(executions: &[Execution], data: &[Line]) -> RawWindow {
    let program = program();
    let mut encoder = WindowEncoder::new(1, 77, data, &[]).unwrap();
    for Execution { block, again, accesses } in executions {
        encoder.executed(10 * block, || program[*block].clone(), *again, accesses).unwrap();
    }
    encoder.finish(Some(AFTER)).unwrap()
}

struct Stored {
    _dir: TempDir,
    path: PathBuf,
}

fn about() -> About {
    let text = |text: &str| text.to_owned();
    let (program, command, digest) = (text("p"), vec![text("p"), text("-x")], text("00"));
    About { program, command, digest, instructions: 5, gaps: vec![text("none")] }
}

fn store(windows: Vec<RawWindow>) -> Stored {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("p.trace");
    let windows = windows.into_iter().map(|raw| Ok((3, 0.5, raw.instructions / 2, raw)));
    write(&path, &about(), windows).unwrap();
    Stored { _dir: dir, path }
}

/// Lines of data and operations of each window.
type Content = Vec<(Vec<Line>, Vec<TraceOp>)>;

fn read(path: &std::path::Path) -> Result<Content, TraceError> {
    let file = TraceFile::open(path)?;
    (0..file.windows().len())
        .map(|index| {
            let window = file.window(index)?;
            Ok((window.data, window.ops.collect::<Result<_, _>>()?))
        })
        .collect()
}

/// What must be read, made the slow way: each register's last writer by looking back.
fn expected(executions: &[Execution]) -> Vec<TraceOp> {
    let program = program();
    let mut ops: Vec<TraceOp> = Vec::new();
    let mut wrote: Vec<Vec<u8>> = Vec::new();
    let mut stored: Vec<Option<u64>> = Vec::new();
    let happened: Vec<&Execution> =
        executions.iter().filter(|one| !one.again || !one.accesses.is_empty()).collect();
    for (place, one) in happened.iter().enumerate() {
        let code = &program[one.block];
        let next = happened.get(place + 1).map_or(AFTER, |next| program[next.block].start);
        let mut at = code.start;
        for (index, instruction) in code.instructions.iter().enumerate() {
            let mut left: Vec<DataAccess> =
                one.accesses.iter().filter(|access| access.instruction == index).copied().collect();
            let mut starts = !one.again;
            let mut push = |class,
                            reads: &[u8],
                            writes: &[u8],
                            address: Option<u64>,
                            known: bool| {
                let known = address.filter(|_| known);
                let overlaps = |stored: &Option<u64>| {
                    stored.zip(known).is_some_and(|(a, b): (u64, u64)| a.abs_diff(b) < 8)
                };
                let source = stored.iter().rposition(overlaps).filter(|_| class == OpClass::Load);
                let from = source.map(|source| FromStore {
                    back: (stored.len() - source) as u16,
                    whole: stored[source] == known,
                    same_form: stored[source] == known,
                });
                stored.push(known.filter(|_| class == OpClass::Store));
                let mut sources: Vec<usize> = reads
                    .iter()
                    .filter_map(|register| wrote.iter().rposition(|wrote| wrote.contains(register)))
                    .map(|writer| ops.len() - writer)
                    .collect();
                sources.sort_unstable();
                sources.dedup();
                sources.resize(2, 0);
                let sources = [sources[0], sources[1]].map(|back| u16::try_from(back).unwrap_or(0));
                let starts_instruction = std::mem::take(&mut starts);
                let length = instruction.length;
                ops.push(TraceOp {
                    class,
                    starts_instruction,
                    sources,
                    stored: from,
                    length,
                    at,
                    address,
                    branch: None,
                });
                wrote.push(writes.to_vec());
            };
            for op in instruction.ops.iter().filter(|_| !one.again) {
                let access = left.iter().position(|access| access.class == op.class);
                let address = access.map(|place| left.remove(place).address);
                let masked = op.class.is_memory() && address.is_none();
                let class = if masked { OpClass::Integer } else { op.class };
                push(class, &op.reads, &op.writes, address, true);
            }
            left.sort_by_key(|access| access.class);
            for access in left {
                let like = instruction.ops.iter().find(|op| op.class == access.class);
                let reads = like.map_or(vec![], |op| op.reads.clone());
                push(access.class, &reads, &[], Some(access.address), false);
            }
            at += u64::from(instruction.length);
        }
        if let Some(kind) = code.leaves.branch() {
            let taken = kind != BranchKind::Conditional || next != at;
            let branch = ops.iter_mut().rfind(|op| op.class == OpClass::Branch);
            branch.unwrap().branch = Some(Branch { kind, taken, next });
        }
    }
    ops
}

fn access(instruction: usize, class: OpClass, address: u64) -> DataAccess {
    DataAccess { instruction, class, address }
}

/// Rounds of the loop over ascending addresses.
fn rounds(count: u64) -> Vec<Execution> {
    let round = |index: u64| {
        let accesses = vec![
            access(0, OpClass::Load, 0x7000 + 8 * index),
            access(1, OpClass::Store, 0x9000_0000 + 64 * (index * index % 1013)),
        ];
        Execution { block: 0, again: false, accesses }
    };
    (0..count).map(round).collect()
}

fn executions() -> impl Strategy<Value = Vec<Execution>> {
    let class = prop_oneof![Just(OpClass::Load), Just(OpClass::Store)];
    let any_access = (0_usize..3, class, any::<u64>());
    let one = (0_usize..3, prop::collection::vec(any_access, 0..5), any::<bool>(), any::<u64>());
    let one = one.prop_map(|(block, accesses, regular, address)| {
        let count = program()[block].instructions.len();
        let odd = accesses.into_iter().map(|(index, class, at)| access(index % count, class, at));
        let mut accesses: Vec<DataAccess> = match (block, regular) {
            (0, true) => vec![
                access(0, OpClass::Load, address),
                access(1, OpClass::Store, address.wrapping_add(8)),
            ],
            _ => odd.collect(),
        };
        accesses.sort_by_key(|access| access.instruction);
        Execution { block, again: false, accesses }
    });
    prop::collection::vec(one, 2..60).prop_map(|mut executions| {
        for place in 1..executions.len() {
            // A string instruction that follows itself goes on.
            if executions[place].block == 2 && executions[place - 1].block == 2 {
                executions[place].again = true;
            }
        }
        executions[0].again = false;
        executions
    })
}

proptest! {
    #[test]
    fn windows_round_trip(executions in executions(), lines in prop::collection::vec((any::<u64>(), any::<bool>()), 0..50)) {
        let data: Vec<Line> =
            lines.into_iter().map(|(line, written)| Line { line: line >> 6, written }).collect();
        let raw = record(&executions, &data);
        prop_assume!(raw.instructions > 1);
        let expected = expected(&executions);
        prop_assert_eq!(raw.ops, expected.len() as u64);
        let stored = store(vec![raw.clone(), raw]);
        let read = read(&stored.path).unwrap();
        prop_assert_eq!(read.len(), 2);
        for (lines, ops) in read {
            prop_assert_eq!(&lines, &data);
            prop_assert_eq!(&ops, &expected);
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), known in any::<bool>()) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("x");
        let start = if known { [&b"SYMBTRAC"[..], &VERSION.to_le_bytes()].concat() } else { vec![] };
        std::fs::write(&path, [start, bytes].concat()).unwrap();
        prop_assert!(read(&path).is_err());
    }

    #[test]
    fn chunks_that_fit_their_checksum_but_make_no_sense_are_refused(
        kinds in prop::collection::vec((prop_oneof![Just(Kind::Lines), Just(Kind::Code), Just(Kind::Events)], prop::collection::vec(any::<u8>(), 1..60)), 1..4),
    ) {
        let mut raw = record(&rounds(4), &[]);
        let mut chunks = Vec::new();
        for (number, (kind, content)) in kinds.iter().enumerate() {
            append(&mut chunks, *kind, number as u32 + 1, content).unwrap();
        }
        raw.chunks = chunks;
        prop_assert!(read(&store(vec![raw]).path).is_err());
    }
}

#[test]
fn what_it_is_of_is_kept() {
    let stored = store(vec![record(&rounds(10), &[])]);
    let file = TraceFile::open(&stored.path).unwrap();
    assert_eq!(*file.about(), about());
    let [info] = file.windows() else { panic!("one window") };
    let (phase, share) = (3, 0.5);
    let (start, instructions, warm_up) = (77, 30, 15);
    let expected = WindowInfo { phase, share, start, warm_up, instructions, ops: 40, after: AFTER };
    assert_eq!(*info, expected);
    assert!(matches!(file.window(1), Err(TraceError::NoWindow { windows: 1, .. })));
    assert!(is_trace(&stored.path).unwrap());
}

#[test]
fn sources_lie_within_the_window() {
    let stored = store(vec![record(&rounds(1000), &[])]);
    for (_, ops) in read(&stored.path).unwrap() {
        for (index, op) in ops.iter().enumerate() {
            assert!(op.sources.iter().all(|back| usize::from(*back) <= index), "{index}: {op:?}");
        }
        // From the second round on, the load's sum needs the sum before.
        assert_eq!(ops[5].sources, [1, 4]);
    }
}

#[test]
fn branches_go_where_execution_goes_on() {
    let mut executions = rounds(100);
    executions.push(Execution { block: 1, again: false, accesses: vec![] });
    executions.extend(rounds(1));
    let stored = store(vec![record(&executions, &[])]);
    let (_, ops) = read(&stored.path).unwrap().remove(0);
    for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.branch.is_some()) {
        let branch = op.branch.unwrap();
        let next = ops.get(index + 1).map_or(AFTER, |next| next.at);
        assert_eq!(branch.next, next);
        assert_eq!(
            branch.taken,
            next != op.at + u64::from(op.length) || branch.kind == BranchKind::Return
        );
    }
    assert_eq!(ops.iter().filter(|op| op.branch.is_some_and(|b| !b.taken)).count(), 1);
}

#[test]
fn long_windows_come_in_many_chunks() {
    let executions = rounds(300_000);
    let raw = record(&executions, &[]);
    let stored = store(vec![raw]);
    let (_, ops) = read(&stored.path).unwrap().remove(0);
    assert_eq!(ops.len(), 4 * executions.len());
    let addresses: Vec<u64> = ops.iter().filter_map(|op| op.address).collect();
    let written: Vec<u64> =
        executions.iter().flat_map(|one| &one.accesses).map(|access| access.address).collect();
    assert_eq!(addresses, written);
    let mut file = std::fs::File::open(&stored.path).unwrap();
    let mut chunks = 0;
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(12)).unwrap();
    while let Ok(head) = chunk::Head::read(&mut file) {
        let content = head.content(&mut file).unwrap();
        assert!(content.len() < 1 << 19, "{}", content.len());
        chunks += 1;
    }
    assert!(chunks > 6, "{chunks}");
}

#[test]
fn damage_anywhere_is_reported() {
    let lines = [Line { line: 5, written: true }, Line { line: 9, written: false }];
    let stored = store(vec![record(&rounds(8), &lines), record(&rounds(9), &[])]);
    let whole = std::fs::read(&stored.path).unwrap();
    assert!(read(&stored.path).is_ok());
    let refused = |bytes: &[u8], what: String| {
        std::fs::write(&stored.path, bytes).unwrap();
        assert!(read(&stored.path).is_err(), "{what}");
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        refused(&bytes, format!("byte {at} changed"));
        refused(&whole[..at], format!("cut at {at}"));
    }
    refused(&[whole.as_slice(), &[0]].concat(), "a byte more".to_owned());
}

#[test]
fn mutations_never_panic() {
    use rand::{Rng, SeedableRng};
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let stored = store(vec![record(&rounds(300), &[Line { line: 5, written: true }])]);
    let whole = std::fs::read(&stored.path).unwrap();
    for _ in 0..1000 {
        let mut bytes = whole.clone();
        for _ in 0..random.random_range(1..8) {
            let at = random.random_range(1..bytes.len().max(2)).min(bytes.len());
            match random.random_range(0..4) {
                0 => bytes[at - 1] = random.random(),
                1 => drop(bytes.drain(
                    at..(at + random.random_range(1..40)).min(whole.len().min(bytes.len())),
                )),
                2 => bytes.insert(at, random.random()),
                _ => bytes.truncate(at),
            }
        }
        std::fs::write(&stored.path, &bytes).unwrap();
        if bytes != whole {
            assert!(read(&stored.path).is_err());
        }
    }
}

#[test]
fn empty_foreign_and_newer_files_are_distinguished() {
    let stored = store(vec![record(&rounds(50), &[])]);
    let mut newer = std::fs::read(&stored.path).unwrap();
    newer[8] += 1;
    let error_of = |bytes: &[u8]| {
        std::fs::write(&stored.path, bytes).unwrap();
        TraceFile::open(&stored.path).unwrap_err()
    };
    assert!(matches!(error_of(b""), TraceError::Empty { .. }));
    assert!(matches!(error_of(b"SYMBPROF and more"), TraceError::NotATrace { .. }));
    assert!(matches!(error_of(b"SYM"), TraceError::NotATrace { .. }));
    let error = error_of(&newer);
    assert!(matches!(error, TraceError::Version { version, .. } if version == VERSION + 1));
    assert!(error.to_string().contains("symbiont profile --trace"), "{error}");
    assert!(
        TraceFile::open("/nowhere/x".as_ref())
            .unwrap_err()
            .to_string()
            .starts_with("/nowhere/x: cannot read")
    );
}

#[test]
fn a_window_that_is_all_warm_up_is_not_written() {
    let raw = record(&rounds(2), &[]);
    let dir = TempDir::new().unwrap();
    let windows = [Ok((0, 1.0, raw.instructions, raw))];
    let error = write(&dir.path().join("x"), &about(), windows.into_iter()).unwrap_err();
    assert!(matches!(error, TraceError::Unusable { .. }), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
