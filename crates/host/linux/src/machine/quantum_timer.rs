//! When the loop wakes: at the end of its quantum, and soon after a program changed its phase.
//!
//! ```text
//! an Alarm rings, at most MOST times a quantum  →  wake: the sample ends the time before the change
//!                                               →  wake again after SHORT_WAIT: the sample holds only the new phase
//! else                                          →  wake at the end of the quantum
//! ```
//!
//! So a program that changes its phase all the time costs a few more samples a quantum, and no more than that.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rustix::fd::BorrowedFd;
use symbiont_machine::Timestamp;

use super::Wait;
use super::ticker::{Lateness, Ticker};
use crate::launch::Wake;
use crate::switches::{Alarm, Member};

/// How long a new phase is looked at: several switches long, of which each is accounted for. A program that runs
/// through it without one is accounted for at the next tick, which may come later.
const SHORT_WAIT: Duration = Duration::from_millis(2);
/// Alarms that are heard in a quantum.
const MOST: u32 = 4;
/// Samples whose times are remembered.
const REMEMBERED: usize = 2048;

/// What may end a wait before its quantum does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Early<'a> {
    /// Readable when something has happened.
    pub bell: Option<BorrowedFd<'a>>,
    /// The longest wait.
    pub within: Option<Duration>,
    /// When something is to be looked at in between.
    pub look: Option<Duration>,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The bell of [`Early`] rang.
    Early,
    /// It is time for a look.
    Look,
    By(Wake),
}

/// Plans wake-ups, and remembers when samples were taken.
#[derive(Debug, Default)]
pub(super) struct QuantumTimer {
    ticker: Ticker,
    alarm: Option<Alarm>,
    /// Is the quantum that was planned last not over yet?
    under_way: bool,
    /// Has the alarm just rung?
    rang: bool,
    /// Alarms that may still be heard in this quantum.
    left: u32,
    heard: u64,
    /// When samples were taken, the last one at the back.
    samples: VecDeque<Timestamp>,
}

impl QuantumTimer {
    /// Wakes at this alarm as well.
    pub fn set_alarm(&mut self, alarm: Alarm) {
        self.alarm = Some(alarm);
    }

    /// Ready threads of a program at which the alarm rings; none without an alarm.
    pub fn alarm_threshold(&self) -> Option<f64> {
        self.alarm.as_ref().map(Alarm::threshold)
    }

    /// Alarms heard so far; none without an alarm.
    pub fn heard(&self) -> Option<u64> {
        self.alarm.as_ref().map(|_| self.heard)
    }

    pub fn lateness(&self) -> &Lateness {
        self.ticker.lateness()
    }

    /// Is the next wait one for the whole quantum?
    pub fn begins_quantum(&self) -> bool {
        !self.rang && !self.under_way
    }

    /// Waits for the end of the quantum, for the alarm or the end of the look
    /// after it, or for what ends the wait early.
    pub fn wait(
        &mut self,
        waiter: &mut impl Wait,
        quantum: Duration,
        early: Early<'_>,
    ) -> io::Result<Woken> {
        if std::mem::take(&mut self.rang) {
            return waiter.wait(SHORT_WAIT).map(Woken::By);
        }
        let rest = if self.under_way {
            self.ticker.left()
        } else {
            self.left = MOST;
            self.ticker.plan(quantum)
        };
        self.under_way = true;
        let without_look = early.within.map_or(rest, |within| within.min(rest));
        let time = early.look.map_or(without_look, |look| look.min(without_look));
        let alarm = self.alarm.as_ref().filter(|_| self.left > 0);
        // The alarm comes last, so that the other bell keeps its position.
        let bells: Vec<_> = early.bell.into_iter().chain(alarm.map(Alarm::bell)).collect();
        match waiter.wait_or(time, &bells)? {
            Wake::Bell(0) if early.bell.is_some() => Ok(Woken::Early),
            wake @ Wake::Bell(_) => {
                self.alarm.iter().for_each(Alarm::silence);
                self.left = self.left.saturating_sub(1);
                self.rang = true;
                self.heard += 1;
                Ok(Woken::By(wake))
            }
            Wake::Timeout if time < without_look => Ok(Woken::Look),
            wake @ Wake::Timeout if time == rest => {
                self.ticker.woke();
                self.under_way = false;
                Ok(Woken::By(wake))
            }
            wake => Ok(Woken::By(wake)),
        }
    }

    /// A sample was taken, in which there were these threads.
    pub fn sampled(&mut self, at: Timestamp, members: impl Iterator<Item = Member>) {
        if self.samples.len() == REMEMBERED {
            self.samples.pop_front();
        }
        self.samples.push_back(at);
        if let Some(alarm) = &self.alarm {
            alarm.watch(&members.collect::<Vec<_>>(), at);
        }
    }

