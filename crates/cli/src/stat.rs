//! `symbiont stat`: counts events of programs and reports what they mean.
//! Steers nothing: it needs no journal and no lock, and runs next to a manager.

mod account;
mod output;
mod plan;
mod program;
mod show;
mod tally;
mod wanted;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::SIGINT;
use symbiont_linux::observe::{self, Watcher, raise_descriptor_limit};
use symbiont_linux::perf::{Alive, Sharing, Watch, WatchOptions, descriptor_budget, support};
use symbiont_machine::{ProgramId, ThreadId};

pub use show::short;

use crate::args::Stat;
use crate::signals::asking_to_end;
use account::{Earlier, Subject, totals};
use output::Output;
use plan::Plan;
use program::Program;
use tally::Tally;

/// Time between two looks at the threads, and so much more for each of them: a
/// reading takes some 5 µs for a thread, so that looking takes a few percent of a
/// CPU at most.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_MORE: Duration = Duration::from_micros(100);
/// Descriptors that are not for counters: those of the threads' own files and
/// a few more.
const OTHERS: usize = 256;
/// Looks for which a thread is counted at least where descriptors are few.
const STAY: u64 = 20;

/// Watches until the programs end.
pub fn stat(args: &Stat) -> anyhow::Result<()> {
    let support = support();
    if let Err(error) = &support.software {
        anyhow::bail!("nothing can be counted here: {}", error.reason);
    }
    let plan = Plan::make(args, &support)?;
    let output = Output::of(args)?;
    let stop = Stop::register()?;
    let mut program = match args.command.is_empty() {
        true => None,
        false => Some(Program::start(&args.command)?),
    };
    let roots = program.as_ref().map_or(args.pids.clone(), |program| vec![program.pid()]);
    // After the program has started: it shall not inherit this.
    let _ = raise_descriptor_limit();
    let mut watcher = Watcher::start(observe::WatchOptions::default(), Box::new(()))
        .context("threads cannot be watched")?;
    for (number, &pid) in (0..).zip(&roots) {
        match watcher.enrol(ProgramId(number), pid) {
            // A command that has ended by now has still to be reported.
            Err(observe::WatchError::NoSuchProcess { .. }) if program.is_some() => {}
            enrolled => enrolled?,
        }
    }
    let options = WatchOptions {
        group: support.options(),
        sharing: if args.rotate { Sharing::ByQuantum } else { Sharing::Kernel },
        descriptors: descriptor_budget(OTHERS),
        stay: STAY,
    };
    let mut session = Session {
        watch: Watch::new(plan.specs.clone(), options),
        tally: Tally::new(plan.groups.clone(), program.is_some()),
        begin: Instant::now(),
        reported: (Duration::ZERO, Earlier::new()),
        watcher,
        plan,
        output,
        json: args.json,
    };
    for (event, reason) in &session.plan.missing {
        session.tally.note_missing(event, reason);
    }
    loop {
        let alive = session.look()?;
        let status = program.as_mut().map_or(Ok(None), Program::ended)?;
        let over = args.limit.is_some_and(|limit| session.begin.elapsed() >= limit);
        if status.is_some() || over || (program.is_none() && (alive == 0 || stop.asked())) {
            // Threads that ended since the last reading have counts to report.
            session.look()?;
            session.report(true)?;
            return match status {
                Some(code) => std::process::exit(code),
                None => Ok(()),
            };
        }
        if let Some(program) = &program {
            stop.pass_on(program);
        }
        let since = session.begin.elapsed().saturating_sub(session.reported.0);
        if args.interval.is_some_and(|interval| since >= interval) {
            session.report(false)?;
        }
        std::thread::sleep(LOOK + LOOK_MORE * u32::try_from(alive).unwrap_or(u32::MAX));
    }
}

/// The watched threads, and the last report of them.
struct Session {
    watcher: Watcher,
    watch: Watch,
    tally: Tally,
    plan: Plan,
    begin: Instant,
    /// When something was reported last, and the totals then.
    reported: (Duration, Earlier),
    output: Output,
    json: bool,
}

impl Session {
    /// Looks at all threads; gives how many live.
    fn look(&mut self) -> anyhow::Result<usize> {
        let observed = self.watcher.read()?;
        let alive =
            observed.iter().map(|thread| Alive { thread: thread.id, run_time: thread.run_time });
        let counted = self.watch.end_quantum(&alive.collect::<Vec<_>>());
        let ended = self.watch.take_ended();
        self.tally.take(&observed, &counted, &ended, name);
        for thread in observed.iter().filter(|thread| !counted.contains_key(&thread.id)) {
            if let Some(error) = self.watch.refusal(thread.id) {
                self.tally.refuse(error);
            }
        }
        Ok(observed.len())
    }

    /// Reports what came since the last report, or in all.
    fn report(&mut self, last: bool) -> anyhow::Result<()> {
        let at = self.begin.elapsed();
        let subject = Subject { catalogue: &self.plan.catalogue, sections: &self.plan.sections };
        let over = if last { at } else { at.saturating_sub(self.reported.0) };
        let earlier = (!last).then_some(&self.reported.1);
        let account = subject.account(&self.tally, earlier, (at, over));
        self.reported = (at, totals(&self.tally));
        let text = if self.json {
            crate::out::json_line(&account)? + "\n"
        } else {
            let why = self.plan.why.as_deref();
            show::text(&account, &self.plan.catalogue, &self.plan.sections, why)
        };
        self.output.write(&text)
    }
}

/// A thread's name, as the kernel has it now.
fn name(thread: ThreadId) -> String {
    let path = format!("/proc/{}/task/{}/comm", thread.process, thread.thread);
    let name = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned();
    std::fs::read(path).map_or("?".to_owned(), name)
}

/// Signals that ask to stop.
struct Stop(BTreeMap<i32, Arc<AtomicBool>>);

impl Stop {
    fn register() -> anyhow::Result<Self> {
        let mut flags = BTreeMap::new();
        for signal in asking_to_end() {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            flags.insert(signal, flag);
        }
        Ok(Self(flags))
    }

    fn asked(&self) -> bool {
        self.0.values().any(|flag| flag.load(Ordering::Relaxed))
    }

    /// The command decides what a signal means. ^C comes to it by itself.
    fn pass_on(&self, program: &Program) {
        for (&signal, flag) in &self.0 {
            if flag.swap(false, Ordering::Relaxed) && signal != SIGINT {
                program.send(signal);
            }
        }
    }
}
