//! `auto` against the OS and each policy that it could have chosen, on simulated machines.
//!
//! No paper has this. `auto` decides where no policy is named, so it must not lose to the OS under any
//! load, and should do about as well as the best policy for the machine. Mixes fill half of the hardware
//! threads to all of them; half of the mixes have two programs with serial and parallel phases.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{Machine, Support};
use symbiont_model::{Components, Depth};
use symbiont_policy::{Entry, Fixed, Settings, policies};
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{SimMachine, SimOptions};

use super::compared::{Comparison, PreparedMachine};
use super::figure::{Drawing, Figure, Paper, Point};
use super::own::{CPU2006_AND_2017, ProgramUse};
use super::trained::{Knowledge, train};
use super::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Metric, Progress, Repeats, Rows};
use symbiont_experiments_sim::code::described;
use symbiont_experiments_sim::mixes::{Contender, Mix, Phased, deal};
use symbiont_experiments_sim::training::simulated::catalogue;
use symbiont_experiments_sim::training::{self};
use symbiont_experiments_sim::{ShownMeasurements, SimulateError};

/// The default policy, simulated.
#[derive(Debug)]
pub struct Auto;

/// By description and hardware threads of a core that are used; none: all.
const MACHINES: [(&str, Option<usize>); 3] =
    [("power8-s812l", Some(2)), ("xeon-e5-2620v4", None), ("alder-lake", None)];
/// Shares of the hardware threads that mixes fill, in turn.
const FILLED: [f64; 5] = [0.5, 0.625, 0.75, 0.875, 1.0];
/// Parallel to serial time of programs with phases.
const PHASED: [&str; 2] = ["1:4", "4:1"];
/// Numbers of mixes that differ in how they are filled, or in phases.
const NUMBERS: usize = 2 * FILLED.len();
/// Long quanta, since groups of events take turns in each reading.
const TRAINING: training::TrainingSize =
    training::TrainingSize { quantum: Duration::from_millis(500), quanta: 10, fours: 0 };

const OS: &str = "OS";
const OWN: &str = "auto";
const MODELLED: &str = "auto with a model";
const SHUFFLED: &str = "auto (measurements shuffled)";
const PRIVATE: &str = "auto (all resources private)";
const OS_PRIVATE: &str = "OS (all resources private)";

const CHOICE: &str = "Which policies cannot run on a machine, and why, is among the facts below; so are the mixes in \
                      which auto loses to the OS, if there are any.";
const CONTROLS: &str = "Negative controls: without contention, and with measurements shuffled between programs. Cores \
                        of their own and faster cores do not depend on either, so that mixes with phases and \
                        machines with two core types keep a gain.";

const fn figure(id: &'static str, title: &'static str) -> Figure {
    Figure {
        id,
        paper: Paper::Symbiont,
        place: "auto",
        title,
        quantity: "Gain in STP",
        unit: Some("%"),
        neutral: Some(0.0),
        drawn: Drawing::Dots,
        deviations: &[CHOICE],
    }
}

const FIGURES: &[Figure] = &[
    figure("symbiont-auto", "STP of auto over the OS and each policy, simulated"),
    Figure {
        quantity: "ANTT over another's; lower is better",
        ..figure("symbiont-auto-antt", "ANTT of auto over the OS and each policy, simulated")
    },
    Figure {
        drawn: Drawing::Table,
        ..figure("symbiont-auto-mixes", "STP of auto over the OS in each mix, simulated")
    },
    Figure {
        deviations: &[CONTROLS],
        ..figure(
            "symbiont-auto-controls",
            "STP of auto over the OS without a signal or contention, simulated",
        )
    },
];

impl Source for Auto {
    fn name(&self) -> &'static str {
        "the default policy, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.few_programs(CPU2006_AND_2017), CPU2006_AND_2017, FIGURES)
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let (count, alone, repeats) = match context.effort {
            Effort::Quick => (2, 1, Repeats { least: 2, most: 2, narrow: 0.005 }),
            Effort::Full => (NUMBERS, 4, Repeats { least: 3, most: 10, narrow: 0.005 }),
        };
        let programs = context.few_programs(CPU2006_AND_2017);
        let profiles = context.profiles(&programs)?;
        let mut reproduced = Reproduction::default();
        for (name, smt) in MACHINES {
            let description =
                super::described(name)?.restricted(None, smt).map_err(Error::evaluation)?;
            let known = knowledge(&description, &profiles, context, progress)?;
            let ready = PreparedMachine::new(description, &profiles, &[1, 2], context)?;
            let description = ready.builder.description();
            let (able, unable) = able(description, &support(&ready.builder)?, &known.settings);
            let mix = |at: usize| mix(description, at * NUMBERS / count, &programs, context.seed);
            let comparison = Comparison {
                name: format!("symbiont-auto-{name}"),
                mixes: (0..count).map(mix).collect(),
                contenders: contenders(&able, &known),
                repeats,
                alone: Duration::from_secs(alone),
                models: &[],
            };
            let rows = ready.carry_out(comparison, context, progress)?.rows;
            points(name, &rows, &able, context.seed, &mut reproduced);
            let lost: Vec<String> =
                [OWN, MODELLED].iter().flat_map(|own| losers(own, &rows, repeats)).collect();
            let lost = if lost.is_empty() { "none".to_owned() } else { lost.join("; ") };
            reproduced.facts.extend([
                described(description),
                (format!("Policies that cannot run on {name}"), unable.join("; ")),
                (format!("Mixes in which auto loses to the OS on {name}"), lost),
            ]);
        }
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}

