//! PID namespaces: which process a number means, and whether all processes of a namespace have ended.
//!
//! A container that writes its journal into a shared directory names processes by the container's own numbers.
//! Nothing outside may act on those. But once the container has ended, so have all its processes, and nothing is
//! left to restore. That is certain only where all processes of the machine can be seen: in its first PID
//! namespace. Which namespace another user's process is in cannot be read there. But a namespace ends with its
//! first process, the one with the number 1, and any user may read when that process began: so the journal names
//! it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::syscalls::facts;

/// The kernel gives this number to the first PID namespace.
const FIRST: &str = "pid:[4026531836]";

/// Which process numbers are meant here (the PID namespace).
pub(super) fn number_space() -> String {
    link("/proc/self".as_ref()).unwrap_or_default()
}

fn link(process: &Path) -> Option<String> {
    Some(fs::read_link(process.join("ns/pid")).ok()?.to_string_lossy().into_owned())
}

/// The first process of a PID namespace: when it ends, the kernel ends all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FirstProcess {
    /// When it began, in clock ticks since boot.
    born: u64,
    /// The time namespace, whose clock that is.
    clock: String,
}

impl FirstProcess {
    /// That of our namespace. None where `/proc` shows another one's processes.
    pub(super) fn of_ours() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let born = (own_numbers(&status)?.len() == 1).then(|| birth(1)).flatten()?;
        Some(Self { born, clock: clock() })
    }
}

fn clock() -> String {
    let link = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

fn birth(process: u32) -> Option<u64> {
    Some(facts(process, process).ok()??.key.born)
}

/// A process's numbers, in our namespace first and in its own last, by its `status`.
fn own_numbers(status: &str) -> Option<Vec<u32>> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().map(|number| number.parse().ok()).collect()
}

/// Did all processes of this PID namespace end? False where that cannot be known. `first`: its first process, where
/// that is known.
pub(super) fn is_dead(numbers: &str, first: Option<&FirstProcess>) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .map(|entry| seen(&entry.path()));
    let first = first.filter(|first| first.clock == clock());
    numbers != FIRST && number_space() == FIRST && no_process_is_in(numbers, first, processes)
}

/// What is seen of one process.
enum Seen {
    In(String),
    /// It has one number only, so it is in no other namespace than ours.
    Here,
    /// In another one, of which it is not the first process.
    NotFirst,
    /// The first process of another one, and when it began.
    First(u64),
    Gone,
    Unknown,
}

fn seen(process: &Path) -> Seen {
    if let Some(numbers) = link(process) {
        return Seen::In(numbers);
    }
    // Others' links may not be read; that there is one number only may.
    match fs::read_to_string(process.join("status")) {
        Ok(status) => match own_numbers(&status).as_deref() {
            Some([_]) => Seen::Here,
            Some([number, .., 1]) => match birth(*number) {
                Some(born) => Seen::First(born),
                None if !process.exists() => Seen::Gone,
                None => Seen::Unknown,
            },
            Some([_, ..]) => Seen::NotFirst,
            _ => Seen::Unknown,
        },
        Err(_) if !process.exists() => Seen::Gone,
        Err(_) => Seen::Unknown,
    }
}

/// Is it certain? With `hidepid` the first process itself is not seen.
fn no_process_is_in(
    numbers: &str,
    first: Option<&FirstProcess>,
    processes: impl Iterator<Item = Seen>,
) -> bool {
    let mut any = false;
    for process in processes {
        any = true;
        match process {
            Seen::In(other) if other == numbers => return false,
            Seen::First(born) if first.is_none_or(|first| first.born == born) => return false,
            Seen::NotFirst if first.is_none() => return false,
            Seen::Unknown => return false,
            Seen::In(_) | Seen::Here | Seen::NotFirst | Seen::First(_) | Seen::Gone => {}
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
        let is_dead = |seen: Vec<Seen>| no_process_is_in("pid:[7]", None, seen.into_iter());
        assert!(is_dead(vec![other(), Seen::Here, Seen::Gone]));
        assert!(!is_dead(vec![other(), ours()]));
        for unclear in [Seen::Unknown, Seen::First(3), Seen::NotFirst] {
            assert!(!is_dead(vec![other(), unclear]));
        }
        assert!(!is_dead(vec![]));
    }

    #[test]
    fn other_users_containers_do_not_hide_that_a_namespace_has_ended() {
        let first = FirstProcess { born: 3, clock: String::new() };
        let is_dead = |seen| {
            let seen: Vec<Seen> = vec![Seen::Here, Seen::NotFirst, seen];
            no_process_is_in("pid:[7]", Some(&first), seen.into_iter())
        };
        assert!(is_dead(Seen::First(4)), "another container's");
        assert!(!is_dead(Seen::First(3)), "its own");
        assert!(!is_dead(Seen::Unknown));
        assert_eq!(own_numbers("NSpid:\t812\t4\t1\n"), Some(vec![812, 4, 1]));
        assert_eq!(own_numbers("NSpid:\t8x\n"), None);
    }

    #[test]
    fn the_namespace_of_this_process_lives() {
        assert!(!is_dead(&number_space(), FirstProcess::of_ours().as_ref()));
        assert!(!is_dead(&number_space(), None));
    }
}
