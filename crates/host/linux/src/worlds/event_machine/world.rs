//! The simulated kernel: processes, threads and cpusets as plain values.
//!
//! Each thread has its settings twice: *real*, what it has, and *ideal*, what it would have if no
//! manager had ever acted. Steps of users, programs and the kernel change both; a manager changes
//! the real ones alone. So a manager that undid everything leaves both equal.

mod lives;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use symbiont_topology::{CpuSet, PuId};

use super::super::applied_state::EXEC_LASTS;
use super::super::settings::chosen_nice;
use super::super::thread::{Class, Facts, ThreadKey};
use super::step::{Pick, Step};
use crate::observe::{Event, Moment};

/// The shell from which the managed program was started, and its session.
pub const SHELL: u32 = 2;
/// The managed program.
pub const ROOT: u32 = 10;
/// Processes that are never enrolled.
pub const STRANGERS: [u32; 2] = [3, 4];
/// When the manager begins, in ticks.
pub const BEGAN: u64 = 100;

/// What a user, a program or a manager asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// None: never asked, or asked for all.
    pub asked: Option<CpuSet>,
    pub nice: i8,
    pub class: Class,
    pub reset_on_fork: bool,
}

impl Settings {
    const USUAL: Self = Self { asked: None, nice: 0, class: Class::Other, reset_on_fork: false };

    /// The mask that the kernel makes of it within a cpuset.
    pub fn mask(&self, cpuset: &CpuSet) -> CpuSet {
        let left = self.asked.as_ref().map(|asked| asked.intersection(cpuset));
        left.filter(|left| !left.is_empty()).unwrap_or_else(|| cpuset.clone())
    }

    /// What a child inherits (`sched_fork`).
    fn inherited(&self) -> Self {
        let mut child = self.clone();
        if std::mem::take(&mut child.reset_on_fork) {
            child.nice = child.nice.max(0);
            if child.class == Class::Special {
                (child.class, child.nice) = (Class::Other, 0);
            }
        }
        child
    }
}

#[derive(Debug, Clone)]
pub struct Task {
    pub process: u32,
    pub born: u64,
    pub real: Settings,
    pub ideal: Settings,
    pub zombie: bool,
    /// The actuator has adopted it.
    pub adopted: bool,
    /// Something was set by its user that no manager has read yet.
    pub unread: bool,
    /// It counted its nice value from one of ours.
    pub counted: bool,
    /// Why its settings cannot be distinguished from others: a documented exception.
    pub blurred: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub struct Process {
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    pub cpuset: usize,
    /// It is, or descends from, the enrolled program.
    pub managed: bool,
    /// It changed its user: the manager is not permitted to change it.
    pub refuses: bool,
    /// Its birth was reported to the actuator.
    pub reported: bool,
    /// Its parent ended while it carried what it had inherited.
    pub orphan: bool,
    /// An exec that began at a tick and is not reported yet.
    pub exec_since: Option<u64>,
    /// Settings that its threads had.
    pub past: Vec<(Settings, Settings)>,
}

/// Everything there is.
#[derive(Debug)]
pub struct World {
    pub now: u64,
    /// Calls of managers so far: what distinguishes moments within a tick.
    pub calls: u64,
    /// By number.
    pub tasks: BTreeMap<u32, Task>,
    pub processes: BTreeMap<u32, Process>,
    pub cpusets: [CpuSet; 2],
    /// What they allowed before: a manager reads them once a second.
    former: BTreeSet<CpuSet>,
    /// What the proc connector has queued.
    pub reports: VecDeque<Event>,
    next_number: u32,
    freed: Vec<u32>,
    /// Masks that a manager ever set.
    pub applied: BTreeSet<CpuSet>,
    /// A manager ever set the idle class.
    pub idled: bool,
    /// The manager that lives.
    pub manager: u32,
    /// Calls until the manager dies.
    pub fuse: Option<u32>,
    pub journal_dir: PathBuf,
    /// Its journal at its death; none if there was none.
    pub left: Option<Vec<u8>>,
    pub died: bool,
    /// Steps that happen within the manager's calls: after so many.
    pub interrupts: Vec<(u32, Step)>,
    /// Where threads run that were moved.
    pub moved: BTreeMap<u32, PuId>,
    /// One of them happened since this was last cleared.
    pub interrupted: bool,
    /// What a manager did that it must never do.
    pub violations: Vec<String>,
}

impl World {
    pub fn new(journal_dir: PathBuf, cpus: &CpuSet) -> Self {
        let mut world = Self {
            now: 10,
            calls: 0,
            tasks: BTreeMap::new(),
            processes: BTreeMap::new(),
            cpusets: [cpus.clone(), cpus.clone()],
            former: BTreeSet::new(),
            reports: VecDeque::new(),
            next_number: 20,
            freed: Vec::new(),
            applied: BTreeSet::new(),
            idled: false,
            manager: 0,
            fuse: None,
            journal_dir,
            left: None,
            died: false,
            interrupts: Vec::new(),
            moved: BTreeMap::new(),
            interrupted: false,
            violations: Vec::new(),
        };
        for (process, parent, session) in [(1, 0, 1), (SHELL, 1, SHELL)]
            .into_iter()
            .chain(STRANGERS.map(|stranger| (stranger, SHELL, SHELL)))
            .chain([(ROOT, SHELL, SHELL)])
        {
            world.enter(process, parent, session, process == ROOT);
        }
        world.now = BEGAN;
        world
    }

