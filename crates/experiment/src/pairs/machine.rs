//! This machine as a bench: programs on two of its hardware threads.
//!
//! # Approach
//! Each program runs in a session of its own, limited to one hardware thread. Our own kernels run for the same time
//! from the same moment and count their work. Users' programs are repeated: where instructions and cycles can be
//! counted, `symbiont stat` counts both programs of a pair for a while; else the first runs once while the other is
//! repeated, and its CPU time is taken.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_campaign::digest;
use symbiont_campaign::harness::{self, Error, Lead, Programs, TIMEOUT, read_json, scratch};
use symbiont_linux::actuate::pin;
use symbiont_linux::cpu_time_of_children;
use symbiont_linux::kernels::Kernel;
use symbiont_synth::kernel;
use symbiont_topology::PuId;

use super::campaign::Bench;
use super::evaluate::Speeds;
use super::names::{Program, Work};
use super::plan::{AROUND, Cell, Sides};
use crate::bench::noise::Watch;

/// Time between the start of a kernel's process and that of its work, at first.
const LEAD: Duration = Duration::from_millis(200);
/// Time in which repeated programs come to run before anything counts.
const SETTLE: Duration = Duration::from_millis(200);
/// The kernel that shows which hardware threads share a core: it asks for all ports of loads.
const CONTENDED: &str = "independent loads";
/// Are there kernels for this processor?
#[must_use]
pub fn has_kernels() -> bool {
    Kernel::named(CONTENDED).is_some()
}

/// A run of less CPU time is not compared.
const LEAST: Duration = Duration::from_millis(20);
/// Repeats the command $0, and writes its own number to the file $1.
const REPEAT: &str =
    r#"echo $$ >"$1.new" && mv "$1.new" "$1"; while sh -c "$0" >/dev/null; do :; done; exit 1"#;

/// How speeds are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Work done by CPU time.
    Work,
    /// Instructions by cycle.
    Ipc,
    /// Whole runs by CPU time.
    CpuTime,
}

impl Method {
    /// What starting and ending programs takes for each measurement.
    #[must_use]
    pub fn around(self) -> Duration {
        match self {
            Self::Work => AROUND,
            // Programs that are repeated are ended, and come to run before anything counts.
            Self::Ipc | Self::CpuTime => AROUND + 2 * SETTLE,
        }
    }

    /// Of which programs of a pair it gives the speed.
    #[must_use]
    pub fn sides(self) -> Sides {
        match self {
            Self::Work | Self::Ipc => Sides::Both,
            Self::CpuTime => Sides::First,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Work => "work done per second of CPU time",
            Self::Ipc => "instructions per cycle",
            Self::CpuTime => "CPU time of one run, while the other program is repeated",
        })
    }
}

/// One hardware thread, alone or with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CpuCell {
    /// By the OS's number.
    pub cpu: u32,
    /// The other one.
    pub other: Option<u32>,
}

impl fmt::Display for CpuCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.other {
            None => write!(f, "cpu{}, alone", self.cpu),
            Some(other) => write!(f, "cpu{} + cpu{other}", self.cpu),
        }
    }
}

/// Our own kernels on hardware threads.
pub struct Kernels {
    /// `symbiont-synth`.
    synth: PathBuf,
    /// How long they run.
    window: Duration,
    /// Folder for the files of a run.
    folder: PathBuf,
    lead: Lead,
}

impl Kernels {
    /// That run for so long.
    #[must_use]
    pub fn new(programs: &Programs, window: Duration, folder: &Path) -> Self {
        let (synth, folder) = (programs.synth.clone(), folder.to_owned());
        Self { synth, window, folder, lead: Lead::new(LEAD) }
    }

    /// Each on its hardware thread, all at the same time; operations per nanosecond of CPU time.
    fn run(&self, placed: &[(&str, PuId)], stop: &AtomicBool) -> Result<Speeds, Error> {
        let (watch, begin) = (Watch::begin(), Instant::now());
        let folder = scratch(&self.folder)?;
        let lead = self.lead.get();
        let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + lead;
        let limit = lead + self.window + TIMEOUT;
        let cancelled = || stop.load(Ordering::Relaxed);
        let one = |at: usize, (name, cpu): (&str, PuId)| {
            let words = [
                self.synth.display().to_string(),
                "kernel".to_owned(),
                name.to_owned(),
                "--json".to_owned(),
                format!("--duration={}us", self.window.as_micros()),
                format!("--start-at={:.6}", start.as_secs_f64()),
            ];
            let file = |kind: &str| folder.path().join(format!("{at}.{kind}"));
            let out = file("out");
            on(cpu, || harness::run(&words, &out, &file("err"), limit, &cancelled))?;
            read_json::<kernel::Report>(&out)
        };
        let reports = self.lead.heed(at_once(placed, &one))?;
        let mut speeds = reports.iter().map(|report| 1.0 / report.ns_per_operation);
        let first = speeds.next().unwrap_or(f64::NAN);
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Speeds { first, second: speeds.next(), seconds, noise: watch.end(Duration::ZERO) })
    }
}

