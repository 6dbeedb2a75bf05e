//! `symbiont restore`: restores what crashed managers left changed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::geteuid;
use symbiont_daemon::{SOCKET, remove_dead_socket};
use symbiont_linux::actuate::{
    Lock, Restored, StateDirError, all_state_dirs, default_state_dir, is_manager_ending,
    left_behind, restore,
};
use symbiont_topology::{HostTopology, counted};

use crate::args::Restore;

/// For how long a manager that was killed is waited for.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EACH: Duration = Duration::from_millis(50);

/// Restores, and reports the outcome. An error if something that should
/// have been restored could not be.
pub fn run(args: &Restore) -> anyhow::Result<()> {
    let host = HostTopology::read().context("cannot read this machine's topology")?;
    let given = args.state.given()?;
    wait_for_managers(given.clone().map_or_else(all_state_dirs, |dir| vec![dir]));
    let restored = match &given {
        Some(dir) => restore(&host, dir)?,
        None => restore_all(&host),
    };
    let dirs = given.clone().map_or_else(all_state_dirs, |dir| vec![dir]);
    for dir in dirs.into_iter().filter(|dir| dir.join(SOCKET).exists()) {
        // A manager that lives has the lock.
        if let Ok(_lock) = Lock::acquire(&dir, &[]) {
            remove_dead_socket(&dir);
            let socket = dir.join(SOCKET);
            if !args.json && !socket.exists() {
                say!("Removed the socket that a killed daemon left: {}", socket.display());
            }
        }
    }
    if args.json {
        say!("{}", crate::out::json(&restored)?);
    } else {
        match given.filter(|_| restored.directories.is_empty()) {
            Some(dir) => say!("Nothing restored: there is no directory {}.", dir.display()),
            None => say!("{}", text(&restored, geteuid().is_root())),
        }
    }
    anyhow::ensure!(
        restored.report.failed.is_empty() && restored.unusable.is_empty(),
        "not everything could be restored; see above"
    );
    Ok(())
}

/// Waits until managers that were killed have ended, which takes a while where they get no CPU.
fn wait_for_managers(mut dirs: Vec<PathBuf>) {
    let begun = Instant::now();
    loop {
        dirs.retain(|dir| is_manager_ending(dir));
        if dirs.is_empty() || begun.elapsed() > ENDS_WITHIN {
            break;
        }
        std::thread::sleep(LOOK_EACH);
    }
}

/// Restores from the default directories of all users, as far as they may be read.
fn restore_all(host: &HostTopology) -> Restored {
    let mut restored = Restored::default();
    // Those of runs with a state directory of their own are found by what they published in the usual one.
    let others = left_behind(&default_state_dir());
    for dir in all_state_dirs().into_iter().chain(others) {
        match restore(host, &dir) {
            Ok(found) => restored.add(found),
            Err(StateDirError::Unsafe { .. }) if dir != default_state_dir() => {}
            Err(error) => restored.unusable.push(error.into()),
        }
    }
    restored
}

fn text(restored: &Restored, is_root: bool) -> String {
    let report = &restored.report;
    let mut lines = Vec::new();
    if restored.journals.is_empty() && report.failed.is_empty() && restored.unusable.is_empty() {
        lines.push(match (restored.live.is_empty(), is_root) {
            (false, _) => "Nothing restored.".into(),
            (true, true) => {
                "Nothing to restore: no crashed symbiont has left anything changed.".into()
            }
            (true, false) => {
                "Nothing to restore: no crashed symbiont of yours has left anything changed. `sudo \
                              symbiont restore` restores for all users."
                    .into()
            }
        });
    } else {
        let born = match report.descendants {
            0 => String::new(),
            born => format!(" ({born} of them made by changed threads)"),
        };
        lines.push(format!(
            "Restored {}{born}; {} had ended.",
            counted(report.restored, "thread"),
            report.gone
        ));
    }
    lines.extend(report.left_alone.iter().map(|thread| format!("Left alone: {thread}")));
    lines.extend(report.failed.iter().map(|thread| format!("Not restored: {thread}")));
    lines.extend(restored.unusable.iter().map(|why| format!("Not used: {why}")));
    let alive = |path: &PathBuf| {
        let path = path.display();
        format!(
            "Still at work, so left alone: the manager of {path}. If it was killed just now, restore again when it has ended."
        )
    };
    lines.extend(restored.live.iter().map(alive));
    let gone =
        |path: &PathBuf| format!("Removed, since all its threads are gone: {}", path.display());
    lines.extend(restored.stale.iter().map(gone));
    if restored.directories.len() > 1 {
        let dirs: Vec<_> = restored.directories.iter().map(|d| d.display().to_string()).collect();
        lines.push(format!("Looked in {}.", dirs.join(", ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_user_learns_that_roots_need_root() {
        let nothing = Restored::default();
        let (root, user) = (text(&nothing, true), text(&nothing, false));
        assert!(user.contains("of yours") && user.contains("`sudo symbiont restore`"), "{user}");
        assert!(root.starts_with("Nothing to restore: ") && !root.contains("sudo"), "{root}");
    }

    #[test]
    fn threads_are_counted_in_words() {
        let mut restored = Restored { journals: vec!["/j".into()], ..Restored::default() };
        restored.report.restored = 1;
        assert_eq!(text(&restored, true), "Restored 1 thread; 0 had ended.");
        restored.report.restored = 3;
        restored.report.descendants = 2;
        restored.report.gone = 1;
        let expected = "Restored 3 threads (2 of them made by changed threads); 1 had ended.";
        assert_eq!(text(&restored, true), expected);
    }
}
