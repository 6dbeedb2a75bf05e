//! From snapshots to what is shown of each thread and core: pure functions.

use std::collections::BTreeMap;

use symbiont_topology::{CpuSet, PuId};
use symbiont_wire::{CoreStatus, ProgramStatus, Snapshot, ThreadStatus};

use super::clean::clean;
use super::folded::{by_pod, by_process, by_program};
use super::row::Row;
use super::state::{Fold, Order, State};

/// A thread that ran for less than this share of the time is no co-runner.
const RAN: f64 = 0.01;

/// A snapshot with shares of the time since the one before.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    /// It.
    pub now: Snapshot,
    /// What a filter left out of it, where nothing is left.
    pub left_out: Option<String>,
    /// Share of one CPU that the daemon took since the snapshot before, or since its start.
    pub daemon_share: Option<f64>,
    /// Cores of the machine, in order.
    pub cores: Vec<CoreRow>,
    /// Threads, in the order of the snapshot.
    rows: Vec<Row>,
    /// The same, a row for each process, for each program, and for each pod.
    processes: Vec<Row>,
    programs: Vec<Row>,
    pods: Vec<Row>,
}

/// A core as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreRow {
    /// It.
    pub core: CoreStatus,
    /// Mean share of its hardware threads for which shown threads ran, 0 to 1.
    pub used: f64,
    /// The same for all others, where known.
    pub others: Option<f64>,
    /// How many hardware threads it has.
    pub cpus: f64,
    /// Do more threads want to run than it has hardware threads?
    pub contended: bool,
    /// Programs whose threads run there.
    pub programs: String,
}

impl Screen {
    /// Of a snapshot and the one before.
    pub fn new(before: Option<&Snapshot>, mut now: Snapshot) -> Self {
        let daemon_share = daemon_share(before, &now);
        share_since(before, &mut now);
        let names: BTreeMap<u32, String> =
            now.programs.iter().map(|program| (program.program, clean(&program.name))).collect();
        let pod = |program: &ProgramStatus| {
            let pod = program.container.as_ref()?.pod_path()?;
            Some((program.program, clean(&pod)))
        };
        let pods: BTreeMap<u32, String> = now.programs.iter().filter_map(pod).collect();
        let core_of = core_by_cpu(&now.cores);
        let mut on_cores: BTreeMap<u32, Vec<&ThreadStatus>> = BTreeMap::new();
        for thread in now.threads.iter().filter(|thread| runs(thread)) {
            if let Some(core) = core_of_thread(thread, &core_of) {
                on_cores.entry(core).or_default().push(thread);
            }
        }
        let name = |thread: &ThreadStatus| names.get(&thread.program).cloned().unwrap_or_default();
        let row = |thread: &ThreadStatus| {
            let core = core_of_thread(thread, &core_of);
            let others = core.and_then(|core| on_cores.get(&core)).map(Vec::as_slice);
            let others = others.unwrap_or_default().iter();
            let others = others.filter(|other| other.thread != thread.thread).map(|t| name(t));
            let hidden = core.and_then(|core| now.cores.iter().find(|known| known.core == core));
            Row {
                thread: thread.thread,
                process: thread.process,
                program_id: thread.program,
                pod: pods.get(&thread.program).cloned(),
                threads: 1,
                program: name(thread),
                name: match thread.name.as_deref().map(clean) {
                    Some(own) if own != name(thread) => format!("{}/{own}", name(thread)),
                    _ => name(thread),
                },
                state: match thread.state.as_str() {
                    "runnable" => 'R',
                    "stopped" => 'T',
                    _ => 'S',
                },
                cpu: thread.cpu,
                placed: thread.placed.as_deref().map(clean),
                is_held: thread.held.is_some(),
                core,
                run_time: thread.ran_share.unwrap_or(0.0).clamp(0.0, 1.0),
                wait_time: thread.waited_share.unwrap_or(0.0).clamp(0.0, 1.0),
                category: category(thread),
                ipc: thread.ipc,
                predicted: thread.predicted_slowdown,
                achieved: thread.achieved_slowdown,
                co_runners: grouped(others, hidden.map_or(0, |core| core.others)),
                reason: clean(&thread.reason),
            }
        };
        let rows: Vec<Row> = now.threads.iter().map(row).collect();
        let core_row = |core: &CoreStatus| {
            let threads = on_cores.get(&core.core).map(Vec::as_slice).unwrap_or_default();
            let cpus = core.cpus.parse::<CpuSet>().map_or(1, |cpus| cpus.len().max(1));
            let run_time: f64 = threads.iter().filter_map(|thread| thread.ran_share).sum();
            let ready: f64 = threads.iter().filter_map(|thread| thread.waited_share).sum();
            let cpus = f64::from(u32::try_from(cpus).unwrap_or(u32::MAX));
            // Of no threads it is -0.
            let used = (run_time / cpus).min(1.0).abs();
            CoreRow {
                core: core.clone(),
                used,
                others: core.busy_share.map(|busy| (busy - used).max(0.0)),
                cpus,
                contended: run_time + ready > cpus + 0.2,
                programs: grouped(threads.iter().map(|thread| name(thread)), core.others),
            }
        };
        let cores = now.cores.iter().map(core_row).collect();
        let (processes, programs) = (by_process(&rows), by_program(&rows, &now.programs));
        let pods = by_pod(&rows, &now.programs);
        Self { left_out: None, daemon_share, cores, rows, processes, programs, pods, now }
    }

