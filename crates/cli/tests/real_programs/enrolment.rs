//! Each thread that lives at two consecutive quantum boundaries is enrolled at
//! the second.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use symbiont_trace::Quantum;

use crate::support::{TestFolder, copy_of, has, lua_source, own_program, recorded};
use crate::witness::{Seen, Thread, Witness};

/// Runs a shell script managed and holds its recording against /proc.
fn all_are_enrolled(script: &str, directory: &Path, enrol_by: &str) {
    let place = TestFolder::new();
    let (recording, report) = (place.path("recording"), place.path("report.json"));
    let mut command = place.symbiont();
    command.args(["run", "--enrol-by", enrol_by, "--record"]).arg(&recording);
    command.args(["--report=json", "--report-file"]).arg(&report);
    command.args(["--", "sh", "-c", &format!("echo $$; {script}")]);
    command.current_dir(directory).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut root = String::new();
    output.read_line(&mut root).unwrap();
    let drained = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    let (witness, status) = Witness::watch(root.trim().parse().unwrap(), &mut child);
    drained.join().unwrap().unwrap();
    assert!(status.success(), "{status}");

    // Where nothing is reported, as in a container, it scans whatever was asked.
    let shown: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let reported = shown["enrolment"] == "process connector";
    assert!(enrol_by != "scan" || !reported, "{shown}");
    // A scan finds a process by its parents: one that lost them within a
    // quantum is not promised.
    let promised = |seen: &Seen| reported || seen.in_line;
    let quanta = recorded(&recording);
    let (threads, checked, missed) = compare(&witness, &quanta, promised);
    println!(
        "{enrol_by}: {checked} of threads × boundaries checked ({threads} of {} threads, {} quanta, \
         {} snapshots), {} missed",
        witness.seen.len(),
        quanta.len(),
        witness.snapshots,
        missed.len(),
    );
    assert!(checked > 50, "too few to judge");
    assert!(missed.is_empty(), "not enrolled: {missed:?}");
}

/// How many threads and threads × boundaries could be checked, and which
/// threads were missed at which boundary.
fn compare(
    witness: &Witness,
    quanta: &[Quantum],
    promised: impl Fn(&Seen) -> bool,
) -> (usize, usize, Vec<(usize, Thread)>) {
    let enrolled: Vec<BTreeSet<Thread>> = (quanta.iter())
        .map(|quantum| quantum.sample.threads.iter())
        .map(|threads| threads.map(|t| (t.id.process, t.id.thread, t.id.born)).collect())
        .collect();
    let mut checked: BTreeMap<Thread, usize> = BTreeMap::new();
    let mut missed = Vec::new();
    for (thread, _) in witness.seen.iter().map(|(t, s)| (*t, s)).filter(|(_, s)| promised(s)) {
        let seen = &witness.seen[&thread];
        for (index, pair) in quanta.windows(2).enumerate() {
            // Alive before the first boundary, and after the second.
            if seen.from <= pair[0].sample.at.0 && pair[1].sample.at.0 <= seen.until {
                *checked.entry(thread).or_default() += 1;
                if !enrolled[index + 1].contains(&thread) {
                    missed.push((index + 1, thread));
                }
            }
        }
    }
    (checked.len(), checked.values().sum(), missed)
}

fn builds_are_enrolled(enrol_by: &str) {
    let Some(source) = lua_source() else { return };
    let place = TestFolder::new();
    let folder = place.path("lua");
    copy_of(&source, &folder);
    all_are_enrolled("exec make -j4 linux MYCFLAGS=-O0", &folder, enrol_by);
}

#[test]
fn all_threads_of_a_build_are_enrolled_by_reports() {
    builds_are_enrolled("auto");
}

#[test]
fn all_threads_of_a_build_are_enrolled_by_scanning() {
    builds_are_enrolled("scan");
}

fn churn_is_enrolled(enrol_by: &str) {
    if has("python3") {
        let script = format!("exec python3 {}", own_program("churn.py"));
        all_are_enrolled(&script, Path::new("/"), enrol_by);
    }
}

#[test]
fn short_lived_threads_and_orphans_are_enrolled_by_reports() {
    churn_is_enrolled("auto");
}

#[test]
fn short_lived_threads_are_enrolled_by_scanning() {
    churn_is_enrolled("scan");
}
