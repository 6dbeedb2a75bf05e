//! Enrols programs with all their descendants, and reads their threads once a quantum.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;
use symbiont_machine::{Ability, ProgramId};

use super::connector::{Connector, ConnectorError, Losses};
use super::files::{Files, Times};
use super::hook::BirthHook;
use super::observed::{Observed, Round};
use super::options::{Choice, Method, WatchError, WatchOptions};
use super::reader::{Haste, Reader};
use super::scan::{Proc, Scanner};
use super::state::{Enrolment, State};
use super::sys;
use super::tree::{Live, Tree};
use crate::inheriting::Inheriting;

/// Watches enrolled programs.
#[derive(Debug)]
pub struct Watcher {
    /// Ends before the rest is dropped.
    reader: Option<Reader>,
    state: Arc<Inheriting<State>>,
    method: Method,
    root: PathBuf,
    proc: Proc,
    files: Files,
    scanner: Scanner,
    rescans: u64,
    unreadable: u64,
    /// Serials of threads that could not be found at the last read.
    missing: HashSet<u64>,
    live: Vec<Live>,
}

impl Watcher {
    /// Starts to watch; nothing is enrolled yet.
    ///
    /// # Errors
    /// When /proc cannot be opened, or the reader's thread cannot be started.
    pub fn start(options: WatchOptions, hook: Box<dyn BirthHook>) -> Result<Self, WatchError> {
        let proc = Proc::open(&options.proc)
            .map_err(|source| WatchError::Proc { path: options.proc.clone(), source })?;
        let subscribed = match options.choice {
            Choice::Scan => Err("scanning was asked for".to_owned()),
            Choice::Best => subscribe(&options).map_err(|error| error.to_string()),
        };
        let times = Times::find(&proc);
        let files = Files::new(&proc, times, options.kept_open);
        let tree = Tree::new(std::process::id());
        let state = State { tree, hook, connector: None, broken: None };
        let mut watcher = Self {
            reader: None,
            state: Arc::new(Inheriting::new(state)),
            method: Method::Scan { why: String::new() },
            root: options.proc,
            proc,
            files,
            scanner: Scanner::default(),
            rescans: 0,
            unreadable: 0,
            missing: HashSet::new(),
            live: Vec::new(),
        };
        match subscribed {
            Err(why) => watcher.method = Method::Scan { why },
            Ok(connector) => watcher.listen(connector)?,
        }
        Ok(watcher)
    }

    fn listen(&mut self, connector: Connector) -> Result<(), WatchError> {
        let buffer = connector.buffer();
        let socket = connector.socket().try_clone_to_owned().map_err(WatchError::Reader)?;
        self.state.lock().connector = Some(connector);
        let reader = Reader::start(Arc::clone(&self.state), socket).map_err(WatchError::Reader)?;
        let realtime = reader.realtime().map_err(|error| error.to_string());
        if realtime.is_err() {
            // No thread lends this one urgency while the reader waits for what it holds.
            let _ = sys::run_in_short_slices();
        }
        self.method = Method::Connector { buffer, realtime };
        self.reader = Some(reader);
        Ok(())
    }

    /// How births are found now. It may change once: when reports break off.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Sets how soon the hook must be called from now on. Until this is called: at once, as far as the method
    /// allows.
    pub fn hurry(&self, haste: Haste) {
        if let Some(reader) = &self.reader {
            reader.hurry(haste);
        }
    }

    /// Are all threads found, and how soon?
    #[must_use]
    pub fn enrolment(&self) -> Ability {
        match &self.method {
            Method::Connector { realtime: Ok(()), .. } => Ability::Full,
            Method::Connector { realtime: Err(why), .. } => Ability::Partial(format!(
                "new threads are reported at once, but on a busy machine they may run before the \
                 report is read: the reader has no real-time priority ({why})"
            )),
            Method::Scan { why } => Ability::Partial(format!(
                "new threads are found by scanning /proc at the end of each quantum, not at once, \
                 and a process whose parents all ended within one quantum is missed ({why})"
            )),
        }
    }

