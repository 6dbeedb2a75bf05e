//! Programs of an ordinary user that become root: what a manager of that user
//! may then not undo.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rustix::process::{Signal, geteuid};
use serde_json::Value;

use crate::settings::{changed, own, tree, wait_for_change};
use crate::test_folder::{Program, is_alive, send, stderr, wait_until};
use crate::trials::{own_cpus, skip, trial};
use crate::user::User;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("process_of_a_user_that_makes_processes_is_placed_no_more", not_placed),
        trial("setuid_children_of_a_users_program_are_not_left_narrowed", children),
        trial("setuid_child_that_stays_narrowed_is_reported_and_restored_by_root", reported),
        trial("restore_for_another_user_changes_nothing_but_that_users_threads", not_others),
    ]
}

/// A user, and a program that becomes root whichever user starts it.
fn user_and_setuid() -> Option<(User, PathBuf)> {
    if !geteuid().is_root() {
        skip("only root can make a setuid program");
        return None;
    }
    if own_cpus().len() < 2 {
        skip("there is one CPU only, so nothing is placed");
        return None;
    }
    let user = User::new();
    let setuid = user.home.path("become-root");
    if std::fs::copy("/usr/bin/setpriv", &setuid).is_err() {
        skip("there is no setpriv");
        return None;
    }
    std::fs::set_permissions(&setuid, PermissionsExt::from_mode(0o4755)).expect("own file");
    Some((user, setuid))
}

/// A busy shell, which makes a sleeper that is root when it gets SIGUSR1.
fn start(user: &User, setuid: &Path, report: &Path) -> Program {
    let setuid = format!("{} --reuid 0 --clear-groups sleep 1000 &", setuid.display());
    let script = format!("trap '{setuid}' USR1; while :; do :; done");
    let run = ["run", "--narrow", "always", "--policy", "random", "--quantum", "2ms"];
    let mut run = user.symbiont(&run);
    run.args(["--report", "json"]);
    run.arg("--report-file").arg(report).args(["--", "sh", "-c", &script]);
    user.home.start(run.stderr(Stdio::piped()))
}

fn shell_of(program: &Program) -> u32 {
    let is_shell = |process: &u32| {
        std::fs::read_to_string(format!("/proc/{process}/cmdline"))
            .is_ok_and(|words| words.starts_with("sh\0"))
    };
    let shell = || tree(program.id()).into_iter().find(is_shell);
    wait_until("the shell runs", || shell().is_some());
    shell().expect("a shell")
}

/// The sleepers of a tree that are root by now.
fn sleepers(program: &Program) -> Vec<u32> {
    let is_one = |process: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.starts_with("Name:\tsleep\n") && status.contains("\nUid:\t0\t0\t")
    };
    tree(program.id()).into_iter().filter(is_one).collect()
}

fn have_sleeper(program: &Program, shell: u32) {
    let before = sleepers(program).len();
    send(shell, Signal::USR1);
    wait_until("there is one more", || sleepers(program).len() > before);
}

fn narrowed(program: &Program) -> Vec<u32> {
    let narrowed = changed(program.id(), &own());
    sleepers(program).into_iter().filter(|process| narrowed.contains_key(process)).collect()
}

fn kill_sleepers(program: &Program) {
    for process in sleepers(program) {
        send(process, Signal::KILL);
    }
}

fn not_placed() {
    let Some((user, setuid)) = user_and_setuid() else { return };
    let program = start(&user, &setuid, &user.runtime().join("report"));
    let shell = shell_of(&program);
    wait_for_change(shell, &own());
    have_sleeper(&program, shell);
    wait_until("it is restored", || !changed(program.id(), &own()).contains_key(&shell));
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        assert!(!changed(program.id(), &own()).contains_key(&shell), "it is not placed again");
        std::thread::sleep(Duration::from_millis(3));
    }
    kill_sleepers(&program);
}

