//! How long tables of real programs take to make, and how closely they match the window model.
//!
//!     cargo run --release -p symbiont-sim-fast --example preparation -- profiles [PHASES [MACHINE...]]
//!
//! For each machine: the time to make the tables of each program's first PHASES phases (default 1),
//! in SMT1 and in the widest mode, of one processor. Then seeded coschedules of these phases fill
//! a core. By the window model each settles at an environment for each thread: there, the CPI
//! that the table says is compared with that of the window model. Then the coschedule
//! is solved with tables: again the CPI of each thread, and the mean speed of the coschedule. Where
//! fixed points lie close together these differ more.

#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::path::PathBuf;

use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::physics::State;
use symbiont_sim_fast::physics::core_model::{CoreModel, Direct, Tables};
use symbiont_sim_fast::physics::domains::Physics;
use symbiont_sim_fast::physics::pipeline::{CoreSharing, Environment};
use symbiont_sim_fast::physics::prepared::Prepared;
use symbiont_sim_fast::physics::response_table::Summary;
use symbiont_sim_fast::physics::tasks::{CoreLoad, RunningThread, Switches, Task};
use symbiont_sim_fast::physics::window::Outcome;

/// Coschedules on each machine.
const COSCHEDULES: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or("name the folder of the profiles")?;
    let phases: usize = words.next().map_or(Ok(1), |word| word.parse())?;
    let mut machines: Vec<String> = words.collect();
    if machines.is_empty() {
        machines = Description::builtin().iter().map(|(name, _)| (*name).to_owned()).collect();
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    let read = |path: &PathBuf| Profile::read(path);
    let profiles = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    println!(
        "machine              mode tables seconds each; off by (mean, 95th %, worst) in the same \
         environments; in coschedules; speed"
    );
    for machine in machines {
        look(&Description::named(&machine)?, &profiles, phases)?;
    }
    Ok(())
}

fn look(machine: &Description, profiles: &[Profile], most: usize) -> Result<(), Box<dyn Error>> {
    let physics = Physics::new(machine);
    let phases = profiles.iter().flat_map(|profile| profile.phases.iter().take(most));
    let prepared =
        phases.map(|phase| Prepared::new(machine, phase)).collect::<Result<Vec<_>, _>>()?;
    let widest = machine.topology.smt_width() as u32;
    let mut modes = vec![1, widest];
    modes.dedup();
    for mode in modes {
        let begin = seconds()?;
        for phase in &prepared {
            physics
                .prepare(phase, 0, mode, CoreSharing::of(mode as usize))
                .ok_or("no such core")?;
        }
        let (tables, seconds) = (prepared.len(), seconds()? - begin);
        print!(
            "{:20} SMT{mode} {tables:6} {seconds:7.1} {:4.2}",
            machine.name,
            seconds / tables as f64
        );
        print(&physics, &prepared, mode);
    }
    Ok(())
}

/// Seconds that the processor has worked for this program.
fn seconds() -> Result<f64, Box<dyn Error>> {
    let all = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns: f64 = all.split_whitespace().next().ok_or("no time")?.parse()?;
    Ok(ns / 1e9)
}

/// The window model, which shows the error of the table where coschedules settle.
struct Checked<'a> {
    direct: Direct,
    tables: Tables<'a>,
    off: Vec<f64>,
}

impl CoreModel for Checked<'_> {
    fn summary(&mut self, task: &Task<'_>, environment: &Environment) -> Summary {
        self.direct.summary(task, environment)
    }

    fn detail(&mut self, task: &Task<'_>, environment: &Environment) -> Outcome {
        let outcome = self.direct.detail(task, environment);
        self.off.push((self.tables.summary(task, environment).cpi / outcome.cpi - 1.0).abs());
        outcome
    }

    fn inputs(&mut self, task: &Task<'_>) -> u32 {
        self.direct.inputs(task)
    }
}

/// How far tables are from the window model in the environments of coschedules, and how
/// far coschedules by tables are from those by the window model.
fn print(physics: &Physics, prepared: &[Prepared], mode: u32) {
    let mut drawn = 12345_u64;
    let mut draw = || {
        drawn =
            drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        &prepared[(drawn >> 33) as usize % prepared.len()]
    };
    let tables = Tables { physics };
    let mut checked = Checked { direct: Direct::default(), tables, off: Vec::new() };
    let (mut off, mut speeds) = (Vec::new(), 0.0);
    for _ in 0..COSCHEDULES {
        let running = |thread| RunningThread { thread, prepared: draw(), pages: &[] };
        let threads: Vec<RunningThread<'_>> = (0..u64::from(mode)).map(running).collect();
        let loads = [CoreLoad { core: 0, mode, threads: &threads }];
        let solve = |model: &mut dyn CoreModel| {
            physics.solve(model, Switches::default(), &loads, None, &mut State::default())
        };
        let (fast, direct) = (solve(&mut Tables { physics }), solve(&mut checked));
        let pairs = fast.rates.iter().zip(&direct.rates);
        let ratios: Vec<f64> =
            pairs.map(|((_, fast), (_, direct))| fast.cpi / direct.cpi).collect();
        speeds +=
            ratios.iter().map(|ratio| 1.0 / ratio - 1.0).sum::<f64>().abs() / ratios.len() as f64;
        off.extend(ratios.iter().map(|ratio| (ratio - 1.0).abs()));
    }
    let speed = 100.0 * speeds / COSCHEDULES as f64;
    println!("   {};   {}; {speed:.2} %", spread(checked.off), spread(off));
}

/// Mean, 95th percentile and worst.
fn spread(mut off: Vec<f64>) -> String {
    off.sort_by(f64::total_cmp);
    let at = |share: f64| 100.0 * off[((off.len() - 1) as f64 * share) as usize];
    let mean = 100.0 * off.iter().sum::<f64>() / off.len() as f64;
    format!("{mean:.2} %, {:.2} %, {:.2} %", at(0.95), at(1.0))
}
