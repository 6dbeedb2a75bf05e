//! An explanation for people: a paragraph for each thread.

use std::collections::BTreeMap;

use symbiont_topology::counted;
use symbiont_wire::{CoRunner, Explanations, RunnerUp, Why};

use super::container::container_words;
use crate::doctor::text::hanging;
use crate::quiet::quota_words;
use crate::top::clean::clean;

/// Where the text of a line begins.
const INDENT: usize = 15;

/// All threads, and how many are not shown.
pub fn text(answer: &Explanations) -> String {
    let mut paragraphs: Vec<String> = answer.threads.iter().map(explanation).collect();
    if answer.more > 0 {
        let more = answer.more;
        paragraphs.push(format!(
            "{} of this process {} not shown: ask for one by its number\n",
            counted(more as usize, "more thread"),
            if more == 1 { "is" } else { "are" }
        ));
    }
    paragraphs.join("\n")
}

fn explanation(why: &Why) -> String {
    let mut out = match why.thread == why.process {
        true => format!("thread {} ({})\n", why.thread, clean(&why.program)),
        false => {
            format!("thread {} of process {} ({})\n", why.thread, why.process, clean(&why.program))
        }
    };
    let mut add =
        |label: &str, text: &str| out.push_str(&hanging(&format!("  {label}"), text, INDENT));
    let at = why.last_cpu.map(|cpu| format!("; last ran on CPU {cpu}")).unwrap_or_default();
    let allowed = format!("it may use {}", named(&why.allowed));
    match &why.placed {
        Some(cpus) => {
            let how = match &why.held {
                Some(held) if held == cpus => "held on",
                Some(_) => "held, and nudged to",
                None => "nudged to",
            };
            add("where", &format!("{how} {}{at}; {allowed}", named(cpus)));
        }
        None => add("where", &format!("left to the OS{at}; {allowed}")),
    }
    if let Some(of) = &why.container {
        add("container", &container_words(of));
    }
    add("policy", &why.policy);
    add("reason", if why.reason.is_empty() { "the policy gave none" } else { &why.reason });
    if let Some(withheld) = &why.withheld {
        add("not yet", &format!("the policy wants something else: {withheld}"));
    }
    add("co-runners", &co_runners(&why.co_runners));
    add("slowdown", &slowdown(why));
    match (&why.runner_up, &why.no_runner_up) {
        (Some(best), _) => add("runner-up", &runner_up(best)),
        (None, Some(none)) => add("runner-up", &format!("none: {none}")),
        (None, None) => {}
    }
    if let Some(throttled) = &why.throttled {
        add("throttled", &quota_words(throttled));
    }
    if let (Some(run_time), Some(wait_time)) = (why.ran_share, why.waited_share) {
        let (run_time, wait_time) = (run_time * 100.0, wait_time * 100.0);
        add(
            "last quantum",
            &format!("ran for {run_time:.0} % of it, waited for a CPU for {wait_time:.0} %"),
        );
    }
    out
}

/// A list of hardware threads (`1`, `0-3,8`).
fn named(cpus: &str) -> String {
    let one = cpus.bytes().all(|byte| byte.is_ascii_digit());
    format!("CPU{} {cpus}", if one { "" } else { "s" })
}

fn co_runners(others: &[CoRunner]) -> String {
    let mut by_program = BTreeMap::<String, usize>::new();
    for other in others {
        *by_program.entry(program(other)).or_default() += 1;
    }
    let each: Vec<String> =
        by_program.iter().map(|(name, n)| format!("{} of {name}", counted(*n, "thread"))).collect();
    match each.is_empty() {
        true => "no managed thread on its core".to_owned(),
        false => format!("{}, on its core", each.join(", ")),
    }
}

fn program(thread: &CoRunner) -> String {
    match thread.program.as_str() {
        "" => "another user's program".to_owned(),
        name => clean(name),
    }
}

fn slowdown(why: &Why) -> String {
    if !why.predicts {
        return "this policy does not predict slowdowns".to_owned();
    }
    let known = match (why.predicted_slowdown, why.achieved_slowdown) {
        (None, None) => return "nothing is predicted now, nothing was estimated".to_owned(),
        (Some(predicted), Some(achieved)) => {
            format!("{predicted:.2} predicted, {achieved:.2} achieved in the last quantum")
        }
        (Some(predicted), None) => {
            format!("{predicted:.2} predicted; what was achieved is not known")
        }
        (None, Some(achieved)) => {
            format!("nothing is predicted now; {achieved:.2} achieved in the last quantum")
        }
    };
    format!("{known} (1 is as fast as alone)")
}

