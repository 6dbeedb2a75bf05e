//! What simultaneous multithreading gains on a machine, next to what was published.
//!
//! *Gain*: the speeds of the threads of a group, each over its speed alone on the machine, summed
//! (STP); per core where all cores are busy. *Copies*: n copies of one program on one core.
//! *Groups*: n programs drawn at random, on one core. *Full*: such groups on all cores at once,
//! which share last level and memory. *Split*: where a core is divided into halves, four programs
//! can be split among them in three ways; the difference that it makes (Feliu et al., section 4.2, ABCD
//! against ACBD).
//!
//! This is for a person to look at, and proves nothing: published figures are of other programs, and no limit
//! is enforced.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use symbiont_profile::Profile;
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::physics::prepared::Prepared;

use super::steady::{Resident, Steady};
use super::{Provenance, Setup};

/// Groups of each size.
const GROUPS: usize = 60;
/// Times that all cores are filled.
const FULL: usize = 6;
/// Quadruples that are split in two ways: as many as Feliu et al. tried.
const SPLIT: usize = 50;

/// What multithreading gains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gains {
    /// What it rests on.
    pub provenance: Provenance,
    /// Instructions per cycle of the programs alone on the machine.
    pub alone: Spread,
    /// By threads of a core.
    pub modes: Vec<Mode>,
    /// Of four programs on a core of halves: by how much a part the gain differs between two ways to
    /// split them; none where a core has no halves then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Spread>,
    /// What was published of this machine or its like, with the source.
    pub published: Vec<&'static str>,
}

/// Gains with so many threads on a core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mode {
    /// Threads.
    pub threads: usize,
    /// Of copies of one program.
    pub copies: Spread,
    /// Of random groups, the other cores idle.
    pub groups: Spread,
    /// Of random groups on all cores, per core.
    pub full: Spread,
}

/// How figures are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// 10th percentile.
    pub low: f64,
    /// 90th percentile.
    pub high: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1) as f64;
        let at = |share: f64| values.get((share * last).round() as usize).copied();
        Self {
            mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
            low: at(0.1).unwrap_or_default(),
            high: at(0.9).unwrap_or_default(),
        }
    }

    /// In percent.
    #[must_use]
    pub fn percent(self) -> Self {
        let Self { mean, low, high } = self;
        Self { mean: 100.0 * mean, low: 100.0 * low, high: 100.0 * high }
    }
}

/// Published gains, by the beginning of a machine's name.
const PUBLISHED: [(&str, &str); 8] = [
    (
        "power8",
        "SMT2 1.43, at most 1.84, SMT4 about 2 in many programs: copies of integer programs of \
         SPEC CPU2006 on one core (De Gelas, Assessing IBM's POWER8, AnandTech, 2016)",
    ),
    (
        "power8",
        "SMT8 1.009 times SMT4 on 4 full cores, 0.92 on 10: SPEC CPU2006, Linux (Feliu et al., \
         section 5)",
    ),
    (
        "power8",
        "two ways to split four programs among halves: 0.9 % on average over 50 combinations of SPEC \
         CPU2006 (Feliu et al., section 4.2)",
    ),
    (
        "xeon",
        "SMT2 1.18, at most 1.32: copies of integer programs of SPEC CPU2006 on one core of a \
         Xeon E5-2699 v4 (De Gelas, Assessing IBM's POWER8, AnandTech, 2016)",
    ),
    (
        "sapphire",
        "SMT2 1.1 to 1.2 in many applications, 1.3 at most, of Intel's earlier cores (De Gelas, \
         Assessing IBM's POWER8, AnandTech, 2016)",
    ),
    (
        "alder",
        "SMT2 1.1 to 1.2 in many applications, 1.3 at most, of Intel's earlier cores (De Gelas, \
         Assessing IBM's POWER8, AnandTech, 2016)",
    ),
    (
        "pentium4",
        "SMT2 1.20, from 0.90 to 1.58: pairs of programs of SPEC CPU2000 (Tuck and Tullsen, 2003)",
    ),
    ("pentium4", "SMT2 up to 1.3 on server applications (Marr et al., 2002)"),
];

/// A phase of a program: indices.
type PhaseIndex = (usize, usize);

struct SmtTrial<'s> {
    steady: &'s Steady,
    alone: &'s [Vec<f64>],
}

impl SmtTrial<'_> {
    /// Gain of groups, one on each core, per core.
    fn gain(&self, groups: &[Vec<PhaseIndex>]) -> f64 {
        let phase = |&(program, phase): &PhaseIndex| -> Option<&Prepared> {
            Some(&self.steady.programs.get(program)?.phases.get(phase)?.phase)
        };
        let cores: Vec<Vec<_>> =
            groups.iter().map(|group| group.iter().filter_map(phase).collect()).collect();
        let mode = cores.first().map_or(1, Vec::len) as u32;
        let rates = self.steady.together(mode, &cores);
        let alone = |&(program, phase): &PhaseIndex| self.alone.get(program)?.get(phase).copied();
        let ratios = groups.iter().flatten().filter_map(alone).zip(rates);
        ratios.map(|(alone, rates)| alone / rates.cpi).sum::<f64>() / groups.len().max(1) as f64
    }

    /// By how much a part the gain differs between two ways to split four programs among the halves of a core.
    fn splits(&self) -> Vec<f64> {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let mut one = || any_phase(self.steady, &mut random);
        let difference = |_| {
            let [a, b, c, d] = [one(), one(), one(), one()];
            let [split, other] =
                [vec![a, b, c, d], vec![a, c, b, d]].map(|group| self.gain(&[group]));
            (split / other - 1.0).abs()
        };
        (0..SPLIT).map(difference).collect()
    }
}