/// Does something for each program at the same time.
fn at_once<T: Send>(
    placed: &[(&str, PuId)],
    one: &(dyn Fn(usize, (&str, PuId)) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            placed.iter().enumerate().map(|(at, it)| scope.spawn(move || one(at, *it))).collect();
        let ended = threads.into_iter().map(joined);
        // All have ended before the first error counts.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// What a thread of ours gave; a panic of it is one of this crate's.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does something in a thread that may use this hardware thread only, as what it starts.
fn on<T: Send>(cpu: PuId, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let pinned = || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let failed = |source| Error::Start { program: format!("a program on {cpu}"), source };
            pin(thread, &cpu.into()).map_err(failed)?;
            work()
        };
        joined(scope.spawn(pinned))
    })
}

/// A kernel on pairs of hardware threads.
pub struct OnCpus {
    /// The kernels.
    pub kernels: Kernels,
    /// What all measurements follow from.
    pub basis: String,
}

impl Bench for OnCpus {
    type Cell = CpuCell;

    fn name(&self) -> String {
        "cpus".to_owned()
    }

    fn basis(&self, _: &CpuCell) -> String {
        digest(&[&self.basis, CONTENDED, &format!("{:?}", self.kernels.window)])
    }

    fn measure(&self, cell: &CpuCell, stop: &AtomicBool) -> Result<Speeds, Error> {
        let cpus = std::iter::once(cell.cpu).chain(cell.other);
        let placed: Vec<_> = cpus.map(|cpu| (CONTENDED, PuId(cpu))).collect();
        self.kernels.run(&placed, stop)
    }

    fn cost(&self, _: &CpuCell) -> Duration {
        self.kernels.window + AROUND
    }
}

/// Programs on two hardware threads.
pub struct OnCore<'a> {
    /// Whose cells are measured.
    pub programs: &'a [Program],
    /// By which means.
    pub method: Method,
    /// The two hardware threads.
    pub cpus: [PuId; 2],
    /// `symbiont`.
    pub symbiont: PathBuf,
    /// Kernels, with the window of all measurements, and the folder for the files of a run.
    pub kernels: Kernels,
    /// A run takes longer than this: it is ended.
    pub most: Duration,
    /// What all measurements follow from.
    pub basis: String,
    /// How long each program runs alone, where whole runs are measured and that is known.
    pub alone: BTreeMap<String, Duration>,
}

