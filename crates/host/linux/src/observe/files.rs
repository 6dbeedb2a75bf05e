//! Threads' files in /proc, kept open.
//!
//! # Problem
//! To open, read and close two files costs twice as much as to read two that are open. But descriptors are
//! limited, and a number that is reused must not be taken for its former owner.
//!
//! # Approach
//! Files are opened at the first read of a thread and stay open as long as it is read in each round: two for each
//! thread, in all at most a quarter of the limit of open files and at most [`MOST`]. Beyond that, files are
//! opened and closed each time (`files_are_kept_open_within_their_bound`). An open file of /proc belongs to one
//! thread for ever and answers ESRCH after the thread's end; its start time is compared all the same.
//!
//! `stat` need not be read where `schedstat` shows that it has not changed:
//! - A thread that slept at the last read of its `stat` and has hardly run since is *resting*: its `stat` is the
//!   same, unless it is now ready and waits; whether any of them does is asked for all together
//!   ([`Files::all_rest`]). *Hardly*: for less than [`BRIEF`], if it ran at all in the second that followed,
//!   since where it ran then, and whether it was stopped, may be reported that much later
//!   (`a_thread_that_hardly_ran_since_its_last_read_rests_for_a_second`). The `stat` of a leader describes its
//!   whole process, and is read each time that the process ran (`a_leader_is_looked_at_when_its_process_ran`).
//! - Where that is not certain of all, the `stat` of a thread that rests is read again: each time while it has
//!   rested for less than a second, and then once the last read is an eighth of its rest, or a second, old
//!   (`what_has_slept_for_long_is_looked_at_seldom`).
//! - A thread that was ready and has not run since is still ready: to sleep, stop or end it would have had to run
//!   (`a_ready_thread_that_has_not_run_since_is_still_ready`).
//!
//! Of threads of which a process's clock shows that they have not run ([`Clocks`]) no file is read
//! (`of_threads_that_did_not_run_no_file_is_read`).
//!
//! One exception is wanted: after an exec by a thread that is not the leader, the leader's open files show that
//! thread, with the leader's start time.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use symbiont_machine::RunState;

use super::clocks::Clocks;
use super::running::Running;
use super::scan::{Proc, read_stat};
use super::stat::{SchedStat, Stat, parse_schedstat};
use super::tree::Live;

/// Most descriptors that are kept open: an open file of /proc holds some 5 KiB in the kernel, so that
/// these take 20 MiB.
const MOST: u64 = 4096;
/// Descriptors of a thread.
const EACH: u64 = 2;

/// What a thread that rests may have run and waited since its `stat` was read.
const BRIEF: Duration = Duration::from_millis(1);
/// For how long it may do so.
const LATE: Duration = Duration::from_secs(1);
/// It is looked at so many times in the time for which it rests.
const SELDOM: u32 = 8;

/// Where running times come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Times {
    /// `schedstat`: nanoseconds, waiting and switches too.
    SchedStat,
    /// Ticks of `stat`; no waiting, no switches.
    Ticks {
        /// Length of a tick.
        tick: Duration,
    },
}

impl Times {
    /// Finds what this kernel offers, from the watcher's own files.
    pub fn find(proc: &Proc) -> Self {
        let own = proc.file("thread-self/schedstat").or_else(|_| proc.file("self/schedstat"));
        match own.and_then(|file| read_schedstat(file.as_fd())) {
            // A thread that reads has been put on a hardware thread once.
            Ok(times) if times.switches > 0 => Self::SchedStat,
            _ => {
                let rate = rustix::param::clock_ticks_per_second().max(1);
                Self::Ticks { tick: Duration::from_secs(1) / u32::try_from(rate).unwrap_or(100) }
            }
        }
    }
}

/// What the files of a thread say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It lives, or is dead and not yet gone.
    There(Stat, SchedStat),
    /// It has hardly run since it slept when the former was read; the latter is of now.
    Resting(Stat, SchedStat),
    /// It is gone, or its number means another thread now.
    Gone,
    /// The files could not be read.
    Unreadable,
}

#[derive(Debug)]
struct Entry {
    born: u64,
    round: u64,
    kept: Option<Pair>,
    /// What was read when `stat` was read last.
    last: (Stat, SchedStat),
    /// When `last` was read.
    at: Instant,
    /// Its times at the last look, and whether they were the same at the one before.
    times: SchedStat,
    idle: bool,
    /// When it was last seen to be awake, or to have run more than briefly.
    awake: Instant,
}