/// A model of pairs on the machine's first core type; none where its counters give no stacks.
pub(super) fn knowledge(
    machine: &Description,
    profiles: &BTreeMap<String, Profile>,
    context: &Context<'_>,
    progress: &mut dyn Progress,
) -> Result<Knowledge, Error> {
    if Components::of(&catalogue(machine).map_err(Error::evaluation)?, Depth::Coarse.sum()).is_err()
    {
        return Ok(Knowledge::default());
    }
    let kind = machine.core_types.first().map(|core| core.kind).unwrap_or_default();
    let core = machine.clone().of_type(kind).map_err(Error::evaluation)?;
    Ok(Knowledge::of(&train(core, 2, profiles, &TRAINING, context, progress)?))
}

/// What can be counted on a machine.
pub(super) fn support(builder: &TableBuilder<'_>) -> Result<Support, Error> {
    let fast = builder.fast(Switches::default());
    let options = SimOptions::default();
    let machine = SimMachine::new(builder.description(), fast, Vec::new(), &[], options);
    Ok(machine.map_err(SimulateError::from)?.support().clone())
}

/// The policies that can run on a machine, in the order of the list, and why each of the others cannot.
pub(super) fn able(
    description: &Description,
    support: &Support,
    settings: &Settings,
) -> (Vec<&'static Entry>, Vec<String>) {
    let topology = &description.topology;
    let (mut able, mut unable) = (Vec::new(), Vec::new());
    for entry in policies() {
        let why = match entry.name {
            "symbiotic-numa" if description.memory.nodes.len() == topology.nodes().len() => {
                Some("each node has memory: it is the same as symbiotic".to_owned())
            }
            "static" if settings.get(&Fixed::TOGETHER).is_none() => {
                Some("it places as a user says, and no user does".to_owned())
            }
            _ => entry.check(settings, Some((support, topology))).err().map(|why| why.to_string()),
        };
        match why {
            None => able.push(entry),
            Some(why) => unable.push(format!("{}: {why}", entry.name)),
        }
    }
    (able, unable)
}

/// What tables call a policy.
fn name(entry: &Entry) -> &'static str {
    if entry.name == "stay" { OS } else { entry.name }
}

