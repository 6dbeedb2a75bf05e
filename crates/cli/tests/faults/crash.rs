//! The manager is killed, or asked to go.

use std::process::Stdio;

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::settings::{changed, of_tree, own, tree, wait_for_change};
use crate::test_folder::{Program, TestFolder, is_alive, send, wait_until};
use crate::trials::{BUSY, own_cpus, skip, start_script, trial};

const RANDOM: [&str; 4] = ["--policy", "random", "--quantum", "20ms"];

pub fn trials() -> Vec<Trial> {
    vec![
        trial("crash_is_undone_by_restore_also_for_children_born_since", undone_by_restore),
        trial("crash_of_phases_is_undone_with_nice_values", undone_with_nice_values),
        trial("crash_is_undone_by_the_next_run", undone_by_the_next_run),
        trial("crash_with_nice_values_is_undone_by_the_next_run", nice_values_and_a_run),
        trial("crash_with_nice_values_is_undone_by_the_next_daemon", nice_values_and_a_daemon),
        trial("crash_while_recording_leaves_a_recording_that_replays", recording_replays),
        trial("manager_that_is_terminated_restores_and_leaves_the_program", terminated),
        trial("restore_with_nothing_to_do_says_so", nothing_to_do),
        trial("restore_names_a_damaged_journal_and_changes_nothing", damaged_journal),
        trial("restore_leaves_a_live_manager_alone", live_manager),
    ]
}

/// A busy program whose thread was just placed; nothing on machines where
/// there is no choice of places.
fn placed(place: &TestFolder, options: &[&str]) -> Option<Program> {
    if own_cpus().len() < 2 {
        skip("there is one CPU only, so nothing is placed");
        return None;
    }
    let program = start_script(place, options, BUSY);
    wait_for_change(program.id(), &own());
    Some(program)
}

/// Lets a busy program have another child.
fn have_child(program: u32) {
    let before = tree(program).len();
    send(program, Signal::USR1);
    wait_until("a child is born", || tree(program).len() > before);
}

fn undone_by_restore() {
    let (place, own) = (TestFolder::new(), own());
    let Some(program) = placed(&place, &RANDOM) else { return };
    place.kill_manager();
    // The kill can fall between a release and the next move.
    let inherits = !changed(program.id(), &own).is_empty();
    have_child(program.id());
    have_child(program.id());
    let expected = if inherits { 3 } else { 0 };
    assert_eq!(changed(program.id(), &own).len(), expected, "the kernel hands masks on");

    let restored = place.restore();
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(restored.report["report"]["restored"], expected, "{restored:?}");
    assert_eq!(restored.report["report"]["failed"], serde_json::json!([]), "{restored:?}");
    assert_eq!(of_tree(program.id()).len(), 3, "all still run");
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

/// A parallel and a serial job, as `phases` likes to place and boost them.
fn jobs(place: &TestFolder) -> std::path::PathBuf {
    let busy = "while :; do :; done";
    let jobs = place.path("jobs.toml");
    let text = format!(
        "[[job]]\nname = 'parallel'\ncommand = ['sh', '-c', '{busy} & {busy} & {busy}']\n\
         [[job]]\nname = 'serial'\ncommand = ['sh', '-c', \"{BUSY}\"]\n"
    );
    std::fs::write(&jobs, text).expect("a file");
    jobs
}

fn undone_with_nice_values() {
    undone_with_nice_values_by(|place, _| {
        let restored = place.restore();
        assert_eq!(restored.code, Some(0), "{restored:?}");
    });
}

fn nice_values_and_a_run() {
    undone_with_nice_values_by(|place, _| {
        let next = place.run(&RANDOM, &["true"]).output().expect("symbiont starts");
        assert!(next.status.success(), "{next:?}");
    });
}

fn nice_values_and_a_daemon() {
    undone_with_nice_values_by(|place, undone| {
        let mut daemon = place.symbiont("daemon");
        daemon.args(["--policy", "stay"]).stderr(Stdio::null());
        let daemon = place.start(&mut daemon);
        wait_until("all is restored", undone);
        send(daemon.id(), Signal::TERM);
        place.wait_for_end_of(daemon.id());
    });
}

/// `undo` may wait until nothing is changed any more.
fn undone_with_nice_values_by(undo: impl FnOnce(&TestFolder, &dyn Fn() -> bool)) {
    let (place, own) = (TestFolder::new(), own());
    if own_cpus().len() < 2 {
        return skip("there is one CPU only, so nothing is placed");
    }
    let mut run = place.symbiont("run");
    run.args(["--quantum", "20ms", "--job"]).arg(jobs(&place)).stderr(Stdio::piped());
    let program = place.start(&mut run);
    wait_for_change(program.id(), &own);
    if rustix::process::geteuid().is_root() {
        // Where it may not act, nothing but the masks is left to test.
        let begin = std::time::Instant::now();
        let boosted = || of_tree(program.id()).values().any(|now| now.nice != own.nice);
        while !boosted() && begin.elapsed().as_secs() < 3 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        eprintln!("boosted: {}", boosted());
    }
    place.kill_manager();
    for process in tree(program.id()).into_iter().filter(|process| *process != program.id()) {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&words).contains("trap") {
            have_child(process);
        }
    }
    assert!(!changed(program.id(), &own).is_empty(), "what is applied outlives the manager");
    undo(&place, &|| changed(program.id(), &own).is_empty());
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));

    program.kill_all();
    let said = crate::test_folder::stderr(&program.output());
    assert!(!said.contains("panicked"), "{said}");
}

