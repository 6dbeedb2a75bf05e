//! Programs count the CPUs that they count unmanaged, also as children of a
//! process that is pinned at the moment of the fork.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use symbiont_machine::{Ability, Change, Outcome, Target};
use symbiont_trace::Quantum;

use crate::support::{TestFolder, has, header, own_program, recorded};

/// The report of `forks.py` on each fork.
#[derive(Debug, Deserialize)]
struct Fork {
    /// The thread that forked.
    thread: u32,
    /// Just before, on the clock of samples, in nanoseconds.
    at: u64,
    /// Did it find itself on fewer hardware threads than at its start?
    pinned: bool,
    /// What the child wrote.
    wrote: String,
}

/// Is there another CPU that a narrowed count could lack?
fn has_two_cpus() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    if !two {
        println!("skipped: a single CPU cannot be hidden");
    }
    two
}

/// A parent that is pinned each time that it forks runs `child` several times,
/// co-running with a parallel program; each time it must write what it writes unmanaged.
fn children_count_all_cpus(child: &[&str], times: usize) {
    if !has("python3") || !has_two_cpus() {
        return;
    }
    let Some((forks, quanta, alone)) = run_forks(child, times, "5", "auto") else { return };
    let pinned = forks.iter().filter(|fork| was_pinned(fork, &quanta)).count();
    let narrowed: Vec<&Fork> = forks.iter().filter(|fork| fork.wrote != alone).collect();
    let (name, count) = (child[0], forks.len());
    println!("{name}: {count} forks, {pinned} by a pinned parent, {} narrowed", narrowed.len());
    assert!(4 * pinned >= count && pinned > 0, "{pinned} of {count} pinned");
    // The reader can lose the race where the kernel itself holds it back: see
    // `observe::reader`, "What remains".
    assert!(narrowed.len() <= 1 + count / 50, "instead of {alone}: {narrowed:?}");
}

/// Runs `forks.py` with a parallel program: its output, the recording, and
/// what the child writes unmanaged. None, with the reason printed, where births
/// are not found in the way that was asked for.
fn run_forks(
    child: &[&str],
    times: usize,
    seconds: &str,
    enrol_by: &str,
) -> Option<(Vec<Fork>, Vec<Quantum>, String)> {
    let place = TestFolder::new();
    let alone = Command::new(child[0]).args(&child[1..]).output().unwrap();
    let alone = String::from_utf8(alone.stdout).unwrap();
    let (shown, stop, recording) =
        (place.path("shown"), place.path("stop"), place.path("recording"));
    let times = times.to_string();
    let forks = own_program("forks.py");
    let stop_name = stop.display().to_string();
    let mut serial = vec!["python3", &forks, &times, seconds, &stop_name];
    serial.extend(child);
    // More ready threads than the threshold of any machine.
    let spin = format!("spin() {{ until [ -e '{stop_name}' ]; do :; done; }}");
    let parallel = format!("{spin}; spin & spin & spin & spin & wait");
    let jobs = place.path("jobs.toml");
    let file = format!(
        "[[job]]\nname = 'serial'\ncommand = {serial:?}\nstdout = {shown:?}\n\
         [[job]]\nname = 'parallel'\ncommand = {:?}\n",
        ["sh", "-c", &parallel]
    );
    fs::write(&jobs, file).unwrap();
    let mut command = place.symbiont();
    // Held, so that there is something to inherit.
    command.args(["run", "--narrow", "always", "--policy", "phases", "--enrol-by", enrol_by]);
    command.arg("--record").arg(&recording);
    let output = command.arg("--job").arg(&jobs).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    let shown = fs::read_to_string(&shown).unwrap();
    let forks = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let header = header(&recording);
    if let (Ability::Partial(why), "auto") = (&header.support.enrolment, enrol_by) {
        println!("skipped: {why}");
        return None;
    }
    if header.topology.cores().len() < 2 {
        println!("skipped: a single core is given to no program");
        return None;
    }
    Some((forks, recorded(&recording), alone))
}

