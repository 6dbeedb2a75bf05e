//! How often a serial thread shares its core.
//!
//! # Problem
//! Of n + 1 ready threads on n cores two share one. Table 1 takes each placement as equally
//! likely, so that a serial thread beside n parallel ones is one of the two with probability
//! 2/(n+1). An OS need not draw: who wakes goes to an idle core, who finds none stays where it
//! was, and so the same threads may meet in phase after phase.
//!
//! # Approach
//! At each look in which one program has one ready thread and the other at least as many as
//! there are cores: is that thread's core also that of another ready one?
//!
//! # Terms
//! *Sharing*: of these looks, the share in which it was.
//!
//! # Properties
//! - Looks in another joint state do not count (`only_a_serial_thread_beside_a_parallel_program_counts`).

use symbiont_machine::{ProgramId, RunState, Sample, ThreadSample};

/// What was seen so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sharing {
    looks: u32,
    shared: u32,
}

impl Sharing {
    /// One look at two programs on so many cores.
    pub(super) fn look(&mut self, sample: &Sample, cores: u32) {
        let [a, b] = sample.programs.as_slice() else { return };
        let ready = |of: ProgramId| -> Vec<&ThreadSample> {
            let is = |t: &&ThreadSample| t.program == of && t.state == RunState::Runnable;
            sample.threads.iter().filter(is).collect()
        };
        let (a, b) = (ready(a.id), ready(b.id));
        let (serial, parallel) = if a.len() == 1 { (a, b) } else { (b, a) };
        if serial.len() == 1 && parallel.len() >= cores as usize {
            self.looks += 1;
            self.shared += u32::from(parallel.iter().any(|thread| thread.cpu == serial[0].cpu));
        }
    }

    /// The share of looks in which it shared its core; none without looks.
    pub(super) fn share(self) -> Option<f64> {
        (self.looks > 0).then(|| f64::from(self.shared) / f64::from(self.looks))
    }
}

#[cfg(test)]
mod tests {
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Program, Sample};
    use symbiont_topology::PuId;

    use super::*;

    /// Ready threads of two programs, by their cores.
    fn sample(cores: [&[u32]; 2]) -> Sample {
        let programs = [0, 1].map(|n| Program::new(ProgramId(n), n.to_string()));
        let of = |program: u32| {
            cores[program as usize].iter().zip(0..).map(move |(core, number)| ThreadSample {
                state: RunState::Runnable,
                cpu: Some(PuId(*core)),
                ..thread(program, 100 * program + number, &"0-1".parse().unwrap())
            })
        };
        let mut threads: Vec<_> = of(0).chain(of(1)).collect();
        threads.push(thread(0, 99, &"0-1".parse().unwrap()));
        Sample { threads, programs: programs.into(), ..Sample::default() }
    }

    #[test]
    fn only_a_serial_thread_beside_a_parallel_program_counts() {
        let mut sharing = Sharing::default();
        let mut look = |cores: [&[u32]; 2]| {
            sharing.look(&sample(cores), 2);
            sharing.share()
        };
        assert_eq!(look([&[0], &[0]]), None, "both serial");
        assert_eq!(look([&[0, 1], &[0, 1]]), None, "both parallel");
        assert_eq!(look([&[], &[0, 1]]), None, "one waits");
        assert_eq!(look([&[0], &[1, 1]]), Some(0.0), "the parallel ones share");
        assert_eq!(look([&[0, 1], &[1]]), Some(0.5));
        assert_eq!(look([&[0, 1], &[0, 1]]), Some(0.5));
    }
}
