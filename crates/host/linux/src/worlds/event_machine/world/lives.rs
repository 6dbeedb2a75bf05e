//! How threads and processes are born, become other programs, and end.

use super::super::step::Pick;
use super::World;
use crate::observe::Event;

impl World {
    fn number(&mut self, reuse: bool) -> u32 {
        // Another owner of the number was born in an earlier tick.
        self.now += u64::from(reuse);
        // The kernel keeps a number while a process group or session has it (`free_pid`), and gives
        // numbers in a circle (`alloc_pid`): one whose birth is still to be read is not given again.
        let waits = |number: &u32| {
            let is_its = |report: &Event| matches!(report, Event::Fork { child_thread, .. } if child_thread == number);
            self.reports.iter().any(is_its)
        };
        let named =
            |number: &u32| self.processes.values().any(|p| [p.group, p.session].contains(number));
        let free = self
            .freed
            .iter()
            .rposition(|number| !named(number) && !waits(number))
            .filter(|_| reuse);
        match free.map(|at| self.freed.remove(at)) {
            Some(number) => number,
            None => {
                self.next_number += 1;
                self.next_number
            }
        }
    }

    fn newborn(&mut self, number: u32, process: u32, maker: u32) {
        let Some(task) = self.tasks.get(&maker).cloned() else { return };
        let ambiguous = self.is_ambiguous(maker, task.process);
        let mut blurred = task.blurred.or(ambiguous.then_some("threads differ in what was saved"));
        if self.interrupted {
            blurred = Some("it may have got its number within an act");
        }
        if task.real.reset_on_fork && task.real.nice < 0 && task.ideal.nice > 0 {
            blurred = Some("the kernel reset the nice value of a boosted thread's child");
        }
        if task.counted && task.real.nice != task.ideal.nice {
            blurred = Some("its maker's nice value was counted from ours, and not read yet");
        }
        let (real, ideal) = (task.real.inherited(), task.ideal.inherited());
        self.add_task(number, process, real, ideal, blurred);
        if let Some(child) = self.tasks.get_mut(&number) {
            child.unread = true;
        }
    }

    pub(super) fn fork(&mut self, by: Pick, reuse: bool, own_session: bool) {
        let Some(maker) = self.pick(by) else { return };
        let Some(task) = self.tasks.get(&maker) else { return };
        let parent = task.process;
        let Some(mut process) = self.processes.get(&parent).cloned() else { return };
        let number = self.number(reuse);
        process.parent = parent;
        process.past.clear();
        process.reported = false;
        if own_session {
            (process.group, process.session) = (number, number);
        }
        self.processes.insert(number, process);
        self.newborn(number, number, maker);
        self.reports.push_back(Event::Fork {
            parent_process: parent,
            parent_thread: maker,
            child_process: number,
            child_thread: number,
            at: self.moment(maker),
        });
    }

    pub(super) fn clone_thread(&mut self, by: Pick, reuse: bool) {
        let Some(maker) = self.pick(by) else { return };
        let Some(process) = self.tasks.get(&maker).map(|task| task.process) else { return };
        let parent = self.processes.get(&process).map_or(1, |process| process.parent);
        let number = self.number(reuse);
        self.newborn(number, process, maker);
        // The kernel names the process's parent as the parent of a thread.
        self.reports.push_back(Event::Fork {
            parent_process: parent,
            parent_thread: parent,
            child_process: process,
            child_thread: number,
            at: self.moment(maker),
        });
    }

    /// Another thread of the process (one that lives or ended) has, or had, the same value of a
    /// setting, and another one is meant by it.
    fn is_ambiguous(&self, number: u32, process: u32) -> bool {
        let Some(task) = self.tasks.get(&number) else { return false };
        let cpuset = self.cpuset_of(process);
        let past = self.processes.get(&process).into_iter().flat_map(|p| p.past.iter().cloned());
        let living = self.threads_of(process).filter(|(other, _)| *other != number);
        let living = living.map(|(_, task)| (task.real.clone(), task.ideal.clone()));
        let mut others = past.chain(living);
        others.any(|(real, ideal)| {
            let masks = [real.mask(cpuset), ideal.mask(cpuset)];
            let nices = [real.nice, ideal.nice];
            let classes = [real.class, ideal.class];
            (ideal.asked != task.ideal.asked && masks.contains(&task.real.mask(cpuset)))
                || (ideal.nice != task.ideal.nice && nices.contains(&task.real.nice))
                || (ideal.class != task.ideal.class && classes.contains(&task.real.class))
        })
    }

