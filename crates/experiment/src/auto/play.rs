//! Carries out a workload under all contenders.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Machine, Signals, Support};
use symbiont_policy::{Entry, Fixed, Policy, Settings, find, policies};
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::{Options, SimMachine};
use symbiont_sim::program::{Program, Shape};

use super::page::gains;
use super::{JUDGED, Member, OS, Size, Terms, draw};
use crate::metrics;
use crate::simulated::{Exchanged, Setup, SimulateError, Stage, alternating};
use crate::stats::mean_estimate;

/// A gain whose interval is at most so wide on either side is decided; a loss of less is none.
pub(super) const NARROW: f64 = 0.005;
/// About what a simulated second of a hardware thread takes on one CPU of today.
const COST: Duration = Duration::from_millis(10);

/// A machine, its programs, and what policies know of it beforehand.
#[derive(Debug)]
pub struct Lab<'a, 'p> {
    /// The machine.
    pub workshop: &'a Workshop<'p>,
    /// The programs' profiles, by name.
    pub profiles: &'p BTreeMap<String, Profile>,
    /// What policies are given.
    pub settings: Settings,
}

/// A workload of a machine under all contenders: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The machine.
    pub machine: String,
    /// Which of its workloads.
    pub workload: usize,
    /// Its programs.
    pub programs: Vec<Member>,
    /// What ran.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The policy.
    pub policy: String,
    /// How it ran.
    pub terms: Terms,
    /// Which repeat; equal ones start alike.
    pub repeat: u32,
    /// T_alone / T_together of each program.
    pub speedups: Vec<f64>,
    /// Moves in a second.
    pub moves: f64,
    /// What the policy found out.
    pub findings: BTreeMap<String, f64>,
}

/// The policies that can run on a machine, in the order of the list, and why each of the others cannot.
#[must_use]
pub fn contenders(
    description: &Description,
    support: &Support,
    settings: &Settings,
) -> (Vec<&'static Entry>, Vec<(&'static str, String)>) {
    let topology = &description.topology;
    let memory_everywhere = description.memory.nodes.len() == topology.nodes().len();
    let (mut able, mut left_out) = (Vec::new(), Vec::new());
    for entry in policies() {
        if entry.name == "symbiotic-numa" && memory_everywhere {
            left_out
                .push((entry.name, "each node has memory: it is the same as symbiotic".to_owned()));
            continue;
        }
        if entry.name == "static" && settings.get(&Fixed::TOGETHER).is_none() {
            left_out.push((entry.name, "it places as a user says, and no user does".to_owned()));
            continue;
        }
        match entry.check(settings, Some((support, topology))) {
            Ok(()) => able.push(entry),
            Err(why) => left_out.push((entry.name, why.to_string())),
        }
    }
    (able, left_out)
}