fn runner_up(best: &RunnerUp) -> String {
    let RunnerUp { cpus, score, applied, threads, .. } = best;
    let change = match &best.exchange_with {
        Some(other) if other.thread == 0 => {
            format!("change places with a thread of {} (CPU {cpus})", program(other))
        }
        Some(other) => {
            format!("change places with thread {} of {} (CPU {cpus})", other.thread, program(other))
        }
        None => format!("go to CPU {cpus}, which is free"),
    };
    format!(
        "{change}: slowdown {:.2} instead of {:.2}; over all {threads} placed threads mean slowdown \
         {:.2} instead of {:.2}, throughput (sum of 1/slowdown) {:.2} instead of {:.2}",
        score.slowdown,
        applied.slowdown,
        score.mean_slowdown,
        applied.mean_slowdown,
        score.throughput,
        applied.throughput
    )
}

#[cfg(test)]
mod tests {
    use symbiont_wire::{Container, Score, Throttled};

    use super::*;

    fn why() -> Why {
        let other = |thread, program: &str| CoRunner { thread, program: program.into() };
        Why {
            thread: 12,
            process: 10,
            program: "make".into(),
            policy: "symbiotic".into(),
            allowed: "0-3".into(),
            placed: Some("1".into()),
            held: None,
            last_cpu: Some(1),
            reason: "predicted slowdowns 1.25, 1.10, 1.08, 1.02: throughput 3.62; least stp by form delta"
                .into(),
            withheld: None,
            co_runners: vec![other(20, "xz"), other(21, "xz"), other(0, "")],
            predicts: true,
            predicted_slowdown: Some(1.25),
            achieved_slowdown: Some(1.31),
            runner_up: Some(RunnerUp {
                exchange_with: Some(other(20, "xz")),
                cpus: "3".into(),
                score: Score { slowdown: 1.5, mean_slowdown: 1.5, throughput: 2.67 },
                applied: Score { slowdown: 1.25, mean_slowdown: 1.2, throughput: 3.34 },
                threads: 4,
            }),
            no_runner_up: None,
            ran_share: Some(0.5),
            waited_share: Some(0.25),
            throttled: None,
            container: None,
        }
    }

    /// Compares with `golden/why.txt`; with `UPDATE_GOLDEN=1` writes it.
    #[test]
    fn explanations_read_as_ever() {
        let free = RunnerUp { exchange_with: None, cpus: "5".into(), ..why().runner_up.unwrap() };
        let hidden = CoRunner { thread: 0, program: String::new() };
        let others = RunnerUp { exchange_with: Some(hidden), ..free.clone() };
        let threads = vec![
            why(),
            Why { thread: 10, runner_up: Some(free), achieved_slowdown: None, ..why() },
            Why { thread: 11, held: Some("1".into()), runner_up: Some(others), ..why() },
            Why {
                thread: 13,
                placed: None,
                last_cpu: None,
                container: Some(Container {
                    namespace: Some("shop".into()),
                    pod: Some("web-0".into()),
                    container: Some("nginx".into()),
                    image: Some("docker.io/library/nginx:1.27".into()),
                    id: "0123456789abcdef".into(),
                    runtime: "containerd".into(),
                    qos: Some("burstable".into()),
                    ..Container::default()
                }),
                reason: "asleep".into(),
                throttled: Some(Throttled {
                    cgroup: "/kubepods/podA/box".into(),
                    cpus: 0.5,
                    periods: 10,
                    throttled: 9,
                    over_s: 1.0,
                }),
                co_runners: Vec::new(),
                predicted_slowdown: None,
                achieved_slowdown: None,
                runner_up: None,
                no_runner_up: Some("it is not kept on one core".into()),
                ..why()
            },
            Why {
                thread: 14,
                policy: "phases".into(),
                reason: String::new(),
                withheld: Some("another process changed it".into()),
                predicts: false,
                predicted_slowdown: None,
                achieved_slowdown: None,
                runner_up: None,
                ran_share: None,
                waited_share: None,
                ..why()
            },
        ];
        let text = text(&Explanations { threads, more: 152 });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/why.txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(path).unwrap());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
