//! All threads of the machine that ran last on certain hardware threads.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fd::OwnedFd;
use symbiont_topology::{CpuSet, PuId};

use super::scan::Proc;
use super::stat::{parse_schedstat, parse_stat};

/// A thread that ran on hardware threads of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bystander {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// When it was born, as time since boot.
    pub born: Duration,
    /// Its name.
    pub name: String,
    /// How long it ran since it was born, wherever that was.
    pub run_time: Duration,
}

/// All threads that ran last on one of these hardware threads. Threads that end meanwhile are left
/// out.
///
/// # Errors
/// When /proc cannot be listed.
pub(crate) fn read_bystanders(
    proc: &Path,
    cpus: &CpuSet,
    tick: Duration,
) -> io::Result<Vec<Bystander>> {
    let proc = Proc::open(proc)?;
    let mut found = Vec::new();
    for process in proc.numbers()? {
        for thread in proc.threads(process) {
            found.extend(bystander(&proc, process, thread, cpus, tick));
        }
    }
    Ok(found)
}

fn bystander(
    proc: &Proc,
    process: u32,
    thread: u32,
    cpus: &CpuSet,
    tick: Duration,
) -> Option<Bystander> {
    let read = |file: &str| content(&proc.file(&format!("{process}/task/{thread}/{file}")).ok()?);
    let line = read("stat")?;
    let stat = parse_stat(&line)?;
    if !cpus.contains(PuId(stat.cpu?)) {
        return None;
    }
    let ticks = |ticks: u64| tick.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
    let exact = read("schedstat").as_deref().and_then(parse_schedstat);
    Some(Bystander {
        process,
        thread,
        born: ticks(stat.born),
        name: name(&line),
        run_time: exact.map_or_else(|| ticks(stat.ticks), |times| times.run_time),
    })
}

/// What a short file holds; none if its thread is gone.
fn content(file: &OwnedFd) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1024];
    let length = rustix::io::pread(file, &mut buffer, 0).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

/// The name in a `stat` line, between the first opening and the last closing parenthesis.
fn name(line: &[u8]) -> String {
    let begin = line.iter().position(|&byte| byte == b'(').map_or(0, |at| at + 1);
    let end = line.iter().rposition(|&byte| byte == b')').unwrap_or(begin);
    String::from_utf8_lossy(line.get(begin..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_are_whole() {
        assert_eq!(name(b"7 (kworker/1:2) S 1"), "kworker/1:2");
        assert_eq!(name(b"7 (a) (b)) S 1"), "a) (b)");
        assert_eq!(name(b"7 )x( S"), "");
        assert_eq!(name(b""), "");
    }
}
