//! Changes around the managed programs, as lines for the log: each change once.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_machine::{Program, ThreadId};
use symbiont_planner::Setting;
use symbiont_topology::CpuSet;

/// Remembers what was reported.
#[derive(Debug)]
pub struct Notices {
    online: CpuSet,
    changed: BTreeSet<(ThreadId, Setting)>,
    is_short: bool,
    troubles: Vec<String>,
}

impl Notices {
    /// Knows which CPUs are online at the start.
    pub fn new(online: CpuSet) -> Self {
        Self { online, changed: BTreeSet::new(), is_short: false, troubles: Vec::new() }
    }

    /// Other CPUs are online than at the last call.
    pub fn topology(&mut self, online: &CpuSet) -> Option<String> {
        if *online == self.online {
            return None;
        }
        let before = std::mem::replace(&mut self.online, online.clone());
        let list = |word: &str, cpus: CpuSet| match cpus.is_empty() {
            true => String::new(),
            false => format!("{} went {word}; ", cpus.named()),
        };
        let (gone, new) = (before.difference(online), online.difference(&before));
        Some(format!(
            "{}{}the machine has {} now",
            list("offline", gone),
            list("online", new),
            online.named()
        ))
    }

    /// Descriptors do not reach for all that is managed any more: once, until they do again.
    pub fn shortages(&mut self, now: &[String]) -> Option<String> {
        let begins = !now.is_empty() && !self.is_short;
        self.is_short = !now.is_empty();
        begins.then(|| format!("descriptors are bounded: {}", now.join("; ")))
    }

    /// What cannot be had any more: each once, until it can.
    pub fn troubles(&mut self, now: &[String]) -> Vec<String> {
        let before = std::mem::replace(&mut self.troubles, now.to_vec());
        now.iter().filter(|line| !before.contains(line)).cloned().collect()
    }

    /// Settings that another process changed, of living threads: one line for a process.
    pub fn externally_changed(
        &mut self,
        now: impl Iterator<Item = (ThreadId, Setting)>,
        programs: &BTreeMap<u32, &Program>,
    ) -> Vec<String> {
        let now: BTreeSet<_> = now.collect();
        let mut fresh: BTreeMap<(u32, Setting), Vec<u32>> = BTreeMap::new();
        for (thread, setting) in now.difference(&self.changed) {
            fresh.entry((thread.process, *setting)).or_default().push(thread.thread);
        }
        self.changed = now;
        let line = |((process, setting), threads): ((u32, Setting), Vec<u32>)| {
            let what = match setting {
                Setting::Affinity => "the affinity",
                Setting::Priority => "the priority",
            };
            let name = programs.get(&process).map_or("", |program| program.name.as_str());
            let threads = match &threads[..] {
                [one] => format!("thread {one}"),
                [first, ..] => format!("{} threads ({first}, …)", threads.len()),
                [] => String::new(),
            };
            format!(
                "another process changed {what} of {threads} of process {process} ({name}): \
                 it stays as that one set it"
            )
        };
        fresh.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::ProgramId;

    use super::*;

    #[test]
    fn a_change_of_the_online_cpus_is_reported_once() {
        let set = |list: &str| list.parse::<CpuSet>().unwrap();
        let mut notices = Notices::new(set("0-3"));
        assert_eq!(notices.topology(&set("0-3")), None);
        let line = notices.topology(&set("0-2")).unwrap();
        assert_eq!(line, "CPU 3 went offline; the machine has CPUs 0-2 now");
        assert_eq!(notices.topology(&set("0-2")), None);
        let line = notices.topology(&set("0-1,3")).unwrap();
        assert_eq!(line, "CPU 2 went offline; CPU 3 went online; the machine has CPUs 0-1,3 now");
    }

    #[test]
    fn a_shortage_is_reported_when_it_begins() {
        let mut notices = Notices::new(CpuSet::new());
        let (none, some) = (vec![], vec!["the files of 9 threads are opened".to_owned()]);
        assert_eq!(notices.shortages(&none), None);
        assert!(notices.shortages(&some).unwrap().contains("files of 9 threads"));
        assert_eq!(notices.shortages(&some), None);
        assert_eq!(notices.shortages(&none), None);
        assert!(notices.shortages(&some).is_some());
    }

    #[test]
    fn a_trouble_is_reported_when_it_begins() {
        let mut notices = Notices::new(CpuSet::new());
        let both = ["no scheduler", "no mask"].map(str::to_owned);
        assert_eq!(notices.troubles(&both[..1]), both[..1]);
        assert_eq!(notices.troubles(&both), both[1..]);
        assert_eq!(notices.troubles(&[]), [""; 0]);
        assert_eq!(notices.troubles(&both[..1]), both[..1]);
    }

    #[test]
    fn a_change_from_outside_is_reported_once_while_its_thread_lives() {
        let program = Program::new(ProgramId(1), "make");
        let programs = BTreeMap::from([(7, &program)]);
        let change =
            |thread, setting| (ThreadId { process: 7, thread, born: 1, generation: 0 }, setting);
        let (one, other) = (change(7, Setting::Affinity), change(8, Setting::Affinity));
        let mut notices = Notices::new(CpuSet::new());
        let mut lines = |now: &[_]| notices.externally_changed(now.iter().copied(), &programs);
        let line = "another process changed the affinity of thread 7 of process 7 (make): \
                    it stays as that one set it";
        assert_eq!(lines(&[one]), [line]);
        assert!(lines(&[one]).is_empty());
        assert_eq!(lines(&[one, other]).len(), 1, "the new one");
        assert!(lines(&[one, other]).is_empty());
        let both = lines(&[change(9, Setting::Priority), change(10, Setting::Priority)]);
        assert!(both.len() == 1 && both[0].contains("2 threads (9, …)"), "{both:?}");
    }
}
