//! A launched program finds itself as it would alone.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use libtest_mimic::Trial;

use crate::exits::{WAYS, launched};

/// How the launcher itself is started.
type Surroundings = fn() -> std::io::Result<()>;

/// Signal state, descriptors and limits that differ from the usual.
const SURROUNDINGS: [(&str, Surroundings); 6] = [
    ("as usual", || Ok(())),
    ("SIGPIPE ignored", || ignore(libc::SIGPIPE)),
    ("SIGCHLD ignored", || ignore(libc::SIGCHLD)),
    ("SIGHUP ignored, SIGCHLD and SIGTERM blocked", || {
        ignore(libc::SIGHUP)?;
        block(&[libc::SIGCHLD, libc::SIGTERM])
    }),
    ("standard input closed", || close(0)),
    ("umask, niceness, limit, an open descriptor", || {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
        rustix::process::nice(3)?;
        let limit = rustix::process::Rlimit { current: Some(64), maximum: Some(100) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
        leave_open()
    }),
];

/// Opens a descriptor that survives exec, unlike what Rust opens.
fn leave_open() -> std::io::Result<()> {
    #[expect(unsafe_code, reason = "there is no safe wrapper")]
    // SAFETY: a new descriptor disturbs no other code.
    unsafe {
        libc::fcntl(1, libc::F_DUPFD, 3)
    };
    Ok(())
}

fn ignore(signal: i32) -> std::io::Result<()> {
    #[expect(unsafe_code, reason = "there is no safe wrapper")]
    // SAFETY: no handler is installed.
    unsafe {
        libc::signal(signal, libc::SIG_IGN)
    };
    Ok(())
}

#[expect(unsafe_code, reason = "there is no safe wrapper")]
fn block(signals: &[i32]) -> std::io::Result<()> {
    // SAFETY: sigset_t is plain data, and sigemptyset is not even needed on Linux.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in signals {
        // SAFETY: the set is valid.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    // SAFETY: the set is valid; the former one is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    Ok(())
}

fn close(descriptor: i32) -> std::io::Result<()> {
    #[expect(unsafe_code, reason = "there is no safe wrapper")]
    // SAFETY: nothing in this child uses it before the exec.
    unsafe {
        libc::close(descriptor)
    };
    Ok(())
}

/// What a program says about itself: one entry per fact.
type Facts = BTreeMap<String, String>;

/// What changes from run to run, or counts what happened on the way.
const VOLATILE: [&str; 3] = ["Vm", "Rss", "Hugetlb"];
const FACTS_THAT_VARY: [&str; 5] =
    ["SigQ", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches", "FDSize", "Threads"];

fn facts(way: &[&str], surroundings: Surroundings) -> Facts {
    let program = ["cat", "/proc/self/status", "/proc/self/limits", "/proc/self/stat"];
    let (pid, text) = output(&mut launched(way, &program), surroundings);
    let mut facts: Facts = text
        .lines()
        .filter_map(|line| line.split_once([':', '\t']).or_else(|| line.split_once("  ")))
        .filter(|(key, _)| !VOLATILE.iter().any(|volatile| key.starts_with(volatile)))
        .filter(|(key, _)| !FACTS_THAT_VARY.contains(key) && !key.contains('('))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let stat = text.lines().last().and_then(|line| line.rsplit_once(')')).expect("stat").1;
    let stat: Vec<&str> = stat.split_whitespace().collect();
    for (at, name) in [
        (1, "parent"),
        (2, "group"),
        (3, "session"),
        (4, "terminal"),
        (5, "foreground"),
        (15, "priority"),
        (16, "nice"),
    ] {
        facts.insert(format!("stat {name}"), stat[at].to_owned());
    }
    let (_, descriptors) = output(&mut launched(way, &["ls", "-l", "/proc/self/fd"]), surroundings);
    let mut others = Vec::new();
    for line in descriptors.lines() {
        if let Some((left, target)) = line.split_once(" -> ") {
            match left.rsplit(' ').next().unwrap_or_default() {
                number @ ("0" | "1" | "2") => {
                    facts.insert(format!("descriptor {number}"), kind_of(target));
                }
                _ => others.push(kind_of(target)),
            }
        }
    }
    others.sort();
    facts.insert("other descriptors".to_owned(), others.join(" "));
    let (_, variables) = output(&mut launched(way, &["env"]), surroundings);
    // Where a shell notes the path of what it ran; every wrapper shows there.
    let variables = variables.lines().filter(|line| !line.starts_with("_=")).collect();
    facts.insert("environment".to_owned(), variables);
    let (_, directory) = output(&mut launched(way, &["pwd"]), surroundings);
    facts.insert("directory".to_owned(), directory);
    for value in facts.values_mut() {
        if *value == pid.to_string() {
            *value = "its own".to_owned();
        } else if *value == std::process::id().to_string() {
            *value = "the test's".to_owned();
        }
    }
    facts
}

/// `pipe:[123]` is a pipe; `/proc/77/fd` is a directory of some process.
fn kind_of(target: &str) -> String {
    target.split('[').next().unwrap_or_default().replace(|c: char| c.is_ascii_digit(), "")
}

/// Runs a command in its surroundings; gives its process number and output.
fn output(command: &mut Command, surroundings: Surroundings) -> (u32, String) {
    command.stdout(Stdio::piped());
    #[expect(unsafe_code, reason = "signal state can only be set in the child")]
    // SAFETY: the surroundings make system calls only.
    let command = unsafe { command.pre_exec(surroundings) };
    let child = command.spawn().expect("the launcher starts");
    let pid = child.id();
    let output = child.wait_with_output().expect("the launcher ends");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    (pid, String::from_utf8_lossy(&output.stdout).into_owned())
}

fn compare(alone: &Facts, managed: &Facts, may_differ: &[&str], what: &str) {
    let keys: std::collections::BTreeSet<_> = alone.keys().chain(managed.keys()).collect();
    for key in keys.into_iter().filter(|key| !may_differ.contains(&key.as_str())) {
        assert_eq!(alone.get(key), managed.get(key), "{key} differs, {what}");
    }
}

/// This module's tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("identity_in_place_is_that_of_the_program_alone", || {
            for (name, surroundings) in SURROUNDINGS {
                let alone = facts(&[], surroundings);
                assert_eq!(alone["Pid"], "its own", "the comparison means something");
                assert_eq!(alone["stat parent"], "the test's");
                compare(&alone, &facts(WAYS[1].1, surroundings), &[], name);
            }
            Ok(())
        }),
        Trial::test("identity_supervised_differs_by_the_parent_only", || {
            // It is a child of the supervisor.
            let process = ["Tgid", "Ngid", "Pid", "PPid", "stat parent", "NStgid", "NSpid"];
            for (name, surroundings) in SURROUNDINGS {
                let alone = facts(&[], surroundings);
                compare(&alone, &facts(WAYS[2].1, surroundings), &process, name);
                let session =
                    [&process[..], &["stat group", "stat session", "NSpgid", "NSsid"]].concat();
                let terminal = [&session[..], &["stat terminal", "stat foreground"]].concat();
                compare(&alone, &facts(WAYS[3].1, surroundings), &terminal, name);
            }
            Ok(())
        }),
        Trial::test("identity_sees_what_the_surroundings_change", || {
            let bits = |facts: &Facts, key: &str, signal: i32| {
                u64::from_str_radix(&facts[key], 16).expect("a mask") >> (signal - 1) & 1
            };
            for (_, way) in WAYS {
                let piped = facts(way, SURROUNDINGS[1].1);
                assert_eq!(bits(&piped, "SigIgn", libc::SIGPIPE), 1);
                let deaf = facts(way, SURROUNDINGS[2].1);
                assert_eq!(bits(&deaf, "SigIgn", libc::SIGCHLD), 1);
                let usual = facts(way, SURROUNDINGS[0].1);
                assert_eq!(bits(&usual, "SigIgn", libc::SIGPIPE), 0);
                let blocked = facts(way, SURROUNDINGS[3].1);
                assert_eq!(bits(&blocked, "SigBlk", libc::SIGCHLD), 1);
                assert_eq!(bits(&blocked, "ShdPnd", libc::SIGCHLD), 0, "nothing is left over");
                assert_ne!(
                    facts(way, SURROUNDINGS[4].1).get("descriptor 0"),
                    usual.get("descriptor 0")
                );
                let opened = facts(way, SURROUNDINGS[5].1);
                assert_ne!(opened.get("other descriptors"), usual.get("other descriptors"));
            }
            Ok(())
        }),
    ]
}
