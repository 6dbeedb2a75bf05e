//! Programs that are to answer at once, and wait for their CPUs all the same.
//!
//! # Problem
//! A program of class `latency` gets a core on which no other managed program runs. What is not managed may run
//! there, and the kernel divides the time between both; the user should hear of it.
//!
//! # Approach
//! The time in which the program's threads were ready to run, and the part of it for which they waited, are summed
//! over windows of [`WINDOW`]. Where the part is at least [`SHARE`], the threads that ran last on the same hardware
//! threads are looked up; from the second such window on it is known what they ran since the first.
//!
//! # Properties
//! - Waiting is reported when it goes on, with what ran meanwhile, and once (`what_a_program_waits_for_is_named_once`).
//! - One that its own quota stops blames no other thread (`what_a_program_waits_for_is_named_once`).
//! - A program that hardly waits, or hardly runs, is not reported (`little_waiting_is_none`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_counters::Characterizations;
use symbiont_machine::{Class, ProgramId, Sample, Timestamp};
use symbiont_topology::CpuSet;
use symbiont_wire::{Throttled, Waits};

use crate::occupants::{Occupancy, RunTimes, intruders};
use crate::throttles::{is_mostly_throttled, throttled_words};

/// Length of a window, at least.
const WINDOW: Duration = Duration::from_secs(1);
/// Part of the time in which a program was ready for which it waited, that is worth a word.
const SHARE: f64 = 0.1;
/// Less waiting than this in a window is none.
const LEAST: Duration = Duration::from_millis(20);
/// CPU time in a window that is worth a name, seconds.
const WORTH: f64 = 0.02;

/// All programs that are to answer at once.
#[derive(Debug, Default)]
pub(crate) struct Waiting(BTreeMap<ProgramId, One>);

#[derive(Debug, Default)]
struct One {
    begin: Option<Timestamp>,
    ready: Duration,
    waited: Duration,
    cpus: CpuSet,
    run_times: RunTimes,
    /// When what ran was looked up, since boot.
    looked: Option<Duration>,
    /// The figures of the last window.
    found: Option<Waits>,
    said: bool,
}

impl Waiting {
    /// Adds a quantum; gives the programs that wait since a window or longer, each once.
    pub fn check(
        &mut self,
        sample: &Sample,
        did: &Characterizations,
        machine: &mut impl Occupancy,
    ) -> Vec<(ProgramId, Waits)> {
        let programs = sample.programs.iter().filter(|program| program.class == Class::Latency);
        let wanted: BTreeSet<ProgramId> = programs.map(|program| program.id).collect();
        self.0.retain(|id, _| wanted.contains(id));
        let check = |id| Some((id, self.0.entry(id).or_default().check(sample, id, did, machine)?));
        wanted.into_iter().filter_map(check).collect()
    }

    /// The figures of a program that waits.
    pub fn of(&self, id: ProgramId) -> Option<Waits> {
        self.0.get(&id)?.found.clone()
    }

    /// How many programs wait.
    pub fn count(&self) -> usize {
        self.0.values().filter(|one| one.found.is_some()).count()
    }
}

impl One {
    fn check(
        &mut self,
        sample: &Sample,
        id: ProgramId,
        did: &Characterizations,
        machine: &mut impl Occupancy,
    ) -> Option<Waits> {
        let begin = *self.begin.get_or_insert(sample.at);
        let own = || sample.threads.iter().filter(|thread| thread.program == id);
        for thread in own() {
            let Some(did) = did.get(&thread.id) else { continue };
            let waited = did.over.mul_f64((did.ready - did.running).max(0.0));
            self.ready += did.over.mul_f64(did.ready.max(0.0));
            self.waited += waited;
            if let Some(cpu) = thread.cpu.filter(|_| !waited.is_zero()) {
                self.cpus = self.cpus.union(&[cpu].into_iter().collect());
            }
        }
        let over = sample.at.since(begin);
        if over < WINDOW {
            return None;
        }
        let window = std::mem::take(self);
        self.begin = Some(sample.at);
        let share = window.waited.as_secs_f64() / window.ready.as_secs_f64().max(1e-9);
        if window.waited < LEAST || share < SHARE {
            return None;
        }
        self.run_times = window.run_times;
        self.looked = machine.times().ok().map(|times| times.at);
        let threads: BTreeSet<u32> = own().map(|thread| thread.id.thread).collect();
        let since = window.looked.or(self.looked).unwrap_or_default();
        let by = self.run_times.since(since, &window.cpus, &threads, machine);
        let waits = Waits {
            share: share.min(1.0),
            over_s: over.as_secs_f64(),
            cpus: window.cpus.to_string(),
            by: intruders(&by).into_iter().filter(|one| one.s >= WORTH).take(4).collect(),
        };
        self.found = Some(waits.clone());
        self.said = window.found.is_some();
        (self.said && !window.said).then_some(waits)
    }
}