/// Was the parent pinned when it forked, as the recording shows?
fn was_pinned(fork: &Fork, quanta: &[Quantum]) -> bool {
    let moves = (quanta.iter())
        .take_while(|quantum| quantum.sample.at.0 <= fork.at)
        .flat_map(|quantum| &quantum.moves)
        .filter(|(asked, outcome)| asked.thread.thread == fork.thread && *outcome == Outcome::Done);
    let last = moves.filter_map(|(asked, _)| match &asked.change {
        Change::Affinity(target) => Some(matches!(target, Target::Cpus(_))),
        Change::Nudge(_) | Change::Priority(_) => None,
    });
    last.last() == Some(true) && fork.pinned
}

#[test]
fn nproc_counts_all_cpus_under_a_pinned_parent() {
    if has("nproc") {
        children_count_all_cpus(&["nproc"], 50);
    }
}

#[test]
fn a_program_that_forks_often_is_not_pinned_where_births_are_scanned_for() {
    if !["python3", "nproc"].into_iter().all(has) || !has_two_cpus() {
        return;
    }
    let Some((forks, quanta, alone)) = run_forks(&["nproc"], 20, "0.2", "scan") else { return };
    // Nothing shows before the first fork that there will be one, nor before it was looked for
    // twice: the second time, what the first found is applied.
    let looks = |before: u64| {
        let between = |at: u64| forks[0].at < at && at < before;
        quanta.iter().filter(|quantum| between(quantum.sample.at.0)).count()
    };
    let known: Vec<&Fork> = forks.iter().skip(1).filter(|fork| looks(fork.at) >= 2).collect();
    let narrowed: Vec<_> = known.iter().filter(|fork| fork.wrote != alone).collect();
    println!("nproc: {} forks, {} narrowed once known", forks.len(), narrowed.len());
    assert!(2 * known.len() > forks.len(), "{} of {} known", known.len(), forks.len());
    assert!(narrowed.is_empty(), "instead of {alone}: {narrowed:?}");
}

#[test]
fn java_counts_all_cpus_under_a_pinned_parent() {
    if has("java") {
        let flags =
            ["java", "-Xshare:off", "-XX:+UseParallelGC", "-XX:+PrintFlagsFinal", "-version"];
        children_count_all_cpus(&flags, 4);
    }
}

#[test]
fn openmp_counts_all_cpus_under_a_pinned_parent() {
    if !has("gcc") {
        return;
    }
    let place = TestFolder::new();
    let program = place.path("openmp").display().to_string();
    let built = Command::new("gcc")
        .args(["-fopenmp", "-o", &program, &own_program("openmp.c")])
        .output()
        .unwrap();
    if !built.status.success() {
        println!("skipped: no OpenMP: {}", String::from_utf8_lossy(&built.stderr));
        return;
    }
    children_count_all_cpus(&[&program], 10);
}

#[test]
fn a_program_counts_all_cpus_at_its_own_start() {
    if !has("nproc") {
        return;
    }
    let place = TestFolder::new();
    let alone = Command::new("nproc").output().unwrap().stdout;
    for policy in ["phases", "random"] {
        for reported in [&["--report", "json"][..], &[]] {
            let mut command = place.symbiont();
            command.args(["run", "--policy", policy]).args(reported).args(["--", "nproc"]);
            assert_eq!(command.output().unwrap().stdout, alone, "{policy} {reported:?}");
        }
        let outputs = [place.path("first"), place.path("second")];
        let job = |path: &Path| format!("[[job]]\ncommand = ['nproc']\nstdout = {path:?}\n");
        let jobs = place.path("jobs.toml");
        fs::write(&jobs, outputs.iter().map(|path| job(path)).collect::<String>()).unwrap();
        let run = place.symbiont().args(["run", "--policy", policy, "--job"]).arg(&jobs).status();
        assert!(run.unwrap().success());
        for output in outputs {
            assert_eq!(fs::read(output).unwrap(), alone, "{policy}, job");
        }
    }
}
