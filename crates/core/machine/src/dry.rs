//! A machine that is watched and never steered: every move is answered with
//! [`Outcome::NotEnforced`].

use std::time::Duration;

use symbiont_topology::Topology;

use crate::{Machine, Move, Outcome, Sample, Signals, Support};

/// Watches the machine inside, changes nothing on it. For dry runs, and to ask
/// what a policy would do.
#[derive(Debug)]
pub struct DryRun<M>(pub M);

impl<M: Machine> Machine for DryRun<M> {
    type Error = M::Error;

    fn topology(&self) -> &Topology {
        self.0.topology()
    }

    fn support(&self) -> &Support {
        self.0.support()
    }

    fn measure(&mut self, signals: &Signals) {
        self.0.measure(signals);
    }

    fn sample(&mut self) -> Result<Sample, Self::Error> {
        self.0.sample()
    }

    fn acts(&self) -> bool {
        false
    }

    fn apply(&mut self, moves: &[Move]) -> Result<Vec<Outcome>, Self::Error> {
        Ok(vec![Outcome::NotEnforced; moves.len()])
    }

    fn wait(&mut self, quantum: Duration) -> Result<(), Self::Error> {
        self.0.wait(quantum)
    }

    fn ended(&self) -> bool {
        self.0.ended()
    }
}