    /// `de_thread` in the kernel's fs/exec.c.
    pub(super) fn exec(&mut self, by: Pick, late_end: bool) {
        let Some(caller) = self.pick(by) else { return };
        let Some(process) = self.tasks.get(&caller).map(|task| task.process) else { return };
        let ambiguous = self.is_ambiguous(caller, process);
        let others = self.threads_of(process).map(|(other, _)| other);
        let others: Vec<u32> =
            others.filter(|other| *other != caller && *other != process).collect();
        for other in others {
            self.exit_thread(other);
        }
        let mut unread = false;
        if caller != process {
            let Some(leader) = self.tasks.remove(&process) else { return };
            unread = leader.unread;
            if !leader.zombie {
                let thread = if late_end { caller } else { process };
                self.reports.push_back(Event::Exit { process, thread });
            }
            let Some(mut task) = self.tasks.remove(&caller) else { return };
            if let Some(process) = self.processes.get_mut(&process) {
                process.past.push((leader.real, leader.ideal));
            }
            let before_undone = !task.adopted && task.real != task.ideal;
            if before_undone {
                task.blurred = Some("it called exec before its birth was undone");
                // So did what other threads had made, which is taken for its children.
                let kin = self.descendants(process);
                let others = self.tasks.values_mut().filter(|task| kin.contains(&task.process));
                for other in others.filter(|task| !task.adopted && task.real != task.ideal) {
                    other.blurred = Some("another thread called exec before it was undone");
                }
            }
            task.born = leader.born;
            task.adopted = leader.adopted;
            self.tasks.insert(process, task);
            self.freed.push(caller);
        }
        let interrupted = self.interrupted;
        if let Some(task) = self.tasks.get_mut(&process) {
            if ambiguous {
                task.blurred = Some("another thread of its process could have called exec");
            }
            if unread {
                task.blurred = Some("what its leader's user had changed was not read before");
            }
            if interrupted {
                task.blurred = Some("its leader was replaced within an act");
            }
        }
        if let Some(entry) = self.processes.get_mut(&process) {
            entry.exec_since = Some(self.now);
        }
    }

    pub(super) fn exec_report(&mut self, Pick(pick): Pick) {
        let mut all = self.processes.iter_mut().filter(|(_, p)| p.exec_since.is_some());
        let count = usize::from(pick) % 4;
        let Some((process, entry)) = all.nth(count) else { return };
        entry.exec_since = None;
        self.reports.push_back(Event::Exec { process: *process });
    }

    pub(super) fn exit_thread(&mut self, number: u32) {
        let Some(task) = self.tasks.get_mut(&number) else { return };
        let process = task.process;
        if task.zombie {
            return;
        }
        task.zombie = true;
        let settings = (task.real.clone(), task.ideal.clone());
        if let Some(entry) = self.processes.get_mut(&process) {
            entry.past.push(settings);
        }
        self.reports.push_back(Event::Exit { process, thread: number });
        if number != process {
            self.tasks.remove(&number);
            self.freed.push(number);
        }
        if self.threads_of(process).all(|(_, task)| task.zombie) {
            self.reap(process);
        }
    }

    pub(super) fn exit_process(&mut self, process: u32) {
        let threads: Vec<u32> = self.threads_of(process).map(|(number, _)| number).collect();
        for thread in threads {
            self.exit_thread(thread);
        }
    }

    fn reap(&mut self, process: u32) {
        self.processes.remove(&process);
        self.tasks.remove(&process);
        self.freed.push(process);
        let children: Vec<u32> =
            self.processes.iter().filter(|(_, p)| p.parent == process).map(|(n, _)| *n).collect();
        for child in children {
            // Also what descends from it has lost its way to the process that ended.
            let kin = self.descendants(child);
            let carries = self
                .tasks
                .values()
                .any(|task| kin.contains(&task.process) && task.real != task.ideal);
            if let Some(child) = self.processes.get_mut(&child) {
                child.parent = 1;
                child.orphan |= carries;
            }
        }
    }
}
