//! Which threads are counted in a quantum, where descriptors do not suffice for all.
//!
//! Pure: threads are distinguished by any key, and time is counted in quanta.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// The threads that are watched, and those that wait in line.
#[derive(Debug)]
pub(super) struct Rotation<K> {
    /// In the order in which they began, with the quantum in which they did.
    watched: VecDeque<(K, u64)>,
    waiting: VecDeque<K>,
    /// Threads seen, with the quantum in which they were first.
    seen: HashMap<K, u64>,
}

/// What changes in a quantum.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn<K> {
    pub close: Vec<K>,
    pub open: Vec<K>,
}

impl<K: Copy + Eq + Hash + Ord> Rotation<K> {
    pub fn new() -> Self {
        Self { watched: VecDeque::new(), waiting: VecDeque::new(), seen: HashMap::new() }
    }

    /// Takes note of the threads that live at the end of quantum `now`: a thread that was seen
    /// before outlived a quantum and gets in line; threads that are gone leave.
    ///
    /// At most `room` are watched, each for at least `stay` quanta while others
    /// wait.
    pub fn turn(
        &mut self,
        now: u64,
        alive: impl Iterator<Item = K>,
        room: usize,
        stay: u64,
    ) -> Turn<K> {
        let alive: BTreeSet<K> = alive.collect();
        let gone = |key: &K| !alive.contains(key);
        let mut close: Vec<K> =
            self.watched.iter().map(|&(key, _)| key).filter(|key| gone(key)).collect();
        self.seen.retain(|key, _| !gone(key));
        self.watched.retain(|(key, _)| !gone(key));
        self.waiting.retain(|key| !gone(key));
        for &key in &alive {
            match self.seen.get(&key) {
                Some(&first) if first + 1 == now => self.waiting.push_back(key),
                Some(_) => {}
                None => {
                    self.seen.insert(key, now);
                }
            }
        }
        let free = room.saturating_sub(self.watched.len());
        let mut wanted = self.waiting.len().saturating_sub(free);
        while let Some(&(key, since)) = self.watched.front() {
            let over = self.watched.len() > room;
            if !over && (wanted == 0 || now.saturating_sub(since) < stay) {
                break;
            }
            self.watched.pop_front();
            self.waiting.push_back(key);
            close.push(key);
            wanted = wanted.saturating_sub(usize::from(!over));
        }
        let free = room.saturating_sub(self.watched.len());
        let open: Vec<K> = self.waiting.drain(..free.min(self.waiting.len())).collect();
        self.watched.extend(open.iter().map(|&key| (key, now)));
        Turn { close, open }
    }

    /// Has this thread outlived a quantum, before `next` begins?
    pub fn is_old(&self, key: K, next: u64) -> bool {
        self.seen.get(&key).is_some_and(|first| first + 1 < next)
    }

    /// A thread cannot be watched and leaves the line for good.
    pub fn give_up(&mut self, key: K) {
        self.watched.retain(|&(known, _)| known != key);
    }

    /// A thread could not be watched this time and waits at the line's head.
    pub fn requeue(&mut self, key: K) {
        self.give_up(key);
        self.waiting.push_front(key);
    }

    /// Leaves at most `room` watched: the newest, which lose least, make way at
    /// once and wait at the line's head. Gives them.
    pub fn shrink(&mut self, room: usize) -> Vec<K> {
        let newest = self.watched.split_off(room.min(self.watched.len()));
        let newest: Vec<K> = newest.into_iter().map(|(key, _)| key).collect();
        for &key in newest.iter().rev() {
            self.waiting.push_front(key);
        }
        newest
    }

    /// How many are watched.
    pub fn watched(&self) -> usize {
        self.watched.len()
    }

    /// How many wait in line.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_threads_that_outlived_a_quantum_are_watched() {
        let mut rotation = Rotation::new();
        assert_eq!(rotation.turn(0, [1].into_iter(), 8, 2), Turn { close: vec![], open: vec![] });
        assert_eq!(
            rotation.turn(1, [1, 2].into_iter(), 8, 2),
            Turn { close: vec![], open: vec![1] }
        );
        assert_eq!([1, 2, 3].map(|key| rotation.is_old(key, 2)), [true, false, false]);
        assert_eq!(rotation.turn(2, [3].into_iter(), 8, 2), Turn { close: vec![1], open: vec![] });
    }

    #[test]
    fn with_little_room_every_thread_has_a_turn() {
        let mut rotation = Rotation::new();
        let mut quanta = [0; 10];
        for now in 0..200 {
            rotation.turn(now, 0..10, 3, 2);
            assert!(rotation.watched() <= 3);
            for &(key, _) in &rotation.watched {
                quanta[key] += 1;
            }
        }
        let (least, most) = (quanta.iter().min(), quanta.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| most - least <= 4), "{quanta:?}");
    }

    #[test]
    fn the_newest_make_way_at_once() {
        let mut rotation = Rotation::new();
        rotation.turn(0, 0..2, 8, 2);
        rotation.turn(1, 0..4, 8, 2);
        rotation.turn(2, 0..4, 8, 2);
        assert_eq!(rotation.shrink(1), [1, 2, 3]);
        assert_eq!((rotation.watched(), rotation.waiting()), (1, 3));
        assert_eq!(rotation.turn(3, 0..4, 2, 2), Turn { close: vec![0], open: vec![1, 2] });
        assert!(rotation.shrink(2).is_empty());
    }

    proptest! {
        #[test]
        fn no_thread_is_lost_or_counted_twice(
            rounds in proptest::collection::vec(
                (proptest::collection::btree_set(0u8..20, 0..20), 0usize..12), 1..40),
            stay in 0u64..4,
        ) {
            let mut rotation = Rotation::new();
            let mut open = BTreeSet::new();
            let mut before = BTreeSet::new();
            for (now, (alive, room)) in (0u64..).zip(rounds) {
                let turn = rotation.turn(now, alive.iter().copied(), room, stay);
                for key in &turn.close {
                    prop_assert!(open.remove(key));
                }
                for &key in &turn.open {
                    prop_assert!(open.insert(key));
                    prop_assert!(alive.contains(&key) && before.contains(&key));
                }
                prop_assert!(open.len() <= room && open.is_subset(&alive));
                let old = alive.intersection(&before).count();
                prop_assert_eq!(rotation.watched() + rotation.waiting(), old);
                prop_assert_eq!(rotation.watched(), old.min(room));
                before = alive;
            }
        }
    }
}
