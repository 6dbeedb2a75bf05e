//! From an account to advice: a pure function.

use symbiont_control::{ProgramSummary, SummaryReport};
use symbiont_machine::ProgramId;
use symbiont_topology::{CpuSet, Topology};
use symbiont_wire::advice::{
    Advice, AdvisedProgram, CoRunner, CoRunners, CpuShare, Daemon, Gain, Machine, Others, Plan,
    Policy,
};

use super::account::{Account, Decided, Setting};
use super::jobs::Job;
use crate::explain::percent;

/// Share of the time from which on a plan counts as one that changes something.
pub const LEAST: f64 = 0.05;

/// What is known besides the account.
pub struct Circumstances<'c> {
    /// The policy; whether it predicted is filled in.
    pub policy: Policy,
    /// The machine.
    pub topology: &'c Topology,
    /// The job that a program is.
    pub job: &'c dyn Fn(ProgramId) -> Option<Job>,
    /// The manager of a process.
    pub manager: &'c dyn Fn(u32) -> Option<u32>,
    /// CPU time over time watched from which on a program counts as busy.
    pub busy_from: f64,
    /// The daemon that runs.
    pub daemon: Option<Daemon>,
    /// Does it take more rights to start a daemon for the machine?
    pub needs_sudo: bool,
    /// What there is to gain on this machine.
    pub prospects: String,
    /// What limits the advice.
    pub notes: Vec<String>,
}

/// What is to be said.
pub fn advice(account: &Account, mut known: Circumstances<'_>) -> Advice {
    let summary = account.summary.report();
    let watched_s = account.watched().as_secs_f64();
    let cpus_used = |program: &ProgramSummary| match watched_s > 0.0 {
        true => program.run_time_s / watched_s,
        false => 0.0,
    };
    let mut others = Others::default();
    let mut programs = Vec::new();
    for program in &summary.programs {
        let used = cpus_used(program);
        match (known.job)(ProgramId(program.number))
            .filter(|_| used > 0.0 && used >= known.busy_from)
        {
            Some(job) => programs.push(busy(account, &known, program, &job, used)),
            None => {
                others.programs += u64::from(program.most_threads > 0);
                others.cpus_used += used;
            }
        }
    }
    programs.sort_by(|a, b| b.cpus_used.total_cmp(&a.cpus_used));
    let changes = programs.iter().any(is_changed);
    let speeds = &account.speeds;
    let predicts = speeds.time > 0.0;
    let gain = (changes && predicts).then(|| Gain {
        speed_now: speeds.now / speeds.time,
        speed_planned: speeds.planned / speeds.time,
    });
    let policy = Policy { predicts, ..std::mem::take(&mut known.policy) };
    let conclusion = conclusion(account, &policy, &programs, known.busy_from);
    let mut notes = std::mem::take(&mut known.notes);
    let apply = match changes {
        true => commands(&known, &policy, &programs),
        false => Vec::new(),
    };
    if let Some(daemon) = known.daemon.as_ref().filter(|d| changes && d.policy != policy.name) {
        notes.push(format!(
            "the daemon decides by {}, not by {}: set `policy` in its configuration, then \
             `symbiont reload`",
            daemon.policy, policy.name
        ));
    }
    Advice {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        watched_s,
        quanta: account.quanta,
        machine: machine(known.topology, &account.allowed, &summary),
        policy,
        busy_from: known.busy_from,
        programs,
        others,
        changes,
        prospects: known.prospects,
        conclusion,
        gain,
        daemon: known.daemon,
        apply,
        notes,
    }
}

fn machine(topology: &Topology, allowed: &CpuSet, summary: &SummaryReport) -> Machine {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let online = topology.cpus();
    let allowed = if allowed.is_empty() { &online } else { allowed };
    Machine {
        hardware_threads: number(online.len()),
        allowed: number(allowed.len()),
        cores: number(topology.cores().len()),
        hardware_threads_per_core: number(summary.hardware_threads_per_core),
    }
}