    /// The moment, on a clock that is finer than ticks.
    pub fn now_ns(&self) -> u64 {
        self.now * 10_000_000 + self.calls
    }

    /// Now, where a thread runs: on the first CPU that it may use.
    fn moment(&self, thread: u32) -> Moment {
        let task = self.tasks.get(&thread);
        let mask = task.map(|task| task.real.mask(self.cpuset_of(task.process)));
        let cpu = mask.and_then(|mask| mask.first()).unwrap_or(PuId(0));
        Moment { ns: self.now_ns(), cpu }
    }

    fn enter(&mut self, process: u32, parent: u32, session: u32, managed: bool) {
        let entry = Process {
            parent,
            group: process,
            session,
            cpuset: usize::from(process == ROOT),
            managed,
            refuses: false,
            reported: true,
            orphan: false,
            exec_since: None,
            past: Vec::new(),
        };
        self.processes.insert(process, entry);
        let (real, ideal) = (Settings::USUAL, Settings::USUAL);
        self.add_task(process, process, real, ideal, None);
    }

    fn add_task(
        &mut self,
        number: u32,
        process: u32,
        real: Settings,
        ideal: Settings,
        blurred: Option<&'static str>,
    ) {
        let born = self.now;
        let task = Task {
            process,
            born,
            real,
            ideal,
            zombie: false,
            adopted: false,
            unread: false,
            counted: false,
            blurred,
        };
        self.tasks.insert(number, task);
    }

    pub fn cpuset_of(&self, process: u32) -> &CpuSet {
        let [first, second] = &self.cpusets;
        match self.processes.get(&process) {
            Some(Process { cpuset: 1, .. }) => second,
            _ => first,
        }
    }

    pub fn threads_of(&self, process: u32) -> impl Iterator<Item = (u32, &Task)> {
        let all = self.tasks.iter().map(|(number, task)| (*number, task));
        all.filter(move |(_, task)| task.process == process)
    }

    /// A thread that can act: alive, and not in the middle of an exec.
    fn pick(&self, Pick(pick): Pick) -> Option<u32> {
        let is_stranger = pick >= 0xe0;
        let can_act = |(number, task): &(&u32, &Task)| {
            let process = self.processes.get(&task.process);
            let is_chosen = |p: &Process| p.managed != is_stranger && p.exec_since.is_none();
            **number >= STRANGERS[0] && !task.zombie && process.is_some_and(is_chosen)
        };
        let all: Vec<u32> = self.tasks.iter().filter(can_act).map(|(number, _)| *number).collect();
        all.get(usize::from(pick) % all.len().max(1)).copied()
    }

