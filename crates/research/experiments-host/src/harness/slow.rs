//! CPUs that are slowed down while an experiment runs.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use symbiont_linux::slow::{SlowCpu, Slowed};

use symbiont_campaign::Error;

/// Longest time that CPUs are slowed down, should this process stop without ending it.
const LONGEST: Duration = Duration::from_secs(12 * 3600);

/// Slow as long as this lives, and as the thread that made it.
pub struct SlowedCpus(Mutex<Slowed>);

impl SlowedCpus {
    /// Slows them down by children of the running program.
    pub fn start(symbiont: &Path, cpus: &[SlowCpu]) -> Result<Self, Error> {
        let slowed = Slowed::start(symbiont, cpus, LONGEST).map_err(Error::run)?;
        Ok(Self(Mutex::new(slowed)))
    }

    /// Are all still slow? A run in which one of them was not was measured on another machine.
    pub fn check(&self) -> Result<(), Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).check().map_err(Error::run)
    }
}

/// These CPUs in words.
pub fn words(slow: &[SlowCpu]) -> String {
    let slow: Vec<String> = slow.iter().map(ToString::to_string).collect();
    if slow.is_empty() { "none".to_owned() } else { format!("{} (CPU:factor)", slow.join(", ")) }
}
