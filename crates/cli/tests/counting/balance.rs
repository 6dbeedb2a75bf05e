//! `symbiont run --policy l1-bandwidth` over the stand-in catalogue.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use symbiont_counters::{History, Measurements};
use symbiont_linux::perf::support;
use symbiont_machine::{Change, Outcome, Target};
use symbiont_topology::{CpuSet, HostTopology, PuId};
use symbiont_trace::{Quantum, Reader};
use tempfile::TempDir;

use crate::worker::WORKER;

const STAND_IN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../linux/tests/counting/stand-in.toml");
/// No wait in these tests is longer; all but the broken end much sooner.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often in a row the placement must be seen to be right.
const LASTS: u32 = 10;

pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn symbiont(state: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.arg("run").arg("--state-dir").arg(state.path().join("state"));
    command
}

/// Two hardware threads of different cores that this process may use.
fn two_cores() -> Option<[PuId; 2]> {
    let host = HostTopology::read().ok()?;
    let own = mask_of(std::process::id())?;
    let mut free = host.cores().iter().filter_map(|core| core.cpus.intersection(&own).first());
    Some([free.next()?, free.next()?])
}

fn mask_of(thread: u32) -> Option<CpuSet> {
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
        command.args(args).args(["--quantum", "20ms"]);
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
    fn is_apart(&self, role: &str) -> bool {
        let masks: Vec<_> = self.processes[role].iter().filter_map(|pid| mask_of(*pid)).collect();
        matches!(&masks[..], [a, b] if a.len() == 1 && b.len() == 1 && a != b)
    }

    /// Waits until each role has its processes on different hardware threads,
    /// several times in a row.
    pub fn wait_until_apart(&self, record: &Path) {
        let begin = Instant::now();
        let mut right = 0;
        while right < LASTS {
            let apart = self.is_apart("hungry") && self.is_apart("modest");
            right = if apart { right + 1 } else { 0 };
            assert!(begin.elapsed() < PATIENCE, "never balanced; {}", tail(record));
            std::thread::sleep(Duration::from_millis(20));
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
pub struct Stage {
    pub cpus: [PuId; 2],
    pub state: TempDir,
    pub record: PathBuf,
}

impl Stage {
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
    let Some(Stage { cpus, state, record }) = Stage::set() else { return };
    let args = ["--policy", "l1-bandwidth", "--catalogue", STAND_IN];
    let program = Program::start(&state, &args, &record, cpus);
    assert_eq!(program.processes.values().map(Vec::len).sum::<usize>(), 4);
    let hungry = program.processes["hungry"].clone();

    // The affinity of the real threads.
    program.wait_until_apart(&record);
    program.finish();

    // How it came to be: counts, what they mean, placement, moves.
    let mut reader = Reader::open(&record).unwrap();
    assert!(reader.header().support.signals.len() > 1, "{:?}", reader.header().support);
    let mut history = History::default();
    let (mut judged, mut apart, mut done) = (0, 0, 0);
    while let Some(quantum) = reader.next_quantum().unwrap() {
        let known = history.take(&quantum.sample).unwrap();
        done += quantum
            .moves
            .iter()
            .filter(|(asked, outcome)| {
                matches!((&asked.change, outcome), (Change::Affinity(_), Outcome::Done))
            })
            .count();
        if let Some(is_apart) = judge(&quantum, &known, &hungry) {
            judged += 1;
            apart += u32::from(is_apart);
        }
    }
    assert!(judged >= LASTS, "{judged}");
    assert_eq!(apart, judged, "whenever all are measured, the hungry are kept apart");
    assert!(done >= 4, "{done}");
}

/// If all four run, settled, with fresh enough counts: are the hungry on
/// different hardware threads? Checks what was measured of them.
fn judge(quantum: &Quantum, known: &Measurements, hungry: &[u32]) -> Option<bool> {
    let mut demands = Vec::new();
    let mut places = Vec::new();
    let runnable = |state| state == symbiont_machine::RunState::Runnable;
    for thread in quantum.sample.threads.iter().filter(|t| runnable(t.state)) {
        if !thread.stage.is_settled() {
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
    // The kernel's software events tell no bandwidth of any cache.
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
    assert!(said.contains("no machine is called 'pentium'") && said.contains("power8"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.toml");
    std::fs::write(&file, "name = \"odd\"\ntitel = 1\n").unwrap();
    let output = run(&["--catalogue", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("odd.toml:2: titel: unknown key"), "{said}");
}
