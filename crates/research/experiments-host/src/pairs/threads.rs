//! Which two hardware threads programs are measured on.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use symbiont_campaign::{InRound, Progress};
use symbiont_topology::{CpuSet, PuId};

use super::campaign::{Bounds, Even, measure_evenly};
use super::kernels::{CpuCell, Kernels, OnCpus};
use super::limit::{AROUND, LEAST_ROUNDS, WINDOW, for_sharing};
use super::sharing::{CpuPair, Sharing, Verdict, are_siblings, candidates, core_to_use, judge};
use super::{CpuChoice, PairsError, PairsOptions};

/// Rounds at most in which it is measured which hardware threads share a core.
const MOST_ROUNDS: u32 = 5;

/// Can these be used?
pub(super) fn check(cpus: &CpuSet, may: &CpuSet) -> Result<(), PairsError> {
    if let Some(other) = cpus.difference(may).first() {
        return Err(PairsError::NotAllowed(other, may.clone()));
    }
    if cpus.len() == 2 { Ok(()) } else { Err(PairsError::NotTwo(cpus.clone())) }
}

/// Are there two that this process may use?
pub(super) fn several(may: &CpuSet, there: &CpuSet) -> Result<(), PairsError> {
    match may.only() {
        Some(_) if there.len() == 1 => Err(PairsError::OneCpu),
        Some(cpu) => Err(PairsError::OneAllowed(cpu)),
        None => Ok(()),
    }
}

/// The two members of a set of two.
fn two(cpus: &CpuSet) -> Option<CpuPair> {
    let mut members = cpus.iter();
    members.next().zip(members.next())
}

/// Finds out which hardware threads share a core.
pub(super) fn share(
    options: &PairsOptions,
    (may, cores): (&CpuSet, &[CpuSet]),
    (folder, basis): (&Path, &str),
    deadline: Instant,
    progress: &mut dyn Progress,
) -> Result<Sharing, PairsError> {
    let runs = for_sharing(options.limit).as_secs_f64() / (WINDOW + AROUND).as_secs_f64();
    // A pair takes a run for itself and, at most, two for its hardware threads alone.
    let most = (runs / f64::from(LEAST_ROUNDS) / 3.0) as usize;
    let small = may.len() * (may.len() + 1) / 2;
    let most = if small as f64 <= runs / f64::from(LEAST_ROUNDS) { small } else { most.max(1) };
    let pairs = match options.cpus.as_ref().and_then(two) {
        Some(pair) => vec![pair],
        None => candidates(may, cores, most, options.seed),
    };
    let cells = cpu_cells(&pairs);
    let rounds = (runs / cells.len().max(1) as f64) as u32;
    let bounds = Bounds {
        rounds: rounds.clamp(LEAST_ROUNDS, MOST_ROUNDS),
        seed: options.seed,
        deadline,
        last: false,
    };
    progress.note("First it is measured which hardware threads share a core.");
    let kernels = Kernels::new(&options.programs, WINDOW, folder);
    let bench = OnCpus { kernels, basis: basis.to_owned() };
    Ok(judge(&slowdowns(&measure_evenly(&bench, &cells, bounds, folder, progress)?)))
}

/// Each hardware thread alone, and each pair.
pub(super) fn cpu_cells(pairs: &[CpuPair]) -> Vec<CpuCell> {
    let cpus: CpuSet = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
    let alone = cpus.iter().map(|cpu| CpuCell { cpu: cpu.0, other: None });
    let together = pairs.iter().map(|(one, other)| CpuCell { cpu: one.0, other: Some(other.0) });
    alone.chain(together).collect()
}

/// Slowdowns of pairs of hardware threads, round by round: the geometric mean of both.
pub(super) fn slowdowns(even: &Even<CpuCell>) -> BTreeMap<CpuPair, Vec<f64>> {
    let mut alone = BTreeMap::new();
    for done in even.done.iter().filter(|done| done.run.cell.other.is_none()) {
        alone.insert((done.run.round, done.run.cell.cpu), done.record.first);
    }
    let mut found: BTreeMap<CpuPair, Vec<f64>> = BTreeMap::new();
    for done in &even.done {
        let InRound { round, cell: CpuCell { cpu, other } } = done.run;
        let slowdown = other.and_then(|other| {
            let (first, second) = (alone.get(&(round, cpu))?, alone.get(&(round, other))?);
            let both = first / done.record.first * second / done.record.second?;
            Some(((PuId(cpu), PuId(other)), both.sqrt()))
        });
        if let Some((pair, slowdown)) = slowdown {
            found.entry(pair).or_default().push(slowdown);
        }
    }
    found
}

/// The two hardware threads to use.
pub(super) fn choose(
    named: Option<&CpuSet>,
    sharing: Option<&Sharing>,
    cores: &[CpuSet],
    may: &CpuSet,
) -> Result<(CpuPair, CpuChoice), PairsError> {
    if let Some(pair) = named.and_then(two) {
        return Ok((pair, CpuChoice::User));
    }
    if let Some(pair) = sharing.and_then(|sharing| core_to_use(sharing, cores)) {
        return Ok((pair, CpuChoice::Measured));
    }
    let siblings = || {
        let core = cores.iter().map(|core| core.intersection(may)).filter(|core| core.len() > 1);
        core.filter_map(|core| two(&core)).max()
    };
    let Some(sharing) = sharing else {
        let none = || {
            PairsError::NoSmt(
                "as /sys says; our kernels, by which it is measured, are for x86-64".into(),
            )
        };
        return Ok((siblings().ok_or_else(none)?, CpuChoice::Topology));
    };
    let undecided = sharing.pairs.iter().filter(|pair| pair.verdict == Verdict::Undecided);
    let mut undecided = undecided.map(|pair| pair.cpus).peekable();
    let some_undecided = undecided.peek().is_some();
    if let Some(pair) = undecided.filter(|pair| are_siblings(*pair, cores)).max() {
        return Ok((pair, CpuChoice::Topology));
    }
    let said = match siblings() {
        None => "/sys says so, too",
        Some(_) => "although /sys says that some do",
    };
    let count = sharing.pairs.len();
    let pairs = if count == 1 { "pair" } else { "pairs" };
    if some_undecided {
        let noise = sharing.noise().map_or(String::new(), |noise| format!(", ± {noise:.2}"));
        return Err(PairsError::Undecided(format!("{count} {pairs} of CPUs measured{noise}")));
    }
    Err(PairsError::NoSmt(format!("{count} {pairs} of CPUs measured; {said}")))
}
