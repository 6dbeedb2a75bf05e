//! `symbiont run --policy l1-bandwidth` over the stand-in catalogue.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use symbiont_counters::{History, Measurements};
use symbiont_linux::perf::support;
use symbiont_machine::{Change, Outcome, Target, ThreadId};
use symbiont_topology::{CpuSet, HostTopology, PuId};
use symbiont_trace::{Quantum, Reader};
use tempfile::TempDir;

use crate::worker::WORKER;

pub const STAND_IN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../host/linux/tests/counting/stand-in.toml");
/// No wait in these tests is longer; all but the broken end much sooner.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How often in a row the placement must be seen to be right, and how many recorded
/// quanta must be judged.
pub const LASTS: u32 = 10;
/// Long compared with a time slice: on a busy machine, too, all run in most quanta.
pub const QUANTUM: Duration = Duration::from_millis(100);
/// A thread that ran less since it was counted before need not have had a page fault, hungry or not.
const ENOUGH: Duration = Duration::from_millis(2);

pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn symbiont(state: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    // Masks are what these tests look at.
    command.args(["run", "--narrow", "always", "--state-dir"]).arg(state.path().join("state"));
    command.env("XDG_STATE_HOME", state.path());
    command
}

/// Two hardware threads of different cores that this process may use.
fn two_cores() -> Option<[PuId; 2]> {
    let host = HostTopology::read().ok()?;
    let own = mask_of(std::process::id())?;
    let mut free = host.cores().iter().filter_map(|core| core.cpus.intersection(&own).first());
    Some([free.next()?, free.next()?])
}

pub fn mask_of(thread: u32) -> Option<CpuSet> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    line.trim().parse().ok()
}

/// The managed program, ended when dropped.
pub struct Program {
    child: Child,
    end: Option<ChildStdin>,
    /// Process numbers by role.
    pub processes: BTreeMap<String, Vec<u32>>,
}

