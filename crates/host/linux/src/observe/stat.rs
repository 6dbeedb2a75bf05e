//! Reads `/proc/PID/task/TID/stat` and `schedstat` without allocating.
//!
//! # Problem
//! Both files are read for each thread in each quantum, so that parsing must cost little compared with the system
//! call. The name in the second field of `stat` is the program's own choice: it may hold spaces, parentheses and
//! line ends.
//!
//! # Approach
//! Whatever the name is, behind the *last* closing parenthesis there are only numbers. Of these, only the wanted
//! ones are parsed.
//!
//! # Terms and units
//! *Tick*: the unit of times in `stat`, 1/100 s on nearly all kernels. Field
//! numbers are those of proc_pid_stat(5), counted from 1.
//!
//! # Properties
//! - No input makes the parsers panic (`parsers_never_panic`).
//! - No name confuses the fields after it (`any_name_is_skipped`).

use std::time::Duration;

use symbiont_machine::RunState;

/// What is used of one `stat` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// What the thread does (field 3); none for one that is dead.
    pub state: Option<RunState>,
    /// The parent process (4).
    pub parent: u32,
    /// The session (6).
    pub session: u32,
    /// Minor page faults of the children that the process waited for (11): it
    /// grows with each of them.
    pub reaped: u64,
    /// Ticks spent running, in user and in kernel mode (14 + 15).
    pub ticks: u64,
    /// Threads of the process, with a leader that is dead but not gone (20).
    pub threads: u32,
    /// When the thread was born, in ticks since boot (22).
    pub born: u64,
    /// Where the stack of the process starts (28): chosen anew at each exec,
    /// where the kernel randomises addresses. 0 where it may not be seen.
    pub stack: u64,
    /// The hardware thread that it ran on last (39), where reported.
    pub cpu: Option<u32>,
    /// How the kernel schedules it (41).
    pub scheduling: Scheduling,
}

/// The policy's number, which libc does not have.
const SCHED_EXT: i32 = 7;

/// How the kernel schedules a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_OTHER` or `SCHED_BATCH`, or not reported.
    #[default]
    Usual,
    /// `SCHED_IDLE`: when no other thread is ready.
    Idle,
    /// `SCHED_EXT`: as a loaded `sched_ext` scheduler decides.
    Ext,
    /// `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`, or a class that is not known here.
    Special,
}

impl Scheduling {
    fn of_policy(policy: u64) -> Self {
        match i32::try_from(policy) {
            Ok(libc::SCHED_OTHER | libc::SCHED_BATCH) => Self::Usual,
            Ok(libc::SCHED_IDLE) => Self::Idle,
            Ok(SCHED_EXT) => Self::Ext,
            _ => Self::Special,
        }
    }
}

impl Stat {
    /// Is the whole process dead, and only waited for?
    pub fn process_is_dead(&self) -> bool {
        self.state.is_none() && self.threads <= 1
    }
}

/// Parses a `stat` line; none if it is not one.
pub(crate) fn parse_stat(line: &[u8]) -> Option<Stat> {
    let name_end = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = line.get(name_end + 1..)?.trim_ascii().split(|&byte| byte == b' ');
    // Skips `between` fields and gives the next one.
    let mut next = |between: usize| fields.nth(between);
    let state = match next(0)? {
        b"R" => Some(RunState::Runnable),
        b"T" | b"t" => Some(RunState::Stopped),
        b"Z" | b"X" | b"x" => None,
        [_] => Some(RunState::Sleeping),
        _ => return None,
    };
    Some(Stat {
        state,
        parent: small(next(0)?),
        session: small(next(1)?),
        reaped: number(next(4)?)?,
        ticks: number(next(2)?)?.saturating_add(number(next(0)?)?),
        threads: small(next(4)?),
        born: number(next(1)?)?,
        stack: next(5).and_then(number).unwrap_or(0),
        cpu: next(10).and_then(number).and_then(|cpu| u32::try_from(cpu).ok()),
        scheduling: next(1).and_then(number).map_or(Scheduling::Usual, Scheduling::of_policy),
    })
}

/// What is used of one `schedstat` file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SchedStat {
    /// Time spent running.
    pub run_time: Duration,
    /// Time spent ready without running, credited when it next runs.
    pub wait_time: Duration,
    /// Times that it was put on a hardware thread.
    pub switches: u64,
}

/// Parses a `schedstat` line of a thread; none if it is not one.
pub(crate) fn parse_schedstat(line: &[u8]) -> Option<SchedStat> {
    let mut fields = line.trim_ascii().split(|&byte| byte == b' ').map(number);
    let mut next = || fields.next().flatten();
    Some(SchedStat {
        run_time: Duration::from_nanos(next()?),
        wait_time: Duration::from_nanos(next()?),
        switches: next()?,
    })
}

