//! `symbiont top`: cores, threads and moves, live.
//!
//! # Problem
//! A user wants to see at a glance what the daemon does and what it costs, on any terminal and over
//! any connection, and scripts want the same once.
//!
//! # Approach
//! A thread takes [`Snapshot`]s from the daemon, or watches by itself where none runs ([`source`],
//! [`watched`]); the terminal stays responsive meanwhile. Everything else is a function over plain
//! values: a snapshot and the one before make a [`Screen`], keys change the [`State`], and
//! [`view()`] draws both at a size. [`terminal`] takes the terminal and gives it back. Nothing is ever
//! changed but what is shown.
//!
//! # Terms and units
//! *Share*: of the time between two snapshots, 0 to 1. *Co-runner*: a thread that ran on the same
//! core in that time.
//!
//! # Properties
//! - Shares are those of the time between snapshots (`shares_are_of_the_time_between_snapshots`).
//! - The selected thread stays selected where it moves to (`the_selected_thread_is_followed`).
//! - Each key does what help says (`keys_do_what_help_says`).
//! - What others use of a core is shown, too (`others_than_the_threads_of_the_list_are_seen`).
//! - What is printed once is no wider than asked for (`printed_lines_are_no_wider_than_asked_for`).

pub mod clean;
mod folded;
mod only;
mod row;
mod screen;
mod source;
mod state;
mod terminal;
mod view;
mod watched;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::SIGTERM;
use symbiont_wire::{SNAPSHOT_SCHEMA, Snapshot};

use crate::args::Top;
use crate::signals::asking_to_end;
use clean::cut;
use only::Only;
use screen::Screen;
use source::Source;
pub use state::Fold;
use state::{Effect, State};
use terminal::{Happened, Session, is_plain};
pub use view::help_of_keys;
use view::{Parts, view};

/// How often it is looked whether a signal has come.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// Columns of what is printed once, unless `COLUMNS` or a terminal says otherwise: all that there is.
const PRINTED: usize = 1000;

/// Columns of what is printed once: as `COLUMNS` says, else as many as the terminal has; 0 is as if nothing was said.
fn printed_columns(given: Option<&str>, terminal: Option<u16>) -> usize {
    let given = given.and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    let terminal = terminal.filter(|columns| *columns > 0).map(usize::from);
    given.or(terminal).unwrap_or(PRINTED).max(usize::from(view::LEAST.0))
}

/// Shall there be no colours, as the environment says?
pub fn is_plain_here() -> bool {
    let of = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    is_plain(of("NO_COLOR").as_deref(), of("TERM").as_deref())
}

/// A snapshot, and what its filter left out.
type Seen = (Snapshot, Option<String>);

fn shown(before: Option<&Snapshot>, (now, left_out): Seen) -> Screen {
    let mut screen = Screen::new(before, now);
    screen.left_out = left_out;
    screen
}

/// Shows until the user quits, or prints once.
pub fn top(args: &Top) -> anyhow::Result<()> {
    if args.schema {
        say_all!("{SNAPSHOT_SCHEMA}");
        return Ok(());
    }
    let mut source = Source::new(&args.state, Only::of(args)?)?;
    if args.json || args.once {
        let (before, _) = source.look()?;
        std::thread::sleep(args.interval);
        let screen = shown(Some(&before), source.look()?);
        match args.json {
            true => say!("{}", crate::out::json(&screen.now)?),
            false => {
                let given = std::env::var("COLUMNS").ok();
                let terminal = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
                let terminal = terminal.map(|size| size.ws_col);
                let columns = printed_columns(given.as_deref(), terminal);
                say_all!("{}", text(&screen, args.fold, columns));
            }
        }
        return Ok(());
    }
    let term = std::env::var("TERM").ok();
    let is_terminal = std::io::stdout().is_terminal() && term.as_deref() != Some("dumb");
    anyhow::ensure!(
        is_terminal,
        "standard output is no terminal that can be drawn on: `symbiont top --once` (or --json) \
         prints once what this shows, `symbiont status` the programs"
    );
    let is_plain = match args.color {
        clap::ColorChoice::Auto => is_plain_here(),
        clap::ColorChoice::Always => false,
        clap::ColorChoice::Never => true,
    };
    let mut state = State::new(is_plain);
    state.fold = args.fold;
    let signal = Arc::new(AtomicUsize::new(0));
    for number in asking_to_end() {
        let value = usize::try_from(number).unwrap_or_default();
        signal_hook::flag::register_usize(number, Arc::clone(&signal), value)?;
    }
    let snapshots = looking(source, args.interval)?;
    run(state, &snapshots, &signal)?;
    match signal.load(Ordering::Relaxed) {
        0 => Ok(()),
        number => {
            // As if it had not been caught.
            let number = i32::try_from(number).unwrap_or(SIGTERM);
            Ok(signal_hook::low_level::emulate_default_handler(number)?)
        }
    }
}

/// Takes snapshots on a thread of its own: an answer may take a while.
fn looking(
    mut source: Source,
    interval: Duration,
) -> anyhow::Result<Receiver<anyhow::Result<Seen>>> {
    let (sender, receiver) = sync_channel(0);
    let look = move || {
        loop {
            let snapshot = source.look();
            let failed = snapshot.is_err();
            // Waits while the user pauses. Where no one takes it, the view has ended.
            if sender.send(snapshot).is_err() || failed {
                break;
            }
            std::thread::sleep(interval);
        }
    };
    std::thread::Builder::new().name("look".into()).spawn(look).context("cannot start a thread")?;
    Ok(receiver)
}

fn run(
    mut state: State,
    snapshots: &Receiver<anyhow::Result<Seen>>,
    signal: &AtomicUsize,
) -> anyhow::Result<()> {
    // Before the terminal is taken: errors are then seen.
    let mut screen = shown(None, snapshots.recv().context("the thread that looks ended")??);
    let mut session = Session::begin()?;
    let mut stale = true;
    while signal.load(Ordering::Relaxed) == 0 {
        if !state.paused {
            match snapshots.try_recv() {
                Ok(next) => {
                    screen = shown(Some(&screen.now), next?);
                    stale = true;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => anyhow::bail!("the thread that looks ended"),
            }
        }
        if stale {
            let (width, height) = session.size()?;
            let parts = Parts::of(&screen, state.fold, width, height);
            state.settle(&screen.rows(&state), parts.threads);
            session.draw(|frame| view(frame, &state, &screen))?;
        }
        let happened = session.wait(HEARTBEAT)?;
        stale = happened != Happened::Nothing;
        if let Happened::Pressed(key) = happened {
            let effect = state.press(key, &screen.rows(&state.clone()));
            match effect {
                Effect::None => {}
                Effect::Quit => break,
                Effect::Suspend => session = session.suspend()?,
            }
        }
    }
    Ok(())
}

/// What a terminal of this width would show if it had room for all lines.
fn text(screen: &Screen, fold: Fold, columns: usize) -> String {
    let mut lines: Vec<String> = view::header_lines(screen, columns);
    lines.push(String::new());
    lines.extend(view::core_lines(screen, columns));
    lines.push(String::new());
    lines.extend(view::table(screen, fold, columns));
    if !screen.now.moves.is_empty() {
        lines.extend([String::new(), "MOVES".to_owned()]);
        lines.extend(view::move_lines(&screen.now.moves, columns));
    }
    lines.iter().map(|line| format!("{}\n", cut(line.trim_end(), columns))).collect()
}
