//! The kept-open files of threads.
//!
//! # Problem
//! Opening, reading and closing two files costs twice as much as reading two
//! open ones; but descriptors are limited, and a number that is used again
//! must not be taken for its former owner.
//!
//! # Approach
//! Files are opened at the first read of a thread and kept while it is read in
//! each round, as far as the descriptors reach; beyond that they are opened
//! and closed each time. An open file of /proc belongs to one thread for ever
//! and gives ESRCH after its end; in any case the start time is compared.
//!
//! A thread that slept at its last read and has not run since, by its `schedstat`,
//! is *resting*: its `stat` says the same as then, unless it is ready by now and
//! waits. Whether that can be is asked once for all of them ([`Files::all_rest`]). A
//! leader's `stat` tells of its whole process and is read each time.
//!
//! One exception is wanted: after an exec from a thread that is not the
//! leader, the leader's open files show that thread, with the leader's start
//! time.

use std::collections::HashMap;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use symbiont_machine::RunState;

use super::running::Running;
use super::scan::{Proc, read_stat};
use super::stat::{SchedStat, Stat, parse_schedstat};
use super::tree::Live;

/// Descriptors left to the rest of the process.
const RESERVE: u64 = 128;

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
    /// It has not run since it slept at its last read, of which this is.
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
    /// What was read last.
    last: (Stat, SchedStat),
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
    /// Most threads whose files are kept open; none: as the limit allows.
    most: Option<usize>,
    kept: usize,
    entries: HashMap<u64, Entry>,
    round: u64,
    /// Files opened in this round.
    opened: usize,
}

impl Files {
    pub fn new(proc: &Proc, times: Times, most: Option<usize>) -> Self {
        let running = match times {
            Times::SchedStat => Running::open(proc),
            Times::Ticks { .. } => None,
        };
        let (entries, kept) = (HashMap::new(), 0);
        Self { times, running, most, kept, entries, round: 0, opened: 0 }
    }

    /// Where running times come from.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// How many threads' files are open.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Keeps the files of at most so many threads open; none: as the limit
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

    /// Begins a round of reading.
    pub fn begin(&mut self) {
        self.round += 1;
        self.opened = 0;
    }

    /// Were files opened in this round? Of an open file it is certain whose it is.
    pub fn opened_any(&self) -> bool {
        self.opened > 0
    }

    /// Do all resting threads still rest, if so many other threads were seen ready?
    pub fn all_rest(&self, ready: usize) -> bool {
        let running = self.running.as_ref().and_then(Running::count);
        // The reader is ready too.
        running.is_some_and(|running| running <= ready as u64 + 1)
    }

    /// Most threads whose files may be kept open now.
    fn allowed(&self) -> usize {
        self.most.unwrap_or_else(|| {
            let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            usize::try_from(limit.saturating_sub(RESERVE) / 2).unwrap_or(usize::MAX)
        })
    }

    /// Closes the files of threads that were not read in this round.
    pub fn end(&mut self) {
        let (round, kept) = (self.round, &mut self.kept);
        self.entries.retain(|_, entry| {
            let stays = entry.round == round;
            *kept -= usize::from(!stays && entry.kept.is_some());
            stays
        });
        if self.entries.capacity() > 4 * self.entries.len() + 64 {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }

    /// Reads a thread's files, but not those that it rests by.
    pub fn look(&mut self, proc: &Proc, live: &Live) -> Reading {
        if self.running.is_none() || live.process == live.thread {
            return self.read(proc, live);
        }
        let Some(entry) = self.entries.get_mut(&live.serial) else { return self.read(proc, live) };
        let (stat, before) = entry.last;
        let file = entry.kept.as_ref().and_then(|pair| pair.times.as_ref());
        let file = file.filter(|_| stat.state == Some(RunState::Sleeping));
        match file.map(|file| read_schedstat(file.as_fd())) {
            Some(Ok(times)) if times == before => {
                entry.round = self.round;
                Reading::Resting(stat, times)
            }
            Some(Ok(times)) => self.read_state(proc, live, times),
            // A failure is told by reading both.
            _ => self.read(proc, live),
        }
    }

    /// Reads what a thread does whose times were read just now.
    pub fn read_state(&mut self, proc: &Proc, live: &Live, times: SchedStat) -> Reading {
        let entry = self.entries.get_mut(&live.serial);
        let state = entry.and_then(|entry| {
            let stat = read_stat(entry.kept.as_ref()?.stat.as_fd()).ok()?;
            Some((entry, stat))
        });
        match state {
            Some((entry, stat)) if entry.born == stat.born => {
                entry.round = self.round;
                entry.last = (stat, times);
                Reading::There(stat, times)
            }
            // What is wrong is told by reading both.
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
            entry.last = (stat, times);
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
            let entry = Entry { born: stat.born, round: self.round, kept, last: (stat, times) };
            self.entries.insert(live.serial, entry);
            self.opened += 1;
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
        let stat = read_stat(self.stat.as_fd())?;
        let times = match (&self.times, times) {
            (Some(file), _) => read_schedstat(file.as_fd())?,
            (None, Times::Ticks { tick }) => {
                let nanos = u128::from(stat.ticks).saturating_mul(tick.as_nanos());
                let ran = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                SchedStat { ran, ..SchedStat::default() }
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

/// Raises this process's soft limit of open files to its hard one; gives the
/// limit that holds then.
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