/// A decimal number without a sign.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, &byte| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// A process or session number; 0 where there is none (the kernel says 0 or -1).
fn small(digits: &[u8]) -> u32 {
    number(digits).and_then(|value| u32::try_from(value).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line as the kernel writes it, with a name and a state of choice.
    fn line(name: &[u8], state: &str) -> Vec<u8> {
        let mut line = b"4242 (".to_vec();
        line.extend_from_slice(name);
        line.extend_from_slice(
            format!(
                ") {state} 17 4242 4240 34816 4242 4194304 90 7 1 0 12 30 0 0 20 -5 3 0 987654 \
                 1000 20 18446744073709551615 1 1 140722000 0 0 0 0 0 0 1 0 0 17 1 0 0 0 0 0 0 0 \
                 0 0 0 0 0 0\n"
            )
            .as_bytes(),
        );
        line
    }

    #[test]
    fn a_stat_line_gives_its_fields() {
        assert_eq!(
            parse_stat(&line(b"sh", "S")),
            Some(Stat {
                state: Some(RunState::Sleeping),
                parent: 17,
                session: 4240,
                reaped: 7,
                ticks: 42,
                threads: 3,
                born: 987_654,
                stack: 140_722_000,
                cpu: Some(1),
                scheduling: Scheduling::Usual,
            })
        );
    }

    #[test]
    fn scheduling_classes_are_distinguished() {
        use Scheduling::{Ext, Idle, Special, Usual};
        let usual = String::from_utf8(line(b"x", "S")).unwrap();
        // SCHED_OTHER to SCHED_BATCH, SCHED_IDLE to SCHED_EXT, and one that is not known here.
        for (policy, wanted) in [
            (0, Usual),
            (1, Special),
            (2, Special),
            (3, Usual),
            (5, Idle),
            (6, Special),
            (7, Ext),
            (99, Special),
        ] {
            let line = usual.replace(" 17 1 0 0 0 ", &format!(" 17 1 0 {policy} 0 "));
            assert_eq!(parse_stat(line.as_bytes()).unwrap().scheduling, wanted, "{policy}");
        }
        let short = usual.split(" 17 1 0 0 0 ").next().unwrap();
        assert_eq!(parse_stat(short.as_bytes()).unwrap().scheduling, Usual, "not reported");
    }

    #[test]
    fn states_are_distinguished() {
        let state = |text| parse_stat(&line(b"x", text)).map(|stat| stat.state);
        assert_eq!(state("R"), Some(Some(RunState::Runnable)));
        for sleeping in ["S", "D", "I", "P"] {
            assert_eq!(state(sleeping), Some(Some(RunState::Sleeping)));
        }
        for stopped in ["T", "t"] {
            assert_eq!(state(stopped), Some(Some(RunState::Stopped)));
        }
        for dead in ["Z", "X", "x"] {
            assert_eq!(state(dead), Some(None));
        }
        assert_eq!(state("running"), None);
    }

    #[test]
    fn the_kernel_agrees_with_procfs() {
        let text = std::fs::read("/proc/self/stat").unwrap();
        let ours = parse_stat(&text).unwrap();
        let theirs = procfs::process::Process::myself().unwrap().stat().unwrap();
        assert_eq!(ours.born, theirs.starttime);
        assert_eq!(ours.parent, u32::try_from(theirs.ppid).unwrap());
        assert_eq!(ours.session, u32::try_from(theirs.session).unwrap());
        assert_eq!(ours.stack, theirs.startstack);
    }

    #[test]
    fn a_schedstat_line_gives_its_fields() {
        assert_eq!(
            parse_schedstat(b"123 45 6\n"),
            Some(SchedStat {
                run_time: Duration::from_nanos(123),
                wait_time: Duration::from_nanos(45),
                switches: 6
            })
        );
        assert_eq!(parse_schedstat(b"123 45\n"), None);
        assert_eq!(parse_schedstat(b"99999999999999999999 0 0"), None);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_stat(&bytes);
            let _ = parse_schedstat(&bytes);
        }

        #[test]
        fn any_name_is_skipped(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(parse_stat(&line(&name, "S")), parse_stat(&line(b"sh", "S")));
        }

        #[test]
        fn cut_lines_never_panic(length in 0_usize..300) {
            let whole = line(b"a b) R 1", "R");
            let _ = parse_stat(&whole[..length.min(whole.len())]);
        }
    }
}
