//! The state directory: what others may do to it, and that it goes away.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use rustix::process::{Signal, geteuid};

use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{TestFolder, send, stderr, wait_until};
use crate::trials::{BUSY, own_cpus, skip, start_script, trial};
use crate::user::User;

const RANDOM: [&str; 4] = ["--policy", "random", "--quantum", "20ms"];

/// Removes the state directory, in one step.
fn remove(place: &TestFolder) {
    let moved = place.path("removed");
    // What is removed file by file can be written to meanwhile.
    std::fs::rename(place.state_dir(), &moved).expect("a directory");
    std::fs::remove_dir_all(&moved).expect("the moved directory");
}

/// The same, and makes sure that it cannot be made again.
pub fn block(place: &TestFolder) {
    let file = place.path("file");
    std::fs::write(&file, "").expect("a file");
    let mut attempts = 0;
    wait_until("the file is in the directory's place", || {
        // It may be made again in between: then there is one more to move away.
        attempts += 1;
        let _ = std::fs::rename(place.state_dir(), place.path(&format!("removed-{attempts}")));
        std::fs::rename(&file, place.state_dir()).is_ok()
    });
}

pub fn trials() -> Vec<Trial> {
    vec![
        trial("lock_of_root_is_held_by_no_other_user", others_lock),
        trial("removed_state_directory_is_made_again_with_lock_and_journal", made_again),
        trial("removed_state_directory_that_cannot_be_made_again_ends_management", not_made_again),
        trial("manager_whose_state_directory_is_gone_ends_with_its_program", gone_at_the_end),
        trial("root_of_a_user_namespace_is_managed", root_of_a_namespace),
        trial("journal_of_a_container_that_has_ended_is_removed", dead_container),
    ]
}

fn others_lock() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let place = TestFolder::new();
    assert!(place.run(&["--policy", "stay"], &["true"]).status().expect("it starts").success());
    for folder in [place.path(""), place.state_dir()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o711)).expect("own folder");
    }
    let script = "exec 9<\"$0\" && flock -w 60 9";
    let mut attack = Command::new("sh");
    attack.args(["-c", script]).arg(place.state_dir().join("lock")).stderr(Stdio::null());
    let mut attack = place.start(attack.uid(61_000).gid(61_000));
    assert!(!attack.wait().success(), "it may not lock the file");
    let next = place.run(&["--policy", "stay"], &["true"]).output().expect("symbiont starts");
    assert_eq!(stderr(&next), "", "it is managed");
}

fn made_again() {
    let (place, own) = (TestFolder::new(), own());
    if own_cpus().len() < 2 {
        return skip("there is one CPU only, so nothing is placed");
    }
    let program = start_script(&place, &RANDOM, BUSY);
    wait_for_change(program.id(), &own);
    remove(&place);
    wait_until("it is made again", || place.manager().is_some() && !place.journals().is_empty());
    let second = place.run(&RANDOM, &["true"]).output().expect("symbiont starts");
    assert!(stderr(&second).contains("another symbiont"), "{second:?}");
    wait_for_change(program.id(), &own);
    place.kill_manager();
    assert_eq!(place.restore().code, Some(0));
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
}

fn not_made_again() {
    let (place, own) = (TestFolder::new(), own());
    if own_cpus().len() < 2 {
        return skip("there is one CPU only, so nothing is placed");
    }
    // With a record the manager can be named.
    let options = [&RANDOM[..], &["--record", "/dev/null"]].concat();
    let mut run = place.run(&options, &["sh", "-c", BUSY]);
    let program = place.start(run.stderr(Stdio::piped()));
    wait_for_change(program.id(), &own);
    let manager = place.manager().expect("a manager");
    block(&place);
    wait_until("everything is restored", || changed(program.id(), &own).is_empty());
    place.wait_for_end_of(manager);
    assert!(changed(program.id(), &own).is_empty(), "{:?}", changed(program.id(), &own));
    let job = *crate::settings::tree(program.id()).last().expect("a process");
    send(job, Signal::KILL);
    let said = stderr(&program.output());
    assert!(said.contains(place.state_dir().to_str().expect("UTF-8")), "{said}");
}

