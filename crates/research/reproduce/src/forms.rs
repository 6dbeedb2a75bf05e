//! What a decision should rest on: which form of the model, which stack, with or without measured feedback; for
//! programs that the model knows and for others; and what a decision that takes time costs. On the simulated POWER8.
//!
//! No paper has this. Every form decides about the same mixes, by a model that was fitted without any of the
//! mix's programs ([`symbiont_experiments_sim::training::LeftOut`]); one form of it is the mean slowdown alone, so
//! that what feedback gains by itself is known. `symbiotic`, as published, is among them, by a model that knows the
//! programs, too. While a decision is taken, programs run on where they are, or are left to the OS on all cores but
//! one, which is reserved for it (Feliu et al., section 4.3).

use std::time::Duration;

use symbiont_model::{Depth, Form};
use symbiont_policy::SymbioticOnline;
use symbiont_sim_fast::description::Costs;
use symbiont_sim_fast::fast::Switches;

use super::compared::{Comparison, PreparedMachine};
use super::feliu::{self, DECISION, POWER8, RANDOM};
use super::figure::{Drawing, Figure, Paper, Point};
use super::own::{CPU2006_AND_2017, ProgramUse};
use super::trained::{Knowledge, left_out};
use super::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Metric, Progress, Repeats, Rows};
use symbiont_experiments_sim::code::described;
use symbiont_experiments_sim::mixes::Contender;
use symbiont_experiments_sim::training::{self, LeftOut};
use symbiont_experiments_sim::{Decision, ShownMeasurements, SimulateError};
use symbiont_report::stats::Estimate;

/// Forms of the model, with and without feedback, simulated.
#[derive(Debug)]
pub struct Forms;

const ORACLE: &str = "oracle";
const PUBLISHED: &str = "symbiotic";
const SHUFFLED: &str = "symbiotic-online, measurements shuffled";
const PRIVATE: &str = "symbiotic-online, private units and caches";
const RANDOM_PRIVATE: &str = "random (private units and caches)";
const RANDOM_FREE: &str = "random (moves free)";
const KNOWN: &str = "symbiotic, programs known";
const ONLINE_KNOWN: &str = "symbiotic-online, programs known";
const LATE: &str = "programs run on where they are";
const RESERVED: &str = "programs run on all cores but one";

const LEAVING: &str = "Each mix is predicted by a model that was fitted without any of its programs, except where they are \
                       known; mixes that leave too few groups to fit on are not run. Two controls, in which \
                       moves are free: with measurements shuffled between threads feedback can still end a schedule that \
                       is bad for all; with private units and caches nothing may be gained.";

const fn figure(id: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Symbiont,
        place: "symbiotic-online",
        title,
        quantity: "STP over random",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[LEAVING],
    }
}

const FIGURES: &[Figure] = &[
    figure("symbiont-forms", "Forms of the model, stacks and feedback: STP over random, simulated"),
    Figure {
        quantity: "Share of the oracle's gain over random",
        neutral: None,
        ..figure(
            "symbiont-forms-headroom",
            "Forms of the model, stacks and feedback: headroom captured, simulated",
        )
    },
    Figure {
        quantity: "STP over delta, fine, feedback",
        ..figure(
            "symbiont-forms-paired",
            "Forms of the model against delta, fine, feedback, simulated",
        )
    },
    Figure {
        quantity: "STP over decisions that take no time",
        deviations: &[
            "Decisions of 1 ms, each quantum of 100 ms; programs are known to the model.",
        ],
        ..figure("symbiont-decisions", "What decisions cost that take time, simulated")
    },
];