impl OnCore<'_> {
    /// The command line of a program; of a kernel, its name.
    fn work(&self, name: &str) -> &str {
        match self.programs.iter().find(|program| program.name == name).map(|it| &it.work) {
            Some(Work::Command(command)) => command,
            _ => "",
        }
    }

    /// Counts both programs, which are repeated, for a while.
    fn count(&self, placed: &[(&str, PuId)], stop: &AtomicBool) -> Result<Vec<f64>, Error> {
        let folder = scratch(&self.kernels.folder)?;
        let pid_file = |at: usize| folder.path().join(format!("{at}.pid"));
        self.while_repeated(placed, &pid_file, stop, &|over| {
            std::thread::sleep(SETTLE);
            let one = |at: usize, (command, _): (&str, PuId)| {
                let file = |kind: &str| folder.path().join(format!("{at}.{kind}"));
                let pid =
                    std::fs::read_to_string(pid_file(at)).map_err(Error::io(&pid_file(at)))?;
                let counts = file("counts");
                let words = [
                    self.symbiont.display().to_string(),
                    "stat".to_owned(),
                    "--json".to_owned(),
                    "--formula=ipc".to_owned(),
                    format!("--output={}", counts.display()),
                    format!("--limit={}us", self.kernels.window.as_micros()),
                    format!("--pid={}", pid.trim()),
                ];
                let limit = self.kernels.window + TIMEOUT;
                harness::run(&words, &file("out"), &file("err"), limit, over)?;
                let text = std::fs::read_to_string(&counts).map_err(Error::io(&counts))?;
                counted(&text).map_err(Error::json(&counts))?.ok_or_else(|| {
                    Error::Evaluation(format!(
                        "instructions and cycles of `{command}` were not counted"
                    ))
                })
            };
            at_once(placed, &one)
        })
    }

    /// CPU time of a run, while the others are repeated.
    fn time(&self, placed: &[(&str, PuId)], stop: &AtomicBool) -> Result<f64, Error> {
        let Some((&(command, cpu), others)) = placed.split_first() else { return Ok(f64::NAN) };
        let folder = scratch(&self.kernels.folder)?;
        let pid_file = |at: usize| folder.path().join(format!("{at}.pid"));
        let cpu_time = || cpu_time_of_children().map_err(Error::io("/proc/self".as_ref()));
        self.while_repeated(others, &pid_file, stop, &|over| {
            if !others.is_empty() {
                std::thread::sleep(SETTLE);
            }
            let before = cpu_time()?;
            let words = ["sh", "-c", command].map(str::to_owned);
            let (out, err) = (folder.path().join("out"), folder.path().join("err"));
            // What is repeated is not waited for yet, so that its time does not count.
            on(cpu, || harness::run(&words, &out, &err, self.most, over))?;
            compared(command, cpu_time()?.saturating_sub(before))
        })
    }

    /// Does something while programs are repeated, and ends them.
    fn while_repeated<T>(
        &self,
        placed: &[(&str, PuId)],
        pid_file: &(dyn Fn(usize) -> PathBuf + Sync),
        stop: &AtomicBool,
        work: &dyn Fn(&(dyn Fn() -> bool + Sync)) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let over = AtomicBool::new(false);
        let ends = || over.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        let repeat = |at: usize, (command, cpu): (&str, PuId)| {
            let pid = pid_file(at);
            let words =
                ["sh", "-c", REPEAT, command, &pid.display().to_string()].map(str::to_owned);
            let (out, err) = (pid.with_extension("repeated"), pid.with_extension("failed"));
            let ended = on(cpu, || harness::run(&words, &out, &err, self.most, &ends));
            over.store(true, Ordering::Relaxed);
            match ended {
                Err(Error::Cancelled) => Ok(()),
                Err(Error::Failed { status, stderr, .. }) => {
                    Err(Error::Failed { program: command.to_owned(), status, stderr })
                }
                other => other.map(drop),
            }
        };
        std::thread::scope(|scope| {
            let repeated = scope.spawn(|| at_once(placed, &repeat));
            let began = || (0..placed.len()).all(|at| pid_file(at).exists());
            while !began() && !ends() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let did = work(&ends);
            over.store(true, Ordering::Relaxed);
            // Where one fails, that is why the work was ended.
            joined(repeated).and_then(|_| did)
        })
    }
}

/// The speed of a run that took so much CPU time.
fn compared(command: &str, took: Duration) -> Result<f64, Error> {
    if took < LEAST {
        return Err(Error::Evaluation(format!(
            "`{command}` takes {took:?} of CPU time; at least {LEAST:?} can be compared"
        )));
    }
    Ok(1.0 / took.as_secs_f64())
}

/// Instructions per cycle as `symbiont stat --json` reports them at last.
fn counted(text: &str) -> Result<Option<f64>, serde_json::Error> {
    let last = text.lines().last().unwrap_or_default();
    let account: serde_json::Value = serde_json::from_str(last)?;
    let ipc = account.pointer("/all/values/ipc/value").and_then(serde_json::Value::as_f64);
    Ok(ipc.filter(|ipc| *ipc > 0.0))
}

