//! Advice for people, in lines of at most 80 columns.

use symbiont_topology::counted;
use symbiont_wire::advice::{Advice, AdvisedProgram, CoRunners, Plan};

use super::advice::LEAST;
use crate::explain::percent;
use crate::top::clean::{broken, clean, cut, width};

/// Columns.
const WIDTH: usize = 80;
/// Columns of a name.
const NAME: usize = 40;
/// Where the text behind a label begins.
const INDENT: usize = 16;
/// Entries of a list.
const MOST: usize = 4;

/// All of it.
pub fn text(advice: &Advice) -> String {
    let machine = &advice.machine;
    let online = counted(machine.hardware_threads, "CPU");
    let cpus = match machine.allowed < machine.hardware_threads {
        true => format!("{} of {online}", machine.allowed),
        false => online,
    };
    let mut lines = paragraph(&format!("In short: {}.", clean(&advice.prospects)), "  ");
    lines.push(format!("Watched for {:.1} s on {cpus}; nothing was changed.", advice.watched_s));
    let policy = &advice.policy;
    let what = clean(policy.choice.as_ref().unwrap_or(&policy.summary));
    lines.extend(paragraph(&format!("Policy {}: {what}.", policy.name), "  "));
    for program in &advice.programs {
        lines.push(String::new());
        lines.extend(program_lines(program, machine.hardware_threads_per_core > 1));
    }
    let others = &advice.others;
    if others.programs > 0 && !advice.programs.is_empty() {
        lines.push(String::new());
        let other = counted(others.programs, "other program");
        let together = if others.programs == 1 { "" } else { " together" };
        lines.push(format!("{other} used {}{together}.", cpus_used(others.cpus_used)));
    }
    lines.push(String::new());
    lines.extend(paragraph(&clean(&advice.conclusion), ""));
    lines.extend(gain(advice));
    for note in &advice.notes {
        lines.extend(paragraph(&format!("Note: {}", clean(note)), "  "));
    }
    if let [first, rest @ ..] = advice.apply.as_slice() {
        lines.push(String::new());
        // Commands stay whole, to be copied.
        lines.push("To apply it:".to_owned());
        lines.push(format!("  {first}"));
        lines.extend(rest.iter().map(|command| format!("  {command}")));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn program_lines(program: &AdvisedProgram, smt: bool) -> Vec<String> {
    let threads = match program.threads {
        0 | 1 => "1 thread".to_owned(),
        most => format!("{most} threads at once"),
    };
    let state = match (program.ended, program.managed_by) {
        (true, _) => "; ended meanwhile".to_owned(),
        (false, Some(manager)) => format!("; already managed by process {manager}"),
        (false, None) => String::new(),
    };
    let named = named(&program.name, program.process);
    let head = format!("{named}: {threads}, {}{state}", cpus_used(program.cpus_used));
    let mut lines = paragraph(&head, "  ");
    let mut add = |label: &str, text: &str| {
        let label = format!("  {label:<width$}", width = INDENT - 2);
        lines.extend(hanging(&label, text));
    };
    if !program.ran_on.is_empty() {
        let on = |on: &symbiont_wire::advice::CpuShare| match on.core.filter(|_| smt) {
            Some(core) => format!("CPU {} (core {core}) {}", on.cpu, percent(on.share)),
            None => format!("CPU {} {}", on.cpu, percent(on.share)),
        };
        add("ran on", &listed(&program.ran_on, on, "CPU"));
        let label = if smt { "shared cores" } else { "took turns" };
        add(label, &co_runners(&program.co_runners, program.process));
    }
    add("waited", &format!("{} of the time that it was ready to run", percent(program.wait_share)));
    let mut label = "would be";
    for plan in shown(&program.plans) {
        add(label, &planned(plan));
        label = "";
    }
    if let Some((now, planned)) = program.slowdown_now.zip(program.slowdown_planned) {
        add("slowdown", &format!("{now:.2} predicted as it runs, {planned:.2} as planned"));
    }
    lines
}

/// The plans that take up a part of the time, at most [`MOST`].
fn shown(plans: &[Plan]) -> impl Iterator<Item = &Plan> {
    let first = plans.first();
    first.into_iter().chain(plans.iter().skip(1).take(MOST - 1).filter(|p| p.share >= LEAST))
}

fn planned(plan: &Plan) -> String {
    let place = match &plan.cpus {
        Some(cpus) if cpus.contains([',', '-']) => format!("kept on CPUs {cpus}"),
        Some(cpu) => format!("kept on CPU {cpu}"),
        None => "left to the OS".to_owned(),
    };
    let place = match plan.priority.as_deref() {
        Some(priority) => format!("{place}, {priority}"),
        None => place,
    };
    let share = match plan.share {
        share if share > 0.995 => String::new(),
        share => format!(" ({} of the time)", percent(share)),
    };
    match clean(&plan.reason) {
        why if why.is_empty() => format!("{place}{share}"),
        why => format!("{place}{share}: {why}"),
    }
}

fn co_runners(co_runners: &CoRunners, own: u32) -> String {
    let one = |other: &symbiont_wire::advice::CoRunner| match other.process == own {
        true => format!("with itself {}", percent(other.share)),
        false => format!("with {} {}", named(&other.name, other.process), percent(other.share)),
    };
    let alone = format!("alone {}", percent(co_runners.alone));
    let often = co_runners.with.iter().take_while(|other| other.share >= LEAST);
    match often.collect::<Vec<_>>().as_slice() {
        [] => alone,
        often => {
            let all: f64 = often.iter().map(|other| other.share).sum::<f64>() + co_runners.alone;
            // With two co-runners at once a moment counts for each.
            let at_once = if all > 1.005 { " (with several at once, each counts)" } else { "" };
            format!("{}, {alone}{at_once}", listed(often, |&other| one(other), "program"))
        }
    }
}

fn gain(advice: &Advice) -> Vec<String> {
    let ready = |program: &AdvisedProgram| program.run_time_s + program.wait_time_s;
    let name = &advice.policy.name;
    let text = match (&advice.gain, advice.changes) {
        (Some(gain), _) => {
            let more = 100.0 * (gain.speed_planned / gain.speed_now - 1.0);
            format!(
                "Expected gain, as {name} predicts: {more:+.1} % (sum of speeds {:.2} instead of \
                 {:.2}, where a thread that runs alone has 1).",
                gain.speed_planned, gain.speed_now
            )
        }
        (None, true) => {
            let all: f64 = advice.programs.iter().map(ready).sum();
            let wait_time: f64 = advice.programs.iter().map(|program| program.wait_time_s).sum();
            let share = percent(if all > 0.0 { wait_time / all } else { 0.0 });
            format!(
                "What that gains is not known: {name} predicted no figures here. Measured: busy \
                 programs waited for a CPU for {share} of the time that they were ready to run."
            )
        }
        (None, false) => return Vec::new(),
    };
    paragraph(&text, "")
}

fn cpus_used(used: f64) -> String {
    match used {
        used if used < 0.995 => format!("{} of a CPU", percent(used)),
        used if used < 1.005 => "one CPU".to_owned(),
        used => format!("{used:.1} CPUs"),
    }
}

/// A command and its process.
fn named(name: &str, process: u32) -> String {
    format!("{} {process}", cut(&clean(name), NAME))
}

fn listed<T>(all: &[T], one: impl Fn(&T) -> String, what: &str) -> String {
    let mut shown: Vec<String> = all.iter().take(MOST).map(one).collect();
    if all.len() > MOST {
        shown.push(counted(all.len() - MOST, &format!("more {what}")));
    }
    shown.join(", ")
}

fn hanging(label: &str, text: &str) -> Vec<String> {
    let blanks = " ".repeat(width(label));
    let mut lines = broken(text, "", WIDTH - width(label));
    for (at, line) in lines.iter_mut().enumerate() {
        line.insert_str(0, if at == 0 { label } else { &blanks });
    }
    lines
}

/// Lines of which all but the first begin with some blanks.
fn paragraph(text: &str, blanks: &str) -> Vec<String> {
    broken(text, blanks, WIDTH)
}

#[cfg(test)]
mod tests;