    /// Lets something happen.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Time(ticks) => self.pass(u64::from(*ticks)),
            Step::Fork { by, reuse, session } => self.fork(*by, *reuse, *session),
            Step::Clone { by, reuse } => self.clone_thread(*by, *reuse),
            Step::Exec { by, late_end } => self.exec(*by, *late_end),
            Step::ExecReport(pick) => self.exec_report(*pick),
            Step::ExitThread(pick) => {
                if let Some(number) = self.pick(*pick) {
                    self.exit_thread(number);
                }
            }
            Step::ExitProcess(pick) => {
                if let Some(process) = self.process_by(*pick) {
                    self.exit_process(process);
                }
            }
            Step::SetMask(pick, cpus) => self.user_sets_mask(*pick, cpus.as_ref()),
            Step::SetNice(pick, nice) => self.user_sets_nice(*pick, *nice),
            Step::SetClass(pick, class, reset) => {
                self.user_sets(*pick, |settings| {
                    (settings.class, settings.reset_on_fork) = (*class, *reset);
                });
            }
            Step::Cpuset(which, cpus) => {
                let cpuset = &mut self.cpusets[usize::from(*which)];
                self.former.insert(std::mem::replace(cpuset, cpus.clone()));
            }
            Step::ChangeUser(pick) => {
                let process = self.process_by(*pick).filter(|process| *process != ROOT);
                if let Some(process) = process.and_then(|p| self.processes.get_mut(&p)) {
                    process.refuses = process.managed;
                }
            }
        }
        self.blur_what_reading_loses();
    }

    fn pass(&mut self, ticks: u64) {
        self.now += ticks;
        for report in self.reports.iter().filter(|_| ticks > EXEC_LASTS) {
            let Event::Exec { process } = report else { continue };
            if let Some(task) = self.tasks.get_mut(process) {
                task.blurred = Some("its exec was reported after more than ten seconds");
            }
        }
    }

    fn process_by(&self, pick: Pick) -> Option<u32> {
        let number = self.pick(pick)?;
        self.tasks.get(&number).map(|task| task.process)
    }

    fn user_sets(&mut self, pick: Pick, set: impl Fn(&mut Settings)) {
        let Some(number) = self.pick(pick) else { return };
        if let Some(task) = self.tasks.get_mut(&number) {
            if task.real != task.ideal {
                // What was applied before may be applied again, and mean another saved setting.
                let before = (task.real.clone(), task.ideal.clone());
                let process = task.process;
                let kin = self.descendants(process);
                let late = self.tasks.iter_mut().filter(|(n, task)| {
                    **n != number && kin.contains(&task.process) && !task.adopted
                });
                for (_, task) in late.filter(|(_, task)| task.real != task.ideal) {
                    task.blurred = Some("its maker was changed before its birth was reported");
                }
                if let Some(process) = self.processes.get_mut(&process) {
                    process.past.push(before);
                }
            }
        }
        if let Some(task) = self.tasks.get_mut(&number) {
            set(&mut task.real);
            set(&mut task.ideal);
            task.unread = true;
        }
    }

    /// A process and all that descend from it.
    pub fn descendants(&self, process: u32) -> BTreeSet<u32> {
        let mut kin = BTreeSet::from([process]);
        loop {
            let is_child = |(_, p): &(&u32, &Process)| kin.contains(&p.parent);
            let children: Vec<u32> =
                self.processes.iter().filter(is_child).map(|(number, _)| *number).collect();
            let before = kin.len();
            kin.extend(children);
            if kin.len() == before {
                return kin;
            }
        }
    }

    /// One between ours and the thread's own is counted from its own, if it was known that it has one of ours.
    fn user_sets_nice(&mut self, pick: Pick, nice: i8) {
        let task = self.pick(pick).and_then(|number| self.tasks.get(&number));
        let has = task.filter(|task| task.adopted).map(|task| (task.ideal.nice, task.real.nice));
        self.user_sets(pick, |settings| settings.nice = nice);
        let number = self.pick(pick);
        let task = number.and_then(|number| self.tasks.get_mut(&number));
        if let Some((task, (own, ours))) = task.zip(has) {
            task.ideal.nice = chosen_nice(own, (ours != own).then_some(ours), nice);
            task.counted = task.ideal.nice != nice;
        }
    }

    fn user_sets_mask(&mut self, pick: Pick, cpus: Option<&CpuSet>) {
        let Some(number) = self.pick(pick) else { return };
        let process = self.tasks.get(&number).map_or(0, |task| task.process);
        if cpus.is_some_and(|cpus| cpus.is_disjoint(self.cpuset_of(process))) {
            return; // EINVAL
        }
        self.user_sets(pick, |settings| settings.asked = cpus.cloned());
    }

    /// The kernel shows of a mask what is left of it within the cpuset. What is not read whole,
    /// or looks like a mask of the manager's, is a documented exception.
    pub fn blur_what_reading_loses(&mut self) {
        let cpusets = self.cpusets.clone();
        let of = |process: &Process| &cpusets[process.cpuset];
        for task in self.tasks.values_mut() {
            let Some(process) = self.processes.get(&task.process) else { continue };
            if task.unread && task.ideal.class == Class::Idle && self.idled {
                task.blurred = Some("it chose the class that a manager used");
            }
            if process.exec_since.is_some_and(|since| since + EXEC_LASTS < self.now) {
                task.blurred = Some("its exec took more than ten seconds");
            }
            let (cpuset, asked) = (of(process), task.ideal.asked.as_ref());
            let Some(asked) = asked else { continue };
            let is_read = task.adopted && !task.unread && process.exec_since.is_none();
            if !is_read && (!asked.is_subset(cpuset) || asked == cpuset) {
                task.blurred = Some("its mask was cut by the cpuset when it was read");
            }
            let is_cut = |real: &CpuSet| real.is_disjoint(cpuset);
            if !task.adopted
                && task.real != task.ideal
                && task.real.asked.as_ref().is_some_and(is_cut)
            {
                task.blurred = Some("its cpuset left nothing of the mask that it inherited");
            }
            if task.unread && self.former.contains(asked) {
                task.blurred = Some("it chose what its cpuset allowed a moment before");
            }
            let mask = task.ideal.mask(cpuset);
            let like_ours =
                |applied: &CpuSet| *applied == mask || applied.intersection(cpuset) == mask;
            if task.unread && self.applied.iter().any(like_ours) {
                task.blurred = Some("it chose a mask that a manager used");
            }
        }
    }
}

