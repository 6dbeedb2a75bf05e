//! What is said of a process or thread that the daemon does not manage, or does not show.

use std::fs;

use rustix::process::geteuid;

/// Why there is no answer about a process or thread, and what to do.
pub fn not_managed(id: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    words(id, &status, geteuid().as_raw())
}

/// The same; `status` is what /proc says of it, or nothing, `own` the user that asks.
fn words(id: u32, status: &str, own: u32) -> String {
    let number = |key: &str| -> Option<u32> {
        let values = status.lines().find_map(|line| line.strip_prefix(key))?;
        values.split_whitespace().next()?.parse().ok()
    };
    let Some((process, owner)) = number("Tgid:").zip(number("Uid:")) else {
        return format!("there is no process or thread {id} here");
    };
    let what = match process == id {
        true => format!("process {id}"),
        false => format!("thread {id} of process {process}"),
    };
    match (own, owner == own) {
        (0, _) => {
            format!("{what} is not managed; `sudo symbiont attach --pid {process}` manages it")
        }
        (_, true) => format!("{what} is not managed; `symbiont attach --pid {process}` manages it"),
        (_, false) => {
            format!("{what} belongs to another user: root may ask (`sudo symbiont why {id}`)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_managed_is_named_with_the_command_that_manages_it() {
        let status =
            |process: u32, user: u32| format!("Name:\tx\nTgid:\t{process}\nUid:\t{user}\t9\n");
        assert_eq!(
            words(1, &status(1, 0), 0),
            "process 1 is not managed; `sudo symbiont attach --pid 1` manages it"
        );
        assert_eq!(
            words(12, &status(10, 1000), 1000),
            "thread 12 of process 10 is not managed; `symbiont attach --pid 10` manages it"
        );
        assert!(words(1, &status(1, 0), 1000).contains("another user: root may ask"));
        assert_eq!(words(7, "", 0), "there is no process or thread 7 here");
    }
}
