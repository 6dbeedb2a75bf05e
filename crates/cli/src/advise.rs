//! `symbiont advise`: what Symbiont would do with what runs, and what that should gain.
//!
//! # Problem
//! Before a user lets Symbiont place programs, they want to know what it would do with those that run
//! now, and whether that is worth it.
//!
//! # Approach
//! The [`Controller`] of a run steps over this host as a machine that is only watched
//! ([`Observer`]): so the policy decides as it would, and every move is answered with "not enforced".
//! [`watch`] finds the user's processes and distinguishes jobs ([`jobs`]), [`account`] adds up what was
//! seen and decided, [`advice`] draws conclusions, [`text`] says them. No lock is taken, no journal
//! written, no thread changed.
//!
//! # Terms and units
//! *Job*: a command with the processes that it made. *Busy*: used at least a stated share of a CPU over
//! the time watched. *Ready*: running or waiting for a CPU. Slowdowns: time together / time alone.
//!
//! # Properties
//! - Nothing is changed (`advice_changes_nothing`), and busy jobs are found
//!   (`advice_finds_busy_programs_and_names_them`).
//! - A program that ends is reported as it was (`advice_reports_a_program_that_ended`).
//! - What is written follows the schema (`advice_as_json_follows_its_schema`).

mod account;
mod advice;
mod jobs;
mod text;
mod waiter;
mod watch;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, bail};
use symbiont_control::{ControlError, Controller};
use symbiont_daemon::Client;
use symbiont_linux::actuate::{managed_by, visible_state_dirs};
use symbiont_linux::machine::{CountOptions, Observer};
use symbiont_linux::observe::{WatchOptions, raise_descriptor_limit};
use symbiont_machine::{Ability, Machine};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Classes, Settings, find};
use symbiont_topology::HostTopology;
use symbiont_wire::advice::{Daemon, Policy};
use symbiont_wire::{ADVICE_SCHEMA, Request, Status};

use crate::args::{Advise, State};
use crate::client::sockets;
use crate::described::described;
use crate::knowledge::{self, Fitting};
use crate::prospects::prospects;
use account::Account;
use advice::Circumstances;
use waiter::Waiter;
use watch::Watch;

/// Why nothing is said of other machines. What threads need is counted on this machine's cores, at its clock, with its
/// caches, and next to the co-runners that they have here; how many are ready follows from the number of CPUs here, to
/// which programs also fit their number of threads; and the gain that advice is about is over where they run now,
/// which is no place of the other machine.
const ELSEWHERE: &str = "--topology: advise watches what runs on this machine, and that says too little of another \
     one: what threads need depends on the cores and caches here, and how many are ready on the number of CPUs here. \
     `symbiont doctor --topology` says what policies would choose there, and \
     `symbiont simulate --machine NAME --topology` what they gain with simulated programs";

/// Watches for a while, then says what would be done.
pub fn advise(args: &Advise) -> anyhow::Result<()> {
    if args.schema {
        say_all!("{ADVICE_SCHEMA}");
        return Ok(());
    }
    if let Some(given) = &args.topology {
        described(given)?;
        bail!(ELSEWHERE);
    }
    let entry = find(&args.policy)?;
    let here = || {
        let host = HostTopology::read().context("cannot read this machine's topology")?;
        Fitting::here(&host, None)
    };
    let values = args.parameters.values(entry)?;
    let settings = Settings { values, ..Settings::default() };
    let settings = knowledge::add(&args.knowledge, here, entry, settings)?;
    let _ = raise_descriptor_limit();
    let host = HostTopology::read().context("cannot read this machine's topology")?;
    let waiter = Waiter::new(args.time).context("signals cannot be caught")?;
    let observer = Observer::new(host, WatchOptions::default(), CountOptions::default(), waiter)
        .context("threads cannot be watched")?;
    let machine = match args.pids.is_empty() {
        true => Watch::all(observer),
        false => Watch::named(observer, &args.pids)?,
    };
    let made = Box::new(Classes::new((entry.make)(&settings)));
    let mut controller = Controller::new(machine, made, Planner::new(Bounds::none()));
    let mut account = Account::new(controller.machine().topology());
    if !args.json && std::io::stderr().is_terminal() {
        note!(
            "symbiont: watches for {}; ^C ends it earlier",
            humantime::format_duration(args.time)
        );
    }
    let trouble = watch_on(&mut controller, entry.quantum, &mut account)?;
    let machine = controller.machine();
    let state_dirs = [vec![args.state.dir()?], visible_state_dirs()].concat();
    let advice = advice::advice(
        &account,
        Circumstances {
            policy: Policy {
                name: entry.name.to_owned(),
                summary: entry.summary.to_owned(),
                choice: controller.policy().choice(),
                quantum_ms: entry.quantum.as_secs_f64() * 1e3,
                predicts: false,
            },
            topology: machine.topology(),
            job: &|program| machine.job(program).cloned(),
            manager: &|process| managed_by(process, &state_dirs),
            busy_from: args.busy / 100.0,
            daemon: daemon(&args.state)?,
            prospects: prospects(machine.topology(), machine.support()),
            needs_sudo: !rustix::process::geteuid().is_root(),
            notes: limit(machine).into_iter().chain(trouble).collect(),
        },
    );
    match args.json {
        true => say!("{}", crate::out::json(&advice)?),
        false => say_all!("{}", text::text(&advice)),
    }
    Ok(())
}

/// Steps until the machine ends; gives why it ended early, if it did and something is known.
fn watch_on<M: Machine>(
    controller: &mut Controller<M>,
    quantum: Duration,
    account: &mut Account,
) -> Result<Option<String>, ControlError<M::Error>> {
    loop {
        if let Err(error) = controller.step().map(drop) {
            return match account.watched().is_zero() {
                true => Err(error),
                false => Ok(Some(format!("watching ended early: {error}"))),
            };
        }
        let machine = controller.machine();
        if let Some(step) = controller.last() {
            account.add(step, controller.policy(), machine.topology(), machine.support());
        }
        if machine.ended() {
            return Ok(None);
        }
        if let Err(error) = controller.machine_mut().wait(quantum) {
            return Err(ControlError::Machine(error));
        }
    }
}

/// What limits the advice on this machine.
fn limit(machine: &impl Machine) -> Option<String> {
    match &machine.support().affinity {
        Ability::Full => None,
        Ability::Partial(why) => Some(why.clone()),
        Ability::Absent(why) => Some(format!("threads cannot be placed here: {why}")),
    }
}

/// The daemon that would manage this user's programs, if one runs.
fn daemon(state: &State) -> anyhow::Result<Option<Daemon>> {
    let asked = sockets(state)?.into_iter().find_map(|socket| {
        let mut client = Client::connect(&socket).ok()?;
        client.call_more::<Status>(Request::Status {}).ok()?.into_iter().next()
    });
    Ok(asked.map(|status| Daemon { process: status.pid, policy: status.policy }))
}