    /// How long before the last sample the one was taken that is this many
    /// samples older; the longest time if that is not remembered.
    pub fn since(&self, samples: u64) -> Duration {
        let back = usize::try_from(samples).ok().and_then(|n| n.checked_add(1));
        let then = back.and_then(|back| self.samples.len().checked_sub(back));
        match (then.and_then(|then| self.samples.get(then)), self.samples.back()) {
            (Some(then), Some(last)) => last.since(*then),
            _ => Duration::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fd::AsFd;

    use super::*;

    /// Answers as the test specifies, and keeps the requested waits.
    #[derive(Default)]
    struct Script(Vec<Duration>);

    impl Wait for Script {
        fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
            self.0.push(timeout);
            Ok(Wake::Timeout)
        }

        fn wait_or(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Wake> {
            self.0.push(timeout);
            Ok(if bells.is_empty() { Wake::Timeout } else { Wake::Bell(0) })
        }
    }

    #[test]
    fn without_an_alarm_it_waits_a_quantum_each_time() {
        let (mut timer, mut script) = (QuantumTimer::default(), Script::default());
        let quantum = Duration::from_secs(3600);
        let woken = timer.wait(&mut script, quantum, Early::default()).unwrap();
        assert_eq!(woken, Woken::By(Wake::Timeout));
        assert!(script.0[0] > quantum / 2);
        assert_eq!(timer.heard(), None);
        assert!(timer.begins_quantum());
    }

    #[test]
    fn after_the_alarm_there_is_a_short_look_and_then_the_rest() {
        let cpus = symbiont_topology::HostTopology::read().unwrap().cpus();
        let alarm = match Alarm::start(&cpus, 1.1) {
            Ok(alarm) => alarm,
            Err(why) => return eprintln!("skipped: {why}"),
        };
        let (mut timer, mut script) = (QuantumTimer::default(), Script::default());
        timer.set_alarm(alarm);
        let quantum = Duration::from_secs(3600);
        let mut wait = || timer.wait(&mut script, quantum, Early::default()).unwrap();
        let wakes: Vec<Woken> = (0..10).map(|_| wait()).collect();
        let pair = [Wake::Bell(0), Wake::Timeout].map(Woken::By);
        // Four alarms with their looks, then the rest of the quantum; then the next.
        let last = [pair[1], pair[0]];
        let expected = [pair, pair, pair, pair, last].concat();
        assert_eq!(wakes, expected);
        assert!(script.0.iter().skip(1).step_by(2).take(4).all(|time| *time == SHORT_WAIT));
        assert!(script.0[8] <= quantum && script.0[8] > quantum / 2);
        assert_eq!(timer.heard(), Some(5));
    }

    #[test]
    fn after_an_early_end_of_a_wait_there_is_the_rest_of_the_quantum() {
        let (mut timer, mut script) = (QuantumTimer::default(), Script::default());
        let (quantum, within) = (Duration::from_secs(3600), Some(Duration::from_secs(1)));
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let rung = Early { bell: Some(bell.as_fd()), within, look: None };
        assert_eq!(timer.wait(&mut script, quantum, rung).unwrap(), Woken::Early);
        let silent = Early { bell: None, within, look: None };
        assert_eq!(timer.wait(&mut script, quantum, silent).unwrap(), Woken::By(Wake::Timeout));
        assert!(!timer.begins_quantum());
        timer.wait(&mut script, quantum, Early::default()).unwrap();
        assert!(timer.begins_quantum());
        assert_eq!(script.0[..2], [Duration::from_secs(1); 2]);
        assert!(script.0[2] <= quantum && script.0[2] > quantum / 2, "one quantum in all");
    }

    #[test]
    fn a_quantum_is_as_long_with_looks_in_between() {
        let (mut timer, mut script) = (QuantumTimer::default(), Script::default());
        let look = Some(Duration::from_secs(1));
        let (quantum, early) = (Duration::from_secs(3600), Early { look, ..Early::default() });
        for _ in 0..3 {
            assert_eq!(timer.wait(&mut script, quantum, early).unwrap(), Woken::Look);
            assert!(!timer.begins_quantum());
        }
        timer.wait(&mut script, quantum, Early::default()).unwrap();
        assert!(timer.begins_quantum());
        assert!(script.0[3] <= quantum && script.0[3] > quantum / 2, "one quantum in all");
    }

    #[test]
    fn ages_in_samples_are_given_as_times() {
        let mut timer = QuantumTimer::default();
        assert_eq!(timer.since(0), Duration::MAX);
        for at in [100, 120, 125] {
            timer.sampled(Timestamp(at), std::iter::empty());
        }
        let times = [0, 1, 2].map(|age| timer.since(age).as_nanos());
        assert_eq!(times, [0, 5, 25]);
        assert_eq!(timer.since(3), Duration::MAX);
    }
}
