//! The result of one round of reading.

use std::time::Duration;

use symbiont_machine::{ProgramId, RunState, ThreadId};
use symbiont_topology::PuId;

use super::files::{Files, Reading};
use super::scan::Proc;
use super::stat::{SchedStat, Scheduling, Stat};
use super::tree::{Ages, Live};

/// After so many threads it is asked again whether any thread is ready.
const OFTEN: usize = 256;

/// An enrolled thread at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// The thread.
    pub id: ThreadId,
    /// Its program.
    pub program: ProgramId,
    /// What it does.
    pub state: RunState,
    /// Time that it spent running since it was born.
    pub run_time: Duration,
    /// Time that it was ready without running, credited when it next runs;
    /// zero where the kernel does not report it ([`run_states`](super::Watcher::run_states)).
    pub wait_time: Duration,
    /// Times that it was put on a hardware thread; zero likewise.
    pub switches: u64,
    /// Where it runs or ran last; of one that hardly runs, up to a second ago.
    pub cpu: Option<PuId>,
    /// Its session; 0 if that is not seen from here.
    pub session: u32,
    /// How the kernel schedules it; of one that hardly runs, up to a second ago, of one that sleeps, perhaps when it
    /// last ran.
    pub scheduling: Scheduling,
    /// How long ago it was born, forked or exec'd.
    pub ages: Ages,
}

impl Observed {
    fn new(live: &Live, state: RunState, stat: &Stat, times: &SchedStat) -> Self {
        Self {
            id: ThreadId {
                process: live.process,
                thread: live.thread,
                born: stat.born,
                generation: live.generation,
            },
            program: live.program,
            state,
            run_time: times.run_time,
            wait_time: times.wait_time,
            switches: times.switches,
            cpu: stat.cpu.map(PuId),
            session: stat.session,
            scheduling: stat.scheduling,
            ages: live.ages,
        }
    }
}

/// A round of reading, not yet judged.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// The threads that are there, dead ones too.
    pub there: Vec<(Live, Stat, SchedStat)>,
    /// Threads that slept at an earlier read and have hardly run since.
    pub resting: Vec<(Live, Stat, SchedStat)>,
    /// Threads that are gone.
    pub gone: Vec<Live>,
    /// Reads that failed although the thread was there.
    pub unreadable: u64,
    /// Threads that were looked at.
    looked: usize,
    /// Was no thread ready but the reader, at a moment of this round?
    quiet: bool,
}

impl Round {
    /// Reads all threads of a process, but those of which its clock shows that they have not run.
    pub fn take_process(&mut self, files: &mut Files, proc: &Proc, threads: &[Live]) {
        let time = threads.first().and_then(|live| files.time_of(live.process));
        let Some(time) = time else {
            return threads.iter().for_each(|live| self.take(files, proc, live));
        };
        let (idle, awake): (Vec<&Live>, Vec<&Live>) =
            threads.iter().partition(|live| files.is_idle(live));
        awake.iter().for_each(|live| self.take(files, proc, live));
        let now = match awake.first() {
            Some(live) if !idle.is_empty() => files.time_of(live.process),
            _ => Some(time),
        };
        let ran = now.is_none_or(|now| files.ran_unseen(threads, now));
        for live in &idle {
            match files.as_before(live).filter(|_| !ran) {
                Some(reading) => self.note(live, reading),
                None => self.take(files, proc, live),
            }
        }
        if ran || idle.is_empty() {
            files.note_complete(threads, time);
        }
        if let Some(live) = idle.first() {
            files.note_use(live.process, !ran);
        }
    }

    /// Reads one thread more.
    pub fn take(&mut self, files: &mut Files, proc: &Proc, live: &Live) {
        if self.looked % OFTEN == 0 {
            self.quiet |= files.all_rest(0);
        }
        self.looked += 1;
        let reading = files.look(proc, live);
        self.note(live, reading);
    }

    /// Looks again at those that rest, unless it is certain that they slept at a moment of
    /// this round.
    pub fn settle_resting(&mut self, files: &mut Files, proc: &Proc) {
        if self.resting.is_empty() {
            return;
        }
        let ready = |(_, stat, _): &&(Live, Stat, _)| stat.state == Some(RunState::Runnable);
        if self.quiet || files.all_rest(self.there.iter().filter(ready).count()) {
            self.there.append(&mut self.resting);
            return;
        }
        for (live, stat, times) in std::mem::take(&mut self.resting) {
            let reading = files.see_resting(proc, &live, stat, times);
            self.note(&live, reading);
        }
    }

    fn note(&mut self, live: &Live, reading: Reading) {
        match reading {
            Reading::There(stat, times) => self.there.push((*live, stat, times)),
            Reading::Resting(stat, times) => self.resting.push((*live, stat, times)),
            Reading::Gone => self.gone.push(*live),
            Reading::Unreadable => self.unreadable += 1,
        }
    }

    /// The living threads, ordered by identity.
    pub fn observed(&self) -> Vec<Observed> {
        let living = self.there.iter().filter_map(|(live, stat, times)| {
            stat.state.map(|state| Observed::new(live, state, stat, times))
        });
        let mut observed: Vec<_> = living.collect();
        observed.sort_unstable_by_key(|thread| thread.id);
        observed
    }
}