/// The OS first, as the baseline. Repeats are added for `auto`, with and without a model; the others and
/// the controls run in the first repeat.
fn contenders(able: &[&'static Entry], known: &Knowledge) -> Vec<Contender> {
    let modelled = |name: &str, policy| known.contender(name, policy);
    let plain = |name: &str| Contender::new(name, symbiont_policy::DEFAULT);
    let once = |contender: Contender| Contender { repeats: Some(1), ..contender };
    let private =
        |contender: Contender| once(Contender { switches: Switches::ALL_PRIVATE, ..contender });
    let mut all = vec![Contender::new(OS, "stay"), plain(OWN)];
    if known.settings.models.is_some() {
        all.push(modelled(MODELLED, symbiont_policy::DEFAULT));
    }
    let others = able.iter().filter(|entry| ![OS, OWN].contains(&name(entry)));
    all.extend(others.map(|entry| once(modelled(entry.name, entry.name))));
    all.push(once(Contender { shown: ShownMeasurements::Shuffled, ..plain(SHUFFLED) }));
    all.push(private(plain(PRIVATE)));
    all.push(private(Contender::new(OS_PRIVATE, "stay")));
    all
}

fn mix(machine: &Description, number: usize, programs: &[String], seed: u64) -> Mix {
    let cpus = machine.topology.cpus();
    let filled = (FILLED[number % FILLED.len()] * cpus.len() as f64).round() as usize;
    let threads = (cpus.len() / 4).max(1);
    let ratios = if number < FILLED.len() { &[][..] } else { &PHASED };
    let ratios = ratios.iter().filter_map(|ratio| ratio.parse().ok());
    let phased: Vec<Phased> = ratios.map(|ratio| Phased { ratio, threads }).collect();
    let count = filled.saturating_sub(phased.len() * (threads - 1)).max(1);
    let with = if phased.is_empty() { "" } else { " with phases" };
    Mix {
        name: format!("mix {number}{with}"),
        programs: deal(programs, count, seed.rotate_left(32) ^ number as u64),
        phased,
        groups: Vec::new(),
        allowed: cpus.iter().collect(),
    }
}

fn points(
    machine: &str,
    rows: &Rows,
    able: &[&'static Entry],
    seed: u64,
    reproduced: &mut Reproduction,
) {
    let mut put = |id: &'static str, points: Vec<Point>| {
        reproduced.points.entry(id).or_default().extend(points);
    };
    for (id, metric) in [("symbiont-auto", Metric::Stp), ("symbiont-auto-antt", Metric::Antt)] {
        let over =
            able.iter().map(|entry| name(entry)).chain([MODELLED]).filter(|other| *other != OWN);
        let point = |other: &str| {
            let gain = rows.gain(OWN, other, metric, seed).ok()?;
            Some(Point::new(machine, format!("over {other}"), gain.percent()))
        };
        put(id, over.filter_map(point).collect());
    }
    let mut by_mix = Vec::new();
    for own in [OWN, MODELLED] {
        for mix in rows.workloads() {
            let gain = rows.only(|row| row.workload == mix).gain(own, OS, Metric::Stp, seed);
            let at = format!("{machine}, {mix}");
            by_mix.extend(gain.ok().map(|gain| Point::new(own, at, gain.percent())));
        }
    }
    put("symbiont-auto-mixes", by_mix);
    let mut controls = Vec::new();
    for (with, what) in [(false, "without phases"), (true, "with phases")] {
        let rows = rows.only(|row| row.repeat == 0 && row.workload.ends_with("phases") == with);
        for (own, other) in [(OWN, OS), (SHUFFLED, OS), (PRIVATE, OS_PRIVATE)] {
            let gain = rows.gain(own, other, Metric::Stp, seed).ok();
            let at = format!("{machine}, {what}");
            controls.extend(gain.map(|gain| Point::new(own, at, gain.percent())));
        }
    }
    put("symbiont-auto-controls", controls);
}

fn losers(own: &str, rows: &Rows, repeats: Repeats) -> Vec<String> {
    let losers = rows.losers(own, OS, repeats).into_iter();
    losers.map(|loser| format!("{own}, {loser}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Description {
        Description::named("power8-s812l").unwrap().restricted(Some(8), Some(2)).unwrap()
    }

    #[test]
    fn mixes_fill_the_machine_as_stated() {
        let programs: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let drawn: Vec<Mix> = (0..10).map(|at| mix(&machine(), at, &programs, 1)).collect();
        let threads = |mix: &Mix| {
            let phased: usize = mix.phased.iter().map(|by| by.threads).sum();
            mix.programs.len() - mix.phased.len() + phased
        };
        let filled: Vec<usize> = drawn.iter().map(threads).collect();
        assert_eq!(filled, [8, 10, 12, 14, 16, 8, 10, 12, 14, 16]);
        let phased: Vec<usize> = drawn.iter().map(|mix| mix.phased.len()).collect();
        assert_eq!(phased, [0, 0, 0, 0, 0, 2, 2, 2, 2, 2]);
        assert_eq!(drawn[9], mix(&machine(), 9, &programs, 1));
        assert_ne!(drawn[9], mix(&machine(), 9, &programs, 2));
    }

    #[test]
    fn policies_that_cannot_run_are_named() {
        let builder = TableBuilder::new(machine());
        let support = support(&builder).unwrap();
        let (able, unable) = able(&machine(), &support, &Settings::default());
        let names: Vec<&str> = able.iter().map(|entry| name(entry)).collect();
        assert!([OS, OWN, "phases"].iter().all(|name| names.contains(name)), "{names:?}");
        let says = |text: &str| unable.iter().any(|why| why.contains(text));
        assert!(
            says("symbiotic: it needs an interference model") && says("static: "),
            "{unable:?}"
        );
        assert_eq!(able.len() + unable.len(), policies().len());
        let contenders = contenders(&able, &Knowledge::default());
        assert_eq!(contenders.len(), able.len() + 3, "all policies and the controls");
        assert_eq!((contenders[0].policy, contenders[0].repeats), ("stay", None));
    }
}
