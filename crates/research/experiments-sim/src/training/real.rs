//! Training on this machine.
//!
//! Each run starts its programs on the hardware threads of one core, each
//! limited to one of them, and watches them through the same seam as `symbiont run`
//! does; nothing is placed. To throttle a program that runs alone, the other
//! hardware threads get a process each that executes nothing but no-operations
//! ([`NOP`]): these keep the core in the SMT mode and ask next to nothing of it
//! (Feliu et al., section 3.2).
//!
//! Programs end when the run ends; one that ends before leaves fewer quanta.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use symbiont_counters::catalogue::Catalogue;
use symbiont_linux::actuate::pin;
use symbiont_linux::launch::Wake;
use symbiont_linux::machine::{CountOptions, LinuxMachine, MachineOptions, Wait};
use symbiont_linux::observe::WatchOptions;
use symbiont_model::Components;
use symbiont_topology::{CoreKind, HostTopology, PuId};

use super::{Site, TrainingRun, TrainingSize, WatchedRun, watch};
use symbiont_campaign::Error;

/// What a process that does nothing is asked to do, as the first word of
/// symbiont's command line.
pub const NOP: &str = "nop";

/// A program to train on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trainee {
    /// What it is called.
    pub name: String,
    /// Its command line.
    pub command: Vec<String>,
}

/// Executes no-operations until it is killed or its parent is gone.
pub fn nop() {
    let parent = rustix::process::getppid();
    while rustix::process::getppid() == parent {
        for _ in 0..1_000_000_u32 {
            symbiont_linux::nops();
        }
    }
}

/// One core of this machine.
#[derive(Debug)]
pub struct Real {
    trainees: BTreeMap<String, Vec<String>>,
    catalogue: Catalogue,
    cpus: Vec<PuId>,
    core: CoreKind,
    machine: String,
    facts: Vec<(String, String)>,
    scratch: PathBuf,
}

impl Real {
    /// On these hardware threads, which should be those of one core, counted by
    /// a catalogue. The machine: how model files name it, and what a report should say of it;
    /// `scratch` is a folder for journals.
    #[must_use]
    pub fn new(
        trainees: Vec<Trainee>,
        catalogue: Catalogue,
        (cpus, core): (Vec<PuId>, CoreKind),
        (machine, facts): (String, Vec<(String, String)>),
        scratch: PathBuf,
    ) -> Self {
        let trainees = trainees.into_iter().map(|t| (t.name, t.command)).collect();
        Self { trainees, catalogue, cpus, core, machine, facts, scratch }
    }

    fn start(&self, run: &TrainingRun) -> Result<Children, Error> {
        let this = std::env::current_exe().map_err(Error::io("/proc/self/exe".as_ref()))?;
        let nop = vec![this.display().to_string(), NOP.to_owned()];
        let names = run.programs();
        let idle = match run {
            TrainingRun::Alone { width, .. } | TrainingRun::Nops { width, .. } => width - 1,
            TrainingRun::Together(_) => 0,
        };
        let known = |name: &String| {
            let command = self.trainees.get(name).filter(|command| !command.is_empty());
            command.ok_or_else(|| Error::evaluation(format!("there is no command for '{name}'")))
        };
        let commands = names.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let mut started = Children { children: Vec::new() };
        for (words, cpu) in commands.into_iter().chain(vec![&nop; idle]).zip(&self.cpus) {
            started.children.push(spawn(words, *cpu)?);
        }
        if started.children.len() < names.len() + idle {
            let (need, have) = (names.len() + idle, self.cpus.len());
            return Err(Error::evaluation(format!(
                "{run}: {need} hardware threads are needed, {have} were given (--cpus)"
            )));
        }
        Ok(started)
    }
}

fn spawn(words: &[String], cpu: PuId) -> Result<Child, Error> {
    let program = words.join(" ");
    let failed = |source: io::Error| Error::Start { program: program.clone(), source };
    let (first, rest) =
        words.split_first().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let mut command = Command::new(first);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if let Err(error) = pin(child.id(), &cpu.into()) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(error));
    }
    Ok(child)
}

/// Children, ended when dropped.
struct Children {
    children: Vec<Child>,
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sleeps.
struct Sleep;

impl Wait for Sleep {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        std::thread::sleep(timeout);
        Ok(Wake::Timeout)
    }
}

impl Site for Real {
    fn machine(&self) -> String {
        self.machine.clone()
    }

    fn facts(&self) -> Vec<(String, String)> {
        let cpus: Vec<String> = self.cpus.iter().map(|pu| pu.0.to_string()).collect();
        let mut facts = self.facts.clone();
        facts.push(("Hardware threads".to_owned(), cpus.join(", ")));
        facts.push(("Event catalogue".to_owned(), self.catalogue.name().to_owned()));
        facts
    }

    fn core(&self) -> CoreKind {
        self.core
    }

    fn basis(&self, run: &TrainingRun) -> String {
        let commands: Vec<_> = run.programs().iter().map(|name| self.trainees.get(name)).collect();
        format!("{:?} core, {:?}, {commands:?}", self.core, self.cpus)
    }

    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn workers(&self) -> usize {
        1
    }

    fn tells_nops(&self) -> bool {
        false
    }

    fn carry_out(
        &self,
        run: &TrainingRun,
        components: &Components,
        size: &TrainingSize,
    ) -> Result<WatchedRun, Error> {
        let wrong = |why: String| Error::evaluation(format!("{run}: {why}"));
        let host = HostTopology::read().map_err(|why| wrong(why.to_string()))?;
        let counting = CountOptions {
            catalogue: Some(self.catalogue.clone().into()),
            ..CountOptions::default()
        };
        let (state_dir, watching) = (self.scratch.clone(), WatchOptions::default());
        let options = MachineOptions {
            state_dir,
            watch: watching,
            counting,
            keeping: symbiont_linux::machine::Keeping::default(),
        };
        let mut machine =
            LinuxMachine::new(host, options, Sleep).map_err(|(why, _)| wrong(why.to_string()))?;
        let started = self.start(run)?;
        for (name, child) in run.programs().iter().zip(&started.children) {
            machine.enrol(name, child.id()).map_err(|why| wrong(why.to_string()))?;
        }
        // Counting begins when a thread has outlived two quanta.
        let (readings, stretch) = size.readings(run);
        let ran = watch(&mut machine, components, readings, stretch);
        drop(started);
        let _ = machine.restore_all();
        ran.map_err(|why| wrong(why.to_string()))
    }

    fn cost(&self, _: &TrainingRun, size: &TrainingSize) -> Duration {
        size.quantum * size.quanta as u32
    }
}