impl Entry {
    /// Was it ready, and has not run since, if these are its times now?
    fn is_ready_still(&self, times: &SchedStat) -> bool {
        let (stat, before) = &self.last;
        stat.state == Some(RunState::Runnable) && times == before
    }

    /// Has it hardly run since, if these are its times now?
    fn rests(&self, times: &SchedStat, now: Instant) -> bool {
        let (stat, before) = &self.last;
        let hardly = self.is_brief(times) && now.duration_since(self.at) < LATE;
        stat.state == Some(RunState::Sleeping) && (times == before || hardly)
    }

    /// Has it run and waited only briefly since its `stat` was read, if these are its times now?
    fn is_brief(&self, times: &SchedStat) -> bool {
        let busy = |times: &SchedStat| times.run_time.saturating_add(times.wait_time);
        busy(times).saturating_sub(busy(&self.last.1)) < BRIEF
    }

    /// Is it time to see whether it is ready by now, if it rests?
    fn is_due(&self, now: Instant) -> bool {
        let rested = now.duration_since(self.awake);
        rested < LATE || now.duration_since(self.at) >= (rested / SELDOM).min(LATE)
    }

    /// Notes what was just read.
    fn note(&mut self, stat: Stat, times: SchedStat, now: Instant) {
        if stat.state != Some(RunState::Sleeping) || !self.is_brief(&times) {
            self.awake = now;
        }
        (self.last, self.at) = ((stat, times), now);
        self.note_times(times);
    }

    fn note_times(&mut self, times: SchedStat) {
        self.idle = self.times == times;
        self.times = times;
    }
}

#[derive(Debug)]
struct Pair {
    stat: OwnedFd,
    times: Option<OwnedFd>,
}

/// The files of all enrolled threads, by serial.
#[derive(Debug)]
pub(crate) struct Files {
    times: Times,
    running: Option<Running>,
    clocks: Option<Clocks>,
    /// Most threads whose files are kept open; none: as the bound allows.
    most: Option<usize>,
    kept: usize,
    entries: HashMap<u64, Entry>,
    round: u64,
    /// When the round began.
    now: Instant,
    /// Files opened in this round.
    opened: usize,
}

impl Files {
    pub fn new(proc: &Proc, times: Times, most: Option<usize>) -> Self {
        let running = match times {
            Times::SchedStat => Running::open(proc),
            Times::Ticks { .. } => None,
        };
        let clocks = running.as_ref().and_then(|_| Clocks::open(proc));
        let (entries, kept, now) = (HashMap::new(), 0, Instant::now());
        Self { times, running, clocks, most, kept, entries, round: 0, now, opened: 0 }
    }

    /// Where running times come from.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// How many threads' files are open.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Keeps the files of at most this many threads open; none: as the bound
    /// allows.
    pub fn keep(&mut self, most: Option<usize>) {
        self.most = most;
        let excess = most.map_or(0, |most| self.kept.saturating_sub(most));
        let open = self.entries.values_mut().filter(|entry| entry.kept.is_some());
        for entry in open.take(excess) {
            entry.kept = None;
            self.kept -= 1;
        }
    }

    /// How many threads' files are opened and closed at each read.
    pub fn not_kept(&self) -> usize {
        self.entries.len().saturating_sub(self.kept)
    }

    /// Begins a round of reading.
    pub fn begin(&mut self) {
        self.round += 1;
        self.now = Instant::now();
        self.opened = 0;
    }

    /// Were files opened in this round? Of an open file it is certain whose it is.
    pub fn opened_any(&self) -> bool {
        self.opened > 0
    }

    /// Are no other threads ready now than the `ready` ones that were seen to be? Then all resting
    /// threads sleep.
    pub fn all_rest(&self, ready: usize) -> bool {
        let running = self.running.as_ref().and_then(Running::count);
        // The reader is ready too.
        running.is_some_and(|running| running <= ready as u64 + 1)
    }

    /// Most threads whose files may be kept open now.
    fn allowed(&self) -> usize {
        self.most.unwrap_or_else(|| {
            let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            kept_within(limit)
        })
    }

