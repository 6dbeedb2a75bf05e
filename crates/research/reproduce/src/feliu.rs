//! Figures of Feliu et al., made on the simulated POWER8.

mod accuracy;
mod bound;
mod figures;
mod halves;
mod smt8;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_policy::PairSlowdowns;
use symbiont_profile::Profile;
use symbiont_sim_fast::description::{Costs, Description};
use symbiont_sim_fast::fast::{Switches, TableBuilder};

use self::bound::search;
pub(super) use self::figures::of_cores;
use self::figures::{FIGURES, points, together};
pub use self::halves::Halves;
pub use self::smt8::Smt8;
use super::compared::{Comparison, PreparedMachine};
use super::figure::{Figure, Point};
use super::own::{CPU2006, ProgramUse};
use super::trained::{Knowledge, explore, train};
use super::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Progress, Repeats};
use symbiont_experiments_sim::code::described;
use symbiont_experiments_sim::mixes::{Contender, Mix, draw};
use symbiont_experiments_sim::training::{self, Throughputs};
use symbiont_experiments_sim::{Decision, ShownMeasurements};
pub(super) use symbiont_report::published::feliu::RANDOM;
use symbiont_report::published::feliu::{L1, NUMA, ORACLE, OS, SYMBIOTIC};

/// Symbiotic scheduling, simulated.
#[derive(Debug)]
pub struct Symbiotic;

pub(super) const POWER8: &str = "power8-s812l";
const ONLINE: &str = "symbiotic-online";
const STATIC: &str = "best static grouping found";
const SHUFFLED: &str = "symbiotic (measurements shuffled)";
const PRIVATE: &str = "symbiotic (private units and caches)";
const RANDOM_FREE: &str = "random (moves free)";
const RANDOM_PRIVATE: &str = "random (private units and caches)";

/// How much is run.
pub(super) struct Size {
    cores: &'static [usize],
    workloads: usize,
    repeats: Repeats,
    alone: Duration,
    pub(super) training: training::TrainingSize,
}

impl Size {
    /// Cores of the mixes of which it is shown which programs shared a core (the paper's have five).
    fn watched(&self) -> usize {
        self.cores.iter().copied().find(|cores| *cores >= 5).unwrap_or_default()
    }
}

pub(super) const QUICK: Size = Size {
    cores: &[4, 7],
    workloads: 3,
    repeats: Repeats { least: 1, most: 1, narrow: 0.0 },
    alone: Duration::from_secs(1),
    training: training::TrainingSize { quantum: Duration::from_millis(100), quanta: 10, fours: 60 },
};

/// Workloads differ by much more than repeats of one do, so that each is run once. The paper has about twice as
/// many; with these, all figures together take about an hour on two CPUs.
pub(super) const FULL: Size = Size {
    cores: &[4, 5, 6, 7, 8, 9, 10],
    workloads: 6,
    repeats: Repeats { least: 1, most: 1, narrow: 0.0 },
    alone: Duration::from_secs(2),
    training: training::TrainingSize {
        quantum: Duration::from_millis(100),
        quanta: 20,
        fours: 400,
    },
};

impl Source for Symbiotic {
    fn name(&self) -> &'static str {
        "symbiotic scheduling, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.programs(CPU2006), CPU2006, FIGURES)
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
        let programs = context.programs(CPU2006);
        let profiles = context.profiles(&programs)?;
        let description = super::described(POWER8)?;
        let core = description.clone();
        let trained = train(core, 4, &profiles, &size.training, context, progress)?;
        let known = Knowledge::of(&trained);
        let ready = PreparedMachine::new(description, &profiles, &[1, 2, 4], context)?;
        let (mut by_width, mut schedules) = (BTreeMap::new(), BTreeMap::new());
        for width in [2, 4] {
            let counts = (size.cores, size.workloads);
            let mut mixes = mixes(counts, width, &programs, &ready.builder, context.seed);
            if width == 4 {
                let core = ready.builder.description().clone();
                let (of, pairs) = ((core, &profiles, &size.training), &trained.slowdowns);
                with_groups(&mut mixes, width, of, pairs, context, progress)?;
            }
            let comparison = Comparison {
                name: format!("feliu-smt{width}"),
                mixes,
                contenders: contenders(width, &known),
                repeats: size.repeats,
                alone: size.alone,
                models: &[],
            };
            let compared = ready.carry_out(comparison, context, progress)?;
            let cores = size.watched();
            let ids: &[&'static str] =
                if width == 2 { &["feliu-fig9a", "feliu-fig9b"] } else { &["feliu-fig10"] };
            for (number, id) in ids.iter().enumerate() {
                let named = |mix: &&Mix| mix.name == name(width, cores, number);
                let mix = compared.mixes.iter().find(named);
                let shares = mix.map(|mix| together(mix, &compared.finished));
                schedules.insert(*id, shares.unwrap_or_default());
            }
            by_width.insert(width, compared.rows);
        }
        let mut reproduced = points(&size, &by_width, context.seed);
        reproduced.points.extend(schedules);
        reproduced.points.insert("feliu-fig5", accuracy::forward(&trained));
        reproduced.points.insert("feliu-fig6", accuracy::inverse(&trained));
        let [forward, inverse] = accuracy::histograms(&trained);
        reproduced.points.insert("feliu-fig5-errors", forward);
        reproduced.points.insert("feliu-fig6-errors", inverse);
        reproduced.facts.push(described(ready.builder.description()));
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        let Size { workloads, repeats, alone, .. } = size;
        let said = format!(
            "{workloads} for each count of cores and SMT mode, runs of each: {}, targets of {alone:?}",
            repeats.most
        );
        reproduced.facts.push(("Workloads".to_owned(), said));
        Ok(reproduced)
    }
}

