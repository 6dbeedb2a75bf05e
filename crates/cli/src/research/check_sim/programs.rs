//! The programs' part of `symbiont check-sim --host`.
//!
//! A program runs in its folder with the command of its profile, if its executable is the profiled one, and with the
//! variables that the folder's file `environment` gives, by which it finds the emulator's processor and clock and
//! executes what was profiled. Half of the programs, by a hash of their names, are kept for judging: of those only
//! errors are reported.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use serde::Serialize;
use symbiont_experiments_host::hardware::host::{Clock, Errors, is_kept};
use symbiont_experiments_sim::{Kind, Library};
use symbiont_linux::user_time_of_children;
use symbiont_profile::Profile;
use symbiont_profile::capture::{environment, executable_digest};
use symbiont_sim_cycle::check::alone;
use symbiont_sim_fast::activity::{CAUSES, CYCLES, Cycle};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};

use crate::research::args::CheckSim;
use crate::research::prepare::Bar;

/// A folder's file of variables for its program.
const ENVIRONMENT: &str = "environment";
/// Times that each program runs; the fastest counts, in cycles of the moment.
const REPEATS: usize = 3;
/// Bound by memory: simulated, it waits for the L3 or memory for so much of its time.
const BOUND: f64 = 0.25;
/// Of the stack of a worst case, so many causes are named.
const CAUSES_NAMED: usize = 3;

/// A program that ran.
#[derive(Debug, Serialize)]
pub struct Ran {
    program: String,
    instructions: u64,
    /// Instructions per cycle.
    measured: f64,
    simulated: f64,
    /// Is it kept for judging?
    kept: bool,
    /// Does it wait for the L3 and memory most of all, simulated?
    memory_bound: bool,
    /// Shares of its cycles, simulated.
    stack: BTreeMap<&'static str, f64>,
}

/// What is reported of programs.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Those that are looked at.
    looked_at: Vec<Ran>,
    /// Errors of those that are looked at and of those that are kept for judging, not bound by memory, and bound by
    /// it.
    errors: BTreeMap<&'static str, Errors>,
}

/// Runs all that can, and simulates them.
pub fn run(
    folder: &Path,
    args: &CheckSim,
    description: &Description,
    clock: &Clock,
    bar: &Bar,
) -> anyhow::Result<Vec<Ran>> {
    let library = Library::open(&args.profiles)?;
    let names: Vec<String> =
        library.of_kind(Kind::Program).filter(|name| folder.join(name).is_dir()).collect();
    anyhow::ensure!(
        !names.is_empty(),
        "{} has no folder of a program in {}; `scripts/profiles.py --prepare {}` makes them",
        folder.display(),
        args.profiles.display(),
        folder.display()
    );
    let profiles = library.load_all(names.iter().map(String::as_str))?;
    let mut ran = Vec::new();
    for (number, (name, profile)) in profiles.iter().enumerate() {
        anyhow::ensure!(bar.step("programs", number, profiles.len()).is_continue(), "stopped");
        let folder = folder.join(name);
        match cycles(&folder, profile, clock)? {
            Ok(cycles) => ran.push(compared(name, profile, cycles, description)?),
            Err(why) => note!("{name}: left out: {why}"),
        }
    }
    Ok(ran)
}

/// The variables of a folder's file [`ENVIRONMENT`], one `NAME=VALUE` a line; none without one.
fn variables(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let path = folder.join(ENVIRONMENT);
    let text = match symbiont_safe_open::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("{}", path.display())),
    };
    let variable = |line: &str| {
        let (name, value) = line
            .split_once('=')
            .with_context(|| format!("{}: '{line}' is not NAME=VALUE", path.display()))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    text.lines().map(variable).collect()
}

/// Cycles in which it ran in user mode; why it cannot run else.
fn cycles(folder: &Path, profile: &Profile, clock: &Clock) -> anyhow::Result<Result<f64, String>> {
    let Some((first, rest)) = profile.command.split_first() else {
        return Ok(Err("its profile has no command".to_owned()));
    };
    let folder = folder.canonicalize().with_context(|| format!("{}", folder.display()))?;
    let executable = if first.contains('/') { folder.join(first) } else { first.into() };
    match executable_digest(executable.as_os_str(), None) {
        Ok(digest) if digest == profile.digest => {}
        Ok(_) => return Ok(Err("another version is installed than was profiled".to_owned())),
        Err(error) => return Ok(Err(error.to_string())),
    }
    let variables = variables(&folder)?;
    let mut fastest = f64::INFINITY;
    for _ in 0..REPEATS {
        let mut command = Command::new(&executable);
        command.args(rest).current_dir(&folder).env_clear().envs(environment());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (ghz, before) = (clock.ghz(), user_time_of_children()?);
        let status = command.status().with_context(|| format!("{}", executable.display()))?;
        let ns = (user_time_of_children()? - before).as_nanos() as f64;
        if !status.success() {
            return Ok(Err(format!("it ended with {status}")));
        }
        fastest = fastest.min(ns * (ghz + clock.ghz()) / 2.0);
    }
    Ok(Ok(fastest))
}