    /// Can run states be measured?
    #[must_use]
    pub fn run_states(&self) -> Ability {
        match self.files.times() {
            Times::SchedStat => Ability::Full,
            Times::Ticks { tick } => Ability::Partial(format!(
                "this kernel keeps no schedstat (CONFIG_SCHED_INFO): running time is known in \
                 steps of {tick:?} only, waiting time and switches are not known"
            )),
        }
    }

    /// What was lost and made good since the start.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let state = self.state.lock();
        let lost = state.connector.as_ref().map(Connector::losses).unwrap_or_default();
        Losses { rescans: self.rescans, unreadable: self.unreadable, ..lost }
    }

    /// How many threads are enrolled now.
    #[must_use]
    pub fn enrolled(&self) -> usize {
        self.state.lock().tree.live().count()
    }

    /// The program that a process is enrolled in.
    #[must_use]
    pub fn program_of(&self, process: u32) -> Option<ProgramId> {
        self.state.lock().tree.program(process)
    }

    /// The threads of a program as (process, thread), in order.
    #[must_use]
    pub fn threads_of(&self, program: ProgramId) -> Vec<(u32, u32)> {
        let state = self.state.lock();
        let threads = state.tree.live().filter(|live| live.program == program);
        threads.map(|live| (live.process, live.thread)).collect()
    }

    /// Keeps the files of at most this many threads open from now on; none: as
    /// [`WatchOptions::kept_open`] says.
    pub fn keep_open(&mut self, most: Option<usize>) {
        self.files.keep(most);
    }

    /// How many threads' files are kept open.
    #[must_use]
    pub fn kept_open(&self) -> usize {
        self.files.kept()
    }

    /// How many threads' files are opened and closed at each read, since others' fill the bound.
    #[must_use]
    pub fn not_kept_open(&self) -> usize {
        self.files.not_kept()
    }

    /// Enrols a process with its threads and its present descendants. From now
    /// on all their descendants are enrolled too. The watcher's own process is
    /// never enrolled as a descendant.
    ///
    /// # Errors
    /// When there is no such process, when it belongs to another program, or
    /// when /proc cannot be listed. To enrol it again in the same program is
    /// no error and changes nothing.
    pub fn enrol(&mut self, program: ProgramId, process: u32) -> Result<(), WatchError> {
        // Reports wait in the socket while this is locked: what is born during
        // the scan is seen by the scan, or its report is applied after it.
        let mut state = self.state.lock();
        state.drain();
        let enrolment = state.enrol(&self.proc, program, process);
        self.scanner.forget();
        match enrolment.map_err(|source| self.no_proc(source))? {
            Enrolment::Known(known) if known != program => {
                Err(WatchError::Enrolled { process, program: known })
            }
            Enrolment::Done | Enrolment::Known(_) => Ok(()),
            Enrolment::NoSuchProcess => Err(WatchError::NoSuchProcess { process }),
        }
    }

    /// Lets go of enrolled processes, each with the time of its birth where that is
    /// known. Children that they have had stay enrolled, children to come do not become so.
    pub fn release(&mut self, processes: impl IntoIterator<Item = (u32, Option<u64>)>) {
        let mut state = self.state.lock();
        state.drain();
        let State { tree, hook, .. } = &mut *state;
        for (process, born) in processes {
            tree.release(process, born, &mut **hook);
        }
    }

    /// Reads all enrolled threads that live now, ordered by identity.
    ///
    /// # Errors
    /// When /proc cannot be listed.
    pub fn read(&mut self) -> Result<Vec<Observed>, WatchError> {
        self.find()?;
        self.files.begin();
        let mut round = Round::default();
        round.there.reserve(self.live.len());
        for threads in self.live.chunk_by(|one, next| one.process == next.process) {
            round.take_process(&mut self.files, &self.proc, threads);
        }
        round.settle_resting(&mut self.files, &self.proc);
        match self.method {
            Method::Connector { .. } => self.settle_by_reports(&mut round),
            Method::Scan { .. } => self.settle_by_scan(&mut round),
        }
        self.files.end();
        self.unreadable += round.unreadable;
        Ok(round.observed())
    }

    /// Brings the tree up to date and lists its threads.
    fn find(&mut self) -> Result<(), WatchError> {
        let mut state = self.state.lock();
        state.drain();
        if let Some(error) = state.broken.take() {
            state.connector = None;
            self.method = Method::Scan { why: format!("process events broke off: {error}") };
        }
        let scanned = match self.method {
            Method::Scan { .. } => state.find(&self.proc, &mut self.scanner),
            Method::Connector { .. } if state.lost() => {
                self.rescans += 1;
                state.rescan(&self.proc)
            }
            Method::Connector { .. } => Ok(()),
        };
        self.live.clear();
        self.live.extend(state.tree.live());
        drop(state);
        scanned.map_err(|source| self.no_proc(source))
    }

    /// Leaves out what ended meanwhile: the files may have been opened after
    /// the number had passed to another thread; then the report of the end has
    /// come. Drops what was missing at two reads and is not reported gone.
    fn settle_by_reports(&mut self, round: &mut Round) {
        let mut state = self.state.lock();
        if self.files.opened_any() || !round.gone.is_empty() {
            state.drain();
        }
        let State { tree, hook, .. } = &mut *state;
        for gone in round.gone.iter().filter(|gone| self.missing.contains(&gone.serial)) {
            match tree.is_last(gone) && lives_on(&self.proc, tree, gone.process) {
                true => {
                    tree.set_threads(gone.process, &self.proc.threads(gone.process), &mut **hook);
                }
                false => tree.vanished(gone, &mut **hook),
            }
        }
        self.missing = round.gone.iter().map(|gone| gone.serial).collect();
        round.there.retain_mut(|(live, ..)| tree.refresh(live));
        for (live, stat, _) in round.there.iter().filter(|(l, ..)| l.process == l.thread) {
            tree.note_born(live.process, stat.born);
        }
        tree.next_epoch();
    }

    /// Derives from the files what reports would have contained: execs, ends, and new
    /// threads of processes whose number of threads is not the known one.
    fn settle_by_scan(&mut self, round: &mut Round) {
        let mut state = self.state.lock();
        let State { tree, hook, .. } = &mut *state;
        let hook = &mut **hook;
        let mut counts = BTreeMap::new();
        for (live, stat, _) in &round.there {
            // A leader's file was read just now, another one's may be older.
            counts.entry(live.process).or_insert(stat.threads);
            if live.process == live.thread {
                counts.insert(live.process, stat.threads);
                tree.note(live.process, stat.born, stat.stack, stat.session, hook);
                tree.note_reaped(live.process, stat.reaped);
            }
            if stat.process_is_dead() {
                tree.vanished(live, hook);
            }
        }
        for gone in round.gone.drain(..) {
            counts.entry(gone.process).or_insert(0);
            tree.vanished(&gone, hook);
        }
        for (process, count) in counts {
            if usize::try_from(count) != Ok(tree.count(process)) {
                tree.set_threads(process, &self.proc.threads(process), hook);
            }
        }
        let known: HashSet<u64> = self.live.iter().map(|live| live.serial).collect();
        for new in tree.live().filter(|live| !known.contains(&live.serial)) {
            round.take(&mut self.files, &self.proc, &new);
        }
        round.settle_resting(&mut self.files, &self.proc);
        for gone in &round.gone {
            tree.vanished(gone, hook);
        }
        round.there.retain_mut(|(live, ..)| tree.refresh(live));
        tree.next_epoch();
    }

    fn no_proc(&self, source: Errno) -> WatchError {
        WatchError::Proc { path: self.root.clone(), source }
    }
}

/// Does a process live of which no known thread is left? A thread that called exec took the number of
/// its leader, whose end is reported at once; the exec is when the new program is loaded, which
/// can take longer than two reads.
fn lives_on(proc: &Proc, tree: &Tree, process: u32) -> bool {
    let is_it = |born| tree.born(process) == Some(born);
    proc.stat(process).is_some_and(|stat| !stat.process_is_dead() && is_it(stat.born))
}

/// Opens the connector and proves it; or the reason why not.
fn subscribe(options: &WatchOptions) -> Result<Connector, ConnectorError> {
    let mut connector = Connector::open(options.buffer, &options.proc)?;
    connector.prove(options.timeout)?;
    Ok(connector)
}
