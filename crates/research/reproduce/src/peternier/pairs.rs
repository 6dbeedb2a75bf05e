//! Integer and floating-point programs together (Figs 11 and 12), with controls.

use std::time::Duration;

use symbiont_sim_fast::fast::Switches;
use symbiont_sim_fast::machine::Generation;

use super::{BULLDOZER, POWER7, nearest};
use crate::compared::{Comparison, MixResults, PreparedMachine};
use crate::figure::Point;
use crate::own::{OwnPrograms, ProgramUse};
use crate::{Context, Reproduction, described};
use symbiont_campaign::{Error, Metric, Progress, Repeats};
use symbiont_experiments_sim::ShownMeasurements;
use symbiont_experiments_sim::code;
use symbiont_experiments_sim::mixes::{Contender, Mix};
use symbiont_report::published::peternier::{FIGURE_11, FIGURE_12A, FIGURE_12B, Gain};
use symbiont_report::stats::{Estimate, mean, mean_estimate, standard_deviation};

pub(super) const OS: &str = "OS";
/// Linux 2.6.18's way; the paper's are of 2.6.32 and 3.0, between that and today's.
const OLDER: &str = "OS, older";
const SUBOPTIMAL: &str = "suboptimal";
pub(super) const OWN: &str = "WorkOver";
const SHUFFLED: &str = "WorkOver (measurements shuffled)";
const OWN_PRIVATE: &str = "WorkOver (private units and caches)";
const OS_PRIVATE: &str = "OS (private units and caches)";
/// Negative controls, each with what it is held against.
pub(super) const CONTROLS: [(&str, &str); 2] = [(SHUFFLED, OS), (OWN_PRIVATE, OS_PRIVATE)];
pub(super) const NO_SIGNAL: &str = "measurements shuffled";
pub(super) const NOT_SHARED: &str = "units and caches private";
const MODULE: &str = "WorkOver, counter of the module";

/// A figure: a machine in a mode, and the pairs that are run there.
pub(super) struct Case {
    id: &'static str,
    machine: &'static str,
    /// Threads of a core.
    width: usize,
    pairs: &'static [Gain],
}

pub(super) const CASES: [Case; 3] = [
    Case { id: "peternier-fig11", machine: BULLDOZER, width: 2, pairs: &FIGURE_11 },
    Case { id: "peternier-fig12a", machine: POWER7, width: 2, pairs: &FIGURE_12A },
    Case { id: "peternier-fig12b", machine: POWER7, width: 4, pairs: &FIGURE_12B },
];

impl Case {
    /// What runs for the programs of the pairs.
    pub(super) fn uses(&self, own: &OwnPrograms) -> Vec<ProgramUse> {
        let mut figures = vec![self.id, "peternier-controls", "peternier-stability"];
        if self.machine == BULLDOZER {
            figures.extend(["peternier-module", "peternier-moves"]);
        }
        let theirs = self.pairs.iter().filter_map(|pair| pair.programs.split_once(" + "));
        let theirs = theirs.flat_map(|(one, other)| [one, other]);
        let runs = |program| own.or(program, nearest(program));
        theirs
            .filter_map(|program| Some(ProgramUse::of(program, runs(program)?, &figures)))
            .collect()
    }
}

/// What runs for a pair of the paper, the integer program first.
fn runs(pair: &Gain, own: &OwnPrograms) -> Option<[&'static str; 2]> {
    let (one, other) = pair.programs.split_once(" + ")?;
    Some([own.or(one, nearest(one))?, own.or(other, nearest(other))?])
}

/// As many of both as fill the machine; the suboptimal scheduling keeps each kind on cores of its own.
fn mix(
    pair: &Gain,
    own: &OwnPrograms,
    cores: usize,
    width: usize,
    allowed: &symbiont_topology::CpuSet,
) -> Option<Mix> {
    let [integer, float] = runs(pair, own)?.map(str::to_owned);
    let each = cores * width / 2;
    let fill = |name: &String, count| vec![name.clone(); count];
    Some(Mix {
        name: pair.programs.to_owned(),
        programs: [fill(&integer, each), fill(&float, each)].concat(),
        phased: Vec::new(),
        groups: [vec![fill(&integer, width); cores / 2], vec![fill(&float, width); cores / 2]]
            .concat(),
        allowed: allowed.clone(),
    })
}