impl World {
    /// It, or an ancestor, lost its parent while it carried what it had inherited: after a crash
    /// and for births that were not reported its descent is not known.
    pub fn is_lost(&self, process: u32) -> bool {
        let parent = |process: &u32| self.processes.get(process).map(|entry| entry.parent);
        let chain = std::iter::successors(Some(process), parent).take(self.processes.len());
        chain.filter_map(|process| self.processes.get(&process)).any(|entry| entry.orphan)
    }

    /// What `/proc` says of a thread.
    pub fn facts(&self, process: u32, thread: u32) -> Option<Facts> {
        let task = self.tasks.get(&thread).filter(|task| task.process == process)?;
        let entry = self.processes.get(&process)?;
        Some(Facts {
            key: ThreadKey { process, thread, born: task.born },
            parent: entry.parent,
            group: entry.group,
            session: entry.session,
            nice: task.real.nice,
            class: task.real.class,
            zombie: task.zombie,
            on: Some(self.runs_on(thread)),
        })
    }

    /// Anywhere at first, so that some are where others shall go.
    fn runs_on(&self, thread: u32) -> PuId {
        self.moved.get(&thread).copied().unwrap_or(PuId(thread % 4))
    }

    /// A thread leaves a CPU that it may not use any more.
    pub fn keep_within(&mut self, thread: u32, mask: &CpuSet) {
        let on = self.runs_on(thread);
        if let Some(to) = mask.first().filter(|_| !mask.contains(on)) {
            self.moved.insert(thread, to);
        }
    }

    /// The manager is killed: what it wrote until now is what it leaves.
    pub fn die(&mut self) {
        let names = std::fs::read_dir(&self.journal_dir).into_iter().flatten().flatten();
        let journals =
            names.filter(|name| name.file_name().to_string_lossy().starts_with("journal-"));
        self.left = journals.filter_map(|name| std::fs::read(name.path()).ok()).next();
        self.died = true;
        self.fuse = None;
        self.manager += 1;
    }
}