impl<'p> Lab<'_, 'p> {
    /// The machine's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.workshop.description().name.clone()
    }

    /// The programs' names.
    pub(super) fn programs(&self) -> Vec<String> {
        self.profiles.keys().cloned().collect()
    }

    fn places(&self) -> usize {
        self.workshop.description().topology.cpus().len()
    }

    /// About how long a workload takes on one CPU.
    pub(super) fn estimate(&self, size: &Size) -> Duration {
        let runs = 12 + 2 * size.repeats.0;
        let simulated = size.alone.as_secs_f64() * 2.5 * f64::from(runs) * self.places() as f64;
        COST.mul_f64(simulated)
    }

    /// What the machine measures.
    ///
    /// # Errors
    /// When its description cannot be simulated.
    pub fn support(&self) -> Result<Support, SimulateError> {
        let fast = self.workshop.fast(Switches::default());
        let description = self.workshop.description();
        let machine = SimMachine::new(description, fast, Vec::new(), &[], Options::default())?;
        Ok(machine.support().clone())
    }

    /// Runs a workload under all contenders; `stop` asks to end early.
    pub(super) fn play(
        &self,
        workload: usize,
        size: &Size,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Record, SimulateError> {
        let names: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        let members = draw(&names, self.places(), workload, seed);
        let setup = Setup {
            alone: size.alone,
            until: size.alone * 60,
            seed: seed.wrapping_add(workload as u64),
            ..Setup::default()
        };
        let programs = self.with_targets(&members, &setup)?;
        let (able, _) = contenders(self.workshop.description(), &self.support()?, &self.settings);
        let mut record =
            Record { machine: self.name(), workload, programs: members, runs: Vec::new() };
        let plain = |entry: &&'static Entry| (entry.name, Terms::Plain);
        let modelled = self.settings.symbiosis.is_some().then_some((JUDGED, Terms::Modelled));
        let mut all: Vec<(&str, Terms)> = able.iter().map(plain).chain(modelled).collect();
        all.extend([(JUDGED, Terms::Private), (OS, Terms::Private), (JUDGED, Terms::Shuffled)]);
        let repeated = [(JUDGED, Terms::Plain), (JUDGED, Terms::Modelled), (OS, Terms::Plain)];
        for repeat in 0..size.repeats.1.max(1) {
            for &contender in &all {
                if stop.load(Ordering::Relaxed) {
                    return Err(SimulateError::Stopped);
                }
                if repeat == 0 || repeated.contains(&contender) {
                    record.runs.push(self.once(&programs, &setup, contender, repeat)?);
                }
            }
            if repeat + 1 >= size.repeats.0 && decided(&record) {
                break;
            }
        }
        Ok(record)
    }

    /// The programs of a workload, each with what it retires alone as its target.
    fn with_targets(
        &self,
        members: &[Member],
        setup: &Setup,
    ) -> Result<Vec<Program<'p>>, SimulateError> {
        let wishes = Signals::new();
        let stage = Stage { level: self.workshop, setup, wishes: &wishes };
        let mut known: BTreeMap<&Member, u64> = BTreeMap::new();
        let mut programs = Vec::new();
        for member in members {
            let missing = || SimulateError::NoProfile(member.program.clone());
            let profile = self.profiles.get(&member.program).ok_or_else(missing)?;
            let phased = |(ratio, threads): &(String, usize)| {
                Some(alternating(ratio.parse().ok()?, *threads))
            };
            let shape = member.phased.as_ref().and_then(phased).unwrap_or(Shape::Single);
            let mut program = Program { name: member.to_string(), profile, shape, target: None };
            let target = match known.get(member) {
                Some(target) => *target,
                None => stage.alone(&program)? as u64,
            };
            known.insert(member, target);
            program.target = Some(target);
            programs.push(program);
        }
        Ok(programs)
    }

    /// What a policy is given.
    pub(super) fn given(&self, policy: &str, terms: Terms) -> Settings {
        match terms {
            Terms::Modelled => self.settings.clone(),
            _ if policy == JUDGED => Settings { symbiosis: None, ..self.settings.clone() },
            _ => self.settings.clone(),
        }
    }

    fn once(
        &self,
        programs: &[Program<'p>],
        setup: &Setup,
        (name, terms): (&str, Terms),
        repeat: u32,
    ) -> Result<Run, SimulateError> {
        let entry = find(name)?;
        let seed = setup.seed_of(repeat);
        let settings = Settings { seed, ..self.given(name, terms) };
        let policy: Box<dyn Policy> = match terms {
            Terms::Shuffled => Box::new(Exchanged::new((entry.make)(&settings), seed)),
            Terms::Plain | Terms::Modelled | Terms::Private => (entry.make)(&settings),
        };
        let switches = match terms {
            Terms::Private => Switches::ALL_PRIVATE,
            Terms::Plain | Terms::Modelled | Terms::Shuffled => Switches::default(),
        };
        let (setup, wishes) = (Setup { switches, ..setup.clone() }, Signals::new());
        let stage = Stage { level: self.workshop, setup: &setup, wishes: &wishes };
        let once = stage.once(programs, policy, entry.quantum, seed, &mut |_| Ok(()))?;
        Ok(Run {
            policy: name.to_owned(),
            terms,
            repeat,
            speedups: once.speedups.ok_or(SimulateError::Unfinished(setup.until))?,
            moves: once.moves as f64 / once.length_s,
            findings: once.findings.into_iter().map(|found| (found.name, found.value)).collect(),
        })
    }
}

/// Is it decided which of `auto` and the OS has more throughput, or that neither has, with and without a
/// model?
fn decided(record: &Record) -> bool {
    [Terms::Plain, Terms::Modelled].into_iter().all(|terms| {
        let gains = gains(record, (JUDGED, terms), (OS, Terms::Plain), metrics::stp);
        let interval = mean_estimate(&gains).ok().and_then(|gain| gain.interval);
        gains.is_empty()
            || interval.is_some_and(|it| !it.contains(0.0) || it.width() <= 2.0 * NARROW)
    })
}