    /// Closes the files of threads that were not read in this round.
    pub fn end(&mut self) {
        let (round, kept) = (self.round, &mut self.kept);
        if let Some(clocks) = &mut self.clocks {
            clocks.end(round);
        }
        self.entries.retain(|_, entry| {
            let stays = entry.round == round;
            *kept -= usize::from(!stays && entry.kept.is_some());
            stays
        });
        if self.entries.capacity() > 4 * self.entries.len() + 64 {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }

    /// Reads a thread's files, but not its `stat` where its times say enough.
    pub fn look(&mut self, proc: &Proc, live: &Live) -> Reading {
        if self.running.is_none() || live.process == live.thread {
            return self.read(proc, live);
        }
        let Some(entry) = self.entries.get_mut(&live.serial) else { return self.read(proc, live) };
        let file = entry.kept.as_ref().and_then(|pair| pair.times.as_ref());
        let asked = [Some(RunState::Sleeping), Some(RunState::Runnable)];
        let file = file.filter(|_| asked.contains(&entry.last.0.state));
        match file.map(|file| read_schedstat(file.as_fd())) {
            Some(Ok(times)) if entry.rests(&times, self.now) => {
                entry.round = self.round;
                entry.note_times(times);
                Reading::Resting(entry.last.0, times)
            }
            Some(Ok(times)) if entry.is_ready_still(&times) => {
                entry.round = self.round;
                entry.note_times(times);
                Reading::There(entry.last.0, times)
            }
            Some(Ok(times)) => self.read_state(proc, live, times),
            // Reading both reports a failure.
            _ => self.read(proc, live),
        }
    }

    /// What the threads of a process have run together; none where no clock says so.
    pub fn time_of(&mut self, process: u32) -> Option<Duration> {
        self.clocks.as_mut()?.read(process, self.round)
    }

    /// Had it not run at the last look, or, if it is a leader, has its process not run since?
    pub fn is_idle(&self, live: &Live) -> bool {
        let stood = |clocks: &Clocks| clocks.stood(live.process);
        let is_idle = |it: &Entry| it.idle && it.round + 1 == self.round;
        self.entries.get(&live.serial).is_some_and(is_idle)
            && (live.process != live.thread || self.clocks.as_ref().is_some_and(stood))
    }

    /// May threads of a process that were not looked at have run, if `time` is what all have run by now?
    pub fn ran_unseen(&self, threads: &[Live], time: Duration) -> bool {
        let clocks = self.clocks.as_ref().zip(threads.first());
        clocks.is_none_or(|(clocks, live)| {
            clocks.ran_unseen(live.process, time, self.known_time(threads))
        })
    }

    /// Notes whether the clock of a process saved looks.
    pub fn note_use(&mut self, process: u32, saved: bool) {
        if let Some(clocks) = &mut self.clocks {
            clocks.note_use(process, saved);
        }
    }

    /// Notes that all threads of a process were looked at, before which all had run for `time`.
    pub fn note_complete(&mut self, threads: &[Live], time: Duration) {
        let known = self.known_time(threads);
        if let Some((clocks, live)) = self.clocks.as_mut().zip(threads.first()) {
            clocks.note_complete(live.process, time, known);
        }
    }

    fn known_time(&self, threads: &[Live]) -> Duration {
        let entries = threads.iter().filter_map(|live| self.entries.get(&live.serial));
        entries.map(|entry| entry.times.run_time).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// What a thread does that has not run since it was last looked at, where that is certain.
    pub fn as_before(&mut self, live: &Live) -> Option<Reading> {
        let entry = self.entries.get_mut(&live.serial)?;
        let times = entry.times;
        let reading = match entry.last.0 {
            stat if entry.rests(&times, self.now) => Reading::Resting(stat, times),
            stat if entry.is_ready_still(&times) => Reading::There(stat, times),
            _ => return None,
        };
        entry.round = self.round;
        Some(reading)
    }

    /// Sees whether a resting thread is ready by now, if it was not looked at for some time.
    pub fn see_resting(
        &mut self,
        proc: &Proc,
        live: &Live,
        stat: Stat,
        times: SchedStat,
    ) -> Reading {
        match self.entries.get(&live.serial) {
            Some(entry) if !entry.is_due(self.now) => Reading::There(stat, times),
            _ => self.read_state(proc, live, times),
        }
    }

    /// Reads what a thread does whose times were read just now.
    fn read_state(&mut self, proc: &Proc, live: &Live, times: SchedStat) -> Reading {
        let entry = self.entries.get_mut(&live.serial);
        let state = entry.and_then(|entry| {
            let stat = read_stat(entry.kept.as_ref()?.stat.as_fd()).ok()?;
            Some((entry, stat))
        });
        match state {
            Some((entry, stat)) if entry.born == stat.born => {
                entry.round = self.round;
                entry.note(stat, times, self.now);
                Reading::There(stat, times)
            }
            // Reading both reports what is wrong.
            _ => self.read(proc, live),
        }
    }

    /// Reads a thread's files.
    pub fn read(&mut self, proc: &Proc, live: &Live) -> Reading {
        let known = self.entries.get_mut(&live.serial);
        let (reading, pair) = match known.as_ref().and_then(|entry| entry.kept.as_ref()) {
            Some(pair) => (pair.read(&self.times), None),
            None => match Pair::open(proc, live, &self.times) {
                Ok(pair) => (pair.read(&self.times), Some(pair)),
                Err(error) => (Err(error), None),
            },
        };
        let (stat, times) = match reading {
            Ok(reading) => reading,
            Err(Errno::SRCH | Errno::NOENT) => return Reading::Gone,
            Err(_) => return Reading::Unreadable,
        };
        if let Some(entry) = known {
            if entry.born != stat.born {
                return Reading::Gone;
            }
            entry.round = self.round;
            entry.note(stat, times, self.now);
            self.opened += usize::from(pair.is_some());
        } else {
            // The number may have passed on before the files were opened.
            let leader = live.process == live.thread;
            let other = |born| stat.born < born || (leader && stat.born != born);
            if live.process_born.is_some_and(other) {
                return Reading::Gone;
            }
            let kept = pair.filter(|_| self.kept < self.allowed());
            self.kept += usize::from(kept.is_some());
            let (born, round, now) = (stat.born, self.round, self.now);
            let last = (stat, times);
            let entry = Entry { born, round, kept, last, at: now, times, idle: false, awake: now };
            self.entries.insert(live.serial, entry);
            self.opened += 1;
            if let Some(clocks) = &mut self.clocks {
                clocks.note_new(live.process);
            }
        }
        Reading::There(stat, times)
    }
}

impl Pair {
    fn open(proc: &Proc, live: &Live, times: &Times) -> Result<Self, Errno> {
        let Live { process, thread, .. } = live;
        let stat = proc.file(&format!("{process}/task/{thread}/stat"))?;
        let times = match times {
            Times::SchedStat => Some(proc.file(&format!("{process}/task/{thread}/schedstat"))?),
            Times::Ticks { .. } => None,
        };
        Ok(Self { stat, times })
    }

    fn read(&self, times: &Times) -> Result<(Stat, SchedStat), Errno> {
        // First the times: if it runs meanwhile, they are others at the next look, and `stat` is read again.
        let measured = self.times.as_ref().map(|file| read_schedstat(file.as_fd())).transpose()?;
        let stat = read_stat(self.stat.as_fd())?;
        let times = match (measured, times) {
            (Some(times), _) => times,
            (None, Times::Ticks { tick }) => {
                let nanos = u128::from(stat.ticks).saturating_mul(tick.as_nanos());
                let run_time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                SchedStat { run_time, ..SchedStat::default() }
            }
            (None, Times::SchedStat) => SchedStat::default(),
        };
        Ok((stat, times))
    }
}

fn read_schedstat(file: BorrowedFd<'_>) -> Result<SchedStat, Errno> {
    let mut buffer = [0; 128];
    let length = rustix::io::pread(file, &mut buffer, 0)?;
    buffer.get(..length).and_then(parse_schedstat).ok_or(Errno::ILSEQ)
}

/// Most threads whose files are kept open under this limit of open files.
fn kept_within(limit: u64) -> usize {
    usize::try_from((limit / 4).min(MOST) / EACH).unwrap_or(usize::MAX)
}

/// Raises this process's soft limit of open files to its hard one; gives the limit that holds then, none if there
/// is no limit.
///
/// For the manager only: programs inherit limits, and some allocate by them.
///
/// # Errors
/// When the kernel refuses.
pub fn raise_descriptor_limit() -> Result<Option<u64>, Errno> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current)
}