fn busy(
    account: &Account,
    known: &Circumstances<'_>,
    seen: &ProgramSummary,
    job: &Job,
    cpus_used: f64,
) -> AdvisedProgram {
    let id = ProgramId(seen.number);
    let ended = !account.living.contains(&id);
    let decided = account.programs.get(&id);
    let plans = decided.map(|decided| decided.settings()).unwrap_or_default();
    let plan = |(setting, share, reason): (&Setting, f64, &str)| Plan {
        cpus: setting.cpus.clone(),
        priority: setting.priority.map(str::to_owned),
        share,
        reason: reason.to_owned(),
    };
    let slowdowns = decided.and_then(Decided::slowdowns);
    let co_runner = |other: &symbiont_control::CoRunner| {
        let job = (known.job)(ProgramId(other.number));
        CoRunner {
            name: job.as_ref().map_or_else(|| other.program.clone(), |job| job.name.clone()),
            process: job.map_or(0, |job| job.process),
            share: other.share,
        }
    };
    let ready = seen.run_time_s + seen.wait_time_s;
    AdvisedProgram {
        name: job.name.clone(),
        process: job.process,
        is_passing: job.is_passing,
        ended,
        managed_by: if ended { None } else { (known.manager)(job.process) },
        threads: seen.most_threads,
        run_time_s: seen.run_time_s,
        cpus_used,
        wait_time_s: seen.wait_time_s,
        wait_share: if ready > 0.0 { seen.wait_time_s / ready } else { 0.0 },
        ran_on: (seen.cpus.iter())
            .map(|on| CpuShare { cpu: on.cpu, core: on.core, share: on.share })
            .collect(),
        co_runners: CoRunners {
            alone: seen.co_runners.alone,
            with: seen.co_runners.with.iter().map(co_runner).collect(),
        },
        plans: plans.into_iter().map(plan).collect(),
        slowdown_now: slowdowns.map(|(now, _)| now),
        slowdown_planned: slowdowns.map(|(_, planned)| planned),
    }
}

/// Does a plan change anything?
fn is_change(plan: &Plan) -> bool {
    plan.cpus.is_some() || plan.priority.is_some()
}

/// Would the program be changed for more than a moment?
fn is_changed(program: &AdvisedProgram) -> bool {
    program.plans.iter().filter(|plan| is_change(plan)).map(|plan| plan.share).sum::<f64>() >= LEAST
}

fn conclusion(
    account: &Account,
    policy: &Policy,
    programs: &[AdvisedProgram],
    busy_from: f64,
) -> String {
    let name = &policy.name;
    if account.watched().is_zero() {
        return "Nothing is known yet: it takes two looks; watch for longer.".to_owned();
    }
    if programs.is_empty() {
        let least = percent(busy_from);
        return format!("Nothing to change: no program used {least} of a CPU or more.");
    }
    let changed = programs.iter().filter(|program| is_changed(program)).count();
    let all = match programs.len() {
        1 => "the busy program".to_owned(),
        2 => "both busy programs".to_owned(),
        count => format!("all {count} busy programs"),
    };
    if changed == 0 {
        let plans = programs.first().map(|program| program.plans.as_slice()).unwrap_or_default();
        let why = plans.first().map(|plan| plan.reason.as_str()).filter(|why| !why.is_empty());
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        return format!("Nothing to change: {name} would leave {all} to the OS{why}.");
    }
    match changed == programs.len() {
        true => format!("{name} would place {all}."),
        false => format!(
            "{name} would place {changed} of {} busy programs, and leave the others to the OS.",
            programs.len()
        ),
    }
}

/// What a user types to have it so.
fn commands(
    known: &Circumstances<'_>,
    policy: &Policy,
    programs: &[AdvisedProgram],
) -> Vec<String> {
    // A shell that came meanwhile has ended when the user has read this.
    let pids: Vec<String> = programs
        .iter()
        .filter(|program| !program.ended && program.managed_by.is_none())
        .filter(|program| !program.is_passing && is_changed(program))
        .map(|program| program.process.to_string())
        .collect();
    if pids.is_empty() {
        return Vec::new();
    }
    let mut commands = Vec::new();
    if known.daemon.is_none() {
        let sudo = if known.needs_sudo { "sudo " } else { "" };
        let policy = match policy.name == symbiont_policy::DEFAULT {
            true => String::new(),
            false => format!(" --policy {}", policy.name),
        };
        commands.push(format!("{sudo}symbiont daemon{policy} &"));
    }
    commands.push(format!("symbiont attach --pid {}", pids.join(",")));
    commands
}

#[cfg(test)]
mod tests;
