//! lmbench and STREAM on a simulated machine: what its memory looks like from
//! each NUMA node (Feliu et al., section 5.1, Fig. 4 and Table 2).
//!
//! *Latency*: one thread follows pointers through an array in random order, each
//! load of another 128-byte block; the time of a load. *Bandwidth*: one thread on
//! each core of a node runs a kernel of STREAM over arrays larger than any cache;
//! bytes are counted as STREAM does, what the kernel reads and writes, not what
//! memory moves for it (lines that are written are read first).

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use symbiont_machine::Machine;
use symbiont_profile::observe::{ObservedOp, Observer};
use symbiont_profile::test_support::synthetic;
use symbiont_profile::{
    Access, Footprint, MicroOp, MicroTrace, OpClass, Phase, Profile, ReuseBin, ReuseHistogram,
};
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::description::{Description, Source};
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, SimError, SimMachine, SimOptions};
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_topology::{CpuSet, NumaNode};

use super::{Provenance, Setup};

/// Bytes between two loads of the pointer chase.
const STRIDE: u64 = 128;
/// Simulated time of one measurement.
const TIME: Duration = Duration::from_millis(200);
/// Bytes that a load or store of STREAM moves.
const WIDTH: u64 = 16;

/// What a machine's memory looks like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// What it rests on.
    pub provenance: Provenance,
    /// Latency by array size, from each node.
    pub latency: Vec<Latency>,
    /// Bandwidth by kernel, from each node.
    pub bandwidth: Vec<Bandwidth>,
    /// Values of the description that were published, with their sources: what was measured gives them
    /// back, and confirms nothing.
    pub inputs: Vec<(String, String)>,
}

/// Latency of a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// The array, bytes.
    pub bytes: u64,
    /// Nanoseconds from a core of each node that has cores.
    pub ns: Vec<f64>,
}

/// Bandwidth of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bandwidth {
    /// The kernel.
    pub kernel: &'static str,
    /// 10⁹ bytes/s of the cores of each node that has cores.
    pub gbps: Vec<f64>,
}

/// A kernel of STREAM: its name, arrays that it reads, what it computes.
type Kernel = (&'static str, u64, Option<OpClass>);

const KERNELS: [Kernel; 4] = [
    ("Copy", 1, None),
    ("Scale", 1, Some(OpClass::FpMultiply)),
    ("Add", 2, Some(OpClass::FpAdd)),
    ("Triad", 2, Some(OpClass::FpFma)),
];

/// Measures from each node that has cores; memory is on the first node that has
/// any.
///
/// # Errors
/// When the machine cannot run these programs, which no description brings about.
pub fn measure(description: &Description, sizes: &[u64]) -> Result<Memory, SimError<PrepareError>> {
    let chases: Vec<Profile> = sizes.iter().map(|bytes| chase(*bytes)).collect();
    let kernels: Vec<Profile> = KERNELS.iter().map(stream).collect();
    let builder = TableBuilder::new(description.clone());
    let nodes: Vec<&NumaNode> =
        description.topology.nodes().iter().filter(|node| !node.cpus.is_empty()).collect();
    // One hardware thread of each core.
    let cores: CpuSet =
        description.topology.cores().iter().filter_map(|core| core.cpus.first()).collect();
    let mut latency = Vec::new();
    for (profile, bytes) in chases.iter().zip(sizes) {
        let one = |node: &&NumaNode| {
            let first: CpuSet = node.cpus.first().into_iter().collect();
            speed(&builder, profile, &first).map(|speed| 1.0 / speed)
        };
        latency
            .push(Latency { bytes: *bytes, ns: nodes.iter().map(one).collect::<Result<_, _>>()? });
    }
    let mut bandwidth = Vec::new();
    for (profile, (kernel, ..)) in kernels.iter().zip(KERNELS) {
        let accesses = profile.phases.first().map_or(0.0, |p| p.per_instruction(p.mix.memory()));
        let all = |node: &&NumaNode| {
            let cpus = node.cpus.intersection(&cores);
            speed(&builder, profile, &cpus).map(|speed| speed * accesses * WIDTH as f64)
        };
        let gbps = nodes.iter().map(all).collect::<Result<_, _>>()?;
        bandwidth.push(Bandwidth { kernel, gbps });
    }
    // Nothing was counted.
    let setup = Setup { errors: Errors::NONE, ..Setup::default() };
    let provenance = Provenance::new(description, &setup);
    Ok(Memory { provenance, latency, bandwidth, inputs: inputs(description) })
}

/// What the description took from elsewhere of its memory.
fn inputs(description: &Description) -> Vec<(String, String)> {
    let published = description.values.iter().filter_map(|(key, given)| match &given.source {
        Source::Published(place) => Some((key.clone(), place.clone())),
        Source::Assumed(_) => None,
    });
    published.filter(|(key, _)| key.starts_with("memory.")).collect()
}

/// Instructions per nanosecond of all hardware threads of a set together.
fn speed<'p>(
    builder: &TableBuilder<'p>,
    profile: &'p Profile,
    cpus: &CpuSet,
) -> Result<f64, SimError<PrepareError>> {
    let program = || SimProgram {
        name: profile.program.clone(),
        profile,
        shape: Shape::Single,
        target: None,
    };
    let programs: Vec<SimProgram<'_>> = cpus.iter().map(|_| program()).collect();
    let count = programs.len();
    let options = SimOptions {
        seed: 1,
        errors: Errors::NONE,
        allowed: Some(cpus.clone()),
        one_memory: true,
        ..SimOptions::default()
    };
    let fast = builder.fast(Switches::default());
    let mut machine = SimMachine::new(builder.description(), fast, programs, &[], options)?;
    // The caches fill first.
    machine.wait(TIME)?;
    let retired = |machine: &SimMachine<'_, _>| -> f64 {
        (0..count).filter_map(|slot| machine.retired(slot)).sum()
    };
    let before = retired(&machine);
    machine.wait(TIME)?;
    Ok((retired(&machine) - before) / TIME.as_nanos() as f64)
}

