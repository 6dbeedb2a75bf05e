//! Threads that live on and run SciMark's kernels, each in an order of its own (Figs 13 and 14).

use std::collections::BTreeMap;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use symbiont_profile::{Profile, Span};

use super::pairs::{CONTROLS, NO_SIGNAL, NOT_SHARED, OS, OWN, contenders, controls, gain, spread};
use super::{BULLDOZER, POWER7, counterpart};
use crate::compared::{Comparison, PreparedMachine};
use crate::figure::Point;
use crate::own::{OwnPrograms, ProgramUse};
use crate::{Context, Reproduction, described};
use symbiont_campaign::{Error, Metric, Progress, Repeats};
use symbiont_experiments_sim::mixes::Mix;
use symbiont_report::published::peternier::{FIGURE_13, FIGURE_14A, FIGURE_14B, Gain};

/// How threads' speeds are summed up: the paper adds the kernels' scores.
const SCORE: Metric = Metric::Stp;

/// The kernels, by the paper's names.
const KERNELS: [&str; 5] = ["FFT", "SOR", "MC", "MM", "LU"];

/// Instructions of a kernel until the next one begins: about two seconds alone.
const SEGMENT: u64 = 4_000_000_000;
/// How often each thread runs each kernel before its order is continued by chance.
const ROUNDS: usize = 4;

/// Orders of the kernels that differ; threads of one order begin at other times.
const ORDERS: usize = 4;

struct Case {
    id: &'static str,
    machine: &'static str,
    /// Threads of a core.
    width: usize,
    rows: &'static [Gain],
    /// Standard deviations that the paper stays below (sections 5.6 and 5.7), of the OS and of WorkOver, %.
    spreads: [f64; 2],
}

const fn case(
    id: &'static str,
    (machine, width): (&'static str, usize),
    rows: &'static [Gain],
    spreads: [f64; 2],
) -> Case {
    Case { id, machine, width, rows, spreads }
}

const CASES: [Case; 3] = [
    case("peternier-fig13", (BULLDOZER, 2), &FIGURE_13, [2.0, 2.0]),
    case("peternier-fig14a", (POWER7, 2), &FIGURE_14A, [5.0, 2.0]),
    case("peternier-fig14b", (POWER7, 4), &FIGURE_14B, [5.0, 2.0]),
];

/// The kernels of a row: of the whole suite, or of the two that it names.
fn kernels(row: &Gain) -> Vec<&'static str> {
    match row.programs.split_once(" + ") {
        Some((one, other)) => vec![one, other],
        None => KERNELS.to_vec(),
    }
}