impl Program {
    /// Managed as these arguments say.
    pub fn start(state: &TempDir, args: &[&str], record: &Path, cpus: [PuId; 2]) -> Self {
        let mut command = symbiont(state);
        command.args(args).args(["--quantum", &format!("{}ms", QUANTUM.as_millis())]);
        command.arg("--record").arg(record).arg("--").arg(std::env::current_exe().unwrap());
        command.args([WORKER, "parent"]).args(cpus.map(|pu| pu.0.to_string()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let end = child.stdin.take();
        let mut processes: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some((role, pid)) = line.split_once(' ') else { break };
            processes.entry(role.to_owned()).or_default().push(pid.parse().unwrap());
        }
        Self { child, end, processes }
    }

    /// Do both processes of this role have a hardware thread of their own?
    pub fn is_apart(&self, role: &str) -> bool {
        let masks: Vec<_> = self.processes[role].iter().filter_map(|pid| mask_of(*pid)).collect();
        matches!(&masks[..], [a, b] if a.len() == 1 && b.len() == 1 && a != b)
    }

    /// Waits until each role has its processes on different hardware threads,
    /// several times in a row, and until enough quanta of the recording could be judged.
    pub fn wait_until_apart(&self, record: &Path, judge: impl Fn(&Path) -> u32) {
        let begin = Instant::now();
        let (mut right, mut judged) = (0, 0);
        while right < LASTS || judged < LASTS {
            assert!(
                begin.elapsed() < TIMEOUT,
                "{right} times in a row balanced, {judged} quanta judged; {}",
                tail(record)
            );
            std::thread::sleep(QUANTUM);
            let apart = self.is_apart("hungry") && self.is_apart("modest");
            right = if apart { right + 1 } else { 0 };
            if right >= LASTS {
                judged = judge(record);
            }
        }
    }

    pub fn finish(mut self) {
        drop(self.end.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The children see that their parent is gone.
        drop(self.end.take());
        let _ = self.child.wait();
    }
}

/// What a test needs that has threads placed on two cores.
pub struct Bench {
    pub cpus: [PuId; 2],
    pub state: TempDir,
    pub record: PathBuf,
}

impl Bench {
    /// None, with the reason printed, where that cannot be.
    pub fn set() -> Option<Self> {
        if let Err(error) = support().software {
            skip(&error.to_string());
            return None;
        }
        let cpus = two_cores();
        if cpus.is_none() {
            skip("needs two cores");
        }
        let state = tempfile::tempdir().unwrap();
        let record = state.path().join("recording.jsonl");
        Some(Self { cpus: cpus?, state, record })
    }
}

pub fn balanced() {
    let Some(Bench { cpus, state, record }) = Bench::set() else { return };
    let args = ["--policy", "l1-bandwidth", "--catalogue", STAND_IN];
    let program = Program::start(&state, &args, &record, cpus);
    assert_eq!(program.processes.values().map(Vec::len).sum::<usize>(), 4);
    let hungry = program.processes["hungry"].clone();

    // The affinity of the real threads.
    program.wait_until_apart(&record, |record| judge(record, &hungry));
    program.finish();

    // How it came to be: counts, what they mean, placement, moves.
    let mut reader = Reader::open(&record).unwrap();
    assert!(reader.header().support.signals.len() > 1, "{:?}", reader.header().support);
    let mut done = 0;
    while let Some(quantum) = reader.next_quantum().unwrap() {
        let moves = quantum.moves.iter().filter(|(asked, outcome)| {
            matches!((&asked.change, outcome), (Change::Affinity(_), Outcome::Done))
        });
        done += moves.count();
    }
    assert!(done >= 4, "{done}");
    assert!(judge(&record, &hungry) >= LASTS);
}

/// The quanta of a recording before which each of the four had run long enough to distinguish the
/// programs, with what was known then.
pub fn distinguished(record: &Path) -> Vec<(Quantum, Measurements)> {
    let mut reader = Reader::open(record).unwrap();
    let mut history = History::default();
    let mut counted: BTreeMap<ThreadId, Duration> = BTreeMap::new();
    let mut quanta = Vec::new();
    while let Some(quantum) = reader.next_quantum().unwrap() {
        let known = history.take(&quantum.sample).unwrap();
        let before = std::mem::take(&mut counted);
        for thread in &quantum.sample.threads {
            if let Some(Ok(reading)) = thread.counts.first() {
                counted.insert(thread.id, reading.running);
            }
        }
        let long = |(id, running): &(&ThreadId, &Duration)| {
            before.get(id).is_some_and(|last| running.saturating_sub(*last) >= ENOUGH)
        };
        if counted.iter().filter(long).count() == 4 {
            quanta.push((quantum, known));
        }
    }
    quanta
}

/// Whenever all run, settled, and were counted for long enough, the hungry are kept apart.
/// How often was that?
fn judge(record: &Path, hungry: &[u32]) -> u32 {
    let quanta = distinguished(record);
    let judged = quanta.iter().filter_map(|(quantum, known)| are_apart(quantum, known, hungry));
    judged.inspect(|apart| assert!(apart, "{}", tail(record))).count().try_into().unwrap()
}

/// If all four run, settled: are the hungry on different hardware threads? Checks what was
/// measured of them.
fn are_apart(quantum: &Quantum, known: &Measurements, hungry: &[u32]) -> Option<bool> {
    let mut demands = Vec::new();
    let mut places = Vec::new();
    let runnable = |state| state == symbiont_machine::RunState::Runnable;
    for thread in quantum.sample.threads.iter().filter(|t| runnable(t.state)) {
        if !thread.lifecycle.is_settled() {
            return None;
        }
        let measured = known[&thread.id].get("l1d_bandwidth").ok()?;
        let is_hungry = hungry.contains(&thread.id.process);
        demands.push((is_hungry, measured.value));
        if is_hungry {
            let assignment = &quantum.placement[&thread.id];
            assert!(assignment.reason.contains("faults/nanoseconds"), "{}", assignment.reason);
            places.push(match &assignment.target {
                Target::Cpus(cpus) => cpus.clone(),
                Target::Os => return None,
            });
        }
    }
    let [a, b] = &places[..] else { return None };
    let of = |wanted| demands.iter().filter(move |(is, _)| *is == wanted).map(|(_, value)| *value);
    if of(false).count() != 2 {
        return None;
    }
    let least = of(true).fold(f64::MAX, f64::min);
    let most = of(false).fold(0.0, f64::max);
    assert!(least > 10.0 * most, "{demands:?}");
    Some(a != b)
}

/// The last reasons in a recording, for a test that fails.
fn tail(record: &Path) -> String {
    let text = std::fs::read_to_string(record).unwrap_or_default();
    text.lines().rev().take(3).collect::<Vec<_>>().join("\n")
}

pub fn run(args: &[&str]) -> Output {
    let state = tempfile::tempdir().unwrap();
    let mut command = symbiont(&state);
    command.args(args).args(["--report", "text", "--", "true"]).output().unwrap()
}

pub fn refused() {
    // The kernel's software events measure no bandwidth of any cache.
    let output = run(&["--policy", "l1-bandwidth", "--catalogue", "software"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the program runs all the same: {said}");
    assert!(said.contains("policy 'l1-bandwidth' needs L1D bandwidth, but"), "{said}");
    assert!(said.contains("l1d_bandwidth"), "{said}");
}

pub fn no_catalogue() {
    let output = run(&["--catalogue", "pentium"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(
        said.contains("no event catalogue is called 'pentium'") && said.contains("power8"),
        "{said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.toml");
    std::fs::write(&file, "name = \"odd\"\ntitel = 1\n").unwrap();
    let output = run(&["--catalogue", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("odd.toml:2: titel: unknown key"), "{said}");
}
