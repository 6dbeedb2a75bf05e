//! `symbiont status` and `symbiont why`: what the daemon does, for people and as JSON.

mod container;
mod unmanaged;
mod why;

use std::collections::BTreeMap;
use std::fmt::Write;

use symbiont_daemon::ClientError;
use symbiont_topology::counted;
use symbiont_wire::{
    Explanations, Failure, KernelScheduler, ProgramStatus, Request, STATUS_SCHEMA, Status,
    WHY_SCHEMA,
};

use container::{command_of, container_line};
use unmanaged::not_managed;

use crate::args::{Status as StatusArgs, WhyArgs};
use crate::client::connect_to_ask;
use crate::doctor::text::hanging;
use crate::top::clean::clean;

/// Where the text of a note begins.
const NOTE: usize = 6;

/// Shows what the daemon manages.
pub fn status(args: &StatusArgs) -> anyhow::Result<()> {
    if args.schema {
        say_all!("{STATUS_SCHEMA}");
        return Ok(());
    }
    let mut pages: Vec<Status> = connect_to_ask(&args.state)?.call_more(Request::Status {})?;
    let programs: Vec<ProgramStatus> =
        pages.iter_mut().flat_map(|page| std::mem::take(&mut page.programs)).collect();
    let Some(first) = pages.into_iter().next() else { anyhow::bail!("the daemon said nothing") };
    let status = Status { programs, ..first };
    if args.json {
        say!("{}", crate::out::json(&status)?);
    } else {
        say_all!("{}", text(&status)?);
    }
    Ok(())
}

/// Shows why threads are where they are.
pub fn why(args: &WhyArgs) -> anyhow::Result<()> {
    let Some(id) = args.id.filter(|_| !args.schema) else {
        say_all!("{WHY_SCHEMA}");
        return Ok(());
    };
    let answer: Explanations = match connect_to_ask(&args.state)?.call(Request::Why { id }, &[]) {
        Err(ClientError::Failure(Failure::NotManaged { .. })) => anyhow::bail!(not_managed(id)),
        answer => answer?,
    };
    if args.json {
        say!("{}", crate::out::json(&answer)?);
        return Ok(());
    }
    say_all!("{}", why::text(&answer));
    Ok(())
}

fn text(status: &Status) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let Status { policy, quantum_ms, hardware_threads, usage, .. } = status;
    writeln!(
        out,
        "symbiontd {} (process {}), up {}: policy {policy}, quantum {quantum_ms} ms, \
         {}",
        status.version,
        status.pid,
        time(status.uptime_s),
        counted(hardware_threads, "hardware thread")
    )?;
    let moves = moves(&status.moves).unwrap_or_else(|| "none".to_owned());
    let share = usage.cpu_s / status.uptime_s.max(1e-3) * 100.0;
    writeln!(
        out,
        "moves: {moves}; it used {:.2} s of CPU time ({share:.2} % of one CPU), {}, {} missed",
        usage.cpu_s,
        counted(usage.quanta, "quantum"),
        usage.quanta_missed
    )?;
    for (outcome, reasons) in &status.reasons {
        for (why, count) in reasons {
            let each = if outcome == "withheld" { " (each quantum counts)" } else { "" };
            writeln!(out, "  {outcome} {count}{each}: {}", clean(why))?;
        }
    }
    if let Some(gain) = status.gain_over_chance {
        writeln!(
            out,
            "co-runners: {:+.1} % in speed expected so far over co-runners by chance, as learned here",
            gain * 100.0
        )?;
    }
    if let Some(scheduler) = &status.scheduler {
        writeln!(out, "{}", in_the_kernel(scheduler))?;
    }
    for note in &status.notes {
        out += &note_lines(note);
    }
    if status.programs.is_empty() {
        writeln!(
            out,
            "\nNo program of yours is managed: `symbiont run -- COMMAND`, `symbiont attach --pid PID`"
        )?;
        return Ok(out);
    }
    writeln!(
        out,
        "\n{:>8} {:<20} {:>6} {:>7} {:>9} {:>9} {:<12} {:>9}",
        "PROCESS", "PROGRAM", "USER", "THREADS", "PLACED", "MANAGED", "CPUS", "PREDICTED"
    )?;
    for program in &status.programs {
        let slowdown = program.predicted_slowdown.map_or("-".to_owned(), |s| format!("{s:.2}x"));
        writeln!(
            out,
            "{:>8} {:<20} {:>6} {:>7} {:>9} {:>9} {:<12} {slowdown:>9}",
            program.roots.first().copied().unwrap_or_default(),
            shortened(&clean(&program.name), 20),
            program.uid,
            program.threads,
            program.placed,
            time(program.managed_s),
            if program.cpus.is_empty() { "any" } else { &program.cpus },
        )?;
        let class = (program.class != "normal").then(|| format!("class {}", program.class));
        // The reason begins with the class where that decided.
        let reason = program.reason.strip_prefix(&format!("{}; ", program.class));
        let reason = reason.unwrap_or(&program.reason);
        let reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
        let job = program.job.map(|job| format!("job {job}"));
        let words: Vec<String> = job.into_iter().chain(class).chain(reason).collect();
        let quiet = program.quiet.as_ref().map(|it| clean(&symbiont_daemon::quiet_words(it)));
        let waits = crate::quiet::waiting_line(program);
        let words = Some(words.join("; ")).filter(|line| !line.is_empty());
        let container = container_line(program, command_of);
        for line in container.into_iter().chain(words).chain(quiet).chain(waits) {
            writeln!(out, "{:>8} {line}", "")?;
        }
    }
    Ok(out)
}

