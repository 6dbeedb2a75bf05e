//! PID namespaces: which processes are meant by a number, and whether any of
//! them still live.
//!
//! A journal that a container wrote on a shared directory names processes by
//! the container's numbers. No other process may act on them; but when the container
//! has ended, so have all its processes, and nothing is left to restore. That
//! can be said only where all processes of the machine are seen: in its first
//! PID namespace, with each process readable.

use std::fs;
use std::path::Path;

/// The kernel gives this number to the first PID namespace.
const FIRST: &str = "pid:[4026531836]";

/// Which process numbers are meant here (the PID namespace).
pub(super) fn number_space() -> String {
    link("/proc/self".as_ref()).unwrap_or_default()
}

fn link(process: &Path) -> Option<String> {
    Some(fs::read_link(process.join("ns/pid")).ok()?.to_string_lossy().into_owned())
}

/// Did all processes of this PID namespace end? False where that cannot be known.
pub(super) fn is_dead(numbers: &str) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .map(|entry| seen(&entry.path()));
    numbers != FIRST && number_space() == FIRST && no_process_is_in(numbers, processes)
}

/// What is seen of one process.
enum Seen {
    In(String),
    /// It has one number only, so it is in no other namespace than ours.
    Here,
    Gone,
    Unknown,
}

fn seen(process: &Path) -> Seen {
    if let Some(numbers) = link(process) {
        return Seen::In(numbers);
    }
    // Others' links may not be read; that there is one number only may.
    match fs::read_to_string(process.join("status")) {
        Ok(status) => match status.lines().find_map(|line| line.strip_prefix("NSpid:")) {
            Some(numbers) if numbers.split_whitespace().count() == 1 => Seen::Here,
            _ => Seen::Unknown,
        },
        Err(_) if !process.exists() => Seen::Gone,
        Err(_) => Seen::Unknown,
    }
}

/// Is it certain? With `hidepid` the first process itself is not seen.
fn no_process_is_in(numbers: &str, processes: impl Iterator<Item = Seen>) -> bool {
    let mut any = false;
    for process in processes {
        any = true;
        match process {
            Seen::In(other) if other == numbers => return false,
            Seen::Unknown => return false,
            Seen::In(_) | Seen::Here | Seen::Gone => {}
        }
    }
    any && fs::metadata("/proc/1").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_dead_when_every_process_is_seen_elsewhere() {
        let other = || Seen::In(FIRST.to_owned());
        let ours = || Seen::In("pid:[7]".to_owned());
        assert!(no_process_is_in("pid:[7]", [other(), Seen::Here, Seen::Gone].into_iter()));
        assert!(!no_process_is_in("pid:[7]", [other(), ours()].into_iter()));
        assert!(!no_process_is_in("pid:[7]", [other(), Seen::Unknown].into_iter()));
        assert!(!no_process_is_in("pid:[7]", [].into_iter()));
    }

    #[test]
    fn the_namespace_of_this_process_lives() {
        assert!(!is_dead(&number_space()));
    }
}
