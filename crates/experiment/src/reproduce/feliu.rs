//! Figures of Feliu et al., made on the simulated POWER8.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use symbiont_model::{Depth, Form, Holdout, Inversion, Score, SmtMode};
use symbiont_policy::{Settings, Symbiosis};
use symbiont_profile::Profile;
use symbiont_sim::description::{Costs, Description};
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::Errors;

use super::code::{CODE, described, machine, profile};
use super::figure::{Drawn, Figure, Paper, Point};
use super::{Context, Effort, PROGRAMS, Reproduced, Source};
use crate::campaign::{Metric, Repeats, Rows, carry_out, digest};
use crate::harness::{Error, Progress};
use crate::simulated::Shown;
use crate::simulated::mixes::{Contender, Mix, Mixes, deal, rows};
use crate::stats::Estimate;
use crate::training::simulated::Simulated;
use crate::training::{self, Campaign, Evaluated};

/// Symbiotic scheduling, simulated.
#[derive(Debug)]
pub struct Symbiotic;

const POWER8: &str = "power8-s812l";
const RANDOM: &str = "random";
const OS: &str = "OS";
const L1: &str = "L1 bandwidth";
const PUBLISHED: &str = "symbiotic (published)";
const ONLINE: &str = "symbiotic (kernel, feedback)";
const NUMA: &str = "symbiotic-numa (published)";
const ORACLE: &str = "oracle";
const SHUFFLED: &str = "symbiotic (measurements shuffled)";
const PRIVATE: &str = "symbiotic (private units and caches)";
const RANDOM_FREE: &str = "random (moves free)";
const RANDOM_PRIVATE: &str = "random (private units and caches)";

const OTHERS: &str = "Other programs than the paper's SPEC CPU2006, with shorter targets; the programs are known to \
                      the model, as in the paper.";
const COUNTS: &str = "Of the counts of cores that were run: quick experiments run 4 and 7.";
const SERIES: &str = "\"Published\": coarse stack, linear model with the \u{3b4} term, inverse under constraints, no \
                      feedback. \"Kernel, feedback\" is ours.";

/// How much is run.
struct Size {
    programs: Option<&'static [&'static str]>,
    cores: &'static [usize],
    workloads: usize,
    repeats: Repeats,
    alone: Duration,
    training: training::Size,
}

const QUICK: Size = Size {
    programs: Some(&PROGRAMS),
    cores: &[4, 7],
    workloads: 3,
    repeats: Repeats { least: 1, most: 1, narrow: 0.0 },
    alone: Duration::from_secs(1),
    training: training::Size { quantum: Duration::from_millis(100), quanta: 10, fours: 60 },
};

const FULL: Size = Size {
    programs: None,
    cores: &[4, 5, 6, 7, 8, 9, 10],
    workloads: 12,
    repeats: Repeats { least: 2, most: 2, narrow: 0.0 },
    alone: Duration::from_secs(4),
    training: training::Size { quantum: Duration::from_millis(100), quanta: 20, fours: 400 },
};

const fn figure(id: &'static str, place: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Feliu,
        place,
        title,
        quantity: "STP over random",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawn::Lines { x: "Cores" },
        deviations: &[OTHERS, SERIES],
    }
}

const FIGURES: &[Figure] = &[
    Figure {
        quantity: "Error of predicted slowdowns",
        neutral: None,
        drawn: Drawn::Table,
        ..figure(
            "feliu-fig5",
            "Fig. 5",
            "Accuracy of the forward model, programs left out, simulated",
        )
    },
    figure("feliu-fig7a", "Fig. 7(a)", "STP over random in SMT2, simulated"),
    figure("feliu-fig7b", "Fig. 7(b)", "STP over random in SMT4, simulated"),
    Figure {
        drawn: Drawn::Dots,
        deviations: &[OTHERS, SERIES, COUNTS],
        ..figure("feliu-sec63", "section 6.3", "Gains in STP that the text states, simulated")
    },
    Figure {
        quantity: "ANTT",
        unit: None,
        neutral: None,
        ..figure("feliu-fig8a", "Fig. 8(a)", "ANTT in SMT2, simulated")
    },
    Figure {
        quantity: "ANTT",
        unit: None,
        neutral: None,
        ..figure("feliu-fig8b", "Fig. 8(b)", "ANTT in SMT4, simulated")
    },
    Figure {
        quantity: "ANTT over another's; lower is better",
        drawn: Drawn::Dots,
        deviations: &[OTHERS, SERIES, COUNTS],
        ..figure("feliu-sec64", "section 6.4", "Changes of ANTT that the text states, simulated")
    },
    Figure {
        drawn: Drawn::Dots,
        ..figure(
            "feliu-controls",
            "our controls",
            "What is gained without a signal or contention, simulated",
        )
    },
];