/// A note; if it has several lines, those after the first are as they are, since they show a place in a file.
fn note_lines(note: &str) -> String {
    let mut lines = note.lines().map(clean);
    let first = hanging("note:", &lines.next().unwrap_or_default(), NOTE);
    lines.fold(first, |text, line| text + &line + "\n")
}

/// What the scheduler in the kernel did.
pub(crate) fn in_the_kernel(scheduler: &KernelScheduler) -> String {
    let all = scheduler.own_s + scheduler.lent_s;
    let mut said = vec![match all > 0.0 {
        true => format!(
            "{:.1} % of placed threads' time where they belong",
            scheduler.own_s / all * 100.0
        ),
        false => "no placed thread has run".to_owned(),
    }];
    let classes =
        [(scheduler.latency_siblings_idle, "latency"), (scheduler.alone_siblings_idle, "alone")];
    for (idle, class) in classes {
        said.extend(idle.map(|idle| {
            format!("siblings idle for {:.1} % of the time of class {class}", idle * 100.0)
        }));
    }
    said.push(counted(scheduler.preemptions, "preemption"));
    format!("scheduler in the kernel: {}", said.join(", "))
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0}s"),
        s if s < 7200.0 => format!("{:.0}min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0}h", s / 3600.0),
        s => format!("{:.0}d", s / 86_400.0),
    }
}

fn shortened(name: &str, most: usize) -> String {
    match name.chars().count() <= most {
        true => name.to_owned(),
        false => name.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// What became of moves, each outcome with its count; none before the first.
pub fn moves(counts: &BTreeMap<String, u64>) -> Option<String> {
    let words = |(outcome, count): (&String, &u64)| match outcome.as_str() {
        "thread_gone" => format!("{count} too late (thread gone)"),
        other => format!("{count} {}", other.replace('_', " ")),
    };
    let counted: Vec<String> = counts.iter().filter(|(_, count)| **count > 0).map(words).collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

#[cfg(test)]
mod tests {
    use symbiont_wire::Quiet;

    use super::*;

    #[test]
    fn times_and_names_are_short() {
        assert_eq!([5.4, 600.0, 36_000.0, 864_000.0].map(time), ["5s", "10min", "10h", "10d"]);
        assert_eq!(shortened("a-name-that-is-too-long", 8), "a-name-…");
    }

    #[test]
    fn what_a_program_is_run_for_is_shown_unless_it_is_normal() {
        let program = |class: &str, quiet| ProgramStatus {
            name: "bench".to_owned(),
            class: class.to_owned(),
            reason: "a reason".to_owned(),
            quiet,
            ..ProgramStatus::default()
        };
        let quiet = Quiet { watched_s: 2.0, ..Quiet::default() };
        let programs = vec![program("normal", None), program("alone", Some(quiet))];
        let gain_over_chance = Some(0.0312);
        let reasons =
            [("withheld".to_owned(), [("it was moved lately".to_owned(), 7)].into())].into();
        let status = Status { programs, gain_over_chance, reasons, ..Status::default() };
        let text = text(&status).unwrap();
        assert!(
            text.contains("\n  withheld 7 (each quantum counts): it was moved lately\n"),
            "{text}"
        );
        assert!(text.contains("co-runners: +3.1 % in speed expected so far"), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len() - 4..];
        assert_eq!(last[0].trim(), "a reason");
        assert_eq!(last[2].trim(), "class alone; a reason");
        assert!(last[3].trim().starts_with("alone: verified quiet"), "{text}");
    }

    #[test]
    fn notes_are_broken_into_lines_and_a_class_is_said_once() {
        let batch = |reason: &str| ProgramStatus {
            class: "batch".to_owned(),
            reason: reason.to_owned(),
            ..ProgramStatus::default()
        };
        let programs = vec![batch("batch; one domain"), batch("batched by hand")];
        let place = "line 3: unknown key\n  |\n3 | clas = 1\n  | ^^^^".to_owned();
        let notes = vec!["word ".repeat(60), place];
        let status = Status { notes, programs, ..Status::default() };
        let text = text(&status).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("\nnote: word") && text.contains("\n      word"), "{text}");
        assert!(
            text.contains("note: line 3: unknown key\n  |\n3 | clas = 1\n  | ^^^^\n"),
            "{text}"
        );
        assert!(text.contains(" class batch; one domain\n"), "{text}");
        assert!(text.contains(" class batch; batched by hand\n"), "{text}");
    }
}
