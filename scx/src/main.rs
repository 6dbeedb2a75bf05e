//! `symbiont-scx` loads Symbiont's `sched_ext` scheduler, and tells it where threads belong.
//!
//! It reads requests from its standard input and writes reports to its standard output (`symbiont_ext`). When its
//! input ends, or it is told to, it unloads the scheduler; when it is killed, the kernel does. Then the kernel's own
//! scheduler decides again, and no thread has changed.

mod layout;
mod loaded;

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use nix::sys::signal::{SigSet, Signal};
use symbiont_ext::{Ended, Report, Request};

use loaded::Loaded;

/// How often it is looked whether the scheduler is still loaded.
const LOOK: Duration = Duration::from_millis(50);

/// Loads Symbiont's sched_ext scheduler for a manager, which speaks with it by standard input and output. symbiont
/// run and symbiontd start it with --actuator sched-ext.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// All usual threads are scheduled by it, not only those that are placed.
    #[arg(long)]
    full: bool,
    /// Only loads it, says so, and ends; no manager is needed.
    #[arg(long)]
    check: bool,
    /// Shows what libbpf and the kernel say while it is loaded, on standard error.
    #[arg(long)]
    verbose: bool,
}

fn main() {
    let arguments = Arguments::parse();
    if arguments.check {
        match Loaded::load(arguments.full, arguments.verbose) {
            Ok(_) => println!("the scheduler was loaded, and is unloaded again"),
            Err(error) => {
                eprintln!("symbiont-scx: {error:#}");
                std::process::exit(1);
            }
        }
    } else if let Err(error) = serve(&arguments) {
        say(&Report::Ended(Ended { why: format!("{error:#}"), again: false }));
        std::process::exit(1);
    }
}

fn say(report: &Report) {
    let line = serde_json::to_string(report).unwrap_or_default();
    // Who does not listen has gone.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Lines of the standard input, until it ends.
fn requests() -> anyhow::Result<Receiver<String>> {
    let (sender, requests) = channel();
    let read = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().spawn(read).context("no thread can be made")?;
    Ok(requests)
}

fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    // A manager has signals of its own blocked; who asks this process to end is heard.
    SigSet::from(Signal::SIGTERM).thread_unblock().context("signals cannot be unblocked")?;
    let loaded = Loaded::load(arguments.full, arguments.verbose)?;
    say(&Report::Loaded);
    let requests = requests()?;
    loop {
        if let Some(ended) = loaded.ended()? {
            say(&Report::Ended(ended));
            return Ok(());
        }
        match requests.recv_timeout(LOOK) {
            Ok(line) => {
                let request =
                    serde_json::from_str(&line).with_context(|| format!("no request: {line}"))?;
                match request {
                    // One that cannot be placed is scheduled as one of which nothing is said.
                    Request::Place(placed) => {
                        loaded.place(&placed).unwrap_or_else(|why| eprintln!("{why:#}"))
                    }
                    Request::Release(thread) => {
                        loaded.release(thread).unwrap_or_else(|why| eprintln!("{why:#}"))
                    }
                    Request::Statistics => say(&Report::Statistics(loaded.statistics()?)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