fn undone_by_the_next_run() {
    let (place, own) = (TestFolder::new(), own());
    let Some(program) = placed(&place, &RANDOM) else { return };
    place.kill_manager();
    let next = place.run(&RANDOM, &["true"]).output().expect("symbiont starts");
    assert!(next.status.success(), "{next:?}");
    assert_eq!(crate::test_folder::stderr(&next), "");
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
}

fn recording_replays() {
    let place = TestFolder::new();
    let recording = place.path("recording");
    let mut run = place.run(
        &["--quantum", "5ms", "--record", recording.to_str().expect("UTF-8")],
        &["sh", "-c", "while :; do :; done"],
    );
    let program = place.start(run.stderr(Stdio::piped()));
    let length = || std::fs::metadata(&recording).map_or(0, |data| data.len());
    wait_until("some quanta are recorded", || length() > 20_000);
    place.kill_manager();
    let mut reader = symbiont_trace::Reader::open(&recording).expect("a recording");
    let mut quanta = 0;
    while let Some(quantum) = reader.next_quantum().expect("a good line") {
        quanta += usize::from(!quantum.sample.threads.is_empty());
    }
    assert!(quanta > 2, "{quanta} quanta with threads");

    let job = *tree(program.id()).last().expect("a process");
    send(job, Signal::TERM);
    let said = crate::test_folder::stderr(&program.output());
    assert_eq!(said.lines().filter(|line| line.contains("management ended early")).count(), 1);
    assert!(said.contains("symbiont restore"), "says what to do: {said}");
}

fn terminated() {
    let (place, own) = (TestFolder::new(), own());
    let Some(program) = placed(&place, &RANDOM) else { return };
    place.signal_manager(Signal::TERM);
    assert!(is_alive(program.id()), "the program runs on");
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

fn nothing_to_do() {
    let place = TestFolder::new();
    // Also where there is no state directory at all.
    let output = place.symbiont("restore").output().expect("symbiont starts");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with(&format!(
        "Nothing restored: there is no directory {}",
        place.state_dir().display()
    )));
    assert!(!said.contains("crashed"), "{said}");
    assert!(!place.state_dir().exists(), "nothing is made");
    let restored = place.restore();
    assert_eq!((restored.code, restored.stderr.as_str()), (Some(0), ""), "{restored:?}");
}

fn damaged_journal() {
    let (place, own) = (TestFolder::new(), own());
    let Some(program) = placed(&place, &RANDOM) else { return };
    place.kill_manager();
    let before = changed(program.id(), &own);
    let journals = place.journals();
    let [journal] = journals.as_slice() else { panic!("one journal, not {journals:?}") };
    let text = std::fs::read_to_string(journal).expect("a journal");
    std::fs::write(journal, text.replace("\"mask\"", "\"musk\"")).expect("a file");

    let restored = place.restore();
    assert_eq!(restored.code, Some(1), "{restored:?}");
    let why = restored.report["unusable"][0].as_str().unwrap_or_default();
    assert!(why.contains(journal.to_str().expect("UTF-8")), "names the file: {why}");
    assert!(restored.stderr.contains("not everything could be restored"), "{restored:?}");
    let after = changed(program.id(), &own);
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let next = place.run(&RANDOM, &["true"]).output().expect("symbiont starts");
    let said = crate::test_folder::stderr(&next);
    assert_eq!((next.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.contains("`symbiont restore`"), "{said}");

    // The whole journal again: everything can be restored.
    std::fs::write(journal, text).expect("a file");
    assert_eq!(place.restore().code, Some(0));
    assert!(changed(program.id(), &own).is_empty());
}

fn live_manager() {
    let place = TestFolder::new();
    let Some(program) = placed(&place, &RANDOM) else { return };
    let restored = place.restore();
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(restored.report["live"].as_array().map(Vec::len), Some(1), "{restored:?}");
    assert_eq!(restored.report["report"]["restored"], 0, "{restored:?}");
    assert!(place.manager().is_some(), "it goes on");
    wait_for_change(program.id(), &own());
}