fn compared(
    name: &str,
    profile: &Profile,
    cycles: f64,
    description: &Description,
) -> anyhow::Result<Ran> {
    let home = description.memory.nodes.first().copied().context("the machine has no memory")?;
    let builder = TableBuilder::new(description.clone());
    let mut fast = builder.fast(Switches::default());
    let (mut simulated, mut spent) = (0.0, [0.0; CYCLES]);
    for (number, phase) in profile.phases.iter().enumerate() {
        let spans = profile.threads.iter().flat_map(|thread| &thread.sequence);
        let instructions: u64 = spans
            .filter(|span| usize::from(span.phase) == number)
            .map(|span| span.instructions)
            .sum();
        let Some(alone) = alone(&mut fast, phase, home)? else { continue };
        let cycles = alone.cpi * instructions as f64;
        simulated += cycles;
        spent.iter_mut().zip(alone.shares).for_each(|(sum, share)| *sum += share * cycles);
    }
    let shares = spent.map(|spent| spent / simulated);
    let instructions = profile.instructions;
    Ok(Ran {
        program: name.to_owned(),
        instructions,
        measured: instructions as f64 / cycles,
        simulated: instructions as f64 / simulated,
        kept: is_kept(name),
        memory_bound: shares[Cycle::L3 as usize] + shares[Cycle::Memory as usize] >= BOUND,
        stack: CAUSES.into_iter().zip(shares).collect(),
    })
}

impl Report {
    /// Of programs that ran.
    pub fn of(ran: Vec<Ran>) -> Self {
        type Wanted = fn(&Ran) -> bool;
        let sorts: [(&'static str, Wanted); 3] = [
            ("looked at", |it| !it.kept && !it.memory_bound),
            ("kept for judging", |it| it.kept && !it.memory_bound),
            ("bound by memory", |it| it.memory_bound),
        ];
        let errors = |wanted: Wanted| {
            let of = ran.iter().filter(|it| wanted(it)).map(|it| (it.measured, it.simulated));
            Errors::of(&of.collect::<Vec<_>>())
        };
        let errors = sorts.iter().filter_map(|(name, wanted)| Some((*name, errors(*wanted)?)));
        let errors = errors.collect();
        let mut looked_at: Vec<Ran> = ran.into_iter().filter(|it| !it.kept).collect();
        let off = |it: &Ran| (it.simulated / it.measured).ln().abs();
        looked_at.sort_by(|one, other| off(other).total_cmp(&off(one)));
        Self { looked_at, errors }
    }

    /// As text.
    pub fn show(&self) {
        say!(
            "\ninstructions per cycle of programs that are looked at: measured, simulated (over measured), its cycles"
        );
        for Ran { program, measured, simulated, memory_bound, stack, .. } in &self.looked_at {
            let mut causes: Vec<_> = stack.iter().collect();
            causes.sort_by(|one, other| other.1.total_cmp(one.1));
            let causes = causes.iter().take(CAUSES_NAMED);
            let causes: Vec<_> = causes.map(|(name, share)| format!("{name} {share:.2}")).collect();
            let (over, causes) = (simulated / measured, causes.join(", "));
            let bound = if *memory_bound { ", bound by memory" } else { "" };
            say!("{program:18} {measured:5.2} {simulated:6.2} ({over:.2}) {causes}{bound}");
        }
        for (name, errors) in &self.errors {
            say!("{name}: {}", said(errors));
        }
    }
}

/// Errors in words.
pub(super) fn said(errors: &Errors) -> String {
    let rank = errors.rank.map_or("–".to_owned(), |rank| format!("{rank:.3}"));
    let Errors { values, error, worst, .. } = errors;
    format!(
        "error {}, worst by a factor of {worst:.2}, rank {rank} ({values} values)",
        super::percent(*error)
    )
}

#[cfg(test)]
mod tests {
    use super::{ENVIRONMENT, variables};

    #[test]
    fn variables_are_those_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(variables(dir.path()).unwrap(), []);
        let write = |text| std::fs::write(dir.path().join(ENVIRONMENT), text).unwrap();
        write("LD_PRELOAD=./a.so:./b.so\nX=y=z\n");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = [pair("LD_PRELOAD", "./a.so:./b.so"), pair("X", "y=z")];
        assert_eq!(variables(dir.path()).unwrap(), given);
        write("X\n");
        let error = variables(dir.path()).unwrap_err().to_string();
        assert!(error.ends_with("'X' is not NAME=VALUE"), "{error}");
    }
}