/// A phase of a random program, by its share of the program.
fn any_phase(steady: &Steady, random: &mut Pcg64Mcg) -> PhaseIndex {
    let program = random.random_range(0..steady.programs.len());
    (program, steady.programs[program].at(random.random_range(0.0..1.0)))
}

/// Are cores with four threads divided into halves?
fn halves(description: &Description) -> bool {
    description.core_types.iter().any(|core| core.halves_from.is_some_and(|from| from <= 4))
}

/// By how much a part the STP of four programs on one core differs between two ways to split them among its
/// halves (ABCD and ACBD; Feliu et al., section 4.2), for each of 50 quadruples of random phases. None where
/// cores have no halves.
///
/// # Errors
/// When the machine cannot run one of the programs.
pub fn splits(
    description: &Description,
    profiles: &BTreeMap<String, Profile>,
) -> Result<Vec<f64>, PrepareError> {
    let steady = Steady::new(description, profiles)?;
    if steady.programs.is_empty() || !halves(description) {
        return Ok(Vec::new());
    }
    let alone = steady.alone();
    Ok(SmtTrial { steady: &steady, alone: &alone }.splits())
}

/// Looks at the gains on a machine through some programs.
///
/// # Errors
/// When the machine cannot run one of them.
pub fn look(
    description: &Description,
    profiles: &BTreeMap<String, Profile>,
) -> Result<Gains, PrepareError> {
    let steady = Steady::new(description, profiles)?;
    let alone = steady.alone();
    let ipc = |(program, cpis): (&Resident, &Vec<f64>)| {
        1.0 / program.phases.iter().zip(cpis).map(|(phase, cpi)| phase.weight * cpi).sum::<f64>()
    };
    let look = SmtTrial { steady: &steady, alone: &alone };
    let width = description.topology.smt_width();
    let cores = description.topology.cores().iter().filter(|core| core.cpus.len() == width).count();
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut group = |threads: usize| -> Vec<PhaseIndex> {
        (0..threads).map(|_| any_phase(&steady, &mut random)).collect()
    };
    let mut modes = Vec::new();
    for threads in [2, 4, 8].into_iter().filter(|threads| *threads <= width) {
        if steady.programs.is_empty() {
            break;
        }
        let copies = (0..steady.programs.len()).map(|program| {
            // Copies at even places of the program.
            let place = |copy: usize| (copy as f64 + 0.5) / threads as f64;
            let at = |copy| (program, steady.programs[program].at(place(copy)));
            look.gain(&[(0..threads).map(at).collect()])
        });
        modes.push(Mode {
            threads,
            copies: Spread::of(copies.collect()),
            groups: Spread::of((0..GROUPS).map(|_| look.gain(&[group(threads)])).collect()),
            full: Spread::of(
                (0..FULL)
                    .map(|_| look.gain(&(0..cores).map(|_| group(threads)).collect::<Vec<_>>()))
                    .collect(),
            ),
        });
    }
    let split = halves(description) && width >= 4 && !steady.programs.is_empty();
    let split = split.then(|| Spread::of(look.splits()));
    let known = PUBLISHED.iter().filter(|(name, _)| description.name.starts_with(name));
    Ok(Gains {
        provenance: Provenance::new(description, &Setup::default()),
        alone: Spread::of(steady.programs.iter().zip(&alone).map(ipc).collect()),
        modes,
        split,
        published: known.map(|(_, text)| *text).collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Library;
    use super::*;

    #[test]
    fn gains_lie_between_none_and_all() {
        let library = Library::open(Path::new("/nonexistent")).unwrap();
        let profiles = library.load_all(["synthetic-integer", "synthetic-branchy"]).unwrap();
        let gains = look(&Description::named("xsim").unwrap(), &profiles).unwrap();
        assert!(gains.alone.low > 0.05 && gains.alone.high <= 8.0, "{gains:?}");
        assert!(!gains.modes.is_empty());
        for mode in &gains.modes {
            for spread in [mode.copies, mode.groups, mode.full] {
                let most = mode.threads as f64 * 1.01;
                assert!(0.3 < spread.low && spread.high <= most, "{mode:?}");
                assert!(spread.low <= spread.mean && spread.mean <= spread.high, "{mode:?}");
            }
        }
    }

    #[test]
    fn it_matters_a_little_who_shares_half_of_a_core() {
        let library = Library::open(Path::new("/nonexistent")).unwrap();
        let programs = ["synthetic-integer", "synthetic-branchy", "synthetic-float"];
        let profiles = library.load_all(programs).unwrap();
        let gains = |name: &str| look(&Description::named(name).unwrap(), &profiles).unwrap();
        assert_eq!(gains("xsim").split, None, "its cores have no halves");
        let split = gains("power8-s812l").split.unwrap();
        assert!(split.mean > 0.0 && split.high < 0.2, "{split:?}");
    }

    #[test]
    fn a_spread_has_its_percentiles() {
        let spread = Spread::of((0..=100).map(f64::from).collect());
        assert_eq!((spread.mean, spread.low, spread.high), (50.0, 10.0, 90.0));
        assert_eq!(Spread::of(vec![3.0]), Spread { mean: 3.0, low: 3.0, high: 3.0 });
    }
}