impl Bench for OnCore<'_> {
    type Cell = Cell;

    fn name(&self) -> String {
        "programs".to_owned()
    }

    fn basis(&self, cell: &Cell) -> String {
        let names = std::iter::once(&cell.program).chain(&cell.co_runner);
        let mut parts = vec![
            self.basis.clone(),
            format!("{:?} {:?}", self.method, self.cpus),
            format!("{:?}", self.kernels.window),
        ];
        parts.extend(names.map(|name| self.work(name).to_owned()));
        digest(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn measure(&self, cell: &Cell, stop: &AtomicBool) -> Result<Speeds, Error> {
        let names: Vec<&str> =
            std::iter::once(&cell.program).chain(&cell.co_runner).map(String::as_str).collect();
        if self.method == Method::Work {
            let placed: Vec<_> = names.into_iter().zip(self.cpus).collect();
            return self.kernels.run(&placed, stop);
        }
        let placed: Vec<_> = names.into_iter().map(|it| self.work(it)).zip(self.cpus).collect();
        let (watch, begin) = (Watch::begin(), Instant::now());
        let (first, second) = match self.method {
            Method::CpuTime => (self.time(&placed, stop)?, None),
            _ => {
                let mut speeds = self.count(&placed, stop)?.into_iter();
                (speeds.next().unwrap_or(f64::NAN), speeds.next())
            }
        };
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Speeds { first, second, seconds, noise: watch.end(Duration::ZERO) })
    }

    fn cost(&self, cell: &Cell) -> Duration {
        let whole = self.alone.get(&cell.program);
        whole.map_or(self.kernels.window, |alone| {
            *alone * if cell.co_runner.is_some() { 2 } else { 1 }
        }) + self.method.around()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_last_line() {
        let account = |ipc: &str| format!(r#"{{"all": {{"values": {{{ipc}}}}}}}"#);
        let ipc = |value: f64| account(&format!(r#""ipc": {{"value": {value}, "unit": "ratio"}}"#));
        let two = format!("{}\n{}\n", ipc(0.5), ipc(1.5));
        assert_eq!(counted(&two).unwrap(), Some(1.5));
        assert_eq!(counted(&account("")).unwrap(), None);
        assert_eq!(counted(&ipc(0.0)).unwrap(), None);
        assert!(counted("").is_err());
    }

    #[test]
    fn what_runs_on_a_cpu_stays_there() {
        let cpu = symbiont_linux::actuate::allowed().unwrap().first().unwrap();
        let within = on(cpu, || Ok(symbiont_linux::actuate::allowed().unwrap())).unwrap();
        assert_eq!(within.only(), Some(cpu));
        let elsewhere = PuId(16_000);
        let error = on(elsewhere, || Ok(())).unwrap_err().to_string();
        assert!(error.starts_with("cannot start `a program on cpu16000`"), "{error}");
    }

    fn core<'a>(
        programs: &'a [Program],
        folder: &Path,
        symbiont: PathBuf,
        method: Method,
    ) -> OnCore<'a> {
        let first = symbiont_linux::actuate::allowed().unwrap().first().unwrap();
        let own = Programs { symbiont: symbiont.clone(), synth: "none".into() };
        OnCore {
            programs,
            method,
            cpus: [first, first],
            symbiont,
            kernels: Kernels::new(&own, Duration::from_millis(10), folder),
            most: Duration::from_secs(60),
            basis: String::new(),
            alone: BTreeMap::new(),
        }
    }

    fn program(name: &str, command: &str) -> Program {
        Program { name: name.to_owned(), work: Work::Command(command.to_owned()) }
    }

    fn cell(program: &str, co_runner: Option<&str>) -> Cell {
        Cell { program: program.to_owned(), co_runner: co_runner.map(str::to_owned) }
    }

    const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

    #[test]
    fn a_run_is_timed_while_the_other_program_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let programs = [
            program("busy", BUSY),
            program("broken", "exit 3"),
            program("idle", "true"),
            program("long", "sleep 1000"),
        ];
        let bench = core(&programs, folder.path(), "none".into(), Method::CpuTime);
        let stop = AtomicBool::new(false);
        let measure = |one, other| bench.measure(&cell(one, other), &stop);
        for other in [None, Some("busy"), Some("idle")] {
            let speeds = measure("busy", other).unwrap();
            assert!(speeds.first > 0.0 && speeds.second.is_none() && speeds.seconds > 0.0);
        }
        for (one, other) in [("broken", None), ("busy", Some("broken"))] {
            let error = measure(one, other).unwrap_err().to_string();
            assert!(error.contains("exit 3` ended with exit status: "), "{error}");
        }
        let error = compared("true", Duration::from_millis(1)).unwrap_err().to_string();
        assert!(error.contains("`true` takes 1ms of CPU time"), "{error}");
        assert_eq!(compared("x", Duration::from_millis(500)).unwrap(), 2.0);
        let stopped = bench.measure(&cell("long", Some("busy")), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn both_programs_are_counted_while_they_are_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let scripts = tempfile::tempdir().unwrap();
        // It counts as `symbiont stat` does, of a process that has to be there.
        let text = "#!/bin/sh\nfor word; do case $word in --output=*) out=${word#*=};; --pid=*) pid=${word#*=};; esac; \
                    done\nkill -0 $pid && echo '{\"all\":{\"values\":{\"ipc\":{\"value\":1.25}}}}' >$out\n";
        let symbiont = harness::stand_in::script(scripts.path(), "symbiont", text);
        let programs = [program("busy", BUSY), program("broken", "exit 3")];
        let bench = core(&programs, folder.path(), symbiont, Method::Ipc);
        let stop = AtomicBool::new(false);
        let both = bench.measure(&cell("busy", Some("busy")), &stop).unwrap();
        assert_eq!((both.first, both.second), (1.25, Some(1.25)));
        let alone = bench.measure(&cell("busy", None), &stop).unwrap();
        assert_eq!((alone.first, alone.second), (1.25, None));
        let error = bench.measure(&cell("busy", Some("broken")), &stop).unwrap_err().to_string();
        assert!(error.contains("exit 3` ended"), "{error}");
    }
}