/// How much is run.
struct Size {
    /// Cores by SMT mode.
    cores: [(usize, &'static [usize]); 2],
    workloads: usize,
    alone: Duration,
    training: training::TrainingSize,
}

const QUICK: Size = Size {
    cores: [(2, &[3]), (4, &[])],
    workloads: 3,
    alone: Duration::from_secs(1),
    training: feliu::QUICK.training,
};

const FULL: Size = Size {
    cores: [(2, &[6]), (4, &[3])],
    workloads: 16,
    alone: Duration::from_secs(2),
    training: feliu::FULL.training,
};

impl Source for Forms {
    fn name(&self) -> &'static str {
        "forms of the model, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.programs(CPU2006_AND_2017), CPU2006_AND_2017, FIGURES)
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let size = match context.effort {
            Effort::Quick => QUICK,
            Effort::Full => FULL,
        };
        let programs = context.programs(CPU2006_AND_2017);
        let profiles = context.profiles(&programs)?;
        let description = super::described(POWER8)?;
        let mut observed: Vec<LeftOut> = Vec::new();
        for stack in Depth::ALL {
            let (core, of) = (description.clone(), (&size.training, stack));
            observed.push(left_out(core, 4, &profiles, of, context, progress)?);
        }
        let models = observed.iter().map(LeftOut::models).collect::<Result<Vec<_>, _>>()?;
        let ready = PreparedMachine::new(description, &profiles, &[1, 2, 4], context)?;
        let mut reproduced = Reproduction::default();
        for (width, cores) in size.cores {
            let counts = (cores, size.workloads);
            let mut mixes =
                feliu::mixes(counts, width, &programs, &ready.builder, context.seed ^ 0x6f6e);
            mixes.retain(|mix| models.iter().all(|it| it.can_do_without(&mix.programs, width)));
            if mixes.is_empty() {
                continue;
            }
            let mut known = Vec::new();
            for (observed, models) in observed.iter().zip(&models) {
                known.push(Knowledge::new(&*models.without(&[], width)?, &observed.slowdowns));
            }
            let count = mixes.len();
            let contenders = contenders(width, &known)?;
            let names: Vec<String> = contenders.iter().map(|one| one.name.clone()).collect();
            let comparison = Comparison {
                name: format!("symbiont-forms-smt{width}"),
                mixes,
                contenders,
                repeats: Repeats { least: 1, most: 1, narrow: 0.0 },
                alone: size.alone,
                models: &models.iter().collect::<Vec<_>>(),
            };
            let rows = ready.carry_out(comparison, context, progress)?.rows;
            points(width, &rows, &names, context.seed, &mut reproduced);
            reproduced
                .facts
                .push((format!("Mixes in SMT{width}"), format!("{count} on {cores:?} cores")));
        }
        reproduced.facts.push(described(ready.builder.description()));
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}

/// The default of `symbiotic-online`, by the stack that others are compared with.
const BEST: (Form, Depth, bool) = (Form::Delta, Depth::Fine, true);

/// Forms of which each is run with and without feedback.
const FORMS: [Form; 2] = [Form::Linear, Form::Delta];

fn name(form: Form, stack: Depth, feedback: bool) -> String {
    let feedback = if feedback { ", feedback" } else { "" };
    format!("{}, {}{feedback}", form.name(), stack.name())
}

fn contenders(width: usize, known: &[Knowledge]) -> Result<Vec<Contender>, Error> {
    let left_out = |contender: Contender| Contender { left_out: true, ..contender };
    let warm = Switches { warm_caches: true, ..Switches::default() };
    let free =
        |contender: Contender| Contender { costs: Some(Costs::NONE), switches: warm, ..contender };
    let private = |contender: Contender| Contender {
        switches: Switches { private_units: true, private_caches: true, ..warm },
        ..free(contender)
    };
    let mut all =
        vec![Contender::new(RANDOM, "random"), free(Contender::new(RANDOM_FREE, "random"))];
    for (known, stack) in known.iter().zip(Depth::ALL) {
        let with = |form: Form, feedback: bool| {
            let contender = known.contender(&name(form, stack, feedback), "symbiotic-online");
            let set = contender.settings.clone().with(&SymbioticOnline::FORM, &form);
            let set = set.and_then(|set| set.with(&SymbioticOnline::FEEDBACK, &feedback));
            let settings = set.map_err(SimulateError::from)?;
            Ok::<_, Error>(left_out(Contender { settings, ..contender }))
        };
        for form in FORMS {
            all.extend([with(form, false)?, with(form, true)?]);
        }
        if stack == Depth::Coarse {
            // It looks at no stack, so one of them is enough.
            all.push(with(Form::Constant, true)?);
            all.push(left_out(known.contender(PUBLISHED, "symbiotic")));
            all.push(known.contender(KNOWN, "symbiotic"));
            all.push(known.contender(ONLINE_KNOWN, "symbiotic-online"));
            for (name, reserved) in [(LATE, false), (RESERVED, true)] {
                let decision = Decision { takes: DECISION, reserved };
                all.push(Contender { decision, ..known.contender(name, "symbiotic") });
            }
            let own = left_out(known.contender(SHUFFLED, "symbiotic-online"));
            all.push(free(Contender { shown: ShownMeasurements::Shuffled, ..own }));
            all.push(private(Contender::new(RANDOM_PRIVATE, "random")));
            all.push(private(left_out(known.contender(PRIVATE, "symbiotic-online"))));
            if width == 2 {
                all.push(known.contender(ORACLE, "oracle"));
            }
        }
    }
    Ok(all)
}

fn points(width: usize, rows: &Rows, names: &[String], seed: u64, reproduced: &mut Reproduction) {
    let at = format!("SMT{width}");
    let own = names.iter().filter(|name| !name.starts_with(RANDOM));
    for own in own {
        let baseline = match own.as_str() {
            SHUFFLED => RANDOM_FREE,
            PRIVATE => RANDOM_PRIVATE,
            LATE | RESERVED => KNOWN,
            _ => RANDOM,
        };
        let mut put = |id: &'static str, estimate: Option<Estimate>| {
            let point = |gain: Estimate| Point::new(own, at.clone(), gain.percent());
            reproduced.points.entry(id).or_default().extend(estimate.map(point));
        };
        let gain = rows.gain(own, baseline, Metric::Stp, seed).ok();
        put(if baseline == KNOWN { "symbiont-decisions" } else { "symbiont-forms" }, gain);
        if baseline == RANDOM {
            put("symbiont-forms-headroom", rows.captured(own, RANDOM, ORACLE, seed));
            let best = name(BEST.0, BEST.1, BEST.2);
            put("symbiont-forms-paired", rows.gain(own, &best, Metric::Stp, seed).ok());
        }
    }
}