impl Source for Symbiotic {
    fn name(&self) -> &'static str {
        "symbiotic scheduling, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduced, Error> {
        let size = match context.effort {
            Effort::Quick => QUICK,
            Effort::Full => FULL,
        };
        let programs: Vec<String> = match size.programs {
            Some(programs) => programs.iter().map(|name| (*name).to_owned()).collect(),
            None => context.real_programs(),
        };
        let profiles = context.profiles(&programs)?;
        let description = super::described(POWER8)?;
        let trained = train(&size, &description, &profiles, context, progress)?;
        let known = Known::new(&trained);
        let workshop = Workshop::new(description);
        (context.prepare)(&workshop, &profiles.values().collect::<Vec<_>>(), &[1, 2, 4])?;
        let machine = digest(&[CODE, &machine(workshop.description())]);
        let digests: BTreeMap<String, String> =
            profiles.iter().map(|(name, of)| (name.clone(), profile(of))).collect();
        let mut by_width = BTreeMap::new();
        for width in [2, 4] {
            let mixes = Mixes {
                name: format!("feliu-smt{width}"),
                workshop: &workshop,
                profiles: &profiles,
                mixes: mixes(&size, width, &programs, &workshop, context.seed),
                contenders: contenders(width, &known),
                repeats: size.repeats,
                alone: size.alone,
                seed: context.seed,
                basis: (machine.clone(), digests.clone()),
                targets: Mutex::default(),
            };
            let finished = carry_out(&mixes, &context.records, context.workers, progress)?;
            by_width.insert(width, rows(&mixes.mixes, &finished));
        }
        let mut reproduced = points(&size, &by_width, context.seed);
        reproduced.points.insert("feliu-fig5", accuracy(&trained));
        reproduced.facts.push(described(workshop.description()));
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        let Size { workloads, repeats, alone, .. } = size;
        let said = format!(
            "{workloads} for each count of cores and SMT mode, {} repeats, targets of {alone:?}",
            repeats.most
        );
        reproduced.facts.push(("Workloads".to_owned(), said));
        Ok(reproduced)
    }
}

fn train(
    size: &Size,
    machine: &Description,
    profiles: &BTreeMap<String, Profile>,
    context: &Context<'_>,
    progress: &mut dyn Progress,
) -> Result<Evaluated, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Evaluation(error.to_string());
    let core = machine.clone().restricted(Some(1), Some(4)).map_err(|error| failed(&error))?;
    let workshop = Workshop::new(core);
    (context.prepare)(&workshop, &profiles.values().collect::<Vec<_>>(), &[1, 2, 4])?;
    let by = (Errors::default(), context.seed, context.workers);
    let site = Simulated::new(&workshop, profiles, by).map_err(|error| failed(&error))?;
    let effort = if context.effort == Effort::Quick { "quick" } else { "full" };
    let options = training::Options {
        output: context.records.join(format!("feliu-training-{effort}")),
        programs: profiles.keys().cloned().collect(),
        rulers: Vec::new(),
        stack: Depth::Coarse,
        size: size.training.clone(),
        seed: context.seed,
    };
    Ok(Campaign::run(&site, &options, progress)?.0)
}

/// What policies know.
struct Known {
    published: Settings,
    online: Settings,
    key: String,
}

impl Known {
    fn new(trained: &Evaluated) -> Self {
        let model = Symbiosis::new(trained.model.clone());
        let with = |symbiosis: Symbiosis| Settings {
            symbiosis: Some(Arc::new(symbiosis)),
            slowdowns: Some(Arc::new(trained.slowdowns.clone())),
            ..Settings::default()
        };
        let published = Symbiosis {
            form: Form::Delta,
            inversion: Inversion::Constrained,
            recalls: false,
            ..model.clone()
        };
        let online = Symbiosis { form: Form::Kernel, recalls: true, ..model };
        let key = digest(&[&format!("{:?} {:?}", trained.model.modes, trained.slowdowns)]);
        Self { published: with(published), online: with(online), key }
    }
}