/// Adds the groups of the best static grouping that is found to each mix.
fn with_groups(
    mixes: &mut [Mix],
    width: usize,
    (core, profiles, size): (Description, &BTreeMap<String, Profile>, &training::TrainingSize),
    pairs: &PairSlowdowns,
    context: &Context<'_>,
    progress: &mut dyn Progress,
) -> Result<(), Error> {
    let of = |mix: &Mix, known: &Throughputs| search(&mix.programs, width, pairs, known);
    let next = |known: &Throughputs| -> BTreeSet<Vec<String>> {
        mixes.iter().filter_map(|mix| of(mix, known).err()).flatten().collect()
    };
    // The same time in fewer quanta, since many groups are kept.
    let training::TrainingSize { quantum, quanta, .. } = *size;
    let size =
        training::TrainingSize { quantum: quantum * 4, quanta: (quanta / 4).max(1), fours: 0 };
    let known = explore(core, width, profiles, &size, context, &next, progress)?;
    for mix in mixes {
        mix.groups = of(mix, &known).map_err(|missing| {
            Error::evaluation(format!("{}: {} groups gave no throughput", mix.name, missing.len()))
        })?;
    }
    Ok(())
}

fn contenders(width: usize, known: &Knowledge) -> Vec<Contender> {
    let symbiotic = |name: &str, policy| known.contender(name, policy);
    let warm = Switches { warm_caches: true, ..Switches::default() };
    let free =
        |contender: Contender| Contender { costs: Some(Costs::NONE), switches: warm, ..contender };
    let private = |contender: Contender| Contender {
        switches: Switches { private_units: true, private_caches: true, ..warm },
        ..free(contender)
    };
    let paid = |reserved, contender: Contender| Contender {
        decision: Decision { takes: DECISION, reserved },
        ..contender
    };
    let shuffled =
        Contender { shown: ShownMeasurements::Shuffled, ..symbiotic(SHUFFLED, "symbiotic") };
    let mut all = vec![
        Contender::new(RANDOM, "random"),
        Contender::new(OS, "stay"),
        Contender::new(L1, "l1-bandwidth"),
        paid(true, Contender { watched: true, ..symbiotic(SYMBIOTIC, "symbiotic") }),
        paid(false, symbiotic(ONLINE, "symbiotic-online")),
        paid(true, symbiotic(NUMA, "symbiotic-numa")),
    ];
    match width {
        2 => all.push(paid(true, symbiotic(ORACLE, "oracle"))),
        _ => all.push(Contender::new(STATIC, "static")),
    }
    let controls = [
        free(Contender::new(RANDOM_FREE, "random")),
        free(shuffled),
        private(Contender::new(RANDOM_PRIVATE, "random")),
        private(symbiotic(PRIVATE, "symbiotic")),
    ];
    all.extend(controls.map(|control| Contender { mixes: Some(CONTROLLED), ..control }));
    all
}

/// Time of a decision about 40 threads, which the paper does not print: that of ours on a processor of today, rounded
/// up. Meanwhile the last core is left to the decision (section 4.3), and programs run on where they are for
/// `symbiotic-online`.
pub(super) const DECISION: Duration = Duration::from_millis(1);

/// Mixes that the controls run in.
const CONTROLLED: usize = 8;

/// The paper's workloads: so many for each count of cores, `width` programs for each core, on cores 0 to
/// c − 1.
pub(super) fn mixes(
    (counts, workloads): (&[usize], usize),
    width: usize,
    programs: &[String],
    builder: &TableBuilder<'_>,
    seed: u64,
) -> Vec<Mix> {
    let mix = |number: usize, cores: usize| {
        let place = (number as u64) << 16 | (cores as u64) << 8 | width as u64;
        let drawn = draw(programs, width * cores, seed.rotate_left(32) ^ place);
        let taken = builder.description().topology.cores().iter().take(cores);
        let allowed = taken.flat_map(|core| core.cpus.iter().take(width)).collect();
        Mix {
            name: name(width, cores, number),
            programs: drawn,
            phased: Vec::new(),
            groups: Vec::new(),
            allowed,
        }
    };
    let numbers = 0..workloads;
    numbers.flat_map(|number| counts.iter().map(move |cores| mix(number, *cores))).collect()
}

fn name(width: usize, cores: usize, number: usize) -> String {
    format!("smt{width}-{cores:02}-{number:02}")
}