/// Follows pointers through an array in random order.
fn chase(bytes: u64) -> Profile {
    let blocks = (bytes / STRIDE).max(1);
    let mut random = Pcg64Mcg::seed_from_u64(bytes);
    let per_page = 4096 / STRIDE;
    let reuse = ReuseBin::of(blocks);
    let page = ReuseBin::of((blocks / per_page).max(1));
    let load = |random: &mut Pcg64Mcg| MicroOp {
        sources: [1, 0],
        access: Some(Access {
            line: 2 * random.random_range(0..blocks.max(1 << 20)),
            reuse_64: reuse,
            reuse_128: reuse,
            reuse_page: page,
        }),
        ..MicroOp::plain(OpClass::Load)
    };
    const COUNT: u64 = 1_000_000;
    let histogram = |bin| {
        let mut histogram = ReuseHistogram { accesses: COUNT, ..ReuseHistogram::default() };
        histogram.add(bin, COUNT);
        histogram
    };
    let mut phase = Phase { instructions: COUNT, ..Phase::default() };
    phase.mix.ops[OpClass::Load.index()] = COUNT;
    phase.data.line_64 = histogram(reuse);
    phase.data.line_128 = histogram(reuse);
    phase.data.page = histogram(page);
    phase.footprint = Footprint {
        data_lines: blocks,
        data_pages: blocks.div_ceil(per_page),
        ..Footprint::default()
    };
    phase.traces = vec![MicroTrace { ops: (0..1_200).map(|_| load(&mut random)).collect() }];
    synthetic("lat_mem_rd", phase, u64::MAX / 2)
}

/// A kernel over arrays without end.
fn stream(&(name, reads, computes): &Kernel) -> Profile {
    const ARRAY: u64 = 1 << 40;
    /// Elements after which the loop branches.
    const UNROLLED: u64 = 8;
    const ELEMENTS: u64 = 60_000;
    let mut observer = Observer::new();
    for element in 0..ELEMENTS {
        if element == ELEMENTS / 4 {
            observer.reset();
        }
        if element % (ELEMENTS / 8) == ELEMENTS / 16 {
            observer.start_trace();
        }
        let address = |array: u64| Some(ARRAY * (1 + array) + WIDTH * element);
        let mut at = 0x1000 + 64 * (element % UNROLLED);
        let mut execute = |class, sources, address| {
            at += 4;
            observer.execute(&ObservedOp { sources, address, ..ObservedOp::plain(at, class) });
        };
        for array in 0..reads {
            execute(OpClass::Load, [0, 0], address(array));
        }
        if let Some(class) = computes {
            execute(class, [1, if reads > 1 { 2 } else { 0 }], None);
        }
        execute(OpClass::Store, [1, 0], address(reads));
        if element % UNROLLED == UNROLLED - 1 {
            execute(OpClass::Integer, [0, 0], None);
            execute(OpClass::Branch, [1, 0], None);
        }
        if element % (ELEMENTS / 8) == ELEMENTS / 16 + 300 {
            observer.end_trace();
        }
    }
    synthetic(name, observer.finish(), u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_of_the_description_are_named_as_inputs() {
        let inputs = inputs(&Description::named("power8-s812l").unwrap());
        let of = |key: &str| inputs.iter().find(|(of, _)| of == key).map(|(_, place)| &**place);
        assert!(of("memory.read_gbps").unwrap().contains("Table 2"), "{inputs:?}");
        assert_eq!(of("memory.latency_ns"), None, "it is assumed");
        assert!(inputs.iter().all(|(key, _)| key.starts_with("memory.")));
    }
}