fn children() {
    let Some((user, setuid)) = user_and_setuid() else { return };
    let program = start(&user, &setuid, &user.runtime().join("report"));
    let shell = shell_of(&program);
    wait_for_change(shell, &own());
    for _ in 0..20 {
        have_sleeper(&program, shell);
        std::thread::sleep(Duration::from_millis(120));
    }
    let narrowed = narrowed(&program);
    kill_sleepers(&program);
    // The first can come too early; what becomes of it is the next test's.
    assert!(narrowed.len() <= 1, "{} of 20 are narrowed", narrowed.len());
}

fn reported() {
    let Some((user, setuid)) = user_and_setuid() else { return };
    let report = user.runtime().join("report");
    let program = start(&user, &setuid, &report);
    let shell = shell_of(&program);
    let manager = || user.manager().expect("a manager");
    // While the manager stands still, what the child inherits is not undone.
    let stopped = |how| send(manager(), how);
    wait_until("the child of a placed shell is root", || {
        wait_for_change(shell, &own());
        stopped(Signal::STOP);
        let is_placed = changed(program.id(), &own()).contains_key(&shell);
        if is_placed {
            have_sleeper(&program, shell);
        }
        stopped(Signal::CONT);
        is_placed
    });
    assert_eq!(narrowed(&program).len(), 1, "only root can change it");
    let manager = manager();
    send(manager, Signal::TERM);
    user.home.wait_for_end_of(manager);
    assert_eq!(narrowed(&program).len(), 1);
    let state = user.runtime().join("symbiont");
    let journals = || {
        let files = std::fs::read_dir(&state).expect("a directory").filter_map(Result::ok);
        files.filter(|file| file.file_name().to_string_lossy().starts_with("journal-")).count()
    };
    assert_eq!(journals(), 1, "the journal stays");

    let restored = user.home.restore_from(&state);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!((narrowed(&program).len(), journals()), (0, 0));

    kill_sleepers(&program);
    send(shell, Signal::KILL);
    let said = stderr(&program.output());
    let report = std::fs::read_to_string(report).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let failed = &report["put_back"]["failed"];
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{report:#}");
    // If it was noticed before the end of the manager, that is said, too.
    assert!(said.contains("1 thread could not be restored: `symbiont restore`"), "{said}");
}

fn not_others() {
    let Some((user, setuid)) = user_and_setuid() else { return };
    let program = start(&user, &setuid, &user.runtime().join("report"));
    wait_for_change(shell_of(&program), &own());
    let manager = user.manager().expect("a manager");
    send(manager, Signal::KILL);
    user.home.wait_for_end_of(manager);
    // The journal now names a thread of root's instead.
    let victim = user.home.start(std::process::Command::new("sleep").arg("1000"));
    let of_root = own();
    let state = user.runtime().join("symbiont");
    let files = std::fs::read_dir(&state).expect("a directory").filter_map(Result::ok);
    let journal = files.map(|file| file.path());
    let journal = journal
        .into_iter()
        .find(|path| path.to_string_lossy().contains("/journal-"))
        .expect("a journal");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    let header = text.lines().next().expect("a header");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", victim.id())).expect("a process");
    let born = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
    let key = format!(
        "{{\"process\":{0},\"thread\":{0},\"born\":{1}}}",
        victim.id(),
        born.expect("a birth")
    );
    let cpu = own_cpus()[0];
    let forged = format!(
        "{header}\n{{\"saved\":[{key},{{\"mask\":\"{cpu}\",\"nice\":19,\"class\":\"idle\",\
         \"reset_on_fork\":false}}]}}\n{{\"set\":[{key},{{\"mask\":\"{}\"}},0]}}\n",
        of_root.mask
    );
    std::fs::write(&journal, forged).expect("a file");
    let restored = user.home.restore_from(&state);
    assert_eq!(restored.code, Some(1), "{restored:?}");
    let why = &restored.report["report"]["failed"][0]["why"];
    assert!(why.as_str().is_some_and(|why| why.contains("descend")), "{restored:?}");
    assert!(changed(victim.id(), &of_root).is_empty());
    assert!(journal.exists(), "it stays for a user that can judge it");
    assert!(is_alive(program.id()));

    // The true one restores the user's threads.
    std::fs::write(&journal, text).expect("a file");
    let restored = user.home.restore_from(&state);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(changed(program.id(), &own()).is_empty());
    assert!(!journal.exists());
}