fn contenders(width: usize, known: &Known) -> Vec<Contender> {
    let with = |name: &str, policy: &'static str, settings: &Settings| Contender {
        settings: settings.clone(),
        key: format!("{} {name}", known.key),
        ..Contender::new(name, policy)
    };
    let published = |name: &str, policy| with(name, policy, &known.published);
    let warm = Switches { warm_caches: true, ..Switches::default() };
    let free =
        |contender: Contender| Contender { costs: Some(Costs::NONE), switches: warm, ..contender };
    let private = |contender: Contender| Contender {
        switches: Switches { private_units: true, private_caches: true, ..warm },
        ..free(contender)
    };
    let shuffled = Contender { shown: Shown::Exchanged, ..published(SHUFFLED, "symbiotic") };
    let mut all = vec![
        Contender::new(RANDOM, "random"),
        Contender::new(OS, "stay"),
        Contender::new(L1, "l1-bandwidth"),
        published(PUBLISHED, "symbiotic"),
        with(ONLINE, "symbiotic", &known.online),
        published(NUMA, "symbiotic-numa"),
    ];
    if width == 2 {
        all.push(published(ORACLE, "oracle"));
    }
    let controls = [
        free(Contender::new(RANDOM_FREE, "random")),
        free(shuffled),
        private(Contender::new(RANDOM_PRIVATE, "random")),
        private(published(PRIVATE, "symbiotic")),
    ];
    all.extend(controls.map(|control| Contender { mixes: Some(CONTROLLED), ..control }));
    all
}

/// Mixes that the controls run in.
const CONTROLLED: usize = 8;

/// The paper's workloads: `width` programs for each core, on cores 0 to c − 1.
fn mixes(
    size: &Size,
    width: usize,
    programs: &[String],
    workshop: &Workshop<'_>,
    seed: u64,
) -> Vec<Mix> {
    let mix = |number: usize, cores: usize| {
        let place = (number as u64) << 16 | (cores as u64) << 8 | width as u64;
        let dealt = deal(programs, width * cores, seed.rotate_left(32) ^ place);
        let taken = workshop.description().topology.cores().iter().take(cores);
        let limit = taken.flat_map(|core| core.cpus.iter().take(width)).collect();
        Mix { name: name(width, cores, number), programs: dealt, limit }
    };
    let numbers = 0..size.workloads;
    numbers.flat_map(|number| size.cores.iter().map(move |cores| mix(number, *cores))).collect()
}

fn name(width: usize, cores: usize, number: usize) -> String {
    format!("smt{width}-{cores:02}-{number:02}")
}

/// Of some counts of cores.
fn of_cores(rows: &Rows, width: usize, cores: &[usize]) -> Rows {
    let begins: Vec<String> = cores.iter().map(|c| format!("smt{width}-{c:02}-")).collect();
    rows.only(|row| begins.iter().any(|begin| row.workload.starts_with(begin)))
}