    /// The threads, or what they are folded into, that the filter lets through, in the order that is asked for.
    pub fn rows(&self, state: &State) -> Vec<&Row> {
        let wanted = state.filter.to_lowercase();
        let mut rows: Vec<&Row> =
            self.folded(state.fold).iter().filter(|row| row.contains(&wanted)).collect();
        rows.sort_by(|a, b| {
            let order = match state.order {
                Order::Cpu => b.run_time.total_cmp(&a.run_time),
                Order::Program => a.program.cmp(&b.program),
                Order::Core => {
                    (a.core.is_none(), a.core, a.cpu).cmp(&(b.core.is_none(), b.core, b.cpu))
                }
                Order::Slowdown => b.slowdown().total_cmp(&a.slowdown()),
                Order::Thread => a.thread.cmp(&b.thread),
            };
            let order = if state.reversed { order.reverse() } else { order };
            order.then(a.thread.cmp(&b.thread))
        });
        rows
    }

    /// CPUs in use, by the threads that are shown and by all others; none where that is not known.
    pub fn cpus_used(&self) -> Option<(f64, f64)> {
        let sums = self.cores.iter().try_fold((0.0, 0.0), |(used, others), core| {
            Some((used + core.used * core.cpus, others + core.others? * core.cpus))
        });
        sums.filter(|_| !self.cores.is_empty())
    }

    /// All rows of a fold.
    pub fn folded(&self, fold: Fold) -> &[Row] {
        match fold {
            Fold::Threads => &self.rows,
            Fold::Processes => &self.processes,
            Fold::Programs => &self.programs,
            Fold::Pods => &self.pods,
        }
    }

    /// All threads.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }
}

impl Row {
    fn contains(&self, wanted: &str) -> bool {
        wanted.is_empty()
            || self.name.to_lowercase().contains(wanted)
            || self.pod.as_ref().is_some_and(|pod| pod.to_lowercase().contains(wanted))
            || self.thread.to_string().contains(wanted)
            || self.process.to_string() == wanted
            || self.category.as_ref().is_some_and(|(name, _)| name.to_lowercase().contains(wanted))
            || self.reason.to_lowercase().contains(wanted)
    }

    fn slowdown(&self) -> f64 {
        self.achieved.or(self.predicted).unwrap_or(f64::NEG_INFINITY)
    }
}

fn runs(thread: &ThreadStatus) -> bool {
    thread.ran_share.unwrap_or(0.0) + thread.waited_share.unwrap_or(0.0) >= RAN
}

