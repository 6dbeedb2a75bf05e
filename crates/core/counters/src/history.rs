//! From cumulative counts to what was measured over a quantum.

use std::collections::BTreeMap;
use std::sync::Arc;

use symbiont_machine::{Counting, Sample, ThreadId, ThreadSample};

use crate::Measurements;
use crate::catalogue::CatalogueError;
use crate::measured::Measured;
use crate::scheme::Scheme;
use crate::track::Track;

/// Remembers of each thread what its groups counted last, and folds sample
/// after sample into measurements.
///
/// A pure fold over the samples: the same samples give the same measurements,
/// on a real machine, on a simulated one and over a recording.
#[derive(Debug, Default)]
pub struct History {
    scheme: Option<Scheme>,
    threads: BTreeMap<ThreadId, Thread>,
}

#[derive(Debug)]
struct Thread {
    groups: Vec<Track>,
    measured: Measured,
}

impl History {
    /// Takes the next sample; gives what is known of each of its threads that
    /// is counted. A thread that is not in the sample is forgotten.
    ///
    /// # Errors
    /// When the catalogue that came with the sample cannot be read.
    pub fn take(&mut self, sample: &Sample) -> Result<Measurements, CatalogueError> {
        let Some(counting) = &sample.counting else {
            *self = Self::default();
            return Ok(Measurements::new());
        };
        let mut last = std::mem::take(&mut self.threads);
        let scheme = match self.scheme.take().filter(|scheme| scheme.is_of(counting)) {
            Some(scheme) => scheme,
            None => {
                last.clear();
                Scheme::new(Arc::clone(counting))?
            }
        };
        let next = sample.threads.iter().map(|thread| {
            let known = last.remove(&thread.id).unwrap_or_else(|| Thread::new(counting));
            (thread.id, known.next(thread, &scheme))
        });
        self.threads = next.collect();
        self.scheme = Some(scheme);
        Ok(self.threads.iter().map(|(id, thread)| (*id, thread.measured.clone())).collect())
    }
}

impl Thread {
    fn new(counting: &Counting) -> Self {
        let groups = counting.groups.iter().map(|_| Track::default()).collect();
        Self { groups, measured: Measured::default() }
    }

    fn next(mut self, thread: &ThreadSample, scheme: &Scheme) -> Self {
        let mut news = self.measured == Measured::default();
        let nothing = || Err("the machine does not report it".into());
        for (at, track) in self.groups.iter_mut().enumerate() {
            let counts = thread.counts.get(at).cloned().unwrap_or_else(nothing);
            news |= track.take(counts, thread.run_time);
        }
        self.measured = if news {
            scheme.measure(&self.groups)
        } else {
            // Nothing new was counted: all that is known is a quantum older.
            self.measured.older()
        };
        self
    }
}

impl Measured {
    fn older(mut self) -> Self {
        let known = self.values_mut().iter_mut().filter_map(|value| value.as_mut().ok());
        known.for_each(|measurement| measurement.age = measurement.age.saturating_add(1));
        self
    }
}

#[cfg(test)]
mod tests;
