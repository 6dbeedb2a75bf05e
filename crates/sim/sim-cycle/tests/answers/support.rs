//! A plain machine: width 4, 1 GHz, so that a cycle is a nanosecond.

use symbiont_profile::OpClass;
use symbiont_sim_cycle::{Chip, CoreSlot, Counts, CycleOptions, Op, Stream};
use symbiont_sim_fast::description::{CoreType, Description, Port, SmtRule, Structure};
use symbiont_topology::CoreId;

pub const WIDTH: u64 = 4;
pub const REFILL: u64 = 10;
pub const L1: u64 = 4;
pub const L2: u64 = 12;
pub const MEMORY: u64 = 100;
pub const MULTIPLY: u64 = 3;
/// Where data begin; code is at 0.
pub const DATA: u64 = 1 << 32;
pub const DIVIDE: u64 = 20;

pub const OPTIONS: CycleOptions = CycleOptions { prefetching: false, private_caches: false };

pub fn shared(entries: u32) -> Structure {
    Structure { entries, smt: SmtRule::Shared }
}

pub fn partitioned(entries: u32) -> Structure {
    Structure { entries, smt: SmtRule::Partitioned }
}

/// The machine, changed.
pub fn machine(change: impl FnOnce(&mut Description, &mut CoreType)) -> Description {
    let mut machine = Description::named("xeon-e5-2620v4").unwrap();
    let mut core_type = machine.core_types[0].clone();
    core_type.ghz = 1.0;
    core_type.dispatch = WIDTH as u32;
    core_type.retire = WIDTH as u32;
    core_type.fetch = WIDTH as u32;
    (core_type.group_branches, core_type.halves_from) = (None, None);
    core_type.refill = REFILL as u32;
    core_type.mispredicts = 1.0;
    core_type.rob = shared(512);
    core_type.iq = shared(256);
    core_type.lq = shared(256);
    core_type.sq = shared(256);
    core_type.mshrs = shared(64);
    let port = |does: &[OpClass]| Port { does: does.to_vec(), private: false };
    let mut ports = vec![port(&[OpClass::Load]); 4];
    ports.push(port(&[OpClass::Store]));
    ports.push(port(&[OpClass::FpAdd]));
    ports.push(port(&[OpClass::Multiply, OpClass::Divide]));
    ports.extend(vec![port(&[OpClass::Integer, OpClass::Branch]); 4]);
    core_type.ports = ports;
    core_type.latency.integer = 1;
    core_type.latency.multiply = MULTIPLY as u32;
    core_type.latency.divide = DIVIDE as u32;
    core_type.latency.fp_add = 3;
    core_type.l1d.latency = L1 as u32;
    core_type.l2.latency = L2 as u32;
    core_type.l3 = None;
    core_type.tlb.second = None;
    core_type.tlb.walk = 0;
    machine.memory.latency_ns = MEMORY as f64;
    machine.memory.read_gbps = 1e9;
    machine.memory.write_gbps = 1e9;
    machine.memory.total_gbps = 1e9;
    change(&mut machine, &mut core_type);
    machine.core_types[0] = core_type;
    machine
}

pub fn plain() -> Description {
    machine(|_, _| {})
}

pub fn stream(ops: impl Iterator<Item = Op> + Send + 'static) -> Stream<'static> {
    Box::new(ops)
}

/// `count` of the same.
pub fn repeat(op: Op, count: u64) -> Stream<'static> {
    stream((0..count).map(move |_| op))
}

/// `count` of a class, each needs the one before.
pub fn chain(class: OpClass, count: u64) -> Stream<'static> {
    repeat(Op { sources: [1, 0], ..Op::plain(class) }, count)
}

/// `count` independent loads, each of another line.
pub fn scattered_loads(count: u64) -> Stream<'static> {
    stream((0..count).map(move |n| Op::memory(OpClass::Load, DATA + 64 * n)))
}

/// Threads of one core, with their code in the cache.
pub fn chip(
    machine: &Description,
    streams: Vec<Stream<'static>>,
    options: &CycleOptions,
) -> Chip<'static> {
    let mode = streams.len() as u32;
    let slot = |stream| CoreSlot { core: CoreId(0), mode, home: 0, stream };
    let slots: Vec<_> = streams.into_iter().map(slot).collect();
    let users = slots.len();
    let mut chip = Chip::new(machine, slots, options).unwrap();
    for user in 0..users {
        chip.levels_mut().warm_code(user, 0);
    }
    chip
}

/// Lets them run to their end, which comes before a million cycles.
pub fn finish(chip: &mut Chip<'static>) -> Vec<Counts> {
    assert!(!chip.run_until(1e6), "it did not end");
    (0..chip.slots()).map(|slot| chip.counts(slot)).collect()
}

pub fn run(machine: &Description, streams: Vec<Stream<'static>>) -> Vec<Counts> {
    finish(&mut chip(machine, streams, &OPTIONS))
}

/// The cycle in which a single thread's last operation retires.
pub fn end(machine: &Description, stream: Stream<'static>) -> u64 {
    run(machine, vec![stream])[0].last_retired
}
