//! From events to the threads that are ready, and how long they were.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::Timestamp;

use super::{Event, Kind};

/// The threads that were seen, and what they do.
#[derive(Debug, Clone, Default)]
pub struct ReadyThreads {
    threads: BTreeMap<u32, State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    ready: bool,
    /// Since its last event.
    since: Timestamp,
    /// Ready time before that.
    before: Duration,
}

impl ReadyThreads {
    /// Applies an event. Those of different hardware threads may come in any
    /// order: what is older than what is known of a thread is left out.
    pub fn apply(&mut self, event: &Event) {
        match event.kind {
            Kind::Wakeup { thread } => self.set(thread, true, event.at),
            Kind::Switch { from, from_is_ready, to } => {
                self.set(from, from_is_ready, event.at);
                self.set(to, true, event.at);
            }
        }
    }

    fn set(&mut self, thread: u32, ready: bool, at: Timestamp) {
        // Each hardware thread's idle thread has number 0.
        if thread == 0 {
            return;
        }
        let new = State { ready, since: at, before: Duration::ZERO };
        let state = self.threads.entry(thread).or_insert(new);
        if at >= state.since {
            state.before = state.total(at);
            (state.ready, state.since) = (ready, at);
        }
    }

    /// Takes a thread that was not seen yet to be ready, or not to be, since `at`.
    pub fn assume(&mut self, thread: u32, ready: bool, at: Timestamp) {
        let new = State { ready, since: at, before: Duration::ZERO };
        self.threads.entry(thread).or_insert(new);
    }

    /// Is the thread ready? None if nothing was seen of it.
    #[must_use]
    pub fn is_ready(&self, thread: u32) -> Option<bool> {
        self.threads.get(&thread).map(|state| state.ready)
    }

    /// How long the thread was ready up to `now`, since it was first seen; none
    /// if nothing was seen of it.
    #[must_use]
    pub fn ready_time(&self, thread: u32, now: Timestamp) -> Option<Duration> {
        self.threads.get(&thread).map(|state| state.total(now))
    }

    /// Forgets all threads but these, since numbers are reused.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        self.threads.retain(|thread, _| keep(*thread));
    }
}

impl State {
    fn total(&self, now: Timestamp) -> Duration {
        let since = if self.ready { now.since(self.since) } else { Duration::ZERO };
        self.before + since
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wakeup(at: u64, thread: u32) -> Event {
        Event { at: Timestamp(at), kind: Kind::Wakeup { thread } }
    }

    fn switch(at: u64, from: u32, from_is_ready: bool, to: u32) -> Event {
        Event { at: Timestamp(at), kind: Kind::Switch { from, from_is_ready, to } }
    }

    fn after(events: &[Event]) -> ReadyThreads {
        let mut ready = ReadyThreads::default();
        events.iter().for_each(|event| ready.apply(event));
        ready
    }

    #[test]
    fn a_thread_is_ready_from_wake_up_to_sleep() {
        let ready = after(&[
            wakeup(100, 7),
            switch(130, 0, true, 7),
            switch(150, 7, true, 8),
            switch(170, 8, false, 7),
            switch(200, 7, false, 0),
        ]);
        let time = |thread| ready.ready_time(thread, Timestamp(300)).unwrap().as_nanos();
        assert_eq!((time(7), time(8)), (100, 20));
        assert_eq!((ready.is_ready(7), ready.is_ready(9)), (Some(false), None));
        assert_eq!(ready.is_ready(0), None);
    }

    #[test]
    fn a_ready_thread_goes_on_being_ready() {
        let ready = after(&[wakeup(100, 7)]);
        assert_eq!(ready.ready_time(7, Timestamp(350)), Some(Duration::from_nanos(250)));
    }

    #[test]
    fn forgotten_threads_are_unknown() {
        let mut ready = after(&[wakeup(100, 7), wakeup(100, 8)]);
        ready.retain(|thread| thread == 8);
        assert_eq!((ready.is_ready(7), ready.is_ready(8)), (None, Some(true)));
    }

    proptest! {
        #[test]
        fn events_that_arrive_late_leave_the_last_state(
            changes in prop::collection::vec(any::<bool>(), 1..20), order: u64,
        ) {
            let mut events: Vec<Event> = (0u64..)
                .zip(&changes)
                .map(|(at, ready)| match ready {
                    true => wakeup(at, 7),
                    false => switch(at, 7, false, 0),
                })
                .collect();
            let by = usize::try_from(order % events.len() as u64).unwrap();
            events.rotate_left(by);
            prop_assert_eq!(after(&events).is_ready(7), changes.last().copied());
        }
    }
}