pub(super) fn contenders(bulldozer: bool) -> Vec<Contender> {
    let private = Switches { private_units: true, private_caches: true, ..Switches::default() };
    let mut all = vec![
        Contender::new(OS, "stay"),
        Contender { os: Generation::Older, ..Contender::new(OLDER, "stay") },
        Contender::new(SUBOPTIMAL, "static"),
        Contender::new(OWN, "fpu"),
        Contender { shown: ShownMeasurements::Shuffled, ..Contender::new(SHUFFLED, "fpu") },
        Contender { switches: private, ..Contender::new(OWN_PRIVATE, "fpu") },
        Contender { switches: private, ..Contender::new(OS_PRIVATE, "stay") },
    ];
    if bulldozer {
        let module =
            |name: &str, policy| Contender { fpu_of_core: true, ..Contender::new(name, policy) };
        all.push(module(MODULE, "fpu"));
    }
    all
}

/// Carries a figure's runs out and adds its points.
pub(super) fn add(
    case: &Case,
    full: bool,
    context: &Context<'_>,
    progress: &mut dyn Progress,
    reproduced: &mut Reproduction,
) -> Result<(), Error> {
    let own = &context.own;
    let programs = case.pairs.iter().filter_map(|pair| runs(pair, own)).flatten();
    let programs = programs.map(str::to_owned);
    let profiles = context.profiles(&programs.collect::<Vec<_>>())?;
    let description = described(case.machine)?.restricted(None, Some(case.width));
    let description = description.map_err(Error::evaluation)?;
    let modes: Vec<u32> =
        [1, 2, 4].into_iter().filter(|mode| *mode as usize <= case.width).collect();
    let ready = PreparedMachine::new(description, &profiles, &modes, context)?;
    let topology = &ready.builder.description().topology;
    let (cores, allowed) = (topology.cores().len(), topology.cpus().iter().collect());
    let mixes = case.pairs.iter().filter_map(|pair| mix(pair, own, cores, case.width, &allowed));
    let comparison = Comparison {
        name: case.id.to_owned(),
        mixes: mixes.collect(),
        contenders: contenders(case.machine == BULLDOZER),
        repeats: Repeats::exactly(if full { 10 } else { 3 }),
        alone: Duration::from_secs(if full { 20 } else { 8 }),
        models: &[],
    };
    let compared = ready.carry_out(comparison, context, progress)?;
    let found = points(case, &compared, context.seed);
    reproduced.points.insert(case.id, found);
    for (id, points) in more(case, &compared, context.seed) {
        reproduced.points.entry(id).or_default().extend(points);
    }
    reproduced.facts.push(code::described(ready.builder.description()));
    Ok(())
}

/// Gain of a contender over another in a mix, %.
pub(super) fn gain(
    (compared, metric): (&MixResults, Metric),
    pair: &Gain,
    own: &str,
    other: &str,
    seed: u64,
) -> Option<Estimate> {
    let rows = compared.rows.only(|row| row.workload == pair.programs);
    rows.gain(own, other, metric, seed).ok().map(Estimate::percent)
}

/// Standard deviation of the speed of a mix from repeat to repeat, %.
pub(super) fn spread(
    (compared, metric): (&MixResults, Metric),
    pair: &Gain,
    of: &str,
) -> Option<Estimate> {
    let all = compared.rows.figures(pair.programs, of, metric);
    let spread = standard_deviation(&all)? / mean(&all)?;
    Some(Estimate { n: all.len(), ..Estimate::exact(100.0 * spread) })
}

/// How programs' speeds are summed up: by the time until all have ended (sections 5.4 and 5.5).
const METRIC: Metric = Metric::Slowest;

/// What the negative controls gain in a mix, %.
pub(super) fn controls(
    compared: (&MixResults, Metric),
    pair: &Gain,
    seed: u64,
) -> [Option<Estimate>; 2] {
    CONTROLS.map(|(own, other)| gain(compared, pair, own, other, seed))
}

