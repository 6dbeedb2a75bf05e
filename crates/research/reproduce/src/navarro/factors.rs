//! On what Hy-Sched's gain depends: how many programs are bound by the back end, the quantum, and how programs
//! start, next to what is there to gain.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_model::Objective;
use symbiont_policy::Symbiotic;
use symbiont_profile::Profile;
use symbiont_topology::CpuSet;

use super::super::compared::{Comparison, PreparedMachine};
use super::super::figure::{Drawing, Figure, Paper, Point};
use super::super::trained::{Knowledge, train};
use super::super::{Context, Effort, Reproduction, described};
use super::XEON;
use symbiont_campaign::{Error, Metric, Progress, Repeats, Rows};
use symbiont_experiments_sim::hysched::Alone;
use symbiont_experiments_sim::mixes::{Contender, Mix, deal};
use symbiont_experiments_sim::training;
use symbiont_report::stats::Estimate;

const OS: &str = "OS";
const OS_AT_ONCE: &str = "OS, all start at once";
const OWN_AT_ONCE: &str = "hysched 500 ms, all start at once";
const RANDOM: &str = "random";
const OTHERS: [&str; 3] = [RANDOM, "never-twice", "oracle"];
const QUANTA_MS: [u64; 3] = [50, 100, 500];
/// Programs of a mix of eight whose slots are mostly lost in the back end.
const BACKEND: [usize; 3] = [0, 4, 8];
const CORES: usize = 4;
const TRAINING: training::TrainingSize =
    training::TrainingSize { quantum: Duration::from_millis(500), quanta: 10, fours: 0 };

pub(super) const FIGURES: [Figure; 2] = [
    Figure {
        id: "symbiont-hysched-factors",
        paper: Paper::Symbiont,
        place: "next to section 6.1 of Navarro et al.",
        title: "Gain of Hy-Sched over the OS by quantum, start and mix, simulated",
        quantity: "Gain in STP over the OS",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[MIXES],
    },
    Figure {
        id: "symbiont-hysched-headroom",
        paper: Paper::Symbiont,
        place: "next to section 6.1 of Navarro et al.",
        title: "Gain over random pairs by mix, simulated",
        quantity: "Gain in STP over random",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[
            MIXES,
            "oracle knows the measured slowdowns of all pairs: about what is there to gain.",
        ],
    },
];
const MIXES: &str = "Eight programs on four cores, of which so many lose most of their issue slots in the back end \
                     when alone (top level of Top-Down).";

