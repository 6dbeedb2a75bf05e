//! `learned` against the OS and other policies that choose co-runners, on simulated machines.
//!
//! No paper has this. Mixes fill all hardware threads with steady programs, so that a policy can choose nothing but
//! which of them share a core. Each program does as much as it does alone in ten seconds, what is learned in the first
//! of them included. What co-runners do to each other is simulated: measured pairs judge that better
//! (`symbiont-measured-pairs`).

use std::time::Duration;

use symbiont_sim_fast::fast::Switches;

use super::auto::{able, knowledge, support};
use super::compared::{Comparison, PreparedMachine};
use super::figure::{Drawing, Figure, Paper, Point};
use super::own::{CPU2006_AND_2017, ProgramUse};
use super::trained::Knowledge;
use super::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Error, Metric, Progress, Repeats, Rows};
use symbiont_experiments_sim::ShownMeasurements;
use symbiont_experiments_sim::code::described;
use symbiont_experiments_sim::mixes::{Contender, Mix, deal};

/// The source.
#[derive(Debug)]
pub struct Learned;

/// By description and hardware threads of a core that are used; none: all.
const MACHINES: [(&str, Option<usize>); 2] = [("power8-s812l", Some(2)), ("xeon-e5-2620v4", None)];

const OS: &str = "OS";
const OWN: &str = "learned";
const OTHERS: [&str; 4] = ["random", "never-twice", "hysched", "symbiotic-online"];
const SHUFFLED: &str = "learned (measurements shuffled)";
const PRIVATE: &str = "learned (all resources private)";
const OS_PRIVATE: &str = "OS (all resources private)";

const FIGURE: Figure = Figure {
    id: "symbiont-learned",
    paper: Paper::Symbiont,
    place: "learned",
    title: "STP of learned over the OS and each policy that chooses co-runners, simulated",
    quantity: "Gain in STP",
    unit: Some("%"),
    neutral: Some(0.0),
    drawn: Drawing::Dots,
    deviations: &[
        "Negative controls: without contention, and with measurements shuffled between programs.",
    ],
};

impl Source for Learned {
    fn name(&self) -> &'static str {
        "learned co-runners, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        &[FIGURE]
    }

    fn uses(&self, context: &Context<'_>) -> Vec<ProgramUse> {
        ProgramUse::of_pool(&context.few_programs(CPU2006_AND_2017), CPU2006_AND_2017, &[FIGURE])
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let (count, alone, repeats) = match context.effort {
            Effort::Quick => (2, 2, Repeats { least: 2, most: 2, narrow: 0.005 }),
            Effort::Full => (8, 10, Repeats { least: 2, most: 4, narrow: 0.005 }),
        };
        let programs = context.few_programs(CPU2006_AND_2017);
        let profiles = context.profiles(&programs)?;
        let mut reproduced = Reproduction::default();
        for (name, smt) in MACHINES {
            let machine = super::described(name)?;
            let description = machine.restricted(None, smt).map_err(Error::evaluation)?;
            let known = knowledge(&description, &profiles, context, progress)?;
            let ready = PreparedMachine::new(description, &profiles, &[1, 2], context)?;
            let description = ready.builder.description();
            let cpus = description.topology.cpus();
            let mix = |number: usize| Mix {
                name: format!("mix {number}"),
                programs: deal(&programs, cpus.len(), context.seed.rotate_left(17) ^ number as u64),
                phased: Vec::new(),
                groups: Vec::new(),
                allowed: cpus.iter().collect(),
            };
            let (able, _) = able(description, &support(&ready.builder)?, &known.settings);
            let others: Vec<&'static str> =
                able.iter().map(|entry| entry.name).filter(|name| OTHERS.contains(name)).collect();
            let comparison = Comparison {
                name: format!("symbiont-learned-{name}"),
                mixes: (0..count).map(mix).collect(),
                contenders: contenders(&others, &known),
                repeats,
                alone: Duration::from_secs(alone),
                models: &[],
            };
            let rows = ready.carry_out(comparison, context, progress)?.rows;
            let points = points(name, &rows, &others, context.seed);
            reproduced.points.entry(FIGURE.id).or_default().extend(points);
            reproduced.facts.push(described(description));
        }
        reproduced.facts.push(("Programs".to_owned(), programs.join(", ")));
        Ok(reproduced)
    }
}

/// The OS first, as the baseline.
fn contenders(others: &[&'static str], known: &Knowledge) -> Vec<Contender> {
    let own = |name: &str| Contender::new(name, OWN);
    let private = |one: Contender| Contender { switches: Switches::ALL_PRIVATE, ..one };
    let mut all = vec![Contender::new(OS, "stay"), own(OWN)];
    all.extend(others.iter().map(|name| known.contender(name, name)));
    all.push(Contender { shown: ShownMeasurements::Shuffled, ..own(SHUFFLED) });
    all.push(private(own(PRIVATE)));
    all.push(private(Contender::new(OS_PRIVATE, "stay")));
    all
}

fn points(machine: &str, rows: &Rows, others: &[&'static str], seed: u64) -> Vec<Point> {
    let gain =
        |one: &str, other: &str| Some(rows.gain(one, other, Metric::Stp, seed).ok()?.percent());
    let over = |other: &&str| {
        let point = Point::new(machine, format!("over {other}"), gain(OWN, other)?);
        Some(match *other {
            OS => point
                .control("own measurements", gain(SHUFFLED, OS))
                .control("contention", gain(PRIVATE, OS_PRIVATE)),
            _ => point,
        })
    };
    [OS].iter().chain(others).filter_map(over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_run_next_to_their_controls() {
        let all = contenders(&OTHERS, &Knowledge::default());
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names[..2], [OS, OWN]);
        assert_eq!(names.len(), OTHERS.len() + 5);
        assert!(all.iter().all(|one| one.repeats.is_none()));
        let by = |name: &str| all.iter().find(|one| one.name == name).unwrap();
        assert_eq!(by(SHUFFLED).shown, ShownMeasurements::Shuffled);
        assert_eq!(by(PRIVATE).switches, by(OS_PRIVATE).switches);
        assert_eq!(by(PRIVATE).policy, OWN);
    }
}