fn points(size: &Size, by_width: &BTreeMap<usize, Rows>, seed: u64) -> Reproduced {
    let mut reproduced = Reproduced::default();
    let contenders = [OS, L1, PUBLISHED, ONLINE, NUMA, ORACLE];
    for (width, fig7, fig8) in
        [(2, "feliu-fig7a", "feliu-fig8a"), (4, "feliu-fig7b", "feliu-fig8b")]
    {
        let Some(rows) = by_width.get(&width) else { continue };
        let (mut gains, mut levels) = (Vec::new(), Vec::new());
        for contender in std::iter::once(RANDOM).chain(contenders) {
            for cores in size.cores {
                let own = of_cores(rows, width, &[*cores]);
                let at = |ours: Estimate| {
                    Point::new(contender, cores.to_string(), ours).x(*cores as f64)
                };
                if contender != RANDOM {
                    let gain = own.gain(contender, RANDOM, Metric::Stp, seed);
                    gains.extend(gain.ok().map(|gain| at(gain.percent())));
                }
                levels.extend(own.level(contender, Metric::Antt, seed).ok().map(at));
            }
        }
        reproduced.points.insert(fig7, gains);
        reproduced.points.insert(fig8, levels);
    }
    let stated = |said: &[Said], metric: Metric| {
        let point = |(width, from, to, own, other, printed): &Said| {
            let cores: Vec<usize> = (*from..=*to).collect();
            let rows = of_cores(by_width.get(width)?, *width, &cores);
            let ours = rows.gain(own, other, metric, seed).ok()?.percent();
            let cores = match from == to {
                true => from.to_string(),
                false => format!("{from} to {to}"),
            };
            let at = format!("{own} over {other}, SMT{width}, {cores} cores");
            Some(Point::new("ours", at, ours).published(Some(*printed)))
        };
        said.iter().filter_map(point).collect::<Vec<_>>()
    };
    reproduced.points.insert("feliu-sec63", stated(STP, Metric::Stp));
    reproduced.points.insert("feliu-sec64", stated(ANTT, Metric::Antt));
    let mut controls = Vec::new();
    for (width, rows) in by_width {
        for (own, other) in
            [(PUBLISHED, RANDOM), (SHUFFLED, RANDOM_FREE), (PRIVATE, RANDOM_PRIVATE)]
        {
            let gain = rows.gain(own, other, Metric::Stp, seed).ok();
            let at = format!("SMT{width}");
            controls.extend(gain.map(|gain| Point::new(own, at, gain.percent())));
        }
    }
    reproduced.points.insert("feliu-controls", controls);
    reproduced
}

/// SMT mode, from and to how many cores, which over which, percent.
type Said = (usize, usize, usize, &'static str, &'static str, f64);

/// Section 6.3.
const STP: &[Said] = &[
    (2, 4, 10, PUBLISHED, RANDOM, 8.9),
    (2, 4, 10, PUBLISHED, OS, 4.0),
    (2, 4, 10, PUBLISHED, L1, 3.4),
    (2, 4, 10, ORACLE, PUBLISHED, 1.2),
    (2, 7, 7, PUBLISHED, RANDOM, 13.1),
    (2, 7, 7, PUBLISHED, OS, 7.4),
    (2, 6, 10, NUMA, RANDOM, 13.5),
    (2, 6, 10, NUMA, OS, 6.7),
    (2, 6, 10, NUMA, L1, 5.9),
    (2, 6, 10, NUMA, PUBLISHED, 1.3),
    (4, 6, 10, NUMA, RANDOM, 16.2),
    (4, 6, 10, NUMA, OS, 5.9),
    (4, 6, 10, NUMA, PUBLISHED, 5.3),
];

/// Section 6.4.
const ANTT: &[Said] = &[
    (2, 6, 8, NUMA, OS, -8.6),
    (4, 10, 10, NUMA, RANDOM, -14.7),
    (4, 9, 9, NUMA, OS, -3.7),
    (4, 10, 10, NUMA, OS, -6.6),
];

/// Forms that contenders use, and what knows nothing of the programs.
const SHOWN: [&str; 4] = ["linear", "delta", "kernel", "constant"];

/// Fig. 5: mean absolute errors and shares within 5 %, section 6.1.
fn accuracy(trained: &Evaluated) -> Vec<Point> {
    let mut points = Vec::new();
    for (mode, at, mean, within) in
        [(SmtMode::Smt2, "SMT2", 7.6, 45.0), (SmtMode::Smt4, "SMT4", 11.5, 29.0)]
    {
        let scores = trained.model.modes.get(&mode).map(|trained| trained.scores.as_slice());
        let is_shown = |score: &&Score| {
            score.predicts == "slowdown"
                && score.holdout == Holdout::Programs
                && SHOWN.contains(&score.of.as_str())
        };
        for score in scores.unwrap_or_default().iter().filter(is_shown) {
            let of = |what: &str| format!("{what}, {}", score.of);
            let exact = |share: f64| Estimate::exact(100.0 * share);
            let error = Point::new(of("mean error"), at, exact(score.mean_absolute));
            points.push(error.published(Some(mean)));
            points.push(
                Point::new(of("within 5 %"), at, exact(score.within)).published(Some(within)),
            );
        }
    }
    points
}