/// Carries the runs out, and adds both figures.
pub(super) fn add(
    profiles: &BTreeMap<String, Profile>,
    alone: &BTreeMap<String, Alone>,
    (context, progress): (&Context<'_>, &mut dyn Progress),
    reproduced: &mut Reproduction,
) -> Result<(), Error> {
    let (count, seconds, repeats) = match context.effort {
        Effort::Quick => (2, 1, 2),
        Effort::Full => (5, 4, 4),
    };
    let known = Knowledge::of(&train(described(XEON)?, 2, profiles, &TRAINING, context, progress)?);
    let ready = PreparedMachine::new(described(XEON)?, profiles, &[1, 2], context)?;
    let cores = ready.builder.description().topology.cores().iter().take(CORES);
    let allowed: CpuSet = cores.flat_map(|core| core.cpus.iter()).collect();
    let comparison = Comparison {
        name: "hysched-factors".to_owned(),
        mixes: mixes(alone, count, context.seed)
            .into_iter()
            .map(|(name, programs)| Mix {
                name,
                programs,
                phased: Vec::new(),
                groups: Vec::new(),
                allowed: allowed.clone(),
            })
            .collect(),
        contenders: contenders(&known)?,
        repeats: Repeats::exactly(repeats),
        alone: Duration::from_secs(seconds),
        models: &[],
    };
    let rows = ready.carry_out(comparison, context, progress)?.rows;
    let (factors, headroom) = points(&rows, context.seed);
    reproduced.points.insert(FIGURES[0].id, factors);
    reproduced.points.insert(FIGURES[1].id, headroom);
    Ok(())
}

fn own(quantum_ms: u64) -> String {
    format!("hysched {quantum_ms} ms")
}

fn contenders(known: &Knowledge) -> Result<Vec<Contender>, Error> {
    // What is shown is throughput.
    let settings = known.settings.clone().with(&Symbiotic::OBJECTIVE, &Objective::Stp);
    let settings = settings.map_err(Error::evaluation)?;
    let at_once = |name: &str, policy| Contender { at_once: true, ..Contender::new(name, policy) };
    let mut all = vec![Contender::new(OS, "stay"), at_once(OS_AT_ONCE, "stay")];
    all.extend(QUANTA_MS.map(|ms| Contender {
        quantum: Some(Duration::from_millis(ms)),
        ..Contender::new(&own(ms), "hysched")
    }));
    all.push(at_once(OWN_AT_ONCE, "hysched"));
    all.extend(OTHERS.map(|policy| Contender {
        settings: settings.clone(),
        key: format!("{} by throughput", known.key),
        quantum: Some(Duration::from_millis(500)),
        ..Contender::new(policy, policy)
    }));
    Ok(all)
}

/// The name of a mix with this many programs that are bound by the back end.
fn called(backend: usize) -> String {
    format!("{backend} of 8 bound by the back end")
}

/// Names and programs.
fn mixes(alone: &BTreeMap<String, Alone>, count: usize, seed: u64) -> Vec<(String, Vec<String>)> {
    let is_backend = |alone: &Alone| {
        let category = alone.seen.get("TopL").and_then(|seen| seen.category());
        category.is_some_and(|name| name.contains("back"))
    };
    let (backend, others): (Vec<_>, Vec<_>) = alone.iter().partition(|(_, of)| is_backend(of));
    let names = |of: Vec<(&String, &Alone)>| -> Vec<String> {
        of.into_iter().map(|(name, _)| name.clone()).collect()
    };
    let (backend, others) = (names(backend), names(others));
    let mut all = Vec::new();
    for (at, number) in BACKEND.iter().flat_map(|at| (0..count).map(move |number| (*at, number))) {
        let seed = seed.rotate_left(32) ^ (8 * number + at) as u64;
        let mut programs = deal(&backend, at, seed);
        programs.extend(deal(&others, 2 * CORES - at, seed));
        if programs.len() == 2 * CORES {
            all.push((format!("{}, {number}", called(at)), programs));
        }
    }
    all
}

fn points(rows: &Rows, seed: u64) -> (Vec<Point>, Vec<Point>) {
    let (mut factors, mut headroom) = (Vec::new(), Vec::new());
    for backend in BACKEND {
        let name = called(backend);
        let rows = rows.only(|row| row.workload.starts_with(&name));
        let gain = |own: &str, other: &str| {
            rows.gain(own, other, Metric::Stp, seed).ok().map(Estimate::percent)
        };
        let of_quantum = QUANTA_MS.map(|ms| (own(ms), OS));
        for (own, other) in of_quantum.into_iter().chain([(OWN_AT_ONCE.to_owned(), OS_AT_ONCE)]) {
            let gain = gain(&own, other);
            factors.extend(gain.map(|gain| Point::new(own, name.clone(), gain)));
        }
        let others = [own(500), "never-twice".to_owned(), "oracle".to_owned(), OS.to_owned()];
        for own in others {
            let gain = gain(&own, RANDOM);
            headroom.extend(gain.map(|gain| Point::new(own, name.clone(), gain)));
        }
    }
    (factors, headroom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbiont_experiments_sim::hysched::VariantShares;

    #[test]
    fn mixes_hold_as_many_programs_bound_by_the_back_end_as_they_say() {
        let of = |category: &str| Alone {
            ipc: 1.0,
            seen: BTreeMap::from([(
                "TopL".to_owned(),
                VariantShares { shares: vec![(category.to_owned(), 0.9)], changes: 0.0 },
            )]),
        };
        let category = |at: usize| if at < 3 { "backend_bound" } else { "retiring" };
        let alone = (0..10).map(|at| (format!("p{at}"), of(category(at)))).collect();
        for ((name, programs), backend) in mixes(&alone, 1, 7).into_iter().zip(BACKEND) {
            assert!(name.starts_with(&called(backend)));
            let bound = programs.iter().filter(|name| ["p0", "p1", "p2"].contains(&name.as_str()));
            assert_eq!((bound.count(), programs.len()), (backend, 8));
        }
    }
}