/// Change of the misses per instruction from one contender to another, %.
fn misses(compared: &MixResults, pair: &Gain, from: &str, to: &str) -> Option<Estimate> {
    let of = |contender: &str, repeat: u32| {
        let mut runs = compared.finished.iter();
        let is = |run: &symbiont_experiments_sim::mixes::MixRun| {
            (run.mix.as_str(), run.contender.as_str(), run.repeat)
                == (pair.programs, contender, repeat)
        };
        runs.find(|done| is(&done.run)).map(|done| done.record.l2_mpki)
    };
    let repeats = compared.finished.iter().map(|done| done.run.repeat).max().unwrap_or(0);
    let change = |at| Some(100.0 * (of(to, at)? / of(from, at)? - 1.0));
    mean_estimate(&(0..=repeats).filter_map(change).collect::<Vec<_>>()).ok()
}

fn points(case: &Case, compared: &MixResults, seed: u64) -> Vec<Point> {
    let mut points = Vec::new();
    for pair in case.pairs {
        let point = |series: &str, ours: Option<Estimate>, published| {
            Some(Point::new(series, pair.programs, ours?).published(published))
        };
        let over = |other| gain((compared, METRIC), pair, OWN, other, seed);
        // Where threads share nothing no placement is suboptimal, so that one control holds for both.
        let [shuffled, private] = controls((compared, METRIC), pair, seed);
        let suboptimal = point("over suboptimal", over(SUBOPTIMAL), pair.over_suboptimal);
        points.extend(suboptimal.map(|point| point.control(NOT_SHARED, private)));
        let os = point("over the OS", over(OS), pair.over_os);
        points.extend(
            os.map(|point| point.control(NO_SIGNAL, shuffled).control(NOT_SHARED, private)),
        );
        let fewer = |base| misses(compared, pair, base, OWN);
        points.extend(point("L2 misses over suboptimal", fewer(SUBOPTIMAL), pair.misses));
        points.extend(point("L2 misses over the OS", fewer(OS), None));
    }
    points
}

/// Controls, and what comes of a counter that sees the whole module.
fn more(case: &Case, compared: &MixResults, seed: u64) -> Vec<(&'static str, Vec<Point>)> {
    let place = case.id.trim_start_matches("peternier-");
    let (mut controls, mut module, mut moves) = (Vec::new(), Vec::new(), Vec::new());
    let mut spreads = Vec::new();
    for pair in case.pairs {
        let at = format!("{place}, {}", pair.programs);
        let over = |own: &str, other: &str| {
            let gain = gain((compared, METRIC), pair, own, other, seed);
            gain.map(|gain| Point::new(own, at.clone(), gain))
        };
        // Section 5.4: below 1 % for the suboptimal and the optimised scheduling; of the OS it is only said to be more.
        for (of, published) in [(OS, None), (SUBOPTIMAL, Some(1.0)), (OWN, Some(1.0))] {
            let published = published.filter(|_| case.machine == BULLDOZER);
            let point = spread((compared, METRIC), pair, of)
                .map(|ours| Point::new(of, at.clone(), ours).published(published));
            spreads.extend(point);
        }
        controls.extend(
            [(OWN, OS), (OLDER, OS)]
                .iter()
                .chain(&CONTROLS)
                .filter_map(|(own, other)| over(own, other)),
        );
        if case.machine == BULLDOZER {
            module.extend([OWN, MODULE].iter().filter_map(|own| over(own, OS)));
            for own in [OWN, MODULE] {
                let runs = compared
                    .finished
                    .iter()
                    .filter(|done| done.run.mix == pair.programs && done.run.contender == own);
                let per_period: Vec<f64> = runs.map(|done| done.record.moves).collect();
                let mean = mean_estimate(&per_period).ok();
                moves.extend(mean.map(|moves| Point::new(own, at.clone(), moves)));
            }
        }
    }
    vec![
        ("peternier-controls", controls),
        ("peternier-module", module),
        ("peternier-moves", moves),
        ("peternier-stability", spreads),
    ]
}