/// For a log. `throttled`: the quota that stops it, if one does.
pub(crate) fn line(name: &str, waits: &Waits, throttled: Option<&Throttled>) -> String {
    if let Some(throttled) = throttled.filter(|throttled| is_mostly_throttled(throttled)) {
        return format!("latency not met for {name}: {}", throttled_words(throttled));
    }
    let by: Vec<String> =
        waits.by.iter().map(|one| format!("{} {:.2} s", one.name, one.s)).collect();
    let by = if by.is_empty() { "not known".to_owned() } else { by.join(", ") };
    let quota = throttled.map(|quota| format!("; {}", throttled_words(quota))).unwrap_or_default();
    format!(
        "latency not met for {name}: in {:.1} s it waited for {:.0} % of the time that it was ready, for CPU {} (what \
         ran there: {by}){quota}",
        waits.over_s,
        waits.share * 100.0,
        waits.cpus
    )
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;

    use symbiont_counters::Characterization;
    use symbiont_linux::occupancy::{Bystander, CpuTimes};
    use symbiont_machine::Program;
    use symbiont_machine::test_support::thread;
    use symbiont_topology::PuId;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The programs that ran, as a test states them.
    struct Accounts(CpuTimes, VecDeque<Vec<Bystander>>);

    impl Occupancy for Accounts {
        fn times(&mut self) -> io::Result<CpuTimes> {
            Ok(self.0.clone())
        }

        fn last_on(&mut self, cpus: &CpuSet) -> io::Result<Vec<Bystander>> {
            assert_eq!(cpus.to_string(), "0", "where it waited");
            Ok(self.1.pop_front().unwrap_or_default())
        }
    }

    /// A program on CPU 0, of one thread, for so many windows of a second each with these shares of it.
    fn windows(
        class: Class,
        windows: &[(f64, f64)],
        ran: &[u64],
    ) -> (Waiting, Vec<(ProgramId, Waits)>) {
        let one = |ran: u64| Bystander {
            process: 90,
            thread: 90,
            born: Duration::ZERO,
            name: "hog".into(),
            run_time: Duration::from_millis(ran),
        };
        let mut accounts =
            Accounts(CpuTimes::default(), ran.iter().map(|ran| vec![one(*ran)]).collect());
        let (mut waiting, mut said) = (Waiting::default(), Vec::new());
        let mut thread = thread(1, 7, &"0-1".parse().unwrap());
        thread.cpu = Some(PuId(0));
        for quantum in 0..=10 * windows.len() {
            accounts.0.at += 100 * MS;
            let at = Timestamp(u64::try_from(quantum).unwrap() * 100_000_000);
            let sample = Sample {
                at,
                threads: vec![thread.clone()],
                programs: vec![Program { class, ..Program::new(ProgramId(1), "editor") }],
                ..Sample::default()
            };
            let window = quantum.saturating_sub(1) / 10;
            let (ready, running) = windows[window.min(windows.len() - 1)];
            let over = if quantum == 0 { Duration::ZERO } else { 100 * MS };
            let did = Characterization { over, ready, running, switches: 1, migrated: None };
            said.extend(waiting.check(&sample, &[(thread.id, did)].into(), &mut accounts));
        }
        (waiting, said)
    }

    #[test]
    fn what_a_program_waits_for_is_named_once() {
        let (waiting, said) = windows(Class::Latency, &[(1.0, 0.1); 4], &[500, 1400, 2300, 3200]);
        let [(ProgramId(1), waits)] = said.as_slice() else { panic!("{said:?}") };
        assert!((waits.share - 0.9).abs() < 1e-9 && waits.cpus == "0", "{waits:?}");
        assert_eq!((waits.by[0].name.as_str(), (waits.by[0].s * 10.0).round()), ("hog", 9.0));
        assert_eq!((waiting.count(), waiting.of(ProgramId(1)).is_some()), (1, true));
        let stopped = Throttled { cpus: 0.5, periods: 10, throttled: 9, ..Throttled::default() };
        assert!(
            !line("editor", waits, Some(&stopped)).contains("hog"),
            "its own quota, not a neighbour"
        );
        let little = Throttled { throttled: 1, ..stopped };
        assert!(line("editor", waits, Some(&little)).contains("hog"), "and both");
        let line = line("editor", waits, None);
        assert!(
            line.contains("in 1.0 s it waited for 90 %") && line.contains("hog 0.90 s"),
            "{line}"
        );
        // Once it no longer waits, nothing is said, and the next time counts as a new one.
        let (waiting, said) =
            windows(Class::Latency, &[(1.0, 0.1), (1.0, 0.1), (1.0, 1.0)], &[0, 9]);
        assert_eq!((waiting.count(), said.len()), (0, 1));
        let wait = (1.0, 0.1);
        let (_, said) = windows(Class::Latency, &[wait, wait, (1.0, 1.0), wait, wait], &[0; 5]);
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn little_waiting_is_none() {
        for (class, window) in [
            (Class::Latency, (1.0, 0.95)),
            (Class::Latency, (0.01, 0.0)),
            (Class::Normal, (1.0, 0.1)),
            (Class::Latency, (0.0, 0.0)),
        ] {
            let (waiting, said) = windows(class, &[window; 3], &[0; 3]);
            assert_eq!((waiting.count(), said.len()), (0, 0), "{class:?} {window:?}");
        }
    }
}