/// The end of the quantum is not waited for after a last sample that failed.
fn gone_at_the_end() {
    let place = TestFolder::new();
    let parent = place.path("parent");
    std::fs::create_dir(&parent).expect("a directory");
    let lock = parent.join("state/lock");
    let mut run = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    run.args(["run", "--policy", "random", "--quantum", "1h", "--state-dir"]);
    // Longer than the time for which a manager trusts its directory.
    run.arg(parent.join("state")).args(["--", "sleep", "2"]).stdin(Stdio::null());
    let mut program = place.start(&mut run);
    let mut manager = None;
    wait_until("it is managed", || {
        let text = std::fs::read_to_string(&lock).unwrap_or_default();
        let lock: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        manager = lock.and_then(|lock| lock["manager"]["process"].as_u64());
        let mut files = std::fs::read_dir(parent.join("state")).into_iter().flatten().flatten();
        let is_journal =
            |file: std::fs::DirEntry| file.file_name().to_string_lossy().starts_with("journal-");
        manager.is_some() && files.any(is_journal)
    });
    // What is removed file by file can be written to meanwhile.
    std::fs::rename(&parent, place.path("removed")).expect("a directory");
    std::fs::remove_dir_all(place.path("removed")).expect("a directory of no other user");
    assert!(program.wait().success());
    place.wait_for_end_of(manager.and_then(|it| u32::try_from(it).ok()).expect("a manager"));
}

fn root_of_a_namespace() {
    let user = User::new();
    let inside = |words: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user"]).args(words).current_dir("/");
        unshare.env("XDG_RUNTIME_DIR", user.runtime()).stdin(Stdio::null());
        if geteuid().is_root() {
            unshare.uid(user.id).gid(user.id);
        }
        unshare.output().expect("unshare starts")
    };
    if !inside(&["true"]).status.success() {
        return skip("no user namespace can be made");
    }
    let symbiont = user.symbiont.to_str().expect("UTF-8");
    let output = inside(&[symbiont, "run", "--policy", "stay", "--", "true"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{output:?}");
    assert!(user.runtime().join("symbiont/lock").exists(), "where its user's are");
}

fn dead_container() {
    let place = TestFolder::new();
    let run = place.run(&RANDOM, &["sh", "-c", BUSY]);
    let words = [run.get_program()].into_iter().chain(run.get_args());
    // All processes of a PID namespace end with its first one.
    let script = "\"$@\" & while ! ls \"$0\"/journal-* >&2; do sleep 0.1; done; exit 3";
    let mut container = Command::new("unshare");
    container.args(["--pid", "--fork", "--mount-proc", "sh", "-c", script]).arg(place.state_dir());
    let output = container.args(words).output().expect("unshare starts");
    if output.status.code() != Some(3) {
        return skip(&format!("no PID namespace can be made: {}", stderr(&output)));
    }
    let journals = place.journals();
    assert_eq!(journals.len(), 1, "it lies there: {}", stderr(&output));
    let restored = place.restore();
    let first = std::fs::read_link("/proc/self/ns/pid").expect("a namespace");
    if geteuid().is_root() && first.ends_with("pid:[4026531836]") {
        assert_eq!(restored.code, Some(0), "{restored:?}");
        assert_eq!(restored.report["stale"][0], serde_json::json!(journals[0]), "{restored:?}");
        assert!(place.journals().is_empty());
    } else {
        assert_eq!(restored.code, Some(1), "it cannot be known from here: {restored:?}");
    }
    let next = place.run(&["--policy", "stay"], &["true"]).output().expect("symbiont starts");
    assert_eq!(stderr(&next), "", "nothing of this namespace is left changed");
}
