//! Symbiotic scheduling of programs that its model does not know, and with decisions that take time, on
//! the simulated POWER8.
//!
//! No paper has this. As in [`super::feliu`], but each mix is also run with a model that was fitted
//! without any of its programs ([`symbiont_simulated::training::LeftOut`]). Mixes that leave too few groups to fit on
//! are not run. While a decision is taken, programs run on where they are, or are left to the OS on all
//! cores but one, which is reserved for it (Feliu et al., section 4.3).

use std::time::Duration;

use symbiont_model::Depth;
use symbiont_sim::description::Costs;
use symbiont_sim::fast::Switches;

use super::compared::{Comparison, Ready};
use super::feliu::{self, POWER8, RANDOM};
use super::figure::{Drawn, Figure, Paper, Point};
use super::trained::{Knowledge, left_out};
use super::{Context, Effort, Reproduced, Source};
use symbiont_campaign::harness::{Error, Progress};
use symbiont_campaign::{Metric, Repeats, Rows};
use symbiont_simulated::code::described;
use symbiont_simulated::mixes::Contender;
use symbiont_simulated::training;
use symbiont_simulated::{Decision, Shown};

/// Unknown programs, simulated.
#[derive(Debug)]
pub struct Unknown;

const ORACLE: &str = "oracle";
const KNOWN: &str = "symbiotic, programs known";
const LEFT_OUT: &str = "symbiotic, programs left out";
const ONLINE_KNOWN: &str = "symbiotic-online, programs known";
const ONLINE_LEFT_OUT: &str = "symbiotic-online, programs left out";
const SHUFFLED: &str = "symbiotic-online, programs left out, measurements shuffled";
const RANDOM_FREE: &str = "random (moves free)";
const LATE: &str = "programs run on where they are";
const RESERVED: &str = "programs run on all cores but one";

/// Time of a decision where it takes some: that of one about 40 threads.
const DECISION: Duration = Duration::from_millis(1);

const LEAVING: &str = "Left out: each mix is predicted by a model that was fitted without any of its programs; mixes that \
                       leave too few groups to fit on are not run.";
const CONTROL: &str = "Measurements shuffled: a negative control in which moves are free; nothing may be gained over \
                       random placement with free moves.";

const fn figure(id: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Symbiont,
        place: "symbiotic",
        title,
        quantity: "STP over random",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawn::Dots,
        deviations: &[LEAVING],
    }
}

const FIGURES: &[Figure] = &[
    Figure {
        deviations: &[LEAVING, CONTROL],
        ..figure(
            "symbiont-left-out",
            "STP over random with programs unknown to the model, simulated",
        )
    },
    Figure {
        quantity: "Share of the oracle's gain over random",
        neutral: None,
        ..figure(
            "symbiont-headroom",
            "Headroom captured with programs unknown to the model, simulated",
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
    /// Counts of cores by SMT mode.
    cores: [(usize, &'static [usize]); 2],
    workloads: usize,
    repeats: Repeats,
    alone: Duration,
    training: training::Size,
}

const QUICK: Size = Size {
    cores: [(2, &[2]), (4, &[])],
    workloads: 4,
    repeats: Repeats { least: 2, most: 2, narrow: 0.0 },
    alone: Duration::from_secs(1),
    training: feliu::QUICK.training,
};

const FULL: Size = Size {
    cores: [(2, &[4, 6, 8]), (4, &[4])],
    workloads: 12,
    repeats: Repeats { least: 2, most: 2, narrow: 0.0 },
    alone: Duration::from_secs(4),
    training: feliu::FULL.training,
};

impl Source for Unknown {
    fn name(&self) -> &'static str {
        "unknown programs, simulated"
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
        let programs = context.programs();
        let profiles = context.profiles(&programs)?;
        let description = super::described(POWER8)?;
        let core = description.clone();
        let observed =
            left_out(core, 4, &profiles, (&size.training, Depth::Coarse), context, progress)?;
        let models = observed.models()?;
        let ready = Ready::new(description, &profiles, &[1, 2, 4], context)?;
        let mut reproduced = Reproduced::default();
        for (width, cores) in size.cores {
            let mut mixes = feliu::mixes(
                (cores, size.workloads),
                width,
                &programs,
                &ready.builder,
                context.seed,
            );
            mixes.retain(|mix| models.can_do_without(&mix.programs, width));
            if mixes.is_empty() {
                continue;
            }
            let known = Knowledge::new(&*models.without(&[], width)?, &observed.slowdowns);
            let count = mixes.len();
            let comparison = Comparison {
                name: format!("symbiont-unknown-smt{width}"),
                mixes,
                contenders: contenders(width, &known),
                repeats: size.repeats,
                alone: size.alone,
                models: &[&models],
            };
            let rows = ready.carry_out(comparison, context, progress)?.rows;
            points(width, &rows, context.seed, &mut reproduced);
            let said = format!("{count} on {cores:?} cores");
            reproduced.facts.push((format!("Mixes in SMT{width}"), said));
        }
        reproduced.facts.push(described(ready.builder.description()));
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}

fn contenders(width: usize, known: &Knowledge) -> Vec<Contender> {
    let with = |name: &str| known.contender(name, "symbiotic");
    let online = |name: &str| known.contender(name, "symbiotic-online");
    let left_out = |contender: Contender| Contender { left_out: true, ..contender };
    let free = |contender: Contender| Contender {
        costs: Some(Costs::NONE),
        switches: Switches { warm_caches: true, ..Switches::default() },
        ..contender
    };
    let taking = |name: &str, reserved| Contender {
        decision: Decision { takes: DECISION, reserved },
        ..with(name)
    };
    let mut all = vec![
        Contender::new(RANDOM, "random"),
        with(KNOWN),
        left_out(with(LEFT_OUT)),
        online(ONLINE_KNOWN),
        left_out(online(ONLINE_LEFT_OUT)),
        free(Contender::new(RANDOM_FREE, "random")),
        free(left_out(Contender { shown: Shown::Shuffled, ..online(SHUFFLED) })),
        taking(LATE, false),
        taking(RESERVED, true),
    ];
    if width == 2 {
        all.push(known.contender(ORACLE, "oracle"));
    }
    all
}

/// Contenders with programs known and left out.
const COMPARED: [&str; 4] = [KNOWN, LEFT_OUT, ONLINE_KNOWN, ONLINE_LEFT_OUT];

fn points(width: usize, rows: &Rows, seed: u64, reproduced: &mut Reproduced) {
    let at = format!("SMT{width}");
    let gain = |own: &str, other: &str| {
        let gain = rows.gain(own, other, Metric::Stp, seed).ok()?;
        Some(Point::new(own, at.clone(), gain.percent()))
    };
    let mut put = |id: &'static str, points: Vec<Point>| {
        reproduced.points.entry(id).or_default().extend(points);
    };
    let mut gains: Vec<Point> = COMPARED.iter().filter_map(|own| gain(own, RANDOM)).collect();
    gains.extend(gain(ORACLE, RANDOM));
    gains.extend(gain(SHUFFLED, RANDOM_FREE));
    put("symbiont-left-out", gains);
    let share = |own: &&str| {
        let share = rows.captured(own, RANDOM, ORACLE, seed)?;
        Some(Point::new(*own, at.clone(), share.percent()))
    };
    put("symbiont-headroom", COMPARED.iter().filter_map(share).collect());
    let costs = [LATE, RESERVED].iter().filter_map(|own| gain(own, KNOWN));
    put("symbiont-decisions", costs.collect());
}