/// What runs for kernels.
fn runs(kernels: &[&'static str], own: &OwnPrograms) -> Vec<&'static str> {
    kernels.iter().filter_map(|kernel| own.or(kernel, counterpart(kernel))).collect()
}

/// What runs for the kernels of all figures.
pub(super) fn uses(own: &OwnPrograms) -> Vec<ProgramUse> {
    let of_case = |case: &Case| {
        let figures = [case.id, "peternier-controls", "peternier-stability"];
        let kernels = case.rows.iter().flat_map(kernels);
        let by = |kernel| own.or(kernel, counterpart(kernel));
        kernels.filter_map(|it| Some(ProgramUse::of(it, by(it)?, &figures))).collect::<Vec<_>>()
    };
    CASES.iter().flat_map(of_case).collect()
}

/// What one thread does: all kernels, again and again, each time in another order.
fn thread(name: &str, kernels: &[&Profile], seed: u64) -> Profile {
    let mut random = Pcg64::seed_from_u64(seed);
    let starts = kernels.iter().scan(0, |start, kernel| {
        let own = *start;
        *start += kernel.phases.len();
        Some(own as u16)
    });
    let starts: Vec<u16> = starts.collect();
    let mut order: Vec<usize> = (0..kernels.len()).collect();
    let mut sequence = Vec::new();
    for _ in 0..ROUNDS {
        order.shuffle(&mut random);
        for &at in &order {
            let mut left = SEGMENT;
            for span in kernels[at].sequence().iter().cycle() {
                let instructions = span.instructions.min(left);
                sequence.push(Span { phase: span.phase + starts[at], instructions });
                left -= instructions;
                if left == 0 {
                    break;
                }
            }
        }
    }
    let phases = kernels.iter().flat_map(|kernel| kernel.phases.iter().cloned()).collect();
    let instructions = sequence.iter().map(|span| span.instructions).sum();
    let first = kernels.first().and_then(|kernel| kernel.threads.first()).cloned();
    let threads = first
        .into_iter()
        .map(|first| symbiont_profile::Thread { sequence: sequence.clone(), ..first });
    Profile {
        program: name.to_owned(),
        command: Vec::new(),
        digest: String::new(),
        instructions,
        phases,
        threads: threads.collect(),
        gaps: Vec::new(),
    }
}

/// Carries the runs out and adds the figures.
pub(super) fn add(
    full: bool,
    context: &Context<'_>,
    progress: &mut dyn Progress,
    reproduced: &mut Reproduction,
) -> Result<(), Error> {
    let names = runs(&KERNELS, &context.own).into_iter().map(str::to_owned);
    let single = context.profiles(&names.collect::<Vec<_>>())?;
    for case in &CASES {
        let description = described(case.machine)?.restricted(None, Some(case.width));
        let description = description.map_err(Error::evaluation)?;
        let count = description.topology.cpus().len();
        let mut profiles = BTreeMap::new();
        let mut mixes = Vec::new();
        for row in case.rows {
            let kernels: Vec<&Profile> = runs(&kernels(row), &context.own)
                .into_iter()
                .filter_map(|name| single.get(name))
                .collect();
            let orders: Vec<String> =
                (1..=ORDERS).map(|number| format!("{}, order {number}", row.programs)).collect();
            for (seed, name) in (context.seed..).zip(&orders) {
                profiles.insert(name.clone(), thread(name, &kernels, seed));
            }
            let names = orders.into_iter().cycle().take(count).collect();
            mixes.push((row.programs, names));
        }
        let modes: Vec<u32> =
            [1, 2, 4].into_iter().filter(|mode| *mode as usize <= case.width).collect();
        let ready = PreparedMachine::new(description, &profiles, &modes, context)?;
        let allowed: symbiont_topology::CpuSet =
            ready.builder.description().topology.cpus().iter().collect();
        let mix = |(name, programs): (&str, Vec<String>)| Mix {
            name: name.to_owned(),
            programs,
            phased: Vec::new(),
            groups: Vec::new(),
            allowed: allowed.clone(),
        };
        let mut own = contenders(false);
        own.retain(|contender| contender.policy != "static");
        let comparison = Comparison {
            name: case.id.to_owned(),
            mixes: mixes.into_iter().map(mix).collect(),
            contenders: own,
            repeats: Repeats::exactly(if full { 10 } else { 2 }),
            alone: Duration::from_secs(if full { 40 } else { 12 }),
            models: &[],
        };
        let compared = ready.carry_out(comparison, context, progress)?;
        let points = case.rows.iter().filter_map(|row| {
            let gain = gain((&compared, SCORE), row, OWN, OS, context.seed)?;
            let point = Point::new("over the OS", row.programs, gain).published(row.over_os);
            let [shuffled, private] = controls((&compared, SCORE), row, context.seed);
            Some(point.control(NO_SIGNAL, shuffled).control(NOT_SHARED, private))
        });
        reproduced.points.insert(case.id, points.collect());
        let place = case.id.trim_start_matches("peternier-");
        let mut controls = Vec::new();
        for row in case.rows {
            for (own, other) in [(OWN, OS)].iter().chain(&CONTROLS) {
                let at = format!("{place}, {}", row.programs);
                let gain = gain((&compared, SCORE), row, own, other, context.seed);
                controls.extend(gain.map(|gain| Point::new(*own, at, gain)));
            }
        }
        reproduced.points.entry("peternier-controls").or_default().extend(controls);
        let spreads = case.rows.iter().flat_map(|row| {
            let at = format!("{place}, {}", row.programs);
            let point = |(of, published)| {
                let ours = spread((&compared, SCORE), row, of)?;
                Some(Point::new(of, at.clone(), ours).published(Some(published)))
            };
            [(OS, case.spreads[0]), (OWN, case.spreads[1])].map(point)
        });
        let spreads: Vec<Point> = spreads.flatten().collect();
        reproduced.points.entry("peternier-stability").or_default().extend(spreads);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbiont_experiments_sim::Library;

    #[test]
    fn each_thread_runs_all_kernels_as_long_in_an_order_of_its_own() {
        let profiles =
            Library::default().load_all(["synthetic-integer", "synthetic-float"]).unwrap();
        let kernels: Vec<&Profile> = profiles.values().collect();
        let made = thread("t", &kernels, 1);
        let first = kernels[0].phases.len() as u16;
        let of = |profile: &Profile, low: bool| -> u64 {
            let spans = profile.sequence().iter().filter(|span| (span.phase < first) == low);
            spans.map(|span| span.instructions).sum()
        };
        assert_eq!((of(&made, true), of(&made, false)), (4 * SEGMENT, 4 * SEGMENT));
        assert_eq!(made.instructions, 8 * SEGMENT);
        assert!((2..9).any(|seed| thread("t", &kernels, seed).sequence() != made.sequence()));
    }
}
