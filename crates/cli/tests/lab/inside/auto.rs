//! `auto`: what it chooses on this machine, and what it then does.
//!
//! No hardware counter of a guest shows how threads disturb each other, so that names of programs
//! group threads on cores, or software events that stand for hardware ones.

use std::collections::BTreeSet;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::given::Given;
use crate::test_folder::{Program, TestFolder, send, stderr, wait_until};

use super::EVEN;
use super::daemon::Daemon;
use super::siblings::{
    LASTS, cpus, cpus_of, serial_gets_a_core, start_serial, wait_until_seen, workers,
};
use super::workers::command;

/// A host of few CPUs bears so many decisions.
const QUANTUM: [&str; 2] = ["--quantum", "200ms"];
const CONFIG: &str = "policy = \"auto\"\nquantum = \"200ms\"\n";
/// More threads than a serial program has, and no more than fit in a domain of any guest.
const PARALLEL: [&str; 4] = ["group", "all", "3", "modest"];

/// The words of its choice about domains.
fn domains(given: &Given) -> String {
    match given.domains().len() {
        1 => "one domain of cores".to_owned(),
        several => format!("{several} domains of cores"),
    }
}

/// The finding of a report, by its name.
fn finding(report: &Value, name: &str) -> Option<f64> {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().find(|finding| finding["name"] == name)?["value"].as_f64()
}

/// What it says before anything runs, and at the end of a run: how many domains there are, and which
/// policy groups threads on a core, of those that no counter is needed for; why not one of the others.
pub fn choice(given: &Given) {
    let place = TestFolder::new();
    let doctor = place.symbiont("doctor").arg("--json").output().unwrap();
    let findings: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    let policies = findings["policies"].as_array().expect("policies");
    let auto = policies.iter().find(|policy| policy["name"] == "auto").expect("auto");
    let choice = auto["choice"].as_str().expect("a choice");
    println!("{choice}");
    let begin = format!("serial phases first; {}; ", domains(given));
    let groups = choice.strip_prefix(&begin).unwrap_or_else(|| panic!("not {begin}: {choice}"));
    let decided = match given.smt() {
        1 => {
            assert_eq!(groups, "each core has one hardware thread: no groups on a core");
            "auto: no groups on a core"
        }
        _ => {
            assert!(groups.starts_with("groups on a core by never-twice ("), "{groups}");
            for why in ["symbiotic-online: no model is given", "learned: no ", "fpu: no "] {
                assert!(groups.contains(why), "{why}: {groups}");
            }
            "auto: groups on a core decided by never-twice"
        }
    };
    assert_eq!(auto["cannot_run"], Value::Null);

    let options = [&QUANTUM[..], &["--report", "json"]].concat();
    let report = report_of(&place, &options, &["group", "all", "2", "sleeper"], |program| {
        wait_until("both have begun", || workers(program, "sleeper").len() == 2);
        std::thread::sleep(std::time::Duration::from_secs(1));
        workers(program, "sleeper")
    });
    assert_eq!(report["policy"], "auto");
    assert!(finding(&report, decided).is_some(), "{report}");
    assert_eq!(finding(&report, "auto: domains"), Some(given.domains().len() as f64), "{report}");
}

/// The report of a program that is run until it has been looked at; the look gives the processes that
/// must end for the program to end.
fn report_of(
    place: &TestFolder,
    options: &[&str],
    words: &[&str],
    look: impl FnOnce(&Program) -> Vec<u32>,
) -> Value {
    let mut run = place.run(options, &command(words));
    let program = place.start(run.stderr(Stdio::piped()));
    look(&program).into_iter().for_each(|process| send(process, Signal::KILL));
    let said = stderr(&program.output());
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"))
}

/// A serial program co-running with a parallel one gets a whole core, of the fastest where they differ.
pub fn serial(given: &Given) {
    let place = TestFolder::new();
    serial_gets_a_core(given, &start_serial(&place, "auto", Stdio::inherit()));
}

/// Two parallel programs, each of which fits in a domain, are each kept in another one, and the daemon
/// says so.
pub fn parted(given: &Given) {
    let mut daemon = Daemon::start(CONFIG);
    let programs = [daemon.run(&PARALLEL), daemon.run(&PARALLEL)];
    let domains = given.domains();
    let within = |mask: &BTreeSet<u32>| {
        domains.iter().position(|domain| mask.iter().all(|cpu| domain.contains(cpu)))
    };
    let homes =
        |masks: &[BTreeSet<u32>]| -> Option<BTreeSet<usize>> { masks.iter().map(within).collect() };
    let mut right = 0;
    wait_until_seen("each program is in a domain of its own", |seen| {
        let masks = programs
            .each_ref()
            .map(|program| workers(program, "modest").into_iter().map(cpus_of).collect::<Vec<_>>());
        *seen = format!("{masks:?} in {domains:?}");
        let homes = masks.each_ref().map(|masks| homes(masks));
        let all = masks.iter().all(|masks| masks.len() == 3);
        let [Some(one), Some(other)] = homes else {
            right = 0;
            return false;
        };
        let apart = one.len() == 1 && other.len() == 1 && one != other;
        right = if all && apart { right + 1 } else { 0 };
        right >= LASTS
    });
    wait_until_seen("the daemon says so", |seen| {
        let status = daemon.status();
        *seen = status.to_string();
        let shown = status["programs"].as_array().expect("programs");
        let reported = shown.iter().filter_map(|program| {
            let reason = program["reason"].as_str()?;
            let home = within(&cpus(program["cpus"].as_str().filter(|cpus| !cpus.is_empty())?))?;
            let says = reason.contains("NUMA node") && reason.contains("its program fits there");
            says.then_some(home)
        });
        reported.collect::<BTreeSet<usize>>().len() == 2
    });
    daemon.end();
}

/// Where events are counted, be it only those of software, threads are grouped by them: as many as a
/// domain has cores have page faults, which stand for floating-point operations, and each of them is kept
/// on one of these cores; one that has none is kept on no core.
pub fn grouped(given: &Given) {
    let place = TestFolder::new();
    let domains = given.domains();
    let hungry = domains.iter().map(|domain| given.cores_in(domain).len()).min().unwrap();
    let few = ["--set", "least-usage=0.5"];
    let options = [&QUANTUM[..], &few, &["--catalogue", EVEN.0, "--report", "json"]].concat();
    let words = [&["group", "all", "1", "modest"], &vec!["hungry"; hungry][..]].concat();
    let report = report_of(&place, &options, &words, |program| {
        let mut right = 0;
        wait_until_seen("each core of a domain has a hungry thread", |seen| {
            let masks = |role: &str| -> Vec<BTreeSet<u32>> {
                workers(program, role).into_iter().map(cpus_of).collect()
            };
            let (mut kept, free) = (masks("hungry"), masks("modest"));
            kept.sort();
            *seen = format!("{right} in a row; hungry {kept:?}, modest {free:?}");
            let set = |core: &Vec<u32>| core.iter().copied().collect::<BTreeSet<u32>>();
            let is_spread = |domain: &Vec<u32>| {
                let cores = given.cores_in(domain).into_iter().map(set);
                cores.eq(kept.iter().cloned())
            };
            let [free] = &free[..] else { return false };
            let is_free = given.cores.iter().all(|core| set(core) != *free);
            right = if domains.iter().any(is_spread) && is_free { right + 1 } else { 0 };
            right >= LASTS
        });
        [workers(program, "hungry"), workers(program, "modest")].concat()
    });
    let decided = finding(&report, "auto: groups on a core decided by fpu");
    assert!(decided > Some(0.0), "{report}");
}