/// Sets the shares to those of the time between two snapshots.
fn share_since(before: Option<&Snapshot>, now: &mut Snapshot) {
    let Some(before) = before else { return };
    let over = now.at_s - before.at_s;
    // A quantum that did not end meanwhile has no news.
    if over <= 0.0 {
        let shares: BTreeMap<(u32, u32), _> = before
            .threads
            .iter()
            .map(|t| ((t.process, t.thread), (t.ran_share, t.waited_share)))
            .collect();
        for thread in &mut now.threads {
            if let Some(known) = shares.get(&(thread.process, thread.thread)) {
                (thread.ran_share, thread.waited_share) = *known;
            }
        }
        return;
    }
    let times: BTreeMap<(u32, u32), (f64, f64)> = before
        .threads
        .iter()
        .map(|t| ((t.process, t.thread), (t.run_time_s, t.wait_time_s)))
        .collect();
    for thread in &mut now.threads {
        let Some((run_time, wait_time)) = times.get(&(thread.process, thread.thread)) else {
            continue;
        };
        // A number that is used again has run for less.
        if thread.run_time_s >= *run_time && thread.wait_time_s >= *wait_time {
            let run_time = ((thread.run_time_s - run_time) / over).min(1.0);
            thread.ran_share = Some(run_time);
            let wait_time = (thread.wait_time_s - wait_time) / over;
            thread.waited_share = Some(wait_time.min(1.0 - run_time).max(0.0));
        }
    }
}

fn daemon_share(before: Option<&Snapshot>, now: &Snapshot) -> Option<f64> {
    let manager = now.manager.as_ref()?;
    let earlier = before.and_then(|before| before.manager.as_ref());
    let earlier = earlier
        .filter(|earlier| earlier.pid == manager.pid && manager.uptime_s - earlier.uptime_s > 0.05);
    let (cpu, up) = earlier.map_or((0.0, 0.0), |earlier| (earlier.usage.cpu_s, earlier.uptime_s));
    let share = (manager.usage.cpu_s - cpu) / (manager.uptime_s - up).max(1e-3);
    Some(share.max(0.0))
}

fn core_by_cpu(cores: &[CoreStatus]) -> BTreeMap<u32, u32> {
    let cpus = |core: &CoreStatus| core.cpus.parse::<CpuSet>().unwrap_or_default();
    let each =
        |core: &CoreStatus| cpus(core).iter().map(|cpu| (cpu.0, core.core)).collect::<Vec<_>>();
    cores.iter().flat_map(each).collect()
}

/// Where it runs; for one that is kept elsewhere, where it will run next.
fn core_of_thread(thread: &ThreadStatus, core_of: &BTreeMap<u32, u32>) -> Option<u32> {
    let kept = thread.placed.as_deref().and_then(|list| list.parse::<CpuSet>().ok());
    let kept = kept.filter(|kept| !thread.cpu.is_some_and(|cpu| kept.contains(PuId(cpu))));
    let next = kept.and_then(|kept| kept.first()).map(|cpu| cpu.0);
    core_of.get(&next.or(thread.cpu)?).copied()
}

/// Names, each once with how often it comes, and how many threads are another user's.
fn grouped(names: impl Iterator<Item = String>, hidden: u32) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let one = |(name, count): (&String, &usize)| match count {
        1 => name.clone(),
        count => format!("{name} x{count}"),
    };
    let mut words: Vec<String> = counts.iter().map(one).collect();
    if hidden > 0 {
        words.push(format!("{hidden} of others"));
    }
    words.join(", ")
}

/// The category with most issue slots, else the part of the CPI stack with most cycles.
fn category(thread: &ThreadStatus) -> Option<(String, f64)> {
    let most = |shares: &BTreeMap<String, f64>| {
        let most = shares.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((clean(most.0), *most.1))
    };
    if let Some(found) = most(&thread.categories) {
        return Some(found);
    }
    let (name, cycles) = most(&thread.cpi_stack)?;
    let all: f64 = thread.cpi_stack.values().sum();
    (all > 0.0).then_some((name, cycles / all))
}
