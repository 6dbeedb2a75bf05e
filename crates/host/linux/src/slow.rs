//! Makes CPUs slower, for experiments on machines whose cores are all alike.
//!
//! # Problem
//! What a scheduler gains on an asymmetric machine can be measured only on one. Morad et al. (section 6) emulate
//! it by lowering the duty cycle of seven of eight cores. Clock modulation and frequency limits belong to the
//! kernel: they stay when a program is killed, and virtual machines do not have them.
//!
//! # Approach
//! A process for each such CPU ([`run`]) is pinned to it, and takes it away from all other threads for part of
//! each [`PERIOD`]:
//!
//! ```text
//! until the deadline, the parent's end or any signal:
//!     spin for (1 − 1/F) · PERIOD        a CPU that is to be F times as slow
//!     sleep for PERIOD / F
//! ```
//!
//! It runs in a real-time class or, where that is not permitted, at nice −20, which takes CAP_SYS_NICE or a
//! resource limit that permits it. It changes nothing but its own state, so that nothing is left behind when it
//! ends; and it always ends: when its parent dies, the kernel kills it, and it also checks for that itself.
//!
//! The emulation has limits. Caches, memory and the kernel's interrupts keep their speed; a slowed thread stands
//! still for milliseconds instead of running slowly; and the OS accounts for it as a thread that waits.
//!
//! # Properties
//! - It takes about the share that it should (tests of the command line tool).
//! - Killed at any moment, or left by its parent, it is gone (the same tests).
//! - What cannot be a slow CPU is refused (`what_is_no_slow_cpu_is_refused`).

mod body;

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use rustix::io::Errno;
use symbiont_topology::PuId;

pub use body::{PERIOD, run};

/// What a slowing process says when it has begun.
pub const BEGUN: &str = "slowed";

/// More would leave no time to the kernel's throttle of real-time threads.
const MOST: f64 = 10.0;

/// A CPU that is to be slowed down: `CPU:FACTOR`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowCpu {
    cpu: PuId,
    factor: f64,
}

/// A text that does not name a CPU and how many times as slow it is to be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "'{0}' is no CPU:FACTOR; a CPU's number and a factor above 1, at most {MOST}, are expected, as in 1:2"
)]
pub struct NoSlowCpu(String);

impl SlowCpu {
    /// A CPU that is to be `factor` times as slow, above 1 to 10; none for any other factor.
    #[must_use]
    pub fn new(cpu: PuId, factor: f64) -> Option<Self> {
        (factor > 1.0 && factor <= MOST).then_some(Self { cpu, factor })
    }

    /// The CPU.
    #[must_use]
    pub fn cpu(&self) -> PuId {
        self.cpu
    }

    /// How many times as slow it is to be.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }
}

impl FromStr for SlowCpu {
    type Err = NoSlowCpu;

    fn from_str(text: &str) -> Result<Self, NoSlowCpu> {
        let parts = text.split_once(':');
        let read = parts.and_then(|(cpu, factor)| {
            Self::new(PuId(cpu.trim().parse().ok()?), factor.trim().parse().ok()?)
        });
        read.ok_or_else(|| NoSlowCpu(text.to_owned()))
    }
}

impl fmt::Display for SlowCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.cpu.0, self.factor)
    }
}

/// Why a CPU cannot be slowed.
#[derive(Debug, thiserror::Error)]
pub enum SlowError {
    /// The process cannot be pinned to the CPU.
    #[error("cannot run on CPU {0}: {1}")]
    Pin(u32, #[source] Errno),
    /// It cannot be made more urgent than other programs.
    #[error("cannot run before other programs: {0}; it takes CAP_SYS_NICE")]
    Urgent(#[source] Errno),
    /// It cannot be made to end with its parent.
    #[error("cannot be made to end with the parent: {0}")]
    Parent(#[source] Errno),
    /// The process cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// What was to be started.
        program: String,
        /// Why it was not.
        source: std::io::Error,
    },
    /// A slowing process has ended.
    #[error("CPU {cpu} cannot be slowed, or not any longer: {said}")]
    Ended {
        /// The CPU.
        cpu: u32,
        /// What it said last.
        said: String,
    },
}

/// CPUs that are slow as long as this lives.
#[derive(Debug)]
pub struct Slowed {
    children: Vec<(SlowCpu, Child)>,
}

impl Slowed {
    /// Slows CPUs down for `limit` at most, by children of this process that run
    /// `program slow-cpu CPU:FACTOR --for … --parent …`. Waits until all of them
    /// have begun.
    ///
    /// # Errors
    /// When one of them cannot begin; the others are ended then.
    pub fn start(program: &Path, cpus: &[SlowCpu], limit: Duration) -> Result<Self, SlowError> {
        let mut slowed = Self { children: Vec::new() };
        for slow in cpus {
            let started = Command::new(program)
                .arg("slow-cpu")
                .arg(slow.to_string())
                .arg(format!("--for={}ms", limit.as_millis()))
                .arg(format!("--parent={}", std::process::id()))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let child = started.map_err(|source| SlowError::Start {
                program: program.display().to_string(),
                source,
            })?;
            slowed.children.push((*slow, child));
            let Some((_, child)) = slowed.children.last_mut() else { continue };
            let mut line = String::new();
            if let Some(stdout) = child.stdout.as_mut() {
                // Nothing comes if it has ended.
                let _ = BufReader::new(stdout).read_line(&mut line);
            }
            if line.trim() != BEGUN {
                return Err(ended(*slow, child));
            }
        }
        Ok(slowed)
    }

    /// Are all of them still slow?
    ///
    /// # Errors
    /// When one has ended.
    pub fn check(&mut self) -> Result<(), SlowError> {
        for (slow, child) in &mut self.children {
            // A process that cannot be asked about is as good as gone.
            if !matches!(child.try_wait(), Ok(None)) {
                return Err(ended(*slow, child));
            }
        }
        Ok(())
    }
}

/// What one that has ended, or is about to, said last.
fn ended(slow: SlowCpu, child: &mut Child) -> SlowError {
    let mut said = String::new();
    if let Some(stderr) = child.stderr.as_mut() {
        let _ = stderr.read_to_string(&mut said);
    }
    SlowError::Ended { cpu: slow.cpu.0, said: said.trim().to_owned() }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        for (_, child) in &mut self.children {
            // Fails for one that has ended, which is as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_cpu_is_written_as_it_is_read() {
        let slow: SlowCpu = "1:2".parse().unwrap();
        assert_eq!((slow.cpu(), slow.factor()), (PuId(1), 2.0));
        assert_eq!(slow.to_string().parse(), Ok(slow));
        assert_eq!("3:1.25".parse::<SlowCpu>().unwrap().to_string(), "3:1.25");
    }

    #[test]
    fn what_is_no_slow_cpu_is_refused() {
        for text in ["", "1", "1:", ":2", "x:2", "1:1", "1:0.5", "1:11", "1:nan", "1:inf", "-1:2"] {
            assert!(text.parse::<SlowCpu>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_program_that_cannot_be_started_is_named() {
        let slow = "0:2".parse().unwrap();
        let limit = Duration::from_secs(1);
        let error = Slowed::start(Path::new("/no/such/program"), &[slow], limit).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
        let error = Slowed::start(Path::new("/bin/false"), &[slow], limit).unwrap_err();
        assert!(matches!(error, SlowError::Ended { cpu: 0, .. }), "{error}");
    }
}
